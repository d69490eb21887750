"""A composition in one order whose profile is evaluated in ball arithmetic: every error is a theorem, none a model of
rounding."""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import cached_property

from dpcompose.loss.base import Loss, merged
from dpcompose.loss.product import Product, Readings
from dpcompose.proof import (
    Enclosure,
    Ends,
    Factors,
    Field,
    Moments,
    NormalMoments,
    Proved,
    ProvedSum,
    ball_field,
)
from dpcompose.values import Bound, Certificate

_STATED = (
    "the masses of atoms that have no formula are floats, each taken to be within its stated error"
)


class ProvedProduct(Product):
    """The sum of the given losses, each so many times: what `Product` says of it, proved.

    Where the parameters of a loss are rounded, the lower end is that of a loss which the true one dominates, and the
    upper end is that of a loss which dominates it. Both are known exactly, and domination survives composition.

    Reference: [ZhuDongWang2022, Theorem 10]
    """

    @cached_property
    def infinite(self) -> Bound:
        if not self._counted:
            return Bound(0.0, 0.0)
        return Bound(
            self._field.down(self._below.infinite), min(self._field.up(self._above.infinite), 1.0)
        )

    @cached_property
    def extremes(self) -> Bound:
        if not self._counted:
            return Bound(0.0, 0.0)
        return Bound(self._field.down(self._below.largest), self._field.up(self._above.largest))

    def delta(self, epsilon: float, *, tolerance: float, readings: Readings | None = None) -> Bound:
        field = self._field
        level = field.exact(epsilon)
        if not self._counted or epsilon < -40:
            with field.precision(128):
                exact = -level.min(field.exact(0)).expm1()
            if not self._counted:
                return Bound(field.down(exact), field.up(exact), Certificate("nothing composed"))
            return Bound(field.down(exact), 1.0, Certificate("1 - e^epsilon <= delta <= 1"))
        low, high = (side.around(epsilon, tolerance=tolerance) for side in self._sides)
        upper = high.enclosure(level)
        lower = upper if self._below is self._above else low.enclosure(level)
        with field.precision(512):
            least = self._below.infinite + lower.lower
            most = self._above.infinite + upper.upper
        end = min(field.up(most), 1.0)
        return Bound(min(max(field.down(least), 0.0), end), end, self._certificate(high, upper))

    def epsilon(self, delta: float, *, tolerance: float, readings: Readings | None = None) -> Bound:
        if not self._counted or delta >= 1:
            return Bound(0.0, 0.0, Certificate("nothing composed" if delta < 1 else "delta is 1"))
        field, (below, above) = self._field, self._sides
        with field.precision(512):
            least, most = field.exact(delta) - below.infinite, field.exact(delta) - above.infinite
        if least < 0:
            return Bound(math.inf, math.inf, Certificate("the infinite loss alone exceeds delta"))
        top = max(field.up(above.largest), 0.0)
        lower, upper = 0.0, top if most >= 0 else math.inf
        if least.is_zero() and upper < math.inf:
            return Bound(
                max(field.down(below.largest), 0.0),
                upper,
                Certificate("ball arithmetic, largest loss"),
            )
        guess, proved = self._guess(delta, tolerance), None
        if most > 0:
            if (
                guess == 0
                and above.around(0.0, tolerance=tolerance).enclosure(field.exact(0)).upper <= most
            ):
                return Bound(0.0, 0.0, Certificate("ball arithmetic, delta(0) is at most delta"))
            enclosed, proved = above.crossing(
                most, guess=guess, low=0.0, high=top, tolerance=tolerance
            )
            lower, upper, guess = enclosed.lower, enclosed.upper, enclosed.middle
        if below is not above or not most > 0:
            enclosed, proved = below.crossing(
                least.upper(), guess=guess, low=0.0, high=top, tolerance=tolerance
            )
            lower = enclosed.lower
        enclosure = (
            None if proved is None else proved.enclosure(field.exact(min(max(guess, lower), upper)))
        )
        return Bound(min(lower, upper), upper, self._certificate(proved, enclosure))

    def at_most(self, epsilon: float, delta: float, *, readings: Readings | None = None) -> bool:
        if not self._counted or not math.isfinite(epsilon):
            return False
        with self._field.precision(512):
            target = self._field.exact(delta) - self._above.infinite
        if self._above.far_below(epsilon, target):
            return True
        high = self._above.around(epsilon, tolerance=1e-2, digits=6.0).enclosure(
            self._field.exact(epsilon)
        )
        return high.upper <= target

    @cached_property
    def _field(self) -> Field:
        return ball_field()

    @cached_property
    def _counted(self) -> list[tuple[Loss, int]]:
        return merged(self.group)

    @cached_property
    def _sides(self) -> tuple[ProvedSum, ProvedSum]:
        """A product from below and one from above; one and the same if every loss is known exactly."""
        exact = all(end.below is end.above for end, _ in self._ends())
        above = ProvedSum(
            self._field,
            lambda: _merged(self._field, ((end.above, times) for end, times in self._ends())),
            lambda: self.transform,
        )
        below = ProvedSum(
            self._field,
            lambda: _merged(self._field, ((end.below, times) for end, times in self._ends())),
            lambda: self.transform,
        )
        return (above if exact else below), above

    @property
    def _below(self) -> ProvedSum:
        return self._sides[0]

    @property
    def _above(self) -> ProvedSum:
        return self._sides[1]

    def _ends(self) -> list[tuple[Ends, int]]:
        return [(loss.ball(self._field), times) for loss, times in self._counted]

    def _certificate(self, proved: Proved | None, enclosed: Enclosure | None) -> Certificate:
        """The method, and what each source adds to the width, relative to delta."""
        notes = (_STATED,) if self._above.stated else ()
        if proved is None or enclosed is None:
            return Certificate("ball arithmetic, largest loss", notes=notes)
        with self._field.precision(64):
            budget = tuple(
                (source, self._field.up(width / enclosed.upper) if enclosed.upper > 0 else 0.0)
                for source, width in zip(enclosed._fields[2:], enclosed[2:], strict=True)
            )
        return Certificate(f"ball arithmetic, {proved.method}", budget, notes=notes)

    def _guess(self, delta: float, tolerance: float) -> float:
        """About where epsilon lies, from floats. Any finite number will do, so that no proof depends on them."""
        try:
            enclosed = super().epsilon(delta, tolerance=tolerance)
        except ArithmeticError:
            return 1.0
        return (
            (enclosed.lower + enclosed.upper) / 2
            if enclosed.upper < math.inf
            else max(enclosed.lower, 1.0)
        )


def _merged(field: Field, factors: Iterable[tuple[Moments, int]]) -> Factors:
    """The factors of a product, with all normal ones merged into one."""
    enclosed: list[tuple[Moments, int]] = []
    variance = field.exact(0)
    for moments, times in factors:
        if moments.normal is None:
            enclosed.append((moments, times))
        else:
            variance += times * moments.normal
    return [(NormalMoments(field, variance), 1), *enclosed] if variance > 0 else enclosed
