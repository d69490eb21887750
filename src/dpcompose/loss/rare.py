"""Sums of sampled Gaussian losses where large losses are rare: cut in two, and answered together.

Where delta of rare, large losses lies, roughly: it decides where cuts and lines are placed, and bounds nothing.

With S the sum of the losses L and a smooth cut of each,
  delta(x) = E[(1 - e^(x - S))_+] = g(x) + far(x),   far(x) = P_far - e^x Q_far + e^x g'(-x),
g over all copies below their cuts, far over the event that at least one is above: P_far and Q_far are its probabilities
with the record and without it, and g' is the same function for the losses in the other order, on that event. On one
line g has a saddle point, which the whole loss may not have; g' needs no moment of a positive order of S. Both are
brackets by Poisson's formula, and delta(x) falls with x.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour import (
    LineReading,
    Transform,
    TransformSum,
    chernoff_bound,
    shortened,
    value_at,
    walk_to_proof,
)
from dpcompose.loss.cut_noise import BelowSum, Cuts, JumpSum, ReverseSum
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_grid import log_ratio
from dpcompose.numerics import Reals, U, exp_or_inf, halved
from dpcompose.values import Bound, Certificate, met

Rows = Sequence[tuple[SampledGaussianLoss, int]]
Mask = NDArray[np.bool_]


class OtherLosses(NamedTuple):
    """The composition of the finite losses that are not sampled Gaussians, in the order of the question and in the
    other one."""

    forward: Transform
    backward: Transform


class Plan(NamedTuple):
    """How to cut, and where to draw lines.

    Args:
        x: Where the lines are drawn.
        order: About the order of the saddle point there.
        tolerance: The wanted relative width of delta.
        least: What of delta does not matter.
        frequency: About the largest frequency of the lines.
        bottom: A loss that counts as small; 0 if none does.
        beyond: How far above x losses count as large, over the order.
        shifted: Whether paths beside the real line may be used.
    """

    x: float
    order: float
    tolerance: float
    least: float
    frequency: float
    bottom: float = 0.0
    beyond: float = 1.0
    shifted: bool = False


def _place_of(loss: SampledGaussianLoss, level: float) -> float:
    """About the place of the noise at which the loss has the value `level`; nothing is proved."""
    rise = math.log1p(math.expm1(level) / loss.rate) if level < 600 else level - math.log(loss.rate)
    return loss.noise**2 * rise + 0.5


def _width(loss: SampledGaussianLoss, order: float, sampled_weight: float) -> float:
    """The width of a cut, where the weight of the sampled part is `share`."""
    s = loss.noise
    return min(0.5 * s, 0.35 * s * s, 3 * s * s / (order * sampled_weight))


class Guess:
    """delta and the order of its saddle point to a few percent, from a short grid with a sharp cut."""

    def __init__(self, rows: Rows, other_losses: OtherLosses | None = None) -> None:
        self.other_losses = other_losses
        self.least = 0.3 * math.hypot(*(loss.rate * math.sqrt(times) for loss, times in rows))
        self.rows: list[tuple[SampledGaussianLoss, int, Reals, Reals, Reals, Reals]] = []
        for loss, times in rows:
            s, q = loss.noise, loss.rate
            x = s * np.arange(-8.0, 40.0, 0.1)
            weight = np.exp(-0.5 * (x / s) ** 2) * 0.1 / math.sqrt(2 * math.pi)
            rise = q * np.expm1(np.minimum((2 * x - 1) / (2 * s * s), 700.0))
            self.rows.append((loss, times, x, weight, log_ratio(x, s, q), rise))

    def at(self, x: float) -> tuple[float, float]:
        """log delta(x), and the order of its saddle point."""
        orders = np.geomspace(0.05, 3e3, 90) / max(x, self.least)
        level = self._level(x, orders, [ratio <= x for *_, ratio, _ in self.rows])
        tail = 0.0
        for _, times, _, weight, ratio, rise in self.rows:
            excess = np.maximum(rise[ratio > x] - math.expm1(x), 0.0)
            tail += times * float((weight[ratio > x] * excess).sum())
        level = level - np.log(orders) - np.log1p(orders)
        # Where only losses above x matter, no more than that is asked of the others.
        at = int(np.maximum(level, math.log(max(tail, 1e-320)) - 8.0).argmin())
        level = np.minimum(level, 1e9)
        slope = np.gradient(np.gradient(level, np.log(orders)), np.log(orders))[at]
        log_near = (
            float(level[at])
            + math.log(orders[at])
            - 0.5 * math.log(2 * math.pi * max(float(slope), 0.1))
        )
        return float(np.logaddexp(log_near, math.log(max(tail, 1e-320)))), float(orders[at])

    def _level(self, x: float, orders: Reals, below_cuts: Sequence[Mask]) -> Reals:
        """log of the moment of every order times e^(-order x), of the chosen points of each row."""
        level = -orders * x
        if self.other_losses is not None:
            level = level + self.other_losses.forward.curve(orders).log_m
        for (_, times, _, weight, ratio, rise), below in zip(self.rows, below_cuts, strict=True):
            exponent, linear = (orders[:, None] + 1) * ratio[below], orders[:, None] + 1
            excess = np.expm1(np.minimum(exponent, 700.0)) - linear * rise[below]
            log = times * np.log1p(excess @ weight[below])
            level = level + np.where(exponent.max(axis=1) < 690, log, np.inf)
        return level

    def plan(self, x: float, least: float, tolerance: float) -> Plan:
        """The split that suits a question whose answer is near x."""
        _, order = self.at(x)
        return Plan(x, order, tolerance, least, 3 * order)

    def bottom(self, x: float, log_least: float, order: float) -> float:
        """The largest of a few losses so small that all below it add less than that to delta(x); 0 if none is."""
        orders = np.geomspace(0.1, 3e3, 90) / x
        # The share above a cut falls like e^(-e^v), v the distance in widths.
        wide = math.log(max(-2 * log_least, 2.0))
        for sampled_weight in (0.8, 0.6, 0.45, 0.3, 0.2, 0.12, 0.07, 0.04):
            below_cuts = [
                x_of <= _place_of(loss, sampled_weight * x) + _width(loss, order, 1.0) * wide
                for loss, _, x_of, *_ in self.rows
            ]
            level = self._level(x, orders, below_cuts)
            above = sum(
                times * float(weight[ratio > sampled_weight * x].sum())
                for _, times, _, weight, ratio, _ in self.rows
            )
            if float(level.min()) < log_least and above < 0.1:
                return sampled_weight * x
        return 0.0

    def solve(self, log_mass: float, low: float, high: float) -> float:
        """The x whose delta has that logarithm."""
        return halved(lambda x: self.at(x)[0] > log_mass, max(low, 1e-9 * high), high, steps=14)


FARTHEST = 200.0
"""No loss beyond is looked at."""
_MOST_POINTS, _MOST_PATH_POINTS = 25_000, 200_000
_ROUNDS, _MOST_WORK = 8, 8e8
_STALE = (2, 1)
"""After more splits than that, on the real line or beside it, which hardly narrow an answer, no other is tried."""
_MANY_NODES, _MOST_NODES = 2000, 20_000
_FEW_COPIES = 1000
_COARSE = 1e-7
"""Above this relative width paths beside the real line are tried too."""


@dataclass(frozen=True)
class Split:
    """The cuts of all rows, and lines near one x.

    Args:
        rows: The losses, the record removed, with their counts.
        plan: How to cut them.
        other_losses: All other losses, if there are any.
    """

    rows: Rows
    plan: Plan
    other_losses: OtherLosses | None = None

    @cached_property
    def cuts(self) -> tuple[Cuts, ...]:
        """For each row the place at which its noise is cut."""
        return tuple(self._cut(loss, times) for loss, times in self.rows)

    def _cut(self, loss: SampledGaussianLoss, times: int) -> Cuts:
        s, q = loss.noise, loss.rate
        level = self.plan.x + self.plan.beyond / self.plan.order
        sampled_weight = -math.expm1(math.log1p(-q) - level)
        # Where the loss is `level`, or where one is so rare that it does not matter.
        at = _place_of(loss, level)
        rare = 1 + s * math.sqrt(2 * max(math.log(times / self.plan.least), 1.0)) * 1.05
        width = _width(loss, self.plan.order, sampled_weight)
        at = min(at, rare + 6 * width)
        low, order, frequency = min(self._lowest(loss), at), self.plan.order, self.plan.frequency
        return Cuts(
            s, q, times, loss.ulps, at=at, low=low, width=width,
            order=order, frequency=frequency, shifted=self.plan.shifted,
        )  # fmt: skip

    def _lowest(self, loss: SampledGaussianLoss) -> float:
        """The place of each row at which its loss is `bottom`; far to the left if there is no bottom."""
        if self.plan.bottom <= 0:
            return -12 * loss.noise
        return _place_of(loss, self.plan.bottom)

    @property
    def sound(self) -> bool:
        """Whether the points are few enough, and what is above the cuts is rare."""
        points, path = (
            sum(cut.points for cut in self.cuts),
            sum(cut.path_points for cut in self.cuts),
        )
        few = points <= _MOST_POINTS and path <= _MOST_PATH_POINTS
        narrower = few and self.without.upper < 0.9 and self.excess.width < 1e-3
        return narrower and self.mass > 0

    @property
    def work(self) -> float:
        """How many values of r^(iu) the lines took; those that keep their distance from 1 count five times, and those
        beside the real line eight times.
        """
        lines = [line.contour for line in (self.below_cuts, self.others) if line is not None]
        nodes = sum(line.nodes for line in lines if line is not None)
        careful = 5.0 if max(cut.times for cut in self.cuts) > _FEW_COPIES else 1.0
        return (
            sum(cut.points for cut in self.cuts) * nodes * (8.0 if self.plan.shifted else careful)
        )

    @property
    def order_found(self) -> float | None:
        """The order of the contour on which g is read."""
        return None if self.below_cuts.contour is None else self.below_cuts.contour.order

    @cached_property
    def below_cuts(self) -> LineReading:
        """g at x, divided by `mass`; without what has small losses only, if that is left out."""
        below = tuple(BelowSum((cut,)) for cut in self.cuts)
        if self.plan.bottom > 0:
            pieces = tuple(cut.pieces.between for cut in self.cuts)
            found: Transform = JumpSum(self.cuts, pieces, below, 1.0, self.mass)
        else:
            found = BelowSum(self.cuts)
        return self._read(self._with_others(found), self.plan.x)

    def _with_others(self, transform: Transform, *, backward: bool = False) -> Transform:
        if self.other_losses is None:
            return transform
        return TransformSum(
            (transform, self.other_losses.backward if backward else self.other_losses.forward)
        )

    def _read(self, transform: Transform, x: float) -> LineReading:
        return value_at(transform, x, tolerance=self.plan.tolerance, most_nodes=_MOST_NODES)

    @cached_property
    def mass(self) -> float:
        """At least the probability of a loss that is not small, where small ones are left out; else 1."""
        if self.plan.bottom <= 0:
            return 1.0
        pieces = [(cut.times, cut.pieces.between) for cut in self.cuts]
        parts = [
            times * (piece.expectation(0.0).upper + piece.expectation(1.0).upper)
            for times, piece in pieces
        ]
        return min(sum(parts) * (1 + 8 * U), 1.0)

    @cached_property
    def _left_out(self) -> float:
        """At least what all small losses together add to delta from x on, by the best of a few moments."""
        if self.plan.bottom <= 0:
            return 0.0
        small = self._with_others(BelowSum(tuple(replace(cut, at=cut.low) for cut in self.cuts)))
        least = 0.0
        for factor in 0.8 * 1.25 ** np.arange(13):
            order = shortened(self.plan.order * float(factor), bits=24)
            bound = chernoff_bound(order, small.moment_bound(order), self.plan.x)
            if least < 0 and not bound < least:  # the logarithm of a moment is convex
                break
            least = min(bound, least)
        return math.exp(least)

    @cached_property
    def without(self) -> Bound:
        """The probability, without the record, that some copy is above its cut."""
        if not all(cut.without.upper < 0.9 for cut in self.cuts):
            return Bound(0.0, 1.0)
        low = sum(cut.times * math.log1p(-cut.without.lower) for cut in self.cuts)
        high = sum(cut.times * math.log1p(-cut.without.upper) for cut in self.cuts)
        return Bound(max(-math.expm1(low) * (1 - 32 * U), 0.0), -math.expm1(high) * (1 + 32 * U))

    @cached_property
    def excess(self) -> Bound:
        """That probability with the record, less that without it: from (1 - P) / (1 - Q) = 1 - (P - Q) / (1 - Q) of
        each copy."""
        if not all(
            max(map(abs, _ends(cut.excess))) < 0.05 and cut.without.upper < 0.9 for cut in self.cuts
        ):
            return Bound(-1.0, 1.0)
        low = high = 0.0
        for cut in self.cuts:
            shares = [
                each / (1 - part) for each in _ends(cut.excess) for part in _ends(cut.without)
            ]
            low, high = (
                low + cut.times * math.log1p(-min(shares)),
                high + cut.times * math.log1p(-max(shares)),
            )
        lower, upper = -math.expm1(low), -math.expm1(high)
        ends = [end * (1 - part) for end in (lower, upper) for part in _ends(self.without)]
        return Bound(min(ends) - 32 * U * abs(lower), max(ends) + 32 * U * abs(upper))

    @cached_property
    def others(self) -> LineReading | None:
        """g' at -x, divided by Q_far; None where the far part does not matter."""
        if self.excess.upper + self.without.upper <= self.plan.least or not self.without.upper > 0:
            return None
        return self._read(self._with_others(self._jumps, backward=True), -self.plan.x)

    @cached_property
    def _jumps(self) -> JumpSum:
        """The losses in the other order, of the case in which one copy is above its cut."""
        whole = tuple(
            ReverseSum(cut) if cut.few else loss.reverse.transform(times)
            for cut, (loss, times) in zip(self.cuts, self.rows, strict=True)
        )
        return JumpSum(
            self.cuts,
            tuple(cut.pieces.above for cut in self.cuts),
            whole,
            sign=-1.0,
            mass=self.without.upper,
        )

    @cached_property
    def _moments(self) -> list[tuple[float, float]]:
        """A few moments of the measure of `others`: orders, and upper bounds on their logarithms."""
        orders = (self.plan.order * 4.0 ** np.arange(-1, 5)).tolist()
        jumps = self._with_others(self._jumps, backward=True)
        return [(order, jumps.moment_bound(order)) for order in orders]

    def bracket(self, x: float) -> Bound:
        """delta at an x near the one of the lines."""
        low, high = _at(self.below_cuts, x)
        above_cuts, left_out = self.above_cuts(x), self._left_out
        if left_out > 0:  # at orders of at most 12 times that of the plan
            left_out *= exp_or_inf(max(self.plan.x - x, 0.0) * 12.1 * self.plan.order)
        lower, upper = (
            self.mass * low + above_cuts.lower,
            self.mass * high + above_cuts.upper + left_out,
        )
        if not lower <= upper:
            return Bound(0.0, 1.0)
        return Bound(max(lower, 0.0) * (1 - 8 * U), max(upper, 0.0) * (1 + 8 * U))

    def above_cuts(self, x: float) -> Bound:
        others = self.others
        if others is None:
            return Bound(0.0, self.excess.upper + self.without.upper)
        growth, rise, mass = math.exp(x), math.expm1(x), self.without.upper
        low, high = _at(others, -x)
        if not high <= 2 * low:  # where no line is good one moment may be enough
            high = min(
                high,
                *(exp_or_inf(chernoff_bound(order, log_m, -x)) for order, log_m in self._moments),
            )
        lower = self.excess.lower - rise * self.without.upper + growth * mass * low
        upper = self.excess.upper - rise * self.without.lower + growth * mass * high
        rounding = 16 * U * (abs(self.excess.upper) + (rise + growth * high) * mass)
        if not lower - rounding <= upper + rounding:  # where e^x overflows
            return Bound(0.0, self.excess.upper + self.without.upper)
        upper = min(upper + rounding, self.excess.upper + self.without.upper)
        lower = min(max(lower - rounding, 0.0), upper)
        return Bound(lower, upper)


