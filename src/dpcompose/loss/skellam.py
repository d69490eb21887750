"""The loss of Skellam noise, the difference of two Poisson variables: atoms of the integers, in closed form.

p(x) = e^-v I_x(v). The ratios r_n = I_(n+1)(v) / I_n(v) obey r_n = 1 / (2 (n + 1) / v + r_(n+1)). Downward every step
shrinks an error by r_n r_(n+1) < 1, so that integers of 192 bits give all of them to 150 bits, from whatever start so
far out that p has fallen by e^-60 more. The losses at a shift are sums of -ln r_n of one sign; the masses follow from
the sums up to n. Below e^-95 the masses of either distribution are omitted: their place is unknown.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from dpcompose.errors import UnsupportedError
from dpcompose.loss.atomic import AtomicLoss, AtomsAbove
from dpcompose.loss.atoms import Atoms
from dpcompose.numerics import U

BITS, ONE = 192, 1 << 192
DEEP, LARGEST = 95.0, 600.0


@lru_cache(maxsize=64)
def skellam(variance: float, shift: int) -> AtomicLoss:
    """The loss of noise moved by `shift` >= 1 against the noise."""
    falls = _falls(variance, shift)
    sums = [0, *accumulate(falls)]
    reach = next(place for place, fall in enumerate(sums) if fall > DEEP * ONE)
    deepest = sums[reach + shift] / ONE
    if not deepest < LARGEST:
        raise UnsupportedError(
            f"Skellam({variance!r}, shift={shift})",
            f"masses of e^-{deepest:.0f} are beyond e^-{LARGEST:.0f}",
            "Use more noise",
        )
    places = range(-reach, reach + shift + 1)
    weights = np.exp(
        [-sums[abs(place)] / ONE for place in range(-reach - shift, reach + shift + 1)]
    )
    # Ratios of neighbors fall, so that what is beyond the last is at most geometric.
    last = math.exp(-falls[reach + shift] / ONE)
    beyond = float(weights[-1]) * last / (1 - last)
    total = float(weights.sum())
    masses = weights / total
    losses = tuple((sums[abs(place)] - sums[abs(place - shift)]) / ONE for place in places)
    upper, lower = masses[: len(losses)], masses[shift:]
    outside = 2.1 * (float(masses[: shift + 1].sum()) + beyond / total)
    error = U * (64 + 16 * deepest) + 2.1 * beyond / total
    table = Atoms(
        tuple(upper.tolist()),
        tuple(lower.tolist()),
        losses,
        relative_error=error,
        omitted_mass=outside,
        log_ratio_relative_error=16 * U,
    )
    return AtomsAbove(table, SkellamMoment(table, variance, shift, reach, -falls[reach] / ONE))


@dataclass(frozen=True)
class SkellamMoment:
    """K of the noise moved by `shift`: the sum over the atoms, and bounds beyond them.

    On the left the losses are negative. On the right 1 / r_n = 2 (n + 1) / v + r_(n+1) < 2 (n + 1) / v + 1, so that
    e^(b L(x)) <= (1 + 2 x / v)^(b shift), while the masses fall at least by the ratio at `reach` from one integer to
    the next.

    Args:
        table: The atoms.
        variance: v.
        shift: The shift.
        reach: The last integer of the masses, before the shift.
        log_fall: log of the ratio there, good to 16 U of itself.
    """

    table: Atoms
    variance: float
    shift: int
    reach: int
    log_fall: float

    def __call__(self, exponent: float) -> float:
        p, _, losses = self.table.common
        most, start = exponent * float(losses[-1]), self.reach + self.shift + 1
        terms = np.exp(exponent * losses - max(most, 0.0)) * p
        growth = 2 * exponent * self.shift / (2 * start + self.variance)
        fall = self.log_fall * (1 - 32 * U) + growth * (1 + 32 * U)
        if not (fall < -1e-9 and most < 1e300):
            return math.inf
        log_beyond = math.log(p[-1]) + exponent * self.shift * math.log1p(2 * start / self.variance)
        log_beyond -= math.log(-math.expm1(fall))
        relative_error = self.table.relative_error + U * (
            4 * len(p) + 64 + 64 * abs(most) + 8 * abs(log_beyond)
        )
        parts = [
            math.log(float(terms.sum())) + max(most, 0.0),
            math.log(self.table.unplaced_mass),
            log_beyond,
        ]
        top = max(parts)
        return top + math.log(sum(math.exp(part - top) for part in parts)) + 2 * relative_error


def _falls(variance: float, shift: int) -> list[int]:
    """-ln r_n for n = 0, 1, ..., in fixed point, each good to 8 U of itself."""
    count = math.ceil(14.5 * math.sqrt(variance)) + 120 + shift
    exact = Fraction(variance)
    unit = 2 * exact.denominator * ONE // exact.numerator
    ratio, falls = ONE // 2, [0] * count
    for place in range(2 * count, -1, -1):
        ratio = ONE * ONE // ((place + 1) * unit + ratio)
        if place < count:
            lost = (ONE - ratio) / ONE
            fall = -math.log1p(-lost) if lost < 0.5 else -math.log(ratio / ONE)
            numerator, denominator = fall.as_integer_ratio()
            falls[place] = (numerator << BITS) // denominator
    return falls
