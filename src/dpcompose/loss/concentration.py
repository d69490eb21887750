"""The rho of a loss: the certified supremum of D_a / a over all orders a > 1.

With t = a - 1, K(t) = log E e^(tL) is convex and K(0) = 0, and D_a / a = K(t) / (t (1 + t)). Three pieces cover t > 0:

- Where K'' is at least k, K lies below the parabola with K'' = k through its values at two nodes, which is
  k/2 (t + t^2) + alpha + beta t. So K(t) / (t (1 + t)) is at most k/2 + (alpha + beta t) / (t (1 + t)), and that is
  largest at an end, or, if alpha < 0 < beta, at t = (|alpha| + sqrt(|alpha| (|alpha| + beta))) / beta. (k = 0 always
  holds; a divided difference of three nodes is a value of K'', which changes by at most c times the distance.)
- Below the first node s the third derivative of K, a third central moment of a loss within a range R, is at most
  c = R^3 / (6 sqrt 3). So D differs from a line in t by at most c s^2 / 3 on (0, s], and D at 0 is at most
  2 D(s) - D(2 s) + c s^2. A line over 1 + t is largest at an end.
- Above the last node D is at most the largest loss.

The interval that may hold the supremum is halved until nothing is left to gain.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from dpcompose.loss.base import Loss
from dpcompose.numerics import U

MOST_STEPS = 160
CLOSE = 1e-9
Ends = tuple[float, float]
"""A lower and an upper end."""


@lru_cache(maxsize=1 << 12)
def least_rho(loss: Loss) -> float | None:
    """A rho with D_a <= rho a for all a > 1, in this order, close to the least, rounded up; None if none is known."""
    known, largest = loss.zcdp, max(loss.maximum, 0.0)
    spread = loss.maximum - loss.minimum
    if known is None or not known > 0.0 or not 1e-9 < spread < 600.0 or loss.has_least_rho:
        return known
    if loss.infinite_mass + loss.unplaced_mass > 0:
        return known
    return min(known, _supremum(_moments(loss), largest, spread))


def _moments(loss: Loss) -> Callable[[float], Ends]:
    """Both ends of K(t): of atoms without cancellation next to 0, else on the real line of the transform."""
    if 0 < loss.support <= 1 << 16:
        atoms = loss.atoms()
        upper, _, ratios = atoms.common
        errors = atoms.relative_error + 16 * U, atoms.ratio_error

        def of_atoms(t: float) -> Ends:
            terms = upper * np.expm1(t * ratios)
            size, sum_of = float(np.sum(np.abs(terms))), math.fsum(terms.tolist())
            moved = math.expm1(t * errors[1]) * math.fsum((upper * np.exp(t * ratios)).tolist())
            error = (
                errors[0] + (4 * t * float(np.max(np.abs(ratios), initial=0.0)) + len(terms)) * U
            ) * size
            error += moved * (1 + 1e-9)
            return math.log1p(sum_of - error) * (1 - 4 * U), math.log1p(sum_of + error) * (
                1 + 4 * U
            )

        return of_atoms
    transform = loss.transform(1)

    def of_line(t: float) -> Ends:
        line = transform.line(t, np.zeros(1))
        value, error = float(line.log[0].real), float(line.error[0])
        return float(line.floor[0]), value + error

    return of_line


def _supremum(moments: Callable[[float], Ends], largest: float, spread: float) -> float:
    """An upper end of the supremum; `moments` gives both ends of K(t)."""
    third = spread**3 / (6 * math.sqrt(3)) * (1 + 16 * U)
    low, high = moments(min(1.0, 1.0 / spread))
    noise = max(high - low, 1e-18)
    first = min(0.05, 0.05 / spread, max((noise / third) ** (1 / 3), 1e-7))
    found = {t: moments(t) for t in (first, 2 * first)}
    best = max(low / (t * (1 + t)) for t, (low, _) in found.items())
    grid = [2 * first]
    while largest / (1 + grid[-1]) > max(best, 1e-300) and len(grid) < 40:
        grid.append(4 * grid[-1])
        found[grid[-1]] = moments(grid[-1])
        best = max(best, found[grid[-1]][0] / (grid[-1] * (1 + grid[-1])))
    settled = max(_next_to_one(found, first, third), largest / (1 + grid[-1]) * (1 + 4 * U))
    waiting: list[tuple[float, float, float, float]] = []
    for left, right in zip([first, *grid], grid, strict=False):
        heappush(waiting, (-_most(left, right, found, 0.0), left, right, 0.0))
    for _ in range(MOST_STEPS):
        most, left, right, _ = waiting[0]
        if -most <= max(best * (1 + CLOSE), settled) or right < left * (1 + 1e-7):
            break
        _, left, right, known = heappop(waiting)
        middle = math.sqrt(left * right)
        found[middle] = moments(middle)
        best = max(best, found[middle][0] / (middle * (1 + middle)))
        bend = max(_bend(left, middle, right, found) - third * (right - left), known)
        for ends in ((left, middle), (middle, right)):
            heappush(waiting, (-_most(*ends, found, bend), *ends, bend))
    return max(settled, -waiting[0][0])


def _bend(left: float, middle: float, right: float, found: dict[float, Ends]) -> float:
    """A lower end of the second derivative of K somewhere between."""
    (low, _), (_, high), (far, _) = found[left], found[middle], found[right]
    difference = (far - high) / (right - middle) - (high - low) / (middle - left)
    error = (
        8
        * U
        * ((abs(far) + abs(high)) / (right - middle) + (abs(high) + abs(low)) / (middle - left))
    )
    return 2 * (difference - error) / (right - left) * (1 - 8 * U)


def _next_to_one(found: dict[float, Ends], first: float, third: float) -> float:
    """The largest D / (1 + t) on (0, first]."""
    (_, high), (low, _) = found[first], found[2 * first]
    at_first = high / first * (1 + 4 * U)
    at_zero = 2 * at_first - low / (2 * first) * (1 - 4 * U) + third * first**2
    bend = third * first**2 / 3
    return max(at_zero + bend, (at_first + bend) / (1 + first)) * (1 + 8 * U)


def _most(left: float, right: float, found: dict[float, Ends], bend: float) -> float:
    """The largest K(t) / (t (1 + t)) on an interval where the second derivative of K is at least `bend`."""
    half, high = bend / 2, [(end, found[end][1]) for end in (left, right)]
    (_, at_left), (_, at_right) = high
    fall = (at_right * left - at_left * right) / (right - left) - half * left * right
    # Whatever the rounding of `fall` is, with this slope the parabola is above K at both ends.
    slopes = [(value - half * end**2 + fall) / end for end, value in high]
    errors = [16 * U * (value + half * end**2 + abs(fall)) / end for end, value in high]
    slope = max(each + error for each, error in zip(slopes, errors, strict=True)) - half
    slope += 8 * U * (abs(slope) + half)
    most = max(value / (end * (1 + end)) for end, value in high)
    if fall > 0 and slope > 0:
        root = math.sqrt(fall * (fall + slope))
        at = (fall + root) / slope
        most = max(most, half + root / (at * (1 + at))) if left < at < right else most
    return most * (1 + 32 * U)
