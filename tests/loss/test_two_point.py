"""Two-point losses beyond the closed form: exactly delta, and more copies than can be listed."""

from __future__ import annotations

import math

import pytest

from dpcompose import BlackBox, GaussianDP, RandomizedResponse
from dpcompose.loss import TwoPointLoss


@pytest.mark.parametrize("delta", [1e-300, 1e-7, 0.3, 1.0])
def test_the_infinite_mass_of_one_copy_is_delta(delta: float) -> None:
    one = TwoPointLoss(0.5, delta)
    assert one.infinite_mass == delta and one.infinite_relative_error == 0
    assert TwoPointLoss(0.5, delta, 3).infinite_mass == pytest.approx(
        3 * delta if delta < 1e-3 else 1 - (1 - delta) ** 3, rel=1e-6
    )


@pytest.mark.parametrize("times", [3 * 10**11, 7 * 10**11, 10**12])
def test_very_many_copies_are_nearly_gaussian(times: int) -> None:
    """A copy has mu 2 arcsinh-close to epsilon; the two differ by a share of about epsilon^2."""
    many, same = RandomizedResponse(1e-6) * times, GaussianDP(1e-6 * math.sqrt(times))
    found, near = many.epsilon(delta=1e-6), same.epsilon(delta=1e-6)
    assert found.width < 1e-8 * found.upper
    assert found.upper == pytest.approx(near.upper, rel=1e-8)
    risk = (BlackBox(1e-6) * times).risk().advantage
    assert risk.upper == pytest.approx(same.risk().advantage.upper, rel=1e-8)
