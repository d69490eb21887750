"""Integer noise, drawn."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.experiment.channel import Between, Channel, Reals, channel_of
from dpcompose.experiment.noise import require_within
from dpcompose.experiment.world import World
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.mechanism import DiscreteGaussian, DiscreteLaplace

WIDEST = 1 << 16


@dataclass(frozen=True)
class DiscreteLaplaceChannel(Channel):
    """An integer plus the difference of two geometric variables.

    Args:
        scale: The scale of the noise.
        zero: The value in world 0.
        one: The value in world 1.
    """

    scale: float
    zero: float
    one: float

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        # The integer part of an exponential variable is geometric.
        rng.standard_exponential(out=answers)
        rng.standard_exponential(out=spare)
        for drawn in (answers, spare):
            np.multiply(drawn, self.scale, out=drawn)
            np.floor(drawn, out=drawn)
        answers -= spare
        answers += self.zero if world is World.ZERO else self.one

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        for value, sign in ((self.one, 1.0), (self.zero, -1.0)):
            np.subtract(answers, value, out=spare)
            np.abs(spare, out=spare)
            spare *= sign / self.scale
            losses += spare


@dataclass(frozen=True)
class DiscreteGaussianChannel(Channel):
    """An integer plus noise drawn from a table, which ends where less than 1e-300 is left.

    Args:
        sigma: The parameter of the noise.
        zero: The value in world 0.
        one: The value in world 1.
    """

    sigma: float
    zero: float
    one: float

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        rng.random(out=spare)
        np.take(self._table[0], np.searchsorted(self._table[1], spare, side="right"), out=answers)
        answers += self.zero if world is World.ZERO else self.one

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        np.subtract(answers, (self.zero + self.one) / 2, out=spare)
        spare *= (self.zero - self.one) / self.sigma**2
        losses += spare

    @cached_property
    def _table(self) -> tuple[Reals, Reals]:
        reach = math.ceil(38 * self.sigma) + 1
        values = np.arange(-reach, reach + 1, dtype=np.float64)
        mass = np.exp(-np.square(values / self.sigma) / 2)
        return values, np.cumsum(mass / np.sum(mass))[:-1]


def _checked(mechanism: DiscreteLaplace | DiscreteGaussian, between: Between) -> None:
    if isinstance(mechanism.shift, tuple):
        raise UnsupportedError(repr(mechanism), "the experiment draws one coordinate")
    most = mechanism.shift if between.adjacency is not Adjacency.REPLACE else mechanism.replace
    if isinstance(most, tuple):
        raise UnsupportedError(repr(mechanism), "the experiment draws one coordinate")
    require_within(between, abs(2 * mechanism.shift if most is None else most))
    for value in (between.zero, between.one):
        if not (value == math.floor(value) and abs(value) < 2**50):
            raise DomainError("statistic", value, "an integer")


@channel_of.register
def _(mechanism: DiscreteLaplace, between: Between) -> Channel:
    _checked(mechanism, between)
    return DiscreteLaplaceChannel(mechanism.scale, between.zero, between.one)


@channel_of.register
def _(mechanism: DiscreteGaussian, between: Between) -> Channel:
    _checked(mechanism, between)
    if not 76 * mechanism.sigma < WIDEST:
        raise UnsupportedError(repr(mechanism), f"the experiment draws from a table of at most {WIDEST} values")
    return DiscreteGaussianChannel(mechanism.sigma, between.zero, between.one)
