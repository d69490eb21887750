"""Sums over the upper end of a binomial law of losses, in floats whose rounding is bounded term by term.

Let i of k losses be -epsilon: L = l_i = (k - 2 i) epsilon with mass w_i = C(k, i) x^i / (1 + x)^k, x = e^-epsilon. Then

    D_m = sum_(i<m) w_i (1 - e^(-2 (m - i) epsilon)),    B_m = sum_(i<=m) w_i e^(-2 (m - i) epsilon),
    D_(m+1) = D_m + B_m (1 - e^(-2 epsilon)),            B_(m+1) = B_m e^(-2 epsilon) + w_(m+1).

Nothing is subtracted, hence rounding errors add up and never grow. With u = 2^-53: exp, expm1 and log1p err by 8 u, one
operation by u. Where x and e^(-2 epsilon) come from `math.exp`, w errs by 11 u more at each step, and D and B by 12 u
more than the worst of the three; where they are rounded to nearest, by 4 u and 5 u. D errs by 10 u once more for the
factor 1 - e^(-2 epsilon).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dpcompose.numerics import fixed_point
from dpcompose.numerics.binomial import Reals, deviance
from dpcompose.numerics.bound import UNIT_ROUNDOFF as U
from dpcompose.numerics.decimals import STIRLING

_SERIES = tuple(numerator / denominator for numerator, denominator in reversed(STIRLING[:7]))
_SUMMED = 80 * U
_DEPTH = 43.0


class Factors(NamedTuple):
    """x, e^(-2 epsilon), 1 - e^(-2 epsilon), and what a step of the recurrences adds to the relative errors."""

    odds: float
    shrink: float
    growth: float
    drift: float


class Sums(NamedTuple):
    """D, B and w at one place in units of 2^`unit`, relative error `error`; the mass `left` out may add to D and B."""

    place: int
    value: float
    weight: float
    mass: float
    error: float
    left: float
    unit: int
    factors: Factors

    def climbed(self, index: int, times: int) -> Sums:
        """The sums at a higher place."""
        first, value, weight, mass, error, left, unit, factors = self
        odds, shrink, growth, drift = factors
        for at in range(first + 1, index + 1):
            value += weight * growth
            mass *= (times - at + 1) * odds / at
            weight = weight * shrink + mass
        return Sums(index, value, weight, mass, error + drift * (index - first) + 10.0 * U, left, unit, factors)


def top(epsilon: float, times: int) -> Sums:
    """The sums at 0: w_0 = (1 + x)^-k, whose exponent errs by 17 u of itself."""
    odds = math.exp(-epsilon)
    exponent = times * math.log1p(odds)
    mass = math.exp(-exponent)
    factors = Factors(odds, math.exp(-2.0 * epsilon), -math.expm1(-2.0 * epsilon), 12.1 * U)
    return Sums(0, 0.0, mass, mass, U * (18.0 * exponent + 9.0), 0.0, 0, factors)


class Law:
    """The masses of one law, their logarithms in fixed point: good to 1e-20 before they are rounded to floats."""

    def __init__(self, epsilon: float, times: int) -> None:
        self.epsilon, self.times, self.exponent = epsilon, times, fixed_point.of(epsilon)
        mantissa, power = fixed_point.exponential(-self.exponent)
        square = mantissa * mantissa >> fixed_point.BITS
        odds, shrink = mantissa / fixed_point.ONE, square / fixed_point.ONE
        self.factors = Factors(
            math.ldexp(odds, power), math.ldexp(shrink, 2 * power), -math.expm1(-2.0 * epsilon), 5.1 * U
        )
        self.normal = fixed_point.logarithm(fixed_point.ONE + (mantissa >> -power))
        """log(1 + x) in fixed point."""
        share = self.factors.odds / (1.0 + self.factors.odds)
        self.mode = times * share
        self.deviation = math.sqrt(self.mode * (1.0 - share))
        self.far = min(self.mode + 10.0 * self.deviation + 10.0, times / 2.0)
        """Beyond this place the sums gain nothing more, or losses are negative."""

    def first(self, place: int) -> int:
        """Up to where masses matter below a place: they fall by e^(-descent d - d^2 / (2 v)) at least."""
        peak = min(place, int(self.mode))
        if peak <= 32:
            return 0
        rest = self.times - peak
        descent = max(math.log(rest / peak) - self.epsilon, 0.0)
        bend = 2.0 * _DEPTH * self.times / (peak * rest)
        lowest = peak - 4 - int(2.0 * _DEPTH / (descent + math.sqrt(descent * descent + bend)))
        return lowest if lowest >= 16 else 0

    def start(self, first: int) -> Sums:
        """The sums at `first`, 0 or at least 16, as if nothing were below."""
        mass, unit = self._mass(first)
        return Sums(first, 0.0, mass, mass, 12.0 * U, self._left(first, mass), unit, self.factors)

    def window(self, place: int, first: int, *, careful: bool = False) -> Sums:
        """The sums at `place` over the masses from `first` on, as an array; `careful` through logarithms.

        Each ratio of masses errs by 4 u, exp and expm1 by 8 u and the rounding of the distance, a pairwise sum by 40 u.
        """
        if place - first < 2:
            return self.start(first)
        mass, unit = self._mass(place)
        steps = np.arange(1.0, place - first + 1.0)
        if careful:
            masses, errors = self._masses(place, first)
        else:
            count = (place + 1.0) - steps
            masses = np.cumprod(count / ((self.times + 1.0 - count) * self.factors.odds))
            errors = (4.1 * U) * steps
        distance = (-2.0 * self.epsilon) * steps
        terms, damped = masses * -np.expm1(distance), masses * np.exp(distance)
        value, weight = float(np.sum(terms)), 1.0 + float(np.sum(damped))
        drift = max(float(terms @ errors) / value, float(damped @ (errors - U * distance)) / weight)
        left = self._left(first, mass * float(masses[-1]))
        error = 1.01 * drift + _SUMMED
        return Sums(place, mass * value, mass * weight, mass, error, left, unit, self.factors)

    def _masses(self, place: int, first: int) -> tuple[Reals, Reals]:
        """The masses below a place over that at it, downward, with their errors."""
        drift = fixed_point.logarithm(self.times - place << fixed_point.BITS) - fixed_point.logarithm(
            place << fixed_point.BITS
        )
        drift = (drift - self.exponent) / fixed_point.ONE
        masses, errors = deviance(self.times, anchor=place, first=first, last=place - 1, drift=drift)
        return masses[::-1], errors[::-1]

    def guess(self, log_target: float) -> tuple[float, float]:
        """About where D is the target, and how steeply log D rises there: Newton's method from Stirling's formula."""
        times, epsilon, odds = self.times, self.epsilon, self.factors.odds
        normal = math.lgamma(times + 1.0) - times * (self.normal / fixed_point.ONE)
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
        """(m, n): w_index = m 2^n, relative error at most 10 u."""
        times = self.times
        total = -index * self.exponent - times * self.normal
        if index:
            rest = times - index
            double = (2 * times + 1) * fixed_point.logarithm(times << fixed_point.BITS)
            double -= (2 * index + 1) * fixed_point.logarithm(index << fixed_point.BITS)
            double -= (2 * rest + 1) * fixed_point.logarithm(rest << fixed_point.BITS)
            # Stirling's remainders are below 0.006 and good to 4 u of themselves.
            total += (double - fixed_point.LN2PI) // 2
            total += fixed_point.of(_stirling(times) - _stirling(index) - _stirling(rest))
        unit = 0
        if total < -600 << fixed_point.BITS:
            unit = total // fixed_point.LN2
            total -= unit * fixed_point.LN2
        leading, rest = fixed_point.split(total)
        return math.exp(leading) * (1.0 + rest), unit

    def _left(self, first: int, mass: float) -> float:
        """A bound on the masses below `first`, whose own is given: their ratios fall."""
        ratio = first / ((self.times - first + 1) * self.factors.odds) * (1.0 + 8.0 * U)
        return mass * ratio / (1.0 - ratio) * (1.0 + 1e-9) if ratio < 1.0 - 1e-4 else math.inf


def _stirling(count: int) -> float:
    """log n! - (n + 1/2) log n + n - log(2 pi) / 2 for n >= 16: Stirling's series, whose next term is below 3e-20."""
    inverse = 1.0 / count
    square = inverse * inverse
    series = 0.0
    for coefficient in _SERIES:
        series = coefficient + square * series
    return inverse * series
