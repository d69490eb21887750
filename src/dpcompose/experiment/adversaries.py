"""The adversary of Definition 3.7, on many transcripts at once: the protocol, and five strategies."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.experiment.channel import Channel, Reals, World
from dpcompose.experiment.round import STOPPED, Holds, Query, Round, Rules, queries_of
from dpcompose.guarantee import ApproximateDP
from dpcompose.mechanisms import BlackBox, RandomizedResponse
from dpcompose.values import Adjacency, Orientation

STATES, ROUNDS = 8, 256
"""The states of memory of a random adversary, and the rounds after which its tables repeat."""
DRAWS, STEP, REACH = 4096, 1 / 32, 20.0
"""Draws by which a greedy adversary estimates a delta; the step and the ends of its grid of epsilons."""
_Losses = tuple[Reals, NDArray[np.intp]] | None
_Range = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]] | None


@runtime_checkable
class Adversary(Protocol):
    """An adversary remembers everything, chooses every round from the answers so far, and changes nothing it was given.

    `first(rng)` is the state before the first round; `rng` is for its coins, and None where the experiment is solved
    exactly, which takes an adversary without coins. `choose(state, answers)` gives the next state and the next round,
    or None to stop in all transcripts; `answers` has shape (rounds so far, transcripts), NaN where a transcript asked
    nothing. A transcript is a game of its own: what is asked in one must not depend on the answers in another.
    """

    def first(self, rng: np.random.Generator | None) -> Any:
        """The state before the first round."""
        ...

    def choose(self, state: Any, answers: Reals) -> tuple[Any, Round | None]:
        """The next state, and the next round or None."""
        ...


def require_adversary(value: Any) -> None:
    """Raise a DomainError unless `value` has the methods of an adversary."""
    if not isinstance(value, Adversary):
        raise DomainError("adversary", value, "an adversary, with `first` and `choose`")


@dataclass(frozen=True, init=False)
class Repeater:
    """The non-adaptive adversary: the same query in every round, or several in turn.

    The mean of its answers converges to the true value, as section 3.5 says: no fixed amount of noise hides it forever.

    Args:
        queries: The queries of rounds 1, 2, ..., and then from the beginning again; at least one.
    """

    queries: tuple[Query, ...]

    def __init__(self, *queries: Query) -> None:
        object.__setattr__(self, "queries", queries_of(queries))

    def first(self, rng: np.random.Generator | None) -> None:
        """No state."""

    def choose(self, state: None, answers: Reals) -> tuple[None, Round]:
        return None, Round.of(self.queries[len(answers) % len(self.queries)])


FixedAdversary = Repeater


@dataclass(frozen=True)
class Wanderer:
    """A random adaptive strategy: eight states of memory, changed by whether an answer is above a random cut.

    Each round and state has its query. Cuts and tables are drawn once, from the seed: it is one strategy, and can be
    solved exactly.

    Args:
        queries: The queries that it may ask, at least one.
        seed: An integer >= 0.
        quits: The probability with which it stops at a round and state, in [0, 1).
        coins: Whether its first state is drawn anew in every game.
    """

    queries: Sequence[Query]
    _: KW_ONLY
    seed: int
    quits: float = 0.0
    coins: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", queries_of(self.queries))
        object.__setattr__(self, "seed", check.count("seed", self.seed, least=0))
        if not 0 <= check.probability("quits", self.quits) < 1:
            raise DomainError("quits", self.quits, "a number in [0, 1)")
        check.flag("coins", self.coins)

    def first(self, rng: np.random.Generator | None) -> np.random.Generator | None:
        """The coins, if it uses any."""
        if self.coins and rng is None:
            raise DomainError("coins", True, "False where an adversary is solved exactly")
        return rng if self.coins else None

    def choose(self, state: Any, answers: Reals) -> tuple[Any, Round]:
        memory = self._memory(state, answers)
        return memory, Round(tuple(self.queries), self._tables[len(answers) % ROUNDS][memory])

    def _memory(self, state: Any, answers: Reals) -> NDArray[np.intp]:
        rounds, transcripts = answers.shape
        if rounds == 0:
            drawn = 0 if state is None else state.integers(STATES, size=transcripts)
            return np.zeros(transcripts, dtype=np.intp) + np.asarray(drawn, dtype=np.intp)
        # NaN marks a round without a question, and is above no cut.
        past = (rounds - 1) % ROUNDS
        return self._next[past, state, (answers[-1] > self._cuts[past]).astype(np.intp)]

    @cached_property
    def _cuts(self) -> Reals:
        """Around the mean of the statistics."""
        values = [
            query.statistic(database)
            for query in self.queries
            for database in (query.zero, query.one)
        ]
        return np.random.default_rng((self.seed, 0)).normal(float(np.mean(values)), 0.7, ROUNDS)

    @cached_property
    def _next(self) -> NDArray[np.intp]:
        """The state after a round, by the state before and whether the answer was above the cut."""
        return np.random.default_rng((self.seed, 1)).integers(STATES, size=(ROUNDS, STATES, 2))

    @cached_property
    def _tables(self) -> NDArray[np.intp]:
        """The index of the query of each round and state, or -1 to stop."""
        rng = np.random.default_rng((self.seed, 2))
        places = rng.integers(len(self.queries), size=(ROUNDS, STATES))
        return np.where(rng.random((ROUNDS, STATES)) < self.quits, STOPPED, places)


RandomAdversary = Wanderer


@dataclass(frozen=True)
class Greedy:
    """The adversary that asks the query which would tell most if it were the last one.

    After answers with a total loss of l it is the query whose own delta at epsilon - l is largest. The deltas are means
    over a few thousand draws, always the same; a greedy choice is not the best one.

    Args:
        queries: The queries that it may ask, at least one.
        epsilon: The epsilon at which it wants delta to be large, in nats.
        adjacency: The neighboring relation.
    """

    queries: Sequence[Query]
    _: KW_ONLY
    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", queries_of(self.queries))
        object.__setattr__(self, "epsilon", check.finite("epsilon", self.epsilon))
        check.member("adjacency", self.adjacency, Adjacency)

    def first(self, rng: np.random.Generator | None) -> _Losses:
        """No loss yet."""
        return None

    def choose(self, state: _Losses, answers: Reals) -> tuple[_Losses, Round]:
        transcripts = answers.shape[1]
        loss = np.zeros(transcripts) if state is None else self._updated(*state, answers[-1])
        left = np.nan_to_num(self.epsilon - loss, posinf=REACH, neginf=-REACH)
        places = np.rint((np.clip(left, -REACH, REACH) + REACH) / STEP).astype(np.intp)
        which = self._best[places]
        return (loss, which), Round(tuple(self.queries), which)

    def _updated(self, loss: Reals, which: NDArray[np.intp], last: Reals) -> Reals:
        found = loss.copy()
        for place, channel in enumerate(self._channels):
            asked = np.flatnonzero(which == place)
            if len(asked):
                part = found[asked]
                channel.add_loss(last[asked], part, np.empty(len(asked)))
                found[asked] = part
        return found

    @cached_property
    def _channels(self) -> tuple[Channel, ...]:
        return tuple(
            Rules((each.mechanism,), self.adjacency, Orientation.FREE).channel(each)
            for each in self.queries
        )

    @cached_property
    def _best(self) -> NDArray[np.intp]:
        """The best query at each epsilon of a grid."""
        grid = np.arange(-REACH, REACH + STEP / 2, STEP)
        rows: list[Reals] = []
        for channel in self._channels:
            drawn, loss = np.empty(DRAWS), np.zeros(DRAWS)
            channel.draw(np.random.default_rng(0), World.ZERO, drawn, np.empty(DRAWS))
            channel.add_loss(drawn, loss, np.empty(DRAWS))
            rows.append(
                np.array(
                    [float(np.mean(-np.expm1(np.minimum(point - loss, 0.0)))) for point in grid]
                )
            )
        return np.argmax(np.array(rows), axis=0)


@dataclass(frozen=True)
class ManyDatabases:
    """Bob in k databases whose curators do not talk to each other; each is asked once.

    Which curator is next depends on the last answer: the first of the remaining ones if it spoke for Bob, else the
    last. Example 3.7: in world 0 Bob is in every database, in world 1 in none, and the other people are the same.

    Args:
        queries: One question for each database, in the order of asking while every answer speaks for Bob; at least one.
    """

    queries: Sequence[Query]

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", queries_of(self.queries))

    def first(self, rng: np.random.Generator | None) -> _Range:
        """No curator has been asked."""
        return None

    def choose(self, state: _Range, answers: Reals) -> tuple[_Range, Round | None]:
        rounds, transcripts = answers.shape
        if rounds >= len(self.queries):
            return state, None
        if state is None:
            asked = np.zeros(transcripts, dtype=np.intp)
            return (asked + 1, asked + len(self.queries) - 1, asked), Round(
                tuple(self.queries), asked
            )
        # The databases from `low` to `high` have not been asked.
        low, high, asked = state
        zero, one = self._values
        for_bob = (answers[-1] > (zero + one)[asked] / 2) == (zero > one)[asked]
        asked = np.where(for_bob, low, high)
        return (low + for_bob, high - ~for_bob, asked), Round(tuple(self.queries), asked)

    @property
    def _values(self) -> tuple[Reals, Reals]:
        """The statistic of each database in either world."""
        zero = [query.statistic(query.zero) for query in self.queries]
        return np.array(zero), np.array([query.statistic(query.one) for query in self.queries])


@dataclass(frozen=True)
class NaturalFilterBreaker:
    """The counterexample to the natural filter, which stops when the exact composition so far would exceed the budget.

    Randomized response with epsilon 1; if it speaks for Bob, another with 0.6115, if not, a (0, 0.05) mechanism.

    Either way the two compose to (1.5, 0.05) exactly, so that a filter which stops before the composition of what was
    asked exceeds that budget lets both through. The whole has delta(1.5) = 0.0634470710684997560374.

    Reference: [TranKoskelaRaisaHonkela2026]
    """

    budget: ClassVar[ApproximateDP] = ApproximateDP(1.5, delta=0.05)
    opening: ClassVar[Query] = Query(RandomizedResponse(1.0), ("Bob",), (), Holds("Bob"))
    continuations: ClassVar[tuple[Query, Query]] = (
        Query(BlackBox(0.0, delta=0.05), ("Bob",), (), Holds("Bob")),
        Query(RandomizedResponse(0.611490968801848951918), ("Bob",), (), Holds("Bob")),
    )

    @property
    def queries(self) -> tuple[Query, ...]:
        """The opening question and both continuations."""
        return (self.opening, *self.continuations)

    def first(self, rng: np.random.Generator | None) -> None:
        """No state."""

    def choose(self, state: None, answers: Reals) -> tuple[None, Round | None]:
        if len(answers) == 0:
            return None, Round.of(self.opening)
        if len(answers) > 1:
            return None, None
        return None, Round(self.continuations, (answers[0] == 1.0).astype(np.intp))
