"""Where delta of rare, large losses lies, roughly: it decides where cuts and lines are placed, and bounds nothing."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dpcompose.contour import Transform
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_grid import log_ratio
from dpcompose.numerics import Reals

Rows = Sequence[tuple[SampledGaussianLoss, int]]


class Plan(NamedTuple):
    """How to cut, and where to draw lines.

    Args:
        x: Where the lines are drawn.
        order: About the order of the saddle point there.
        tolerance: The wanted relative width of delta.
        least: What of delta does not matter.
        frequency: About the largest frequency of the lines.
        bottom: A loss that counts as small; 0 if none does.
        beyond: How far above x losses count as large, over the order.
        shifted: Whether paths beside the real line may be used.
    """

    x: float
    order: float
    tolerance: float
    least: float
    frequency: float
    bottom: float = 0.0
    beyond: float = 1.0
    shifted: bool = False


class Guess:
    """delta and the order of its saddle point to a few percent, from a short grid with a sharp cut."""

    def __init__(self, rows: Rows, rest: Transform | None = None) -> None:
        self.rest = rest
        self.least = 0.3 * math.hypot(*(loss.rate * math.sqrt(times) for loss, times in rows))
        self.rows: list[tuple[int, Reals, Reals, Reals]] = []
        for loss, times in rows:
            s, q = loss.noise, loss.rate
            x = s * np.arange(-8.0, 40.0, 0.1)
            weight = np.exp(-0.5 * (x / s) ** 2) * 0.1 / math.sqrt(2 * math.pi)
            rise = q * np.expm1(np.minimum((2 * x - 1) / (2 * s * s), 700.0))
            self.rows.append((times, weight, log_ratio(x, s, q), rise))

    def at(self, x: float) -> tuple[float, float]:
        """log delta(x) and the order."""
        orders = np.geomspace(0.05, 3e3, 90) / max(x, self.least)
        level, tail = -orders * x, 0.0
        if self.rest is not None:
            level = level + self.rest.curve(orders).log_m
        for times, weight, ratio, rise in self.rows:
            near = ratio <= x
            w, here, y = weight[near], ratio[near], rise[near]
            exponent = (orders[:, None] + 1) * here
            excess = (np.expm1(np.minimum(exponent, 700.0)) - (orders[:, None] + 1) * y) @ w
            level = level + np.where(exponent.max(axis=1) < 690, times * np.log1p(excess), np.inf)
            tail += times * float(
                (weight[~near] * np.maximum(rise[~near] - math.expm1(x), 0.0)).sum()
            )
        level = level - np.log(orders) - np.log1p(orders)
        # Where only losses above x matter, no more than that is asked of the others.
        at = int(np.maximum(level, math.log(max(tail, 1e-320)) - 8.0).argmin())
        level = np.minimum(level, 1e9)
        slope = np.gradient(np.gradient(level, np.log(orders)), np.log(orders))[at]
        log_near = (
            float(level[at])
            + math.log(orders[at])
            - 0.5 * math.log(2 * math.pi * max(float(slope), 0.1))
        )
        return float(np.logaddexp(log_near, math.log(max(tail, 1e-320)))), float(orders[at])

    def plan(self, x: float, least: float, tolerance: float) -> Plan:
        """How to split near x."""
        _, order = self.at(x)
        return Plan(x, order, tolerance, least, 3 * order)

    def bottom(self, x: float, log_least: float) -> float:
        """The largest of a few losses so small that all below it add less than that to delta(x); 0 if none is."""
        orders = np.geomspace(0.1, 3e3, 90) / x
        for share in (0.8, 0.6, 0.45, 0.3, 0.2, 0.12, 0.07, 0.04):
            level = -orders * x
            if self.rest is not None:
                level = level + self.rest.curve(orders).log_m
            for times, weight, ratio, rise in self.rows:
                near = ratio <= 1.3 * share * x
                exponent = (orders[:, None] + 1) * ratio[near]
                excess = (
                    np.expm1(np.minimum(exponent, 700.0)) - (orders[:, None] + 1) * rise[near]
                ) @ weight[near]
                level = level + np.where(
                    exponent.max(axis=1) < 690, times * np.log1p(excess), np.inf
                )
            above = sum(
                times * float(weight[ratio > share * x].sum())
                for times, weight, ratio, _ in self.rows
            )
            if float(level.min()) < log_least and above < 0.1:
                return share * x
        return 0.0

    def solve(self, log_mass: float, low: float, high: float) -> float:
        """The x whose delta has that logarithm."""
        low = max(low, 1e-9 * high)
        for _ in range(14):
            middle = math.sqrt(low * high)
            low, high = (middle, high) if self.at(middle)[0] > log_mass else (low, middle)
        return math.sqrt(low * high)