def _following(guess: Guess, split: Split, x: float) -> Plan | None:
    """A split that suits the answer near x better; None if none is known."""
    plan, contour = split.plan, split.below_cuts.contour
    if contour is None:
        return None
    poor = contour.smoothing > 0 or contour.nodes > _MANY_NODES
    if (
        poor
        and plan.bottom <= 0
        and (bottom := guess.bottom(x, math.log(plan.least), plan.order)) > 0
    ):
        return plan._replace(x=x, bottom=bottom)
    if poor and plan.frequency > 150 * plan.order:
        return None  # finer points have not helped
    others, above_cuts, beyond = split.others, split.above_cuts(x), plan.beyond
    reach = 8 * plan.frequency if poor else float(contour.frequency[-1])
    if others is not None and others.contour is not None:
        if others.contour.smoothing <= 0:
            reach = max(reach, float(others.contour.frequency[-1]))
        if above_cuts.upper - above_cuts.lower > 1e6 * plan.least and beyond < 16:
            beyond = 4 * beyond
    moved = (
        abs(x - plan.x) * contour.order
        + abs(math.log(contour.order / plan.order))
        + abs(beyond - plan.beyond)
    )
    if moved < 0.7 and reach <= 1.05 * plan.frequency:
        return None
    reach = 1.1 * max(reach, contour.order)
    return plan._replace(
        x=x, order=plan.order if poor else contour.order, frequency=reach, beyond=beyond
    )


