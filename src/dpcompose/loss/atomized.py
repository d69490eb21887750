"""Atoms above and atoms below a loss that is known only by its profile.

H(a) = delta(ln a) is convex in a and falls from 1 at a = 0. Whatever convex function lies above H is the profile of a dominating pair,
whatever lies below it (and is itself a profile) that of a dominated one; a piecewise linear one is a list of atoms.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from dpcompose.loss.atoms import AtomicLoss
from dpcompose.numerics.bound import Bound
from dpcompose.numerics.elementary import U, Reals

POINTS = 2048


def atomized(profile: Callable[[float], Bound], maximum: float, *, minimum: float | None = None) -> tuple[AtomicLoss, AtomicLoss]:
    """Two atomic losses, one dominating and one dominated by every loss with the given profile.

    Args:
        profile: A certified enclosure of delta(epsilon) at every real epsilon.
        maximum: The largest loss, or inf.
        minimum: The smallest loss, or -inf; by default minus the maximum.
    """
    high = _reach(profile, maximum, 1.0, lambda bound: bound.upper < 1e-17)
    low = -_reach(lambda e: profile(-e), math.inf if minimum is None else -minimum, 1.0, lambda bound: bound.upper < 1.0)
    grid = np.unique(np.concatenate([np.linspace(low, high, POINTS), [0.0]]))
    values = [profile(float(epsilon)) for epsilon in grid]
    ratio = np.concatenate([[0.0], np.exp(grid)])
    upper = np.concatenate([[1.0], [bound.upper for bound in values]])
    lower = np.concatenate([[1.0], [bound.lower for bound in values]])
    return _losses(*_hull(ratio, upper)), _losses(*_hull(*_underside(ratio, lower, upper)))


def _reach(profile: Callable[[float], Bound], end: float, start: float, done: Callable[[Bound], bool]) -> float:
    """How far the grid must go: to the end of the losses, or until `done`, at most 300."""
    point = min(start, end)
    while point < min(end, 300.0) and not done(profile(point)):
        point = min(2 * point, end, 300.0)
    return point


def _hull(x: Reals, y: Reals) -> tuple[Reals, Reals]:
    """The greatest convex function below the points, by its corners (Andrew's monotone chain)."""
    keep: list[int] = []
    for index in range(len(x)):
        while len(keep) > 1:
            a, b = keep[-2], keep[-1]
            if (y[b] - y[a]) * (x[index] - x[b]) < (y[index] - y[b]) * (x[b] - x[a]):
                break
            keep.pop()
        keep.append(index)
    return x[keep], y[keep]


def _underside(x: Reals, lower: Reals, upper: Reals) -> tuple[Reals, Reals]:
    """Points below a convex function that lies between `lower` and `upper` at x: in each cell the chords of its two neighbors, prolonged, meet."""
    points = [(float(x[0]), float(lower[0]))]
    for i in range(len(x) - 1):
        left = (lower[i] - upper[i - 1]) / (x[i] - x[i - 1]) if i > 0 else -1.0
        right = (upper[i + 2] - lower[i + 1]) / (x[i + 2] - x[i + 1]) if i + 2 < len(x) else 0.0
        if right > left:
            meet = (lower[i + 1] - lower[i] + left * x[i] - right * x[i + 1]) / (left - right)
            if x[i] < meet < x[i + 1]:
                value = max(float(lower[i] + left * (meet - x[i])), 0.0) * (1 - 8 * U)
                points.append((float(meet), value - 4 * U))
        points.append((float(x[i + 1]), float(lower[i + 1])))
    # Beyond the last point the prolonged last chord lies below: follow it down to 0, so that no infinite loss is claimed.
    last = (lower[-1] - upper[-2]) / (x[-1] - x[-2])
    if lower[-1] > 0:
        points.append((float(x[-1] + lower[-1] / -last) if last < 0 else float(x[-1]) * (1 + 1e-6), 0.0))
    return np.array([p[0] for p in points]), np.maximum(np.array([p[1] for p in points]), 0.0)


def _losses(x: Reals, y: Reals) -> AtomicLoss:
    """The atoms of the piecewise linear profile through the corners (x[0] = 0, y[0] = 1), constant after the last: q = change of slope, p = x q."""
    slopes = np.append(np.diff(y) / np.diff(x), 0.0)
    changes = np.maximum(np.diff(np.concatenate([[-1.0], slopes])), 0.0)
    q, p = changes.copy(), x * changes
    infinite = float(y[-1])
    # The sums miss 1 by rounding only; what they miss counts as lost, on the safe side of either end.
    lost = max(abs(1 - math.fsum(q)), abs(1 - infinite - math.fsum(p))) + 64 * U * len(x)
    upper, lower, ratio = [*p.tolist(), infinite], [*q.tolist(), 0.0], [*np.log(np.maximum(x, 1e-320)).tolist(), 0.0]
    nonzero = np.abs(np.log(x[x > 0]))
    fuzz = 64 * U * (1 + 1 / float(np.min(nonzero[nonzero > 0], initial=1.0)))
    kept = [(a, b, c) for a, b, c in zip(upper, lower, ratio, strict=True) if a > 0 or b > 0]
    return AtomicLoss(tuple(k[0] for k in kept), tuple(k[1] for k in kept), tuple(k[2] for k in kept), None, fuzz, lost)
