"""Grids over the noise of sampled Gaussian losses, in rows."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.contour import ArrayRows, WeightedPoints
from dpcompose.numerics import (
    Reals,
    U,
    between,
    log_mixed,
    log_sum,
    minus_log1p,
    row_tops,
)


@dataclass(frozen=True)
class Grid(ArrayRows):
    """Positions x = step * integers from below `low` to above `high`, shape (m, n), and what holds there.

    Args:
        x: The positions, exact.
        points: Weights of N(0, s^2) and ratios 1 - q + q e^z, z = (2 x - 1) / (2 s^2).
        step: Shape (m, 1), as are `low` and `high`.
    """

    x: Reals
    points: WeightedPoints
    step: Reals
    low: Reals
    high: Reals

    @cached_property
    def largest(self) -> tuple[Reals, Reals, Reals, Reals]:
        """The largest |log weight|, |log r|, and the largest errors of log r and of a weight, shape (m, 1) each."""
        points = self.points
        sizes = np.abs(points.log_weight), np.abs(points.ratio)
        weight, ratio, slant, fuzz = map(
            row_tops, (*sizes, points.ratio_error, points.weight_error)
        )
        return weight, ratio, slant, fuzz


def positions(low: Reals | float, high: Reals | float, step: Reals | float) -> Reals:
    """The multiples of `step` that a grid over [low, high] uses; rows with fewer of them go on to the right."""
    first = np.floor(low / step)
    count = int(np.max(np.ceil(high / step) - first)) + 1
    return step * (first + np.arange(count))


def shortened(step: Reals) -> Reals:
    """Rounded to 20 binary digits, so that small multiples are exact."""
    mantissa, exponent = np.frexp(step)
    return np.ldexp(np.rint(np.ldexp(mantissa, 20)), exponent - 20)


def log_ratio(x: Reals, noise: Reals | float, rate: Reals | float) -> Reals:
    """log r(x), to a few U of itself and of what e^z moves it by: 1 - rate is exact where it matters."""
    return log_mixed((2 * x - 1) / (2 * noise**2), rate)


def sampled_weight(x: Reals, noise: Reals | float, rate: Reals | float) -> Reals:
    """w(x) = q e^z / r, the weight of the sampled part."""
    z = (2 * x - 1) / (2 * noise**2) + (np.log(rate) - np.log1p(-rate))
    return 1 / (1 + np.exp(-between(z, -700.0, 700.0)))


def argument(x: Reals, theta: Reals | float, noise: Reals | float, rate: Reals | float) -> Reals:
    """arg r on Im x = theta s^2, in [0, theta]."""
    weight = sampled_weight(x, noise, rate)
    return np.arctan2(weight * np.sin(theta), 1 - weight * (2 * np.square(np.sin(theta / 2))))


def strip_sums(weight: Reals, lifted: Reals, reach: Reals | float, angles: Reals) -> Reals:
    """log of the sums of e^lifted times e^(reach arg r) on the lines at these angles, shape (m, k).

    The argument of r rises with x: a cell has the weight at its right end, and the last one, which
    stands for all that is to its right, the weight 1.
    """
    weight = np.concatenate([weight[:, 1:], np.ones_like(weight[:, :1])], axis=1)
    sums: list[Reals] = []
    for theta in np.split(angles, angles.shape[1], axis=1):
        rest = 2 * np.square(np.sin(theta / 2))
        angle = np.arctan2(weight * np.sin(theta), 1 - weight * rest)
        sums.append(log_sum(lifted + reach * angle))
    return np.concatenate(sums, axis=1)


def on_shifted(
    noise: Reals | float, rate: Reals | float, x: Reals, theta: Reals | float
) -> tuple[Reals, Reals]:
    """log |r| and arg r on Im x = theta s^2."""
    weight = sampled_weight(x, noise, rate)
    rest = 2 * np.square(np.sin(theta / 2))
    shrink = 0.5 * np.log1p(-2 * weight * (1 - weight) * rest)
    return log_ratio(x, noise, rate) + shrink, np.arctan2(weight * np.sin(theta), 1 - weight * rest)


def built(noise: Reals, rate: Reals, low: Reals, high: Reals, step: Reals, ulps: int) -> Grid:
    """The grid of each row, its noise good to `ulps` units of roundoff; all shapes (m, 1)."""
    return built_at(positions(low, high, step), noise, rate, (low, high, step), ulps)


def built_at(
    x: Reals,
    noise: Reals,
    rate: Reals,
    ends: tuple[Reals, Reals, Reals],
    ulps: int,
    *,
    nodes: bool = True,
) -> Grid:
    """`built` at given multiples of the step, shape (m, n), that reach beyond both ends; `ends`: low, high, step.

    The deficits, which only sums at complex powers need, are NaN if no `nodes` are wanted.
    """
    low, high, step = ends
    s2 = noise * noise
    square = x * x
    norm = np.log(step / noise) - 0.5 * math.log(2 * math.pi)
    log_weight = norm - square / (2 * s2)
    z = (2 * x - 1) / (2 * s2)
    y = rate * np.expm1(np.minimum(z, 30.0))
    ratio = np.log1p(y)
    # x is exact (a short step), so z and the exponent of the weight carry relative errors of `units` U, and y one of
    # that times 1 + |z|, plus 12 U; log1p amplifies that of a negative y by at most 1 / (1 + y).
    amplified = 1 / np.minimum(1 + y, 1.0)
    weight = np.exp(log_weight) if nodes else np.nan
    deficit = weight * minus_log1p(y) if nodes else np.full_like(x, np.nan)
    far = z > 30
    if far.any():
        lifted = z + np.log(rate)
        steep = lifted + np.log1p(np.exp(np.log1p(-rate) - np.maximum(lifted, 0.0)))
        # What would cancel where the rate is tiny; beyond 700 an error of |z| + |log rate| U is within that of z.
        rise = np.where(
            z > 700, np.exp(np.minimum(lifted, 1.0)), rate * np.expm1(np.minimum(z, 700.0))
        )
        ratio = np.where(far, np.where(lifted > 1, steep, np.log1p(rise)), ratio)
        # From y = 1 on the difference y - log(1 + y) is above a quarter of y; below, y itself is in range.
        sampled = np.exp(norm - np.square(x - 1) / (2 * s2))
        apart = np.where(
            rise < 1,
            weight * minus_log1p(np.minimum(rise, 1.0)),
            rate * (sampled - weight) - weight * ratio,
        )
        deficit = np.where(far, apart, deficit)
    units = 4 + 2 * ulps
    ratio_error = 2 * U * (12 + units * (1 + np.maximum(z, 0.0)))
    relative_error = amplified * ratio_error + U * (16 + units * square / s2)
    return Grid(
        x,
        WeightedPoints(
            log_weight,
            ratio,
            np.maximum(deficit, 0.0),
            relative_error,
            amplified * ratio_error + 8 * U,
        ),
        step,
        low,
        high,
    )
