"""The loss above several: its profile is the pointwise maximum of theirs, over all real epsilon.

With a = e^epsilon every profile H(a) = sup_S (P(S) - a Q(S)) is convex, decreasing, 1 at a = 0, and at least 1 - a; so
is the maximum of several, hence it is the profile of a pair, and that pair dominates each of them. Whoever may choose
anew in every round which of the pairs to be told apart by is therefore held by the product of this one.

Convexity gives the atoms: at any nodes, the greatest convex function below upper bounds of H lies above H in between.

Reference: [ZhuDongWang2022, Proposition 9 and Theorem 10]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from functools import lru_cache
from itertools import pairwise

import numpy as np

from dpcompose.loss.atoms import TINY, AtomicLoss
from dpcompose.loss.base import Loss
from dpcompose.loss.product import Product
from dpcompose.numerics.bound import up
from dpcompose.numerics.elementary import Reals, U

MOST_NODES, MOST_KINKS = 4096, 4096
FEW_ATOMS, FIRST_NODES, PASSES = 128, 193, 40
FINE, COARSE = 1e-4, 3.0
LAST_DELTA, LAST_RISE, LAST_EPSILON = 1e-290, 1e-14, 690.0
TOLERANCE = 1e-8
Point = tuple[Fraction, Fraction]


@lru_cache(maxsize=64)
def envelope(losses: tuple[Loss, ...]) -> AtomicLoss:
    """Atoms that dominate every one of the losses: exact for atoms, up to a last digit; else a fine polygon above.

    Args:
        losses: At least one.
    """
    kinks = [loss.atoms().common[2] if 0 < loss.support <= MOST_KINKS else None for loss in losses]
    known = [kink for kink in kinks if kink is not None]
    nodes = _at_kinks(losses, known) if len(known) == len(losses) else _refined(losses)
    return _atoms(_hull(_points(losses, nodes)))


def _values(loss: Loss, nodes: Reals) -> Reals:
    """Upper ends of the profile at a little less than the nodes, so that they hold at the floats next to e^node."""
    moved = nodes - 8 * U * (1 + np.abs(nodes))
    if FEW_ATOMS < loss.support <= MOST_KINKS:
        return _summed(loss.atoms(), moved)
    return np.array([bound.upper for bound in Product(((loss, 1),)).deltas(moved.tolist(), tolerance=TOLERANCE)])


def _summed(loss: AtomicLoss, epsilons: Reals) -> Reals:
    """The profile of many atoms from running sums of p and p e^-loss, with what these may be off by."""
    p, q, ratio = loss.common
    doubt = loss.ratio_error
    above = np.searchsorted(ratio, epsilons - 2 * doubt, side="right")
    mass = np.append(np.cumsum(p[::-1])[::-1], 0.0)[above]
    other = np.where(ratio > -700, p * np.exp(-np.maximum(ratio, -700.0)), q)
    other = np.append(np.cumsum(other[::-1])[::-1], 0.0)[above]
    value = np.maximum(mass - np.exp(epsilons) * other, 0.0) * (1 + loss.fuzz)
    value += mass * (6 * doubt + U * (3 * len(p) + 16 + 4 * np.abs(epsilons)))
    return np.minimum(
        (value + loss.infinite_mass * (1 + loss.infinite_relative_error)) * (1 + 16 * U) + loss.unplaced_mass, 1.0
    )


def _highest(losses: Sequence[Loss], nodes: Reals) -> Reals:
    return np.max([_values(loss, nodes) for loss in losses], axis=0)


def _points(losses: Sequence[Loss], nodes: Reals) -> list[Point]:
    """(0, 1) and (a, an upper bound of the maximum at a) at the nodes, the last of them beyond every finite loss."""
    ends = [loss.maximum for loss in losses]
    last = max(ends)
    inside = nodes[nodes < min(last, LAST_EPSILON)]
    points = [(Fraction(0), Fraction(1))]
    highest = _highest(losses, inside)
    points += [(Fraction(a), Fraction(h)) for a, h in zip(np.exp(inside).tolist(), highest.tolist(), strict=True)]
    if math.isfinite(last) and last < LAST_EPSILON:
        masses = [loss.infinite_mass * (1 + loss.infinite_relative_error) + loss.unplaced_mass for loss in losses]
        infinite = max(up(up(mass)) if mass > 0 else 0.0 for mass in masses)
        end = math.exp(last) * (1 + 8 * U * (1 + abs(last)))
        points.append((Fraction(max(up(end), up(float(points[-1][0])))), Fraction(infinite)))
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
            where = a[change] + (a[change + 1] - a[change]) * gap[change] / (gap[change] - gap[change + 1])
            crossings.extend(np.log(where))
    leads = [np.isin(nodes, kink) & (row >= lead * (1 - 1e-12)) for kink, row in zip(kinks, values, strict=True)]
    kept = np.unique(np.concatenate([nodes[np.any(leads, axis=0)], crossings, [0.0]]))
    return kept[:: math.ceil(len(kept) / MOST_NODES)]


def _refined(losses: Sequence[Loss]) -> Reals:
    """Nodes between which a chord is above the maximum by a small part of it, the smaller the more it weighs.

    On the right the part is one of the profile itself, on the left one of its height above the line 1 - a, which is the
    profile of the reverse order.
    """
    nodes = np.unique(np.concatenate([np.linspace(*_reach(losses), FIRST_NODES), [0.0]]))
    values = _highest(losses, nodes)
    top = float(values[np.searchsorted(nodes, 0.0)])
    cells, found_nodes = (nodes[:-1], values[:-1], nodes[1:], values[1:]), [nodes]
    count = len(nodes)
    for _ in range(PASSES):
        left, high, right, low = cells
        middle = (left + right) / 2
        value = _highest(losses, middle)
        found_nodes.append(middle)
        count += len(middle)
        a, b, at = np.exp(left), np.exp(right), np.exp(middle)
        chord = high + (low - high) * (at - a) / (b - a)
        tail = np.maximum(np.where(middle > 0, value, value + np.expm1(middle)), 1e-300)
        share = np.minimum(FINE * (top / tail) ** 0.3, COARSE)
        split = (chord - value > share * tail) & ((middle > 0) | (chord - value > LAST_RISE))
        if not np.any(split) or count > MOST_NODES:
            break
        cells = (
            np.concatenate([left[split], middle[split]]), np.concatenate([high[split], value[split]]),
            np.concatenate([middle[split], right[split]]), np.concatenate([value[split], low[split]]),
        )  # fmt: skip
    return np.unique(np.concatenate(found_nodes))


def _reach(losses: Sequence[Loss]) -> tuple[float, float]:
    """From where to where there is something to see."""

    def high(epsilon: float) -> float:
        return float(_highest(losses, np.array([epsilon]))[0])

    right, left = min(1.0, max(loss.maximum for loss in losses)), max(-1.0, min(loss.minimum for loss in losses))
    while right < min(LAST_EPSILON, max(loss.maximum for loss in losses)) and high(right) > LAST_DELTA:
        right *= 1.25
    while left > max(-40.0, min(loss.minimum for loss in losses)) and high(left) + math.expm1(left) > LAST_RISE:
        left *= 1.25
    return left, right


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


def _atoms(corners: list[Point]) -> AtomicLoss:
    """The atoms of the polygon through the corners, from (0, 1): q is the change of slope, p = a q, exact but for the
    last rounding; where both are too small for floats, p counts as infinite."""
    slopes = [Fraction(-1), *((b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(corners)), Fraction(0)]
    atoms: list[tuple[float, float, float]] = []
    infinite = corners[-1][1]
    for (a, _), (before, after) in zip(corners, pairwise(slopes), strict=True):
        q = after - before
        if max(q, a * q) > TINY:
            atoms.append((float(a * q), float(q), math.log(a) if a else -math.inf))
        else:
            infinite += a * q
    if infinite > 0:
        atoms.append((up(float(infinite)), 0.0, math.inf))
    upper, lower, ratios = zip(*atoms, strict=True)
    return AtomicLoss(upper, lower, ratios, None, 8 * U)
