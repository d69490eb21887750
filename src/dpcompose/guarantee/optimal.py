"""The optimal composition of equal (epsilon, delta) guarantees (Kairouz, Oh, Viswanath), certified.

The number is computed by one of two methods. In floats: with the sums D and B of
`guarantee.binomial`, on the cell l_(m+1) <= t <= l_m between neighboring losses the profile is D_m
+ B_m (1 - e^(t - l_m)). It is convex in e^t, so the line of each cell is below it everywhere, and a
lower end is valid whichever cell it is computed from. In decimals, where those sums would leave the
range of floats or have too many terms: with a window of binomial masses scaled by the mass at one
index.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

import numpy as np
from scipy.special import ndtri

from dpcompose import check
from dpcompose.guarantee import binomial
from dpcompose.guarantee.approximate import (
    ApproximateDP,
    checked_epsilon,
    mirrored_epsilon,
    remaining_delta,
    with_failures,
)
from dpcompose.guarantee.binomial import BinomialLaw, Sums, first_sums
from dpcompose.numerics import U, dots, walk
from dpcompose.values import Bound, Certificate, down, nearest, rounded_down, rounded_up, up

_CERTIFICATE = Certificate(
    "optimal composition (Kairouz-Oh-Viswanath), binomial sum", unit="relative delta"
)
_TINY = 5e-324
_NARROW = 1e-12
_FEW = 160
"""Up to this number of losses the sums start from the largest loss."""
_STEPS, _CAREFUL_STEPS = 280, 32
"""Longer windows are summed as an array; the recurrence takes at most this many steps."""
_LONGEST = 1 << 15
_SMALLEST, _LARGEST, _MOST = 1e-100, 100.0, 10**10
_LEAST_MASS = 1e-280


def homogeneous_delta(
    target_epsilon: float, *, epsilon: float, delta: float = 0.0, times: int
) -> Bound:
    """The smallest delta at `target_epsilon` of `times` composed (epsilon, delta)-DP mechanisms.

    With k = `times` it is delta' = 1 - (1 - delta)^k (1 - sum_j C(k, j) p^j (1 - p)^(k - j) max(0,
    1 - e^(target - (2 j - k) epsilon))), p = 1 / (1 + e^-epsilon). It is attained, and holds for
    mechanisms chosen adaptively, with epsilon and delta fixed in advance. Both ends are certified;
    their relative distance is at most 2e-12 for delta' >= 1e-300.

    >>> homogeneous_delta(0.8, epsilon=0.1, delta=1e-5, times=20).contains(0.008426020906263041)
    True

    Args:
        target_epsilon: In nats; any real number, infinite and negative ones included.
        epsilon: The epsilon of each mechanism, in nats; >= 0, infinite allowed.
        delta: The delta of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 0 to 10^15.

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: If more than 2^22 terms matter (beyond about 1e11 mechanisms).

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """
    target, promise = (
        check.real("target_epsilon", target_epsilon),
        ApproximateDP(epsilon, delta=delta),
    )
    times = check.times(times)
    delta_at = partial(_delta, promise=promise, times=times)
    return mirrored_epsilon(target, delta_at, _CERTIFICATE) if target < 0.0 else delta_at(target)


def homogeneous_epsilon(
    target_delta: float, *, epsilon: float, delta: float = 0.0, times: int
) -> Bound:
    """The smallest epsilon at `target_delta` of `times` composed (epsilon, delta)-DP mechanisms.

    It is epsilon' >= 0. With k = `times`, between the lattice points (2 j - k) epsilon, the delta
    of `homogeneous_delta` is linear in e^epsilon', so that its root has a closed form; then both
    ends are certified. epsilon' is infinite if target_delta < 1 - (1 - delta)^k. The relative width
    is at most 1e-12 for target_delta >= 1e-300, except near epsilon' = 0 and near infeasibility.

    >>> homogeneous_epsilon(1e-6, epsilon=0.1, times=100).contains(4.774567588107986)
    True

    Args:
        target_delta: In [0, 1].
        epsilon: The epsilon of each mechanism, in nats; >= 0, infinite allowed.
        delta: The delta of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 0 to 10^15.

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: If more than 2^22 terms matter (beyond about 1e11 mechanisms).

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """
    target = check.probability("target_delta", target_delta)
    promise, times = (
        ApproximateDP(checked_epsilon("epsilon", epsilon), delta=delta),
        check.times(times),
    )
    if times == 0 or promise.epsilon == 0.0 == promise.delta or target == 1.0:
        return Bound(0.0, 0.0, _CERTIFICATE)
    if promise.vacuous:
        return Bound(math.inf, math.inf, _CERTIFICATE)
    remaining = remaining_delta(target, ((promise.delta, times),))
    if remaining is None:
        return Bound(math.inf, math.inf, _CERTIFICATE)
    if promise.epsilon == 0.0:
        return Bound(0.0, 0.0 if remaining.lower >= 0.0 else math.inf, _CERTIFICATE)
    for careful in (False, True):
        found = piecewise_root(
            remaining.lower, remaining.upper, epsilon=promise.epsilon, times=times, careful=careful
        )
        if found is not None and found[1] - found[0] <= _NARROW * found[1]:
            return Bound(*found, _CERTIFICATE)
    return _exact_root(remaining, promise.epsilon, times)


def _exact_root(remaining: Bound, epsilon: float, times: int) -> Bound:
    # The delta with the anchor mass in decimals and the loss in fractions, for cases where floats
    # alone give too wide a bound.
    most = Fraction(epsilon) * times

    def at_most(candidate: float) -> bool:
        return (
            Fraction(candidate) >= most
            or _pure(candidate, epsilon, times).bound().upper <= remaining.lower
        )

    def at_least(candidate: float) -> bool:
        return candidate <= 0.0 or _pure(candidate, epsilon, times).bound().lower >= remaining.upper

    if remaining.lower >= 0.0 and at_most(0.0):
        return Bound(0.0, 0.0, _CERTIFICATE)
    if remaining.upper == 0.0:
        return Bound(rounded_down(most), rounded_up(most), _CERTIFICATE)
    if most > 1e300:
        return Bound(
            0.0,
            rounded_up(most),
            Certificate("basic composition", notes=("epsilon exceeds 1e300",)),
        )
    point, margin = _root(remaining.upper, epsilon, times)
    lower = max(0.0, walk(point, -margin, at_least))
    upper = (
        min(walk(point, margin, at_most), rounded_up(most)) if remaining.lower >= 0.0 else math.inf
    )
    return Bound(lower, upper, _CERTIFICATE)


def _delta(target: float, promise: ApproximateDP, times: int) -> Bound:
    # target >= 0.
    if times == 0:
        return Bound(0.0, 0.0, _CERTIFICATE)
    if promise.epsilon == 0.0 or target == math.inf:
        pure = Bound(0.0, 0.0)
    else:
        pure = (
            Bound(1.0, 1.0)
            if promise.epsilon == math.inf
            else _finite(target, promise.epsilon, times)
        )
    return with_failures(pure, ((promise.delta, times),), _CERTIFICATE)


def _finite(target: float, epsilon: float, times: int) -> Bound:
    # target >= 0; 0 < epsilon < inf.
    for careful in (False, True):
        found = piecewise_value(target, epsilon=epsilon, times=times, careful=careful)
        if found is not None and found[1] - found[0] <= _NARROW * found[0]:
            return Bound(*found)
    return _pure(target, epsilon, times).bound()


@dataclass(frozen=True)
class _Tail:
    """The delta of k losses +-epsilon at one target, and its formula up to the next lattice point.

    It is E[(1 - e^(target - L))_+] with L = (2 j - k) epsilon, j binomial. For every target with
    the same next lattice point `lattice` it is e^(scale + fine) (at_lattice - expm1(-y) weight), y
    the distance to that point.
    """

    total: float
    lattice: float
    scale: float = 0.0
    fine: float = 0.0
    error: float = 0.0
    omitted: float = 0.0
    descent: float = 0.0
    at_lattice: float = 0.0
    weight: float = 0.0

    def bound(self) -> Bound:
        if self.total == 0.0:
            return Bound(0.0, 0.0)
        if self.scale > -690.0:
            size = math.exp(self.scale) * (1.0 + self.fine)
            value, error = size * self.total, self.error + 16 * U
        else:
            value, error = (
                math.exp(self.logarithm()),
                self.error + U * (4.0 * abs(self.scale) + 32.0),
            )
        lower = down(value * (1.0 - error) - _TINY)
        return Bound(
            max(0.0, lower), min(1.0, up(value * (1.0 + error + self.omitted / self.total) + _TINY))
        )

    def logarithm(self) -> float:
        return self.scale + self.fine + math.log(self.total)


_NOTHING = _Tail(total=0.0, lattice=math.inf)


def _pure(target: float, epsilon: float, times: int) -> _Tail:
    # target >= 0; 0 < epsilon < inf. The first lattice point above the target is found exactly.
    least = math.floor((Fraction(target) / Fraction(epsilon) + times) / 2) + 1
    if least > times:
        return _NOTHING
    lattice = (2 * least - times) * Fraction(epsilon)
    gap = nearest(lattice - Fraction(target))
    anchor = max(least, binomial.mode(times, epsilon=epsilon))
    window = binomial.window(times, epsilon=epsilon, anchor=anchor, least=least)
    steps = np.arange(
        window.first - least, window.first - least + len(window.masses), dtype=np.float64
    )
    # Beyond 1000 nats the factor 1 - e^(target - L) rounds to 1; the cutoff avoids overflow.
    beyond = (2.0 * min(epsilon, 1e3)) * steps
    distance = gap + beyond
    shares = -np.expm1(-distance)
    terms = window.masses * shares
    total = float(np.sum(terms))
    # The factors 1 - e^(target - L) err by 12 u (expm1, and distance, whose terms are positive);
    # the pairwise sum by 40 u.
    error = float(dots(terms, window.errors)) / total * (1.0 + 1e-9) + 52 * U
    # Above the window these factors grow by at most 2 epsilon a step, up to 1; below it they
    # decrease.
    above, below = binomial.geometric(window.above), binomial.geometric(window.below)
    growth = min(1.0, float(shares[-1])) * above + min(
        above, 2.0 * min(epsilon, 1e3) * above * (1.0 + above)
    )
    omitted = float(window.masses[-1]) * growth + float(terms[0]) * below
    return _Tail(
        scale=window.scale,
        fine=window.fine,
        total=total,
        error=error,
        omitted=omitted * (1.0 + 1e-9),
        descent=float(dots(window.masses, np.exp(-distance))),
        lattice=nearest(lattice),
        at_lattice=float(dots(window.masses, -np.expm1(-beyond))),
        weight=float(dots(window.masses, np.exp(-beyond))),
    )


def _root(target: float, epsilon: float, times: int) -> tuple[float, float]:
    # Uncertified: the epsilon at which the pure tail equals target > 0, and the width in epsilon
    # that corresponds to its error.
    lower, upper = 0.0, times * epsilon
    mean = times * epsilon * math.tanh(epsilon / 2.0)
    deviation = math.sqrt(times) * epsilon / math.cosh(min(epsilon, 700.0) / 2.0)
    # For a delta close to 1 the remaining delta may be rounded above 1, where there is no quantile.
    point = min(
        max(mean - deviation * float(ndtri(min(target, 1.0 - 2.0**-53))), 0.0), upper * (1.0 - 1e-9)
    )
    for _ in range(200):
        tail = _pure(point, epsilon, times)
        if tail.total == 0.0:
            upper, point = point, lower + (point - lower) / 2.0
            continue
        solved = _in_cell(tail, target, 2.0 * epsilon)
        slope = tail.descent / tail.total
        if solved is not None:
            width = (tail.error + 1e-15) / slope if slope > 0.0 else 0.0
            return max(solved, 0.0), max(width, 2.0 * math.ulp(solved))
        excess = tail.logarithm() - math.log(target)
        lower, upper = (point, upper) if excess > 0.0 else (lower, point)
        following = point + excess / slope if slope > 0.0 else math.nan
        if not lower < following < upper:
            following = lower + (upper - lower) / 2.0
        if following in (lower, upper):
            break
        point = following
    return point, 4.0 * math.ulp(upper)


def _in_cell(tail: _Tail, target: float, width: float) -> float | None:
    # The root, if the target lies between the values at the two ends of the lattice cell.
    logarithm = math.log(target) - tail.scale - tail.fine
    if not (-700.0 < logarithm < 700.0 and tail.weight > 0.0):
        return None
    share = (math.exp(logarithm) - tail.at_lattice) / tail.weight
    if not 0.0 <= share <= -math.expm1(-width):
        return None
    return tail.lattice + (math.log1p(-share) if share < 1.0 else -width)


def piecewise_root(
    least: float, most: float, *, epsilon: float, times: int, careful: bool = False
) -> tuple[float, float] | None:
    """Floats (lower, upper) around the epsilon of `times` losses +-`epsilon` at a delta.

    The delta is at most `least` from `upper` on, and at least `most` up to `lower` if that is
    positive. None where floats cannot prove this.

    Args:
        least: The smaller delta, in (0, 1).
        most: The larger delta, at least `least` and below 1.
        epsilon: The absolute value of each loss, in nats.
        times: The number of losses; at least 1.
        careful: Whether to take more time for smaller errors.
    """
    if not (_SMALLEST <= epsilon <= _LARGEST and times <= _MOST and 1e-300 <= least <= most < 1.0):
        return None
    start = _sums_below(least, epsilon, times, careful)
    if start is None:
        return None
    first, value, weight, mass, error, omitted, unit, (odds, shrink, growth, drift) = start
    if math.log(most) - unit * math.log(2.0) > 690.0:
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
    if not mass > _LEAST_MASS:
        return None
    error += drift * (index - first) + 16.0 * U
    width, lattice = 2.0 * epsilon, (times - 2 * index) * epsilon
    above = _before_lattice_point(
        wanted - (value * (1.0 + error) + omitted), weight * (1.0 + error) + omitted, width
    )
    if above > 0.0:
        above = _past_lattice_point(
            (value * (1.0 + error) + omitted) - wanted, before * (1.0 - error)
        )
        if not above <= width:
            return None
    short = math.ldexp(most, -unit) - value * (1.0 - error)
    share = short / (weight * (1.0 - error)) * (1.0 + 4.0 * U) if short >= 0.0 else 0.0
    below = math.log1p(-share) if share < 1.0 else -math.inf
    upper, lower = lattice + above, lattice + below
    upper = max(upper + U * (2.0 * lattice + 2.0 * abs(upper)), 0.0)
    if upper >= times * epsilon:
        upper = rounded_up(Fraction(epsilon) * times)
    lower = (
        max(lower - U * (2.0 * lattice + 2.0 * lower - 9.0 * below), 0.0) if lower > 0.0 else 0.0
    )
    return min(lower, upper), upper


def _before_lattice_point(short: float, weight: float, width: float) -> float:
    """The largest y in [-width, 0] with weight (1 - e^y) >= `short`, rounded up; or +inf.

    y is an epsilon relative to a lattice point, on the line of the cell below it.
    """
    if not short >= 0.0:
        return math.inf
    # Below the cell, the profile's value at the lower edge is used.
    share = short / weight * (1.0 - 4.0 * U)
    return max(math.log1p(-share) * (1.0 - 9.0 * U), -width) if share < 1.0 else -width


def _past_lattice_point(excess: float, weight: float) -> float:
    """The distance above a lattice point at which the profile is `excess` lower; rounded up.

    The profile is taken on the line of the next cell, of slope `weight` in -e^y, y the distance.
    """
    return (
        math.log1p(excess / weight * (1.0 + 4.0 * U)) * (1.0 + 9.0 * U)
        if weight > 0.0
        else math.inf
    )


def piecewise_value(
    target: float, *, epsilon: float, times: int, careful: bool = False
) -> tuple[float, float] | None:
    """Floats (lower, upper) around the delta of `times` losses +-`epsilon`, at `target` >= 0.

    None where floats cannot enclose it; `careful` takes more time for smaller errors.
    """
    if not (
        _SMALLEST <= epsilon <= _LARGEST
        and times <= _MOST
        and target < times * epsilon * (1.0 - 4.0 * U)
    ):
        return None
    index = min(int((times - target / epsilon) / 2.0), times)
    while (gap := _distance(target, epsilon, times - 2 * index)) <= 0.0:
        index -= 1
    while (further := _distance(target, epsilon, times - 2 * index - 2)) > 0.0:
        index, gap = index + 1, further
    sums = _sums_at(index, epsilon, times, careful)
    if sums is None or not sums.mass > _LEAST_MASS:
        return None
    total = sums.value - sums.weight * math.expm1(-gap)
    error = sums.error + 16.0 * U
    low, high = total * (1.0 - error), total * (1.0 + error) + sums.omitted
    if sums.unit:
        low, high = math.ldexp(low, sums.unit) - 5e-324, math.ldexp(high, sums.unit) + 5e-324
    return max(low, 0.0), min(high, 1.0)


def _distance(target: float, epsilon: float, count: int) -> float:
    """count * epsilon - target, rounded to nearest once."""
    (factor, below), (term, under) = epsilon.as_integer_ratio(), target.as_integer_ratio()
    return (count * factor * under - term * below) / (below * under)


def _sums_at(index: int, epsilon: float, times: int, careful: bool) -> Sums | None:
    """The sums D and B of `guarantee.binomial` at `index`; None if they have too many terms."""
    if times <= _FEW and not careful:
        return first_sums(epsilon, times).continued(index, times)
    law = BinomialLaw(epsilon, times)
    first = law.first(index)
    if index > law.far or index - first > _LONGEST:
        return None
    window = index - first > (_CAREFUL_STEPS if careful else _STEPS)
    return (
        law.window(index, first, careful=careful)
        if window
        else law.start(first).continued(index, times)
    )


def _sums_below(target: float, epsilon: float, times: int, careful: bool) -> Sums | None:
    """The sums D and B at an index where D is below `target`, but close to it.

    None if they have too many terms.
    """
    if times <= _FEW and not careful:
        return first_sums(epsilon, times)
    law = BinomialLaw(epsilon, times)
    guess, steep = law.guess(math.log(target))
    first = law.first(int(guess))
    if int(guess) - first > _LONGEST:
        return None
    if int(guess) - first <= (_CAREFUL_STEPS if careful else _STEPS):
        return law.start(first)
    index = max(int(guess - 0.02 / steep) - 1, first)
    for _ in range(6):
        sums = law.window(index, first, careful=careful)
        ratio = math.ldexp(target, -sums.unit) / sums.value if sums.value else 1.0
        # log D is concave: a step of Newton's method from below ends below.
        step = math.log(ratio) * sums.value / (sums.weight * sums.factors.growth)
        if 0.0 <= step <= (_CAREFUL_STEPS if careful else _STEPS):
            return sums
        step = step if step > 0.0 else max(1.1 * step, -law.deviation) - 3.0
        moved = min(max(index + int(step), 0), int(law.far))
        if moved == index:
            return sums
        index = moved
        first = law.first(index)
    return None
