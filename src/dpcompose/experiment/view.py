"""The views of many transcripts: answers and coins, from which the questions follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcompose import check
from dpcompose.errors import DomainError, RefusedRoundError
from dpcompose.experiment.adversaries import Adversary
from dpcompose.experiment.channel import Reals, World
from dpcompose.experiment.position import opened
from dpcompose.experiment.query import Query
from dpcompose.experiment.round import STOPPED, reason_of
from dpcompose.experiment.tally import Tally

Seed = tuple[int, ...]


def coins_of(seed: Seed) -> np.random.Generator:
    """The coins, or the noise, that a seed stands for."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))


@dataclass(frozen=True)
class Questions:
    """The questions of many transcripts.

    >>> from dpcompose import Laplace
    >>> from dpcompose.experiment import Experiment, Query, Repeater, World
    >>> adversary = Repeater(Query(Laplace(1.0), ("Bob",), ()))
    >>> game = Experiment(adversary, family=[Laplace(1.0)], rounds=2)
    >>> views = game.play(World.ONE, transcripts=3, rng=np.random.default_rng(1))
    >>> [query.mechanism for query in views.questions(adversary).of(0)]
    [Laplace(1.0), Laplace(1.0)]

    Args:
        queries: Every query that some transcript asked.
        which: Shape (rounds, transcripts): the place of a question in `queries`; -1 where nothing was asked.
    """

    queries: tuple[Query, ...]
    which: NDArray[np.intp]

    def of(self, transcript: int) -> tuple[Query | None, ...]:
        """The questions of one transcript, round after round; None where it asked nothing.

        Args:
            transcript: Its place, from zero.

        Raises:
            DomainError: If there is no such transcript.
        """
        played, place = self.which.shape[1], check.integer("transcript", transcript)
        if not 0 <= place < played:
            raise DomainError("transcript", transcript, f"an integer from 0 to {played - 1}")
        places: list[int] = self.which[:, place].tolist()
        return tuple(None if place == STOPPED else self.queries[place] for place in places)


@dataclass(frozen=True)
class Views:
    """The views of many independent transcripts.

    Args:
        world: The world in which they were played.
        answers: Shape (rounds, transcripts): y_1, ..., y_k; NaN where nothing was asked.
        loss: ln V^0(view) / V^1(view), shape (transcripts,): the adversary's coins are the same in both worlds.
        coins: The seeds of the adversary's coins, each by the first transcript that it serves.
    """

    world: World
    answers: Reals
    loss: Reals
    coins: Mapping[int, Seed] = field(default_factory=dict[int, Seed])

    @property
    def tally(self) -> Tally:
        """The losses in the direction of this world, counted."""
        return Tally.of(self.loss if self.world is World.ZERO else -self.loss)

    def questions(self, adversary: Adversary) -> Questions:
        """The questions of the adversary: they follow from its coins and the answers alone, as the definition says.

        The adversary is started with the same coins and shown the same answers; no database is looked at.

        Args:
            adversary: The one that played.

        Raises:
            DomainError: If these views have no coins, as `play` keeps them, or it is no adversary.
            RefusedRoundError: If it fails, as another one may.
        """
        if not self.coins:
            raise DomainError("coins", self.coins, "the seeds that `play` keeps")
        if not isinstance(adversary, Adversary):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise DomainError("adversary", adversary, "an adversary, with `first` and `choose`")
        places, which = dict[Query, int](), np.full(self.answers.shape, STOPPED)
        ends = [*list(self.coins)[1:], len(self.loss)]
        for (start, seed), end in zip(self.coins.items(), ends, strict=True):
            state, answers, asked = (
                opened(adversary, coins_of(seed)),
                self.answers[:, start:end],
                which[:, start:end],
            )
            for number in range(len(answers)):
                sealed = answers[:number].view()
                sealed.flags.writeable = False
                try:
                    state, chosen = adversary.choose(state, sealed)
                except Exception as error:
                    raise RefusedRoundError(number + 1, reason_of(error)) from error
                if chosen is None:
                    break
                known = np.array(
                    [STOPPED, *(places.setdefault(query, len(places)) for query in chosen.queries)]
                )
                asked[number] = known[1 if chosen.which is None else chosen.which + 1]
        return Questions(tuple(places), which)
