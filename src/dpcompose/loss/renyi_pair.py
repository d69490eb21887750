"""The pair that dominates whatever has a given Renyi curve.

Let K(b) bound log E e^(b L), b = order - 1, in both orders of a mechanism's outputs, given every history. A test
accepts with probability p where the record is and q where it is not. By data processing every (p, q) lies, for each
order a, in the convex set
  G(p, q) = p^a q^(1 - a) + (1 - p)^a (1 - q)^(1 - a) <= e^K(a - 1).
The tangent of G at any point (p, q) with p > q holds for the whole set: p' - r q' <= h with r = -G_q / G_p and
h = p - r q + (e^K - G(p, q)) / G_p. So the hockey-stick divergence at ratio r is at most h, whichever points and orders
were chosen. The greatest convex function below all (r, h), and below their mirror images (1 / r, 1 - 1 / r + h / r),
is the profile of a pair; it dominates the mechanism, in compositions too.

Reference: [Asoodeh2021, Section III], [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atomize import dominating
from dpcompose.numerics import Reals, U
from dpcompose.values import lower_hull

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
    points = [
        (Fraction(ratio), Fraction(height)) for ratio, height in zip(ratios, heights, strict=True)
    ]
    mirrored = [(1 / ratio, 1 - (1 - height) / ratio) for ratio, height in reversed(points)]
    return dominating(lower_hull([(Fraction(0), Fraction(1)), *mirrored, *points]))


@np.errstate(all="ignore")  # where a neighbor is infinite the lowest is taken as it is
def _lowest(gaps: Reals) -> Reals:
    """log of the exponent at which the parabola through the three lowest of each row has its minimum."""
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
