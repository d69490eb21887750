"""The loss of Gaussian noise on a Poisson sample when a record is replaced, and sums of such losses.

The sum of losses of Gaussian noise on Poisson samples when records are replaced, as a transform, in rows.

Each is E r(-x)^(t + 1) r(x)^-t over x ~ N(0, s^2). The bounds are those of `sampled_gaussian_sum` and
`sampled_gaussian_decay`, once for each of the two factors.

The pair is (1 - q) N(0, s^2) + q N(-1, s^2) against the same with +1. With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and
x ~ N(0, s^2), the densities are n(x) r(-x) and n(x) r(x): the loss is ln r(-x) - ln r(x), and its transform
E r(-x)^(t + 1) r(x)^-t. The bounds are those of `sampled_gaussian`, once for each of the two factors.

Reference: [Lebeda2024, Proposition 13]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpcompose.contour import (
    Cumulants,
    Line,
    Transform,
    WeightedPoints,
    blockwise,
    careful_nodes,
    joined,
    logarithm_of_excess,
)
from dpcompose.loss.base import Loss
from dpcompose.loss.sampled_gaussian import ReplacedMoments
from dpcompose.loss.sampled_gaussian_batch import unknown
from dpcompose.loss.sampled_gaussian_decay import strip_growth
from dpcompose.loss.sampled_gaussian_grid import (
    Grid,
    coarse_step,
    log_ratio,
    on_shifted,
    positions,
    share,
    shortened,
)
from dpcompose.numerics import (
    ULPS,
    Reals,
    U,
    applied,
    between,
    exponential_sums,
    log_sum,
    minus_log1p,
    row_dots,
    row_tops,
)
from dpcompose.proof import Ends, Field, ends
from dpcompose.values import Bound, up

_ANGLES = (0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5)
_REAL_LINE_POINTS = 800
_MOST_POINTS, _MOST_ENTRIES = 60_000, 1 << 21
_SHIFTS = (0.12, 0.25, 0.5, 0.9, 1.5, 2.2, 2.8)


@dataclass(frozen=True, eq=False)
class ReplacedGaussianSum(Transform):
    """The sum of such losses in rows, each so many times.

    Args:
        noise: sigma / sensitivity, shape (m, 1).
        rate: The sampling rates, shape (m, 1).
        times: How many copies of each, shape (m, 1).
    """

    noise: Reals
    rate: Reals
    times: Reals

    def __getitem__(self, rows: Any) -> ReplacedGaussianSum:
        """Some of the rows."""
        return ReplacedGaussianSum(self.noise[rows], self.rate[rows], self.times[rows])

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    def cumulants(self, order: float) -> tuple[float, float, float]:
        at = self._curve(np.array([order]))
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def curve(self, orders: Reals) -> Cumulants:
        low, high = self._range(float(orders[-1]))
        points = float(((high - low) / self._coarse).max())
        return (
            self._curve(orders)
            if points * len(orders) * len(self.noise) <= _MOST_ENTRIES
            else super().curve(orders)
        )

    def _curve(self, orders: Reals) -> Cumulants:
        grid = self._planning(float(orders[-1]))
        if grid is None:
            return Cumulants(*np.full((3, len(orders)), np.inf))
        one = grid.points.curve(orders[None, :] + 1)
        return Cumulants(
            *((self.times * part).sum(axis=0) for part in (one.log_m, one.first, one.second))
        )

    def line(self, order: float, frequencies: Reals) -> Line:
        rows = self._each(order, frequencies)
        size = self.times * np.abs(rows.log)
        error = self.times * rows.error + (3 + len(size)) * U * size
        return Line((self.times * rows.log).sum(axis=0), error.sum(axis=0))

    def _each(self, order: float, frequencies: Reals) -> Line:
        """log M of one copy of each row, shape (m, n); far out, and with many points, from a shifted line."""
        low, high = self._range(order)
        reach = float(frequencies[-1])
        step, step_error = self._step(order, reach)
        points = (high - low) / step
        far = (points > _REAL_LINE_POINTS)[:, 0] if reach > 0 else np.zeros(len(step), dtype=bool)
        if far.any() and not far.all():
            log = np.empty((len(step), len(frequencies)), dtype=np.complex128)
            error = np.empty(log.shape)
            for rows in (far, ~far):
                one = self[rows]._each(order, frequencies)
                log[rows], error[rows] = one.log, one.error
            return Line(log, error)
        if far.all():
            nearby = float((0.05 * self.noise**2 * _REAL_LINE_POINTS / (high - low)).min())
            cut = int(np.searchsorted(frequencies, nearby, side="right"))
            if cut < len(frequencies):
                beyond = self._shifted_line(order, frequencies[cut:])
                return joined(self._each(order, frequencies[:cut]), beyond) if cut else beyond
        if not float(points.max()) <= _MOST_POINTS:
            return unknown(len(step), len(frequencies))
        return self._on_grid(order, step, step_error, frequencies)

    def _on_grid(self, order: float, step: Reals, step_error: Reals, frequencies: Reals) -> Line:
        """log M of one copy of each row from the real line; `step_error` bounds what its step leaves out."""
        grid = self._grid(*self._range(order), step)
        outside = step_error + self._outside(grid, order) * (1 + frequencies)
        careful = careful_nodes(float(self.times.max()))
        return grid.points.line(order + 1, frequencies, sign=1.0, omitted=outside, careful=careful)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        line = self._each(order, np.concatenate([[0.0], edges]))
        floor = line.floor
        magnitude = np.exp(np.minimum((line.log.real + line.error)[:, 1:] - floor, 0.0))
        blocks = blockwise(magnitude, self._most_variance(order), edges)
        bounds = np.minimum(blocks, self._shifted_envelope(order, edges, floor))
        return (self.times * np.where(np.isfinite(floor), bounds, 0.0)).sum(axis=0)

    def _most_variance(self, order: float) -> Reals:
        """An upper bound on the tilted variance of one copy of each row, shape (m, 1).

        With X = ln r - ln(1 - q) >= 0 the loss is X(-x) - X(x). In the strip that chose the step X is at most twice
        what it is on the real line, so that the variance errs by less than 40 e^-35 E (X(-x) + X(x))^2.
        """
        low, high = self._range(order)
        step, _ = self._step(order, 0.0)
        if not float(((high - low) / step).max()) <= _MOST_POINTS:
            return np.full_like(self.noise, np.inf)
        grid = self._grid(low, high, step)
        exponent = grid.points.log_weight + (order + 1) * grid.points.ratio
        tilted = np.exp(exponent - log_sum(exponent))
        plus, minus = (log_ratio(side, self.noise, self.rate) for side in (grid.x, -grid.x))
        away = grid.points.ratio - row_dots(tilted, grid.points.ratio)
        error = row_dots(tilted, np.square(plus + minus - 2 * np.log1p(-self.rate)))
        return row_dots(tilted, np.square(away)) * 1.01 + 1e-12 * error

    @cached_property
    def _coarse(self) -> Reals:
        return coarse_step(self.noise)

    def _range(self, order: float) -> tuple[Reals, Reals]:
        """Left of -(order + 1) - order w(0) the integrand falls like a Gaussian, and right of 0; 1 more a density."""
        side = np.sqrt(2 * (39 + np.log(self.times))) * self.noise
        return -(order + 1) - order * self._share_at_zero - 1 - side, 1 + side

    @cached_property
    def _share_at_zero(self) -> Reals:
        return share(np.zeros_like(self.noise), self.noise, self.rate)

    def _planning(self, order: float) -> Grid | None:
        """The grid for planning, of the latest order; None if it is too long."""
        low, high = self._range(order)
        if not float(((high - low) / self._coarse).max()) <= _MOST_POINTS:
            return None
        if order not in self._known:
            self._known.clear()
            self._known[order] = self._grid(low, high, self._coarse)
        return self._known[order]

    @cached_property
    def _known(self) -> dict[float, Grid]:
        return {}

    def _grid(self, low: Reals, high: Reals, step: Reals) -> Grid:
        s, q = self.noise, self.rate
        x = positions(low, high, step)
        norm = np.log(step / s) - 0.5 * math.log(2 * math.pi)
        plus, minus = log_ratio(x, s, q), log_ratio(-x, s, q)
        square = np.square(x) / (2 * s * s)
        log_weight = norm - square + plus
        # r(-x) / r(x) - 1 through sinh, relative to itself.
        y = (
            -2
            * q
            * np.sinh(between(x / (s * s), -300.0, 300.0))
            * np.exp(-1 / (2 * s * s) - np.minimum(plus, 600.0))
        )
        near = np.abs(y) < 0.5
        bounded = np.where(near, y, 0.0)
        ratio = np.where(near, np.log1p(bounded), minus - plus)
        weight = np.exp(log_weight)
        other = np.exp(norm - square + minus)
        deficit = np.where(near, weight * minus_log1p(bounded), other - weight - weight * ratio)
        relative_error = U * (
            64 + 24 * square + 24 * (np.abs(x) + 1) / (s * s) + 8 * (np.abs(plus) + np.abs(minus))
        )
        points = WeightedPoints(
            log_weight, ratio, np.maximum(deficit, 0.0), relative_error, relative_error
        )
        return Grid(x, points, step, low, high)

    def _step(self, order: float, reach: float) -> tuple[Reals, Reals]:
        """The largest steps whose strip bounds are below e^-35 / times, and these; as in `sampled_gaussian_sum`."""
        s, spacing, grid = self.noise, self._coarse, self._planning(order)
        if grid is None:
            return np.full_like(s, 1e-300), np.full_like(s, np.inf)
        x, points = grid.x, grid.points
        exponent = points.log_weight + (order + 1) * points.ratio
        exponent = exponent + spacing * (np.abs(x) + 2 * order + 1 + spacing) / (s * s)
        weights = share(x[:, 1:], s, self.rate), share(-x, s, self.rate)
        norm, width = np.empty((len(s), len(_ANGLES))), np.array(_ANGLES) * s * s
        for at, theta in enumerate(_ANGLES):
            right, left = (_argument(weight, theta) for weight in weights)
            rising = np.concatenate([right, np.full_like(s, theta)], axis=1)
            norm[:, at : at + 1] = log_sum(exponent + reach * (rising + left)) - order * math.log(
                math.cos(theta / 2)
            )
        norm = width * width / (2 * s * s) + np.logaddexp(norm, math.log(3 + 2 * (order + reach)))
        steps = 2 * math.pi * width / (35 + np.log(self.times) + norm)
        best = np.arange(len(steps)), steps.argmax(axis=-1)
        step = shortened(steps[best][:, None])
        with np.errstate(over="ignore"):
            return step, 2.8 * np.exp(
                norm[best][:, None] - 2 * math.pi * width[best][:, None] / step
            )

    def _outside(self, grid: Grid, order: float) -> Reals:
        """A bound on what lies beyond the grid of the integrand and, per unit of |p|, of the two densities, (m, 1)."""
        s, s2, step, low, high = self.noise, self.noise**2, grid.step, grid.low, grid.high
        exponent = grid.points.log_weight + (order + 1) * grid.points.ratio
        exponent = exponent - np.maximum(row_tops(exponent), 0.0)
        right = np.exp(exponent[:, -1:]) / np.expm1(np.minimum(step * high / s2, 700.0))
        left = np.exp(exponent[:, :1]) / np.expm1(
            np.minimum(step * self._slope(low, order) / s2, 700.0)
        )
        # Each density is below n(x) + n(x - 1) or n(x) + n(x + 1), centered at least `side` away from either end.
        side = np.minimum(high - 1, -low - 1)
        falling = np.exp(-side * side / (2 * s2)) / np.expm1(np.minimum(step * side / s2, 700.0))
        return right + left + 8 * (2 + order) * step / (s * math.sqrt(2 * math.pi)) * falling

    def _slope(self, left: Reals, order: float) -> Reals:
        """How fast the integrand falls to the left of a point, times s^2."""
        return -left - (order + 1) - order * share(left, self.noise, self.rate)

    def _shifted_envelope(self, order: float, edges: Reals, log_moment: Reals) -> Reals:
        """As in `sampled_gaussian`, on Im x = -theta s^2, where the arguments of the two factors add up."""
        s, best = self.noise, np.zeros((len(self.noise), len(edges)))
        low, high = self._range(order)
        for theta in _SHIFTS:
            inner = 0.9 * min(theta, math.pi - theta)
            step = (
                2
                * math.pi
                * inner
                * s
                * s
                / (16 + strip_growth(s, np.full_like(s, -order), theta, inner))
            )
            short = ((high - low) / step <= 1500)[:, 0]
            if short.any():
                found = self[short]._moduli(order, edges, theta, step[short], log_moment[short])
                best[short] = np.minimum(best[short], found)
        return best

    def _moduli(
        self, order: float, edges: Reals, theta: float, step: Reals, log_moment: Reals
    ) -> Reals:
        """log of the bound by one shift, from sums of moduli."""
        s = self.noise
        x = positions(*self._range(order), step)
        (plus, turn_plus), (minus, turn_minus) = (
            on_shifted(s, self.rate, side, theta) for side in (x, -x)
        )
        log_term = np.log(step / s) - 0.5 * math.log(2 * math.pi) - x * x / (2 * s * s) - log_moment
        log_term = log_term + (order + 1) * minus - order * plus
        turned = (turn_plus + turn_minus) * (1 - 8 * U)
        decayed = applied(np.exp(-edges[:, None] * turned[:, None, :]), np.exp(log_term))
        ends = self._beyond(x, np.exp(log_term[:, :1]), np.exp(log_term[:, -1:]), order, step)
        return theta * theta * s * s / 2 + np.log(decayed + 2.1 * math.exp(-16.0) + ends) + 1e-9

    def _beyond(self, x: Reals, first: Reals, last: Reals, order: float, step: Reals) -> Reals:
        """The terms beyond the first and the last one, shape (m, 1)."""
        falls = (
            step * x[:, -1:] / self.noise**2,
            step * self._slope(x[:, :1], order) / self.noise**2,
        )
        right, left = (np.expm1(np.minimum(each, 700.0)) for each in falls)
        return last / right + first / left

    def _shifted_line(self, order: float, frequencies: Reals) -> Line:
        """M(order + iu) of each row as an integral over Im x = -theta s^2; as in `sampled_gaussian`."""
        s, q = self.noise, self.rate
        theta = np.minimum(1.2, 1.5 / s)
        while (steep := (order * -np.log(np.cos(theta)) > 6) & (theta > 0.05)).any():
            theta = np.where(steep, 0.7 * theta, theta)
        upper = 2 * theta * theta * s * s - order * np.log(np.cos(theta))
        step = shortened(2 * math.pi * theta * s * s / (38.001 + upper))
        low, high = self._range(order)
        if not float(((high - low) / step).max()) <= _MOST_POINTS:
            return unknown(len(s), len(frequencies))
        x = positions(low, high, step)
        (plus, turn_plus), (minus, turn_minus) = (on_shifted(s, q, side, theta) for side in (x, -x))
        log_weight = (
            np.log(step / s)
            - 0.5 * math.log(2 * math.pi)
            + theta * theta * s * s / 2
            - x * x / (2 * s * s)
        )
        exponent = log_weight + (order + 1) * minus - order * plus
        top = row_tops(exponent)
        size = np.exp(exponent - top)
        phase = (order + 1) * turn_minus + order * turn_plus + x * theta
        wide = np.abs(minus) + np.abs(plus) + turn_minus + turn_plus
        term_error = U * (
            4 * x.shape[-1]
            + 96
            + 4 * ULPS * (2 + np.abs(log_weight) + (order + 1) * wide + np.abs(x) * theta)
        )
        value = exponential_sums(
            frequencies,
            size * (np.cos(phase) + 1j * np.sin(phase)),
            1j * (minus - plus) - (turn_minus + turn_plus),
        )
        faded = size * np.exp(-frequencies[0] * (turn_minus + turn_plus))
        sum_error = row_dots(faded, term_error) + 16 * ULPS * U * frequencies * row_dots(
            faded, wide
        )
        tails = self._beyond(x, size[:, :1], size[:, -1:], order, step)
        # On the real line this step misses e^-38 of M.
        real = log_weight - theta * theta * s * s / 2
        log_m = (
            log_sum(real + (order + 1) * log_ratio(-x, s, q) - order * log_ratio(x, s, q)) + 1e-9
        )
        strip = (
            1.05
            * (np.exp(-38 - upper) + math.exp(-38.0))
            * 2
            * np.exp(np.maximum(log_m - top, -700.0))
        )
        line = logarithm_of_excess(value.real - 1, value.imag, sum_error + tails + strip)
        return Line(line.log + top, line.error + 8 * U * (np.abs(top) + 1))


def _argument(weight: Reals, theta: float) -> Reals:
    """arg r on Im x = theta s^2 from w, in [0, theta]."""
    return np.arctan2(weight * math.sin(theta), 1 - weight * (2 * math.sin(theta / 2) ** 2))


_TOGETHER = 32
"""Rows that share arrays."""


@dataclass(frozen=True)
class ReplacedGaussianLoss(Loss):
    """The same in both orders, by the symmetry x -> -x.

    Args:
        noise: sigma / sensitivity, > 0, good to one unit of roundoff.
        rate: The sampling rate, in (0, 1).
    """

    noise: float
    rate: float

    @property
    def maximum(self) -> float:
        return math.inf

    @property
    def minimum(self) -> float:
        return -math.inf

    def transform(self, times: int) -> Transform:
        return _summed([(self, times)])

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses of similar noise in rows of one transform."""
        rows = sorted(group, key=lambda entry: entry[0].noise)
        return [_summed(rows[at : at + _TOGETHER]) for at in range(0, len(rows), _TOGETHER)]

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        """P(x < c) - e^epsilon Q(x < c) at the point c where the loss is epsilon.

        c = s^2 (asinh(-A sinh(epsilon / 2)) - epsilon / 2), A = (1 - q) / q e^(1 / (2 s^2)). A test at another c would
        be worse only to second order in its distance, so that the rounding of c does not matter next to that of the
        four terms.
        """
        s, q = self.noise, self.rate
        half = epsilon / 2
        steep = math.log1p(-q) - math.log(q) + 1 / (2 * s * s)
        c = s * s * (_asinh_scaled(steep, half) - half)
        plus = ((1 - q, c / s), (q, (c + 1) / s))
        minus = ((math.log1p(-q), c / s), (math.log(q), (c - 1) / s))
        # Where the loss is above epsilon, e^epsilon Q is below P: no exponent is positive.
        values = [weight * _below(z) for weight, z in plus]
        values += [
            -math.exp(min(epsilon + log_weight + float(log_ndtr(z)), 0.0))
            for log_weight, z in minus
        ]
        places = [z for _, z in plus + minus]
        error = math.fsum(
            abs(value) * U * (64 + 16 * z * z + 8 * abs(epsilon))
            for value, z in zip(values, places, strict=True)
        )
        floor = -math.expm1(epsilon) * (1 - 8 * U) if epsilon < 0 else 0.0
        value = math.fsum(values)
        return Bound(
            max(value - error, floor, 0.0),
            min(up(max(value + error, floor * (1 + 32 * U), 1e-320)), 1.0),
        )

    def ball(self, field: Field) -> Ends:
        return ends(
            self.noise,
            lambda noise: ReplacedMoments(field, noise, field.exact(self.rate)),
            field=field,
            ulps=1,
            rising=False,
        )


def _summed(rows: Sequence[tuple[ReplacedGaussianLoss, int]]) -> ReplacedGaussianSum:
    columns = np.array([(loss.noise, loss.rate, times) for loss, times in rows], dtype=float)
    return ReplacedGaussianSum(columns[:, 0:1], columns[:, 1:2], columns[:, 2:3])


def _below(z: float) -> float:
    """P(N <= z); far out through its logarithm, because ndtr loses digits before it underflows."""
    return float(ndtr(z)) if z > -30 else math.exp(float(log_ndtr(z)))


def _asinh_scaled(log_scale: float, half: float) -> float:
    """asinh(-e^log_scale sinh(half)), without overflow."""
    if half == 0:
        return 0.0
    log_size = log_scale + abs(half) + math.log(-math.expm1(-2 * abs(half)) / 2)
    size = log_size + math.log(2) if log_size > 300 else math.asinh(math.exp(log_size))
    return -math.copysign(size, half)
