"""The random adversary: an adaptive strategy drawn from a seed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.errors import DomainError
from dpcompose.experiment.channel import Reals
from dpcompose.experiment.query import Query, queries_of
from dpcompose.experiment.round import STOPPED, Round
from dpcompose.numerics import check

MEMORY, ROUNDS = 8, 256
"""States that it can tell apart, and rounds after which its tables repeat."""


@dataclass(frozen=True)
class Wanderer:
    """Keeps one of eight moods, changed by whether an answer is above a random cut; each round and mood has its query.

    Cuts and tables are drawn once, from the seed: the strategy is one strategy, and can be solved exactly.

    Args:
        queries: What it may ask, at least one.
        seed: An integer >= 0.
        quits: The probability with which a round and mood is the end of it, in [0, 1).
        coins: Whether its first mood is drawn anew in every game.
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
        mood = self._mood(state, answers)
        return mood, Round(tuple(self.queries), self._tables[len(answers) % ROUNDS][mood])

    def _mood(self, state: Any, answers: Reals) -> NDArray[np.intp]:
        rounds, transcripts = answers.shape
        if rounds == 0:
            mood = np.zeros(transcripts, dtype=np.intp)
            return mood if state is None else mood + np.asarray(state.integers(MEMORY, size=transcripts), dtype=np.intp)
        # NaN, where nothing was asked, is above no cut.
        past = (rounds - 1) % ROUNDS
        return self._next[past, state, (answers[-1] > self._cuts[past]).astype(np.intp)]

    @cached_property
    def _cuts(self) -> Reals:
        """Around the middle of what the statistics say."""
        values = [query.statistic(database) for query in self.queries for database in (query.zero, query.one)]
        return np.random.default_rng((self.seed, 0)).normal(float(np.mean(values)), 0.7, ROUNDS)

    @cached_property
    def _next(self) -> NDArray[np.intp]:
        """The mood after a round, an old mood and a bit."""
        return np.random.default_rng((self.seed, 1)).integers(MEMORY, size=(ROUNDS, MEMORY, 2))

    @cached_property
    def _tables(self) -> NDArray[np.intp]:
        """The place of the query of each round and mood, or -1."""
        rng = np.random.default_rng((self.seed, 2))
        places = rng.integers(len(self.queries), size=(ROUNDS, MEMORY))
        return np.where(rng.random((ROUNDS, MEMORY)) < self.quits, STOPPED, places)
