"""Noise that is added to a value, and its two members on the real line: Laplace and Gaussian."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np

from dpcompose.errors import DomainError
from dpcompose.experiment.channel import Between, Channel, Reals, channel_of
from dpcompose.experiment.world import World
from dpcompose.mechanism import Gaussian, Laplace
from dpcompose.numerics.bound import UNIT_ROUNDOFF

SLACK = 1e-12


@dataclass(frozen=True)
class NoiseChannel(Channel):
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
        """Where the answers are, seen from the middle of the two values; exact for integers."""
        np.subtract(answers, (self.zero + self.one) / 2, out=spare)


class LaplaceNoise(NoiseChannel):
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


class GaussianNoise(NoiseChannel):
    """Gaussian noise, on the line or on the integers: the loss is the same."""

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """(zero - one) (y - (zero + one) / 2) / size^2."""
        self._centered(answers, spare)
        spare *= (self.zero - self.one) / self.size**2
        losses += spare


class LaplaceChannel(LaplaceNoise):
    """Laplace noise."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        # The difference of two exponential variables.
        rng.standard_exponential(out=answers)
        rng.standard_exponential(out=spare)
        answers -= spare
        answers *= self.size

    @property
    def fuzz(self) -> float:
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) / self.size


class GaussianChannel(GaussianNoise):
    """Gaussian noise on the line."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        rng.standard_normal(out=answers)
        answers *= self.size

    @property
    def fuzz(self) -> float:
        slope = abs(self.zero - self.one) / self.size**2
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) * slope


def require_within(between: Between, most: float) -> None:
    """Raise DomainError unless the values are at most `most` apart, rounding aside."""
    apart = abs(between.zero - between.one)
    if not apart <= most * (1 + SLACK):
        name = "|statistic(zero) - statistic(one)|"
        raise DomainError(name, apart, f"at most the sensitivity {most!r} of the mechanism")


@channel_of.register
def _(mechanism: Laplace, between: Between) -> Channel:
    require_within(between, mechanism.sensitivity_under(between.adjacency))
    return LaplaceChannel(mechanism.scale, between.zero, between.one)


@channel_of.register
def _(mechanism: Gaussian, between: Between) -> Channel:
    require_within(between, mechanism.sensitivity_under(between.adjacency))
    return GaussianChannel(mechanism.sigma, between.zero, between.one)
