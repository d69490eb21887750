"""The position of a game, and one round of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpcompose.adaptive import Places
from dpcompose.errors import RefusedRoundError
from dpcompose.experiment.adversaries import Adversary
from dpcompose.experiment.channel import Reals, World
from dpcompose.experiment.round import Channels, Groups, checked, reason_of


@dataclass(frozen=True)
class Position:
    """The position after some rounds, in one world.

    Args:
        state: The state of the adversary.
        answers: The answers, shape (rounds so far, transcripts); NaN where a transcript asked nothing.
        loss: ln p_0 / p_1 of every transcript's answers.
        places: The place of every transcript in the states of the game's filter; zeros where it has none.
        ended: Whether the adversary asks nothing more, in any transcript.
    """

    state: Any
    answers: Reals
    loss: Reals
    places: Places
    ended: bool = False


@dataclass(frozen=True)
class Refusal:
    """A round that was not asked; the position is as before.

    Args:
        number: The number of the round, from 1.
        reason: Why it is refused.
    """

    number: int
    reason: str


def opened(adversary: Adversary, rng: np.random.Generator | None) -> Any:
    """The adversary's first state.

    Raises:
        RefusedRoundError: If it fails.
    """
    try:
        return adversary.first(rng)
    except Exception as error:
        without = " (it was given no coins)" if rng is None else ""
        raise RefusedRoundError(1, f"{reason_of(error)}{without}") from error


def proposed(
    adversary: Adversary, state: Any, answers: Reals, places: Places, channels: Channels
) -> tuple[Any, Groups | None]:
    """The next state, and the next round of the adversary, checked; None if it stops.

    Raises:
        RefusedRoundError: If it may not, or fails.
    """
    sealed = answers.view()  # the adversary cannot write to it
    sealed.flags.writeable = False
    try:
        state, chosen = adversary.choose(state, sealed)
        return state, None if chosen is None else checked(chosen, places, channels)
    except Exception as error:
        raise RefusedRoundError(len(answers) + 1, reason_of(error)) from error


def answer(
    groups: Groups,
    world: World,
    rng: np.random.Generator,
    answers: Reals,
    loss: Reals,
    spare: Reals,
) -> None:
    """Draw a round's answers into `answers` and add their losses to `loss`; all of shape (transcripts,)."""
    for channel, asking in groups.channels:
        if asking is None:
            channel.draw(rng, world, answers, spare)
            channel.add_loss(answers, loss, spare)
            continue
        count = len(asking)
        drawn, part, room = np.empty(count), loss[asking], spare[:count]
        channel.draw(rng, world, drawn, room)
        channel.add_loss(drawn, part, room)
        answers[asking], loss[asking] = drawn, part
    if groups.stopped is not None:
        answers[groups.stopped] = np.nan
