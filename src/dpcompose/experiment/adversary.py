"""Who plays: the adversary of Definition 3.7, on many transcripts at once."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np

from dpcompose.experiment.channel import Reals
from dpcompose.experiment.round import Round


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
