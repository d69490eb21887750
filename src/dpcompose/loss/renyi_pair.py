"""A loss and its Renyi curve: the pair that dominates a curve, and the least rho of a loss.

The pair that dominates whatever has a given Renyi curve.

Let K(b) bound log E e^(b L), b = order - 1, in both orders of a mechanism's outputs, given every history. A test
accepts with probability p where the record is and q where it is not. By data processing every (p, q) lies, for each
order a, in the convex set
  G(p, q) = p^a q^(1 - a) + (1 - p)^a (1 - q)^(1 - a) <= e^K(a - 1).
The tangent of G at any point (p, q) with p > q holds for the whole set: p' - r q' <= h with r = -G_q / G_p and
h = p - r q + (e^K - G(p, q)) / G_p. So the hockey-stick divergence at ratio r is at most h, whichever points and orders
were chosen. The greatest convex function below all (r, h), and below their mirror images (1 / r, 1 - 1 / r + h / r),
is the profile of a pair; it dominates the mechanism, in compositions too.

The rho of a loss: the certified supremum of D_a / a over all orders a > 1.

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

Reference: [Asoodeh2021, Section III], [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from heapq import heappop, heappush

import numpy as np

from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atomize import dominating, mirrored, whole
from dpcompose.loss.base import Loss
from dpcompose.numerics import Reals, U

_EXPONENTS = np.geomspace(1e-4, 1e10, 225)
"""Orders less one that are compared; in between they are interpolated."""
_LEAST = math.log(1e-200)
_TESTS = np.concatenate(
    [
        np.linspace(_LEAST, math.log(1e-30), 150, endpoint=False),
        np.linspace(math.log(1e-30), math.log(1e-3), 500, endpoint=False),
        np.linspace(math.log(1e-3), math.log(0.1), 100, endpoint=False),
        np.log(np.linspace(0.1, 0.97, 150)),
    ]
)
"""log p of the tests."""
_COARSE = 20
_NONE = np.empty(0)


def renyi_pair(moments: Callable[[Reals], Reals], *, corners: Reals = _NONE) -> AtomicLoss:
    """The loss of that pair, the same in both orders.

    Args:
        moments: Upper bounds on K at orders less one, an array > 0; infinite where nothing is known.
        corners: Where K may have corners.
    """
    known = moments(_EXPONENTS)
    coarse = np.append(_TESTS[:-1:_COARSE], _TESTS[-1])
    exponents = np.exp(
        np.interp(_TESTS, coarse, _lowest(_gaps(coarse[:, None], _EXPONENTS, known)))
    )
    bounds = moments(exponents)
    gaps = _gaps(_TESTS, exponents, bounds)
    if corners.size:
        nearest = np.rint(np.interp(_TESTS, coarse, np.arange(coarse.size))).astype(int)
        at = corners[_gaps(coarse[:, None], corners, moments(corners)).argmin(axis=1)[nearest]]
        others = _gaps(_TESTS, at, moments(at))
        exponents, bounds = (
            np.where(others < gaps, at, exponents),
            np.where(others < gaps, moments(at), bounds),
        )
        gaps = np.minimum(others, gaps)
    ratios, heights = _tangents(np.exp(_TESTS), gaps, exponents, bounds)
    points = [(whole(a), whole(height)) for a, height in zip(ratios, heights, strict=True)]
    return dominating([*mirrored(points), *points])


@np.errstate(all="ignore")  # where a neighbor is infinite the lowest is taken as it is
def _lowest(gaps: Reals) -> Reals:
    """log of the exponent at which a parabola through the three lowest values of each row has its minimum."""
    at = gaps[:, 1:-1].argmin(axis=1) + 1
    before, lowest, after = (gaps[np.arange(len(at)), at + step] for step in (-1, 0, 1))
    moved = 0.5 * (before - after) / (before - 2 * lowest + after)
    logs = np.log(_EXPONENTS)
    return logs[at] + (logs[1] - logs[0]) * np.where(np.abs(moved) <= 1, moved, 0.0)


@np.errstate(all="ignore")  # what overflows is infinite or undefined, and left out
def _gaps(log_p: Reals, exponent: Reals, bound: Reals) -> Reals:
    """log(p / q) for about the smallest q that the set allows, by Newton's method from the right; infinite if unknown.

    Any other point would do, at some cost in h.
    """
    p = np.exp(log_p)
    gap = (bound - log_p) / exponent
    for _ in range(60):
        q = p * np.exp(-gap)
        fall = np.log((1 - q) / (1 - p))
        first, second = exponent * gap + log_p, np.log1p(-p) - exponent * fall
        top = np.maximum(first, second)
        one, two = np.exp(first - top), np.exp(second - top)
        slope = exponent * (one - two * q / (1 - q)) / (one + two)
        step = (top + np.log(one + two) - bound) / slope
        moved = np.where((step > 1e-13 * gap) & (slope > 0) & (step < gap), gap - step, gap)
        if np.array_equal(moved, gap, equal_nan=True):
            break
        gap = moved
    return np.where(np.isfinite(gap) & (bound < np.inf), gap, np.inf)


@np.errstate(all="ignore")  # likewise
def _tangents(
    p: Reals, gap: Reals, exponent: Reals, bound: Reals
) -> tuple[list[float], list[float]]:
    """The ratios of the tangents in increasing order, rounded up, and their h, rounded up.

    With x = (p / q)^b and y = ((1 - p) / (1 - q))^b, both divided by e^K: G = p x + (1 - p) y, G_p = a (x - y) and
    r = b (x p / q - y (1 - p) / (1 - q)) / (a (x - y)). p and q are exact floats. H falls as r grows.
    """
    q = p * np.exp(-gap)
    more, less = p / q, (1 - p) / (1 - q)
    rise, fall = exponent * np.log(more), exponent * np.log(less)
    x, y = np.exp(rise - bound), np.exp(fall - bound)
    # Quotients are good to 3 U, their logarithms to 5 U and 4 U of themselves, times b; exp to 8 U.
    x_error = x * U * (16 + 8 * exponent + 8 * np.abs(rise) + 4 * bound)
    y_error = y * U * (16 + 8 * exponent + 8 * np.abs(fall) + 4 * bound)
    apart = x - y
    apart_error = x_error + y_error + U * apart
    upper, lower = more * x, less * y
    leaning = upper - lower
    leaning_error = more * x_error + less * y_error + 8 * U * (upper + lower)
    relative_error = leaning_error / leaning + apart_error / (apart - apart_error) + 16 * U
    ratio = exponent * leaning / ((exponent + 1) * apart)
    room = np.maximum(1 - (p * x + (1 - p) * y), 0.0) + x_error * p + y_error * (1 - p) + 16 * U
    height = (
        p - ratio * q + ratio * q * relative_error + room / ((exponent + 1) * (apart - apart_error))
    )
    height = (np.maximum(height, 0.0) + 8 * U * (p + ratio * q)) * (1 + 8 * U)
    ratio = ratio * (1 + relative_error)
    kept = (
        (apart > apart_error)
        & (leaning > leaning_error)
        & (ratio >= 1)
        & np.isfinite(ratio + height)
        & (height < 1)
    )
    ranks = np.argsort(ratio[kept], kind="stable")
    return ratio[kept][ranks].tolist(), height[kept][ranks].tolist()


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
    nodes = {t: moments(t) for t in (first, 2 * first)}
    best = max(low / (t * (1 + t)) for t, (low, _) in nodes.items())
    grid = [2 * first]
    while largest / (1 + grid[-1]) > max(best, 1e-300) and len(grid) < 40:
        grid.append(4 * grid[-1])
        nodes[grid[-1]] = moments(grid[-1])
        best = max(best, nodes[grid[-1]][0] / (grid[-1] * (1 + grid[-1])))
    settled = max(_next_to_one(nodes, first, third), largest / (1 + grid[-1]) * (1 + 4 * U))
    waiting: list[tuple[float, float, float, float]] = []
    for left, right in zip([first, *grid], grid, strict=False):
        heappush(waiting, (-_most(left, right, nodes, 0.0), left, right, 0.0))
    for _ in range(MOST_STEPS):
        most, left, right, _ = waiting[0]
        if -most <= max(best * (1 + CLOSE), settled) or right < left * (1 + 1e-7):
            break
        _, left, right, known = heappop(waiting)
        middle = math.sqrt(left * right)
        nodes[middle] = moments(middle)
        best = max(best, nodes[middle][0] / (middle * (1 + middle)))
        bend = max(_bend(left, middle, right, nodes) - third * (right - left), known)
        for ends in ((left, middle), (middle, right)):
            heappush(waiting, (-_most(*ends, nodes, bend), *ends, bend))
    return max(settled, -waiting[0][0])


def _bend(left: float, middle: float, right: float, nodes: dict[float, Ends]) -> float:
    """A lower end of the second derivative of K somewhere between."""
    (low, _), (_, high), (far, _) = nodes[left], nodes[middle], nodes[right]
    difference = (far - high) / (right - middle) - (high - low) / (middle - left)
    error = (
        8
        * U
        * ((abs(far) + abs(high)) / (right - middle) + (abs(high) + abs(low)) / (middle - left))
    )
    return 2 * (difference - error) / (right - left) * (1 - 8 * U)


def _next_to_one(nodes: dict[float, Ends], first: float, third: float) -> float:
    """The largest D / (1 + t) on (0, first]."""
    (_, high), (low, _) = nodes[first], nodes[2 * first]
    at_first = high / first * (1 + 4 * U)
    at_zero = 2 * at_first - low / (2 * first) * (1 - 4 * U) + third * first**2
    bend = third * first**2 / 3
    return max(at_zero + bend, (at_first + bend) / (1 + first)) * (1 + 8 * U)


def _most(left: float, right: float, nodes: dict[float, Ends], bend: float) -> float:
    """The largest K(t) / (t (1 + t)) on an interval, given that K'' is at least `bend` there."""
    half, high = bend / 2, [(end, nodes[end][1]) for end in (left, right)]
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
