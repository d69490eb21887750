"""g of a sum of variables whose moment generating functions are finite sums of e^(t shift) times a rational function:
exactly.

Their product is a sum of such terms again. For the term constant e^(t shift) (t + 1)^after t^at (t + 1/2)^-order the
integral
(1 / 2 pi i) of term e^(-t x) / (t (t + 1)) over Re t > 0 vanishes if d = shift - x <= 0 (close to the right); else
(close to the
left) it is constant times the sum of the residues at 0, -1 and -1/2. They cancel: it takes balls of enough digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dpcompose.proof.ball import Ball, Field, Polynomial
from dpcompose.proof.moments import Term


@dataclass(frozen=True)
class Residues:
    """The sum over terms of all the same order.

    Args:
        field: Where balls come from.
        terms: What M is the sum of.
    """

    field: Field
    terms: list[Term]

    def value(self, x: Ball) -> Ball:
        """g at an exact x."""
        total = self.field.exact(0)
        for term in self.terms:
            distance = term.shift - x
            if not distance <= 0:
                value = term.constant * self._residues(term, distance)
                # The integral is continuous in d, so where the sign of d is not known 0 is as good.
                total += value if distance > 0 else value.union(self.field.exact(0))
        return total

    def _residues(self, term: Term, distance: Ball) -> Ball:
        total, two = self.field.exact(0), self.field.exact(2)
        if term.at == 0:
            total += two**term.order
        if term.after == 0:
            total += (-1) ** ((term.at + term.order + 1) % 2) * two**term.order * (-distance).exp()
        if term.order > 0:
            total += (-distance / 2).exp() * self._middle(term.after, term.at, term.order)(distance)
        return total

    def _middle(self, after: int, at: int, order: int) -> Callable[[Ball], Ball]:
        """d -> the coefficient of s^(order - 1) in (s + 1/2)^(after - 1) (s - 1/2)^(at - 1) e^(d s), a polynomial."""
        key = after, at, order
        if key not in self._known:
            series = (self._series(after - 1, 1, order) * self._series(at - 1, -1, order)).truncate(order)
            factorial, values = self.field.exact(1), list[Ball]()
            for degree in range(order):
                factorial = factorial * max(degree, 1)
                values.append(series[order - 1 - degree] / factorial)
            self._known[key] = self.field.polynomial(values)
        return self._known[key]

    @cached_property
    def _known(self) -> dict[tuple[int, int, int], Polynomial]:
        return {}

    def _series(self, power: int, sign: int, length: int) -> Polynomial:
        """(s + sign / 2)^power to that many coefficients, power >= -1."""
        if power < 0:
            return self.field.polynomial([2 * sign * (-2 * sign) ** degree for degree in range(length)])
        half = self.field.exact(0.5 * sign)
        count = min(power + 1, length)
        return self.field.polynomial(
            [self.field.ball.bin_uiui(power, degree) * half ** (power - degree) for degree in range(count)]
        )
