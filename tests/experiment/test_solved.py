"""The experiment solved exactly: against closed forms, and never above what the theorems certify."""

from __future__ import annotations

import math
from decimal import Context, Decimal, localcontext
from functools import partial
from statistics import NormalDist
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from campaigns.experiment import exactly
from dpcompose import (
    Adjacency,
    BlackBox,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, RefusedRoundError, UnsupportedError
from dpcompose.experiment import (
    Experiment,
    Greedy,
    Holds,
    ManyDatabases,
    NaturalFilterBreaker,
    Query,
    Repeater,
    Wanderer,
    World,
)
from dpcompose.mechanisms import DominatingPair

BOB = Holds("Bob")
EPSILONS = (-1.0, 0.0, 0.1, 0.4, 1.0, 1.7, 3.0)
ROUND_OFF = 1e-14


def about_bob(mechanism: Composable) -> Query:
    return Query(mechanism, ("Bob",), (), BOB)


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
@pytest.mark.parametrize("rounds", [1, 2, 7, 12])
def test_the_repeater_meets_the_optimal_bound(epsilon: float, rounds: int) -> None:
    mechanism = RandomizedResponse(epsilon)
    solved = Experiment(Repeater(about_bob(mechanism)), family=[mechanism], rounds=rounds).solve()
    for point in EPSILONS:
        found, optimal = solved.delta(point), (mechanism * rounds).delta(epsilon=point)
        assert found.lower <= optimal.upper
        assert found.upper >= optimal.lower
        assert found.width < 1e-15


def test_the_repeater_meets_it_with_delta() -> None:
    mechanism = BlackBox(0.3, delta=1e-3)
    solved = Experiment(
        Repeater(Query(mechanism, ("Bob",), ())), family=[mechanism], rounds=5
    ).solve()
    for point in EPSILONS:
        assert solved.delta(point).lower <= (mechanism * 5).delta(epsilon=point).upper
        assert solved.delta(point).upper >= (mechanism * 5).delta(epsilon=point).lower


def test_the_natural_filter_lets_more_through_than_its_budget() -> None:
    breaker = NaturalFilterBreaker()
    solved = Experiment(
        breaker, family=[query.mechanism for query in breaker.queries], rounds=2
    ).solve()
    epsilon, delta = breaker.budget.epsilon, breaker.budget.delta
    # Each branch is within the budget by the optimal theorem...
    for second in breaker.continuations:
        branch = compose(breaker.opening.mechanism, second.mechanism).delta(epsilon=epsilon)
        assert branch.lower <= delta * (1 + 1e-15)
        assert branch.upper >= delta * (1 - 1e-12)
    # ... and the interaction is not: 0.05 (1 + 1 / (1 + e)).
    assert solved.delta(epsilon).contains(0.0634470710684997560374)
    # Two answers twice, and of the four of the other mechanism both that are possible in a world and both that are not.
    assert len(solved.zero) == 2 + 4


def test_free_orientation_reaches_more_than_the_same_one_allows() -> None:
    mechanism, point = RandomizedResponse(1.0).sampled(0.1), 0.107826199675374
    query = about_bob(mechanism)
    turning = (
        Experiment(Repeater(query, query.exchanged), family=[mechanism], rounds=2)
        .solve()
        .delta(point)
    )
    same = (mechanism * 2).delta(epsilon=point)
    free = (mechanism * 2).delta(epsilon=point, orientation=Orientation.FREE)
    assert round(turning.lower, 6) == 0.025242
    assert turning.lower > same.upper > 0.0187
    assert turning.upper <= free.upper
    # The lower end of FREE is this very adversary.
    assert free.lower <= turning.upper


def _lost(database: tuple[object, ...]) -> float:
    return -1.0 if "Bob" in database else 0.0


@pytest.mark.parametrize("orientation", Orientation)
def test_a_replaced_record_stays_where_it_is_unless_worlds_may_be_turned(
    orientation: Orientation,
) -> None:
    """A statistic that falls turned the pair also where the orientation is the same: above what is certified."""
    p, rate = 1 / (1 + np.exp(-1.0)), 0.1
    one = [1 - p, p]
    zero = [rate * p + (1 - rate) * (1 - p), rate * (1 - p) + (1 - rate) * p]
    pair = DominatingPair.atoms(upper=zero, lower=one, adjacency=Adjacency.REPLACE)
    queries = [Query(pair, ("Bob",), ("Eve",), statistic) for statistic in (Holds("Bob"), _lost)]
    game = Experiment(
        Repeater(*queries),
        family=[pair],
        rounds=2,
        adjacency=Adjacency.REPLACE,
        orientation=orientation,
    )
    certified = (pair * 2).delta(
        epsilon=0.108, adjacency=Adjacency.REPLACE, orientation=orientation
    )
    found = game.solve().delta(0.108)
    assert found.lower <= certified.upper
    # Turned once, the pair tells more than twice the same way.
    assert (found.lower > 0.025) == (orientation is Orientation.FREE)


def test_the_same_orientation_refuses_to_turn() -> None:
    mechanism = RandomizedResponse(1.0).sampled(0.1)
    query = about_bob(mechanism)
    game = Experiment(
        Repeater(query, query.exchanged), family=[mechanism], rounds=2, orientation=Orientation.SAME
    )
    with pytest.raises(RefusedRoundError, match=r"round 2.*world 0"):
        game.solve()


FAMILIES = [
    [RandomizedResponse(0.5)],
    [RandomizedResponse(0.5), RandomizedResponse(0.3, categories=3), BlackBox(0.1, delta=0.01)],
    [RandomizedResponse(1.0).sampled(0.1)],
    [
        DominatingPair.atoms(
            upper=[0.5, 0.25, 0.25], lower=[0.25, 0.5, 0.25], adjacency=Adjacency.ADD_REMOVE
        ),
        RandomizedResponse(0.8).sampled(0.3),
        BlackBox(0.2, delta=0.02),
    ],
]


@pytest.mark.slow
@settings(max_examples=150)
@given(
    st.integers(0, 2**32), st.sampled_from(range(len(FAMILIES))), st.integers(1, 5), st.booleans()
)
def test_no_adversary_is_above_the_certified_bound(
    seed: int, family: int, rounds: int, free: bool
) -> None:
    orientation = Orientation.FREE if free else Orientation.SAME
    asked = [about_bob(mechanism) for mechanism in FAMILIES[family]]
    queries = [*asked, *(query.exchanged for query in asked if free)]
    game = Experiment(
        Wanderer(queries, seed=seed, quits=0.1),
        family=FAMILIES[family],
        rounds=rounds,
        orientation=orientation,
    )
    solved, bound = game.solve(), game.composition.profile()(np.array(EPSILONS))
    with localcontext(Context(prec=60)):
        assert abs(sum(solved.zero) - 1) < Decimal("1e-40")
        assert abs(sum(solved.one) - 1) < Decimal("1e-40")
    for point, upper in zip(EPSILONS, bound.upper, strict=True):
        assert solved.delta(point).lower <= upper + ROUND_OFF


@pytest.mark.slow
def test_the_certificate_is_that_of_the_game() -> None:
    """Random games of every adjacency and orientation; one that forgets the orientation is caught."""
    above, caught, _, nearest = exactly(40)
    assert above == 0 and caught > 0 and nearest > 0.99
    sampled = RandomizedResponse(1.0).sampled(0.1)
    query = about_bob(sampled)
    turning = Experiment(Repeater(query, query.exchanged), family=[sampled], rounds=2)
    reached = turning.solve().delta(0.107826)
    assert reached.lower > 0.025242 - 1e-6
    assert turning.composition.delta(epsilon=0.107826).upper >= reached.lower
    assert turning.composition.rounds.delta(epsilon=0.107826).upper < 0.018758  # of another game


@pytest.mark.parametrize("adjacency", list(Adjacency))
@pytest.mark.parametrize("orientation", list(Orientation))
def test_a_certificate_answers_for_its_game_alone(
    adjacency: Adjacency, orientation: Orientation
) -> None:
    pair = DominatingPair.atoms(
        upper=[0.5, 0.25, 0.25], lower=[0.25, 0.5, 0.25], adjacency=adjacency
    )
    adversary = Repeater(about_bob(pair))
    game = Experiment(
        adversary, family=[pair], rounds=3, adjacency=adjacency, orientation=orientation
    )
    certified, alone = game.composition, pair * 3
    own: dict[str, Any] = {"adjacency": adjacency, "orientation": orientation}
    asked: list[tuple[Any, Any, dict[str, float]]] = [
        (certified.delta, alone.delta, {"epsilon": 0.5}),
        (certified.epsilon, alone.epsilon, {"delta": 0.01}),
        (certified.compare, alone.compare, {"delta": 0.01}),
    ]
    for question, general, at in asked:
        assert question(**at) == question(**at, **own) == general(**at, **own)
    found = [curve(np.array([0.5])).upper for curve in (certified.profile(), alone.profile(**own))]
    assert found[0] == found[1]
    others: list[dict[str, Any]] = [
        {"adjacency": each} for each in Adjacency if each is not adjacency
    ]
    others += [{"orientation": each} for each in Orientation if each is not orientation]
    for other in [*others, {"adjacency": "replaced"}]:
        for ask in (
            partial(certified.delta, epsilon=0.5),
            partial(certified.epsilon, delta=0.01),
            partial(certified.compare, delta=0.01),
            certified.profile,
        ):
            with pytest.raises(DomainError, match="belongs to its game"):
                ask(**other)


def test_a_certificate_under_replace_is_no_certificate_under_add_remove() -> None:
    """Gaussian noise of 2, four rounds, a record replaced: sensitivity 2, so mu is 2 (Balle and Wang's profile)."""
    noise = Gaussian(2.0)
    query = Query(noise, ("Bob",), ("Eve",), Holds("Bob", 2.0))
    game = Experiment(Repeater(query), family=[noise], rounds=4, adjacency=Adjacency.REPLACE)
    truth = NormalDist().cdf(0.5) - math.e * NormalDist().cdf(-1.5)
    assert abs(truth - 0.50986) < 1e-4
    measured = game.measure(transcripts=100_000, rng=np.random.default_rng(1), failure=1e-6).delta(
        [1.0]
    )
    assert (
        0.49 < measured.lower[0] < truth + 1e-9 <= game.composition.delta(epsilon=1.0).upper + 1e-8
    )


def test_a_bound_that_is_too_small_is_caught() -> None:
    """Positive control: the exact composition along the path, taken for a bound, and a bound of one round too few."""
    breaker = NaturalFilterBreaker()
    solved = Experiment(
        breaker, family=[query.mechanism for query in breaker.queries], rounds=2
    ).solve()
    assert solved.delta(1.5).lower > breaker.budget.delta + ROUND_OFF
    mechanism = RandomizedResponse(0.5)
    four = Experiment(Repeater(about_bob(mechanism)), family=[mechanism], rounds=4).solve()
    assert four.delta(0.4).lower > (mechanism * 3).delta(epsilon=0.4).upper + ROUND_OFF


def test_bob_in_many_databases() -> None:
    """Curators who do not talk to each other, asked in an order that depends on their answers."""
    mechanism = RandomizedResponse(0.4)
    others = [(f"person {i}", "Alice") for i in range(6)]
    curators = [Query(mechanism, ("Bob", *people), people, BOB) for people in others]
    game = Experiment(
        ManyDatabases(curators), family=[mechanism], rounds=6, orientation=Orientation.SAME
    )
    solved = game.solve()
    for point in EPSILONS:
        assert solved.delta(point).lower <= (mechanism * 6).delta(epsilon=point).upper
        assert solved.delta(point).upper >= (mechanism * 6).delta(epsilon=point).lower
    assert solved.answers.shape == (6, 64)
    mixed = [
        Query(RandomizedResponse(0.2 * (i + 1)), ("Bob", "Alice"), ("Alice",), BOB)
        for i in range(4)
    ]
    family = [query.mechanism for query in mixed]
    adaptive = Experiment(ManyDatabases(mixed), family=family, rounds=9).solve()
    assert adaptive.answers.shape == (4, 16)
    assert adaptive.delta(0.5).lower <= compose(*family).delta(epsilon=0.5).upper + ROUND_OFF


def test_every_database_is_asked_once_in_an_order_that_depends_on_the_answers() -> None:
    curators = [
        Query(RandomizedResponse(0.5), ("Bob", f"person {i}"), (f"person {i}",), BOB)
        for i in range(6)
    ]
    adversary, rng = ManyDatabases(curators), np.random.default_rng(1)
    state, answers, asked = adversary.first(None), np.empty((0, 40)), []
    while True:
        state, chosen = adversary.choose(state, answers)
        if chosen is None:
            break
        assert chosen.which is not None
        asked.append(chosen.which)
        answers = np.concatenate([answers, rng.integers(2, size=(1, 40)).astype(float)])
    orders = np.array(asked)
    assert np.array_equal(np.sort(orders, axis=0), np.tile(np.arange(6)[:, None], (1, 40)))
    assert len({tuple(column) for column in orders.T}) > 10
    # The first of the rest after an answer for Bob, the last of them after one against.
    assert np.array_equal(orders[1], np.where(answers[0] == 1.0, 1, 5))


def test_the_greedy_one_switches_after_the_first_answer() -> None:
    # A sure gain of little against a small chance of much: which is better depends on what was lost so far.
    queries = [about_bob(RandomizedResponse(0.7)), Query(BlackBox(0.0, delta=0.1), ("Bob",), ())]
    family = [query.mechanism for query in queries]
    point = 0.5
    greedy = Greedy(queries, epsilon=point)
    game = Experiment(greedy, family=family, rounds=2)
    played = game.play(World.ZERO, transcripts=4000, rng=np.random.default_rng(5))
    _, second = greedy.choose((np.zeros(2), np.zeros(2, dtype=np.intp)), np.array([[0.0, 1.0]]))
    assert second.which is not None
    assert len(set(second.which.tolist())) == 2
    assert set(np.unique(played.answers[0])) == {0.0, 1.0}
    assert len(np.unique(played.answers[1])) > 2
    solved = game.solve()
    assert solved.delta(point).lower <= game.composition.delta(epsilon=point).upper
    # More than with any sequence that is fixed beforehand.
    fixed = [
        Repeater(*(queries[place] for place in places)) for places in ((0,), (1,), (0, 1), (1, 0))
    ]
    reached = [
        Experiment(each, family=family, rounds=2).solve().delta(point).upper for each in fixed
    ]
    assert solved.delta(point).lower > max(reached) + 0.03


def test_any_epsilon_may_be_asked() -> None:
    game = Experiment(
        Repeater(about_bob(BlackBox(1.0, delta=0.25))), family=[BlackBox(1.0, delta=0.25)], rounds=1
    )
    solved = game.solve()
    assert solved.delta(1e6).contains(0.25)
    assert solved.delta(-1e6).contains(1.0)
    for epsilon in (1e9, float("nan"), float("inf")):
        with pytest.raises(DomainError):
            solved.delta(epsilon)


def test_what_cannot_be_walked_is_refused() -> None:
    query = Query(Laplace(1.0), ("Bob",), ())
    with pytest.raises(UnsupportedError, match="infinitely many"):
        Experiment(Repeater(query), family=[query.mechanism], rounds=1).solve()
    coin = about_bob(RandomizedResponse(0.1))
    with pytest.raises(UnsupportedError, match="more than 100"):
        Experiment(Repeater(coin), family=[coin.mechanism], rounds=7).solve(leaves=100)
    with pytest.raises(RefusedRoundError, match="coins"):
        Experiment(Wanderer([coin], seed=1, coins=True), family=[coin.mechanism], rounds=2).solve()
