"""The masses of a binomial law around the terms that matter, each with a proved relative error, up to 1e11 trials.

One mass, the anchor, is evaluated in sixty-digit decimals (Stirling's series with its enveloping remainder); every
other one through its ratio to the anchor: by the recurrence when the window is short, else by Loader's deviance, whose
terms all pull the same way, so that nothing cancels.
"""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dpcompose.errors import UnsupportedError
from dpcompose.numerics.bound import UNIT_ROUNDOFF
from dpcompose.numerics.decimals import STIRLING, digits, log_factorial

Reals = NDArray[np.float64]

LONGEST = 2**22
"""Terms in a window beyond which it is refused."""
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
    """Consecutive masses P[Bin(times, 1 / (1 + e^-epsilon)) = first, first + 1, ...], as multiples of e^(scale + fine).

    Args:
        first: The number of successes that the first mass belongs to.
        masses: The masses, divided by the anchor's.
        errors: A proved bound on the relative error of each.
        scale: The logarithm of the anchor's mass, rounded to a float.
        fine: What that rounding left out.
        below: The ratio at which masses decay below the window, at most; 0 when nothing is below.
        above: The ratio at which masses decay above it, at most; 0 when nothing is above.
    """

    first: int
    masses: Reals
    errors: Reals
    scale: float
    fine: float
    below: float
    above: float


def window(times: int, *, epsilon: float, anchor: int, least: int, depth: float = 50.0) -> Window:
    """The masses from max(`least`, where they are negligible) up to where they are negligible, around `anchor`.

    Args:
        times: The number of trials, at least 1.
        epsilon: The log odds of a success; > 0, finite.
        anchor: Where the masses are scaled to 1: the mode, or `least` if that lies above the mode.
        least: The smallest number of successes that matters.
        depth: The window ends where masses have fallen by about e^-depth; what lies beyond is bounded in any case.

    Raises:
        UnsupportedError: If the window would have more than 2^22 terms.
    """
    scale, fine, drift = _anchor(times, epsilon, anchor)
    above, below = _reach(times - anchor, anchor, -drift, depth), _reach(anchor, times - anchor, drift, depth)
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
        # Both ratios of consecutive masses fall away from the mode; rounded up.
        decay_above = (times - last) / (last + 1) * math.exp(min(epsilon, 700.0)) * (1.0 + 1e-14)
        decay_below = first / (times - first + 1) * math.exp(-epsilon) * (1.0 + 1e-14) if first > least else 0.0
        if max(float(masses[-1]) * geometric(decay_above), float(masses[0]) * geometric(decay_below)) < 1e-17:
            return Window(first, masses, errors, scale, fine, decay_below, decay_above)
        above, below = 2 * above, 2 * below


def geometric(ratio: float) -> float:
    """ratio + ratio^2 + ..., rounded up; infinite unless the ratio is below 1."""
    return ratio / (1.0 - ratio) * (1.0 + 1e-14) if ratio < 1.0 else math.inf


def mode(times: int, *, epsilon: float) -> int:
    """A most likely number of successes, up to one."""
    return min(times, math.floor((times + 1) / (1.0 + math.exp(-epsilon))))


def _reach(room: int, other: int, descent: float, depth: float) -> int:
    # Where descent m + m^2 / (2 v) reaches the depth, v the harmonic mean of the two counts.
    if room <= _SHORT // 2:
        return room
    variance = room * max(other, 1) / (room + other)
    descent = max(descent, 0.0)
    return min(room, 10 + math.ceil(2.0 * depth / (descent + math.sqrt(descent * descent + 2.0 * depth / variance))))


def _anchor(times: int, epsilon: float, anchor: int) -> tuple[float, float, float]:
    # log C(k, a) - k log(1 + e^-epsilon) - (k - a) epsilon in two floats, and the log ratio of the masses around a.
    with decimal.localcontext(digits(60)):
        odds = Decimal(min(epsilon, 1e6))
        failures = times - anchor
        mass = log_factorial(times) - log_factorial(anchor) - log_factorial(failures)
        mass -= times * ((-odds).exp() + 1).ln() + failures * Decimal(epsilon)
        scale = float(mass)
        drift = (Decimal(failures) / Decimal(anchor)).ln() + Decimal(epsilon) if anchor and failures else Decimal(0)
        return scale, float(mass - Decimal(scale)), float(drift)


def _recurrence(times: int, epsilon: float, anchor: int, first: int, last: int) -> tuple[Reals, Reals]:
    # Products of mass(j + 1) / mass(j) = (k - j) / (j + 1) e^epsilon away from the anchor; each factor errs by 12 u.
    upward = np.arange(anchor, last, dtype=np.float64)
    downward = np.arange(anchor, first, -1, dtype=np.float64)
    above = np.cumprod((times - upward) / (upward + 1.0) * math.exp(min(epsilon, 700.0)))
    below = np.cumprod(downward / (times - downward + 1.0) * math.exp(-epsilon))
    masses = np.concatenate((below[::-1], [1.0], above))
    return masses, 12 * UNIT_ROUNDOFF * np.abs(np.arange(first - anchor, last - anchor + 1, dtype=np.float64))


def deviance(times: int, *, anchor: int, first: int, last: int, drift: float) -> tuple[Reals, Reals]:
    """The masses from `first` to `last` over that of `anchor`, and their relative errors.

    `drift` is log((times - anchor) / anchor) plus the log odds of a success, to the last bit.
    """
    # log mass(a + m) / mass(a) = m drift - h(a, m) - h(k - a, -m) - [s(a + m) - s(a)] - [s(k - a - m) - s(k - a)],
    # n! = e^s(n) n^n e^-n, h(n, m) = (n + m) log(1 + m / n) - m >= 0.
    steps = np.arange(first - anchor, last - anchor + 1, dtype=np.float64)
    linear = steps * drift
    successes, successes_rest, successes_error = _growth(anchor, steps)
    failures, failures_rest, failures_error = _growth(times - anchor, -steps)
    logarithm = linear - successes - failures - successes_rest - failures_rest
    magnitude = np.abs(linear) + successes + failures + np.abs(successes_rest) + np.abs(failures_rest)
    return np.exp(logarithm), successes_error + failures_error + UNIT_ROUNDOFF * (9.0 * magnitude + 16.0)


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
    return deviance, rest, UNIT_ROUNDOFF * (np.where(near, 24.0, 130.0) * deviance + 16.0 * np.abs(half) + 4.0)


def _stirling_error(count: Reals) -> Reals:
    inverse = 1.0 / np.maximum(count, 16.0)
    square = inverse * inverse
    series = np.zeros_like(inverse)
    for numerator, denominator in reversed(STIRLING[:7]):
        series = numerator / denominator + square * series
    table = _STIRLING_ERRORS[np.minimum(count, 15.0).astype(np.int64)]
    return np.where(count < 16.0, table, inverse * series)
