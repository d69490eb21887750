"""No certified bound is above elementary theorems, which are implemented here independently of the
library.
"""

from __future__ import annotations

import math
import random
import warnings
from typing import Any

import mpmath
import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.composition import Composable


def gaussian_epsilon(delta: float, mu: float) -> float:
    """The root of the profile of one Gaussian, in 60 digits."""
    with mpmath.workdps(60):

        def profile(epsilon: mpmath.mpf) -> mpmath.mpf:
            low, high = -epsilon / mu + mu / 2, -epsilon / mu - mu / 2
            return mpmath.ncdf(low) - mpmath.exp(epsilon) * mpmath.ncdf(high)

        low, high = mpmath.mpf(0), mpmath.mpf(mu * mu + 60 * mu + 1)
        if profile(low) <= delta:
            return 0.0
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if profile(middle) > delta else (low, middle)
        return float(high)


def sampled_gaussian_epsilon(delta: float, *, mu: float, rate: float) -> float:
    """One sampled Gaussian, the record removed (the worse order): ln(1 + q (e^epsilon - 1)) at delta / q."""
    epsilon = gaussian_epsilon(delta / rate, mu) if delta < rate else 0.0
    return math.log1p(rate * math.expm1(epsilon)) if epsilon < 600 else math.inf


def zcdp_epsilon(rho: float, delta: float) -> float:
    return rho + 2 * math.sqrt(rho * -math.log(delta))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta"),
    [
        (2.0, 1e-6, 10, 1e-15),
        (0.3, 1e-8, 3, 1e-9),
        (8.0, 1e-3, 2, 1e-30),
        (1.0, 1e-4, 100, 1e-12),
        (0.01, 0.01, 2, 1e-10),
    ],
)
def test_sampled_gaussians(sigma: float, rate: float, times: int, delta: float) -> None:
    answer = (Gaussian(sigma).sampled(rate) * times).epsilon(delta=delta)
    basic = times * sampled_gaussian_epsilon(delta / times, mu=1 / sigma, rate=rate)
    everybody = gaussian_epsilon(delta, math.sqrt(times) / sigma)
    assert answer.lower <= answer.upper <= min(basic, everybody) * (1 + 1e-9)


def test_several_parts_cost_no_more_than_basic_composition() -> None:
    parts = [(Gaussian(2.0).sampled(1e-6), 10), (Gaussian(0.5).sampled(1e-7), 5)]
    asked = compose(*(part * times for part, times in parts))
    found = asked.epsilon(delta=1e-15)
    assert found.upper <= sum(
        times * part.epsilon(delta=1e-15 / 15).upper for part, times in parts
    ) * (1 + 1e-12)
    again = asked.delta(epsilon=found.upper)
    assert again.lower <= 1e-15 * (1 + 1e-9) and again.lower <= again.upper


def test_exponentials_by_their_rho() -> None:
    for epsilon, times, delta in ((1.0, 1000, 1e-6), (0.1, 500, 1e-9), (3.0, 50, 1e-4)):
        answer = (Exponential(epsilon) * times).epsilon(delta=delta)
        assert answer.lower <= answer.upper <= zcdp_epsilon(times * epsilon**2 / 8, delta)
    answer = (Exponential(1.0) * 1000).epsilon(delta=1e-6)
    assert answer.upper < 205.86 and (Exponential(1.0) * 10).epsilon(delta=1e-6).upper < 8.1163
    with mpmath.workdps(
        30
    ):  # the worst two-point mechanism of range 1: it is never above the answer

        def divergence(t: float) -> float:
            high = -math.expm1(t - 1) / -math.expm1(-1)
            return math.log(high * math.exp(t) + (1 - high) * math.exp(t - 1))

        worst = max(divergence(n / 1000) for n in range(1001))
    assert worst == pytest.approx(0.2402, abs=1e-4)
    assert worst <= Exponential(1.0).renyi(2).upper <= 0.25 * (1 + 1e-12)


def test_concentrated_far_out() -> None:
    assert 1e-240 < Concentrated(5e-30).delta(epsilon=1e-13).upper <= 2.7e-234
    for rho, epsilon in ((1.0, 2.0), (3.0, 3.5), (1e-9, 1e-3)):
        order = mpmath.mpf(epsilon) / (2 * rho) + 0.5
        orders = [
            order * (1 + mpmath.mpf(n) / 20)
            for n in range(-19, 40)
            if order * (1 + mpmath.mpf(n) / 20) > 1
        ]
        moments = [
            mpmath.exp((a - 1) * (rho * a - epsilon)) * (1 - 1 / a) ** a / (a - 1) for a in orders
        ]
        assert Concentrated(rho).delta(epsilon=epsilon).upper <= float(min(moments)) * (1 + 1e-6)


