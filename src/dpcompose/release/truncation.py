"""The rows kept of each unit: some of its groups, some of its rows in each, some of its rows in all.

Joins of two private tables on a key that is not their unit: no unit is left, but one unit moves few rows.

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
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, Protocol

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.bounds import MOST_ROWS, Bounds
from dpcompose.release.engines import Engine, Expression
from dpcompose.release.expression import col
from dpcompose.release.function import Rows, TypedColumn, compiled

PRIME = 2**31 - 1
_ORDERED = ("integer", "float", "decimal", "text", "boolean", "date")
"""The kinds of columns of which values that sort alike are alike to every question and expression."""
FEW, MANY = 2**20, 2**31
"""Products of a place and a bound stay below 2^63: for bounds above FEW, places are cut off at MANY."""


class UnitTable(Protocol):
    """A table of which a part of each unit's rows is kept."""

    @property
    def unit(self) -> tuple[str, ...]:
        """The columns that name the unit."""
        ...

    @property
    def bounds(self) -> Bounds:
        """The part of one unit that is kept."""
        ...

    @property
    def single(self) -> bool:
        """Whether the database keeps it so that no unit has more than one row."""
        ...

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""
        ...

    @property
    def columns(self) -> Sequence[TypedColumn]:
        """All columns."""
        ...

    def column(self, name: object) -> TypedColumn:
        """The column of that name."""
        ...


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

    def start(self, table: UnitTable, rows: Expression, stage: str) -> Expression:
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


def _number(table: UnitTable, name: str, column: Expression) -> Expression:
    """The unit as a 64-bit integer: itself, or a digest of its text."""
    kind = table.column(name).kind
    if kind == "boolean":
        return column.ifelse(1, 0).cast("int64")
    if table.column(name).type == "uint64":
        return (column % PRIME).cast("int64")
    return column.cast("int64") if kind == "integer" else table.engine.digest(column.cast("string"))


ANY = Sampling()
"""For statements that no scope keeps a key for."""


def whole_rows(table: UnitTable, data: Expression, *, stage: str) -> Expression:
    """At most `bounds.rows` rows of each unit, with every column that can be asked.

    Rows are ordered by all columns that come out, so ties are identical rows, and what is kept of a unit follows from
    its own rows alone. Columns of other types, which no question and no expression takes, are left out: how an engine
    breaks their ties could follow from the rows of others. No scope is known here, so the hash has no key: it spreads
    what is kept, and no bound rests on it. Rows whose unit is NULL belong to nobody.
    """
    there = {each.name: each.kind for each in table.columns}
    same = {
        name: table.engine.binary_collation(data[name]) if kind == "text" else data[name]
        for name, kind in there.items()
        if name in table.unit or kind in _ORDERED or _is_plain_timestamp(data[name])
    }
    told = [
        table.engine.readable(data[each]) if there[each] == "text" else data[each].notnull()
        for each in table.unit
    ]
    units = {name: f"unit{at}" for at, name in enumerate(table.unit)}
    items = {
        name: f"item{at}" for at, name in enumerate(name for name in same if name not in units)
    }
    named = units | items
    rows = data.filter(*told).select(**{named[name]: column for name, column in same.items()})
    of, order = [*units.values()], [*items.values()]
    rows = sampled_rows(table, rows, of, order, most=table.bounds.rows, sampling=ANY, stage=stage)
    return rows.select(**{name: rows[named[name]] for name in same})


def _is_plain_timestamp(column: Any) -> bool:
    return column.type().is_timestamp() and column.type().timezone is None


