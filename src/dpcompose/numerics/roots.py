"""Roots, minima and largest arguments of functions of one variable; `walk` and `largest` return
proved results.
"""

from __future__ import annotations

import math
from collections.abc import Callable

# Numbers below e^-40 do not change 1 when added to it.
_DEEPEST = 40.0


def increasing_root(
    function: Callable[[float], tuple[float, float]],
    *,
    start: float,
    lower: float,
    upper: float,
    steps: int = 200,
) -> float:
    """A root of an increasing function, by guarded Newton steps, without proof of its error.

    Args:
        function: Returns (value, slope), the value increasing. If the value is infinite or the
            slope is zero, bisection replaces the Newton step.
        start: The first point.
        lower: A point where the function is at most 0.
        upper: A point where it is at least 0; finite.
        steps: The largest number of evaluations; then the last point is returned.
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
    """The first of point + margin, point + 2 margin, point + 4 margin, ... where `proved` is True.

    Args:
        point: The starting point.
        margin: The first step, of either sign, not 0.
        proved: The claim; it must hold at some distance from `point`, else the search does not end.
    """
    while not proved(point + margin):
        margin *= 2.0
    return point + margin


def _mean(low: float, high: float) -> float:
    return (low + high) / 2


def largest(
    holds: Callable[[float], bool],
    *,
    low: float,
    high: float,
    middle: Callable[[float, float], float] = _mean,
) -> float:
    """The largest float below `high` at which `holds` is True, by bisection.

    `holds` must be True up to some point and False beyond it.

    Args:
        holds: The claim; it is not called at the two ends.
        low: A number at which the claim holds.
        high: A number at which the claim does not hold.
        middle: A function that returns a number between two others, or one of them, which ends the
            search.
    """
    while low < (between := middle(low, high)) < high:
        low, high = (between, high) if holds(between) else (low, between)
    return low


def halved(holds: Callable[[float], bool], low: float, high: float, *, steps: int) -> float:
    """Return about the largest positive number for which something holds that holds for smaller
    ones, by halving the logarithm of the interval so many times.
    """
    for _ in range(steps):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if holds(middle) else (low, middle)
    return math.sqrt(low * high)


def bracketed_root(
    function: Callable[[float], float], *, lower: float, upper: float, steps: int = 100
) -> float:
    """A root in [lower, upper] of an increasing function by the Illinois method; its error is not
    proved.

    Args:
        function: The increasing function. If its value is infinite, bisection replaces the step.
        lower: A point where the function is at most 0.
        upper: A point where it is at least 0.
        steps: The largest number of evaluations; then the last point is returned.
    """
    below, above = function(lower), function(upper)
    point, side = lower, 0
    for _ in range(steps):
        weighted = (lower * above - upper * below) / (above - below) if above > below else math.nan
        middle = lower + (upper - lower) / 2.0
        following = weighted if lower < weighted < upper else middle
        if abs(following - point) <= 2e-16 * abs(following) or following in (lower, upper):
            return following
        point, value = following, function(following)
        if value == 0.0:
            return point
        if value < 0.0:
            lower, below, above, side = point, value, above / 2.0 if side == -1 else above, -1
        else:
            upper, above, below, side = point, value, below / 2.0 if side == 1 else below, 1
    return point


def minimum(
    function: Callable[[float], float], *, start: float, step: float, limit: float, steps: int
) -> float:
    """A point close to the minimum of a unimodal function, by steps downhill and golden sections.

    Args:
        function: Falls, then rises; may be infinite, but not at every point within +-limit.
        start: The first point.
        step: The first step of the descent.
        limit: The search stays within +-limit.
        steps: The number of golden sections.
    """
    if function(start + step) > function(start):
        step = -step
    here, value = start, function(start)
    ahead = here + step
    following = function(ahead)
    while following < value and abs(ahead) < limit:
        here, value, ahead = ahead, following, ahead + step
        following = function(ahead)
    lower, upper = sorted((here - step, ahead))
    return _golden(function, lower, upper, steps)


def _golden(function: Callable[[float], float], lower: float, upper: float, steps: int) -> float:
    ratio = (math.sqrt(5.0) - 1.0) / 2.0
    left, right = upper - ratio * (upper - lower), lower + ratio * (upper - lower)
    at_left, at_right = function(left), function(right)
    for _ in range(steps):
        if at_left <= at_right:
            upper, right, at_right = right, left, at_left
            left = upper - ratio * (upper - lower)
            at_left = function(left)
        else:
            lower, left, at_left = left, right, at_right
            right = lower + ratio * (upper - lower)
            at_right = function(right)
    return left if at_left <= at_right else right


def parabolic_minimum(
    function: Callable[[float], float], *, start: float, step: float, limit: float, refinements: int
) -> float:
    """A point close to the minimum of a unimodal function, by steps downhill and fitted parabolas.

    Args:
        function: Falls, then rises; may be infinite. If it is infinite at the start, the search
            starts from the first finite point below.
        start: The first point.
        step: The step of the descent; each parabola has a quarter of the previous step.
        limit: The search stays within +-limit.
        refinements: The number of fitted parabolas.
    """
    here, value = start, function(start)
    while value == math.inf and here > -_DEEPEST:
        here -= step
        value = function(here)
    ahead = function(here + step)
    if ahead > value:
        step, behind = -step, ahead
        ahead = function(here + step)
    else:
        behind = math.inf
    while ahead < value and abs(here + step) < limit:
        here, behind, value = here + step, value, ahead
        ahead = function(here + step)
    for _ in range(refinements):
        vertex = here + _vertex(behind, value, ahead) * step
        lowest = function(vertex)
        if lowest < value:
            here, value = vertex, lowest
        step /= 4.0
        behind, ahead = function(here - step), function(here + step)
        # If the function decreases slowly and then jumps up, the minimum may be several steps from
        # the last two points.
        while min(behind, ahead) < value and abs(here) < limit:
            step = step if ahead <= behind else -step
            here, behind, value = here + step, value, min(behind, ahead)
            ahead = function(here + step)
    return here


def _vertex(behind: float, value: float, ahead: float) -> float:
    # The minimum of the parabola through (-1, behind), (0, value), (1, ahead), if it lies between
    # -1 and 1.
    bend = behind - 2.0 * value + ahead
    place = (behind - ahead) / (2.0 * bend) if 0.0 < bend < math.inf else 0.0
    return place if -1.0 < place < 1.0 else 0.0
