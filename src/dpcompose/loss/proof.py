"""A composition in one order whose profile is evaluated in ball arithmetic: every error is a theorem, none a model of rounding."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dpcompose.errors import UnsupportedError
from dpcompose.loss.base import Loss
from dpcompose.loss.product import Product
from dpcompose.numerics import ball, proof, route
from dpcompose.numerics.ball import Ball, Field
from dpcompose.numerics.bound import Bound, Certificate
from dpcompose.numerics.crossing import crossing
from dpcompose.numerics.enumeration import Enumeration, states
from dpcompose.numerics.moments import Moments
from dpcompose.numerics.normal import NormalMoments
from dpcompose.numerics.proof import ProvedLine
from dpcompose.numerics.rest import Factors

MOST_STATES, MOST_NODES, MOST_BITS = 20_000, 30_000, 4096
_CLOSED_BITS = 80


@dataclass(frozen=True)
class Reading:
    """lower <= delta(x) <= upper, with the budget of its width."""

    lower: Ball
    upper: Ball
    budget: tuple[tuple[str, Ball], ...] = ()


@dataclass(frozen=True)
class Curve:
    """delta(epsilon) as a function, where it can be trusted to be narrow, and how it is computed."""

    at: Callable[[Ball], Reading]
    method: str
    bits: int


class ProvedProduct(Product):
    """The sum of the given losses, each so many times: what `Product` says of it, proved."""

    @cached_property
    def _field(self) -> Field:
        return ball.field()

    @cached_property
    def _counted(self) -> list[tuple[Loss, int]]:
        counts: Counter[Loss] = Counter()
        for loss, times in self.group:
            counts[loss] += times
        return [(loss, times) for loss, times in counts.items() if times > 0]

    def _factors(self, above: bool) -> Factors:
        """The losses in balls at one end, all normal ones as one."""
        found: list[tuple[Moments, int]] = []
        variance = self._field.exact(0)
        for loss, times in self._counted:
            ends = loss.ball(self._field)
            moments = ends.above if above else ends.below
            if moments.normal is None:
                found.append((moments, times))
            else:
                variance += times * moments.normal
        return [(NormalMoments(self._field, variance), 1), *found] if variance > 0 else found
