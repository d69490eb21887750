"""Questions that count: rows, units, distinct values, the largest groups, and what the bounds leave
out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from fractions import Fraction
from itertools import product
from typing import Any, ClassVar, cast

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.aggregation import MOST_BINS, Aggregation, Edges, RowNumbers
from dpcompose.release.columns import Key, one_of
from dpcompose.release.design import Design, NoiseStep, PeelingStep, Released, digest
from dpcompose.release.noise import Selection, Spend, noise_for, quotient_interval
from dpcompose.release.question import (
    MOST_KEYS,
    Headings,
    OfColumn,
    Question,
    Quotient,
    Values,
    of_numbers,
)
from dpcompose.release.table import Table


@dataclass(frozen=True)
class Count(Question):
    """The number of rows, in all or in each group.

    Args:
        threshold: A group whose name is private is released only where enough rows, or enough
            units, are in it. "rows": the noisy row counts are compared with the threshold, and the
            whole spend pays for them: the least noise. "units": half of the spend pays for noisy
            numbers of units, which are compared; where a unit has many rows in a group, groups of
            fewer units are released than by rows.
    """

    _: KW_ONLY
    threshold: str = "rows"

    kind: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("threshold", self.threshold, ("rows", "units"))

    def design(self, table: Any, spend: Mapping[str, Any] | None = None) -> Design:
        what = Aggregation(*self._groups(table))
        change = table.bounds.within(what.groups).change(1)
        if what.public is not None or self.threshold == "units":
            return self._measured(table, spend, what, [change])
        return self._of_keys(table, spend, what, change, 1)


@dataclass(frozen=True)
class Units(Question):
    """The number of units, in all or in each group: a unit counts once in a group, whatever the
    number of its rows.
    """

    kind: ClassVar[str] = "units"

    def design(self, table: Any, spend: Mapping[str, Any] | None = None) -> Design:
        what = Aggregation(*self._groups(table), distinct=True)
        change = table.bounds.within(what.groups).presence
        if what.public is not None:
            return self._measured(table, spend, what, [change])
        return self._of_keys(table, spend, what, change, 0)


@dataclass(frozen=True)
class Histogram(OfColumn):
    """The number of rows in every bin [e0, e1), [e1, e2), ..., the last one closed; numbers outside
    are left out.

    Args:
        column: A column of numbers.
        edges: Increasing numbers; all bins are released, empty ones too.
    """

    _: KW_ONLY
    edges: Sequence[Any]

    kind: ClassVar[str] = "histogram"
    main: ClassVar[str] = "count"
    error_column: ClassVar[int] = 2

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        of_numbers(table, self.column)
        bins = Edges.stated(self.edges)
        what = Aggregation(*self._groups(table), bins=(self.column, bins))
        change = table.bounds.within(what.groups).change(1, bins=bins.count)
        edges = {"number": len(bins.edges), "digest": digest([bins.edges])}
        return self._measured(table, spend, what, [change], column=self.column, edges=edges)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        edges = [float(edge) for edge in Edges.stated(self.edges).edges]
        counts = tuple(number for cell in drawn.released[0] for number in cell)
        times = len(drawn.keys)
        return (
            Values("from", "double", tuple(edges[:-1]) * times),
            Values("to", "double", tuple(edges[1:]) * times),
            Values("count", "int64", counts),
        )


@dataclass(frozen=True)
class Contingency(Count):
    """The number of rows for every combination of the values of several columns, empty ones too.

    Its `keys` are one list of values for each column of `by`.
    """

    kind: ClassVar[str] = "contingency table"
    main: ClassVar[str] = "count"

    def _groups(self, table: Table) -> tuple[tuple[str, ...], tuple[Key, ...] | None]:
        lists = [_list_of(each) for each in self.keys or ()]
        if len(lists) != (1 if isinstance(self.by, str) else len(self.by)) or not all(lists):
            raise DomainError(
                "keys", self.keys, "a list of values for each column of by=, none of them empty"
            )
        size = math.prod(len(each) for each in lists)
        if not size <= MOST_KEYS:
            raise DomainError(
                "keys", size, f"at most {MOST_KEYS:,} combinations", "Use fewer columns or values"
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
    """The number of different values of a column, in all or in each group; NULL does not count.

    A unit adds at most as many values as rows of it are kept; equal rows of a unit count as one.

    Args:
        column: A column of integers, text, dates or truth values.
    """

    kind: ClassVar[str] = "distinct"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        what = Aggregation(*self._groups(table), item=self.column)
        table.column(self.column).require_key("column")
        if what.public is None:
            domain = "a list of keys, where distinct values are counted by group"
            raise DomainError("keys", None, domain)
        change = table.bounds.within(what.groups).change(1)
        return self._measured(table, spend, what, [change], column=self.column)


MOST_CHOSEN = 1000
METHODS = ("counts", "peeling")


@dataclass(frozen=True)
class Top(Question):
    """The groups with the most rows, largest first, with noisy counts.

    "counts" adds noise to every group's count and keeps the largest. "peeling" spends half on
    choosing one group after the other, as a quantile is chosen, where a unit counts with the rows
    of one group only; the other half pays for the counts of the chosen groups. The default is the
    one whose choice has the smaller error at this price. Private keys are released as in a count,
    and the largest of them are kept.

    Args:
        number: How many groups; at most 1,000, and no more than there are keys.
        method: "counts", "peeling" or None.
    """

    number: int
    _: KW_ONLY
    method: str | None = None

    kind: ClassVar[str] = "top"
    main: ClassVar[str] = "count"

    def __post_init__(self) -> None:
        super().__post_init__()
        check.count("number", self.number, least=1)
        if self.method is not None:
            one_of("method", self.method, METHODS)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        most = MOST_CHOSEN if public is None else min(MOST_CHOSEN, len(public))
        if not (by and self.number <= most):
            raise DomainError(
                "number", self.number, f"an integer from 1 to {most}, of the groups of by="
            )
        asked = self._spend(spend)
        counted = Count(by=self.by, keys=self.keys).design(table, asked.amounts())
        described = self._described(by, public, number=self.number)
        noisy = replace(counted, description=described)
        if (
            public is None
            or self.method == "counts"
            or (asked.delta and asked.currency == "epsilon")
        ):
            if self.method == "peeling":
                domain = "'counts': peeling needs public keys, and no delta beside an epsilon"
                remedy = "State keys= and no delta, or leave method out"
                raise DomainError("method", self.method, domain, remedy)
            return noisy
        step = self._peeling(table, public, asked)
        assert isinstance(counted.steps[0], NoiseStep)
        errors = (
            counted.steps[0].noise.error(0.05 / len(public)),
            step.selection.error(len(public), 0.05 / self.number),
        )
        if self.method is None and errors[0] <= errors[1]:
            return noisy
        return replace(noisy, aggregation=Aggregation(by, public), steps=(step,))

    def _peeling(self, table: Table, public: Sequence[Key], spend: Spend) -> PeelingStep:
        half, chosen = spend.part(Fraction(1, 2), delta=False), table.bounds.within(self.number)
        one = table.bounds.within(len(public)).change(1).largest
        selection = Selection.costing(one, half.part(Fraction(1, self.number)), monotone=True)
        return PeelingStep(selection, noise_for(chosen.change(1), half), self.number)

    def ordered(self, drawn: Released) -> Released:
        """Return the chosen groups by decreasing noisy count; equal counts keep the order of their
        keys.
        """
        there = [
            (cell[-1], key, cell)
            for key, cell in zip(drawn.keys, drawn.released[0], strict=True)
            if cell[0] or len(cell) == 1
        ]
        kept = sorted(there, key=lambda each: -each[0])[: self.number]
        return Released(tuple(key for _, key, _ in kept), (tuple(cell for _, _, cell in kept),))


@dataclass(frozen=True)
class RowsPerUnit(Question):
    """The number of units with 1, 2, ..., `most` or more rows, in all or in each group, before rows
    are left out.

    A unit counts once in a group, whatever the number of its rows.

    Args:
        most: The last number, which includes all larger ones; by default the bound on a unit's
            rows.
    """

    _: KW_ONLY
    most: int | None = None

    kind: ClassVar[str] = "rows per unit"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.most is not None:
            check.count("most", self.most, least=1, most=MOST_BINS)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        most = min(table.bounds.rows, MOST_BINS) if self.most is None else int(self.most)
        what = Aggregation(*self._groups(table), bins=(None, RowNumbers(most)))
        if what.public is None:
            domain = "a list of keys, where units are counted by their rows in a group"
            raise DomainError("keys", None, domain)
        change = table.bounds.within(what.groups).presence
        return self._measured(table, spend, what, [change], most=most)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        counts = tuple(number for cell in drawn.released[0] for number in cell)
        places = tuple(range(1, len(drawn.released[0][0]) + 1)) * len(drawn.keys)
        return Values("units", "int64", counts), Values("rows", "int64", places)


@dataclass(frozen=True)
class LeftOut(Quotient):
    """The fraction of units that lose a row of a question to the bounds, and the noisy number of
    units.

    Half of the spend pays for the number of units that lose a row, half for the number of units
    that have a row; one unit changes each by 1. For a question about distinct units, groups are
    lost instead of rows.

    Args:
        question: The question whose rows are left out; its own spend does not matter.
    """

    question: Question

    kind: ClassVar[str] = "left out"
    written: ClassVar[bool] = False
    headings: ClassVar[Headings] = (("share", "double"), ("units", "int64"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.question, Question) or isinstance(self.question, LeftOut):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("question", self.question, "a question about rows, such as Count()")
        if self.table is None:
            object.__setattr__(self, "table", self.question.table)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        if self.by or self.keys is not None:
            raise DomainError("by", self.by, "nothing: the groups are those of the question")
        private = bool(self.question.by) and self.question.keys is None
        spent = {"epsilon": 1, "delta": 0.1} if private else {"epsilon": 1}
        inner = replace(self.question, spend=spent).design(table)
        what = Aggregation((), ((),), lost=inner.aggregation)
        one = table.bounds.within(1).presence
        return self._measured(table, spend, what, [one, one], of=dict(inner.description))

    def row(self, design: Design, *numbers: int) -> tuple[float, ...]:
        units, lost = numbers
        return min(max(lost / max(units, 1), 0.0), 1.0), units

    def most(self, design: Design, failure: float, count: int) -> float:
        units, lost = design.noises
        return min(lost.error_with(units, 1, failure) / max(count, 1), 1.0)

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """The interval of the fraction, exact up to the steps of the discrete noise."""
        (share, number), (units, lost) = released, design.noises
        return quotient_interval((share * number, number), (lost, units), (0.0, 1.0), failure)
