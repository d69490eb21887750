"""One statement for several questions to one table: those that can share it have their rows bounded once.

Questions share when they have the same groups, and one column besides at most. One order of a unit's rows, by groups
and that column, then refines the order of each question: the same places in it are kept. Where a row of a unit counts
for some of the questions only, as one with NULL does, the unit is bounded for each of them by itself. So every question
has the integers that it has when it is asked alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from dpcompose.release.aggregate import (
    LARGEST_SUM,
    Numbers,
    added,
    clamped,
    columns_of,
    is_whole,
    key_reader,
    named,
    of_all,
    projected,
    same,
    statement,
)
from dpcompose.release.aggregation import Aggregation, Bins, FixedPointGrid, GridPoints
from dpcompose.release.query import Query, Value, narrowest, run
from dpcompose.release.table import Key, Table
from dpcompose.release.truncation import ANY, Sampling, bounded

Found = Mapping[Key, Mapping[int, Numbers]]
Images = Mapping[FixedPointGrid | Bins, str]
FEW_IMAGES = 3
"""So many small integers are sorted in place of the number that they are made of."""


@dataclass(frozen=True)
class Part:
    """One branch of the statement: some integers of every group.

    Args:
        rows: Columns of the groups, of the bin if there is one, and of integers.
        what: What it is for: its groups and bins.
        takers: The questions that it is for, by their places, and the names of the integers of each.
    """

    rows: Query
    what: Aggregation
    takers: tuple[tuple[int, tuple[str, ...]], ...]

    @property
    def numbers(self) -> list[str]:
        """The names of the integers."""
        return list(dict.fromkeys(name for _, names in self.takers for name in names))


@dataclass(frozen=True)
class Scan:
    """The one statement for several questions, and how its rows are read.

    Args:
        table: The table that is asked.
        whats: What is wanted of it.
        parts: The branches of the statement.
        statement: The statement.
    """

    table: Table
    whats: tuple[Aggregation, ...]
    parts: tuple[Part, ...]
    statement: Query

    @classmethod
    def of(cls, table: Table, whats: Sequence[Aggregation], sampling: Sampling = ANY) -> Scan:
        """The statement for these questions. Nothing is looked at when it is made."""
        parts = tuple(
            part for places in _families(whats) for part in _parts(table, whats, places, sampling)
        )
        return cls(table, tuple(whats), parts, _united(parts))

    def exact(self) -> list[Found]:
        """The integers for each question, as `aggregate.exact` gives them for one.

        Raises:
            EngineError: If the engine failed.
        """
        found: list[dict[Key, dict[int, Numbers]]] = [{} for _ in self.whats]
        wanted = [None if what.public is None else set(what.public) for what in self.whats]
        names = list(_schema(self.parts))
        readers = [self._reader(part, names) for part in self.parts]
        for row in run(self.statement):
            at = int(row[0])
            part = self.parts[at]
            key, bin, numbers = readers[at](row)
            for place, integers in part.takers:
                keys = wanted[place]
                if keys is None or key in keys:
                    _add(
                        found[place].setdefault(key, {}),
                        bin,
                        tuple(numbers[name] for name in integers),
                    )
        return list(found)

    def _reader(self, part: Part, names: list[str]) -> Any:
        read = key_reader(self.table, part.what)
        keys = [names.index(name) for name in _keys(part.rows).values()]
        numbers = {name: names.index(f"number{at}") for at, name in enumerate(part.numbers)}
        bin = names.index("bin")

        def reader(row: Sequence[Any]) -> tuple[Key, int, Mapping[str, int]]:
            return (
                read([row[at] for at in keys]),
                int(row[bin] or 0),
                {n: int(row[at]) for n, at in numbers.items()},
            )

        return reader


@dataclass(frozen=True)
class Scans:
    """The statements for the questions of a batch, one for each table that is asked.

    Args:
        scans: Each with the places of its questions in the batch.
    """

    scans: tuple[tuple[tuple[int, ...], Scan], ...]

    @classmethod
    def of(cls, requests: Sequence[tuple[Table, Aggregation]], sampling: Sampling = ANY) -> Scans:
        """The statements for these questions to these tables; tables that are the same rows are scanned once."""
        places: dict[object, list[int]] = {}
        for place, (table, _) in enumerate(requests):
            where = id(table.engine.raw), table.data.words
            places.setdefault((where, table.unit, table.bounds), []).append(place)
        return cls(
            tuple(
                (
                    tuple(each),
                    Scan.of(requests[each[0]][0], [requests[place][1] for place in each], sampling),
                )
                for each in places.values()
            )
        )

    def exact(self) -> list[Found]:
        """The integers for each question of the batch.

        Raises:
            EngineError: If an engine failed.
        """
        found = {
            place: each
            for places, scan in self.scans
            for place, each in zip(places, scan.exact(), strict=True)
        }
        return [found[place] for place in sorted(found)]


def _add(bins: dict[int, Numbers], bin: int, numbers: Numbers) -> None:
    """Add integers of other units: each sum was clamped, and their sum is again, both 1-Lipschitz."""
    before = bins.get(bin, (0,) * len(numbers))
    sums = (one + other for one, other in zip(before, numbers, strict=True))
    bins[bin] = tuple(max(min(total, LARGEST_SUM), -LARGEST_SUM) for total in sums)


def _families(whats: Sequence[Aggregation]) -> list[list[int]]:
    """The questions that share, by their places."""
    found: dict[tuple[Any, ...], list[int]] = {}
    alone: list[int] = []
    for place, what in enumerate(whats):
        if _is_of_its_own(what):
            found[(place,)] = [place]
        elif what.column is None:
            alone.append(place)
        else:
            found.setdefault((what.by, _public(what), what.column), []).append(place)
    for place in alone:
        groups = whats[place].by, _public(whats[place])
        shared = (key for key in found if key[:2] == groups)
        # Distinct units have no bounds on rows, so they share with what has no order.
        key = None if whats[place].distinct else next(shared, None)
        found.setdefault((*groups, None) if key is None else key, []).append(place)
    return list(found.values())


def _is_of_its_own(what: Aggregation) -> bool:
    """Whether it has an order of rows, or of groups, that no other question shares."""
    by_rows = what.bins is not None and what.bins[0] is None
    several = bool(what.terms) and what.column is None
    other = what.item is not None or what.lost is not None or what.among is not None
    return bool((what.distinct and what.by) or several or other or by_rows)


def _only_counts(what: Aggregation) -> bool:
    return bool(what.by) and what.column is None


def _public(what: Aggregation) -> frozenset[Key] | None:
    return None if what.public is None else frozenset(what.public)


def _parts(
    table: Table, whats: Sequence[Aggregation], places: list[int], sampling: Sampling
) -> Iterator[Part]:
    # Counts alone have no rows in common: none of them is chosen.
    if len(places) == 1 or not table.unit or all(_only_counts(whats[place]) for place in places):
        for place in places:
            yield _alone(whats[place], place, statement(table, whats[place], sampling))
        return
    first = whats[places[0]]
    column = next(
        (whats[place].column for place in places if whats[place].column is not None), None
    )
    if column is None and not first.by:
        takers = ((place, ("units" if whats[place].distinct else "rows",)) for place in places)
        yield Part(of_all(table, projected(table, first)), first, tuple(takers))
        return
    rows = projected(table, Aggregation(first.by, first.public), column)
    units, _ = columns_of(rows)
    # The rows of each question, by what decides which they are.
    counted = {_decider(whats[place]): _counted(whats[place], rows) for place in places}
    conditions = [condition for condition in counted.values() if condition is not None]
    if len(counted) > 1 and any(whats[place].fewest > 1 for place in places):
        # The units of a group have to be counted in one place.
        for place in places:
            yield _alone(whats[place], place, statement(table, whats[place], sampling))
        return
    if len(counted) == 1:
        rows = rows.filter(*conditions)
    else:
        # Whatever their groups are: units with rows that count for none of the questions may be among them.
        everywhere = rows if not first.by else projected(table, Aggregation((), None), column)
        counts = {_decider(whats[place]): _counted(whats[place], everywhere) for place in places}
        apart = [condition for condition in counts.values() if condition is not None]
        some = everywhere.select(*units, where=[f"NOT ({' AND '.join(apart)})"]).distinct()
        mixed = table.engine.small(some)
        rows = rows.having(mixed, [(name, name) for name in units], none=True)
        theirs = _of_units(
            table, mixed, {*table.unit, *first.by, *([] if column is None else [column])}
        )
        for place in places:
            yield _alone(whats[place], place, statement(theirs, whats[place], sampling))
    images = _images([whats[place] for place in places])
    within = _bounded(
        table, rows, images, is_whole(table, column) if column else False, first.groups, sampling
    )
    sharing = {
        bins: {place: whats[place] for place in places if whats[place].bins == bins}
        for bins in {whats[place].bins: None for place in places}
    }
    if first.public is not None and None in sharing and len(sharing) > 1:
        bins = next(each for each in sharing if each is not None)
        yield from _by_bins(table, within, bins, sharing.pop(bins), sharing.pop(None), images)
    for bins, those in sharing.items():
        yield _together(table, within, bins, those, images)


def _of_units(table: Table, units: Query, names: Collection[str]) -> Table:
    """The table with the rows of some units alone, which are looked for once, whatever is asked of them."""
    of = {f"dpcompose_{at}": same(table, name) for at, name in enumerate(table.unit)}
    rows = table.data.select(*sorted(names), **of)
    pairs = [(name, f"unit{at}") for at, name in enumerate(of)]
    return replace(table, data=rows.having(units, pairs).select(*sorted(names)))


def _alone(what: Aggregation, position: int, rows: Query) -> Part:
    numbers = tuple(name for name in rows.columns if name != "bin" and not name.startswith("key"))
    return Part(rows, what, ((position, numbers),))


def _images(whats: Sequence[Aggregation]) -> Images:
    """The grids and bins on which these questions need their column, and a name for each."""
    found: list[FixedPointGrid | Bins] = []
    for what in whats:
        found += [
            *(what.value or ())[1:2],
            *(term.grid for term in what.terms),
            *(what.bins or ())[1:],
        ]
    return {each: f"value{at}" for at, each in enumerate(dict.fromkeys(found))}


def _bounded(
    table: Table,
    rows: Query,
    images: Images,
    whole: bool,
    groups: int | None,
    sampling: Sampling,
) -> Query:
    """The rows that are kept of each unit, with the images of the column in place of it.

    All rows count for every question here, and each image follows the order of the column, so rows sorted by all of
    them are in the order of each. A few small integers are sorted in less time and memory than the column itself.
    """
    units, keys = columns_of(rows)

    def imaged(those: Query) -> Query:
        found: dict[str, str] = {}
        engine = table.engine
        for each, name in images.items():
            if isinstance(each, FixedPointGrid):
                image, ends = each.image(engine, those["raw"], whole=whole), (each.first, each.last)
            else:
                image, ends = each.index(engine, those["raw"], whole=whole), (0, each.count)
            found[name] = engine.cast(image, narrowest(*ends))
        return those.select(*units, *keys, **found)

    few = len(images) <= FEW_IMAGES
    within = bounded(
        table, imaged(rows) if few else rows, units, keys, cells=groups, sampling=sampling
    )
    return within if few else imaged(within)


def _to_add(rows: Query, whats: Mapping[int, Aggregation], images: Images) -> dict[str, str]:
    """The numbers that each question adds up over the rows: `sum` with its place and number."""
    found: dict[str, str] = {}
    for place, what in whats.items():
        if what.value is not None:
            _, grid, center = what.value
            found[f"sum{place}_"] = f"({rows.engine.cast(rows[images[grid]], 'int64')} - {center})"
        for at, term in enumerate(what.terms):
            steps = rows.engine.cast(rows[images[term.grid]], "int64")
            found[f"sum{place}_{at}"] = term.of(steps)
    return found


def _taken(
    sums: Mapping[str, Any], whats: Mapping[int, Aggregation]
) -> tuple[tuple[int, tuple[str, ...]], ...]:
    counts = {
        place: ("rows",) if what.public is not None else ("units", "rows")
        for place, what in whats.items()
    }
    return tuple(
        (place, (*names, *(s for s in sums if s.startswith(f"sum{place}_"))))
        for place, names in counts.items()
    )


def _together(
    table: Table, within: Query, bins: Any, whats: Mapping[int, Aggregation], images: Images
) -> Part:
    """The integers of questions with the same groups and bins, of rows that were bounded."""
    added_up = _to_add(within, whats, images)
    first = next(iter(whats.values()))
    measures = {each.measure for each in whats.values()}
    fewest = min(each.fewest for each in whats.values()) if len(measures) == 1 else 1
    what = Aggregation(first.by, first.public, bins=bins, fewest=fewest, measure=first.measure)
    if bins is not None:
        added_up["bin"] = within[images[bins[1]]]
    rows = within.mutate(**added_up) if added_up else within
    sums = {name: rows[name] for name in added_up if name != "bin"}
    return Part(named(table, what, added(table, rows, what, sums)), what, _taken(sums, whats))


def _by_bins(
    table: Table, within: Query, bins: Any, split: Mapping[int, Aggregation], whole: Mapping[int, Aggregation],
    images: Images,
) -> Iterator[Part]:  # fmt: skip
    """The integers of questions by bins, and of those without, which add up those of the bins."""
    first = next(iter(split.values()))
    steps = _to_add(within, whole, images)
    rows = within.mutate(bin=within[images[bins[1]]], **steps)
    keys = columns_of(rows)[1]
    sums = {name: table.engine.exact_sum(rows[name]) for name in steps}
    cells = rows.group([*keys, "bin"], rows="COUNT(*)", **sums)
    what = Aggregation(first.by, first.public, bins=bins)
    yield Part(cells.select(*keys, "bin", "rows"), what, _taken({}, split))
    totals = {name: clamped(table, f"SUM({cells[name]})") for name in ("rows", *steps)}
    yield Part(
        cells.group(keys, **totals), Aggregation(first.by, first.public), _taken(steps, whole)
    )


def _decider(what: Aggregation) -> object:
    """Questions of which this is equal count the same rows of their groups."""
    if what.bins is None or isinstance(what.bins[1], GridPoints):
        return what.column is not None
    return what.bins


def _counted(what: Aggregation, rows: Query) -> str | None:
    """Which rows count, or None where all do."""
    if what.column is None:
        return None
    raw = rows["raw"]
    return f"{raw} IS NOT NULL" if what.bins is None else what.bins[1].holds(rows.engine, raw)


def _keys(rows: Query) -> dict[str, str]:
    """The columns of the groups, and what they are called in the whole: by their place and type."""
    types = {name: type.partition("(")[0] for name, type in rows.types.items()}
    return {name: f"{name} {type}" for name, type in types.items() if name.startswith("key")}


def _schema(parts: Sequence[Part]) -> dict[str, str]:
    """The columns of the whole, and their types."""
    keys = {
        called: called.split(" ", 1)[1] for part in parts for called in _keys(part.rows).values()
    }
    numbers = max(len(part.numbers) for part in parts)
    return {"part": "int64", **keys, "bin": "int64"} | {
        f"number{at}": "int64" for at in range(numbers)
    }


def _united(parts: Sequence[Part]) -> Query:
    """All branches, one below the other, each with its own number."""
    schema = _schema(parts)
    branches: list[Query] = []
    for at, part in enumerate(parts):
        found, cast = part.rows, part.rows.engine.cast
        has: dict[str, str] = {called: found[name] for name, called in _keys(found).items()}
        has |= {f"number{n}": cast(found[name], "int64") for n, name in enumerate(part.numbers)}
        has |= {"part": Value(str(at), "int64")}
        if "bin" in found.types:
            has["bin"] = cast(found["bin"], "int64")
        columns = {name: has.get(name, cast("NULL", type)) for name, type in schema.items()}
        branches.append(found.select(**columns))
    return branches[0].union(*branches[1:]) if len(branches) > 1 else branches[0]
