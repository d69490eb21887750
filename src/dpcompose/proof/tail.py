"""A bound on the tail of a vertical line, the sum over all nodes beyond a frequency, in ball arithmetic.

For one variable phi(u) = M(order + iu) / M(order) and f = |phi|^2. Two bounds hold from an edge to the next: the
variable's own, which holds for ever after, and that from the values at the two edges: f is the characteristic function
of a symmetrized variable of variance 2 v, so |f''| <= 2 v, and on a block of width D it is at most
max(f at its ends) + v D^2 / 4. The tilted variance is bounded by l^2 <= 2 (cosh(h l) - 1) / h^2:
v <= (2 / h^2) (sqrt(M(order + h) M(order - h)) / M(order) - 1).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dpcompose.contour import shortened
from dpcompose.proof.ball import Ball, Field
from dpcompose.proof.moments import Factors, Moments

_RATIO = 1.25
_STRIDES = (0, 2, 5, 9, 14, 20, 27, 35, 44)


@dataclass(frozen=True)
class TailBound:
    """The far part of the line through `order` for a sum of independent variables, relative to M(order).

    Args:
        field: Where balls come from.
        factors: The variables with their counts.
        order: The real part of the line.
        variance: Roughly the tilted variance of the sum: decides widths, bounds nothing.
        magnitude: log2 of the largest exponent that occurs.
        circle: Whether the line is a circle, so that only frequencies up to half of it matter.
    """

    field: Field
    factors: Factors
    order: float
    variance: float
    magnitude: float
    circle: bool = False

    def beyond(self, edge: Ball, step: Ball, enough: Ball) -> Ball:
        """A bound on step times the sum of |M(order + iu)| / (M(order) u^2) over nodes u = edge, edge + step, ...

        Args:
            edge: The first node.
            step: The distance of the nodes.
            enough: A value that need not be improved on.
        """
        with self.field.precision(self._bits):
            last, stride = self.field.exact(math.inf), 0
            for stride in _STRIDES:
                end = edge * self.field.exact(_RATIO) ** stride
                last = self._envelope(end).exp() * (1 / end + step / end**2)
                if last <= enough / 2:
                    break
            return last + self._blocks(
                [edge * self.field.exact(_RATIO) ** n for n in range(stride + 1)], step
            )

    def reach(self, enough: Ball, *, limit: float) -> float | None:
        """The first frequency up to `limit`, by quarters, from which the variables' own bounds leave `enough`."""
        with self.field.precision(self._bits):
            frequency = 1.0 / math.sqrt(self.variance)
            while frequency <= limit:
                end = self.field.exact(frequency)
                if self._envelope(end).exp() / end <= enough:
                    return frequency
                frequency *= _RATIO
        return None

    def within(self, edges: Sequence[Ball]) -> list[Ball]:
        """For each edge but the last, a bound on |M(order + iu)| / M(order) from there to the next."""
        with self.field.precision(self._bits):
            total = [self.field.exact(0)] * (len(edges) - 1)
            for index, (_, times) in enumerate(self.factors):
                shares = [square.log() / 2 for square in self._squares(index, edges)]
                total = [log + times * share for log, share in zip(total, shares, strict=True)]
            return [log.exp() for log in total]

    def _blocks(self, edges: Sequence[Ball], step: Ball) -> Ball:
        total = self.field.exact(0)
        for bound, low, high in zip(self.within(edges), edges, edges[1:], strict=False):
            total += bound * (1 / low - 1 / high + step / low**2)
        return total

    def _envelope(self, edge: Ball) -> Ball:
        """log of a bound that holds from `edge` on."""
        return sum(
            (
                times * decay(edge).log()
                for decay, (_, times) in zip(self._decays, self.factors, strict=True)
            ),
            self.field.exact(0),
        )

    @property
    def _bits(self) -> int:
        """Digits enough to tell each |phi| from 1 as far as its power matters."""
        return min(
            self.field.bits,
            64 + sum(times for _, times in self.factors).bit_length() + math.ceil(self.magnitude),
        )

    @cached_property
    def _decays(self) -> list[Callable[[Ball], Ball]]:
        if self.circle:
            return [moments.half_circle(self.order) for moments, _ in self.factors]
        return [moments.decay(self.order) for moments, _ in self.factors]

    def _squares(self, index: int, edges: Sequence[Ball]) -> list[Ball]:
        """Bounds on f of one variable between the edges."""
        moments, times = self.factors[index]
        whole = moments.at(self.order, [self.field.exact(0)])[0].real
        values = [(abs(value) / whole) ** 2 for value in moments.at(self.order, edges)]
        spread, decay = self._variance(moments, times, whole), self._decays[index]
        bounds: list[Ball] = []
        for n in range(len(edges) - 1):
            bent = values[n].max(values[n + 1]) + spread * (edges[n + 1] - edges[n]) ** 2 / 4
            bounds.append(bent.min(decay(edges[n]) ** 2).min(self.field.exact(1)).upper())
        return bounds

    def _variance(self, moments: Moments, times: int, whole: Ball) -> Ball:
        """An upper bound on the tilted variance, by the first h that cannot be halved with profit.

        It is infinite where order - h and order + h are no floats.
        """
        best = self.field.exact(math.inf)
        move = shortened(min(abs(self.order) / 2, 0.3 / math.sqrt(self.variance / times)), bits=12)
        for _ in range(12):
            if not (self.order + move) - self.order == move == self.order - (self.order - move):
                break
            up, down = (
                moments.at(self.order + side * move, [self.field.exact(0)])[0].real
                for side in (1, -1)
            )
            bound = (2 / self.field.exact(move) ** 2 * ((up * down).sqrt() / whole - 1)).upper()
            settled = not bound < 0.9 * best
            best, move = best.min(bound), move / 2
            if settled or bound <= 1.1 * self.variance / times:
                break
        return best
