"""Both directions of sampled Gaussian losses at once: E r^(t + 1) (remove) and E r^(-t) (add) are one function of the
power, so that one grid, one table of moments and one survey of a line serve both.

Arrays have 2 m rows: m losses when the record is removed, then the same when it is added.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpcompose.contour import Cumulants, Line, blockwise, remembered
from dpcompose.loss.sampled_gaussian_decay import NearNormal, near_normal, shifted_line
from dpcompose.loss.sampled_gaussian_grid import (
    Grid,
    built,
    coarse_step,
    most_moment,
    most_variance,
)
from dpcompose.numerics import Reals

MOST_POINTS = 60_000
_SHARED = 64
"""With more nodes than that a survey of both directions is no longer cheaper than two."""
_SHORT = 512
"""With longer grids each direction has its own."""
_ALL = slice(None)


class Rows(NamedTuple):
    """Noise, rate and copies of each row, shape (2 m, 1) each."""

    noise: Reals
    rate: Reals
    times: Reals


@dataclass(frozen=True)
class Reach:
    """Where the integrands of all rows live, for orders up to some power less one.

    Args:
        power: The largest power.
        low: Their left ends, shape (2 m, 1).
        high: Their right ends.
        longest: How many steps of the grid for planning the longest takes.
    """

    power: float
    low: Reals
    high: Reals
    longest: float


@dataclass
class Cache:
    """Results for a batch, by the orders, nodes and rows that were asked for.

    It belongs to one question, in which both directions are asked at the same orders; nothing else is mutable here.
    """

    curves: dict[tuple[int | None, bytes], Cumulants | None] = field(default_factory=dict[Any, Any])
    tabulated: dict[float, tuple[tuple[int | None, bytes], int]] = field(
        default_factory=dict[Any, Any]
    )
    coarse_grids: dict[int | None, dict[float, Grid]] = field(default_factory=dict[Any, Any])
    fine_grids: dict[tuple[int | None, float, bytes], Grid] = field(default_factory=dict[Any, Any])
    normal: dict[tuple[float, int | None], NearNormal | None] = field(
        default_factory=dict[Any, Any]
    )
    lines: dict[tuple[float, bytes], Line] = field(default_factory=dict[Any, Any])
    surveys: dict[tuple[float, bytes, bytes], tuple[Line, Reals]] = field(
        default_factory=dict[Any, Any]
    )


@dataclass(frozen=True, eq=False)
class SampledGaussianBatch:
    """Losses in both directions, each so many times.

    Args:
        noise: sigma / sensitivity, shape (m, 1).
        rate: The sampling rates, shape (m, 1).
        times: How many copies of each, shape (m, 1).
        ulps: How many units of roundoff a noise may be off.
        cache: The results of the question that the losses belong to.
    """

    noise: Reals
    rate: Reals
    times: Reals
    ulps: int
    cache: Cache = field(default_factory=Cache)

    @cached_property
    def both(self) -> Rows:
        """Noise, rate and copies of the rows of both directions, shape (2 m, 1) each."""
        return Rows(*(np.concatenate([part, part]) for part in (self.noise, self.rate, self.times)))

    def rows_of(self, *, remove: bool) -> slice:
        """The rows of one direction."""
        count = len(self.noise)
        return slice(0, count) if remove else slice(count, 2 * count)

    @cached_property
    def _side(self) -> Reals:
        """How far the noise reaches by itself, shape (2 m, 1)."""
        return np.sqrt(2 * (39 + np.log(self.both.times))) * self.both.noise

    @cached_property
    def sign(self) -> Reals:
        """1 when the record is removed, -1 when it is added."""
        return np.repeat([1.0, -1.0], len(self.noise))[:, None]

    def powers(self, order: Reals | float) -> Reals:
        """The powers of r that belong to the line through `order`."""
        return np.where(self.sign > 0, order + 1, -order)

    def curve(self, orders: Reals, own: slice) -> Cumulants | None:
        """K of one copy of each row and its derivatives, shape (m, n); None where too many points would be needed."""
        covering = self._covering(float(orders[-1]), own)
        key = covering.start, orders.tobytes()
        if key not in self.cache.curves:
            grid = self._grid(float(orders[-1]), covering)
            self.cache.curves[key] = grid and grid.points.curve(
                self.powers(orders)[covering], sign=self.sign[covering]
            )
            self.cache.tabulated.update(
                (order, (key, at)) for at, order in enumerate(orders.tolist())
            )
        found = self.cache.curves[key]
        return found and found[own if covering is _ALL else _ALL, _ALL]

    def moments(self, order: float, own: slice) -> Cumulants | None:
        """`curve` at one order, shape (m, 1): from a table if it is in one."""
        key, at = self.cache.tabulated.get(order, ((0, b""), 0))
        found = self.cache.curves.get(key)
        if found is None or key[0] not in (_ALL.start, own.start):
            return self.curve(np.array([order]), own)
        return found[own if key[0] is _ALL.start else _ALL, at : at + 1]

    def coarse(self, order: float, own: slice) -> Grid | None:
        """A grid of the own rows for planning, good for every order up to this one; None if it is too long."""
        covering = self._covering(order, own)
        grid = self._grid(order, covering)
        return grid[own] if grid is not None and covering is _ALL else grid

    def _covering(self, order: float, own: slice) -> slice:
        """All rows, or the own ones where the others would need a much longer grid."""
        return _ALL if self.reach(order).longest <= _SHORT else own

    def _grid(self, order: float, rows: slice) -> Grid | None:
        known = self.cache.coarse_grids.setdefault(rows.start, {})
        found = next((known[most] for most in known if order + 1 <= most), None)
        if found is not None:
            return found
        reach, (noise, rate, _) = self.reach(order), self.both
        low, high, step = reach.low[rows], reach.high[rows], self._coarse_step[rows]
        if not float(((high - low) / step).max()) <= MOST_POINTS:
            return None
        known[reach.power] = built(noise[rows], rate[rows], low, high, step, self.ulps)
        return known[reach.power]

    @cached_property
    def _coarse_step(self) -> Reals:
        return coarse_step(self.both.noise)

    @remembered
    def reach(self, order: float) -> Reach:
        """Where n r^p lives: around 0, around 1 (because E y = 0 is used) and around the mode."""
        # A power a little larger than needed, so that neighboring orders share a grid.
        power = 1.25 ** math.ceil(math.log(max(order + 1, 1.0)) / math.log(1.25))
        return self._reach(max(power, self._least))

    @remembered
    def _reach(self, power: float) -> Reach:
        low, high = self._ends(power)
        return Reach(power, low, high, float(((high - low) / self._coarse_step).max()))

    @cached_property
    def _least(self) -> float:
        """A power that adds little to how far the noise reaches by itself."""
        return 0.5 * float(self._side.min())

    def _ends(self, power: float) -> tuple[Reals, Reals]:
        side = self._side[: len(self.noise)]
        # When adding, the mode solves x = -power w(x), whose right side falls: two steps from a bound stay on one side.
        left = -power * fraction(np.zeros_like(self.noise), self.noise, self.rate)
        right = np.zeros_like(left)
        if (left < -0.5 * self.noise).any():
            right = -power * fraction(left, self.noise, self.rate)
            left = np.maximum(left, -power * fraction(right, self.noise, self.rate))
        for _ in range(80):
            wide = (right - left > 0.5 * self.noise) & (right - left > 1e-6 * -left)
            if not wide.any():
                break
            middle = (left + right) / 2
            below = middle > -power * fraction(middle, self.noise, self.rate)
            left, right = np.where(below, left, middle), np.where(below, middle, right)
        return np.concatenate([-side, left - side]), np.concatenate([power + side, 1 + side])

    def survey(
        self, order: float, nodes: Reals, edges: Reals, own: slice, *, together: bool
    ) -> tuple[Line, Reals]:
        """log M to a thousandth at the nodes, of which the first is 0; for each row of `own` a bound on
        log |M(order + iu) / M(order)| from each edge to the next, the last for ever.

        `together`: all rows at once, because the others will be asked for next.
        """
        if not together or len(nodes) > _SHARED or self._covering(order, own) is not _ALL:
            return self._surveyed(order, nodes, edges, own)
        key = order, nodes.tobytes(), edges.tobytes()
        if key not in self.cache.surveys:
            self.cache.surveys[key] = self._surveyed(order, nodes, edges, _ALL)
        line, bounds = self.cache.surveys[key]
        return line[own], bounds[own]

    def _surveyed(self, order: float, nodes: Reals, edges: Reals, own: slice) -> tuple[Line, Reals]:
        one, count = self.moments(order, own), len(nodes)
        if one is None:
            rows = len(self.sign[own])
            return unknown(rows, count), np.zeros((rows, len(edges)))
        powers, (noise, rate, _) = self.powers(order)[own], self.both
        variance = most_variance(one, noise[own], rate[own], powers, self.sign[own])
        depth = min(8 + math.log(float(self.times.max())), 38.0)
        frequencies = np.concatenate([nodes, edges])
        far, envelope = self.shifted(
            order, frequencies, own, spread=np.sqrt(variance), depth=depth, edges=count
        )
        line = Line(far.log[:, :count], far.error[:, :count])
        floor = line.floor
        magnitude = np.exp(np.minimum((far.log.real + far.error)[:, count:] - floor, 0.0))
        return line, np.minimum(blockwise(magnitude, variance, edges), envelope - floor)

    def near_normal(self, order: float, own: slice, *, together: bool) -> NearNormal | None:
        """How fast |M| falls, if that needs no survey; of the rows `own`, or of all if they are asked together."""
        covering = self._covering(order, own) if together else own
        key = order, covering.start
        if key not in self.cache.normal:
            grid, (noise, rate, times) = self.coarse(order, covering), self.both
            powers, side = self.powers(order)[covering], self._side[covering]
            first_rows = own if covering is _ALL else _ALL
            self.cache.normal[key] = grid and near_normal(
                grid,
                noise[covering],
                rate[covering],
                powers,
                side=side,
                times=times[covering],
                first_rows=first_rows,
            )
        found = self.cache.normal[key]
        return found and (found[own] if covering is _ALL else found)

    def shifted(
        self,
        order: float,
        frequencies: Reals,
        own: slice,
        *,
        spread: Reals | None = None,
        depth: float = 38.0,
        edges: int = 0,
    ) -> tuple[Line, Reals]:
        """`shifted_line` of the rows `own`; what lies beyond its ends is below e^-depth, as is what its step leaves."""
        grid, one, sign = self.coarse(order, own), self.moments(order, own), self.sign[own]
        if grid is None or one is None:
            count = len(frequencies)
            return unknown(len(sign), count), np.zeros((len(sign), count - edges))
        powers, (noise, rate, _), reach = self.powers(order)[own], self.both, self.reach(order)
        top_moment = most_moment(grid, one.log_m, noise[own], powers)
        low, high = reach.low[own], reach.high[own]
        if spread is not None:  # a survey may leave out more
            spare = np.maximum(self._side[own] - math.sqrt(2 * (depth + 3)) * noise[own], 0.0)
            low, high = low + spare, high - spare
        return shifted_line(
            noise[own],
            rate[own],
            sign,
            powers,
            frequencies,
            ends=(low, high),
            top_moment=top_moment,
            spread=spread,
            depth=depth,
            edges=edges,
        )


def fraction(x: Reals, noise: Reals, rate: Reals) -> Reals:
    """w(x) = q e^z / r, the weight of the sampled part."""
    z = (2 * x - 1) / (2 * noise**2) + np.log(rate / (1 - rate))
    return 1 / (1 + np.exp(np.minimum(-z, 700.0)))


def unknown(rows: int, count: int) -> Line:
    """No statement."""
    return Line(np.zeros((rows, count), dtype=np.complex128), np.full((rows, count), np.inf))
