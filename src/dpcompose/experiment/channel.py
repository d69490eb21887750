"""The mechanisms that the experiment draws: their answers in both worlds, and the loss of an answer.

First what every one of them has, then those with finitely many answers, added noise, and Poisson samples.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from decimal import Context, Decimal, localcontext
from enum import Enum
from functools import cached_property, lru_cache, singledispatch

import numpy as np
from numpy.typing import NDArray

from dpcompose.composition import Composable, Sampled, loss_of
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import (
    BlackBox,
    DiscreteGaussian,
    DiscreteLaplace,
    DominatingPair,
    Gaussian,
    Laplace,
    RandomizedResponse,
    Stated,
)
from dpcompose.numerics import log_mixed
from dpcompose.values import UNIT_ROUNDOFF, Adjacency

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

    def held(self, inside: Sequence[Decimal], outside: Sequence[Decimal]) -> FiniteChannel:
        """The answers 0, 1, ... with these probabilities where the database holds the record, and where it does not."""
        return finite(inside, outside) if self.holder is World.ZERO else finite(outside, inside)


@singledispatch
def channel_of(mechanism: Composable, between: Between) -> Channel:
    """The mechanism's answers about two databases.

    Raises:
        UnsupportedError: If there is no sampler for the mechanism.
        DomainError: If the two values are farther apart than the mechanism's sensitivity, or it does not take them.
    """
    remedy = "BlackBox(epsilon, delta=...) plays the worst case"
    raise UnsupportedError(repr(mechanism), "the experiment cannot draw its answers", remedy)


# Mechanisms with finitely many answers: randomized response, the worst case of a guarantee, and atoms.


DIGITS = 60
"""Decimal digits of probabilities."""


@dataclass(frozen=True)
class FiniteChannel(Channel):
    """Finitely many answers.

    Args:
        all: The answers with their probabilities.
    """

    all: tuple[Outcome, ...]

    def outcomes(self) -> tuple[Outcome, ...]:
        return self.all

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        rng.random(out=spare)
        edges = self._edges[world]
        if len(edges) == 1:
            # Two answers: 0 or 1, scaled, is faster than a search.
            np.greater_equal(spare, edges[0], out=answers, casting="unsafe")
            low, high = self.all[0].answer, self.all[1].answer
            answers *= high - low
            answers += low
        else:
            np.take(self._answers, np.searchsorted(edges, spare, side="right"), out=answers)

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        if len(self.all) == 2 and np.all(np.isfinite(self._losses)):
            low, high = self.all[0].answer, self.all[1].answer
            slope = (self._losses[1] - self._losses[0]) / (high - low)
            np.subtract(answers, low, out=spare)
            spare *= slope
            spare += self._losses[0]
        else:
            np.take(self._losses, np.searchsorted(self._answers, answers), out=spare)
        losses += spare

    @cached_property
    def _answers(self) -> Reals:
        return np.array([outcome.answer for outcome in self.all])

    @cached_property
    def _losses(self) -> Reals:
        with localcontext(Context(prec=DIGITS)):
            return np.array([log_ratio(outcome.zero, outcome.one) for outcome in self.all])

    @cached_property
    def _edges(self) -> dict[World, Reals]:
        """The cumulative probabilities but the last."""
        zero = [float(outcome.zero) for outcome in self.all]
        one = [float(outcome.one) for outcome in self.all]
        return {World.ZERO: np.cumsum(zero)[:-1], World.ONE: np.cumsum(one)[:-1]}


def finite(zero: Sequence[Decimal], one: Sequence[Decimal]) -> FiniteChannel:
    """Answers 0, 1, 2, ... with these probabilities; those that neither world gives are left out."""
    both = enumerate(zip(zero, one, strict=True))
    return FiniteChannel(
        tuple(Outcome(float(answer), p, q) for answer, (p, q) in both if p > 0 or q > 0)
    )


def log_ratio(p: Decimal, q: Decimal) -> float:
    """ln p / q of two probabilities, in the digits of the context."""
    if p == q:
        return 0.0
    return float("inf") if q == 0 else float("-inf") if p == 0 else float((p / q).ln())


@channel_of.register
def _(mechanism: RandomizedResponse, between: Between) -> Channel:
    _require(mechanism, between.adjacency)
    count, values = mechanism.categories, (between.zero, between.one)
    for value in values:
        if not (value == int(value) and 0 <= value < count):
            raise DomainError("statistic", value, f"a category from 0 to {count - 1}")
    if not count <= 4096:
        raise UnsupportedError(repr(mechanism), "the experiment draws at most 4096 categories")
    with localcontext(Context(prec=DIGITS)):
        growth = Decimal(mechanism.stated).exp()
        whole = growth + count - 1
        zero, one = (
            [(growth if k == each else 1) / whole for k in range(count)] for each in values
        )
    return finite(zero, one)


@channel_of.register
def _(mechanism: BlackBox, between: Between) -> Channel:
    """The worst mechanism with this promise: it says in which world it is with probability delta."""
    _require(mechanism, between.adjacency)
    with localcontext(Context(prec=DIGITS)):
        delta, growth = Decimal(mechanism.stated.delta), Decimal(mechanism.stated.epsilon).exp()
        more, less = (1 - delta) * growth / (1 + growth), (1 - delta) / (1 + growth)
        if between.zero == between.one:
            return finite([Decimal(1)], [Decimal(1)])
        return between.held([delta, more, less, Decimal(0)], [Decimal(0), less, more, delta])


@channel_of.register
def _(mechanism: DominatingPair, between: Between) -> Channel:
    """Its atoms: with the record those of `upper`. A pair from a profile is drawn as its atoms above."""
    mechanism.pairs(between.adjacency)
    atoms = loss_of(mechanism.pair.remove).atoms()
    upper, lower = [Decimal(mass) for mass in atoms.upper], [Decimal(mass) for mass in atoms.lower]
    if between.zero == between.one:
        return finite(lower, lower)
    return between.held(upper, lower)


def _require(mechanism: Stated, adjacency: Adjacency) -> None:
    if adjacency is not mechanism.holds_under:
        stated = f"it is stated under {mechanism.holds_under.value}, and the experiment is under {adjacency.value}"
        raise UnsupportedError(repr(mechanism), stated, "State it with holds_under=...")


# Noise that is added to a value: Laplace and Gaussian, on the real line and on the integers.


DISTANCE_ERROR = 1e-12
"""The relative error granted to the distance of two statistics."""
LARGEST_TABLE = 1 << 16


Noise = Laplace | DiscreteLaplace | Gaussian | DiscreteGaussian


@dataclass(frozen=True)
class AddedNoise(Channel):
    """The value plus noise, on the line or on the integers.

    Args:
        noise: The mechanism that adds it.
        zero: The value in world 0.
        one: The value in world 1.
    """

    noise: Noise
    zero: float
    one: float

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        match self.noise:
            case Laplace(scale=scale):
                # The difference of two exponential variables.
                rng.standard_exponential(out=answers)
                rng.standard_exponential(out=spare)
                answers -= spare
                answers *= scale
            case DiscreteLaplace(scale=scale):
                # Of two geometric variables, the integer parts of exponential ones.
                for drawn in (answers, spare):
                    rng.standard_exponential(out=drawn)
                    np.multiply(drawn, scale, out=drawn)
                    np.floor(drawn, out=drawn)
                answers -= spare
            case Gaussian(sigma=sigma):
                rng.standard_normal(out=answers)
                answers *= sigma
            case DiscreteGaussian(sigma=sigma):
                # From a table that omits a mass of less than 1e-300.
                values, edges = _gaussian_table(sigma)
                rng.random(out=spare)
                np.take(values, np.searchsorted(edges, spare, side="right"), out=answers)
        answers += self.zero if world is World.ZERO else self.one

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """Of Laplace noise it is linear between the two values and constant outside, of Gaussian noise linear."""
        np.subtract(answers, (self.zero + self.one) / 2, out=spare)  # exact for integers
        apart = self.zero - self.one
        match self.noise:
            case Laplace(scale=scale) | DiscreteLaplace(scale=scale):
                spare *= np.copysign(2 / scale, apart)
                np.clip(spare, -abs(apart) / scale, abs(apart) / scale, out=spare)
            case Gaussian(sigma=sigma) | DiscreteGaussian(sigma=sigma):
                spare *= apart / sigma**2
        losses += spare

    @property
    def error(self) -> float:
        match self.noise:
            case Laplace(scale=scale):
                slope = 1 / scale
            case Gaussian(sigma=sigma):
                slope = abs(self.zero - self.one) / sigma**2
            case _:
                return 0.0
        return 8 * UNIT_ROUNDOFF * (abs(self.zero) + abs(self.one)) * slope


@lru_cache(maxsize=16)
def _gaussian_table(sigma: float) -> tuple[Reals, Reals]:
    reach = math.ceil(38 * sigma) + 1
    values = np.arange(-reach, reach + 1, dtype=np.float64)
    mass = np.exp(-np.square(values / sigma) / 2)
    return values, np.cumsum(mass / np.sum(mass))[:-1]


def reach_of(mechanism: Composable, adjacency: Adjacency) -> float:
    """The largest distance of the two values of the statistic; 1 where the mechanism has no unit of its own.

    Raises:
        UnsupportedError: If the mechanism has several coordinates.
    """
    match mechanism:
        case Laplace() | Gaussian():
            return mechanism.sensitivity_under(adjacency)
        case DiscreteLaplace() | DiscreteGaussian():
            change = mechanism._change_under(adjacency)  # pyright: ignore[reportPrivateUsage]
            if isinstance(change, tuple):
                raise UnsupportedError(repr(mechanism), "the experiment draws one coordinate")
            return float(abs(change))
        case Sampled() if mechanism.base.count == 1:
            return reach_of(mechanism.base.parts[0][0], adjacency)
        case _:
            return 1.0


@channel_of.register
def _(mechanism: Noise, between: Between) -> Channel:
    """Noise on the two values, once it is certain that these are within the mechanism's sensitivity, rounding aside.

    The values of discrete noise are integers.
    """
    if isinstance(mechanism, DiscreteGaussian) and not 76 * mechanism.sigma < LARGEST_TABLE:
        table = f"a table of its outcomes, of at most {LARGEST_TABLE} values"
        raise UnsupportedError(repr(mechanism), f"the experiment draws from {table}")
    apart, most = abs(between.zero - between.one), reach_of(mechanism, between.adjacency)
    if not apart <= most * (1 + DISTANCE_ERROR):
        name = "|statistic(zero) - statistic(one)|"
        raise DomainError(name, apart, f"at most the sensitivity {most!r} of the mechanism")
    for value in (between.zero, between.one):
        if isinstance(mechanism, DiscreteLaplace | DiscreteGaussian) and not (
            value == math.floor(value) and abs(value) < 2**50
        ):
            raise DomainError("statistic", value, "an integer")
    return AddedNoise(mechanism, between.zero, between.one)


# A mechanism on a Poisson sample: the differing record is in it or not, and the others are held fixed.


@dataclass(frozen=True)
class SampledChannel(Channel):
    """The channel of a sample: in the world with the record, a mixture of the answers with and without it.

    Args:
        base: The mechanism that runs on the sample, between the same two values.
        rate: The probability that the record is in the sample.
        holder: The world whose database holds the record.
    """

    base: Channel
    rate: float
    holder: World

    def draw(self, rng: np.random.Generator, world: World, answers: Reals, spare: Reals) -> None:
        without = World.ONE if self.holder is World.ZERO else World.ZERO
        self.base.draw(rng, without, answers, spare)
        if world is not self.holder:
            return
        rng.random(out=spare)
        inside = np.flatnonzero(spare < self.rate)
        found, more = np.empty(len(inside)), np.empty(len(inside))
        self.base.draw(rng, world, found, more)
        answers[inside] = found

    @property
    def error(self) -> float:
        return self.base.error

    def add_loss(self, answers: Reals, losses: Reals, spare: Reals) -> None:
        """ln(1 - q + q e^loss), or minus that of minus the loss."""
        sign = 1.0 if self.holder is World.ZERO else -1.0
        one = np.zeros(len(answers))
        self.base.add_loss(answers, one, spare)
        one *= sign
        losses += sign * log_mixed(one, self.rate)


@channel_of.register
def _(mechanism: Sampled, between: Between) -> Channel:
    if between.adjacency is Adjacency.REPLACE:
        raise UnsupportedError(
            repr(mechanism), "the experiment samples under add-remove and zero-out"
        )
    if mechanism.base.count != 1:
        raise UnsupportedError(repr(mechanism), "the experiment samples one mechanism at a time")
    base = channel_of(mechanism.base.parts[0][0], between)
    outcomes = base.outcomes()
    if outcomes is None:
        return SampledChannel(base, mechanism.rate, between.holder)
    with localcontext(Context(prec=DIGITS)):
        q = Decimal(mechanism.rate)
        if between.holder is World.ZERO:
            mixed = [replace(each, zero=q * each.zero + (1 - q) * each.one) for each in outcomes]
        else:
            mixed = [replace(each, one=q * each.one + (1 - q) * each.zero) for each in outcomes]
    return FiniteChannel(tuple(mixed))
