"""The lines of sampled Gaussian losses, row by row, as integrals over the noise.

With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and x ~ N(0, s^2) each has E r^(t + 1) (remove) or E r^(-t) (add): a
trapezoid sum over x whose error decays like e^(-2 pi d / step) in the half-width d of a strip where |r^p| is bounded.
With theta = d / s^2 < pi and w = q e^z / r,
  r(x + i d) = r(x) (1 - w + w e^(i theta)),   r cos(theta / 2) <= |r(x + i d)| <= r,   0 <= arg r(x + i d) <= theta.

Reference: [ZhuDongWang2022, Theorem 11], [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpcompose.loss.sampled_gaussian_points import Grid, built, most_moment, shortened
from dpcompose.loss.sampled_gaussian_rows import MOST_POINTS, SampledGaussianRows, share, unknown
from dpcompose.numerics.elementary import Reals, log_sum
from dpcompose.numerics.tilted import careful_nodes, joined
from dpcompose.numerics.transform import Line

_ANGLES = np.array([0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5])
_LOG_COSINES = np.log(np.cos(_ANGLES / 2))
_REAL_LINE_POINTS = 600
# Points of the grid for planning up to which it serves the line too.
_SHORT = 128
_MANY = 1e8


@dataclass(frozen=True, eq=False)
class SampledGaussianLine:
    """Some of the rows.

    Args:
        rows: All losses, in both directions.
        own: Which of them; of what follows every array has as many rows.
    """

    rows: SampledGaussianRows
    own: slice
    _grids: dict[tuple[float, bytes], Grid] = field(default_factory=dict[Any, Any], init=False)

    @property
    def noise(self) -> Reals:
        """sigma / sensitivity, shape (m, 1)."""
        return self.rows.both.noise[self.own]

    @property
    def rate(self) -> Reals:
        """The sampling rates, shape (m, 1)."""
        return self.rows.both.rate[self.own]

    @property
    def times(self) -> Reals:
        """How many copies of each, shape (m, 1)."""
        return self.rows.both.times[self.own]

    def at(self, order: float, frequencies: Reals) -> Line:
        """log M of one copy of each row, shape (m, n)."""
        low, high = self._ends(order)
        reach = float(frequencies[-1]) if len(frequencies) else 0.0
        step, doubt = self._step(order, reach)
        cut, span = len(frequencies), high - low
        most = np.where(self.times <= 1000, _REAL_LINE_POINTS, 10 * _REAL_LINE_POINTS)
        long = span > most * step
        if reach > 0 and long.any():
            nearby = float((0.1 * self.noise**2 * most / span)[long].min())
            cut = int(np.searchsorted(frequencies, nearby, side="right"))
            step, doubt = self._step(order, nearby)
        if not float((span / step).max()) <= MOST_POINTS:
            return unknown(len(self.noise), len(frequencies))
        one = self._on_grid(self._fine(order, step), self._powers(order), frequencies[:cut], doubt)
        if cut == len(frequencies):
            return one
        return joined(one, self.rows.shifted(order, frequencies[cut:], self.own)[0])

    def moment_bound(self, order: float) -> tuple[Reals, Reals] | None:
        """Upper bounds on log M at a real order from the plain sum of n r^p, to a percent of 1 for all copies, and how
        much of that is rounding, shape (m, 1) each; None if too many points would be needed."""
        grid, power = self._coarse(order), self._powers(order)
        if grid is None:
            return None
        log_m, norm, width = self._strips(grid, order, 0.0)
        steps = 2 * math.pi * width / (5 + np.log(self.times) - np.minimum(log_m, 0.0) + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        step = steps[best][:, None]
        if (step < grid.step).any():
            low, high = self._ends(order)
            if not float(((high - low) / step).max()) <= MOST_POINTS:
                return None
            grid = built(self.noise, self.rate, low, high, shortened(step), self.rows.ulps)
        lost = 2.8 * np.exp(norm[best][:, None] - 2 * math.pi * width[best][:, None] / grid.step)
        return grid.points.moment_bound(power, lost + self._outside(grid, power))

    def _on_grid(self, grid: Grid, power: Reals, frequencies: Reals, doubt: Reals) -> Line:
        """The trapezoid sum; `doubt` bounds what its step leaves out, shape (m, 1)."""
        outside, most = doubt + self._outside(grid, power) * (1 + frequencies), float(self.times.max())
        # So many copies that an error of first order in the losses of one is too much for all of them.
        plain = not most > _MANY
        return grid.points.line(
            power, frequencies, sign=self.rows.sign[self.own], outside=outside, careful=careful_nodes(most), plain=plain
        )

    def _powers(self, order: float) -> Reals:
        return self.rows.powers(order)[self.own]

    # ------------------------------------------------------------------------------------------------------- the grid

    def _ends(self, order: float) -> tuple[Reals, Reals]:
        reach = self.rows.reach(order)
        return reach.low[self.own], reach.high[self.own]

    def _coarse(self, order: float) -> Grid | None:
        """The grid for planning."""
        return self.rows.coarse(order, self.own)

    def _fine(self, order: float, step: Reals) -> Grid:
        """A grid of that step, or the one for planning, if it is fine enough."""
        low, high = self._ends(order)
        key = self.rows.reach(order).power, step.tobytes()
        if key not in self._grids:
            coarse = self._coarse(order)
            if coarse is None or coarse.x.shape[-1] > _SHORT or not bool((coarse.step == step).all()):
                coarse = built(self.noise, self.rate, low, high, step, self.rows.ulps)
            self._grids[key] = coarse
        return self._grids[key]

    def _step(self, order: float, reach: float) -> tuple[Reals, Reals]:
        """The largest step whose strip bound is below e^-35 / times relative to M, and that absolute error, (m, 1)."""
        grid = self._coarse(order)
        if grid is None:
            return np.full(self.noise.shape, 1e-300), np.full(self.noise.shape, np.inf)
        log_m, norm, width = self._strips(grid, order, reach)
        wanted = 35 + np.log(self.times) - np.maximum(np.minimum(log_m, 0.0), -600.0)
        if grid.x.shape[-1] <= _SHORT:
            lost = np.minimum.reduce(norm - 2 * math.pi * width / grid.step, axis=-1, keepdims=True)
            if (lost <= -wanted).all():
                return grid.step, 2.8 * np.exp(lost)
        steps = 2 * math.pi * width / (wanted + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        # The next power of 2^(1/4) below, so that neighboring orders share a grid.
        step = shortened(np.exp2(np.floor(4 * np.log2(steps[best][:, None])) / 4))
        lost = norm[best][:, None] - 2 * math.pi * width[best][:, None] / step
        return step, 2.8 * np.exp(lost)

    def _strips(self, grid: Grid, order: float, reach: float) -> tuple[Reals, Reals, Reals]:
        """log of a bound on M; for each angle, log of one on the integral of n |r^p| on the strip's edges, half its
        width."""
        s, power, one = self.noise, self._powers(order), self.rows.moments(order, self.own)
        log_m = most_moment(grid, one and one.log_m, s, power)
        growth = np.minimum(power, 0.0) * _LOG_COSINES
        width = _ANGLES * s * s
        plain = np.log1p(2 * self.rate * (np.abs(power) + reach))
        raised = width * width / (2 * s * s)
        norm = raised + np.logaddexp(log_m + growth + reach * _ANGLES, plain)
        tight = (2 * math.pi * width / (35 + np.log(self.times) + norm)).max(axis=-1) < 0.12 * s[:, 0]
        if reach > 0 and tight.any():
            strip = self._strip(grid, power, reach)
            norm = np.where(tight[:, None], raised + np.logaddexp(strip + growth, plain), norm)
        return log_m, norm, width

    def _strip(self, grid: Grid, power: Reals, reach: float) -> Reals:
        """log of a bound on the integral of n |r^p| on each strip's edge, without the growth of a negative power."""
        s2 = self.noise**2
        weight = -np.expm1(-np.maximum(grid.points.ratio - np.log1p(-self.rate), 0.0))
        weight = np.concatenate([weight[:, 1:], np.ones_like(s2)], axis=1)
        # A cell's mass is at most its left value times e^(step |d log / dx|): that factor costs a few more nodes.
        # The last cell stands for all that is to its right; what is left of the first is below a third of it.
        exponent = grid.points.log_weight + power * grid.points.ratio
        lifted = exponent + grid.step * (np.abs(grid.x) + np.abs(power) + grid.step) / s2
        total = np.empty((len(s2), len(_ANGLES)))
        for at, theta in enumerate(_ANGLES):
            angle = np.arctan2(weight * math.sin(theta), 1 - weight * (1 - math.cos(theta)))
            total[:, at : at + 1] = log_sum(lifted + reach * angle)
        return total

    def _outside(self, grid: Grid, power: Reals) -> Reals:
        """A bound on n r^p, n and |p| n y beyond the grid, per |p|, in units of the largest term if that is above 1."""
        points, s2, step, low, high = grid.points, self.noise**2, grid.step, grid.low, grid.high
        first, last = points.log_weight[:, :1], points.log_weight[:, -1:]
        top = np.maximum((points.log_weight + power * points.ratio).max(axis=-1)[:, None], 0.0)
        right = np.exp(last + power * points.ratio[:, -1:] - top) / np.expm1(
            step * (high - np.maximum(power, 0.0)) / s2
        )
        slope = -low + np.minimum(power, 0.0) * share(low, self.noise, self.rate)
        left = np.exp(first + power * points.ratio[:, :1] - top) / np.expm1(step * np.maximum(slope, 0.0) / s2)
        plain = np.exp(last) / np.expm1(step * high / s2) + np.exp(first) / np.expm1(-step * low / s2)
        # n e^z is a Gaussian centered at 1: its right edge is far out, its left edge farther.
        moved = step / (self.noise * math.sqrt(2 * math.pi)) * np.exp(-((high - 1) ** 2) / (2 * s2))
        sampled = 2 * moved / np.expm1(step * (high - 1) / s2)
        return right + left + (1 + np.abs(power)) * (plain + self.rate * (sampled + plain))
