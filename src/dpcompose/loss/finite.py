"""The moments of finitely many atoms, in balls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose.numerics.ball import Ball, Disc
from dpcompose.numerics.moments import Grid, Moments, Term, exponential_sums


@dataclass(frozen=True)
class FiniteMoments(Moments):
    """M(t) = sum of mass e^(t place).

    Args:
        listed: (mass, place) of every atom on the real line, at least one.
        outside: The mass at +infinity.
        lattice: The lattice of the places, if they lie on one.
        doubt: What `vague` says.
    """

    listed: tuple[tuple[Ball, Ball], ...]
    outside: Ball
    lattice: Grid | None
    doubt: tuple[float, float]

    @property
    def infinite(self) -> Ball:
        return self.outside

    @property
    def mass(self) -> Ball:
        return sum((mass for mass, _ in self.listed), self.field.exact(0))

    @property
    def other_mass(self) -> Ball:
        return sum((mass * (-place).exp() for mass, place in self.listed), self.field.exact(0))

    @property
    def largest(self) -> Ball:
        best = self.listed[0][1]
        for _, place in self.listed:
            best = best.max(place)
        return best

    @property
    def smallest(self) -> Ball:
        best = self.listed[0][1]
        for _, place in self.listed:
            best = best.min(place)
        return best

    @property
    def grid(self) -> Grid | None:
        return self.lattice

    @property
    def terms(self) -> Sequence[Term]:
        return [Term(mass, place) for mass, place in self.listed]

    @property
    def effort(self) -> float:
        return 20.0 + len(self.listed)

    @property
    def vague(self) -> tuple[float, float]:
        return self.doubt

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        found: list[Disc] = []
        for frequency in frequencies:
            t = self.field.disc(order, frequency)
            found.append(sum((mass * (t * place).exp() for mass, place in self.listed), self.field.disc(0)))
        return found

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        logs = [self.field.disc(mass.log() + order * place) for mass, place in self.listed]
        return exponential_sums(self.field, logs, [self.field.disc(0, step * place) for _, place in self.listed], count)
