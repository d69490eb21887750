"""An attacker's success: golden values, definitions evaluated on finite pairs, laws, bad input."""

from __future__ import annotations

import dataclasses
import json
import math
import random
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    Concentrated,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.composition.composition import Composable
from dpcompose.composition.profile import risk
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import DominatingPair
from oracles import chains

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]
MEMBERS = [
    Gaussian(2.0) * 5,
    Laplace(2.0) + Gaussian(3.0),
    BlackBox(0.3, delta=1e-4) * 4,
    RandomizedResponse(1.0, categories=5),
    Exponential(0.5),
    Gaussian(1.0).sampled(0.2) * 3,
]


def golden(name: str) -> dict[str, float]:
    (found,) = [row for row in GOLDEN if row["name"] == name]
    return {key: float(value) for key, value in found["params"].items()} | {
        "expected": float(found["expected"])
    }


def assert_known(bound: Bound, value: float, digits: float = 1e-12) -> None:
    """The bound contains the value up to the value's own rounding, and both ends are near it."""
    assert bound.lower <= value * (1 + 4e-16) and value * (1 - 4e-16) <= bound.upper
    assert bound.lower >= value * (1 - digits) and bound.upper <= value * (1 + digits)


def test_golden() -> None:
    data = golden("tpr_at_fpr_gaussian")
    found = GaussianDP(data["mu"]).risk(false_positive_rate=data["fpr"], tolerance=1e-13)
    assert_known(found.true_positive_rate, data["expected"], 1e-11)
    data = golden("rero_gaussian")
    assert_known(
        GaussianDP(data["mu"]).risk(prior=data["kappa"], tolerance=1e-13).reconstruction,
        data["expected"],
        1e-11,
    )
    data = golden("rero_pure")
    assert_known(BlackBox(data["eps"]).risk(prior=data["kappa"]).reconstruction, data["expected"])


def test_fact_sheet() -> None:
    """Values of theory.md, I.3 and I.4, from 60 digits."""
    assert_known(GaussianDP(1.0).risk().advantage, 0.382924922548026207275)
    assert_known(BlackBox(1.0, delta=0.01).risk().advantage, 0.467495985687409660917)
    assert_known(BlackBox(0.7).risk().advantage, math.tanh(0.35))
    assert_known(GaussianDP(1.0).risk(prior=0.3).bayes_error, 0.253004378623634606698)
    assert_known(GaussianDP(1.0).risk(prior=0.7).bayes_error, 0.253004378623634606698)


@pytest.mark.parametrize("seed", range(20))
def test_the_best_attack_on_a_finite_pair(seed: int) -> None:
    """Every deterministic attack is tried on the joint outcomes, in both orders; the best one is what is promised."""
    rng = random.Random(seed)
    points = [(Fraction(rng.randrange(1, 16), 16), Fraction(rng.randrange(1, 16), 16))]
    points.append((1 - points[0][0], 1 - points[0][1]))
    upper, lower = [float(p) for p, _ in points], [float(q) for _, q in points]
    pair = DominatingPair.atoms(upper=upper, lower=lower, adjacency=Adjacency.ADD_REMOVE)
    whole, prior, rate = (
        chains.joined(points, points),
        rng.uniform(0.05, 0.95),
        rng.uniform(0.01, 0.5),
    )
    found = (pair * 2).risk(prior=prior, false_positive_rate=rate)
    advantage, error = Fraction(0), Fraction(1)
    for order in (whole, chains.swapped(whole)):
        for says_in in product((False, True), repeat=len(order)):
            detected = sum(
                (p for (p, _), yes in zip(order, says_in, strict=True) if yes), Fraction(0)
            )
            alarmed = sum(
                (q for (_, q), yes in zip(order, says_in, strict=True) if yes), Fraction(0)
            )
            advantage = max(advantage, detected - alarmed)
            error = min(error, Fraction(prior) * (1 - detected) + (1 - Fraction(prior)) * alarmed)
    assert_known(found.advantage, float(advantage)) if advantage else None
    assert_known(found.bayes_error, float(error), 1e-11)
    assert_known(found.true_positive_rate, float(1 - chains.tradeoff(Fraction(rate), whole)), 1e-8)
    assert_known(found.reconstruction, float(1 - chains.tradeoff(Fraction(prior), whole)), 1e-8)


