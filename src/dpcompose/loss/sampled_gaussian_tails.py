"""Where the lines of sampled Gaussians end, and how fine their grids over the noise must be: proved, row by row.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpcompose.loss.sampled_gaussian_grid import Grid
from dpcompose.loss.sampled_gaussian_plan import Parts, Places, at_place
from dpcompose.numerics import Reals, U, between, log_sum, row_dots, row_sums, row_tops

_EDGES = (1.0, 1.2, 1.45, 1.8, 2.4, 3.2, 4.5, 7.0, 10.0, 15.0, 25.0, 40.0, 60.0, 100.0)
"""Multiples of the frequency at which a Gaussian would have decayed, tried in turn."""
_RARE, _THETAS = 3.0, (0.15, 0.4, 0.8)
"""From this multiple on losses are not alike, and these shifts of the path over s^2 are tried."""
_ANGLES = (0.1, 0.3, 0.7, 1.2, 1.9)
_RAISED = 1.2
"""How high a raised line is over s, and at most over s^2: moduli are e^(0.72) times those on the real line."""
_ABOVE, _HIGHEST = (1.0, 1.4, 2.0, 3.0), 2.8
_LARGEST_SHIFT, _RIGHT_ANGLE = 0.8, 1.57
_SHARE = 1e-6


@dataclass(frozen=True)
class Direction:
    """The integrands n r^p of one direction on the grid for planning, shape (m p, n)."""

    parts: Parts
    grid: Grid
    power: Reals

    def __getitem__(self, chosen: Any) -> Direction:
        """Those of some of the compositions."""
        rows = self.parts.rows_of(chosen)
        return Direction(self.parts[chosen], self.grid[rows], self.power[rows])

    @cached_property
    def exponent(self) -> Reals:
        """log n r^p, with the step."""
        return self.grid.points.log_weight + self.power * self.grid.points.ratio

    @cached_property
    def shares(self) -> Reals:
        """Their shares in the sum."""
        found = np.exp(self.exponent - row_tops(self.exponent))
        return found / row_sums(found)

    def log_envelope(self, edge: Reals, thetas: Sequence[float]) -> Reals:
        """A bound on log |M(order + iu) / M(order)| of all copies for every u from an edge on, shape (m, 1).

        |phi(u)| <= e^(theta^2 s^2 / 2) E |r(x + i theta s^2) / r(x)|^p e^(-u a(x)), a(x) = arg r(x + i theta s^2) >= 0,
        which falls with u; theta is near the best one where all losses are alike, or the best of some.
        """
        edges = self.parts.spread(edge)
        bounds = [self._shifted(edges, theta) for theta in thetas or (None,)]
        return self.parts.total(np.minimum.reduce([np.zeros_like(edges), *bounds]))

    def _shifted(self, edges: Reals, theta: Reals | float | None) -> Reals:
        """The bound of one copy, shape (m p, 1), from the trapezoid sum over the grid.

        In a strip of half-width `wide` s^2, up to a right angle less theta, Re a >= 0, and |r|^p is bounded by r^p and
        the moduli at the angles theta + wide and theta - wide.
        """
        weight, s2 = self.weight, self.parts.noise**2
        mean, square, factor, outside = self._sums
        if theta is None:
            bend = s2 - self.power * (mean - square) + edges * edges * (square - mean * mean)
            theta = between(edges * mean / np.maximum(bend, 1e-300), 0.005, _LARGEST_SHIFT)
        rest = 2 * np.square(np.sin(theta / 2))
        angle = np.arctan2(weight * np.sin(theta), 1 - weight * rest)
        shrunk = self.power / 2 * np.log1p(-2 * weight * (1 - weight) * rest)
        decayed = row_dots(self.shares, np.exp(shrunk - edges * angle))
        omitted = 1.1 * (outside + self._step_error(theta, _RIGHT_ANGLE - theta))
        return theta * theta * s2 / 2 + np.log(decayed * factor + omitted) + 1e-14 * (1 + edges)

    def _step_error(self, theta: Reals | float, widest: Reals | float) -> Reals:
        """A bound, relative to M, on the step's error, by a strip of half-width up to `widest` s^2 around theta s^2."""
        s2, rate = self.parts.noise**2, 2 * math.pi / self.grid.step
        wide = np.minimum(widest, rate)
        sides = np.log(np.cos((theta + wide) / 2)) + np.log(np.cos((theta - wide) / 2))
        growth = wide * wide * s2 / 2 - np.maximum(-self.power, 0.0) / 2 * sides
        return 2 * np.exp(growth) / np.expm1(np.minimum(rate * s2 * wide, 700.0))

    @cached_property
    def _sums(self) -> tuple[Reals, Reals, Reals, Reals]:
        """Mean and mean square of the weight, a factor for errors of the shares, and the shares beyond the grid."""
        points, side, s2 = self.grid.points, self.parts.side, self.parts.noise**2
        mean, square = (
            row_dots(self.shares, self.weight),
            row_dots(self.shares, self.weight * self.weight),
        )
        # Beyond the grid terms fall by e^(-step side / s^2) or faster.
        ends = self.shares[:, :1] + self.shares[:, -1:]
        outside = ends / np.expm1(np.minimum(self.grid.step * side / s2, 700.0))
        largest = row_tops(np.abs(points.ratio))
        rounding = row_tops(points.weight_error) + row_tops(points.ratio_error) * (
            1 + np.abs(self.power) * largest
        )
        rounding = rounding + U * (
            self.grid.x.shape[1] + 128 + 4 * row_tops(np.abs(points.log_weight))
        )
        return (
            mean,
            square,
            1 + 2 * (self._step_error(0.0, _RIGHT_ANGLE) + outside) + 4 * rounding,
            outside,
        )

    @cached_property
    def weight(self) -> Reals:
        """w = q e^z / r, the weight of the sampled part."""
        return -np.expm1(-np.maximum(self.grid.points.ratio - np.log1p(-self.parts.rate), 0.0))

    @cached_property
    def lifted(self) -> Reals:
        """log of a bound on the mass of each cell: its left value times e^(step |d log / dx|)."""
        slope = np.abs(self.grid.x) + np.abs(self.power) + self.grid.step
        return self.exponent + self.grid.step * slope / self.parts.noise**2

    @cached_property
    def log_moment(self) -> Reals:
        """log of an upper bound on M; infinite where the grid is too coarse for one."""
        factor = np.where(self._step_error(0.0, _RIGHT_ANGLE) < 0.1, self._sums[2], np.inf)
        return log_sum(self.exponent) + np.log(factor)

    def log_strip(self, theta: Reals | float, total: Reals) -> Reals:
        """log of a bound on the integral of n |r^p| and of n along the edge of a strip, from that without the shift."""
        grown = total + np.minimum(self.power, 0.0) * np.log(np.cos(theta / 2))
        return (theta * self.parts.noise) ** 2 / 2 + np.logaddexp(grown, 0.0)


