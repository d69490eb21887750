"""The moments of the discrete Gaussian loss in balls: a ratio of theta series, with bounds on the omitted terms.

M(t) = e^(t (t + 1) D^2 / (2 s^2)) theta(t D) / theta(0), where theta(v) is the sum over integers x of
e^(-(x + v)^2 / (2 s^2)). By Poisson summation theta(v) is s sqrt(2 pi) times the sum over m of
e^(-c m^2 + 2 pi i m v), c = 2 pi^2 s^2.

At t = order + iu the modulus of a term of M, up to e^(order (order + 1) D^2 / (2 s^2)) / theta(0), is
e^(-(x + order D)^2 / (2 s^2)) in the first series, and e^(-c (m + u D / (2 pi s^2))^2) in the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.proof.ball import Ball, Disc
from dpcompose.proof.moments import BallLattice, Moments

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
        return lambda u: (scale * (-((u * self.shift / self.sigma) ** 2) / 2).exp()).min(self.field.exact(1))

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
        scale, turn = self.shift**2 / (2 * self.sigma**2), self.field.disc(0, 2 * self.field.pi * self.shift)
        reach, cut = self._cut(self._damping)
        center = -round(float((t.imag * self.shift / (2 * self.field.pi * self.sigma**2)).mid()))
        base = t * (t + 1) * scale
        value = sum(
            ((base - self._damping * m**2 + turn * t * m).exp() for m in range(center - reach, center + reach + 1)),
            self.field.disc(0),
        )
        plain = 1 + 2 * sum(((-self._damping * m**2).exp() for m in range(1, reach + 1)), self.field.exact(0))
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
        plain = 1 + 2 * sum(((-rate * x**2).exp() for x in range(1, reach + 1)), self.field.exact(0))
        raised = (t.real * (t.real + 1) * scale).exp()
        return self.field.padded(value, raised * cut) / (plain + cut * self.field.ball(0.5, 0.5))
