"""The sum of many losses of Laplace noise on Poisson samples, any of them many times, as a transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import (
    Cumulants,
    Line,
    Transform,
    WeightedPoints,
    blockwise,
    careful_nodes,
    logarithm_of_excess,
)
from dpcompose.loss.sampled_laplace_rule import (
    LENGTH,
    TURNS,
    LaplaceRule,
    Places,
    divided,
    end_series,
)
from dpcompose.numerics import Complexes, Reals, U, exponential_sums, row_sums, row_tops

Integers = NDArray[np.integer[Any]]
_TURNED, _FAR = 100.0, 64.0
"""From so much of |p| log r on, and for |p| w beyond this, the density to the right is a series at its ends."""
_ENTRIES, _FEW_ROWS, _ALIKE = 1 << 18, 8, 32
"""Values of M of single rows, or of terms of a table, that are held at once; rows whose bounds are taken at once."""
_WIDE = 16.0
"""Blocks of frequencies that are wider than this over the range of a loss are left to the bound on the density."""


@dataclass(frozen=True, eq=False)
class SampledLaplaceSum(Transform):
    """M = E_Q r^(t + 1), or E_Q r^-t when the record is added, multiplied over rows.

    Args:
        epsilon: The largest loss without sampling, shape (m, 1).
        rate: The sampling rates, shape (m, 1).
        times: How many copies of each, shape (m, 1).
        ulps: How many units of roundoff an epsilon may be off.
        remove: Whether the losses are those of (with the record, without it).
    """

    epsilon: Reals
    rate: Reals
    times: Reals
    ulps: int
    remove: bool
    tabulates: ClassVar[bool] = True

    @property
    def _sign(self) -> float:
        return 1.0 if self.remove else -1.0

    def _power(self, order: float) -> float:
        return order + 1 if self.remove else -order

    @property
    def _error(self) -> float:
        return 2 * self.ulps * U

    @cached_property
    def _ends(self) -> tuple[Places, Places]:
        """Of the smallest and of the largest loss of each row."""
        low, high = (Places(side * self.epsilon, self.rate, self._error) for side in (-1, 1))
        return low, high

    @cached_property
    def _span(self) -> Reals:
        """By how much log r differs from one atom to the other, shape (m, 1)."""
        low, high = self._ends
        return high.ratio - low.ratio

    @property
    def maximum(self) -> float:
        return self._edge(self._ends[1] if self.remove else self._ends[0])

    @property
    def minimum(self) -> float:
        return -self._edge(self._ends[0] if self.remove else self._ends[1])

    def _edge(self, end: Places) -> float:
        return math.fsum((self.times * np.abs(end.ratio) * (1 + end.ratio_error)).ravel()) * (
            1 + 4 * U
        )

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self.curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def curve(self, orders: Reals) -> Cumulants:
        powers = orders + 1 if self.remove else -orders
        far = float(np.abs(powers).max())
        end = self._ends[1 if powers[-1] > 0 else 0].ratio

        def cost(loss: Reals, rows: Integers) -> Reals:
            # Panels grow in proportion to their distance from the end on which r^p is largest.
            depth = np.log1p(far * np.abs(Places(loss, self.rate[rows], 0.0).ratio - end[rows]))
            return loss / LENGTH - 2 * math.copysign(1.0, powers[-1]) * depth

        found = np.zeros((3, len(orders)))
        for at in range(0, len(self.epsilon), _ALIKE):
            rows = self._all[at : at + _ALIKE]
            points = self._rule(rows, partial(cost, rows=rows), self.epsilon[rows]).points
            one = points.curve(
                np.broadcast_to(powers, (len(points.ratio), len(powers))), sign=self._sign
            )
            found += [
                (self.times[rows] * part).sum(axis=0) for part in (one.log_m, one.first, one.second)
            ]
        return Cumulants(found[0], found[1], found[2])

    def _rule(self, rows: Integers, cost: Callable[[Reals], Reals], top: Reals) -> LaplaceRule:
        """Panels up to `top`, each on one side of 0."""
        epsilon = self.epsilon[rows]
        middle = np.minimum(top, 0.0)
        edges = divided(cost, -epsilon, middle)
        if np.any(top > 0):
            edges = np.concatenate([edges, divided(cost, middle, top)[:, 1:]], axis=1)
        return LaplaceRule(epsilon, self.rate[rows], self._error, edges)

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        size: Reals = np.hypot(self._power(order), frequencies)
        start, least = 0, 2 * TURNS / float(np.max(self._span))
        while start < len(size):
            stop = int(np.searchsorted(size, max(2 * float(size[start]), least), side="right"))
            stop = min(stop, start + max(_ENTRIES // len(self.epsilon), 64))
            here = slice(start, stop)
            one = self._rows(
                self._all, order, frequencies[here], float(size[start]), float(size[stop - 1])
            )
            modulus = self.times * np.abs(one.log)
            log[here] = (self.times * one.log).sum(axis=0)
            error[here] = (self.times * one.error + (3 + len(modulus)) * U * modulus).sum(axis=0)
            start = stop
        return Line(log, error)

    @cached_property
    def _all(self) -> Integers:
        return np.arange(len(self.epsilon))

    def _rows(
        self, asked: Integers, order: float, frequencies: Reals, least: float, most: float
    ) -> Line:
        """log M of one copy of each row asked, for powers of moduli from `least` to `most`."""
        far = ((most * self._span[asked] > _TURNED) & (least * self._ends[1].share[asked] > _FAR))[
            :, 0
        ]
        log = np.empty((len(far), len(frequencies)), dtype=np.complex128)
        error = np.empty(log.shape)
        for rows, method in (
            (np.flatnonzero(~far), self._by_points),
            (np.flatnonzero(far), self._by_ends),
        ):
            if len(rows):
                one = method(asked[rows], order, frequencies, least, most)
                log[rows], error[rows] = one.log, one.error
        return Line(log, error)

    def _by_points(
        self, rows: Integers, order: float, frequencies: Reals, least: float, most: float
    ) -> Line:
        power = self._power(order)
        rule = self._rule(rows, self._cost(rows, most), self.epsilon[rows])
        points = rule.points
        top = np.maximum(row_tops(points.log_weight + power * points.ratio), 0.0)
        omitted = np.exp(np.minimum(rule.omitted(power, float(frequencies[-1])) - top, 700.0))
        careful = careful_nodes(float(self.times.max()))
        return points.line(power, frequencies, sign=self._sign, omitted=omitted, careful=careful)

    def _by_ends(
        self, rows: Integers, order: float, frequencies: Reals, least: float, most: float
    ) -> Line:
        """Where the density turns often: a series at the right end, less one at a place left of which it does not."""
        power, epsilon, rate = self._power(order), self.epsilon[rows], self.rate[rows]
        share = np.minimum(_FAR / least, 0.999)
        place = np.clip(
            np.log(share / (1 - share)) + np.log1p(-rate) - np.log(rate), -epsilon, epsilon
        )
        rule = self._rule(rows, self._cost(rows, most), place)
        points = rule.points
        top = row_tops(points.log_weight + power * points.ratio)
        powers = power + 1j * self._sign * frequencies
        ends = [Places(each, rate, self._error) for each in (epsilon, place)]
        highest = np.maximum(*[power * end.ratio for end in ends]) - top
        one, two = (end_series(end, epsilon, powers, top, highest=highest) for end in ends)
        value, error, known = _plain_sum(points, power, self._sign * frequencies, top)
        value = value + (one.value - two.value)
        error = error + np.exp(np.minimum(rule.omitted(power, float(frequencies[-1])) - top, 700.0))
        error += one.error + two.error + two.remainder
        found = logarithm_of_excess(value.real - 1, value.imag, error)
        return Line(
            found.log + top, np.where(known, found.error + 4 * U * (1 + np.abs(top)), np.inf)
        )

    def _cost(self, rows: Integers, most: float) -> Callable[[Reals], Reals]:
        rate = self.rate[rows]
        return lambda loss: most / TURNS * Places(loss, rate, 0.0).ratio + loss / LENGTH

    def limsup(self, order: float) -> float:
        low, high, _ = self._tilted(order)
        return math.exp(float((self.times * np.log(np.minimum(low + high, 1.0))).sum()))

    def _tilted(self, order: float) -> tuple[Reals, Reals, Reals]:
        """Upper bounds, relative to M(order): the atoms, and what over u bounds the density, all of shape (m, 1).

        The density of log r times e^(Re p log r) falls first and then rises, so its variation is at most the sum of its
        values at both ends, and its transform at most twice that over u.
        """
        power, epsilon = self._power(order), self.epsilon
        line = self._rows(self._all, order, np.zeros(1), abs(power), abs(power))
        parts: list[Reals] = []
        for end, mass in zip(self._ends, (0.5, np.exp(-epsilon) / 2), strict=True):
            raised = power * end.ratio
            size = np.exp(np.minimum(raised - line.floor, 700.0))
            size = size * (1 + 16 * U * (4 + np.abs(raised)) + 2 * np.abs(raised) * end.ratio_error)
            parts += [mass * size, np.exp(-(end.loss + epsilon) / 2) / (2 * end.share) * size]
        return parts[0], parts[2], (parts[1] + parts[3]) * (1 + 1e-9)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        low, high, density = self._tilted(order)
        bounds = np.log(np.minimum((low + high + density / edges) * (1 + 1e-9), 1.0))
        for at in range(0, len(self.epsilon), _ALIKE):
            rows = self._all[at : at + _ALIKE]
            bounds[rows] = np.minimum(bounds[rows], self._blockwise(rows, order, edges))
        return (self.times * bounds).sum(axis=0)

    def _blockwise(self, rows: Integers, order: float, edges: Reals) -> Reals:
        """From values at the edges, up to where the blocks are too wide for them."""
        span, power = self._span[rows], self._power(order)
        wide = np.flatnonzero(np.diff(edges, append=math.inf) * float(span.max()) > _WIDE)
        near = edges[: int(wide[0]) + 1]
        bounds = np.zeros((len(rows), len(edges)))
        if len(near) > 1:
            frequencies = np.append(0.0, near)
            line = self._rows(
                rows, order, frequencies, abs(power), math.hypot(power, float(near[-1]))
            )
            magnitude = np.exp(np.minimum((line.log.real + line.error)[:, 1:] - line.floor, 0.0))
            bounds[:, : len(near)] = blockwise(magnitude, np.square(span) / 4 * (1 + 1e-9), near)
        return bounds

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """|phi| of a few rows at a time: that of the two atoms, and the bound on the density."""
        low, high, density = self._tilted(order)
        turn_error = (
            2 * (self._ends[0].ratio_error + self._ends[1].ratio_error) * self._span
            + 4 * U * self._span
        )
        apart = max(1, len(low) // _FEW_ROWS)
        for at in range(apart):
            rows = tuple(
                each[at::apart] for each in (low, high, density, self._span, turn_error, self.times)
            )

            def bound(u: Reals, *, rows: tuple[Reals, ...] = rows) -> Reals:
                low, high, density, span, turn_error, times = rows
                cosine = np.cos(span * u) + turn_error * u + 16 * U
                atoms = np.sqrt(low * low + high * high + 2 * low * high * np.minimum(cosine, 1.0))
                with np.errstate(divide="ignore"):
                    size = atoms * (1 + 1e-9) + density / u
                return (times * np.log(np.minimum(size, 1.0))).sum(axis=0)

            yield bound


def _plain_sum(
    points: WeightedPoints, power: float, turns: Reals, top: Reals
) -> tuple[Complexes, Reals, Any]:
    """The sum of w r^p e^-top at p = power + i turns, shape (m, n), its error, and where that holds.

    An exponent off by d at most 1 puts its term off by a factor of at most 1 + 3 d. Of an angle only the ratio errs.
    """
    size, exponent = np.abs(points.ratio), points.log_weight + power * points.ratio
    tilted = np.exp(exponent - top)
    rounded = (
        4 * exponent.shape[-1]
        + 120
        + 2 * (np.abs(points.log_weight) + abs(power) * size + np.abs(top))
    )
    relative = U * rounded + points.weight_error + abs(power) * size * points.ratio_error
    slanting, far = size * (points.ratio_error + 16 * U), np.abs(turns)
    error = 3 * (row_sums(tilted * relative) + far * row_sums(tilted * slanting))
    known = row_tops(relative) + far * row_tops(slanting) <= 1
    value = exponential_sums(far, tilted, math.copysign(1.0, turns[-1]) * 1j * points.ratio)
    return value, error, known
