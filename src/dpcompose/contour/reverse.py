"""The reverse of a variable, for the same pairs in the other order, on the orders and nodes of the first one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from dpcompose.contour.contour import Contour, centered, kernel_peak
from dpcompose.contour.quadrature import block_sums, tail_edges
from dpcompose.contour.saddle import Chart
from dpcompose.contour.transform import Transform
from dpcompose.numerics.elementary import Reals


@dataclass(frozen=True)
class MomentLevels:
    """About how small each moment makes g at one x, for planning.

    Args:
        chart: The orders, with the best one as the center.
        level: log of e^(-order x) M(order) and of the largest value of the kernel, shape (n,).
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
        nearest = min(int(np.searchsorted(self.chart.orders, order)), len(self.level) - 1)
        return bool(self.level[nearest] <= self.chernoff + 2)


def moment_levels(transform: Transform, chart: Chart, x: float) -> MomentLevels:
    """The moments of a transform at the orders of its reverse's chart."""
    known = transform.curve(chart.orders)
    level = known.log_m - chart.orders * x + kernel_peak(chart.orders)
    level = np.where(np.isnan(level), np.inf, level)
    return MomentLevels(Chart(chart.orders, known, int(level.argmin())), level)


def draw_on(transform: Transform, contour: Contour) -> Contour | None:
    """The nodes of the reverse's line for this variable, good for upper ends to a percent; None if that fails."""
    if contour.name != "contour" or contour.frequency[-1] != contour.step * (contour.nodes - 1):
        return None  # nodes that do not matter to the other variable may matter to this one
    edges = tail_edges(transform, contour.step, contour.nodes)
    line, log_bound = None, transform.near_normal_envelope(contour.order, edges, with_reverse=True)
    if log_bound is None:
        line, log_bound = transform.coarse_line(contour.order, contour.frequency, edges, with_reverse=True)
    tail = float(block_sums(log_bound, edges, contour.step).sum())
    if line is None:
        line = transform.line(contour.order, contour.frequency)
    tail = 2 * tail * (1 + 1e-9) / contour.step
    if not tail < 1e-3 / (contour.order * (contour.order + 1)):
        return None
    log, scale = centered(line.log)
    return replace(contour, log=log, error=line.error, scale=scale, tail=tail, outer=(), maximum=transform.maximum)
