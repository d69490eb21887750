"""Opposed mixtures of normal distributions, and grids over the noise between them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.contour import WeightedPoints
from dpcompose.loss.gaussian_mixture import GaussianMixture, Tilt
from dpcompose.numerics import Reals, U, minus_log1p


@dataclass(frozen=True)
class OpposedMixtures:
    """P and Q.

    Args:
        first: P, with the members that are removed.
        second: Q, mirrored: with the members that are added.
    """

    first: GaussianMixture
    second: GaussianMixture

    @property
    def width(self) -> float:
        """The larger distance of two means of one mixture."""
        return max(self.first.width, self.second.width)

    def scaled(self, factor: float) -> OpposedMixtures:
        """All means times a factor, taken to be exact, with exact weights."""
        return OpposedMixtures(self.first.scaled(factor), self.second.scaled(factor))

    def losses(self, x: Reals) -> Reals:
        """The loss at x."""
        return self.first.at(x).log - self.second.at(-x).log

    @cached_property
    def zero(self) -> float:
        """About where the loss is 0; infinite if that is far out."""
        low, high = -40.0 - self.second.largest, 40.0 + self.first.largest
        for _ in range(3):
            x = np.linspace(low, high, 128)
            at = int(np.searchsorted(self.losses(x), 0.0))
            if not 0 < at < len(x):
                return math.inf
            low, high = float(x[at - 1]), float(x[at])
        return (low + high) / 2


class Grid(NamedTuple):
    """Points x, exact and `step` apart, none close to where the loss is 0, and what holds there."""

    x: Reals
    step: float
    first: Tilt
    second: Tilt
    """At -x."""
    points: WeightedPoints
    """Weights of Q and ratios of P to Q."""

    def exponent(self, order: float) -> Reals:
        """log of the terms of M(order)."""
        return self.points.log_weight + (order + 1) * self.points.ratio


def points_at(x: Reals, step: float, one: Tilt, two: Tilt) -> WeightedPoints:
    """Weights of Q, ratios of P to Q: through their distance from 1 where both are close to N."""
    log_weight = math.log(step) - 0.5 * math.log(2 * math.pi) - x * x / 2 + two.log
    near = (np.abs(one.excess) < 0.5) & (np.abs(two.excess) < 0.5)
    apart = one.log - two.log
    excess = np.where(near, one.excess - two.excess, 0.0) / np.where(near, 1 + two.excess, 1.0)
    ratio = np.where(near, np.log1p(excess), apart)
    excess = np.where(near, excess, np.expm1(np.minimum(apart, 1.0)))
    rounded = np.where(
        near, np.abs(one.excess) + np.abs(two.excess), np.abs(one.log) + np.abs(two.log)
    )
    error = one.error + two.error + 8 * U * (np.abs(ratio) + rounded)
    relative = error / np.maximum(np.abs(ratio), 1e-300)
    weight = np.exp(log_weight)
    close = np.abs(excess) < 0.6
    deficit = weight * minus_log1p(np.where(close, excess, 0.0))
    deficit = np.where(
        close, deficit, np.exp(np.minimum(log_weight + ratio, 700.0)) - weight * (1 + ratio)
    )
    units = 12 + x * x + np.abs(log_weight) + np.where(np.abs(excess) < 0.1, 24, 192)
    weight_error = two.error + U * units + np.where(close, 2.5 * relative, 12 * error)
    return WeightedPoints(log_weight, ratio, np.maximum(deficit, 0.0), weight_error, relative)


def shortened(step: float) -> float:
    """Rounded to 20 binary digits, so that small multiples are exact."""
    mantissa, exponent = math.frexp(step)
    return math.ldexp(round(math.ldexp(mantissa, 20)), exponent - 20)
