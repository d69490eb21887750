"""A mechanism between two databases: the distributions of its answer in both worlds, and the loss of an answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from dpcompose.composition import Composable
from dpcompose.errors import UnsupportedError
from dpcompose.values import Adjacency

Reals = NDArray[np.float64]


class World(Enum):
    """A world of the experiment: which database of every pair is answered about."""

    ZERO = 0
    """The first: the real world, where Bob allows his data to be used, if the first databases hold it."""
    ONE = 1
    """The second: the ideal world, where no answer depends on Bob's data."""


@dataclass(frozen=True)
class Outcome:
    """One of finitely many answers.

    Args:
        answer: The number that the adversary sees.
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
        """Fill `answers` with answers of the mechanism in that world; `spare` may be overwritten."""

    @abstractmethod
    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """Add ln p_0(answer) / p_1(answer) to `losses`."""

    @property
    def error(self) -> float:
        """A bound on the error of an answer's loss, in nats: answers far from 0 are rounded."""
        return 0.0

    def outcomes(self) -> tuple[Outcome, ...] | None:
        """All answers with their probabilities, if they are finitely many."""
        return None


@dataclass(frozen=True)
class Between:
    """Two adjacent databases, as a mechanism sees them.

    Args:
        zero: The value of the statistic in world 0.
        one: Its value in world 1.
        holder: The world whose database holds the record, where one of them does.
        adjacency: The relation under which they are adjacent.
    """

    zero: float
    one: float
    holder: World
    adjacency: Adjacency


@singledispatch
def channel_of(mechanism: Composable, between: Between) -> Channel:
    """The mechanism's answers about two databases.

    The file of each kind of noise registers its mechanisms here.

    Raises:
        UnsupportedError: If there is no sampler for the mechanism.
        DomainError: If the two values are farther apart than the mechanism's sensitivity, or it does not take them.
    """
    raise UnsupportedError(
        repr(mechanism),
        "the experiment cannot draw its answers",
        "BlackBox(epsilon, delta=...) plays the worst case",
    )
