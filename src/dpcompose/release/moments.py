"""Sums, means, variances and ratios of columns, their values clamped to declared ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregation import Aggregation, FixedPointGrid, Term
from dpcompose.release.design import Design, Released
from dpcompose.release.noise import quotient_interval
from dpcompose.release.question import Clamped, OfColumn, Quotient, Values, grid_of, on_grid, spec
from dpcompose.release.table import Table


@dataclass(frozen=True)
class Sum(Clamped):
    """The sum of a column, in all or in each group; NULL and NaN add nothing.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the end that the catalog has for the column.
        upper: Larger values count as this; by default likewise.
        granularity: The step of the grid on which values are added up exactly; by default 1 for integers, else about a
            millionth of the range.
    """

    kind: ClassVar[str] = "sum"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        grid = self._grid(table)
        what = Aggregation(*self._groups(table), terms=(Term(self.column, grid),))
        change = table.bounds.within(what.groups).change(grid.largest())
        return self._measured(table, spend, what, [change], first=1, **self._spec(grid))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        return (on_grid("sum", _grid_of(design), (number for (number,) in drawn.released[0])),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return _grid_of(design).value(design.noises[0].error(failure))


@dataclass(frozen=True)
class Mean(Clamped, Quotient):
    """The mean of a column, in all or in each group, and the noisy number of rows behind it; NULL and NaN are left out.

    Half of the amount is for the sum of distances from the middle of the range, half for the number of rows.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the end that the catalog has for the column.
        upper: Larger values count as this; by default likewise.
        granularity: As for a sum.
    """

    kind: ClassVar[str] = "mean"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        grid = self._grid(table)
        term = Term(self.column, grid, grid.middle)
        what = Aggregation(*self._groups(table), terms=(term,))
        bounds = table.bounds.within(what.groups)
        changes = [bounds.change(1), bounds.change(term.largest)]
        return self._measured(table, spend, what, changes, **self._spec(grid))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        grid, counts, sums = _grid_of(design), drawn.released[0], drawn.released[1]
        means = tuple(
            self._mean(grid, total, count) for (count,), (total,) in zip(counts, sums, strict=True)
        )
        return Values("mean", "double", means), Values(
            "count", "int64", tuple(count for (count,) in counts)
        )

    def _mean(self, grid: FixedPointGrid, total: int, count: int) -> float:
        steps = grid.middle + Fraction(total, max(count, 1))
        return grid.value(min(max(steps, Fraction(grid.first)), Fraction(grid.last)))

    def most(self, design: Design, failure: float, count: int) -> float:
        grid, (number, total) = _grid_of(design), design.noises
        reach = total.error_beside(number, grid.largest(grid.middle), failure)
        return min(grid.value(Fraction(reach) / max(count, 1)), float(grid.upper - grid.lower))

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """Exact but for steps: the sum of distances over the number of rows, both of them noisy."""
        (mean, number), grid = released, _grid_of(design)
        (count, total), size = design.noises, float(grid.granularity)
        sums = (mean / size - grid.middle) * number, number
        ends = grid.first - grid.middle, grid.last - grid.middle
        low, high = quotient_interval(sums, (total, count), ends, failure)
        return (low + grid.middle) * size, (high + grid.middle) * size


def _grid_of(design: Design) -> FixedPointGrid:
    return design.aggregation.terms[0].grid


SQUARED_STEPS = 2**10
"""The steps of a range whose numbers are squared: rounding to them moves a variance by a millionth of its largest."""


@dataclass(frozen=True)
class Variance(Clamped, Quotient):
    """The variance of a column, in all or in each group, with the mean and the noisy number of rows; NULL is left out.

    A quarter of the amount is for the number of rows, a quarter for the sum of distances d from the middle of the
    range, half for the sum of their squares, which are centered too: d^2 - h^2 / 2, with h half of the range.
    The variance is that of all rows kept: the mean of squares less the square of the mean.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the end that the catalog has for the column.
        upper: Larger values count as this; by default likewise.
        granularity: The step of the grid; by default 1 for integers, else about a thousandth of the range.
    """

    kind: ClassVar[str] = "variance"
    steps: ClassVar[int] = SQUARED_STEPS

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        grid = self._grid(table)
        first = Term(self.column, grid, grid.middle)
        squares = Term(self.column, grid, grid.middle, power=2, shift=first.largest**2 // 2)
        what = Aggregation(*self._groups(table), terms=(first, squares))
        bounds = table.bounds.within(what.groups)
        changes = [bounds.change(size) for size in (1, first.largest, squares.largest)]
        return self._measured(table, spend, what, changes, weights=(1, 1, 2), **self._spec(grid))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        first, squares = design.aggregation.terms
        size, far = float(first.grid.granularity), first.largest
        found: list[tuple[float, float, int]] = []
        for (number,), (total,), (power,) in zip(*drawn.released, strict=True):
            rows = max(number, 1)
            mean = min(
                max(total / rows, first.grid.first - first.center), first.grid.last - first.center
            )
            variance = min(max(power / rows + squares.shift - mean * mean, 0.0), far * far)
            found.append(
                (self._shown(variance * size * size), (mean + first.center) * size, number)
            )
        variances, means, counts = zip(*found, strict=True) if found else ((), (), ())
        name = self.kind.replace(" ", "_")
        return (
            Values(name, "double", variances),
            Values("mean", "double", means),
            Values("count", "int64", counts),
        )

    def most(self, design: Design, failure: float, count: int) -> float:
        """P / n is off by at most its noise and that of n; so is the mean, and its square by 2 h of that."""
        (first, squares), (number, one, two) = design.aggregation.terms, design.noises
        power = two.error_beside(number, squares.largest, failure / 2)
        mean = one.error_beside(number, first.largest, failure / 2)
        most = min((power + 2 * first.largest * mean) / max(count, 1), float(first.largest**2))
        return self._shown(most * float(first.grid.granularity) ** 2)

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """From an interval of the mean of squares and one of the mean, each for half of the failure probability.

        Where what was released was cut off at an end of what is possible, both intervals become no narrower by that.
        """
        (cell, mean, number), (count, one, two) = released, design.noises
        first, squares = design.aggregation.terms
        size, far = float(first.grid.granularity), first.largest
        center, variance = mean / size - first.center, self._variance(cell) / (size * size)
        power = (variance + center * center - squares.shift) * number, number
        ends = -squares.shift, far * far - squares.shift
        around = quotient_interval(power, (two, count), ends, failure / 2)
        ends = first.grid.first - first.center, first.grid.last - first.center
        low, high = quotient_interval((center * number, number), (one, count), ends, failure / 2)
        most = max(low * low, high * high)
        least = 0.0 if low <= 0 <= high else min(low * low, high * high)
        # No variance in a range of 2 h is above h^2.
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
        lower: Smaller values count as this; by default the end that the catalog has for the column.
        upper: Larger values count as this; by default likewise.
        granularity: As for a variance.
    """

    kind: ClassVar[str] = "standard deviation"

    def _shown(self, variance: float) -> float:
        return math.sqrt(variance)

    def _variance(self, shown: float) -> float:
        return shown * shown


