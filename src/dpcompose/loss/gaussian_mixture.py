"""Mixtures of normal distributions, opposed ones, and grids over the noise between them.

Mixtures of normal distributions with means of one sign, against the standard normal distribution.

With r(x) = sum of w_i e^(m_i x - m_i^2 / 2), m_i >= 0, let v_i(x) = w_i e^(m_i x - m_i^2 / 2) / r(x) be the shares.
Then d log r / dx = sum of v_i m_i rises with x. On Im x = y > 0, where (largest m - smallest m) y < pi, all terms lie
in a sector, so that
  r(x) cos((largest - smallest) y / 2) <= |r(x + iy)| <= r(x),   0 <= a_y(x) = arg r(x + iy) <= (largest m) y.
The derivative of log r(x + iy) in x is c / |sum of v_j e^(i m_j y)|^2, with
  Re c = sum over i, j of v_i v_j (m_i + m_j) cos((m_i - m_j) y) / 2,
  Im c = sum over i, j of v_i v_j (m_i - m_j) sin((m_i - m_j) y) / 2 >= 0.
So a_y(x) rises with x, and up to a right angle of (largest - smallest) y with y.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Context, Decimal, localcontext
from functools import cached_property
from itertools import product
from typing import NamedTuple

import numpy as np

from dpcompose.contour import ArrayRows, WeightedPoints
from dpcompose.errors import UnsupportedError
from dpcompose.law import LEAST_WEIGHT
from dpcompose.numerics import Reals, U, minus_log1p

LEAST_MASS = 5e-324
"""The least positive float."""
MOST_TERMS = 8192
_LARGEST_RISE = 700.0
"""A term of the least weight that rises by as much alone makes r larger than 2, and no sum of them overflows."""


class Tilt(NamedTuple):
    """The likelihood ratio r of a mixture against N(0, 1) at real points x, shape (m, n), and the share of each of the
    mixture's terms in it, shape (m, terms, n)."""

    log: Reals
    excess: Reals
    """r - 1 where that is at most a half in size, else unusable."""
    error: Reals
    """A bound on the error of `log`, and where it is used, on that of `excess`."""
    shares: Reals
    slope: Reals
    """d log r / dx."""


class Turn(NamedTuple):
    """By what factor r changes between a real point and a point above it: r(x + iy) / r(x)."""

    log: Reals
    """The logarithm of its modulus, at most 0."""
    angle: Reals
    """Its argument, at least 0."""
    size: Reals
    """A bound on how far it is from e^(i (smallest mean) y)."""


