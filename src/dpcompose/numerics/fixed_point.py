"""Exponentials and logarithms in fixed point: integers in units of 2^-128, each with a proved absolute error."""

from __future__ import annotations

import math

BITS = 128
ONE = 1 << BITS
LN2 = 235865763225513294137944142764154484399
"""log 2, in units of 2^-128, rounded down."""
LN2PI = 625397158267482887231032432550145572935
"""log(2 pi), likewise."""


def of(number: float) -> int:
    """A finite float, exact if it is a multiple of 2^-128, else rounded down."""
    mantissa, power = number.as_integer_ratio()
    return (mantissa << BITS) // power


def exponential(exponent: int) -> tuple[int, int]:
    """(m, n) with m 2^n = e^exponent, m within 2^-112 of the truth and in [1, 2), for |exponent| below 2^10.

    Errors in units of 2^-128: n times that of log 2, at most 2^11; one from the shift by 8; 14 from the series, whose
    next term is below 2^-140; eight squarings multiply an error by less than 2^8 * 2 and add less than 2^10.
    """
    power, remainder = divmod(exponent, LN2)
    remainder >>= 8
    total = term = ONE
    for count in range(1, 14):
        term = (term * remainder >> BITS) // count
        total += term
    for _ in range(8):
        total = total * total >> BITS
    return total, power


def logarithm(number: int) -> int:
    """log(number / 2^128) for a number from 2^128 to 2^180, within 2^-110: one step of Newton's method from a float."""
    start = of(math.log(number / ONE))
    mantissa, power = exponential(-start)
    # e^(log number - start) = 1 + remainder with |remainder| < 2^-40: the next term of its logarithm is below 2^-120.
    remainder = (number * mantissa >> BITS - power) - ONE
    square = remainder * remainder >> BITS
    return start + remainder - square // 2 + (square * remainder >> BITS) // 3


def split(number: int) -> tuple[float, float]:
    """The nearest float and the remainder."""
    leading = number / ONE
    return leading, (number - of(leading)) / ONE
