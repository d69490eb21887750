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
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
from scipy import special

from dpcompose.contour import Cumulants, Line, Transform, careful_nodes, joined
from dpcompose.loss.sampled_gaussian_batch import MOST_POINTS, SampledGaussianBatch, unknown
from dpcompose.loss.sampled_gaussian_decay import shifted_envelope
from dpcompose.loss.sampled_gaussian_grid import Grid, built, most_moment, shortened, strip_sums
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

    def _log_step_error(self, grid: Grid, log_m: Reals, order: float, reach: float) -> Reals:
        """log of what the step of this grid leaves out, over 2.8, by the best strip, shape (m, 1)."""
        norms, rates = (
            self._norms(log_m, order, reach),
            (2 * math.pi * self.noise**2 / grid.step).ravel().tolist(),
        )
        return np.array(
            [
                [min(norm - angle * rate for norm, angle in zip(row, angles, strict=True))]
                for row, rate, angles in zip(norms, rates, self._angles.tolist(), strict=True)
            ]
        )

    def _strips(self, grid: Grid, log_m: Reals, order: float, reach: float) -> tuple[Reals, Reals]:
        """`_norms`, closer where that is worth it, and half the widths of the strips."""
        s, power, angles = self.noise, self._powers(order), self._angles
        norm, width = np.array(self._norms(log_m, order, reach)), angles * s * s
        tight = (2 * math.pi * width / (35 + np.log(self.times) + norm)).max(axis=-1) < 0.12 * s[
            :, 0
        ]
        if reach > 0 and tight.any():
            closer = self._strip(grid, power, reach) + np.minimum(power, 0.0) * np.log(
                np.cos(angles / 2)
            )
            plain = np.log1p(2 * self.rate * (np.abs(power) + reach))
            raised = width * width / (2 * s * s)
            norm = np.where(tight[:, None], raised + np.logaddexp(closer, plain), norm)
        return norm, width

    def _strip(self, grid: Grid, power: Reals, reach: float) -> Reals:
        """log of a bound on the integral of n |r^p| on each strip's edge, without the growth of a negative power."""
        s2 = self.noise**2
        weight = -np.expm1(-np.maximum(grid.points.ratio - np.log1p(-self.rate), 0.0))
        # A cell's mass is at most its left value times e^(step |d log / dx|): that factor costs a few more nodes.
        # The last cell stands for all that is to its right; what is left of the first is below a third of it.
        exponent = grid.points.log_weight + power * grid.points.ratio
        lifted = exponent + grid.step * (np.abs(grid.x) + np.abs(power) + grid.step) / s2
        return strip_sums(weight, lifted, reach, self._angles)

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
        return np.array([[_beyond(row)] for row in np.concatenate(columns, axis=1).tolist()])


def _beyond(ends: list[float]) -> float:
    """The terms beyond one row's grid, from the numbers at its ends."""
    top, first_weight, final_weight, first_ratio, final_ratio, *numbers = ends
    power, noise, rate, step, low, high = numbers
    s2, top, raised = noise * noise, max(top, 0.0), max(power, 0.0)
    z = (2 * low - 1) / (2 * s2) + math.log(rate / (1 - rate))
    slope = -low + min(power, 0.0) / (1 + math.exp(min(-z, 700.0)))
    right = _tail(final_weight + power * final_ratio - top, step * (high - raised) / s2)
    left = _tail(first_weight + power * first_ratio - top, step * slope / s2)
    plain = _tail(final_weight, step * high / s2) + _tail(first_weight, -step * low / s2)
    # n e^z is a Gaussian centered at 1: its right edge is far out, its left edge farther.
    moved = math.log(step / (noise * math.sqrt(2 * math.pi))) - (high - 1) ** 2 / (2 * s2)
    sampled = 2 * _tail(moved, step * (high - 1) / s2)
    return right + left + (1 + abs(power)) * (plain + rate * (sampled + plain))


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
            return self._total(both[self.own])
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
