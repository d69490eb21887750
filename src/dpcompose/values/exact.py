"""Exact numbers (fractions, decimals, fixed point), and directed rounding to floats.

Decimal arithmetic runs in a context from `decimal_context`, not in the caller's. Numbers in fixed
point are integers in units of 2^-128; their exponentials and logarithms have a proved absolute
error.
"""

from __future__ import annotations

import decimal
import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TypeVar

from dpcompose.values.bound import down, up

Number = TypeVar("Number", Decimal, Fraction, int)


def exact(value: float | Fraction) -> Fraction:
    """`value` as a fraction; a float is read as its shortest decimal, so that 0.1 is 1/10."""
    return _decimal(float(value)) if isinstance(value, float) else Fraction(value)


@lru_cache(maxsize=1 << 12)
def _decimal(value: float) -> Fraction:
    return Fraction(Decimal(repr(value)))


def larger_reading(value: float) -> float:
    """The smallest float >= both the double `value` and its shortest decimal."""
    return up(value) if _decimal(value) > Fraction(value) else value


def smaller_reading(value: float) -> float:
    """The largest float <= both the double `value` and its shortest decimal."""
    return down(value) if _decimal(value) < Fraction(value) else value


def rounded_up(number: Fraction) -> float:
    """The smallest float that is >= `number` >= 0 both as a double and as its shortest decimal."""
    return quotient_rounded_up(*number.as_integer_ratio())


def float_sum(values: Iterable[float]) -> float:
    """The sum of numbers >= 0, rounded to nearest once; infinite beyond the largest float."""
    try:
        return math.fsum(values)
    except OverflowError:
        return math.inf


def sum_rounded_up(terms: Iterable[tuple[Fraction, int]]) -> float:
    """`rounded_up` of the sum of number * count over the pairs (number, count) in `terms`.

    Common divisors are not searched for, which would take longer than the sum.

    No common divisors are computed.
    """
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
    """`rounded_up` of over / under >= 0, for integers that may have a common divisor."""
    try:
        result = over / under
    except OverflowError:
        result = math.nextafter(math.inf, 0.0)
    for numerator, denominator in (result.as_integer_ratio(), _decimal(result).as_integer_ratio()):
        if numerator * under < over * denominator:
            return up(result)
    return result


def rounded_down(number: Fraction) -> float:
    """The largest float that is <= `number` >= 0 both as a double and as its shortest decimal."""
    result = nearest(number)
    return down(result) if max(Fraction(result), _decimal(result)) > number else result


def double_below(number: Fraction) -> float:
    """The largest double at or below `number` >= 0."""
    result = nearest(number)
    return down(result) if Fraction(result) > number else result


def nearest(number: Fraction) -> float:
    """The float nearest to `number` >= 0; the largest finite float if the number exceeds it."""
    try:
        return float(number)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)


def lower_hull(points: Iterable[tuple[Number, Number]]) -> list[tuple[Number, Number]]:
    """The corners of the lower convex hull of points (x, y) by increasing x (Andrew's algorithm)."""
    kept: list[tuple[Number, Number]] = []
    for x, y in points:
        while len(kept) > 1:
            (x1, y1), (x2, y2) = kept[-2:]
            if (y2 - y1) * (x - x2) < (y - y2) * (x2 - x1):
                break
            kept.pop()
        kept.append((x, y))
    return kept


_HALF_LOG_TWO_PI = Decimal(
    "0.9189385332046727417803297364056176398613974736377834128171515404827657"
)
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
"""The coefficients B_2i / (2 i (2 i - 1)), i = 1..10, of Stirling's enveloping series."""


def decimal_context(number: int) -> decimal.Context:
    """A new decimal context of `number` digits in which overflow gives infinity and underflow 0."""
    return decimal.Context(
        prec=number,
        rounding=decimal.ROUND_HALF_EVEN,
        Emin=decimal.MIN_EMIN,
        Emax=decimal.MAX_EMAX,
        traps=[decimal.InvalidOperation, decimal.DivisionByZero],
    )


