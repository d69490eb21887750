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

The sum of many equal losses of opposed mixtures, chosen by a public coin, as a transform.

Reference: [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpcompose.contour import Cumulants, Line, Transform, careful_nodes, joined, logarithm_of_excess
from dpcompose.loss.gaussian_mixture import (
    GaussianMixture,
    MixtureGrid,
    OpposedMixtures,
    Tilt,
    points_at,
    shortened,
)
from dpcompose.numerics import Reals, U, exp_or_inf, exponential_sums, log_sum_exp

_MOST_POINTS, _MOST_ENTRIES = 60_000, 1 << 21
_FEW_POINTS, _FEW_TERMS = 600, 400_000
_STRIPS = 0.02 * 2.5 ** np.arange(6.0)
_WIDEST = 8.4
_SHARES = (0.3, 0.6, 1.0)
_MANY, _NEGLIGIBLE = 1e8, 1e-24


@dataclass(frozen=True, eq=False)
class MixtureQuadrature:
    """M of one copy by trapezoid sums, each error small enough for `times` copies.

    Args:
        pair: P and Q.
        times: How many copies there will be.
    """

    pair: OpposedMixtures
    times: float
    _grids: dict[tuple[float, float], MixtureGrid | None] = field(
        default_factory=dict[tuple[float, float], "MixtureGrid | None"]
    )
    _ends: dict[float, float] = field(default_factory=dict[float, float])

    @cached_property
    def _side(self) -> float:
        """How far a normal distribution reaches."""
        return math.sqrt(2 * (39 + math.log(self.times)))

    @cached_property
    def _coarse_step(self) -> float:
        return shortened(min(0.35, 1.5 / max(self.pair.width, 1e-3)))

    def _reach(self, order: float) -> float:
        """A power of 1.25 at or above order + 1, so that neighboring orders share a grid."""
        return 1.25 ** math.ceil(math.log(order + 1) / math.log(1.25) - 1e-9)

    def _grid(self, reach: float, step: float) -> MixtureGrid | None:
        """The grid for all orders below `reach`; None if it is too long."""
        key = reach, step
        if key not in self._grids:
            self._grids[key] = self._built(reach, step)
        return self._grids[key]

    def _built(self, reach: float, step: float) -> MixtureGrid | None:
        first, second = self.pair.first, self.pair.second
        low = -second.largest - self._side
        high = reach * first.largest + self._rightmost(reach) + self._side
        terms = len(first.means) + len(second.means)
        if not (high - low) / step <= min(_MOST_POINTS, _MOST_ENTRIES / terms):
            return None
        zero = self.pair.zero
        share = round((zero / step - 0.5) % 1.0 * 64) / 64 if math.isfinite(zero) else 0.0
        start, count = math.floor(low / step) - 1, math.ceil((high - low) / step) + 3
        x = step * (start + share + np.arange(count))
        one, two = first.at(x), second.at(-x)
        return MixtureGrid(x, step, one, two, points_at(x, step, one, two))

    def _rightmost(self, reach: float) -> float:
        """Where x outgrows order d log s: beyond it and the means of P the integrand falls."""
        if reach not in self._ends:
            self._ends[reach] = self._bisected(reach)
        return self._ends[reach]

    def _bisected(self, reach: float) -> float:
        x = np.linspace(0.0, reach * self.pair.second.largest, 64)
        falls = reach * self.pair.second.at(-x).slope <= x
        return float(x[falls.argmax()]) if falls.any() else float(x[-1])

    def _coarse(self, order: float) -> MixtureGrid | None:
        return self._grid(self._reach(order), self._coarse_step)

    def curve(self, orders: Reals) -> Cumulants:
        """K and its derivatives, for planning; infinite where too many points would be needed."""
        grid = self._coarse(float(orders.max()))
        if grid is None:
            return Cumulants(*np.full((3, len(orders)), np.inf))
        return grid.points.curve(orders + 1)

    def line(self, order: float, frequencies: Reals) -> Line:
        """log M(order + iu): on the real line up to where it would take many points, beyond on a shifted one."""
        cut = len(frequencies)
        step, error = self._step(order, float(frequencies[-1]))
        while cut > 1 and not step * max(_FEW_POINTS, _FEW_TERMS / cut) > self._span(order):
            cut = max(
                1,
                min(
                    cut - 1,
                    int(np.searchsorted(frequencies, frequencies[cut - 1] / 3, side="right")),
                ),
            )
            step, error = self._step(order, float(frequencies[cut - 1]))
        near = self._on_real_line(order, frequencies[:cut], step, error)
        return (
            near
            if cut == len(frequencies)
            else joined(near, self._on_shifted_line(order, frequencies[cut:]))
        )

    def _span(self, order: float) -> float:
        """About the length of a grid."""
        reach = self._reach(order)
        ends = self.pair.second.largest + reach * self.pair.first.largest + self._rightmost(reach)
        return ends + 2 * self._side

    def _on_real_line(
        self, order: float, frequencies: Reals, step: float, step_error: float
    ) -> Line:
        """The trapezoid sum of that step, of which log of the error is given."""
        grid = self._grid(self._reach(order), step) if step > 0 else None
        if grid is None:
            return _unknown(len(frequencies))
        top = max(float(grid.exponent(order).max()), 0.0)
        ends, plain = self._outside(grid, order, top)
        omitted = exp_or_inf(step_error - top) + ends + (order + 2 + frequencies) * plain
        return grid.points.line(
            order + 1,
            frequencies,
            sign=1.0,
            omitted=omitted,
            careful=careful_nodes(self.times),
            plain=not self.times > _MANY,
        )

    def _on_shifted_line(self, order: float, frequencies: Reals) -> Line:
        """The trapezoid sum on Im x = theta. From 0 up to 2 theta no argument is negative, so that the integrand is at
        most as at u = 0, and the step depends on no frequency; the error is absolute in M(order)."""
        theta, step, growth = self._shift(order)
        grid = self._grid(self._reach(order), step)
        if grid is None:
            return _unknown(len(frequencies))
        one, two = (each.turned(tilt, theta) for each, tilt in self._sides(grid))
        loss, angle = grid.points.ratio + one.log - two.log, one.angle + two.angle
        exponent = (
            grid.exponent(order) + theta * theta / 2 + (order + 1) * one.log - order * two.log
        )
        top = float(exponent.max())
        size, phase = (
            np.exp(exponent - top),
            (order + 1) * one.angle + order * two.angle - grid.x * theta,
        )
        faded = size * np.exp(-frequencies[0] * angle)
        kept = faded >= min(_NEGLIGIBLE, float(faded.max()))
        dropped = float(faded[~kept].sum())
        amplitude = size * (np.cos(phase) + 1j * np.sin(phase))
        value = exponential_sums(frequencies, amplitude[kept], (1j * loss - angle)[kept])
        wide = np.abs(loss) + angle
        term = U * (
            4 * len(size)
            + 96
            + 16 * (4 + np.abs(exponent) + (order + 1) * wide + np.abs(grid.x) * theta)
        )
        places = (grid.x, grid.first, one), (-grid.x, grid.second, two)
        sides = zip((self.pair.first, self.pair.second), places, strict=True)
        ratio = sum((each.turned_error(*place, theta) for each, place in sides), 64 * U * wide)
        error = float(faded @ (term + (order + 1) * ratio)) + frequencies * float(faded @ ratio)
        log_m = log_sum_exp(self._cells(grid, order))
        strip = 2.1 * exp_or_inf(growth - 2 * math.pi * theta / step + log_m - top)
        ends = self._outside(grid, order, top)[0] * exp_or_inf(growth)
        found = logarithm_of_excess(value.real - 1, value.imag, error + strip + ends + dropped)
        return Line(found.log + top, found.error + 8 * U * (abs(top) + 1))

    def _shift(self, order: float) -> tuple[float, float, float]:
        """theta with the largest step, that step, and log of how much larger the integrand may be at 2 theta."""
        width, depth = self.pair.second.width, 38 + math.log(self.times)
        best = 0.0, 0.0, 0.0
        for theta in (
            min(0.45 * math.pi / max(self.pair.width, 1e-9), 3.0) * 0.7 ** np.arange(12.0)
        ).tolist():
            growth = 2 * theta * theta - order * math.log(math.cos(width * theta))
            step = 2 * math.pi * theta / (depth + growth)
            best = max(best, (step, theta, growth))
        return best[1], shortened(2.0 ** (math.floor(8 * math.log2(best[0])) / 8)), best[2]

    def _cells(self, grid: MixtureGrid, order: float) -> Reals:
        """log of a bound on the integral of the integrand from each point to the next; before the first, after the
        last. Left of every point its slope rises by less than the point's own."""
        exponent = grid.exponent(order)
        slope = -grid.x[:-1] + (order + 1) * grid.first.slope[1:] + order * grid.second.slope[:-1]
        inner = exponent[:-1] + grid.step * np.maximum(slope, 0.0)
        left, right = self._falling(grid, order)
        beyond = exponent[-1] - math.log(right) if right > 0 else math.inf
        return np.concatenate([[exponent[0] - math.log(left)], inner, [beyond]]) + 1e-9

    def _sides(
        self, grid: MixtureGrid
    ) -> tuple[tuple[GaussianMixture, Tilt], tuple[GaussianMixture, Tilt]]:
        return (self.pair.first, grid.first), (self.pair.second, grid.second)

    def _falling(self, grid: MixtureGrid, order: float) -> tuple[float, float]:
        """How much at least the integrand falls in a step to the left of all points, where x < 0, and to the right;
        there it may rise if it is not positive."""
        right = float(
            grid.x[-1] - (order + 1) * self.pair.first.largest - order * grid.second.slope[-1]
        )
        return -float(grid.x[0]) * grid.step, right * grid.step

    def _outside(self, grid: MixtureGrid, order: float, top: float) -> tuple[float, float]:
        """Bounds on the terms of M beyond the points, in units of e^top, and on those of P and Q."""
        exponent, x = grid.exponent(order) - top, grid.x
        left, right = self._falling(grid, order)
        ends = _beyond(float(exponent[0]), left) + _beyond(float(exponent[-1]), right)
        q, p = grid.points.log_weight, grid.points.log_weight + grid.points.ratio
        falls = (
            (q[0], -x[0] - self.pair.second.largest),
            (p[0], -x[0]),
            (q[-1], x[-1]),
            (p[-1], x[-1] - self.pair.first.largest),
        )
        return ends, 1.1 * sum(
            _beyond(float(log), float(grid.step * slope)) for log, slope in falls
        )

    def _step(self, order: float, reach: float) -> tuple[float, float]:
        """The largest step whose error is below e^-35 / times relative to M, and log of that error; (0, inf) if there
        is none.

        In a strip of half-width y the integrand and what is subtracted from it are at most e^(norm) in the mean.
        """
        grid = self._coarse(order)
        if grid is None:
            return 0.0, math.inf
        cells = self._cells(grid, order)
        log_m = log_sum_exp(cells)
        wanted = 35 + math.log(self.times) - max(log_m - 2.0, 0.0)
        step, error = 0.0, math.inf
        widest = min(_WIDEST, 0.95 * math.pi / max(self.pair.width, 1e-9))
        for y in widest * _STRIPS / _STRIPS[-1]:
            norm = self._norm(grid, cells, order, reach, float(y)) + 1.1
            wide = 2 * math.pi * y / max(wanted + norm, 1.0)
            if wide > step * 1.2:
                step = shortened(2.0 ** (math.floor(4 * math.log2(wide)) / 4))
                error = norm - 2 * math.pi * float(y) / step
        return step, error

    def _norm(self, grid: MixtureGrid, cells: Reals, order: float, reach: float, y: float) -> float:
        """log of a bound on the integral over the edge of the strip. The argument of r(x) rises with x, that of s(-x)
        falls: in a cell they are at most those of its ends."""
        turn = np.zeros(len(cells))
        if reach > 0:
            last = np.full(1, self.pair.first.largest * y), np.full(1, self.pair.second.largest * y)
            one, two = (each.turned(tilt, y).angle for each, tilt in self._sides(grid))
            turn = np.concatenate([one, last[0]]) + np.concatenate([last[1], two])
        grown = log_sum_exp(cells + reach * turn) - order * math.log(
            math.cos(self.pair.second.width * y / 2)
        )
        return y * y / 2 + float(np.logaddexp(grown, math.log(2 * (order + 2 + reach))))

    def log_envelope(self, order: float, edges: Reals, floor: float, *, finest: bool) -> Reals:
        """log of a bound on |M(order + iu)| / M(order) for all u from each edge on, `floor` below log M(order).

        On Im x = theta the integral of the moduli is one of an analytic function: in the strip of half-width eta
        around the real line it is at most as on it, but for the cosines, as long as (theta + eta) width is below a
        right angle. It falls with u.
        """
        grid = self._coarse(order)
        if grid is None or not -math.inf < floor < math.inf or not np.all(edges < math.inf):
            return np.zeros(len(edges))
        thetas = self._thetas(grid, order, edges).tolist()
        depth, room = 12 + math.log(self.times), math.pi / 2 / max(self.pair.width, 1e-9)
        strips = [self._strip(order, theta, min(room - theta, 6.0), depth) for theta in thetas]
        step = min(2 * math.pi * eta / (depth + growth) for growth, eta in strips)
        grid = self._grid(
            self._reach(order), shortened(2.0 ** (math.floor(8 * math.log2(step)) / 8))
        )
        if grid is None:
            return np.zeros(len(edges))
        best = np.zeros(len(edges))
        for at, (theta, strip) in enumerate(zip(thetas, strips, strict=True)):
            asked = slice(None) if finest else slice(at, at + 1)
            best[asked] = np.minimum(
                best[asked], self._shifted(grid, order, theta, strip, edges[asked], floor)
            )
        return np.minimum.accumulate(best)

    def _thetas(self, grid: MixtureGrid, order: float, edges: Reals) -> Reals:
        """For each edge about the best shift: that of a quadratic model."""
        exponent = grid.exponent(order)
        share = np.exp(exponent - exponent.max())
        share /= share.sum()
        slope = grid.first.slope + grid.second.slope
        mean = float(share @ slope)
        spread = max(float(share @ np.square(slope)) - mean * mean, 0.0)
        most = min(0.6 * math.pi / 2 / max(self.pair.width, 1e-9), 3.0)
        return np.minimum(edges * mean / (1 + edges * edges * spread), most)

    def _strip(self, order: float, theta: float, room: float, depth: float) -> tuple[float, float]:
        """The half-width around Im x = theta that asks for the fewest points, after how much the moduli grow in it."""
        strips = [
            (self._strip_growth(order, theta, share * room), share * room) for share in _SHARES
        ]
        return max(strips, key=lambda each: each[1] / (depth + each[0]))

    def _shifted(
        self,
        grid: MixtureGrid,
        order: float,
        theta: float,
        strip: tuple[float, float],
        edges: Reals,
        floor: float,
    ) -> Reals:
        """The bounds by one shift."""
        growth, eta = strip
        one, two = (each.turned(tilt, theta) for each, tilt in self._sides(grid))
        exponent = grid.exponent(order) + (order + 1) * one.log - order * two.log
        exponent = exponent - floor
        turned = (one.angle + two.angle) * (1 - 64 * U)
        decayed = np.exp(np.minimum(exponent - edges[:, None] * turned, 700.0)).sum(axis=1)
        # The moduli are at most those on the real line, but for the cosines of s.
        ends = self._outside(grid, order, floor)[0] * exp_or_inf(growth)
        error = 2.8 * exp_or_inf(growth + 0.01 - 2 * math.pi * eta / grid.step) + ends
        return theta * theta / 2 + np.log(decayed * (1 + self._rounding(grid, order)) + error)

    def _strip_growth(self, order: float, theta: float, eta: float) -> float:
        width = self.pair.second.width
        sides = math.log(math.cos(width * (theta + eta) / 2)) + math.log(
            math.cos(width * (theta - eta) / 2)
        )
        return eta * eta / 2 - order / 2 * sides

    def _rounding(self, grid: MixtureGrid, order: float) -> float:
        """A bound on the relative error of the terms that matter."""
        exponent = grid.exponent(order)
        near = exponent > exponent.max() - 60
        points = grid.points
        error = points.weight_error + (order + 2) * points.ratio_error * np.abs(points.ratio)
        error = error + U * (64 * (order + 2) + 4 * np.abs(exponent) + len(exponent))
        return float(error[near].max()) * 2


def _unknown(count: int) -> Line:
    return Line(np.zeros(count, dtype=np.complex128), np.full(count, np.inf))


def _beyond(log: float, fall: float) -> float:
    """A bound on the sum of the terms after one of that logarithm, which fall by at least `fall` each."""
    return exp_or_inf(log - fall) / -math.expm1(-fall) * (1 + 16 * U) if fall > 0 else math.inf


_FAR = 30.0


@dataclass(frozen=True, eq=False)
class MixtureSum(Transform):
    """M(t) = (sum of c_k M_k(t))^times, for the losses that a coin with public outcome k chooses between.

    Args:
        parts: c_k with its relative error, and M_k.
        times: How many copies.
        maximum_loss: The largest loss of one, rounded up.
        minimum_loss: The smallest, rounded down.
    """

    parts: tuple[tuple[float, float, MixtureQuadrature], ...]
    times: int
    maximum_loss: float
    minimum_loss: float
    tabulates = True

    @property
    def maximum(self) -> float:
        return self.times * self.maximum_loss * (1 + 2 * U)

    @property
    def minimum(self) -> float:
        return self.times * self.minimum_loss * (1 + 2 * U)

    @property
    def copies(self) -> float:
        return float(self.times)

    @property
    def blow_up(self) -> float:
        """Where w^(t + 1) e^(t (t + 1) m^2 / 2), what a term of P adds to M, grows past 1."""
        ends = [
            1 - 2 * math.log(weight * share) / (mean * mean)
            for share, _, part in self.parts
            for mean, weight in zip(part.pair.first.means, part.pair.first.weights, strict=True)
            if mean > 0
        ]
        return min(ends, default=math.inf)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        found = self.curve(np.array([order]))
        return float(found.log_m[0]), float(found.first[0]), float(found.second[0])

    @np.errstate(
        over="ignore", invalid="ignore"
    )  # where a moment overflows the answer is infinite, or NaN
    def curve(self, orders: Reals) -> Cumulants:
        curves = [part.curve(orders) for _, _, part in self.parts]
        if len(curves) == 1:
            log, first, second = curves[0].log_m, curves[0].first, curves[0].second
        else:
            shares = np.array([[share] for share, _, _ in self.parts])
            logs, firsts, seconds = (
                np.array(rows)
                for rows in zip(*((at.log_m, at.first, at.second) for at in curves), strict=True)
            )
            log = np.log1p((shares * np.expm1(logs)).sum(axis=0))
            tilted = shares * np.exp(logs - log)
            first = (tilted * firsts).sum(axis=0)
            second = np.maximum(
                (tilted * (seconds + firsts * firsts)).sum(axis=0) - first * first, 1e-300
            )
        return Cumulants(self.times * log, self.times * first, self.times * second)

    @cached_property
    def _lines(self) -> dict[tuple[float, bytes], Line]:
        return {}

    def line(self, order: float, frequencies: Reals) -> Line:
        one = self._one(order, frequencies)
        return Line(self.times * one.log, self.times * (one.error + 2 * U * np.abs(one.log)))

    def _one(self, order: float, frequencies: Reals) -> Line:
        key = order, frequencies.tobytes()
        if key not in self._lines:
            lines = [part.line(order, frequencies) for _, _, part in self.parts]
            self._lines[key] = lines[0] if len(lines) == 1 else self._mixed(lines)
        return self._lines[key]

    def _mixed(self, lines: Sequence[Line]) -> Line:
        """log of the mean of the parts: through its distance from 1 unless one of them is large."""
        tops = [
            math.log(share) + float(line.log[0].real)
            for (share, _, _), line in zip(self.parts, lines, strict=True)
        ]
        top = max(tops)
        scale = top if top > _FAR else 0.0
        real, imaginary, error = np.zeros((3, len(lines[0].log)))
        for (share, relative, _), line in zip(self.parts, lines, strict=True):
            size = np.minimum(line.log.real - scale, 705.0)
            sine, half = np.sin(line.log.imag), np.sin(line.log.imag / 2)
            modulus = np.exp(size)
            less = np.expm1(size) - 2 * modulus * half * half
            real += share * less
            imaginary += share * modulus * sine
            # From an error of 1 on only the size of M is bounded.
            with np.errstate(over="ignore"):
                far = modulus * (1 + np.exp(line.error))
            moved = np.where(line.error < 1, modulus * np.expm1(np.minimum(line.error, 1.0)), far)
            distance = np.hypot(less, modulus * sine)
            rounded = U * (
                24 * distance + 8 * modulus * np.abs(line.log) + (8 * abs(scale) * modulus)
            )
            error += share * (moved + rounded + relative * (distance + (1.0 if scale else 0.0)))
        found = logarithm_of_excess(real, imaginary, error)
        return Line(found.log + scale, found.error + 8 * U * scale)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, finest=False)

    def finest_envelope(self, order: float, edges: Reals) -> Reals:
        return self._envelope(order, edges, finest=True)

    def _envelope(self, order: float, edges: Reals, *, finest: bool) -> Reals:
        zero = np.zeros(1)
        whole = self._one(order, zero)
        bounds, shares = np.zeros((2, len(self.parts), len(edges)))
        for at, (share, relative, part) in enumerate(self.parts):
            line = whole if len(self.parts) == 1 else part.line(order, zero)
            if not line.error[0] + whole.error[0] < 1e-3:
                return np.zeros(len(edges))
            log = float(line.log[0].real)
            bounds[at] = part.log_envelope(order, edges, log - float(line.error[0]), finest=finest)
            shares[at] = math.log(share * (1 + relative)) + log - float(whole.log[0].real)
        if len(self.parts) == 1:
            return self.times * bounds[0]
        error = self.times * (
            4 * float(whole.error[0]) + 16 * U * (1 + abs(float(whole.log[0].real)))
        )
        return self.times * np.log(np.exp(bounds + shares).sum(axis=0)) + error
