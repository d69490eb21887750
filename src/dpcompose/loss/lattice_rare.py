"""A composition of noises where large losses are rare, on lattices: all rounds below a cut, or one above it.

The outcomes of a round are cut at a place of the noise: (P, Q) = (P_b, Q_b) + (P_f, Q_f). The profile of k rounds adds up
over how many of them are above their cuts:
  none           that of k rounds of (P_b, Q_b);
  one            k times the integral of P_f(dl) h(e^(x - l)), h the profile of k - 1 rounds of (P_b, Q_b);
  two or more    at least 0, at most their probability, at most half the square of the sum of all k P_f.
As h is convex in e^-l, a cell of outcomes with masses p and q adds at least p h(e^x q / p), and at most what its ends add
if they share p and q. LargeLoss to the left h is at least P_b - e^y Q_b and rises by no more than e^y falls, since Q_b <= 1.

One tilt serves the rounds below the cuts, which the whole may not have: there rare, large losses make every moment large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from dpcompose.loss.lattice_noise import Cells, Coarse
from dpcompose.loss.lattice_plan import LEAST, LatticePlan, Rounds, UnfitError, planned, total
from dpcompose.loss.lattice_side import Side
from dpcompose.numerics import Reals, U, halved

_FINER = 0.01
"""log of how much farther from x a loss above a cut is than that of the cell before."""
_ORDERS = np.geomspace(0.05, 3e3, 90)
_DEEP = 14.0
"""log of how many times the losses above a cut are farther from it than the nearest cell is wide."""
_HALVINGS = 60
_GROUP = 8
"""Cells that count as one where only a guess is made."""
_SPARE = 8.0
"""log of how far a moment may be above delta: errors are relative to it."""
_TWICE = 1e-4
"""Two losses above their cuts count for less than half its square of delta."""
_FEW = 0.01
"""The largest probability of a loss above its cut."""


class CutGuess:
    """About where delta lies, from rounds in few cells with a sharp cut; it decides where to cut, and bounds nothing.

    Args:
        rows: The rounds.
    """

    def __init__(self, rows: Sequence[Rounds]) -> None:
        variance = sum(row.times * float(row.coarse.moments(np.zeros(1))[2, 0]) for row in rows)
        self.least = 1e-3 * math.sqrt(variance)
        self.rows = [(row.times, *_few(row.coarse)) for row in rows]

    def at(self, x: float) -> tuple[float, float]:
        """log delta(x), and the order at which the moments of the rounds below the cut are taken, both approximate."""
        orders = _ORDERS / max(x, self.least)
        level = self._level(x, orders, x) - np.log(orders) - np.log1p(orders)
        tail = sum(
            times * float((mass * np.maximum(-np.expm1(x - loss), 0.0)).sum())
            for times, mass, loss in self.rows
        )
        log_tail = math.log(max(tail, 1e-320))
        # Where only losses above x matter, no more than that is asked of the others.
        at = int(np.maximum(level, log_tail - 8.0).argmin())
        return float(np.logaddexp(level[at], log_tail)), float(orders[at])

    def cuts(self, x: float) -> list[float]:
        """Losses to cut at: the largest, at most a little above x, for which one tilt serves the rounds below it, and the
        least above which two losses hardly matter.
        """
        log_mass, order = self.at(x)
        orders, most = _ORDERS / max(x, self.least), _TWICE * math.exp(min(log_mass, 0.0) / 2)

        def serves(cut: float) -> bool:
            return bool(self._level(x, orders, cut).min() < log_mass + _SPARE)

        def matter(cut: float) -> bool:
            return (
                sum(times * float(mass[loss > cut].sum()) for times, mass, loss in self.rows) > most
            )

        high = x + 1 / order
        one = high if serves(high) else _last(serves, high)
        two = _last(matter, high)
        return [max(one, two), two] if one > two else [two, one]

    def _level(self, x: float, orders: Reals, cut: float) -> Reals:
        """log of the moments of all rounds below a cut, times e^(-order x)."""
        found = -orders * x
        for times, mass, loss in self.rows:
            kept = loss <= cut
            exponent = orders[:, None] * loss[kept]
            top = exponent.max(axis=1, initial=0.0)
            found = found + times * (top + np.log(np.exp(exponent - top[:, None]) @ mass[kept]))
        return np.where(np.isfinite(found), found, 1e9)

    def solve(self, log_mass: float, low: float, high: float) -> float:
        """The x at which log delta has a given value."""
        return halved(lambda x: self.at(x)[0] > log_mass, max(low, 1e-9 * high), high, steps=18)


def _few(coarse: Coarse) -> tuple[Reals, Reals]:
    """P's masses and mean losses of groups of neighboring cells."""
    ranked = np.argsort(coarse.loss)
    mass, loss = coarse.mass[ranked], coarse.loss[ranked]
    starts = np.arange(0, len(mass), _GROUP)
    found = np.add.reduceat(mass, starts)
    return found, np.add.reduceat(mass * loss, starts) / np.maximum(found, 1e-320)