@dataclass(frozen=True)
class Heights:
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
        """From five columns."""
        return Heights(*(columns[:, at : at + 1] for at in range(5)))

    @property
    def columns(self) -> Reals:
        """All fields, side by side."""
        return np.concatenate([self.theta, self.below, self.above, self.low, self.high], axis=1)

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


def heights(remove: Direction, add: Direction, reach: Reals, depth: Reals) -> tuple[Heights, Reals]:
    """The line of the largest step of every row, real or raised, and that step; `reach`: its largest frequency.

    On a raised line that goes down to the real one |r^(iu)| <= 1 for every u >= 0.
    """
    both, noise = (remove, add), remove.parts.noise
    totals = [each.log_moment for each in both]
    flat = np.array(_ANGLES) + np.zeros_like(noise)
    theta = _RAISED / np.maximum(noise, 1.0)
    above = np.minimum(theta * np.array(_ABOVE), _HIGHEST - theta)
    edges = np.concatenate([flat, theta + above, np.zeros_like(theta)], axis=1)
    norms = np.maximum(
        *(each.log_strip(edges, total) for each, total in zip(both, totals, strict=True))
    )
    high, low = norms[:, :-1], norms[:, -1:] + np.zeros_like(above)
    nothing = np.zeros_like(flat)
    found = Heights(
        theta=np.concatenate([nothing, theta + np.zeros_like(above)], axis=1),
        below=np.concatenate([flat, theta + np.zeros_like(above)], axis=1),
        above=np.concatenate([flat, above], axis=1),
        low=np.concatenate([_lower_edges(remove, add, reach), low], axis=1),
        high=high,
    )
    steps = found.step(noise, depth - np.maximum(np.minimum(*totals), 0.0))
    best = steps.argmax(axis=1)[:, None]
    chosen = [
        at_place(each, best)
        for each in (found.theta, found.below, found.above, found.low, found.high)
    ]
    return Heights(*chosen), at_place(steps, best)


def _lower_edges(remove: Direction, add: Direction, reach: Reals) -> Reals:
    """log of a bound on the integrals of |n r^(p + iu)|, u <= reach, at each angle below the real line.

    The argument of r rises with x. The last cell stands for all that is to its right; what is left of the first is
    below a third of it.
    """
    weight = np.concatenate([remove.weight[:, 1:], np.ones_like(reach)], axis=1)
    found: list[Reals] = []
    for theta in _ANGLES:
        turned = reach * np.arctan2(
            weight * math.sin(theta), 1 - weight * (2 * math.sin(theta / 2) ** 2)
        )
        found.append(
            np.maximum(
                *(each.log_strip(theta, log_sum(each.lifted + turned)) for each in (remove, add))
            )
        )
    return np.concatenate(found, axis=1)


def ended(remove: Direction, add: Direction, places: Places) -> tuple[Reals, Reals]:
    """The frequency at which each line ends, infinite where none is good, and the tails of both directions, (m, 2)."""
    end, tails = np.full_like(places.order, np.inf), np.full((len(places.order), 2), np.inf)
    left = np.flatnonzero(places.found)
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


def _tails(direction: Direction, edge: Reals, step: Reals, thetas: Sequence[float]) -> Reals:
    """A bound on the step times the sum of |M / (t (t + 1))| / M(order) from the edge on, shape (m,)."""
    # |1 / (t (t + 1))| <= 1 / u^2, and |M| is at most what it may be at the edge.
    return (np.exp(direction.log_envelope(edge, thetas)) * (1 / edge + step / edge**2))[:, 0]
