"""The aggregation of a table by its engine, and the keys that come out.

Everything is one statement, so that one state of the table is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from dpcompose.release.aggregation import Aggregation, FixedPointGrid, Term
from dpcompose.release.query import Query, Value, case, narrowest, over, run, type_of
from dpcompose.release.table import Key, Table
from dpcompose.release.truncation import ANY, Sampling, bounded, counted, sampled_rows

LARGEST_KEY = 2**63 - 1


def key_reader(table: Table, what: Aggregation) -> Callable[[Sequence[Any]], Key]:
    """A reader of a group's key from the first values of a row, which may be places in a dictionary."""
    by, placed = range(len(what.by)), dictionaries(table, what)
    return lambda row: tuple(placed[at][row[at]] if at in placed else row[at] for at in by)


def dictionaries(table: Table, what: Aggregation) -> Mapping[int, Sequence[str]]:
    """The public texts of each key column that stands as places in them, by code point, so that the order is kept."""
    if what.public is None:
        return {}
    texts = {
        at: {key[at] for key in what.public}
        for at, name in enumerate(what.by)
        if _text(table, name)
    }
    found = {at: sorted(values) for at, values in texts.items() if None not in values}
    return {
        at: values for at, values in found.items() if table.engine.dictionary(values) is not None
    }


def listings(table: Table, what: Aggregation) -> dict[int, Query]:
    """For each key column that stands as places while rows are sorted, a table of its texts and their places."""
    placed = dictionaries(table, what)
    listed = {at: table.engine.dictionary(values) for at, values in placed.items()}
    public = {at: each for at, each in listed.items() if each is not None}
    return public | _labels(table, what)


def _labels(table: Table, what: Aggregation) -> dict[int, Query]:
    """The texts of each private key column, and their places by code point, where those are sorted faster.

    Which of two texts is before the other follows from those two alone, so the same rows of a unit are kept.
    """
    labelled = what.public is None and table.engine.labels and not table.single
    found: dict[int, Query] = {}
    for at, name in enumerate(what.by if labelled else ()):
        if _text(table, name):
            texts = table.data.select(value=same(table, name), where=possible(table, [name]))
            few = table.engine.small(texts.distinct())
            place = over("ROW_NUMBER()", order=[few["value"]])
            found[at] = few.mutate(place=f"({place} - 1)")
    return found


def named(table: Table, what: Aggregation, groups: Query) -> Query:
    """Groups of rows that were projected, with their keys as they are in the table."""
    for at, listed in _labels(table, what).items():
        groups = _exchanged(groups, f"key{at}", listed, "place", "value")
    return groups


def _exchanged(rows: Query, key: str, listed: Query, own: str, other: str) -> Query:
    """The rows with what a list has for a key in place of it."""
    kept = [each for each in rows.types if each != key]
    return rows.join(listed, [(key, own)], {key: other}, take=kept).select(*rows.types)


def same(table: Table, name: str) -> Value:
    """A column of which equal values are the same."""
    column = table.data[name]
    return table.engine.binary_collation(column) if _text(table, name) else column


def is_readable(table: Table, name: str) -> str:
    """Whether a column holds a value that can be distinguished from all others."""
    column = table.data[name]
    return table.engine.readable(column) if _text(table, name) else f"({column} IS NOT NULL)"


def _text(table: Table, name: str) -> bool:
    return table.column(name).kind == "text"


def possible(table: Table, names: Sequence[str]) -> list[str]:
    """The rows whose keys are private and can be told: an engine holds dates that no answer can, and larger integers.

    To fail at such a row would tell that it is there.
    """
    conditions: list[str] = []
    for name in names:
        column, constant = table.data[name], table.engine.constant
        conditions.append(is_readable(table, name))
        if table.column(name).kind == "date":
            conditions.append(f"{column} BETWEEN {constant(date.min)} AND {constant(date.max)}")
        if table.column(name).type == "uint64":
            conditions.append(f"{column} <= {LARGEST_KEY}")
    return conditions


