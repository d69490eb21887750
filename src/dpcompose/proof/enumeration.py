"""A sum of independent variables with few values, value by value, in balls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

from dpcompose.proof.ball import Ball, Field
from dpcompose.proof.moments import Factors, Term


def states(factors: Factors) -> tuple[float, int]:
    """How many terms the product of all moment generating functions has, infinite if it is no finite sum; and their
    largest order."""
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
    """The terms of the product of all moment generating functions."""
    total = [Term(field.exact(1), field.exact(0))]
    for moments, times in factors:
        powers = list(_powers(field, moments.terms or (), times))
        total = [_product(one, other) for one in total for other in powers]
    return total


def _powers(field: Field, terms: Sequence[Term], times: int) -> Iterator[Term]:
    """The multinomial expansion of the sum of the terms, to that power."""
    if len(terms) == 1 or times == 0:
        yield _power(terms[0], times)
        return
    if times == 1:
        yield from terms
        return
    for count in range(times + 1):
        first, ways = _power(terms[0], count), field.ball.bin_uiui(times, count)
        for rest in _powers(field, terms[1:], times - count):
            whole = _product(first, rest)
            yield Term(ways * whole.constant, whole.shift, whole.after, whole.at, whole.order)


def _power(term: Term, times: int) -> Term:
    return Term(term.constant**times, term.shift * times, term.after * times, term.at * times, term.order * times)


def _product(one: Term, other: Term) -> Term:
    constant, shift = one.constant * other.constant, one.shift + other.shift
    return Term(constant, shift, one.after + other.after, one.at + other.at, one.order + other.order)


@dataclass(frozen=True)
class Enumeration:
    """g for a sum of atoms.

    Args:
        field: Where balls come from.
        atoms: The values of the sum: terms of order 0.
    """

    field: Field
    atoms: list[Term]

    @cached_property
    def _sums(self) -> tuple[list[Ball], list[Ball], list[Ball], Ball]:
        """The middles of the places, falling; the mass, and the mass times e^-place, of all up to each; the largest
        radius."""
        masses, damped, radius = [self.field.exact(0)], [self.field.exact(0)], self.field.exact(0)
        ordered = sorted(self.atoms, key=lambda atom: atom.shift.mid(), reverse=True)
        for atom in ordered:
            masses.append(masses[-1] + atom.constant)
            damped.append(damped[-1] + atom.constant * (-atom.shift).exp())
            radius = radius.max(atom.shift.rad())
        return [atom.shift.mid() for atom in ordered], masses, damped, 2 * radius

    def value(self, x: Ball) -> Ball:
        """g at an exact x."""
        places, masses, damped, radius = self._sums
        above, near = _count(places, x + radius), _count(places, x - radius)
        value = masses[above] - x.exp() * damped[above]
        # Places that cannot be told from x: each adds at most its mass times their distance.
        return value + (masses[near] - masses[above]) * (2 * radius).expm1() * self.field.ball(0.5, 0.5)


def _count(falling: list[Ball], x: Ball) -> int:
    """How many of the exact `falling` numbers are above x, as far as their order can tell."""
    low, high = 0, len(falling)
    while low < high:
        middle = (low + high) // 2
        low, high = (middle + 1, high) if falling[middle] > x else (low, middle)
    return low
