"""Keys of groups: which rows have one that counts, and the integers that stand for texts while rows are sorted."""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from dpcompose.release.aggregation import Aggregation
from dpcompose.release.engine import Expression
from dpcompose.release.table import Key, Table

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


def there(table: Table, name: str) -> Any:
    """Whether a column holds a value that can be told from all others."""
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
        conditions.append(there(table, name))
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
