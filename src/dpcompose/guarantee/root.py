"""The root of a smooth increasing function, to be certified by whoever asked for it."""

from __future__ import annotations

import math
from collections.abc import Callable


def increasing_root(
    function: Callable[[float], tuple[float, float]], *, start: float, lower: float, upper: float, steps: int = 200
) -> float:
    """An uncertified root, by guarded Newton steps, of a function that returns its value and its slope.

    Args:
        function: Increasing; its value may be infinite, its slope zero, where a bisection then replaces the step.
        start: The first point tried.
        lower: A point where the function is at most 0.
        upper: A point where it is at least 0; finite.
        steps: The number of evaluations after which the last point is returned as it is.
    """
    point = min(max(start, lower), upper)
    for _ in range(steps):
        value, slope = function(point)
        if value == 0.0:
            return point
        if value < 0.0:
            lower = point
        else:
            upper = point
        middle = lower + (upper - lower) / 2.0
        step = value / slope if slope > 0.0 and math.isfinite(value) else math.inf
        following = point - step
        if not lower < following < upper:
            following = middle
        if abs(following - point) <= 2e-16 * abs(following) or following in (lower, upper):
            return following
        point = following
    return point


def walk(point: float, margin: float, proved: Callable[[float], bool]) -> float:
    """The first of point + margin, point + 2 margin, point + 4 margin, ... where a claim is proved.

    Args:
        point: Where to start from.
        margin: The first step, of either sign, not 0.
        proved: The claim; it must hold far enough from `point`.
    """
    while not proved(point + margin):
        margin *= 2.0
    return point + margin
