"""Noise on the integers, drawn."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.experiment.channel import Between, Channel, Reals, channel_of
from dpcompose.experiment.noise import GaussianNoise, LaplaceNoise, require_within
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.mechanism import DiscreteGaussian, DiscreteLaplace

WIDEST = 1 << 16


class DiscreteLaplaceChannel(LaplaceNoise):
    """The difference of two geometric variables."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        # The integer part of an exponential variable is geometric.
        for drawn in (answers, spare):
            rng.standard_exponential(out=drawn)
            np.multiply(drawn, self.size, out=drawn)
            np.floor(drawn, out=drawn)
        answers -= spare


class DiscreteGaussianChannel(GaussianNoise):
    """Drawn from a table, which ends where less than 1e-300 is left."""

    def noise(self, rng: np.random.Generator, answers: Reals, spare: Reals) -> None:
        rng.random(out=spare)
        np.take(self._table[0], np.searchsorted(self._table[1], spare, side="right"), out=answers)

    @cached_property
    def _table(self) -> tuple[Reals, Reals]:
        reach = math.ceil(38 * self.size) + 1
        values = np.arange(-reach, reach + 1, dtype=np.float64)
        mass = np.exp(-np.square(values / self.size) / 2)
        return values, np.cumsum(mass / np.sum(mass))[:-1]


def _checked(mechanism: DiscreteLaplace | DiscreteGaussian, between: Between) -> None:
    change = mechanism.replace if between.adjacency is Adjacency.REPLACE else mechanism.shift
    if isinstance(mechanism.shift, tuple) or isinstance(change, tuple):
        raise UnsupportedError(repr(mechanism), "the experiment draws one coordinate")
    require_within(between, abs(2 * mechanism.shift if change is None else change))
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
