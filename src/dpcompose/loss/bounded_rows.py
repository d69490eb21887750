"""The common part of sums whose rows are losses of at most epsilon in size, any of them many times."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.contour import Transform
from dpcompose.numerics import Reals, U


@dataclass(frozen=True, eq=False)
class BoundedRows(Transform):
    """A sum of rows, of shape (m, 1): a loss between -epsilon and epsilon, so many times. A member adds the moments.

    Args:
        epsilon: The largest loss of each row.
        times: How many copies of each.
    """

    epsilon: Reals
    times: Reals
    tabulates = True

    @property
    def maximum(self) -> float:
        return math.fsum((self.epsilon * self.times).ravel()) * (1 + 4 * U)

    @property
    def minimum(self) -> float:
        return -self.maximum

    @property
    def scale(self) -> float:
        return float((self.times * np.minimum(self.epsilon, self.epsilon**2)).sum())

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self.curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])
