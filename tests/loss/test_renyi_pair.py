"""The pair of a Renyi curve lies above every mechanism with that curve; the curve of bounded range is its largest."""

from __future__ import annotations

import math
from collections.abc import Callable

import mpmath
import numpy as np
import pytest

from dpcompose.guarantee import gaussian, renyi
from dpcompose.loss.bounded_range import BoundedRangeLoss
from dpcompose.loss.renyi_pair import renyi_pair
from dpcompose.numerics.elementary import Reals

EPSILONS = [0.0, 1e-3, 0.01, 0.05, 0.2, 0.7, 1.5, 4.0, 10.0]


def concentrated(rho: float) -> Callable[[Reals], Reals]:
    return lambda orders: rho * orders * (orders + 1) * (1 + 1e-15)


def two_point_moment(epsilon: float, order: float, t: mpmath.mpf) -> mpmath.mpf:
    """log E e^(order L) of the losses t and t - epsilon."""
    e, b = mpmath.mpf(epsilon), mpmath.mpf(order)
    high = (mpmath.exp(e) - mpmath.exp(t)) / mpmath.expm1(e)
    return mpmath.log(
        high * mpmath.exp(b * t) + mpmath.expm1(t) / mpmath.expm1(e) * mpmath.exp(b * (t - e))
    )


@pytest.mark.parametrize("rho", [1e-9, 1e-4, 0.02, 0.5, 30.0])
def test_gaussian_noise_lies_below_the_pair_of_its_curve(rho: float) -> None:
    loss = renyi_pair(concentrated(rho))
    for epsilon in EPSILONS:
        for point in (epsilon * math.sqrt(rho), -epsilon * math.sqrt(rho)):
            assert (
                loss.profile(point).upper
                >= gaussian.gaussian_profile(point, mu=math.sqrt(2 * rho)).lower
            )


@pytest.mark.parametrize("rho", [1e-4, 0.02, 0.5, 30.0])
def test_the_pair_is_hardly_above_the_conversion_of_the_best_order(rho: float) -> None:
    loss = renyi_pair(concentrated(rho))
    for share in (1.0, 2.0, 4.0, 8.0):
        epsilon = rho + share * math.sqrt(rho)
        assert loss.profile(epsilon).upper <= 1.003 * renyi.renyi_delta(
            lambda order: rho * order, epsilon=epsilon
        )
    assert loss.infinite_mass < 1e-150


@pytest.mark.parametrize("epsilon", [0.01, 0.5, 3.0])
def test_two_points_of_bounded_range_lie_below_the_pair_of_their_curve(epsilon: float) -> None:
    group = [(BoundedRangeLoss(epsilon), 1)]
    loss = renyi_pair(lambda orders: BoundedRangeLoss.moments_below(group, orders))
    for share in (0.05, 0.3, 0.5, 0.8, 0.97):
        t = share * epsilon
        high = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
        for at in (-0.9, -0.3, 0.0, 0.2, 0.5, 0.8, 0.96):
            x = at * epsilon
            exact = high * max(-math.expm1(x - t), 0.0) + (1 - high) * max(
                -math.expm1(x - t + epsilon), 0.0
            )
            assert loss.profile(x).upper >= exact * (1 - 1e-13)


@pytest.mark.parametrize("epsilon", [1e-8, 0.3, 0.99, 1.01, 50.0])
def test_the_curve_of_bounded_range_is_its_largest_two_point_moment(epsilon: float) -> None:
    with mpmath.workdps(90):
        for order in (1e-4, 0.5, 7.0, 1e5):
            found = BoundedRangeLoss.moments_below(
                [(BoundedRangeLoss(epsilon), 3)], np.array([order])
            )
            rate = mpmath.expm1(order * mpmath.mpf(epsilon)) / mpmath.expm1(epsilon)
            best = mpmath.log(order / (order + mpmath.mpf(1)) * (mpmath.exp(epsilon) + 1 / rate))
            largest = two_point_moment(epsilon, order, best)
            for factor in (1 - 1e-6, 1 + 1e-6):
                assert (
                    two_point_moment(epsilon, order, min(best * factor, mpmath.mpf(epsilon)))
                    <= largest
                )
            assert (
                3 * largest <= mpmath.mpf(float(found[0])) <= 3 * largest * (1 + mpmath.mpf(1e-9))
            )
