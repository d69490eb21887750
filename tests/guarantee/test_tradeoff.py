"""Trade-off functions: golden values, and the dual of a privacy profile against its closed form."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx
from numpy.typing import NDArray

from dpcompose.composition.profile import best_test
from dpcompose.guarantee import approximate, gaussian
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.gaussian import GaussianTradeoff
from dpcompose.guarantee.optimal import homogeneous_delta
from dpcompose.values.bound import Bound
from oracles import gaussian as truth

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def row(name: str) -> dict[str, float]:
    (found,) = [row for row in GOLDEN if row["name"] == name]
    return {key: float(value) for key, value in found["params"].items()} | {
        "expected": float(found["expected"])
    }


def test_golden() -> None:
    data = row("tradeoff_eps_delta")
    bound = ApproximateDP(data["eps"], delta=data["delta"]).tradeoff(data["alpha"])
    assert bound.lower == pytest.approx(data["expected"], rel=1e-12)
    data = row("tradeoff_gaussian")
    assert GaussianTradeoff(data["mu"]).tradeoff(data["alpha"]).lower == pytest.approx(
        data["expected"], rel=1e-12
    )
    data = row("tpr_at_fpr_gaussian")
    assert 1 - gaussian.gaussian_tradeoff(data["fpr"], mu=data["mu"]).lower == pytest.approx(
        data["expected"], rel=1e-11
    )
    data = row("rero_gaussian")
    assert 1 - gaussian.gaussian_tradeoff(data["kappa"], mu=data["mu"]).upper == pytest.approx(
        data["expected"], rel=1e-12
    )
    data = row("rero_pure")
    assert approximate.blowup(
        data["kappa"], promise=ApproximateDP(data["eps"])
    ).upper == pytest.approx(data["expected"], rel=1e-12)
    data = row("utility_eps_delta_upper")
    promise = ApproximateDP(data["eps"], delta=data["delta"])
    assert approximate.blowup(data["EQ"], promise=promise).upper == pytest.approx(
        data["expected"], rel=1e-12
    )


@pytest.mark.parametrize("seed", range(120))
def test_approximate_encloses_its_formula(seed: int) -> None:
    rng = random.Random(seed)
    alpha = rng.choice(
        [rng.random(), 10 ** rng.uniform(-323, 0), 1 - 10 ** rng.uniform(-15, 0), 0.0, 1.0]
    )
    epsilon, delta = math.exp(rng.uniform(-30, 8)), rng.choice([0.0, 10 ** rng.uniform(-320, 0)])
    promise = ApproximateDP(epsilon, delta=delta)
    with ctx.workprec(2000):
        a, e, d = arb(alpha), arb(epsilon), arb(delta)
        lines = (arb(0), 1 - d - e.exp() * a, (-e).exp() * (1 - d - a))
        true = max(lines, key=lambda line: line.mid())
        bound, power = (
            approximate.tradeoff(alpha, promise=promise),
            approximate.blowup(alpha, promise=promise),
        )
        assert arb(bound.lower) <= true <= arb(bound.upper)
        assert arb(power.lower) <= 1 - true <= arb(power.upper)


@pytest.mark.parametrize("seed", range(80))
def test_gaussian_encloses_its_formula(seed: int) -> None:
    rng = random.Random(seed)
    alpha, mu = rng.choice([rng.random(), 10 ** rng.uniform(-250, 0)]), math.exp(rng.uniform(-8, 3))
    bound = gaussian.gaussian_tradeoff(alpha, mu=mu)
    with ctx.workprec(600):
        # Phi^-1 by bisection: the point x with P[N > x] = alpha.
        low, high = arb(-45), arb(45)
        for _ in range(200):
            middle = ((low + high) / 2).mid()
            low, high = (middle, high) if truth.upper_tail(middle) > arb(alpha) else (low, middle)
        true = truth.upper_tail(arb(mu) - (low + high) / 2)
        assert not true < arb(bound.lower) and not true > arb(bound.upper)
        assert bound.width <= 1e-11 * bound.upper + 1e-300


def best_error(
    alpha: float,
    profile: Callable[[float], Bound],
    *,
    infinite: float,
    kinks: tuple[float, ...] = (),
) -> Bound:
    """The smallest type II error of any pair with this profile, by duality."""

    def ends(epsilons: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        found = [profile(epsilon) for epsilon in epsilons.tolist()]
        return np.array([bound.lower for bound in found]), np.array(
            [bound.upper for bound in found]
        )

    limit = Bound(infinite, infinite)
    test = best_test(np.array([alpha]), profile=ends, infinite=limit, kinks=kinks, tolerance=1e-9)
    return Bound(float(test.error_lower[0]), float(test.error_upper[0]))


@pytest.mark.parametrize("mu", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("alpha", [0.0, 1e-6, 0.05, 0.5, 0.99, 1.0])
def test_the_dual_of_the_profile_is_the_tradeoff(mu: float, alpha: float) -> None:
    dual = best_error(
        alpha, lambda epsilon: gaussian.gaussian_profile(epsilon, mu=mu), infinite=0.0
    )
    closed = gaussian.gaussian_tradeoff(alpha, mu=mu)
    assert dual.lower <= closed.upper and closed.lower <= dual.upper
    assert dual.width < 1e-8


def test_a_profile_with_kinks_is_enclosed() -> None:
    promise = ApproximateDP(0.5, delta=1e-3)
    for alpha in (0.0, 0.01, 0.3, 0.62, 0.9):
        one = partial(homogeneous_delta, epsilon=0.5, delta=1e-3, times=1)
        dual = best_error(alpha, one, infinite=1e-3, kinks=(0.5,))
        closed = approximate.tradeoff(alpha, promise=promise)
        assert dual.lower <= closed.upper and closed.lower <= dual.upper
        assert dual.width < 1e-4
