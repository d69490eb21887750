"""P[loss > epsilon] contains the truth: closed normal tails, exact binomial sums, and bounds from
delta.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given, settings, strategies as st
from mpmath import erfc, mp, mpf

from dpcompose import BlackBox, Exponential, Gaussian, Laplace, Orientation
from dpcompose.errors import UnsupportedError


@settings(max_examples=20, deadline=None)
@given(st.floats(0.5, 50), st.integers(1, 1000), st.floats(-3, 12))
def test_the_normal_tail(sigma: float, times: int, epsilon: float) -> None:
    found = (Gaussian(sigma) * times).loss_above(epsilon=epsilon)
    with mp.workdps(40):
        mu = mp.sqrt(times) / mpf(sigma)
        truth = erfc((mpf(epsilon) - mu * mu / 2) / mu / mp.sqrt(2)) / 2
        for bound in (found.removed, found.added, found.largest):
            assert mpf(bound.lower) <= truth <= mpf(bound.upper)


@pytest.mark.parametrize("epsilon", [-0.05, 0.04, 0.31, 0.5])
def test_sums_of_two_valued_losses(epsilon: float) -> None:
    """Between atoms to ten digits; at an atom the bound has both sides of the step."""
    yes = 1 / (1 + math.exp(-0.1))

    def tail(above: float) -> float:
        losses = (
            Fraction(0.1) * (2 * n - 5) for n in range(6)
        )  # at 0.5 the largest is just above it
        chances = (math.comb(5, n) * yes**n * (1 - yes) ** (5 - n) for n in range(6))
        return sum(
            chance for loss, chance in zip(losses, chances, strict=True) if loss > Fraction(above)
        )

    found = (BlackBox(0.1) * 5).loss_above(epsilon=epsilon)
    assert found.removed.lower <= tail(epsilon) * (1 + 1e-12)
    assert found.removed.upper >= tail(epsilon) * (1 - 1e-12)
    if epsilon != 0.5:
        assert found.removed.width < 1e-10


def test_it_is_never_below_delta_and_directions_differ() -> None:
    composed = (Gaussian(1.0).sampled(0.01) * 10) + Laplace(5.0)
    found = composed.loss_above(epsilon=0.3)
    assert found.largest.upper >= composed.delta(epsilon=0.3).lower
    assert found.removed.lower > found.added.upper


def test_what_has_no_answer_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        (Exponential(1.0) * 3).loss_above(epsilon=1.0)
    with pytest.raises(UnsupportedError):
        (Gaussian(1.0).sampled(0.1) * 2).loss_above(epsilon=1.0, orientation=Orientation.FREE)
    with pytest.raises(UnsupportedError):
        Gaussian(1.0).loss_above(epsilon=1.0, proof=True)
    assert (
        BlackBox(0.1, delta=0.25)
        .loss_above(epsilon=math.inf)
        .removed.contains(float(Fraction(1, 4)))
    )
