"""Values with a given share of the rows below them, or few rows, chosen among the points of a public grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, cast

from dpcompose.errors import DomainError
from dpcompose.release.aggregation import Aggregation, GridPoints
from dpcompose.release.bounds import Change
from dpcompose.release.design import Design, RankStep, Released, ReleaseStep, SelectionStep
from dpcompose.release.noise import Selection
from dpcompose.release.question import Clamped, Interval, Values, on_grid
from dpcompose.release.spend import Spend, exact
from dpcompose.release.table import Table

FINEST, MOST = 10**6, 100
CANDIDATES = 1_000
"""How many steps a range is divided into at least, where no granularity is given and the column has no integers."""


@dataclass(frozen=True)
class Chosen(Clamped):
    """A question that is answered by points of a public grid, chosen for each group; the ends are those of candidates.

    There are at most 100,001 of them: by default their step is 1 for integers, else about a thousandth of the range.
    """

    in_ranks: ClassVar[bool] = True
    steps: ClassVar[int] = CANDIDATES

    def _chosen(
        self, table: Table, spend: Mapping[str, Any] | None,
        makers: Sequence[Callable[[Change, GridPoints, Spend], ReleaseStep]], **described: Any,
    ) -> Design:  # fmt: skip
        """The design of so many choices, each for an equal part of the amount."""
        points = GridPoints(self._grid(table))
        what = Aggregation(*self._groups(table), bins=(self.column, points))
        change = table.bounds.within(what.groups).change(1)
        choices = [partial(make, change, points) for make in makers]
        measures, specs = (int(what.public is None),) * len(makers), self._spec(points.grid)
        return self._in_parts(
            table, self._spend(spend), what, choices, measures, **specs, **described
        )

    def _points(self, name: str, design: Design, drawn: Sequence[tuple[int, ...]]) -> Values:
        grid = _points_of(design).grid
        return on_grid(name, grid, (grid.first + index for (index,) in drawn))

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """Not known: the error is in rows, and how far apart rows lie is private."""
        nothing = (math.nan,) * len(columns[-1].cells)
        return nothing, nothing


@dataclass(frozen=True)
class Quantile(Chosen):
    """A quantile of a column, in all or in each group; NULL and NaN are left out.

    It is chosen by permute-and-flip, or by the exponential mechanism where the amount is named in rho.

    A candidate with l rows below and u above it, in a table with quantile q, has the score |(1 - q) l - q u|.

    Args:
        column: A column of numbers.
        q: The share, in (0, 1), such as 0.5 for the median; a fraction of at most 10^6 parts.
        lower: The least candidate; smaller values count as this; by default the end that the catalog has.
        upper: The largest candidate; larger values count as this; by default likewise.
        granularity: The step between candidates, of which there are at most 100,001; by default 1 for integers, else
            about a thousandth of the range.

    Reference: [McKennaSheldon2020, Algorithm 1], [McSherryTalwar2007, Definition 2]
    """

    q: Any

    kind: ClassVar[str] = "quantile"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        q = _level("q", self.q)
        return self._chosen(table, spend, [partial(_step, q)], q=str(q))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (self._points("quantile", design, drawn.released[0]),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """In rows: how much further the chosen candidate's score is from 0 than the best one's, a bound."""
        return _rows(design, failure)


@dataclass(frozen=True)
class Quantiles(Chosen):
    """Several quantiles of a column, in all or in each group, for equal parts of one amount, in increasing order.

    Each is chosen as a `Quantile` is; then they are sorted, which makes none of them worse.

    Args:
        column: A column of numbers.
        qs: The shares, increasing, at most 100, each as for a quantile.
        lower: The least candidate; smaller values count as this; by default the end that the catalog has.
        upper: The largest candidate; larger values count as this; by default likewise.
        granularity: The step between candidates, of which there are at most 100,001; by default 1 for integers, else
            about a thousandth of the range.
    """

    qs: Sequence[Any]

    kind: ClassVar[str] = "quantiles"
    error_column: ClassVar[int] = 1

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        shares = [_level(f"qs[{place}]", each) for place, each in enumerate(_listed("qs", self.qs))]
        if not all(one < other for one, other in pairwise(shares)):
            raise DomainError("qs", list(self.qs), "increasing shares")

        choices = [partial(_step, q) for q in shares]
        return self._chosen(table, spend, choices, qs=[str(q) for q in shares])

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        ordered = [
            tuple((index,) for (index,) in sorted(group))
            for group in zip(*drawn.released, strict=True)
        ]
        shares = tuple(float(_level("qs", q)) for q in self.qs)
        flat = [index for group in ordered for index in group]
        return Values("q", "double", shares * len(drawn.keys)), self._points(
            "quantile", design, flat
        )

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """In rows, of the quantile with the largest error: as for a quantile."""
        return _rows(design, failure)


@dataclass(frozen=True)
class Minimum(Chosen):
    """A value with few rows below it, in all or in each group; NULL and NaN are left out.

    The least value itself is one unit's, so it is never told. The question aims at the rank k at which a
    candidate with no rows below or at it is chosen with probability at most 1 / 20: a table with fewer rows gives a
    value near its largest.

    Args:
        column: A column of numbers.
        lower: The least candidate; smaller values count as this; by default the end that the catalog has.
        upper: The largest candidate; larger values count as this; by default likewise.
        granularity: The step between candidates, of which there are at most 100,001; by default 1 for integers, else
            about a thousandth of the range.
    """

    kind: ClassVar[str] = "minimum"
    above: ClassVar[bool] = False

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        def at_rank(change: Change, points: GridPoints, part: Spend) -> RankStep:
            selection = Selection.costing(change.l1, part)
            return RankStep(selection, math.ceil(selection.error(points.count, 0.05)), self.above)

        return self._chosen(table, spend, [at_rank])

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (self._points(self.kind, design, drawn.released[0]),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """In rows: how far the rank of the chosen value is from 1 at most, where there are enough rows."""
        (step,) = design.steps
        assert isinstance(step, RankStep)
        return step.rank + step.selection.error(_points_of(design).count, failure)


@dataclass(frozen=True)
class Maximum(Minimum):
    """A value with few rows above it, in all or in each group: the mirror image of `Minimum`.

    Args:
        column: A column of numbers.
        lower: The least candidate; smaller values count as this; by default the end that the catalog has.
        upper: The largest candidate; larger values count as this; by default likewise.
        granularity: The step between candidates, of which there are at most 100,001; by default 1 for integers, else
            about a thousandth of the range.
    """

    kind: ClassVar[str] = "maximum"
    above: ClassVar[bool] = True


def _level(name: str, value: Any) -> Fraction:
    q = exact(name, value)
    if not (0 < q < 1 and q.denominator <= FINEST):
        raise DomainError(name, value, "a share in (0, 1), of at most 10^6 parts")
    return q


def _listed(name: str, values: Any) -> Sequence[Any]:
    if (
        isinstance(values, str)
        or not isinstance(values, Sequence)
        or not 1 <= len(cast("Sequence[Any]", values)) <= MOST
    ):
        raise DomainError(name, values, f"a list of 1 to {MOST} shares, such as [0.25, 0.5, 0.75]")
    return cast("Sequence[Any]", values)


def _step(q: Fraction, change: Change, _: GridPoints, part: Spend) -> SelectionStep:
    moved = change.l1 * max(q.numerator, q.denominator - q.numerator)
    return SelectionStep(Selection.costing(moved, part), q)


def _rows(design: Design, failure: float) -> float:
    candidates = _points_of(design).count
    steps = [step for step in design.steps if isinstance(step, SelectionStep)]
    return max(
        step.selection.error(candidates, failure) / step.quantile.denominator for step in steps
    )


def _points_of(design: Design) -> GridPoints:
    assert design.aggregation.bins is not None
    bins = design.aggregation.bins[1]
    assert isinstance(bins, GridPoints)
    return bins
