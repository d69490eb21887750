"""Contribution bounding: which groups and rows of each unit are kept, and joins of two private
tables on a key.

A join on a key that is not the unit leaves rows without a unit, but one unit changes few of them.

Stability. Let neighbors differ in all rows of one unit, in both tables. Each side first keeps at
most r rows of a unit, which depend on that unit's rows alone; so each side differs in at most r
rows. Then it keeps the first t rows of each key in a total order in which the comparison of two
rows depends on these two rows alone: by a hash of the unit, the unit, and every column. If a key
gets m more rows, at most min(m, t) of them enter, and each of these pushes out at most one other
row. So what is kept of A, with bounds r and t, and of B, with r' and t', differs in at most 2 r and
2 r' rows. Change A first, then B: a row of A meets at most t' rows of B, a row of B at most t of A.
The joined rows differ in at most

    2 (r t' + r' t)

rows, including those pushed out. Filtering joined rows or computing columns from them changes no
more rows, and counts and clamped sums change by at most that many rows, which may all lie in one
group. That is their change in L1, and its square the squared change in L2. The rows beyond the
bound of a key may belong to many units, so rows cannot be bounded by unit afterwards.
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
"""Kinds of columns whose values are equal for every expression if equal in sort order."""
FEW, MANY = 2**20, 2**31
"""Positions are cut off at MANY for bounds above FEW, so that their product is below 2^63."""


@dataclass(frozen=True)
class Sampling:
    """The rule that chooses which rows to keep of a unit with too many; over the key, all rows are
    equally likely.

    Of n rows in a total order, numbered from 0, row i is kept if (most i + h) mod n < most, where h
    is a keyed hash of the unit. These are exactly min(n, most) rows, evenly spread, so that every
    group keeps its proportion to within one row. The kept rows of a unit depend on its own rows and
    the key. The hash is linear in the unit modulo 2^31 - 1, so different units are pairwise
    independent.

    Args:
        key: A random key, drawn once for each scope, independent of the data.
    """

    key: bytes = b""

    def start(self, table: UnitTable, columns: Sequence[Value], stage: str) -> str:
        """Return SQL for the hash of the unit in these columns, from 0 to 2^33; each stage has its
        own hash.
        """
        # Added in Python, since an engine might add two constants in 32 bits.
        found = str(self._number(stage, "") + PRIME * len(columns))
        for at, (name, column) in enumerate(zip(table.unit, columns, strict=True)):
            number, factor = _number(table, name, column), self._number(stage, at) or 1
            found = f"{number} % {PRIME} * {factor} % {PRIME} + {found}"
        return table.engine.cast(found, "int64")

    def _number(self, stage: str, column: object) -> int:
        digest = sha256(self.key + f"/{stage}/{column}".encode()).digest()
        return int.from_bytes(digest[:16], "big") % PRIME


def _number(table: UnitTable, name: str, column: Value) -> str:
    """Return SQL for the unit as a 64-bit integer: the unit itself, or a digest of its text."""
    kind, cast = table.column(name).kind, table.engine.cast
    if kind == "boolean":
        return cast(case((column, "1"), other="0"), "int64")
    if table.column(name).type == "uint64":
        return cast(f"{column} % {PRIME}", "int64")
    return (
        cast(column, "int64") if kind == "integer" else table.engine.digest(cast(column, "string"))
    )


ANY = Sampling()
"""The rule for statements without a scope, and so without a key."""


def whole_rows(table: UnitTable, data: Query, *, stage: str) -> Query:
    """Return at most `bounds.rows` rows of each unit, with every column that a question can use.

    Rows are ordered by all these columns, so ties are identical rows, and the kept rows of a unit
    depend on its own rows alone. Columns of other types, which no question or expression accepts,
    are left out, since ties in them could be broken by other units' rows. No scope is known here,
    so the hash has no key; it only spreads the kept rows, and no bound depends on it. Rows whose
    unit is NULL are left out.
    """
    table = replace(table, data=data)
    used = [
        name
        for name, type in data.types.items()
        if table.column(name).kind in _ORDERED or is_plain_timestamp(type)
    ]
    units = {name: f"unit{at}" for at, name in enumerate(table.unit)}
    others = [name for name in used if name not in units]
    items = {name: f"item{at}" for at, name in enumerate(others)}
    named, of, order = units | items, [*units.values()], [*items.values()]
    columns = {called: table.comparable(name) for name, called in named.items()}
    rows = data.select(where=[table.is_readable(each) for each in table.unit], **columns)
    rows = sampled_rows(table, rows, of, order, most=table.bounds.rows, sampling=ANY, stage=stage)
    kept = [name for name in data.types if name in named]
    return rows.select(**{name: rows[named[name]] for name in kept})


def units_and_keys(rows: Query) -> tuple[list[str], list[str]]:
    """Return the names of the unit columns and of the key columns of projected rows."""
    units = [name for name in rows.columns if name.startswith("unit")]
    return units, [name for name in rows.columns if name.startswith("key")]


def bounded(table: UnitTable, rows: Query, *, cells: int | None, sampling: Sampling) -> Query:
    """Return the kept rows of each unit, within the bounds on groups, rows in each group, and rows
    in all.

    Rows are ordered by every used column, NULL last, text by code point; ties are identical rows.
    `cells` is the number of groups if they are public.
    """
    (units, keys), bounds = units_and_keys(rows), table.bounds
    sample = partial(sampled_rows, table, sampling=sampling)
    few = cells is not None and cells <= bounds.groups
    of_groups = not few and bounds.groups < bounds.rows
    of_rows_in_each = bounds.rows_per_group < bounds.rows
    if of_groups:
        rows = sample(rows, units, keys, most=bounds.groups, stage="groups", dense=True)
    used = [name for name in rows.columns if name.startswith(("bin", "value", "item", "raw"))]
    if of_rows_in_each:
        of = [*units, *keys]
        rows = sample(rows, of, used, most=bounds.rows_per_group, stage="rows of groups")
    fit = bounds.within(cells).groups * bounds.rows_per_group <= bounds.rows
    if not ((few or of_groups) and of_rows_in_each and fit):
        rows = sample(rows, units, [*keys, *used], most=bounds.rows, stage="rows")
    return rows


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
    """Return the rows of each unit (or other columns `of`) that `Sampling` keeps in the order of
    `names`.

    If `dense`, it numbers and keeps groups of rows that agree in `names`, instead of rows. Units
    with one row each lose nothing, so nothing is sorted for them.
    """
    if table.single:
        return rows

    def order(of_rows: Query) -> list[str]:
        """Return the total order over these columns, as in `bounded`."""
        return [_sorted(table, of_rows[name]) for name in names]

    start = None
    if not names:
        # All rows of such a unit are equal.
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
    # The hash is added last, so that no sort has to carry it.
    start = sampling.start(table, _unit(table, placed), stage) if start is None else start
    chosen = _chosen(placed["place"], placed["number"], start, most)
    return placed.select(*rows.types, where=[chosen])


def _unit(table: UnitTable, rows: Query) -> list[Value]:
    """Return the columns that identify the unit of each row."""
    return [rows[f"unit{at}"] for at in range(len(table.unit))]


def _sorted(table: UnitTable, column: Value) -> str:
    """Return SQL that sorts by a column: NULL last, text by code point."""
    text = table.engine.by_code_point(column) if column.type.startswith("string") else column
    return f"{text} ASC NULLS LAST"


def _labelled(
    table: UnitTable, rows: Query, of: list[str], sampling: Sampling, stage: str
) -> Query:
    """Add to each row the hash of its unit, computed once for each unit, and an integer label of
    the unit.

    Sorting text units by this label takes less than half the time.
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


