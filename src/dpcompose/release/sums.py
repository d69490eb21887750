"""Sums and means of a column, its values clamped to declared ends."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpcompose.release.aggregate import Aggregation
from dpcompose.release.design import Design, Released
from dpcompose.release.grid import FixedPointGrid
from dpcompose.release.question import OfColumn, Values, measured, noise_of, of_numbers
from dpcompose.release.table import Table


@dataclass(frozen=True)
class _Clamped(OfColumn):
    _: KW_ONLY
    lower: Any
    upper: Any
    granularity: Any = None

    def _grid(self, table: Table) -> FixedPointGrid:
        whole = of_numbers(table, self.column).kind in ("integer", "boolean")
        return FixedPointGrid.stated(self.lower, self.upper, self.granularity, whole=whole)

    def _spec(self, grid: FixedPointGrid) -> dict[str, object]:
        ends = {"lower": str(grid.lower), "upper": str(grid.upper), "granularity": str(grid.granularity)}
        return {"column": self.column, **ends}


@dataclass(frozen=True)
class Sum(_Clamped):
    """The sum of a column, in all or in each group; NULL and NaN add nothing.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this.
        upper: Larger values count as this.
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
class Mean(_Clamped):
    """The mean of a column, in all or in each group, and the noisy number of rows behind it; NULL and NaN are left out.

    Half of the amount is for the sum of distances from the middle of the range, half for the number of rows.

    Args:
        column: A column of numbers.
        lower: Smaller values count as this.
        upper: Larger values count as this.
        granularity: As for a sum.
    """

    kind: ClassVar[str] = "mean"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        asked, grid = self._spend(spend), self._grid(table)
        center = grid.middle
        aggregation = Aggregation(by, public, value=(self.column, grid, center))
        bounds = table.bounds.within(aggregation.groups)
        changes = [bounds.change(1), bounds.change(grid.largest(center))]
        return measured(table, aggregation, changes, asked, self._described(by, public, **self._spec(grid)))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        grid, counts, sums = _grid_of(design), drawn.released[0], drawn.released[1]
        means = tuple(self._mean(grid, total, count) for (count,), (total,) in zip(counts, sums, strict=True))
        return Values("mean", "double", means), Values("count", "int64", tuple(count for (count,) in counts))

    def _mean(self, grid: FixedPointGrid, total: int, count: int) -> float:
        steps = grid.middle + Fraction(total, max(count, 1))
        return grid.value(min(max(steps, Fraction(grid.first)), Fraction(grid.last)))

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> tuple[float, ...]:
        """For each row, given its released count n and mean: how far the mean of the rows kept is from it.

        With noise x on the sum and y on the count, n times the error is x - t y, t the true distance from the middle:
        an error e holds if e n is at least the quantile for every t within e of the released one. The largest such e
        is approached from above, so that every step is one.
        """
        grid = _grid_of(design)
        count, total = (noise_of(step) for step in design.steps)
        whole = grid.last - grid.first
        cells = columns[-2].cells if len(columns) > 1 else ()
        found: list[float] = []
        for at, number in enumerate(columns[-1].cells):
            center = abs(cells[at] / float(grid.granularity) - grid.middle) if cells else whole
            error = float(whole)
            for _ in range(20 if number >= 1 else 0):
                weight = min(center + error, grid.largest(grid.middle))
                better = total.error_beside(count, weight, failure) / number
                if not better < error * (1 - 1e-3):
                    break
                error = better
            found.append(min(grid.value(Fraction(error)), float(grid.upper - grid.lower)))
        return tuple(found)


def _grid_of(design: Design) -> FixedPointGrid:
    assert design.aggregation.value is not None
    return design.aggregation.value[1]