def _narrower(enclosure: Bound, narrower: Bound, split: Split) -> Bound:
    """The intersection of two enclosures: the first itself, if the second does not narrow it."""
    lower, upper = met(enclosure, narrower)
    if not (narrower.upper < enclosure.upper or narrower.lower > enclosure.lower):
        return enclosure
    contour = split.below_cuts.contour
    method = f"split by the largest loss, {contour.nodes if contour else 0} nodes"
    return Bound(lower, upper, Certificate(method))


def _ends(bound: Bound) -> tuple[float, float]:
    return bound.lower, bound.upper


def _at(reading: LineReading, x: float) -> tuple[float, float]:
    if reading.contour is None:
        return 0.0, 1.0
    bracket = reading.contour.bracket(x)
    if not bracket.lower <= bracket.upper:  # beyond floats nothing is known
        return 0.0, 1.0
    return max(bracket.lower, 0.0), min(bracket.upper, 1.0)


def delta(
    rows: Rows,
    x: float,
    enclosure: Bound,
    *,
    tolerance: float,
    other_losses: OtherLosses | None = None,
) -> Bound:
    """delta(x), no wider than what is known of it already; `other_losses` are those of `Split`."""
    guess = Guess(rows, other_losses)
    start = guess.plan(x, max(enclosure.lower, 1e-4 * enclosure.upper, 1e-280) * 1e-13, tolerance)

    def read(split: Split, enclosure: Bound, x: float) -> tuple[Bound, float]:
        return _narrower(enclosure, split.bracket(x), split), x

    return _searched(guess, Split(rows, start, other_losses), enclosure, read, tolerance)


