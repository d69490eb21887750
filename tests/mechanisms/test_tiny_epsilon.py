"""Mechanisms with a tiny epsilon are evaluated quickly, and the bounds contain the truth."""

from __future__ import annotations

import math

import pytest

from dpcompose import Adjacency, BlackBox, Composition, RandomizedResponse
from dpcompose.mechanisms import Staircase

TINY = (5e-324, 1e-300, 1e-18, 1e-12, 2e-9)


@pytest.mark.parametrize("epsilon", TINY)
@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE])
def test_many_answers_end_and_cost_at_most_their_sum(epsilon: float, adjacency: Adjacency) -> None:
    for one in (
        RandomizedResponse(epsilon, categories=3),
        RandomizedResponse(epsilon),
        BlackBox(epsilon),
        BlackBox(epsilon, delta=1e-9),
    ):
        many: Composition = one * 100
        answer = many.epsilon(delta=1e-6, adjacency=adjacency)
        group = 2 if adjacency is Adjacency.REPLACE else 1
        assert 0 <= answer.lower <= answer.upper <= max(100 * group * epsilon, 1e-323) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", TINY)
def test_the_total_variation_of_one_answer(epsilon: float) -> None:
    half = -math.expm1(-epsilon) / 2
    assert Staircase(epsilon, gamma=0.0).delta(epsilon=0.0).contains(half)
    response = -math.expm1(-epsilon) / (1 + 2 * math.exp(-epsilon))
    assert RandomizedResponse(epsilon, categories=3).delta(epsilon=0.0).contains(response)
