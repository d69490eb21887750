"""The adversary who asks one thing again and again: one database, queried k times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcompose.experiment.channel import Reals
from dpcompose.experiment.query import Query, queries_of
from dpcompose.experiment.round import Round


@dataclass(frozen=True, init=False)
class Repeater:
    """Asks the same query in every round, or goes through several in turn.

    The mean of its answers converges to the true value, as section 3.5 says: no fixed amount of noise hides it forever.

    Args:
        queries: What is asked in round 1, 2, ..., and then from the beginning again; at least one.
    """

    queries: tuple[Query, ...]

    def __init__(self, *queries: Query) -> None:
        object.__setattr__(self, "queries", queries_of(queries))

    def first(self, rng: np.random.Generator | None) -> None:
        """It keeps nothing."""

    def choose(self, state: None, answers: Reals) -> tuple[None, Round]:
        return None, Round.of(self.queries[len(answers) % len(self.queries)])
