"""Closed forms of the hockey-stick divergence g in balls, for sums of variables with few values,
and for transforms that are finite sums of exponentials.

Sums of atoms are enumerated. Other moment generating functions are finite sums of e^(t shift) times
a rational function, and so is their product. For the term constant e^(t shift) (t + 1)^after t^at
(t + 1/2)^-order the integral (1 / 2 pi i) of term e^(-t x) / (t (t + 1)) over a line Re t > 0
vanishes if d = shift - x <= 0 (the contour is closed on the right); else (closed on the left) it is
constant times the sum of the residues at 0, -1 and -1/2. The residues cancel, so the balls need
enough digits.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dpcompose.contour import remembered
from dpcompose.proof.ball import Ball, Field, Polynomial
from dpcompose.proof.moments import Factors, Term


def states(factors: Factors) -> tuple[float, int]:
    """Return the number of terms of the product of all moment generating functions, and their
    largest order.

    The number is infinite if the product is no finite sum.
    """
    count, order = 1.0, 0
    for moments, times in factors:
        terms = moments.terms
        if terms is None or times > 100_000:
            return math.inf, 0
        ways = math.comb(times + len(terms) - 1, times)
        count = count * ways if ways < 10**15 else math.inf
        order += times * max(term.order for term in terms)
    return count, order


def expanded(field: Field, factors: Factors) -> list[Term]:
    """Return the terms of the product of all moment generating functions."""
    total = [Term(field.exact(1), field.exact(0))]
    for moments, times in factors:
        powers = list(_powers(field, moments.terms or (), times))
        total = [_product(one, other) for one in total for other in powers]
    return total


def _powers(field: Field, terms: Sequence[Term], times: int) -> Iterator[Term]:
    """Yield the multinomial expansion of a power of the sum of the terms."""
    if len(terms) == 1 or times == 0:
        yield _power(terms[0], times)
        return
    if times == 1:
        yield from terms
        return
    for count in range(times + 1):
        first, ways = _power(terms[0], count), field.ball.bin_uiui(times, count)
        for others in _powers(field, terms[1:], times - count):
            whole = _product(first, others)
            yield Term(ways * whole.constant, whole.shift, whole.after, whole.at, whole.order)


def _power(term: Term, times: int) -> Term:
    return Term(
        term.constant**times,
        term.shift * times,
        term.after * times,
        term.at * times,
        term.order * times,
    )


def _product(one: Term, other: Term) -> Term:
    constant, shift = one.constant * other.constant, one.shift + other.shift
    return Term(
        constant, shift, one.after + other.after, one.at + other.at, one.order + other.order
    )


@dataclass(frozen=True)
class Enumeration:
    """The hockey-stick divergence g for a sum of variables with finitely many values, by
    enumeration.

    Args:
        field: The field of balls.
        atoms: The values of the sum with their masses, as terms of order 0.
    """

    field: Field
    atoms: list[Term]

    @cached_property
    def _sums(self) -> tuple[list[Ball], list[Ball], list[Ball], Ball]:
        """The midpoints of the values, decreasing; partial sums of the masses, and of the masses
        times e^-value; twice the largest radius of a value.
        """
        masses, damped, radius = [self.field.exact(0)], [self.field.exact(0)], self.field.exact(0)
        ordered = sorted(self.atoms, key=lambda atom: atom.shift.mid(), reverse=True)
        for atom in ordered:
            masses.append(masses[-1] + atom.constant)
            damped.append(damped[-1] + atom.constant * (-atom.shift).exp())
            radius = radius.max(atom.shift.rad())
        return [atom.shift.mid() for atom in ordered], masses, damped, 2 * radius

    def value(self, x: Ball) -> Ball:
        """Return the hockey-stick divergence g at an exact x."""
        places, masses, damped, radius = self._sums
        above, near = _count(places, x + radius), _count(places, x - radius)
        value = masses[above] - x.exp() * damped[above]
        # Values that cannot be distinguished from x each add at most their mass times their
        # distance from it.
        return value + (masses[near] - masses[above]) * (2 * radius).expm1() * self.field.ball(
            0.5, 0.5
        )


def _count(falling: list[Ball], x: Ball) -> int:
    """Return how many of the decreasing exact numbers are certainly above x."""
    low, high = 0, len(falling)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falling[middle] > x else (low, middle)
    return low


@dataclass(frozen=True)
class Residues:
    """The sum of the residues of terms that all have the same order.

    Args:
        field: The field of balls.
        terms: The terms, whose sum is M.
    """

    field: Field
    terms: list[Term]

    def value(self, x: Ball) -> Ball:
        """Return the hockey-stick divergence g at an exact x."""
        total = self.field.exact(0)
        for term in self.terms:
            distance = term.shift - x
            if not distance <= 0:
                value = term.constant * self._residues(term, distance)
                # The integral is continuous in d, so if the sign of d is unknown, 0 is included.
                total += value if distance > 0 else value.union(self.field.exact(0))
        return total

    def _residues(self, term: Term, distance: Ball) -> Ball:
        total, two = self.field.exact(0), self.field.exact(2)
        if term.at == 0:
            total += two**term.order
        if term.after == 0:
            total += (-1) ** ((term.at + term.order + 1) % 2) * two**term.order * (-distance).exp()
        if term.order > 0:
            total += (-distance / 2).exp() * self._middle(term.after, term.at, term.order)(distance)
        return total

    @remembered
    def _middle(self, after: int, at: int, order: int) -> Callable[[Ball], Ball]:
        """Return the function of d: the coefficient of s^(order - 1) in (s + 1/2)^(after - 1) (s -
        1/2)^(at - 1) e^(d s), a polynomial.
        """
        series = self._series(after - 1, 1, order) * self._series(at - 1, -1, order)
        series = series.truncate(order)
        factorial, values = self.field.exact(1), list[Ball]()
        for degree in range(order):
            factorial = factorial * max(degree, 1)
            values.append(series[order - 1 - degree] / factorial)
        return self.field.polynomial(values)

    def _series(self, power: int, sign: int, length: int) -> Polynomial:
        """Return `length` coefficients of (s + sign / 2)^power, power >= -1."""
        if power < 0:
            return self.field.polynomial(
                [2 * sign * (-2 * sign) ** degree for degree in range(length)]
            )
        half = self.field.exact(0.5 * sign)
        count = min(power + 1, length)
        return self.field.polynomial(
            [
                self.field.ball.bin_uiui(power, degree) * half ** (power - degree)
                for degree in range(count)
            ]
        )