def asked_for(table: Table, what: Aggregation) -> list[str]:
    """The rows whose keys can be asked for, column by column."""
    conditions: list[str] = []
    placed = dictionaries(table, what)
    for position, name in enumerate(what.by):
        if position in placed:
            continue
        column = same(table, name)
        values = list(dict.fromkeys(key[position] for key in what.public or ()))
        listed = [value for value in values if value is not None]
        null = f"{column} IS NULL"
        inside = [table.engine.is_in(column, listed)] if listed else []
        inside += [null] if None in values or not listed else []
        conditions.append(f"({' OR '.join(inside)})")
    return conditions


LARGEST_SUM = 2**62
"""Sums are clamped to this size: 1-Lipschitz, and the noise has room in 64 bits."""
Numbers = tuple[int, ...]


def exact(
    table: Table, what: Aggregation, compiled: Query | None = None
) -> Mapping[Key, Mapping[int, Numbers]]:
    """The integers of every group that has rows, by bin (0 where there are no bins), by a statement made before.

    A group's integers are its distinct units, if the groups are private; its rows; and its sum, if there is one.
    For `distinct`, its distinct units alone.

    Raises:
        EngineError: If the engine failed.
    """
    found: dict[Key, dict[int, Numbers]] = {}
    wanted = None if what.public is None else set(what.public)
    by, read = len(what.by), key_reader(table, what)
    for row in run(statement(table, what) if compiled is None else compiled):
        key = read(row)
        bin, numbers = (int(row[by]), row[by + 1 :]) if what.bins is not None else (0, row[by:])
        if wanted is None or key in wanted:
            found.setdefault(key, {})[bin] = tuple(int(number) for number in numbers)
    return found


def statement(table: Table, what: Aggregation, sampling: Sampling = ANY) -> Query:
    """The one statement: rows are projected, bounded, and added up. Nothing is looked at when it is made."""
    found = _statement(table, what, sampling)
    return found if what.lost is not None else named(table, what, found)


def _statement(table: Table, what: Aggregation, sampling: Sampling) -> Query:
    rows = projected(table, what if what.lost is None else what.lost)
    units, keys = columns_of(rows)
    if what.lost is not None:
        return _losing(table, rows, what.lost)
    if what.bins is not None and what.bins[0] is None:
        return _units_by_rows(table, rows, units, keys, what, sampling)
    if what.distinct:
        return _distinct(table, rows, units, keys, what, sampling)
    if what.item is not None:
        rows = rows.distinct()
    elif not table.unit:
        # Its rows belong to nobody: `Design` lets no question through that bounds them, or that counts units.
        return added(table, rows, what, _sums(table, rows, what))
    elif what.value is None and what.bins is None and not what.terms:
        return _counting(table, rows, what, sampling)
    within = bounded(table, rows, units, keys, cells=what.groups, sampling=sampling)
    if what.item is not None:
        return within.group(keys, values=f"COUNT(DISTINCT {within['item']})")
    return added(table, within, what, _sums(table, within, what))


def _counting(table: Table, rows: Query, what: Aggregation, sampling: Sampling) -> Query:
    """Rows of every group, where only their number matters."""
    units, keys = columns_of(rows)
    if not keys:
        return of_all(table, rows).select("rows")
    of_unit = counted(table, rows, units, keys, cells=what.groups, sampling=sampling)
    total = {"rows": table.engine.cast(f"SUM({of_unit['rows']})", "int64")}
    if what.public is not None:
        return of_unit.group(keys, **total)
    return _with_enough(of_unit.group(keys, units="COUNT(*)", **total), keys, what)


def _sums(table: Table, rows: Query, what: Aggregation) -> dict[str, str]:
    """The sums over rows, from the steps that were projected."""
    cast = table.engine.cast
    sums: dict[str, str] = {}
    if what.value is not None:
        sums["sum"] = f"({cast(rows['value'], 'int64')} - {what.value[2]})"
    for place, term in enumerate(what.terms):
        sums[f"sum{place}"] = term.of(cast(rows[_steps(what, term)], "int64"))
    return sums


def of_all(table: Table, rows: Query) -> Query:
    """The rows that are kept of all units, and the units, without groups."""
    most = min(table.bounds.rows, table.bounds.rows_per_group)
    of_unit = rows.group(columns_of(rows)[0], rows="COUNT(*)")
    kept_of_unit = clamped(table, f"SUM(LEAST({of_unit['rows']}, {most}))")
    return of_unit.group([], rows=kept_of_unit, units="COUNT(*)")


