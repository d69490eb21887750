"""A sum of independent variables with few values, value by value, in balls."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

from dpcompose.numerics.ball import Ball, Field
from dpcompose.numerics.rest import Factors

Atoms = Sequence[tuple[Ball, Ball]]


def states(factors: Factors) -> float:
    """How many values an enumeration has; infinite if it cannot be done."""
    total = 1.0
    for moments, times in factors:
        if moments.atoms is None or times > 100_000:
            return math.inf
        total *= math.comb(times + len(moments.atoms) - 1, times)
    return total


@dataclass(frozen=True)
class Enumeration:
    """The integral of (1 - e^(x - l))_+ over the sum of the factors.

    Args:
        field: Where balls come from.
        factors: Variables with few atoms, and their counts.
    """

    field: Field
    factors: Factors

    @cached_property
    def _sums(self) -> tuple[list[Ball], list[Ball], list[Ball], Ball]:
        """The middles of the places, falling; the mass, and the mass times e^-place, of all up to each; the largest radius."""
        atoms = [(self.field.exact(1), self.field.exact(0))]
        for moments, times in self.factors:
            assert moments.atoms is not None
            powers = list(_powers(self.field, moments.atoms, times))
            atoms = [(mass * power, place + move) for mass, place in atoms for power, move in powers]
        atoms.sort(key=lambda atom: atom[1].mid(), reverse=True)
        masses, damped, radius = [self.field.exact(0)], [self.field.exact(0)], self.field.exact(0)
        for mass, place in atoms:
            masses.append(masses[-1] + mass)
            damped.append(damped[-1] + mass * (-place).exp())
            radius = radius.max(place.rad())
        return [place.mid() for _, place in atoms], masses, damped, 2 * radius

    def value(self, x: Ball) -> Ball:
        """The integral at an exact x."""
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


def _powers(field: Field, atoms: Atoms, times: int) -> Iterator[tuple[Ball, Ball]]:
    """The multinomial values of `times` copies."""
    if times == 1:
        yield from atoms
        return
    if len(atoms) == 2:
        (first, up), (second, down) = atoms
        for j in range(times + 1):
            yield field.ball.bin_uiui(times, j) * first**j * second ** (times - j), up * j + down * (times - j)
        return
    for chosen in combinations_with_replacement(range(len(atoms)), times):
        mass, place, left = field.exact(1), field.exact(0), times
        for index, (one, where) in enumerate(atoms):
            count = chosen.count(index)
            if count:
                mass *= field.ball.bin_uiui(left, count) * one**count
                place += where * count
                left -= count
        yield mass, place
