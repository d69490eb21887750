"""Grids over the noise of sampled Gaussian losses, in rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.numerics.elementary import Reals, U, minus_log1p
from dpcompose.numerics.tilted import Points


@dataclass(frozen=True)
class Grid:
    """Positions x = step * integers from below `low` to above `high`, shape (m, n), and what holds there.

    Args:
        x: The positions, exact.
        points: Weights of N(0, s^2) and ratios 1 - q + q e^z, z = (2 x - 1) / (2 s^2).
        step: Shape (m, 1), as are `low` and `high`.
    """

    x: Reals
    points: Points
    step: Reals
    low: Reals
    high: Reals

    def __getitem__(self, rows: slice) -> Grid:
        """Some of the rows."""
        return Grid(self.x[rows], self.points[rows], self.step[rows], self.low[rows], self.high[rows])


def positions(low: Reals, high: Reals, step: Reals) -> Reals:
    """The multiples of `step` that a grid over [low, high] uses; rows with fewer of them go on to the right."""
    first = np.floor(low / step)
    count = int((np.ceil(high / step) - first).max()) + 1
    return step * (first + np.arange(count))


def shortened(step: Reals) -> Reals:
    """Rounded to 20 binary digits, so that small multiples are exact."""
    mantissa, exponent = np.frexp(step)
    return np.ldexp(np.rint(np.ldexp(mantissa, 20)), exponent - 20)


def built(noise: Reals, rate: Reals, low: Reals, high: Reals, step: Reals, ulps: int) -> Grid:
    """The grid of each row, its noise good to `ulps` units of roundoff; all shapes (m, 1)."""
    x = positions(low, high, step)
    s2 = noise * noise
    square = x * x
    norm = np.log(step / noise) - 0.5 * math.log(2 * math.pi)
    log_weight = norm - square / (2 * s2)
    z = (2 * x - 1) / (2 * s2)
    y = rate * np.expm1(np.minimum(z, 30.0))
    ratio = np.log1p(y)
    # x is exact (a short step), so z and the exponent of the weight carry relative errors of `off` U, and y one of
    # that times 1 + |z|, plus 12 U; log1p amplifies that of a negative y by at most 1 / (1 + y).
    amplified = 1 / np.minimum(1 + y, 1.0)
    weight = np.exp(log_weight)
    deficit = weight * minus_log1p(y)
    far = z > 30
    if far.any():
        steep = z + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-np.maximum(z, 30.0)))
        ratio = np.where(far, steep, ratio)
        sampled = np.exp(norm - np.square(x - 1) / (2 * s2))
        deficit = np.where(far, rate * (sampled - weight) - weight * ratio, deficit)
    off = 4 + 2 * ulps
    moved = 2 * U * (12 + off * (1 + np.maximum(z, 0.0)))
    fuzz = amplified * moved + U * (16 + off * square / s2)
    return Grid(
        x, Points(log_weight, ratio, np.maximum(deficit, 0.0), fuzz, amplified * moved + 8 * U), step, low, high
    )
