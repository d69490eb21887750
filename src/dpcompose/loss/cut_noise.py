"""Sampled Gaussian losses, the record removed, cut smoothly: what is below a cut, above it, or between two.

Large losses are rare, and yet they alone decide high moments. With x ~ N(0, s^2), a cut a and a width b let
v = (x - a) / b and w = e^(v - e^-v): of x the share e^-w is below the cut and 1 - e^-w above it, up to a few b double
exponentially little. Below a cut E r^p is finite for every p.

Let Im v = phi, 0 <= phi < pi / 2. Then |w| = e^(v - e^-v cos phi) rises with Re v, arg w = phi + e^-v sin phi falls,
so that cos arg w rises where arg w < pi; |1 - e^-w| <= 2 min(|w|, 1) max(1, |e^-w|). The density of x grows by
e^(phi^2 b^2 / (2 s^2)); with theta = phi b / s^2 < pi / 2 the ratio has |r(x + i phi b)| <= r(x)
and an argument in [0, theta] that rises with x. So a trapezoid sum errs by what is analytic in that strip,
and |E r^(p + iu)| is at most the integral of the moduli over the shifted path. Both are bounded by upper sums: in each
cell every factor is taken where it is largest, since each is monotone there.

Reference: [ZhuDongWang2022, Theorem 11], [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpcompose.contour.exponential_sums import WeightedPoints, careful_nodes
from dpcompose.contour.transform import Cumulants, Line
from dpcompose.loss.sampled_gaussian_grid import argument, built, log_ratio, share, shortened
from dpcompose.numerics.bound import Bound
from dpcompose.numerics.elementary import Reals, U, between, log_sum_exp

_ANGLES = (0.02, 0.1, 0.3, 0.6, 0.9, 1.1, 1.25, 1.38)
_BEYOND = 45.0
"""The ends of a grid leave out e^-45 of the whole."""
_LEFT = 6.3
"""So many widths below a cut the share above it is below e^-500."""


@dataclass(frozen=True)
class Cuts:
    """One sampled Gaussian loss, the record removed, so many times, and its cuts.

    Args:
        noise: sigma / sensitivity.
        rate: The sampling rate.
        times: How many copies.
        ulps: How many units of roundoff the noise may be off.
        at: The upper cut.
        low: The lower cut.
        width: b.
        order: About the largest order that is asked for.
        frequency: About the largest frequency whose errors matter.
    """

    noise: float
    rate: float
    times: int
    ulps: int
    at: float
    low: float
    width: float
    order: float
    frequency: float

    @property
    def points(self) -> float:
        """About how many points the pieces need."""
        low, high, step = self._range
        return (high - low) / step

    @cached_property
    def _range(self) -> tuple[float, float, float]:
        """Between which ends the points lie, and how far apart."""
        s, b, copies = self.noise, self.width, math.log(self.times)
        side = s * math.sqrt(2 * (_BEYOND + copies))
        high = max(math.hypot(self.at, side), self._top) + 1
        turn = 1.2 * b / s**2 * self.frequency * float(share(np.array(self.at + 3 * b), s, self.rate))
        step = float(shortened(np.array(min(b * 8.4 / (42 + copies + min(turn, 3000.0)), 0.3 * s))))
        return -side, high, step

    @property
    def _top(self) -> float:
        """From here on the share below the upper cut is too small for any order and frequency."""
        s2, b = self.noise**2, self.width
        return self.at + b * (2.5 + math.log(100 + 64 * (self.order + 1) * b / s2 + self.slant))

    @cached_property
    def _pieces(self) -> tuple[Piece, Piece, Piece]:
        b, (low, high, step) = self.width, self._range
        noise, rate, left, right, wide = (np.array([[each]]) for each in (self.noise, self.rate, low, high, step))
        grid = built(noise, rate, left, right, wide, self.ulps)
        x, points = grid.x[0], grid.points[0]
        first, middle = (int(np.searchsorted(x, max(cut - _LEFT * b, low))) for cut in (self.at, self.low))
        last = int(np.searchsorted(x, self._top)) + 1
        return (
            Piece(self, x[:last], points[:last], step, below=self.at, above=None),
            Piece(self, x[first:], points[first:], step, below=None, above=self.at),
            Piece(self, x[middle:last], points[middle:last], step, below=self.at, above=self.low),
        )

    @property
    def slant(self) -> float:
        """The most that a frequency times an argument comes to, as far as it is bounded."""
        return 64 * self.order * 1.4 * self.width / self.noise**2

    @property
    def below(self) -> Piece:
        """The noise below the upper cut."""
        return self._pieces[0]

    @property
    def above(self) -> Piece:
        """The noise above it."""
        return self._pieces[1]

    @property
    def between(self) -> Piece:
        """The noise below it and above the lower cut."""
        return self._pieces[2]

    @cached_property
    def without(self) -> Bound:
        """The probability, without the record, that one copy is above the upper cut."""
        return self.above.expectation(0.0)

    @cached_property
    def excess(self) -> Bound:
        """How much larger that is with the record."""
        return self.above.expectation(1.0)


@dataclass(frozen=True, eq=False)
class Piece:
    """A piece of the noise, as points of equal distance.

    Args:
        cuts: The loss.
        x: Where they are, exact.
        plain: Weights and ratios without the share of this piece.
        step: Their distance.
        below: The cut that it is below, if any.
        above: The cut that it is above, if any.
    """

    cuts: Cuts
    x: Reals
    plain: WeightedPoints
    step: float
    below: float | None
    above: float | None

    @cached_property
    def points(self) -> WeightedPoints:
        """Points weighted with the share of this piece."""
        log_part, units = np.zeros_like(self.x), np.full_like(self.x, 4.0)
        # w is good to (1 + e^-v) (2 |v| + 12) units: v to 2, its exponential to as many as its argument and a few.
        if self.below is not None:
            log_height, slack = self._log_height(self.below)
            height = np.exp(log_height)
            log_part, units = log_part - height, units + slack * height
        if self.above is not None:
            log_height, slack = self._log_height(self.above)
            part = -np.expm1(-np.exp(log_height))
            far = log_height < -30
            log_part, units = log_part + np.where(far, log_height, np.log(np.maximum(part, 1e-300))), units + slack + 4
        error = self.plain.weight_error + U * (units + np.abs(log_part))
        part = np.exp(log_part)
        plain = self.plain
        return WeightedPoints(plain.log_weight + log_part, plain.ratio, plain.deficit * part, error, plain.ratio_error)

    def _log_height(self, cut: float) -> tuple[Reals, Reals]:
        """log w for a cut, and how many units it may be off."""
        v = between((self.x - cut) / self.cuts.width, -_LEFT - 0.2, 100.0)
        falling = np.exp(-v)
        return v - falling, (1 + falling) * (2 * np.abs(v) + 12)

    def expectation(self, power: float) -> Bound:
        """E of the share for power 0, of it times r - 1 for power 1; for what is above a cut."""
        points, (error, outside) = self.points, self._errors(power, np.zeros(1))
        factor = np.expm1(points.ratio) if power else np.ones_like(points.ratio)
        terms = np.exp(points.log_weight) * factor
        size = np.abs(terms) + np.exp(points.log_weight) * power
        relative = U * (len(terms) + 64 + 4 * np.abs(points.log_weight)) + points.weight_error
        relative = relative + 4 * points.ratio_error * (1 + np.abs(points.ratio))
        rounding = float((size * relative).sum()) + (1 + power) * (float(error[0]) + outside)
        if power:
            error, outside = self._errors(0.0, np.zeros(1))
            rounding += float(error[0]) + outside
        total = float(terms.sum())
        if not (math.isfinite(total) and rounding < math.inf):
            return Bound(-1.0, 1.0)  # r is beyond floats; the share times r has a mean of at most 1
        return Bound(total - rounding, total + rounding)

    def line(self, order: float, frequencies: Reals, *, sign: float) -> Line:
        """log E of the share times r^p at p = t + 1 or -t, t = order + iu."""
        power = order + 1 if sign > 0 else -order
        error, outside = self._errors(power, frequencies)
        if self.above is not None:
            return self.points.positive_line(power, frequencies, sign=sign, omitted=error + outside)
        without, excess = self.cuts.without, self.cuts.excess
        # E e^-w r^p = mass + t drift + E e^-w (r^p - 1 - p (r - 1)), since E (r - 1) = 0.
        drift, lost = -(excess.lower + excess.upper) / 2, (without.lower + without.upper) / 2
        spread = without.width + excess.width * (1 + order + frequencies)
        size = (1 + power + frequencies) * (error + outside)
        top = float((self.points.log_weight + power * self.points.ratio).max())
        line = self.points.line(
            power,
            frequencies,
            sign=sign,
            drift=drift,
            mass=1 - lost + drift,
            omitted=(size + spread) * math.exp(-max(top, 0.0)),
            careful=careful_nodes(self.cuts.times),
        )
        return Line(line.log + math.log1p(drift - lost), line.error)

    def curve(self, orders: Reals, *, sign: float) -> Cumulants:
        """log E of the share times r^p and its derivatives; for planning."""
        powers = orders + 1 if sign > 0 else -orders
        whole = self.above is None
        return (self.points.curve if whole else self.points.positive_curve)(powers, sign=sign)

    def envelope(self, power: float, edges: Reals) -> Reals:
        """log of a bound on |E r^(power + iu)| for u from each edge on, the best of several shifts."""
        found = [self._moduli(power, angle, -edges) + self._lift(angle) for angle in self._angles]
        return np.min(found, axis=0)

    def quiet(self, power: float, edges: Reals, floor: float) -> Reals:
        """log of a bound on |E r^(power + iu)| e^-floor for u from each edge on, where many copies are asked for.

        1 - |phi(u)|^2 is E (1 - cos u (L - L')), and 1 - cos 2 v <= 4 (1 - cos v): so 1 - |phi(u)|^2 is at least
        4^-m (1 - |phi(2^m u)|^2).
        """
        far = float(edges[0]) * 4.0 ** np.arange(12)
        least = -np.expm1(2 * np.minimum(self.envelope(power, far) - floor, 0.0))
        doublings = np.ceil(np.maximum(np.log2(far / edges[:, None]) - 1e-9, 0.0))
        reached = far * (1 - 1e-12) <= edges[:, None] * 2.0**doublings
        shrunk = np.where(reached, least * 4.0**-doublings, 0.0).max(axis=1)
        return 0.5 * np.log1p(-np.minimum(shrunk * (1 - 1e-9), 1 - 1e-15))

    def second(self, power: float, center: float) -> float:
        """log of an upper bound on E of the share times r^power (log r - center)^2."""
        return float(self._moduli(power, 0.0, np.zeros(1), center=center)[0])

    @cached_property
    def _angles(self) -> tuple[float, ...]:
        """Angles phi at which theta is not too large."""
        return tuple(angle for angle in _ANGLES if angle * self.cuts.width / self.cuts.noise**2 < 1.4)

    def _lift(self, angle: float) -> float:
        """How much the density may gain off the real line, as a logarithm."""
        return (angle * self.cuts.width / self.cuts.noise) ** 2 / 2

    @cached_property
    def _cells(self) -> _Cells:
        """The cells of upper sums: those between points, and above all cuts wider ones up to where no slant matters."""
        cuts, x = self.cuts, self.x
        if self.below is None:
            end = math.hypot(float(x[-1]), cuts.noise * math.sqrt(2 * cuts.slant))
            x = np.concatenate([x, np.linspace(float(x[-1]), end, 80)[1:]])
        tails = ndtr(-np.abs(x) / cuts.noise)
        masses = np.abs(np.diff(tails))
        middle = int(np.searchsorted(x, 0.0)) - 1
        if 0 <= middle < len(masses):
            masses[middle] = 1 - tails[middle] - tails[middle + 1]
        least = np.minimum(np.abs(x[:-1]), np.abs(x[1:]))
        log_mass = np.where(masses > 1e-290, np.log(np.maximum(masses, 1e-290)), log_ndtr(-least / cuts.noise))
        return _Cells(x, log_mass, log_ratio(x, cuts.noise, cuts.rate))

    def _shares(self, angle: float) -> tuple[Reals, float]:
        """log of a bound on the modulus of the share in each cell, and b times how fast it falls at the right end."""
        found, fall = np.zeros(len(self._cells.x) - 1), 0.0
        for cut, above in ((self.below, False), (self.above, True)):
            if cut is None:
                continue
            v = between((self._cells.x - cut) / self.cuts.width, -_LEFT - 0.2, 100.0)
            falling = np.exp(-v)
            log_size, turn = v - falling * math.cos(angle), angle + falling * math.sin(angle)
            size, cosine = np.exp(log_size), np.where(turn < math.pi, np.cos(np.minimum(turn, math.pi)), -1.0)
            # The cosine is least at the left end of a cell.
            least = np.where(cosine[:-1] > 0, -size[:-1] * cosine[:-1], -size[1:] * cosine[:-1])
            if above:
                found = found + math.log(2.0) + np.minimum(log_size[1:], 0.0) + np.maximum(least, 0.0)
            else:
                found = found + least
                fall = float(size[-1] * max(cosine[-1], 0.0))
        return found, fall

    def _moduli(self, power: float, angle: float, slants: Reals, *, center: float | None = None) -> Reals:
        """log of an upper sum of n times the share times r^power e^(slant arg r) on Im x = angle b, without `_lift`.

        With a center, of that times (log r - center)^2.
        """
        cuts, cells = self.cuts, self._cells
        s2, ratio = cuts.noise**2, cells.ratio
        theta = angle * cuts.width / s2
        shares, fall = self._shares(angle)
        if power < 0:
            # |r(x + i theta s^2)| rises with x as well: its square is r^2 (1 - 4 w (1 - w) sin^2(theta / 2)).
            weight = share(cells.x, cuts.noise, cuts.rate)
            ratio = ratio + 0.5 * np.log1p(-4 * weight * (1 - weight) * math.sin(theta / 2) ** 2)
        lifted = cells.log_mass + power * (ratio[1:] if power > 0 else ratio[:-1]) + shares
        ends = power * float(ratio[0]), power * float(ratio[-1])
        tails = np.array([self._tails(power, ends, fall, slant * theta) for slant in slants.tolist()])
        if center is not None:
            away = np.abs(ratio - center)
            lifted = lifted + 2 * np.log(np.maximum(np.maximum(away[1:], away[:-1]), 1e-300))
            tails = tails * 4 * (float(away[-1]) ** 2 + float(away[0]) ** 2 + 1 / s2)
        arg = argument(cells.x, theta, cuts.noise, cuts.rate)
        if float(slants.max()) >= 0:
            pairs = zip(slants.tolist(), tails.tolist(), strict=True)
            return 1e-9 + np.array([_log_sum(lifted + slant * arg[1:], tail) for slant, tail in pairs])
        top = float(lifted.max())
        decay = np.exp(slants[:, None] * (arg[:-1] * (1 - 1e-12)))
        with np.errstate(divide="ignore"):
            return top + np.log(decay @ np.exp(lifted - top) + tails * math.exp(min(-top, 700.0))) + 1e-9

    def _tails(self, power: float, ends: tuple[float, float], fall: float, slant: float) -> float:
        """A bound on the integral beyond the cells of `_moduli`, where log |r^power| is `ends`; infinite if unknown."""
        cuts, cells, s = self.cuts, self._cells, self.cuts.noise
        low, high = float(cells.x[0]), float(cells.x[-1])
        # The argument rises with x, and beyond the left end is at most w sin theta / (1 - w) <= 2 w theta; the slope of
        # log |r| is at most 2 w / s^2 there.
        weight = min(2 * float(share(cells.x[:1], s, cuts.rate)[0]), 1.0)
        log_left = ends[0] - 0.5 * (low / s) ** 2 + max(slant, 0.0) * weight
        log_right = ends[1] - 0.5 * (high / s) ** 2 + max(slant, 0.0) - fall
        left, right = low + max(-power, 0.0) * weight, max(power, 0.0) - high
        if self.above is not None and low > self.above - 7 * cuts.width:
            log_left -= 500
            left = min(left, 0.0) - s**2 / cuts.width
        return _falling(log_left, left / s) + _falling(log_right, right / s - fall * s / cuts.width)

    def _outside(self, power: float) -> float:
        """The terms of a sum of the share times r^power beyond both ends of the points."""
        cuts, s2 = self.cuts, self.cuts.noise**2
        low, high, ends = float(self.x[0]), float(self.x[-1]), self.points.log_weight + power * self.plain.ratio
        weight = float(share(self.x[:1], cuts.noise, cuts.rate)[0])
        left, right = (low + max(-power, 0.0) * weight) / s2, (max(power, 0.0) - high) / s2
        if self.above is not None:
            left -= (1 + math.exp(_LEFT - 1) * (low > self.above - 7 * cuts.width)) / cuts.width
        if self.below is not None:
            right -= math.exp(min((high - self.below) / cuts.width - 1, 100.0)) / cuts.width
        return _geometric(float(ends[0]), left * self.step) + _geometric(float(ends[-1]), right * self.step)

    def _errors(self, power: float, frequencies: Reals) -> tuple[Reals, float]:
        """How much the step leaves out of E r^(power + iu) and of E (1 + |p| |r - 1|), and how much the ends do."""
        cuts = self.cuts
        # At most what is left out at the next of a few larger frequencies.
        most = float(frequencies[-1]) if len(frequencies) else 0.0
        ladder = most * 2.0 ** np.arange(-7.0, 1.0) if most > 0 else np.zeros(1)
        plain, found = np.log1p(2 * cuts.rate * (abs(power) + ladder)), np.full(len(ladder), np.inf)
        for angle in self._angles:
            strip = self._moduli(power, angle, ladder)
            strip = strip if self.above is not None else np.logaddexp(strip, plain + 1)
            rate = 2 * math.pi * angle * cuts.width / self.step
            found = np.minimum(found, strip + self._lift(angle) - rate + math.log(2 / -math.expm1(-rate)))
        outside = self._outside(power)
        if self.above is None:
            outside += (1 + abs(power) + most) * (self._outside(0.0) + self._outside(1.0))
        errors = np.exp(np.minimum(found, 700.0))
        return errors[np.minimum(np.searchsorted(ladder, frequencies), len(ladder) - 1)], outside


class _Cells(NamedTuple):
    """The ends of cells, the log of the probability of each, and log r at their ends."""

    x: Reals
    log_mass: Reals
    ratio: Reals


def _falling(log_first: float, slope: float) -> float:
    """The integral of e^(log_first + slope v) / sqrt(2 pi) over v > 0; infinite where it does not fall."""
    return math.exp(log_first) / -slope if slope < 0 and log_first < 700 else math.inf


def _log_sum(exponents: Reals, more: float) -> float:
    """log of the sum of e^exponents and one more term."""
    total = log_sum_exp(exponents)
    return math.inf if not more < math.inf else float(np.logaddexp(total, math.log(more))) if more > 0 else total


def _geometric(log_first: float, slope: float) -> float:
    """e^log_first (1 + q + q^2 + ...) for q = e^slope < 1; infinite otherwise."""
    if not (slope < 0 and log_first < 700):
        return math.inf
    return math.exp(log_first) / -math.expm1(max(slope, -700.0))
