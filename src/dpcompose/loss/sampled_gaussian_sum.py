"""The sum of many losses of Gaussian noise on Poisson samples, any of them many times, as a transform.

The lines of sampled Gaussian losses, row by row, as integrals over the noise.

With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and x ~ N(0, s^2) each has E r^(t + 1) (remove) or E r^(-t) (add): a
trapezoid sum over x whose error decays like e^(-2 pi d / step) in the half-width d of a strip where |r^p| is bounded.
With theta = d / s^2 < pi and w = q e^z / r,
  r(x + i d) = r(x) (1 - w + w e^(i theta)),   r cos(theta / 2) <= |r(x + i d)| <= r,   0 <= arg r(x + i d) <= theta.

Both directions are one function of the power, so that one grid and one table of moments serve both. Where a line is
short its sums run on the real line, over the grid for planning; elsewhere on a raised one (`sampled_gaussian_nodes`).

Reference: [TrefethenWeideman2014, Theorem 5.1], [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from dpcompose.contour import Cumulants, Line, Transform, blockwise, careful_nodes, joined
from dpcompose.loss.sampled_gaussian_grid import Grid, built, sampled_weight, shortened
from dpcompose.loss.sampled_gaussian_nodes import line_at, outside, raised
from dpcompose.loss.sampled_gaussian_plan import Integrands, Parts, raised_lines
from dpcompose.numerics import Reals, U, row_tops

_ANGLES, _LARGE = np.array([0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5]), 100.0
"""Half-widths of strips, over s^2, where the noise is at most `_LARGE`; beyond it they are of so many s."""
_LOWER = (1.0, 0.5, 0.2, 0.07)
"""Shares of the largest height at which raised lines are tried."""
_STEEP = 3.0
"""log of how much larger the moduli on a raised line may be than on the real one."""
_MOST_POINTS, _MOST_RAISED, _SHARED = 60_000, 1 << 27, 512
"""With longer grids than the last each direction has its own."""
_FIRST, _OTHERS = np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])
_DEPTH = 35.0
"""-log of what the step of all copies leaves out."""
_MOST_TERMS, _NEAR_TERMS, _NEAREST_TERMS, _FEWEST = 1 << 18, 1 << 16, 1 << 13, 8
"""How many terms a real line of several copies may have, and about how many stand before a raised line; as many terms as
that one of few copies may have, and about how many stand before a raised one; and so few nodes are not worth them."""
_MANY, _FEW_POINTS, _SHORT = 1e8, 600, 128
"""Above so many copies an error of first order in the losses of one is too much, on the real line too; up to so many
points it is used; up to so many the grid for planning is that of the line."""
Result = TypeVar("Result", Reals, Line, Cumulants)


@dataclass(frozen=True, eq=False)
class Reach:
    """Where the integrands of all rows live for powers up to a largest, and the step and points of their grids."""

    power: float
    low: Reals
    high: Reals
    step: Reals
    points: float


@dataclass(frozen=True, eq=False)
class Rows:
    """Losses, each so many times, in one direction or in both, and what was asked of them.

    Args:
        parts: The losses, those of a direction in a composition.
        sign: 1 when the record is removed, -1 when it is added, shape (m, 1).
        both: The rows of both directions, whose arrays serve these too where they are short.
        own: Which of them these are.
    """

    parts: Parts
    sign: Reals
    both: Rows | None
    own: slice
    reaches: dict[float, Reach] = field(default_factory=dict[Any, Any])
    grids: dict[float, Grid | None] = field(default_factory=dict[Any, Any])
    results: dict[Any, Any] = field(default_factory=dict[Any, Any])

    def _once(self, holder: Rows, key: tuple[Any, ...], find: Callable[[], Result]) -> Result:
        """These rows of the result for a key, which `holder` (these rows, or those of both directions) computes once; a
        value that overflows proves nothing."""
        if key not in holder.results:
            with np.errstate(all="ignore"):
                holder.results[key] = find()
        return holder.results[key] if holder is self else holder.results[key][self.own]

    @cached_property
    def least(self) -> float:
        """A power that adds little to how far the noise reaches by itself."""
        return 0.5 * float(self.parts.side.min())

    def powers(self, orders: Reals | float) -> Reals:
        """The powers of r that belong to the lines through these orders."""
        return np.where(self.sign > 0, orders + 1, -orders)

    def shared(self, order: float) -> Rows | None:
        """The rows of both directions as one object, if their common grid is short."""
        short = self.both is not None and self.both.reach(order).points <= _SHARED
        return self.both if short else None

    def curve(self, orders: Reals) -> Cumulants:
        """K of one copy of each row and its derivatives, shape (m, n); infinite where it would take too many points."""
        most = float(orders[-1])
        holder = self.shared(most) or self

        def find() -> Cumulants:
            grid = holder.grid(most)
            if grid is None:
                return Cumulants(*np.full((3, len(holder.sign), len(orders)), np.inf))
            return grid.points.curve(holder.powers(orders), sign=holder.sign)

        return self._once(holder, ("curve", orders.tobytes()), find)

    def reach(self, order: float) -> Reach:
        """The extent of a grid for planning that serves every order up to this one, and up to at most twice as much."""
        power = max(2.0 ** math.ceil(math.log2(max(order + 1, 1.0))), self.least)
        if power not in self.reaches:
            (low, high), step = self._ends(power, self.parts.side), self._step(power)
            points = float(((high - low) / step).max())
            self.reaches[power] = Reach(power, low, high, step, points)
        return self.reaches[power]

    def grid(self, order: float) -> Grid | None:
        """A grid for planning, good for every order up to this one; None if it is too long."""
        shared = self.shared(order)
        reach = (shared or self).reach(order)
        if reach.power not in self.grids and reach.points <= _MOST_POINTS:
            if shared is not None:
                grid = shared.grid(order)
                self.grids[reach.power] = grid and grid[self.own]
            else:
                ends = reach.low, reach.high, reach.step
                noise, rate, ulps = self.parts.noise, self.parts.rate, self.parts.ulps
                self.grids[reach.power] = built(noise, rate, *ends, ulps)
        return self.grids.get(reach.power)

    def integrands(self, order: float) -> Integrands | None:
        """The integrands at an order, on the grid for planning."""
        key = "integrands", order
        if key not in self.results:
            grid = self.grid(order)
            self.results[key] = grid and Integrands(self.parts, grid, self.powers(order))
        return self.results[key]

    def envelope(
        self, order: float, edges: Reals, *, finest: bool = False, together: bool = False
    ) -> Reals:
        """For each row and each edge a bound on log |M(order + iu) / M(order)| up to the next one, for the last for ever,
        shape (m, n); `together` states whether the other direction will need the same."""
        holder = (together and self.shared(order)) or self

        def find() -> Reals:
            integrands = holder.integrands(order)
            if integrands is None or not np.isfinite(integrands.log_factor).all():
                return np.zeros((len(holder.sign), len(edges)))
            bounds = integrands.log_envelopes(edges, finest=finest)
            if finest:
                line = holder.line(order, np.concatenate([[0.0], edges]))
                magnitude = np.exp(
                    np.minimum((line.log.real + line.error)[:, 1:] - line.floor, 0.0)
                )
                bounds = np.minimum(bounds, blockwise(magnitude, integrands.variance, edges))
            return bounds

        return self._once(holder, ("envelope", order, edges.tobytes(), finest), find)

    def line(self, order: float, frequencies: Reals, *, together: bool = False) -> Line:
        """log M of one copy of each row, shape (m, n); `together` states whether the other direction will need the same."""
        holder = (together and self.shared(order)) or self
        key = "line", order, frequencies.tobytes()
        return self._once(holder, key, lambda: holder._line(order, frequencies))

    def _line(self, order: float, frequencies: Reals) -> Line:
        integrands = self.integrands(order)
        if integrands is None or not np.isfinite(integrands.log_moment).all():
            return self._unknown(len(frequencies))
        log_m = integrands.log_moment
        depth = _DEPTH + np.log(self.parts.times) - np.maximum(log_m, -600.0)
        norm, rate = self._strips(integrands, log_m, float(frequencies[-1]))
        grid = integrands.grid
        log_error = (norm - rate / grid.step).min(axis=1, keepdims=True)
        many = float(self.parts.times.max()) > _MANY
        if (log_error > -depth).any() or grid.x.shape[1] > _SHORT:
            step = shortened((rate / (depth + norm)).max(axis=1, keepdims=True))
            points = float(((grid.high - grid.low) / step).max())
            count, several = len(frequencies), float(self.parts.times.max()) > 1000
            most = min((_MOST_TERMS if several else _NEAR_TERMS) / count, _MOST_POINTS)
            if not points <= (_MOST_POINTS if many else max(most, _FEW_POINTS)):
                # On the real line rounding errors are smaller, and points as many as the largest frequency asks for:
                # without it 74 of the 1,344 cells of the survey are wider by half or more.
                terms = _NEAR_TERMS if several else _NEAREST_TERMS
                cut = min(int(math.sqrt(terms * count / points)), count // 2)
                cut = cut if cut >= _FEWEST else 0
                far = self._raised(order, frequencies, integrands, depth, cut)
                return joined(self._line(order, frequencies[:cut]), far) if cut else far
            noise, ratio, ulps = self.parts.noise, self.parts.rate, self.parts.ulps
            grid = built(noise, ratio, grid.low, grid.high, step, ulps)
            log_error = (norm - rate / grid.step).min(axis=1, keepdims=True)
        power, points = integrands.power, grid.points
        top = np.maximum(row_tops(points.log_weight + power * points.ratio), 0.0)
        powers = power * _FIRST + _OTHERS
        beyond = outside(self.parts, grid, 0.0, powers, top * _FIRST)
        # |n y| is at most n r + n.
        plain = (1 + np.abs(power) + frequencies) * (beyond[:, 1:2] + beyond[:, 2:])
        return points.line(
            power,
            frequencies,
            sign=self.sign,
            omitted=2.8 * np.exp(log_error - top) + beyond[:, :1] + plain,
            careful=careful_nodes(float(self.parts.times.max())),
            plain=not many,
        )

    def _strips(self, integrands: Integrands, log_m: Reals, reach: float) -> tuple[Reals, Reals]:
        """For each row and each strip around the real line log of a bound on the integral of the integrand along its
        edge, and its half-width times 2 pi, shape (m, 9)."""
        noise, power = self.parts.noise, integrands.power
        negative = np.maximum(-power, 0.0)
        scale = np.minimum(1.0, _LARGE / noise)
        # The last is best where adding makes the integrand narrow.
        narrow = np.sqrt(2 * _DEPTH / (np.square(noise) + negative / 4))
        angles = np.concatenate([_ANGLES * scale, np.minimum(narrow, _ANGLES[-1] * scale)], axis=1)
        cosines = np.log(np.cos(angles / 2))
        plain = np.log1p(2 * self.parts.rate * (np.abs(power) + reach))
        grown = np.logaddexp(log_m - negative * cosines + reach * angles, plain)
        return np.square(angles * noise) / 2 + grown, 2 * math.pi * angles * np.square(noise)

    def _raised(
        self,
        order: float,
        frequencies: Reals,
        integrands: Integrands,
        depth: Reals,
        first: int,
    ) -> Line:
        """log M at the frequencies from an index on, by sums over a raised line whose points serve all of them."""
        noise = self.parts.noise
        lines, least = raised_lines(integrands, shares=_LOWER), np.minimum(integrands.power, 0.0)
        rise = np.square(lines.theta * noise) / 2 + least * np.log(np.cos(lines.theta / 2))
        steep = (rise > _STEEP) & (lines.theta > lines.theta[:, -1:])
        line, step = lines.best(noise, np.where(steep, np.inf, depth))
        low, high = self._ends(
            order + 1,
            np.sqrt(2 * (39 + np.log(self.parts.times)) + np.square(line.theta * noise)) * noise,
        )
        points = float(((high - low) / step).max())
        if not (points <= _MOST_POINTS and points * len(frequencies) <= _MOST_RAISED):
            return self._unknown(len(frequencies) - first)
        count = 16 * math.ceil((points + 3) / 16)
        grid = raised(self.parts, low, high, line.theta, count)
        log_error = line.log_error(noise, grid.step)
        return line_at(self.parts, grid, frequencies, integrands.power, log_error, first=first)

    def _unknown(self, count: int) -> Line:
        """A line that says nothing: infinite errors."""
        shape = len(self.sign), count
        return Line(np.zeros(shape, dtype=np.complex128), np.full(shape, np.inf))

    def _step(self, power: float) -> Reals:
        """Of the grid for planning for powers from -power to power: its sums err by e^-16 / times in a strip around the
        real line, or where that takes too many points, by a thousandth."""
        noise, depth = self.parts.noise, 17 + np.log(self.parts.times)
        square = noise * noise
        # In a strip of half-width y s^2 the integrand grows by y^2 (s^2 + power / 4) / 2 when adding.
        curved = np.where(self.sign > 0, square, square + power / 4)
        width = np.minimum(1.2, np.sqrt(2 * depth / curved))
        fine = 2 * math.pi * square * width / (depth + width * width * curved / 2)
        step = np.minimum(0.4 * noise, fine)
        return shortened(np.where(step > 2e-4, step, np.minimum(0.4, 2 * noise) * noise))

    def _ends(self, power: float, side: Reals) -> tuple[Reals, Reals]:
        """Where n r^p lives for powers from -power to power: around 0, around 1 (because E y = 0 is used) and around
        the mode.

        When adding, the mode solves x = -power w(x), whose right side falls: two steps from a bound stay on one side.
        """
        noise, rate = self.parts.noise, self.parts.rate

        def moved(x: Reals) -> Reals:
            return -power * sampled_weight(x, noise, rate)

        left, right = moved(np.zeros_like(noise)), np.zeros_like(noise)
        if (left < -0.5 * noise).any():
            right = moved(left)
            left = np.maximum(left, moved(right))
        for _ in range(80):
            wide = (right - left > 0.5 * noise) & (right - left > 1e-6 * -left)
            if not wide.any():
                break
            middle = (left + right) / 2
            below = middle > moved(middle)
            left, right = np.where(below, left, middle), np.where(below, middle, right)
        remove = self.sign > 0
        return np.where(remove, -side, left - side), np.where(remove, power + side, 1 + side)


@dataclass(frozen=True, eq=False)
class SampledGaussianBatch:
    """Losses in both directions, each so many times.

    Args:
        parts: The losses, of one composition.
    """

    parts: Parts

    @cached_property
    def both(self) -> Rows:
        """The rows of both directions: first with the record removed, then with it added."""
        columns = (self.parts.noise, self.parts.rate, self.parts.times)
        noise, rate, times = (np.concatenate([each, each]) for each in columns)
        twice = Parts(noise, rate, times, self.parts.count, self.parts.ulps)
        sign = np.repeat([1.0, -1.0], len(columns[0]))[:, None]
        return Rows(twice, sign, None, slice(None))

    def rows(self, *, remove: bool) -> Rows:
        """The rows of one direction."""
        count = len(self.parts.noise)
        own = slice(0, count) if remove else slice(count, 2 * count)
        return Rows(self.parts, self.both.sign[own], self.both, own)


@dataclass(frozen=True, eq=False)
class SampledGaussianSum(Transform):
    """The sum of the losses of one direction, each so many times.

    Args:
        batch: All losses, in both directions.
        remove: Whether the losses are those of (with the record, without it).
    """

    batch: SampledGaussianBatch
    remove: bool

    tabulates = True

    @cached_property
    def _rows(self) -> Rows:
        return self.batch.rows(remove=self.remove)

    @property
    def _parts(self) -> Parts:
        return self.batch.parts

    @property
    def reverse(self) -> SampledGaussianSum:
        return self._reverse

    @cached_property
    def _reverse(self) -> SampledGaussianSum:
        return SampledGaussianSum(self.batch, not self.remove)

    @property
    def maximum(self) -> float:
        return math.inf if self.remove else self._edge

    @property
    def minimum(self) -> float:
        return -self._edge if self.remove else -math.inf

    @cached_property
    def _edge(self) -> float:
        """The sum of -log(1 - rate) over all copies, rounded up: the largest loss when a record is added."""
        return math.fsum((-np.log1p(-self._parts.rate) * self._parts.times).ravel()) * (1 + 16 * U)

    @property
    def scale(self) -> float:
        """K(1) when removing, and nearly that when adding: where to look first for an order."""
        rise = np.expm1(np.maximum(self._parts.noise, 0.05) ** -2)
        return float((self._parts.times * np.log1p(self._parts.rate**2 * rise)).sum())

    @property
    def copies(self) -> float:
        return float(self._parts.times.sum())

    @property
    def blow_up(self) -> float:
        """Where q^(t + 1) e^(t (t + 1) / (2 s^2)), what a sampled record adds to M, grows past 1."""
        ends = 2 * self._parts.noise**2 * -np.log(self._parts.rate)
        return float(ends.min()) + 1 if self.remove else math.inf

    def cumulants(self, order: float) -> tuple[float, float, float]:
        one = self.curve(np.array([order]))
        return float(one.log_m[0]), float(one.first[0]), float(one.second[0])

    def curve(self, orders: Reals) -> Cumulants:
        one = self._rows.curve(orders)
        return Cumulants(*(self._added(part) for part in (one.log_m, one.first, one.second)))

    @np.errstate(all="ignore")
    def moment_bound(self, order: float) -> float:
        """An upper bound on K: from the grid for planning, or where that is loose from a line."""
        integrands = self._rows.integrands(order)
        if integrands is not None and self._added(integrands.log_factor)[0] < 0.05:
            log = integrands.log_moment
            return float(self._added(log)[0] + U * (8 + len(log)) * self._added(np.abs(log))[0])
        line = self.line(order, np.zeros(1))
        return float(line.log[0].real + line.error[0])

    def line(self, order: float, frequencies: Reals, *, together: bool = False) -> Line:
        rows = self._rows.line(order, frequencies, together=together)
        size, error = self._added(np.abs(rows.log)), self._added(rows.error)
        return Line(self._added(rows.log), error + (4 + len(rows.log)) * U * size)

    def line_with_reverse(self, order: float, frequencies: Reals) -> Line:
        return self.line(order, frequencies, together=True)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self._added(self._rows.envelope(order, edges))

    def envelope_with_reverse(self, order: float, edges: Reals) -> Reals:
        return self._added(self._rows.envelope(order, edges, together=True))

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        return self._added(self._rows.envelope(order, edges, finest=True))

    def _added(self, rows: Any) -> Any:
        """The sum over the rows, each times its number of copies, shape (n,)."""
        return np.vecdot(self._parts.times.T, rows.T)
