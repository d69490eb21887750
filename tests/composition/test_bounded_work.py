"""Hard questions end after a bounded amount of work, with an answer that is narrow, or as wide as it must be."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import Adjacency, DiscreteGaussian, Laplace, RandomizedResponse, compose
from dpcompose.composition.container import Composable
from dpcompose.loss.atoms import AtomicSum
from dpcompose.numerics.bound import Bound


class Work:
    """How many terms of transforms were summed: nodes times atoms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        known = AtomicSum.line

        def counted(transform: AtomicSum, order: float, frequencies: Any) -> Any:
            self.done += len(frequencies) * len(transform.loss.upper)
            return known(transform, order, frequencies)

        monkeypatch.setattr(AtomicSum, "line", counted)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def relative(bound: Bound) -> float:
    return bound.width / bound.upper


@pytest.mark.parametrize("one, two, rounds", [(0.1, 0.2, 10**9), (1.0, 0.5, 10**9), (5.0, 3.0, 10**8)])
def test_many_copies_of_two_responses_have_their_mean_loss_at_an_even_chance(
    one: float, two: float, rounds: int
) -> None:
    found = ((RandomizedResponse(one) + RandomizedResponse(two)) * rounds).epsilon(delta=0.5)
    # The median of the sum is its mean but for less than a nat per unit of the largest loss; delta is a nat off that.
    mean = rounds * (one * math.tanh(one / 2) + two * math.tanh(two / 2))
    assert found.lower <= mean + 10 and mean - 10 <= found.upper
    assert relative(found) < 1e-3


def test_many_copies_of_one_response_under_replacement_take_few_nodes(work: Work) -> None:
    found = (RandomizedResponse(1.0) * 10**9).epsilon(delta=0.5, adjacency=Adjacency.REPLACE)
    assert work.done < 10_000
    assert relative(found) < 1e-6


def test_a_sum_on_a_lattice_is_inverted_between_its_points(work: Work) -> None:
    """delta(epsilon) = sum of (p - e^epsilon q)_+ over the triples of outcomes, in balls."""
    ctx.prec = 200
    weights = [(-arb(n * n) / 2).exp() for n in range(-25, 26)]
    whole = sum(weights, arb(0))
    sums = [arb(1)]
    for _ in range(3):
        wider = [arb(0)] * (len(sums) + 50)
        for at, mass in enumerate(sums):
            for step, weight in enumerate(weights):
                wider[at + step] += mass * weight / whole
        sums = wider

    def delta(epsilon: float) -> arb:
        total = arb(0)
        for at, mass in enumerate(sums):
            loss = arb(27) / 2 + 3 * (at - 75)
            if loss > epsilon:
                total += mass * (1 - (arb(epsilon) - loss).exp())
        return total

    for asked in np.linspace(6.2e-7, 7.4e-7, 13).tolist():
        found = (DiscreteGaussian(1.0, shift=3) * 3).epsilon(delta=asked)
        assert delta(found.upper) < asked < delta(found.lower)
        assert relative(found) < 1e-9


@pytest.mark.parametrize(
    "composition, delta, top",
    [
        (compose(*[RandomizedResponse(30 + i / 10, categories=3) for i in range(25)]), 1e-6, 780.0),
        (compose(*[RandomizedResponse(30 + i / 10) for i in range(25)]), 1e-6, 780.0),
        (Laplace(1.2964).sampled(0.12175) * 10, 1.28e-12, 10 * math.log1p(0.12175 * math.expm1(1 / 1.2964))),
    ],
)
def test_next_to_the_largest_loss_the_lower_end_is_next_to_it(
    composition: Composable, delta: float, top: float, work: Work
) -> None:
    found = composition.epsilon(delta=delta)
    assert found.lower > top * (1 - 1e-5)
    assert found.upper <= top * (1 + 1e-12)
    assert work.done < 3e8
