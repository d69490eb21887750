"""What may not be asked is refused: with the round's number and the reason, and the position as before."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
)
from dpcompose.errors import DomainError, RefusedRoundError
from dpcompose.experiment import (
    Experiment,
    Greedy,
    Holds,
    ManyDatabases,
    Query,
    Repeater,
    Round,
    Wanderer,
    World,
    about_bob,
    count,
)

NOISE = Laplace(1.0)
GOOD = Query(NOISE, ("Alice", "Bob"), ("Alice",))
FAMILY = [
    NOISE,
    Gaussian(1.0),
    RandomizedResponse(1.0),
    DiscreteLaplace(1.0),
    BlackBox(1.0),
    Concentrated(0.1),
]
RNG = np.random.default_rng(1)


@dataclass(frozen=True)
class Second:
    """Asks a good query, then whatever it was given."""

    make: Callable[[np.ndarray], Any]

    def first(self, rng: np.random.Generator | None) -> int:
        return 0

    def choose(self, state: int, answers: np.ndarray) -> tuple[int, Any]:
        return state + 1, Round.of(GOOD) if len(answers) == 0 else self.make(answers)


def asking(query: Query) -> Callable[[np.ndarray], Any]:
    return lambda answers: Round.of(query)


def raising(answers: np.ndarray) -> Any:
    raise RuntimeError("no idea")


def writing(answers: np.ndarray) -> Any:
    answers[0] = 1.0


BAD: dict[str, tuple[Callable[[np.ndarray], Any], str]] = {
    "outside the family": (asking(Query(Laplace(0.5), ("Bob",), ())), "a member of the family"),
    "no mechanism": (asking(Query("laplace", ("Bob",), ())), "a member of the family"),  # type: ignore[arg-type]
    "not adjacent": (asking(Query(NOISE, ("Bob", "Eve"), ())), "adjacent under add-remove"),
    "replaced": (asking(Query(NOISE, ("Bob",), ("Eve",))), "adjacent under add-remove"),
    "twice Bob": (
        asking(Query(NOISE, ("Bob", "Bob", "Bob"), ("Bob",))),
        "adjacent under add-remove",
    ),
    "too far": (
        asking(Query(NOISE, ("Bob",), (), lambda database: 2.0 * len(database))),
        "at most the sensitivity",
    ),
    "NaN": (
        asking(Query(NOISE, ("Bob",), (), lambda database: math.nan)),
        "statistic = nan: expected a finite number",
    ),
    "infinite": (asking(Query(NOISE, ("Bob",), (), lambda database: math.inf)), "a finite number"),
    "not a number": (asking(Query(NOISE, ("Bob",), (), lambda database: "1")), "a number"),  # type: ignore[arg-type, return-value]
    "true": (asking(Query(NOISE, ("Bob",), (), lambda database: True)), "a number"),
    "no category": (
        asking(Query(RandomizedResponse(1.0), ("A", "B", "C"), ("A", "B"))),
        "a category from 0 to 1",
    ),
    "no integer": (
        asking(Query(DiscreteLaplace(1.0), ("B",), (), lambda x: 0.5 * len(x))),
        "an integer",
    ),
    "no sampler": (asking(Query(Concentrated(0.1), ("Bob",), ())), "cannot draw"),
    "unhashable": (asking(Query(NOISE, (["Bob"],), ())), "unhashable"),  # type: ignore[arg-type]
    "a query": (lambda answers: GOOD, "a Round"),
    "nothing in it": (lambda answers: Round(()), "at least one Query"),
    "no query": (lambda answers: Round(("a",)), "at least one Query"),  # type: ignore[arg-type]
    "wrong shape": (
        lambda answers: Round((GOOD,), np.zeros(3, dtype=int)),
        "one for each of the 5 transcripts",
    ),
    "not integers": (lambda answers: Round((GOOD,), np.full(5, math.nan)), "integers"),
    "beyond": (lambda answers: Round((GOOD,), np.array([0, 0, 1, 0, 0])), "places from -1 to 0"),
    "before": (lambda answers: Round((GOOD,), np.array([0, 0, -2, 0, 0])), "places from -1 to 0"),
    "raises": (raising, "raised RuntimeError: no idea"),
    "writes into its answers": (writing, "raised ValueError"),
    "parameters that are NaN": (
        lambda answers: Round.of(Query(Laplace(math.nan), ("Bob",), ())),
        "scale = nan",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_the_round_is_refused(name: str) -> None:
    make, reason = BAD[name]
    game = Experiment(Second(make), family=FAMILY, rounds=3)
    for run in (
        lambda: game.play(World.ZERO, transcripts=5, rng=RNG),
        lambda: game.measure(transcripts=5, rng=RNG),
    ):
        with pytest.raises(RefusedRoundError) as caught:
            run()
        assert caught.value.number == 2
        assert reason in caught.value.reason


def test_an_adversary_may_stop() -> None:
    game = Experiment(Second(lambda answers: None), family=FAMILY, rounds=3)
    views = game.play(World.ZERO, transcripts=10, rng=RNG)
    assert np.all(np.isfinite(views.answers[0]))
    assert np.all(np.isnan(views.answers[1:]))


@pytest.mark.parametrize("adjacency", Adjacency)
def test_adjacency_decides_which_pairs_there_are(adjacency: Adjacency) -> None:
    pairs = {
        Adjacency.ADD_REMOVE: (("Alice", "Bob"), ("Alice",)),
        Adjacency.REPLACE: (("Alice", "Bob"), ("Alice", "Eve")),
        Adjacency.ZERO_OUT: (("Alice", "Bob"), ("Alice", None)),
    }
    for kind, (zero, one) in pairs.items():
        game = Experiment(
            Repeater(Query(NOISE, zero, one, Holds("Bob"))),
            family=FAMILY,
            rounds=1,
            adjacency=adjacency,
        )
        if kind is adjacency or (kind is Adjacency.ZERO_OUT and adjacency is Adjacency.REPLACE):
            assert game.play(World.ZERO, transcripts=3, rng=RNG).loss.shape == (3,)
        else:
            with pytest.raises(RefusedRoundError, match="adjacent"):
                game.play(World.ZERO, transcripts=3, rng=RNG)


def test_equal_databases_give_nothing_away() -> None:
    for mechanism in (
        NOISE,
        Gaussian(1.0),
        RandomizedResponse(1.0),
        BlackBox(1.0),
        DiscreteLaplace(1.0),
    ):
        game = Experiment(
            Repeater(Query(mechanism, ("Bob",), ("Bob",))), family=[mechanism], rounds=3
        )
        assert np.all(game.play(World.ONE, transcripts=50, rng=RNG).loss == 0.0)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Experiment("nobody", family=FAMILY, rounds=1),  # type: ignore[arg-type]
        lambda: Experiment(Repeater(GOOD), family=[], rounds=1),
        lambda: Experiment(Repeater(GOOD), family=["laplace"], rounds=1),  # type: ignore[list-item]
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=0),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1.5),  # type: ignore[arg-type]
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1, adjacency="swap"),  # type: ignore[arg-type]
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1, orientation=None),  # type: ignore[arg-type]
        Repeater,
        lambda: Greedy([], epsilon=1.0),
        lambda: Greedy([GOOD], epsilon=math.nan),
        lambda: ManyDatabases([]),
        lambda: Wanderer([], seed=1),
        lambda: Wanderer([GOOD], seed=-1),
        lambda: Wanderer([GOOD], seed=1, quits=math.nan),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1).play(
            World.ZERO, transcripts=0, rng=RNG
        ),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1).play(0, transcripts=1, rng=RNG),  # type: ignore[arg-type]
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1).play(
            World.ZERO,
            transcripts=1,
            rng=7,  # type: ignore[arg-type]
        ),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1).measure(
            transcripts=1, rng=RNG, failure=0.0
        ),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1).measure(
            transcripts=1, rng=RNG, failure=math.nan
        ),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=1).measure(
            transcripts=1, rng=RNG, shares=0
        ),
        lambda: (
            Experiment(Repeater(GOOD), family=FAMILY, rounds=1)
            .measure(transcripts=1, rng=RNG)
            .delta([0.0, math.nan])
        ),
        lambda: Experiment(Repeater(GOOD), family=NOISE, rounds=1),  # type: ignore[arg-type]
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=10**9),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=2).play(
            World.ZERO, transcripts=10**12, rng=RNG
        ),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=2).measure(
            transcripts=10**13, rng=RNG
        ),
        lambda: Experiment(Repeater(GOOD), family=FAMILY, rounds=2).solve(leaves="all"),  # type: ignore[arg-type]
        lambda: (
            Experiment(Repeater(GOOD), family=FAMILY, rounds=1)
            .measure(transcripts=1, rng=RNG)
            .delta("many")
        ),
        lambda: Repeater(None),  # type: ignore[arg-type]
        lambda: Greedy(GOOD, epsilon=1.0),  # type: ignore[arg-type]
        lambda: Wanderer(None, seed=1),  # type: ignore[arg-type]
        lambda: Query(NOISE, "Bob", ()),  # type: ignore[arg-type]
        lambda: Query(NOISE, ("Bob",), None),  # type: ignore[arg-type]
        lambda: about_bob("laplace"),  # type: ignore[arg-type]
        lambda: about_bob(NOISE, adjacency="swap"),  # type: ignore[arg-type]
        lambda: about_bob(NOISE, adjacency=[]),  # type: ignore[arg-type]
        lambda: Greedy([GOOD], epsilon=1.0, adjacency="replace"),  # type: ignore[arg-type]
        lambda: Wanderer([GOOD], seed=1, coins=1),  # type: ignore[arg-type]
        lambda: Holds("Bob", math.nan),
        lambda: Holds("Bob", "1"),  # type: ignore[arg-type]
        lambda: count(3),  # type: ignore[arg-type]
        lambda: (
            Experiment(Repeater(GOOD), family=FAMILY, rounds=1)
            .measure(transcripts=1, rng=RNG)
            .histogram(10**30)
        ),
        lambda: (
            Experiment(Repeater(GOOD), family=FAMILY, rounds=1)
            .measure(transcripts=1, rng=RNG)
            .delta(10**400)
        ),
    ],
)
def test_arguments_are_checked(make: Callable[[], object]) -> None:
    with pytest.raises(DomainError):
        make()


def test_orientation_same_keeps_the_record_in_world_zero() -> None:
    game = Experiment(
        Repeater(GOOD.exchanged), family=FAMILY, rounds=1, orientation=Orientation.SAME
    )
    with pytest.raises(RefusedRoundError, match="FREE"):
        game.play(World.ZERO, transcripts=1, rng=RNG)


@dataclass(frozen=True)
class Stillborn:
    """Fails before its first round."""

    def first(self, rng: np.random.Generator | None) -> int:
        raise OSError("no coins today")

    def choose(self, state: int, answers: np.ndarray) -> tuple[int, Any]:
        return state, None


@pytest.mark.parametrize(
    "play",
    [
        lambda game: game.play(World.ZERO, transcripts=1, rng=RNG),
        lambda game: game.measure(transcripts=1, rng=RNG),
        lambda game: game.solve(),
    ],
)
def test_an_adversary_that_fails_at_once_is_refused(play: Callable[[Experiment], object]) -> None:
    with pytest.raises(
        RefusedRoundError, match="round 1 is refused: the adversary raised OSError: no coins today"
    ):
        play(Experiment(Stillborn(), family=FAMILY, rounds=1))


def test_a_statistic_is_a_function() -> None:
    with pytest.raises(RefusedRoundError, match="a function of a database"):
        Experiment(Repeater(Query(NOISE, ("Bob",), (), 3)), family=FAMILY, rounds=1).play(  # type: ignore[arg-type]
            World.ZERO, transcripts=1, rng=RNG
        )


@pytest.mark.slow
def test_many_rounds_take_blocks_of_fewer_transcripts() -> None:
    game = Experiment(Repeater(GOOD), family=FAMILY, rounds=100_000)
    assert game.measure(transcripts=2, rng=RNG).zero.transcripts == 2


def test_limits_are_numbers_at_any_epsilon() -> None:
    found = (
        Experiment(Repeater(GOOD), family=FAMILY, rounds=1)
        .measure(transcripts=9, rng=RNG)
        .delta([-1e308, 1e308])
    )
    assert found.estimate.tolist() == [1.0, 0.0] and found.lower[1] == 0.0


@pytest.mark.parametrize("zero", [3.0, -3.0, 2.0**49])
@pytest.mark.parametrize(
    "mechanism", [DiscreteLaplace(3.0, shift=2), Laplace(3.0, sensitivity=2.0)]
)
def test_the_loss_of_two_sided_exponential_noise_far_from_zero(mechanism: Any, zero: float) -> None:
    """(|y - one| - |y - zero|) / scale, to the last digits also where both values are huge integers."""
    query = Query(mechanism, ("Bob",), (), lambda database: zero if database else zero - 2)
    views = Experiment(Repeater(query), family=[mechanism], rounds=1).play(
        World.ONE, transcripts=500, rng=RNG
    )
    y = views.answers[0]
    assert views.loss == pytest.approx((np.abs(y - (zero - 2)) - np.abs(y - zero)) / 3, abs=1e-14)
