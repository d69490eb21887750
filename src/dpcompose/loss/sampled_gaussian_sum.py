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
from dpcompose.loss.sampled_gaussian_shifted import shifted_envelope, shifted_line
from dpcompose.numerics.elementary import Reals, U
from dpcompose.numerics.tilted import careful_nodes, joined
from dpcompose.numerics.transform import Curve, Lattice, Line, blockwise

_ANGLES = np.array([0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5])
_LOG_COSINES = np.log(np.cos(_ANGLES / 2))
_REAL_LINE_POINTS, _MOST_POINTS = 600, 60_000
# Below this order whole orders are near and their sums short.
_WHOLE = 200.0


@dataclass(frozen=True, eq=False)
class SampledGaussianSum:
    """Rows of losses, each so many times.

    Args:
        noise: sigma / sensitivity, shape (m, 1).
        rate: The sampling rates, shape (m, 1).
        times: How many copies of each, shape (m, 1).
        remove: Whether the losses are those of (with the record, without it).
        ulps: How many units of roundoff a noise may be off.
    """

    noise: Reals
    rate: Reals
    times: Reals
    remove: bool
    ulps: int = 0
    lattice: Lattice | None = None

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
    def _many(self) -> bool:
        """Whether an error of first order in one copy's losses is too much for all of them."""
        return float(self.times.max()) > 1e8

    @property
    def _sign(self) -> float:
        return 1.0 if self.remove else -1.0

    def _power(self, order: float) -> float:
        return order + 1 if self.remove else -order

    @property
    def scale(self) -> float:
        """K(1) when removing, and nearly that when adding: where to look first for an order."""
        with np.errstate(over="ignore"):
            return float((self.times * np.log1p(self.rate**2 * np.expm1(self.noise**-2.0))).sum())

    @property
    def copies(self) -> float:
        """How many summands there are."""
        return float(self.times.sum())

    @property
    def explosion(self) -> float:
        """Where q^(t + 1) e^(t (t + 1) / (2 s^2)), what a sampled record adds to M, grows past 1."""
        return float((2 * self.noise**2 * -np.log(self.rate)).min()) + 1 if self.remove else math.inf

    def cumulants(self, order: float) -> tuple[float, float, float]:
        one = self._moments(self._power(order))
        if one is None:
            return math.inf, math.inf, math.inf
        log_m, first, second = (float((self.times * part).sum()) for part in (one.log_m, one.first, one.second))
        return log_m, first, second

    def curve(self, orders: Reals) -> Curve:
        """K and its derivatives at many orders, over one grid."""
        grid = self._coarse(self._power(float(orders.max())))
        if grid is None:
            return Curve(*np.full((3, len(orders)), np.inf))
        one = grid.points.curve(orders + 1 if self.remove else -orders, sign=self._sign)
        return Curve(*((self.times * part).sum(axis=0) for part in (one.log_m, one.first, one.second)))

    def _moments(self, power: float) -> Curve | None:
        """K of one copy of each row and its derivatives, shape (m, 1) each."""
        if power not in self._known:
            grid = self._coarse(power)
            self._known[power] = grid and grid.points.curve(np.array([power]), sign=self._sign)
        return self._known[power]

    @cached_property
    def _known(self) -> dict[float, Curve | None]:
        return {}

    def moment_bound(self, order: float) -> float:
        """An upper bound on K: between whole orders where that is close, from the coarse grid, or from a line."""
        power = self._power(order)
        if self.remove and order < _WHOLE:
            whole = self._between_whole_orders(order)
            if whole < self.cumulants(order)[0] + 2:
                return whole
        grid = self._coarse(power)
        if grid is not None:
            _, norm, width = self._strips(grid, power, 0.0)
            doubt = 2.8 * np.exp((norm - 2 * math.pi * width / grid.step).min(axis=-1))[:, None]
            line = self._on_grid(grid, power, np.zeros(1), doubt)
            if float((self.times * line.error).sum()) < 0.05:
                return _upper(self._total(line))
        return _upper(self.line(order, np.zeros(1)))

    def _between_whole_orders(self, order: float) -> float:
        """K is convex: between whole orders n it is at most what the line through their values is.

        E r^(n + 1) - 1 is the sum over j of the binomial weights times e^(j (j - 1) / (2 s^2)) - 1, all positive.
        """
        below = math.floor(order)
        logs: list[Reals] = []
        for power in (below + 1, below + 2):
            j = np.arange(2.0, power + 1)
            weight = special.gammaln(power + 1) - special.gammaln(j + 1) - special.gammaln(power - j + 1)
            log_term = weight + j * np.log(self.rate) + (power - j) * np.log1p(-self.rate)
            rise = j * (j - 1) / (2 * self.noise**2) * (1 + 8 * (1 + self.ulps) * U)
            # e^x - 1 = e^x (1 - e^-x): nothing overflows in between.
            excess = np.exp(np.minimum(log_term + rise, 700.0)) * -np.expm1(-rise)
            parts = special.gammaln(power + 1) - power * (np.log(self.rate) + np.log1p(-self.rate))
            total = excess.sum(axis=-1)[:, None] * (1 + U * (power + 64 + 64 * parts))
            logs.append(
                np.log1p(total) if float((log_term + rise).max(initial=0)) < 700 else np.full_like(total, np.inf)
            )
        share = order - below
        rows = (1 - share) * logs[0] + share * logs[1]
        return float((self.times * rows).sum()) * (1 + U * (32 + len(rows)))

    def line(self, order: float, frequencies: Reals) -> Line:
        return self._total(self._rows(self._power(order), frequencies))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return (self.times * self._blocks(self._power(order), np.zeros(1), edges)[0]).sum(axis=0)

    def survey(self, order: float, nodes: Reals, edges: Reals) -> tuple[Line, Reals]:
        """The line to a few percent of 1 and the envelope, for hardly more than the envelope; the first node is 0."""
        rows, line = self._blocks(self._power(order), nodes, edges)
        return self._total(line), (self.times * rows).sum(axis=0)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        """`log_envelope` with the best of several shifts: where one was not enough."""
        power = self._power(order)
        rows, line = self._blocks(power, np.zeros(1), edges)
        beyond = shifted_envelope(self.noise, self.rate, power, edges, _floor(line), self._range(power))
        return (self.times * np.minimum(rows, beyond)).sum(axis=0)

    def _blocks(self, power: float, nodes: Reals, edges: Reals) -> tuple[Reals, Line]:
        """For each row a bound on log |phi| from each edge to the next, the last for ever; and log M at the nodes."""
        one = self._moments(power)
        if one is None:
            return np.zeros((len(self.noise), len(edges))), _unknown(len(self.noise), len(nodes))
        variance, count = one.second * 1.01, len(nodes)
        # A few percent of 1 in K are enough here.
        depth = min(5 + math.log(float(self.times.max())), 38.0)
        far, envelope = self._shifted(power, np.concatenate([nodes, edges]), np.sqrt(variance), depth)
        line = Line(far.log[:, :count], far.error[:, :count])
        magnitude = np.exp(np.minimum((far.log.real + far.error)[:, count:] - _floor(line), 0.0))
        return np.minimum(blockwise(magnitude, variance, edges), envelope[:, count:] - _floor(line)), line

    def _total(self, rows: Line) -> Line:
        size = (self.times * np.abs(rows.log)).sum(axis=0)
        error = (self.times * rows.error).sum(axis=0)
        return Line((self.times * rows.log).sum(axis=0), error + (4 + len(self.noise)) * U * size)

    def _rows(self, power: float, frequencies: Reals) -> Line:
        """log M of one copy of each row, shape (m, n)."""
        low, high = self._range(power)
        reach = float(frequencies[-1]) if len(frequencies) else 0.0
        step, doubt = self._step(power, reach)
        cut, span = len(frequencies), high - low
        most = np.where(self.times <= 1000, _REAL_LINE_POINTS, 10 * _REAL_LINE_POINTS)
        long = span > most * step
        if reach > 0 and long.any():
            nearby = float((0.1 * self.noise**2 * most / span)[long].min())
            cut = int(np.searchsorted(frequencies, nearby, side="right"))
            step, doubt = self._step(power, nearby)
        if not float((span / step).max()) <= _MOST_POINTS:
            return _unknown(len(self.noise), len(frequencies))
        one = self._on_grid(self._fine(power, low, high, step), power, frequencies[:cut], doubt)
        return one if cut == len(frequencies) else joined(one, self._shifted(power, frequencies[cut:])[0])

    def _on_grid(self, grid: Grid, power: float, frequencies: Reals, doubt: Reals) -> Line:
        """The trapezoid sum; `doubt` bounds what its step leaves out, shape (m, 1)."""
        outside = doubt + self._outside(grid, power) * (1 + frequencies)
        careful = careful_nodes(float(self.times.max()))
        return grid.points.line(
            power, frequencies, sign=self._sign, outside=outside, careful=careful, plain=not self._many
        )

    def _shifted(
        self, power: float, frequencies: Reals, spread: Reals | None = None, depth: float = 38.0
    ) -> tuple[Line, Reals]:
        grid = self._coarse(power)
        if grid is None:
            return _unknown(len(self.noise), len(frequencies)), np.zeros((len(self.noise), len(frequencies)))
        low, high = self._range(power)
        top = _log_sum(grid.points.log_weight + power * grid.points.ratio) + 0.01
        return shifted_line(self.noise, self.rate, self.remove, power, frequencies, (low, high), top, spread, depth)

    # ------------------------------------------------------------------------------------------------------- the grid

    @cached_property
    def _grids(self) -> dict[tuple[float, bytes], Grid | None]:
        return {}

    def _coarse(self, power: float) -> Grid | None:
        """A grid for planning, for every power of that sign up to the next power of four; None if it is too long."""
        power = math.copysign(4.0 ** math.ceil(math.log2(max(abs(power), 16.0)) / 2), power)
        if (power, b"") not in self._grids:
            low, high = self._range(power)
            step = shortened(np.minimum(0.4, 2.0 * self.noise) * self.noise)
            fits = float(((high - low) / step).max()) <= _MOST_POINTS
            self._grids[power, b""] = built(self.noise, self.rate, low, high, step, self.ulps) if fits else None
        return self._grids[power, b""]

    def _fine(self, power: float, low: Reals, high: Reals, step: Reals) -> Grid:
        key = (math.copysign(_bucket(power), power), step.tobytes())
        found = self._grids.get(key)
        if found is None:
            found = self._grids[key] = built(self.noise, self.rate, low, high, step, self.ulps)
        return found

    def _range(self, power: float) -> tuple[Reals, Reals]:
        """Where n r^p lives: around 0, around 1 (because E y = 0 is used) and around the mode; (m, 1) each."""
        # A little farther than needed, so that neighboring orders share a grid.
        power = math.copysign(_bucket(power), power)
        if power not in self._ranges:
            self._ranges[power] = self._found_range(power)
        return self._ranges[power]

    @cached_property
    def _ranges(self) -> dict[float, tuple[Reals, Reals]]:
        return {}

    def _found_range(self, power: float) -> tuple[Reals, Reals]:
        side = np.sqrt(2 * (39 + np.log(self.times))) * self.noise
        if power > 0:
            return -side, power + side
        # The mode solves x = power w(x), whose right side falls: so two steps from a bound on one side stay there.
        left = power * self._share(np.zeros_like(self.noise))
        right = power * self._share(left)
        left = np.maximum(left, power * self._share(right))
        for _ in range(80):
            wide = (right - left > 0.5 * self.noise) & (right - left > 1e-6 * -left)
            if not wide.any():
                break
            middle = (left + right) / 2
            below = middle > power * self._share(middle)
            left, right = np.where(below, left, middle), np.where(below, middle, right)
        return left - side, 1 + side

    def _share(self, x: Reals) -> Reals:
        """w(x) = q e^z / r, the weight of the sampled part."""
        z = (2 * x - 1) / (2 * self.noise**2) + np.log(self.rate / (1 - self.rate))
        return 1 / (1 + np.exp(np.minimum(-z, 700.0)))

    def _step(self, power: float, reach: float) -> tuple[Reals, Reals]:
        """The largest step whose strip bound is below e^-35 / times relative to M, and that absolute error, (m, 1)."""
        grid = self._coarse(power)
        if grid is None:
            return np.full(self.noise.shape, 1e-300), np.full(self.noise.shape, np.inf)
        log_m, norm, width = self._strips(grid, power, reach)
        wanted = 35 + np.log(self.times) - np.maximum(np.minimum(log_m, 0.0), -600.0)
        steps = 2 * math.pi * width / (wanted + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        # The next power of 2^(1/4) below, so that neighboring orders share a grid.
        step = shortened(np.exp2(np.floor(4 * np.log2(steps[best][:, None])) / 4))
        lost = norm[best][:, None] - 2 * math.pi * width[best][:, None] / step
        return step, 2.8 * np.exp(lost)

    def _strips(self, grid: Grid, power: float, reach: float) -> tuple[Reals, Reals, Reals]:
        """log M; for each angle, log of a bound on the integral of n |r^p| on the strip's edges, and half its width."""
        s = self.noise
        exponent = grid.points.log_weight + power * grid.points.ratio
        log_m = _log_sum(exponent)
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
        share = -np.expm1(-np.maximum(grid.points.ratio - np.log1p(-self.rate), 0.0))
        share = np.concatenate([share[:, 1:], np.ones_like(s2)], axis=1)
        # A cell's mass is at most its left value times e^(step |d log / dx|): that factor costs a few more nodes.
        # The last cell stands for all that is to its right; what is left of the first is below a third of it.
        lifted = exponent + grid.step * (np.abs(grid.x) + abs(power) + grid.step) / s2
        total = np.empty((len(s2), len(_ANGLES)))
        for at, theta in enumerate(_ANGLES):
            angle = np.arctan2(share * math.sin(theta), 1 - share * (1 - math.cos(theta)))
            total[:, at : at + 1] = _log_sum(lifted + reach * angle)
        return total

    def _outside(self, grid: Grid, power: float) -> Reals:
        """A bound on n r^p, n and |p| n y beyond the grid, per |p|, in units of the largest term if that is above 1."""
        points, s2, step, low, high = grid.points, self.noise**2, grid.step, grid.low, grid.high
        first, last = points.log_weight[:, :1], points.log_weight[:, -1:]
        top = np.maximum((points.log_weight + power * points.ratio).max(axis=-1)[:, None], 0.0)
        right = np.exp(last + power * points.ratio[:, -1:] - top) / np.expm1(step * (high - max(power, 0.0)) / s2)
        slope = -low + min(power, 0.0) * self._share(low)
        left = np.exp(first + power * points.ratio[:, :1] - top) / np.expm1(step * np.maximum(slope, 0.0) / s2)
        plain = np.exp(last) / np.expm1(step * high / s2) + np.exp(first) / np.expm1(-step * low / s2)
        # n e^z is a Gaussian centered at 1: its right edge is far out, its left edge farther.
        moved = step / (self.noise * math.sqrt(2 * math.pi)) * np.exp(-((high - 1) ** 2) / (2 * s2))
        sampled = 2 * moved / np.expm1(step * (high - 1) / s2)
        return right + left + (1 + abs(power)) * (plain + self.rate * (sampled + plain))


def _bucket(power: float) -> float:
    return 1.25 ** math.ceil(math.log(max(abs(power), 1.0)) / math.log(1.25))


def _log_sum(exponents: Reals) -> Reals:
    """log of the sum of e^exponents in each row, shape (m, 1)."""
    top = exponents.max(axis=-1)[:, None]
    return top + np.log(np.exp(exponents - top).sum(axis=-1)[:, None])


def _floor(rows: Line) -> Reals:
    """A lower bound on log M at the real order, from the first node, shape (m, 1)."""
    return (rows.log.real - rows.error)[:, :1]


def _upper(line: Line) -> float:
    return float(line.log[0].real + line.error[0])


def _unknown(rows: int, count: int) -> Line:
    return Line(np.zeros((rows, count), dtype=np.complex128), np.full((rows, count), np.inf))
