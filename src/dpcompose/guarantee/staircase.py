"""The profile of k equal two-point losses and its inverse, cell by cell, certified in floats.

With the sums D and B of `binomial_sums`, on the cell l_(m+1) <= t <= l_m between neighboring losses the profile is
D_m + B_m (1 - e^(t - l_m)). It is convex in e^t, so the line of each cell is below it everywhere: a lower end needs no
proof that it lies in the right cell. Answers are None where the sums would leave the range of floats or be too long:
the caller has another way.
"""

from __future__ import annotations

import math
from fractions import Fraction

from dpcompose.numerics.binomial import Law, Sums, top
from dpcompose.numerics.bound import UNIT_ROUNDOFF as U
from dpcompose.numerics.exact import rounded_up

_FEW = 160
"""Up to so many losses the sums start from the largest one."""
_STEPS = 280
"""A window longer than this is summed as an array, and a climb as well."""
_LONGEST = 1 << 15
_SMALLEST, _LARGEST, _MOST = 1e-100, 100.0, 10**10
_TINY = 1e-280
_LOG_2 = math.log(2.0)


def root(least: float, most: float, *, epsilon: float, times: int, careful: bool = False) -> tuple[float, float] | None:
    """(lower, upper) >= 0: the profile is at most `least` from the upper on; `most` or more up to the lower, if not 0.

    Args:
        least: In (0, 1).
        most: At least `least`, below 1.
        epsilon: Of each loss.
        times: How many losses; at least 1.
        careful: Whether to spend more on digits.
    """
    if not (_SMALLEST <= epsilon <= _LARGEST and times <= _MOST and 1e-300 <= least <= most < 1.0):
        return None
    start = _above(least, epsilon, times, careful)
    if start is None:
        return None
    first, value, weight, mass, error, left, unit, (odds, shrink, growth, drift) = start
    if math.log(most) - unit * _LOG_2 > 690.0:
        return None
    wanted = math.ldexp(least, -unit)
    index, last, before = first, (times - 1) // 2, 0.0
    following = value + weight * growth
    while following < wanted and index < last:
        index += 1
        mass *= (times - index + 1) * odds / index
        before = weight * shrink
        weight = before + mass
        value = following
        following += weight * growth
    if not mass > _TINY:
        return None
    error += drift * (index - first) + 16.0 * U
    width, lattice = 2.0 * epsilon, (times - 2 * index) * epsilon
    above = _from_above(wanted - (value * (1.0 + error) + left), weight * (1.0 + error) + left, width)
    if above > 0.0:
        above = _beyond((value * (1.0 + error) + left) - wanted, before * (1.0 - error))
        if not above <= width:
            return None
    short = math.ldexp(most, -unit) - value * (1.0 - error)
    share = short / (weight * (1.0 - error)) * (1.0 + 4.0 * U) if short >= 0.0 else 0.0
    below = math.log1p(-share) if share < 1.0 else -math.inf
    upper, lower = lattice + above, lattice + below
    upper = max(upper + U * (2.0 * lattice + 2.0 * abs(upper)), 0.0)
    if upper >= times * epsilon:
        upper = rounded_up(Fraction(epsilon) * times)
    lower = max(lower - U * (2.0 * lattice + 2.0 * lower - 9.0 * below), 0.0) if lower > 0.0 else 0.0
    return min(lower, upper), upper


def _from_above(short: float, weight: float, width: float) -> float:
    """How far above the lattice point, at most, weight (1 - e^y) reaches `short`, y in [-width, 0]; positive if not."""
    if not short >= 0.0:
        return math.inf
    # Below the cell the profile is at most what it is at the lower edge.
    share = short / weight * (1.0 - 4.0 * U)
    return max(math.log1p(-share) * (1.0 - 9.0 * U), -width) if share < 1.0 else -width


def _beyond(excess: float, weight: float) -> float:
    """How far above the lattice point, on the line of the next cell, the profile has fallen by `excess`."""
    return math.log1p(excess / weight * (1.0 + 4.0 * U)) * (1.0 + 9.0 * U) if weight > 0.0 else math.inf


def value(target: float, *, epsilon: float, times: int, careful: bool = False) -> tuple[float, float] | None:
    """Between which floats the profile at `target` >= 0 lies."""
    if not (_SMALLEST <= epsilon <= _LARGEST and times <= _MOST and target < times * epsilon * (1.0 - 4.0 * U)):
        return None
    index = min(int((times - target / epsilon) / 2.0), times)
    gap = _gap(target, epsilon, times - 2 * index)
    while gap <= 0.0:
        index -= 1
        gap = _gap(target, epsilon, times - 2 * index)
    while (further := _gap(target, epsilon, times - 2 * index - 2)) > 0.0:
        index, gap = index + 1, further
    sums = _at(index, epsilon, times, careful)
    if sums is None or not sums.mass > _TINY:
        return None
    total = sums.value - sums.weight * math.expm1(-gap)
    error = sums.error + 16.0 * U
    low, high = total * (1.0 - error), total * (1.0 + error) + sums.left
    if sums.unit:
        low, high = math.ldexp(low, sums.unit) - 5e-324, math.ldexp(high, sums.unit) + 5e-324
    return max(low, 0.0), min(high, 1.0)


def _gap(target: float, epsilon: float, count: int) -> float:
    """count epsilon - target, exact before it is rounded to nearest."""
    (factor, below), (term, under) = epsilon.as_integer_ratio(), target.as_integer_ratio()
    return (count * factor * under - term * below) / (below * under)


def _at(index: int, epsilon: float, times: int, careful: bool) -> Sums | None:
    """The sums at one index."""
    if times <= _FEW and not careful:
        return top(epsilon, times).climbed(index, times)
    law = Law(epsilon, times)
    first = law.first(index)
    if index > law.far or index - first > _LONGEST:
        return None
    if index - first > (_STEPS if not careful else 32):
        return law.window(index, first, careful=careful)
    return law.start(first).climbed(index, times)


def _above(target: float, epsilon: float, times: int, careful: bool) -> Sums | None:
    """The sums at an index where D is not yet the target, and not far from it."""
    if times <= _FEW and not careful:
        return top(epsilon, times)
    law = Law(epsilon, times)
    guess, steep = law.guess(math.log(target))
    first = law.first(int(guess))
    if int(guess) - first > _LONGEST:
        return None
    if int(guess) - first <= (_STEPS if not careful else 32):
        return law.start(first)
    index = max(int(guess - 0.02 / steep) - 1, first)
    for _ in range(6):
        sums = law.window(index, first, careful=careful)
        ratio = math.ldexp(target, -sums.unit) / sums.value if sums.value else 1.0
        # log D is concave: a step of Newton's method from below ends below.
        step = math.log(ratio) * sums.value / (sums.weight * sums.factors.growth)
        if 0.0 <= step <= (_STEPS if not careful else 32):
            return sums
        step = step if step > 0.0 else max(1.1 * step, -law.deviation) - 3.0
        moved = min(max(index + int(step), 0), int(law.far))
        if moved == index:
            return sums
        index = moved
        first = law.first(index)
    return None