def epsilon(
    rows: Rows,
    least: float,
    most: float,
    enclosure: Bound,
    *,
    tolerance: float,
    other_losses: OtherLosses | None = None,
) -> Bound:
    """The x with delta(x) = mass for every mass in [least, most], at most as wide as what is known of it.

    Args:
        rows: The losses, the record removed, with their counts.
        least: The smallest value of delta.
        most: The largest.
        known: An enclosure of x.
        tolerance: The wanted relative width.
        other_losses: As in `Split`.
    """
    guess = Guess(rows, other_losses)
    x = guess.solve(math.log(least), max(enclosure.lower, 0.0), min(enclosure.upper, FARTHEST))
    _, order = guess.at(x)
    start = guess.plan(
        x, max(least, 1e-280) * 1e-13, min(max(tolerance * order * x / 4, 1e-13), 1e-3)
    )

    def read(split: Split, enclosure: Bound, x: float) -> tuple[Bound, float]:
        if enclosure.lower <= 0 and split.bracket(0.0).upper <= least:
            return Bound(0.0, 0.0, Certificate("split by the largest loss, delta at 0")), x
        here = split.bracket(split.plan.x)
        if here.upper < 2 * here.lower:
            x, narrower = _solved(split, least, most, max(enclosure.lower, 0.0), enclosure.upper)
            enclosure = _narrower(enclosure, narrower, split)
        return enclosure, x

    return _searched(guess, Split(rows, start, other_losses), enclosure, read, 10 * tolerance)


