"""Both directions of sampled Gaussian losses at once: E r^(t + 1) (remove) and E r^(-t) (add) are one function of the
power, so that one grid, one table of moments and one survey of a line serve both.

Arrays have 2 m rows: m losses when the record is removed, then the same when it is added.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpcompose.contour import Cumulants, Line
from dpcompose.loss.sampled_gaussian_grid import Grid, built, sampled_weight, shortened
from dpcompose.loss.sampled_gaussian_nodes import (
    RaisedGrid,
    Waves,
    blocks_of,
    nodes,
    raised,
    waves_at,
)
from dpcompose.loss.sampled_gaussian_plan import Integrands, Parts, class_of, heights
from dpcompose.numerics import Complexes, Reals

MOST_POINTS = 60_000
_ALIKE = 5.0
"""Up to this distance of their log M both directions share a raised grid."""
_DEPTH = 38.0
"""-log of what the step of a raised grid leaves out of all copies."""
_ENTRIES = 1 << 21
"""Values of waves that are held at once."""
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
        step: The distance of the points of the grid for planning.
        longest: How many steps of the grid for planning the longest takes.
    """

    power: float
    low: Reals
    high: Reals
    step: Reals
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
    reaches: dict[float, Reach] = field(default_factory=dict[Any, Any])
    reaches_of_powers: dict[float, Reach] = field(default_factory=dict[Any, Any])
    integrands: dict[tuple[float, int | None], Integrands | None] = field(
        default_factory=dict[Any, Any]
    )
    envelopes: dict[Any, Reals] = field(default_factory=dict[Any, Any])
    raised: dict[Any, _Raised | None] = field(default_factory=dict[Any, Any])
    lines: dict[tuple[float, bytes], Line] = field(default_factory=dict[Any, Any])


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

    @cached_property
    def parts(self) -> Parts:
        """The losses of either direction."""
        return Parts(self.noise, self.rate, self.times, count=len(self.noise), ulps=self.ulps)

    def rows_of(self, *, remove: bool) -> slice:
        """The rows of one direction."""
        count = len(self.noise)
        return slice(0, count) if remove else slice(count, 2 * count)

    @cached_property
    def _side(self) -> Reals:
        """How far the noise reaches by itself, shape (2 m, 1)."""
        return np.concatenate([self.parts.side, self.parts.side])

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
        return found and _rows_of(found, own if covering is _ALL else _ALL, _ALL)

    def moments(self, order: float, own: slice) -> Cumulants | None:
        """`curve` at one order, shape (m, 1): from a table if it is in one."""
        key, at = self.cache.tabulated.get(order, ((0, b""), 0))
        found = self.cache.curves.get(key)
        if found is None or key[0] not in (_ALL.start, own.start):
            return self.curve(np.array([order]), own)
        return _rows_of(found, own if key[0] is _ALL.start else _ALL, slice(at, at + 1))

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
        low, high, step = reach.low[rows], reach.high[rows], reach.step[rows]
        if not float(((high - low) / step).max()) <= MOST_POINTS:
            return None
        known[reach.power] = built(noise[rows], rate[rows], low, high, step, self.ulps)
        return known[reach.power]

    def reach(self, order: float) -> Reach:
        """Where n r^p lives: around 0, around 1 (because E y = 0 is used) and around the mode."""
        if order not in self.cache.reaches:
            # A power a little larger than needed, so that neighboring orders share a grid.
            power = max(
                1.25 ** math.ceil(math.log(max(order + 1, 1.0)) / math.log(1.25)), self._least
            )
            if power not in self.cache.reaches_of_powers:
                step = shortened(self.parts.coarse_step(power))
                (low, high), step = self._ends(power), np.concatenate([step, step])
                longest = float(((high - low) / step).max())
                self.cache.reaches_of_powers[power] = Reach(power, low, high, step, longest)
            self.cache.reaches[order] = self.cache.reaches_of_powers[power]
        return self.cache.reaches[order]

    @cached_property
    def _least(self) -> float:
        """A power that adds little to how far the noise reaches by itself."""
        return 0.5 * float(self._side.min())

    def _ends(self, power: float) -> tuple[Reals, Reals]:
        side = self._side[: len(self.noise)]
        # When adding, the mode solves x = -power w(x), whose right side falls: two steps from a bound stay on one side.
        left = -power * sampled_weight(np.zeros_like(self.noise), self.noise, self.rate)
        right = np.zeros_like(left)
        if (left < -0.5 * self.noise).any():
            right = -power * sampled_weight(left, self.noise, self.rate)
            left = np.maximum(left, -power * sampled_weight(right, self.noise, self.rate))
        for _ in range(80):
            wide = (right - left > 0.5 * self.noise) & (right - left > 1e-6 * -left)
            if not wide.any():
                break
            middle = (left + right) / 2
            below = middle > -power * sampled_weight(middle, self.noise, self.rate)
            left, right = np.where(below, left, middle), np.where(below, middle, right)
        return np.concatenate([-side, left - side]), np.concatenate([power + side, 1 + side])

    def integrands(self, order: float, own: slice) -> tuple[Integrands | None, slice, int]:
        """Those of both directions, or of the own one where the other would need a much longer grid; None if the grid
        is too long. Where the own rows are among them, and which composition they are."""
        covering = self._covering(order, own)
        key = order, covering.start
        if key not in self.cache.integrands:
            grid, rows = self._grid(order, covering), Rows(*(each[covering] for each in self.both))
            parts = Parts(*rows, count=len(self.noise), ulps=self.ulps)
            powers = self.powers(order)[covering]
            self.cache.integrands[key] = grid and Integrands(parts, grid, powers)
        at = own if covering is _ALL else _ALL
        return self.cache.integrands[key], at, int(covering is _ALL and at.start != 0)

    def log_moment(self, order: float, own: slice) -> tuple[Reals, Reals]:
        """log of an upper bound on M of each of the own rows, and by how much it may be above log M."""
        one, at, _ = self.integrands(order, own)
        if one is None:
            unknown = np.full(self.sign[own].shape, np.inf)
            return unknown, unknown
        return one.log_moment[at], one.slack[at]

    def envelope(self, order: float, edges: Reals, own: slice, thetas: Sequence[float]) -> Reals:
        """`Integrands.log_envelope` of one direction, shape (n,)."""
        one, _, row = self.integrands(order, own)
        if one is None:
            return np.zeros_like(edges)
        rows = len(one.power) // len(self.noise)
        key = order, edges.tobytes(), thetas, own.start if rows == 1 else None
        if key not in self.cache.envelopes:
            every = np.broadcast_to(edges, (rows, len(edges)))
            self.cache.envelopes[key] = one.log_envelope(every, thetas)
        return self.cache.envelopes[key][row]

    def raised(self, order: float, frequencies: Reals, own: slice) -> Line:
        """log M of one copy of each row of one direction, or of all rows, from a line above the real one."""
        count = len(self.noise)
        sides = [at for at in (0, count) if at in range(*own.indices(2 * count))]
        lines = [self._one_raised(order, frequencies, slice(at, at + count)) for at in sides]
        pairs = zip(*((one.log, one.error) for one in lines), strict=True)
        return Line(*(np.concatenate(each) for each in pairs))

    def _one_raised(self, order: float, frequencies: Reals, own: slice) -> Line:
        sides = [slice(0, len(self.noise)), slice(len(self.noise), None)]
        shared = self._covering(order, own) is _ALL and self._alike(order)
        key = order, frequencies.tobytes(), None if shared else own.start
        if key not in self.cache.raised:
            self.cache.raised[key] = self._raised(order, frequencies, sides if shared else [own])
        found = self.cache.raised[key]
        if found is None:
            return unknown(len(self.noise), len(frequencies))
        return found.line(self.powers(order)[own])

    def _alike(self, order: float) -> bool:
        """Whether a grid for both directions is no longer than that of one."""
        log_m, _ = self.log_moment(order, _ALL)
        return float(np.abs(np.subtract(*np.split(log_m, 2))).max()) < _ALIKE

    def _raised(self, order: float, frequencies: Reals, sides: list[slice]) -> _Raised | None:
        """For all of the given directions."""
        found = [self.integrands(order, each) for each in sides]
        ones = [one[np.array([row])] for one, _, row in found if one is not None]
        if not ones:
            return None
        parts, depth, reach = self.parts, _DEPTH + np.log(self.times), self.reach(order)
        chosen, step = heights(ones[0], ones[-1], None, depth)
        side = self.noise * np.sqrt(2 * (depth + 3) + np.square(chosen.theta * self.noise))
        spare = side - parts.side
        low = np.minimum.reduce([reach.low[each] for each in sides]) - spare
        high = np.maximum.reduce([reach.high[each] for each in sides]) + spare
        longest = ((high - low) / step).max(keepdims=True)[0] + 3
        if not float(longest[0]) <= MOST_POINTS:
            return None
        grid = raised(parts, low, high, chosen.theta, int(class_of(longest)[0]))
        return _Raised(parts, grid, chosen.log_error(self.noise, grid.step), frequencies)


