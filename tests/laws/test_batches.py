"""Laws of batches of a fixed size, each under its own adjacency."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

import dpcompose
from campaigns.names import NAMES
from dpcompose import Adjacency, GaussianDP, compose
from dpcompose.mechanisms import FixedSizeSample, ShuffledEpochs
from dpcompose.mechanisms.batches import Batches

DELTAS = (1e-2, 1e-6, 1e-12)


def shuffled(sigma: float) -> Batches:
    return ShuffledEpochs(sigma, steps=20)


def drawn(sigma: float) -> Batches:
    return FixedSizeSample(sigma, records=200, batch=20)


@pytest.mark.parametrize("build", [shuffled, drawn])
class TestEach:
    def test_more_rounds_cost_more_and_more_noise_less(self, build: type[Batches]) -> None:
        one = build(1.5)
        under = one.covered[0]
        for delta in DELTAS:
            answers = [
                (build(sigma) * 2).epsilon(delta=delta, adjacency=under) for sigma in (1.5, 1.6)
            ]
            first = one.epsilon(delta=delta, adjacency=under)
            assert first.lower <= first.upper and answers[0].lower <= answers[0].upper
            assert first.upper <= answers[0].upper and first.lower <= answers[0].lower * (1 + 1e-9)
            assert answers[1].upper <= answers[0].upper and answers[1].lower <= answers[0].lower * (
                1 + 1e-9
            )

    def test_epsilon_and_delta_are_inverse(self, build: type[Batches]) -> None:
        both = build(1.5) * 2
        under = build(1.5).covered[0]
        found = both.epsilon(delta=1e-6, adjacency=under)
        assert both.delta(epsilon=found.upper, adjacency=under).upper <= 1e-6 * (1 + 1e-6)
        assert both.delta(epsilon=found.lower, adjacency=under).lower >= 1e-6 * (1 - 1e-6)
        deltas = [both.delta(epsilon=epsilon, adjacency=under) for epsilon in (-2.0, 0.0, 1.0, 3.0)]
        assert all(high.upper >= low.upper for high, low in pairwise(deltas))

    def test_never_above_the_noise_without_amplification(self, build: type[Batches]) -> None:
        one, under = build(1.5), build(1.5).covered[0]
        mu = one.gdp(adjacency=under) or 1 / 1.5 * one.reach
        plain = GaussianDP(mu * math.sqrt(3), holds_under=under)
        for delta in DELTAS:
            assert (one * 3).epsilon(delta=delta, adjacency=under).upper <= plain.epsilon(
                delta=delta, adjacency=under
            ).upper * (1 + 1e-9)
        assert one.renyi(4.0, adjacency=under).upper <= plain.renyi(
            4.0, adjacency=under
        ).upper / 3 * (1 + 1e-9)

    def test_order_and_grouping_do_not_matter(self, build: type[Batches]) -> None:
        one = build(1.5)
        assert compose(one, one) == one * 2 == one + one
        assert eval(repr(one), NAMES) == one

    def test_only_its_own_adjacency_and_no_sample(self, build: type[Batches]) -> None:
        one = build(1.5)
        for adjacency in Adjacency:
            if adjacency is not one.covered[0]:
                with pytest.raises(dpcompose.errors.UnsupportedError, match="adjacency=Adjacency"):
                    one.epsilon(delta=1e-6, adjacency=adjacency)
        with pytest.raises(dpcompose.errors.UnsupportedError, match="sampled"):
            one.sampled(0.1).epsilon(delta=1e-6, adjacency=one.covered[0])
