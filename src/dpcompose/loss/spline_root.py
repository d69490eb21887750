"""Where the profile of k equal Laplace losses takes a given value, certified by convexity.

The profile is convex in e^x. Four values near the root enclose it: it lies below the chord of the two inner ones, and
above both lines through an inner and an outer one.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from dpcompose.loss.laplace_spline import LaplaceSpline, Rows, moment
from dpcompose.numerics.elementary import Reals, U

_WIDE, _CLOSE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.array([-2.0, -1.0, 1.0, 2.0])
_REACH, _NEAR, _NARROW = 0.02, 1e-6, 1e-11


def root(spline: LaplaceSpline, target: float) -> tuple[float, float] | None:
    """(lower, upper) >= 0: the profile is at most `target` from the upper on, and up to the lower, if not 0, at least.

    None where the spline has no values, or where they do not enclose the root.
    """
    if not 1e-280 <= target < 1.0:
        return None
    order, place = _guess(spline, math.log(target))
    half = spline.times / 2.0
    if not place < half:
        found = spline.values(np.array([half]), order)
        if found is None or found[1][0] <= target:
            return None if found is None else (0.0, 0.0)
        place = half
    near = _approached(spline, target, order, place)
    if near is None:
        return None
    place, steep, rows = near
    spacing, best = min(_NEAR / steep, 0.1), None
    for _ in range(12):
        places = place * np.exp(spacing * _CLOSE)
        found = spline.values(places, order, rows)
        if found is None:
            break
        low, high, rows = found[0].tolist(), found[1].tolist(), found[2]
        if high[1] <= target <= low[2]:
            lower, upper = _enclosed(spline, target, places, low, high)
            best = (lower, upper) if best is None else (max(lower, best[0]), min(upper, best[1]))
            if not best[1] - best[0] > _NARROW * best[1] or spacing < 1e-10 / steep:
                break
            spacing /= 64.0
        place = _moved(target, places.tolist(), [(one + two) / 2.0 for one, two in zip(low, high, strict=True)])
    return best


def _moved(target: float, places: Sequence[float], values: Sequence[float]) -> float:
    """The root of the line through the two places that are nearest to it: beyond a corner slopes differ."""
    after = min(max(sum(value < target for value in values), 1), len(values) - 1)
    least, most = values[after - 1], values[after]
    step = (places[after] - places[after - 1]) * (target - least) / (most - least) if most > least else 0.0
    return min(max(places[after - 1] + step, places[0] * 0.9), places[-1] * 1.1)


def _guess(spline: LaplaceSpline, log_target: float) -> tuple[float, float]:
    """The saddle point for a mass, and the place that the saddle-point approximation gives."""
    epsilon, times = spline.epsilon, spline.times
    spread = times * min(epsilon * epsilon, 4.0)
    order = math.sqrt(max(-2.0 * log_target, 0.1) / spread)
    for _ in range(30):
        log_m, first, second = moment(epsilon, order)
        curvature = times * second + (1.0 / order) ** 2 + (1.0 / (order + 1.0)) ** 2
        gap = times * (order * first - log_m) - 1.0 - order / (order + 1.0) + log_target
        gap += math.log(order) + math.log1p(order)
        step = min(max(-gap / (order * (order * max(curvature, 1e-300))), -1.0), 1.0)
        order *= math.exp(step)
        if abs(step) < 0.02:
            break
    log_m, first, second = moment(epsilon, order)
    curvature = times * max(second, 0.0) + (1.0 / order) ** 2 + (1.0 / (order + 1.0)) ** 2
    depth = 1.0 / order + 1.0 / (order + 1.0) - times * first
    missed = times * log_m + order * depth - math.log(order) - math.log1p(order) - math.log(2 * math.pi * curvature) / 2
    place = depth / (2.0 * epsilon) * math.exp(min(max((log_target - missed) / (order * depth), -1.0), 1.0))
    # 2^-k (1 - e^(-2 epsilon y)) is at most delta: next to the largest loss nothing else is left of it.
    top = math.exp(min(log_target + times * math.log(2.0), 0.0))
    bound = -math.log1p(-top) / (2.0 * epsilon) if top < 1.0 else math.inf
    return (order, place) if place <= bound else (max(order, 0.5 / (epsilon * bound)), bound)


def _approached(spline: LaplaceSpline, target: float, order: float, place: float) -> tuple[float, float, Rows] | None:
    """A place closer to the root, how steep log delta is there in log y, and rows for the neighborhood."""
    rows, steep = None, max(2.0 * spline.epsilon * place * order, 1.0)
    under, over = 0.0, spline.times * 0.75
    for _ in range(20):
        spacing = min(_REACH / steep, 0.25)
        found = spline.values(place * np.exp(spacing * _WIDE), order, rows)
        if found is None:
            return None
        rows = found[2]
        logs: list[float] = np.log(found[0] / target).tolist()
        steep = max((logs[4] - logs[0]) / (4.0 * spacing), 1e-6)
        if logs[0] <= 0.0 <= logs[4]:
            return place * math.exp(_interpolated(logs) * spacing), steep, rows
        under, over = (place, over) if logs[2] < 0.0 else (under, place)
        moved = place * math.exp(min(max(-logs[2] / steep, -1.5), 1.5))
        # Newton's step, but back and forth across a corner it need not converge.
        place = moved if under < moved < over else math.sqrt(max(under, over / 10.0) * over)
    return None


def _interpolated(logs: Sequence[float]) -> float:
    """Where the inverse of the polynomial through equidistant values, from -2 to 2, is 0."""
    total = 0.0
    for index, log in enumerate(logs):
        share = index - 2.0
        for other, value in enumerate(logs):
            if other != index:
                share *= -value / (log - value)
        total += share
    return min(max(total, -2.0), 2.0)


def _enclosed(
    spline: LaplaceSpline, target: float, places: Reals, lower: Sequence[float], upper: Sequence[float]
) -> tuple[float, float]:
    """The root between the two inner places; shares s are e^(x - x_1) - 1, with x falling as places rise."""
    epsilon, times = spline.epsilon, spline.times
    near = float(places[1])
    first, third, fourth = (math.expm1(2.0 * epsilon * (near - float(places[n]))) for n in (0, 2, 3))
    chord = third * (target - upper[1]) / (upper[2] - upper[1])
    # Through the two places nearer to the largest loss, drawn on with the least slope; and the other two, the greatest.
    flat, fall = lower[1] - upper[0], upper[3] - lower[2]
    beyond = -first * (target - lower[1]) / flat if flat > 0.0 else -math.inf
    before = third + (third - fourth) * (lower[2] - target) / fall if fall > 0.0 else -math.inf
    share = max(beyond, before, third)
    loss = times * epsilon - 2.0 * epsilon * near
    slack = 4.0 * U * (times * epsilon + 2.0 * epsilon * near + abs(third))
    slack += 32.0 * U * abs(third)
    return max(loss + math.log1p(share) - slack, 0.0), max(loss + math.log1p(chord) + slack, 0.0)
