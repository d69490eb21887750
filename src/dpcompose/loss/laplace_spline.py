"""The profile of k equal Laplace losses as an exponential spline: sums of positive terms, their rounding bounded.

In units of 2 epsilon, y = (k epsilon - x) / (2 epsilon) is how far x lies below the largest loss. Tilted by e^(-l / 2)
one loss is two equal atoms and a uniform part between them. So with E the shift y -> y - 1, N_q the cardinal B-spline
on [0, q] and 2 sinh in powers,

    e^(epsilon y) delta = 2^(1 - k) sum_(q >= 2) epsilon^(q - 1) A_q(E) N_q(y),
    A_q(z) = sum_(m <= q - 2, m = q mod 2) C(k, m) (1 + z)^(k - m) (1 - z)^(m - q);

m counts losses on the uniform part. A_(q + 2) is A_q + C(k, q) (1 + z)^(k - q) summed up twice; all coefficients, all
splines and all terms are positive, hence rounding errors add up and never grow. Row q is homogeneous in epsilon: rows
beyond Q are at most s^-Q times what all rows would be for s > 1 times the loss, and that is bounded by a moment of it:
e^(s epsilon y) M(t)^k e^(-t s x) t^t / (1 + t)^(1 + t).

The profile is convex in e^x. Four values near a root enclose it: it lies below the chord of the two inner ones, and
above both lines through an inner and an outer one.

This path is for speed: without it the benchmark row "10 Laplace of scale 3" takes seventy times as long.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcompose.numerics import Reals, U

MOST_ROWS, MOST_CELLS = 400, 600
_DEPTH = 34.0
"""Rows are taken until what is left is e^-34 of the whole."""
_WIDE, _CLOSE = np.array([-2.0, -1.0, 0.0, 1.0, 2.0]), np.array([-2.0, -1.0, 1.0, 2.0])
_REACH, _NEAR, _NARROW = 0.02, 1e-6, 1e-11


def moment(epsilon: float, order: float) -> tuple[float, float, float]:
    """log E[e^(order (L - epsilon))] for one Laplace loss L at an order > 0, and its first two derivatives."""
    if (order + 1.0) * epsilon < 1e-3:
        shrink = epsilon * epsilon * (1.0 - epsilon / 3.0)
        return (
            shrink * order * (order + 1.0) / 2.0 - order * epsilon,
            shrink * (order + 0.5) - epsilon,
            shrink,
        )
    double = 2.0 * order + 1.0
    far = math.exp(-double * epsilon)
    top = order + 1.0 + order * far
    first = (1.0 + far - 2.0 * epsilon * order * far) / top
    second = far * (4.0 * epsilon * epsilon * order - 4.0 * epsilon) / top
    return (
        math.log(top / double),
        first - 2.0 / double,
        second - first * first + 4.0 / (double * double),
    )


@dataclass(frozen=True)
class Terms:
    """The coefficients of the polynomials A_q(z) that the top of this file defines, scaled.

    Args:
        weights: The coefficient of each power of z for each q from 0 to `last`, divided by the binomial C(k, cells)
            and multiplied by (epsilon unit)^(q - 1) / (q - 1)!; shape (last + 1, cells - first + 1).
        first: The lowest power of z that matters.
        cells: The highest power of z that is needed.
        last: The largest q.
        unit: A length of y, >= 1; in turn, `_splines` are divided by its power q - 1.
        log_left: The powers below `first` would add at most e^log_left to delta.
    """

    weights: Reals
    first: int
    cells: int
    last: int
    unit: float
    log_left: float


@dataclass(frozen=True)
class LaplaceSpline:
    """The sum of `times` >= 2 copies of a Laplace loss whose largest value is `epsilon`, at and above 0."""

    epsilon: float
    times: int

    @np.errstate(
        all="ignore"
    )  # what overflows ends as an infinite or undefined value, which certifies nothing
    def values(
        self, places: Reals, order: float, earlier: Terms | None = None
    ) -> tuple[Reals, Reals, Terms] | None:
        """Lower and upper bounds on delta at points that lie close together, and the terms that they were computed from.

        Args:
            places: The points y = (k epsilon - x) / (2 epsilon), where x is the loss and k the number of copies;
                positive, at most k / 2, shape (n,).
            order: A real order near the saddle point there: decides how many terms there are.
            earlier: The terms of an earlier call, which serve again at points close by.

        Returns:
            None where there would be too many terms, or numbers too small.
        """
        highest, cells = float(places.max()), np.floor(places).astype(np.int64)
        least, most = int(cells.min()), int(cells.max())
        last, log_left, log_delta = self._last(highest, order)
        if not (last <= MOST_ROWS and float(places.min()) > 1e-250):
            return None
        if (
            earlier is None
            or not (earlier.first <= least <= most <= earlier.cells and last <= earlier.last)
            or (earlier.log_left > log_delta - _DEPTH + 4.0)
        ):
            first, log_omitted = self._first(log_delta)
            if most - first > MOST_CELLS or first > least:
                return None
            earlier = self._rows(first, most, last, highest, log_omitted)
        splines = _splines(places - cells, earlier)
        total = np.array(
            [
                np.einsum("qj,qj->", earlier.weights[:, : n + 1], splines[:, n::-1, column])
                for column, n in enumerate((cells - earlier.first).tolist())
            ]
        )
        unit = 2 * math.comb(self.times, earlier.cells) / (1 << self.times)
        value = total * (unit * np.exp(-self.epsilon * places))
        if not (np.isfinite(value).all() and unit > 1e-280 and float(value.min()) > 1e-290):
            return None
        # Rows: a ratio errs by 5 u, the two sums by 2 cells u and 8 u for two rows, a spline by 5 u a row; the first
        # row of weights by 3 cells u; the last sum by all its terms; exp by 8 u and epsilon y u.
        length, width = earlier.last, earlier.cells - earlier.first + 1
        error = U * (
            2.0 * length * (width + 7.0) + 5.0 * width + 2.0 * self.epsilon * highest + 64.0
        )
        left = math.exp(min(log_left, 600.0)) + math.exp(min(earlier.log_left, 600.0)) + 1e-300
        return value * (1.0 - error), value * (1.0 + error) + left, earlier

    def saddle(self, position: float) -> float:
        """About the order at which the mean of e^(order (L - x)) / (order (order + 1)) is least, where x is the loss at
        a place."""
        epsilon, times, depth = self.epsilon, self.times, 2.0 * self.epsilon * position
        order = 1.0 / depth + 1.0 / math.sqrt(times * min(epsilon * epsilon, 4.0))
        for _ in range(40):
            _, first, second = moment(epsilon, order)
            excess = times * first + depth - 1.0 / order - 1.0 / (order + 1.0)
            slope = (times * second + (1.0 / order) ** 2 + (1.0 / (order + 1.0)) ** 2) * order
            step = min(max(-excess / slope, -1.0), 1.0) if slope > 0.0 else -1.0
            order = max(order * math.exp(step), 1e-3)
            if abs(step) < 0.02 or order == 1e-3:
                break
        return order

    def _first(self, log_delta: float) -> tuple[int, float]:
        """The first number of losses at -epsilon that matters, and the logarithm of what all fewer add, at most.

        Splines of 2 sinh are below 2 sinh: j such losses add at most 2^-k C(k, j) (1 + epsilon)^(k - j) e^(-j epsilon).
        """
        times, epsilon = self.times, self.epsilon
        if times <= 64 or epsilon > 100.0:
            return 0, -math.inf
        spread = (1.0 + epsilon) * math.exp(epsilon)
        first = int(times / (1.0 + spread))
        whole = math.lgamma(times + 1.0) + times * (math.log1p(epsilon) - math.log(2.0))
        step = max(int(math.sqrt(times) / 2.0), 1)
        while first > 0:
            ratio = first / (times - first + 1.0) * spread * (1.0 + 1e-12)
            log_omitted = (
                whole
                - math.lgamma(first + 1.0)
                - math.lgamma(times - first + 1.0)
                - first * math.log(spread)
            )
            if ratio < 1.0:
                log_omitted += math.log(ratio / (1.0 - ratio)) + 1e-6
                if log_omitted < log_delta - _DEPTH:
                    return first, log_omitted
            first -= step
        return 0, -math.inf

    def _last(self, position: float, order: float) -> tuple[int, float, float]:
        """The last row of the spline that is summed at a place, log of a bound on what the others add to delta, and
        about log delta."""
        epsilon, times, depth = self.epsilon, self.times, 2.0 * self.epsilon * position
        log_m, _, variance = moment(epsilon, order)
        log_delta = times * log_m + order * depth - _kernel(order)
        log_delta -= math.log(math.hypot(1.0, order * math.sqrt(times * max(variance, 0.0))))
        # How fast the sum of all rows grows with epsilon is their mean.
        grown = moment(epsilon * 1.001, order)[0]
        mean = max(depth / 2.0 + times * (grown - log_m) / 0.001 + order * depth, 1.0)
        if not mean < 1e4:
            return MOST_ROWS + 1, math.inf, log_delta
        stretch = (mean + 9.0 * math.sqrt(mean) + 14.0) / mean
        wide, tilt = stretch * epsilon, order / stretch
        for _ in range(6):
            _, first, second = moment(wide, tilt)
            excess = times * first + stretch * depth - 1.0 / tilt - 1.0 / (tilt + 1.0)
            slope = times * second + (1.0 / tilt) ** 2 + (1.0 / (tilt + 1.0)) ** 2
            step = min(max(-excess / (slope * tilt), -1.0), 1.0) if slope > 0.0 else 0.0
            tilt *= math.exp(step)
            if abs(step) < 0.05:
                break
        log_m, turn = times * moment(wide, tilt)[0], tilt * stretch * depth
        whole = (stretch - 1.0) * depth / 2.0 + log_m + turn - _kernel(tilt)
        whole += 1e-6 + 1e-14 * (abs(log_m) + turn)
        if not math.isfinite(whole):
            return MOST_ROWS + 1, math.inf, log_delta
        last = max(math.ceil((whole - log_delta + _DEPTH) / math.log(stretch)), 3)
        return last, whole - last * math.log(stretch) * (1.0 - 1e-12), log_delta

    def _rows(self, first: int, cells: int, last: int, highest: float, log_left: float) -> Terms:
        """Weights for somewhat more than what is asked."""
        times = self.times
        cells, last, unit = min(cells + 1, times), last + 2 + last // 16, max(highest, 1.0)
        last += last % 2
        v = self.epsilon * unit
        shift = np.arange(first, cells + 1.0)
        down = shift[:0:-1]
        start = np.concatenate([np.cumprod(down / (times + 1.0 - down))[::-1], [1.0]])
        count = np.arange(1.0, last)[:, None]
        ratio = np.maximum((times + 1.0 - count) - shift, 0.0) * (v / (count * (count + 1.0)))
        spread = np.cumprod(np.concatenate([(v * start)[None, :], ratio]), axis=0)
        weights = np.zeros((last + 2, len(shift)))
        for q in range(0, last, 2):
            pair = weights[q + 2 : q + 4]
            if q:
                factor = v * v / np.array([[q * (q + 1.0)], [(q + 1.0) * (q + 2.0)]])
                np.add(weights[q : q + 2] * factor, spread[q : q + 2], out=pair)
            else:
                pair[:] = spread[:2]
            np.cumsum(pair, axis=1, out=pair)
            np.cumsum(pair, axis=1, out=pair)
        return Terms(weights[: last + 1], first, cells, last, unit, log_left)


def _kernel(order: float) -> float:
    """-log of sup_x (1 - e^-x) e^(-order x)."""
    return math.log1p(order) + order * math.log1p(1.0 / order)


def _splines(shares: Reals, rows: Terms) -> Reals:
    """(q - 1)! N_q(p + share) / unit^(q - 1), shape (last + 1, cells - first + 1, n)."""
    cells, last, unit = rows.cells - rows.first, rows.last, rows.unit
    cell = np.arange(cells + 1.0)[:, None]
    rise = (cell + shares) / unit
    # q - p - share, 0 beyond the spline's end.
    fall = ((np.arange(2.0, last + 1.0)[:, None, None] - cell) - shares) / unit
    np.maximum(fall, 0.0, out=fall)
    table = np.zeros((last + 1, cells + 1, len(shares)))
    table[1, 0] = 1.0
    for q in range(2, last + 1):
        np.multiply(rise, table[q - 1], out=table[q])
        table[q, 1:] += fall[q - 2, 1:] * table[q - 1, :-1]
    return table


def root(spline: LaplaceSpline, target: float) -> tuple[float, float] | None:
    """(lower, upper) >= 0: the profile is at most `target` from the upper on, and up to the lower, if not 0, at least.

    None where the spline has no values, or where they do not enclose the root.
    """
    if not 1e-280 <= target < 1.0:
        return None
    order, position = _guess(spline, math.log(target))
    half = spline.times / 2.0
    if not position < half:
        found = spline.values(np.array([half]), order)
        if found is None or found[1][0] <= target:
            return None if found is None else (0.0, 0.0)
        position = half
    near = _approached(spline, target, order, position)
    if near is None:
        return None
    position, steep, rows = near
    spacing, best = min(_NEAR / steep, 0.1), None
    for _ in range(12):
        places = position * np.exp(spacing * _CLOSE)
        found = spline.values(places, order, rows)
        if found is None:
            break
        low, high, rows = found[0].tolist(), found[1].tolist(), found[2]
        if high[1] <= target <= low[2]:
            lower, upper = _enclosed(spline, target, places, low, high)
            best = (lower, upper) if best is None else (max(lower, best[0]), min(upper, best[1]))
            if not best[1] - best[0] > _NARROW * best[1] or spacing < 1e-10 / steep:
                break
            spacing /= 64.0
        position = _interpolated_root(
            target, places.tolist(), [(one + two) / 2.0 for one, two in zip(low, high, strict=True)]
        )
    return best


def _interpolated_root(target: float, places: Sequence[float], values: Sequence[float]) -> float:
    """The root of the line through the two places that are nearest to it: beyond a corner slopes differ."""
    after = min(max(sum(value < target for value in values), 1), len(values) - 1)
    least, most = values[after - 1], values[after]
    step = (
        (places[after] - places[after - 1]) * (target - least) / (most - least)
        if most > least
        else 0.0
    )
    return min(max(places[after - 1] + step, places[0] * 0.9), places[-1] * 1.1)


def _guess(spline: LaplaceSpline, log_target: float) -> tuple[float, float]:
    """The saddle point for a mass, and the place that the saddle-point approximation gives."""
    epsilon, times = spline.epsilon, spline.times
    spread = times * min(epsilon * epsilon, 4.0)
    order = math.sqrt(max(-2.0 * log_target, 0.1) / spread)
    for _ in range(30):
        log_m, first, second = moment(epsilon, order)
        curvature = times * second + (1.0 / order) ** 2 + (1.0 / (order + 1.0)) ** 2
        gap = times * (order * first - log_m) - 1.0 - order / (order + 1.0) + log_target
        gap += math.log(order) + math.log1p(order)
        step = min(max(-gap / (order * (order * max(curvature, 1e-300))), -1.0), 1.0)
        order *= math.exp(step)
        if abs(step) < 0.02:
            break
    log_m, first, second = moment(epsilon, order)
    curvature = times * max(second, 0.0) + (1.0 / order) ** 2 + (1.0 / (order + 1.0)) ** 2
    depth = 1.0 / order + 1.0 / (order + 1.0) - times * first
    guessed = (
        times * log_m
        + order * depth
        - math.log(order)
        - math.log1p(order)
        - math.log(2 * math.pi * curvature) / 2
    )
    position = (
        depth
        / (2.0 * epsilon)
        * math.exp(min(max((log_target - guessed) / (order * depth), -1.0), 1.0))
    )
    # 2^-k (1 - e^(-2 epsilon y)) is at most delta: next to the largest loss nothing else is left of it.
    top = math.exp(min(log_target + times * math.log(2.0), 0.0))
    bound = -math.log1p(-top) / (2.0 * epsilon) if top < 1.0 else math.inf
    return (order, position) if position <= bound else (max(order, 0.5 / (epsilon * bound)), bound)


def _approached(
    spline: LaplaceSpline, target: float, order: float, position: float
) -> tuple[float, float, Terms] | None:
    """A place closer to the root, the slope of log delta there in log y, and the rows of the spline that matter around
    it."""
    rows, steep = None, max(2.0 * spline.epsilon * position * order, 1.0)
    under, over = 0.0, spline.times * 0.75
    for _ in range(20):
        spacing = min(_REACH / steep, 0.25)
        found = spline.values(position * np.exp(spacing * _WIDE), order, rows)
        if found is None:
            return None
        rows = found[2]
        logs: list[float] = np.log(found[0] / target).tolist()
        steep = max((logs[4] - logs[0]) / (4.0 * spacing), 1e-6)
        if logs[0] <= 0.0 <= logs[4]:
            return position * math.exp(_interpolated(logs) * spacing), steep, rows
        under, over = (position, over) if logs[2] < 0.0 else (under, position)
        newton = position * math.exp(min(max(-logs[2] / steep, -1.5), 1.5))
        # Newton's step, but back and forth across a corner it need not converge.
        position = newton if under < newton < over else math.sqrt(max(under, over / 10.0) * over)
    return None


def _interpolated(logs: Sequence[float]) -> float:
    """Where the inverse of the polynomial through equidistant values, from -2 to 2, is 0."""
    total = 0.0
    for index, log in enumerate(logs):
        share = index - 2.0
        for other, value in enumerate(logs):
            if other != index:
                share *= -value / (log - value)
        total += share
    return min(max(total, -2.0), 2.0)


def _enclosed(
    spline: LaplaceSpline,
    target: float,
    places: Reals,
    lower: Sequence[float],
    upper: Sequence[float],
) -> tuple[float, float]:
    """The root between the two inner places; shares s are e^(x - x_1) - 1, with x falling as places rise."""
    epsilon, times = spline.epsilon, spline.times
    near = float(places[1])
    first, third, fourth = (
        math.expm1(2.0 * epsilon * (near - float(places[n]))) for n in (0, 2, 3)
    )
    chord = third * (target - upper[1]) / (upper[2] - upper[1])
    # Through the two places nearer to the largest loss, drawn on with the least slope; and the other two, the greatest.
    flat, fall = lower[1] - upper[0], upper[3] - lower[2]
    beyond = -first * (target - lower[1]) / flat if flat > 0.0 else -math.inf
    before = third + (third - fourth) * (lower[2] - target) / fall if fall > 0.0 else -math.inf
    share = max(beyond, before, third)
    loss = times * epsilon - 2.0 * epsilon * near
    error = 4.0 * U * (times * epsilon + 2.0 * epsilon * near + abs(third))
    error += 32.0 * U * abs(third)
    return max(loss + math.log1p(share) - error, 0.0), max(loss + math.log1p(chord) + error, 0.0)