def bounded(
    table: UnitTable,
    rows: Expression,
    units: list[str],
    keys: list[str],
    *,
    cells: int | None,
    sampling: Sampling,
) -> Expression:
    """The rows kept of each unit: some of its groups, some of its rows in each, some of its rows in all.

    Rows are ordered by every column that is used, NULLs last, text by code point; ties are identical rows. `cells` is
    the number of groups where they are public.
    """
    bounds = table.bounds
    few = cells is not None and cells <= bounds.groups
    if not few and bounds.groups < bounds.rows:
        rows = sampled_rows(
            table,
            rows,
            units,
            keys,
            most=bounds.groups,
            sampling=sampling,
            stage="groups",
            dense=True,
        )
        few = True
    used = [name for name in rows.columns if name.startswith(("bin", "value", "item", "raw"))]
    if bounds.rows_per_group < bounds.rows:
        rows = sampled_rows(
            table,
            rows,
            [*units, *keys],
            used,
            most=bounds.rows_per_group,
            sampling=sampling,
            stage="rows of groups",
        )
    groups = min(bounds.groups, cells) if cells is not None else bounds.groups
    if not (
        few
        and groups * bounds.rows_per_group <= bounds.rows
        and bounds.rows_per_group < bounds.rows
    ):
        rows = sampled_rows(
            table, rows, units, [*keys, *used], most=bounds.rows, sampling=sampling, stage="rows"
        )
    return rows


def sampled_rows(
    table: UnitTable,
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

    If dense, what is numbered and kept are not rows, but the groups that agree in `names`. Of units with one row each
    nothing can be left out, so nothing is sorted.
    """
    import ibis

    if table.single:
        return rows

    def order(of_rows: Expression) -> list[Any]:
        """The total order over these columns, as `bounded` says."""
        columns = [
            (of_rows[name], name.startswith(("key", "item")) and of_rows[name].type().is_string())
            for name in names
        ]
        texts = [table.engine.by_code_point(column) if text else column for column, text in columns]
        return [column.asc(nulls_first=False) for column in texts]

    start = None
    if not names:
        window = ibis.window(group_by=of)
        return (
            rows.mutate(place=ibis.row_number().over(window))
            .filter(lambda each: each.place < most)
            .drop("place")
        )
    if dense:
        placed = rows.mutate(
            place=ibis.dense_rank().over(ibis.window(group_by=of, order_by=order(rows)))
        )
        placed = placed.mutate(number=placed.place.max().over(ibis.window(group_by=of)) + 1)
    elif table.engine.labels and all(name.startswith("unit") for name in of) and _texts(table):
        placed = table.engine.numbered(
            _labelled(table, rows, of, sampling, stage), ["label"], order
        )
        start = placed.start
    else:
        placed = table.engine.numbered(rows, of, order)
    # The hash is asked for last, so that no sort carries it along.
    start = sampling.start(table, placed, stage) if start is None else start
    return placed.filter(_chosen(placed.place, placed.number, start, most)).select(*rows.columns)


def _labelled(
    table: UnitTable, rows: Expression, of: list[str], sampling: Sampling, stage: str
) -> Expression:
    """Rows with the hash of their unit, which is asked for once for a unit, and an integer that stands for the unit.

    Units that are text are sorted by it in less than half the time.
    """
    import ibis

    units = rows.select(*of).distinct()
    units = units.mutate(
        start=sampling.start(table, units, stage), label=ibis.row_number().over(ibis.window())
    )
    return rows.join(units, of).select(*rows.columns, "start", "label")


def _texts(table: UnitTable) -> bool:
    return any(table.column(name).kind == "text" for name in table.unit)


def _chosen(position: Any, number: Any, start: Any, most: int) -> Any:
    import ibis

    if most <= FEW:
        return (position * most + start) % number < most
    within: Any = ibis.least(position, MANY)
    number = ibis.least(number, MANY)
    return (position < MANY) & ((within * most + start) % number < most)


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


def _pair(name: str, value: object) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise DomainError(
            name, value, "a pair: so many rows of this table, and so many of the other one"
        )
    found: list[int] = []
    for each in value:
        number = check.count(name, each)
        if not 1 <= number <= MOST_ROWS:
            raise DomainError(name, number, f"integers from 1 to {MOST_ROWS:,}")
        found.append(number)
    return found[0], found[1]