@dataclass(frozen=True)
class KeptRows:
    """How many rows one side of a join keeps.

    Args:
        of_unit: The largest number of rows of a unit.
        of_key: The largest number of rows of a key.
    """

    of_unit: int
    of_key: int

    @classmethod
    def stated(
        cls, bounds: Sequence[Bounds], at_most: object, rows_per_unit: object
    ) -> tuple[KeptRows, KeptRows]:
        """Return the limits of both sides, from the bounds of the tables and the typed arguments.

        Raises:
            DomainError: If an argument is no pair of integers >= 1.
        """
        most = (bounds[0].rows, bounds[1].rows)
        of_key = _pair("at_most", at_most)
        given = most if rows_per_unit is None else _pair("rows_per_unit", rows_per_unit)
        of_unit = [min(one, other) for one, other in zip(given, most, strict=True)]
        return cls(of_unit[0], of_key[0]), cls(of_unit[1], of_key[1])


def joined_bounds(ours: KeptRows, theirs: KeptRows) -> Bounds:
    """Return how many joined rows one unit changes; all of them may lie in one group.

    Raises:
        DomainError: If there are too many for any question.
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
    """Return the kept rows of one side, without the unit, with the keys again as key0, key1, ...;
    rows with a NULL key are left out.
    """
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
    """Join rows that agree in their keys, with the columns of both sides; the key columns are the
    left side's.
    """
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
    one, other = (check.count(name, each, least=1, most=MOST_ROWS) for each in value)  # pyright: ignore[reportUnknownVariableType]
    return one, other
