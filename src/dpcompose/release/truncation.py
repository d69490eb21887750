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

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.columns import MOST_ROWS, Bounds, UnitTable
from dpcompose.release.expression import col
from dpcompose.release.function import compiled, is_plain_timestamp
from dpcompose.release.query import Query, Value, case, over

PRIME = 2**31 - 1
_ORDERED = ("integer", "float", "decimal", "text", "boolean", "date")
"""The kinds of columns of which values that sort alike are alike to every question and expression."""
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

    def start(self, table: UnitTable, columns: Sequence[Value], stage: str) -> str:
        """The hash of the unit that these columns name, from 0 to 2^33; another one for each stage."""
        # Added up here: a sum of two constants could be one of 32 bits there.
        found = str(self._number(stage, "") + PRIME * len(columns))
        for at, (name, column) in enumerate(zip(table.unit, columns, strict=True)):
            number, factor = _number(table, name, column), self._number(stage, at) or 1
            found = f"{number} % {PRIME} * {factor} % {PRIME} + {found}"
        return table.engine.cast(found, "int64")

    def _number(self, stage: str, column: object) -> int:
        digest = sha256(self.key + f"/{stage}/{column}".encode()).digest()
        return int.from_bytes(digest[:16], "big") % PRIME


def _number(table: UnitTable, name: str, column: Value) -> str:
    """The unit as a 64-bit integer: itself, or a digest of its text."""
    kind, cast = table.column(name).kind, table.engine.cast
    if kind == "boolean":
        return cast(case((column, "1"), other="0"), "int64")
    if table.column(name).type == "uint64":
        return cast(f"{column} % {PRIME}", "int64")
    return (
        cast(column, "int64") if kind == "integer" else table.engine.digest(cast(column, "string"))
    )


ANY = Sampling()
"""For statements that no scope keeps a key for."""


def whole_rows(table: UnitTable, data: Query, *, stage: str) -> Query:
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
        if name in table.unit or kind in _ORDERED or is_plain_timestamp(data.types[name])
    }
    readable = [
        table.engine.readable(data[each])
        if there[each] == "text"
        else f"({data[each]} IS NOT NULL)"
        for each in table.unit
    ]
    units = {name: f"unit{at}" for at, name in enumerate(table.unit)}
    items = {
        name: f"item{at}" for at, name in enumerate(name for name in same if name not in units)
    }
    named = units | items
    rows = data.select(where=readable, **{named[name]: column for name, column in same.items()})
    of, order = [*units.values()], [*items.values()]
    rows = sampled_rows(table, rows, of, order, most=table.bounds.rows, sampling=ANY, stage=stage)
    return rows.select(**{name: rows[named[name]] for name in same})


def bounded(
    table: UnitTable,
    rows: Query,
    units: list[str],
    keys: list[str],
    *,
    cells: int | None,
    sampling: Sampling,
) -> Query:
    """The rows kept of each unit: some of its groups, some of its rows in each, some of its rows in all.

    Rows are ordered by every column that is used, NULLs last, text by code point; ties are identical rows. `cells` is
    the number of groups where they are public.
    """
    bounds, sample = table.bounds, partial(sampled_rows, table, sampling=sampling)
    of_groups, of_rows_in_each, of_rows = _truncated(bounds, cells)
    if of_groups:
        rows = sample(rows, units, keys, most=bounds.groups, stage="groups", dense=True)
    used = [name for name in rows.columns if name.startswith(("bin", "value", "item", "raw"))]
    if of_rows_in_each:
        of = [*units, *keys]
        rows = sample(rows, of, used, most=bounds.rows_per_group, stage="rows of groups")
    if of_rows:
        rows = sample(rows, units, [*keys, *used], most=bounds.rows, stage="rows")
    return rows


def _truncated(bounds: Bounds, cells: int | None) -> tuple[bool, bool, bool]:
    """Whether a unit may have too many groups, rows in one of them, and then rows in all."""
    few = cells is not None and cells <= bounds.groups
    of_groups, of_rows_in_each = (
        not few and bounds.groups < bounds.rows,
        bounds.rows_per_group < bounds.rows,
    )
    fit = bounds.within(cells).groups * bounds.rows_per_group <= bounds.rows
    return of_groups, of_rows_in_each, not ((few or of_groups) and of_rows_in_each and fit)


