"""From exact rational numbers to floats, in a stated direction."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

from dpcompose.numerics.bound import down, up


def exact(value: float | Fraction) -> Fraction:
    """What an amount means that was typed: a float is its shortest decimal, so 0.1 is one tenth."""
    return _decimal(float(value)) if isinstance(value, float) else Fraction(value)


@lru_cache(maxsize=1 << 12)
def _decimal(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))


def larger_reading(value: float) -> float:
    """`value`, or the next float if its shortest decimal is above the double: at least as large as either reading."""
    return up(value) if _decimal(value) > Fraction(value) else value


def smaller_reading(value: float) -> float:
    """`value`, or the float before it if its shortest decimal is below the double: at most as large as either."""
    return down(value) if _decimal(value) < Fraction(value) else value


def rounded_up(number: Fraction) -> float:
    """The smallest float of which neither reading, the double and its shortest decimal, is below `number` >= 0."""
    return quotient_rounded_up(*number.as_integer_ratio())


def sum_rounded_up(terms: Iterable[tuple[Fraction, int]]) -> float:
    """`rounded_up` of a sum of numbers, each so many times, without common divisors: their search takes longer."""
    over, under = 0, 1
    for number, times in terms:
        numerator, denominator = number.as_integer_ratio()
        if denominator == under:
            over += times * numerator
        else:
            over, under = over * denominator + times * numerator * under, under * denominator
    return quotient_rounded_up(over, under)


@lru_cache(maxsize=1 << 12)
def quotient_rounded_up(over: int, under: int) -> float:
    """`rounded_up` of over / under >= 0, whole numbers with or without a common divisor."""
    try:
        result = over / under
    except OverflowError:
        result = math.nextafter(math.inf, 0.0)
    for numerator, denominator in (result.as_integer_ratio(), _decimal(result).as_integer_ratio()):
        if numerator * under < over * denominator:
            return up(result)
    return result


def rounded_down(number: Fraction) -> float:
    """The largest float of which neither reading, the double and its shortest decimal, is above `number` >= 0."""
    result = nearest(number)
    return down(result) if max(Fraction(result), _decimal(result)) > number else result


def double_below(number: Fraction) -> float:
    """The largest double at or below `number` >= 0."""
    result = nearest(number)
    return down(result) if Fraction(result) > number else result


def nearest(number: Fraction) -> float:
    """The float nearest to `number` >= 0; the largest one beyond it."""
    try:
        return float(number)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
