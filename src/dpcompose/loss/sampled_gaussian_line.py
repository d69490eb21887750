"""The lines of sampled Gaussian losses, row by row, as integrals over the noise.

With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and x ~ N(0, s^2) each has E r^(t + 1) (remove) or E r^(-t) (add): a
trapezoid sum over x whose error decays like e^(-2 pi d / step) in the half-width d of a strip where |r^p| is bounded.
With theta = d / s^2 < pi and w = q e^z / r,
  r(x + i d) = r(x) (1 - w + w e^(i theta)),   r cos(theta / 2) <= |r(x + i d)| <= r,   0 <= arg r(x + i d) <= theta.

Reference: [ZhuDongWang2022, Theorem 11], [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.contour import Line, careful_nodes, joined
from dpcompose.loss.sampled_gaussian_batch import MOST_POINTS, SampledGaussianBatch, unknown
from dpcompose.loss.sampled_gaussian_grid import Grid, built, most_moment, shortened
from dpcompose.numerics import Reals, exp_or_inf, log_add_exp, log_sum, row_tops

_ANGLES = (0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5)
_LOG_COSINES = tuple(math.log(math.cos(angle / 2)) for angle in _ANGLES)
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
        reach = float(frequencies[-1]) if len(frequencies) else 0.0
        step, step_error = self._step(order, reach)
        cut, span = len(frequencies), high - low
        points = float((span / step).max())
        if reach > 0 and points > _REAL_LINE_POINTS:
            nearby = self._nearby(span, step)
            if nearby < math.inf:
                cut = int(np.searchsorted(frequencies, nearby, side="right"))
                step, step_error = self._step(order, nearby)
                points = float((span / step).max())
        if not points <= MOST_POINTS:
            return unknown(len(self.noise), len(frequencies))
        one = self._on_grid(
            self._fine(order, step), self._powers(order), frequencies[:cut], step_error
        )
        if cut == len(frequencies):
            return one
        return joined(one, self.batch.shifted(order, frequencies[cut:], self.own)[0])

    def _nearby(self, span: Reals, step: Reals) -> float:
        """Up to which frequency the real line is to be used, where a row would need too many points beyond; or inf."""
        most = np.where(self.times <= 1000, _REAL_LINE_POINTS, 10 * _REAL_LINE_POINTS)
        return float((0.1 * self.noise**2 * most / span)[span > most * step].min(initial=math.inf))

    def moment_bounds(self, order: float) -> tuple[Reals, Reals] | None:
        """Upper bounds on log M at a real order from the plain sum of n r^p, to a percent of 1 for all copies, and how
        much of that is rounding, shape (m, 1) each; None if too many points would be needed."""
        grid, power = self._coarse(order), self._powers(order)
        if grid is None:
            return None
        log_m = self._most_moment(grid, order)
        norm, width = self._strips(grid, log_m, order, 0.0)
        steps = 2 * math.pi * width / (5 + np.log(self.times) - np.minimum(log_m, 0.0) + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        step = steps[best][:, None]
        if (step < grid.step).any():
            low, high = self._ends(order)
            if not float(((high - low) / step).max()) <= MOST_POINTS:
                return None
            grid = built(self.noise, self.rate, low, high, shortened(step), self.batch.ulps)
        step_error = 2.8 * np.exp(
            norm[best][:, None] - 2 * math.pi * width[best][:, None] / grid.step
        )
        return grid.points.moment_bound(power, step_error + self._outside(grid, power))

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
        log_m = self._most_moment(grid, order)
        wanted = 35 + np.log(self.times) - np.maximum(np.minimum(log_m, 0.0), -600.0)
        if grid.x.shape[-1] <= _SHORT:
            log_error = self._log_step_error(grid, log_m, order, reach)
            if (log_error <= -wanted).all():
                return grid.step, 2.8 * np.exp(log_error)
        norm, width = self._strips(grid, log_m, order, reach)
        steps = 2 * math.pi * width / (wanted + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        # The next power of 2^(1/4) below, so that neighboring orders share a grid.
        step = shortened(np.exp2(np.floor(4 * np.log2(steps[best][:, None])) / 4))
        log_error = norm[best][:, None] - 2 * math.pi * width[best][:, None] / step
        return step, 2.8 * np.exp(log_error)

    def _most_moment(self, grid: Grid, order: float) -> Reals:
        """log of an upper bound on M."""
        one = self.batch.moments(order, self.own)
        return most_moment(grid, one and one.log_m, self.noise, self._powers(order))

    def _norms(self, log_m: Reals, order: float, reach: float) -> list[list[float]]:
        """For each row and each angle log of a bound on the integral of n |r^p| on the strip's edges."""
        columns = np.concatenate([log_m, self.noise, self.rate, self._powers(order)], axis=1)
        return [
            _norms(top, noise, rate, power, reach) for top, noise, rate, power in columns.tolist()
        ]

    def _log_step_error(self, grid: Grid, log_m: Reals, order: float, reach: float) -> Reals:
        """log of what the step of this grid leaves out, over 2.8, by the best strip, shape (m, 1)."""
        norms, rates = (
            self._norms(log_m, order, reach),
            (2 * math.pi * self.noise**2 / grid.step).ravel().tolist(),
        )
        return np.array(
            [
                [min(norm - angle * rate for norm, angle in zip(row, _ANGLES, strict=True))]
                for row, rate in zip(norms, rates, strict=True)
            ]
        )

    def _strips(self, grid: Grid, log_m: Reals, order: float, reach: float) -> tuple[Reals, Reals]:
        """`_norms`, closer where that is worth it, and half the widths of the strips."""
        s, power, angles = self.noise, self._powers(order), np.array(_ANGLES)
        norm, width = np.array(self._norms(log_m, order, reach)), angles * s * s
        tight = (2 * math.pi * width / (35 + np.log(self.times) + norm)).max(axis=-1) < 0.12 * s[
            :, 0
        ]
        if reach > 0 and tight.any():
            closer = self._strip(grid, power, reach) + np.minimum(power, 0.0) * np.array(
                _LOG_COSINES
            )
            plain = np.log1p(2 * self.rate * (np.abs(power) + reach))
            raised = width * width / (2 * s * s)
            norm = np.where(tight[:, None], raised + np.logaddexp(closer, plain), norm)
        return norm, width

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
        for angle, log_cosine in zip(_ANGLES, _LOG_COSINES, strict=True)
    ]
