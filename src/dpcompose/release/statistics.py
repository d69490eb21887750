"""Questions about columns whose values are clamped to a declared range: sums, means, variances,
ratios and quantiles.

Quantiles, minimum and maximum are chosen among the points of a public grid, by the number of rows
below them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, cast

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregation import Aggregation, FixedPointGrid, GridPoints, Term
from dpcompose.release.columns import Change
from dpcompose.release.design import Design, RankStep, Released, ReleaseStep, SelectionStep
from dpcompose.release.noise import Noise, Selection, Spend, exact, quotient_interval
from dpcompose.release.question import (
    Clamped,
    Headings,
    Interval,
    OfColumn,
    Quotient,
    Values,
    grid_of,
    on_grid,
    spec,
)
from dpcompose.release.table import Table


@dataclass(frozen=True)
class Sum(Clamped):
    """The sum of a column, in all or in each group; NULL and NaN add nothing.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the catalog's lower end.
        upper: Larger values count as this; by default the catalog's upper end.
        granularity: The step of the grid on which values are summed exactly; by default 1 for
            integers, else about a millionth of the range.
    """

    kind: ClassVar[str] = "sum"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        grid = self._grid(table)
        return self._summed(table, spend, [Term(self.column, grid)], **spec(self.column, grid))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (on_grid("sum", _grid_of(design), (number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return _grid_of(design).value(design.noises[0].error(failure))


@dataclass(frozen=True)
class Mean(Clamped, Quotient):
    """The mean of a column, in all or in each group, with the noisy number of rows; NULL and NaN
    are left out.

    Half of the spend pays for the sum of distances from the middle of the range, half for the
    number of rows.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the catalog's lower end.
        upper: Larger values count as this; by default the catalog's upper end.
        granularity: As for a sum.
    """

    kind: ClassVar[str] = "mean"
    headings: ClassVar[Headings] = (("mean", "double"), ("count", "int64"))

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        grid = self._grid(table)
        terms = [Term(self.column, grid, grid.middle)]
        return self._summed(table, spend, terms, counted=True, **spec(self.column, grid))

    def row(self, design: Design, *numbers: int) -> tuple[float, ...]:
        (count, total), grid = numbers, _grid_of(design)
        steps = grid.middle + Fraction(total, max(count, 1))
        return grid.value(min(max(steps, Fraction(grid.first)), Fraction(grid.last))), count

    def most(self, design: Design, failure: float, count: int) -> float:
        grid, (number, total) = _grid_of(design), design.noises
        reach = total.error_with(number, grid.largest(grid.middle), failure)
        return min(grid.value(Fraction(reach) / max(count, 1)), float(grid.upper - grid.lower))

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """An interval for the quotient of two noisy numbers, the sum of distances and the count;
        exact up to steps.
        """
        (mean, number), grid, (count, total) = released, _grid_of(design), design.noises
        low, high = _ends_of_mean(grid, mean, number, (total, count), failure)
        size = float(grid.granularity)
        return (low + grid.middle) * size, (high + grid.middle) * size


def _grid_of(design: Design) -> FixedPointGrid:
    return design.aggregation.terms[0].grid


def _ends_of_mean(
    grid: FixedPointGrid, mean: float, number: int, noises: tuple[Noise, Noise], failure: float
) -> tuple[float, float]:
    """Return the interval of a mean, in steps from the middle of its grid."""
    center = mean / float(grid.granularity) - grid.middle
    ends = grid.first - grid.middle, grid.last - grid.middle
    return quotient_interval((center * number, number), noises, ends, failure)


SQUARED_STEPS = 2**10
"""Grid steps for squares, at least: rounding changes a variance by a millionth of its maximum."""


@dataclass(frozen=True)
class Variance(Clamped, Quotient):
    """The variance of a column, in all or in each group, with the mean and the noisy number of
    rows; NULL is left out.

    A quarter of the spend pays for the number of rows, a quarter for the sum of distances d from
    the middle of the range, half for the sum of centered squares d^2 - h^2 / 2, with h half of the
    range. The variance is that of all rows kept: the mean of squares minus the square of the mean.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the catalog's lower end.
        upper: Larger values count as this; by default the catalog's upper end.
        granularity: The step of the grid; by default 1 for integers, else about a thousandth of the
            range.
    """

    kind: ClassVar[str] = "variance"
    steps: ClassVar[int] = SQUARED_STEPS
    headings: ClassVar[Headings] = (
        ("{self.heading}", "double"),
        ("mean", "double"),
        ("count", "int64"),
    )

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        grid = self._grid(table)
        first = Term(self.column, grid, grid.middle)
        squares = Term(self.column, grid, grid.middle, power=2, shift=first.largest**2 // 2)
        described = spec(self.column, grid)
        return self._summed(
            table, spend, [first, squares], counted=True, weights=(1, 1, 2), **described
        )

    def row(self, design: Design, *numbers: int) -> tuple[float, ...]:
        (number, total, power), (first, squares) = numbers, design.aggregation.terms
        size, far, rows = float(first.grid.granularity), first.largest, max(number, 1)
        least, most = first.grid.first - first.center, first.grid.last - first.center
        mean = min(max(total / rows, least), most)
        variance = min(max(power / rows + squares.shift - mean * mean, 0.0), far * far)
        return self._shown(variance * size * size), (mean + first.center) * size, number

    def most(self, design: Design, failure: float, count: int) -> float:
        """A noisy sum P / n errs by at most its noise plus that of n; so does the mean, and its
        square by 2 h times that.
        """
        (first, squares), (number, one, two) = design.aggregation.terms, design.noises
        power = two.error_with(number, squares.largest, failure / 2)
        mean = one.error_with(number, first.largest, failure / 2)
        most = min((power + 2 * first.largest * mean) / max(count, 1), float(first.largest**2))
        return self._shown(most * float(first.grid.granularity) ** 2)

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """Combine an interval of the mean of squares and one of the mean, each for half of the
        failure probability.

        If a released value was clamped to what is possible, neither interval becomes narrower by
        that.
        """
        (cell, mean, number), (count, one, two) = released, design.noises
        first, squares = design.aggregation.terms
        size, far = float(first.grid.granularity), first.largest
        center, variance = mean / size - first.center, self._variance(cell) / (size * size)
        power = (variance + center * center - squares.shift) * number, number
        ends = -squares.shift, far * far - squares.shift
        around = quotient_interval(power, (two, count), ends, failure / 2)
        low, high = _ends_of_mean(first.grid, mean, number, (one, count), failure / 2)
        most = max(low * low, high * high)
        least = 0.0 if low <= 0 <= high else min(low * low, high * high)
        # No variance in a range of length 2 h exceeds h^2.
        within = [
            min(max(each, 0.0), far * far) * size * size
            for each in (around[0] + squares.shift - most, around[1] + squares.shift - least)
        ]
        return self._shown(within[0]), self._shown(within[1])

    def _shown(self, variance: float) -> float:
        return variance

    def _variance(self, shown: float) -> float:
        return shown


@dataclass(frozen=True)
class StandardDeviation(Variance):
    """The square root of a `Variance`, in the unit of the column, at the same price.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the catalog's lower end.
        upper: Larger values count as this; by default the catalog's upper end.
        granularity: As for a variance.
    """

    kind: ClassVar[str] = "standard deviation"

    def _shown(self, variance: float) -> float:
        return math.sqrt(variance)

    def _variance(self, shown: float) -> float:
        return shown * shown


@dataclass(frozen=True)
class Ratio(OfColumn, Quotient):
    """The quotient of the sums of two columns, in all or in each group, with the noisy sum of the
    divisor. Rows with a NULL in either are left out.

    Half of the spend pays for each sum. The fraction of rows that satisfy a condition is the mean
    of a truth value.

    Args:
        column: The column whose sum is divided.
        per: The column whose sum is the divisor.
        lower: Smaller values of `column` count as this; by default the catalog's lower end.
        upper: Larger values of `column` count as this; by default the catalog's upper end.
        per_lower: Smaller values of `per` count as this; >= 0.
        per_upper: Larger values of `per` count as this.
        granularity: The step of the grid of `column`, as for a sum.
        per_granularity: The step of the grid of `per`.
    """

    _: KW_ONLY
    per: str
    lower: Any = None
    upper: Any = None
    per_lower: Any = None
    per_upper: Any = None
    granularity: Any = None
    per_granularity: Any = None

    kind: ClassVar[str] = "ratio"
    headings: ClassVar[Headings] = (("ratio", "double"), ("sum of {self.per}", "double"))

    def __post_init__(self) -> None:
        super().__post_init__()
        check.line("per", self.per)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        over = grid_of(table, self.column, self.lower, self.upper, self.granularity)
        under = grid_of(table, self.per, self.per_lower, self.per_upper, self.per_granularity)
        if under.lower < 0:
            domain = "a number >= 0, so that no sum is divided by less than 0"
            raise DomainError("per_lower", self.per_lower, domain)
        terms = [Term(self.column, over), Term(self.per, under)]
        described = spec(self.column, over)
        return self._summed(table, spend, terms, **described, per=spec(self.per, under))

    def row(self, design: Design, *numbers: int) -> tuple[float, ...]:
        over, under = (term.grid for term in design.aggregation.terms)
        one, other = over.value(numbers[0]), under.value(numbers[1])
        return one / max(other, under.value(1)), other

    def most(self, design: Design, failure: float, count: int) -> float:
        what, reason = "the error of a ratio, quoted", "it depends on both sums"
        raise UnsupportedError(what, reason, "The answer states it")

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """An interval for the quotient of two noisy sums; exact up to steps, and infinite if the
        divisor may be 0.
        """
        (ratio, below), (noise, other) = released, design.noises
        over, under = (term.grid for term in design.aggregation.terms)
        unit = float(over.granularity / under.granularity)
        number = round(below / float(under.granularity))
        if number <= other.error(failure / 4):
            return -math.inf, math.inf
        # For quotients beyond this, |a - t b| exceeds |x - t y| except with half of the failure
        # probability.
        far = abs(ratio / unit * number) + noise.error(failure / 4) + 1
        far /= number - other.error(failure / 4)
        sums = ratio / unit * number, number
        low, high = quotient_interval(sums, (noise, other), (-far, far), failure)
        return low * unit, high * unit


FINEST, MOST = 10**6, 100
CANDIDATES = 1_000
"""The least number of candidates, without a granularity and for columns without integers."""


@dataclass(frozen=True)
class Chosen(Clamped):
    """A question answered by choosing points of a public grid for each group; `lower` and `upper`
    are the extreme candidates.

    There are at most 100,001 candidates; by default their step is 1 for integers, else about a
    thousandth of the range.
    """

    in_ranks: ClassVar[bool] = True
    steps: ClassVar[int] = CANDIDATES

    def _chosen(
        self, table: Table, spend: Mapping[str, Any] | None,
        makers: Sequence[Callable[[Change, GridPoints, Spend], ReleaseStep]], **described: Any,
    ) -> Design:  # fmt: skip
        """Return the design of several choices, each for an equal part of the spend."""
        points = GridPoints(self._grid(table))
        what = Aggregation(*self._groups(table), bins=(self.column, points))
        change = table.bounds.within(what.groups).change(1)
        choices = [partial(make, change, points) for make in makers]
        measures, specs = (int(what.public is None),) * len(makers), spec(self.column, points.grid)
        return self._in_parts(
            table, self._spend(spend), what, choices, measures, **specs, **described
        )

    def _points(self, name: str, design: Design, drawn: Sequence[tuple[int, ...]]) -> Values:
        grid = _points_of(design).grid
        return on_grid(name, grid, (grid.first + index for (index,) in drawn))

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """Return a bound, in rows, on how much the worst choice's score exceeds the best score."""
        candidates = _points_of(design).count
        steps = [step for step in design.steps if isinstance(step, SelectionStep)]
        return max(
            step.selection.error(candidates, failure) / step.quantile.denominator for step in steps
        )

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """NaN: the error is in ranks, and the distance between neighboring values is private."""
        nothing = (math.nan,) * len(columns[-1].cells)
        return nothing, nothing


