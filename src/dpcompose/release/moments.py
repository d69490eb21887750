"""Sums, means, variances and ratios of columns, their values clamped to declared ends."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.aggregation import STEPS, Aggregation, FixedPointGrid, Term
from dpcompose.release.design import Design, Released
from dpcompose.release.noise import quotient_interval
from dpcompose.release.question import Interval, OfColumn, Values, measured, noise_of, of_numbers
from dpcompose.release.table import Table


@dataclass(frozen=True)
class Clamped(OfColumn):
    """A question about one column of numbers, clamped to declared ends.

    Args:
        lower: Smaller values count as this; by default the end that the catalog has for the column.
        upper: Larger values count as this; by default likewise.
        granularity: The step of the grid.
    """

    _: KW_ONLY
    lower: Any = None
    upper: Any = None
    granularity: Any = None

    steps: ClassVar[int] = STEPS
    """Into how many steps the range is divided at least, where no granularity is given."""

    def _grid(self, table: Table) -> FixedPointGrid:
        return grid_of(
            table, self.column, self.lower, self.upper, self.granularity, steps=self.steps
        )

    def _spec(self, grid: FixedPointGrid) -> dict[str, object]:
        return spec(self.column, grid)


def grid_of(
    table: Table, column: str, lower: Any, upper: Any, granularity: Any, *, steps: int = STEPS
) -> FixedPointGrid:
    """The grid of a column between two ends, as typed.

    Raises:
        DomainError: If it is no column of numbers, or an end or the granularity is outside its domain.
    """
    whole = of_numbers(table, column).kind in ("integer", "boolean")
    lower, upper = table.ends(column, lower, upper)
    return FixedPointGrid.stated(lower, upper, granularity, whole=whole, steps=steps)


def spec(column: str, grid: FixedPointGrid) -> dict[str, object]:
    """A column and its grid, as the ledger stores them."""
    ends = {
        "lower": str(grid.lower),
        "upper": str(grid.upper),
        "granularity": str(grid.granularity),
    }
    return {"column": column, **ends}


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
        by, public = self._groups(table)
        asked, grid = self._spend(spend), self._grid(table)
        aggregation = Aggregation(by, public, value=(self.column, grid, 0))
        change = table.bounds.within(aggregation.groups).change(grid.largest())
        described = self._described(by, public, **self._spec(grid))
        return measured(table, aggregation, [change], asked, described, first=1)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        grid = _grid_of(design)
        sums = (number for (number,) in drawn.released[0])
        if grid.granularity == 1:
            return (Values("sum", "int64", tuple(sums)),)
        return (Values("sum", "double", tuple(grid.value(number) for number in sums)),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        return _grid_of(design).value(noise_of(design.steps[0]).error(failure))


@dataclass(frozen=True)
class Mean(Clamped):
    """The mean of a column, in all or in each group, and the noisy number of rows behind it; NULL and NaN are left out.

    Half of the amount is for the sum of distances from the middle of the range, half for the number of rows.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this; by default the end that the catalog has for the column.
        upper: Larger values count as this; by default likewise.
        granularity: As for a sum.
    """

    kind: ClassVar[str] = "mean"
    foreseen: ClassVar[bool] = False

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, grid = self._spend(spend), self._grid(table)
        center = grid.middle
        aggregation = Aggregation(by, public, value=(self.column, grid, center))
        bounds = table.bounds.within(aggregation.groups)
        changes = [bounds.change(1), bounds.change(grid.largest(center))]
        return measured(
            table, aggregation, changes, asked, self._described(by, public, **self._spec(grid))
        )

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

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...]:
        """For each row, how far the mean of the rows kept is from the released one; from the count alone, a bound."""
        grid = _grid_of(design)
        if len(columns) > 1:
            low, high = self.interval(design, failure, columns)
            cells = columns[-2].cells
            return tuple(
                max(cell - least, most - cell)
                for least, cell, most in zip(low, cells, high, strict=True)
            )
        count, total = (noise_of(step) for step in design.steps)
        reach = total.error_beside(count, grid.largest(grid.middle), failure)
        most = float(grid.upper - grid.lower)
        return tuple(
            min(grid.value(Fraction(reach) / max(number, 1)), most) for number in columns[-1].cells
        )

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """Exact but for steps: the sum of distances over the number of rows, both of them noisy."""
        grid = _grid_of(design)
        count, total = (noise_of(step) for step in design.steps)
        size, ends = float(grid.granularity), (grid.first - grid.middle, grid.last - grid.middle)
        found = [
            quotient_interval(
                ((mean / size - grid.middle) * number, number), (total, count), ends, failure
            )
            for mean, number in zip(columns[-2].cells, columns[-1].cells, strict=True)
        ]
        low, high = (tuple((each[end] + grid.middle) * size for each in found) for end in (0, 1))
        return low, high


def _grid_of(design: Design) -> FixedPointGrid:
    assert design.aggregation.value is not None
    return design.aggregation.value[1]


SQUARED_STEPS = 2**10
"""The steps of a range whose numbers are squared: rounding to them moves a variance by a millionth of its largest."""


@dataclass(frozen=True)
class Variance(Clamped):
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
    foreseen: ClassVar[bool] = False
    steps: ClassVar[int] = SQUARED_STEPS

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, grid = self._spend(spend), self._grid(table)
        first = Term(self.column, grid, grid.middle)
        squares = Term(self.column, grid, grid.middle, power=2, shift=first.largest**2 // 2)
        aggregation = Aggregation(by, public, terms=(first, squares))
        bounds = table.bounds.within(aggregation.groups)
        changes = [bounds.change(size) for size in (1, first.largest, squares.largest)]
        described = self._described(by, public, **self._spec(grid))
        return measured(table, aggregation, changes, asked, described, weights=(1, 1, 2))

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

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...]:
        """For each row, how far the released one is from that of the rows kept; from the count alone, a bound."""
        if len(columns) < 3:
            return tuple(self._most(design, failure, number) for number in columns[-1].cells)
        low, high = self.interval(design, failure, columns)
        return tuple(
            max(most - cell, cell - least)
            for least, cell, most in zip(low, columns[-3].cells, high, strict=True)
        )

    def _most(self, design: Design, failure: float, number: int) -> float:
        """P / n is off by at most its noise and that of n; so is the mean, and its square by 2 h of that."""
        first, squares = design.aggregation.terms
        count, one, two = (noise_of(step) for step in design.steps)
        power = two.error_beside(count, squares.largest, failure / 2)
        mean = one.error_beside(count, first.largest, failure / 2)
        most = min((power + 2 * first.largest * mean) / max(number, 1), float(first.largest**2))
        return self._shown(most * float(first.grid.granularity) ** 2)

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """From an interval of the mean of squares and one of the mean, each for half of the failure probability.

        Where what was released was cut off at an end of what is possible, both intervals become no narrower by that.
        """
        first, squares = design.aggregation.terms
        size, far = float(first.grid.granularity), first.largest
        count, one, two = (noise_of(step) for step in design.steps)
        found: list[tuple[float, float]] = []
        for cell, mean, number in zip(*(each.cells for each in columns[-3:]), strict=True):
            center, variance = mean / size - first.center, self._variance(cell) / (size * size)
            power = (variance + center * center - squares.shift) * number, number
            around = quotient_interval(
                power, (two, count), (-squares.shift, far * far - squares.shift), failure / 2
            )
            ends = first.grid.first - first.center, first.grid.last - first.center
            low, high = quotient_interval(
                (center * number, number), (one, count), ends, failure / 2
            )
            most, least = (
                max(low * low, high * high),
                0.0 if low <= 0 <= high else min(low * low, high * high),
            )
            # No variance in a range of 2 h is above h^2.
            within = [
                min(max(each, 0.0), far * far) * size * size
                for each in (around[0] + squares.shift - most, around[1] + squares.shift - least)
            ]
            found.append((self._shown(within[0]), self._shown(within[1])))
        return tuple(low for low, _ in found), tuple(high for _, high in found)

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
class Ratio(OfColumn):
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
    foreseen: ClassVar[bool] = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check.line("per", self.per)

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        over = grid_of(table, self.column, self.lower, self.upper, self.granularity)
        under = grid_of(table, self.per, self.per_lower, self.per_upper, self.per_granularity)
        if under.lower < 0:
            raise DomainError(
                "per_lower",
                self.per_lower,
                "a number >= 0, so that no sum is divided by less than 0",
            )
        asked, terms = self._spend(spend), (Term(self.column, over), Term(self.per, under))
        aggregation = Aggregation(by, public, terms=terms)
        bounds = table.bounds.within(aggregation.groups)
        changes = [bounds.change(term.largest) for term in terms]
        described = self._described(
            by, public, **spec(self.column, over), per=spec(self.per, under)
        )
        return measured(table, aggregation, changes, asked, described, first=1)

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        over, under = (term.grid for term in design.aggregation.terms)
        sums = [
            (over.value(one), under.value(other))
            for (one,), (other,) in zip(*drawn.released, strict=True)
        ]
        least = under.value(1)
        ratios = tuple(one / max(other, least) for one, other in sums)
        return Values("ratio", "double", ratios), Values(
            f"sum of {self.per}", "double", tuple(other for _, other in sums)
        )

    def errors(
        self, design: Design, failure: float, columns: Sequence[Values]
    ) -> tuple[float, ...]:
        """For each row, how far the ratio of the exact sums is from the released one; perhaps infinite.

        Raises:
            UnsupportedError: Before the answer.
        """
        if len(columns) < 2:
            raise UnsupportedError(
                "the error of a ratio, quoted", "it depends on both sums", "The answer states it"
            )
        low, high = self.interval(design, failure, columns)
        return tuple(
            max(most - cell, cell - least)
            for least, cell, most in zip(low, columns[-2].cells, high, strict=True)
        )

    def interval(self, design: Design, failure: float, columns: Sequence[Values]) -> Interval:
        """Exact but for steps; endless where the lower sum may be 0."""
        over, under = (term.grid for term in design.aggregation.terms)
        noises = noise_of(design.steps[0]), noise_of(design.steps[1])
        unit = float(over.granularity / under.granularity)
        found: list[tuple[float, float]] = []
        for ratio, sum in zip(columns[-2].cells, columns[-1].cells, strict=True):
            number = round(sum / float(under.granularity))
            above, below = (noise.error(failure / 4) for noise in noises)
            if number <= below:
                found.append((-math.inf, math.inf))
                continue
            # Beyond this, |a - t b| is larger than |x - t y| but for half of the failure probability.
            far = (abs(ratio / unit * number) + above + 1) / (number - below)
            low, high = quotient_interval(
                (ratio / unit * number, number), noises, (-far, far), failure
            )
            found.append((low * unit, high * unit))
        return tuple(low for low, _ in found), tuple(high for _, high in found)
