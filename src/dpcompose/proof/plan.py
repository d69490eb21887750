"""Where a line for a proof should run: its order, period, last frequency and smoothing, from the float engine.

Nothing here is proved and nothing need be: every line gives a valid enclosure, these choices only decide how narrow it
is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.contour import saddle
from dpcompose.contour.contour import relative_value
from dpcompose.contour.saddle import short
from dpcompose.contour.transform import Transform

FINE = 43.0
_MULTIPLES = np.exp(
    np.concatenate([np.arange(-0.56, 0.0, 0.07), [0.0, 0.015], np.arange(0.035, 0.28, 0.035), np.arange(0.3, 1.7, 0.1)])
)
_SADDLE = 8


@dataclass(frozen=True)
class Route:
    """A line.

    Args:
        order: Its real part, a float of few digits.
        period: W = 2 pi / step.
        beyond: An order from which the aliases above x are bounded; None if there are none.
        last: The frequency at which the nodes end.
        smoothing: The standard deviation of the Gaussian that is added; 0 if none is.
        variance: The tilted variance.
        share: What may be left out, relative to M(order).
        magnitude: log2 of the largest exponent that occurs.
    """

    order: float
    period: float
    beyond: float | None
    last: float
    smoothing: float
    variance: float
    share: float
    magnitude: float

    @property
    def nodes(self) -> int:
        """How many nodes the line has up to `last`."""
        return math.ceil(self.last * self.period / (2 * math.pi)) + 1


def plan(
    transform: Transform,
    x: float,
    *,
    tolerance: float,
    digits: float = FINE,
    most: int,
    falling: bool = True,
    last: float | None = None,
) -> Route | None:
    """The line for g near x: to e^-`digits` where |M| falls by itself within `most` nodes, else smoothed, to
    `tolerance` if they suffice.

    Args:
        transform: The variable.
        x: Where g is wanted.
        tolerance: The relative width at which smoothing may stop.
        digits: Minus the logarithm of the relative width that all other errors may have.
        most: How many nodes a line may have, if it is not one over a lattice.
        falling: Whether |M| may be taken to fall by itself.
        last: The frequency by which it does so, if that is known.

    Returns:
        None where no saddle point can be found.
    """
    order = saddle.for_value(transform, x)
    log_m, first, variance = transform.cumulants(order)
    if not (math.isfinite(log_m) and 0 < variance < math.inf):
        return None
    log_mass = min(log_m - order * x + math.log(relative_value(variance, order)), 0.0)
    order, period, beyond = _placed(transform, order, x, log_mass, digits)
    log_m, first, variance = transform.cumulants(order)
    relative = math.exp(min(max(log_mass - log_m + order * x, -300.0), 0.0))
    magnitude = math.log2(2 + abs(log_m) + order * (abs(x) + abs(first)) + order)
    share = math.exp(-digits) * relative
    if transform.lattice is not None:
        last = math.sqrt(2 * (3 - math.log(share)) / variance)
        return Route(order, period, beyond, last, 0.0, variance, share, magnitude)
    if last is None and falling:
        last = _end(transform, order, period, variance, share * math.pi, most)
    if last is not None:
        return Route(order, period, beyond, last, 0.0, variance, share, magnitude)
    wanted = math.sqrt(tolerance / 10 / (order * (order + 1)))
    digits = min(math.log(1e3 / tolerance), digits)
    order, period, beyond = _placed(transform, order, x, log_mass, digits, bounded=False)
    share = math.exp(-digits) * relative
    reach = math.sqrt(2 * (digits - math.log(relative) + 3))
    smoothing = max(wanted, reach * period / (2 * math.pi * most))
    loose = share * math.exp(digits) * smoothing**2 * order * (order + 1) / 10
    last = _end(transform, order, period, variance, loose * math.pi, most) if falling else None
    if last is not None:
        return Route(order, period, beyond, last, 0.0, variance, loose, magnitude)
    return Route(order, period, beyond, reach / smoothing, smoothing, variance, share, magnitude)


def _placed(
    transform: Transform, order: float, x: float, log_mass: float, digits: float, *, bounded: bool = True
) -> tuple[float, float, float | None]:
    """Order, period, and the order that bounds the aliases above x; a little below the saddle point where M explodes
    beyond it."""
    quiet = digits - log_mass
    if bounded and x + 1.2 * quiet / order >= transform.maximum:
        return order, max(quiet / order, transform.maximum - x) + 2 / order, None
    orders = order * _MULTIPLES
    log_m = transform.curve(orders).log_m
    with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
        level = log_m - orders * x
        chernoff = level + orders * np.log(orders) - (orders + 1) * np.log1p(orders)
        inner, outer = orders[: _SADDLE + 1, None], orders[None, :]
        needed = np.where(outer > inner * 1.01, (chernoff - log_mass + digits + 3.0) / (outer - inner), np.inf)
    needed = np.where(np.isfinite(needed), needed, np.inf)
    best = np.argmin(needed, axis=1)
    periods = np.maximum(needed[np.arange(_SADDLE + 1), best], quiet / orders[: _SADDLE + 1])
    periods = np.where(level[: _SADDLE + 1] <= level[_SADDLE] + 12.0, periods, np.inf)
    place = int(np.argmin(periods))
    place = _SADDLE if periods[_SADDLE] <= 1.15 * periods[place] else place
    kept = short(float(orders[place]), bits=24)
    period, beyond = math.inf, kept
    # Many orders at once are good for a choice; the period is taken from each one's own moment.
    for index in np.argsort(needed[place])[:6]:
        candidate = short(float(orders[index]), bits=24)
        bound = transform.cumulants(candidate)[0] - candidate * x
        bound += candidate * math.log(candidate) - (candidate + 1) * math.log1p(candidate)
        found = (bound - log_mass + digits + 3.0) / (candidate - kept) if candidate > kept * 1.005 else math.inf
        if found < period:
            period, beyond = found, candidate
        if found <= 1.2 * needed[place, index] + quiet / kept:
            break
    return kept, min(max(period, quiet / kept), 64 * quiet / kept), beyond


def _end(transform: Transform, order: float, period: float, variance: float, share: float, most: int) -> float | None:
    """The first frequency beyond which |M| / u^2 integrates to less than `share`, as far as floats can tell."""
    start = max(math.sqrt(2 * max(-math.log(share) - 3.0, 1.0) / variance) * 0.8, 4 * math.pi / period)
    limit = most * 2 * math.pi / period
    edges = start * 1.2 ** np.arange(60)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        log_bound = transform.log_envelope(order, edges)
        blocks = np.exp(np.minimum(log_bound, 0.0)) * (1 / edges - np.append(1 / edges[1:], 0.0))
    enough = np.flatnonzero(np.cumsum(blocks[::-1])[::-1] <= share)
    return float(edges[enough[0]]) if len(enough) and edges[enough[0]] <= limit else None
