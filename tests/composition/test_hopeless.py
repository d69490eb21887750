"""Alternative theorems are evaluated only where they may improve the bound."""

from __future__ import annotations

import math

import pytest

from dpcompose import Exponential, Gaussian, Laplace, compose
from dpcompose.composition.renyi import RenyiCurve
from dpcompose.contour import saddle


@pytest.mark.parametrize("rho", [1e-6, 1e-2, 0.5, 30.0])
@pytest.mark.parametrize("multiple", [1.0, 3.0, 20.0])
def test_moments_exceed_what_is_below_the_least_of_all_orders(rho: float, multiple: float):
    """K = rho l (l + 1): the least over a fine grid of orders, on either side of which the verdict turns."""
    value = multiple * math.sqrt(rho)

    def cumulants(order: float) -> tuple[float, float, float]:
        return rho * order * (order + 1), rho * (2 * order + 1), 2 * rho

    orders = [2 ** (power / 64) for power in range(-19 * 64, 39 * 64)]
    least = min(
        rho * order * (order + 1) - order * (value + math.log1p(1 / order)) - math.log1p(order)
        for order in orders
    )
    for start in (1e-3, 1.0, 100.0):
        # Where the least is next to order 0, next to log 1, it may be in doubt.
        assert saddle.moments_exceed(cumulants, value, least - 0.01, start=start) or least > -0.5
        assert not saddle.moments_exceed(cumulants, value, least + 0.01, start=start)


@pytest.mark.parametrize(
    ("composition", "epsilon"),
    [
        (Gaussian(1.0).sampled(0.001) * 10_000, 1.0),
        (compose(Gaussian(1.0).sampled(0.005) * 1000, Laplace(20.0) * 10), 1.0),
        (Laplace(1.0) * 1, 1.0),
    ],
    ids=repr,
)
def test_no_order_is_searched_where_none_can_win(
    monkeypatch: pytest.MonkeyPatch, composition, epsilon: float
):
    asked: list[float] = []
    monkeypatch.setattr(
        RenyiCurve, "delta", lambda self, at: asked.append(at) or RenyiCurve.delta(self, at)
    )
    bound = composition.delta(epsilon=epsilon)
    assert bound.lower <= bound.upper
    assert not asked


def test_a_coarse_answer_is_not_compared_where_no_more_was_asked_for(
    monkeypatch: pytest.MonkeyPatch,
):
    asked: list[float] = []
    monkeypatch.setattr(RenyiCurve, "epsilon", lambda self, at: asked.append(at))
    (Gaussian(1.0).sampled(0.01) * 1000).epsilon(delta=1e-8, tolerance=1e-3)
    assert not asked


@pytest.mark.parametrize("times", [10, 100, 1000])
def test_what_is_skipped_is_not_better(times: int):
    """All orders of what is known of exponential mechanisms, one by one: none is below the answer."""
    found = (Exponential(0.1) * times).epsilon(delta=1e-6).upper
    rho = times * 0.1**2 / 8
    orders = [1 + 2 ** (power / 16) for power in range(-64, 160)]
    moments = [
        rho * order + math.log1p(-1 / order) - (math.log(1e-6) + math.log(order)) / (order - 1)
        for order in orders
    ]
    assert found <= min(moments) * (1 + 1e-9)
