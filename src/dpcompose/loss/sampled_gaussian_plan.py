"""Where the lines of many compositions of sampled Gaussians stand, planned together, in rows.

Nothing here depends on what other rows hold: every row has arrays of a length of its own class, and every sum runs over
one row. So an answer is the same to the last bit in whatever company it is asked.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import LEAST_ORDER, Cumulants, kernel_peak
from dpcompose.loss.sampled_gaussian_grid import Grid, built_at, share, shortened
from dpcompose.numerics import Reals, between

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
        return share(np.zeros_like(self.noise), self.noise, self.rate)

    def __getitem__(self, chosen: Any) -> Parts:
        """Some of the compositions, by a mask or places of shape (k,)."""
        found = [
            each.reshape(-1, self.count)[chosen].reshape(-1, 1)
            for each in (self.noise, self.rate, self.times)
        ]
        return Parts(*found, count=self.count, ulps=self.ulps)

    def rows_of(self, chosen: Any) -> Any:
        """The rows that belong to the compositions at these places."""
        return (chosen[:, None] * self.count + np.arange(self.count)).ravel()

    def total(self, rows: Reals) -> Reals:
        """The sum over the parts of rows that belong to one copy of each, shape (m p, n) to (m, n)."""
        weighted = (self.times * rows).reshape(-1, self.count, rows.shape[-1])
        total = weighted[:, 0]
        for part in range(1, self.count):
            total = total + weighted[:, part]
        return total

    def spread(self, each: Reals) -> Reals:
        """Values of a composition, for each of its parts: shape (m, n) to (m p, n)."""
        return np.repeat(each, self.count, axis=0)

    def ends(self, most: Reals, side: Reals) -> tuple[Reals, Reals]:
        """Where n r^p lives for powers from -most to most + 1, if the noise reaches so far."""
        return -most * self.at_zero - side, most + 1 + side

    def gridded(self, low: Reals, high: Reals, points: int) -> Grid:
        """The grid of that many points over [low, high] of every row."""
        step = shortened((high - low) / (points - 2) * (1 + 2**-18))
        x = step * (np.ceil(low / step) - 1 + np.arange(points))
        return built_at(x, self.noise, self.rate, (low, high, step), self.ulps)


def class_of(points: Reals) -> NDArray[np.int64]:
    """The next larger size of an array that rows of about so many entries share; NaN counts as too many for any."""
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
        """Rises through 0 at the saddle point."""
        if self.for_values:
            return orders * (curve.first - self.value - 1 / orders - 1 / (orders + 1))
        kernel = np.log(orders) + np.log1p(orders)
        curvature = curve.second + 1 / orders**2 + 1 / (orders + 1) ** 2
        width = 0.5 * np.log(2 * np.pi * curvature)
        return (
            orders * curve.first
            - 1
            - orders / (orders + 1)
            - (curve.log_m - self.log_mass - kernel - width)
        )

    def first_order(self, rho: Reals, blow_up: Reals) -> Reals:
        """The order as if for a Gaussian; at most where M blows up."""
        if self.for_values:
            found = (self.value + np.hypot(self.value, 4 * np.sqrt(rho))) / (4 * rho)
        else:
            found = np.sqrt((1 - self.log_mass) / rho)
        return between(np.minimum(found, blow_up), LEAST_ORDER * 32, 1e6)


@dataclass(frozen=True)
class Places:
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
    found: NDArray[np.bool_]

    def __getitem__(self, chosen: Any) -> Places:
        return Places(*(self.__dict__[each.name][chosen] for each in fields(self)))


def first_orders(parts: Parts, targets: Targets) -> tuple[Reals, Reals]:
    """Where to look for the saddle points, and the largest order worth a look, shape (m, 1) each."""
    scale = parts.total(np.log1p(parts.rate**2 * np.expm1(np.maximum(parts.noise, 0.05) ** -2)))
    each = 2 * parts.noise**2 * -np.log(parts.rate) + 1
    blow_up = each.reshape(-1, parts.count).min(axis=1)[:, None]
    guess = targets.first_order(np.maximum(scale, 1e-300) / 2, blow_up)
    return guess, 1.25 * np.maximum(guess, blow_up)


def coarse_points(parts: Parts, guess: Reals, most: Reals) -> Reals:
    """How many points the grid for planning takes, shape (m,)."""
    low, high = parts.ends(parts.spread(np.minimum(guess * _RUNGS[-1] * 1.7, most)), parts.side)
    return ((high - low) / _coarse_step(parts)).reshape(-1, parts.count).max(axis=1) + 3


def _coarse_step(parts: Parts) -> Reals:
    """A step whose sums err by e^-8 / times in a strip of half-width 1.2 s^2."""
    s2 = parts.noise**2
    return np.minimum(0.4 * parts.noise, 7.54 * s2 / (9 + np.log(parts.times) + 0.72 * s2))


def coarse_grid(parts: Parts, guess: Reals, most: Reals, points: int) -> Grid:
    """The grid for planning."""
    low, high = parts.ends(parts.spread(np.minimum(guess * _RUNGS[-1] * 1.7, most)), parts.side)
    return parts.gridded(low, high, points)


def placed(parts: Parts, targets: Targets, grid: Grid, guess: Reals, most: Reals) -> Places:
    """The line of each question, as `contour.placement.place` would have it, from a table of moments around it."""
    near, found = _saddle(parts, targets, grid, _short(np.minimum(guess * _RUNGS, most)))
    orders = _short(np.minimum(near * _MULTIPLES, most))
    curve = _curve(parts, grid, orders)
    x, log_mass = _about(orders, curve, targets)
    share = 1.0 if targets.for_values else near * np.maximum(np.abs(x), 1e-3)
    tolerance = between(targets.tolerance / 4 * share + np.zeros_like(x), _FINEST, 1e-2)
    chosen, period, outer = _shortest(orders, curve, x, (log_mass, tolerance))
    order, log_m = at_place(orders, chosen), at_place(curve.log_m, chosen)
    height = np.exp(between(log_mass - log_m + order * x, -100.0, 0.0))
    found = found & np.isfinite(period[:, 0]) & np.isfinite(x[:, 0])
    return Places(
        order=order,
        step=_short(2 * math.pi / np.where(np.isfinite(period), period, 1.0)),
        outer=at_place(orders, outer),
        value=x,
        log_m=log_m,
        variance=at_place(curve.second, chosen),
        height=height,
        error=tolerance / 40 * height,
        found=found,
    )


def _saddle(
    parts: Parts, targets: Targets, grid: Grid, orders: Reals
) -> tuple[Reals, NDArray[np.bool_]]:
    """The saddle point to a few percent, shape (m, 1), and whether the orders enclose it, shape (m,)."""
    gap = targets.excess(orders, _curve(parts, grid, orders))
    left = np.logical_and.accumulate(gap <= 0, axis=1).sum(axis=1)[:, None] - 1
    found = (left[:, 0] >= 0) & (left[:, 0] < orders.shape[1] - 1)
    left = between(left, 0, orders.shape[1] - 2)
    low, high = at_place(orders, left), at_place(orders, left + 1)
    order = _short(np.sqrt(low * high))
    for _ in range(
        _STEPS
    ):  # Newton's for asinh(gap), which is near a line where the gap is and where it explodes
        curve = _curve(parts, grid, order)
        gap = targets.excess(order, curve)
        low, high = np.where(gap <= 0, order, low), np.where(gap <= 0, high, order)
        slope = order * order * (curve.second + 1 / order**2 + 1 / (order + 1) ** 2)
        target = order * np.exp(-np.arcsinh(gap) * np.hypot(gap, 1.0) / slope)
        order = _short(np.where((target > low) & (target < high), target, np.sqrt(low * high)))
    return order, found


def _about(orders: Reals, curve: Cumulants, targets: Targets) -> tuple[Reals, Reals]:
    """Roughly epsilon and log delta by the saddle-point approximation, at the order where it is least."""
    curvature = curve.second + 1 / orders**2 + 1 / (orders + 1) ** 2
    log_m = curve.log_m - np.log(orders * (orders + 1)) - 0.5 * np.log(2 * math.pi * curvature)
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


def at_place(each: Reals, place: Any) -> Reals:
    """The entry of each row at that place, shape (m, 1)."""
    return np.take_along_axis(each, place, axis=1)


def _short(values: Reals) -> Reals:
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.rint(np.ldexp(mantissa, 24)), exponent - 24)
