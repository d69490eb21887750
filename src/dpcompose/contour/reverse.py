"""What faces a variable: the same pairs in the other order, seen at the orders and on the nodes of the first."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcompose.contour.contour import Contour, centered, kernel_peak
from dpcompose.contour.decaying import beyond, blocks
from dpcompose.contour.saddle import Chart
from dpcompose.contour.transform import Transform, curve, facing, near_normal, survey
from dpcompose.numerics.elementary import Reals


def facing_alike(transform: Transform, chart: Chart, order: float) -> bool:
    """Whether what faces the transform is so much like it that one moment will not tell which has the larger g."""
    other = facing(transform)
    if other is None:
        return False
    at = min(int(np.searchsorted(chart.orders, order)), len(chart.orders) - 1)
    return float(curve(other, chart.orders).log_m[at] - chart.curve.log_m[at]) > -1.8


@dataclass(frozen=True)
class Seen:
    """What one table of moments says of g at a value, for planning.

    Args:
        chart: The orders, with the one of the least e^(-order x) M(order) as the center.
        level: log of that at each order, with the largest value of the kernel, shape (n,).
    """

    chart: Chart
    level: Reals

    @property
    def order(self) -> float:
        """The best order."""
        return self.chart.order

    @property
    def chernoff(self) -> float:
        """About log of the bound by its moment."""
        return float(self.level[self.chart.at])

    def serves(self, order: float) -> bool:
        """Whether a line through this order loses little."""
        near = min(int(np.searchsorted(self.chart.orders, order)), len(self.level) - 1)
        return bool(self.level[near] <= self.chernoff + 2)


def seen_beside(transform: Transform, chart: Chart, x: float) -> Seen:
    """The moments of a transform at the orders of another's chart."""
    known = curve(transform, chart.orders)
    level = known.log_m - chart.orders * x + kernel_peak(chart.orders)
    level = np.where(np.isnan(level), np.inf, level)
    return Seen(Chart(chart.orders, known, int(level.argmin())), level)


def draw_beside(transform: Transform, contour: Contour) -> Contour | None:
    """The nodes of another variable's line for this one, good for upper ends to a percent; None if that fails."""
    if contour.name != "contour" or contour.frequency[-1] != contour.step * (contour.nodes - 1):
        return None  # nodes that do not matter to the other variable may matter to this one
    edges = beyond(transform, contour.step, contour.nodes)
    line, log_bound = None, near_normal(transform, contour.order, edges, together=True)
    if log_bound is None:
        line, log_bound = survey(transform, contour.order, contour.frequency, edges, together=True)
    tail = float(blocks(log_bound, edges, contour.step).sum())
    if line is None:
        line = transform.line(contour.order, contour.frequency)
    tail = 2 * tail * (1 + 1e-9) / contour.step
    if not tail < 1e-3 / (contour.order * (contour.order + 1)):
        return None
    log, scale = centered(line.log)
    return replace(contour, log=log, error=line.error, scale=scale, tail=tail, outer=(), maximum=transform.maximum)
