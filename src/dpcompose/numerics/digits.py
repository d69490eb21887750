"""A number and its error for people: the error to two digits, and the number to as many places."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal

_EXACT = Context(prec=2000)
"""More digits than a double has."""


def with_error(value: float, error: float) -> tuple[str, str]:
    """A number rounded to the second digit of its error, and that error, rounded up; integers stay integers.

    >>> with_error(40.01987, 0.562), with_error(53384, 1498.2), with_error(3, 6.0)
    (('40.02', '0.57'), ('53,400', '1,500'), ('3', '6'))
    """
    if not (math.isfinite(value) and 0 < error < math.inf):
        return plain(value), two_digits(error)
    place = place_of(error, whole=isinstance(value, int))
    return at_place(value, place), at_place(error, place, ROUND_CEILING)


def two_digits(error: float) -> str:
    """An error by itself, rounded up to two digits."""
    if not 0 < error < math.inf:
        return "infinite" if error == math.inf else f"{error:g}"
    return at_place(error, place_of(error, whole=float(error).is_integer()), ROUND_CEILING)


def plain(value: float) -> str:
    """A number of which no error is known."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.7g}"


def place_of(error: float, *, whole: bool) -> int:
    """The decimal place of the last digit of an error that is rounded up to two, or to an integer."""
    digit = Decimal(error).adjusted() - 1
    digit += Decimal(error) > Decimal(99).scaleb(digit)
    return max(digit, 0) if whole else digit


def at_place(value: float, digit: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """A number rounded to a decimal place, without an exponent."""
    found = Decimal(value).quantize(Decimal(1).scaleb(digit), rounding, _EXACT)
    return f"{_EXACT.add(found, 0):,f}"
