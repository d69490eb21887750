"""A composition that is charged as one is priced for an adversary who turns the pairs inside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np
import pytest

from campaigns.turned import worst
from dpcompose import RandomizedResponse, compose
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    PureFilter,
    RenyiFilter,
)
from dpcompose.errors import OverdrawnError
from dpcompose.ledger import Ledger

Pair = tuple[tuple[float, float], tuple[float, float]]


def sampled(epsilon: float, rate: float) -> Pair:
    """What randomized response on a Poisson sample answers with the record, and without it."""
    yes = 1 / (1 + math.exp(-epsilon))
    mixed = rate * yes + (1 - rate) * (1 - yes)
    return (mixed, 1 - mixed), (1 - yes, yes)


def turned(pairs: Sequence[Pair], epsilon: float, p: float = 1.0, q: float = 1.0) -> float:
    """delta(epsilon) of the best adversary who orients each pair after the answers so far, by backward induction."""
    if not pairs:
        return max(p - math.exp(epsilon) * q, 0.0)
    (one, other), rest = pairs[0], pairs[1:]
    return max(
        sum(turned(rest, epsilon, p * a, q * b) for a, b in zip(first, second, strict=True))
        for first, second in ((one, other), (other, one))
    )


def divergence(pair: Pair, order: float) -> float:
    """The larger of both orders."""
    moments = [
        sum(a**order * b ** (1 - order) for a, b in zip(*each, strict=True))
        for each in (pair, pair[::-1])
    ]
    return math.log(max(moments)) / (order - 1)


@pytest.mark.slow
def test_no_adversary_who_turns_pairs_is_above_what_a_filter_says() -> None:
    """A short run of the campaign; the control, which prices one orientation, is caught."""
    found = [each for each in map(worst, range(40, 80)) if each is not None]
    assert len(found) > 30 and 0.9 < max(found) <= 1.0 + 1e-9
    control = [worst(seed, free=False) or 0.0 for seed in (45, 74)]
    assert min(control) > 1.01


def test_a_turned_pair_inside_a_charge_does_not_exceed_the_budget() -> None:
    twice = RandomizedResponse(1.0).sampled(0.1) * 2
    assert turned([sampled(1.0, 0.1)] * 2, 0.107826) == pytest.approx(0.025242, abs=1e-6)
    budget = BasicFilter(0.107826, delta=0.018758)
    assert not budget.step(budget.start(), twice, delta=0.018758)[1].granted
    ledger = Ledger.open("memory:")
    open_scope(ledger, "world", filter=budget, actor="Ada")
    with pytest.raises(OverdrawnError):
        Account(ledger, scope="world").charge(twice, delta="0.018758", actor="Ada", key="twice")


@pytest.mark.parametrize("seed", range(12))
def test_every_filter_prices_what_the_best_adversary_inside_reaches(seed: int) -> None:
    rng = np.random.default_rng((17, seed))
    given = [
        (float(rng.uniform(0.3, 2.0)), float(rng.choice([0.05, 0.1, 0.3, 0.7]))) for _ in range(3)
    ]
    pairs = [sampled(*each) for each in given]
    mechanism = compose(*[RandomizedResponse(epsilon).sampled(rate) for epsilon, rate in given])
    for delta in (1e-3, 1e-2, 0.05):
        (asked, lost) = BasicFilter(9.0, delta=1.0).price(mechanism, delta=delta).values()
        assert turned(pairs, float(asked)) <= lost * (1 + 1e-9)
        (square, lost) = (
            AdvancedFilter(9.0, delta=1.0, slack=0.1).price(mechanism, delta=delta).values()
        )
        assert turned(pairs, math.sqrt(square)) <= lost * (1 + 1e-9)
    largest = sum(max(abs(math.log(a / b)) for a, b in zip(*pair, strict=True)) for pair in pairs)
    (pure,) = PureFilter(9.0).price(mechanism).values()
    assert pure >= largest * (1 - 1e-15)
    for order in (1.5, 4.0, 32.0):
        (asked,) = RenyiFilter(order, budget=9.0).price(mechanism).values()
        assert asked >= sum(divergence(pair, order) for pair in pairs) * (1 - 1e-12)
        rho, lost = ConcentratedFilter(9.0, delta=0.0).price(mechanism, delta=0.0).values()
        assert lost == 0 and rho * Fraction(order) >= sum(
            divergence(pair, order) for pair in pairs
        ) * (1 - 1e-12)
