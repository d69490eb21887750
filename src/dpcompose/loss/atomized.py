"""Atoms above and atoms below a loss that is known only by its profile.

H(a) = delta(ln a) is convex in a and falls from 1 at a = 0. Whatever convex function lies above H is the profile of a
dominating pair, whatever lies below it (and is itself a profile) that of a dominated one; a piecewise linear one is a
list of atoms.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from itertools import pairwise

import numpy as np

from dpcompose.loss.atoms import AtomicLoss
from dpcompose.numerics.bound import Bound
from dpcompose.numerics.elementary import U

POINTS = 2048
REACH, LARGEST = 600.0, 1e5
FLOATS = Fraction(10) ** 300
Point = tuple[Fraction, Fraction]


def atomized(
    profiles: Callable[[list[float]], list[Bound]], maximum: float, *, minimum: float | None = None
) -> tuple[AtomicLoss, AtomicLoss]:
    """Two atomic losses, one dominating and one dominated by every loss with the given profile.

    Args:
        profiles: Certified enclosures of delta(epsilon) at a list of increasing real epsilons.
        maximum: The largest loss, or inf.
        minimum: The smallest loss, or -inf; by default minus the maximum.
    """

    def profile(epsilon: float) -> Bound:
        return profiles([epsilon])[0]

    high = _reach(profile, maximum, lambda epsilon, bound: bound.lower <= 0 or bound.upper < 1e-17)
    end = maximum if minimum is None else -minimum
    low = -_reach(lambda e: profile(-e), end, lambda epsilon, bound: bound.upper + math.expm1(-epsilon) < 1e-14)
    grid = np.unique(np.concatenate([np.linspace(low, high, POINTS), [0.0]]))
    values = profiles(grid.tolist())
    x = [Fraction(0), *map(Fraction, np.exp(grid).tolist())]
    upper = [Fraction(1), *(Fraction(bound.upper) for bound in values)]
    lower = [
        Fraction(1),
        *(max(Fraction(bound.lower), 1 - at, Fraction(0)) for bound, at in zip(values, x[1:], strict=True)),
    ]
    upper = [max(high, low) for high, low in zip(upper, lower, strict=True)]
    above = list(zip(x, upper, strict=True))
    if high < maximum <= LARGEST and upper[-1] > 0:
        above.append((_exponential(maximum), Fraction(0)))  # what the grid does not reach is finite all the same
    below = _underside(x, lower, upper)
    if high < maximum and lower[-1] > 0:  # what the grid does not reach ends with it
        below = [*(point for point in below if point[0] < x[-1]), (x[-1], Fraction(0))]
    return _losses(_hull(above)), _losses(_hull(below))


def _exponential(loss: float) -> Fraction:
    """No less than e^loss, and hardly more."""
    with localcontext(Context(prec=40)):
        return Fraction(Decimal(loss).exp() * (1 + Decimal("1e-30")))


def _logarithm(ratio: Fraction) -> float:
    """ln of a ratio that may be above the floats."""
    return math.log(ratio) if ratio < FLOATS else math.log(ratio.numerator) - math.log(ratio.denominator)


def _reach(profile: Callable[[float], Bound], end: float, done: Callable[[float, Bound], bool]) -> float:
    """How far the grid must go: to the end of the losses, or until `done`, at most `REACH`."""
    point = min(1.0, end)
    while point < min(end, REACH) and not done(point, profile(point)):
        point = min(1.5 * point, end, REACH)
    return point


def _hull(points: list[Point]) -> list[Point]:
    """The greatest convex function below the points, by its corners (Andrew's monotone chain), in exact arithmetic."""
    keep: list[Point] = []
    for point in points:
        while len(keep) > 1:
            (ax, ay), (bx, by) = keep[-2:]
            if (by - ay) * (point[0] - bx) < (point[1] - by) * (bx - ax):
                break
            keep.pop()
        keep.append(point)
    return keep


def _underside(x: list[Fraction], lower: list[Fraction], upper: list[Fraction]) -> list[Point]:
    """Points of a function below every convex one from (0, 1) on, slope >= -1, that keeps between `lower` and `upper`.

    In a cell the chords of its two neighbors, prolonged, both lie below: so does any path from end to end that stays
    below both.
    """
    points = [(x[0], lower[0])]
    for i in range(len(x) - 1):
        left = (lower[i] - upper[i - 1]) / (x[i] - x[i - 1]) if i > 0 else Fraction(-1)
        right = (upper[i + 2] - lower[i + 1]) / (x[i + 2] - x[i + 1]) if i + 2 < len(x) else Fraction(0)
        middle = (x[i] + x[i + 1]) / 2
        if right > left:
            meet = (lower[i + 1] - lower[i] + left * x[i] - right * x[i + 1]) / (left - right)
            middle = meet if x[i] < meet < x[i + 1] else middle
        points.append(
            (
                middle,
                max(
                    min(lower[i] + left * (middle - x[i]), lower[i + 1] - right * (x[i + 1] - middle)),
                    1 - middle,
                    Fraction(0),
                ),
            )
        )
        points.append((x[i + 1], lower[i + 1]))
    # Beyond the last point its chord, prolonged, lies below: follow it down to 0, so that no infinite loss is claimed.
    last = (lower[-1] - upper[-2]) / (x[-1] - x[-2])
    if lower[-1] > 0:
        points.append((x[-1] + lower[-1] / -last if last < 0 else 2 * x[-1], Fraction(0)))
    return points


def _losses(corners: list[Point]) -> AtomicLoss:
    """The atoms of the piecewise linear profile through the corners, from (0, 1), constant after the last.

    Each has q = change of slope and p = x q.

    Taken exactly and rounded once, so that the masses are good to their last digits however small they are.
    """
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(corners)]
    changes = [after - before for before, after in zip([Fraction(-1), *slopes], [*slopes, Fraction(0)], strict=True)]
    atoms = [
        (float(x * q), float(q), _logarithm(x) if x else -math.inf)
        for (x, _), q in zip(corners, changes, strict=True)
        if q > 0
    ]
    infinite = float(corners[-1][1])
    if infinite > 0:
        atoms.append((infinite, 0.0, math.inf))
    smallest = min((abs(ratio) for _, _, ratio in atoms if ratio), default=1.0)
    upper, lower, ratios = zip(*atoms, strict=True)
    return AtomicLoss(upper, lower, ratios, None, 8 * U, slant=8 * U * (1 + 1 / smallest))
