"""Where a line stands and how far apart its nodes are, from one table of moments; and which of its nodes matter."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.contour import saddle
from dpcompose.contour.contour import kernel_peak
from dpcompose.contour.saddle import Chart, short
from dpcompose.contour.transform import Sum, Transform, moment_bound
from dpcompose.numerics.elementary import Reals


@dataclass(frozen=True)
class Place:
    """A line: its order, its period, orders beyond it with bounds on log M there; K and K'' on it."""

    order: float
    period: float
    outer: tuple[tuple[float, float], ...]
    log_m: float
    variance: float


def placed(transform: Transform, order: float, x: float, quiet: float, log_share: float, chart: Chart | None) -> Place:
    """Where to draw the line, its period, and the outer order that keeps the aliases above x below e^log_share.

    Next to where M explodes those aliases force a long period; a line a little below the saddle point needs a shorter
    one. Any order is valid: one below the saddle point costs digits, e^(the rise of log M - order x), of which two are
    allowed.
    """
    if x + 0.9 * quiet / order >= transform.maximum:
        return Place(order, quiet / order, (), *cumulants_of(transform, order, chart)[::2])
    chart = chart or saddle.around(transform, order)
    orders, known, center = chart.orders, chart.curve, chart.at
    first = int(np.searchsorted(orders, 0.56 * order))
    inner = orders[first : center + 1]
    with np.errstate(all="ignore"):
        level = known.log_m - orders * x
        chernoff = level + kernel_peak(orders)
        apart = orders - inner[:, None]
        needed = np.where(apart > 0.01 * inner[:, None], (chernoff - log_share + 4.0) / apart, np.inf)
    needed = np.where(np.isfinite(needed), needed, np.inf)
    best = needed.argmin(axis=1)
    periods = np.maximum(needed[np.arange(len(inner)), best], quiet / inner)
    periods = np.where(level[first : center + 1] <= level[center] + 3.0, periods, np.inf)
    place = int(periods.argmin())
    if periods[-1] <= 1.15 * periods[place]:
        place = len(inner) - 1
    kept, period = float(inner[place]), float(periods[place])
    log_m, variance = float(known.log_m[first + place]), float(known.second[first + place])
    if not math.isfinite(period):
        return Place(kept, quiet / kept, ((short(1.2 * kept, bits=24), math.inf),), log_m, variance)
    outer = float(orders[best[place]])
    whole = float(round(outer))
    # K is convex: at a whole order, where some transforms know a short sum, it is below the line through two others.
    if (
        whole > max(2.0, 1.01 * kept)
        and (np.interp(whole, orders, chernoff) - log_share + 4.0) / (whole - kept) <= 1.05 * period
    ):
        outer = whole
    period = min(period, 64 * quiet / kept)
    return Place(kept, period, ((outer, moment_bound(transform, outer)),), log_m, variance)


def cumulants_of(transform: Transform, order: float, chart: Chart | None) -> tuple[float, float, float]:
    """K and its first two derivatives at `order`, the center of the chart if there is one."""
    return transform.cumulants(order) if chart is None else chart.cumulants


NEGLIGIBLE = 52.0
# So many nodes are not worth another look.
_FEW = 24


def audible(transform: Transform, order: float, frequency: Reals, variance: float) -> Reals:
    """The nodes that cheap bounds on |M(order + iu) / M(order)| leave above e^(-NEGLIGIBLE)."""
    if len(frequency) <= 64:
        return frequency
    # First whole blocks, then node by node.
    edges = frequency[8] * 1.2 ** np.arange(math.ceil(math.log(frequency[-1] / frequency[8]) / math.log(1.2)) + 1)
    blocks = transform.log_envelope(order, edges) - variance * edges**2 / 2
    block = np.searchsorted(edges, frequency, side="right") - 1
    frequency = frequency[(block < 0) | ~(blocks[block] <= -NEGLIGIBLE)]
    loud = -variance * frequency**2 / 2
    for term in terms_of(transform):
        bounds = getattr(term, "log_bounds", None)
        for bound in bounds(order) if bounds is not None else ():
            if len(frequency) <= _FEW:
                break
            loud = loud + np.minimum(bound(frequency), 0.0)
            keep = ~(loud <= -NEGLIGIBLE)
            frequency, loud = frequency[keep], loud[keep]
    return frequency


def terms_of(transform: Transform) -> tuple[Transform, ...]:
    """The summands of a sum, or the transform itself."""
    return transform.terms if isinstance(transform, Sum) else (transform,)
