"""Values and their inverses in extreme cases: beyond the largest loss, close to probability 1, and
where no proof succeeds.
"""

from __future__ import annotations

import math

import pytest

from dpcompose import Gaussian
from dpcompose.contour import invert
from dpcompose.contour.transform import Transform, TransformSum
from dpcompose.loss.gaussian import GaussianSum
from dpcompose.loss.product import Product
from dpcompose.loss.two_point import TwoPointLoss

BOUNDED = Product(((TwoPointLoss(0.5), 60), (TwoPointLoss(0.3), 40))).transform
SUMS: list[Transform] = [
    GaussianSum(1.0),
    GaussianSum(1e-6),
    GaussianSum(400.0),
    BOUNDED,
    TransformSum((GaussianSum(0.25), BOUNDED)),
]
MASSES = [0.999, 0.5, 1e-3, 1e-12, 1e-100, 1e-290]


@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("mass", MASSES)
@pytest.mark.slow
def test_the_point_has_the_value(transform: Transform, mass: float) -> None:
    found = invert.point_of(transform, mass, mass, tolerance=1e-6)
    assert -math.inf < found.lower <= found.upper < math.inf
    assert invert.value_at(transform, found.upper, tolerance=1e-9).lower <= mass
    assert invert.value_at(transform, found.lower, tolerance=1e-9).upper >= mass


@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
def test_an_interval_of_masses_has_the_points_of_both_ends(transform: Transform) -> None:
    least, most = 1e-6, 3e-6
    found = invert.point_of(transform, least, most, tolerance=1e-6)
    for mass in (least, math.sqrt(least * most), most):
        alone = invert.point_of(transform, mass, mass, tolerance=1e-9)
        assert found.lower <= alone.upper and alone.lower <= found.upper


@pytest.mark.slow
@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("mass", [5e-324, 1e-320, 1 - 2.0**-53, 1 - 1e-12])
def test_extreme_masses_still_give_an_enclosure(transform: Transform, mass: float) -> None:
    found = invert.point_of(transform, mass, mass, tolerance=1e-9)
    assert found.lower <= found.upper and not math.isnan(found.lower)
    if found.upper < transform.maximum:
        assert invert.value_at(transform, found.upper, tolerance=1e-9).lower <= mass
    if found.lower > -math.inf:
        assert invert.value_at(transform, found.lower, tolerance=1e-9).upper >= mass


@pytest.mark.parametrize("transform", SUMS, ids=range(len(SUMS)))
@pytest.mark.parametrize("x", [-1e300, -1e6, -700.0, -1e-300, 0.0, 1e-300, 700.0, 1e6, 1e300])
def test_far_values_are_between_zero_and_one(transform: Transform, x: float) -> None:
    found = invert.value_at(transform, x, tolerance=1e-9)
    assert 0 <= found.lower <= found.upper <= 1
    # g(x) >= 1 - e^x, and g falls from 1.
    assert found.upper >= -math.expm1(min(x, 0.0)) * (1 - 1e-15)


def test_nothing_is_above_the_largest_value() -> None:
    maximum = BOUNDED.maximum
    assert maximum >= 42
    for x in (maximum, math.nextafter(maximum, math.inf), 50.0, 1e300, math.inf):
        assert invert.value_at(BOUNDED, x, tolerance=1e-9).upper == 0
    below = invert.value_at(BOUNDED, maximum * (1 - 1e-6), tolerance=1e-9)
    exact = -math.expm1(-42e-6) / math.exp(
        60 * math.log1p(math.exp(-0.5)) + 40 * math.log1p(math.exp(-0.3))
    )
    assert below.lower <= exact * (1 + 1e-9) and exact * (1 - 1e-9) <= below.upper


def test_a_tight_budget_widens_and_stays_right() -> None:
    transform = TransformSum((GaussianSum(1e-4), BOUNDED))
    coarse, fine = (invert.value_at(transform, 20.0, tolerance=each) for each in (0.5, 1e-12))
    assert coarse.lower <= fine.upper and fine.lower <= coarse.upper
    assert fine.upper - fine.lower <= coarse.upper - coarse.lower


class TestWalk:
    def test_it_stops_at_the_first_proof(self) -> None:
        assert invert.walk_to_proof(lambda point: True, 1.0, 1e-3, 10.0) == pytest.approx(1.0006)
        found = invert.walk_to_proof(lambda point: point >= 1.5, 1.0, 1e-3, 10.0)
        assert 1.5 <= found <= 1.8

    def test_without_a_proof_it_ends_at_the_end(self) -> None:
        assert invert.walk_to_proof(lambda point: False, 1.0, 1e-3, 10.0) == 10.0
        assert invert.walk_to_proof(lambda point: False, 1.0, 1e-3, math.inf) == math.inf
        assert invert.walk_to_proof(lambda point: True, 9.9999, 1.0, 10.0) == 10.0

    def test_a_step_of_nothing_still_moves(self) -> None:
        assert invert.walk_to_proof(lambda point: point > 1.0, 1.0, 0.0, 10.0) > 1.0
        assert invert.walk_to_proof(lambda point: point > -1.0, -1.0, 0.0, 10.0) > -1.0


@pytest.mark.slow
def test_two_rare_samples_at_a_tiny_delta() -> None:
    """But for probability 1e-194 both answers are within 30 sigma, where the two losses add up to less than 0.0031."""
    composition = Gaussian(6.2062755948229915).sampled(1.2364016265586158e-05) * 2
    for tolerance in (1e-4, 1e-12):
        assert composition.epsilon(delta=9.785336051854345e-126, tolerance=tolerance).lower < 0.0031
