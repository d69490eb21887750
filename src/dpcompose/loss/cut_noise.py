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

Sums of sampled Gaussian losses, the record removed, with no copy above a cut, or at least one in a piece.

Reference: [TrefethenWeideman2014, Theorem 5.1], [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dpcompose.contour import (
    Cumulants,
    Line,
    TabulatedTransform,
    Transform,
    WeightedPoints,
    blockwise,
    careful_nodes,
    joined,
    logarithm_of_excess,
)
from dpcompose.loss.cut_moduli import ANGLE, LEFT, OUTER, Moduli, ShiftedPath
from dpcompose.loss.sampled_gaussian_grid import built, sampled_weight, shortened
from dpcompose.numerics import Complexes, Reals, U, between, exp_or_inf, log_one_plus
from dpcompose.values import Bound

_BEYOND = 45.0
"""The ends of a grid leave out e^-45 of the whole."""
_FEW, _MANY = 1000, 10**6
"""So few copies are summed on a shifted path alone; more of them, but not so many, where the real line is coarse."""
_COARSE, _LOST = 1e-10, 1e3
"""Errors of all copies from which on the real line is coarse, and not worth a sum."""


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
        shifted: Whether a path beside the real line may be used.
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
    shifted: bool = False

    @property
    def points(self) -> float:
        """About how many points the pieces need."""
        low, high, step = self._range
        return (high - low) / step

    @property
    def path_points(self) -> float:
        """At most how many points a path beside the real line needs; 0 if none may be used."""
        if not self.shifted:
            return 0.0
        low, high, _ = self._range
        reach = math.hypot(high, self.noise * math.sqrt(2 * self.slant)) - low
        return reach * self.depth / (2 * math.pi * (OUTER - ANGLE) * self.width)

    @property
    def depth(self) -> float:
        """The negative logarithm of the error that the step of a path may cause."""
        return 42 + math.log(self.times)

    @cached_property
    def _range(self) -> tuple[float, float, float]:
        """Between which ends the points lie, and how far apart."""
        s, b, copies = self.noise, self.width, math.log(self.times)
        side = s * math.sqrt(2 * (_BEYOND + copies))
        high = max(math.hypot(self.at, side), self._top) + 1
        turn = (
            1.2
            * b
            / s**2
            * self.frequency
            * float(sampled_weight(np.array(self.at + 3 * b), s, self.rate))
        )
        turn = 0.0 if self.few else turn
        step = float(shortened(np.array(min(b * 8.4 / (42 + copies + min(turn, 3000.0)), 0.3 * s))))
        return -side, high, step

    @property
    def few(self) -> bool:
        """Whether there are so few copies that the shifted path is good enough."""
        return self.shifted and self.times <= _FEW

    @property
    def _top(self) -> float:
        """From this place on the share of noise below the upper cut is too small to matter at any order or frequency."""
        s2, b = self.noise**2, self.width
        return self.at + b * (2.5 + math.log(100 + 64 * (self.order + 1) * b / s2 + self.slant))

    @cached_property
    def pieces(self) -> _Pieces:
        """The pieces of the noise between and beside the cuts."""
        b, (low, high, step) = self.width, self._range
        noise, rate, left, right, wide = (
            np.array([[each]]) for each in (self.noise, self.rate, low, high, step)
        )
        grid = built(noise, rate, left, right, wide, self.ulps)
        x, points = grid.x[0], grid.points[0]
        first, middle = (
            int(np.searchsorted(x, max(cut - LEFT * b, low))) for cut in (self.at, self.low)
        )
        last = int(np.searchsorted(x, self._top)) + 1
        return _Pieces(
            below=Piece(self, x[:last], points[:last], step, self.at, None),
            above=Piece(self, x[first:], points[first:], step, None, self.at),
            between=Piece(self, x[middle:last], points[middle:last], step, self.at, self.low),
            whole=Piece(self, x, points, step, None, None),
        )

    @property
    def slant(self) -> float:
        """The largest product of a frequency and an argument of r that has to be followed, as far as it is bounded."""
        return 64 * self.order * 1.4 * self.width / self.noise**2

    @cached_property
    def without(self) -> Bound:
        """The probability, without the record, that one copy is above the upper cut."""
        return self.pieces.above.expectation(0.0)

    @cached_property
    def excess(self) -> Bound:
        """The probability that one copy is above the upper cut with the record, less that without it."""
        return self.pieces.above.expectation(1.0)


class _Pieces(NamedTuple):
    """The noise below the upper cut, above it, between the cuts, and all of it."""

    below: Piece
    above: Piece
    between: Piece
    whole: Piece


@dataclass(frozen=True, eq=False)
class Piece:
    """One loss's noise, or its part below a cut, above one or between two, on equally spaced points.

    Args:
        cuts: The loss and its cuts.
        x: The points; exact.
        plain: The weights and log-ratios of the whole noise there, before the share of this piece is applied.
        step: The distance between points.
        below: The cut that this piece is below; None if it is below none.
        above: The cut that this piece is above; None if it is above none.
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
            log_part = log_part + np.where(far, log_height, np.log(np.maximum(part, 1e-300)))
            units = units + slack + 4
        error = self.plain.weight_error + U * (units + np.abs(log_part))
        part = np.exp(log_part)
        plain = self.plain
        return WeightedPoints(
            plain.log_weight + log_part, plain.ratio, plain.deficit * part, error, plain.ratio_error
        )

    def _log_height(self, cut: float) -> tuple[Reals, Reals]:
        """log w at a cut, and by how many units of roundoff it may be off."""
        v = between((self.x - cut) / self.cuts.width, -LEFT - 0.2, 100.0)
        falling = np.exp(-v)
        return v - falling, (1 + falling) * (2 * np.abs(v) + 12)

    def expectation(self, power: float) -> Bound:
        """For the piece above a cut: the expectation of its share (power 0), or of the share times r - 1 (power 1)."""
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
        if self.cuts.few:
            return self._shifted.line(power, frequencies, sign)
        error, outside = self._errors(power, frequencies)
        if not self.cuts.shifted or self.cuts.times > _MANY:
            known = (
                len(frequencies)
                if self.above is not None
                else max(int((error * self.cuts.times < _LOST).sum()), 1)
            )
            line = self._real_line(order, frequencies[:known], sign, (error + outside)[:known])
            lost = len(frequencies) - known
            return (
                joined(line, Line(np.zeros(lost, dtype=np.complex128), np.full(lost, np.inf)))
                if lost
                else line
            )
        size = (
            1.0
            if self.above is None
            else float(np.exp(self.curve(np.array([order]), sign=sign).log_m[0]))
        )
        cut = int(
            (error * (1 if self.above is not None else self.cuts.times) <= _COARSE * size).sum()
        )
        if cut == len(frequencies):
            return self._real_line(order, frequencies, sign, error + outside)
        far = self._shifted.line(power, frequencies[cut:], sign)
        return (
            joined(self._real_line(order, frequencies[:cut], sign, (error + outside)[:cut]), far)
            if cut
            else far
        )

    def _real_line(self, order: float, frequencies: Reals, sign: float, omitted: Reals) -> Line:
        power = order + 1 if sign > 0 else -order
        if self.above is not None:
            return self.points.positive_line(power, frequencies, sign=sign, omitted=omitted)
        without, excess = self.cuts.without, self.cuts.excess
        # E e^-w r^p = mass + t drift + E e^-w (r^p - 1 - p (r - 1)), since E (r - 1) = 0.
        drift, lost = -(excess.lower + excess.upper) / 2, (without.lower + without.upper) / 2
        spread = without.width + excess.width * (1 + order + frequencies)
        size = (1 + power + frequencies) * omitted
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

    @cached_property
    def moduli(self) -> Moduli:
        """Bounds on the moduli of the integrand off the real line, for this piece."""
        cuts, ends = self.cuts, (self.below, self.above)
        return Moduli(cuts.noise, cuts.rate, cuts.width, self.x, *ends, cuts.slant)

    @cached_property
    def _shifted(self) -> ShiftedPath:
        return ShiftedPath(self.moduli, self.cuts.ulps, depth=self.cuts.depth)

    def curve(self, orders: Reals, *, sign: float) -> Cumulants:
        """log E of the share times r^p and its derivatives; for planning."""
        powers = orders + 1 if sign > 0 else -orders
        near_one = self.above is None and not self.cuts.few
        return (self.points.curve if near_one else self.points.positive_curve)(powers, sign=sign)

    def _outside(self, power: float) -> float:
        """The terms of a sum of the share times r^power beyond both ends of the points."""
        cuts, s2 = self.cuts, self.cuts.noise**2
        low, high, ends = (
            float(self.x[0]),
            float(self.x[-1]),
            self.points.log_weight + power * self.plain.ratio,
        )
        weight = float(sampled_weight(self.x[:1], cuts.noise, cuts.rate)[0])
        left, right = (low + max(-power, 0.0) * weight) / s2, (max(power, 0.0) - high) / s2
        if self.above is not None:
            left -= (1 + math.exp(LEFT - 1) * (low > self.above - 7 * cuts.width)) / cuts.width
        if self.below is not None:
            right -= math.exp(min((high - self.below) / cuts.width - 1, 100.0)) / cuts.width
        return _geometric(float(ends[0]), left * self.step) + _geometric(
            float(ends[-1]), right * self.step
        )

    def _errors(self, power: float, frequencies: Reals) -> tuple[Reals, float]:
        """How much the step leaves out of E r^(power + iu) and of E (1 + |p| |r - 1|), and how much the ends do."""
        cuts = self.cuts
        # At most what is left out at the next of a few larger frequencies.
        most = float(frequencies[-1]) if len(frequencies) else 0.0
        ladder = most * 2.0 ** np.arange(-7.0, 1.0) if most > 0 else np.zeros(1)
        plain, found = np.log1p(2 * cuts.rate * (abs(power) + ladder)), np.full(len(ladder), np.inf)
        for angle in self.moduli.angles:
            strip = self.moduli.integral(power, angle, ladder)
            strip = strip if self.above is not None else np.logaddexp(strip, plain + 1)
            rate = 2 * math.pi * angle * cuts.width / self.step
            found = np.minimum(
                found, strip + self.moduli.lift(angle) - rate + math.log(2 / -math.expm1(-rate))
            )
        outside = self._outside(power)
        if self.above is None:
            outside += (1 + abs(power) + most) * (self._outside(0.0) + self._outside(1.0))
        errors = np.exp(np.minimum(found, 700.0))
        return errors[np.minimum(np.searchsorted(ladder, frequencies), len(ladder) - 1)], outside


def _geometric(log_first: float, slope: float) -> float:
    """e^log_first (1 + q + q^2 + ...) for q = e^slope < 1; infinite otherwise."""
    if not (slope < 0 and log_first < 700):
        return math.inf
    return math.exp(log_first) / -math.expm1(max(slope, -700.0))


_PARTS = np.arange(6) / 6
"""A block of an envelope is bounded in so many parts."""


@dataclass(frozen=True)
class BelowSum(TabulatedTransform):
    """The sum of the losses where no copy is above its cut: a measure of mass below 1."""

    cuts: tuple[Cuts, ...]

    @property
    def copies(self) -> float:
        return sum(cut.times for cut in self.cuts)

    @property
    def minimum(self) -> float:
        return sum(cut.times * math.log1p(-cut.rate) for cut in self.cuts) * (1 + 16 * U)

    def curve(self, orders: Reals) -> Cumulants:
        parts = np.zeros((3, len(orders)))
        for cut in self.cuts:
            row = cut.pieces.below.curve(orders, sign=1.0)
            parts += cut.times * np.array([row.log_m, row.first, row.second])
        return Cumulants(parts[0], parts[1], parts[2])

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        for cut in self.cuts:
            line = cut.pieces.below.line(order, frequencies, sign=1.0)
            size = np.abs(line.log)
            found, doubt = (
                cut.times * line.log,
                cut.times * (line.error + 4 * U * len(self.cuts) * size),
            )
            # Where that is no value a bound on the modulus stands for it: it is off by at most twice that.
            most = np.minimum(found.real + doubt, float(found[0].real + doubt[0]))
            lost = ~(doubt < 1)
            log = log + np.where(lost, most + 0j, found)
            error = error + np.where(lost, 1.5, doubt)
        return Line(log, error)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        # Blocks are bounded through their ends: many short ones are better than few.
        finer = np.concatenate(
            [left + (right - left) * _PARTS for left, right in pairwise(edges)] + [edges[-1:]]
        )
        blocks = self._blocks(order, finer)
        within = [
            blocks[at : at + len(_PARTS)].max() for at in range(0, len(blocks) - 1, len(_PARTS))
        ]
        return np.append(within, blocks[-1])

    def _blocks(self, order: float, edges: Reals) -> Reals:
        """`log_envelope` with the blocks between these edges, as they are."""
        total = np.zeros(len(edges))
        for cut in self.cuts:
            line = cut.pieces.below.line(order, np.append(0.0, edges), sign=1.0)
            floor = float(line.floor[0])
            if not floor > -math.inf:
                return np.zeros(len(edges))
            center = float(cut.pieces.below.curve(np.array([order]), sign=1.0).first[0])
            variance = exp_or_inf(cut.pieces.below.moduli.second(order + 1, center) - floor)
            magnitude = np.exp(np.minimum((line.log.real + line.error)[1:] - floor, 0.0))
            shifted = cut.pieces.below.moduli.quiet(order + 1, edges, floor)
            total += cut.times * np.minimum(blockwise(magnitude, variance, edges), shifted)
        return total


@dataclass(frozen=True)
class ReverseSum(TabulatedTransform):
    """The sum of few losses in the other order, as sums over the same noise."""

    cut: Cuts

    def curve(self, orders: Reals) -> Cumulants:
        row, times = self.cut.pieces.whole.curve(orders, sign=-1.0), self.cut.times
        return Cumulants(times * row.log_m, times * row.first, times * row.second)

    def line(self, order: float, frequencies: Reals) -> Line:
        line, times = self.cut.pieces.whole.line(order, frequencies, sign=-1.0), self.cut.times
        doubt = times * (line.error + 4 * U * np.abs(line.log))
        lost = ~(doubt < 1)
        return Line(
            np.where(lost, times * line.log.real + doubt, times * line.log),
            np.where(lost, 1.5, doubt),
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return np.zeros(len(edges))


@dataclass(frozen=True)
class JumpSum(TabulatedTransform):
    """The sum of the losses on the outcomes where at least one copy is in its piece, divided by `mass`.

    Loss i has k_i copies; the transform of each is T_i, and over its piece alone B_i. That of the sum,
    prod T_i^k_i (1 - prod (1 - B_i / T_i)^k_i), has positive terms: it is at most prod T_i^k_i sum k_i |B_i / T_i|.

    Args:
        cuts: The losses and their cuts.
        pieces: For each loss the piece that at least one copy is in.
        whole: For each loss the transform T_i^k_i, over all outcomes or those below its upper cut.
        sign: 1 for the losses, -1 for those in the other order.
        mass: An upper bound on the mass of those outcomes.
    """

    cuts: tuple[Cuts, ...]
    pieces: tuple[Piece, ...]
    whole: tuple[Transform, ...]
    sign: float
    mass: float

    def curve(self, orders: Reals) -> Cumulants:
        log_m, first, second = np.zeros((3, len(orders)))
        logs: list[Reals] = []
        slopes: list[Reals] = []
        bends: list[Reals] = []
        for cut, piece, whole in zip(self.cuts, self.pieces, self.whole, strict=True):
            rest, jump = whole.curve(orders), piece.curve(orders, sign=self.sign)
            log_m, first, second = log_m + rest.log_m, first + rest.first, second + rest.second
            logs.append(math.log(cut.times) + jump.log_m - rest.log_m / cut.times)
            slopes.append(jump.first - rest.first / cut.times)
            bends.append(jump.second)
        total = np.logaddexp.reduce(logs)
        shares = np.exp(np.array(logs) - total)
        mean = (shares * slopes).sum(axis=0)
        spread = (shares * (np.array(bends) + np.square(slopes))).sum(axis=0) - mean * mean
        found = (
            log_m + total - math.log(self.mass),
            first + mean,
            second + np.maximum(spread, 1e-300),
        )
        unknown = ~np.isfinite(found).all(axis=0)  # where a term is infinite, so is all
        return Cumulants(*(np.where(unknown, np.inf, part) for part in found))

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        none: Complexes = np.zeros(len(frequencies), dtype=np.complex128)
        doubt, most = np.zeros_like(error), np.zeros_like(error)
        for cut, piece, whole in zip(self.cuts, self.pieces, self.whole, strict=True):
            rest, jump = (
                whole.line(order, frequencies),
                piece.line(order, frequencies, sign=self.sign),
            )
            log, error = log + rest.log, error + rest.error + 4 * U * np.abs(rest.log)
            ratio: Complexes = np.exp(jump.log - rest.log / cut.times)
            size = jump.error + rest.error / cut.times
            off = (
                2
                * np.abs(ratio)
                * np.expm1(np.minimum(size + 16 * U * (1 + np.abs(jump.log)), 700.0))
            )
            none = none + cut.times * log_one_plus(-ratio.real, -ratio.imag)
            # |log(1 - r') - log(1 - r)| in the growth of a modulus: (|1 - r| + off)^k - |1 - r|^k, wherever r is.
            distance = np.maximum(np.abs(1 - ratio), 1e-300)
            doubt = doubt + cut.times * (np.log1p(off / distance) + 64 * U * np.abs(ratio))
            most = most + cut.times * np.exp(
                jump.log.real + jump.error - float(rest.log[0].real / cut.times)
            )
        turned = np.expm1(none.real) - 2 * np.exp(none.real) * np.sin(none.imag / 2) ** 2
        value = -turned - 1j * np.exp(none.real) * np.sin(none.imag)
        top = max(float(np.abs(value[0])), 1e-300)
        modulus = np.exp(none.real)
        apart = np.where(
            doubt < 1, modulus * np.expm1(np.minimum(doubt, 1.0)), np.exp(none.real + doubt)
        )
        spread = (apart + 16 * U * np.abs(value)) / top
        value = value / top
        line = logarithm_of_excess(value.real - 1, value.imag, spread)
        log, error = (
            log + line.log + math.log(top),
            error + line.error + 16 * U * (1 + abs(math.log(top))),
        )
        # Where that is no value, the modulus is at most the sum of the terms' on the real line.
        lost = ~(error < 1)
        bound = (
            float(log[0].real - line.log[0].real)
            - math.log(top)
            + np.log(most)
            + 2 * float(error[0])
        )
        log = np.where(lost, bound + 0j, log)
        return Line(log - complex(math.log(self.mass)), np.where(lost, 1.5, error))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        worst, likely = np.full(len(edges), -np.inf), 0.0
        power = order + 1 if self.sign > 0 else -order
        for cut, piece, whole in zip(self.cuts, self.pieces, self.whole, strict=True):
            here, rest = (
                piece.line(order, np.zeros(1), sign=self.sign),
                whole.line(order, np.zeros(1)),
            )
            worst = np.maximum(
                worst, np.minimum(piece.moduli.envelope(power, edges) - float(here.floor[0]), 0.0)
            )
            log_ratio = float(
                here.log[0].real + here.error[0] - (rest.log[0].real - rest.error[0]) / cut.times
            )
            likely += cut.times * exp_or_inf(log_ratio)
        if (
            not 0 < likely < math.inf
        ):  # the factor below grows with `likely` from 1, where floats have only 0
            return np.minimum(worst, 0.0) if likely == 0 else np.zeros(len(edges))
        return np.minimum(worst + math.log(likely / -math.expm1(-likely)), 0.0)
