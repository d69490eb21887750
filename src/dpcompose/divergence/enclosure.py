"""Intervals of decimals around logarithms and exponentials of rational numbers, and the ratio e^epsilon among them.

The intervals provably contain the truth and are rounded outward at the end. Python's decimal arithmetic rounds
quotients, sums and products in the direction of the context. Its `exp` and `ln` are correctly rounded, so that the two
neighbors of their result enclose the truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import MAX_EMAX, MIN_EMIN, ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any

from dpcompose.divergence.distribution import Rational, exact
from dpcompose.errors import DomainError
from dpcompose.values import Bound, Certificate

ENCLOSED = Certificate(
    "exact rational arithmetic; exp and log enclosed in decimal intervals", unit="absolute"
)
RATIONAL = Certificate("exact rational arithmetic")
_DIGITS = (40, 80, 160, 320, 640)
# An upper bound on e^-3000, below which the digits of an enclosure would be zeros.
_VANISHING = Fraction(1, 10**1000)


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
        self._down = Context(
            prec=digits, rounding=ROUND_FLOOR, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]
        )
        self._up = Context(
            prec=digits, rounding=ROUND_CEILING, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[]
        )

    def of(self, value: Fraction) -> Interval:
        """An interval around a rational number."""
        numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
        return Interval(
            self._down.divide(numerator, denominator), self._up.divide(numerator, denominator)
        )

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
        return Interval(
            self._down.add(left.lower, right.lower), self._up.add(left.upper, right.upper)
        )

    def subtract(self, left: Interval, right: Interval) -> Interval:
        """The difference."""
        return Interval(
            self._down.subtract(left.lower, right.upper), self._up.subtract(left.upper, right.lower)
        )

    def multiply(self, left: Interval, right: Interval) -> Interval:
        """The product: the extremes are at the ends."""
        ends = [(a, b) for a in (left.lower, left.upper) for b in (right.lower, right.upper)]
        lower = min(self._down.multiply(a, b) for a, b in ends)
        return Interval(lower, max(self._up.multiply(a, b) for a, b in ends))


def narrowed(
    enclosure: Callable[[Arithmetic], tuple[Fraction, Fraction] | tuple[Decimal, Decimal]],
) -> Bound:
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


def exact_ratio(value: Any, *, least: int = 0) -> Fraction:
    """`value` as a rational ratio e^epsilon of at least `least`."""
    domain = f"a finite ratio e^epsilon >= {least}"
    ratio = exact("ratio", value, domain)
    if not ratio >= least:
        raise DomainError("ratio", value, domain)
    return ratio


def one_of(epsilon: Any, ratio: Any) -> None:
    """Refuse unless exactly one of the two is given."""
    if (epsilon is None) == (ratio is None):
        raise DomainError("epsilon, ratio", (epsilon, ratio), "exactly one of the two")


def exponential(epsilon: Fraction, *, arithmetic: Arithmetic) -> tuple[Fraction, Fraction]:
    """Rational numbers (lower, upper) around e^epsilon; equal where it is rational."""
    if epsilon == 0:
        return Fraction(1), Fraction(1)
    if epsilon < -3000:
        return Fraction(0), _VANISHING
    interval = arithmetic.exp(arithmetic.of(epsilon))
    return Fraction(interval.lower), Fraction(interval.upper)


def floor_ratio(epsilon: Rational | None, ratio: Rational | None) -> Fraction:
    """The ratio a >= 1 itself, or a rational number in [1, e^epsilon] within a relative 1e-58 of e^epsilon.

    Raises:
        DomainError: Unless exactly one is given, and epsilon in [0, 1e6] or ratio >= 1.
    """
    one_of(epsilon, ratio)
    if epsilon is None:
        return exact_ratio(ratio, least=1)
    domain = "a number in [0, 1e6]"
    power = exact("epsilon", epsilon, domain)
    if not 0 <= power <= 10**6:
        raise DomainError("epsilon", epsilon, domain)
    # The enclosure of e^epsilon for a tiny epsilon begins below 1.
    return max(exponential(power, arithmetic=Arithmetic(60))[0], Fraction(1))


def _floor(value: Fraction | Decimal) -> float:
    number = float(value)
    return number if number <= value else math.nextafter(number, -math.inf)


def _ceiling(value: Fraction | Decimal) -> float:
    number = float(value)
    return number if number >= value else math.nextafter(number, math.inf)
