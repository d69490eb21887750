"""The value below which a given share of the rows lies, chosen among the points of a public grid."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from dpcompose.errors import DomainError
from dpcompose.release.aggregate import Aggregation
from dpcompose.release.decimals import exact
from dpcompose.release.design import Design, Released, SelectionStep
from dpcompose.release.grid import FixedPointGrid, GridPoints
from dpcompose.release.question import OfColumn, Values, of_numbers
from dpcompose.release.selection import Selection
from dpcompose.release.table import Table
from dpcompose.release.threshold import KeyThreshold

FINEST = 10**6


@dataclass(frozen=True)
class Quantile(OfColumn):
    """A quantile of a column, in all or in each group, by the exponential mechanism; NULL and NaN are left out.

    A candidate with l rows below and u above it, in a table with quantile q, has the score |(1 - q) l - q u|.

    Args:
        column: A column of numbers.
        q: The share, in (0, 1), such as 0.5 for the median; a fraction of at most 10^6 parts.
        lower: The least candidate; smaller values count as this.
        upper: The largest candidate; larger values count as this.
        granularity: The step between candidates, of which there are at most 100,001.

    Reference: [McSherryTalwar2007, Definition 2]
    """

    q: Any
    lower: Any
    upper: Any
    granularity: Any

    kind: ClassVar[str] = "quantile"

    def design(self, table: Table, spend: Mapping[str, Any] | None = None) -> Design:
        by, public = self._groups(table)
        column, q = of_numbers(table, self.column), exact("q", self.q)
        if not (0 < q < 1 and q.denominator <= FINEST):
            raise DomainError("q", self.q, "a share in (0, 1), of at most 10^6 parts")
        asked, grid = self._spend(spend), self._points(column.kind in ("integer", "boolean")).grid
        aggregation = Aggregation(by, public, bins=(self.column, GridPoints(grid)))
        bounds = table.bounds.within(aggregation.groups)
        change = bounds.change(max(q.numerator, q.denominator - q.numerator)).l1
        if public is None:
            KeyThreshold.require(asked)
        part = asked if public is not None else asked.share(Fraction(1, 2), delta=False)
        threshold = None
        if public is None:
            threshold = KeyThreshold.costing(table.bounds.presence, part.with_delta(asked.delta))
        described = self._described(by, public, column=self.column, q=str(q), **_ends(grid))
        chosen = SelectionStep(Selection.costing(change, part), q)
        return Design(
            table, aggregation, (chosen,), (0 if public else 1,), threshold, spend=asked, description=described
        )

    def _points(self, whole: bool) -> GridPoints:
        return GridPoints(FixedPointGrid.stated(self.lower, self.upper, self.granularity, whole=whole))

    def columns(self, design: Design, drawn: Released) -> tuple[Values, ...]:
        grid = _points_of(design).grid
        chosen = (grid.first + index for (index,) in drawn.released[0])
        if grid.granularity == 1:
            return (Values("quantile", "int64", tuple(chosen)),)
        return (Values("quantile", "double", tuple(grid.value(steps) for steps in chosen)),)

    def errors(self, design: Design, failure: float, columns: Sequence[Values]) -> float:
        """In rows: how much further the chosen candidate's score is from 0 than the best one's, a bound."""
        (step,) = design.steps
        assert isinstance(step, SelectionStep)
        return step.selection.error(_points_of(design).count, failure) / step.quantile.denominator


def _ends(grid: Any) -> dict[str, object]:
    return {"lower": str(grid.lower), "upper": str(grid.upper), "granularity": str(grid.granularity)}


def _points_of(design: Design) -> GridPoints:
    assert design.aggregation.bins is not None
    bins = design.aggregation.bins[1]
    assert isinstance(bins, GridPoints)
    return bins
