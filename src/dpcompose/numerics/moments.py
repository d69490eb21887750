"""A positive measure on the line seen through its moment generating function, in balls: what the proof engine asks of it.

The measure has `mass` on the real line and `infinite` at +infinity. Every number is enclosed at the working precision of the
moment it is asked; nothing here is rounded without being accounted for.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isqrt

from dpcompose.numerics.ball import Ball, Disc, Field


@dataclass(frozen=True)
class Grid:
    """The measure lives on offset + spacing * integers."""

    spacing: Ball
    offset: Ball


@dataclass(frozen=True)
class Moments(ABC):
    """M(t) = integral of e^(t l) over the real line. A member offers `at`; all else has a sound default.

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
    def largest(self) -> Ball:
        """The supremum of the support."""
        return self.field.exact(float("inf"))

    @property
    def smallest(self) -> Ball:
        """The infimum of the support."""
        return self.field.exact(float("-inf"))

    @property
    def grid(self) -> Grid | None:
        """The lattice that carries the measure, if there is one."""
        return None

    @property
    def normal(self) -> Ball | None:
        """The variance v, if the measure is the normal distribution of mean v / 2 and variance v."""
        return None

    @property
    def atoms(self) -> Sequence[tuple[Ball, Ball]] | None:
        """All (mass, place), if they are finitely many and few."""
        return None

    @property
    def vague(self) -> tuple[float, float]:
        """(f, s): the true measure is this one with each mass times a number in [1 / (1 + f), 1 + f] and each place moved by at most s."""
        return 0.0, 0.0

    @abstractmethod
    def at(self, points: Sequence[Disc]) -> list[Disc]:
        """M at complex points."""

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        """M(order + i step j) for j < count."""
        return self.at([self.field.disc(order, step * j) for j in range(count)])

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        """A function of a frequency: at least |M(order + iu)| / M(order) for every u from there on."""
        return lambda _: self.field.exact(1)

    def profile(self, x: Ball) -> Ball | None:
        """`infinite` plus the integral of (1 - e^(x - l))_+ in closed form, if there is one."""
        return None


@dataclass(frozen=True)
class Ends:
    """The same measure at both ends of what is known of its parameters.

    Args:
        below: A measure whose integral of (1 - e^(x - l))_+ is at most the true one, at every x and however it is composed.
        above: One for which it is at least that; the same object where the parameters are known exactly.
    """

    below: Moments
    above: Moments

    @classmethod
    def exact(cls, moments: Moments) -> Ends:
        """Both ends of a measure with exact parameters."""
        return cls(moments, moments)


def geometric(first: Disc, ratio: Disc, count: int) -> list[Disc]:
    """first ratio^j for j < count."""
    values = [first]
    for _ in range(count - 1):
        values.append(values[-1] * ratio)
    return values


def exponential_sums(field: Field, logs: Sequence[Disc], rates: Sequence[Disc], count: int) -> list[Disc]:
    """The sums over all terms of e^(log + j rate), for j < count: one product of two matrices, j = row * columns + column."""
    columns = isqrt(max(count - 1, 0)) + 1
    rows = (count + columns - 1) // columns
    left: list[list[Disc]] = [[] for _ in range(rows)]
    right: list[list[Disc]] = []
    for log, rate in zip(logs, rates, strict=True):
        turn = rate.exp()
        right.append(geometric(field.disc(1, 0), turn, columns))
        for row, value in enumerate(geometric(log.exp(), (rate * columns).exp(), rows)):
            left[row].append(value)
    return field.products(left, right)[:count]
