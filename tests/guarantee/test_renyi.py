"""Conversions from Renyi, concentrated and pure privacy: golden values, independent maximizations, and soundness."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import mpmath
import pytest
from flint import arb, ctx

from dpcompose.adaptive import Budget
from dpcompose.guarantee import gaussian, optimal, renyi
from dpcompose.guarantee.renyi import ConcentratedDP, lossless_epsilon

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def row(name: str, index: int = 0) -> dict[str, float]:
    found = [row for row in GOLDEN if row["name"] == name][index]
    return {key: float(value) for key, value in found["params"].items()} | {
        "expected": float(found["expected"])
    }


def slow_lossless(order: float, rho: float, delta: float) -> mpmath.mpf:
    """max over p of log((p - delta) / q(p)), q(p) the smallest with D_order <= rho: golden section over a bisection."""
    mpmath.mp.dps = 40
    a, d = mpmath.mpf(order), mpmath.mpf(delta)
    most = (a - 1) * mpmath.mpf(rho)

    def log_q(p: mpmath.mpf) -> mpmath.mpf:
        low, high = (a * mpmath.log(p) - most) / (a - 1), mpmath.log(p)
        for _ in range(90):
            middle = (low + high) / 2
            q = mpmath.exp(middle)
            first = p**a * mpmath.exp((1 - a) * middle)
            low, high = (
                (middle, high)
                if mpmath.log(first + (1 - p) ** a * (1 - q) ** (1 - a)) > most
                else (low, middle)
            )
        return high

    def gain(odds: mpmath.mpf) -> mpmath.mpf:
        p = d + (1 - d) / (1 + mpmath.exp(-odds))
        return mpmath.log(p - d) - log_q(p)

    low, high, ratio = mpmath.log(d) - 10, mpmath.mpf(60), (mpmath.sqrt(5) - 1) / 2
    left, right = high - ratio * (high - low), low + ratio * (high - low)
    at_left, at_right = gain(left), gain(right)
    for _ in range(55):
        if at_left >= at_right:
            high, right, at_right = right, left, at_left
            left = high - ratio * (high - low)
            at_left = gain(left)
        else:
            low, left, at_left = left, right, at_right
            right = low + ratio * (high - low)
            at_right = gain(right)
    return max(at_left, at_right, mpmath.mpf(0))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(7))
def test_lossless_is_the_maximum_over_two_point_pairs(seed: int) -> None:
    rng = random.Random(seed)
    order, rho = 1 + math.exp(rng.uniform(-3, 5)), math.exp(rng.uniform(-9, 2))
    delta = 10 ** rng.uniform(-12, -0.6)
    value, true = lossless_epsilon(rho, order=order, delta=delta), slow_lossless(order, rho, delta)
    assert value >= true * (1 - mpmath.mpf(10) ** -25)
    assert value <= true * (1 + mpmath.mpf(10) ** -11) + mpmath.mpf(10) ** -13


def test_golden_conversions() -> None:
    data = row("rdp_to_eps_asoodeh")
    exact = lossless_epsilon(data["rdp"], order=data["alpha"], delta=data["delta"])
    assert exact == pytest.approx(data["expected"], rel=1e-12)
    assert lossless_epsilon(0.1, order=2.0, delta=1e-3) == pytest.approx(
        3.30658370826768611541, rel=1e-12
    )
    data = row("rdp_to_eps_cks")
    moment = renyi.optimal_moment_epsilon(data["rdp"], order=data["alpha"], delta=data["delta"])
    assert moment == pytest.approx(data["expected"], rel=1e-12)
    data = row("rdp_to_delta_cks")
    delta = renyi.optimal_moment_delta(data["rdp"], order=data["alpha"], epsilon=data["eps"])
    assert delta == pytest.approx(data["expected"], rel=1e-12)
    assert renyi.mironov_epsilon(0.5, order=10.0, delta=1e-6) == pytest.approx(
        2.03505672866269712268, rel=1e-12
    )


@pytest.mark.parametrize("seed", range(200))
def test_the_conversions_are_ordered_and_rounded_up(seed: int) -> None:
    rng = random.Random(seed)
    order, rho = 1 + math.exp(rng.uniform(-9, 9)), math.exp(rng.uniform(-12, 5))
    delta = 10 ** rng.uniform(-200, -0.01)
    exact = lossless_epsilon(rho, order=order, delta=delta)
    moment = renyi.optimal_moment_epsilon(rho, order=order, delta=delta)
    classic = renyi.mironov_epsilon(rho, order=order, delta=delta)
    assert exact <= moment * (1 + 1e-11) + 1e-12 and moment <= classic * (1 + 1e-12)
    with ctx.workprec(300):
        a, r, d = arb(order), arb(rho), arb(delta)
        assert arb(classic) >= r - d.log() / (a - 1)
        true = r + (1 - 1 / a).log() - (d.log() + a.log()) / (a - 1)
        assert arb(moment) >= true and moment <= max(0.0, float(true)) + 1e-13 * (
            rho - math.log(delta) / (order - 1)
        )


@pytest.mark.parametrize("mu", [1e-3, 0.1, 1.0, 7.0])
@pytest.mark.parametrize("delta", [0.1, 1e-5, 1e-50])
def test_the_curve_of_a_gaussian_bounds_its_epsilon(mu: float, delta: float) -> None:
    found = renyi.renyi_epsilon(lambda order: order * mu * mu / 2, delta=delta)
    true = gaussian.gaussian_epsilon(delta, mu=mu)
    assert true.lower <= found.epsilon <= 1.6 * true.upper + 0.2 * mu
    assert found.epsilon == pytest.approx(
        renyi.concentrated_epsilon(ConcentratedDP(mu * mu / 2), delta=delta), rel=1e-6
    )


@pytest.mark.parametrize(
    ("epsilon", "times", "delta"), [(0.1, 100, 1e-6), (1.0, 3, 1e-3), (1 / 801, 10_000, 1e-14)]
)
def test_the_curve_of_randomized_response_bounds_the_optimum(
    epsilon: float, times: int, delta: float
) -> None:
    found = renyi.renyi_epsilon(
        lambda order: times * renyi.pure_renyi(epsilon, order=order), delta=delta
    )
    true = optimal.homogeneous_epsilon(delta, epsilon=epsilon, times=times)
    assert true.lower <= found.epsilon <= 1.3 * true.upper


def test_the_search_is_as_good_as_a_fine_grid() -> None:
    best = renyi.renyi_epsilon(lambda order: order / 2, delta=1e-6)
    grid = min(
        lossless_epsilon(order / 2, order=order, delta=1e-6)
        for order in (1 + 0.02 * i for i in range(100, 400))
    )
    assert best.epsilon <= grid * (1 + 1e-6)


@pytest.mark.parametrize("last", [12.0, 20.0, 33.0, 150.0])
def test_the_search_for_a_delta_is_as_good_as_a_fine_grid(last: float) -> None:
    """Also where delta falls slowly with the order and rises at once, as that of a rarely sampled Gaussian does."""

    def curve(order: float) -> float:
        return 0.0134 * order if order < last else 0.0134 * order + 0.1 * (order - last) ** 2

    orders = [1.0 + math.exp(place / 50.0) for place in range(-100, 400)]
    grid = min(
        renyi.optimal_moment_delta(curve(order), order=order, epsilon=0.868) for order in orders
    )
    assert renyi.renyi_delta(curve, epsilon=0.868) <= grid * (1.0 + 1e-3)


def test_a_curve_known_up_to_an_order_is_used_below_it() -> None:
    found = renyi.renyi_epsilon(lambda order: order / 2 if order < 3 else math.inf, delta=1e-6)
    assert found.order < 3 and found.epsilon < math.inf


def test_nothing_finite_is_infinite() -> None:
    assert renyi.renyi_epsilon(lambda order: math.inf, delta=1e-6).epsilon == math.inf
    assert renyi.renyi_epsilon(lambda order: order, delta=0.0).epsilon == math.inf
    assert lossless_epsilon(math.inf, order=2.0, delta=0.1) == math.inf
    assert lossless_epsilon(0.0, order=2.0, delta=0.0) == 0.0
    assert renyi.optimal_moment_delta(math.inf, order=2.0, epsilon=3.0) == 1.0


def test_large_delta_is_the_corner() -> None:
    value = lossless_epsilon(2.0, order=3.0, delta=0.4)
    assert value == pytest.approx(2 + math.log1p(-0.4), rel=1e-14)
    near = lossless_epsilon(2.0, order=3.0, delta=1 / 3 - 1e-9)
    assert near == pytest.approx(2 + math.log(2 / 3), abs=1e-6)


def test_golden_concentrated() -> None:
    data = row("zcdp_eps_basic")
    promise = ConcentratedDP(data["rho"])
    basic = renyi.bun_steinke_epsilon(promise, delta=data["delta"])
    assert basic == pytest.approx(data["expected"], rel=1e-12)
    best = renyi.concentrated_epsilon(promise, delta=data["delta"])
    assert best <= 5.22153444453016904423 < basic
    assert best >= gaussian.gaussian_epsilon(data["delta"], mu=math.sqrt(2 * data["rho"])).lower
    data = row("zcdp_delta_cks_opt")
    delta = renyi.concentrated_delta(ConcentratedDP(data["rho"]), epsilon=data["eps"])
    assert delta == pytest.approx(data["expected"], rel=1e-12)
    rho = ConcentratedDP(10 * renyi.pure_concentrated(0.1).rho)
    assert renyi.bun_steinke_epsilon(rho, delta=1e-6) == pytest.approx(
        1.71152445151256066300, rel=1e-12
    )


def test_a_promise_that_may_fail_uses_up_its_delta() -> None:
    promise = ConcentratedDP(0.5, delta=1e-7)
    rest = (1e-6 - 1e-7) / (1 - 1e-7)
    wanted = renyi.concentrated_epsilon(ConcentratedDP(0.5), delta=rest)
    assert renyi.concentrated_epsilon(promise, delta=1e-6) == pytest.approx(wanted, rel=1e-12)
    assert renyi.concentrated_epsilon(promise, delta=1e-7) == math.inf
    assert renyi.concentrated_epsilon(promise, delta=1e-8) == math.inf
    assert renyi.concentrated_epsilon(ConcentratedDP(0.0, delta=1e-7), delta=1e-7) == 0.0
    assert renyi.concentrated_delta(promise, epsilon=math.inf) >= 1e-7


def test_golden_pure() -> None:
    for name in ("rdp_rr", "pure_to_rdp_stable"):
        data = row(name)
        assert renyi.pure_renyi(data["eps"], order=data["alpha"]) == pytest.approx(
            data["expected"], rel=1e-12
        )
    data = row("kl_tight_pure")
    assert renyi.pure_concentrated(data["eps"]).rho == pytest.approx(data["expected"], rel=1e-12)


@pytest.mark.parametrize("seed", range(100))
def test_randomized_response_is_rounded_up_and_below_its_concentrated_line(seed: int) -> None:
    rng = random.Random(seed)
    epsilon, order = math.exp(rng.uniform(-20, 6)), 1 + math.exp(rng.uniform(-9, 9))
    value = renyi.pure_renyi(epsilon, order=order)
    with ctx.workprec(400):
        e, a = arb(epsilon), arb(order)
        true = ((((a - arb("0.5")) * e).cosh()) / (e / 2).cosh()).log() / (a - 1)
        assert arb(value) >= true and (arb(value) - true) < true * arb("1e-12")
        assert true <= a * e * (e / 2).tanh()
        assert arb(renyi.pure_concentrated(epsilon).rho) >= e * (e / 2).tanh()


def counted_tangents(monkeypatch: pytest.MonkeyPatch) -> list[None]:
    """One entry for each tangent that is taken in decimals, which is what a conversion costs."""
    taken: list[None] = []
    known = renyi._tangent

    def counted(*arguments: Any) -> Any:
        taken.append(None)
        return known(*arguments)

    monkeypatch.setattr(renyi, "_tangent", counted)
    return taken


@pytest.mark.parametrize("delta", [0.5, 1e-6, 1e-280, 1e-295, 1e-308, 5e-324])
@pytest.mark.parametrize("rho", [1e-6, 0.5, 1e4])
def test_a_conversion_takes_few_tangents_at_every_delta(
    rho: float, delta: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken = counted_tangents(monkeypatch)
    found = renyi.renyi_epsilon(lambda order: order * rho, delta=delta)
    assert len(taken) <= 80
    # No more than one moment gives at its best order, [CanonneKamathSteinke2020, Proposition 12].
    order = 1 + math.sqrt(-math.log(delta) / rho)
    assert found.epsilon <= renyi.optimal_moment_epsilon(order * rho, order=order, delta=delta) * (
        1 + 1e-9
    )


def test_a_filter_for_a_target_takes_few_tangents(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = counted_tangents(monkeypatch)
    found = Budget(1, 0.5, only="zcdp")
    assert len(taken) <= 2000
    assert ConcentratedDP(float(found.limits["rho"])).epsilon(delta=0.5) <= 1
