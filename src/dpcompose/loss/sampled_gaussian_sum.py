"""The sum of many losses of Gaussian noise on Poisson samples, any of them many times, as a transform.

The lines of sampled Gaussian losses, row by row, as integrals over the noise.

With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and x ~ N(0, s^2) each has E r^(t + 1) (remove) or E r^(-t) (add): a
trapezoid sum over x whose error decays like e^(-2 pi d / step) in the half-width d of a strip where |r^p| is bounded.
With theta = d / s^2 < pi and w = q e^z / r,
  r(x + i d) = r(x) (1 - w + w e^(i theta)),   r cos(theta / 2) <= |r(x + i d)| <= r,   0 <= arg r(x + i d) <= theta.

Reference: [TrefethenWeideman2014, Theorem 5.1], [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, NamedTuple

import numpy as np
from scipy import special

from dpcompose.contour import Cumulants, Line, Transform, careful_nodes
from dpcompose.loss.sampled_gaussian_batch import MOST_POINTS, SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_grid import Grid, built, shortened
from dpcompose.loss.sampled_gaussian_plan import THETAS
from dpcompose.numerics import Reals, U, exp_or_inf, log_add_exp, row_sums, row_tops

_ANGLES = (0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5)
"""Half-widths of strips, over s^2, where the noise is at most `_LARGE`; beyond it they are of so many s."""
_LARGE = 100.0
_REAL_LINE_POINTS = 600
_SHORT = 128
"""Points of the grid for planning up to which it serves the line too."""
_MANY = 1e8


@dataclass(frozen=True, eq=False)
class Direction:
    """The rows of one direction, or all rows.

    Args:
        batch: All losses, in both directions.
        own: Which of its rows; of what follows every array has as many.
    """

    batch: SampledGaussianBatch
    own: slice

    @cached_property
    def noise(self) -> Reals:
        """sigma / sensitivity, shape (m, 1)."""
        return self.batch.both.noise[self.own]

    @cached_property
    def rate(self) -> Reals:
        """The sampling rates, shape (m, 1)."""
        return self.batch.both.rate[self.own]

    @cached_property
    def times(self) -> Reals:
        """How many copies of each, shape (m, 1)."""
        return self.batch.both.times[self.own]

    def at(self, order: float, frequencies: Reals) -> Line:
        """log M of one copy of each row, shape (m, n)."""
        low, high = self._ends(order)
        step, step_error = self._step(order, float(frequencies[-1]) if len(frequencies) else 0.0)
        points = float(((high - low) / step).max())
        if points > (_REAL_LINE_POINTS if float(self.times.max()) <= _MANY else MOST_POINTS):
            return self.batch.raised(order, frequencies, self.own)
        grid = self._fine(order, step)
        return self._on_grid(grid, self._powers(order), frequencies, step_error)

    def _on_grid(self, grid: Grid, power: Reals, frequencies: Reals, step_error: Reals) -> Line:
        """The trapezoid sum; `step_error` bounds what its step leaves out, shape (m, 1)."""
        outside, most = (
            step_error + self._outside(grid, power) * (1 + frequencies),
            float(self.times.max()),
        )
        # So many copies that an error of first order in the losses of one is too much for all of them.
        plain = not most > _MANY
        return grid.points.line(
            power,
            frequencies,
            sign=self.batch.sign[self.own],
            omitted=outside,
            careful=careful_nodes(most),
            plain=plain,
        )

    def _powers(self, order: float) -> Reals:
        return self.batch.powers(order)[self.own]

    def _ends(self, order: float) -> tuple[Reals, Reals]:
        reach = self.batch.reach(order)
        return reach.low[self.own], reach.high[self.own]

    def _coarse(self, order: float) -> Grid | None:
        """The grid for planning."""
        return self.batch.coarse(order, self.own)

    def _fine(self, order: float, step: Reals) -> Grid:
        """A grid of that step, or the one for planning, if it is fine enough."""
        low, high = self._ends(order)
        key = self.own.start, self.batch.reach(order).power, step.tobytes()
        if key not in self.batch.cache.fine_grids:
            coarse = self._coarse(order)
            if (
                coarse is None
                or coarse.x.shape[-1] > _SHORT
                or not bool((coarse.step == step).all())
            ):
                coarse = built(self.noise, self.rate, low, high, step, self.batch.ulps)
            self.batch.cache.fine_grids[key] = coarse
        return self.batch.cache.fine_grids[key]

    def _step(self, order: float, reach: float) -> tuple[Reals, Reals]:
        """The largest step whose strip bound is below e^-35 / times relative to M, and that absolute error, (m, 1)."""
        grid = self._coarse(order)
        if grid is None:
            return np.full(self.noise.shape, 1e-300), np.full(self.noise.shape, np.inf)
        log_m, _ = self.batch.log_moment(order, self.own)
        wanted = 35 + np.log(self.times) - np.maximum(np.minimum(log_m, 0.0), -600.0)
        norm, width = np.array(self._norms(log_m, order, reach)), self._angles * self.noise**2
        if grid.x.shape[-1] <= _SHORT:
            log_error = (norm - 2 * math.pi * width / grid.step).min(axis=-1)[:, None]
            if (log_error <= -wanted).all():
                return grid.step, 2.8 * np.exp(log_error)
        steps = 2 * math.pi * width / (wanted + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        # The next power of 2^(1/4) below, so that neighboring orders share a grid.
        step = shortened(np.exp2(np.floor(4 * np.log2(steps[best][:, None])) / 4))
        log_error = norm[best][:, None] - 2 * math.pi * width[best][:, None] / step
        return step, 2.8 * np.exp(log_error)

    @cached_property
    def _angles(self) -> Reals:
        """Half-widths of strips, over s^2, of each row."""
        return np.array(_ANGLES) * np.minimum(1.0, _LARGE / self.noise)

    def _norms(self, log_m: Reals, order: float, reach: float) -> list[list[float]]:
        """For each row and each angle log of a bound on the integral of n |r^p| on the strip's edges."""
        columns = np.concatenate([log_m, self.noise, self.rate, self._powers(order)], axis=1)
        return [
            _norms(top, noise, rate, power, reach) for top, noise, rate, power in columns.tolist()
        ]

    def _outside(self, grid: Grid, power: Reals) -> Reals:
        """A bound on n r^p, n and |p| n y beyond the grid, per |p|, in units of the largest term if that is above 1."""
        points = grid.points
        top = row_tops(points.log_weight + power * points.ratio)
        ends = [
            each[:, at]
            for each in (points.log_weight, points.ratio)
            for at in (slice(1), slice(-1, None))
        ]
        columns = [top, *ends, power, self.noise, self.rate, grid.step, grid.low, grid.high]
        return np.array([[_Ends(*row).outside] for row in np.concatenate(columns, axis=1).tolist()])