@dataclass(frozen=True)
class Ratio(OfColumn, Quotient):
    """The sum of one column over the sum of another, in all or in each group, and the lower sum; no NULL is in either.

    Half of the amount is for either sum. The share of rows for which something holds is the mean of a truth value.

    Args:
        column: The column whose sum is divided.
        per: The column whose sum it is divided by.
        lower: Smaller values of `column` count as this; ends that are not given are the catalog's.
        upper: Larger values of `column` count as this.
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

    def __post_init__(self) -> None:
        super().__post_init__()
        check.line("per", self.per)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        over = grid_of(table, self.column, self.lower, self.upper, self.granularity)
        under = grid_of(table, self.per, self.per_lower, self.per_upper, self.per_granularity)
        if under.lower < 0:
            domain = "a number >= 0, so that no sum is divided by less than 0"
            raise DomainError("per_lower", self.per_lower, domain)
        terms = Term(self.column, over), Term(self.per, under)
        what = Aggregation(*self._groups(table), terms=terms)
        bounds = table.bounds.within(what.groups)
        changes, specs = [bounds.change(term.largest) for term in terms], spec(self.column, over)
        return self._measured(
            table, spend, what, changes, first=1, **specs, per=spec(self.per, under)
        )

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        over, under = (term.grid for term in design.aggregation.terms)
        sums = [
            (over.value(one), under.value(other))
            for (one,), (other,) in zip(*drawn.released, strict=True)
        ]
        ratios = tuple(one / max(other, under.value(1)) for one, other in sums)
        below = tuple(other for _, other in sums)
        return Values("ratio", "double", ratios), Values(f"sum of {self.per}", "double", below)

    def most(self, design: Design, failure: float, count: int) -> float:
        what, reason = "the error of a ratio, quoted", "it depends on both sums"
        raise UnsupportedError(what, reason, "The answer states it")

    def ends(self, design: Design, failure: float, *released: Any) -> tuple[float, float]:
        """Exact but for steps; endless where the lower sum may be 0."""
        (ratio, below), (noise, other) = released, design.noises
        over, under = (term.grid for term in design.aggregation.terms)
        unit = float(over.granularity / under.granularity)
        number = round(below / float(under.granularity))
        if number <= other.error(failure / 4):
            return -math.inf, math.inf
        # Beyond this, |a - t b| is larger than |x - t y| but for half of the failure probability.
        far = abs(ratio / unit * number) + noise.error(failure / 4) + 1
        far /= number - other.error(failure / 4)
        sums = ratio / unit * number, number
        low, high = quotient_interval(sums, (noise, other), (-far, far), failure)
        return low * unit, high * unit
