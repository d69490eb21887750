"""Sums and means of a column, its values clamped to declared ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpcompose.release.aggregation import Aggregation
from dpcompose.release.design import Design, Released
from dpcompose.release.grid import STEPS, FixedPointGrid
from dpcompose.release.interval import quotient_interval
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