def float_above(number: Decimal) -> float:
    """The smallest float >= `number`, which is accurate to fifty digits in the current context."""
    safe = number + abs(number) * Decimal("1e-50")
    result = float(safe)
    return up(result) if Decimal(result) < safe else result


def float_below(number: Decimal) -> float:
    """The largest float <= `number`, which is accurate to fifty digits in the current context."""
    safe = number - abs(number) * Decimal("1e-50")
    result = float(safe)
    return down(result) if Decimal(result) > safe else result


def decimal_tanh(number: Decimal) -> Decimal:
    """tanh(number) for number >= 0, in the current decimal context; by its series near 0."""
    if number < Decimal("1e-12"):
        square = number * number
        return number * (1 - square / 3 * (1 - square * 2 / 5 * (1 - square * 17 / 42)))
    decay = (-2 * number).exp()
    return (1 - decay) / (1 + decay)


def decimal_expm1(number: Decimal) -> Decimal:
    """e^number - 1 for number >= 0, in the current decimal context; by its series near 0."""
    if number < Decimal("1e-12"):
        return number * (1 + number / 2 * (1 + number / 3 * (1 + number / 4 * (1 + number / 5))))
    # The subtraction loses at most twelve of the context's eighty digits.
    growth = number.exp()
    return growth - 1


def log_factorial(number: int) -> Decimal:
    """log(number!) in the current decimal context, to 36 decimals if the context has the digits."""
    if number < 64:
        return Decimal(math.factorial(number)).ln()
    count = Decimal(number)
    total = (count + Decimal("0.5")) * count.ln() - count + _HALF_LOG_TWO_PI
    for index, (numerator, denominator) in enumerate(STIRLING):
        total += Decimal(numerator) / (Decimal(denominator) * count ** (2 * index + 1))
    return total


FIXED_BITS = 128
FIXED_ONE = 1 << FIXED_BITS
FIXED_LN2 = 235865763225513294137944142764154484399
"""log 2, in units of 2^-128, rounded down."""
FIXED_LN2PI = 625397158267482887231032432550145572935
"""log(2 pi), in units of 2^-128, rounded down."""


def fixed(number: float) -> int:
    """The float `number` in fixed point, an integer multiple of 2^-128; rounded down if not exact."""
    mantissa, power = number.as_integer_ratio()
    return (mantissa << FIXED_BITS) // power


def fixed_exponential(exponent: int) -> tuple[int, int]:
    """(m, n) with m 2^n = e^exponent, m in [1, 2) to within 2^-112, for |exponent| < 2^10.

    Errors in units of 2^-128: n times that of log 2, at most 2^11; one from the shift by 8; 14 from
    the series, whose next term is below 2^-140; eight squarings multiply an error by less than 2^8
    * 2 and add less than 2^10.
    """
    power, remainder = divmod(exponent, FIXED_LN2)
    remainder >>= 8
    total = term = FIXED_ONE
    for count in range(1, 14):
        term = (term * remainder >> FIXED_BITS) // count
        total += term
    for _ in range(8):
        total = total * total >> FIXED_BITS
    return total, power


def fixed_logarithm(number: int) -> int:
    """log(number / 2^128), within 2^-110, for a number from 2^128 to 2^180.

    It is one step of Newton's method from a float.
    """
    start = fixed(math.log(number / FIXED_ONE))
    mantissa, power = fixed_exponential(-start)
    # e^(log number - start) = 1 + remainder with |remainder| < 2^-40: the next term of its logarithm is below 2^-120.
    remainder = (number * mantissa >> FIXED_BITS - power) - FIXED_ONE
    square = remainder * remainder >> FIXED_BITS
    return start + remainder - square // 2 + (square * remainder >> FIXED_BITS) // 3


def fixed_split(number: int) -> tuple[float, float]:
    """(nearest float, remainder) of the fixed-point number `number`."""
    leading = number / FIXED_ONE
    return leading, (number - fixed(leading)) / FIXED_ONE
