"""The sum of many equal losses of opposed mixtures, chosen by a public coin, as a transform."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.contour import Cumulants, Line, Transform, logarithm_of_excess
from dpcompose.loss.mixture_quadrature import MixtureQuadrature
from dpcompose.numerics import Reals, U

_FAR = 30.0


@dataclass(frozen=True, eq=False)
class MixtureSum(Transform):
    """M(t) = (sum of c_k M_k(t))^times, for the losses that a coin with public outcome k chooses between.

    Args:
        parts: c_k with its relative error, and M_k.
        times: How many copies.
        maximum_loss: The largest loss of one, rounded up.
        minimum_loss: The smallest, rounded down.
    """

    parts: tuple[tuple[float, float, MixtureQuadrature], ...]
    times: int
    maximum_loss: float
    minimum_loss: float
    tabulates = True

    @property
    def maximum(self) -> float:
        return self.times * self.maximum_loss * (1 + 2 * U)

    @property
    def minimum(self) -> float:
        return self.times * self.minimum_loss * (1 + 2 * U)

    @property
    def copies(self) -> float:
        return float(self.times)

    @property
    def blow_up(self) -> float:
        """Where w^(t + 1) e^(t (t + 1) m^2 / 2), what a term of P adds to M, grows past 1."""
        ends = [
            1 - 2 * math.log(weight * share) / (mean * mean)
            for share, _, part in self.parts
            for mean, weight in zip(part.pair.first.means, part.pair.first.weights, strict=True)
            if mean > 0
        ]
        return min(ends, default=math.inf)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        found = self.curve(np.array([order]))
        return float(found.log_m[0]), float(found.first[0]), float(found.second[0])

    @np.errstate(
        over="ignore", invalid="ignore"
    )  # where a moment overflows the answer is infinite, or NaN
    def curve(self, orders: Reals) -> Cumulants:
        curves = [part.curve(orders) for _, _, part in self.parts]
        if len(curves) == 1:
            log, first, second = curves[0].log_m, curves[0].first, curves[0].second
        else:
            shares = np.array([[share] for share, _, _ in self.parts])
            logs, firsts, seconds = (
                np.array(rows)
                for rows in zip(*((at.log_m, at.first, at.second) for at in curves), strict=True)
            )
            log = np.log1p((shares * np.expm1(logs)).sum(axis=0))
            tilted = shares * np.exp(logs - log)
            first = (tilted * firsts).sum(axis=0)
            second = np.maximum(
                (tilted * (seconds + firsts * firsts)).sum(axis=0) - first * first, 1e-300
            )
        return Cumulants(self.times * log, self.times * first, self.times * second)

    @cached_property
    def _lines(self) -> dict[tuple[float, bytes], Line]:
        return {}

    def line(self, order: float, frequencies: Reals) -> Line:
        one = self._one(order, frequencies)
        return Line(self.times * one.log, self.times * (one.error + 2 * U * np.abs(one.log)))

    def _one(self, order: float, frequencies: Reals) -> Line:
        key = order, frequencies.tobytes()
        if key not in self._lines:
            lines = [part.line(order, frequencies) for _, _, part in self.parts]
            self._lines[key] = lines[0] if len(lines) == 1 else self._mixed(lines)
        return self._lines[key]

    def _mixed(self, lines: Sequence[Line]) -> Line:
        """log of the mean of the parts: through its distance from 1 unless one of them is large."""
        tops = [
            math.log(share) + float(line.log[0].real)
            for (share, _, _), line in zip(self.parts, lines, strict=True)
        ]
        top = max(tops)
        scale = top if top > _FAR else 0.0
        real, imaginary, error = np.zeros((3, len(lines[0].log)))
        for (share, relative, _), line in zip(self.parts, lines, strict=True):
            size = np.minimum(line.log.real - scale, 705.0)
            sine, half = np.sin(line.log.imag), np.sin(line.log.imag / 2)
            modulus = np.exp(size)
            less = np.expm1(size) - 2 * modulus * half * half
            real += share * less
            imaginary += share * modulus * sine
            # From an error of 1 on only the size of M is bounded.
            with np.errstate(over="ignore"):
                far = modulus * (1 + np.exp(line.error))
            moved = np.where(line.error < 1, modulus * np.expm1(np.minimum(line.error, 1.0)), far)
            distance = np.hypot(less, modulus * sine)
            rounded = U * (
                24 * distance + 8 * modulus * np.abs(line.log) + (8 * abs(scale) * modulus)
            )
            error += share * (moved + rounded + relative * (distance + (1.0 if scale else 0.0)))
        found = logarithm_of_excess(real, imaginary, error)
        return Line(found.log + scale, found.error + 8 * U * scale)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, finest=False)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, finest=True)

    def _envelope(self, order: float, edges: Reals, *, finest: bool) -> Reals:
        zero = np.zeros(1)
        whole = self._one(order, zero)
        bounds, shares = np.zeros((2, len(self.parts), len(edges)))
        for at, (share, relative, part) in enumerate(self.parts):
            line = whole if len(self.parts) == 1 else part.line(order, zero)
            if not line.error[0] + whole.error[0] < 1e-3:
                return np.zeros(len(edges))
            log = float(line.log[0].real)
            bounds[at] = part.log_envelope(order, edges, log - float(line.error[0]), finest=finest)
            shares[at] = math.log(share * (1 + relative)) + log - float(whole.log[0].real)
        if len(self.parts) == 1:
            return self.times * bounds[0]
        error = self.times * (
            4 * float(whole.error[0]) + 16 * U * (1 + abs(float(whole.log[0].real)))
        )
        return self.times * np.log(np.exp(bounds + shares).sum(axis=0)) + error
