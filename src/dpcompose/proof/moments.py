"""A positive measure on the line, seen through its moment generating function in balls: the proof engine asks no more.

The measure has `mass` on the real line and `infinite` at +infinity. Every number is enclosed at the working precision
of the moment it is asked; g(x) stands for the integral of (1 - e^(x - l))_+ over the real line.

The normal variable of mean v / 2 and variance v, in balls.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.values import UNIT_ROUNDOFF


@dataclass(frozen=True)
class BallLattice:
    """The measure lives on offset + spacing * integers."""

    spacing: Ball
    offset: Ball


@dataclass(frozen=True)
class Term:
    """constant e^(t shift) (t + 1)^after t^at (t + 1/2)^-order, after + at <= order."""

    constant: Ball
    shift: Ball
    after: int = 0
    at: int = 0
    order: int = 0


@dataclass(frozen=True)
class Moments(ABC):
    """M(t) = integral of e^(t l) over the real line. A family declares `at`; all else has a sound default.

    Args:
        field: Where its balls come from.
    """

    field: Field

    @property
    def infinite(self) -> Ball:
        """The mass at +infinity."""
        return self.field.exact(0)

    @property
    def mass(self) -> Ball:
        """M(0), the mass on the real line."""
        return 1 - self.infinite

    @property
    def other_mass(self) -> Ball:
        """M(-1)."""
        return self.mass

    @property
    def largest(self) -> Ball:
        """The supremum of the support."""
        return self.field.exact(math.inf)

    @property
    def smallest(self) -> Ball:
        """The infimum of the support."""
        return self.field.exact(-math.inf)

    @property
    def grid(self) -> BallLattice | None:
        """The lattice that carries the measure, if there is one."""
        return None

    @property
    def normal(self) -> Ball | None:
        """The variance v, if the measure is the normal distribution of mean v / 2 and variance v."""
        return None

    @property
    def terms(self) -> Sequence[Term] | None:
        """Terms of which M is the sum, if it is one of few; atoms are terms of order 0."""
        return None

    @property
    def reverse(self) -> Moments | None:
        """The loss of the pair in the other order, from those that have no infinite loss in either.

        Whoever gives one knows M at the orders in (-1, 0), and |M| along these lines, too.
        """
        return None

    @property
    def stated_errors(self) -> tuple[float, float]:
        """The relative error of every mass, and the error of every place.

        For (f, s) the true mass is this one times a number in [1 / (1 + f), 1 + f], the true place within s of this.
        """
        return 0.0, 0.0

    @property
    def effort(self) -> float:
        """Roughly how many multiplications one value of M costs."""
        return 20.0

    @abstractmethod
    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        """M(order + iu) at frequencies u, order > 0, or in (-1, 0) where there is a reverse."""

    def real(self, order: float) -> Ball:
        """M at a real order."""
        return self.at(order, [self.field.exact(0)])[0].real

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        """M(order + i step j) for j < count."""
        return self.at(order, [step * j for j in range(count)])

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        """A function of a frequency: at least |M(order + iu)| / M(order) for every u from there on."""
        return lambda _: self.field.exact(1)

    def half_circle(self, order: float) -> Callable[[Ball], Ball]:
        """The same for a measure on a lattice, but up to half its period only, u = pi / spacing."""
        return self.decay(order)

    def profile(self, x: Ball) -> Ball | None:
        """The value of g at the loss x, where delta = g(epsilon); None if these moments have no closed form of it."""
        return None


Factors = Sequence[tuple[Moments, int]]


def summed(field: Field, factors: Factors, each: Callable[[Moments], Ball]) -> Ball:
    """The sum of a property of the factors, with their counts."""
    return sum((each(moments) * times for moments, times in factors), field.exact(0))


def multiplied(field: Field, factors: Factors, each: Callable[[Moments], Ball]) -> Ball:
    """The product of a property of the factors, with their counts."""
    total = field.exact(1)
    for moments, times in factors:
        total *= each(moments) ** times
    return total


def log_moment(field: Field, factors: Factors, order: float) -> Ball:
    """log M of the sum at a real order."""
    return summed(field, factors, lambda moments: moments.real(order).log())


def kernel_peak(order: Ball) -> Ball:
    """log of l^l / (1 + l)^(1 + l), the largest value of (1 - e^-x) e^(-l x)."""
    return order * order.log() - (1 + order) * order.log1p()


@dataclass(frozen=True)
class Ends:
    """The same measure at both ends of what is known of it.

    Args:
        below: A measure whose g is at most the true one, at every x and in whatever sum of independent variables.
        above: One whose g is at least the true one; the same object where the measure is known exactly.
    """

    below: Moments
    above: Moments


def ends(
    value: float, make: Callable[[Ball], Moments], *, field: Field, ulps: int, rising: bool
) -> Ends:
    """Both ends of a measure with one parameter, of which g is a monotone function.

    Args:
        value: The parameter, good to `ulps` units of roundoff.
        make: The measure with an exact parameter.
        field: Where balls come from.
        ulps: 0 if the parameter is exactly `value`.
        rising: Whether g grows with the parameter.
    """
    if ulps == 0:
        moments = make(field.exact(value))
        return Ends(moments, moments)
    low, high = (
        make(value * (1 + field.exact(2 * side * ulps * UNIT_ROUNDOFF))) for side in (-1, 1)
    )
    return Ends(low, high) if rising else Ends(high, low)


def exponential_sums(
    field: Field, logs: Sequence[Disc], rates: Sequence[Disc], count: int
) -> list[Disc]:
    """The sums over terms of e^(log + j rate), j < count: one product of two matrices, j = row * columns + column."""
    columns = math.isqrt(max(count - 1, 0)) + 1
    rows = (count + columns - 1) // columns
    left: list[list[Disc]] = [[] for _ in range(rows)]
    right: list[list[Disc]] = []
    for log, rate in zip(logs, rates, strict=True):
        right.append(field.powers(field.disc(1), rate.exp(), columns))
        for row, value in enumerate(field.powers(log.exp(), (rate * columns).exp(), rows)):
            left[row].append(value)
    return field.products(left, right)[:count]


@dataclass(frozen=True)
class NormalMoments(Moments):
    """M(t) = e^(v t (t + 1) / 2) with v = `variance` > 0.

    Reference: [BalleWang2018, Theorem 8]
    """

    variance: Ball

    @property
    def normal(self) -> Ball:
        return self.variance

    @property
    def reverse(self) -> NormalMoments:
        return self

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        points = (self.field.disc(order, frequency) for frequency in frequencies)
        return [(self.variance * t * (t + 1) / 2).exp() for t in points]

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        return lambda frequency: (-self.variance * frequency**2 / 2).exp()

    def profile(self, x: Ball) -> Ball:
        mu = self.variance.sqrt()
        return upper_tail(self.field, x / mu - mu / 2) - x.exp() * upper_tail(
            self.field, x / mu + mu / 2
        )


def upper_tail(field: Field, x: Ball) -> Ball:
    """P[N(0, 1) > x]."""
    return (x / field.exact(2).sqrt()).erfc() / 2
