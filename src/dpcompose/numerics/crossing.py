"""Where a decreasing function that is known by its brackets falls to a target: two floats, both proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.numerics.ball import Ball

Curve = Callable[[float], tuple[Ball, Ball]]


@dataclass(frozen=True)
class Crossing:
    """The value is at least the target up to `lower`, at most the target from `upper` on; `middle` is where floats put
    it."""

    lower: float
    upper: float
    middle: float


def crossing(curve: Curve, target: Ball, *, guess: float, rate: float, low: float, high: float) -> Crossing:
    """The crossing in [low, high].

    Args:
        curve: The bracket of the function at a float.
        target: What it falls to, > 0.
        guess: Where it roughly does.
        rate: Roughly the relative slope there, > 0.
        low: The lower end that is returned if none is proved.
        high: The upper end that is returned if none is proved.
    """
    middle, rate, width = _approach(curve, target, min(max(guess, low), high), rate, low, high)
    offset = max(math.ulp(middle), width)
    upper = _walk(lambda x: curve(x)[1] <= target, middle, offset, high)
    lower = -_walk(lambda x: curve(-x)[0] >= target, -middle, offset, -low)
    return Crossing(lower, upper, middle)


def _approach(curve: Curve, target: Ball, x: float, rate: float, low: float, high: float) -> tuple[float, float, float]:
    """Secant steps on the logarithm of the bracket's middle; the relative slope, and the bracket's half width in x."""
    before: tuple[float, float] | None = None
    width = 0.0
    for _ in range(40):
        least, most = curve(x)
        middle = ((least + most) / 2).mid()
        if not middle > 0:
            high, x, before = x, (max(low, x - 4 / rate) + x) / 2, None
            continue
        gap = float((middle / target).log().mid())
        if gap > 0:
            low = max(low, x)
        else:
            high = min(high, x)
        if before is not None and before[0] != x and (gap - before[1]) / (before[0] - x) > 0:
            rate = (gap - before[1]) / (before[0] - x)
        width = float(((most - least) / (2 * middle)).upper()) / rate
        before, moved = (x, gap), gap / rate
        if abs(moved) <= 2 * math.ulp(x) + 0.01 * width or low == high:
            break
        moved = min(max(moved, -4 / rate), 4 / rate)
        x = (
            x + moved
            if low < x + moved < high
            else (low + min(high, x + 4 / rate)) / 2
            if gap > 0
            else (max(low, x - 4 / rate) + high) / 2
        )
    return x, rate, width


def _walk(proved: Callable[[float], bool], x: float, offset: float, end: float) -> float:
    """The first of x, x + offset, x + 2 offset, ... that is proved to lie beyond; `end` if none is."""
    if x < end and proved(x):
        return x
    for _ in range(60):
        point = x + offset
        if point >= end:
            break
        if proved(point):
            return point
        offset = max(1.6 * offset, offset + math.ulp(x))
    return end
