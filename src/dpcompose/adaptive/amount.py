"""Exact amounts: fractions. As money in a ledger they are multiples of 1e-40: a price rounded up once, a cap down."""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from typing import Any, TypeAlias, cast

from dpcompose.errors import DomainError
from dpcompose.values import exact, rounded_up

GRID = 10**40
LARGEST = 1e15
"""No parameter of a filter is larger: nothing overflows, and no promise beyond it is worth a number."""
DIGITS, LONGEST = 1800, 4000
"""The most digits of a parameter's denominator, so that a description is short enough to be read back."""
Amounts: TypeAlias = Mapping[str, Fraction]
"""Amounts asked, spent or left, by the name of the currency."""
Number: TypeAlias = int | float | Fraction | Decimal
"""A parameter of a filter: a float means its shortest decimal, a fraction or a decimal exactly that number."""


def above(value: Fraction) -> Fraction:
    """The smallest multiple of 1e-40 that is at least `value`: a price."""
    return Fraction(-(-value.numerator * GRID // value.denominator), GRID)


def below(value: Fraction) -> Fraction:
    """The largest multiple of 1e-40 that is at most `value`: a cap."""
    return Fraction(value.numerator * GRID // value.denominator, GRID)


def nonnegative(name: str, value: Any) -> float | Fraction:
    """`value` as a number in [0, 1e15]: a float stays itself, any other number becomes a fraction."""
    return _between(name, value, LARGEST, f"a number in [0, {LARGEST:g}]")


def probability(name: str, value: Any) -> float | Fraction:
    """`value` as a number in [0, 1]: a float stays itself, any other number becomes a fraction."""
    return _between(name, value, 1.0, "a number in [0, 1]")


def shown(price: Fraction, left: Fraction) -> tuple[str, str]:
    """Both to six digits: the price rounded up, the amount left rounded down."""
    pairs = (price, ROUND_CEILING), (left, ROUND_FLOOR)
    up, down = (
        Context(prec=6, rounding=rounding)
        .divide(Decimal(value.numerator), Decimal(value.denominator))
        .normalize()
        for value, rounding in pairs
    )
    return f"{up:g}", f"{down:g}"


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


def mapping(description: Any) -> Mapping[str, Any]:
    """`description`, if it is a mapping."""
    if not isinstance(description, Mapping):
        raise DomainError("description", description, "a mapping")
    return cast("Mapping[str, Any]", description)


def exact_amounts(name: str, amounts: Any) -> dict[str, Fraction]:
    """Amounts by currency, exact, once it is certain that each is a number >= 0."""
    return {
        currency: exact(_between(name, amount, 1e37, "amounts >= 0 by currency"))
        for currency, amount in mapping(amounts).items()
    }


def rounded(value: float, times: int) -> float:
    """`times` copies of an upper bound, which either reading of it is, rounded up; one copy is itself."""
    return value if math.isinf(value) else rounded_up(exact(value) * times)


def _between(name: str, value: Any, most: float, domain: str) -> float | Fraction:
    """`value`, if it is in [0, most]; it is compared before it is made a fraction, which may be long."""
    if isinstance(value, bool) or not isinstance(value, int | float | Fraction | Decimal):
        raise DomainError(name, value, domain)
    # A signaling NaN cannot even be compared.
    if (isinstance(value, Decimal) and value.is_nan()) or not 0 <= value <= most:
        raise DomainError(name, value, domain)
    if isinstance(value, float):
        return float(value) + 0
    # A decimal may be written short and be long: 1e-999999999.
    if not (isinstance(value, Decimal) and value and value.adjusted() < -DIGITS):
        number = Fraction(value)
        if number.denominator < 10**DIGITS:
            return number
    raise DomainError(
        name, f"<a number of more than {DIGITS} digits>", domain, "Round it first, a cap down"
    )
