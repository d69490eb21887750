"""Atoms above and below a loss that is known only by its profile, and atoms above several losses.

H(a) = delta(ln a) is convex in a and falls from 1 at a = 0. Whatever convex function lies above H is the profile of a
dominating pair, whatever lies below it (and is itself a profile) that of a dominated one; a piecewise linear one is a
list of atoms.

The pointwise maximum of several profiles is convex, decreasing, 1 at a = 0 and at least 1 - a too; hence it is the
profile of a pair that dominates each of them. An adversary who chooses one of the pairs anew in every round is
therefore bounded by the product of this one. Convexity gives its atoms: at any nodes, the greatest convex function
below upper bounds of H lies above H in between.

Reference: [ZhuDongWang2022, Proposition 9 and Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from decimal import Context, Decimal, localcontext
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpcompose.law import LAST_EPSILON
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import TINY, Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.product import Product
from dpcompose.numerics import Reals, U
from dpcompose.values import Bound, lower_hull, up

POINTS = 2048
REACH, LARGEST = 600.0, 1e5
FLOATS = 10**300
UNIT = 1 << 1100
"""Points are kept in whole numbers of 1 / UNIT, which every float is: no common divisors are computed."""
MOST_NODES, MOST_KINKS = 4096, 4096
FEW_ATOMS, FIRST_NODES, PASSES = 128, 193, 40
FINE, COARSE = 1e-4, 3.0
LAST_DELTA, LAST_RISE = 1e-290, 1e-14
TOLERANCE = 1e-8
Point = tuple[int, int]
"""A place a and a height of a profile there, in units."""


def atomized(
    profiles: Callable[[list[float]], list[Bound]], maximum: float, *, minimum: float | None = None
) -> tuple[Atoms, Atoms]:
    """Two atomic losses, one dominating and one dominated by every loss with the given profile.

    Args:
        profiles: Certified enclosures of delta(epsilon) at a list of increasing real epsilons.
        maximum: The largest loss, or inf.
        minimum: The smallest loss, or -inf; by default minus the maximum.
    """

    def profile(epsilon: float) -> Bound:
        return profiles([epsilon])[0]

    grid = _grid(profile, maximum, maximum if minimum is None else -minimum)
    high = float(grid[-1])
    values = profiles(grid.tolist())
    x = [0, *map(whole, np.exp(grid).tolist())]
    upper = [UNIT, *(whole(bound.upper) for bound in values)]
    floors = (max(UNIT - at, 0) for at in x[1:])
    lower = [UNIT, *map(max, (whole(bound.lower) for bound in values), floors)]
    upper = [*map(max, upper, lower)]
    above = list(zip(x, upper, strict=True))
    if high < maximum <= LARGEST and upper[-1] > 0:
        # What the grid does not reach is finite all the same.
        above.append((_exponential(maximum), 0))
    below = _underside(x, lower, upper)
    if high < maximum and lower[-1] > 0:  # what the grid does not reach ends with it
        below = [*(point for point in below if point[0] < x[-1]), (x[-1], 0)]
    return _losses(lower_hull(above)), _losses(lower_hull(below))


def atoms_above(profile: Callable[[float], Bound], upper: Callable[[float], float]) -> Atoms:
    """The first of `atomized` for a loss without a largest value, of which `upper` alone is asked on the grid."""
    grid = _grid(profile, math.inf, math.inf)
    x = [*map(whole, np.exp(grid).tolist())]
    heights = (max(whole(upper(at)), UNIT - a, 0) for at, a in zip(grid.tolist(), x, strict=True))
    return _losses(lower_hull([(0, UNIT), *zip(x, heights, strict=True)]))


def whole(number: float) -> int:
    """A finite float as an integer number of the smallest units that any float is a multiple of."""
    over, under = number.as_integer_ratio()
    return over * (UNIT // under)


def mirrored(points: Sequence[Point]) -> list[Point]:
    """Points (1 / a, 1 - 1 / a + H / a), rounded up, for points (a, H) above a profile: above that of the other order.

    Reference: [ZhuDongWang2022, Proposition 9]
    """
    return [
        (-(-UNIT * UNIT // a), UNIT - (UNIT - height) * UNIT // a) for a, height in reversed(points)
    ]


def _grid(profile: Callable[[float], Bound], maximum: float, end: float) -> Reals:
    """Losses from where the profile has hardly left 1 - e^epsilon to where it has hardly anything left."""
    high = _reach(profile, maximum, lambda epsilon, bound: bound.lower <= 0 or bound.upper < 1e-17)
    low = -_reach(
        lambda e: profile(-e),
        end,
        lambda epsilon, bound: bound.upper + math.expm1(-epsilon) < 1e-14,
    )
    return np.unique(np.concatenate([np.linspace(low, high, POINTS), [0.0]]))


def _exponential(loss: float) -> int:
    """e^loss in such units, rounded up."""
    with localcontext(Context(prec=40)):
        over, under = (Decimal(loss).exp() * (1 + Decimal("1e-30"))).as_integer_ratio()
    return -(-over * UNIT // under)


def _logarithm(a: int) -> float:
    """ln of a place, which may be above the floats."""
    if not a:
        return -math.inf
    return math.log(a / UNIT) if a < FLOATS * UNIT else math.log(a // UNIT)


def _reach(
    profile: Callable[[float], Bound], end: float, done: Callable[[float, Bound], bool]
) -> float:
    """To which loss the grid must go: to the largest one, or until `done` says that enough is covered; at most `REACH`."""
    point = min(1.0, end)
    while point < min(end, REACH) and not done(point, profile(point)):
        point = min(1.5 * point, end, REACH)
    return point


def _underside(x: list[int], lower: list[int], upper: list[int]) -> list[Point]:
    """Points of a function below every convex one from (0, 1) on, slope >= -1, that keeps between `lower` and `upper`.

    In a cell the chords of its two neighbors, prolonged, both lie below: so does any path from end to end that stays
    below both.
    """
    # The slopes of the chords before and after each cell, as quotients.
    outer = [
        (-1, 1),
        *(
            (low - high, b - a)
            for (a, b), low, high in zip(pairwise(x), lower[1:], upper, strict=False)
        ),
    ]
    inner = [
        *(
            (high - low, b - a)
            for (a, b), high, low in zip(pairwise(x), upper[1:], lower, strict=False)
        ),
        (0, 1),
    ]
    points = [(x[0], lower[0])]
    for i, (start, end) in enumerate(pairwise(x)):
        (fall, run), (rise, width) = outer[i], inner[i + 1]
        middle, bend = (start + end) // 2, rise * run - fall * width
        if bend > 0:
            gap = (lower[i] - lower[i + 1]) * run * width
            meet = (gap + rise * run * end - fall * width * start) // bend
            middle = meet if start < meet < end else middle
        left = lower[i] + fall * (middle - start) // run
        right = lower[i + 1] + -rise * (end - middle) // width
        points += [(middle, max(min(left, right), UNIT - middle, 0)), (end, lower[i + 1])]
    # Beyond the last point its chord, prolonged, lies below: follow it down to 0, so that no infinite loss is claimed.
    fall, run = outer[-1]
    if lower[-1] > 0:
        points.append((x[-1] + lower[-1] * run // -fall if fall < 0 else 2 * x[-1], 0))
    return points


def _bends(corners: list[Point]) -> Iterator[tuple[int, int, int]]:
    """The corners of the profile, and by how much its slope changes at each, as quotients: it rises from -1 before the
    first corner to 0 after the last."""
    slopes = [(-1, 1), *((d - b, c - a) for (a, b), (c, d) in pairwise(corners)), (0, 1)]
    for (x, _), ((before, run), (after, width)) in zip(corners, pairwise(slopes), strict=True):
        yield x, after * run - before * width, run * width


def _losses(corners: list[Point]) -> Atoms:
    """The atoms of the piecewise linear profile through the corners, from (0, 1), constant after the last.

    Each has q = change of slope and p = x q.

    Taken exactly and rounded once, so that the masses are good to their last digits however small they are.
    """
    atoms = [
        (x * over / (UNIT * under), over / under, _logarithm(x))
        for x, over, under in _bends(corners)
        if over > 0
    ]
    infinite = corners[-1][1] / UNIT
    if infinite > 0:
        atoms.append((infinite, 0.0, math.inf))
    smallest = min((abs(ratio) for _, _, ratio in atoms if ratio), default=1.0)
    upper, lower, ratios = zip(*atoms, strict=True)
    return Atoms(
        upper, lower, ratios, None, 8 * U, log_ratio_relative_error=8 * U * (1 + 1 / smallest)
    )


@lru_cache(maxsize=64)
def envelope(losses: tuple[Loss, ...]) -> AtomicLoss:
    """Atoms that dominate every one of the losses: exact for atoms, up to a last digit; else a fine polygon above.

    Args:
        losses: At least one.
    """
    kinks = [loss.atoms().common[2] if 0 < loss.support <= MOST_KINKS else None for loss in losses]
    known = [kink for kink in kinks if kink is not None]
    if len(known) == len(losses):
        nodes = _at_kinks(losses, known)
        return dominating(_points(losses, nodes, _highest(losses, nodes)))
    return dominating(_points(losses, *_refined(losses)))


def above_values(epsilons: Sequence[float], deltas: Sequence[float]) -> Atoms:
    """Atoms above any profile, of either order, that is at most these deltas a little before these epsilons >= 0.

    Args:
        epsilons: Increasing, from 0 on; a little is 16 U (1 + epsilon).
        deltas: In [0, 1]. The last holds for all that follows.
    """
    a = np.exp(np.array(epsilons)).tolist()
    right = [(whole(at), whole(delta)) for at, delta in zip(a, deltas, strict=True)]
    return dominating([*mirrored(right[1:]), *right]).table


def _values(loss: Loss, nodes: Reals) -> Reals:
    """Upper ends of the profile at a little less than the nodes, so that they hold at the floats next to e^node."""
    moved = nodes - 8 * U * (1 + np.abs(nodes))
    if FEW_ATOMS < loss.support <= MOST_KINKS:
        return _summed(loss.atoms(), moved)
    return np.array(
        [bound.upper for bound in Product(((loss, 1),)).deltas(moved.tolist(), tolerance=TOLERANCE)]
    )


def _summed(loss: Atoms, epsilons: Reals) -> Reals:
    """The profile of many atoms from running sums of p and p e^-loss, with what these may be off by."""
    p, q, ratio = loss.common
    ratio_error = loss.ratio_error
    above = np.searchsorted(ratio, epsilons - 2 * ratio_error, side="right")
    mass = np.append(np.cumsum(p[::-1])[::-1], 0.0)[above]
    other = np.where(ratio > -700, p * np.exp(-np.maximum(ratio, -700.0)), q)
    other = np.append(np.cumsum(other[::-1])[::-1], 0.0)[above]
    value = np.maximum(mass - np.exp(epsilons) * other, 0.0) * (1 + loss.relative_error)
    value += mass * (6 * ratio_error + U * (3 * len(p) + 16 + 4 * np.abs(epsilons)))
    return np.minimum(
        (value + loss.infinite_mass * (1 + (loss.relative_error + 8 * U))) * (1 + 16 * U)
        + loss.unplaced_mass,
        1.0,
    )


def _highest(losses: Sequence[Loss], nodes: Reals) -> Reals:
    return np.max([_values(loss, nodes) for loss in losses], axis=0)


def _points(losses: Sequence[Loss], nodes: Reals, highest: Reals) -> list[Point]:
    """Pairs (a, upper bound of the maximum at a) at the nodes; the last node is above e^(every finite loss)."""
    ends = [loss.maximum for loss in losses]
    last = max(ends)
    inside = nodes < min(last, LAST_EPSILON)
    a = np.exp(nodes[inside]).tolist()
    points = [
        (whole(at), whole(height)) for at, height in zip(a, highest[inside].tolist(), strict=True)
    ]
    if math.isfinite(last) and last < LAST_EPSILON:
        masses = [
            loss.infinite_mass * (1 + loss.infinite_relative_error) + loss.unplaced_mass
            for loss in losses
        ]
        infinite = max(up(up(mass)) if mass > 0 else 0.0 for mass in masses)
        end = math.exp(last) * (1 + 8 * U * (1 + abs(last)))
        points.append((whole(max(up(end), up(a[-1] if a else 0.0))), whole(infinite)))
    return points


def _at_kinks(losses: Sequence[Loss], kinks: Sequence[Reals]) -> Reals:
    """Where the maximum of piecewise linear profiles bends: their own bends, where they lead, and their crossings."""
    nodes = np.unique(np.concatenate([*kinks, [0.0]]))
    nodes = nodes[nodes < LAST_EPSILON]
    values = np.array([_values(loss, nodes) for loss in losses])
    lead = np.max(values, axis=0)
    crossings: list[float] = []
    a = np.exp(nodes)
    for i in range(len(losses)):
        for j in range(i):
            gap = values[i] - values[j]
            change = np.flatnonzero(gap[:-1] * gap[1:] < 0)
            where = a[change] + (a[change + 1] - a[change]) * gap[change] / (
                gap[change] - gap[change + 1]
            )
            crossings.extend(np.log(where))
    leads = [
        np.isin(nodes, kink) & (row >= lead * (1 - 1e-12))
        for kink, row in zip(kinks, values, strict=True)
    ]
    kept = np.unique(np.concatenate([nodes[np.any(leads, axis=0)], crossings, [0.0]]))
    return kept[:: math.ceil(len(kept) / MOST_NODES)]


def _refined(losses: Sequence[Loss]) -> tuple[Reals, Reals]:
    """Nodes between which a chord is above the maximum by a small part of it, the smaller the more it weighs, and the
    maximum there.

    On the right the part is one of the profile itself, on the left one of its height above the line 1 - a, which is the
    profile of the reverse order.
    """
    nodes = np.unique(np.concatenate([np.linspace(*_span(losses), FIRST_NODES), [0.0]]))
    values = _highest(losses, nodes)
    top = float(values[np.searchsorted(nodes, 0.0)])
    cells, found = (nodes[:-1], values[:-1], nodes[1:], values[1:]), [(nodes, values)]
    for _ in range(PASSES):
        left, high, right, low = cells
        middle = (left + right) / 2
        value = _highest(losses, middle)
        found.append((middle, value))
        a, b, at = np.exp(left), np.exp(right), np.exp(middle)
        chord = high + (low - high) * (at - a) / np.maximum(b - a, 1e-300)
        tail = np.maximum(np.where(middle > 0, value, value + np.expm1(middle)), 1e-300)
        share = np.minimum(FINE * (top / tail) ** 0.3, COARSE)
        split = (
            (chord - value > share * tail)
            & ((middle > 0) | (chord - value > LAST_RISE))
            & (b - a > 1e-9 * b)
        )
        if not np.any(split) or sum(len(at) for at, _ in found) > MOST_NODES:
            break
        cells = (
            np.concatenate([left[split], middle[split]]), np.concatenate([high[split], value[split]]),
            np.concatenate([middle[split], right[split]]), np.concatenate([value[split], low[split]]),
        )  # fmt: skip
    nodes, values = (np.concatenate(each) for each in zip(*found, strict=True))
    order = nodes.argsort()
    return nodes[order], values[order]


def _span(losses: Sequence[Loss]) -> tuple[float, float]:
    """The epsilons between which nodes are needed.

    Left of them the largest profile is 1 - e^epsilon up to `LAST_RISE`, right of them it is at most `LAST_DELTA`,
    unless the search ended at -40 or `LAST_EPSILON` before.
    """

    def high(epsilon: float) -> float:
        return float(_highest(losses, np.array([epsilon]))[0])

    right, left = (
        min(1.0, max(loss.maximum for loss in losses)),
        max(-1.0, min(loss.minimum for loss in losses)),
    )
    while (
        right < min(LAST_EPSILON, max(loss.maximum for loss in losses)) and high(right) > LAST_DELTA
    ):
        right *= 1.25
    while (
        left > max(-40.0, min(loss.minimum for loss in losses))
        and high(left) + math.expm1(left) > LAST_RISE
    ):
        left *= 1.25
    return left, right


def dominating(points: list[Point]) -> AtomicLoss:
    """The atoms of the greatest convex function from (0, 1) below points: q is the change of slope, p = a q, exact but
    for the last rounding; where both are too small for floats, p counts as infinite."""
    corners = lower_hull([(0, UNIT), *points])
    atoms: list[tuple[float, float, float]] = []
    infinite = Fraction(corners[-1][1], UNIT)
    for a, over, under in _bends(corners):
        p, q = a * over / (UNIT * under), over / under
        if max(p, q) > TINY:
            atoms.append((p, q, _logarithm(a)))
        elif over:
            infinite += Fraction(a * over, UNIT * under)
    if infinite > 0:
        atoms.append((up(float(infinite)), 0.0, math.inf))
    upper, lower, ratios = zip(*atoms, strict=True)
    return AtomicLoss(Atoms(upper, lower, ratios, None, 8 * U))