@np.errstate(
    all="ignore"
)  # an overflow ends as an infinite or undefined bracket, which certifies nothing
def _searched(
    guess: Guess,
    first: Split,
    enclosure: Bound,
    read: Callable[[Split, Bound, float], tuple[Bound, float]],
    tolerance: float,
) -> Bound:
    """Narrow an answer by splits that improve on one another, on the real line and then beside it.

    Args:
        guess: The guess behind the first split.
        first: The first split.
        known: An enclosure of the answer.
        read: Returns what is known after a split, and where to split next.
        tolerance: The wanted relative width.
    """
    x, spent = first.plan.x, 0.0
    for shifted in (False, True):
        plan, stale = first.plan._replace(shifted=shifted), 0
        for _ in range(_ROUNDS):
            split = replace(first, plan=plan)
            if not split.sound:
                break
            before = enclosure.width
            enclosure, x = read(split, enclosure, x)
            spent, stale = spent + split.work, 0 if enclosure.width < 0.99 * before else stale + 1
            narrow = enclosure.width <= tolerance * enclosure.upper
            following = None if narrow else _following(guess, split, x)
            if following is None or stale > _STALE[shifted]:
                break
            if spent > _MOST_WORK:
                certificate = enclosure.certificate
                notes = (*certificate.notes, f"stopped after {spent:.2g} evaluations")
                return replace(enclosure, certificate=replace(certificate, notes=notes))
            plan = following
        if enclosure.width <= max(_COARSE, tolerance) * enclosure.upper:
            break
    return enclosure


