"""Bounds on g(x) = E[(1 - e^(x - L))_+] from the line Re t = -1/2, halfway between the poles 0 and
-1; no moment of positive order is needed.

For L = log dP/dQ with P and Q of the same support, M(-1/2 + iu) is the transform of the measure
sqrt(P Q), of mass at most 1, and M(0) = M(-1) = 1. On this line 1 / (t (t + 1)) is the transform of
-min(1, e^(-y)), so g(x) = 1 - G(x) with
  G(x) = E min(1, e^(x - L)) = (e^(x / 2) / 2 pi) times the integral of M(t) e^(-iux) / (u^2 + 1/4)
  du.
By Poisson's formula the trapezoid sum of step h, W = 2 pi / h, is the sum over integers n of e^(-n
W / 2) G(x + n W), where
  G(x + n W) = 1 - g(x + n W) for n > 0,   G(x + n W) = e^(x + n W) (1 - g'(-x - n W)) for n < 0,
with g' that of the reverse order, (Q, P). With c = 1 / (e^(W / 2) - 1) the trapezoid sum is G(x) +
(1 + e^x) c - R,
  0 <= R <= c (g(x + W) + e^x g'(W - x)),
and g(x + W) is at most g(x), at most Chernoff's bound. The exact part of the aliases needs no long
period, so if large losses are rare, a few hundred nodes suffice.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

from dpcompose.contour import shortened
from dpcompose.errors import UnsupportedError
from dpcompose.proof.ball import Ball, Disc, Field
from dpcompose.proof.line import Enclosure, TailBound, powers_along
from dpcompose.proof.moments import Factors, kernel_peak, log_moment, summed

ORDER = -0.5
_NEAR = 0.125
"""The distance of the exponents by which the tilted variance is estimated."""
_ORDERS = [2.0 ** (exponent / 3) for exponent in range(-3, 42)]


@dataclass(frozen=True, kw_only=True)
class HalfwayLine:
    """A line with its nodes, from which the hockey-stick divergence g can be bounded at any x.

    Args:
        field: The field of balls.
        step: The distance of the nodes.
        main: The terms of the nodes at x = 0, as a polynomial in e^(-i step x).
        tail: A bound on the sum over omitted nodes, to be multiplied by e^(x / 2).
        chernoff: The Chernoff bounds on g of this order of the pairs, and of the reverse.
        nodes: The number of nodes.
    """

    field: Field
    step: Ball
    main: Callable[[Disc], Disc]
    tail: Ball
    chernoff: tuple[Chernoff, Chernoff]
    nodes: int
    name = "line halfway between the poles"

    def enclosure(self, x: Ball) -> Enclosure:
        """Return bounds on the hockey-stick divergence g(x), x exact."""
        half, zero = (x / 2).exp(), self.field.exact(0)
        period = 2 * self.field.pi / self.step
        share = 1 / (period / 2).expm1()
        whole = (
            self.main(self.field.disc(0, -self.step * x).exp()).real
            * self.step
            / (2 * self.field.pi)
        )
        value, tail = 1 - half * whole + (1 + x.exp()) * share, half * self.tail
        upper = self.field.positive((value + tail).upper())
        ours, theirs = self.chernoff
        above, below = ours.bound(x + period).min(upper), theirs.bound(period - x)
        aliasing = (share * (above + x.exp() * below)).upper()
        lower = self.field.positive((value - tail - aliasing).lower()).min(upper)
        return Enclosure(lower, upper, aliasing, 2 * tail.upper(), zero, 2 * value.rad())


@dataclass(frozen=True)
class Chernoff:
    """The Chernoff bound M(l) e^(-l x) l^l / (1 + l)^(1 + l) at several l, for a sum of variables
    of mass 1. M is the moment generating function.
    """

    field: Field
    factors: Factors

    def order(self, x: float) -> float:
        """Return the l with the smallest bound at x."""
        return min(self._logs, key=lambda row: float(row[1].mid()) - row[0] * x)[0]

    def bound(self, x: Ball) -> Ball:
        """Return an upper bound on the hockey-stick divergence g(x)."""
        if x >= summed(self.field, self.factors, lambda moments: moments.largest):
            return self.field.exact(0)
        best = self.field.exact(0)
        for order, log in self._logs if x > 0 else ():
            best = best.min((log - order * x).upper())
        return best.exp().upper()

    @cached_property
    def _logs(self) -> list[tuple[float, Ball]]:
        found: list[tuple[float, Ball]] = []
        with self.field.precision(96):
            for order in _ORDERS:
                try:
                    log = log_moment(self.field, self.factors, order)
                except UnsupportedError:
                    break
                log += kernel_peak(self.field.exact(order))
                found.append((order, log))
                if not log < 1e5:
                    break
        return found


@dataclass(frozen=True)
class Halfway:
    """The lines at -1/2 of a sum of variables whose reverses are all known.

    Args:
        field: The field of balls.
        factors: The variables with their counts, enclosed at the working precision.
        digits: Minus the logarithm of the relative width that errors may cause.
    """

    field: Field
    factors: Callable[[], Factors]
    digits: float

    @cached_property
    def _chernoff(self) -> tuple[Chernoff, Chernoff]:
        with self.field.precision(96):
            ours = self.factors()
            theirs = [
                (moments.reverse, times) for moments, times in ours if moments.reverse is not None
            ]
            return Chernoff(self.field, ours), Chernoff(self.field, theirs)

    def line_for(self, x: float, goal: float, *, most_nodes: int) -> tuple[HalfwayLine, int] | None:
        """Return the line for the hockey-stick divergence g close to x, and its precision in bits;
        it is placed again if g turns out far below `goal`.

        None if it needs too many nodes.
        """
        while True:
            bits = self.bits(x, goal)
            with self.field.precision(bits):
                line = self.line(x, goal, most_nodes=most_nodes)
                if line is None:
                    return None
                upper = self.field.up(line.enclosure(self.field.exact(x)).upper)
            if not 1e-300 < upper < 0.01 * goal:
                return line, bits
            goal = upper

    def line(self, x: float, goal: float, *, most_nodes: int) -> HalfwayLine | None:
        """Return the line for a hockey-stick divergence g of about `goal`, at the working
        precision; None if it needs too many nodes.
        """
        need, period = self.digits - math.log(goal), self._period(x, goal)
        tail = TailBound(self.field, self.factors(), ORDER, self._variance, 64.0)
        enough = (self.field.exact(-need - max(x, 0.0) / 2)).exp()
        last = tail.reach(enough, limit=most_nodes * 2 * math.pi / period)
        if last is None:
            return None
        step = self.field.exact(shortened(2 * math.pi / period, bits=24))
        return self._drawn(step, math.ceil(last / float(step)) + 2, tail, enough)

    def order(self, x: float) -> float:
        """Return the order of the best Chernoff bound, an estimate of the relative slope of the
        hockey-stick divergence g at x.
        """
        return self._chernoff[0].order(x)

    def _drawn(self, step: Ball, count: int, tail: TailBound, enough: Ball) -> HalfwayLine:
        powers = powers_along(self.field, tail.factors, ORDER, step, count)
        quarter = self.field.exact(0.25)
        main = [
            (2 if j else 1) * power / ((step * j) ** 2 + quarter) for j, power in enumerate(powers)
        ]
        beyond = powers[0].real * tail.beyond(step * count, step, enough) / self.field.pi
        return HalfwayLine(
            field=self.field,
            step=step,
            main=self.field.power_sum(main),
            tail=beyond.upper(),
            chernoff=self._chernoff,
            nodes=count,
        )

    def bits(self, x: float, goal: float) -> int:
        """Return the working precision in bits; it covers absolute errors, powers and the short
        period.
        """
        copies = sum(times for _, times in self._chernoff[0].factors)
        lost = (
            self.digits - math.log(goal) + max(x, 0.0) - math.log(min(self._period(x, goal), 1.0))
        )
        return math.ceil(lost / math.log(2)) + 2 * copies.bit_length() + 40

    def _period(self, x: float, goal: float) -> float:
        """Return the shortest period whose aliases are small enough."""
        ours, theirs = self._chernoff
        period = 2 * (self.digits - math.log(goal) + max(x, 0.0) + 2)
        while True:
            shorter = 0.8 * period
            with self.field.precision(64):
                above = ours.bound(self.field.exact(x + shorter)).min(self.field.exact(goal))
                below = theirs.bound(self.field.exact(shorter - x))
                share = (above + self.field.exact(x).exp() * below) / self.field.exact(
                    shorter / 2
                ).expm1()
                if not (shorter > 1.1 * x and share < math.exp(-self.digits) * goal):
                    return period
            period = shorter

    @cached_property
    def _variance(self) -> float:
        """An estimate of the variance of the sum under sqrt(P Q)."""
        total = 0.0
        with self.field.precision(96):
            for moments, times in self.factors():
                low, middle, high = (
                    moments.real(ORDER + side * _NEAR).log() for side in (-1, 0, 1)
                )
                total += times * float(((low + high - 2 * middle) / _NEAR**2).mid())
        return max(total, 1e-300)


def halfway(field: Field, factors: Callable[[], Factors], digits: float) -> Halfway | None:
    """Return the lines at -1/2, if every variable has a reverse; else None."""
    row = all(moments.reverse is not None for moments, _ in factors())
    return Halfway(field, factors, digits) if row else None