@pytest.mark.parametrize("composition", MEMBERS, ids=repr)
def test_half_and_half(composition: Composable) -> None:
    """At prior 1/2 the Bayes error is half of what the advantage leaves; a rate of 1/2 is beaten by at most that."""
    found = composition.risk(false_positive_rate=0.5)
    assert found.bayes_error.upper == pytest.approx((1 - found.advantage.lower) / 2, rel=1e-12)
    assert found.bayes_error.lower == pytest.approx((1 - found.advantage.upper) / 2, rel=1e-12)
    assert found.reconstruction == found.true_positive_rate
    assert found.true_positive_rate.lower - 0.5 <= found.advantage.upper


@pytest.mark.parametrize("composition", MEMBERS, ids=repr)
def test_more_answers_more_risk(composition: Composable) -> None:
    once, twice = composition.risk(prior=0.2), (composition * 2).risk(prior=0.2)
    assert once.true_positive_rate.lower <= twice.true_positive_rate.upper
    assert once.advantage.lower <= twice.advantage.upper
    assert once.bayes_error.upper >= twice.bayes_error.lower
    assert once.reconstruction.lower <= twice.reconstruction.upper
    for each in (once, twice):
        assert each.true_positive_rate.upper >= each.false_positive_rate
        assert each.bayes_error.upper <= 0.2
        assert each.reconstruction.upper >= 0.2


def test_certain_worlds_leave_nothing_to_guess() -> None:
    for prior in (0.0, 1.0):
        found = Gaussian(1.0).risk(prior=prior)
        assert found.bayes_error == Bound(0.0, 0.0)
        assert found.reconstruction.lower == prior


def test_nothing_composed_is_blind_guessing() -> None:
    found = compose().risk(prior=0.25, false_positive_rate=0.01)
    assert found.true_positive_rate.contains(0.01) and found.true_positive_rate.width <= 1e-14
    assert found.advantage == Bound(0.0, 0.0)
    assert found.bayes_error.contains(0.25) and found.bayes_error.width <= 1e-14
    assert found.reconstruction.contains(0.25) and found.reconstruction.width <= 1e-14


def test_a_promise_without_losses_is_bounded_from_one_side() -> None:
    found, inside = Concentrated(0.02).risk(prior=0.3), GaussianDP(0.2).risk(prior=0.3)
    assert inside.true_positive_rate.upper <= found.true_positive_rate.upper < 0.01
    assert inside.advantage.upper <= found.advantage.upper
    assert found.bayes_error.lower <= inside.bayes_error.lower


def test_adjacency_is_passed_on() -> None:
    replaced = BlackBox(1.0).risk(adjacency=Adjacency.REPLACE).advantage
    assert replaced.upper > BlackBox(1.0).risk().advantage.upper
    with pytest.raises(UnsupportedError):
        Laplace(1.0).sampled(0.1).risk(adjacency=Adjacency.REPLACE)


def test_it_is_frozen() -> None:
    found = Gaussian(1.0).risk()
    with pytest.raises(dataclasses.FrozenInstanceError):
        found.prior = 0.1  # pyright: ignore[reportAttributeAccessIssue]
    assert found == Gaussian(1.0).risk()


@pytest.mark.parametrize("value", [-0.1, 1.1, math.nan, math.inf, "half", True, None])
def test_rates_are_probabilities(value: object) -> None:
    with pytest.raises(DomainError, match="prior"):
        Gaussian(1.0).risk(prior=value)  # pyright: ignore[reportArgumentType]
    with pytest.raises(DomainError, match="false_positive_rate"):
        Gaussian(1.0).risk(false_positive_rate=value)  # pyright: ignore[reportArgumentType]


def test_a_profile_is_needed() -> None:
    with pytest.raises(DomainError, match="profile"):
        risk(Gaussian(1.0), prior=0.5, false_positive_rate=0.1)  # pyright: ignore[reportArgumentType]
