"""The distributions whose existence Lemmas 3.17 and 3.18 state, computed exactly.

Lemma 3.17: a pair is (epsilon, delta)-indistinguishable exactly when distributions within total
variation distance delta of it are epsilon-indistinguishable. Lemma 3.18: the pair of largest mean
loss.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dpcompose.divergence.distribution import (
    Coupled,
    Distribution,
    Finite,
    Rational,
    coupled,
    floor_ratio,
)
from dpcompose.divergence.hockey_stick import distance, excess
from dpcompose.errors import UnsupportedError
from dpcompose.pictured import Card

_UNEQUAL = (
    "the masses were given as floats whose sums differ, and at this ratio that leaves no room"
)


@dataclass(frozen=True)
class OneSidedWitness(Card):
    """Part 1 of Lemma 3.17: the distribution Y' closest to Y with Y'(x) <= a Z(x) everywhere.

    Args:
        first: The distribution Y.
        second: The distribution Z.
        nearby: The distribution Y', of the same total mass as Y.
        ratio: The rational number a >= 1, e^epsilon or just below it.
        distance: The total variation distance of Y and Y', exactly; it equals H_a(Y||Z), and no
            smaller one is possible.
    """

    first: Distribution
    second: Distribution
    nearby: Distribution
    ratio: Fraction
    distance: Fraction

    def check(self) -> bool:
        """Whether the inequalities hold and `distance` is true and the least possible, recomputed."""
        least = excess(coupled(self.first, self.second), self.ratio)
        apart = distance(coupled(self.first, self.nearby))
        return (
            self.nearby.total == self.first.total
            and apart == self.distance == least
            and _covers(self.second, self.nearby, self)
        )


@dataclass(frozen=True)
class SymmetricWitness(Card):
    """Part 2 of Lemma 3.17: the epsilon-indistinguishable pair (Y', Z') closest to (Y, Z).

    Args:
        first: The distribution Y.
        second: The distribution Z.
        nearby_first: The distribution Y', of the same total mass as Y.
        nearby_second: The distribution Z', of the same total mass as Z.
        ratio: The rational number a >= 1 with Y'(x) <= a Z'(x) and Z'(x) <= a Y'(x) everywhere.
        distance: Delta(Y, Y') = Delta(Z, Z'), exactly; it equals max(H_a(Y||Z), H_a(Z||Y)) / (1 +
            a), and no pair is closer.
    """

    first: Distribution
    second: Distribution
    nearby_first: Distribution
    nearby_second: Distribution
    ratio: Fraction
    distance: Fraction

    def check(self) -> bool:
        """Whether the inequalities hold and `distance` is true and the least possible, recomputed."""
        forward, backward = coupled(self.first, self.second), coupled(self.second, self.first)
        least = max(excess(forward, self.ratio), excess(backward, self.ratio)) / (1 + self.ratio)
        apart = (
            distance(coupled(self.first, self.nearby_first)),
            distance(coupled(self.second, self.nearby_second)),
        )
        return (
            self.nearby_first.total == self.first.total
            and self.nearby_second.total == self.second.total
            and apart == (self.distance, self.distance)
            and self.distance == least
            and _covers(self.nearby_second, self.nearby_first, self)
            and _covers(self.nearby_first, self.nearby_second, self)
        )


def one_sided_witness(
    first: Finite, second: Finite, *, epsilon: Rational | None = None, ratio: Rational | None = None
) -> OneSidedWitness:
    """The distribution Y' closest to Y = `first` with Y' <= e^epsilon Z, Z = `second`.

    D_inf^delta(Y||Z) <= epsilon if and only if some Y' has Delta(Y, Y') <= delta and D_inf(Y'||Z)
    <= epsilon, for epsilon >= 0. The witness cuts Y down to a Z, a = e^epsilon, and spreads the
    mass removed, H_a(Y||Z), in proportion to a Z - Y where that is positive; so Delta(Y, Y') =
    H_a(Y||Z) exactly, and the lemma holds for every delta >= H_a(Y||Z). All numbers are rational.

    >>> one_sided_witness([1, 0], [Fraction(1, 4), Fraction(3, 4)], ratio=2).nearby.masses[0]
    Fraction(1, 2)

    Args:
        first: The distribution Y.
        second: The distribution Z.
        epsilon: A loss in nats in [0, 1e6]: a is then a rational number just below e^epsilon
            (relative 1e-58), so that D_inf(Y'||Z) <= epsilon is exact, at a distance larger than H
            by a relative error of that size. Either epsilon or ratio is passed.
        ratio: a, >= 1, taken exactly.

    Raises:
        DomainError: If `first` or `second` is not a distribution, or unless exactly one of epsilon
            and ratio is passed, within its domain. For epsilon < 0, a Z has too little mass.
        UnsupportedError: If float masses have different sums, and a Z has too little mass.

    Reference: [DworkRoth2014, Lemma 3.17].
    """
    a = floor_ratio(epsilon, ratio)
    pair = coupled(first, second)
    covered, least = Distribution.read("first", first), excess(pair, a)
    room = sum((a * z - y for y, z in pair.masses if a * z > y), Fraction(0))
    if least > room:
        raise UnsupportedError(
            "one_sided_witness", _UNEQUAL, "Give masses as Fractions that sum to 1"
        )
    share = least / room if room else Fraction(0)
    moved = (a * z if y > a * z else y + share * (a * z - y) for y, z in pair.masses)
    nearby = covered.rearranged(dict(zip(pair.outcomes, moved, strict=True)))
    return OneSidedWitness(covered, Distribution.read("second", second), nearby, a, least)


def symmetric_witness(
    first: Finite, second: Finite, *, epsilon: Rational | None = None, ratio: Rational | None = None
) -> SymmetricWitness:
    """The epsilon-indistinguishable distributions (Y', Z') closest to Y = `first`, Z = `second`.

    Both D_inf^delta(Y||Z) <= epsilon and D_inf^delta(Z||Y) <= epsilon if and only if some Y', Z'
    have Delta(Y, Y') and Delta(Z, Z') at most delta/(1 + e^epsilon), D_inf(Y'||Z') <= epsilon **and
    D_inf(Z'||Y') <= epsilon**, for epsilon >= 0. The distance of (Y', Z') is the least possible,
    max(H_a(Y||Z), H_a(Z||Y))/(1 + a), a = e^epsilon, and all numbers are rational.

    The book prints only D_inf(Y'||Z') <= epsilon. Read so, the "if" is false: Y = (1, 0) and Z =
    (1/a, 1 - 1/a) have D_inf(Y||Z) = epsilon, so that Y' = Y, Z' = Z satisfy it at distance 0 for
    every delta, yet D_inf^delta(Z||Y) <= epsilon needs delta >= 1 - 1/a:

    >>> from dpcompose.divergence import hockey_stick, max_ratio
    >>> y, z = [1, 0], [Fraction(1, 2), Fraction(1, 2)]
    >>> max_ratio(y, z), max_ratio(z, y), hockey_stick(z, y, ratio=2).value
    (Fraction(2, 1), inf, Fraction(1, 2))

    Args:
        first: The distribution Y.
        second: The distribution Z.
        epsilon: A loss in nats in [0, 1e6]: a is then a rational number just below e^epsilon
            (relative 1e-58), so that both max divergences are at most epsilon exactly. Either
            epsilon or ratio is passed.
        ratio: a, >= 1, taken exactly.

    Raises:
        DomainError: If `first` or `second` is not a distribution, or unless exactly one of epsilon
            and ratio is passed, within its domain.
        UnsupportedError: If float masses have sums that differ by more than the exchange of mass
            can balance.

    Reference: [DworkRoth2014, Lemma 3.17].
    """
    a = floor_ratio(epsilon, ratio)
    pair = coupled(first, second)
    balanced = _balanced(pair, [_meeting(y, z, a) for y, z in pair.masses])
    covered, covering = Distribution.read("first", first), Distribution.read("second", second)
    return SymmetricWitness(
        covered,
        covering,
        covered.rearranged({x: y for x, (y, _) in zip(pair.outcomes, balanced, strict=True)}),
        covering.rearranged({x: z for x, (_, z) in zip(pair.outcomes, balanced, strict=True)}),
        a,
        max(excess(pair, a), sum((z - a * y for y, z in pair.masses if z > a * y), Fraction(0)))
        / (1 + a),
    )


def extreme_pair(
    *, epsilon: Rational | None = None, ratio: Rational | None = None
) -> tuple[Distribution, Distribution]:
    """The pair (a, 1)/(1 + a) and (1, a)/(1 + a), a = e^epsilon: the extreme one of Lemma 3.18.

    If D_inf(Y||Z) <= epsilon and D_inf(Z||Y) <= epsilon then D(Y||Z) <= epsilon (e^epsilon -
    1)/(e^epsilon + 1) = epsilon tanh(epsilon/2), with equality for this pair, the two answers of
    randomized response. The book's bound, epsilon (e^epsilon - 1), is larger by the factor
    e^epsilon + 1. (All pairs within epsilon are post-processings of it.)

    >>> y, z = extreme_pair(ratio=3)
    >>> y.masses[0], z.masses[0]
    (Fraction(3, 4), Fraction(1, 4))

    Args:
        epsilon: A loss in nats in [0, 1e6]: a is then a rational number just below e^epsilon
            (relative 1e-58). Either epsilon or ratio is passed.
        ratio: a, >= 1, taken exactly.

    Raises:
        DomainError: Unless exactly one of epsilon and ratio is passed, within its domain.

    Reference: [DworkRoth2014, Lemma 3.18].
    """
    a = floor_ratio(epsilon, ratio)
    large, small = a / (1 + a), 1 / (1 + a)
    return Distribution([large, small]), Distribution([small, large])


def _meeting(y: Fraction, z: Fraction, a: Fraction) -> tuple[Fraction, Fraction]:
    """(y', z') with y' + z' = y + z and a ratio of exactly `a`, if y > a z or z > a y; else (y, z)."""
    if y > a * z:
        return a * (y + z) / (1 + a), (y + z) / (1 + a)
    if z > a * y:
        return (y + z) / (1 + a), a * (y + z) / (1 + a)
    return y, z


def _balanced(
    pair: Coupled, met: list[tuple[Fraction, Fraction]]
) -> list[tuple[Fraction, Fraction]]:
    """The masses `met`, with the mass lost by each distribution returned where its mass is smaller.

    No ratio grows. Raises UnsupportedError if the total masses differ by too much.
    """
    deficit = sum(pair.first, Fraction(0)) - sum((y for y, _ in met), Fraction(0))
    if deficit < 0:
        mirrored = Coupled(pair.outcomes, pair.second, pair.first)
        return [(y, z) for z, y in _balanced(mirrored, [(z, y) for y, z in met])]
    # With equal total masses the available room is at least twice the deficit, so the order of the
    # two masses does not change.
    room = sum((z - y for y, z in met if z > y), Fraction(0))
    if deficit > room:
        raise UnsupportedError(
            "symmetric_witness", _UNEQUAL, "Give masses as Fractions that sum to 1"
        )
    share = deficit / room if room else Fraction(0)
    return [(y + share * (z - y), z - share * (z - y)) if z > y else (y, z) for y, z in met]


def _covers(second: Distribution, first: Distribution, witness: Any) -> bool:
    return all(y <= witness.ratio * z for y, z in coupled(first, second).masses)
