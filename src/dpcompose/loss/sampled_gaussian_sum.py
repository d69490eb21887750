"""The sum of many losses of Gaussian noise on Poisson samples, any of them many times, as a transform.

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

import numpy as np
from scipy import special

from dpcompose.loss.sampled_gaussian_points import Grid, built, shortened
from dpcompose.loss.sampled_gaussian_rows import MOST_POINTS, SampledGaussianRows, share, unknown
from dpcompose.loss.sampled_gaussian_shifted import shifted_envelope
from dpcompose.numerics.elementary import Reals, U, log_sum, row_sums
from dpcompose.numerics.tilted import careful_nodes, joined
from dpcompose.numerics.transform import Curve, Lattice, Line

_ANGLES = np.array([0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5])
_LOG_COSINES = np.log(np.cos(_ANGLES / 2))
_REAL_LINE_POINTS = 600
# Points of the grid for planning up to which it serves the line too.
_SHORT = 128
# Below this order whole orders are near and their sums short.
_WHOLE = 200.0


@dataclass(frozen=True, eq=False)
class SampledGaussianSum:
    """One direction of rows of losses.

    Args:
        rows: The losses, each so many times.
        remove: Whether they are those of (with the record, without it).
    """

    rows: SampledGaussianRows
    remove: bool
    lattice: Lattice | None = None

    @cached_property
    def facing(self) -> SampledGaussianSum:
        """The other direction."""
        return SampledGaussianSum(self.rows, not self.remove)

    @cached_property
    def _own(self) -> slice:
        count = len(self.rows.noise)
        return slice(0, count) if self.remove else slice(count, 2 * count)

    @property
    def noise(self) -> Reals:
        """sigma / sensitivity, shape (m, 1)."""
        return self.rows.noise

    @property
    def rate(self) -> Reals:
        """The sampling rates, shape (m, 1)."""
        return self.rows.rate

    @property
    def times(self) -> Reals:
        """How many copies of each, shape (m, 1)."""
        return self.rows.times

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

    @cached_property
    def _many(self) -> bool:
        """Whether an error of first order in one copy's losses is too much for all of them."""
        return float(self.times.max()) > 1e8

    @property
    def _sign(self) -> float:
        return 1.0 if self.remove else -1.0

    def _power(self, order: float) -> float:
        return order + 1 if self.remove else -order

    @cached_property
    def scale(self) -> float:
        """K(1) when removing, and nearly that when adding: where to look first for an order."""
        with np.errstate(over="ignore"):
            return float((self.times * np.log1p(self.rate**2 * np.expm1(self.noise**-2.0))).sum())

    @cached_property
    def copies(self) -> float:
        """How many summands there are."""
        return float(self.times.sum())

    @cached_property
    def explosion(self) -> float:
        """Where q^(t + 1) e^(t (t + 1) / (2 s^2)), what a sampled record adds to M, grows past 1."""
        return float((2 * self.noise**2 * -np.log(self.rate)).min()) + 1 if self.remove else math.inf

    def cumulants(self, order: float) -> tuple[float, float, float]:
        one = self.rows.moments(order, self._own)
        if one is None:
            return math.inf, math.inf, math.inf
        log_m, first, second = (float((self.times * part).sum()) for part in _parts(one))
        return log_m, first, second

    def curve(self, orders: Reals) -> Curve:
        """K and its derivatives at many orders, over one grid."""
        one = self.rows.curve(orders, self._own)
        if one is None:
            return Curve(*np.full((3, len(orders)), np.inf))
        return Curve(*((self.times * part).sum(axis=0) for part in _parts(one)))

    def moment_bound(self, order: float) -> float:
        """An upper bound on K: between whole orders where that is close, from the coarse grid, or from a line."""
        if self.remove and order < _WHOLE:
            whole = self._between_whole_orders(order)
            if whole < math.inf and (order.is_integer() or whole < self.cumulants(order)[0] + 2):
                return whole
        bound = self._by_sum(order)
        return _upper(self.line(order, np.zeros(1))) if bound is None else bound

    def _by_sum(self, order: float) -> float | None:
        """An upper bound on K from the plain sum of n r^p, to a percent of 1; None if its rounding is above that."""
        grid, power = self._coarse(order), self._power(order)
        if grid is None:
            return None
        log_m, norm, width = self._strips(grid, power, 0.0)
        steps = 2 * math.pi * width / (5 + np.log(self.times) - np.minimum(log_m, 0.0) + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        step = steps[best][:, None]
        if (step < grid.step).any():
            low, high = self._ends(order)
            if not float(((high - low) / step).max()) <= MOST_POINTS:
                return None
            grid = built(self.noise, self.rate, low, high, shortened(step), self.rows.ulps)
        lost = 2.8 * np.exp(norm[best][:, None] - 2 * math.pi * width[best][:, None] / grid.step)
        log, doubt = grid.points.moment_bound(power, lost + self._outside(grid, power))
        if not float((self.times * doubt).sum()) < 0.05:
            return None
        return float((self.times * log).sum()) + U * (8 + len(log)) * float((self.times * np.abs(log)).sum())

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
        weight = special.gammaln(power + 1) - special.gammaln(j + 1) - special.gammaln(power - j + 1)
        log_term = weight + j * rare + (power - j) * kept
        rise = j * (j - 1) / (2 * self.noise**2) * (1 + 8 * (1 + self.rows.ulps) * U)
        # e^x - 1 = e^x (1 - e^-x): nothing overflows in between.
        raised = log_term + rise
        if not float(raised.max(initial=0)) < 700:
            return np.full_like(self.noise, np.inf)
        excess = row_sums(np.exp(raised) * -np.expm1(-rise))
        parts = math.lgamma(power + 1) - power * (rare + kept)
        return np.log1p(excess * (1 + U * (power + 64 + 64 * parts)))

    def line(self, order: float, frequencies: Reals) -> Line:
        return self._total(self._lines(order, frequencies))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self.survey(order, np.zeros(1), edges, together=False)[1]

    def survey(self, order: float, nodes: Reals, edges: Reals, *, together: bool) -> tuple[Line, Reals]:
        """The line to a thousandth and the envelope, for hardly more than the envelope; the first node is 0."""
        line, bounds = self.rows.survey(order, nodes, edges, self._own, together=together)
        return self._total(line), (self.times * bounds).sum(axis=0)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        """`log_envelope` with the best of several shifts: where one was not enough."""
        line, bounds = self.rows.survey(order, np.zeros(1), edges, self._own, together=False)
        floor = line.floor
        if not np.isfinite(floor).all():
            return (self.times * bounds).sum(axis=0)
        beyond = shifted_envelope(self.noise, self.rate, self._power(order), edges, floor, self._ends(order))
        return (self.times * np.minimum(bounds, beyond)).sum(axis=0)

    def _total(self, rows: Line) -> Line:
        size = (self.times * np.abs(rows.log)).sum(axis=0)
        error = (self.times * rows.error).sum(axis=0)
        return Line((self.times * rows.log).sum(axis=0), error + (4 + len(self.noise)) * U * size)

    def _lines(self, order: float, frequencies: Reals) -> Line:
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
        one = self._on_grid(self._fine(order, step), self._power(order), frequencies[:cut], doubt)
        if cut == len(frequencies):
            return one
        return joined(one, self.rows.shifted(order, frequencies[cut:], self._own)[0])

    def _on_grid(self, grid: Grid, power: float, frequencies: Reals, doubt: Reals) -> Line:
        """The trapezoid sum; `doubt` bounds what its step leaves out, shape (m, 1)."""
        outside = doubt + self._outside(grid, power) * (1 + frequencies)
        careful = careful_nodes(float(self.times.max()))
        return grid.points.line(
            power, frequencies, sign=self._sign, outside=outside, careful=careful, plain=not self._many
        )

    # ------------------------------------------------------------------------------------------------------- the grid

    def _ends(self, order: float) -> tuple[Reals, Reals]:
        low, high = self.rows.ends(order)
        return low[self._own], high[self._own]

    def _coarse(self, order: float) -> Grid | None:
        """The grid for planning."""
        return self.rows.coarse(order, self._own)

    @cached_property
    def _grids(self) -> dict[tuple[float, bytes], Grid]:
        return {}

    def _fine(self, order: float, step: Reals) -> Grid:
        """A grid of that step, or the one for planning, if it is fine enough."""
        low, high = self._ends(order)
        key = self.rows.bucket(order), step.tobytes()
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
        log_m, norm, width = self._strips(grid, self._power(order), reach)
        wanted = 35 + np.log(self.times) - np.maximum(np.minimum(log_m, 0.0), -600.0)
        steps = 2 * math.pi * width / (wanted + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        step = steps[best][:, None]
        if grid.x.shape[-1] <= _SHORT and bool((step >= grid.step).all()):
            step = grid.step
        else:
            # The next power of 2^(1/4) below, so that neighboring orders share a grid.
            step = shortened(np.exp2(np.floor(4 * np.log2(step)) / 4))
        lost = norm[best][:, None] - 2 * math.pi * width[best][:, None] / step
        return step, 2.8 * np.exp(lost)

    def _strips(self, grid: Grid, power: float, reach: float) -> tuple[Reals, Reals, Reals]:
        """log M; for each angle, log of a bound on the integral of n |r^p| on the strip's edges, and half its width."""
        s = self.noise
        exponent = grid.points.log_weight + power * grid.points.ratio
        log_m = log_sum(exponent)
        growth = np.zeros(len(_ANGLES)) if power > 0 else power * _LOG_COSINES
        width = _ANGLES * s * s
        plain = np.log1p(2 * self.rate * (abs(power) + reach))
        raised = width * width / (2 * s * s)
        norm = raised + np.logaddexp(log_m + 0.01 + growth + reach * _ANGLES, plain)
        tight = (2 * math.pi * width / (35 + np.log(self.times) + norm)).max(axis=-1) < 0.12 * s[:, 0]
        if reach > 0 and tight.any():
            strip = self._strip(grid, exponent, power, reach)
            norm = np.where(tight[:, None], raised + np.logaddexp(strip + growth, plain), norm)
        return log_m, norm, width

    def _strip(self, grid: Grid, exponent: Reals, power: float, reach: float) -> Reals:
        """log of a bound on the integral of n |r^p| on each strip's edge, without the growth of a negative power."""
        s2 = self.noise**2
        weight = -np.expm1(-np.maximum(grid.points.ratio - np.log1p(-self.rate), 0.0))
        weight = np.concatenate([weight[:, 1:], np.ones_like(s2)], axis=1)
        # A cell's mass is at most its left value times e^(step |d log / dx|): that factor costs a few more nodes.
        # The last cell stands for all that is to its right; what is left of the first is below a third of it.
        lifted = exponent + grid.step * (np.abs(grid.x) + abs(power) + grid.step) / s2
        total = np.empty((len(s2), len(_ANGLES)))
        for at, theta in enumerate(_ANGLES):
            angle = np.arctan2(weight * math.sin(theta), 1 - weight * (1 - math.cos(theta)))
            total[:, at : at + 1] = log_sum(lifted + reach * angle)
        return total

    def _outside(self, grid: Grid, power: float) -> Reals:
        """A bound on n r^p, n and |p| n y beyond the grid, per |p|, in units of the largest term if that is above 1."""
        points, s2, step, low, high = grid.points, self.noise**2, grid.step, grid.low, grid.high
        first, last = points.log_weight[:, :1], points.log_weight[:, -1:]
        top = np.maximum((points.log_weight + power * points.ratio).max(axis=-1)[:, None], 0.0)
        right = np.exp(last + power * points.ratio[:, -1:] - top) / np.expm1(step * (high - max(power, 0.0)) / s2)
        slope = -low + min(power, 0.0) * share(low, self.noise, self.rate)
        left = np.exp(first + power * points.ratio[:, :1] - top) / np.expm1(step * np.maximum(slope, 0.0) / s2)
        plain = np.exp(last) / np.expm1(step * high / s2) + np.exp(first) / np.expm1(-step * low / s2)
        # n e^z is a Gaussian centered at 1: its right edge is far out, its left edge farther.
        moved = step / (self.noise * math.sqrt(2 * math.pi)) * np.exp(-((high - 1) ** 2) / (2 * s2))
        sampled = 2 * moved / np.expm1(step * (high - 1) / s2)
        return right + left + (1 + abs(power)) * (plain + self.rate * (sampled + plain))


def _upper(line: Line) -> float:
    return float(line.log[0].real + line.error[0])


def _parts(curve: Curve) -> tuple[Reals, Reals, Reals]:
    return curve.log_m, curve.first, curve.second