def counted(
    table: UnitTable,
    rows: Query,
    units: list[str],
    keys: list[str],
    *,
    cells: int | None,
    sampling: Sampling,
) -> Query:
    """How many rows `bounded` keeps of each unit in each group, as `rows`: of rows without other columns, no more counts.

    In an order by groups the rows of a unit in one group are those from a to b - 1, of n. `Sampling` keeps row i where
    (most i + h) mod n < most, that is where floor((most i + h) / n) is above what it is for i - 1, so of these it keeps
    floor((most (b - 1) + h) / n) - floor((most (a - 1) + h) / n): no row is numbered.
    """
    bounds, engine = table.bounds, table.engine
    if bounds.rows > FEW:
        within = bounded(table, rows, units, keys, cells=cells, sampling=sampling)
        return within.group([*units, *keys], rows="COUNT(*)")
    pairs = rows.group([*units, *keys], rows="COUNT(*)")
    of_groups, of_rows_in_each, of_rows = _truncated(bounds, cells)
    if of_groups:
        pairs = sampled_rows(
            table, pairs, units, keys, most=bounds.groups, sampling=sampling, stage="groups"
        )
    if of_rows_in_each:
        pairs = pairs.mutate(rows=f"LEAST({pairs['rows']}, {bounds.rows_per_group})")
    if table.single or not of_rows:
        return pairs
    labelled = engine.labels and _texts(table)
    if labelled:
        pairs = _labelled(table, pairs, units, sampling, "rows")
    by, most = [pairs[name] for name in (["label"] if labelled else units)], bounds.rows
    order = [_sorted(table, pairs[name]) for name in keys]
    frame = "ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
    pairs = pairs.mutate(
        upto=engine.cast(over(f"SUM({pairs['rows']})", by=by, order=order, frame=frame), "int64"),
        number=engine.cast(over(f"SUM({pairs['rows']})", by=by), "int64"),
    )
    number = pairs["number"]
    start = pairs["start"] if labelled else sampling.start(table, _unit(table, pairs), "rows")
    # One n more on both sides, so that neither is below 0.
    ends = (
        engine.divided(f"(({each} - 1) * {most} + {start} + {number})", number)
        for each in (pairs["upto"], f"({pairs['upto']} - {pairs['rows']})")
    )
    kept = case((f"{number} <= {most}", pairs["rows"]), other=f"({' - '.join(ends)})")
    chosen = pairs.select(*units, *keys, rows=kept)
    return chosen.filter(f"{chosen['rows']} > 0")


def sampled_rows(
    table: UnitTable,
    rows: Query,
    of: list[str],
    names: list[str],
    *,
    most: int,
    sampling: Sampling,
    stage: str,
    dense: bool = False,
) -> Query:
    """The rows of each unit, or of what else is in `of`, that `Sampling` keeps in the order of `names`.

    If dense, what is numbered and kept are not rows, but the groups that agree in `names`. Of units with one row each
    nothing can be left out, so nothing is sorted.
    """
    if table.single:
        return rows

    def order(of_rows: Query) -> list[str]:
        """The total order over these columns, as `bounded` says."""
        return [_sorted(table, of_rows[name]) for name in names]

    start = None
    if not names:
        # Rows of a unit that are all alike.
        by = [rows[name] for name in of]
        placed = rows.mutate(place=over("ROW_NUMBER()", by=by, order=["NULL"]))
        return placed.select(*rows.types, where=[f"{placed['place']} <= {most}"])
    if dense:
        by = [rows[name] for name in of]
        placed = rows.mutate(place=f"({over('DENSE_RANK()', by=by, order=order(rows))} - 1)")
        last = over(f"MAX({placed['place']})", by=[placed[name] for name in of])
        placed = placed.mutate(number=f"({last} + 1)")
    elif table.engine.labels and all(name.startswith("unit") for name in of) and _texts(table):
        placed = table.engine.numbered(
            _labelled(table, rows, of, sampling, stage), ["label"], order
        )
        start = placed["start"]
    else:
        placed = table.engine.numbered(rows, of, order)
    # The hash is asked for last, so that no sort carries it along.
    start = sampling.start(table, _unit(table, placed), stage) if start is None else start
    chosen = _chosen(placed["place"], placed["number"], start, most)
    return placed.select(*rows.types, where=[chosen])


