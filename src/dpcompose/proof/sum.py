"""The cheapest proof of g(x) = E[(1 - e^(x - L))_+; L < inf] for a sum L of independent variables."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

from dpcompose.contour import Transform
from dpcompose.proof.ball import Ball, Crossing, Field, crossing
from dpcompose.proof.finite_sums import Enumeration, Residues, expanded, states
from dpcompose.proof.halfway import HalfwayLine, halfway
from dpcompose.proof.line import FINE, Enclosure, LinePlan, ProvedLine, TailBound, draw, plan
from dpcompose.proof.moments import Factors, kernel_peak, log_moment, multiplied, summed

MOST_STATES, MOST_COEFFICIENTS, MOST_BITS = 20_000, 60_000, 4096
_MOST_NODES, _MOST_WORK, _MOST_HALFWAY = 30_000, 6e6, 20_000
_WIDE = 1e-6
"""If g from a line right of 0 is wider than this, relatively, the line at -1/2 is tried."""
_FEW_ORDERS = (4.0, 32.0, 256.0, 2048.0)
_CLOSED, _ROUNDED = 72, 2.0**-56


@dataclass(frozen=True)
class Proved:
    """A function that encloses the hockey-stick divergence g everywhere, with narrow enclosures
    around one point.

    Args:
        enclosure: Returns the enclosure of g at a ball x.
        method: The method of the proof, in words.
        rate: An estimate of the relative slope of g; 0 if the enclosure is equally narrow
            everywhere.
    """

    enclosure: Callable[[Ball], Enclosure]
    method: str
    rate: float = 0.0


@dataclass(frozen=True)
class ProvedSum:
    """A sum of independent variables, enclosed in balls, with an approximation in floats.

    Args:
        field: The field of balls.
        factors: The independent variables with their counts, enclosed at the working precision;
            never empty.
        transform: The same sum in floats; it only guides the choice of lines.
    """

    field: Field
    factors: Callable[[], Factors]
    transform: Callable[[], Transform]

    @cached_property
    def infinite(self) -> Ball:
        """P[L = inf]."""
        with self.field.precision(512):
            finite, factors = (
                self.field.exact(1),
                [(moments.infinite, times) for moments, times in self.factors()],
            )
            certain = [(mass, times) for mass, times in factors if not mass.is_zero()]
            if len(certain) == 1 and certain[0][1] == 1:
                return certain[0][0]
            for mass, times in certain:
                finite *= (1 - mass) ** times
            return 1 - finite if certain else self.field.exact(0)

    @cached_property
    def largest(self) -> Ball:
        """The supremum of the finite values, including the error of the values."""
        with self.field.precision(256):
            return self._moved(summed(self.field, self.factors(), lambda moments: moments.largest))

    @cached_property
    def smallest(self) -> Ball:
        """The infimum of the values."""
        with self.field.precision(256):
            return self._moved(summed(self.field, self.factors(), lambda moments: moments.smallest))

    @property
    def stated(self) -> bool:
        """Whether some masses or values have a stated error."""
        factor, distance = self._stated_errors
        return not (factor == 1 and distance.is_zero())

    def around(self, x: float, *, tolerance: float, digits: float = FINE) -> Proved:
        """Return the cheapest proof of the hockey-stick divergence g around x.

        Args:
            x: The point.
            tolerance: The relative width that suffices for the smoothing.
            digits: Minus the logarithm of the relative width that all other errors may cause.
        """
        level = self.field.exact(x)
        if self._mass.is_zero():
            return Proved(lambda _: self._enclosed(self.field.exact(0)), "every loss is infinite")
        if level >= self.largest:
            return Proved(
                lambda x: self._within(self.field.exact(0), x >= self.largest),
                "beyond the largest value",
            )
        if level <= self.smallest:
            return Proved(self._refined(self._below), "below the smallest value")
        with self.field.precision(128):
            closed, (count, order) = self._closed, states(self.factors())
        if closed is not None:
            return Proved(self._refined(closed), "closed form")
        if count <= MOST_STATES and count * (order + 1) <= MOST_COEFFICIENTS:
            return Proved(
                self._refined(self._expanded(order)),
                f"{count:.0f} {'residues' if order else 'outcomes'}",
            )
        return self._line(x, tolerance, digits)

    def crossing(
        self, target: Ball, *, guess: float, low: float, high: float, tolerance: float
    ) -> tuple[Crossing, Proved]:
        """Return bounds, as floats, on the point where the hockey-stick divergence g reaches the
        target, with the proof that was used.
        """
        end = self.field.down(self.largest)
        for attempt in range(4):
            guess = min(guess, end - 1e-12 * abs(end)) if math.isfinite(end) else guess
            proved = self.around(guess, tolerance=tolerance)

            def curve(x: float, proved: Proved = proved) -> tuple[Ball, Ball]:
                found = proved.enclosure(self.field.exact(x))
                return found.lower, found.upper

            found = crossing(
                curve, target, guess=guess, rate=proved.rate or 1.0, low=low, high=high
            )
            if abs(found.middle - guess) * proved.rate < 0.7 or attempt == 3:
                return found, proved
            guess = found.middle
        raise AssertionError

    def far_below(self, x: float, target: Ball) -> bool:
        """Return whether one of a few moments proves that the hockey-stick divergence g(x) is at
        most the target: M(l) e^(-l x) l^l / (1 + l)^(1 + l), with M the moment generating function.
        """
        point = self.field.exact(x)
        if point >= self.largest:
            return target >= 0
        with self.field.precision(128):
            factor, distance = self._stated_errors
            for few in _FEW_ORDERS if target > 0 else ():
                order = self.field.exact(few)
                log = log_moment(self.field, self.factors(), few)
                log += kernel_peak(order) - order * (point - distance)
                if factor * log.exp() <= target:
                    return True
        return False

    # Closed forms

    @property
    def _closed(self) -> Callable[[Ball], Ball] | None:
        """Return the hockey-stick divergence g in closed form, for a single variable that has one;
        else None.
        """
        factors = self.factors()
        if (
            len(factors) != 1
            or factors[0][1] != 1
            or factors[0][0].profile(self.field.exact(0.5)) is None
        ):
            return None

        def value(x: Ball) -> Ball:
            found = self.factors()[0][0].profile(x)
            assert found is not None
            return found

        return value

    def _below(self, x: Ball) -> Ball:
        """Return M(0) - e^x M(-1), which is the hockey-stick divergence g for x up to the smallest
        value; the interval from 0 to M(0) for larger x. M is the moment generating function.
        """
        if not x <= self.smallest:
            return self._mass.union(self.field.exact(0))
        mass = multiplied(self.field, self.factors(), lambda moments: moments.mass)
        other = multiplied(self.field, self.factors(), lambda moments: moments.other_mass)
        return mass - x.exp() * other

    def _expanded(self, order: int) -> Callable[[Ball], Ball]:
        """Return the hockey-stick divergence g by enumeration or residues, with one list of terms
        for each precision.
        """
        formulas: dict[int, Enumeration | Residues] = {}

        def value(x: Ball) -> Ball:
            bits = self.field.bits
            if bits not in formulas:
                terms = expanded(self.field, self.factors())
                formulas[bits] = (
                    Residues(self.field, terms) if order > 0 else Enumeration(self.field, terms)
                )
            return formulas[bits].value(x)

        return value

    def _refined(self, value: Callable[[Ball], Ball]) -> Callable[[Ball], Enclosure]:
        """Return the enclosure by a formula, at the first precision that makes it narrow."""

        def enclosure(x: Ball) -> Enclosure:
            bits = 128
            while True:
                with self.field.precision(bits):
                    found = self._enclosed(value(x))
                    if (
                        found.rounding <= found.upper * self.field.exact(2.0**-_CLOSED)
                        or bits >= MOST_BITS
                    ):
                        return found
                bits *= 2

        return lambda x: self._widened(enclosure, x)

    def _within(self, value: Ball, certain: bool) -> Enclosure:
        """Return the value if it is certain, else the interval from 0 to the whole mass."""
        return self._enclosed(value if certain else self._mass.union(self.field.exact(0)))

    def _enclosed(self, value: Ball) -> Enclosure:
        zero = self.field.exact(0)
        upper = self.field.positive(value.upper())
        return Enclosure(
            self.field.positive(value.lower()).min(upper), upper, zero, zero, zero, 2 * value.rad()
        )

    # Lines

    def _line(self, x: float, tolerance: float, digits: float) -> Proved:
        """Return the proof by a line to the right of 0, or by the one at -1/2 if the first is wide."""
        right, point = self._right_of_zero(x, tolerance, digits), self.field.exact(x)
        found = right.enclosure(point)
        if found.upper - found.lower <= found.upper * self.field.exact(max(tolerance, _WIDE)):
            return right
        middle = self._halfway(x, self.field.up(found.upper))
        if middle is None:
            return right
        other = middle.enclosure(point)
        return middle if other.upper - other.lower < found.upper - found.lower else right

    def _right_of_zero(self, x: float, tolerance: float, digits: float) -> Proved:
        """Return a line through the saddle point at x, at a precision that makes its rounding
        negligible.
        """
        transform = self.transform()
        with self.field.precision(64):
            effort = sum(moments.effort for moments, _ in self.factors())
        most_nodes = min(_MOST_NODES, math.ceil(_MOST_WORK / effort))
        for falling in (True, False):
            planned = plan(
                transform,
                x,
                tolerance=tolerance,
                digits=digits,
                most_nodes=most_nodes,
                falling=falling,
            )
            if planned is None:
                return Proved(
                    lambda _: self._within(self.field.exact(0), False),
                    "no saddle point: nothing is proved",
                )
            if planned.smoothing > 0 and falling:
                planned = self._ended(x, digits, most_nodes) or planned
            line, bits, found = self._drawn(planned, x)
            narrow = found.truncation <= found.upper * self.field.exact(tolerance)
            if narrow or planned.smoothing > 0 or line.grid is not None:
                break

        return self._by_line(line, bits, planned.order)

    def _halfway(self, x: float, goal: float) -> Proved | None:
        """Return a line at -1/2 for a hockey-stick divergence g of at most about `goal`."""
        lines = halfway(self.field, self.factors, FINE)
        found = lines and lines.line_for(x, goal, most_nodes=_MOST_HALFWAY)
        if lines is None or found is None:
            return None
        return self._by_line(*found, lines.order(x))

    def _by_line(self, line: ProvedLine | HalfwayLine, bits: int, rate: float) -> Proved:
        """Return the proof by a line, evaluated at the precision at which it was made."""

        def enclosure(point: Ball) -> Enclosure:
            with self.field.precision(bits):
                return self._widened(line.enclosure, point)

        return Proved(enclosure, f"{line.name}, {line.nodes} nodes, {bits} bits", rate)

    def _ended(self, x: float, digits: float, most_nodes: int) -> LinePlan | None:
        """Return a line that ends where the variables' own bounds prove decay, if that takes at
        most `most_nodes` nodes; else None.
        """
        planned = plan(
            self.transform(), x, tolerance=0.5, digits=digits, most_nodes=most_nodes, last=1.0
        )
        if planned is None:
            return None
        with self.field.precision(512):
            tail = TailBound(
                self.field, self.factors(), planned.order, planned.variance, planned.magnitude
            )
            last = tail.reach(
                self.field.exact(planned.error), limit=most_nodes * 2 * math.pi / planned.period
            )
        return None if last is None else replace(planned, last=last)

    def _drawn(self, planned: LinePlan, x: float) -> tuple[ProvedLine, int, Enclosure]:
        with self.field.precision(64):
            copies = sum(times for _, times in self.factors())
        bits = 96 + copies.bit_length() + math.ceil(planned.magnitude)
        while True:
            with self.field.precision(bits):
                line = draw(self.field, self.factors(), planned)
                found = line.enclosure(self.field.exact(x))
                others = found.aliasing + found.truncation + found.smoothing
                if not found.upper.is_finite() or 2 * bits > MOST_BITS:
                    return line, bits, found
                if found.rounding <= found.upper * self.field.exact(_ROUNDED) + others / 16:
                    return line, bits, found
            bits *= 2

    @cached_property
    def _mass(self) -> Ball:
        """A lower bound on P[L < inf]."""
        with self.field.precision(128):
            total = multiplied(self.field, self.factors(), lambda moments: moments.mass)
            return (total * self._stated_errors[0]).upper()

    # Stated errors

    @cached_property
    def _stated_errors(self) -> tuple[Ball, Ball]:
        """The factor by which masses, and the distance by which values, of the sum may differ from
        the stated ones.
        """
        with self.field.precision(128):
            factor, distance = self.field.exact(1), self.field.exact(0)
            for moments, times in self.factors():
                relative, move = moments.stated_errors
                factor *= (1 + self.field.exact(relative)) ** times
                distance += self.field.exact(move) * times
            return factor.upper(), distance.upper()

    def _moved(self, point: Ball) -> Ball:
        _, distance = self._stated_errors
        return point + distance * self.field.ball(0, 1)

    def _widened(self, enclosure: Callable[[Ball], Enclosure], x: Ball) -> Enclosure:
        """Return the enclosure widened by the stated errors, since the hockey-stick divergence g
        increases with every mass and every value.
        """
        factor, distance = self._stated_errors
        if distance.is_zero():
            found = enclosure(x)
            low = high = found
        else:
            low, high = enclosure(x + distance), enclosure(x - distance)
        lower, upper = (low.lower / factor).lower(), (high.upper * factor).upper()
        rounding = low.rounding.max(high.rounding) + self.field.positive(
            (upper - lower) - (high.upper - low.lower)
        )
        return Enclosure(lower, upper, high.aliasing, high.truncation, high.smoothing, rounding)
