"""The experiment under a filter: decisions as one by one, exact worst cases within the promise."""

from __future__ import annotations

import numpy as np
import pytest

from dpcompose import Adjacency, BlackBox, Gaussian, Laplace, Orientation, RandomizedResponse
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    Budget,
    Filter,
    GaussianFilter,
    PureFilter,
)
from dpcompose.errors import DomainError, RefusedRoundError
from dpcompose.experiment import (
    Experiment,
    Holds,
    NaturalFilterBreaker,
    Query,
    Repeater,
    States,
    Wanderer,
    World,
)

FILTERS = (
    PureFilter(0.9),
    BasicFilter(0.9, delta=0.1),
    AdvancedFilter(1.0, delta=0.1, slack=0.05),
    Budget(1.0, 0.1, only="zcdp"),
    Budget(1.0, 0.1, only="renyi"),
)


def about_bob(epsilon: float) -> Query:
    return Query(RandomizedResponse(epsilon), ("Bob",), (), Holds("Bob"))


def family(queries: list[Query]) -> list[RandomizedResponse]:
    return [query.mechanism for query in queries]  # pyright: ignore[reportReturnType]


@pytest.mark.parametrize("limit", FILTERS, ids=lambda each: each.kind)
def test_states_decide_as_steps_do(limit: Filter) -> None:
    rng = np.random.default_rng(3)
    mechanisms = [RandomizedResponse(0.1), RandomizedResponse(0.25), BlackBox(0.05)]
    states, places, alone = (
        States(limit),
        np.zeros(20, dtype=int),
        [limit.start() for _ in range(20)],
    )
    refused = 0
    for _ in range(25):
        asked = rng.integers(len(mechanisms), size=20)
        for number, mechanism in enumerate(mechanisms):
            asking = np.flatnonzero(asked == number)
            after = states.step(places[asking], mechanism)
            for transcript, place in zip(asking.tolist(), after.tolist(), strict=True):
                alone[transcript], decision = limit.step(alone[transcript], mechanism)
                assert decision.granted == (place >= 0)
                refused += not decision.granted
            places[asking[after >= 0]] = after[after >= 0]
        assert [states.of(place).spent for place in places] == [each.spent for each in alone]
    assert 0 < refused < 500


@pytest.mark.parametrize("limit", FILTERS, ids=lambda each: each.kind)
def test_no_adversary_exceeds_the_promise(limit: Filter) -> None:
    queries = [about_bob(epsilon) for epsilon in (0.2, 0.45, 0.7)]
    above, promised = 0, dict[float, float]()
    for seed in range(6):
        wanderer = Wanderer(queries, seed=seed)
        game = Experiment(wanderer, family=family(queries), rounds=7, filter=limit)
        free = Experiment(wanderer, family=family(queries), rounds=7)
        solved, without = game.solve(), free.solve()
        for epsilon in (0.0, 0.5, 0.9, 1.0):
            if epsilon not in promised:  # the same for every adversary
                found = game.composition.delta(epsilon=epsilon)
                promised[epsilon] = found.upper
                assert found.lower == 0
            assert solved.delta(epsilon).lower <= promised[epsilon]
            above += without.delta(epsilon).lower > promised[epsilon]
    assert above > 6  # without the filter the same adversaries are above


def test_the_certificate_is_the_smaller_of_both() -> None:
    query = Query(Gaussian(4.0), ("Bob",), ())
    game = Experiment(
        Repeater(query), family=[query.mechanism], rounds=2, filter=GaussianFilter(5.0)
    )
    without = Experiment(Repeater(query), family=[query.mechanism], rounds=2)
    assert (
        game.composition.epsilon(delta=1e-6).upper == without.composition.epsilon(delta=1e-6).upper
    )
    narrow = Experiment(
        Repeater(query), family=[query.mechanism], rounds=40, filter=GaussianFilter(0.5)
    )
    assert narrow.composition.epsilon(delta=1e-6).upper == GaussianFilter(0.5).epsilon_at(
        delta=1e-6
    )
    point = narrow.composition.epsilon(delta=1e-6).upper
    assert narrow.composition.delta(epsilon=point).upper == pytest.approx(1e-6, rel=1e-9)
    first = narrow.composition.compare(delta=1e-6)[0]
    assert first.name.startswith("gaussian filter")
    assert all(row.lower is None for row in narrow.composition.compare(delta=1e-6))


