"""Decimal arithmetic of a stated number of digits, whatever the caller's own decimal context says."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

_HALF_LOG_TWO_PI = Decimal("0.9189385332046727417803297364056176398613974736377834128171515404827657")
STIRLING = (
    (1, 12),
    (-1, 360),
    (1, 1260),
    (-1, 1680),
    (1, 1188),
    (-691, 360360),
    (1, 156),
    (-3617, 122400),
    (43867, 244188),
    (-174611, 125400),
)
"""B_2i / (2 i (2 i - 1)) for i = 1..10: the coefficients of Stirling's series, whose partial sums enclose the truth."""


def digits(number: int) -> decimal.Context:
    """A fresh context of `number` digits in which overflow and underflow go to infinity and zero in silence."""
    return decimal.Context(
        prec=number,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero],
    )


def log_factorial(number: int) -> Decimal:
    """log n! in the current decimal context, to 36 digits after the point if the context has them."""
    if number < 64:
        return Decimal(math.factorial(number)).ln()
    count = Decimal(number)
    total = (count + Decimal("0.5")) * count.ln() - count + _HALF_LOG_TWO_PI
    for index, (numerator, denominator) in enumerate(STIRLING):
        total += Decimal(numerator) / (Decimal(denominator) * count ** (2 * index + 1))
    return total
