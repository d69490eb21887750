"""Where a line for a proof should run: its order, period, last frequency and smoothing, from the float engine.

Nothing here is proved and nothing need be: every line gives a valid enclosure, and these choices only decide how
narrow it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.contour import Placement, Transform, placement_of, relative_value, saddle_for_value

FINE = 43.0
# Balls have digits to spare: a line may lose e^12 of them for a shorter period.
_LOSS = 12.0


@dataclass(frozen=True, kw_only=True)
class LinePlan:
    """A line.

    Args:
        order: Its real part, a float of few digits.
        period: W = 2 pi / step.
        beyond: An order from which the aliases above x are bounded; None if there are none.
        last: The frequency at which the nodes end.
        smoothing: The standard deviation of the Gaussian that is added; 0 if none is.
        variance: The tilted variance.
        error: The part of M(order) that may be left out.
        magnitude: log2 of the largest exponent that occurs.
    """

    order: float
    period: float
    beyond: float | None
    last: float
    smoothing: float
    variance: float
    error: float
    magnitude: float


def plan(
    transform: Transform,
    x: float,
    *,
    tolerance: float,
    digits: float = FINE,
    most_nodes: int,
    falling: bool = True,
    last: float | None = None,
) -> LinePlan | None:
    """The line for g near x, to e^-`digits` where |M| falls by itself, else smoothed, to `tolerance` if nodes suffice.

    Args:
        transform: The variable.
        x: Where g is wanted.
        tolerance: The relative width at which smoothing may stop.
        digits: Minus the logarithm of the relative width that all other errors may have.
        most_nodes: How many nodes a line may have, if it is not one over a lattice.
        falling: Whether |M| may be taken to fall by itself.
        last: The frequency by which it does so, if that is known.

    Returns:
        None where no saddle point can be found.
    """
    saddle_point = saddle_for_value(transform, x)
    log_m, first, variance = transform.cumulants(saddle_point)
    if not (math.isfinite(log_m) and 0 < variance < math.inf):
        return None
    log_mass = min(log_m - saddle_point * x + math.log(relative_value(variance, saddle_point)), 0.0)

    def placed(digits: float, *, bounded: bool = True) -> Placement:
        return placement_of(
            transform,
            order=saddle_point,
            x=x,
            log_mass=log_mass,
            tolerance=20 * math.exp(-digits),
            most_nodes=most_nodes,
            bounded=bounded,
            loss=_LOSS,
        )

    def ended(placement: Placement, last: float, error: float, smoothing: float = 0.0) -> LinePlan:
        order = placement.order
        return LinePlan(
            order=order,
            period=placement.period,
            beyond=placement.outer[0][0] if placement.outer else None,
            last=last,
            smoothing=smoothing,
            variance=placement.variance,
            error=error,
            magnitude=math.log2(2 + abs(placement.log_m) + order * (abs(x) + abs(first)) + order),
        )

    placement = placed(digits)
    error = 2 * placement.error
    if transform.lattice is not None:
        last = math.sqrt(2 * (3 - math.log(error)) / placement.variance)
    elif last is None and falling:
        last = _end(transform, placement, error)
    if last is not None:
        return ended(placement, last, error)
    digits = min(math.log(1e3 / tolerance), digits)
    placement = placed(digits, bounded=False)
    order, error = placement.order, 2 * placement.error
    reach = math.sqrt(2 * (digits - math.log(placement.height) + 3))
    smoothing = max(math.sqrt(tolerance / 10 / (order * (order + 1))), reach / placement.limit)
    gap = placement.height * smoothing**2 * order * (order + 1) / 10
    last = _end(transform, placement, gap) if falling else None
    return (
        ended(placement, reach / smoothing, error, smoothing)
        if last is None
        else ended(placement, last, gap)
    )


def _end(transform: Transform, placement: Placement, error: float) -> float | None:
    """The first frequency beyond which |M| / u^2 integrates to less than pi `error`, as far as floats can tell."""
    error *= math.pi
    start = math.sqrt(2 * max(-math.log(error) - 3.0, 1.0) / placement.variance) * 0.8
    edges = max(start, 2 * placement.step) * 1.2 ** np.arange(60)
    with np.errstate(over="ignore", under="ignore", invalid="ignore", divide="ignore"):
        log_bound = transform.log_envelope(placement.order, edges)
        blocks = np.exp(np.minimum(log_bound, 0.0)) * (1 / edges - np.append(1 / edges[1:], 0.0))
    enough = np.flatnonzero(np.cumsum(blocks[::-1])[::-1] <= error)
    return float(edges[enough[0]]) if len(enough) and edges[enough[0]] <= placement.limit else None
