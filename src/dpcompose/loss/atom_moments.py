"""Moments in balls of finitely many atoms, of losses on [-epsilon, epsilon] and of the discrete Gaussian.

Finitely many atoms in balls: their exact masses, where a formula has them, and their moments.

The moments of the losses in closed form in balls: those on [-epsilon, epsilon], and the discrete Gaussian's.

The first combine e^(t epsilon) and e^(-(t + 1) epsilon). The last is a ratio of theta series, with bounds on the
omitted terms: M(t) = e^(t (t + 1) D^2 / (2 s^2)) theta(t D) / theta(0), where theta(v) is the sum over integers x of
e^(-(x + v)^2 / (2 s^2)). By Poisson summation theta(v) is s sqrt(2 pi) times the sum over m of
e^(-c m^2 + 2 pi i m v), c = 2 pi^2 s^2.

At t = order + iu the modulus of a term of M, up to e^(order (order + 1) D^2 / (2 s^2)) / theta(0), is
e^(-(x + order D)^2 / (2 s^2)) in the first series, and e^(-c (m + u D / (2 pi s^2))^2) in the second.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.contour import Lattice
from dpcompose.proof import Ball, BallLattice, Disc, Field, Moments, Term, exponential_sums


def by_formula(
    field: Field,
    outcomes: Sequence[tuple[Ball, Ball]],
    grid: BallLattice | None,
    unplaced_mass: float,
) -> AtomicMoments:
    """The atoms whose masses under P and Q a law gives exactly; `unplaced_mass` counts as infinite loss."""
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
    """Unary encoding of two inputs, in the two bits where they differ.

    Under one input the first bit is reported as 1 with probability `keep` and the second with `flip`; under the other
    input it is the other way round.
    """

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


@dataclass(frozen=True)
class TwoTermMoments(Moments):
    """A member says how the two exponentials are combined.

    Args:
        epsilon: The largest loss, > 0.
    """

    epsilon: Ball

    @abstractmethod
    def _combined(self, t: Disc, up: Disc, down: Disc) -> Disc:
        """M(t) from up = e^(t epsilon) and down = e^(-(t + 1) epsilon)."""

    @property
    def largest(self) -> Ball:
        return self.epsilon

    @property
    def smallest(self) -> Ball:
        return -self.epsilon

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        points = (self.field.disc(order, frequency) for frequency in frequencies)
        return [
            self._combined(t, (t * self.epsilon).exp(), (-(t + 1) * self.epsilon).exp())
            for t in points
        ]

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        start, turn = self.field.disc(order) * self.epsilon, self.field.disc(0, step * self.epsilon)
        up = self.field.powers(start.exp(), turn.exp(), count)
        down = self.field.powers((-start - self.epsilon).exp(), (-turn).exp(), count)
        return [
            self._combined(self.field.disc(order, step * j), up[j], down[j]) for j in range(count)
        ]


@dataclass(frozen=True)
class TwoPointMoments(TwoTermMoments):
    """`copies` of the loss of randomized response.

    It is epsilon with probability (1 - delta) / (1 + e^-epsilon), infinite with delta, and -epsilon else.
    """

    delta: Ball
    copies: int

    @property
    def infinite(self) -> Ball:
        return self.delta if self.copies == 1 else 1 - (1 - self.delta) ** self.copies

    @property
    def largest(self) -> Ball:
        return self.copies * self.epsilon

    @property
    def smallest(self) -> Ball:
        return -self.copies * self.epsilon

    @property
    def grid(self) -> BallLattice | None:
        return (
            BallLattice(2 * self.epsilon, self.copies * self.epsilon) if self.epsilon > 0 else None
        )

    @property
    def terms(self) -> list[Term]:
        up, down = ((1 - self.delta) / (1 + (sign * self.epsilon).exp()) for sign in (-1, 1))
        binomial, n = self.field.ball.bin_uiui, self.copies
        return [
            Term(binomial(n, j) * up**j * down ** (n - j), self.epsilon * (2 * j - n))
            for j in range(n + 1)
        ]

    def half_circle(self, order: float) -> Callable[[Ball], Ball]:
        """See `Moments.half_circle`: the modulus itself, since it falls all the way up to u = pi / (2 epsilon).

        |M(order + iu) / M(order)|^2 = 1 - sin(u epsilon)^2 / cosh((order + 1/2) epsilon)^2 for one copy.
        """
        fall = ((order + self.field.exact(0.5)) * self.epsilon).sech() ** 2
        return lambda frequency: (
            self.field.positive(1 - fall * (frequency * self.epsilon).sin() ** 2).sqrt()
            ** self.copies
        )

    def _combined(self, t: Disc, up: Disc, down: Disc) -> Disc:
        one = (1 - self.delta) * (up + down) / (1 + (-self.epsilon).exp())
        return one if self.copies == 1 else one**self.copies


@dataclass(frozen=True)
class LaplaceMoments(TwoTermMoments):
    """M = ((t + 1) e^(t epsilon) + t e^(-(t + 1) epsilon)) / (2 t + 1).

    The loss has atoms at both ends, and the density e^((l - epsilon) / 2) / 4 between them.
    """

    @property
    def terms(self) -> list[Term]:
        half = self.field.exact(0.5)
        return [
            Term(half, self.epsilon, after=1, order=1),
            Term(half * (-self.epsilon).exp(), -self.epsilon, at=1, order=1),
        ]

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        """A bound on |phi(u)| from the atoms and the tilted density. The density is monotone, so that its transform is
        at most twice its largest value over u."""
        double = 2 * self.field.exact(order) + 1
        far = (-double * self.epsilon).exp()
        whole = (1 + far) / 2 + (1 - far) / (2 * double)
        return lambda frequency: ((1 + far + 1 / frequency) / (2 * whole)).min(self.field.exact(1))

    def profile(self, x: Ball) -> Ball:
        return -((x - self.epsilon) / 2).min(x).min(self.field.exact(0)).expm1()

    def _combined(self, t: Disc, up: Disc, down: Disc) -> Disc:
        return ((t + 1) * up + t * down) / (2 * t + 1)


@dataclass(frozen=True)
class BoundedRangeMoments(TwoTermMoments):
    """M = (e^(t epsilon) - e^(-(t + 1) epsilon)) / ((2 t + 1) (1 - e^-epsilon)).

    The loss has the density e^((l - epsilon) / 2) / (2 (1 - e^-epsilon)).
    """

    @property
    def terms(self) -> list[Term]:
        density = 1 / (-2 * (-self.epsilon).expm1())
        return [
            Term(density, self.epsilon, order=1),
            Term(-density * (-self.epsilon).exp(), -self.epsilon, order=1),
        ]

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        """A bound on |phi(u)|: |sinh(a epsilon)| is at most cosh of the real part, and |a| is at least u, where a = t +
        1/2."""
        half = self.field.exact(order) + 0.5
        return lambda frequency: (half * (half * self.epsilon).coth() / frequency).min(
            self.field.exact(1)
        )

    def profile(self, x: Ball) -> Ball:
        """The privacy profile g(x); for negative x by symmetry: g(x) = 1 - e^x + e^x g(-x)."""
        size = abs(x)
        inner = ((size - self.epsilon) / 2).min(self.field.exact(0)).expm1() ** 2 / -(
            -self.epsilon
        ).expm1()
        return inner if x >= 0 else x.exp() * inner - x.expm1()

    def _combined(self, t: Disc, up: Disc, down: Disc) -> Disc:
        return (up - down) / ((2 * t + 1) * -(-self.epsilon).expm1())


_WIDE = 0.4


@dataclass(frozen=True)
class DiscreteGaussianMoments(Moments):
    """The loss (D^2 - 2 D x) / (2 s^2) of x with probability proportional to e^(-x^2 / (2 s^2)).

    Args:
        sigma: s, > 0.
        shift: D, >= 1.
    """

    sigma: Ball
    shift: int

    @property
    def grid(self) -> BallLattice:
        spacing = self.shift / self.sigma**2
        return BallLattice(spacing, spacing * self.shift / 2)

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        term = self._dual if self.sigma > _WIDE else self._direct
        return [term(self.field.disc(order, frequency)) for frequency in frequencies]

    def half_circle(self, order: float) -> Callable[[Ball], Ball]:
        """A bound for 0 <= u D <= pi s^2.

        The terms m = r and m = -1 - r, r >= 0, are at most e^(-(u D)^2 / (2 s^2) - c r^2), and M(order) is at least
        1 - 2 sum e^(-c m^2).
        """
        ratio = (-self._damping).exp()
        rest = ratio / (1 - ratio)
        if not rest < 0.25:
            return lambda _: self.field.exact(1)
        scale = 2 * (1 + rest) / (1 - 2 * rest)
        return lambda u: (scale * (-((u * self.shift / self.sigma) ** 2) / 2).exp()).min(
            self.field.exact(1)
        )

    @property
    def _damping(self) -> Ball:
        return 2 * (self.field.pi * self.sigma) ** 2

    def _cut(self, rate: Ball) -> tuple[int, Ball]:
        """R, and a bound on the sum of e^(-rate d^2) over the points beyond R on both sides.

        They are one apart, and the first on either side is at a distance of at least R + 0.4.
        """
        reach = math.isqrt(math.ceil((self.field.bits + 10) * math.log(2) / float(rate.mid()))) + 1
        start = reach + self.field.exact(0.4)
        return reach, 2 * (-rate * start**2).exp() / -(-2 * rate * start).expm1()

    def _dual(self, t: Disc) -> Disc:
        scale, turn = (
            self.shift**2 / (2 * self.sigma**2),
            self.field.disc(0, 2 * self.field.pi * self.shift),
        )
        reach, cut = self._cut(self._damping)
        center = -round(float((t.imag * self.shift / (2 * self.field.pi * self.sigma**2)).mid()))
        base = t * (t + 1) * scale
        value = sum(
            (
                (base - self._damping * m**2 + turn * t * m).exp()
                for m in range(center - reach, center + reach + 1)
            ),
            self.field.disc(0),
        )
        plain = 1 + 2 * sum(
            ((-self._damping * m**2).exp() for m in range(1, reach + 1)), self.field.exact(0)
        )
        raised = (t.real * (t.real + 1) * scale).exp()
        return self.field.padded(value, raised * cut) / (plain + cut * self.field.ball(0.5, 0.5))

    def _direct(self, t: Disc) -> Disc:
        scale, rate = self.shift**2 / (2 * self.sigma**2), 1 / (2 * self.sigma**2)
        reach, cut = self._cut(rate)
        center = -round(float((t.real * self.shift).mid()))
        value = sum(
            (
                (t * scale - (2 * t * self.shift * x + x**2) * rate).exp()
                for x in range(center - reach, center + reach + 1)
            ),
            self.field.disc(0),
        )
        plain = 1 + 2 * sum(
            ((-rate * x**2).exp() for x in range(1, reach + 1)), self.field.exact(0)
        )
        raised = (t.real * (t.real + 1) * scale).exp()
        return self.field.padded(value, raised * cut) / (plain + cut * self.field.ball(0.5, 0.5))
