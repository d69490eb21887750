"""Noise that is added to a value: Laplace and Gaussian, on the real line and on the integers."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.experiment.channel import Between, Channel, Reals, World, channel_of
from dpcompose.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpcompose.values import UNIT_ROUNDOFF, Adjacency

DISTANCE_ERROR = 1e-12
"""The relative error granted to the distance of two statistics."""
LARGEST_TABLE = 1 << 16


@dataclass(frozen=True)
class AddedNoise(Channel):
    """The value plus noise.

    Args:
        size: The parameter of the noise: a scale or a sigma.
        zero: The value in world 0.
        one: The value in world 1.
    """

    size: float
    zero: float
    one: float

    @abstractmethod
    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        """Fill `answers` with noise; `spare` may be overwritten."""

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        self.noise(rng, answers, spare)
        answers += self.zero if world is World.ZERO else self.one

    def _centered(self, answers: Reals, spare: Reals) -> None:
        """Fill `spare` with the distance of the answers from the middle of the two values; exact for integers."""
        np.subtract(answers, (self.zero + self.one) / 2, out=spare)


class AddedLaplace(AddedNoise):
    """Two-sided exponential noise, on the line or on the integers: the loss is the same."""

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """(|y - one| - |y - zero|) / size, which is linear between the two values and constant outside."""
        self._centered(answers, spare)
        apart = self.zero - self.one
        spare *= np.copysign(2 / self.size, apart)
        most = abs(apart) / self.size
        np.minimum(spare, most, out=spare)
        np.maximum(spare, -most, out=spare)
        losses += spare


class AddedGaussian(AddedNoise):
    """Gaussian noise, on the line or on the integers: the loss is the same."""

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """(zero - one) (y - (zero + one) / 2) / size^2."""
        self._centered(answers, spare)
        spare *= (self.zero - self.one) / self.size**2
        losses += spare


class LaplaceChannel(AddedLaplace):
    """Laplace noise on the line."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        # The difference of two exponential variables.
        rng.standard_exponential(out=answers)
        rng.standard_exponential(out=spare)
        answers -= spare
        answers *= self.size

    @property
    def error(self) -> float:
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) / self.size


class GaussianChannel(AddedGaussian):
    """Gaussian noise on the line."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        rng.standard_normal(out=answers)
        answers *= self.size

    @property
    def error(self) -> float:
        slope = abs(self.zero - self.one) / self.size**2
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) * slope


class DiscreteLaplaceChannel(AddedLaplace):
    """Laplace noise on the integers: the difference of two geometric variables."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        # The integer part of an exponential variable is geometric.
        for drawn in (answers, spare):
            rng.standard_exponential(out=drawn)
            np.multiply(drawn, self.size, out=drawn)
            np.floor(drawn, out=drawn)
        answers -= spare


class DiscreteGaussianChannel(AddedGaussian):
    """Gaussian noise on the integers, drawn from a table that omits a mass of less than 1e-300."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        rng.random(out=spare)
        np.take(self._table[0], np.searchsorted(self._table[1], spare, side="right"), out=answers)

    @cached_property
    def _table(self) -> tuple[Reals, Reals]:
        reach = math.ceil(38 * self.size) + 1
        values = np.arange(-reach, reach + 1, dtype=np.float64)
        mass = np.exp(-np.square(values / self.size) / 2)
        return values, np.cumsum(mass / np.sum(mass))[:-1]


def _require_within(between: Between, most: float) -> None:
    """Raise DomainError unless the values are at most `most` apart, rounding aside."""
    apart = abs(between.zero - between.one)
    if not apart <= most * (1 + DISTANCE_ERROR):
        name = "|statistic(zero) - statistic(one)|"
        raise DomainError(name, apart, f"at most the sensitivity {most!r} of the mechanism")


@channel_of.register
def _(mechanism: Laplace, between: Between) -> Channel:
    _require_within(between, mechanism.sensitivity_under(between.adjacency))
    return LaplaceChannel(mechanism.scale, between.zero, between.one)


@channel_of.register
def _(mechanism: Gaussian, between: Between) -> Channel:
    _require_within(between, mechanism.sensitivity_under(between.adjacency))
    return GaussianChannel(mechanism.sigma, between.zero, between.one)


def _require_integers(mechanism: DiscreteLaplace | DiscreteGaussian, between: Between) -> None:
    change = mechanism.replace if between.adjacency is Adjacency.REPLACE else mechanism.shift
    if isinstance(mechanism.shift, tuple) or isinstance(change, tuple):
        raise UnsupportedError(repr(mechanism), "the experiment draws one coordinate")
    _require_within(between, abs(2 * mechanism.shift if change is None else change))
    for value in (between.zero, between.one):
        if not (value == math.floor(value) and abs(value) < 2**50):
            raise DomainError("statistic", value, "an integer")


@channel_of.register
def _(mechanism: DiscreteLaplace, between: Between) -> Channel:
    _require_integers(mechanism, between)
    return DiscreteLaplaceChannel(mechanism.scale, between.zero, between.one)


@channel_of.register
def _(mechanism: DiscreteGaussian, between: Between) -> Channel:
    _require_integers(mechanism, between)
    if not 76 * mechanism.sigma < LARGEST_TABLE:
        raise UnsupportedError(
            repr(mechanism), f"the experiment draws from a table of at most {LARGEST_TABLE} values"
        )
    return DiscreteGaussianChannel(mechanism.sigma, between.zero, between.one)
