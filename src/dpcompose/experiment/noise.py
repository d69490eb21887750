"""Laplace and Gaussian noise, drawn."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpcompose.errors import DomainError
from dpcompose.experiment.channel import Between, Channel, Reals, channel_of
from dpcompose.experiment.world import World
from dpcompose.mechanism import Gaussian, Laplace
from dpcompose.mechanism.base import sensitivities
from dpcompose.numerics.bound import UNIT_ROUNDOFF

SLACK = 1e-12


@dataclass(frozen=True)
class LaplaceChannel(Channel):
    """The value plus Laplace noise.

    Args:
        scale: The scale of the noise.
        zero: The value in world 0.
        one: The value in world 1.
    """

    scale: float
    zero: float
    one: float

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        # The difference of two exponential variables.
        rng.standard_exponential(out=answers)
        rng.standard_exponential(out=spare)
        answers -= spare
        answers *= self.scale
        answers += self.zero if world is World.ZERO else self.one

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """(|y - one| - |y - zero|) / scale, which is linear between the two values and constant outside."""
        low, high = sorted((self.zero, self.one))
        most = (high - low) / self.scale
        np.multiply(answers, 2 / self.scale, out=spare)
        spare -= (low + high) / self.scale
        np.minimum(spare, most, out=spare)
        np.maximum(spare, -most, out=spare)
        if self.zero >= self.one:
            losses += spare
        else:
            losses -= spare

    @property
    def fuzz(self) -> float:
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) / self.scale


@dataclass(frozen=True)
class GaussianChannel(Channel):
    """The value plus Gaussian noise.

    Args:
        sigma: The standard deviation of the noise.
        zero: The value in world 0.
        one: The value in world 1.
    """

    sigma: float
    zero: float
    one: float

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        rng.standard_normal(out=answers)
        answers *= self.sigma
        answers += self.zero if world is World.ZERO else self.one

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """(zero - one) (y - (zero + one) / 2) / sigma^2."""
        np.subtract(answers, (self.zero + self.one) / 2, out=spare)
        spare *= (self.zero - self.one) / self.sigma**2
        losses += spare

    @property
    def fuzz(self) -> float:
        slope = abs(self.zero - self.one) / self.sigma**2
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) * slope


def require_within(between: Between, most: float) -> None:
    """Raise DomainError unless the values are at most `most` apart, rounding aside."""
    apart = abs(between.zero - between.one)
    if not apart <= most * (1 + SLACK):
        name = "|statistic(zero) - statistic(one)|"
        raise DomainError(name, apart, f"at most the sensitivity {most!r} of the mechanism")


@channel_of.register
def _(mechanism: Laplace, between: Between) -> Channel:
    most = sensitivities(mechanism.sensitivity, mechanism.replace_sensitivity, between.adjacency)
    require_within(between, most)
    return LaplaceChannel(mechanism.scale, between.zero, between.one)


@channel_of.register
def _(mechanism: Gaussian, between: Between) -> Channel:
    most = sensitivities(mechanism.sensitivity, mechanism.replace_sensitivity, between.adjacency)
    require_within(between, most)
    return GaussianChannel(mechanism.sigma, between.zero, between.one)
