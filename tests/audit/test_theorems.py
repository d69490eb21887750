"""Theorems 1, 3, 4, 5 and 6 in exact arithmetic, on small finite mechanisms drawn at random."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from dpcompose.audit.claim import Point
from dpcompose.audit.lower import BETS
from dpcompose.audit.stakes import UNIT, stakes

CELLS = 4


def law(draw: random.Random) -> list[Fraction]:
    """A random distribution, with empty cells now and then."""
    weights = [draw.choice([0, 1, 2, draw.randint(1, 50)]) for _ in range(CELLS)]
    weights[draw.randrange(CELLS)] += 1
    return [Fraction(weight, sum(weights)) for weight in weights]


def excess(p: list[Fraction], q: list[Fraction], growth: Fraction) -> Fraction:
    """The smallest delta, in both directions."""
    return max(sum((max(a - growth * b, Fraction(0)) for a, b in zip(x, y, strict=True)), Fraction(0))
               for x, y in ((p, q), (q, p)))  # fmt: skip


def mean(one: list[Fraction], zero: list[Fraction], f: list[list[Fraction]], g: list[list[Fraction]],
         claim: list[tuple[Fraction, Fraction]], charge: Fraction) -> Fraction:  # fmt: skip
    """E[E] of Theorem 1 for a fair coin."""
    total = Fraction(0)
    for cell in range(len(one)):
        won = sum(
            (f[j][cell] - growth * g[j][cell] for j, (growth, _) in enumerate(claim)), 1 - charge
        )
        lost = sum(
            (g[j][cell] - growth * f[j][cell] for j, (growth, _) in enumerate(claim)), 1 - charge
        )
        total += one[cell] * won / 2 + zero[cell] * lost / 2
    return total


def drawn(
    seed: int,
) -> tuple[
    list[Fraction], list[Fraction], list[tuple[Fraction, Fraction]], list[list[list[Fraction]]]
]:
    draw = random.Random(seed)
    one, zero = law(draw), law(draw)
    growths = [Fraction(draw.randint(100, 400), 100) for _ in range(draw.randint(1, 3))]
    claim = [(growth, excess(one, zero, growth)) for growth in growths]
    sides = [
        [
            [Fraction(draw.choice([0, draw.randint(0, 40)]), 100) for _ in range(CELLS)]
            for _ in claim
        ]
        for _ in "fg"
    ]
    return one, zero, claim, sides


def charge_of(
    claim: list[tuple[Fraction, Fraction]], f: list[list[Fraction]], g: list[list[Fraction]]
) -> Fraction:
    return sum(
        (delta * (max(f[j]) + max(g[j])) / 2 for j, (_, delta) in enumerate(claim)), Fraction(0)
    )


def test_the_coin_variable_has_a_mean_of_at_most_one() -> None:
    for seed in range(2000):
        one, zero, claim, (f, g) = drawn(seed)
        assert mean(one, zero, f, g, claim, charge_of(claim, f, g)) <= 1


def test_a_smaller_charge_for_delta_is_caught() -> None:
    """A charge of 0.9 of Theorem 1's, or by the largest stake that was paid alone, has means above 1."""
    wrong = 0
    for seed in range(2000):
        one, zero, claim, (f, g) = drawn(seed)
        wrong += mean(one, zero, f, g, claim, Fraction(9, 10) * charge_of(claim, f, g)) > 1
    assert wrong > 0


def test_the_portfolio_is_allowed_by_theorem_one() -> None:
    """Stakes from any past: every factor positive, and the exact mean at most 1 for every pair within the claim."""
    rng = np.random.default_rng(1)
    for seed in range(150):
        one, zero, claim, _ = drawn(seed)
        points = [Point(math.log(growth), float(delta)) for growth, delta in claim if delta < 1]
        if not points:
            continue
        ones, zeros = rng.integers(0, rng.integers(1, 3000), (2, CELLS)).astype(float)
        _, bets = stakes(ones, zeros, points, np.full(CELLS, 1 / CELLS))
        f, g = (
            [[Fraction(stake, UNIT) for stake in row] for row in side.tolist()]
            for side in (bets.f, bets.g)
        )
        given = [(Fraction(point.growth), Fraction(point.delta)) for point in points]
        exact = [(growth, max(delta, excess(one, zero, growth))) for growth, delta in given]
        assert np.all(np.isfinite(bets.log_factors(points)))
        assert mean(one, zero, f, g, exact, charge_of(exact, f, g)) <= 1


def test_a_classifier_is_a_bet() -> None:
    """Theorem 3's closed form is Theorem 1's with its stakes."""
    growth = Fraction(5, 2)
    theta = growth / (1 + growth)
    for percent in range(1, 100):
        h = Fraction(percent, 100)
        clipped = min(max(h, 1 - theta), theta)
        f, g = max(h / theta - 1, Fraction(0)), max((1 - h) / theta - 1, Fraction(0))
        assert h / clipped == 1 + f - growth * g
        assert (1 - h) / (1 - clipped) == 1 + g - growth * f


def test_the_converse_has_a_mean_of_at_most_one() -> None:
    for seed in range(2000):
        one, zero, claim, _ = drawn(seed)
        growth, _ = claim[0]
        for cells in combinations(range(CELLS), 2):
            p, q = (sum((each[cell] for cell in cells), Fraction(0)) for each in (one, zero))
            violation = p - growth * q
            if not 0 <= violation < 1:
                continue
            for bet in BETS[:3]:
                size = Fraction(float(bet)) / (1 - violation / 2)
                wins, losses = 1 - size * (1 - violation / 2), 1 + size * (growth + violation / 2)
                other = 1 + size * violation / 2
                assert min(wins, losses, other) > 0
                assert p * wins / 2 + q * losses / 2 + (2 - p - q) * other / 2 == 1


def test_distance_is_leverage() -> None:
    """Theorem 6: three databases in a row."""
    for seed in range(500):
        draw = random.Random(seed)
        first, second, third = law(draw), law(draw), law(draw)
        growth = Fraction(draw.randint(100, 400), 100)
        delta = max(excess(first, second, growth), excess(second, third, growth))
        assert excess(first, third, growth**2) <= delta * (1 + growth)
        point = Point(math.log(growth), float(delta)).group(2)
        assert point.growth >= growth**2 * (1 - Fraction(1, 10**12))
        assert point.delta >= min(1.0, float(delta * (1 + growth)) * (1 - 1e-12))


@pytest.mark.parametrize("cuts", [2, 5])
def test_the_highest_crossed_rung_alone_is_no_bound(cuts: int) -> None:
    """With independent wealths that cross with probability alpha each, the highest of several errs too often."""
    alpha, rng = 0.05, np.random.default_rng(cuts)
    crossed = rng.random((20000, cuts)) < alpha
    assert np.mean(crossed.any(axis=1)) > 1.5 * alpha
    assert np.mean(crossed[:, 0]) < 1.2 * alpha
