"""How many rows, units or different values there are, in all, in groups, or between declared edges."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from typing import Any, ClassVar, cast

from dpcompose.errors import DomainError
from dpcompose.release.aggregation import Aggregation
from dpcompose.release.design import Design, Released, digest
from dpcompose.release.grid import Edges
from dpcompose.release.question import (
    MOST_KEYS,
    OfColumn,
    Question,
    Values,
    first_noise,
    measured,
    noise_of,
    of_numbers,
    one_of,
)
from dpcompose.release.table import Key, Table
from dpcompose.release.threshold import KeyThreshold


@dataclass(frozen=True)
class Count(Question):
    """How many rows there are, in all or in each group.

    Args:
        threshold: What private keys have to have enough of to come out. For "rows" all of the amount is for the counts,
            which are compared with the threshold themselves: the least noise. For "units" half of it is for numbers of
            units, which are compared: where a unit has many rows in a group, keys with fewer of them come out.
    """

    _: KW_ONLY
    threshold: str = "rows"

    kind: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("threshold", self.threshold, ("rows", "units"))

    def design(self, table: Any, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, aggregation = self._spend(spend), Aggregation(by, public)
        change, described = (
            table.bounds.within(aggregation.groups).change(1),
            self._described(by, public),
        )
        if public is not None or self.threshold == "units":
            return measured(table, aggregation, [change], asked, described)
        threshold = KeyThreshold.costing(change, asked, measure=1)
        return Design(table, aggregation, (), (), threshold, spend=asked, description=described)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (Values("count", "int64", tuple(number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(first_noise(design).error(failure))


@dataclass(frozen=True)
class Units(Question):
    """How many units there are, in all or in each group: a unit counts once in a group, however many rows it has."""

    kind: ClassVar[str] = "units"

    def design(self, table: Any, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, aggregation = self._spend(spend), Aggregation(by, public, distinct=True)
        described = self._described(by, public)
        change = table.bounds.within(aggregation.groups).presence
        if public is not None:
            return measured(table, aggregation, [change], asked, described)
        threshold = KeyThreshold.costing(change, asked)
        return Design(table, aggregation, (), (), threshold, spend=asked, description=described)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (Values("units", "int64", tuple(number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(first_noise(design).error(failure))


@dataclass(frozen=True)
class Histogram(OfColumn):
    """The number of rows in every bin [e0, e1), [e1, e2), ..., the last one closed; what lies outside is left out.

    Args:
        column: A column of numbers.
        edges: Increasing numbers; all bins come out, empty ones too.
    """

    _: KW_ONLY
    edges: Sequence[Any]

    kind: ClassVar[str] = "histogram"
    error_column: ClassVar[int] = 2

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        of_numbers(table, self.column)
        asked, bins = self._spend(spend), Edges.stated(self.edges)
        aggregation = Aggregation(by, public, bins=(self.column, bins))
        change = table.bounds.within(aggregation.groups).change(1, bins=bins.count)
        described = self._described(
            by,
            public,
            column=self.column,
            edges={"number": len(bins.edges), "digest": digest([bins.edges])},
        )
        return measured(table, aggregation, [change], asked, described)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        edges = [float(edge) for edge in Edges.stated(self.edges).edges]
        counts = tuple(number for cell in drawn.released[0] for number in cell)
        times = len(drawn.keys)
        return (
            Values("from", "double", tuple(edges[:-1]) * times),
            Values("to", "double", tuple(edges[1:]) * times),
            Values("count", "int64", counts),
        )

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(noise_of(design.steps[0]).error(failure))


@dataclass(frozen=True)
class Contingency(Count):
    """How many rows there are for every combination of the values of several columns, the empty ones too.

    Its `keys` are one list of values for each column of `by`.
    """

    kind: ClassVar[str] = "contingency table"

    def _groups(self, table: Table) -> tuple[tuple[str, ...], tuple[Key, ...] | None]:
        lists = [_list_of(each) for each in self.keys or ()]
        if len(lists) != (1 if isinstance(self.by, str) else len(self.by)) or not all(lists):
            raise DomainError(
                "keys", self.keys, "a list of values for each column of by=, none of them empty"
            )
        size = math.prod(len(each) for each in lists)
        if not size <= MOST_KEYS:
            raise DomainError(
                "keys", size, f"at most {MOST_KEYS:,} combinations", "Ask fewer columns or values"
            )
        return Count(by=self.by, keys=list(product(*lists)))._groups(table)


def _list_of(values: Any) -> list[Any]:
    return (
        list(cast("Sequence[Any]", values))
        if isinstance(values, Sequence) and not isinstance(values, str)
        else []
    )


@dataclass(frozen=True)
class Distinct(OfColumn):
    """How many different values of a column there are, in all or in each group; NULL is none.

    A unit adds at most as many values as rows of it are kept; of equal rows of a unit one is enough.

    Args:
        column: A column of integers, text, dates or truth values.
    """

    kind: ClassVar[str] = "distinct"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        if not table.column(self.column).groups:
            domain = "a column of integers, text, dates or truth values"
            raise DomainError(
                "column", self.column, domain, f"It holds {table.column(self.column).type}"
            )
        if public is None:
            raise DomainError(
                "keys", None, "a list of keys, where distinct values are counted by group"
            )
        asked, aggregation = self._spend(spend), Aggregation(by, public, item=self.column)
        change = table.bounds.within(aggregation.groups).change(1)
        return measured(
            table, aggregation, [change], asked, self._described(by, public, column=self.column)
        )

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (Values("distinct", "int64", tuple(number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return float(noise_of(design.steps[0]).error(failure))
