"""Exact amounts: fractions. As money in a ledger they are multiples of 1e-40: a price rounded up once, a cap down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from dpcompose.errors import DomainError
from dpcompose.guarantee.rational import rounded_up

GRID, LONGEST = 10**40, 4000
Amounts: TypeAlias = Mapping[str, Fraction]
"""What is asked, spent or left, by the name of its currency."""
Number: TypeAlias = int | float | Fraction | Decimal
"""A parameter of a filter: a float means exactly that double, a fraction or a decimal exactly that number."""


def above(value: Fraction) -> Fraction:
    """The smallest multiple of 1e-40 that is at least `value`: a price."""
    return Fraction(-(-value.numerator * GRID // value.denominator), GRID)


def below(value: Fraction) -> Fraction:
    """The largest multiple of 1e-40 that is at most `value`: a cap."""
    return Fraction(value.numerator * GRID // value.denominator, GRID)


def nonnegative(name: str, value: Any) -> float | Fraction:
    """`value` as a finite number >= 0: a float stays itself, any other number becomes a fraction."""
    number = _number(name, value, "a finite number >= 0")
    if not 0 <= number < math.inf:
        raise DomainError(name, value, "a finite number >= 0")
    return number + 0


def probability(name: str, value: Any) -> float | Fraction:
    """`value` as a number in [0, 1]: a float stays itself, any other number becomes a fraction."""
    number = _number(name, value, "a number in [0, 1]")
    if not 0 <= number <= 1:
        raise DomainError(name, value, "a number in [0, 1]")
    return number + 0


def written(value: float | Fraction) -> str:
    """Text from which `read` gets the very same number back."""
    return repr(value) if isinstance(value, float) else f"{value.numerator}/{value.denominator}"


def read(name: str, text: Any) -> float | Fraction:
    """The number that `written` wrote."""
    if not (isinstance(text, str) and len(text) <= LONGEST):
        raise DomainError(name, text, "a number as text, such as '0.5' or '1/2'")
    try:
        return Fraction(text) if "/" in text else float(text)
    except (ValueError, ZeroDivisionError):
        raise DomainError(name, text, "a number as text, such as '0.5' or '1/2'") from None


def rounded(value: float, times: int) -> float:
    """`times` copies of an upper bound, rounded up; one copy is itself."""
    return value if math.isinf(value) else rounded_up(Fraction(value) * times)


def _number(name: str, value: Any, domain: str) -> float | Fraction:
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise DomainError(name, value, domain)
    if isinstance(value, float):
        return float(value)
    try:
        return Fraction(value)
    except (ValueError, OverflowError):
        raise DomainError(name, value, domain) from None