def test_a_refused_round_answers_nothing_and_the_game_goes_on() -> None:
    large, small = Query(Laplace(2.0), ("Bob",), ()), Query(Laplace(10.0), ("Bob",), ())
    game = Experiment(
        Repeater(large, small),
        family=[large.mechanism, small.mechanism],
        rounds=6,
        filter=PureFilter(0.75),
    )
    views = game.play(World.ZERO, transcripts=5, rng=np.random.default_rng(1))
    assert np.isnan(views.answers).all(axis=1).tolist() == [False, False, True, False, True, True]


def test_measured_and_solved_agree_under_a_filter() -> None:
    queries = [about_bob(epsilon) for epsilon in (0.3, 0.6)]
    game = Experiment(
        Wanderer(queries, seed=1), family=family(queries), rounds=6, filter=PureFilter(1.3)
    )
    limits = game.measure(transcripts=40_000, rng=np.random.default_rng(5)).delta([0.0, 0.6])
    for place, epsilon in enumerate((0.0, 0.6)):
        truth = game.solve().delta(epsilon)
        assert limits.lower[place] <= truth.upper
        assert truth.lower <= limits.upper[place]


def test_the_breaker_is_held_by_a_filter() -> None:
    breaker = NaturalFilterBreaker()
    game = Experiment(
        breaker,
        family=[each.mechanism for each in breaker.queries],
        rounds=2,
        filter=BasicFilter(1.5, delta=0.05),
    )
    assert game.solve().delta(1.5).upper <= 0.05


def test_what_a_filter_cannot_price_is_a_refused_round() -> None:
    query = Query(Gaussian(1.0), ("Bob",), ())
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=2, filter=PureFilter(1.0))
    with pytest.raises(RefusedRoundError, match="round 1"):
        game.play(World.ZERO, transcripts=3, rng=np.random.default_rng(1))
    charged = Experiment(
        Repeater(query),
        family=[query.mechanism],
        rounds=2,
        filter=BasicFilter(11.0, delta=1e-5),
        charged_delta=5e-6,
    )
    assert not np.isnan(
        charged.play(World.ZERO, transcripts=3, rng=np.random.default_rng(1)).answers
    ).any()


def test_bad_filters_are_refused() -> None:
    query = about_bob(1.0)
    wrong: list[dict[str, object]] = [{"filter": 1.0}, {"filter": "pure"}, {"charged_delta": 1e-6}]
    for each in wrong:
        with pytest.raises(DomainError):
            Experiment(Repeater(query), family=[query.mechanism], rounds=1, **each)  # pyright: ignore[reportArgumentType]


def test_prices_are_those_of_the_games_adjacency() -> None:
    swap = Query(Laplace(2.0), ("Bob",), ("Eve",), Holds("Bob"))
    game = Experiment(
        Repeater(swap),
        family=[swap.mechanism],
        rounds=2,
        adjacency=Adjacency.REPLACE,
        filter=PureFilter(0.75),
    )
    assert np.isnan(
        game.play(World.ZERO, transcripts=2, rng=np.random.default_rng(1)).answers
    ).all()
    same = Experiment(
        Repeater(about_bob(0.5)), family=[RandomizedResponse(0.5)], rounds=3, orientation=Orientation.SAME,
        filter=PureFilter(1.0),
    )  # fmt: skip
    assert np.isnan(same.solve().answers[2]).all()
