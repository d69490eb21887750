"""Losses on [-epsilon, epsilon] in balls: their M(t) combines e^(t epsilon) and e^(-(t + 1) epsilon)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.proof.ball import Ball, Disc
from dpcompose.proof.moments import BallLattice, Moments, Term


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
        return [self._combined(t, (t * self.epsilon).exp(), (-(t + 1) * self.epsilon).exp()) for t in points]

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        start, turn = self.field.disc(order) * self.epsilon, self.field.disc(0, step * self.epsilon)
        up = self.field.powers(start.exp(), turn.exp(), count)
        down = self.field.powers((-start - self.epsilon).exp(), (-turn).exp(), count)
        return [self._combined(self.field.disc(order, step * j), up[j], down[j]) for j in range(count)]


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
        return BallLattice(2 * self.epsilon, self.copies * self.epsilon) if self.epsilon > 0 else None

    @property
    def terms(self) -> list[Term]:
        up, down = ((1 - self.delta) / (1 + (sign * self.epsilon).exp()) for sign in (-1, 1))
        binomial, n = self.field.ball.bin_uiui, self.copies
        return [Term(binomial(n, j) * up**j * down ** (n - j), self.epsilon * (2 * j - n)) for j in range(n + 1)]

    def half_circle(self, order: float) -> Callable[[Ball], Ball]:
        """|phi|^2 = 1 - sin(u epsilon)^2 / cosh((order + 1/2) epsilon)^2 falls up to u = pi / (2 epsilon)."""
        fall = ((order + self.field.exact(0.5)) * self.epsilon).sech() ** 2
        return lambda frequency: (
            self.field.positive(1 - fall * (frequency * self.epsilon).sin() ** 2).sqrt() ** self.copies
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
        """The atoms and the tilted density. It is monotone: its transform is at most twice its largest value over u."""
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
        return [Term(density, self.epsilon, order=1), Term(-density * (-self.epsilon).exp(), -self.epsilon, order=1)]

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        """|sinh(a epsilon)| is at most cosh of the real part, and |a| at least u, a = t + 1/2."""
        half = self.field.exact(order) + 0.5
        return lambda frequency: (half * (half * self.epsilon).coth() / frequency).min(self.field.exact(1))

    def profile(self, x: Ball) -> Ball:
        """For negative x by symmetry: g(x) = 1 - e^x + e^x g(-x)."""
        size = abs(x)
        inner = ((size - self.epsilon) / 2).min(self.field.exact(0)).expm1() ** 2 / -(-self.epsilon).expm1()
        return inner if x >= 0 else x.exp() * inner - x.expm1()

    def _combined(self, t: Disc, up: Disc, down: Disc) -> Disc:
        return (up - down) / ((2 * t + 1) * -(-self.epsilon).expm1())
