"""The lines of many compositions of sampled Gaussians: where they stand, where they end, and their grids.

Where the lines of many compositions of sampled Gaussians stand, planned together, in rows.

Nothing here depends on what other rows hold: every row has arrays of a length of its own class, and every sum runs over
one row. So an answer is the same to the last bit in whatever company it is asked.

Where the lines of sampled Gaussians end, and how fine their grids over the noise must be: proved, row by row.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import (
    LEAST_ORDER,
    Cumulants,
    all_shortened as _short,
    curvature,
    excess_of_mass,
    excess_of_value,
    kernel_peak,
)
from dpcompose.loss.sampled_gaussian_grid import (
    Grid,
    built_at,
    sampled_weight,
    shortened,
    strip_sums,
)
from dpcompose.numerics import Reals, U, between, dots, row_dots, row_sums, row_tops

MOST_POINTS, MOST_NODES = 4096, 4096
_RUNGS = 2.0 ** (np.arange(-5.0, 5.0) / 2)
_MULTIPLES = np.array([0.45, 0.56, 0.67, 0.78, 0.9, 1.0, 1.07, 1.16, 1.28, 1.45, 1.7, 2.1, 2.8])
ORDERS = len(_MULTIPLES)
_CENTER = 5
_STEPS = 4
_FINEST = 1e-13


@dataclass(frozen=True)
class Parts:
    """m compositions of p sampled Gaussians each: shape (m p, 1), the parts of one composition in a row.

    Args:
        noise: sigma / sensitivity.
        rate: The sampling rates, in (0, 1).
        times: How many copies of each.
        count: p.
        ulps: How many units of roundoff a noise may be off.
    """

    noise: Reals
    rate: Reals
    times: Reals
    count: int
    ulps: int

    @cached_property
    def side(self) -> Reals:
        """How far the noise reaches by itself: beyond it, the mass of all copies is below e^-39."""
        return np.sqrt(2 * (39 + np.log(self.times))) * self.noise

    @cached_property
    def at_zero(self) -> Reals:
        """The weight of the sampled part at x = 0: the mode of n r^-l is at least -l times that."""
        return sampled_weight(np.zeros_like(self.noise), self.noise, self.rate)

    def __getitem__(self, chosen: Any) -> Parts:
        """Some of the compositions, by a mask or places of shape (k,)."""
        solved = [
            each.reshape(-1, self.count)[chosen].reshape(-1, 1)
            for each in (self.noise, self.rate, self.times)
        ]
        return Parts(*solved, count=self.count, ulps=self.ulps)

    def rows_of(self, chosen: Any) -> Any:
        """The row numbers of the parts of some compositions."""
        return (chosen[:, None] * self.count + np.arange(self.count)).ravel()

    def total(self, rows: Reals) -> Reals:
        """For each composition the sum over its parts of what one copy of each has, times the number of copies: shape
        (m p, n) to (m, n)."""
        weighted = (self.times * rows).reshape(-1, self.count, rows.shape[-1])
        total = weighted[:, 0]
        for part in range(1, self.count):
            total = total + weighted[:, part]
        return total

    def spread(self, each: Reals) -> Reals:
        """A value of each composition, repeated for each of its parts: shape (m, n) to (m p, n)."""
        return np.repeat(each, self.count, axis=0)

    def ends(self, most: Reals, side: Reals) -> tuple[Reals, Reals]:
        """Between which x the function n r^p matters for all powers p from -most to most + 1, if the noise itself
        reaches as far as `side`."""
        return -most * self.at_zero - side, most + 1 + side

    def gridded(self, low: Reals, high: Reals, points: int) -> Grid:
        """The grid of that many points over [low, high] of every row."""
        step = shortened((high - low) / (points - 2) * (1 + 2**-18))
        x = step * (np.ceil(low / step) - 1 + np.arange(points))
        return built_at(x, self.noise, self.rate, (low, high, step), self.ulps, nodes=False)


def class_of(points: Reals) -> NDArray[np.int64]:
    """A number of points, rounded up to one of few sizes, so that rows can share arrays; NaN becomes a size that is too
    large for any."""
    points = np.where(points < 1e6, np.maximum(points, 8.0), 1e6)
    unit = np.exp2(np.floor(np.log2(points)) - 3)
    return (np.ceil(points / unit) * unit).astype(np.int64)


@dataclass(frozen=True)
class Targets:
    """The questions: epsilon at masses, or delta at values; all shapes (m, 1).

    Args:
        mass: delta; for a question for delta, NaN.
        value: epsilon; for a question for epsilon, NaN.
        tolerance: Wanted relative width of epsilon.
    """

    mass: Reals
    value: Reals
    tolerance: float

    @cached_property
    def log_mass(self) -> Reals:
        """log delta."""
        return np.log(self.mass)

    @property
    def for_values(self) -> bool:
        """Whether delta is asked for."""
        return not bool(np.isnan(self.value).any())

    def __getitem__(self, chosen: Any) -> Targets:
        return Targets(self.mass[chosen], self.value[chosen], self.tolerance)

    def excess(self, orders: Reals, curve: Cumulants) -> Reals:
        """A function of the order that increases and is 0 at the saddle point of the question."""
        if self.for_values:
            return excess_of_value(orders, curve, self.value)
        return excess_of_mass(orders, curve, self.log_mass)

    def first_order(self, rho: Reals, blow_up: Reals) -> Reals:
        """The order at which a Gaussian of the same cost would be read; at most the one where M grows beyond bounds."""
        if self.for_values:
            solved = (self.value + np.hypot(self.value, 4 * np.sqrt(rho))) / (4 * rho)
        else:
            solved = np.sqrt((1 - self.log_mass) / rho)
        return between(np.minimum(solved, blow_up), LEAST_ORDER * 32, 1e6)


@dataclass(frozen=True)
class Placements:
    """Lines for the questions; all shapes (m, 1). They decide widths, and prove nothing.

    Args:
        order: The real part of the line, of few digits.
        step: The distance of the nodes, of few digits.
        outer: A larger order, whose moment bounds the aliases above.
        value: About epsilon.
        log_m: K of the larger direction on the line.
        variance: K'' there.
        height: About g(x) e^(order x) / M(order).
        error: The part of M(order) e^(-order x) that may be left out at either end.
        found: Whether a saddle point was found, shape (m,).
    """

    order: Reals
    step: Reals
    outer: Reals
    value: Reals
    log_m: Reals
    variance: Reals
    height: Reals
    error: Reals
    solved: NDArray[np.bool_]


def first_orders(parts: Parts, targets: Targets) -> tuple[Reals, Reals]:
    """Where to look for the saddle points, and the largest order worth a look, shape (m, 1) each."""
    scale = parts.total(np.log1p(parts.rate**2 * np.expm1(np.maximum(parts.noise, 0.05) ** -2)))
    each = 2 * parts.noise**2 * -np.log(parts.rate) + 1
    blow_up = each.reshape(-1, parts.count).min(axis=1)[:, None]
    guess = targets.first_order(np.maximum(scale, 1e-300) / 2, blow_up)
    return guess, 1.25 * np.maximum(guess, blow_up)


def coarse_points(parts: Parts, guess: Reals, most: Reals) -> NDArray[np.int64]:
    """How many points the grid for planning takes, shape (m,)."""
    return _points(parts, *coarse_ends(parts, guess, most))


def _points(parts: Parts, low: Reals, high: Reals) -> NDArray[np.int64]:
    taken = ((high - low) / _coarse_step(parts)).reshape(-1, parts.count).max(axis=1)
    return class_of(taken + 3)


def coarse_ends(parts: Parts, guess: Reals, most: Reals) -> tuple[Reals, Reals]:
    """Between which points the grid for planning lies, shape (m p, 1) each."""
    return parts.ends(parts.spread(_largest_order(guess, most)), parts.side)


def _largest_order(guess: Reals, most: Reals) -> Reals:
    """The largest order for which the grid for planning holds the integrands, beyond whose mode they fall."""
    return np.minimum(guess * _RUNGS[-1] * 1.7, most)


def _coarse_step(parts: Parts) -> Reals:
    """A step whose sums err by e^-8 / times in a strip of half-width 1.2 s^2."""
    s2 = parts.noise**2
    return np.minimum(0.4 * parts.noise, 7.54 * s2 / (9 + np.log(parts.times) + 0.72 * s2))


def coarse_grid(parts: Parts, guess: Reals, most: Reals) -> Grid | None:
    """The grid for planning, of one size for all rows; None if one of them takes too many points."""
    low, high = coarse_ends(parts, guess, most)
    points = int(_points(parts, low, high).max())
    return parts.gridded(low, high, points) if points <= MOST_POINTS else None


def placed(parts: Parts, targets: Targets, grid: Grid, guess: Reals, most: Reals) -> Placements:
    """The line of each question, as `contour.placement.place` would have it, from a table of moments around it."""
    near, solved = _saddle(parts, targets, grid, _short(np.minimum(guess * _RUNGS, most)))
    # No order is beyond the grid: what is left out there is bounded for none that is.
    orders = _short(np.minimum(near * _MULTIPLES, _largest_order(guess, most) * (1 - 2**-20)))
    curve = _curve(parts, grid, orders)
    x, log_mass = _about(orders, curve, targets)
    sampled_weight = 1.0 if targets.for_values else near * np.maximum(np.abs(x), 1e-3)
    tolerance = between(targets.tolerance / 4 * sampled_weight + np.zeros_like(x), _FINEST, 1e-2)
    chosen, period, outer = _shortest(orders, curve, x, (log_mass, tolerance))
    order, log_m = at_place(orders, chosen), at_place(curve.log_m, chosen)
    height = np.exp(between(log_mass - log_m + order * x, -100.0, 0.0))
    solved = solved & np.isfinite(period[:, 0]) & np.isfinite(x[:, 0])
    return Placements(
        order=order,
        step=_short(2 * math.pi / np.where(np.isfinite(period), period, 1.0)),
        outer=at_place(orders, outer),
        value=x,
        log_m=log_m,
        variance=at_place(curve.second, chosen),
        height=height,
        error=tolerance / 40 * height,
        solved=solved,
    )


def _saddle(
    parts: Parts, targets: Targets, grid: Grid, orders: Reals
) -> tuple[Reals, NDArray[np.bool_]]:
    """The saddle point to a few percent, shape (m, 1), and whether the orders enclose it, shape (m,)."""
    gap = targets.excess(orders, _curve(parts, grid, orders))
    left = np.logical_and.accumulate(gap <= 0, axis=1).sum(axis=1)[:, None] - 1
    solved = (left[:, 0] >= 0) & (left[:, 0] < orders.shape[1] - 1)
    left = between(left, 0, orders.shape[1] - 2)
    low, high = at_place(orders, left), at_place(orders, left + 1)
    order = _short(np.sqrt(low * high))
    for _ in range(
        _STEPS
    ):  # Newton's for asinh(gap), which is near a line where the gap is and where it explodes
        curve = _curve(parts, grid, order)
        gap = targets.excess(order, curve)
        low, high = np.where(gap <= 0, order, low), np.where(gap <= 0, high, order)
        slope = order * order * curvature(order, curve)
        target = order * np.exp(-np.arcsinh(gap) * np.hypot(gap, 1.0) / slope)
        order = _short(np.where((target > low) & (target < high), target, np.sqrt(low * high)))
    return order, solved


def _about(orders: Reals, curve: Cumulants, targets: Targets) -> tuple[Reals, Reals]:
    """Roughly epsilon and log delta by the saddle-point approximation, at the order where it is least."""
    log_m = curve.log_m - np.log(orders * (orders + 1))
    log_m = log_m - 0.5 * np.log(2 * math.pi * curvature(orders, curve))
    if targets.for_values:
        return targets.value, np.minimum(
            np.fmin.reduce(log_m - orders * targets.value, axis=1)[:, None], 0.0
        )
    return np.fmin.reduce((log_m - targets.log_mass) / orders, axis=1)[:, None], targets.log_mass


def _shortest(
    orders: Reals, curve: Cumulants, x: Reals, wanted: tuple[Reals, Reals]
) -> tuple[Any, Reals, Any]:
    """Which order of the table needs the shortest period, that period, and the order that bounds the aliases above."""
    log_mass, tolerance = wanted
    digits = np.log(20 / tolerance)
    depth, log_error = np.maximum(-log_mass, 0.0) + digits, log_mass - digits
    level = curve.log_m - orders * x
    chernoff = level + kernel_peak(orders)
    apart = orders[:, None, :] - orders[:, :, None]
    needed = (chernoff[:, None, :] - log_error[:, :, None] + 2.0) / np.maximum(apart, 1e-300)
    needed = np.where((apart > 0.01 * orders[:, :, None]) & np.isfinite(needed), needed, np.inf)
    best = needed.argmin(axis=2)
    least = np.take_along_axis(needed, best[:, :, None], axis=2)[:, :, 0]
    periods = np.where(least < np.inf, np.maximum(least, depth / orders), np.inf)
    center = np.full((len(orders), 1), _CENTER)
    near = (np.arange(ORDERS) <= _CENTER) & (level <= np.fmin.reduce(level, axis=1)[:, None] + 1.5)
    periods = np.where(near, periods, np.inf)
    chosen = periods.argmin(axis=1)[:, None]
    chosen = np.where(at_place(periods, center) <= 1.15 * at_place(periods, chosen), center, chosen)
    return (
        chosen,
        np.minimum(at_place(periods, chosen), 64 * depth / at_place(orders, chosen)),
        at_place(best, chosen),
    )


def _curve(parts: Parts, grid: Grid, orders: Reals) -> Cumulants:
    """K when removing and its derivatives, shape (m, n)."""
    points, orders = grid.points, parts.spread(orders)
    exponent = points.log_weight[:, None, :] + (orders + 1)[:, :, None] * points.ratio[:, None, :]
    top = np.maximum.reduce(exponent, axis=-1)
    exponent -= top[:, :, None]
    tilted = np.exp(exponent, out=exponent)
    mass, ratio = np.add.reduce(tilted, axis=-1), points.ratio[:, None, :]
    first = np.vecdot(tilted, ratio) / mass
    second = np.maximum(np.vecdot(tilted, ratio * ratio) / mass - first * first, 1e-300)
    return Cumulants(parts.total(top + np.log(mass)), parts.total(first), parts.total(second))


def at_place(each: Reals, index: Any) -> Reals:
    """From each row the entry at its own index, shape (m, 1)."""
    return np.take_along_axis(each, index, axis=1)


_EDGES = (1.0, 1.2, 1.45, 1.8, 2.4, 3.2, 4.5, 7.0, 10.0, 15.0, 25.0, 40.0, 60.0, 100.0)
"""Multiples of the frequency at which a Gaussian would have decayed, tried in turn."""
_RARE, _THETAS = 3.0, (0.15, 0.4, 0.8)
"""From this multiple on losses are not alike, and these shifts of the path over s^2 are tried."""
_ANGLES, _LARGE = np.array([0.1, 0.3, 0.7, 1.2, 1.9]), 100.0
"""Half-widths of strips, over s^2, where the noise is at most `_LARGE`; beyond it they are of so many s."""
_RAISED = 1.2
"""How high a raised line is over s, and at most over s^2: moduli are e^(0.72) times those on the real line."""
_ABOVE, _HIGHEST = (1.0, 1.4, 2.0, 3.0), 2.8
_LARGEST_SHIFT, _RIGHT_ANGLE, _WIDE, _WEAK = 0.8, 1.57, 2.5, 2.5
_SHARE = 1e-6
_FINEST_THETAS, _DEAR = (0.15, 0.4, 1.0, 1.5), 400.0
"""Shifts that are tried, half of them only where as much as can be is to be proved; twice what they may cost."""
_QUIET = -50.0
"""No line needs its tail to be below e^this."""


@dataclass(frozen=True)
class Integrands:
    """The integrands n r^p of one direction on the grid for planning, shape (m p, n)."""

    parts: Parts
    grid: Grid
    power: Reals

    def __getitem__(self, chosen: Any) -> Integrands:
        """Those of some of the compositions."""
        rows = self.parts.rows_of(chosen)
        return Integrands(self.parts[chosen], self.grid[rows], self.power[rows])

    @cached_property
    def exponent(self) -> Reals:
        """log n r^p, with the step."""
        return self.grid.points.log_weight + self.power * self.grid.points.ratio

    @cached_property
    def _tilted(self) -> tuple[Reals, Reals, Reals]:
        """The terms n r^p over their largest, the logarithm of that, and their sum."""
        top = row_tops(self.exponent)
        tilted = np.exp(self.exponent - top)
        return tilted, top, row_sums(tilted)

    @cached_property
    def shares(self) -> Reals:
        """The terms n r^p, each divided by their sum."""
        tilted, _, total = self._tilted
        return tilted / total

    def log_envelope(self, edge: Reals, thetas: Sequence[float]) -> Reals:
        """A bound on log |M(order + iu) / M(order)| of all copies for every u from an edge on, shape (m, 1)."""
        return self.parts.total(self._bounds(self.parts.spread(edge), thetas))

    def log_envelopes(self, edges: Reals, *, finest: bool) -> Reals:
        """Such bounds for one copy of each part at many increasing edges, shape (m p, n). Where all copies of every
        composition are quiet at an edge, the bound for it is that for all later ones."""
        count, bounds = len(edges), np.zeros((len(self.power), len(edges)))
        # A height costs all copies a part of this.
        squares = float(self.parts.total(np.square(self.parts.noise)).min())
        far = [
            theta
            for theta in _FINEST_THETAS[: None if finest else 2]
            if theta * theta * squares < _DEAR
        ]
        for start, end in ((0, 3), (3, 6), (6, count)):
            if start < count:
                some = edges[None, start:end] + 0 * self.power
                found = self._bounds(some, far if start or finest else ())
                bounds[:, start:end] = found
                bounds[:, end:] = found[:, -1:]
                if (self.parts.total(found[:, -1:]) < _QUIET).all():
                    break
        return np.minimum.accumulate(bounds, axis=1)

    def _bounds(self, edges: Reals, thetas: Sequence[float]) -> Reals:
        """A bound on log |M(order + iu) / M(order)| of one copy for every u from each edge on, both of shape (m p, n).

        |phi(u)| <= e^(theta^2 s^2 / 2) E |r(x + i theta s^2) / r(x)|^p e^(-u a(x)), a(x) = arg r(x + i theta s^2) >= 0,
        which falls with u; theta is near the best one where all losses are alike, or the best of some.

        Let L be a loss under the measure n r^p / M, and L' another copy. 1 - cos v is at least v^2 / 2 - v^4 / 24, so
        that with v = Var L and f = E (L - L')^4 also |phi(u)|^2 <= 1 - u^2 v + u^4 f / 24, which falls up to
        u^2 = 12 v / f. From there on the first bound has to be as small. This is for speed: without it the benchmark row
        "DP-SGD sigma 1.1, rate 0.0043, 14,062 steps, delta 1e-5" takes 1.13 times as long, for 21 lines.
        """
        scale = np.minimum(1.0, 10.0 / self.parts.noise)
        heights = (None, *(each * scale for each in thetas))
        weak = self.parts.noise > _WEAK  # then the second bound is hardly smaller
        if weak.all():
            bounds = [self._shifted(edges, theta) for theta in heights]
            return np.minimum.reduce([np.zeros_like(edges), *bounds])
        variance, fourth, _ = self._moments
        last = np.sqrt(12 * variance / fourth)
        every = np.concatenate([edges, last], axis=1)
        bounds = [self._shifted(every, theta) for theta in heights]
        shifted = np.minimum.reduce([np.zeros_like(every), *bounds])
        square = np.square(np.minimum(edges, last))
        falling = 0.5 * np.log1p(square * (square * fourth / 24 - variance)) + 64 * U
        either = np.minimum(shifted[:, :-1], np.maximum(falling, shifted[:, -1:]))
        return np.where(weak, shifted[:, :-1], either)

    @property
    def variance(self) -> Reals:
        """An upper bound on the variance of the loss under the tilted measure."""
        return self._moments[2]

    @cached_property
    def _moments(self) -> tuple[Reals, Reals, Reals]:
        """A lower bound on v, an upper bound on f, and one on v; 0, 1 and infinity where nothing is known.

        In the strip |Im x| <= 2.5 s^2 log r moves by at most 3.66. So the means of (L - mean)^j err by
        2^(j - 1) (size + 3.66^j) times the error of the step, and the ends.
        """
        away = self.grid.points.ratio - row_dots(self.shares, self.grid.points.ratio)
        square = away * away
        second, fourth = row_dots(self.shares, square), row_dots(self.shares * square, square)
        # Beyond the grid log r moves by at most step / s^2 from one point to the next.
        far = np.maximum(
            np.maximum(-away[:, :1], away[:, -1:]), np.maximum(1 / self.parts.noise, 1.0)
        )
        size = 1 + second + fourth
        error = 1600 * self._step_error(0.0, _WIDE) * size + 16 * self._outside * np.square(
            far * far
        )
        mean = self.grid.points.ratio[:, :1] - away[:, :1]
        relative = 1e-9 + 64 * self._rounding * (1 + mean * mean / np.maximum(second, 1e-300))
        mean_error = error + relative * np.sqrt(second)
        variance = second * (1 - relative) - error - mean_error * mean_error
        fourth = (2 * fourth + 6 * second * second) * (1 + 16 * relative) + 28 * size * error
        known = (variance > 0) & (fourth < np.inf)
        most = np.where(known, second * (1 + relative) + error, np.inf)
        return np.where(known, variance, 0.0), np.where(known, fourth, 1.0), most

    def _shifted(self, edges: Reals, theta: Reals | None) -> Reals:
        """The bound of one copy by one path, shape (m p, n), from the trapezoid sum over the grid.

        In a strip of half-width `wide` s^2 |r|^p is bounded by r^p and the moduli at the angles theta + wide and
        theta - wide, and Re a is the mean of arg r at these angles. It is odd in the angle, and rises up to a right
        angle: so Re a >= 0 for wide up to theta, and up to a right angle less theta.
        """
        weight, s2 = self.weight[:, None, :], self.parts.noise**2
        if theta is None:
            mean = row_dots(self.shares, self.weight)
            square = row_dots(self.shares, self.weight * self.weight)
            bend = s2 - self.power * (mean - square) + edges * edges * (square - mean * mean)
            # A height that costs all copies together little.
            least = np.minimum(0.005, 0.5 / (self.parts.noise * np.sqrt(self.parts.times)))
            theta = between(edges * mean / np.maximum(bend, 1e-300), least, _LARGEST_SHIFT)
        rest = 2 * np.square(np.sin(theta / 2))[:, :, None]
        angle = np.arctan2(weight * np.sin(theta)[:, :, None], 1 - weight * rest)
        shrunk = self.power[:, :, None] / 2 * np.log1p(-2 * weight * (1 - weight) * rest)
        decayed = dots(self.shares[:, None, :], np.exp(shrunk - edges[:, :, None] * angle))
        widest = np.maximum(_RIGHT_ANGLE - theta, np.minimum(theta, 1.9 * _RIGHT_ANGLE - theta))
        omitted = 1.1 * (self._outside + self._step_error(theta, widest))
        log = np.log(decayed * self._factor + omitted) + 1e-14 * (1 + edges)
        return np.where(self._factor < np.inf, theta * theta * s2 / 2 + log, np.inf)

    def _step_error(self, theta: Reals | float, widest: Reals | float) -> Reals:
        """A bound, relative to M, on the step's error, by a strip of half-width up to `widest` s^2 around theta s^2."""
        s2, rate = self.parts.noise**2, 2 * math.pi / self.grid.step
        negative = np.maximum(-self.power, 0.0)
        wide = np.minimum(widest, rate * s2 / (s2 + negative / 4))
        sides = np.log(np.cos((theta + wide) / 2)) + np.log(np.cos((theta - wide) / 2))
        growth = wide * wide * s2 / 2 - negative / 2 * sides
        return 2 * np.exp(growth) / np.expm1(np.minimum(rate * s2 * wide, 700.0))

    @cached_property
    def _real_step_error(self) -> Reals:
        return self._step_error(0.0, _RIGHT_ANGLE)

    @property
    def _falling(self) -> Reals:
        """step side / s^2, which is minus the logarithm of the share of a term beyond the grid in the one before it."""
        return np.minimum(self.grid.step * self.parts.side / self.parts.noise**2, 700.0)

    @cached_property
    def _outside(self) -> Reals:
        """The mass beyond the grid as a share of the sum; there terms fall by e^(-step side / s^2) or faster."""
        tilted, _, total = self._tilted
        ends = (tilted[:, :1] + tilted[:, -1:]) / total
        return ends / np.expm1(self._falling)

    @cached_property
    def _rounding(self) -> Reals:
        """A bound on the relative error of the terms by rounding, to first order; infinite where that is not enough."""
        weight, ratio, slant, fuzz = self.grid.largest
        rounding = fuzz + slant * (1 + np.abs(self.power) * ratio)
        rounding = rounding + U * (self.grid.x.shape[1] + 128 + 4 * weight)
        return np.where(rounding < 0.25, rounding, np.inf)

    @cached_property
    def _factor(self) -> Reals:
        """A factor that covers the errors of the shares: of the step, of what is beyond the grid, and of rounding."""
        return 1 + 2 * (self._real_step_error + self._outside) + 4 * self._rounding

    @cached_property
    def weight(self) -> Reals:
        """w = q e^z / r, the weight of the sampled part."""
        return -np.expm1(-np.maximum(self.grid.points.ratio - np.log1p(-self.parts.rate), 0.0))

    @cached_property
    def lifted(self) -> Reals:
        """log of a bound on the mass of each cell: its left value times e^(step |d log / dx|). The first one has also all
        that is to its left, and the last one stands for all to its right, where terms fall as in `_outside`."""
        slope = np.abs(self.grid.x) + np.abs(self.power) + self.grid.step
        cells = self.exponent + self.grid.step * slope / self.parts.noise**2
        beyond = -np.log(-np.expm1(-self._falling))
        cells[:, :1] = np.logaddexp(cells[:, :1], self.exponent[:, :1] + beyond)
        cells[:, -1:] = np.maximum(cells[:, -1:], self.exponent[:, -1:] + beyond)
        return cells

    @cached_property
    def log_moment(self) -> Reals:
        """log of an upper bound on M; infinite where the grid is too coarse for one."""
        _, top, total = self._tilted
        return top + np.log(total) + self.log_factor

    @cached_property
    def log_factor(self) -> Reals:
        """The logarithm of the factor by which `log_moment` is above the logarithm of the sum itself."""
        return np.log(np.where(self._real_step_error < 0.1, self._factor, np.inf))

    def log_strip(self, theta: Reals | float, total: Reals) -> Reals:
        """log of a bound on the integral of n |r^p| and of n along the edge of a strip, from that without the shift."""
        grown = total + np.minimum(self.power, 0.0) * np.log(np.cos(theta / 2))
        return (theta * self.parts.noise) ** 2 / 2 + np.logaddexp(grown, 0.0)


class Heights(NamedTuple):
    """Lines Im x = theta s^2 for the sums over the noise, each in a strip that bounds what a step leaves out.

    Args:
        theta: Their height over s^2; all shapes are alike, a row for each part.
        below: How far the strip goes down, over s^2.
        above: How far it goes up.
        low: log of a bound on the integrals of |n r^z| and |n| along its lower edge, for every z that is asked.
        high: The same along the upper edge.
    """

    theta: Reals
    below: Reals
    above: Reals
    low: Reals
    high: Reals

    @staticmethod
    def of(columns: Reals) -> Heights:
        """Heights from an array of five columns, in the order of the fields."""
        return Heights(*np.split(columns, 5, axis=1))

    @property
    def columns(self) -> Reals:
        """All fields, side by side."""
        return np.concatenate(self, axis=1)

    def best(self, noise: Reals, depth: Reals) -> tuple[Heights, Reals]:
        """For each row the line of the largest step that leaves out 2 e^-depth, and that step; shapes (m, 1)."""
        steps = self.step(noise, depth)
        index = steps.argmax(axis=1)[:, None]
        return Heights(*(at_place(each, index) for each in self)), at_place(steps, index)

    def step(self, noise: Reals, depth: Reals) -> Reals:
        """The largest step that leaves out at most 2 e^-depth or so."""
        return (
            2
            * math.pi
            * noise**2
            * np.minimum(self.below / (depth + self.low), self.above / (depth + self.high))
        )

    def log_error(self, noise: Reals, step: Reals) -> Reals:
        """log of a bound on what a step leaves out: of either edge its integral over e^(2 pi width / step) - 1."""
        rate = 2 * math.pi * noise**2 / step * (1 - 1e-9)
        low, high = self.below * rate, self.above * rate
        sides = (
            self.low - low - np.log(-np.expm1(-low)),
            self.high - high - np.log(-np.expm1(-high)),
        )
        return np.logaddexp(*sides) + 1e-9


def heights(
    remove: Integrands, add: Integrands, reach: Reals, depth: Reals
) -> tuple[Heights, Reals]:
    """The line of the largest step of every row, real or raised, and that step; `reach`: its largest frequency."""
    noise, totals = remove.parts.noise, (remove.log_moment, add.log_moment)
    flat = _ANGLES * np.minimum(1.0, _LARGE / noise)
    low, high = _lower_edges(remove, add, reach, flat), _upper_edges(flat, remove, add)
    real = Heights(np.zeros_like(flat), flat, flat, low, high)
    either = zip(real, raised_lines(remove, add), strict=True)
    lines = Heights(*(np.concatenate(pair, axis=1) for pair in either))
    return lines.best(noise, depth - np.maximum(np.minimum(*totals), 0.0))


def raised_lines(*directions: Integrands, shares: Sequence[float] = (1.0,)) -> Heights:
    """Raised lines whose strips go down to the real one, where |r^(iu)| <= 1 for every u >= 0; some at a share of the
    largest height."""
    theta = np.repeat(
        _RAISED / np.maximum(directions[0].parts.noise, 1.0) * np.array(shares), len(_ABOVE), 1
    )
    above = np.minimum(theta * np.tile(_ABOVE, len(shares)), _HIGHEST - theta)
    high, low = (_upper_edges(each, *directions) for each in (theta + above, np.zeros_like(theta)))
    return Heights(theta, theta, above, low, high)


def _upper_edges(angles: Reals, *directions: Integrands) -> Reals:
    """log of a bound on the integrals of |n r^z| and |n| at each angle above the real line."""
    norms = [each.log_strip(angles, each.log_moment) for each in directions]
    return np.maximum.reduce(norms)


def _lower_edges(remove: Integrands, add: Integrands, reach: Reals, angles: Reals) -> Reals:
    """log of a bound on the integrals of |n r^(p + iu)|, u <= reach, at each angle below the real line."""
    sums = [strip_sums(remove.weight, each.lifted, reach, angles) for each in (remove, add)]
    return np.maximum(remove.log_strip(angles, sums[0]), add.log_strip(angles, sums[1]))


def ended(remove: Integrands, add: Integrands, places: Placements) -> tuple[Reals, Reals]:
    """The frequency at which each line ends, infinite where none is good, and the tails of both directions, (m, 2)."""
    end, tails = np.full_like(places.order, np.inf), np.full((len(places.order), 2), np.inf)
    left = np.flatnonzero(places.solved)
    # Adding is nearly always proved to be the smaller one, and for that a share of the height is enough.
    most = 2 * math.pi * places.error, np.maximum(places.error, _SHARE * places.height)
    normal = np.sqrt(2 * (np.maximum(-np.log(places.error), 1.0) + 1.0) / places.variance)
    for multiple in _EDGES:
        edge, thetas = multiple * normal, _THETAS if multiple > _RARE else ()
        good = left
        for at, direction in enumerate((remove, add)):
            if len(good):
                some = direction if len(good) == len(end) else direction[good]
                tails[good, at] = _tails(some, edge[good], places.step[good], thetas)
                good = good[tails[good, at] <= most[at][good, 0]]
        end[good] = edge[good]
        left = left[np.isinf(end[left, 0])]
    return end, tails


def _tails(direction: Integrands, edge: Reals, step: Reals, thetas: Sequence[float]) -> Reals:
    """A bound on the step times the sum of |M / (t (t + 1))| / M(order) from the edge on, shape (m,)."""
    # |1 / (t (t + 1))| <= 1 / u^2, and |M| is at most what it may be at the edge.
    return (np.exp(direction.log_envelope(edge, thetas)) * (1 / edge + step / edge**2))[:, 0]
