"""Where a decreasing function that is known by its brackets falls to a target: two floats, both proved."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.proof.ball import Ball

Bracketed = Callable[[float], tuple[Ball, Ball]]
Point = tuple[float, float, float]


@dataclass(frozen=True)
class Crossing:
    """The value is at least the target up to `lower`, at most the target from `upper` on."""

    lower: float
    upper: float

    @property
    def middle(self) -> float:
        """Where the function about falls to the target; the finite end if the other one is not."""
        return (self.lower + self.upper) / 2 if self.upper < math.inf else self.lower


def crossing(curve: Bracketed, target: Ball, *, guess: float, rate: float, low: float, high: float) -> Crossing:
    """The crossing in [low, high], as narrow as the brackets allow.

    Args:
        curve: The bracket of the function at a float.
        target: The value that it falls to, > 0.
        guess: Where it roughly does.
        rate: Roughly the relative slope there, > 0.
        low: The lower end that is returned if none is proved.
        high: The upper end that is returned if none is proved; may be infinite.
    """
    seen: dict[float, tuple[Ball, Ball]] = {}

    def at(x: float) -> Point:
        """x, log of the bracket's middle over the target (-inf if that is 0), and the bracket's relative width."""
        if x not in seen:
            seen[x] = curve(x)
        least, most = seen[x]
        middle = (least + most) / 2
        if not middle.mid() > 0:
            return x, -math.inf, math.inf
        return x, float((middle / target).log().mid()), float(((most - least) / (2 * middle.mid())).upper())

    left, right = _around(at, min(max(guess, low), high), rate, low, high)
    middle, error = _narrowed(at, left, right)
    offset = max(math.ulp(middle), error)
    for _ in range(80):
        lower = max((x for x, (least, _) in seen.items() if least >= target), default=low)
        upper = min((x for x, (_, most) in seen.items() if most <= target), default=high)
        if middle - offset <= lower and middle + offset >= upper:
            break
        for point, open_end in ((middle - offset, middle - offset > lower), (middle + offset, middle + offset < upper)):
            if open_end:
                at(point)
        offset *= 1.6
    lower = max((x for x, (least, _) in seen.items() if least >= target), default=low)
    upper = min((x for x, (_, most) in seen.items() if most <= target), default=high)
    return Crossing(max(lower, low), min(upper, high))


def _around(at: Callable[[float], Point], x: float, rate: float, low: float, high: float) -> tuple[Point, Point]:
    """Two points, the function above the target at the first and below it at the second, as far as middles can tell."""
    left = right = at(x)
    reach = 4.0 / rate
    step = min(max(1.1 * abs(left[1]) / rate, 4 * math.ulp(x)), reach)
    while left[1] < 0 and left[0] > low:
        left, right, step = at(max(left[0] - step, low)), left, 2 * step
    while right[1] > 0 and right[0] < high and math.isfinite(right[0] + step):
        left, right, step = right, at(min(right[0] + step, high)), 2 * step
    return left, right


def _narrowed(at: Callable[[float], Point], left: Point, right: Point) -> tuple[float, float]:
    """Regula falsi, every third step a bisection: the crossing, and its error in x by the width of the bracket."""
    for turn in range(120):
        (a, above, _), (b, below, _) = left, right
        if not (above > 0 > below and b - a > 2 * math.ulp(a)):
            break
        x = a + (b - a) * (above / (above - below) if turn % 3 < 2 and math.isfinite(below) else 0.5)
        x = x if a < x < b else (a + b) / 2
        if not a < x < b:
            break
        middle = at(x)
        if abs(middle[1]) <= 0.02 * middle[2] and math.isfinite(below):
            return x, middle[2] * (b - a) / (above - below)
        left, right = (middle, right) if middle[1] > 0 else (left, middle)
    return (left[0] if left[1] > 0 else right[0]), max(right[0] - left[0], 0.0)