@dataclass(frozen=True)
class Quantile(Chosen):
    """A quantile of a column, in all or in each group; NULL and NaN are left out.

    It is chosen by permute-and-flip, or for a spend in rho by the exponential mechanism. A
    candidate with l rows below and u rows above has the score |(1 - q) l - q u|; small scores are
    likely.

    Args:
        column: A column of numbers.
        q: The quantile in (0, 1), such as 0.5 for the median; a fraction with denominator at most
            10^6.
        lower: The least candidate; smaller values count as this; by default the catalog's lower
            end.
        upper: The largest candidate; larger values count as this; by default the catalog's upper
            end.
        granularity: The step between candidates, of which there are at most 100,001; by default 1
            for integers, else about a thousandth of the range.

    Reference: [McKennaSheldon2020, Algorithm 1], [McSherryTalwar2007, Definition 2]
    """

    q: Any

    kind: ClassVar[str] = "quantile"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        q = _level("q", self.q)
        return self._chosen(table, spend, [partial(_step, q)], q=str(q))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (self._points("quantile", design, drawn.released[0]),)


@dataclass(frozen=True)
class Quantiles(Chosen):
    """Several quantiles of a column, in all or in each group, in increasing order; each gets an
    equal part of the spend.

    Each is chosen as a `Quantile`; sorting them afterwards makes none worse.

    Args:
        column: A column of numbers.
        qs: At most 100 increasing numbers, each as in `Quantile`.
        lower: The least candidate; smaller values count as this; by default the catalog's lower
            end.
        upper: The largest candidate; larger values count as this; by default the catalog's upper
            end.
        granularity: The step between candidates, of which there are at most 100,001; by default 1
            for integers, else about a thousandth of the range.
    """

    qs: Sequence[Any]

    kind: ClassVar[str] = "quantiles"
    main: ClassVar[str] = "quantile"
    error_column: ClassVar[int] = 1

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        shares = [_level(f"qs[{place}]", each) for place, each in enumerate(_listed("qs", self.qs))]
        if not all(one < other for one, other in pairwise(shares)):
            raise DomainError("qs", list(self.qs), "increasing quantiles")

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


