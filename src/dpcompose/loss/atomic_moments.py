"""Finitely many atoms in balls: their exact masses, where a formula has them, and their moments."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from dpcompose.contour import Lattice
from dpcompose.proof import Ball, BallLattice, Disc, Field, Moments, Term, exponential_sums


def by_formula(
    field: Field,
    outcomes: Sequence[tuple[Ball, Ball]],
    grid: BallLattice | None,
    unplaced_mass: float,
) -> AtomicMoments:
    """Exact masses under P and Q; `unplaced_mass` counts as infinite."""
    listed = tuple((p, (p / q).log()) for p, q in outcomes if p > 0 and q > 0)
    outside = sum((p for p, q in outcomes if q.is_zero()), field.exact(unplaced_mass))
    return AtomicMoments(field, listed, outside, grid, (0.0, 0.0))


def by_floats(
    field: Field,
    listed: Sequence[tuple[Ball, float]],
    outside: Sequence[float],
    lattice: Lattice | None,
    *,
    relative_error: float,
    error: float,
    side: int,
    unplaced_mass: float,
) -> AtomicMoments:
    """Masses under P good to `relative_error`, losses good to `error`, put on the lattice if there is one.

    Args:
        field: Where balls come from.
        listed: (mass, loss) of every finite loss.
        outside: The masses of infinite losses.
        lattice: The lattice of the losses, if they lie on one.
        relative_error: The relative error of the masses.
        error: The absolute error of the losses.
        side: -1 for the least, 1 for the largest infinite mass.
        unplaced_mass: What counts as infinite at the upper end.
    """
    exact, largest_error, atoms = field.exact, error, list[tuple[Ball, Ball]]()
    for mass, loss in listed:
        place = exact(loss)
        if lattice is not None:
            place = exact(lattice.offset) + round(
                (loss - lattice.offset) / lattice.spacing
            ) * exact(lattice.spacing)
            largest_error = max(largest_error, field.up(exact(error) + abs(place - exact(loss))))
        atoms.append((mass, place))
    spread, whole = 1 + exact(relative_error), sum((exact(mass) for mass in outside), exact(0))
    infinite = whole / spread if side < 0 else whole * spread + exact(unplaced_mass)
    grid = None if lattice is None else BallLattice(exact(lattice.spacing), exact(lattice.offset))
    return AtomicMoments(field, tuple(atoms), infinite, grid, (relative_error, largest_error))


@dataclass(frozen=True)
class AtomicMoments(Moments):
    """M(t) = sum of mass e^(t place).

    Args:
        listed: (mass, place) of every atom on the real line.
        outside: The mass at +infinity.
        lattice: The lattice of the places, if they lie on one.
        errors: The relative error of the masses, and the absolute error of the places.
    """

    listed: tuple[tuple[Ball, Ball], ...]
    outside: Ball
    lattice: BallLattice | None
    errors: tuple[float, float]

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
        best = self.field.exact(-math.inf)
        for _, place in self.listed:
            best = best.max(place)
        return best

    @property
    def smallest(self) -> Ball:
        best = self.field.exact(math.inf)
        for _, place in self.listed:
            best = best.min(place)
        return best

    @property
    def grid(self) -> BallLattice | None:
        return self.lattice

    @property
    def terms(self) -> Sequence[Term]:
        return [Term(mass, place) for mass, place in self.listed]

    @property
    def effort(self) -> float:
        return 20.0 + len(self.listed)

    @property
    def stated_errors(self) -> tuple[float, float]:
        return self.errors

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        found: list[Disc] = []
        for frequency in frequencies:
            t = self.field.disc(order, frequency)
            found.append(
                sum((mass * (t * place).exp() for mass, place in self.listed), self.field.disc(0))
            )
        return found

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        logs = [self.field.disc(mass.log() + order * place) for mass, place in self.listed]
        return exponential_sums(
            self.field, logs, [self.field.disc(0, step * place) for _, place in self.listed], count
        )


Outcomes = list[tuple[Ball, Ball]]


class AtomLaw(ABC):
    """Two distributions on common outcomes, at any precision."""

    @abstractmethod
    def outcomes(self, field: Field) -> Outcomes:
        """The masses under P and under Q of every outcome."""

    def grid(self, field: Field) -> BallLattice | None:
        """The lattice on which all finite ln(P / Q) lie, if they do."""
        return None


@dataclass(frozen=True)
class GivenLaw(AtomLaw):
    """Masses that are exactly these floats."""

    upper: tuple[float, ...]
    lower: tuple[float, ...]

    def outcomes(self, field: Field) -> Outcomes:
        return [
            (field.exact(p), field.exact(q)) for p, q in zip(self.upper, self.lower, strict=True)
        ]


@dataclass(frozen=True)
class ResponseLaw(AtomLaw):
    """Randomized response over `categories` >= 2: the truth e^epsilon times as likely as any other answer."""

    epsilon: float
    categories: int

    def outcomes(self, field: Field) -> Outcomes:
        odds = field.exact(self.epsilon).exp()
        whole = odds + (self.categories - 1)
        rest = (self.categories - 2) / whole
        return [(odds / whole, 1 / whole), (rest, rest), (1 / whole, odds / whole)]

    def grid(self, field: Field) -> BallLattice:
        return BallLattice(field.exact(self.epsilon), field.exact(0))


@dataclass(frozen=True)
class PromiseLaw(AtomLaw):
    """The pair that dominates every (epsilon, delta)-private mechanism."""

    epsilon: float
    delta: float

    def outcomes(self, field: Field) -> Outcomes:
        delta, odds = field.exact(self.delta), field.exact(self.epsilon).exp()
        high, low = (1 - delta) * odds / (1 + odds), (1 - delta) / (1 + odds)
        return [(high, low), (low, high), (delta, field.exact(0)), (field.exact(0), delta)]

    def grid(self, field: Field) -> BallLattice | None:
        epsilon = field.exact(self.epsilon)
        return BallLattice(2 * epsilon, epsilon) if self.epsilon > 0 else None


@dataclass(frozen=True)
class DiscreteLaplaceLaw(AtomLaw):
    """Noise like e^(-|x| / scale) on the integers, against itself moved by `shift`: outcomes merged by their ratio."""

    scale: float
    shift: int

    def outcomes(self, field: Field) -> Outcomes:
        rate = 1 / field.exact(self.scale)
        end, inside = 1 / (1 + (-rate).exp()), (rate / 2).tanh()
        middle = [inside * (-rate * x).exp() for x in range(1, self.shift)]
        masses = [end, *middle, end * (-rate * self.shift).exp()]
        return list(zip(masses, reversed(masses), strict=True))

    def grid(self, field: Field) -> BallLattice:
        rate = 1 / field.exact(self.scale)
        return BallLattice(2 * rate, rate * self.shift)


@dataclass(frozen=True)
class EncodingLaw(AtomLaw):
    """Two bits, one reported as 1 with probability `keep` and one with `flip`, against the same turned around."""

    keep: float
    flip: float

    def outcomes(self, field: Field) -> Outcomes:
        keep, flip = field.exact(self.keep), field.exact(self.flip)
        more, less, rest = (
            keep * (1 - flip),
            flip * (1 - keep),
            keep * flip + (1 - keep) * (1 - flip),
        )
        return [(more, less), (rest, rest), (less, more)]

    def grid(self, field: Field) -> BallLattice:
        (more, less), *_ = self.outcomes(field)
        return BallLattice((more / less).log(), field.exact(0))


@dataclass(frozen=True)
class ReversedLaw(AtomLaw):
    """Q against P."""

    law: AtomLaw

    def outcomes(self, field: Field) -> Outcomes:
        return [(q, p) for p, q in self.law.outcomes(field)]

    def grid(self, field: Field) -> BallLattice | None:
        grid = self.law.grid(field)
        return None if grid is None else BallLattice(grid.spacing, -grid.offset)


@dataclass(frozen=True)
class SampledLaw(AtomLaw):
    """(1 - rate) Q + rate P against Q if `remove`, else P against (1 - rate) P + rate Q."""

    law: AtomLaw
    rate: float
    remove: bool

    def outcomes(self, field: Field) -> Outcomes:
        rate = field.exact(self.rate)
        if self.remove:
            return [((1 - rate) * q + rate * p, q) for p, q in self.law.outcomes(field)]
        return [(p, (1 - rate) * p + rate * q) for p, q in self.law.outcomes(field)]
