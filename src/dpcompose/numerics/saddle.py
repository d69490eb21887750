"""Where to draw the contour: real orders near the saddle point. Any order is valid; these only decide the width."""

from __future__ import annotations

import math
from collections.abc import Callable

from dpcompose.numerics.transform import Transform

LEAST, MOST = 2.0**-20, 2.0**40


def for_value(transform: Transform, value: float, *, start: float = 1.0, tolerance: float = 0.02) -> float:
    """The order l with K'(l) = value + 1/l + 1/(l + 1), to a relative tolerance."""

    def slope(order: float) -> tuple[float, float]:
        _, first, second = transform.cumulants(order)
        gap = order * (first - value - 1 / order - 1 / (order + 1))
        return gap, order * order * (second + 1 / order**2 + 1 / (order + 1) ** 2)

    return short(_increasing_zero(slope, start, _most(transform), tolerance), bits=24)


def for_mass(transform: Transform, log_mass: float, *, start: float = 1.0) -> float:
    """The order at which the exponential bound, minimized over the value, equals e^log_mass."""

    def excess(order: float) -> tuple[float, float]:
        log_m, first, second = transform.cumulants(order)
        kernel = math.log(order) + math.log1p(order)
        gap = order * first - 1 - order / (order + 1) - (log_m - log_mass - kernel)
        return gap, order * order * (second + 1 / order**2 + 1 / (order + 1) ** 2)

    return short(_increasing_zero(excess, start, _most(transform), 0.02), bits=24)


def short(value: float, *, bits: int) -> float:
    """`value` rounded to `bits` binary digits, so that small multiples of it, and it plus one, are exact."""
    mantissa, exponent = math.frexp(value)
    return math.ldexp(round(math.ldexp(mantissa, bits)), exponent - bits)


def _most(transform: Transform) -> float:
    """Beyond this order the roundings of order * value would leave no digits near the largest value."""
    return min(MOST, 1e7 / transform.maximum) if 0 < transform.maximum < math.inf else MOST


def _increasing_zero(
    function: Callable[[float], tuple[float, float]], start: float, most: float, tolerance: float
) -> float:
    """Newton in the logarithm for an increasing function, until it is near 0 and the point good to the tolerance.

    Steps are clipped to a factor e. Where the function explodes Newton creeps: short steps far from 0 are stretched.
    """
    low, high, point, stretch = LEAST, most, min(max(start, LEAST), most), 1.0
    for _ in range(80):
        gap, slope = function(point)
        if not math.isfinite(gap):
            high, point = point, math.sqrt(low * point)
            continue
        low, high = (low, point) if gap > 0 else (point, high)
        step = -gap / slope if slope > 0 else -math.copysign(1.0, gap)
        close = abs(gap) < 25 * tolerance
        stretch = 1.0 if close or abs(step) > 0.1 else 3 * stretch
        candidate = point * math.exp(min(max(step * stretch, -1.0), 1.0))
        candidate = candidate if low < candidate < high else math.sqrt(low * high)
        if (close and abs(candidate / point - 1) < tolerance) or high / low < 1.002:
            return candidate
        point = candidate
    return point
