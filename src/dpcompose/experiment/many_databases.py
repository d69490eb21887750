"""Bob in k databases whose curators do not talk to each other, and an adversary who chooses which to ask next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcompose.experiment.channel import Reals
from dpcompose.experiment.query import Query, queries_of
from dpcompose.experiment.round import Round

State = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]] | None


@dataclass(frozen=True)
class ManyDatabases:
    """Asks each curator once. Who is next depends on the last answer: the first of the rest if it spoke for Bob.

    Example 3.7: in world 0 Bob is in every database, in world 1 in none, and the other people are the same.

    Args:
        queries: One question for each database, in the order of asking while every answer speaks for Bob; at least one.
    """

    queries: Sequence[Query]

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", queries_of(self.queries))

    def first(self, rng: np.random.Generator | None) -> State:
        """Nobody was asked."""
        return None

    def choose(self, state: State, answers: Reals) -> tuple[State, Round | None]:
        rounds, transcripts = answers.shape
        if rounds >= len(self.queries):
            return state, None
        if state is None:
            asked = np.zeros(transcripts, dtype=np.intp)
            return (asked + 1, asked + len(self.queries) - 1, asked), Round(tuple(self.queries), asked)
        # Those from `low` to `high` are left.
        low, high, asked = state
        zero, one = self._values
        told = (answers[-1] > (zero + one)[asked] / 2) == (zero > one)[asked]
        asked = np.where(told, low, high)
        return (low + told, high - ~told, asked), Round(tuple(self.queries), asked)

    @property
    def _values(self) -> tuple[Reals, Reals]:
        """What each database answers in either world, noise aside."""
        zero = [query.statistic(query.zero) for query in self.queries]
        return np.array(zero), np.array([query.statistic(query.one) for query in self.queries])