@dataclass(frozen=True, eq=False)
class _Raised:
    """Nodes at some frequencies, from one grid for both directions; `log_step_error`: of what its step leaves out."""

    parts: Parts
    grid: RaisedGrid
    log_step_error: Reals
    frequencies: Reals

    @cached_property
    def _blocks(self) -> tuple[Reals, Reals]:
        return blocks_of(self.frequencies)

    @cached_property
    def _within(self) -> Complexes:
        return waves_at(self.grid, self._blocks[1])

    def line(self, power: Reals) -> Line:
        """log M of one copy of each row, shape (m, n)."""
        far, near = self._blocks
        size, error = max(_ENTRIES // self.grid.x.size, 1), self.log_step_error
        lines: list[Line] = []
        for at in range(0, len(far), size):
            every = (far[at : at + size, None] + near).ravel()
            lines.append(nodes(self.parts, self.grid, self._waved(at, size), every, power, error))
        places = np.searchsorted((far[:, None] + near).ravel(), self.frequencies)
        return Line(
            *(
                np.concatenate(each, axis=1)[:, places]
                for each in zip(*((one.log, one.error) for one in lines), strict=True)
            )
        )

    @cached_property
    def _first(self) -> Complexes:
        return waves_at(self.grid, self._blocks[0][: _ENTRIES // self.grid.x.size])

    def _waved(self, at: int, size: int) -> Waves:
        blocks = waves_at(self.grid, self._blocks[0][at : at + size]) if at else self._first
        return Waves(blocks, self._within)


def _rows_of(curve: Cumulants, rows: slice, orders: slice) -> Cumulants:
    return Cumulants(
        curve.log_m[rows, orders], curve.first[rows, orders], curve.second[rows, orders]
    )


def unknown(rows: int, count: int) -> Line:
    """No statement."""
    return Line(np.zeros((rows, count), dtype=np.complex128), np.full((rows, count), np.inf))
