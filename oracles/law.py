"""Privacy losses by their moment generating functions M(t) = E[e^{tL}; L finite], enclosed at complex arguments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import isqrt
from typing import Protocol

from flint import acb, acb_mat, arb, ctx

from oracles.atoms import Pair, losses
from oracles.ball import HALF, Number, ball, floor
from oracles.lattices import Builder
from oracles.residues import Flip, Laplace, Range, Term


class Law(Protocol):
    """One privacy loss."""

    @property
    def outside(self) -> arb:
        """The mass at infinity."""
        ...

    @property
    def largest(self) -> arb:
        """An upper bound of the finite losses, possibly infinite."""
        ...

    @property
    def steepest(self) -> float:
        """The largest order worth trying; what is above costs too much."""
        ...

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        """Balls around M(order + i step j) for j < count."""
        ...

    def envelope(self, order: float, frequency: float) -> arb:
        """A number that is at least |M(order + iu)| / M(order) for every u >= frequency."""
        ...


_ENTRIES = 1_000_000
"""At most so many balls of a matrix are kept at once."""


def exponential_sum(
    logs: Sequence[acb], values: Sequence[acb], step: float | arb, count: int
) -> list[acb]:
    """The sums of e^{log + i step j value} for j < count: one product of two matrices, j = row columns + column."""
    columns = isqrt(max(count - 1, 0)) + 1
    rows = (count + columns - 1) // columns
    total = acb_mat(rows, columns)
    block = max(_ENTRIES // (rows + columns), 1)
    for at in range(0, len(logs), block):
        part = logs[at : at + block]
        turns = [acb(0, ball(step)) * value for value in values[at : at + block]]
        left = acb_mat(
            [
                [(log + row * columns * turn).exp() for log, turn in zip(part, turns, strict=True)]
                for row in range(rows)
            ]
        )
        right = acb_mat([[(column * turn).exp() for column in range(columns)] for turn in turns])
        total += left * right
    return total.entries()[:count]


def padded(value: acb, error: arb) -> acb:
    """`value` with `error` added to the radius of both its parts."""
    slack = error * arb(0, 1)
    return value + acb(slack, slack)


@dataclass(frozen=True)
class Gaussian:
    """The loss N(mu^2/2, mu^2) with mu^2 = `square`."""

    square: Number

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        return arb.pos_inf()

    @property
    def steepest(self) -> float:
        return 1e6

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        half, points = ball(self.square) / 2, (acb(order, ball(step) * j) for j in range(count))
        return [(half * t * (t + 1)).exp() for t in points]

    def envelope(self, order: float, frequency: float) -> arb:
        return (-ball(self.square) * ball(frequency) ** 2 / 2).exp()


@dataclass(frozen=True)
class Terms:
    """A loss of `truth.residues`; only the part with a density decays, as a constant over the frequency."""

    loss: Laplace | Flip | Range

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        return ball(self.loss.epsilon)

    @property
    def steepest(self) -> float:
        return 1e6

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        terms = self.loss.terms()
        points = [acb(order, ball(step) * j) for j in range(count)]
        return [sum((_term(term, t) for term in terms), acb(0)) for t in points]

    def envelope(self, order: float, frequency: float) -> arb:
        up, down = self.loss.terms()
        whole = abs(_term(up, acb(order)) + _term(down, acb(order)))
        first, second = (term.constant * (ball(order) * term.shift).exp() for term in (up, down))
        if up.order == 0 or frequency == 0:
            return arb(1)
        if up.after == 0:  # both terms are constants over t + 1/2, and |t + 1/2| >= u
            return ((first + second) / ball(frequency) / whole).min(arb(1))
        # (t+1) / (t+1/2) = 1 + 1/(2t+1) and t / (t+1/2) = 1 - 1/(2t+1), the ones being the atoms
        far = ((first + second) / whole * (1 + 1 / (2 * ball(frequency)))).min(arb(1))
        turn = 2 * ball(frequency) * self.largest
        if not turn < arb.pi():
            return far
        # up to there 1 - |M / M(order)|^2 = E[1 - cos(u (L - L'))] is at least its part from different atoms
        near = (1 - 2 * first * second / whole**2 * (1 - turn.cos())).sqrt()
        edge = ((first + second) / whole * (1 + self.largest / arb.pi())).min(arb(1))
        return far.min(near.max(edge))


def _term(term: Term, t: acb) -> acb:
    power = (t + 1) ** term.after * t**term.at / (t + acb(0.5)) ** term.order
    return term.constant * (t * term.shift).exp() * power


@dataclass(frozen=True)
class Points:
    """The loss of a pair on a few points."""

    pair: Pair

    @property
    def outside(self) -> arb:
        return sum((above for above, below in self.pair() if below.is_zero()), arb(0))

    @property
    def largest(self) -> arb:
        best = arb.neg_inf()
        for loss, _ in losses(self.pair):
            best = best.max(loss)
        return best

    @property
    def steepest(self) -> float:
        return 1e6

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        atoms = losses(self.pair)
        logs = [acb(mass.log() + ball(order) * loss) for loss, mass in atoms]
        return exponential_sum(logs, [acb(loss) for loss, _ in atoms], step, count)

    def envelope(self, order: float, frequency: float) -> arb:
        return arb(1)


@dataclass(frozen=True)
class Lattice:
    """A loss on finitely many points of a lattice."""

    builder: Builder

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        lattice = self.builder()
        return lattice.start + lattice.spacing * (len(lattice.masses) - 1)

    @property
    def steepest(self) -> float:
        return 1e6

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        lattice = self.builder()
        values = [lattice.start + lattice.spacing * n for n in range(len(lattice.masses))]
        logs = [
            acb(mass.log() + ball(order) * loss)
            for loss, mass in zip(values, lattice.masses, strict=True)
        ]
        return exponential_sum(logs, [acb(value) for value in values], step, count)

    def envelope(self, order: float, frequency: float) -> arb:
        return arb(1)


@dataclass(frozen=True)
class DiscreteGaussian:
    """Mass ~ e^{-x^2 / (2 sigma^2)} on the integers, moved by `shift`: loss (shift^2 - 2 x shift) / (2 sigma^2)."""

    sigma: Number
    shift: int

    @property
    def outside(self) -> arb:
        return arb(0)

    @property
    def largest(self) -> arb:
        return arb.pos_inf()

    @property
    def steepest(self) -> float:
        return 1e6

    def moments(self, order: float, step: float | arb, count: int) -> list[acb]:
        """Poisson: sum of e^{-(x+a)^2/2v} = sqrt(2 pi v) sum of e^{-2 pi^2 v m^2 + 2 pi i m a}, a = t shift."""
        variance, reach, tail = ball(self.sigma) ** 2, *self._reach()
        half, turn = self.shift**2 / (2 * variance), 2 * arb.pi() * self.shift
        damping = [(m, -2 * (arb.pi() * m) ** 2 * variance) for m in range(-reach, reach + 1)]
        total = sum((log.exp() for _, log in damping), arb(0)) + tail * arb(0, 1)
        peak = (ball(order) * (ball(order) + 1) * half).exp()
        values = []
        for j in range(count):
            t = acb(order, ball(step) * j)
            center = -floor(t.imag * self.shift / (2 * arb.pi() * variance) + arb(0.5))
            value = acb(0)
            for m in range(center - reach, center + reach + 1):
                value += (
                    t * (t + 1) * half - 2 * (arb.pi() * m) ** 2 * variance + acb(0, m) * turn * t
                ).exp()
            values.append(padded(value, peak * tail) / total)
        return values

    def _reach(self) -> tuple[int, arb]:
        """How many m beside the largest term are enough; a bound on e^{-(2 pi v m + u shift)^2 / 2v} beyond."""
        scale, reach = 2 * arb.pi() ** 2 * ball(self.sigma) ** 2, 1
        while not (-scale * (reach + ball(HALF)) ** 2).exp() < arb(2) ** -(ctx.prec + 10):
            reach += 1
        first, ratio = (-scale * (reach + ball(HALF)) ** 2).exp(), (-scale * 2 * (reach + 1)).exp()
        return reach, 2 * first / (1 - ratio)

    def envelope(self, order: float, frequency: float) -> arb:
        return arb(1)

    def inner_envelope(self, order: float, frequency: float) -> arb:
        """At least |M(order + iu)| / M(order) for frequency <= u <= pi sigma^2 / shift, half the period, v = sigma^2.

        Poisson: sum of e^{-(x+a)^2/2v} = sqrt(2 pi v) sum of e^{-2 pi^2 v m^2 + 2 pi i m a}, a = t shift. Up to one
        factor, |M(order + iu)| <= sum over m of e^{-(2 pi v m + u shift)^2 / 2v} <= 2 e^{-(frequency shift)^2 / 2v}
        sum over r >= 0 of e^{-2 pi^2 v r^2}, and M(order) >= 1 - 2 sum over m >= 1 of e^{-2 pi^2 v m^2}.
        """
        variance = ball(self.sigma) ** 2
        ratio = (-2 * arb.pi() ** 2 * variance).exp()
        if not ratio < arb(1) / 8:
            return arb(1)
        first = (-((ball(frequency) * self.shift) ** 2) / (2 * variance)).exp()
        return (2 * first / (1 - ratio) / (1 - 2 * ratio / (1 - ratio))).min(arb(1))
