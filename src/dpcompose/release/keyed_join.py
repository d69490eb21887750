"""Joins of two private tables on a key that is not their unit: no unit is left, but one unit moves few rows.

Stability. Let neighbors differ in all rows of one unit, in both tables. Each side first keeps at most r rows of a unit,
which follow from that unit's rows alone; so each side differs in at most r rows. Then it keeps, of each key, the first
t rows in an order that is total and in which the place of a row against another follows from those two rows alone: a
hash of the unit, the unit, and every column. With m more rows of a key, at most min(m, t) of them come in, and as
many of the others go out, for what goes out is pushed out. So what is kept of A, with bounds r and t, and of B, with
r' and t', differs in at most 2 r and 2 r' rows. Change A first, then B: a row of A meets at most t' rows of B, a row of
B at most t of A. The joined rows differ in at most

    2 (r t' + r' t)

rows, counted with the rows that went out. What keeps or drops a joined row, or computes its columns, moves no more, and
counts and clamped sums move by at most that many rows, which may all lie in one group. That is their change in L1, and
its square the change in L2. Rows beyond the bounds of a key belong to many, so nothing can be bounded by units later.
"""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.bounds import MOST_ROWS, Bounds
from dpcompose.release.engine import Expression
from dpcompose.release.expression import col
from dpcompose.release.function import Rows, compiled
from dpcompose.release.truncation import ANY, whole_rows

KINDS = ("integer", "text", "boolean", "date")
"""Kinds of keys: their values are equal where they are the same."""


@dataclass(frozen=True)
class KeptRows:
    """The rows that one side of a join keeps.

    Args:
        of_unit: Rows of a unit.
        of_key: Rows of a key.
    """

    of_unit: int
    of_key: int

    @classmethod
    def stated(
        cls, bounds: Sequence[Bounds], at_most: object, rows_per_unit: object
    ) -> tuple[KeptRows, KeptRows]:
        """Both sides, from the bounds of the tables and what was typed.

        Raises:
            DomainError: If one is no pair of integers >= 1.
        """
        most = (bounds[0].rows, bounds[1].rows)
        of_key = _pair("at_most", at_most)
        given = most if rows_per_unit is None else _pair("rows_per_unit", rows_per_unit)
        of_unit = [min(one, other) for one, other in zip(given, most, strict=True)]
        return cls(of_unit[0], of_key[0]), cls(of_unit[1], of_key[1])


def joined_bounds(ours: KeptRows, theirs: KeptRows) -> Bounds:
    """How many joined rows one unit moves, all of which may lie in one group.

    Raises:
        DomainError: If they are more than any question could be asked of.
    """
    rows = 2 * (ours.of_unit * theirs.of_key + theirs.of_unit * ours.of_key)
    if not rows <= MOST_ROWS:
        raise DomainError(
            "join",
            rows,
            f"at most {MOST_ROWS:,} joined rows that one unit moves",
            "Keep fewer rows",
        )
    return Bounds(rows, rows, rows)


def few_of_each_key(
    table: Any, data: Expression, keys: Sequence[str], most: KeptRows, *, stage: str
) -> Expression:
    """The rows of one side, without its unit, and with its keys once more as key0, key1, ...; NULL is no key."""
    import ibis

    bounds = Bounds(most.of_unit, most.of_unit, most.of_unit)
    whole = whole_rows(replace(table, bounds=bounds), data, stage=stage)
    there = Rows(whole, table.columns, table.engine, table.weights)
    units = {f"unit{at}": name for at, name in enumerate(table.unit)}
    items = {
        f"item{at}": name
        for at, name in enumerate(name for name in whole.columns if name not in table.unit)
    }
    found = {f"key{at}": compiled(col(name), there).value for at, name in enumerate(keys)}
    rows = whole.select(
        **{called: whole[name] for called, name in (units | items).items()}, **found
    )
    rows = rows.filter(*(rows[name].notnull() for name in found))
    rows = rows.mutate(start=ANY.start(table, rows, stage))
    order: list[Any] = [rows.start.asc()]
    for called in units | items:
        column: Any = rows[called]
        order.append(
            (table.engine.by_code_point(column) if column.type().is_string() else column).asc(
                nulls_first=False
            )
        )
    placed = rows.mutate(
        place=ibis.row_number().over(ibis.window(group_by=[*found], order_by=order))
    )
    kept = placed.filter(placed.place < most.of_key)
    return kept.select(*found, **{f"item_{name}": kept[called] for called, name in items.items()})


def joined(left: Expression, right: Expression, keys: Sequence[str]) -> Expression:
    """Rows of both that agree in their keys, with the columns of both; the key's are those of the left side."""
    pairs = {f"key{at}": f"right{at}" for at in range(len(keys))}
    names = [
        name
        for name in right.columns
        if name.startswith("item_") and name.removeprefix("item_") not in keys
    ]
    there = right.select(*names, **{theirs: right[own] for own, theirs in pairs.items()})
    both = left.join(there, list(pairs.items()), how="inner")
    items = [*(name for name in left.columns if name.startswith("item_")), *names]
    return both.select(**{name.removeprefix("item_"): both[name] for name in items})


def _pair(name: str, given: object) -> tuple[int, int]:
    if not isinstance(given, tuple | list) or len(given) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise DomainError(
            name, given, "a pair: so many rows of this table, and so many of the other one"
        )
    found: list[int] = []
    for each in given:
        number = check.count(name, each)
        if not 1 <= number <= MOST_ROWS:
            raise DomainError(name, number, f"integers from 1 to {MOST_ROWS:,}")
        found.append(number)
    return found[0], found[1]
