"""The losses of Gaussian noise on a Poisson sample: (1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), in both orders.

Reference: [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from dpcompose.contour import Transform
from dpcompose.guarantee import gaussian_profile
from dpcompose.loss.base import Loss
from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_moments import AddedMoments, RemovedMoments
from dpcompose.loss.sampled_gaussian_sum import SampledGaussianSum
from dpcompose.numerics import U, log_unmixed
from dpcompose.proof import Ends, Field, ends
from dpcompose.values import Bound, around, down, up

_TOGETHER = 16
"""Rows that share arrays: enough to make the cost of a call small, few enough for the caches of the processor."""


@dataclass(frozen=True)
class SampledGaussianLoss(Loss):
    """Gaussian noise of standard deviation `noise` (in units of sensitivity) on a Poisson sample of rate `rate` < 1.

    Args:
        noise: sigma / sensitivity, > 0.
        rate: The sampling rate, in (0, 1).
        remove: Whether the loss is that of (with the record, without it).
        ulps: How many units of roundoff `noise` may be off.
    """

    noise: float
    rate: float
    remove: bool
    ulps: int = 0

    @property
    def maximum(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate) * (1 + 8 * U)

    @property
    def minimum(self) -> float:
        return math.log1p(-self.rate) * (1 + 8 * U) if self.remove else -math.inf

    @property
    def shared_reverse(self) -> SampledGaussianLoss:
        return replace(self, remove=not self.remove)

    def transform(self, times: int) -> Transform:
        return _summed([(self, times)])

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses of similar noise in rows of one transform."""
        found: list[Transform] = []
        for remove in (True, False):
            rows = sorted(
                (entry for entry in group if entry[0].remove is remove),
                key=lambda entry: entry[0].noise,
            )
            found += [_summed(rows[at : at + _TOGETHER]) for at in range(0, len(rows), _TOGETHER)]
        return found

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        """delta(epsilon) from the Gaussian profile at the epsilon before sampling."""
        q, mu = self.rate, 1 / self.noise
        spread = 2 * U * (self.ulps + 2)
        if epsilon > 40 and not self.remove:
            return Bound(0.0, 0.0)
        if self.remove:
            before = log_unmixed(epsilon, q)
            return (
                self._past_the_minimum(epsilon)
                if before is None
                else _scaled(_gaussian(*before, mu, spread), q)
            )
        rest = q - math.expm1(epsilon) * (1 - q)
        if rest < 64 * U:
            # Within rounding of the largest loss: at most what the profile is a little before it.
            return Bound(
                0.0,
                128 * U * _gaussian(epsilon + math.log(q / (128 * U)) - 1e-6, 0.0, mu, spread).upper
                if rest > -64 * U
                else 0.0,
            )
        base = epsilon + math.log(q) - math.log(rest)
        relative_error = 16 * U / rest
        value = _gaussian(
            base, 16 * U * (abs(epsilon) + 2 + abs(math.log(q))) + relative_error, mu, spread
        )
        lower, upper = (
            value.lower * max(rest * (1 - relative_error), 0.0),
            value.upper * rest * (1 + 2 * relative_error),
        )
        return Bound(max(down(lower), 0.0), up(upper) if upper > 0 else 0.0)

    def _past_the_minimum(self, epsilon: float) -> Bound:
        """1 - e^epsilon below the smallest loss; a hair above it the profile is that much plus at most q delta."""
        base = around(-math.expm1(epsilon), relative=8 * U)
        if math.expm1(epsilon) / self.rate < -1 - 1e-9:
            return base
        return Bound(base.lower, base.upper + 2e-9 * self.rate)

    def ball(self, field: Field) -> Ends:
        make = RemovedMoments if self.remove else AddedMoments
        return ends(
            self.noise,
            lambda noise: make(field, noise, field.exact(self.rate)),
            field=field,
            ulps=self.ulps,
            rising=False,
        )


def _summed(rows: Sequence[tuple[SampledGaussianLoss, int]]) -> SampledGaussianSum:
    columns = np.array([(loss.noise, loss.rate, times) for loss, times in rows], dtype=float)
    ulps = max(loss.ulps for loss, _ in rows)
    batch = SampledGaussianBatch(columns[:, 0:1], columns[:, 1:2], columns[:, 2:3], ulps)
    return SampledGaussianSum(batch, batch.rows_of(remove=rows[0][0].remove))


def _gaussian(epsilon: float, error: float, mu: float, spread: float) -> Bound:
    low = gaussian_profile(epsilon + error, mu=mu * (1 - spread))
    high = gaussian_profile(epsilon - error, mu=mu * (1 + spread))
    return Bound(low.lower, high.upper)


def _scaled(bound: Bound, factor: float) -> Bound:
    lower = max(down(bound.lower * factor * (1 - 8 * U)), 0.0)
    return Bound(lower, up(bound.upper * factor * (1 + 8 * U)) if bound.upper > 0 else 0.0)
