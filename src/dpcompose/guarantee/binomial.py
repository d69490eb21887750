"""Binomial distributions: probabilities and tail sums for optimal composition, with proved errors.

`window` returns the probabilities (masses) that are not negligible, for up to 1e11 trials. One
mass, the anchor, is evaluated in sixty-digit decimals (Stirling's series with its enveloping
remainder); every other one through its ratio to the anchor: by the recurrence when the window is
short, else by Loader's deviance, whose terms all have the same sign, so that nothing cancels.

`Sums` are evaluated in floats whose rounding is bounded term by term. Let i of k losses be
-epsilon: L = l_i = (k - 2 i) epsilon with mass w_i = C(k, i) x^i / (1 + x)^k, x = e^-epsilon. Then

    D_m = sum_(i<m) w_i (1 - e^(-2 (m - i) epsilon)),    B_m = sum_(i<=m) w_i e^(-2 (m - i)
    epsilon),
    D_(m+1) = D_m + B_m (1 - e^(-2 epsilon)),            B_(m+1) = B_m e^(-2 epsilon) + w_(m+1).

Nothing is subtracted, hence rounding errors add up and never grow. With u = 2^-53: exp, expm1 and
log1p err by 8 u, one operation by u. Where x and e^(-2 epsilon) come from `math.exp`, w errs by 11
u more at each step, and D and B by 12 u more than the worst of the three; where they are rounded to
nearest, by 4 u and 5 u. D errs by 10 u once more for the factor 1 - e^(-2 epsilon).
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.errors import UnsupportedError
from dpcompose.numerics import U, dots
from dpcompose.values import (
    FIXED_BITS,
    FIXED_LN2,
    FIXED_LN2PI,
    FIXED_ONE,
    STIRLING,
    decimal_context,
    fixed,
    fixed_exponential,
    fixed_logarithm,
    fixed_split,
    log_factorial,
)

Reals = NDArray[np.float64]

LONGEST = 2**22
"""The largest number of masses in a window; `window` raises UnsupportedError beyond it."""
_SHORT = 300
# log n! - (n log n - n + log(2 pi n) / 2) for n = 0 (never used) and 1..15, rounded from ball arithmetic.
_STIRLING_ERRORS = np.array(
    [
        0.0,
        0.08106146679532726,
        0.0413406959554093,
        0.02767792568499834,
        0.020790672103765093,
        0.016644691189821193,
        0.013876128823070748,
        0.01189670994589177,
        0.010411265261972096,
        0.009255462182712733,
        0.00833056343336287,
        0.007573675487951841,
        0.00694284010720953,
        0.006408994188004207,
        0.0059513701127588475,
        0.005554733551962801,
    ]
)


@dataclass(frozen=True)
class Window:
    """Consecutive masses of a binomial distribution, as multiples of e^(scale + fine).

    They are P[Bin(times, 1 / (1 + e^-epsilon)) = j] for j = first, first + 1, ...

    Args:
        first: The number of successes that the first mass belongs to.
        masses: The masses divided by the mass at the anchor, the number of successes that sets the
            scale.
        errors: A proved bound on the relative error of each mass.
        scale: The logarithm of the mass at the anchor, rounded to a float.
        fine: The exact logarithm minus `scale`.
        below: The largest ratio of a mass below the window to the next higher one; 0 if none is
            omitted below.
        above: The largest ratio of a mass above the window to the next lower one; 0 if there is
            none above.
    """

    first: int
    masses: Reals
    errors: Reals
    scale: float
    fine: float
    below: float
    above: float


def window(times: int, *, epsilon: float, anchor: int, least: int, depth: float = 50.0) -> Window:
    """The masses of Bin(times, 1 / (1 + e^-epsilon)) around `anchor` that are not negligible.

    Args:
        times: The number of trials, at least 1.
        epsilon: The log odds of a success; > 0, finite.
        anchor: The number of successes whose mass is scaled to 1: the mode, or `least` if that lies
            above the mode.
        least: The smallest number of successes in the window.
        depth: The window ends where masses are about e^-depth of the mass at the anchor, or beyond;
            the omitted masses are bounded by `Window.below` and `Window.above`.

    Raises:
        UnsupportedError: If the window would have more than 2^22 terms.
    """
    scale, fine, drift = _anchor(times, epsilon, anchor)
    above, below = (
        _reach(times - anchor, anchor, -drift, depth),
        _reach(anchor, times - anchor, drift, depth),
    )
    while True:
        last, first = min(times, anchor + above), max(least, anchor - below)
        if last - first >= LONGEST:
            raise UnsupportedError(
                f"the exact binomial sum of {times} compositions",
                f"it has {last - first + 1} relevant terms, more than {LONGEST}",
                "Compose numerically instead",
            )
        short = last - first <= _SHORT
        if short:
            masses, errors = _recurrence(times, epsilon, anchor, first, last)
        else:
            masses, errors = deviance(times, anchor=anchor, first=first, last=last, drift=drift)
        # Ratios of consecutive masses decrease away from the mode; both are rounded up.
        decay_above = (times - last) / (last + 1) * math.exp(min(epsilon, 700.0)) * (1.0 + 1e-14)
        decay_below = (
            first / (times - first + 1) * math.exp(-epsilon) * (1.0 + 1e-14)
            if first > least
            else 0.0
        )
        if (
            max(
                float(masses[-1]) * geometric(decay_above),
                float(masses[0]) * geometric(decay_below),
            )
            < 1e-17
        ):
            return Window(
                first, masses, errors, scale=scale, fine=fine, below=decay_below, above=decay_above
            )
        above, below = 2 * above, 2 * below


def geometric(ratio: float) -> float:
    """ratio + ratio^2 + ..., rounded up; infinite if ratio >= 1."""
    return ratio / (1.0 - ratio) * (1.0 + 1e-14) if ratio < 1.0 else math.inf


def mode(times: int, *, epsilon: float) -> int:
    """A most likely number of successes in `times` trials of log odds `epsilon`, to within one."""
    return min(times, math.floor((times + 1) / (1.0 + math.exp(-epsilon))))


def _reach(room: int, other: int, descent: float, depth: float) -> int:
    # The distance m at which descent m + m^2 / (2 v) reaches `depth`, with v the harmonic mean of
    # the two counts.
    if room <= _SHORT // 2:
        return room
    variance = room * max(other, 1) / (room + other)
    descent = max(descent, 0.0)
    return min(
        room,
        10
        + math.ceil(
            2.0 * depth / (descent + math.sqrt(descent * descent + 2.0 * depth / variance))
        ),
    )


def _anchor(times: int, epsilon: float, anchor: int) -> tuple[float, float, float]:
    # log C(k, a) - k log(1 + e^-epsilon) - (k - a) epsilon in two floats, and the log ratio of the masses around a.
    with decimal.localcontext(decimal_context(60)):
        odds = Decimal(min(epsilon, 1e6))
        failures = times - anchor
        mass = log_factorial(times) - log_factorial(anchor) - log_factorial(failures)
        mass -= times * ((-odds).exp() + 1).ln() + failures * Decimal(epsilon)
        scale = float(mass)
        drift = (
            (Decimal(failures) / Decimal(anchor)).ln() + Decimal(epsilon)
            if anchor and failures
            else Decimal(0)
        )
        return scale, float(mass - Decimal(scale)), float(drift)


def _recurrence(
    times: int, epsilon: float, anchor: int, first: int, last: int
) -> tuple[Reals, Reals]:
    # Products of mass(j + 1) / mass(j) = (k - j) / (j + 1) e^epsilon away from the anchor; each factor errs by 12 u.
    upward = np.arange(anchor, last, dtype=np.float64)
    downward = np.arange(anchor, first, -1, dtype=np.float64)
    above = np.cumprod((times - upward) / (upward + 1.0) * math.exp(min(epsilon, 700.0)))
    below = np.cumprod(downward / (times - downward + 1.0) * math.exp(-epsilon))
    masses = np.concatenate((below[::-1], [1.0], above))
    return masses, 12 * U * np.abs(np.arange(first - anchor, last - anchor + 1, dtype=np.float64))


def deviance(
    times: int, *, anchor: int, first: int, last: int, drift: float
) -> tuple[Reals, Reals]:
    """The masses for `first` to `last` successes divided by the mass at `anchor`; and their errors.

    `drift` is log((times - anchor) / anchor) plus the log odds of a success, as a correctly rounded
    float. The errors are proved bounds on the relative errors of the masses.
    """
    # log mass(a + m) / mass(a) = m drift - h(a, m) - h(k - a, -m) - [s(a + m) - s(a)] - [s(k - a - m) - s(k - a)],
    # n! = e^s(n) n^n e^-n, h(n, m) = (n + m) log(1 + m / n) - m >= 0.
    steps = np.arange(first - anchor, last - anchor + 1, dtype=np.float64)
    linear = steps * drift
    successes, successes_rest, successes_error = _growth(anchor, steps)
    failures, failures_rest, failures_error = _growth(times - anchor, -steps)
    logarithm = linear - successes - failures - successes_rest - failures_rest
    magnitude = (
        np.abs(linear) + successes + failures + np.abs(successes_rest) + np.abs(failures_rest)
    )
    return np.exp(logarithm), successes_error + failures_error + U * (9.0 * magnitude + 16.0)


def _growth(base: int, steps: Reals) -> tuple[Reals, Reals, Reals]:
    # h(n, m), s(n + m) - s(n), and a bound on the absolute error of both together.
    count = base + steps
    empty = count == 0.0
    relative = np.where(empty, 0.0, steps / base)
    near = (np.abs(relative) <= 0.3) & ~empty
    safe = np.where(near, relative, 0.0)
    ratio = safe / (2.0 + safe)
    square = ratio * ratio
    series = np.zeros_like(ratio)
    for odd in range(23, 1, -2):
        series = 1.0 / odd + square * series
    small = 2.0 * square * (1.0 + (1.0 + ratio) * ratio * series) / (1.0 - ratio)
    logarithm = np.log1p(relative)
    large = np.where(empty, 1.0, (1.0 + relative) * logarithm - relative)
    deviance = base * np.where(near, small, large)
    half = np.where(empty, -0.5 * math.log(2.0 * math.pi * base), 0.5 * logarithm)
    rest = half + _stirling_error(count) - float(_stirling_error(np.array([float(base)]))[0])
    return deviance, rest, U * (np.where(near, 24.0, 130.0) * deviance + 16.0 * np.abs(half) + 4.0)


def _stirling_error(count: Reals) -> Reals:
    inverse = 1.0 / np.maximum(count, 16.0)
    square = inverse * inverse
    series = np.zeros_like(inverse)
    for numerator, denominator in reversed(STIRLING[:7]):
        series = numerator / denominator + square * series
    table = _STIRLING_ERRORS[np.minimum(count, 15.0).astype(np.int64)]
    return np.where(count < 16.0, table, inverse * series)


_SERIES = tuple(numerator / denominator for numerator, denominator in reversed(STIRLING[:7]))
_SUMMED = 80 * U
_DEPTH = 43.0


class Ratios(NamedTuple):
    """Constants of the recurrences for D and B: x = e^-epsilon, x^2, 1 - x^2, and the error per
    step.
    """

    odds: float
    shrink: float
    growth: float
    drift: float


class Sums(NamedTuple):
    """The sums D and B and the mass w at one index, in units of 2^`unit`.

    D is `value`, B is `weight` and w is `mass`; the relative error of each is at most `error`.
    Omitted masses may add up to `omitted` to D and B.
    """

    position: int
    value: float
    weight: float
    mass: float
    error: float
    omitted: float
    unit: int
    factors: Ratios

    def continued(self, index: int, times: int) -> Sums:
        """D, B and w at `index` >= `position`, by their recurrences from the ones here; `times` is k."""
        first, value, weight, mass, error, _, _, (odds, shrink, growth, drift) = self
        for at in range(first + 1, index + 1):
            value += weight * growth
            mass *= (times - at + 1) * odds / at
            weight = weight * shrink + mass
        error = error + drift * (index - first) + 10.0 * U
        return self._replace(position=index, value=value, weight=weight, mass=mass, error=error)


def first_sums(epsilon: float, times: int) -> Sums:
    """The sums D, B and w at index 0 for `times` losses +-`epsilon`.

    There w_0 = (1 + x)^-k, whose exponent has a relative error of 17 u.
    """
    odds = math.exp(-epsilon)
    exponent = times * math.log1p(odds)
    mass = math.exp(-exponent)
    factors = Ratios(odds, math.exp(-2.0 * epsilon), -math.expm1(-2.0 * epsilon), 12.1 * U)
    error = U * (18.0 * exponent + 9.0)
    return Sums(0, 0.0, mass, mass, error, omitted=0.0, unit=0, factors=factors)


class BinomialLaw:
    """The masses w_i of `times` losses +-`epsilon`, from logarithms in fixed point, accurate to
    1e-20.
    """

    def __init__(self, epsilon: float, times: int) -> None:
        self.epsilon, self.times, self.exponent = epsilon, times, fixed(epsilon)
        mantissa, power = fixed_exponential(-self.exponent)
        square = mantissa * mantissa >> FIXED_BITS
        odds, shrink = mantissa / FIXED_ONE, square / FIXED_ONE
        self.factors = Ratios(
            math.ldexp(odds, power),
            math.ldexp(shrink, 2 * power),
            -math.expm1(-2.0 * epsilon),
            5.1 * U,
        )
        self.normal = fixed_logarithm(FIXED_ONE + (mantissa >> -power))
        """log(1 + x) in fixed point."""
        share = self.factors.odds / (1.0 + self.factors.odds)
        self.mode = times * share
        self.deviation = math.sqrt(self.mode * (1.0 - share))
        self.far = min(self.mode + 10.0 * self.deviation + 10.0, times / 2.0)
        """Beyond this index further terms are negligible, or losses are negative."""

    def first(self, position: int) -> int:
        """An index below which masses are negligible in the sums at `position`; 0, or at least 16.

        Below the peak, masses at distance d fall by e^(-descent d - d^2 / (2 v)) at least.
        """
        peak = min(position, int(self.mode))
        if peak <= 32:
            return 0
        rest = self.times - peak
        descent = max(math.log(rest / peak) - self.epsilon, 0.0)
        bend = 2.0 * _DEPTH * self.times / (peak * rest)
        lowest = peak - 4 - int(2.0 * _DEPTH / (descent + math.sqrt(descent * descent + bend)))
        return lowest if lowest >= 16 else 0

    def start(self, first: int) -> Sums:
        """The sums at index `first` (0, or at least 16), from the mass at `first` alone.

        `omitted` bounds the masses below it.
        """
        mass, unit = self._mass(first)
        omitted = self._omitted(first, mass)
        return Sums(
            first, 0.0, mass, mass, 12.0 * U, omitted=omitted, unit=unit, factors=self.factors
        )

    def window(self, position: int, first: int, *, careful: bool = False) -> Sums:
        """The sums at index `position` over the masses from index `first` on, evaluated with numpy.

        With `careful`, each mass comes from its logarithm, otherwise from a product of ratios.

        Relative errors: 4 u for each ratio of masses, 8 u and the rounding of the argument for exp
        and expm1, 40 u for a pairwise sum.
        """
        if position - first < 2:
            return self.start(first)
        mass, unit = self._mass(position)
        steps = np.arange(1.0, position - first + 1.0)
        if careful:
            masses, errors = self._masses(position, first)
        else:
            count = (position + 1.0) - steps
            masses = np.cumprod(count / ((self.times + 1.0 - count) * self.factors.odds))
            errors = (4.1 * U) * steps
        distance = (-2.0 * self.epsilon) * steps
        terms, damped = masses * -np.expm1(distance), masses * np.exp(distance)
        value, weight = float(np.sum(terms)), 1.0 + float(np.sum(damped))
        drift = max(
            float(dots(terms, errors)) / value, float(dots(damped, errors - U * distance)) / weight
        )
        omitted = self._omitted(first, mass * float(masses[-1]))
        error = 1.01 * drift + _SUMMED
        return Sums(
            position,
            mass * value,
            mass * weight,
            mass,
            error,
            omitted=omitted,
            unit=unit,
            factors=self.factors,
        )

    def _masses(self, position: int, first: int) -> tuple[Reals, Reals]:
        """The masses at position - 1, ..., first over the mass at `position`; and their errors."""
        drift = fixed_logarithm(self.times - position << FIXED_BITS) - fixed_logarithm(
            position << FIXED_BITS
        )
        drift = (drift - self.exponent) / FIXED_ONE
        masses, errors = deviance(
            self.times, anchor=position, first=first, last=position - 1, drift=drift
        )
        return masses[::-1], errors[::-1]

    def guess(self, log_target: float) -> tuple[float, float]:
        """An estimate of the index at which log D is `log_target`, and of the slope of log D at it.

        It is Newton's method on an approximation of D by Stirling's formula; nothing is proved.
        """
        times, epsilon, odds = self.times, self.epsilon, self.factors.odds
        normal = math.lgamma(times + 1.0) - times * (self.normal / FIXED_ONE)
        most, steep = self.far, 1.0
        index = (times - math.sqrt(-2.0 * log_target * times / odds)) * odds / (1.0 + odds)
        index = min(max(index, 0.5), most)
        for _ in range(30):
            rest = times - index
            descent = math.log(rest / index) - epsilon
            bend = 2.5 * times / (index * rest)
            root = math.sqrt(descent * descent + bend)
            further = descent + 2.0 * epsilon
            other = math.sqrt(further * further + bend)
            steep, shallow = (descent + root) / 2.0, (further + other) / 2.0
            # 1 / steep - 1 / shallow, which a tiny epsilon would cancel.
            gap = epsilon * (1.0 + (further + descent) / (root + other)) / (steep * shallow)
            log_mass = normal - math.lgamma(index + 1.0) - math.lgamma(rest + 1.0) - index * epsilon
            step = (log_target - log_mass - math.log(max(gap, 5e-324))) / steep
            moved = min(max(index + step, 0.5), most)
            if abs(step) * steep < 0.02 or moved == index:
                return moved, steep
            index = moved
        return index, steep

    def _mass(self, index: int) -> tuple[float, int]:
        """(m, n) with w_index = m 2^n, relative error at most 10 u."""
        times = self.times
        total = -index * self.exponent - times * self.normal
        if index:
            rest = times - index
            double = (2 * times + 1) * fixed_logarithm(times << FIXED_BITS)
            double -= (2 * index + 1) * fixed_logarithm(index << FIXED_BITS)
            double -= (2 * rest + 1) * fixed_logarithm(rest << FIXED_BITS)
            # Stirling's remainders are below 0.006 and good to 4 u of themselves.
            total += (double - FIXED_LN2PI) // 2
            total += fixed(_stirling(times) - _stirling(index) - _stirling(rest))
        unit = 0
        if total < -600 << FIXED_BITS:
            unit = total // FIXED_LN2
            total -= unit * FIXED_LN2
        leading, rest = fixed_split(total)
        return math.exp(leading) * (1.0 + rest), unit

    def _omitted(self, first: int, mass: float) -> float:
        """An upper bound on the sum of the masses below index `first`, whose mass is `mass`."""
        ratio = first / ((self.times - first + 1) * self.factors.odds) * (1.0 + 8.0 * U)
        return mass * ratio / (1.0 - ratio) * (1.0 + 1e-9) if ratio < 1.0 - 1e-4 else math.inf


def _stirling(count: int) -> float:
    """log n! - (n + 1/2) log n + n - log(2 pi) / 2 for n = count >= 16, to 3e-20 (Stirling's
    series).
    """
    inverse = 1.0 / count
    square = inverse * inverse
    series = 0.0
    for coefficient in _SERIES:
        series = coefficient + square * series
    return inverse * series
