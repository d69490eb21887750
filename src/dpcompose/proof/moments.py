"""Positive measures given by their moment generating function in balls, and the normal measure.

A measure has `mass` on the real line and `infinite` at +infinity. Every number is enclosed at the
working precision at the time of the call. g(x) denotes the integral of (1 - e^(x - l))_+ over the
real line.
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
    """A lattice: the measure lives on offset + spacing * integers."""

    spacing: Ball
    offset: Ball


@dataclass(frozen=True)
class Term:
    """The function constant e^(t shift) (t + 1)^after t^at (t + 1/2)^-order of t, with after + at
    <= order.
    """

    constant: Ball
    shift: Ball
    after: int = 0
    at: int = 0
    order: int = 0


@dataclass(frozen=True)
class Moments(ABC):
    """A measure with the moment generating function M(t) = integral of e^(t l) over the real line.
    A family must define `at`; every other member has a sound default.

    Args:
        field: The field of balls.
    """

    field: Field

    @property
    def infinite(self) -> Ball:
        """The mass at +infinity."""
        return self.field.exact(0)

    @property
    def mass(self) -> Ball:
        """The moment generating function M(0), the mass on the real line."""
        return 1 - self.infinite

    @property
    def other_mass(self) -> Ball:
        """The moment generating function M(-1)."""
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
        """The lattice that contains the support; None if there is none."""
        return None

    @property
    def normal(self) -> Ball | None:
        """The variance v, if the measure is the normal distribution of mean v / 2 and variance v."""
        return None

    @property
    def terms(self) -> Sequence[Term] | None:
        """Terms whose sum is the moment generating function M, if there are few; atoms are terms of
        order 0. Else None.
        """
        return None

    @property
    def reverse(self) -> Moments | None:
        """The loss of the pair in the reverse order, if neither order has an infinite loss; else
        None.

        A measure with a reverse also knows M, and bounds on |M|, at orders in (-1, 0).
        """
        return None

    @property
    def stated_errors(self) -> tuple[float, float]:
        """The relative error of every mass, and the absolute error of every value.

        For (f, s) the true mass is the stated one times a number in [1 / (1 + f), 1 + f], and the
        true value is within s of the stated one.
        """
        return 0.0, 0.0

    @property
    def effort(self) -> float:
        """An estimate of the number of multiplications for one value of the moment generating
        function M.
        """
        return 20.0

    @abstractmethod
    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        """Return the moment generating function M(order + iu) at frequencies u, for order > 0, or
        in (-1, 0) if there is a reverse.
        """

    def real(self, order: float) -> Ball:
        """Return the moment generating function M at a real order."""
        return self.at(order, [self.field.exact(0)])[0].real

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        """Return the moment generating function M(order + i step j) for j < count."""
        return self.at(order, [step * j for j in range(count)])

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        """Return a function of a frequency: an upper bound on |M(order + iu)| / M(order) for every
        u from there on. M is the moment generating function.
        """
        return lambda _: self.field.exact(1)

    def half_circle(self, order: float) -> Callable[[Ball], Ball]:
        """Return the same for a measure on a lattice, valid up to half its period only, u = pi /
        spacing.
        """
        return self.decay(order)

    def profile(self, x: Ball) -> Ball | None:
        """Return the hockey-stick divergence g(x) in closed form, where delta = g(epsilon); None if
        no closed form is known.
        """
        return None


Factors = Sequence[tuple[Moments, int]]


def summed(field: Field, factors: Factors, each: Callable[[Moments], Ball]) -> Ball:
    """Return the sum of a property over the factors, times their counts."""
    return sum((each(moments) * times for moments, times in factors), field.exact(0))


def multiplied(field: Field, factors: Factors, each: Callable[[Moments], Ball]) -> Ball:
    """Return the product of a property over the factors, raised to their counts."""
    total = field.exact(1)
    for moments, times in factors:
        total *= each(moments) ** times
    return total


def log_moment(field: Field, factors: Factors, order: float) -> Ball:
    """Return the logarithm of the moment generating function M of the sum at a real order."""
    return summed(field, factors, lambda moments: moments.real(order).log())


def kernel_peak(order: Ball) -> Ball:
    """Return log of l^l / (1 + l)^(1 + l), the maximum of (1 - e^-x) e^(-l x) over x."""
    return order * order.log() - (1 + order) * order.log1p()


@dataclass(frozen=True)
class Ends:
    """Two measures that enclose one that is known only approximately.

    Args:
        below: A measure whose g is at most the true one, at every x and in every sum of independent
            variables.
        above: A measure whose g is at least the true one; the same object if the measure is known
            exactly.
    """

    below: Moments
    above: Moments


def ends(
    value: float, make: Callable[[Ball], Moments], *, field: Field, ulps: int, rising: bool
) -> Ends:
    """Return the enclosing measures of a measure with one parameter in which the hockey-stick
    divergence g is monotone.

    Args:
        value: The parameter, accurate to `ulps` units of roundoff.
        make: Returns the measure with an exact parameter.
        field: The field of balls.
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
    """Return the sums over terms of e^(log + j rate) for j < count, as one matrix product with j =
    row * columns + column.
    """
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
    """The normal measure of mean v / 2 and variance v = `variance` > 0: the moment generating
    function M(t) = e^(v t (t + 1) / 2).

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
    """Return P[N(0, 1) > x]."""
    return (x / field.exact(2).sqrt()).erfc() / 2
