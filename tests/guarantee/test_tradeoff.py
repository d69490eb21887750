"""Trade-off functions: golden values, and the dual of a profile against its closed form."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from flint import arb, ctx

from dpcompose.guarantee import gaussian, tradeoff
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.gaussian import GaussianTradeoff
from oracles import gaussian as truth

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def row(name: str) -> dict[str, float]:
    (found,) = [row for row in GOLDEN if row["name"] == name]
    return {key: float(value) for key, value in found["params"].items()} | {"expected": float(found["expected"])}


def test_golden() -> None:
    data = row("tradeoff_eps_delta")
    bound = ApproximateDP(data["eps"], delta=data["delta"]).tradeoff(data["alpha"])
    assert bound.lower == pytest.approx(data["expected"], rel=1e-12)
    data = row("tradeoff_gaussian")
    assert GaussianTradeoff(data["mu"]).tradeoff(data["alpha"]).lower == pytest.approx(data["expected"], rel=1e-12)
    data = row("tpr_at_fpr_gaussian")
    assert 1 - tradeoff.gaussian(data["fpr"], mu=data["mu"]).lower == pytest.approx(data["expected"], rel=1e-11)
    data = row("rero_gaussian")
    assert 1 - tradeoff.gaussian(data["kappa"], mu=data["mu"]).upper == pytest.approx(data["expected"], rel=1e-12)
    data = row("rero_pure")
    assert tradeoff.blowup(data["kappa"], promise=ApproximateDP(data["eps"])).upper == pytest.approx(
        data["expected"], rel=1e-12
    )
    data = row("utility_eps_delta_upper")
    promise = ApproximateDP(data["eps"], delta=data["delta"])
    assert tradeoff.blowup(data["EQ"], promise=promise).upper == pytest.approx(data["expected"], rel=1e-12)


@pytest.mark.parametrize("seed", range(120))
def test_approximate_encloses_its_formula(seed: int) -> None:
    rng = random.Random(seed)
    alpha = rng.choice([rng.random(), 10 ** rng.uniform(-323, 0), 1 - 10 ** rng.uniform(-15, 0), 0.0, 1.0])
    epsilon, delta = math.exp(rng.uniform(-30, 8)), rng.choice([0.0, 10 ** rng.uniform(-320, 0)])
    promise = ApproximateDP(epsilon, delta=delta)
    with ctx.workprec(2000):
        a, e, d = arb(alpha), arb(epsilon), arb(delta)
        lines = (arb(0), 1 - d - e.exp() * a, (-e).exp() * (1 - d - a))
        true = max(lines, key=lambda line: line.mid())
        bound, power = tradeoff.approximate(alpha, promise=promise), tradeoff.blowup(alpha, promise=promise)
        assert arb(bound.lower) <= true <= arb(bound.upper)
        assert arb(power.lower) <= 1 - true <= arb(power.upper)


@pytest.mark.parametrize("seed", range(80))
def test_gaussian_encloses_its_formula(seed: int) -> None:
    rng = random.Random(seed)
    alpha, mu = rng.choice([rng.random(), 10 ** rng.uniform(-250, 0)]), math.exp(rng.uniform(-8, 3))
    bound = tradeoff.gaussian(alpha, mu=mu)
    with ctx.workprec(600):
        # Phi^-1 by bisection: the point x with P[N > x] = alpha.
        low, high = arb(-45), arb(45)
        for _ in range(200):
            middle = ((low + high) / 2).mid()
            low, high = (middle, high) if truth.upper_tail(middle) > arb(alpha) else (low, middle)
        true = truth.upper_tail(arb(mu) - (low + high) / 2)
        assert not true < arb(bound.lower) and not true > arb(bound.upper)
        assert bound.width <= 1e-11 * bound.upper + 1e-300


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.05, 0.5, 0.99, 1.0])
def test_the_dual_of_the_profile_is_the_tradeoff(mu: float, alpha: float) -> None:
    dual = tradeoff.from_profile(alpha, profile=lambda epsilon: gaussian.profile(epsilon, mu=mu))
    closed = tradeoff.gaussian(alpha, mu=mu)
    assert dual.lower <= closed.upper and closed.lower <= dual.upper
    assert dual.width < 1e-8


def test_a_profile_with_kinks_is_enclosed() -> None:
    from dpcompose.guarantee.optimal import homogeneous_delta

    promise = ApproximateDP(0.5, delta=1e-3)
    for alpha in (0.0, 0.01, 0.3, 0.62, 0.9):
        dual = tradeoff.from_profile(alpha, profile=lambda e: homogeneous_delta(e, epsilon=0.5, delta=1e-3, times=1))
        closed = tradeoff.approximate(alpha, promise=promise)
        assert dual.lower <= closed.upper and closed.lower <= dual.upper
        assert dual.width < 1e-4