def columns_of(rows: Query) -> tuple[list[str], list[str]]:
    """The columns of projected rows that name units, and those that name groups."""
    units = [name for name in rows.columns if name.startswith("unit")]
    return units, [name for name in rows.columns if name.startswith("key")]


def added(table: Table, within: Query, what: Aggregation, sums: Mapping[str, str]) -> Query:
    """The integers of every group, and bin, of rows that were bounded.

    Its distinct units, if the groups are private, its rows, and a sum of each of `sums` over them.
    """
    units, keys = columns_of(within)
    cells = [*keys, "bin"] if what.bins is not None else keys
    exact_sum, cast = table.engine.exact_sum, table.engine.cast
    of_rows = {name: clamped(table, exact_sum(of)) for name, of in sums.items()}
    if what.public is not None:
        return within.group(cells, rows="COUNT(*)", **of_rows)
    of_unit = _once(within.group([*cells, *units], rows="COUNT(*)", **of_rows), [*keys, *units])
    whole = {name: clamped(table, exact_sum(of_unit[name])) for name in sums}
    once = {
        name: cast(f"SUM({of_unit[of]})", "int64")
        for name, of in (("units", "once"), ("rows", "rows"))
    }
    return _with_enough(of_unit.group(cells, **once, **whole), keys, what)


def _with_enough(groups: Query, keys: list[str], what: Aggregation) -> Query:
    """The private groups, with their bins, that have so many units, or rows."""
    if what.fewest == 1:
        return groups
    counted = groups[("units", "rows")[what.measure]]
    if "bin" not in groups.types:
        return groups.filter(f"{counted} >= {what.fewest}")
    placed = groups.mutate(whole=over(f"SUM({counted})", by=[groups[name] for name in keys]))
    return placed.filter(f"{placed['whole']} >= {what.fewest}").drop("whole")


def _units_by_rows(
    table: Table,
    rows: Query,
    units: list[str],
    keys: list[str],
    what: Aggregation,
    sampling: Sampling,
) -> Query:
    """Units of every group by their number of rows in it, each unit in some of its groups only."""
    assert what.bins is not None
    pairs = rows.group([*units, *keys], rows="COUNT(*)")
    bin = what.bins[1].index(table.engine, pairs["rows"], whole=True)
    pairs = pairs.select(*units, *keys, bin=bin)
    pairs = _in_some_groups(table, pairs, units, keys, what, sampling)
    return pairs.group([*keys, "bin"], units="COUNT(*)")


def _losing(table: Table, rows: Query, what: Aggregation) -> Query:
    """All units, and those that lose a row, or in a question about distinct units a group."""
    units, keys = columns_of(rows)
    bounds = table.bounds
    of_group = rows.group([*units, *keys], rows="COUNT(*)")
    each = of_group["rows"]
    of_unit = of_group.group(units, rows=f"SUM({each})", largest=f"MAX({each})", groups="COUNT(*)")
    loses = [f"{of_unit['groups']} > {min(bounds.groups, bounds.rows)}"]
    if not (what.distinct or (what.bins is not None and what.bins[0] is None)):
        loses.append(f"{of_unit['rows']} > {bounds.rows}")
        loses.append(f"{of_unit['largest']} > {bounds.rows_per_group}")
    lost = table.engine.cast(
        f"COALESCE(SUM({case((' OR '.join(loses), '1'), other='0')}), 0)", "int64"
    )
    return of_unit.group([], units="COUNT(*)", lost=lost)


def _once(rows: Query, of: list[str]) -> Query:
    """A column that is 1 once for every unit in a group, in its first bin, and 0 elsewhere."""
    if "bin" not in rows.types:
        return rows.mutate(once="1")
    first = over(f"MIN({rows['bin']})", by=[rows[name] for name in of])
    return rows.mutate(once=case((f"{rows['bin']} = {first}", "1"), other="0"))


