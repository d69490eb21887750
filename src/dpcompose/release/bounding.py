"""What is kept of each unit: its first groups, its first rows in each, its first rows in all."""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dpcompose.release.expression import Expression

if TYPE_CHECKING:
    from dpcompose.release.aggregate import Aggregation
    from dpcompose.release.table import Table

MODULUS = 2**31 - 1


def bounded(table: Table, rows: Expression, units: list[str], keys: list[str], what: Aggregation) -> Expression:
    """What is kept of each unit: its first groups, its first rows in each, its first rows in all.

    Rows are ordered by every column that is used, NULLs last; ties are identical rows. Numbers come first, in an order
    that is scrambled by integer arithmetic: by size, a unit's smallest would be kept and every sum pulled down. Then
    keys, as integers or by code point.
    """
    bounds, cells = table.bounds, None if what.public is None else len(what.public)
    few = cells is not None and cells <= bounds.groups
    if not few and bounds.groups < bounds.rows:
        rows, few = first(rows, units, ordered(table, rows, keys, what), bounds.groups, dense=True), True
    used = [name for name in ("bin", "value") if name in rows.columns]
    if bounds.rows_per_group < bounds.rows:
        rows = first(rows, [*units, *keys], ordered(table, rows, used, what), bounds.rows_per_group)
    groups = min(bounds.groups, cells) if cells is not None else bounds.groups
    if not (few and groups * bounds.rows_per_group <= bounds.rows and bounds.rows_per_group < bounds.rows):
        rows = first(rows, units, ordered(table, rows, [*used, *keys], what), bounds.rows)
    return rows


def ordered(table: Table, rows: Expression, names: list[str], what: Aggregation) -> list[Any]:
    """The total order over these columns, as `bounded` says."""
    found: list[Any] = []
    for name in names:
        column = rows[name]
        if name.startswith("key") and column.type().is_string():
            column = table.engine.by_code_point(column)
        if name in ("bin", "value"):
            found.append(_scrambled(column, _least(what) if name == "value" else 0).asc())
        if name != "bin" and not (name == "value" and _distinctly(what)):
            found.append(column.asc(nulls_first=False))
    return found


def _least(what: Aggregation) -> int:
    return what.value[1].first if what.value is not None else 0


def _distinctly(what: Aggregation) -> bool:
    """Whether different values stay different when they are scrambled; bins do, for there are fewer than 2^31 - 1."""
    assert what.value is not None
    return what.value[1].last - what.value[1].first < MODULUS


def _scrambled(column: Expression, least: int) -> Expression:
    """An integer that is alike on every engine and has nothing to do with the size: products stay below 2^62.

    The factor is odd, so that different places stay different.
    """
    place = (column - least) % MODULUS
    return (place * 1103515245 + 12345) % 2**31


def first(rows: Expression, of: list[str], order: list[Any], most: int, *, dense: bool = False) -> Expression:
    """The first rows in that order of each unit, or of what else is named; the rows of its first groups if dense."""
    import ibis

    window = ibis.window(group_by=of, order_by=order)
    rank = ibis.dense_rank() if dense else ibis.row_number()
    return rows.mutate(rank=rank.over(window)).filter(lambda each: each["rank"] < most).drop("rank")