class TestRenyi:
    def test_moderate_orders_of_samples(self) -> None:
        answer = Gaussian(1.0).sampled(0.01).renyi(500.0)
        assert (
            answer.lower <= 245.385601016 <= answer.upper * (1 + 1e-9) and answer.upper < 245.3857
        )

    def test_next_to_order_one(self) -> None:
        truth = 0.63727584
        answer = (RandomizedResponse(0.5) * 5 + BlackBox(0.1) * 5).renyi(1 + 2**-40)
        assert (
            truth - 1e-5 < answer.lower <= truth + 1e-8
            and truth - 1e-8 <= answer.upper < truth + 1e-5
        )

    @pytest.mark.parametrize(
        "order", [math.nextafter(1.0, 2.0), 1 + 1e-12, 1e20, 1e170, 9e307, 1.7e308]
    )
    @pytest.mark.parametrize(
        "part",
        [
            Laplace(1.0),
            Gaussian(1.0),
            Exponential(1.0),
            RandomizedResponse(1.0, categories=3),
            DiscreteGaussian(2.0),
            Gaussian(1.0).sampled(0.1),
            Laplace(1.0).sampled(0.1),
            Concentrated(0.5),
            BlackBox(0.0),
        ],
        ids=repr,
    )
    def test_at_the_ends_of_the_orders(self, part: Composable, order: float) -> None:
        with warnings.catch_warnings(action="error"):
            answer = (part * 3).renyi(order)
        pure = (part * 3).pure()
        assert (
            0 <= answer.lower <= answer.upper <= (math.inf if pure is None else pure * (1 + 1e-9))
        )
        if order < 2:
            assert answer.upper < 4

    def test_what_costs_nothing(self) -> None:
        for nothing in (BlackBox(0.0), RandomizedResponse(0.0), Exponential(0.0), compose()):
            assert nothing.renyi(8) == Bound(0.0, 0.0)


def test_at_delta_zero_the_largest_losses_add_up_exactly() -> None:
    for asked, largest in (
        (Laplace(8.0) * 8, 1.0),
        (Laplace(10.0) * 10, 1.0),
        (Laplace(3.0) * 3, 1.0),
        (DiscreteLaplace(8.0) * 8, 1.0),
        (BlackBox(0.125) * 8, 1.0),
    ):
        assert asked.epsilon(delta=0.0).upper == asked.pure() == largest
    for asked in (
        BlackBox(0.1) * 10,
        Laplace(7.0) * 49 + BlackBox(0.1) * 3,
        Laplace(1.0).sampled(0.3) * 5,
    ):
        pure = asked.pure()
        assert pure is not None and asked.epsilon(delta=0.0).upper <= pure
    pure = (BlackBox(0.1) * 10).pure()
    assert pure is not None and pure > 1.0  # the double is above the decimal


def random_case(rng: random.Random) -> tuple[Composable, float]:
    sigma, rate = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-8, 0)
    kinds = (
        lambda: Gaussian(sigma).sampled(min(rate, 0.99)),
        lambda: Gaussian(sigma),
        lambda: Laplace(10 ** rng.uniform(-0.5, 2)),
        lambda: RandomizedResponse(10 ** rng.uniform(-2, 0.5)),
        lambda: Exponential(10 ** rng.uniform(-2, 0.5)),
        lambda: Concentrated(10 ** rng.uniform(-4, 0)),
    )
    parts = [
        rng.choice(kinds)() * int(10 ** rng.uniform(0, 4))
        for _ in range(rng.choice((1, 1, 1, 2, 3)))
    ]
    return compose(*parts), 10 ** -rng.uniform(0.3, 30)


@pytest.mark.parametrize("seed", range(24))
def test_random_compositions(seed: int) -> None:
    rng = random.Random(seed)
    asked, delta = random_case(rng)
    options: dict[str, Any] = {
        "orientation": rng.choice([Orientation.SAME] * 7 + [Orientation.FREE])
    }
    parts: Any = compose(asked).parts
    count = sum(times for _, times in parts)
    found = asked.epsilon(delta=delta, **options)
    assert found.lower <= found.upper
    basic = sum(times * part.epsilon(delta=delta / count).upper for part, times in parts)
    assert found.upper <= basic * (1 + 1e-9)
    rho = (part.zcdp() for part, _ in parts)
    rhos = [each and each.rho * times for each, (_, times) in zip(rho, parts, strict=True)]
    if None not in rhos:
        assert found.upper <= zcdp_epsilon(sum(rhos), delta) * (1 + 1e-9)
    everybody = [
        (part.base if hasattr(part, "base") else compose(part)) * times for part, times in parts
    ]
    assert found.upper <= compose(*everybody).epsilon(delta=delta, **options).upper * (1 + 1e-9)
    assert asked.delta(epsilon=basic * (1 + 1e-12), **options).upper <= delta * (1 + 1e-6)


def test_replacing_with_a_better_sensitivity_is_not_mixed_up_with_its_sample() -> None:
    """On a sample the pair is that of twice the sensitivity, whatever `replace_sensitivity` is."""
    for rate in (0.999, 1e-6):
        ends = [
            (Gaussian(0.05, replace_sensitivity=length).sampled(rate) * 2).epsilon(
                delta=1e-10, adjacency=Adjacency.REPLACE
            )
            for length in (None, 1.1)
        ]
        assert ends[1].upper >= ends[0].lower
