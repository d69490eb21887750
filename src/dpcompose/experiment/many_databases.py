"""Bob in k databases whose curators do not talk to each other, and an adversary who chooses which to ask next."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.experiment.channel import Reals
from dpcompose.experiment.query import Database, Query, Statistic, count
from dpcompose.experiment.round import Round

State = tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp]] | None


@dataclass(frozen=True)
class ManyDatabases:
    """Asks each curator once. Who is next depends on the last answer: the first of the rest if it spoke for Bob.

    In world 0 Bob is in every database, in world 1 in none; the other people are the same.

    Args:
        databases: The other people in each database, with the mechanism that its curator runs.
        bob: His record.
        statistic: What is asked of every database.
    """

    databases: Sequence[tuple[Composable, Database]]
    bob: Hashable = "Bob"
    statistic: Statistic = count

    def __post_init__(self) -> None:
        found = tuple((mechanism, tuple(others)) for mechanism, others in self.databases)
        if not found:
            raise DomainError("databases", found, "at least one")
        object.__setattr__(self, "databases", found)

    @property
    def queries(self) -> tuple[Query, ...]:
        """One for each database."""
        return tuple(
            Query(mechanism, (self.bob, *others), others, self.statistic) for mechanism, others in self.databases
        )

    def first(self, rng: np.random.Generator | None) -> State:
        """Nobody was asked."""
        return None

    def choose(self, state: State, answers: Reals) -> tuple[State, Round | None]:
        rounds, transcripts = answers.shape
        if rounds >= len(self.databases):
            return state, None
        if state is None:
            asked = np.zeros(transcripts, dtype=np.intp)
            return (asked + 1, asked + len(self.databases) - 1, asked), Round(self.queries, asked)
        low, high, asked = state
        told = answers[-1] > self._middles[asked]
        asked = np.where(told, low, high)
        return (low + told, high - ~told, asked), Round(self.queries, asked)

    @property
    def _middles(self) -> Reals:
        """Halfway between what each database answers with and without Bob, noise aside."""
        return np.array([(query.statistic(query.zero) + query.statistic(query.one)) / 2 for query in self.queries])
