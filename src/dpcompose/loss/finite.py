"""The moments of finitely many atoms, in balls."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose.contour.transform import Lattice
from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.moments import Grid, Moments, Term, exponential_sums


def by_formula(field: Field, outcomes: Sequence[tuple[Ball, Ball]], grid: Grid | None, lost: float) -> FiniteMoments:
    """Exact masses under P and Q; `lost` counts as infinite."""
    listed = tuple((p, (p / q).log()) for p, q in outcomes if p > 0 and q > 0)
    outside = sum((p for p, q in outcomes if q.is_zero()), field.exact(lost))
    return FiniteMoments(field, listed, outside, grid, (0.0, 0.0))


def by_floats(
    field: Field,
    listed: Sequence[tuple[Ball, float]],
    outside: Sequence[float],
    lattice: Lattice | None,
    fuzz: float,
    moved: float,
    side: int,
    lost: float,
) -> FiniteMoments:
    """Masses under P good to `fuzz`, losses good to `moved`, put on the lattice if there is one.

    Args:
        field: Where balls come from.
        listed: (mass, loss) of every finite loss.
        outside: The masses of infinite losses.
        lattice: The lattice of the losses, if they lie on one.
        fuzz: The relative error of the masses.
        moved: The absolute error of the losses.
        side: -1 for the least, 1 for the largest infinite mass.
        lost: What counts as infinite at the upper end.
    """
    exact, shaken, atoms = field.exact, moved, list[tuple[Ball, Ball]]()
    for mass, loss in listed:
        place = exact(loss)
        if lattice is not None:
            place = exact(lattice.offset) + round((loss - lattice.offset) / lattice.spacing) * exact(lattice.spacing)
            shaken = max(shaken, field.up(exact(moved) + abs(place - exact(loss))))
        atoms.append((mass, place))
    spread, whole = 1 + exact(fuzz), sum((exact(mass) for mass in outside), exact(0))
    infinite = whole / spread if side < 0 else whole * spread + exact(lost)
    grid = None if lattice is None else Grid(exact(lattice.spacing), exact(lattice.offset))
    return FiniteMoments(field, tuple(atoms), infinite, grid, (fuzz, shaken))


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
