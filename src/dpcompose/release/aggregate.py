"""The exact integers (counts and sums) behind the questions to one table, read by a single SQL
statement.

One statement sees one state of the table. Questions share one choice of each unit's bounded rows if
they have the same groups, use one column and count the same rows; a row whose value is NULL does
not count in a sum of that column. The rows of a unit are then ordered by group and by the derived
value of the column. This order refines the order that each question would use alone, so the same
rows are kept and every question gets the integers that it would get alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from fractions import Fraction
from functools import partial
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregation import Aggregation, Bins, FixedPointGrid, GridPoints
from dpcompose.release.columns import Bounds, Key
from dpcompose.release.noise import exact as exact_number
from dpcompose.release.query import Query, Value, case, narrowest, over, run, type_of
from dpcompose.release.table import Table
from dpcompose.release.truncation import ANY, Sampling, bounded, sampled_rows, units_and_keys

LARGEST_KEY = 2**63 - 1
LARGEST_SUM = 2**62
"""Sums are clamped to this absolute value, so that they and the noise fit in 64 bits."""
Numbers = tuple[int, ...]
Groups = Mapping[Key, Mapping[int, Numbers]]
"""Maps each group that has rows to its integers by bin; the bin is 0 where there are no bins."""
Images = Mapping[tuple[str, FixedPointGrid | Bins], str]
"""Maps a column and its grid or bins to the name of the derived value while rows are sorted."""


@dataclass(frozen=True)
class Part:
    """One branch of the SQL statement: integers of every group for one or more questions.

    Args:
        rows: A query with columns for the group keys, the bin (if any) and the integers.
        what: An aggregation with the groups of this branch.
        takers: Maps the position of each question that reads this branch to the names of its
            integers.
    """

    rows: Query
    what: Aggregation
    takers: Mapping[int, Sequence[str]]

    @property
    def keys(self) -> dict[str, str]:
        """Maps each key column to its name in the whole statement, which states its position and
        type.
        """
        types = {name: type.partition("(")[0] for name, type in self.rows.types.items()}
        return {name: f"{name} {type}" for name, type in types.items() if name.startswith("key")}

    @property
    def numbers(self) -> list[str]:
        """The names of the integer columns, each once."""
        return list(dict.fromkeys(name for names in self.takers.values() for name in names))


@dataclass(frozen=True)
class Scan:
    """One SQL statement that answers several aggregations of a table, and the reader of its rows.

    Args:
        table: The table to aggregate.
        whats: The aggregations, one for each question.
        parts: The branches of the statement.
        statement: The statement, not yet executed.
    """

    table: Table
    whats: tuple[Aggregation, ...]
    parts: tuple[Part, ...]
    statement: Query

    @classmethod
    def of(cls, table: Table, whats: Sequence[Aggregation], sampling: Sampling = ANY) -> Scan:
        """Build the statement for these aggregations; nothing is executed yet."""
        families: dict[object, dict[int, Aggregation]] = {}
        for at, what in enumerate(whats):
            families.setdefault(_family(what) or at, {})[at] = what
        parts = tuple(
            part for family in families.values() for part in _parts(table, family, sampling)
        )
        return cls(table, tuple(whats), parts, _united(parts))

    def exact(self) -> list[Groups]:
        """Execute the statement and return the exact integers of each aggregation.

        The integers of a group are, in this order: the number of its distinct units, if the groups
        are private; the number of its rows; and its sums. For a `distinct` aggregation they are the
        number of distinct units alone.

        Raises:
            EngineError: If the engine failed.
        """
        result: list[dict[Key, dict[int, Numbers]]] = [{} for _ in self.whats]
        wanted = [None if what.public is None else {*what.public} for what in self.whats]
        names = self.statement.columns
        bin, first = names.index("bin"), names.index("bin") + 1
        readers = [_key_reader(self.table, part, names) for part in self.parts]
        for row in run(self.statement):
            part, key = self.parts[int(row[0])], readers[int(row[0])](row)
            numbers = dict(zip(part.numbers, row[first:], strict=False))
            for at, integers in part.takers.items():
                listed = wanted[at]
                if listed is None or key in listed:
                    bins = result[at].setdefault(key, {})
                    bins[int(row[bin] or 0)] = tuple(int(numbers[name]) for name in integers)
        return list(result)


@dataclass(frozen=True)
class Scans:
    """The statements for a batch of questions, one for each table.

    Args:
        scans: Pairs of the positions of the questions in the batch and their statement.
    """

    scans: tuple[tuple[tuple[int, ...], Scan], ...]

    @classmethod
    def of(cls, requests: Sequence[tuple[Table, Aggregation]], sampling: Sampling = ANY) -> Scans:
        """Build the statements for these questions; tables with the same rows are scanned once."""
        tables: dict[object, list[int]] = {}
        for at, (table, _) in enumerate(requests):
            same_rows = id(table.engine.raw), table.data.words, table.unit, table.bounds
            tables.setdefault(same_rows, []).append(at)
        scans = (
            (tuple(each), Scan.of(requests[each[0]][0], [requests[at][1] for at in each], sampling))
            for each in tables.values()
        )
        return cls(tuple(scans))

    def exact(self) -> list[Groups]:
        """Execute all statements and return the exact integers of each question, in the order of
        the batch.

        Raises:
            EngineError: If an engine failed.
        """
        results = (zip(places, scan.exact(), strict=True) for places, scan in self.scans)
        ordered = dict(pair for each in results for pair in each)
        return [ordered[at] for at in sorted(ordered)]


def exact(table: Table, what: Aggregation, sampling: Sampling = ANY) -> Groups:
    """Return the exact integers of one aggregation; see `Scan.exact`.

    Raises:
        EngineError: If the engine failed.
    """
    return Scan.of(table, [what], sampling).exact()[0]


def _family(what: Aggregation) -> object:
    """Return a key that is equal for aggregations that can share one choice of bounded rows; None
    if this one cannot share.
    """
    columns = {column for column, _ in what.images}
    if not columns or what.distinct or what.item is not None or what.among is not None:
        return None
    public = None if what.public is None else frozenset(what.public)
    # Two aggregations of one column share an order of rows only if they derive the same values from
    # it.
    return what.by, public, columns.pop() if len(columns) == 1 else what.images, _decider(what)


def _decider(what: Aggregation) -> object:
    """Return a key that is equal for aggregations that count the same rows of their groups."""
    return None if what.bins is None or isinstance(what.bins[1], GridPoints) else what.bins


def _parts(table: Table, family: Mapping[int, Aggregation], sampling: Sampling) -> Iterator[Part]:
    at, what = next(iter(family.items()))
    if what.lost is not None:
        yield Part(_losing(table, what.lost), what, {at: ("units", "lost")})
        return
    every = dict.fromkeys(image for each in family.values() for image in each.images)
    images = {image: f"value{number}" for number, image in enumerate(every)}
    rows = _projected(table, what, images)
    units, keys = units_and_keys(rows)
    bounds, keep = table.bounds, partial(bounded, table, cells=what.groups, sampling=sampling)
    if what.distinct or what.by_rows:
        yield Part(_units(table, rows, what, sampling), what, {at: ("units",)})
    elif what.item is not None:
        within = keep(rows.distinct())
        values = within.group(keys, values=f"COUNT(DISTINCT {within['item']})")
        yield Part(values, what, {at: ("values",)})
    elif units and not (images or keys):
        # The number of a unit's rows suffices: none is chosen.
        most, of_unit = min(bounds.rows, bounds.rows_per_group), rows.group(units, rows="COUNT(*)")
        total = clamped(table, f"SUM(LEAST({of_unit['rows']}, {most}))")
        yield Part(of_unit.group([], rows=total), what, {at: what.counts})
    else:
        # Without a unit no rows can be bounded; `Design` refuses questions that would need it.
        rows = keep(rows) if units else rows
        for bins in dict.fromkeys(each.bins for each in family.values()):
            split = {at: each for at, each in family.items() if each.bins == bins}
            yield _added(table, rows, split, images)


def _projected(table: Table, what: Aggregation, images: Images) -> Query:
    """Return a query of the unit columns, the group keys and the derived values of all rows that
    count.
    """
    engine = table.engine
    columns: dict[str, str] = {
        f"unit{i}": table.comparable(name) for i, name in enumerate(table.unit)
    }
    columns |= {f"key{i}": table.comparable(name) for i, name in enumerate(what.by)}
    rows = [table.is_readable(name) for name in table.unit]
    rows += _possible(table, what.by) if what.public is None else _asked_for(table, what)
    for name, values in zip(what.by, what.among or (), strict=what.among is not None):
        rows.append(engine.is_in(table.comparable(name), list(values)))
    binned: list[str] = []
    for (name, of), called in images.items():
        number = _number(table, name)
        if isinstance(of, FixedPointGrid):
            nan = "" if is_whole(table, name) else f" AND NOT {engine.is_nan(number)}"
            rows.append(f"({number} IS NOT NULL{nan})")
            image, ends = of.image(engine, number), (of.first, of.last)
        else:
            image, ends = of.index(engine, number), (0, of.count)
            binned.append(called)
        # The narrowest integer type makes sorting cheaper; sums are widened later.
        columns[called] = engine.cast(image, narrowest(*ends))
    if what.item is not None:
        rows += _possible(table, [what.item])
        columns["item"] = table.comparable(what.item)
    if not table.unit:
        # Without a unit and keys there would be no column at all.
        columns["row"] = "1"
    picked = table.data.select(where=list(dict.fromkeys(rows)), **columns)
    for at, texts in _dictionaries(table, what).items():
        listed, key = engine.dictionary(texts), f"key{at}"
        assert listed is not None
        others = [each for each in picked.types if each != key]
        joined = picked.join(listed, [(key, "value")], {key: "place"}, take=others)
        picked = joined.select(*picked.types)
    return picked.filter(*(f"{picked[name]} IS NOT NULL" for name in binned))


def _added(table: Table, rows: Query, whats: Mapping[int, Aggregation], images: Images) -> Part:
    """Aggregate bounded rows for aggregations with the same groups and bins.

    The columns are the number of distinct units, if the groups are private, the number of rows, and
    the sums.
    """
    exact_sum, cast = table.engine.exact_sum, table.engine.cast
    what = next(iter(whats.values()))
    fewest = min(each.fewest for each in whats.values())
    what = Aggregation(what.by, what.public, bins=what.bins, fewest=fewest, measure=what.measure)
    units, keys = units_and_keys(rows)
    steps = {
        f"sum{at}_{number}": term.of(cast(rows[images[term.column, term.grid]], "int64"))
        for at, each in whats.items()
        for number, term in enumerate(each.terms)
    }
    takers = {
        at: (*each.counts, *(f"sum{at}_{number}" for number in range(len(each.terms))))
        for at, each in whats.items()
    }
    bins = {name: rows[images[each]] for name, each in zip(["bin"], what.binned, strict=False)}
    rows = rows.mutate(**steps, **bins) if steps or bins else rows
    sums = {name: clamped(table, exact_sum(rows[name])) for name in steps}
    cells = [*keys, *bins]
    if what.public is not None:
        return Part(rows.group(cells, rows="COUNT(*)", **sums), what, takers)
    of_unit = rows.group([*cells, *units], rows="COUNT(*)", **sums)
    # 1 once for every unit in a group, in its first bin, and 0 elsewhere.
    once = "1"
    if bins:
        first = over(f"MIN({of_unit['bin']})", by=[of_unit[name] for name in (*keys, *units)])
        once = case((f"{of_unit['bin']} = {first}", "1"), other="0")
    of_unit = of_unit.mutate(units=once)
    counts = {name: cast(f"SUM({of_unit[name]})", "int64") for name in ("units", "rows")}
    sums = {name: clamped(table, exact_sum(of_unit[name])) for name in steps}
    return Part(_with_enough(of_unit.group(cells, **counts, **sums), keys, what), what, takers)


def _with_enough(groups: Query, keys: list[str], what: Aggregation) -> Query:
    """Keep the private groups, with all their bins, that have at least the required number of units
    or rows.
    """
    if what.fewest == 1:
        return groups
    number = groups[("units", "rows")[what.measure]]
    if "bin" not in groups.types:
        return groups.filter(f"{number} >= {what.fewest}")
    whole = groups.mutate(whole=over(f"SUM({number})", by=[groups[name] for name in keys]))
    return whole.select(*groups.types, where=[f"{whole['whole']} >= {what.fewest}"])


def _units(table: Table, rows: Query, what: Aggregation, sampling: Sampling) -> Query:
    """Count the units of every group, within the bound on a unit's groups; by their number of rows
    if that is binned.
    """
    units, keys = units_and_keys(rows)
    bins: dict[str, str] = {}
    if what.bins is None:
        pairs = rows.select(*units, *keys).distinct()
    else:
        pairs = rows.group([*units, *keys], rows="COUNT(*)")
        bins["bin"] = what.bins[1].index(table.engine, pairs["rows"])
        pairs = pairs.select(*units, *keys, **bins)
    most = min(table.bounds.groups, table.bounds.rows)
    if keys and (what.public is None or most < len(what.public)):
        pairs = sampled_rows(
            table, pairs, units, keys, most=most, sampling=sampling, stage="groups"
        )
    return _with_enough(pairs.group([*keys, *bins], units="COUNT(*)"), keys, what)


def _losing(table: Table, what: Aggregation) -> Query:
    """Count all units, and the units that lose a row to the bounds; for distinct units, those that
    lose a group.
    """
    every = {image: f"value{number}" for number, image in enumerate(what.images)}
    rows, bounds = _projected(table, what, every), table.bounds
    units, keys = units_and_keys(rows)
    of_group = rows.group([*units, *keys], rows="COUNT(*)")
    each = of_group["rows"]
    of_unit = of_group.group(units, rows=f"SUM({each})", largest=f"MAX({each})", groups="COUNT(*)")
    loses = [f"{of_unit['groups']} > {min(bounds.groups, bounds.rows)}"]
    if not (what.distinct or what.by_rows):
        loses.append(f"{of_unit['rows']} > {bounds.rows}")
        loses.append(f"{of_unit['largest']} > {bounds.rows_per_group}")
    lost = f"COALESCE(SUM({case((' OR '.join(loses), '1'), other='0')}), 0)"
    return of_unit.group([], units="COUNT(*)", lost=table.engine.cast(lost, "int64"))


def _united(parts: Sequence[Part]) -> Query:
    """Join all branches by UNION ALL, each with a column that numbers it."""
    keys = {name: name.split(" ", 1)[1] for part in parts for name in part.keys.values()}
    most = max(len(part.numbers) for part in parts)
    numbers = {f"number{at}": "int64" for at in range(most)}
    branches: list[Query] = []
    for at, part in enumerate(parts):
        rows, cast = part.rows, part.rows.engine.cast
        has: dict[str, str] = {name: rows[own] for own, name in part.keys.items()}
        has |= {f"number{n}": cast(rows[name], "int64") for n, name in enumerate(part.numbers)}
        has |= {"part": Value(str(at), "int64")}
        if "bin" in rows.types:
            has["bin"] = cast(rows["bin"], "int64")
        whole = {"part": "int64", **keys, "bin": "int64", **numbers}
        columns = {name: has.get(name, cast("NULL", type)) for name, type in whole.items()}
        branches.append(rows.select(**columns))
    return branches[0].union(*branches[1:]) if len(branches) > 1 else branches[0]


# Keys of groups


def _key_reader(table: Table, part: Part, names: list[str]) -> Callable[[Sequence[Any]], Key]:
    """Return a function that reads a group's key from a result row, decoding positions in a
    dictionary.
    """
    texts = _dictionaries(table, part.what)
    columns = [(names.index(name), texts.get(at)) for at, name in enumerate(part.keys.values())]
    return lambda row: tuple(
        row[at] if listed is None else listed[row[at]] for at, listed in columns
    )


def _dictionaries(table: Table, what: Aggregation) -> Mapping[int, Sequence[str]]:
    """Return, for each key column that is dictionary-encoded, its public texts sorted by code
    point, which keeps their order.
    """
    texts = {
        at: {key[at] for key in what.public or ()}
        for at, name in enumerate(what.by)
        if what.public is not None and table.column(name).kind == "text"
    }
    ordered = {at: sorted(values) for at, values in texts.items() if None not in values}
    dictionary = table.engine.dictionary
    return {at: values for at, values in ordered.items() if dictionary(values) is not None}


def _possible(table: Table, names: Sequence[str]) -> list[str]:
    """Return conditions on rows whose private keys have a Python value.

    Engines hold dates and integers that have none. An error at such a row would reveal that the row
    exists, so it is left out.
    """
    conditions: list[str] = []
    for name in names:
        column, constant = table.data[name], table.engine.constant
        conditions.append(table.is_readable(name))
        if table.column(name).kind == "date":
            conditions.append(f"{column} BETWEEN {constant(date.min)} AND {constant(date.max)}")
        if table.column(name).type == "uint64":
            conditions.append(f"{column} <= {LARGEST_KEY}")
    return conditions


def _asked_for(table: Table, what: Aggregation) -> list[str]:
    """Return conditions that keep the rows whose keys can be among the public ones, column by
    column.
    """
    conditions: list[str] = []
    joined = _dictionaries(table, what)
    for at, name in enumerate(what.by):
        if at in joined:
            continue
        column = table.comparable(name)
        values = list(dict.fromkeys(key[at] for key in what.public or ()))
        listed = [value for value in values if value is not None]
        inside = [table.engine.is_in(column, listed)] if listed else []
        inside += [f"{column} IS NULL"] if None in values or not listed else []
        conditions.append(f"({' OR '.join(inside)})")
    return conditions


def is_whole(table: Table, name: str) -> bool:
    """Whether a column holds integers or truth values."""
    return table.column(name).kind in ("integer", "boolean")


def _number(table: Table, name: str) -> Value:
    """Return SQL for the column as an integer or a double; truth values become 0 and 1."""
    column, engine = table.data[name], table.engine
    match table.column(name).kind:
        case "integer" if table.column(name).type == "uint64":
            most = str(LARGEST_KEY)
            return engine.cast(case((f"{column} > {most}", most), other=column), "int64")
        case "integer":
            # Unsigned numbers must become signed before they are compared with a negative bound.
            return engine.cast(column, "int64") if column.type.startswith("uint") else column
        case "boolean":
            return case((f"{column} IS NULL", "NULL"), (column, "1"), other="0")
        case "decimal":
            return engine.as_double(column)
        case _:
            return Value(engine.double_of(column), "float64")


def clamped(table: Table, total: str) -> Value:
    """Return SQL for a sum as a clamped 64-bit integer; a sum over no rows is 0."""
    least = f"GREATEST(LEAST(COALESCE({total}, 0), {LARGEST_SUM}), {-LARGEST_SUM})"
    return table.engine.cast(least, "int64")


Ends = tuple[Fraction, Fraction]


def per_person(table: Table, aggregates: Mapping[str, tuple[str, str]]) -> Table:
    """Return the table with one row for each unit: aggregates of its own rows, which later
    questions may use.

    *Stability.* Rows are grouped by the columns of the unit, unchanged, and by nothing else; rows
    whose unit is NULL are dropped before. So each new row is a function of one unit's rows, and no
    other row depends on them: tables that differ in one unit's rows become tables that differ in
    that unit's single row. Its bound is (1, 1, 1). After a keyed join no unit is left, and one row
    of another table changes the rows of several persons, so this is refused there.

    The aggregates are exact functions of the multiset of a person's rows alone. Sums are of
    integers (floats are put on the question's grid first), so the order in which an engine adds
    does not matter.

    Args:
        table: A table with a unit.
        aggregates: Maps each new column to "count", "distinct", "minimum", "maximum", "sum" or
            "mean" and the aggregated column; for a count, "" means all rows.

    Raises:
        DomainError: If there is no such column, or the range of a summed column is unknown.
        UnsupportedError: If the table has no unit, or its engine is not DuckDB.
    """
    if not table.unit or table.engine.name != "DuckDB":
        what = (
            "GROUP BY the person"
            if table.unit
            else "GROUP BY the person after a join on another key"
        )
        reason = (
            "its rows belong to no person"
            if not table.unit
            else f"{table.engine.name} is not asked so yet"
        )
        raise UnsupportedError(f"sql: {what}", reason, f"SELECT COUNT(*) FROM {table.name}")
    ranges: dict[str, tuple[Any, ...]] = {}
    columns: dict[str, Value] = {}
    units = {name: table.comparable(name) for name in table.unit}
    data = table.data.filter(*(table.is_readable(name) for name in table.unit)).mutate(**units)
    table = replace(table, data=data)
    for name, (function, of) in aggregates.items():
        columns[name], ends = _aggregate(table, function, of)
        if ends is not None:
            ranges[name] = tuple(str(each) for each in ends)
    data = data.group(table.unit, **columns)
    said = ", ".join(f"{name}={function}({of})" for name, (function, of) in aggregates.items())
    weights = {name: max(table.weights.values(), default=1) for name in aggregates}
    return table.changed(
        data,
        f"per person {said}",
        weights=weights,
        bounds=Bounds(1, 1, 1),
        ranges=ranges,
        copies={},
    )


def _aggregate(table: Table, function: str, of: str) -> tuple[Value, Ends | None]:
    """Return SQL for an aggregate of a person's rows, and the lower and upper bound of its values."""
    rows, engine = table.bounds.rows, table.engine
    counted = (Fraction(0), Fraction(rows))
    if function == "count":
        return engine.cast(
            f"LEAST(COUNT({table.comparable(of) if of else '*'}), {rows})", "int64"
        ), counted
    kind, column = table.column(of).kind, table.comparable(of)
    if function == "distinct":
        table.column(of).require_key("sql: COUNT(DISTINCT)")
        return engine.cast(f"LEAST(COUNT(DISTINCT {column}), {rows})", "int64"), counted
    stated = table.ranges.get(of) if table.column(of).numeric else None
    ends = None if stated is None else (exact_number(of, stated[0]), exact_number(of, stated[1]))
    if function in ("minimum", "maximum"):
        if kind == "float":
            number = engine.double_of(column)
            column = case((f"NOT {engine.is_nan(number)}", number), type="float64")
        return Value(
            f"{'MIN' if function == 'minimum' else 'MAX'}({column})", type_of(column)
        ), ends
    if ends is None:
        raise DomainError(
            f"sql: {function} of {of}", None, f"CLAMP({of}, lower, upper)", "Give it a range"
        )
    whole = is_whole(table, of)
    grid = FixedPointGrid.stated(*ends, None, whole=whole)
    number = _number(table, of)
    valid = f"{number} IS NOT NULL" + ("" if whole else f" AND NOT {engine.is_nan(number)}")
    steps = engine.cast(case((valid, grid.image(engine, number))), "int64")
    total, some = clamped(table, engine.exact_sum(steps)), f"COUNT({steps}) > 0"
    granularity = engine.constant(float(grid.granularity))
    real = f"{engine.cast(total, 'float64')} * {granularity}"
    if function == "mean":
        mean = f"{real} / {engine.cast(f'COUNT({steps})', 'float64')}"
        return case((some, mean), type="float64"), ends
    low, high = min(ends[0] * rows, ends[0], Fraction(0)), max(ends[1] * rows, ends[1], Fraction(0))
    if grid.granularity == 1:
        inside = engine.cast(f"LEAST(GREATEST({total}, {int(low)}), {int(high)})", "int64")
        return case((some, inside)), (low, high)
    return case((some, real), type="float64"), (low, high)
