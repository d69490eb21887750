"""The loss of one random allocation: a record in one of t Gaussian steps, at random."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import polygamma

from dpcompose.contour import Line, Transform
from dpcompose.loss.allocation_mellin import moments, window
from dpcompose.loss.allocation_table import Allocation
from dpcompose.loss.base import Loss
from dpcompose.numerics import Reals, U

_WITHIN, _STEEP = 0.95, 1e4


@dataclass(frozen=True)
class AllocationLoss(Loss):
    """log S where the record is there if `remove`, and -log S where it is not.

    Reference: [FeldmanShenfeld2025], [Chua2025]
    """

    sigma: float
    steps: int
    remove: bool

    def transform(self, times: int) -> Transform:
        return AllocationSum(Allocation(self.sigma, self.steps), self.remove, times)

    @property
    def zcdp(self) -> float:
        """That of the step of the record, if it is known which: Renyi divergence is quasi-convex."""
        return 0.5 / self.sigma**2 * (1 + 8 * U)

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        total: Counter[Self] = Counter()
        for loss, times in group:
            total[loss] += times
        return list(total.items())


@dataclass(frozen=True)
class AllocationSum(Transform):
    """The sum of so many independent losses."""

    law: Allocation
    remove: bool
    times: int

    @property
    def copies(self) -> float:
        return self.times

    @property
    def scale(self) -> float:
        return (
            self.times * float(self.law.whole[2])
            if self.law.most >= 2
            else self.times / self.law.sigma**2
        )

    def _moment(self, order: float) -> float:
        """The power of S."""
        return order + 1 if self.remove else -order

    @property
    def _farthest(self) -> float:
        """The largest order to draw at: beyond it no moments are known."""
        return _WITHIN * (self.law.most - 2.5) if self.remove else math.inf

    def cumulants(self, order: float) -> tuple[float, float, float]:
        """Beyond the moments that are known as if K rose steeply: planning stays below, where a line may stand."""
        if order > self._farthest:
            log, first, second = self._cumulants(self._farthest)
            beyond, steep = order - self._farthest, _STEEP * second
            return log + first * beyond + steep * beyond**2 / 2, first + steep * beyond, steep
        return self._cumulants(order)

    def _cumulants(self, order: float) -> tuple[float, float, float]:
        power = self._moment(order)
        seen = window(self.law, power)
        if seen is None:
            return math.inf, math.inf, math.inf
        share = seen.share
        log = seen.log_size - math.lgamma(share)
        first = float(polygamma(0, share)) - seen.mean
        second = seen.variance - float(polygamma(1, share))
        if not second > 0:
            return math.inf, math.inf, math.inf
        return (
            self.times * log,
            self.times * (first if self.remove else -first),
            self.times * second,
        )

    def moment_bound(self, order: float) -> float:
        power = self._moment(order)
        if self.remove and power == math.floor(power) and power <= self.law.most:
            return self.times * self.law.above(power)
        bound = super().moment_bound(order)
        return min(bound, self.times * self.law.above(power)) if self.remove else bound

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = moments(self.law, self._moment(order), frequencies)
        log = self.times * (log.conj() if self.remove else log)
        return Line(
            log,
            np.where(
                error < 1,
                self.times * (error + 4 * U * np.abs(log) / self.times),
                np.maximum(error, 1.0),
            ),
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        """Those of the Gaussian factor of variance 1 / (t s^2)."""
        return -np.square(edges) * (
            self.times / (2 * self.law.steps * self.law.sigma**2) * (1 - 64 * U)
        )
