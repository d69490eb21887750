"""Where a line stands and how far apart its nodes are, from one table of moments; and which nodes are significant."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.contour import saddle
from dpcompose.contour.contour import kernel_peak
from dpcompose.contour.saddle import Chart, shortened
from dpcompose.contour.transform import Transform
from dpcompose.numerics import Reals

NEGLIGIBLE = 52.0
"""Nodes are negligible where |M| is below e^-52 M(order)."""
# So few nodes are evaluated without a search for negligible ones, and without another bound.
_FEW, _VERY_FEW = 64, 24
# The reverse shares the line if its M is at least e^-1.8 of this one's: its g may then be the larger one.
_ALIKE = -1.8


@dataclass(frozen=True, kw_only=True)
class Placement:
    """A line for g near one x, before its nodes are chosen.

    Args:
        order: The real part of the line, at most 24 binary digits.
        period: W = 2 pi / step.
        outer: Orders beyond `order`, and upper bounds on log M there, for the aliases above x.
        log_m: K on the line.
        variance: K'' on the line.
        height: About g(x) e^(order x) / M(order), at most 1.
        tolerance: The wanted (upper - lower) / g(x).
        most_nodes: How many nodes a line may have that does not end by itself.
        two_sided: Whether a lower end is wanted too: only that one needs the aliases.
        chart: The moments around the saddle point, if at hand.
    """

    order: float
    period: float
    outer: tuple[tuple[float, float], ...]
    log_m: float
    variance: float
    height: float
    tolerance: float
    most_nodes: int
    two_sided: bool
    chart: Chart | None

    @property
    def step(self) -> float:
        """The distance of the nodes, of at most 24 binary digits."""
        return shortened(2 * math.pi / self.period, bits=24)

    @property
    def error(self) -> float:
        """The part of M(order) e^(-order x) that may be left out at either end."""
        return self.tolerance / 40 * self.height

    @property
    def limit(self) -> float:
        """The frequency at which a line that does not end by itself is cut."""
        return self.most_nodes * self.step

    def shared_with_reverse(self, transform: Transform) -> bool:
        """Whether the reverse is so much alike that one moment will not tell which of the two has the larger g."""
        other = transform.reverse
        if other is None or not self.two_sided or self.chart is None:
            return False
        orders = self.chart.orders
        at = min(int(np.searchsorted(orders, self.order)), len(orders) - 1)
        return float(other.curve(orders).log_m[at] - self.chart.curve.log_m[at]) > _ALIKE


def placement_of(
    transform: Transform,
    *,
    order: float,
    x: float,
    log_mass: float,
    tolerance: float,
    most_nodes: int,
    two_sided: bool = True,
    chart: Chart | None = None,
    bounded: bool = True,
    loss: float = 3.0,
) -> Placement:
    """The line near the saddle point `order` with the fewest nodes for that tolerance.

    Next to where M blows up the aliases above x force a long period; a line a little below the saddle point needs a
    shorter one. Any order is valid: one below the saddle point costs digits, e^(the rise of log M - order x).

    Args:
        transform: The variable L.
        order: The saddle point, or an order near it, at most 24 binary digits.
        x: Where g will be wanted, roughly.
        log_mass: log g(x), roughly, at most 0.
        tolerance: The wanted (upper - lower) / g(x); what is reached may be more.
        most_nodes: How many nodes a line may have that does not end by itself.
        two_sided: Whether a lower end is wanted too.
        chart: The moments around `order`, if at hand.
        bounded: Whether the largest value of the variable may spare the aliases above x.
        loss: The most that log M - order x may rise for a shorter period.
    """
    digits = math.log(20 / tolerance)
    depth, log_error = max(-log_mass, 0.0) + digits, log_mass + math.log(tolerance / 20)
    outer: tuple[tuple[float, float], ...] = ()
    if not two_sided or (bounded and x + 0.9 * depth / order >= transform.maximum):
        log_m, _, variance = transform.cumulants(order) if chart is None else chart.cumulants
        period = depth / order
    else:
        around = chart or saddle.around(transform, order)
        at, period, beyond = _shortest(around, x, depth, log_error, loss)
        order, log_m, variance = (
            float(row[at]) for row in (around.orders, around.curve.log_m, around.curve.second)
        )
        if math.isfinite(period):
            period = min(period, 64 * depth / order)
            outer = ((beyond, transform.moment_bound(beyond)),)
        else:
            period, outer = depth / order, ((shortened(1.2 * order, bits=24), math.inf),)
    return Placement(
        order=order,
        period=period,
        outer=outer,
        log_m=log_m,
        variance=variance,
        height=math.exp(min(max(log_mass - log_m + order * x, -100.0), 0.0)),
        tolerance=tolerance,
        most_nodes=most_nodes,
        two_sided=two_sided,
        chart=chart,
    )


def _shortest(
    chart: Chart, x: float, depth: float, log_error: float, loss: float
) -> tuple[int, float, float]:
    """Which order of the chart needs the shortest period, that period, and the order that bounds the aliases above x.

    Args:
        chart: The moments around the saddle point.
        x: Where g will be wanted.
        depth: -log of what the aliases below x may be.
        log_error: log of what the aliases above x may be.
        loss: As in `place`.
    """
    orders, known, center = chart.orders, chart.curve, chart.at
    first = int(np.searchsorted(orders, 0.56 * chart.order))
    inner = orders[first : center + 1]
    with np.errstate(all="ignore"):
        level = known.log_m - orders * x
        chernoff = level + kernel_peak(orders)
        apart = orders - inner[:, None]
        needed = np.where(
            apart > 0.01 * inner[:, None], (chernoff - log_error + 4.0) / apart, np.inf
        )
    needed = np.where(np.isfinite(needed), needed, np.inf)
    best = needed.argmin(axis=1)
    periods = np.maximum(needed[np.arange(len(inner)), best], depth / inner)
    periods = np.where(level[first : center + 1] <= level[center] + loss, periods, np.inf)
    chosen = int(periods.argmin())
    if periods[-1] <= 1.15 * periods[chosen]:
        chosen = len(inner) - 1
    order, period, outer = float(inner[chosen]), float(periods[chosen]), float(orders[best[chosen]])
    whole = float(round(outer))
    # K is convex: at a whole order, where some transforms know a short sum, it is below the line through two others.
    if whole > max(2.0, 1.01 * order) and math.isfinite(period):
        needed_there = (np.interp(whole, orders, chernoff) - log_error + 4.0) / (whole - order)
        outer = whole if needed_there <= 1.05 * period else outer
    return first + chosen, period, outer


def significant(transform: Transform, order: float, frequency: Reals, variance: float) -> Reals:
    """The nodes where cheap bounds on |M(order + iu) / M(order)| leave it above e^-NEGLIGIBLE.

    Args:
        transform: The variable L.
        order: The real part of the line.
        frequency: The nodes, increasing by equal steps from 0, shape (n,).
        variance: Of the smoothing Gaussian, or 0.
    """
    if len(frequency) <= _FEW:
        return frequency
    # First whole blocks, then node by node.
    edges = frequency[8] * 1.2 ** np.arange(
        math.ceil(math.log(frequency[-1] / frequency[8]) / math.log(1.2)) + 1
    )
    blocks = transform.log_envelope(order, edges) - variance * edges**2 / 2
    block = np.searchsorted(edges, frequency, side="right") - 1
    frequency = frequency[(block < 0) | ~(blocks[block] <= -NEGLIGIBLE)]
    magnitude = -variance * frequency**2 / 2
    for term in transform.summands:
        for bound in term.log_bounds(order):
            if len(frequency) <= _VERY_FEW:
                break
            magnitude = magnitude + np.minimum(bound(frequency), 0.0)
            keep = ~(magnitude <= -NEGLIGIBLE)
            frequency, magnitude = frequency[keep], magnitude[keep]
    return frequency
