"""At the ends of an argument's domain there is an answer, or an error that names the argument."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from dpcompose import Adjacency, BlackBox, Exponential, Gaussian, Laplace, RandomizedResponse, book
from dpcompose.adaptive import GaussianFilter, RenyiFilter
from dpcompose.errors import DomainError
from dpcompose.experiment import Experiment, Holds, Query, Repeater
from dpcompose.guarantee import ConcentratedDP
from dpcompose.guarantee.optimal import homogeneous_epsilon
from dpcompose.mechanisms import DominatingPair


@pytest.mark.slow
@pytest.mark.parametrize("order", [1.5, 2.0, 3.0, 7.0, 8.0, 49.0, 64.0, 1e3, 1e6])
@pytest.mark.parametrize("budget", [1e-6, 0.01, 1.0, 5.0])
def test_one_order_converts_at_and_next_to_its_inverse(order: float, budget: float) -> None:
    """From delta = 1 / order on the corner is best: epsilon = budget + log(1 - delta) (Asoodeh et al., 2021)."""
    delta = 1 / order
    for at in (math.nextafter(delta, 0), delta, math.nextafter(delta, 1), delta * (1 - 1e-13)):
        found = RenyiFilter(order, budget=budget).epsilon_at(delta=at)
        corner = max(budget + math.log1p(-at), 0.0)
        assert corner * (1 - 1e-12) <= found <= corner + 1e-5 * max(budget, corner)


@pytest.mark.parametrize(
    "mechanism",
    [
        RandomizedResponse(0.0),
        RandomizedResponse(0.0, categories=4),
        BlackBox(0.0),
        Exponential(0.0),
    ],
)
def test_what_costs_nothing_diverges_by_nothing(mechanism: Any) -> None:
    assert mechanism.renyi(8) == (mechanism * 3).renyi(1.5) == mechanism.renyi(2.0)
    assert mechanism.renyi(8).upper == 0.0


def test_a_pair_is_no_list_of_masses() -> None:
    with pytest.raises(DomainError, match=r"DominatingPair\.atoms"):
        DominatingPair([0.5, 0.5], [0.2, 0.8])  # type: ignore[arg-type]
    with pytest.raises(DomainError, match="holds_under"):
        DominatingPair(
            DominatingPair.atoms(upper=[1.0], lower=[1.0], adjacency=Adjacency.ZERO_OUT).pair,
            "zero-out",  # type: ignore[arg-type]
        )


@pytest.mark.parametrize("mechanism", [Gaussian(1.0), Laplace(1.0), BlackBox(1.0, delta=0.1)])
def test_the_smallest_levels_and_priors_have_answers(mechanism: Any) -> None:
    profile = mechanism.profile()
    for level in (5e-324, 1e-310, 1e-300):
        error = profile.tradeoff(level)
        assert 0.0 <= error.lower <= error.upper <= 1.0
        bayes = mechanism.risk(prior=level).bayes_error
        assert 0.0 <= bayes.lower <= bayes.upper <= level
    expected = book.promise(profile, utility_range=1.0).expected(0.0)
    assert 0.0 <= expected.lower <= expected.upper <= 1.0


@pytest.mark.parametrize("order", [-1, 0, 0.5, 1, math.inf, math.nan])
def test_a_divergence_has_an_order_above_one(order: float) -> None:
    with pytest.raises(DomainError, match="order"):
        ConcentratedDP(0.1).renyi(order)


@pytest.mark.parametrize("times", [-1, 1.5, None, 10**16])
def test_budgets_are_counted(times: Any) -> None:
    with pytest.raises(DomainError, match="times"):
        GaussianFilter(1.0).total(times, delta=1e-6)


def test_an_epsilon_that_no_float_holds_is_refused() -> None:
    query = Query(RandomizedResponse(0.5), ("Bob",), (), Holds("Bob"))
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=1)
    measured = game.measure(transcripts=10, rng=np.random.default_rng(1))
    with pytest.raises(DomainError, match="epsilons"):
        measured.delta(10**400)


@pytest.mark.parametrize("epsilon", [1e3, 1e6, 1e15])
@pytest.mark.parametrize("delta", [1.0 - 2.0**-53, 1.0 - 2.0**-52])
@pytest.mark.parametrize("lost", [0.1, 0.5])
def test_the_optimum_is_bounded_where_all_but_nothing_may_be_lost(
    epsilon: float, delta: float, lost: float
) -> None:
    """Of one promise 1 - delta = (1 - lost) e^(found - epsilon), up to e^-epsilon."""
    found = homogeneous_epsilon(delta, epsilon=epsilon, delta=lost, times=1)
    truth = epsilon + math.log((1.0 - delta) / (1.0 - lost))
    assert found.lower <= truth + 1e-9 and truth - 1e-9 <= found.upper <= epsilon