def projected(table: Table, what: Aggregation, raw: str | None = None) -> Query:
    """Units, keys, bins and step counts of the rows that count at all; also, if named, a column of numbers as `raw`."""
    columns: dict[str, str] = {f"unit{i}": same(table, name) for i, name in enumerate(table.unit)}
    columns |= {f"key{i}": same(table, name) for i, name in enumerate(what.by)}
    rows = [is_readable(table, name) for name in table.unit]
    rows += possible(table, what.by) if what.public is None else asked_for(table, what)
    for name, values in zip(what.by, what.among or (), strict=what.among is not None):
        rows.append(table.engine.is_in(same(table, name), list(values)))
    if what.value is not None:
        name, grid, _ = what.value
        rows.append(_is_number(table, name))
        columns["value"] = _sorted_steps(table, name, grid)
    for term in what.terms:
        rows.append(_is_number(table, term.column))
        columns[_steps(what, term)] = _sorted_steps(table, term.column, term.grid)
    if what.item is not None:
        rows += possible(table, [what.item])
        columns["item"] = same(table, what.item)
    name, bins = (None, None) if what.bins is None else what.bins
    if name is not None and bins is not None:
        bin = bins.index(table.engine, _number(table, name), whole=is_whole(table, name))
        columns["bin"] = table.engine.cast(bin, narrowest(0, bins.count))
    if raw is not None:
        number = _number(table, raw)
        columns["raw"] = case((_is_number(table, raw), number), type=type_of(number))
    if not table.unit:
        # There may be no other column then.
        columns["row"] = "1"
    picked = table.data.select(where=rows, **columns)
    for at, listed in listings(table, what).items():
        picked = _exchanged(picked, f"key{at}", listed, "value", "place")
    return picked.filter(f"{picked['bin']} IS NOT NULL") if "bin" in columns else picked


def _sorted_steps(table: Table, name: str, grid: FixedPointGrid) -> Value:
    """The step counts of a column, in the narrowest type, so that less is sorted; they are widened to be added up."""
    steps = grid.image(table.engine, _number(table, name), whole=is_whole(table, name))
    return table.engine.cast(steps, narrowest(grid.first, grid.last))


def _steps(what: Aggregation, term: Term) -> str:
    """The column of the steps that a term adds up: terms on one grid of one column have one."""
    return (
        f"value{[(each.column, each.grid) for each in what.terms].index((term.column, term.grid))}"
    )


def _is_number(table: Table, name: str) -> str:
    """Whether a column holds a number."""
    number = _number(table, name)
    some = f"{number} IS NOT NULL"
    return some if is_whole(table, name) else f"({some} AND NOT {table.engine.is_nan(number)})"


def is_whole(table: Table, name: str) -> bool:
    """Whether a column holds whole numbers."""
    return table.column(name).kind in ("integer", "boolean")


def _number(table: Table, name: str) -> Value:
    """The column as integers or doubles; truth values are 0 and 1."""
    column, engine = table.data[name], table.engine
    match table.column(name).kind:
        case "integer" if table.column(name).type == "uint64":
            most = str(LARGEST_KEY)
            return engine.cast(case((f"{column} > {most}", most), other=column), "int64")
        case "integer":
            # What is compared with a negative end has to have a sign.
            return engine.cast(column, "int64") if column.type.startswith("uint") else column
        case "boolean":
            return case((f"{column} IS NULL", "NULL"), (column, "1"), other="0")
        case "decimal":
            return engine.as_double(column)
        case _:
            return Value(engine.double_of(column), "float64")


def _distinct(
    table: Table,
    rows: Query,
    units: list[str],
    keys: list[str],
    what: Aggregation,
    sampling: Sampling,
) -> Query:
    """Distinct units of every group, each unit in some of its groups only."""
    pairs = _in_some_groups(
        table, rows.select(*units, *keys).distinct(), units, keys, what, sampling
    )
    return _with_enough(pairs.group(keys, units="COUNT(*)"), keys, what)


def _in_some_groups(
    table: Table,
    pairs: Query,
    units: list[str],
    keys: list[str],
    what: Aggregation,
    sampling: Sampling,
) -> Query:
    """One row for each unit and group: those of as many groups of each unit as it may be in."""
    most = min(table.bounds.groups, table.bounds.rows)
    if keys and (what.public is None or most < len(what.public)):
        return sampled_rows(table, pairs, units, keys, most=most, sampling=sampling, stage="groups")
    return pairs


def clamped(table: Table, total: str) -> Value:
    """A sum, 0 if it is of nothing, as a 64-bit integer."""
    least = f"GREATEST(LEAST(COALESCE({total}, 0), {LARGEST_SUM}), {-LARGEST_SUM})"
    return table.engine.cast(least, "int64")
