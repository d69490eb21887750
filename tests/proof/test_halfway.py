"""Proofs on the line Re t = -1/2 against lines to the right of 0, and cases in which only the
former is narrow.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpcompose import Adjacency, Bound, Gaussian, Laplace, compose
from dpcompose.loss.atom_moments import LaplaceMoments
from dpcompose.loss.sampled_gaussian import SampledGaussianMoments
from dpcompose.mechanisms import DominatingPair
from dpcompose.proof.ball import ball_field
from dpcompose.proof.halfway import halfway
from dpcompose.proof.line import Enclosure
from dpcompose.proof.moments import Factors, NormalMoments
from oracles import contour, law as laws
from oracles.normal import Direction, SampledGaussian

FIELD = ball_field()
EXACT = FIELD.exact
MIXTURES = [
    ((True, False), Direction.REMOVE),
    ((False, True), Direction.ADD),
    ((True, True), Direction.REPLACE),
]


def enclosed(factors: Factors, x: float, goal: float) -> Enclosure:
    """g(x) on the line at -1/2."""
    lines = halfway(FIELD, lambda: factors, 43.0)
    assert lines is not None
    found = lines.line_for(x, goal, most_nodes=20_000)
    assert found is not None
    line, bits = found
    with FIELD.precision(bits):
        return line.enclosure(EXACT(x))


@pytest.mark.parametrize(("sides", "direction"), MIXTURES)
def test_both_lines_have_one_value(sides: tuple[bool, bool], direction: Direction) -> None:
    noise, rate, times, x = 1.5, 0.01, 500, 0.3
    with FIELD.precision(400):
        factors = [
            (SampledGaussianMoments(FIELD, EXACT(noise), EXACT(rate), *sides), times),
            (NormalMoments(FIELD, EXACT(1) / 16), 1),
        ]
        truth = contour.delta(
            x,
            [
                (SampledGaussian(rate, 1 / Fraction(noise), direction), times),
                (laws.Gaussian(Fraction(1, 16)), 1),
            ],
        )
        found = enclosed(factors, x, float(truth))
    assert found.upper.union(found.lower).overlaps(truth)
    assert found.upper - found.lower < 1e-15 * truth


def test_a_bound_that_is_far_too_large_only_costs_width() -> None:
    with FIELD.precision(400):
        factors = [(SampledGaussianMoments(FIELD, EXACT(1.5), EXACT(0.01), True, False), 500)]
        near, far = enclosed(factors, 0.9, 1e-8), enclosed(factors, 0.9, 1.0)
    assert far.lower <= near.lower <= near.upper <= far.upper


def test_no_line_where_a_loss_is_not_known_in_the_other_order() -> None:
    assert halfway(FIELD, lambda: [(LaplaceMoments(FIELD, EXACT(0.7)), 3)], 43.0) is None


def test_rare_losses_are_proved_where_no_order_is_left() -> None:
    answer = (Gaussian(2.0).sampled(1e-5) * 10**7).epsilon(delta=1e-30, proof=True)
    assert answer.lower <= 0.18382356633282 + 1e-13
    assert answer.upper >= 0.18382356633282 - 1e-13
    assert answer.width < 1e-13
    assert "halfway" in answer.certificate.method


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("epsilon", [-1.0, 0.0, 1.0, 50.0])
def test_a_pair_with_nothing_in_common_is_proved(times: int, epsilon: float) -> None:
    apart = DominatingPair.atoms(upper=[1.0, 0.0], lower=[0.0, 1.0], adjacency=Adjacency.ADD_REMOVE)
    for composition in (
        apart * times,
        compose(apart, Laplace(1.0) * times),
        compose(apart, Gaussian(1.0) * times),
    ):
        answer = composition.delta(epsilon=epsilon, proof=True)
        assert (answer.lower, answer.upper) == (1.0, 1.0)
        assert composition.epsilon(delta=0.5, proof=True) == Bound(math.inf, math.inf)