@dataclass(frozen=True)
class Minimum(Chosen):
    """A value with few rows below it, in all or in each group; NULL and NaN are left out.

    The exact minimum belongs to one unit, so it is never released. The question aims at the rank k
    for which a candidate with no row at or below it is chosen with probability at most 1 / 20. In a
    table with fewer than k rows the answer is near the largest value.

    Args:
        column: A column of numbers.
        lower: The least candidate; smaller values count as this; by default the catalog's lower
            end.
        upper: The largest candidate; larger values count as this; by default the catalog's upper
            end.
        granularity: The step between candidates, of which there are at most 100,001; by default 1
            for integers, else about a thousandth of the range.
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
        """Return a bound, in rows, on the distance of the chosen value's rank from 1, if there are
        enough rows.
        """
        (step,) = design.steps
        assert isinstance(step, RankStep)
        return step.rank + step.selection.error(_points_of(design).count, failure)


@dataclass(frozen=True)
class Maximum(Minimum):
    """A value with few rows above it, in all or in each group: the mirror image of `Minimum`.

    Args:
        column: A column of numbers.
        lower: The least candidate; smaller values count as this; by default the catalog's lower
            end.
        upper: The largest candidate; larger values count as this; by default the catalog's upper
            end.
        granularity: The step between candidates, of which there are at most 100,001; by default 1
            for integers, else about a thousandth of the range.
    """

    kind: ClassVar[str] = "maximum"
    above: ClassVar[bool] = True


def _level(name: str, value: Any) -> Fraction:
    q = exact(name, value)
    if not (0 < q < 1 and q.denominator <= FINEST):
        raise DomainError(name, value, "a number in (0, 1), of at most 10^6 parts")
    return q


def _listed(name: str, values: Any) -> Sequence[Any]:
    if (
        isinstance(values, str)
        or not isinstance(values, Sequence)
        or not 1 <= len(cast("Sequence[Any]", values)) <= MOST
    ):
        raise DomainError(
            name, values, f"a list of 1 to {MOST} quantiles, such as [0.25, 0.5, 0.75]"
        )
    return cast("Sequence[Any]", values)


def _step(q: Fraction, change: Change, _: GridPoints, part: Spend) -> SelectionStep:
    moved = change.l1 * max(q.numerator, q.denominator - q.numerator)
    return SelectionStep(Selection.costing(moved, part), q)


def _points_of(design: Design) -> GridPoints:
    assert design.aggregation.bins is not None
    bins = design.aggregation.bins[1]
    assert isinstance(bins, GridPoints)
    return bins
