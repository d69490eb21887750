"""The text of a number with its error: the error to two significant digits, the number to the same
decimal.
"""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_HALF_EVEN, Context, Decimal

_EXACT = Context(prec=2000)
"""More digits than a double has."""


def with_error(value: float, error: float) -> tuple[str, str]:
    """The texts of a number and of its error, to the second digit of the error, which is rounded
    up.

    Integers have no decimals.

    >>> with_error(40.01987, 0.562), with_error(53384, 1498.2), with_error(3, 6.0)
    (('40.02', '0.57'), ('53,400', '1,500'), ('3', '6'))
    """
    if not (math.isfinite(value) and 0 < error < math.inf):
        return plain(value), two_digits(error)
    place = place_of(error, whole=isinstance(value, int))
    return at_place(value, place), at_place(error, place, ROUND_CEILING)


def two_digits(error: float) -> str:
    """The text of an error, rounded up to two significant digits."""
    if not 0 < error < math.inf:
        return "infinite" if error == math.inf else f"{error:g}"
    return at_place(error, place_of(error, whole=float(error).is_integer()), ROUND_CEILING)


def plain(value: float) -> str:
    """The text of a number whose error is not known."""
    return f"{value:,}" if isinstance(value, int) else f"{value:,.7g}"


def place_of(error: float, *, whole: bool) -> int:
    """The exponent of the last decimal of an error rounded up to two digits (`whole`: to an
    integer).
    """
    digit = Decimal(error).adjusted() - 1
    digit += Decimal(error) > Decimal(99).scaleb(digit)
    return max(digit, 0) if whole else digit


def at_place(value: float, digit: int, rounding: str = ROUND_HALF_EVEN) -> str:
    """The text of `value` rounded to a multiple of 10^digit, without an exponent."""
    found = Decimal(value).quantize(Decimal(1).scaleb(digit), rounding, _EXACT)
    return f"{_EXACT.add(found, 0):,f}"
