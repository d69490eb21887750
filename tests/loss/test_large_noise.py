"""Sampled Gaussians whose noise is large beside the sensitivity: narrow answers, alone and beside an ordinary phase."""

from __future__ import annotations

import pytest

import dpcompose
from dpcompose import Composition, Gaussian

ORDINARY = Gaussian(10.0).sampled(0.5) * 164


@pytest.mark.parametrize("noise", [3e4, 1e5, 1e6])
def test_a_phase_that_costs_nothing_leaves_the_answer_of_its_partner(noise: float) -> None:
    alone = ORDINARY.epsilon(delta=3e-7)
    together = (ORDINARY + Gaussian(noise).sampled(0.3) * 3000).epsilon(delta=3e-7)
    unsampled = (ORDINARY + Gaussian(noise) * 3000).epsilon(delta=3e-7)
    assert alone.lower <= together.upper <= unsampled.upper * (1 + 1e-9)
    assert together.upper <= together.lower * (1 + 1e-9)
    assert noise < 1e6 or abs(together.upper - 3.154956511) <= 1e-8


@pytest.mark.parametrize(
    ("composition", "delta"),
    [
        (ORDINARY + Gaussian(1e6).sampled(0.3) * 3000, 3e-7),
        (Gaussian(585735.873478611).sampled(0.00411971) * 3871687, 9e-9),
        (Gaussian(4e4).sampled(0.01) * 10**6, 1e-60),
    ],
    ids=["free", "many", "deep"],
)
def test_answers_contain_what_ball_arithmetic_proves(
    composition: Composition, delta: float
) -> None:
    found, proved = composition.epsilon(delta=delta), composition.epsilon(delta=delta, proof=True)
    assert found.lower <= proved.upper and proved.lower <= found.upper
    assert found.upper <= found.lower * (1 + 1e-5)
    batch = dpcompose.epsilon([composition], delta=delta)
    assert batch.lower[0] <= proved.upper and proved.lower <= batch.upper[0]


def test_an_order_far_below_the_largest_loss_is_taken() -> None:
    """Adding a record loses at most 16,000 nats; the answer is at 4e-5, at an order of 4e5."""
    bound = (Gaussian(5.9e5).sampled(0.0041) * 3871687).epsilon(delta=9e-9)
    assert 0 < bound.lower <= bound.upper <= bound.lower * (1 + 1e-7)
