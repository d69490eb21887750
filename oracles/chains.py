"""Tests between pairs on finitely many points, and chains of such pairs, in exact rational arithmetic.

A pair is a list of points (P mass, Q mass) of rationals. Its power at a level is that of the likelihood-ratio test,
randomized at the boundary; a chain of neighbors applies one power function after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import accumulate, pairwise, product

from flint import arb

from oracles.ball import Number, ball

Points = Sequence[tuple[Fraction, Fraction]]


def swapped(points: Points) -> Points:
    """(Q, P)."""
    return [(below, above) for above, below in points]


def joined(*pairs: Points) -> Points:
    """The pair of independent outcomes."""
    found = []
    for outcomes in product(*pairs):
        above, below = Fraction(1), Fraction(1)
        for p, q in outcomes:
            above, below = above * p, below * q
        found.append((above, below))
    return found


def corners(points: Points) -> list[tuple[Fraction, Fraction]]:
    """(level, power) where the power function turns, from level 0 to level 1."""
    start = sum((p for p, q in points if q == 0), Fraction(0))
    finite = sorted(
        ((p, q) for p, q in points if q > 0), key=lambda point: point[0] / point[1], reverse=True
    )
    levels = accumulate((q for _, q in finite), initial=Fraction(0))
    powers = accumulate((p for p, _ in finite), initial=start)
    return list(zip(levels, powers, strict=True))


def power(points: Points, level: Fraction) -> Fraction:
    """The largest P(S) with Q(S) <= level."""
    turns = corners(points)
    for (x1, y1), (x2, y2) in pairwise(turns):
        if level <= x2:
            return y1 + (y2 - y1) * (level - x1) / (x2 - x1)
    return turns[-1][1]


def chained(chain: Sequence[Points], level: Fraction) -> Fraction:
    """The power along the chain, its last pair's Q first."""
    for points in reversed(chain):
        level = power(points, level)
    return level


def chain_corners(chain: Sequence[Points]) -> list[Fraction]:
    """Levels where the power along the chain can turn: the corners of each pair, led back through those after it."""
    found = {Fraction(0), Fraction(1)}
    for place in range(len(chain)):
        levels = [level for level, _ in corners(chain[place])]
        for points in chain[place + 1 :]:
            levels = [
                _led_back(points, level) for level in levels if corners(points)[0][1] <= level
            ]
        found.update(levels)
    return sorted(found)


def pair_of(chain: Sequence[Points]) -> Points:
    """A pair whose power function is that of the chain: levels are outcomes of Q, gains those of P."""
    levels = chain_corners(chain)
    powers = [chained(chain, level) for level in levels]
    return _steps(levels, powers)


def mixed(weights: Sequence[Fraction], chains: Sequence[Sequence[Points]]) -> Points:
    """The pair whose power function is the weighted sum of those of the chains."""
    levels = sorted({level for chain in chains for level in chain_corners(chain)})
    parts = list(zip(weights, chains, strict=True))
    powers = [
        sum((weight * chained(chain, level) for weight, chain in parts), Fraction(0))
        for level in levels
    ]
    return _steps(levels, powers)


def _steps(levels: Sequence[Fraction], powers: Sequence[Fraction]) -> Points:
    gained = [y2 - y1 for y1, y2 in pairwise(powers)]
    return [
        (powers[0], Fraction(0)),
        *zip(gained, (x2 - x1 for x1, x2 in pairwise(levels)), strict=True),
    ]


def delta(epsilon: Number, points: Points) -> arb:
    """The hockey-stick divergence at e^epsilon."""
    growth = ball(epsilon).exp()
    gains = (ball(p) - growth * ball(q) for p, q in points)
    return sum((gain for gain in gains if not gain < 0), arb(0))


def tradeoff(level: Fraction, points: Points) -> Fraction:
    """The convex hull of the smaller of both orders' trade-off functions, at a level."""
    turns = [(x, 1 - y) for pair in (points, swapped(points)) for x, y in corners(pair)]
    turns = sorted([*turns, (Fraction(1), Fraction(0))])
    around = [
        (one, other)
        for one in turns
        for other in turns
        if one[0] <= level <= other[0] and one[0] < other[0]
    ]
    lowest = min(y1 + (y2 - y1) * (level - x1) / (x2 - x1) for (x1, y1), (x2, y2) in around)
    return max(lowest, Fraction(0))


def _led_back(points: Points, wanted: Fraction) -> Fraction:
    turns = corners(points)
    for (x1, y1), (x2, y2) in pairwise(turns):
        if wanted <= y2 and y2 > y1:
            return x1 + (x2 - x1) * (wanted - y1) / (y2 - y1)
    return Fraction(1)