@dataclass(frozen=True, eq=False)
class MixtureRows(ArrayRows):
    """Mixtures with equally many terms, in rows.

    Args:
        means: In units of the noise; increasing, >= 0; shape (m, terms).
        weights: Positive, with sum 1; shape (m, terms).
        ulps: How many units of roundoff all means of a row may be off, shape (m, 1).
        weight_error: A bound on the relative error of each weight, shape (m, 1).
    """

    means: Reals
    weights: Reals
    ulps: Reals
    weight_error: Reals

    @staticmethod
    def of(mixtures: Sequence[GaussianMixture]) -> MixtureRows:
        """Those of several mixtures."""
        means, weights = ([each.means for each in mixtures], [each.weights for each in mixtures])
        ulps, errors = (
            [[each.ulps] for each in mixtures],
            [[each.weight_error] for each in mixtures],
        )
        return MixtureRows(
            *(np.array(each, dtype=float) for each in (means, weights, ulps, errors))
        )

    @cached_property
    def nothing(self) -> bool:
        """Whether all are N(0, 1) itself."""
        return self.means.shape[1] == 1 and not self.means.any()

    @property
    def largest(self) -> Reals:
        """The largest mean, shape (m, 1)."""
        return self.means[:, -1:]

    @property
    def width(self) -> Reals:
        """The distance of the largest mean from the smallest, shape (m, 1)."""
        return self.means[:, -1:] - self.means[:, :1]

    @cached_property
    def _columns(self) -> tuple[Reals, Reals, Reals]:
        """Means, weights and their logarithms, shape (m, terms, 1)."""
        return self.means[:, :, None], self.weights[:, :, None], np.log(self.weights)[:, :, None]

    def exponents(self, x: Reals) -> Reals:
        """m_i x - m_i^2 / 2, shape (m, terms, n)."""
        means = self._columns[0]
        return means * (x[:, None, :] - means / 2)

    def at(self, x: Reals) -> Tilt:
        """At some points log r, a bound on its error, and the shares of the terms."""
        means, weights, logs = self._columns
        if self.nothing:
            zero = np.zeros(x.shape)
            return Tilt(zero, zero, zero, np.ones((len(x), 1, x.shape[1])), zero)
        z = self.exponents(x)
        exponent = z + logs
        top = exponent.max(axis=1, keepdims=True)
        shares = np.exp(exponent - top)
        total = shares.sum(axis=1, keepdims=True)
        shares /= total
        log = (top + np.log(total))[:, 0]
        slope = (shares * means).sum(axis=1)
        # Every exponent errs by a few U of |x| m + m^2, and the logarithm by the mean of that under the shares.
        moved = (
            U * (4 + 3 * self.ulps) * (np.abs(x) * slope + (shares * (means * means)).sum(axis=1))
        )
        rise = np.expm1(np.minimum(z, _LARGEST_RISE)) * weights
        excess = rise.sum(axis=1)
        near, terms = np.abs(excess) < 0.5, self.means.shape[1]
        logged = 4 * (shares * np.abs(logs)).sum(axis=1)
        plain = moved + U * (terms + 12 + 4 * np.abs(log) + logged) + self.weight_error
        close = np.abs(rise).sum(axis=1) * (U * (11 + terms) + self.weight_error) + 1e-300
        inner = np.where(near, excess, 0.0)
        log = np.where(near, np.log1p(inner), log)
        close = moved + close / (1 + np.minimum(inner, 0.0)) + 4 * U * np.abs(log)
        return Tilt(log, excess, np.where(near, close, plain), shares, slope)

    def opposed_excess(self, x: Reals) -> tuple[Reals, Reals]:
        """r(x) - r(-x) and a bound on its relative error: the sum of 2 w_i e^(-m_i^2 / 2) sinh(m_i x), of one sign."""
        means, weights, _ = self._columns
        size = np.abs(x)[:, None, :]
        terms = weights * np.exp(np.minimum(means * (size - means / 2), _LARGEST_RISE))
        terms *= -np.expm1(-2 * means * size)
        total = terms.sum(axis=1)
        moved = ((4 + 3 * self.ulps[:, :, None]) * means * (size + means) * terms).sum(axis=1)
        relative = U * (16 + self.means.shape[1] + moved / np.maximum(total, 1e-300))
        return np.sign(x) * total, relative + self.weight_error

    def rotated(self, tilt: Tilt, y: Reals) -> Turn:
        """r(x + iy) / r(x) from the shares at x, y of shape (m, 1): nothing is subtracted from 1 unless it is far from
        it."""
        first = self.means[:, :1]
        angle = ((self.means - first) * y)[:, :, None]
        sine = (tilt.shares * np.sin(angle)).sum(axis=1)
        less = (tilt.shares * (2 * np.square(np.sin(angle / 2)))).sum(axis=1)
        modulus = np.minimum(
            0.5 * np.log1p(np.maximum(less * less - 2 * less + sine * sine, -1 + 1e-16)), 0.0
        )
        return Turn(modulus, np.arctan2(sine, 1 - less) + first * y, sine + less)

    def turned_error(self, x: Reals, tilt: Tilt, turn: Turn, y: Reals) -> Reals:
        """A bound on the error of log r(x + iy), for (largest - smallest) y up to a right angle: that of log r(x), and
        those of the shares, each relative to itself."""
        moved = U * (4 + 3 * self.ulps) * (np.abs(x) + self.largest + y) * self.largest
        relative = 4 * moved + 2 * self.weight_error + U * (32 + 2 * self.means.shape[1])
        return (
            tilt.error + 2 * relative * turn.size + U * (8 + 4 * self.ulps) * self.means[:, :1] * y
        )