class _Ends(NamedTuple):
    """One row's grid at its ends."""

    top: float
    first_weight: float
    final_weight: float
    first_ratio: float
    final_ratio: float
    power: float
    noise: float
    rate: float
    step: float
    low: float
    high: float

    @property
    def outside(self) -> float:
        """The terms beyond them."""
        s2, step, low, high, size = (
            self.noise * self.noise,
            self.step,
            self.low,
            self.high,
            abs(self.power),
        )
        top, raised = max(self.top, 0.0), max(self.power, 0.0)
        z = (2 * low - 1) / (2 * s2) + math.log(self.rate / (1 - self.rate))
        slope = -low + min(self.power, 0.0) / (1 + math.exp(min(-z, 700.0)))
        right = _tail(
            self.final_weight + self.power * self.final_ratio - top, step * (high - raised) / s2
        )
        left = _tail(self.first_weight + self.power * self.first_ratio - top, step * slope / s2)
        plain = _tail(self.final_weight, step * high / s2) + _tail(
            self.first_weight, -step * low / s2
        )
        # n e^z is a Gaussian centered at 1: its right edge is far out, its left edge farther.
        moved = math.log(step / (self.noise * math.sqrt(2 * math.pi))) - (high - 1) ** 2 / (2 * s2)
        sampled = 2 * _tail(moved, step * (high - 1) / s2)
        return right + left + (1 + size) * (plain + self.rate * (sampled + plain))


def _tail(log_term: float, falling: float) -> float:
    """e^log_term (q + q^2 + ...) for q = e^-falling; infinite where terms do not fall."""
    return exp_or_inf(log_term) / math.expm1(min(falling, 700.0)) if falling > 0 else math.inf


def _norms(log_m: float, noise: float, rate: float, power: float, reach: float) -> list[float]:
    plain, negative = math.log1p(2 * rate * (abs(power) + reach)), min(power, 0.0)
    return [
        (angle * noise) ** 2 / 2 + log_add_exp(log_m + negative * log_cosine + reach * angle, plain)
        for angle, log_cosine in zip(*_angles_of(min(1.0, _LARGE / noise)), strict=True)
    ]


@lru_cache(maxsize=64)
def _angles_of(scale: float) -> tuple[list[float], list[float]]:
    """Half-widths of strips, over s^2, and the logs of the cosines of their halves."""
    angles = [scale * angle for angle in _ANGLES]
    return angles, [math.log(math.cos(angle / 2)) for angle in angles]


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
        log, slack = self.batch.log_moment(order, self.own)
        if not float((self.times * slack).sum()) < 0.05:
            return _upper(self.line(order, np.zeros(1)))
        rounded = U * (8 + len(log)) * float((self.times * np.abs(log)).sum())
        return float((self.times * log).sum()) + rounded

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
        """`log_envelope` where all losses are nearly alike."""
        return self.batch.envelope(order, edges, self.own, ())

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, THETAS)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, (*THETAS, 1.0, 1.3))

    def _envelope(self, order: float, edges: Reals, thetas: Sequence[float]) -> Reals:
        """The better one of that where losses are alike, and of the best of some shifts."""
        alike, rare = (self.batch.envelope(order, edges, self.own, each) for each in ((), thetas))
        return np.minimum(alike, rare)

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
