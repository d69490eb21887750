"""The Gaussian closed form is compared with ball arithmetic, and its assumption about erfcx is
tested.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb, ctx
from scipy.special import erfcx

from dpcompose.guarantee import gaussian
from dpcompose.values.bound import UNIT_ROUNDOFF, Bound
from oracles import gaussian as truth

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def rows(name: str) -> list[dict[str, str]]:
    found = [
        {**row["params"], "expected": row["expected"]} for row in GOLDEN if row["name"] == name
    ]
    assert found, name
    return found


def encloses(bound: Bound, true: arb) -> bool:
    return not (true < arb(bound.lower) or true > arb(bound.upper))


def draw(seed: int) -> tuple[float, float]:
    """mu between 1e-12 and 1e6, and an epsilon anywhere between -8 and 38 standard deviations, or of any size."""
    rng = random.Random(seed)
    mu = math.exp(rng.uniform(math.log(1e-12), math.log(1e6)))
    near = mu * (mu / 2 + rng.uniform(-8, 38.5))
    return mu, near if rng.random() < 0.8 else rng.choice([-1, 1]) * math.exp(rng.uniform(-30, 3))


@pytest.mark.parametrize("block", range(8))
def test_profile_contains_the_truth_and_is_narrow(block: int) -> None:
    for seed in range(60 * block, 60 * block + 60):
        mu, epsilon = draw(seed)
        if epsilon / mu > 1e4:
            continue
        bound = gaussian.gaussian_profile(epsilon, mu=mu)
        assert encloses(bound, truth.delta(epsilon, [(mu, 1)])), (seed, mu, epsilon)
        if bound.lower > 1e-300:
            assert bound.width <= 2e-12 * bound.lower, (seed, mu, epsilon)


@pytest.mark.parametrize("block", range(8))
def test_epsilon_is_the_inverse_on_both_sides(block: int) -> None:
    for seed in range(30 * block, 30 * block + 30):
        rng = random.Random(seed)
        mu = math.exp(rng.uniform(math.log(1e-12), math.log(1e6)))
        delta = rng.choice(
            [
                10 ** rng.uniform(-300, 0),
                1 - 10 ** rng.uniform(-12, -1),
                10 ** rng.uniform(-323, -300),
            ]
        )
        bound = gaussian.gaussian_epsilon(delta, mu=mu)
        assert not truth.delta(bound.upper, [(mu, 1)]) > arb(delta), (seed, mu, delta)
        if bound.lower > 0:
            assert not truth.delta(bound.lower, [(mu, 1)]) < arb(delta), (seed, mu, delta)
        if delta > 1e-300 and bound.lower > 1e-3 * mu:
            assert bound.width <= 1e-12 * bound.lower, (seed, mu, delta)


@pytest.mark.parametrize("seed", range(40))
def test_mu_for_is_the_inverse_in_mu(seed: int) -> None:
    rng = random.Random(seed)
    epsilon, delta = (
        rng.choice([0.0, math.exp(rng.uniform(-20, 8))]),
        10 ** rng.uniform(-250, -0.01),
    )
    bound = gaussian.gaussian_mu(epsilon, delta=delta)
    assert not truth.delta(epsilon, [(bound.lower, 1)]) > arb(delta)
    assert not truth.delta(epsilon, [(bound.upper, 1)]) < arb(delta)
    assert bound.width <= 1e-11 * bound.upper


@pytest.mark.parametrize("row", rows("gaussian_delta"))
def test_golden_delta(row: dict[str, str]) -> None:
    value = gaussian.gaussian_profile(float(row["eps"]), mu=float(row["mu"])).upper
    assert value == pytest.approx(float(row["expected"]), rel=2e-12)


@pytest.mark.parametrize("row", rows("gaussian_mu_for"))
def test_golden_mu(row: dict[str, str]) -> None:
    bound = gaussian.gaussian_mu(float(row["eps"]), delta=float(row["delta"]))
    assert bound.lower == pytest.approx(float(row["expected"]), rel=1e-12)


@pytest.mark.parametrize(
    ("epsilon", "mu", "lower", "upper"),
    [
        (0.0, 0.0, 0.0, 0.0),
        (-1.0, 0.0, -math.expm1(-1) - 1e-14, -math.expm1(-1) + 1e-14),
        (math.inf, 1.0, 0.0, 0.0),
        (-math.inf, 1.0, 1.0, 1.0),
        (1e300, 1e-300, 0.0, 5e-324),
        (0.0, 1e200, 1 - 1e-15, 1.0),
        (5.0, 5e-324, 0.0, 5e-324),
    ],
)
def test_extremes(epsilon: float, mu: float, lower: float, upper: float) -> None:
    bound = gaussian.gaussian_profile(epsilon, mu=mu)
    assert lower <= bound.lower <= bound.upper <= upper


def test_what_no_float_can_hold_is_widened_never_dropped() -> None:
    assert gaussian.gaussian_epsilon(1e-5, mu=1e200).upper == math.inf
    assert gaussian.gaussian_epsilon(0.0, mu=1.0) == Bound(math.inf, math.inf)
    assert (
        gaussian.gaussian_epsilon(0.0, mu=0.0)
        == gaussian.gaussian_epsilon(1.0, mu=3.0)
        == Bound(0.0, 0.0)
    )
    assert gaussian.gaussian_epsilon(5e-324, mu=1.0).upper > 38


def test_a_stronger_promise_never_costs_more() -> None:
    values = [gaussian.gaussian_profile(1.0, mu=mu / 16).upper for mu in range(1, 80)]
    assert values == sorted(values)


def worst(
    function: Callable[[float], float], true: Callable[[arb], arb], points: list[float]
) -> float:
    with ctx.workprec(160):
        return (
            max(abs(float((arb(function(x)) - true(arb(x))) / true(arb(x)))) for x in points)
            / UNIT_ROUNDOFF
        )


def test_erfcx_is_within_a_tenth_of_what_is_allowed_for() -> None:
    rng = random.Random(7)
    points = [rng.uniform(-0.4, 3.6) for _ in range(20_000)]
    error = worst(lambda x: float(erfcx(x)), lambda x: (x * x).exp() * x.erfc(), points)
    assert 10 * error <= 1.1 * gaussian.ERFCX_ERROR / UNIT_ROUNDOFF


@pytest.mark.parametrize("low", [-0.5, 0.0, 3.0, 4.9, 5.0, 6.0, 10.0, 30.0])
def test_mills_and_its_slope_keep_their_errors(low: float) -> None:
    rng = random.Random(int(low * 10))
    with ctx.workprec(300):
        for _ in range(300):
            x = low + rng.random()
            point = arb(x)
            true = (
                (arb.pi() / 2).sqrt() * (point * point / 2).exp() * (point / arb(2).sqrt()).erfc()
            )
            for (value, error), wanted in (
                (gaussian.mills(x), true),
                (gaussian.mills_slope(x), 1 - point * true),
            ):
                assert abs(arb(value) - wanted) <= error * wanted


@pytest.mark.parametrize("seed", range(300))
def test_mills_drop_keeps_its_error(seed: int) -> None:
    rng = random.Random(seed)
    width = math.exp(rng.uniform(-28, 3))
    x = rng.uniform(-0.5 if width <= 1 else 0.0, 45.0)
    with ctx.workprec(1000):

        def mills(point: arb) -> arb:
            return (
                (arb.pi() / 2).sqrt() * (point * point / 2).exp() * (point / arb(2).sqrt()).erfc()
            )

        true = mills(arb(x)) - mills(arb(x) + arb(width))
        value, error = gaussian.mills_drop(x, width=width)
        assert abs(arb(value) - true) <= error * true


@pytest.mark.parametrize("tail", [1e-300, 1e-20, 1e-5, 0.3, 0.5, 0.7, 1 - 1e-10])
def test_quantiles_enclose(tail: float) -> None:
    bound = gaussian.upper_quantile(tail)
    with ctx.workprec(200):
        assert truth.upper_tail(arb(bound.upper)) <= arb(tail) <= truth.upper_tail(arb(bound.lower))
    assert bound.width <= 1e-12


def test_upper_tail_beyond_every_float() -> None:
    assert gaussian.upper_tail(Fraction(1000)).upper == 5e-324
    assert gaussian.upper_tail(Fraction(-1000)).upper == 1.0
