"""The aggregation of a table by its engine, and the keys that come out.

Everything is an ibis expression of one statement, so that one state of the table is seen.
"""

# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from dpcompose.errors import UnsupportedError
from dpcompose.release.aggregation import Aggregation, FixedPointGrid, Term
from dpcompose.release.engines import EngineStatement, Expression, narrowest, run, without_warnings
from dpcompose.release.table import Key, Table
from dpcompose.release.truncation import ANY, Sampling, bounded, sampled_rows

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


def listings(table: Table, what: Aggregation) -> dict[int, Expression]:
    """For each key column that stands as places while rows are sorted, a table of its texts and their places."""
    public = {
        at: table.engine.dictionary(values) for at, values in dictionaries(table, what).items()
    }
    return public | _labels(table, what)


def _labels(table: Table, what: Aggregation) -> dict[int, Expression]:
    """The texts of each private key column, and their places by code point, where those are sorted faster.

    Which of two texts is before the other follows from those two alone, so the same rows of a unit are kept.
    """
    import ibis

    labelled = what.public is None and table.engine.labels and not table.single
    found: dict[int, Expression] = {}
    for at, name in enumerate(what.by if labelled else ()):
        if _text(table, name):
            texts = (
                table.data.filter(*possible(table, [name]))
                .select(value=same(table, name))
                .distinct()
            )
            few = table.engine.small(texts)
            found[at] = few.mutate(place=ibis.row_number().over(ibis.window(order_by=few.value)))
    return found


def named(table: Table, what: Aggregation, groups: Expression) -> Expression:
    """Groups of rows that were projected, with their keys as they are in the table."""
    for at, listed in _labels(table, what).items():
        key = f"key{at}"
        joined = groups.join(listed, groups[key] == listed.place)
        groups = joined.select(
            **{each: listed.value if each == key else groups[each] for each in groups.columns}
        )
    return groups


def same(table: Table, name: str) -> Any:
    """A column of which equal values are the same."""
    column: Any = table.data[name]
    return table.engine.binary_collation(column) if _text(table, name) else column


def is_readable(table: Table, name: str) -> Any:
    """Whether a column holds a value that can be distinguished from all others."""
    column: Any = table.data[name]
    return table.engine.readable(column) if _text(table, name) else column.notnull()


def _text(table: Table, name: str) -> bool:
    return table.column(name).kind == "text"


def possible(table: Table, names: Sequence[str]) -> list[Any]:
    """The rows whose keys are private and can be told: an engine holds dates that no answer can, and larger integers.

    To fail at such a row would tell that it is there.
    """
    import ibis

    conditions: list[Any] = []
    for name in names:
        column: Any = table.data[name]
        conditions.append(is_readable(table, name))
        if table.column(name).kind == "date":
            conditions += [column >= ibis.literal(date.min), column <= ibis.literal(date.max)]
        if table.column(name).type == "uint64":
            conditions.append(column <= ibis.literal(LARGEST_KEY, "uint64"))
    return conditions


def asked_for(table: Table, what: Aggregation) -> list[Any]:
    """The rows whose keys can be asked for, column by column."""
    conditions: list[Any] = []
    placed = dictionaries(table, what)
    for position, name in enumerate(what.by):
        if position in placed:
            continue
        column = same(table, name)
        values = list(dict.fromkeys(key[position] for key in what.public or ()))
        known = [value for value in values if value is not None]
        inside = table.engine.is_in(column, known) if known else column.isnull()
        conditions.append(inside | column.isnull() if None in values and known else inside)
    return conditions


LARGEST_SUM = 2**62
"""Sums are clamped to this size: 1-Lipschitz, and the noise has room in 64 bits."""
Numbers = tuple[int, ...]


