"""Grids over the noise of sampled Gaussian losses, in rows."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpcompose.contour import ArrayRows, Cumulants, WeightedPoints
from dpcompose.numerics import Reals, U, between, exp_or_inf, log_mixed, log_sum, minus_log1p

_LOG_CONCAVE = -40.0


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
    x: Reals, noise: Reals, rate: Reals, ends: tuple[Reals, Reals, Reals], ulps: int
) -> Grid:
    """`built` at given multiples of the step, shape (m, n), that reach beyond both ends; `ends`: low, high, step."""
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
    weight = np.exp(log_weight)
    deficit = weight * minus_log1p(y)
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


def trapezoid_error(noise: float, power: float, step: float, widest: float) -> float:
    """A bound on what a trapezoid sum of n r^p errs by, relative to M, from the best strip up to an angle."""
    s2, negative = noise * noise, max(-power, 0.0)
    rate = 2 * math.pi * s2 / step
    angle = min(rate / (s2 + negative / 4), widest)
    growth = angle * angle * s2 / 2 - negative * math.log(math.cos(angle / 2))
    return 2 * exp_or_inf(growth) / math.expm1(min(rate * angle, 700.0))


def coarse_step(noise: Reals) -> Reals:
    """The step of the grid for planning: its error is below 0.001 for positive powers, and 0.006 from -40 s^2."""
    return shortened(np.minimum(0.4, 2.0 * noise) * noise)


def most_moment(grid: Grid, log_total: Reals | None, noise: Reals, power: Reals) -> Reals:
    """log of an upper bound on M from the terms n r^p on the grid for planning, shape (m, 1).

    Where a step may miss more, n r^p is log-concave: up to the next point it rises by no more than up to this one.

    Args:
        grid: The one for planning.
        log_total: log of their sum, if that is known.
        noise: sigma / sensitivity, shape (m, 1).
        power: Shape (m, 1).
    """
    steep = bool((power < _LOG_CONCAVE * noise * noise).any())
    if log_total is not None and not steep:
        return log_total + 0.01
    exponent = grid.points.log_weight + power * grid.points.ratio
    if steep:
        first, second = exponent[:, :1], exponent[:, 1:2]
        exponent = exponent + np.maximum(
            np.diff(exponent, axis=-1, prepend=2 * first - second), 0.0
        )
    return log_sum(exponent) + 0.01


def most_variance(curve: Cumulants, noise: Reals, rate: Reals, power: Reals, sign: Reals) -> Reals:
    """An upper bound on the tilted variance of log r from the moments on the grid for planning, shape (m, 1).

    Let X = log r - log(1 - q) >= 0. In a strip of half-width 2.5 s^2 its modulus is at most twice what it is on the
    real line. So the means of X and X^2 err by (3 E X, 5 E X^2) `trapezoid_error`, and the variance by 13 of it E X^2.
    For a negative power the density is more log-concave than n and the slope of log r at most 1 / s^2: the variance is
    at most 1 / s^2 by the inequality of Brascamp and Lieb.
    """
    columns = [curve.first, curve.second, noise, rate, power, sign, coarse_step(noise)]
    return np.array([[_most_variance(*row)] for row in np.concatenate(columns, axis=1).tolist()])


def _most_variance(
    first: float, second: float, noise: float, rate: float, power: float, sign: float, step: float
) -> float:
    mean, step_error = sign * first, trapezoid_error(noise, power, step, 2.5)
    away = mean - math.log1p(-rate)
    found = second + 13 * step_error * (second + away * away) + 1e-9 * second + 1e-12 * mean * mean
    return min(
        found if step_error < 0.01 else math.inf, 1 / (noise * noise) if power < 0 else math.inf
    )