def _solved(
    split: Split, least: float, most: float, low: float, high: float
) -> tuple[float, Bound]:
    """A root on the lines of the split, and what they prove: a walk outward from there."""

    def excess(x: float) -> float:
        bound = split.bracket(x)
        middle = (max(bound.lower, 0.0) + min(bound.upper, 1.0)) / 2
        return math.log(middle / least) if middle > 0 else -800.0

    top = min(high, 2 * FARTHEST)
    left, right, x = low, top, split.plan.x
    value = excess(x)
    rate = split.order_found or split.plan.order
    for _ in range(30):
        left, right = (x, right) if value > 0 else (left, x)
        step = min(max(value / rate, -2 / rate), 2 / rate)
        target = x + step
        if not left < target < right:
            target = (left + right) / 2
        moved, x, before = target - x, target, value
        value = excess(x)
        if moved and (before - value) / moved > 0:
            rate = (before - value) / moved
        if abs(value) < 1e-12 or abs(moved) <= 1e-14 * x:
            break
    bound = split.bracket(x)
    offset = max((bound.upper - bound.lower) / max(bound.upper, 1e-320) / rate, 4e-16 * x)
    upper = walk_to_proof(lambda point: split.bracket(point).upper <= least, x, offset, top)
    upper = upper if upper < top else high  # the walk ends unproved at `top`
    lower = -walk_to_proof(lambda point: split.bracket(-point).lower >= most, -x, offset, -low)
    return x, Bound(min(lower, upper), upper)
