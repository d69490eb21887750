"""The rows kept of each unit: some of its groups, some of its rows in each, some of its rows in all."""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dpcompose.release.engine import Expression

if TYPE_CHECKING:
    from dpcompose.release.table import Table

PRIME = 2**31 - 1
FEW, MANY = 2**20, 2**31
"""Products of a place and a bound stay below 2^63: for bounds above FEW, places are cut off at MANY."""


@dataclass(frozen=True)
class Sampling:
    """Which rows of a unit with too many are kept: every one with the same probability, over the key.

    Of n rows in a total order, numbered from 0, i is kept where (most i + h) mod n < most, h a keyed hash of the
    unit: exactly min(n, most) of them, spread evenly, so that every group keeps its share to within one row. What is
    kept of a unit follows from its own rows and the key. The hash is linear in the unit modulo 2^31 - 1, which makes
    different units independent in pairs.

    Args:
        key: Drawn once for a scope, independent of the data.
    """

    key: bytes = b""

    def start(self, table: Table, rows: Expression, stage: str) -> Expression:
        """The hash of the unit of each row, from 0 to 2^33; another one for each stage."""
        found: Any = self._number(stage, "")
        for at, name in enumerate(table.unit):
            column: Any = rows[f"unit{at}"]
            number = _number(table, name, column)
            found = (number % PRIME * (self._number(stage, at) or 1)) % PRIME + (found + PRIME)
        return found

    def _number(self, stage: str, column: object) -> int:
        digest = sha256(self.key + f"/{stage}/{column}".encode()).digest()
        return int.from_bytes(digest[:16], "big") % PRIME


def _number(table: Table, name: str, column: Expression) -> Expression:
    """The unit as a 64-bit integer: itself, or a digest of its text."""
    kind = table.column(name).kind
    if kind == "boolean":
        return column.ifelse(1, 0).cast("int64")
    if table.column(name).type == "uint64":
        return (column % PRIME).cast("int64")
    return column.cast("int64") if kind == "integer" else table.engine.digest(column.cast("string"))


def bounded(
    table: Table, rows: Expression, units: list[str], keys: list[str], *, cells: int | None, sampling: Sampling
) -> Expression:
    """The rows kept of each unit: some of its groups, some of its rows in each, some of its rows in all.

    Rows are ordered by every column that is used, NULLs last, text by code point; ties are identical rows. `cells` is
    the number of groups where they are public.
    """
    bounds = table.bounds
    few = cells is not None and cells <= bounds.groups
    if not few and bounds.groups < bounds.rows:
        rows = kept(table, rows, units, keys, most=bounds.groups, sampling=sampling, stage="groups", dense=True)
        few = True
    used = [name for name in ("bin", "value") if name in rows.columns]
    if bounds.rows_per_group < bounds.rows:
        rows = kept(
            table, rows, [*units, *keys], used, most=bounds.rows_per_group, sampling=sampling, stage="rows of groups"
        )
    groups = min(bounds.groups, cells) if cells is not None else bounds.groups
    if not (few and groups * bounds.rows_per_group <= bounds.rows and bounds.rows_per_group < bounds.rows):
        rows = kept(table, rows, units, [*keys, *used], most=bounds.rows, sampling=sampling, stage="rows")
    return rows


def ordered(table: Table, rows: Expression, names: list[str]) -> list[Any]:
    """The total order over these columns, as `bounded` says."""
    columns = [(rows[name], name.startswith("key") and rows[name].type().is_string()) for name in names]
    texts = [table.engine.by_code_point(column) if text else column for column, text in columns]
    return [column.asc(nulls_first=False) for column in texts]


def kept(
    table: Table,
    rows: Expression,
    of: list[str],
    names: list[str],
    *,
    most: int,
    sampling: Sampling,
    stage: str,
    dense: bool = False,
) -> Expression:
    """The rows of each unit, or of what else is in `of`, that `Sampling` keeps in the order of `names`.

    If dense, what is numbered and kept are not rows, but the groups that agree in `names`.
    """
    import ibis

    def order(of_rows: Expression) -> list[Any]:
        return ordered(table, of_rows, names)

    start = None
    if not names:
        window = ibis.window(group_by=of)
        return rows.mutate(place=ibis.row_number().over(window)).filter(lambda each: each.place < most).drop("place")
    if dense:
        placed = rows.mutate(place=ibis.dense_rank().over(ibis.window(group_by=of, order_by=order(rows))))
        placed = placed.mutate(number=placed.place.max().over(ibis.window(group_by=of)) + 1)
    elif table.engine.labels and all(name.startswith("unit") for name in of) and _texts(table):
        placed = table.engine.numbered(_labelled(table, rows, of, sampling, stage), ["label"], order)
        start = placed.start
    else:
        placed = table.engine.numbered(rows, of, order)
    # The hash is asked for last, so that no sort carries it along.
    start = sampling.start(table, placed, stage) if start is None else start
    return placed.filter(_chosen(placed.place, placed.number, start, most)).select(*rows.columns)


def _labelled(table: Table, rows: Expression, of: list[str], sampling: Sampling, stage: str) -> Expression:
    """Rows with the hash of their unit, which is asked for once for a unit, and an integer that stands for the unit.

    Units that are text are sorted by it in less than half the time.
    """
    import ibis

    units = rows.select(*of).distinct()
    units = units.mutate(start=sampling.start(table, units, stage), label=ibis.row_number().over(ibis.window()))
    return rows.join(units, of).select(*rows.columns, "start", "label")


def _texts(table: Table) -> bool:
    return any(table.column(name).kind == "text" for name in table.unit)


def _chosen(place: Any, number: Any, start: Any, most: int) -> Any:
    import ibis

    if most <= FEW:
        return (place * most + start) % number < most
    within: Any = ibis.least(place, MANY)
    number = ibis.least(number, MANY)
    return (place < MANY) & ((within * most + start) % number < most)