def exact(
    table: Table, what: Aggregation, compiled: EngineStatement | None = None
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
    for row in run(table.engine, statement(table, what) if compiled is None else compiled):
        key = read(row)
        bin, numbers = (int(row[by]), row[by + 1 :]) if what.bins is not None else (0, row[by:])
        if wanted is None or key in wanted:
            found.setdefault(key, {})[bin] = tuple(int(number) for number in numbers)
    return found


def statement(table: Table, what: Aggregation, sampling: Sampling = ANY) -> EngineStatement:
    """The one statement: rows are projected, bounded, and added up. Nothing is looked at when it is made."""
    with without_warnings():
        return in_words(table, of_one(table, what, sampling))


def in_words(table: Table, expression: Expression) -> EngineStatement:
    """An expression as a statement.

    Raises:
        UnsupportedError: If the engine has no words for it, which is found before anything is charged.
    """
    try:
        backend = expression.get_backend()
        return EngineStatement(expression, backend.compile(expression), backend)
    except Exception as error:
        reason = f"{table.engine.name} cannot say it ({type(error).__name__})"
        raise UnsupportedError("this question to this table", reason) from None


def of_one(table: Table, what: Aggregation, sampling: Sampling) -> Expression:
    """The integers of one question."""
    found = _of_one(table, what, sampling)
    return found if what.lost is not None else named(table, what, found)


def _of_one(table: Table, what: Aggregation, sampling: Sampling) -> Expression:
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
        return added(table, rows, what, _sums(what))
    elif not keys and what.value is None and what.bins is None and not what.terms:
        return of_all(table, rows).select("rows")
    within = bounded(table, rows, units, keys, cells=what.groups, sampling=sampling)
    if what.item is not None:
        return grouped(within, keys, {"values": lambda each: each.item.nunique()})
    return added(table, within, what, _sums(what))


def _sums(what: Aggregation) -> dict[str, Any]:
    """The sums over rows, from the steps that were projected."""
    center = 0 if what.value is None else what.value[2]
    sums: dict[str, Any] = (
        {} if what.value is None else {"sum": lambda each: each.value.cast("int64") - center}
    )
    for place, term in enumerate(what.terms):
        sums[f"sum{place}"] = lambda each, term=term: term.of(
            each[_steps(what, term)].cast("int64")
        )
    return sums


def of_all(table: Table, rows: Expression) -> Expression:
    """The rows that are kept of all units, and the units, without groups."""
    most = min(table.bounds.rows, table.bounds.rows_per_group)
    of_unit = grouped(rows, columns_of(rows)[0], {"rows": lambda each: each.count()})
    kept_of_unit = {"rows": lambda each: clamped(_at_most(each.rows, most).sum())}
    return grouped(of_unit, [], kept_of_unit | {"units": lambda each: each.count()})


def columns_of(rows: Expression) -> tuple[list[str], list[str]]:
    """The columns of projected rows that name units, and those that name groups."""
    units = [name for name in rows.columns if name.startswith("unit")]
    return units, [name for name in rows.columns if name.startswith("key")]


def added(
    table: Table, within: Expression, what: Aggregation, sums: Mapping[str, Any]
) -> Expression:
    """The integers of every group, and bin, of rows that were bounded.

    Its distinct units, if the groups are private, its rows, and a sum of each of `sums` over them.
    """
    units, keys = columns_of(within)
    cells = [*keys, "bin"] if what.bins is not None else keys
    exact_sum = table.engine.exact_sum
    of_rows = {
        name: (lambda each, of=of: clamped(exact_sum(of(each)))) for name, of in sums.items()
    }
    if what.public is not None:
        return grouped(within, cells, {"rows": lambda each: each.count(), **of_rows})
    whole = {name: (lambda each, name=name: clamped(exact_sum(each[name]))) for name in sums}
    of_unit = grouped(within, [*cells, *units], {"rows": lambda each: each.count(), **of_rows})
    once = {
        "units": lambda each: each.once.sum().cast("int64"),
        "rows": lambda each: each.rows.sum().cast("int64"),
    }
    return _with_enough(grouped(_once(of_unit, [*keys, *units]), cells, once | whole), keys, what)


def _with_enough(groups: Expression, keys: list[str], what: Aggregation) -> Expression:
    """The private groups, with their bins, that have so many units, or rows."""
    import ibis

    if what.fewest == 1:
        return groups
    counted = groups[("units", "rows")[what.measure]]
    if "bin" not in groups.columns:
        return groups.filter(counted >= what.fewest)
    placed = groups.mutate(there=counted.sum().over(ibis.window(group_by=keys)))
    return placed.filter(placed.there >= what.fewest).drop("there")


def _units_by_rows(
    table: Table,
    rows: Expression,
    units: list[str],
    keys: list[str],
    what: Aggregation,
    sampling: Sampling,
) -> Expression:
    """Units of every group by their number of rows in it, each unit in some of its groups only."""
    assert what.bins is not None
    pairs = grouped(rows, [*units, *keys], {"rows": lambda each: each.count()})
    pairs = pairs.mutate(bin=what.bins[1].index(pairs.rows, whole=True)).drop("rows")
    pairs = _in_some_groups(table, pairs, units, keys, what, sampling)
    return grouped(pairs, [*keys, "bin"], {"units": lambda each: each.count()})


def _losing(table: Table, rows: Expression, what: Aggregation) -> Expression:
    """All units, and those that lose a row, or in a question about distinct units a group."""
    units, keys = columns_of(rows)
    bounds = table.bounds
    of_group = grouped(rows, [*units, *keys], {"rows": lambda each: each.count()})
    of_unit = grouped(
        of_group,
        units,
        {
            "whole": lambda each: each.rows.sum(),
            "most": lambda each: each.rows.max(),
            "groups": lambda each: each.count(),
        },
    )
    least = min(bounds.groups, bounds.rows)
    loses = of_unit.groups > least
    if not (what.distinct or (what.bins is not None and what.bins[0] is None)):
        loses = loses | (of_unit.whole > bounds.rows) | (of_unit.most > bounds.rows_per_group)
    seen = of_unit.select(lost=loses.ifelse(1, 0))
    return grouped(
        seen,
        [],
        {
            "units": lambda each: each.count(),
            "lost": lambda each: each.lost.sum().coalesce(0).cast("int64"),
        },
    )


def _once(rows: Expression, of: list[str]) -> Expression:
    """A column that is 1 once for every unit in a group, in its first bin, and 0 elsewhere."""
    import ibis

    if "bin" not in rows.columns:
        return rows.mutate(once=ibis.literal(1, "int64"))
    first = rows.bin.min().over(ibis.window(group_by=of))
    return rows.mutate(once=(rows.bin == first).ifelse(1, 0))


def projected(table: Table, what: Aggregation, raw: str | None = None) -> Expression:
    """Units, keys, bins and step counts of the rows that count at all; also, if named, a column of numbers as `raw`."""
    import ibis

    data: Expression = table.data
    columns: dict[str, Any] = {f"unit{i}": same(table, name) for i, name in enumerate(table.unit)}
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
        bin = bins.index(_number(table, name), whole=is_whole(table, name))
        columns["bin"] = bin.cast(narrowest(0, bins.count))
    if raw is not None:
        columns["raw"] = ibis.cases((_is_number(table, raw), _number(table, raw)), else_=None)
    if not table.unit:
        # There may be no condition and no other column then.
        rows.append(ibis.literal(True))
        columns["row"] = ibis.literal(1)
    picked = data.filter(*rows).select(**columns)
    for at, listed in listings(table, what).items():
        joined = picked.join(listed, picked[f"key{at}"] == listed.value)
        picked = joined.select(
            **{
                each: joined.place if each == f"key{at}" else joined[each]
                for each in picked.columns
            }
        )
    return picked.filter(picked.bin.notnull()) if "bin" in columns else picked


def _sorted_steps(table: Table, name: str, grid: FixedPointGrid) -> Expression:
    """The step counts of a column, in the narrowest type, so that less is sorted; they are widened to be added up."""
    steps = grid.image(_number(table, name), whole=is_whole(table, name))
    return steps.cast(narrowest(grid.first, grid.last))


def _steps(what: Aggregation, term: Term) -> str:
    """The column of the steps that a term adds up: terms on one grid of one column have one."""
    return (
        f"value{[(each.column, each.grid) for each in what.terms].index((term.column, term.grid))}"
    )


def _is_number(table: Table, name: str) -> Any:
    """Whether a column holds a number."""
    number = _number(table, name)
    return number.notnull() if is_whole(table, name) else number.notnull() & ~number.isnan()


def is_whole(table: Table, name: str) -> bool:
    """Whether a column holds whole numbers."""
    return table.column(name).kind in ("integer", "boolean")


def _number(table: Table, name: str) -> Any:
    """The column as integers or doubles; truth values are 0 and 1."""
    import ibis

    column: Any = table.data[name]
    match table.column(name).kind:
        case "integer" if table.column(name).type == "uint64":
            most = ibis.literal(LARGEST_KEY, "uint64")
            return ibis.cases(
                (column.isnull(), ibis.null("uint64")), (column > most, most), else_=column
            ).cast("int64")
        case "integer":
            # What is compared with a negative end has to have a sign.
            return column.cast("int64") if table.column(name).type.startswith("uint") else column
        case "boolean":
            return ibis.cases((column.isnull(), ibis.null("int64")), (column, 1), else_=0)
        case "decimal":
            return table.engine.as_double(column)
        case _:
            return column.cast("float64")


def _distinct(
    table: Table,
    rows: Expression,
    units: list[str],
    keys: list[str],
    what: Aggregation,
    sampling: Sampling,
) -> Expression:
    """Distinct units of every group, each unit in some of its groups only."""
    pairs = _in_some_groups(
        table, rows.select(*units, *keys).distinct(), units, keys, what, sampling
    )
    return _with_enough(grouped(pairs, keys, {"units": lambda each: each.count()}), keys, what)


def _in_some_groups(
    table: Table,
    pairs: Expression,
    units: list[str],
    keys: list[str],
    what: Aggregation,
    sampling: Sampling,
) -> Expression:
    """One row for each unit and group: those of as many groups of each unit as it may be in."""
    most = min(table.bounds.groups, table.bounds.rows)
    if keys and (what.public is None or most < len(what.public)):
        return sampled_rows(table, pairs, units, keys, most=most, sampling=sampling, stage="groups")
    return pairs


def grouped(rows: Expression, by: list[str], sums: Mapping[str, Any]) -> Expression:
    """The rows added up by these columns, if there are any."""
    found = {name: make(rows) for name, make in sums.items()}
    return rows.group_by(by).agg(**found) if by else rows.agg(**found)


def _at_most(column: Any, most: int) -> Any:
    import ibis

    return ibis.least(column, most)


def clamped(total: Any) -> Any:
    """A sum, 0 if it is of nothing, as a 64-bit integer."""
    import ibis

    filled = total.coalesce(0)
    return ibis.greatest(ibis.least(filled, LARGEST_SUM), -LARGEST_SUM).cast("int64")
