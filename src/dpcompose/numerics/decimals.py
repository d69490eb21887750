"""Decimal arithmetic of a stated number of digits, whatever the caller's own decimal context says."""

from __future__ import annotations

import decimal
import math
from decimal import Decimal

from dpcompose.numerics.bound import down, up

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


def rounded_up(number: Decimal) -> float:
    """The smallest float at or above `number`, which is known to fifty digits in the current context."""
    safe = number + abs(number) * Decimal("1e-50")
    result = float(safe)
    return up(result) if Decimal(result) < safe else result


def rounded_down(number: Decimal) -> float:
    """The largest float at or below `number`, which is known to fifty digits in the current context."""
    safe = number - abs(number) * Decimal("1e-50")
    result = float(safe)
    return down(result) if Decimal(result) > safe else result


def tanh(number: Decimal) -> Decimal:
    """tanh of a number >= 0, in the current context; near 0 by its series."""
    if number < Decimal("1e-12"):
        square = number * number
        return number * (1 - square / 3 * (1 - square * 2 / 5 * (1 - square * 17 / 42)))
    decay = (-2 * number).exp()
    return (1 - decay) / (1 + decay)


def expm1(number: Decimal) -> Decimal:
    """e^x - 1 of a number >= 0, in the current context; near 0 by its series."""
    if number < Decimal("1e-12"):
        return number * (1 + number / 2 * (1 + number / 3 * (1 + number / 4 * (1 + number / 5))))
    # Of the context's eighty digits the difference loses twelve at most.
    growth = number.exp()
    return growth - 1


def log_factorial(number: int) -> Decimal:
    """log n! in the current decimal context, to 36 digits after the point if the context has them."""
    if number < 64:
        return Decimal(math.factorial(number)).ln()
    count = Decimal(number)
    total = (count + Decimal("0.5")) * count.ln() - count + _HALF_LOG_TWO_PI
    for index, (numerator, denominator) in enumerate(STIRLING):
        total += Decimal(numerator) / (Decimal(denominator) * count ** (2 * index + 1))
    return total
