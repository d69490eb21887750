"""A few copies of one Laplace loss: the profile as a finite sum of positive terms."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.loss.base import Loss
from dpcompose.numerics.bound import Bound, Certificate, up
from dpcompose.numerics.elementary import Reals, U
from dpcompose.numerics.transform import Transform

MOST_COPIES, LARGEST_EPSILON = 24, 8.0
_CERTIFICATE = Certificate("finite sum over atoms and B-splines")


@dataclass(frozen=True)
class LaplaceFoldLoss(Loss):
    """The sum of k copies of `LaplaceLoss(epsilon)`, k at most 24, epsilon at most 8.

    Of k copies n hit an atom (j of them -epsilon) and m = k - n the smooth part, whose m-fold convolution in units of 2
    epsilon, from its
    left end, is (epsilon / 2)^m e^(-m epsilon) e^(epsilon x) N_m(x) dx with N_m the cardinal B-spline on [0, m]. So
    delta(e) is the sum over m
    and j of C(k, m) C(n, j) 2^-n e^(-j epsilon) times the integral of 1 - e^(2 epsilon (y - x)) against that over x >
    y, where
    y = e / (2 epsilon) + k / 2 - n + j. All terms are positive. On a unit cell the integrand is a polynomial of degree
    m - 1 times
    exponentials: Gauss-Legendre with m + 16 points errs by less than 10^-18 of its largest value there (ellipse of
        radius 4).
    """

    epsilon: float
    times: int

    @property
    def maximum(self) -> float:
        return self.epsilon * self.times

    @property
    def minimum(self) -> float:
        return -self.epsilon * self.times

    def transform(self, times: int) -> Transform:
        from dpcompose.loss.laplace import LaplaceSum

        return LaplaceSum(np.array([[self.epsilon]]), np.array([[float(self.times * times)]]))

    @property
    def closed(self) -> bool:
        return True

    @cached_property
    def _rule(self) -> tuple[Reals, Reals]:
        """Gauss-Legendre on [0, 1]."""
        nodes, weights = np.polynomial.legendre.leggauss(self.times + 16)
        return (nodes + 1) / 2, weights / 2

    def profile(self, epsilon: float) -> Bound:
        width, k = self.epsilon, self.times
        if epsilon >= self.maximum * (1 + 8 * U):
            return Bound(0.0, 0.0, _CERTIFICATE)
        if epsilon < self.minimum:
            return Bound(
                max(-math.expm1(epsilon) * (1 - 8 * U), 0.0), min(-math.expm1(epsilon) * (1 + 8 * U), 1.0), _CERTIFICATE
            )
        place = epsilon / (2 * width) + k / 2
        start = math.floor(place)
        share = place - start
        value, slope = self._atoms(epsilon)
        parts = self._splines(share + (1 - share) * self._rule[0])
        for m in range(1, k + 1):
            smooth, falling = self._smooth(m, share, start, parts[m - 1])
            value, slope = value + smooth, slope + falling
        # All terms positive: their roundings, those of the recursion included, and the rounding of the place, which
        # moves epsilon.
        doubt = value * U * (64 + 16 * k + 8 * k * width) + slope * U * 16 * (abs(epsilon) + k * width)
        return Bound(max(value - doubt, 0.0), min(up(value + doubt), 1.0), _CERTIFICATE)

    def _atoms(self, epsilon: float) -> tuple[float, float]:
        """m = 0: every copy on an atom. The value, and minus its derivative in epsilon."""
        k, value, slope = self.times, 0.0, 0.0
        for j in range(k + 1):
            gap = epsilon - (k - 2 * j) * self.epsilon
            mass = math.comb(k, j) * 0.5**k * math.exp(-j * self.epsilon)
            if gap < 0:
                value, slope = value - mass * math.expm1(gap), slope + mass * math.exp(gap)
            elif gap <= 16 * U * (abs(epsilon) + k * self.epsilon):
                slope += mass
        return value, slope

    def _smooth(self, m: int, share: float, start: int, part: Reals) -> tuple[float, float]:
        """m copies on the smooth part, k - m = n on atoms, rows j; the cell that y cuts apart from those beyond it."""
        k, width, n = self.times, self.epsilon, self.times - m
        nodes, weights = self._rule
        first = start - n + np.arange(n + 1)
        mass = np.array([math.comb(k, m) * math.comb(n, j) * (width / 2) ** m * 0.5**n for j in range(n + 1)])
        mass = mass * np.exp(-width * np.arange(n + 1))
        cells = np.arange(m)
        tilt = np.exp(width * (cells[:, None] + nodes - m)) * self._whole[m - 1] * weights
        gap = 2 * width * ((first[:, None, None] - cells[:, None]) + (share - nodes))
        right = (cells > first[:, None])[:, :, None]
        gap = np.minimum(gap, 0.0)
        value = float(mass @ np.sum(np.where(right, -np.expm1(gap) * tilt, 0.0), axis=(1, 2)))
        slope = float(mass @ np.sum(np.where(right, np.exp(gap) * tilt, 0.0), axis=(1, 2)))
        cut = (first >= 0) & (first < m)
        if cut.any():
            inside = (1 - share) * nodes
            edge = np.exp(width * (first[cut][:, None] + share + inside - m)) * part[first[cut]] * weights * (1 - share)
            value += float(mass[cut] @ np.sum(-np.expm1(-2 * width * inside) * edge, axis=1))
            slope += float(mass[cut] @ np.sum(np.exp(-2 * width * inside) * edge, axis=1))
        return value, slope

    @cached_property
    def _whole(self) -> list[Reals]:
        return self._splines(self._rule[0])

    def _splines(self, offsets: Reals) -> list[Reals]:
        """N_m at cell + offsets, shape (m, n), for every m up to k: the recursion of positive terms from N_1 = 1 on [0,
        1)."""
        tables: list[Reals] = [np.ones((1, len(offsets)))]
        for degree in range(2, self.times + 1):
            x = np.arange(degree)[:, None] + offsets
            edge = np.zeros((1, len(offsets)))
            left, right = np.vstack([tables[-1], edge]), np.vstack([edge, tables[-1]])
            tables.append((x * left + (degree - x) * right) / (degree - 1))
        return tables
