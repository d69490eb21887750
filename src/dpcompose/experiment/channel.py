"""A mechanism between two databases: what it answers in either world, and what an answer gives away."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpcompose.composition import Composable
from dpcompose.errors import UnsupportedError
from dpcompose.experiment.world import World
from dpcompose.guarantee.adjacency import Adjacency

Reals = NDArray[np.float64]


@dataclass(frozen=True)
class Outcome:
    """One of finitely many answers.

    Args:
        answer: What the adversary sees.
        zero: Its probability in world 0, to `DIGITS` digits.
        one: Its probability in world 1.
    """

    answer: float
    zero: Decimal
    one: Decimal


class Channel(ABC):
    """Both answers' distributions; arrays are of shape (transcripts,), and are written in place."""

    @abstractmethod
    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        """Fill `answers` with what the mechanism says in that world; `spare` may be overwritten."""

    @abstractmethod
    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """Add ln p_0(answer) / p_1(answer) to `losses`."""

    @property
    def fuzz(self) -> float:
        """By how much the loss of an answer may be off, in nats, because answers far from 0 are rounded."""
        return 0.0

    def outcomes(self) -> tuple[Outcome, ...] | None:
        """All answers with their probabilities, if they are finitely many."""
        return None


@dataclass(frozen=True)
class Between:
    """Two adjacent databases, as far as a mechanism sees them.

    Args:
        zero: The value of the statistic in world 0.
        one: Its value in world 1.
        holder: The world whose database holds the record, where one of them does.
        adjacency: What makes them adjacent.
    """

    zero: float
    one: float
    holder: World
    adjacency: Adjacency


@singledispatch
def channel_of(mechanism: Composable, between: Between) -> Channel:
    """The mechanism's answers about two databases.

    A mechanism has its line in the file of its noise.

    Raises:
        UnsupportedError: If there is no sampler for the mechanism.
        DomainError: If the two values are farther apart than the mechanism's sensitivity, or it does not take them.
    """
    raise UnsupportedError(
        repr(mechanism), "the experiment cannot draw its answers", "BlackBox(epsilon, delta=...) plays the worst case"
    )
