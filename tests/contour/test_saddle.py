"""Orders close to the saddle point have few digits, are in range and accurate, and are found for
extreme questions.
"""

from __future__ import annotations

import math
from random import Random

import pytest
from hypothesis import given, strategies as st

from dpcompose.contour import saddle
from dpcompose.contour.transform import Transform, TransformSum
from dpcompose.loss.gaussian import GaussianSum
from dpcompose.loss.product import Product
from dpcompose.loss.two_point import TwoPointLoss

SUMS: list[Transform] = [
    GaussianSum(1.0),
    GaussianSum(1e-12),
    GaussianSum(1e8),
    Product(((TwoPointLoss(0.5), 100),)).transform,
    Product(((TwoPointLoss(1e-6), 10**9),)).transform,
    TransformSum((GaussianSum(0.25), Product(((TwoPointLoss(0.1), 30),)).transform)),
]


@given(st.floats(1e-300, 1e300), st.sampled_from([8, 24, 40]))
def test_a_short_number_has_few_digits(value: float, bits: int) -> None:
    short = saddle.shortened(value, bits=bits)
    mantissa, _ = math.frexp(short)
    assert math.ldexp(mantissa, bits).is_integer()
    assert abs(short / value - 1) <= 2.0**-bits
    assert saddle.shortened(short, bits=bits) == short


@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
def test_the_saddle_point_of_a_value(transform: Transform) -> None:
    rng = Random(3)
    _, mean, variance = transform.cumulants(1e-6)
    for _ in range(30):
        value = mean + math.sqrt(variance) * rng.uniform(-3, 30)
        if value >= transform.maximum:
            continue
        order = saddle.saddle_for_value(transform, value)
        assert (
            saddle.LEAST_ORDER <= order <= saddle.MOST and saddle.shortened(order, bits=24) == order
        )
        _, slope, curvature = transform.cumulants(order)
        gap = slope - value - 1 / order - 1 / (order + 1)
        rate = curvature + 1 / order**2 + 1 / (order + 1) ** 2
        assert abs(gap) <= 0.06 * order * rate or order in (saddle.LEAST_ORDER, saddle.MOST)


@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("value", [-1e308, -1e6, -1.0, 0.0, 5e-324, 1.0, 1e6, 1e308])
def test_every_value_has_an_order(transform: Transform, value: float) -> None:
    order = saddle.saddle_for_value(transform, value)
    assert saddle.LEAST_ORDER * (1 - 1e-6) <= order <= saddle.MOST


@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("log_mass", [-1e-16, -1e-3, -1.0, -50.0, -700.0, -745.0])
def test_the_saddle_point_of_a_mass(transform: Transform, log_mass: float) -> None:
    order = saddle.for_mass(transform, log_mass)
    assert (
        saddle.LEAST_ORDER * (1 - 1e-6) <= order <= saddle.MOST
        and saddle.shortened(order, bits=24) == order
    )
    log_m, slope, curvature = transform.cumulants(order)
    width = 0.5 * math.log(2 * math.pi * (curvature + 1 / order**2 + 1 / (order + 1) ** 2))
    reached = (
        log_m
        - order * slope
        + 1
        + order / (order + 1)
        - math.log(order)
        - math.log1p(order)
        - width
    )
    at_an_end = order <= saddle.LEAST_ORDER * 2 or slope >= transform.maximum * (1 - 1e-6)
    assert reached == pytest.approx(log_mass, rel=0.1, abs=2.0) or at_an_end