def _last(holds: Callable[[float], bool], high: float) -> float:
    """About the largest number up to `high` for which a property holds, if it holds for all smaller ones."""
    low = 0.0
    for _ in range(12):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return high


@dataclass(frozen=True)
class LargeLoss:
    """The outcomes of one round above its cut, and the profile of all other rounds below theirs.

    Args:
        times: How many rounds there are.
        p: P's masses of cells, rounded up or down, shape (n,).
        low: The smallest loss in each.
        mean: ln(p / q) of each, rounded the other way.
        high: The largest loss.
        other: The other rounds on a lattice; None if there are none.
    """

    times: int
    p: Reals
    low: Reals
    mean: Reals
    high: Reals
    other: Side | None

    def above(self, x: float) -> float:
        """Return an upper bound on what one loss above the cut adds to delta(x)."""
        near, far = self._above(x - self.low), self._above(x - self.high)
        share = np.expm1(self.high - self.mean) / np.expm1(self.high - self.low)
        share = np.clip(np.where(self.high > self.low, share, 0.0) * (1 - 1e-9), 0.0, 1.0)
        return self.times * float((self.p * (near * share + far * (1 - share))).sum())

    def _above(self, y: Reals) -> Reals:
        if self.other is None:
            return -np.expm1(np.minimum(y, 0.0))
        # To the left of each point it rises by no more than e^y falls.
        known = self.other.losses + self.other.shift
        rises = np.exp(np.minimum(self.other.level, 0.0)) * (1 + 1e-12) + np.expm1(known)
        least = np.append(np.minimum.accumulate(rises[::-1])[::-1], np.inf)
        left = least[np.searchsorted(known, y)] - np.expm1(y) + 8 * U
        return np.minimum(self.other.profile(y), left)

    def below(self, x: float, missing: float) -> float:
        """Return a lower bound on the same; `missing`: P's mass above the cuts of the other rounds, at most."""
        y = x - self.mean
        found = -np.expm1(np.minimum(y, 0.0)) - missing
        if self.other is not None:
            found = np.maximum(found, self.other.profile(y))
        return self.times * float((self.p * np.maximum(found, 0.0)).sum())


