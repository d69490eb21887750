"""What the adversary has seen at the end, in one world."""

from __future__ import annotations

from dataclasses import dataclass

from dpcompose.experiment.channel import Reals
from dpcompose.experiment.tally import Tally
from dpcompose.experiment.world import World


@dataclass(frozen=True)
class Views:
    """The views of many independent transcripts.

    Args:
        world: Where they were played.
        answers: Shape (rounds, transcripts): y_1, ..., y_k; NaN where nothing was asked.
        loss: ln V^0(view) / V^1(view), shape (transcripts,): the adversary's coins are the same in both worlds.
    """

    world: World
    answers: Reals
    loss: Reals

    @property
    def tally(self) -> Tally:
        """The losses in the direction of this world, counted."""
        return Tally.of(self.loss if self.world is World.ZERO else -self.loss)
