"""One mixture of normal distributions against another whose means have the other sign: the moments of the loss.

P = sum of p_i N(a_i, 1), Q = sum of q_j N(-b_j, 1), and N = N(0, 1) between them, all means >= 0. With r and s the
ratios of the two mixtures to N, both turned to the right (`gaussian_mixture`), the loss at x is log r(x) - log s(-x),
which rises with x, and
  M(t) = E_N r(x)^(t + 1) s(-x)^-t.
On Im x = y both arguments add up: |r^(t + 1) s^-t| <= r^(l + 1) s^-l cos(width of s y / 2)^-l e^(u (a_y + b_y)) at
t = l + iu, and with e^(-u (a_y + b_y)) if y > 0.

These are the losses of groups. A group of which i members are in the sum moves its mean by at most i, whatever the
directions. For every event A, with z the normal quantile of N(A), P(A) <= sum of p_i Phi(z + i) and
Q(A) >= sum of q_j Phi(z - j); the half-lines attain all of these at once. So P(A) - e^x Q(A) is largest for the two
mixtures on a line, if P is the world of the members removed, Q that of those added, and N that without either. Given
everything else that is random the same holds of the sum that this moves; and a mixture over that costs no more.

Many pairs are held in rows: what differs between them is a column, and no sum runs over two of them.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpcompose.contour import (
    Cumulants,
    Line,
    careful_nodes,
    joined,
    logarithm_of_excess,
    remembered,
)
from dpcompose.loss.gaussian_mixture import (
    MixtureGrid,
    MixtureRows,
    OpposedMixtures,
    Tilt,
    points_at,
)
from dpcompose.loss.sampled_gaussian_grid import shortened
from dpcompose.numerics import Reals, U, exponential_sums, row_dots, row_sums, row_tops

_MOST_POINTS, _MOST_ENTRIES = 60_000, 1 << 21
_FEW_POINTS, _FEW_TERMS = 600, 400_000
_STRIPS = 0.02 * 2.5 ** np.arange(6.0)
_WIDEST = 8.4
_SHARES, _SHIFTS = np.array([0.3, 0.6, 1.0]), np.array([0.15, 0.4, 1.0, 1.5])
_SIXTY_FOUR = np.linspace(0.0, 1.0, 64)
_MANY, _NEGLIGIBLE, _STEEP = 1e8, 1e-24, 20.0


@dataclass(frozen=True, eq=False)
class MixtureQuadrature:
    """M of one copy of each row by trapezoid sums, each error small enough for all copies.

    Args:
        first: P of each row.
        second: Q of each row, mirrored.
        times: How many copies there will be, shape (m, 1).
    """

    first: MixtureRows
    second: MixtureRows
    times: Reals

    @staticmethod
    def of(pairs: Sequence[OpposedMixtures], times: Sequence[float]) -> MixtureQuadrature:
        """Pairs whose mixtures have equally many terms."""
        first, second = [pair.first for pair in pairs], [pair.second for pair in pairs]
        column = np.array(times, dtype=float)[:, None]
        return MixtureQuadrature(MixtureRows.of(first), MixtureRows.of(second), column)

    @cached_property
    def _each(self) -> list[MixtureQuadrature]:
        """Every row as a quadrature of its own."""
        rows = [slice(at, at + 1) for at in range(len(self.times))]
        return [MixtureQuadrature(self.first[at], self.second[at], self.times[at]) for at in rows]

    @cached_property
    def _mirrored(self) -> bool:
        """Whether P and Q are mirror images, made of the same numbers."""
        one, two = self.first, self.second
        return np.array_equal(one.means, two.means) and np.array_equal(one.weights, two.weights)

    @cached_property
    def _side(self) -> Reals:
        """How far a normal distribution reaches."""
        return np.sqrt(2 * (39 + np.log(self.times)))

    @cached_property
    def _width(self) -> Reals:
        """The larger distance of two means of one mixture, not 0."""
        return np.maximum(np.maximum(self.first.width, self.second.width), 1e-9)

    @cached_property
    def _coarse_step(self) -> Reals:
        return shortened(np.minimum(0.35, 1.5 / np.maximum(self._width, 1e-3)))

    def _reach(self, order: float) -> float:
        """A power of 1.25 at or above order + 1, so that neighboring orders share a grid."""
        return 1.25 ** math.ceil(math.log(order + 1) / math.log(1.25) - 1e-9)

    @remembered
    def _grid(self, reach: float, step: Reals) -> MixtureGrid | None:
        """The grid for all orders below `reach`, None if it is too long; rows with fewer points go
        on to the right.
        """
        if not bool((step > 0).all()):
            return None
        low = -self.second.largest - self._side
        high = reach * self.first.largest + self._rightmost(reach) + self._side
        points = float(((high - low) / step).max())
        entries = len(step) * (self.first.means.shape[1] + self.second.means.shape[1])
        if not points <= min(_MOST_POINTS, _MOST_ENTRIES / entries):
            return None
        zero = np.where(np.isfinite(self._zero), self._zero, 0.5 * step)
        share = np.rint((zero / step - 0.5) % 1.0 * 64) / 64
        first: Reals = np.floor(low / step) - 1 + share
        x: Reals = step * (first + np.arange(math.ceil(points) + 3))
        one, two = self.first.at(x), self.second.at(-x)
        opposed = self.first.opposed_excess(x) if self._mirrored else None
        return MixtureGrid(x, step, one, two, points_at(x, step, one, two, opposed))

    @cached_property
    def _zero(self) -> Reals:
        """About where the loss is 0; infinite if that is far out."""
        low, high = -40.0 - self.second.largest, 40.0 + self.first.largest
        inside = np.ones(low.shape, dtype=bool)
        for _ in range(4):
            x = low + (high - low) * _SIXTY_FOUR
            negative = self.first.at(x).log < self.second.at(-x).log
            at = negative.sum(axis=1)
            inside &= ((at > 0) & (at < x.shape[1]))[:, None]
            at = np.minimum(np.maximum(at, 1), x.shape[1] - 1)
            low, high = _at(x, at - 1), _at(x, at)
        return np.where(inside, (low + high) / 2, np.inf)

    @remembered
    def _rightmost(self, reach: float) -> Reals:
        """The place from which on x is larger than the derivative of order log s: beyond it, and beyond the means of P,
        the integrand falls."""
        low, high = np.zeros_like(self.times), reach * self.second.largest
        for _ in range(2):
            x = low + (high - low) * _SIXTY_FOUR
            falls = reach * self.second.at(-x).slope <= x
            falls[:, -1] = True
            at = falls.argmax(axis=1)
            low, high = _at(x, np.maximum(at - 1, 0)), _at(x, at)
        return high

    def _coarse(self, order: float) -> MixtureGrid | None:
        return self._grid(self._reach(order), self._coarse_step)

    def curve(self, orders: Reals) -> Cumulants:
        """K and its derivatives, for planning, shape (m, n); infinite where too many points would be needed."""
        grid = self._coarse(float(orders.max()))
        if grid is not None:
            return grid.points.curve(orders[None, :] + 1)
        if len(self.times) == 1:
            return Cumulants(*np.full((3, 1, len(orders)), np.inf))
        each = [one.curve(orders) for one in self._each]
        return Cumulants(
            np.concatenate([at.log_m for at in each]),
            np.concatenate([at.first for at in each]),
            np.concatenate([at.second for at in each]),
        )

    def line(self, order: float, frequencies: Reals) -> Line:
        """log M(order + iu), shape (m, n): on the real line up to where it would take many points, beyond on a shifted
        one."""
        cut = len(frequencies)
        step, error = self._step(order, float(frequencies[-1]))
        while cut > 1 and self._many_points(order, step, cut):
            third = int(frequencies.searchsorted(float(frequencies[cut - 1]) / 3, side="right"))
            cut = max(1, min(cut - 1, third))
            step, error = self._step(order, float(frequencies[cut - 1]))
        near = self._on_real_line(order, frequencies[:cut], step, error)
        whole = cut == len(frequencies)
        far = near if whole else self._on_shifted_line(order, frequencies[cut:])
        if (near is None or far is None) and len(self.times) > 1:
            lines = [one.line(order, frequencies) for one in self._each]
            return Line(
                np.concatenate([one.log for one in lines]),
                np.concatenate([one.error for one in lines]),
            )
        near = near or _unknown(cut)
        return near if whole else joined(near, far or _unknown(len(frequencies) - cut))

    def _many_points(self, order: float, step: Reals, count: int) -> bool:
        """Whether the real line takes many points for so many frequencies."""
        reach = self._reach(order)
        ends = self.second.largest + reach * self.first.largest + self._rightmost(reach)
        few = max(_FEW_POINTS, min(_FEW_TERMS / count, 0.2 * _MOST_POINTS))
        return not bool((step * few > ends + 2 * self._side).all())

    def _on_real_line(
        self, order: float, frequencies: Reals, step: Reals, step_error: Reals
    ) -> Line | None:
        """log M by the trapezoid sum with a given step on the real line; the logarithm of the step's error is an
        argument."""
        grid = self._grid(self._reach(order), step)
        if grid is None:
            return None
        top = np.maximum(row_tops(grid.exponent(order)), 0.0)
        ends, plain = self._outside(grid, order, top)
        omitted = np.exp(step_error - top) + ends + (order + 2 + frequencies) * plain
        most = float(self.times.max())
        return grid.points.line(
            order + 1,
            frequencies,
            sign=1.0,
            omitted=omitted,
            careful=careful_nodes(most),
            plain=not most > _MANY,
        )

    def _on_shifted_line(self, order: float, frequencies: Reals) -> Line | None:
        """The trapezoid sum on Im x = theta. From 0 up to 2 theta no argument is negative, so that the integrand is at
        most as at u = 0, and the step depends on no frequency; the error is absolute in M(order)."""
        theta, step, growth = self._shift(order)
        grid = self._grid(self._reach(order), step)
        if grid is None:
            return None
        one, two = (each.rotated(tilt, theta) for each, tilt in self._sides(grid))
        loss, angle = grid.points.ratio + one.log - two.log, one.angle + two.angle
        exponent = (
            grid.exponent(order) + theta * theta / 2 + (order + 1) * one.log - order * two.log
        )
        top = row_tops(exponent)
        size = np.exp(exponent - top)
        phase = (order + 1) * one.angle + order * two.angle - grid.x * theta
        faded = size * np.exp(-frequencies[0] * angle)
        kept = (faded >= np.minimum(_NEGLIGIBLE, row_tops(faded))).any(axis=0)
        dropped = row_sums(faded[:, ~kept])
        amplitude = size * (np.cos(phase) + 1j * np.sin(phase))
        value = exponential_sums(frequencies, amplitude[:, kept], (1j * loss - angle)[:, kept])
        wide = np.abs(loss) + angle
        moved = 4 + np.abs(exponent) + (order + 1) * wide + np.abs(grid.x) * theta
        term = U * (4 * size.shape[1] + 96 + 16 * moved)
        places = (grid.x, grid.first, one), (-grid.x, grid.second, two)
        sides = zip((self.first, self.second), places, strict=True)
        ratio = sum((each.turned_error(*place, theta) for each, place in sides), 64 * U * wide)
        error = row_dots(faded, term + (order + 1) * ratio) + frequencies * row_dots(faded, ratio)
        log_m = _log_total(self._cells(grid, order))
        strip = 2.1 * np.exp(growth - 2 * math.pi * theta / step + log_m - top)
        raised = theta * theta / 2 - order * np.log(np.cos(self.second.width * theta / 2))
        ends = self._outside(grid, order, top)[0] * np.exp(raised)
        found = logarithm_of_excess(value.real - 1, value.imag, error + strip + ends + dropped)
        return Line(found.log + top, found.error + 8 * U * (np.abs(top) + 1))

    def _shift(self, order: float) -> tuple[Reals, Reals, Reals]:
        """theta with the largest step among those that cancel little, that step, and log of how much larger the
        integrand may be at 2 theta."""
        theta = np.minimum(0.45 * math.pi / self._width, 3.0) * 0.7 ** np.arange(16.0)
        steep = -order * np.log(np.cos(self.second.width * theta))
        growth = 2 * theta * theta + steep
        step = 2 * math.pi * theta / (38 + np.log(self.times) + growth)
        best = np.where((steep < _STEEP) | (theta == theta[:, -1:]), step, 0.0).argmax(axis=1)
        return _at(theta, best), _rounded(_at(step, best), 8), _at(growth, best)

    def _cells(self, grid: MixtureGrid, order: float) -> Reals:
        """log of a bound on the integral of the integrand from each point to the next; before the first, after the
        last. Left of every point its slope rises by less than the point's own."""
        exponent, one, two = grid.exponent(order), grid.first.slope, grid.second.slope
        slope = -grid.x[:, :-1] + (order + 1) * one[:, 1:] + order * two[:, :-1]
        inner = exponent[:, :-1] + grid.step * np.maximum(slope, 0.0)
        left, right = self._falling(grid, order)
        beyond = np.where(right > 0, exponent[:, -1:] - np.log(np.maximum(right, 1e-300)), np.inf)
        return np.concatenate([exponent[:, :1] - np.log(left), inner, beyond], axis=1) + 1e-9

    def _sides(self, grid: MixtureGrid) -> tuple[tuple[MixtureRows, Tilt], ...]:
        return (self.first, grid.first), (self.second, grid.second)

    def _falling(self, grid: MixtureGrid, order: float) -> tuple[Reals, Reals]:
        """How much at least the integrand falls in a step to the left of all points, where x < 0, and to the right;
        there it may rise if it is not positive."""
        slope = order * grid.second.slope[:, -1:]
        right = grid.x[:, -1:] - (order + 1) * self.first.largest - slope
        return -grid.x[:, :1] * grid.step, right * grid.step

    def _outside(self, grid: MixtureGrid, order: float, top: Reals) -> tuple[Reals, Reals]:
        """Bounds on the terms of M beyond the points, in units of e^top, and on those of P and Q."""
        exponent, first, last = grid.exponent(order) - top, grid.x[:, :1], grid.x[:, -1:]
        left, right = self._falling(grid, order)
        q, ratio = grid.points.log_weight[:, [0, -1]], grid.points.ratio[:, [0, -1]]
        slopes = (-first - self.second.largest, last, -first, last - self.first.largest)
        logs = np.concatenate([exponent[:, [0, -1]], q, q + ratio], axis=1)
        found = _beyond(
            logs, np.concatenate([left, right, *(grid.step * each for each in slopes)], axis=1)
        )
        return row_sums(found[:, :2]), 1.1 * row_sums(found[:, 2:])

    def _step(self, order: float, reach: float) -> tuple[Reals, Reals]:
        """The largest steps whose errors are below e^-35 / times relative to M, and log of those errors; (0, inf) if
        there is none.

        In a strip of half-width y the integrand and what is subtracted from it are at most e^(norm) in the mean.
        """
        step, error = np.zeros_like(self.times), np.full_like(self.times, np.inf)
        grid = self._coarse(order)
        if grid is None:
            return step, error
        cells = self._cells(grid, order)
        wanted = 35 + np.log(self.times) - np.maximum(_log_total(cells) - 2.0, 0.0)
        widest = np.minimum(_WIDEST, 0.95 * math.pi / self._width)
        for share in (_STRIPS / _STRIPS[-1]).tolist():
            y = widest * share
            norm = self._norm(grid, cells, order, reach, y) + 1.1
            wide = 2 * math.pi * y / np.maximum(wanted + norm, 1.0)
            better = wide > step * 1.2
            step = np.where(better, _rounded(wide, 4), step)
            error = np.where(better, norm - 2 * math.pi * y / step, error)
        return step, error

    def _norm(self, grid: MixtureGrid, cells: Reals, order: float, reach: float, y: Reals) -> Reals:
        """log of a bound on the integral over the edge of the strip. The argument of r(x) rises with x, that of s(-x)
        falls: in a cell they are at most those of its ends."""
        if reach > 0:
            one, two = (each.rotated(tilt, y).angle for each, tilt in self._sides(grid))
            turn = np.concatenate([one, self.first.largest * y], axis=1)
            cells = cells + reach * (turn + np.concatenate([self.second.largest * y, two], axis=1))
        grown = _log_total(cells) - order * np.log(np.cos(self.second.width * y / 2))
        return y * y / 2 + np.logaddexp(grown, math.log(2 * (order + 2 + reach)))

    def log_envelope(self, order: float, edges: Reals, floor: Reals, *, finest: bool) -> Reals:
        """log of a bound on |M(order + iu)| / M(order) for all u from each edge on, shape (m, n), `floor` below
        log M(order), shape (m, 1).

        On Im x = theta the integral of the moduli is one of an analytic function: in the strip of half-width eta
        around the real line it is at most as on it, but for the cosines, where (theta + eta) width is below two right
        angles and the real part of the turn is not negative. That is the mean of the turns at theta + eta and at
        theta - eta, odd in the height: so eta <= theta is enough, and so is (theta + eta) width below a right angle,
        up to which the turn rises with the height. The integral falls with u.
        """
        best = np.zeros((len(self.times), len(edges)))
        grid = self._coarse(order)
        if grid is not None and bool(np.all(edges < math.inf)):
            theta = self._thetas(grid, order, edges)
            if finest:
                theta = np.concatenate([theta, _SHIFTS / self._width], axis=1)
            depth = 12 + np.log(self.times)
            quarter = math.pi / 2 / self._width
            room = np.maximum(quarter - theta, np.minimum(theta, 1.9 * quarter - theta))
            room = np.minimum(room, 6.0)
            eta = room[:, :, None] * _SHARES
            growth = self._strip_growth(order, theta[:, :, None], eta)
            chosen = (eta / (depth[:, :, None] + growth)).argmax(axis=2)[:, :, None]
            growth, eta = (
                np.take_along_axis(each, chosen, axis=2)[:, :, 0] for each in (growth, eta)
            )
            step = (2 * math.pi * eta / (depth + growth)).min(axis=1, keepdims=True)
            grid = self._grid(self._reach(order), _rounded(step, 8))
            if grid is not None:
                # The moduli are at most those on the real line, but for the cosines of s.
                omitted = 2.8 * np.exp(growth + 0.01 - 2 * math.pi * eta / grid.step)
                omitted = omitted + self._outside(grid, order, floor)[0] * np.exp(growth)
                best = self._shifted(grid, order, theta, omitted, edges, floor, finest=finest)
        if grid is None and len(self.times) > 1:
            each = enumerate(self._each)
            bounds = [
                one.log_envelope(order, edges, floor[at : at + 1], finest=finest)
                for at, one in each
            ]
            return np.concatenate(bounds)
        best = np.minimum.accumulate(np.minimum(best, 0.0), axis=1)
        return np.where(np.isfinite(floor) & (best <= 0), best, 0.0)

    def _thetas(self, grid: MixtureGrid, order: float, edges: Reals) -> Reals:
        """For each edge about the best shift: that of a quadratic model."""
        exponent = grid.exponent(order)
        share = np.exp(exponent - row_tops(exponent))
        share /= row_sums(share)
        slope = grid.first.slope + grid.second.slope
        mean = row_dots(share, slope)
        spread = np.maximum(row_dots(share, np.square(slope)) - mean * mean, 0.0)
        most = np.minimum(0.6 * math.pi / 2 / self._width, 3.0)
        return np.minimum(edges * mean / (1 + edges * edges * spread), most)

    def _shifted(
        self,
        grid: MixtureGrid,
        order: float,
        theta: Reals,
        omitted: Reals,
        edges: Reals,
        floor: Reals,
        *,
        finest: bool,
    ) -> Reals:
        """The bound at each edge by its own shift, or the best of all; shape (m, n)."""
        exponent, factor = grid.exponent(order) - floor, 1 + self._rounding(grid, order)
        best = np.full((len(theta), len(edges)), np.inf)
        for at in range(theta.shape[1]):
            here = slice(at, at + 1)
            one, two = (each.rotated(tilt, theta[:, here]) for each, tilt in self._sides(grid))
            moduli = exponent + (order + 1) * one.log - order * two.log
            angle, chosen = (one.angle + two.angle) * (1 - 64 * U), slice(None) if finest else here
            decayed = moduli[:, None, :] - edges[chosen, None] * angle[:, None, :]
            total = np.exp(np.minimum(decayed, 700.0)).sum(axis=2) * factor + omitted[:, here]
            bound = np.square(theta[:, here]) / 2 + np.log(total)
            best[:, chosen] = np.fmin(best[:, chosen], bound)
        return best

    def _strip_growth(self, order: float, theta: Reals, eta: Reals) -> Reals:
        width = self.second.width.reshape(-1, *(1,) * (eta.ndim - 1))
        above, below = (np.log(np.cos(width * (theta + side * eta) / 2)) for side in (1, -1))
        return eta * eta / 2 - order / 2 * (above + below)

    def _rounding(self, grid: MixtureGrid, order: float) -> Reals:
        """A bound on the relative error of the terms that matter."""
        exponent, points = grid.exponent(order), grid.points
        error = points.weight_error + (order + 2) * points.ratio_error * np.abs(points.ratio)
        error = error + U * (64 * (order + 2) + 4 * np.abs(exponent) + exponent.shape[1])
        return 2 * row_tops(np.where(exponent > row_tops(exponent) - 60, error, 0.0))


def _unknown(count: int) -> Line:
    return Line(np.zeros((1, count), dtype=np.complex128), np.full((1, count), np.inf))


def _at(each: Reals, index: Any) -> Reals:
    """The entry of each row at its own index, as a column."""
    return each[np.arange(len(each)), index][:, None]


def _log_total(exponents: Reals) -> Reals:
    """log of the sum of e^exponents of each row, shape (m, 1); infinite where one of them is."""
    top = np.minimum(row_tops(exponents), 1e300)
    return top + np.log(row_sums(np.exp(exponents - top)))


def _rounded(step: Reals, parts: int) -> Reals:
    """The next lower power of 2^(1 / parts), with few digits so that its small multiples are exact."""
    return shortened(2.0 ** (np.floor(parts * np.log2(step)) / parts))


def _beyond(log: Reals, fall: Reals) -> Reals:
    """A bound on the sum of all terms after one whose logarithm is given, if each is at most e^-fall times the one
    before."""
    least = np.maximum(fall, 1e-300)
    return np.where(fall > 0, np.exp(log - least) / -np.expm1(-least) * (1 + 16 * U), np.inf)
