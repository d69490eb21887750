"""Numbers that a person types: a float means its shortest decimal, so 0.1 is one tenth."""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from numbers import Integral

from dpcompose.errors import DomainError

LARGEST = 10**30


def exact(name: str, value: object) -> Fraction:
    """The number as a fraction.

    Raises:
        DomainError: If it is no finite number of a size below 10^30, written with at most 60 characters.
    """
    number = _read(value)
    if number is None or not abs(number) < LARGEST or not number.denominator < LARGEST:
        raise DomainError(name, value, "a decimal number of a size below 10^30")
    return number


def _read(value: object) -> Fraction | None:
    match value:
        case bool():
            return None
        case Fraction():
            return value
        case Integral():
            return Fraction(int(value))
        case float():
            return Fraction(repr(float(value))) if math.isfinite(value) else None
        case Decimal():
            return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 100 else None
        case str() if len(value) <= 60:
            try:
                return _read(Decimal(value))
            except InvalidOperation:
                return None
        case _:
            return None