class CutSide:
    """One side of a composition with rare, large losses, from lattices near one x.

    Args:
        rows: The rounds.
        x: Where.
        level: The loss above which outcomes count as large.
        points: How many points a lattice has.
        upper: Whether the side is the one above.
    """

    def __init__(
        self, rows: Sequence[Rounds], x: float, level: float, points: int, upper: bool
    ) -> None:
        self.upper, self.x = upper, x
        cut = [row.up_to(level) for row in rows]
        some = [row for row in cut if row.cut < math.inf]
        if not some:
            raise UnfitError
        self.large = [self._large(row, cut, points) for row in some]
        far = sum(each.times * float(each.p.sum()) * (1 + 1e-6) for each in self.large)
        self.beyond = 2 * sum(row.times * math.exp(row.log_tail) for row in cut)
        self.missing, self.several = far + self.beyond, far * far / 2
        if not far < _FEW:
            raise UnfitError
        self.side = Side(_planned(cut, x, points), upper=upper)

    def _large(self, row: Rounds, rows: Sequence[Rounds], points: int) -> LargeLoss:
        """The cells above the cut of one round, wider and wider, each with the composition of all other rounds."""
        noise, end = row.above if self.upper else row.below, row.coarse.ends[1]
        first, last = (float(noise.loss(np.array([each]))[0]) for each in (row.cut, end))
        apart = math.log(max(last - first, 1e-300))
        away = np.exp(np.arange(apart - _DEEP, apart, _FINER))
        away = np.concatenate([away, self.x - first + away, self.x - first - away])
        extra = noise.location(first + away[away > 0])
        places = np.unique(np.concatenate([[row.cut, end], row.coarse.places, extra]))
        places = places[(places >= row.cut) & (places <= end)]
        cells = noise.cells(places)
        cells = cells[~noise.under(places, row.cut)]
        side = 1 if self.upper else -1
        error = 4 * cells.error + 8 * U * (1 + cells.high)
        known = cells.mass > 1e-290
        mean = np.log1p(cells.excess / np.where(known, cells.mass, 1.0)) + side * error
        mean = np.where(known, mean, cells.high if self.upper else cells.low)
        mean = np.clip(mean, cells.low, cells.high)
        # A loss is good to 64 U of itself, and to its weight times the error of m x.
        moved = 2 * U * (64 + 8 * noise.scale * (end + noise.scale)) * cells.high
        others = [each._replace(times=each.times - (each is row)) for each in rows]
        others = [each for each in others if each.times]
        plan = None
        if others:
            y = self.x - _heaviest(others, cells, self.x)
            plan = _planned(others, max(y, 0.0), points // 4)
        other = plan and Side(plan, upper=self.upper)
        p = cells.dominated * (1 + side * error)
        low, high = cells.low - moved, cells.high + moved
        return LargeLoss(row.times, p, low, mean + side * moved, high, other)

    def mass(self, x: float) -> float:
        """One end of delta at x: the upper or the lower one, by the side."""
        none = float(self.side.profile(np.array([x]))[0])
        if self.upper:
            one = sum(each.above(x) for each in self.large)
            return (none + one + self.several + self.beyond) * (1 + 1e-9)
        return (none + sum(each.below(x, self.missing) for each in self.large)) * (1 - 1e-9)

    def point(self, log_mass: float, end: float) -> float:
        """One end of the epsilon at which delta is e^log_mass, or a looser one if that is what is known."""
        mass, proved = math.exp(log_mass), end
        step = 1e-3 * self.x
        x = self.x
        low, high = 0.0, math.inf
        for _ in range(_HALVINGS):
            found = self.mass(x)
            if found <= mass if self.upper else found >= mass:
                proved = min(proved, x) if self.upper else max(proved, x)
            low, high = (x, high) if found > mass else (low, x)
            if low > 0 and high < math.inf:
                x = (low + high) / 2
                if high - low <= 1e-9 * high:
                    break
            else:
                x = x + step if found > mass else x - step
                step *= 2
                if not x > 0:
                    x = high / 2
        return proved


def _heaviest(others: Sequence[Rounds], cells: Cells, x: float) -> float:
    """About the loss at which an outcome, with all others, adds most to delta(x)."""
    loss = (cells.low + cells.high) / 2
    deviation = math.sqrt(float(total(others, np.zeros(1))[2, 0]))
    orders = np.geomspace(1e-3, 1e3, 60) / max(deviation, 1e-150)
    level = total(others, orders)[0]
    chernoff = np.minimum((level[:, None] - orders[:, None] * (x - loss)).min(axis=0), 0.0)
    weight = np.log(np.maximum(cells.dominated, 1e-320)) + np.where(loss < x, chernoff, 0.0)
    return float(loss[int(np.where(np.isnan(weight), -np.inf, weight).argmax())])


def _planned(rows: Sequence[Rounds], x: float, points: int) -> LatticePlan:
    found = planned(list(rows), LEAST, x, points)
    if found is None:
        raise UnfitError
    return found
