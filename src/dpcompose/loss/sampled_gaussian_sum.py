"""The sum of many losses of Gaussian noise on Poisson samples, any of them many times, as a transform.

Reference: [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy import special

from dpcompose.contour import Cumulants, Line, Transform
from dpcompose.loss.sampled_gaussian_decay import shifted_envelope
from dpcompose.loss.sampled_gaussian_line import Direction
from dpcompose.numerics import Reals, U, row_sums

_WHOLE = 200.0
"""Below this order whole orders are near and their sums short."""
_LOG_FACTORIAL = special.gammaln(np.arange(1.0, _WHOLE + 4))


@dataclass(frozen=True, eq=False)
class SampledGaussianSum(Direction, Transform):
    """The sum of the losses of one direction, each so many times."""

    tabulates = True

    @property
    def remove(self) -> bool:
        """Whether the losses are those of (with the record, without it)."""
        return self.own.start == 0

    @property
    def reverse(self) -> SampledGaussianSum:
        return self._reverse

    @cached_property
    def _reverse(self) -> SampledGaussianSum:
        return SampledGaussianSum(self.batch, self.batch.rows_of(remove=not self.remove))

    @property
    def maximum(self) -> float:
        return math.inf if self.remove else self._edge

    @property
    def minimum(self) -> float:
        return -self._edge if self.remove else -math.inf

    @cached_property
    def _edge(self) -> float:
        """-log(1 - rate), added up and rounded up."""
        return math.fsum((-np.log1p(-self.rate) * self.times).ravel()) * (1 + 16 * U)

    @property
    def scale(self) -> float:
        """K(1) when removing, and nearly that when adding: where to look first for an order."""
        return float(
            (
                self.times * np.log1p(self.rate**2 * np.expm1(np.maximum(self.noise, 0.05) ** -2))
            ).sum()
        )

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    @property
    def blow_up(self) -> float:
        """Where q^(t + 1) e^(t (t + 1) / (2 s^2)), what a sampled record adds to M, grows past 1."""
        return (
            float((2 * self.noise**2 * -np.log(self.rate)).min()) + 1 if self.remove else math.inf
        )

    def cumulants(self, order: float) -> tuple[float, float, float]:
        one = self.batch.moments(order, self.own)
        if one is None:
            return math.inf, math.inf, math.inf
        log_m, first, second = (float((self.times * part).sum()) for part in _parts(one))
        return log_m, first, second

    def curve(self, orders: Reals) -> Cumulants:
        one = self.batch.curve(orders, self.own)
        if one is None:
            return Cumulants(*np.full((3, len(orders)), np.inf))
        return Cumulants(*(self._added(part) for part in _parts(one)))

    def moment_bound(self, order: float) -> float:
        """An upper bound on K: between whole orders where that is close, from the coarse grid, or from a line."""
        if self.remove and order < _WHOLE:
            whole = self._between_whole_orders(order)
            if whole < math.inf and (order.is_integer() or whole < self.cumulants(order)[0] + 2):
                return whole
        bound = self._by_sum(order)
        return _upper(self.line(order, np.zeros(1))) if bound is None else bound

    def _by_sum(self, order: float) -> float | None:
        """An upper bound on K from the plain sum of n r^p; None if its rounding is above a percent of 1 or so."""
        found = self.moment_bounds(order)
        if found is None or not float((self.times * found[1]).sum()) < 0.05:
            return None
        log, _ = found
        return float((self.times * log).sum()) + U * (8 + len(log)) * float(
            (self.times * np.abs(log)).sum()
        )

    def _between_whole_orders(self, order: float) -> float:
        """K is convex: between whole orders it is at most what the line through their values is."""
        below = math.floor(order)
        rows, share = self._at_whole_order(below), order - below
        if share:
            rows = (1 - share) * rows + share * self._at_whole_order(below + 1)
        return float((self.times * rows).sum()) * (1 + U * (32 + len(rows)))

    def _at_whole_order(self, order: int) -> Reals:
        """An upper bound on K of one copy of each row, shape (m, 1).

        E r^(order + 1) - 1 is the sum over j of the binomial weights times e^(j (j - 1) / (2 s^2)) - 1, all positive.
        """
        power, kept, rare = order + 1, np.log1p(-self.rate), np.log(self.rate)
        j = np.arange(2.0, power + 1)
        weight = (
            _LOG_FACTORIAL[power]
            - _LOG_FACTORIAL[2 : power + 1]
            - _LOG_FACTORIAL[: power - 1][::-1]
        )
        log_term = weight + j * rare + (power - j) * kept
        rise = j * (j - 1) / (2 * self.noise**2) * (1 + 8 * (1 + self.batch.ulps) * U)
        # e^x - 1 = e^x (1 - e^-x): nothing overflows in between.
        raised = log_term + rise
        if not float(raised.max(initial=0)) < 700:
            return np.full_like(self.noise, np.inf)
        excess = row_sums(np.exp(raised) * -np.expm1(-rise))
        parts = math.lgamma(power + 1) - power * (rare + kept)
        return np.log1p(excess * (1 + U * (power + 64 + 64 * parts)))

    def line(self, order: float, frequencies: Reals) -> Line:
        both = self.batch.cache.lines.get((order, frequencies.tobytes()))
        if both is not None:
            return self._total(Line(both.log[self.own], both.error[self.own]))
        return self._total(self.at(order, frequencies))

    def line_with_reverse(self, order: float, frequencies: Reals) -> Line:
        key = order, frequencies.tobytes()
        if key not in self.batch.cache.lines:
            self.batch.cache.lines[key] = Direction(self.batch, slice(None)).at(order, frequencies)
        return self.line(order, frequencies)

    def near_normal_envelope(
        self, order: float, edges: Reals, *, with_reverse: bool
    ) -> Reals | None:
        """`log_envelope` where two moments and one shifted path give it."""
        found = self.batch.near_normal(order, self.own, together=with_reverse)
        return found and self._added(found.log_envelope(edges))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self.coarse_line(order, np.zeros(1), edges, with_reverse=False)[1]

    def coarse_line(
        self, order: float, nodes: Reals, edges: Reals, *, with_reverse: bool
    ) -> tuple[Line, Reals]:
        line, bounds = self.batch.survey(order, nodes, edges, self.own, together=with_reverse)
        return self._total(line), self._added(bounds)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        """`log_envelope` with the best of several shifts: where one was not enough."""
        line, bounds = self.batch.survey(order, np.zeros(1), edges, self.own, together=False)
        floor = line.floor
        if not np.isfinite(floor).all():
            return self._added(bounds)
        power, reach = order + 1 if self.remove else -order, self.batch.reach(order)
        ends = reach.low[self.own], reach.high[self.own]
        beyond = shifted_envelope(self.noise, self.rate, power, edges, floor, ends)
        return self._added(np.minimum(bounds, beyond))

    def _total(self, rows: Line) -> Line:
        size, error = self._added(np.abs(rows.log)), self._added(rows.error)
        return Line(self._added(rows.log), error + (4 + len(self.noise)) * U * size)

    def _added(self, rows: Any) -> Any:
        """The rows added up, each so many times as there are copies, shape (n,)."""
        return np.vecdot(self.times.T, rows.T)


def _upper(line: Line) -> float:
    return float(line.log[0].real + line.error[0])


def _parts(curve: Cumulants) -> tuple[Reals, Reals, Reals]:
    return curve.log_m, curve.first, curve.second
