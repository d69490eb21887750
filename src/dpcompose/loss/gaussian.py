"""The loss of N(mu, 1) against N(0, 1): itself Gaussian, N(mu^2 / 2, mu^2)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Self

import numpy as np

from dpcompose.contour import Cumulants, Line, Transform
from dpcompose.guarantee import gaussian_epsilon, gaussian_profile
from dpcompose.loss.base import Loss
from dpcompose.loss.lattice_noise import Noise
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.numerics import Reals, U
from dpcompose.proof import Ends, Field, NormalMoments, ends
from dpcompose.values import Bound


@dataclass(frozen=True)
class GaussianLoss(Loss):
    """The loss of Gaussian noise, mu = sensitivity / sigma, in either order; mu is good to `ulps` units of roundoff.

    Reference: [BalleWang2018, Theorem 8]
    """

    mu: float
    ulps: int = 1
    alike: ClassVar[bool] = True

    @property
    def additive_noise(self) -> Noise:
        return Noise(self.mu, 1.0, True, True, self.ulps)

    def transform(self, times: int) -> Transform:
        return GaussianSum(self.mu * self.mu * times)

    def profile(self, epsilon: float) -> Bound:
        return self._between(partial(gaussian_profile, epsilon))

    def inverse(self, delta: float) -> Bound:
        return self._between(partial(gaussian_epsilon, delta))

    def _between(self, answer: Callable[..., Bound]) -> Bound:
        """Bounds on a quantity that increases with mu, from its values at both ends of mu."""
        spread = 1 + 2 * U * self.ulps
        low, high = answer(mu=self.mu / spread), answer(mu=self.mu * spread)
        return Bound(low.lower, high.upper, high.certificate)

    def sampled(self, rate: float, *, remove: bool) -> Loss:
        return SampledGaussianLoss(1 / self.mu, rate, remove, self.ulps + 1)

    @property
    def zcdp(self) -> float:
        return self.mu * self.mu / 2 * (1 + 2 * U * (2 * self.ulps + 4))

    @property
    def gdp(self) -> float:
        return self.mu * (1 + 2 * U * (self.ulps + 1)) if self.ulps else self.mu

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        if len(group) == 1 and group[0][1] == 1:
            return group
        ulps = max(loss.ulps for loss, _ in group)
        return [(gaussian_sum([(loss.mu, times) for loss, times in group], ulps), 1)]

    def ball(self, field: Field) -> Ends:
        return ends(
            self.mu,
            lambda mu: NormalMoments(field, mu * mu),
            field=field,
            ulps=self.ulps,
            rising=True,
        )


def gaussian_sum(group: Iterable[tuple[float, int]], ulps: int = 1) -> GaussianLoss:
    """The sum of the losses of each mu, so many times, all good to `ulps` units of roundoff: the squares add up.

    Reference: [DongRothSu2022, Corollary 3.3]
    """
    # The terms are good to 2 ulps + 2 units, their sum to one more in any order; the root halves that and adds one.
    return GaussianLoss(math.sqrt(math.fsum([times * mu * mu for mu, times in group])), 4 + ulps)


@dataclass(frozen=True)
class GaussianSum(Transform):
    """The transform e^(variance t (t + 1) / 2); the variance is good to 32 units of roundoff."""

    variance: float
    tabulates = True

    def cumulants(self, order: float) -> tuple[float, float, float]:
        return self.variance * order * (order + 1) / 2, self.variance * (order + 0.5), self.variance

    @property
    def scale(self) -> float:
        return self.variance

    def curve(self, orders: Reals) -> Cumulants:
        first = self.variance * (orders + 0.5)
        return Cumulants(
            self.variance * orders * (orders + 1) / 2, first, np.full_like(orders, self.variance)
        )

    def line(self, order: float, frequencies: Reals) -> Line:
        real = self.variance / 2 * (order * (order + 1) - frequencies**2)
        imaginary = self.variance * frequencies * (order + 0.5)
        error = 40 * U * (self.variance / 2 * (order * (order + 1) + frequencies**2) + imaginary)
        return Line(real + 1j * imaginary, error)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return -np.square(edges) * self.variance / 2 * (1 - 64 * U)
