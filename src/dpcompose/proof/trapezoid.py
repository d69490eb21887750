"""Moments of a function of a normal variable by trapezoid sums, with an error bound from a strip of
analyticity.

With X standard normal, M(t) = E e^(w(X) + t v(X)): w and v are real on the real line and analytic
for |Im x| < `limit`, and F(x) = e^(-x^2 / 2 + w(x) + order v(x)) has |F(x + iy)| <= growth(y) F(x),
growth increasing. On one side of the real line Im v >= 0, so that for t = order + iu, u >= 0, the
factor e^(iuv) is at most 1 there. So for every u the sum of step h over the middle of the strip
between 0 and y differs from M(t) by at most M(order) (1 + growth(y)) / (e^(pi y / h) - 1).

On the line Im x = c within the strip, the integral of |F e^(iuv)| is a bound on |M(order + iu)|
that decreases with u. It is bounded cell by cell. On each cell F lies between its values with the
extreme slopes, |F(x + ic)| is at most lift(x) F(x), and e^(-u Im v) is largest where Im v is
smallest.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from dpcompose.contour import remembered, shortened
from dpcompose.errors import UnsupportedError
from dpcompose.proof.ball import Ball, Disc
from dpcompose.proof.moments import Moments, exponential_sums

MOST_POINTS = 40_000
_HEIGHTS = (0.8, 0.4, 0.2, 0.1, 0.04, 0.015, 0.005)


@dataclass(frozen=True)
class Samples:
    """Terms of a trapezoid sum, with precision `bits`: the sum of e^(logs + iu values) is the
    moment generating function M(order + iu) up to `error` for every u >= 0.
    """

    logs: list[Disc]
    values: list[Disc]
    error: Ball
    bits: int


@dataclass(frozen=True)
class Cell:
    """An interval of the real line, and the integral of F over it."""

    center: Ball
    mass: Ball


class TrapezoidMoments(Moments):
    """Moments by trapezoid sums. A family defines w and v, the growth of F off the real line, and
    where log F becomes steeper than x^2 / 2.
    """

    @property
    @abstractmethod
    def _limit(self) -> Ball:
        """The half-width of the strip."""

    @property
    @abstractmethod
    def _side(self) -> int:
        """1 if Im v >= 0 above the real line, -1 if below."""

    @abstractmethod
    def _terms(self, x: Disc) -> tuple[Disc, Disc]:
        """Return w and v at x."""

    @abstractmethod
    def _growth(self, order: float, y: Ball) -> Ball:
        """Return an upper bound on |F(x + iy)| / F(x) and |F(x - iy)| / F(x) for all real x, 0 <= y
        < limit; increasing in y.
        """

    @abstractmethod
    def _slope(self, order: float, x: Ball) -> Ball:
        """Return the derivative of log F at real x."""

    @abstractmethod
    def _lift(self, order: float, x: Ball, y: Ball) -> Ball:
        """Return |F(x + i side y)| / F(x) at real x, 0 <= y < limit."""

    @abstractmethod
    def _centers(self, order: float) -> tuple[Ball, Ball]:
        """Return (a, b) such that the derivative of log F is at least a - x for x < a, and at most
        b - x for x > b.
        """

    def _valley(self, order: float, reach: float) -> tuple[float, float, Ball] | None:
        """Return (a, b, bound) such that F is at most `bound` from a to b, both at least `reach`
        away from where F is large; or None.
        """
        return None

    @property
    def effort(self) -> float:
        return 1000.0

    def at(self, order: float, frequencies: Sequence[Ball]) -> list[Disc]:
        samples, found = self._samples(order), list[Disc]()
        with self.field.precision(samples.bits):
            for frequency in frequencies:
                turn, total = self.field.disc(0, frequency), self.field.disc(0)
                for log, value in zip(samples.logs, samples.values, strict=True):
                    total += (log + turn * value).exp()
                found.append(self.field.padded(total, samples.error))
        return found

    def line(self, order: float, step: Ball, count: int) -> list[Disc]:
        samples = self._samples(order)
        with self.field.precision(samples.bits):
            turn = self.field.disc(0, step)
            sums = exponential_sums(
                self.field, samples.logs, [turn * value for value in samples.values], count
            )
            return [self.field.padded(value, samples.error) for value in sums]

    def decay(self, order: float) -> Callable[[Ball], Ball]:
        whole, (cells, outside) = self.real(order), self._cells(order)
        highest = min(float(self._limit.mid()), 8.0)
        while not self._growth(order, self.field.exact(0.8 * highest)) < math.exp(40):
            highest *= 0.8
        missing = whole.upper() - sum((cell.mass.lower() for cell in cells), self.field.exact(0))
        lines = [
            self._shifted(order, self.field.exact(shortened(share * highest, bits=20)), cells)
            for share in _HEIGHTS
        ]

        def bound(frequency: Ball) -> Ball:
            best = whole.upper()
            for lifts, turns, grown in lines:
                # At high frequencies the sum over cells is small; at low ones the decrease from the
                # known total is more accurate.
                total, change = grown * outside, (grown - 1) * missing
                for cell, lift, turn in zip(cells, lifts, turns, strict=True):
                    share = lift * (-frequency * turn).exp()
                    total += cell.mass * share
                    change += (share - 1) * (cell.mass.lower() if share < 1 else cell.mass)
                best = best.min(total.upper()).min((whole + change).upper())
            return (best / whole.lower()).upper()

        return bound

    # Sums

    def _samples(self, order: float) -> Samples:
        return self._sampled(order, self.field.bits)

    @remembered
    def _sampled(self, order: float, bits: int) -> Samples:
        digits = (bits + 8) * math.log(2)
        height = self._height(order, digits)
        grown = 1 + self._growth(order, self.field.exact(height))
        step = shortened(math.pi * height / (digits + float(grown.log().mid())), bits=20)
        # Off the real line the terms are larger than their sum, so extra bits are needed.
        extra = (
            math.ceil(
                float(self._growth(order, self.field.exact(height / 2)).log().mid()) / math.log(2)
            )
            + 4
        )
        bits += extra
        with self.field.precision(bits):
            logs, values, cut = self._along(order, height / 2, step, digits)
            logs, values, dropped = self._thinned(logs, values)
            error = grown / (self.field.pi * height / step).expm1()
            if not error < 0.5:
                raise UnsupportedError("proof=True", f"no quadrature is proved at order {order!r}")
            zero = sum((log.exp() for log in logs), self.field.disc(0))
            whole = (zero.real.abs_upper() + cut + dropped) / (1 - error)
            return Samples(logs, values, (error * whole + cut + dropped).upper(), bits)

    def _height(self, order: float, digits: float) -> float:
        """Return the height of the strip that needs the fewest points."""
        widest = min(0.97 * float(self._limit.mid()), 2 * math.sqrt(2 * digits))

        def cost(height: float) -> float:
            return (
                digits + float(self._growth(order, self.field.exact(height)).log().mid())
            ) / height

        return shortened(min((widest * 1.15**-i for i in range(40)), key=cost), bits=20)

    def _along(
        self, order: float, height: float, step: float, digits: float
    ) -> tuple[list[Disc], list[Disc], Ball]:
        """Return log (F step / sqrt(2 pi)) and v at the multiples of `step` on Im x = height, and a
        bound on the omitted terms.
        """
        exact, (left, right) = self.field.exact, self._centers(order)
        reach = math.sqrt(2 * (digits + float(self._growth(order, exact(height)).log().mid()))) + 1
        first, last = (
            math.floor((float(left.mid()) - reach) / step),
            math.ceil((float(right.mid()) + reach) / step),
        )
        scale = (step / (2 * self.field.pi).sqrt()).log()
        inside, omitted = self._stretches(order, reach, first, last + 1, step)
        logs, values = list[Disc](), list[Disc]()
        for j in inside:
            x = self.field.disc(exact(step) * j, exact(height) * self._side)
            weight, value = self._terms(x)
            logs.append(scale - x * x / 2 + weight + order * value)
            values.append(value)
        # To the left of `a` each term is at most e^(-step (a - x)) times the next one to its right;
        # likewise on the other side.
        cut = omitted * scale.exp()
        for j, slope in ((first, left - exact(step) * first), (last, exact(step) * last - right)):
            x = self.field.disc(exact(step) * j)
            weight, value = self._terms(x)
            cut += (scale + (weight + order * value - x * x / 2).real).exp() / (
                step * slope.lower()
            ).expm1()
        return logs, values, cut * self._growth(order, exact(height))

    def _stretches(
        self, order: float, reach: float, first: int, last: int, step: float
    ) -> tuple[list[int], Ball]:
        """Return the j from `first` to `last` for which [step j, step (j + 1)] is not entirely in a
        valley, and a bound for the others.

        The bound is the number of omitted intervals times a bound on F on them.
        """
        valley = self._valley(order, reach)
        if valley is None:
            low, high, floor = last, last, self.field.exact(0)
        else:
            low = max(math.ceil(valley[0] / step) + 1, first)
            high, floor = max(math.floor(valley[1] / step) - 1, low), valley[2]
        if not last - first - (high - low) <= MOST_POINTS:
            raise UnsupportedError(
                "proof=True", f"the quadrature at order {order!r} would need too many points"
            )
        return [*range(first, low), *range(high, last)], (high - low) * floor

    def _thinned(self, logs: list[Disc], values: list[Disc]) -> tuple[list[Disc], list[Disc], Ball]:
        """Return the terms without negligible ones, and a bound on the sum of the latter at any u."""
        least = max(float(log.real.mid()) for log in logs) - (self.field.bits + 20) * math.log(2)
        kept = [index for index, log in enumerate(logs) if not log.real < least]
        dropped = (len(logs) - len(kept)) * self.field.exact(least).exp()
        return [logs[index] for index in kept], [values[index] for index in kept], dropped

    def _cells(self, order: float) -> tuple[list[Cell], Ball]:
        """Return the intervals on which F is large, and a bound on the integral of F elsewhere,
        both divided by sqrt(2 pi).
        """
        exact, (left, right) = self.field.exact, self._centers(order)
        reach = math.sqrt(2 * self.field.bits * math.log(2)) + 1
        width = shortened(0.1 * min(1.0, float(self._limit.mid()) / 2), bits=12)
        first, last = (
            math.floor((float(left.mid()) - reach) / width),
            math.ceil((float(right.mid()) + reach) / width),
        )
        inside, omitted = self._stretches(order, reach, first, last, width)
        root, cells, half = (2 * self.field.pi).sqrt(), list[Cell](), self.field.ball(0, width / 2)
        for j in inside:
            middle = exact(width) * (j + 0.5)
            weight, value = self._terms(self.field.disc(middle))
            log = (
                (weight + order * value).real
                - middle * middle / 2
                + self._slope(order, middle + half) * half
            )
            cells.append(Cell(middle + half, log.exp() * width / root))
        outside = omitted * width
        for edge, slope in (
            (exact(width) * first, left - exact(width) * first),
            (exact(width) * last, exact(width) * last - right),
        ):
            weight, value = self._terms(self.field.disc(edge))
            outside += ((weight + order * value).real - edge * edge / 2).exp() / slope.lower()
        return cells, (outside / root).upper()

    def _shifted(
        self, order: float, height: Ball, cells: list[Cell]
    ) -> tuple[list[Ball], list[Ball], Ball]:
        """Return, on Im x = height, upper bounds on |F(x + iy)| / F(x) and lower bounds on Im v for
        each cell, and `growth` at that height.
        """
        lifts, turns = list[Ball](), list[Ball]()
        for cell in cells:
            _, value = self._terms(self.field.disc(cell.center, height * self._side))
            lifts.append(self._lift(order, cell.center, height).upper())
            turns.append(self.field.positive(value.imag).lower())
        return lifts, turns, self._growth(order, height).upper()
