"""The upper tail of the normal distribution with a relative error that is known.

Every function here returns `(value, error)`: the truth lies within `error * |value|` of `value`. The errors are
theorems about floating-point arithmetic, given that `math.exp` is accurate to 1 ulp (8 are allowed for) and that
`scipy.special.erfcx` is accurate to `ERFCX_ERROR` on [-0.4, 3.6]: measured against ball arithmetic at 60,000 points
of each of nine intervals, its worst error there is 10.4 units of roundoff; ten times that and more are allowed for.
"""

from __future__ import annotations

import math
from fractions import Fraction

from scipy.special import erfcx, ndtri

from dpcompose.numerics.bound import UNIT_ROUNDOFF, Bound, around, down, up
from dpcompose.numerics.roots import walk

ERFCX_ERROR = 110 * UNIT_ROUNDOFF
FARTHEST = 45
"""Beyond 45 standard deviations a tail is below 1e-400: no float can tell it from zero."""
FRACTION_FROM = 5.0
"""From here on Mills' ratio comes from Laplace's continued fraction, whose error is proved."""
FRACTION_TERMS = 24
FRACTION_ERROR = 30 * UNIT_ROUNDOFF
"""Truncation: consecutive convergents at x = 5 differ by 19.4 units of roundoff, less beyond. Rounding: 3.4 units."""

# Abscissae and weights of the ten-point Gauss-Legendre rule on [0, 1], rounded from ball arithmetic.
_NODES = (
    (0.01304673574141414, 0.03333567215434407),
    (0.06746831665550775, 0.0747256745752903),
    (0.1602952158504878, 0.10954318125799102),
    (0.2833023029353764, 0.13463335965499817),
    (0.4255628305091844, 0.14776211235737644),
    (0.5744371694908156, 0.14776211235737644),
    (0.7166976970646236, 0.13463335965499817),
    (0.8397047841495122, 0.10954318125799102),
    (0.9325316833444922, 0.0747256745752903),
    (0.9869532642585859, 0.03333567215434407),
)


def density(point: Fraction) -> tuple[float, float]:
    """The normal density at `point`, whose square is taken exactly; below 1e-300 the error is an absolute one."""
    exponent = -point * point / 2
    leading = float(exponent)
    remainder = float(exponent - Fraction(leading))
    return math.exp(leading) * (1.0 + remainder) / math.sqrt(2.0 * math.pi), 12 * UNIT_ROUNDOFF


def mills(point: float) -> tuple[float, float]:
    """Mills' ratio (1 - Phi(x)) / phi(x) at x >= -1/2, including the effect of a rounding of x.

    The relative sensitivity of Mills' ratio to x is at most 1 for x >= 0, and at most 0.6 on [-1/2, 0].
    """
    if point < FRACTION_FROM:
        return math.sqrt(math.pi / 2.0) * float(erfcx(point / math.sqrt(2.0))), ERFCX_ERROR + 8 * UNIT_ROUNDOFF
    return 1.0 / (point + _fraction_tail(point)), FRACTION_ERROR + 4 * UNIT_ROUNDOFF


def mills_slope(point: float) -> tuple[float, float]:
    """1 - x Mills(x), which is minus the derivative of Mills' ratio, at x >= -1/2, up to a rounding of x.

    It is completely monotone, int_0^inf t exp(-x t - t^2 / 2) dt; its relative sensitivity to x is at most 2.
    """
    if point < FRACTION_FROM:
        ratio, error = mills(point)
        slope = 1.0 - point * ratio
        return slope, (abs(point) * ratio * (error + 2 * UNIT_ROUNDOFF) + UNIT_ROUNDOFF) / slope + 4 * UNIT_ROUNDOFF
    tail = _fraction_tail(point)
    return tail / (point + tail), 2 * FRACTION_ERROR


def mills_drop(point: float, *, width: float) -> tuple[float, float]:
    """Mills(x) - Mills(x + width), for x >= -1/2 and width > 0; for x >= 0 alone when the width exceeds 1.

    Up to a width of 1 it is the integral of `mills_slope` by ten-point Gauss-Legendre quadrature. Even derivatives
    of a completely monotone function are positive, hence the rule is too small, by less than 2e-16 of the truth for
    x <= 45: the error is at most 1.4e-28 width^21 times the 20th derivative of the slope, itself at most
    2^10 10! e^(1/2) / (3/4)^11, against a slope of at least 1 / ((x + width)^2 + 3).
    Beyond, and from 1/4 on where erfcx serves both ends, it is the difference; the error accounts for cancellation.
    """
    if width < 0.25 or (width <= 1.0 and point + width > FRACTION_FROM):
        total = worst = 0.0
        for abscissa, weight in _NODES:
            slope, error = mills_slope(point + width * abscissa)
            total += weight * slope
            worst = max(worst, error)
        return width * total, worst + 40 * UNIT_ROUNDOFF
    near, near_error = mills(point)
    far, far_error = mills(point + width)
    drop = near - far
    # The argument point + width is rounded twice: once here, once in the caller.
    return drop, (near * near_error + far * (far_error + 4 * UNIT_ROUNDOFF)) / drop + 4 * UNIT_ROUNDOFF


def _fraction_tail(point: float) -> float:
    # Laplace: Mills(x) = 1 / (x + 1 / (x + 2 / (x + 3 / ...))); all terms positive, convergents enclose the value.
    tail = 0.0
    for term in range(FRACTION_TERMS, 0, -1):
        tail = term / (point + tail)
    return tail


def upper_tail(point: Fraction) -> Bound:
    """P[N(0, 1) > point], certified: the relative width is below 1e-13 for a point >= 0, that of 1 minus it below."""
    if point < 0:
        other = upper_tail(-point)
        return Bound(max(0.0, down(1.0 - other.upper)), min(1.0, up(1.0 - other.lower)))
    if point > FARTHEST:
        return Bound(0.0, 5e-324)
    (height, height_error), (ratio, ratio_error) = density(point), mills(float(point))
    tail = around(height * ratio, relative=height_error + ratio_error + 4 * UNIT_ROUNDOFF, absolute=2e-323)
    return Bound(max(0.0, tail.lower), min(0.5, tail.upper))


def upper_quantile(tail: float) -> Bound:
    """The point x with P[N(0, 1) > x] = tail, in (0, 1), certified."""
    if tail > 0.5:
        other = upper_quantile(1.0 - tail)
        return Bound(-other.upper, -other.lower)
    point = -float(ndtri(tail))
    margin = max(2.0 * math.ulp(point), 1e-14)
    above = walk(point, margin, lambda x: upper_tail(Fraction(x)).upper <= tail)
    return Bound(walk(point, -margin, lambda x: upper_tail(Fraction(x)).lower >= tail), above)
