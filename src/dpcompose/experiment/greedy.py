"""The adversary who asks next whatever would tell most if it were the last question."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcompose.experiment.channel import Channel, Reals
from dpcompose.experiment.query import Query, queries_of
from dpcompose.experiment.round import Round, Rules
from dpcompose.experiment.world import World
from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.numerics import check

State = tuple[Reals, NDArray[np.intp]] | None
DRAWS, STEP, REACH = 4096, 1 / 32, 20.0


@dataclass(frozen=True)
class Greedy:
    """After answers that lost l it asks the query whose own delta at epsilon - l is largest: it switches as it learns.

    The deltas are means over a few thousand draws, always the same; a greedy choice is not the best one.

    Args:
        queries: What it may ask, at least one.
        epsilon: Where it wants delta to be large, in nats.
        adjacency: What one person's data may change.
    """

    queries: Sequence[Query]
    _: KW_ONLY
    epsilon: float
    adjacency: Adjacency = Adjacency.ADD_REMOVE

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", queries_of(self.queries))
        object.__setattr__(self, "epsilon", check.finite("epsilon", self.epsilon))
        check.member("adjacency", self.adjacency, Adjacency)

    def first(self, rng: np.random.Generator | None) -> State:
        """Nothing is lost yet."""
        return None

    def choose(self, state: State, answers: Reals) -> tuple[State, Round]:
        transcripts = answers.shape[1]
        loss = np.zeros(transcripts) if state is None else self._lost(*state, answers[-1])
        left = np.nan_to_num(self.epsilon - loss, posinf=REACH, neginf=-REACH)
        places = np.rint((np.clip(left, -REACH, REACH) + REACH) / STEP).astype(np.intp)
        which = self._best[places]
        return (loss, which), Round(tuple(self.queries), which)

    def _lost(self, loss: Reals, which: NDArray[np.intp], last: Reals) -> Reals:
        found = loss.copy()
        for place, channel in enumerate(self._channels):
            asked = np.flatnonzero(which == place)
            if len(asked):
                lost = found[asked]
                channel.add_loss(last[asked], lost, np.empty(len(asked)))
                found[asked] = lost
        return found

    @cached_property
    def _channels(self) -> tuple[Channel, ...]:
        return tuple(
            Rules((query.mechanism,), self.adjacency, Orientation.FREE).channel(query) for query in self.queries
        )

    @cached_property
    def _best(self) -> NDArray[np.intp]:
        """The best query at each epsilon of a grid."""
        grid = np.arange(-REACH, REACH + STEP / 2, STEP)
        rows: list[Reals] = []
        for channel in self._channels:
            drawn, lost = np.empty(DRAWS), np.zeros(DRAWS)
            channel.draw(np.random.default_rng(0), World.ZERO, drawn, np.empty(DRAWS))
            channel.add_loss(drawn, lost, np.empty(DRAWS))
            rows.append(np.array([float(np.mean(-np.expm1(np.minimum(point - lost, 0.0)))) for point in grid]))
        return np.argmax(np.array(rows), axis=0)
