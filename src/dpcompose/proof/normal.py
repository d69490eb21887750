"""The normal variable of mean v / 2 and variance v, in balls."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.moments import Moments


@dataclass(frozen=True)
class NormalMoments(Moments):
    """M(t) = e^(v t (t + 1) / 2) with v = `variance` > 0.

    Reference: [BalleWang2018, Theorem 8]
    """

    variance: Ball

    @property
    def normal(self) -> Ball:
        return self.variance

    @property
    def reverse(self) -> NormalMoments:
        return self

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        points = (self.field.disc(order, frequency) for frequency in frequencies)
        return [(self.variance * t * (t + 1) / 2).exp() for t in points]

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        return lambda frequency: (-self.variance * frequency**2 / 2).exp()

    def profile(self, x: Ball) -> Ball:
        mu = self.variance.sqrt()
        return upper_tail(self.field, x / mu - mu / 2) - x.exp() * upper_tail(
            self.field, x / mu + mu / 2
        )


def upper_tail(field: Field, x: Ball) -> Ball:
    """P[N(0, 1) > x]."""
    return (x / field.exact(2).sqrt()).erfc() / 2
