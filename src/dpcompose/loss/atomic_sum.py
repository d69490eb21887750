"""The sum of losses with finitely many values, as a transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.contour import (
    Lattice,
    Line,
    Transform,
    WeightedPoints,
    blockwise,
    careful_nodes,
    summed_line,
)
from dpcompose.loss.atoms import Atoms
from dpcompose.numerics import Reals, U, log_sum, minus_log1p, row_dots, row_sums, row_tops
from dpcompose.values import up

_ENTRIES = 1 << 19
"""So many values of M of single rows are held at once."""


@dataclass(frozen=True, eq=False)
class AtomicSum(Transform):
    """The finite parts of atomic losses with equally many values, each so many times, by exponential sums over Q.

    Args:
        tables: One for each row.
        times: How many copies of each, shape (m, 1).
    """

    tables: tuple[Atoms, ...]
    times: Reals

    @property
    def maximum(self) -> float:
        ends = [
            table.maximum * times for table, times in zip(self.tables, self._counts, strict=True)
        ]
        if len(ends) == 1:
            return ends[0] if ends[0] < 0 else up(ends[0])
        return math.fsum(up(end) for end in ends) + 2 * U * math.fsum(map(abs, ends))

    @property
    def minimum(self) -> float:
        return math.fsum(
            table.minimum * times for table, times in zip(self.tables, self._counts, strict=True)
        )

    @property
    def lattice(self) -> Lattice | None:
        one = self.tables[0].lattice
        if one is None or len(self.tables) > 1:
            return None
        return Lattice(one.spacing, one.offset * self._counts[0])

    @cached_property
    def _counts(self) -> list[float]:
        return self.times[:, 0].tolist()

    @cached_property
    def _rows(self) -> tuple[Reals, ...]:
        """upper, lower, log-ratio and their logarithms, shape (m, n) each."""
        return tuple(
            np.array(each) for each in zip(*[table.rows for table in self.tables], strict=True)
        )

    @cached_property
    def _points(self) -> WeightedPoints:
        p, q, ratio, _, log_q = self._rows
        near = np.clip(ratio, -2.0, 2.0)
        deficit = np.where(np.abs(ratio) < 2.0, q * minus_log1p(np.expm1(near)), p - q - q * ratio)
        # A third of the error of the deficit: p, q and q ln(p / q) are at most three times the deficit.
        masses = self._column([table.relative_error for table in self.tables])
        ratios = self._column([table.ratio_relative_error for table in self.tables])
        like = np.zeros_like(ratio)
        return WeightedPoints(
            log_q, ratio, deficit, like + (masses + 1.5 * ratios + 64 * U), like + (ratios + 16 * U)
        )

    @staticmethod
    def _column(each: Sequence[float]) -> Reals:
        return np.array(each)[:, None]

    @cached_property
    def _mass(self) -> Reals:
        """P's mass on the common support, shape (m, 1)."""
        return self._column([math.fsum(row) for row in self._rows[0]])

    @cached_property
    def _drift(self) -> Reals:
        """Sum of w y over the common support: P's mass there minus Q's, shape (m, 1)."""
        return self._mass - self._column([math.fsum(row) for row in self._rows[1]])

    @cached_property
    def _spans(self) -> Reals:
        """The squares of half the ranges, shape (m, 1)."""
        ratio = self._rows[2]
        return np.square(ratio[:, -1:] - ratio[:, :1]) / 4 + 1e-12

    def cumulants(self, order: float) -> tuple[float, float, float]:
        moments = self._moments(order)
        if len(self._counts) == 1:
            log_m, mean, spread = (self._counts[0] * float(each[0, 0]) for each in moments)
        else:
            log_m, mean, spread = (float((self.times * each).sum()) for each in moments)
        return log_m, mean, spread

    def _moments(self, order: float) -> tuple[Reals, Reals, Reals]:
        """K of one copy of each row and its derivatives, shape (m, 1)."""
        _, _, ratio, log_p, _ = self._rows
        exponent = log_p + order * ratio
        top = row_tops(exponent)
        tilted = np.exp(exponent - top)
        total = row_sums(tilted)
        mean = row_dots(tilted, ratio) / total
        spread = row_dots(tilted, np.square(ratio - mean)) / total
        return top + np.log(total / self._mass), mean, np.maximum(spread, 1e-300)

    @cached_property
    def _mass_error(self) -> Reals:
        """By how much the masses of P and of Q may be off as a whole: what is linear in t then does not cancel."""
        found: list[float] = []
        for table in self.tables:
            sides = () if table.omitted_mass else (table.upper, table.lower)
            off = sum(abs(math.fsum([*side, -1.0])) for side in sides)
            found.append((table.relative_error + 2 * U if table.relative_error else 0.0) + off)
        return self._column(found)

    def _outside(self, order: float, frequencies: Reals) -> Reals:
        """An error of (2 |t| + 1) `_mass_error` max(M(order), 1), in the units of `WeightedPoints.line`.

        It is of the size of M where all masses are off by a factor, and of that of 1 where they are off as a whole:
        M is smaller than 1 where the infinite loss left hardly more than negative ones.
        """
        points = self._points
        top = np.maximum(row_tops(points.log_weight + (order + 1) * points.ratio), 0.0)
        log_m = np.maximum(self._moments(order)[0], 0.0) + 1e-6
        size = self._mass_error * self._mass * np.exp(np.minimum(log_m - top, 700.0))
        return (2 * (order + frequencies) + 1) * size

    def line(self, order: float, frequencies: Reals) -> Line:
        most = max(_ENTRIES // len(frequencies), 1)
        if len(self.tables) > most:
            parts = [slice(at, at + most) for at in range(0, len(self.tables), most)]
            return summed_line(
                (AtomicSum(self.tables[at], self.times[at]) for at in parts), order, frequencies
            )
        one = self._one(order, frequencies, careful_nodes(float(self.times.max())))
        size = self.times * np.abs(one.log)
        error = self.times * one.error + (3 + len(size)) * U * size
        return Line((self.times * one.log).sum(axis=0), error.sum(axis=0))

    def _one(self, order: float, frequencies: Reals, careful: int) -> Line:
        """log M of one copy of each row, shape (m, n)."""
        outside = self._outside(order, frequencies)
        return self._points.line(
            order + 1,
            frequencies,
            sign=1.0,
            drift=self._drift,
            mass=self._mass,
            omitted=outside,
            careful=careful,
        )

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """log |phi| of a few rows at a time from their two heaviest values, with a margin for its rounding.

        |phi|^2 is 1 less the sum over pairs of values of 4 w_j w_k sin^2(u (l_j - l_k) / 2), w the tilted masses.
        """
        if self._rows[0].shape[1] < 2:
            return
        _, _, ratio, log_p, _ = self._rows
        exponent = log_p + order * ratio
        heaviest = np.argsort(exponent, axis=-1)[:, -2:]
        one, two = np.take_along_axis(np.exp(exponent - log_sum(exponent)), heaviest, axis=-1).T[
            :, :, None
        ]
        ends = np.take_along_axis(ratio, heaviest, axis=-1)
        gap, ratio_error = (
            np.abs(ends[:, 1:] - ends[:, :1]),
            self._column([table.ratio_error for table in self.tables]),
        )
        masses = self._column([table.relative_error for table in self.tables])
        weight = 4 * one * two * np.maximum(1 - 1e-9 - 8 * (masses + order * ratio_error), 0.0)
        apart = max(
            1, len(self.tables) // 8
        )  # rows that differ do not come back to 1 at the same frequencies
        for at in range(apart):
            rows = tuple(each[at::apart] for each in (weight, gap, ratio_error, self.times))

            def bound(u: Reals, *, rows: tuple[Reals, ...] = rows) -> Reals:
                weight, gap, ratio_error, times = rows
                square = (
                    1
                    - weight * np.square(np.sin(gap * u / 2))
                    + 1e-14 * (1 + gap * u)
                    + 2 * ratio_error * u
                )
                return np.sum(times * 0.5 * np.log(np.minimum(square, 1.0)), axis=0)

            yield bound

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        # As M is the plain sum over the points, up to the mass, its size alone needs no series for small losses.
        frequencies = np.concatenate([[0.0], edges])
        outside = self._outside(order, frequencies)
        one = self._points.positive_line(order + 1, frequencies, sign=1.0, omitted=outside)
        magnitude = np.exp(one.log.real[:, 1:] + one.error[:, 1:] - one.floor)
        variance = np.minimum(self._moments(order)[2] * 1.01, self._spans)
        return (self.times * blockwise(magnitude, variance, edges)).sum(axis=0)
