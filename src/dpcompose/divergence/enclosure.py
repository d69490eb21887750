"""Decimal intervals that provably contain logarithms and exponentials of rational numbers, rounded outward at the end.

Python's decimal arithmetic rounds quotients, sums and products in the direction of the context, and its `exp` and `ln`
are correctly rounded, so that the two neighbors of their result enclose the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction

from dpcompose.numerics import Bound, Certificate

ENCLOSED = Certificate("exact rational arithmetic; exp and log enclosed in decimal intervals", unit="absolute")
RATIONAL = Certificate("exact rational arithmetic")
_DIGITS = (40, 80, 160, 320, 640)


@dataclass(frozen=True, eq=False)
class Exact(Bound):
    """A bound whose truth is the rational number `value`; its ends are the floats around it.

    Args:
        value: The truth.
    """

    value: Fraction = Fraction(0)

    @classmethod
    def of(cls, value: Fraction) -> Exact:
        """The bound of a known rational number."""
        return cls(_floor(value), _ceiling(value), RATIONAL, value)


@dataclass(frozen=True)
class Interval:
    """The real numbers between two decimals, ends included."""

    lower: Decimal
    upper: Decimal

    @property
    def ends(self) -> tuple[Decimal, Decimal]:
        """The lower end and the upper end."""
        return self.lower, self.upper


class Arithmetic:
    """Interval arithmetic with a number of decimal digits.

    Args:
        digits: The working precision; the exponents are practically unlimited.
    """

    def __init__(self, digits: int) -> None:
        self._down = Context(prec=digits, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
        self._up = Context(prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])

    def of(self, value: Fraction) -> Interval:
        """An interval around a rational number."""
        numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
        return Interval(self._down.divide(numerator, denominator), self._up.divide(numerator, denominator))

    def log(self, value: Interval) -> Interval:
        """The natural logarithm of a nonnegative interval; of 1 it is exactly 0."""
        lower = self._down.ln(value.lower)
        upper = lower if value.upper == value.lower else self._up.ln(value.upper)
        return Interval(
            lower if value.lower == 1 or not lower.is_finite() else self._down.next_minus(lower),
            upper if value.upper == 1 or not upper.is_finite() else self._up.next_plus(upper),
        )

    def exp(self, value: Interval) -> Interval:
        """The exponential."""
        lower = self._down.next_minus(self._down.exp(value.lower))
        return Interval(max(lower, Decimal(0)), self._up.next_plus(self._up.exp(value.upper)))

    def add(self, left: Interval, right: Interval) -> Interval:
        """The sum."""
        return Interval(self._down.add(left.lower, right.lower), self._up.add(left.upper, right.upper))

    def subtract(self, left: Interval, right: Interval) -> Interval:
        """The difference."""
        return Interval(self._down.subtract(left.lower, right.upper), self._up.subtract(left.upper, right.lower))

    def multiply(self, left: Interval, right: Interval) -> Interval:
        """The product: the extremes are at the ends."""
        ends = [(a, b) for a in (left.lower, left.upper) for b in (right.lower, right.upper)]
        lower = min(self._down.multiply(a, b) for a, b in ends)
        return Interval(lower, max(self._up.multiply(a, b) for a, b in ends))


def narrowed(enclosure: Callable[[Arithmetic], tuple[Fraction, Fraction] | tuple[Decimal, Decimal]]) -> Bound:
    """The bound from the first precision at which the two ends of `enclosure` lie between neighboring floats."""
    bound = Bound(-math.inf, math.inf)
    for digits in _DIGITS:
        lower, upper = enclosure(Arithmetic(digits))
        bound = Bound(_floor(lower), _ceiling(upper), ENCLOSED)
        if math.nextafter(bound.lower, math.inf) >= bound.upper:
            break
    return bound


def log_bound(value: Fraction) -> Bound:
    """The natural logarithm of a rational number >= 0; -inf at 0, and exactly 0 at 1."""
    if value == 0:
        return Bound(-math.inf, -math.inf)
    return narrowed(lambda arithmetic: arithmetic.log(arithmetic.of(value)).ends)


def _floor(value: Fraction | Decimal) -> float:
    number = float(value)
    return number if number <= value else math.nextafter(number, -math.inf)


def _ceiling(value: Fraction | Decimal) -> float:
    number = float(value)
    return number if number >= value else math.nextafter(number, math.inf)
