"""The sum of many Laplace losses, any of them many times, as a transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.contour.exponential_sums import logarithm_of_excess
from dpcompose.contour.transform import Cumulants, Line
from dpcompose.loss.bounded_rows import BoundedRows
from dpcompose.loss.laplace_screen import LaplaceScreen, log_modulus, rough_line
from dpcompose.numerics.elementary import Complexes, Reals, U, exp_minus_linear, sine_minus_linear

_LARGEST_BLOCK = 1 << 13
"""Entries of an array that stays in the cache of the processor."""
_PLANNED_GROUPS = 32
"""Groups of neighboring rows that are planned for together."""


@dataclass(frozen=True, eq=False)
class LaplaceSum(BoundedRows):
    """M = (((t + 1) e^(t epsilon) + t e^(-(t + 1) epsilon)) / (2 t + 1))^times, a product over rows of shape (m, 1)."""

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    def curve(self, orders: Reals) -> Cumulants:
        (epsilon, times), double = self._planned, 2 * orders + 1
        far = np.exp(-double * epsilon)
        top = orders + 1 + orders * far
        first = (1 + far - 2 * epsilon * orders * far) / top
        second = far * (4 * epsilon**2 * orders - 4 * epsilon) / top
        flat = (orders + 1) * epsilon < 1e-3
        shrink = epsilon**2 * (1 - epsilon / 3)
        log_m = np.where(flat, shrink * orders * (orders + 1) / 2, orders * epsilon + np.log(top / double))
        mean = np.where(flat, shrink * (orders + 0.5), epsilon + first - 2 / double)
        spread = np.where(flat, shrink, second - first**2 + 4 / double**2)
        return Cumulants(*((times * part).sum(axis=0) for part in (log_m, mean, spread)))

    @cached_property
    def _planned(self) -> tuple[Reals, Reals]:
        """Fewer rows of nearly the same curve: neighbors replaced by two with their mean and variance.

        For speed: without it the benchmark row "1,000 Laplace, scale 50 to 149.9" takes 1.15 times as long.
        """
        if len(self.epsilon) <= 4 * _PLANNED_GROUPS:
            return self.epsilon, self.times
        order = np.argsort(self.epsilon[:, 0])
        epsilon, times = self.epsilon[order, 0], self.times[order, 0]
        starts = np.arange(_PLANNED_GROUPS) * len(epsilon) // _PLANNED_GROUPS
        if np.any(epsilon[starts] < 0.85 * epsilon[np.append(starts[1:], len(epsilon)) - 1]):
            return self.epsilon, self.times
        copies = np.add.reduceat(times, starts)
        mean = np.add.reduceat(times * epsilon, starts) / copies
        away = epsilon - np.repeat(mean, np.diff(starts, append=len(epsilon)))
        apart = np.sqrt(np.add.reduceat(times * away * away, starts) / copies)
        return np.concatenate([mean - apart, mean + apart])[:, None], np.tile(copies / 2, 2)[:, None]

    def line(self, order: float, frequencies: Reals) -> Line:
        value, total_error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        chunk = max(1, (1 << 16) // len(self.epsilon))
        for at in range(0, len(frequencies), chunk):
            log, error = self._log(order, frequencies[at : at + chunk])
            total = self.times * log
            value[at : at + chunk] = np.sum(total, axis=0)
            total_error[at : at + chunk] = np.sum(
                self.times * error + U * (4 + len(self.epsilon)) * np.abs(total), axis=0
            )
        return Line(value, total_error)

    def rough_line(self, order: float, frequencies: Reals) -> Line | None:
        return rough_line(self.epsilon, self.times, order, frequencies)

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """Cheap bounds on log |phi|, of different rows or else 0."""
        return self.screen(order).bounds()

    def screen(self, order: float) -> LaplaceScreen:
        """Cheap bounds on a line, which tell the significant nodes."""
        double = 2 * order + 1
        far = np.exp(-double * self.epsilon)
        whole = 0.5 + far / 2 - np.expm1(-double * self.epsilon) / (2 * double)
        return LaplaceScreen(self.epsilon, self.times, far, whole)

    def limsup(self, order: float) -> float:
        # The mass of the atoms.
        double = 2 * order + 1
        far = np.exp(-double * self.epsilon)
        return math.exp(float((self.times * np.log((1 + far) / 2 / (order + 1 + order * far) * double)).sum()))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        found, size = np.zeros(len(edges)), max(1, _LARGEST_BLOCK // len(edges))
        for at in range(0, len(self.epsilon), size):
            rows = slice(at, at + size)
            found += log_modulus(self.times[rows], self._envelope(rows, order, edges))
        return found

    def _envelope(self, rows: slice, order: float, edges: Reals) -> Reals:
        """For each row bounds on |phi|^2 between the edges, those below 1 with a margin."""
        epsilon, double = self.epsilon[rows], 2 * order + 1
        far = np.exp(-double * epsilon)
        whole = order + 1 + order * far
        # The tilted smooth part is monotone, so its transform is at most twice its largest density over u.
        bound = ((1 + far) / 2 + 0.5 / edges) * (double / whole)
        bound *= bound
        # Where a block is wide nothing but that decay is known.
        wide = np.flatnonzero(np.diff(edges, append=math.inf) * float(epsilon.min()) > 2.0)
        last = int(wide[0])
        if last:
            sine, cosine, square_error = self._waves(rows, edges[: last + 1])
            near = edges[: last + 1]
            # |t + 1 + t e^(-(2 t + 1) epsilon)| / |2 t + 1| over the same at u = 0.
            real = order + 1 + far * (order * cosine + near * sine)
            imaginary = near + far * (near * cosine - order * sine)
            square = (real * real + imaginary * imaginary) / (1 + (near * (2 / double)) ** 2) / (whole * whole)
            square = square * (1 + 256 * U) + square_error
            # f = |phi|^2 has |f''| <= 2 epsilon^2, as in `blockwise`.
            square = np.maximum(square[:, :-1], square[:, 1:]) + (epsilon * np.diff(near)) ** 2 / 4
            bound[:, :last] = np.minimum(bound[:, :last], square)
        return np.minimum(bound * (1 + 1e-12), 1.0)

    def _waves(self, rows: slice, edges: Reals) -> tuple[Reals, Reals, Reals]:
        """Sine and cosine of 2 epsilon u, and what they may add to |phi|^2.

        Errors d of both add at most sqrt(2) d to |phi|, so 3 d to its square, and 8 d if d is no small number: the
        angle is good to 2 U of itself. In single precision d is below 1e-6; many copies ask for more digits.
        """
        if len(self.epsilon) < 16 or self.copies > 1e5:
            angle = 2 * self.epsilon[rows] * edges
            return np.sin(angle), np.cos(angle), 16 * U * angle + 256 * U
        turns = self.epsilon[rows] / math.pi * edges
        square_error = 3e-6 + 2e-14 * turns
        turns -= np.rint(turns)
        angle = turns.astype(np.float32) * np.float32(2 * math.pi)
        return np.sin(angle), np.cos(angle), square_error

    def _log(self, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
        """log M per copy with its error, rows by frequencies."""
        log = np.empty((len(self.epsilon), len(frequencies)), dtype=np.complex128)
        error = np.empty(log.shape)
        # Close to 1 the series keep the digits that many copies need.
        near = ((order + 1) * self.epsilon[:, 0] <= 2) & (self.times[:, 0] > 300)
        for rows, method in ((near, _near_one), (~near, _far_from_one)):
            if rows.any():
                log[rows], error[rows] = method(self.epsilon[rows], order, frequencies)
        return log, error


def _near_one(epsilon: Reals, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
    """M - 1 = ((t + 1) E(t epsilon) + t E(-(t + 1) epsilon)) / (2 t + 1) with E(z) = e^z - 1 - z."""
    line = order + 1j * frequencies
    angle = epsilon * frequencies
    up, up_error = _exp_minus_linear(order * epsilon, angle)
    down, down_error = _exp_minus_linear(-(order + 1) * epsilon, -angle)
    excess = ((line + 1) * up + line * down) / (2 * line + 1)
    error = (np.abs(line + 1) * up_error + np.abs(line) * down_error) / np.abs(2 * line + 1) + 24 * U * (
        np.abs(up) + np.abs(down)
    )
    result = logarithm_of_excess(excess.real, excess.imag, error)
    return result.log, result.error


def _exp_minus_linear(x: Reals, y: Reals) -> tuple[Complexes, Reals]:
    """e^(x + iy) - 1 - (x + iy) and its error; x of shape (m, 1) with |x| <= 2, y of shape (m, n)."""
    rise, half = np.exp(x), np.sin(y / 2)
    curve = exp_minus_linear(x)
    real = curve - 2 * rise * half * half
    imaginary = np.expm1(x) * np.sin(y) + sine_minus_linear(y)
    flat = np.where(np.abs(x) > 1e-2, 24 * U * np.abs(x), 0.0)
    small = 64 * U * (x * x + rise * y * y + np.abs(x * y) * (1 + rise))
    large = 16 * U * (1 + np.abs(y)) * (1 + rise + np.abs(x) + np.abs(y))
    return real + 1j * imaginary, np.minimum(small, large) + flat


def _far_from_one(epsilon: Reals, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
    """log M = t epsilon + log((t + 1 + t e^(-(2 t + 1) epsilon)) / (2 t + 1)); the quotient may come close to 0."""
    line = order + 1j * frequencies
    angle = 2 * epsilon * frequencies
    far = np.exp(-(2 * order + 1) * epsilon)
    rest = line / (2 * line + 1) * (far * (np.cos(angle) - 1j * np.sin(angle)))
    ratio = (line + 1) / (2 * line + 1) + rest
    ratio_error = U * (64 + 16 * (2 * order + 1) * epsilon * far + 8 * far * angle)
    result = logarithm_of_excess(ratio.real - 1, ratio.imag, ratio_error)
    return epsilon * line + result.log, result.error + 8 * U * (epsilon * np.abs(line) + np.abs(result.log))
