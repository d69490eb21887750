"""From exact rational numbers to floats, in a stated direction."""

from __future__ import annotations

import math
from fractions import Fraction

from dpcompose.numerics.bound import down, up


def rounded_up(number: Fraction) -> float:
    """The smallest float at or above `number` >= 0; infinite beyond the largest."""
    result = nearest(number)
    return up(result) if Fraction(result) < number else result


def rounded_down(number: Fraction) -> float:
    """The largest float at or below `number` >= 0."""
    result = nearest(number)
    return down(result) if Fraction(result) > number else result


def nearest(number: Fraction) -> float:
    """The float nearest to `number` >= 0; the largest one beyond it."""
    try:
        return float(number)
    except OverflowError:
        return math.nextafter(math.inf, 0.0)
