"""Families by a promise, epsilon of what was solved or measured, and questions that follow from a view."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpcompose import Adjacency, BlackBox, Gaussian, Laplace, RandomizedResponse
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, RefusedRoundError
from dpcompose.experiment import Experiment, Holds, Query, Repeater, Round, Views, Wanderer, World

LEVEL = Gaussian(4.0).delta(epsilon=1.0).upper
EVERY = BlackBox(1.0, delta=LEVEL)


def about_bob(mechanism: Composable) -> Query:
    return Query(mechanism, ("Bob",), (), Holds("Bob"))


KEPT = [
    Laplace(1.0),
    RandomizedResponse(0.9),
    Gaussian(4.0),
    BlackBox(1.0),
    BlackBox(0.9, delta=LEVEL),
    EVERY,
]
BROKEN = [
    Laplace(0.999),
    RandomizedResponse(1.001),
    Gaussian(3.999),
    BlackBox(1.0, delta=1.01 * LEVEL),
]


@pytest.mark.parametrize("mechanism", KEPT, ids=str)
def test_a_black_box_in_the_family_stands_for_every_mechanism_that_keeps_its_promise(
    mechanism: Composable,
) -> None:
    game = Experiment(Repeater(about_bob(mechanism)), family=[EVERY], rounds=3)
    assert len(game.play(World.ONE, transcripts=2, rng=np.random.default_rng(1)).answers) == 3
    assert (mechanism * 3).delta(epsilon=1.5).lower <= game.composition.delta(epsilon=1.5).upper


@pytest.mark.parametrize("mechanism", BROKEN, ids=str)
def test_what_breaks_the_promise_is_no_member(mechanism: Composable) -> None:
    game = Experiment(Repeater(about_bob(mechanism)), family=[EVERY], rounds=3)
    with pytest.raises(RefusedRoundError, match="a member of the family"):
        game.play(World.ONE, transcripts=2, rng=np.random.default_rng(1))


def test_a_promise_under_replacing_is_asked_under_replacing() -> None:
    """Noise that keeps epsilon 1 when a record goes loses up to 2 when one is replaced."""
    every = BlackBox(1.0, holds_under=Adjacency.REPLACE)
    asked = Query(Laplace(1.0), ("Bob",), ("Eve",), Holds("Bob"))
    game = Experiment(Repeater(asked), family=[every], rounds=2, adjacency=Adjacency.REPLACE)
    with pytest.raises(RefusedRoundError, match="a member of the family"):
        game.play(World.ONE, transcripts=2, rng=np.random.default_rng(1))
    kept = Experiment(
        Repeater(replace(asked, mechanism=Laplace(2.0))),
        family=[every],
        rounds=2,
        adjacency=Adjacency.REPLACE,
    )
    assert kept.play(World.ONE, transcripts=2, rng=np.random.default_rng(1)).answers.shape == (2, 2)


@pytest.mark.parametrize("delta", [0.0, 1e-12, 1e-3, 0.03, 0.1, 0.2, 0.4, 0.9, 1.0])
@pytest.mark.parametrize("mechanism", [RandomizedResponse(0.7), BlackBox(0.5, delta=0.01)], ids=str)
def test_the_solved_epsilon_is_the_optimal_one(mechanism: Composable, delta: float) -> None:
    solved = Experiment(Repeater(about_bob(mechanism)), family=[mechanism], rounds=4).solve()
    found, optimal = solved.epsilon(delta), (mechanism * 4).epsilon(delta=delta)
    assert found.lower <= optimal.upper and optimal.lower <= found.upper
    assert found.lower == found.upper or found.width < 1e-13


def test_the_solved_epsilon_and_delta_are_inverse() -> None:
    queries = [about_bob(RandomizedResponse(each)) for each in (0.3, 0.7, 1.1)]
    game = Experiment(
        Wanderer(queries, seed=5), family=[each.mechanism for each in queries], rounds=5
    )
    solved = game.solve()
    for delta in np.geomspace(1e-6, 0.6, 20):
        found = solved.epsilon(float(delta))
        assert solved.delta(found.upper).lower <= delta
        assert found.lower == 0 or solved.delta(found.lower).upper >= delta
        assert found.width < 1e-12


def test_measured_limits_of_epsilon_hold_the_exact_one_and_invert_those_of_delta() -> None:
    mechanism = Gaussian(3.0)
    game = Experiment(Repeater(about_bob(mechanism)), family=[mechanism], rounds=8)
    measured = game.measure(transcripts=50_000, rng=np.random.default_rng(3))
    deltas = np.array([[0.0, 1e-9, 1e-4], [1e-2, 0.2, 0.7]])
    found = measured.epsilon(deltas)
    exact = np.vectorize(lambda delta: (mechanism * 8).epsilon(delta=float(delta)).upper)(deltas)
    assert np.all((found.lower <= exact) & (exact <= found.upper))
    assert found.upper[0, 0] == math.inf and np.all(np.isfinite(found.upper[1]))
    assert np.all(measured.delta(found.upper[1]).upper <= deltas[1] * (1 + 1e-12))
    assert np.all(found.upper[1] - found.lower[1] < 0.25)
    for wrong in ([1.5], [-0.1], [math.nan], ["x"]):
        with pytest.raises(DomainError, match="deltas"):
            measured.epsilon(wrong)


def test_questions_follow_from_coins_and_answers() -> None:
    queries = [about_bob(each) for each in (RandomizedResponse(0.5), Laplace(2.0), Gaussian(4.0))]
    game = Experiment(Wanderer(queries, seed=2), family=[EVERY], rounds=6)
    views = game.play(World.ZERO, transcripts=10_000, rng=np.random.default_rng(4))
    found = views.questions(game.adversary)
    assert found.which.shape == views.answers.shape and len(views.coins) == 2
    bits = np.isin(views.answers, [0.0, 1.0])
    assert np.array_equal(bits, found.which == found.queries.index(queries[0]))
    assert len(found.of(7)) == 6 and set(found.of(7)) <= set(queries)
    # Of other coins and answers follow other questions.
    other = game.play(World.ZERO, transcripts=10_000, rng=np.random.default_rng(5))
    assert not np.array_equal(other.questions(game.adversary).which, found.which)


def test_who_stops_asks_nothing_more() -> None:
    class Once:
        def first(self, rng: np.random.Generator | None) -> None:
            pass

        def choose(self, state: None, answers: np.ndarray[Any, Any]) -> tuple[None, Round | None]:
            return None, None if len(answers) else Round.of(asked)

    asked = about_bob(Laplace(1.0))
    views = Experiment(Once(), family=[EVERY], rounds=3).play(
        World.ONE, transcripts=4, rng=np.random.default_rng(1)
    )
    assert views.questions(Once()).of(0) == (asked, None, None)
    with pytest.raises(DomainError, match="coins"):
        Views(views.world, views.answers, views.loss).questions(Once())