@dataclass(frozen=True)
class GaussianMixture:
    """The sum of w_i N(m_i, 1).

    Args:
        means: In units of the noise; increasing, >= 0.
        weights: Positive, with sum 1.
        ulps: How many units of roundoff all means may be off.
        weight_error: A bound on the relative error of each weight.
    """

    means: tuple[float, ...] = (0.0,)
    weights: tuple[float, ...] = (1.0,)
    ulps: int = 0
    weight_error: float = 0.0

    @property
    def nothing(self) -> bool:
        """Whether it is N(0, 1) itself."""
        return self.means == (0.0,)

    @property
    def largest(self) -> float:
        """The largest mean."""
        return self.means[-1]

    @property
    def width(self) -> float:
        """The distance of the largest mean from the smallest."""
        return self.means[-1] - self.means[0]

    @property
    def smallest_loss(self) -> float:
        """The infimum of log r."""
        return math.log(self.weights[0]) if self.means[0] == 0 else -math.inf

    @cached_property
    def rows(self) -> MixtureRows:
        """The mixture as one row."""
        return MixtureRows.of([self])

    def scaled(self, factor: float) -> GaussianMixture:
        """All means times a factor, taken to be exact."""
        return GaussianMixture(tuple(mean * factor for mean in self.means), self.weights)

    def sampled(self, rate: float) -> tuple[GaussianMixture, float]:
        """The mixture of N(0, 1) and this one, which has weight `rate`, and a bound on the mass that is left out."""
        kept, first = 1 - rate, int(self.means[0] == 0)
        weights = [max(rate * weight, LEAST_MASS) for weight in self.weights]
        kept += weights[0] if first else 0.0
        terms = [(0.0, kept), *zip(self.means[first:], weights[first:], strict=True)]
        means, masses = zip(*(term for term in terms if term[1] >= LEAST_WEIGHT), strict=True)
        lost = sum(2 * weight + LEAST_MASS for _, weight in terms if 0 < weight < LEAST_WEIGHT)
        return GaussianMixture(means, masses, self.ulps, self.weight_error + 4 * U), lost

    def powers(self, most: int) -> list[tuple[GaussianMixture, float]]:
        """Mixtures of the sums of 0, 1, ..., `most` independent moves, each with a bound on the mass that is left out.

        Each move has one of the means of this mixture, with its weight. Two exact weights are those of a coin.

        Raises:
            UnsupportedError: If a sum has more than 8192 values.
        """
        if self.means[0] == 0 and len(self.means) == 2 and not self.weight_error:
            rate, mean = self.weights[1], self.means[1]
            return [
                binomial_mixture(times, rate, mean=mean, ulps=self.ulps)
                for times in range(most + 1)
            ]
        ratios = [mean.as_integer_ratio() for mean in self.means]
        unit = max(denominator for _, denominator in ratios)  # all are powers of two
        moves = [
            (number * (unit // denominator), Decimal(weight))
            for (number, denominator), weight in zip(ratios, self.weights, strict=True)
        ]
        found, masses = [(GaussianMixture(), 0.0)], {0: Decimal(1)}
        with localcontext(Context(prec=60)):
            for times in range(1, most + 1):
                before, masses = masses, defaultdict[int, Decimal](Decimal)
                for (reached, mass), (mean, weight) in product(before.items(), moves):
                    masses[reached + mean] += mass * weight
                if len(masses) > MOST_TERMS:
                    raise UnsupportedError(
                        f"a group of {most} with {len(moves)} shifts",
                        f"the sums of their shifts have more than {MOST_TERMS} values",
                        "Ask for fewer people, or round the shifts up to few multiples of one number",
                    )
                rounded = defaultdict[float, Decimal](Decimal)
                for reached, mass in masses.items():
                    rounded[reached / unit] += mass
                error = times * self.weight_error * (1 + 2 * times * self.weight_error) + 4 * U
                found.append(_representable(rounded, self.ulps + 1, error))
        return found


def binomial_mixture(
    size: int, rate: float, *, mean: float, ulps: int
) -> tuple[GaussianMixture, float]:
    """The sum of N(j mean, 1) with the masses of Bin(size, rate), and a bound on the mass that is left out."""
    if not size:
        return GaussianMixture(), 0.0
    with localcontext(Context(prec=60)):
        q = Decimal(rate)
        masses = {
            j * mean: math.comb(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)
        }
        return _representable(masses, ulps + 1, 4 * U)


def _representable(
    masses: Mapping[float, Decimal], ulps: int, weight_error: float
) -> tuple[GaussianMixture, float]:
    """The mixture of the terms that are large enough for floats, by mean, and a bound on the mass of the others."""
    kept = sorted((mean, float(mass)) for mean, mass in masses.items() if mass >= LEAST_WEIGHT)
    lost = sum(2 * float(mass) + LEAST_MASS for mass in masses.values() if 0 < mass < LEAST_WEIGHT)
    means, weights = zip(*kept, strict=True)
    return GaussianMixture(means, weights, ulps, weight_error), lost


@dataclass(frozen=True)
class OpposedMixtures:
    """P and Q.

    Args:
        first: P, with the members that are removed.
        second: Q, mirrored: with the members that are added.
    """

    first: GaussianMixture
    second: GaussianMixture

    def scaled(self, factor: float) -> OpposedMixtures:
        """All means times a factor, taken to be exact, with exact weights."""
        return OpposedMixtures(self.first.scaled(factor), self.second.scaled(factor))


class MixtureGrid(NamedTuple):
    """Equally spaced points x, exact, none close to a zero of the loss, with the densities of both mixtures there."""

    x: Reals
    step: Reals
    first: Tilt
    second: Tilt
    """At -x."""
    points: WeightedPoints
    """Weights of Q and ratios of P to Q."""

    def exponent(self, order: float) -> Reals:
        """log of the terms of M(order)."""
        return self.points.log_weight + (order + 1) * self.points.ratio


def points_at(
    x: Reals, step: Reals, one: Tilt, two: Tilt, opposed: tuple[Reals, Reals] | None
) -> WeightedPoints:
    """Weights of Q, ratios of P to Q: through their distance from 1 where both are close to N.

    `opposed`: P less Q in units of N, with its relative error, if they are mirror images.
    """
    log_weight = np.log(step) - 0.5 * math.log(2 * math.pi) - x * x / 2 + two.log
    near = (np.abs(one.excess) < 0.5) & (np.abs(two.excess) < 0.5)
    apart = one.log - two.log
    difference = one.excess - two.excess if opposed is None else opposed[0]
    excess = np.where(near, difference, 0.0) / np.where(near, 1 + two.excess, 1.0)
    ratio = np.where(near, np.log1p(excess), apart)
    excess = np.where(near, excess, np.expm1(np.minimum(apart, 1.0)))
    rounded = np.where(
        near, np.abs(one.excess) + np.abs(two.excess), np.abs(one.log) + np.abs(two.log)
    )
    error = one.error + two.error + 8 * U * (np.abs(ratio) + rounded)
    relative = error / np.maximum(np.abs(ratio), 1e-300)
    if opposed is not None:
        # The quotient of two numbers between 1/2 and 3/2: its logarithm at most doubles the error of its excess.
        relative = np.where(near, 2 * opposed[1] + 4 * two.error + 8 * U, relative)
    weight = np.exp(log_weight)
    close = np.abs(excess) < 0.6
    deficit = weight * minus_log1p(np.where(close, excess, 0.0))
    deficit = np.where(
        close, deficit, np.exp(np.minimum(log_weight + ratio, 700.0)) - weight * (1 + ratio)
    )
    units = 12 + x * x + np.abs(log_weight) + np.where(np.abs(excess) < 0.1, 24, 192)
    weight_error = two.error + U * units + np.where(close, 2.5 * relative, 12 * error)
    return WeightedPoints(log_weight, ratio, np.maximum(deficit, 0.0), weight_error, relative)