def _unit(table: UnitTable, rows: Query) -> list[Value]:
    """The columns that name the unit of each row."""
    return [rows[f"unit{at}"] for at in range(len(table.unit))]


def _sorted(table: UnitTable, column: Value) -> str:
    """The place of a column in an order: NULL last, text by code point."""
    text = table.engine.by_code_point(column) if column.type.startswith("string") else column
    return f"{text} ASC NULLS LAST"


def _labelled(
    table: UnitTable, rows: Query, of: list[str], sampling: Sampling, stage: str
) -> Query:
    """Rows with the hash of their unit, which is asked for once for a unit, and an integer that stands for the unit.

    Units that are text are sorted by it in less than half the time.
    """
    units = rows.select(*of).distinct()
    start = sampling.start(table, _unit(table, units), stage)
    units = units.mutate(start=start, label=over("ROW_NUMBER()"))
    return rows.join(units, [(name, name) for name in of], {"start": "start", "label": "label"})


def _texts(table: UnitTable) -> bool:
    return any(table.column(name).kind == "text" for name in table.unit)


def _chosen(position: str, number: str, start: str, most: int) -> str:
    if most <= FEW:
        return f"({position} * {most} + {start}) % {number} < {most}"
    within, number = f"LEAST({position}, {MANY})", f"LEAST({number}, {MANY})"
    return f"({position} < {MANY} AND ({within} * {most} + {start}) % {number} < {most})"


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
    table: UnitTable, data: Query, keys: Sequence[str], most: KeptRows, *, stage: str
) -> Query:
    """The rows of one side, without its unit, and with its keys once more as key0, key1, ...; NULL is no key."""
    bounds = Bounds(most.of_unit, most.of_unit, most.of_unit)
    whole = whole_rows(replace(table, bounds=bounds), data, stage=stage)
    there = replace(table, data=whole)
    units = {f"unit{at}": name for at, name in enumerate(table.unit)}
    items = {
        f"item{at}": name
        for at, name in enumerate(name for name in whole.columns if name not in table.unit)
    }
    found = {f"key{at}": compiled(col(name), there).value for at, name in enumerate(keys)}
    rows = whole.select(
        **{called: whole[name] for called, name in (units | items).items()}, **found
    )
    rows = rows.filter(*(f"{rows[name]} IS NOT NULL" for name in found))
    rows = rows.mutate(start=ANY.start(table, _unit(table, rows), stage))
    order = [_sorted(table, rows[name]) for name in ("start", *units, *items)]
    place = over("ROW_NUMBER()", by=[rows[name] for name in found], order=order)
    placed = rows.mutate(place=place)
    named = {f"item_{name}": placed[called] for called, name in items.items()}
    return placed.select(*found, where=[f"{placed['place']} <= {most.of_key}"], **named)


def joined(left: Query, right: Query, keys: Sequence[str]) -> Query:
    """Rows of both that agree in their keys, with the columns of both; the key's are those of the left side."""
    pairs = [(f"key{at}", f"key{at}") for at in range(len(keys))]
    own, theirs = (
        [name for name in side.types if name.startswith("item_")] for side in (left, right)
    )
    more = [name for name in theirs if name.removeprefix("item_") not in keys]
    both = left.join(right, pairs, {name: name for name in more}, take=own)
    return both.select(**{name.removeprefix("item_"): both[name] for name in (*own, *more)})


def _pair(name: str, value: object) -> tuple[int, int]:
    if not isinstance(value, tuple | list) or len(value) != 2:  # pyright: ignore[reportUnknownArgumentType]
        raise DomainError(
            name, value, "a pair: so many rows of this table, and so many of the other one"
        )
    found: list[int] = []
    for each in value:  # pyright: ignore[reportUnknownVariableType]
        number = check.count(name, each)
        if not 1 <= number <= MOST_ROWS:
            raise DomainError(name, number, f"integers from 1 to {MOST_ROWS:,}")
        found.append(number)
    return found[0], found[1]
