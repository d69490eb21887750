"""One round: questions, each a mechanism and two adjacent databases, the rules, and the channels of what may be asked."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from dataclasses import KW_ONLY, dataclass, field, replace
from fractions import Fraction
from functools import lru_cache
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.adaptive import Filter, Number, Spending
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.experiment.channel import Between, Channel, World, channel_of, reach_of
from dpcompose.guarantee import Priced
from dpcompose.mechanisms import BlackBox
from dpcompose.values import Adjacency, Orientation

Database = tuple[Hashable, ...]
"""Records, in no order; the null record of `Adjacency.ZERO_OUT` is None."""
Statistic = Callable[[Database], float]


def count(database: Database) -> float:
    """The number of records."""
    return float(len(_database("database", database)))


@dataclass(frozen=True)
class Holds:
    """`value` if the database holds the record, else 0: the statistic of randomized response.

    Args:
        record: The record to look for.
        value: The statistic of a database that holds it.
    """

    record: Hashable
    value: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "value", check.finite("value", self.value))

    def __call__(self, database: Database) -> float:
        return self.value if self.record in database else 0.0


@dataclass(frozen=True)
class Query:
    """The question of one round.

    Args:
        mechanism: One of the family.
        zero: The database of world 0.
        one: The database of world 1.
        statistic: The number that the mechanism answers about, noise aside.
    """

    mechanism: Composable
    zero: Database
    one: Database
    statistic: Statistic = count

    def __post_init__(self) -> None:
        object.__setattr__(self, "zero", _database("zero", self.zero))
        object.__setattr__(self, "one", _database("one", self.one))

    @property
    def exchanged(self) -> Query:
        """The same question with the databases exchanged."""
        return replace(self, zero=self.one, one=self.zero)


def _database(name: str, records: Any) -> Database:
    if isinstance(records, str) or not isinstance(records, Iterable):
        raise DomainError(name, records, "the records of a database, such as ('Bob',)")
    return tuple(cast("Iterable[Any]", records))


def queries_of(queries: Any) -> tuple[Query, ...]:
    """`queries` as the questions of an adversary: at least one Query."""
    return check.several("queries", queries, Query, "at least one Query")


def direction(zero: Database, one: Database, adjacency: Adjacency) -> int | None:
    """1 if the record is in `zero` alone, -1 if in `one` alone, 0 if neither is known; None if not adjacent."""
    left, right = Counter(zero), Counter(one)
    more, less = left - right, right - left
    many = (more.total(), less.total())
    if many == (0, 0):
        return 0
    if adjacency is Adjacency.ADD_REMOVE:
        return {(1, 0): 1, (0, 1): -1}.get(many)
    if many != (1, 1):
        return None
    if adjacency is Adjacency.REPLACE:
        return 0
    return 1 if None in less else -1 if None in more else None


# The question about Bob with the largest loss that a mechanism allows.


_OTHER: dict[Adjacency, Database] = {
    Adjacency.ADD_REMOVE: (),
    Adjacency.REPLACE: ("Eve",),
    Adjacency.ZERO_OUT: (None,),
}


def about_bob(mechanism: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Query:
    """The question whether Bob is in the database: he is in world 0, and the values differ by the whole sensitivity.

    >>> from dpcompose import Laplace
    >>> query = about_bob(Laplace(1.0, sensitivity=2.0))
    >>> query.statistic(query.zero), query.statistic(query.one)
    (2.0, 0.0)

    Args:
        mechanism: The mechanism that answers.
        adjacency: The neighboring relation.

    Raises:
        DomainError: If the one is no mechanism, or the other no Adjacency.
        UnsupportedError: If the mechanism has several coordinates.
    """
    check.kind("mechanism", mechanism, Composable, "a mechanism, such as Laplace(2.0)")
    other = _OTHER[check.member("adjacency", adjacency, Adjacency)]
    return Query(mechanism, ("Bob",), other, Holds("Bob", reach_of(mechanism, adjacency)))


# What some transcripts ask in a round, and whether they may.


Places = NDArray[np.intp]
STOPPED = -1
REFUSED, UNKNOWN = -1, -2
MOST_KNOWN = 4096
"""Questions whose check is remembered."""


@dataclass
class States:
    """Every state that some transcript has reached, each asked once for each mechanism.

    A transcript is the number of its state; all begin at 0. The filter decides on exact sums, and states with the
    same sums are one, so that a step of a million transcripts costs a few decisions and a look into a table.

    >>> import numpy as np
    >>> from dpcompose import BlackBox
    >>> from dpcompose.adaptive import Budget
    >>> from dpcompose.experiment import States
    >>> states, places = States(Budget(1.0)), np.zeros(4, dtype=int)
    >>> places = states.step(places, BlackBox(0.75))
    >>> states.step(places, BlackBox(0.5)).tolist(), [str(states.of(number).left["epsilon"]) for number in places]
    ([-1, -1, -1, -1], ['1/4', '1/4', '1/4', '1/4'])

    Args:
        filter: The filter.
        adjacency: The neighboring relation of all charges.
        delta: The delta at which a mechanism is charged; see `Filter.price`.
    """

    filter: Filter
    _: KW_ONLY
    adjacency: Adjacency = Adjacency.ADD_REMOVE
    delta: Number | None = None
    _states: list[Spending] = field(init=False)
    _numbers: dict[tuple[Fraction, ...], int] = field(init=False)
    _moves: dict[Priced, Places] = field(init=False, default_factory=dict[Priced, Places])

    def __post_init__(self) -> None:
        first = self.filter.start(adjacency=self.adjacency)
        self._states, self._numbers = [first], {tuple(first.spent.values()): 0}

    def of(self, number: int) -> Spending:
        """The state of a number."""
        return self._states[number]

    def step(self, places: Places, mechanism: Priced) -> Places:
        """Ask for one more mechanism in every transcript: the places after it, -1 where it is refused.

        Args:
            places: The places before, none refused; any shape.
            mechanism: See `Filter.price`.

        Raises:
            DomainError: If delta is outside its domain.
            UnsupportedError: If no finite price is proved.
        """
        moves = self._moves.get(mechanism, np.empty(0, dtype=np.intp))
        if len(moves) < len(self._states):
            more = np.full(2 * len(self._states) - len(moves), UNKNOWN)
            moves = self._moves[mechanism] = np.concatenate([moves, more])
        found = moves[places]
        new = np.unique(places[found == UNKNOWN])
        for number in new.tolist():
            moves[number] = self._after(number, mechanism)
        return moves[places] if len(new) else found

    def _after(self, number: int, mechanism: Priced) -> int:
        state, decision = self.filter.step(self._states[number], mechanism, delta=self.delta)
        if not decision.granted:
            return REFUSED
        found = self._numbers.setdefault(tuple(state.spent.values()), len(self._states))
        if found == len(self._states):
            self._states.append(state)
        return found


@dataclass(frozen=True)
class Round:
    """A round for many transcripts at once.

    Args:
        queries: The questions that are asked in some transcript.
        which: For each transcript, the place of its question in `queries`, or -1 if it asks nothing more in this round;
            None: all ask the first.
    """

    queries: tuple[Query, ...]
    which: NDArray[np.integer[Any]] | None = None

    @classmethod
    def of(cls, query: Query) -> Round:
        """The same question in every transcript."""
        return cls((query,))


@dataclass
class Rules:
    """The questions that an adversary may ask: the family of Definition 3.7, and which databases are adjacent.

    Each question is checked the first time that it is asked.

    Args:
        family: The mechanisms. A `BlackBox` stands for every mechanism that keeps its promise.
        adjacency: The neighboring relation.
        orientation: SAME: the record is never in the database of world 1 alone.
        states: The states of the filter of the game; None where none decides.
        error: The largest error of a loss among the questions asked so far.
    """

    family: tuple[Composable, ...]
    adjacency: Adjacency
    orientation: Orientation
    states: States | None = None
    error: float = 0.0
    _channels: dict[Query, Channel] = field(default_factory=dict[Query, Channel])

    def channel(self, query: Query) -> Channel:
        """The question as a channel: a pair of distributions.

        Raises:
            DomainError: If the mechanism is outside the family, the databases are not adjacent, the record changed its
                world, or the statistic is not a finite number or moves too far.
            UnsupportedError: If there is no sampler for the mechanism.
        """
        found = self._channels.get(query)
        if found is None:
            if len(self._channels) >= MOST_KNOWN:
                # An adversary may make up new questions in every block.
                self._channels.clear()
            found = self._channels[query] = self._checked(query)
            self.error = max(self.error, found.error)
        return found

    def _checked(self, query: Query) -> Channel:
        if not any(_is_member(query.mechanism, each) for each in self.family):
            raise DomainError("mechanism", query.mechanism, "a member of the family")
        pair, side = (query.zero, query.one), direction(query.zero, query.one, self.adjacency)
        if side is None:
            raise DomainError("databases", pair, f"a pair adjacent under {self.adjacency.value}")
        if side < 0 and self.orientation is Orientation.SAME:
            domain = "the record in world 0, as the orientation is the same"
            remedy = "Orientation.FREE lets the adversary place every pair anew"
            raise DomainError("databases", pair, domain, remedy)
        zero, one = (_value(query, database) for database in (query.zero, query.one))
        # When a record is replaced, each database holds one. The pair's record is in world 0 unless the pair may be
        # reversed.
        turned = side < 0 or (side == 0 and zero < one and self.orientation is Orientation.FREE)
        holder = World.ONE if turned else World.ZERO
        return channel_of(query.mechanism, Between(zero, one, holder, self.adjacency))


@lru_cache(maxsize=MOST_KNOWN)
def _is_member(mechanism: Composable, member: Composable) -> bool:
    """Whether it is the member, or keeps the promise of a black box: certified, at its epsilon or at its delta."""
    if not (isinstance(member, BlackBox) and isinstance(mechanism, Composable)):  # pyright: ignore[reportUnnecessaryIsInstance]
        return mechanism == member
    if mechanism == member:
        return True
    epsilon, delta, adjacency = member.stated.epsilon, member.stated.delta, member.holds_under
    return (
        mechanism.epsilon(delta=delta, adjacency=adjacency).upper <= epsilon
        or mechanism.delta(epsilon=epsilon, adjacency=adjacency).upper <= delta
    )


def _value(query: Query, database: tuple[Any, ...]) -> float:
    if not callable(query.statistic):
        raise DomainError(
            "statistic", query.statistic, "a function of a database, such as Holds('Bob')"
        )
    value = query.statistic(database)
    if isinstance(value, bool) or not isinstance(value, int | float | np.floating | np.integer):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("statistic", value, "a number")
    if not -math.inf < value < math.inf:
        raise DomainError("statistic", value, "a finite number")
    return float(value)


@dataclass(frozen=True)
class Groups:
    """A checked round.

    Args:
        channels: Each question's channel with the transcripts that ask it; None for all of them.
        places: The place of each transcript in the states of the filter, after the round.
        stopped: The transcripts that ask nothing, or are refused.
    """

    channels: tuple[tuple[Channel, NDArray[np.intp] | None], ...]
    places: Places
    stopped: NDArray[np.intp] | None = None


def checked(proposed: Any, places: Places, rules: Rules) -> Groups:
    """The groups of a round; a filter refuses some of them.

    Args:
        proposed: The adversary's round.
        places: The place of each transcript in the states of the filter.
        rules: The rules of the game.

    Raises:
        DomainError: If it is no round, or asks what it may not.
        UnsupportedError: If there is no sampler for a mechanism.
    """
    queries = queries_of(check.kind("round", proposed, Round, "a Round, or None to stop").queries)
    if proposed.which is None and rules.states is None:
        return Groups(((rules.channel(queries[0]), None),), places)
    transcripts = len(places)
    which = np.asarray(np.zeros_like(places) if proposed.which is None else proposed.which)
    if which.shape != (transcripts,) or which.dtype.kind not in "iu":
        shape = f"{which.dtype} of shape {which.shape}"
        raise DomainError(
            "which", shape, f"integers, one for each of the {transcripts} transcripts"
        )
    if transcripts and not (which.min() >= STOPPED and which.max() < len(queries)):
        ends = int(which.min()), int(which.max())
        raise DomainError("which", ends, f"places from -1 to {len(queries) - 1}")
    found: list[tuple[Channel, NDArray[np.intp] | None]] = []
    idle, after = [np.flatnonzero(which == STOPPED)], places.copy()
    for place, query in enumerate(queries):
        asking = np.flatnonzero(which == place)
        # A question that no transcript asks is not checked.
        if not len(asking):
            continue
        channel = rules.channel(query)
        if rules.states is not None:
            moved = rules.states.step(places[asking], query.mechanism)
            granted = moved != REFUSED
            idle.append(asking[~granted])
            asking = asking[granted]
            after[asking] = moved[granted]
        if len(asking):
            found.append((channel, None if len(asking) == transcripts else asking))
    stopped = np.concatenate(idle)
    return Groups(tuple(found), after, stopped if len(stopped) else None)


def reason_of(error: Exception) -> str:
    """The reason of a refused round: the text of our errors; any other error is the adversary's own."""
    return (
        str(error)
        if isinstance(error, DPComposeError)
        else f"the adversary raised {type(error).__name__}: {error}"
    )
