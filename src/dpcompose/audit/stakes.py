"""Stakes on the cells of one feature: a Bayesian portfolio of simple bets, weighed by how they would have paid.

A bet on the event S says that coin 1 is likelier there than the claim allows: with a stake u on S its factor is
  s (1 + u) for coin 1 in S,  s (1 - e^epsilon u) for coin 0 in S,  s elsewhere,  s = 1 / (1 + delta u / 2),
which is Theorem 1 with f = s u on S. Simple bets are fixed before any coin: every stake of a grid on every lower tail,
upper tail and single cell of the feature, and on unions of cells. So the evidence of a bet, ln of its factor on all
past rows, needs no correction for having been chosen, and rows that nobody bet on count too. The portfolio's stakes are
the mean under the posterior weights. A convex combination of stakes is again Theorem 1's: factors are linear in them,
and the charge for delta is convex.

The union of cells with a common stake is summed over all unions at once: each cell is in or out with probability 1/2.

What paid on past rows is believed more than its evidence says: the weight of an event has `LEADING` times the
evidence, while the size of its stake follows the evidence itself. Weights come from the past alone: any are allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.claim import Point
from dpcompose.audit.outcome import Reals

MOST_ATOMS = 40
_HALF = np.concatenate([np.arange(1, 32) / 32, 0.5 ** np.arange(6, 11)])
LEVELS = np.unique(np.concatenate([_HALF, 1 - _HALF]))
LEAST_ROWS = 4
"""About so many past rows lie between two quantiles."""


@dataclass(frozen=True)
class Cells:
    """Cells between cuts, each with its lower cut; NaN has a cell of its own, the last.

    Args:
        cuts: Increasing numbers.
    """

    cuts: tuple[float, ...]

    @classmethod
    def of(cls, scores: Reals) -> Cells:
        """Cells for rows to come, from the scores of past ones, whose coins play no part.

        A value that came twice has a cell, at most `MOST_ATOMS` of them; so has what lies between two of these.
        """
        known = np.sort(scores[~np.isnan(scores)])
        if not len(known):
            return cls(())
        levels = LEVELS[np.minimum(LEVELS, 1 - LEVELS) * len(known) >= LEAST_ROWS]
        levels = (
            levels[:: max(1, int(len(levels) * LEAST_ROWS / len(known)))]
            if len(levels)
            else np.array([0.5])
        )
        values, times = np.unique(known, return_counts=True)
        again = values[times > 1]
        atoms = again[np.argsort(-times[times > 1], kind="stable")[:MOST_ATOMS]]
        cuts = np.concatenate(
            [np.quantile(known, levels, method="lower"), atoms, np.nextafter(atoms, np.inf)]
        )
        return cls(tuple(np.unique(cuts[np.isfinite(cuts)] + 0.0).tolist()))

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.cuts) + 2

    @cached_property
    def prior(self) -> Reals:
        """Weights for bets on a single cell, sum at most 1: most on cells of one value, if there are any."""
        known = self._edges
        atoms = np.zeros(self.count, dtype=bool)
        atoms[1 : len(known)] = known[1:] == np.nextafter(known[:-1], np.inf)
        even = np.full(self.count, 1 / self.count)
        return 0.2 * even + (0.8 * atoms / np.sum(atoms) if np.any(atoms) else 0.0)

    @cached_property
    def _edges(self) -> Reals:
        return np.array(self.cuts)

    def place(self, scores: Reals) -> NDArray[np.intp]:
        """The cell of every score."""
        found = np.searchsorted(self._edges, scores, side="right")
        found[np.isnan(scores)] = self.count - 1
        return found

    def words(self, place: int) -> str:
        """A cell in words."""
        if place == self.count - 1:
            return "is NaN"
        low = self.cuts[place - 1] if place else None
        high = self.cuts[place] if place < len(self.cuts) else None
        if low is not None and high == np.nextafter(low, np.inf):
            return f"is {low!r}"
        above = "" if low is None else f"at least {low:.6g}"
        below = "" if high is None else f"below {high:.6g}"
        return " and ".join(text for text in (above, below) if text) or "is any number"


UNIT = 1 << 50
"""Stakes are integers over it."""
FRACTIONS = np.concatenate(
    [
        1 - 0.5 ** np.array([8.0, 5.0, 3.0]),
        0.5 ** np.arange(1, 3.1, 0.5),
        0.5 ** np.arange(3.7, 12, 0.75),
    ]
)
"""Stakes on a grid, as shares of the largest, e^-epsilon."""
MERGED, ODDS = (1, 4, 16), (1.0, 1 / 32)
"""Unions of cells, or of so many together; the prior odds that one is in a union."""
IDLE, TAILS, SINGLE, UNIONS = 0.35, 0.29, 0.23, 0.13
"""The prior weights of not betting, of tails, of single cells and of unions."""
FREE, APART, MIRRORED = 0.15, 0.5, 0.4
"""The prior weights of a stake of its own for each cell, of one for each coin, and of mirrored tails in the rest."""
GRID = np.log(
    np.concatenate([np.full(3, 0.06), np.full(len(FRACTIONS) - 3, 0.82 / (len(FRACTIONS) - 3))])
)
"""ln of the prior weights of the grid: an event that isolates a world wants one of the first."""
LOGARITHMIC = 0.4
"""The share of the weight of tails that is even over the logarithm of their rows; the rest is even over the cells."""
LEADING = 2.0
"""The power of the evidence by which events that paid lead the others."""
LEAST_FACTOR = 1e-3
"""No factor is smaller: a bet never loses everything."""


@dataclass(frozen=True)
class Stakes:
    """The stakes of one feature.

    Args:
        f: On coin 1, for every point and cell, in units of 1 / UNIT.
        g: On coin 0.
    """

    f: NDArray[np.int64]
    g: NDArray[np.int64]

    def log_factors(self, points: Sequence[Point]) -> Reals:
        """ln of the factor of coin 0 and of coin 1 in every cell, shape (2, cells); in floats, for the loop."""
        return np.log(_factors(self.f / UNIT, self.g / UNIT, points))


def _factors(f: Reals, g: Reals, points: Sequence[Point]) -> Reals:
    """The factors of Theorem 1."""
    growth = np.array([point.growth for point in points])[:, None]
    charge = sum(
        point.delta / 2 * (np.max(f[place]) + np.max(g[place]))
        for place, point in enumerate(points)
    )
    return np.array([(g - growth * f).sum(axis=0), (f - growth * g).sum(axis=0)]) + (1 - charge)


def evidence(
    counts: NDArray[np.intp], points: Sequence[Point], single: Reals, rows: Reals
) -> float:
    """ln of the wealth of the whole portfolio, each bet with its prior weight, on rows of these counts.

    It is a mean of products of Theorem 1's factors with weights that are fixed: where cells, `single` and `rows` are from
    before the rows, its expectation under the claim is at most 1. (For f on coin 1 and g on coin 0 in the same cells too:
    E[(1 + f (b - e^eps (1 - b))) (1 + g ((1 - b) - e^eps b))] <= 1 + delta (F + G) / 2 <= (1 + delta F / 2) (1 + delta G / 2).)

    Args:
        counts: The rows of either coin in each cell, shape (2, cells).
        points: Points of the claim's curve.
        single: The prior weights of bets on one cell, sum at most 1.
        rows: Earlier rows in each cell, from which the prior weights of tails are.
    """
    zeros, ones = counts.astype(np.float64)
    found = [
        _both(
            _side(ones, zeros, point, single, rows, leading=False),
            _side(zeros, ones, point, single, rows, leading=False),
            leading=False,
        )[0]
        for point in points
    ]
    return _log_sum(np.array(found)) - float(np.log(len(points)))


def stakes(
    ones: Reals, zeros: Reals, points: Sequence[Point], single: Reals
) -> tuple[float, Stakes]:
    """The evidence of past rows, and the stakes that they suggest.

    Args:
        ones: The number of past rows of coin 1 in each cell; the last cell is beside the order of the others.
        zeros: The same of coin 0.
        points: Points of the claim's curve.
        single: The prior weights of bets on one cell, sum at most 1.
    """
    found = [
        _both(
            _side(ones, zeros, point, single, ones + zeros),
            _side(zeros, ones, point, single, ones + zeros),
        )
        for point in points
    ]
    evidence = np.array([each[0] for each in found])
    total = _log_sum(evidence)
    weights = np.exp(evidence - total)
    f, g = (
        np.array([w * each[side] for w, each in zip(weights, found, strict=True)])
        for side in (1, 2)
    )
    # Both in one cell lose on either coin.
    both = np.minimum(f, g)
    f, g = f - both, g - both
    least = float(np.min(_factors(f, g, points)))
    # A factor is 1 plus something linear in the stakes.
    scale = 1.0 if least >= LEAST_FACTOR else (1 - 2 * LEAST_FACTOR) / (1 - least)
    whole = [np.floor(each * scale * UNIT).astype(np.int64) for each in (f, g)]
    return total - float(np.log(len(points))), Stakes(whole[0], whole[1])


def twin_stakes(
    ones: Reals, zeros: Reals, points: Sequence[Point], one: int, zero: int
) -> tuple[float, Stakes]:
    """The evidence and the stakes of bets on coin 1 in one cell and, as much, on coin 0 in another one.

    Stakes of the grid alone are mixed, so that little has to be learned: what is known beforehand is which cell is whose.
    """
    wins, losses = ones[one] + zeros[zero], zeros[one] + ones[zero]
    rows, logs = float(np.sum(ones) + np.sum(zeros)), list[Reals]()
    f, g = np.zeros((2, len(points), len(ones)))
    for point in points:
        share = FRACTIONS / point.growth
        paid = wins * np.log1p(share) + losses * np.log1p(-FRACTIONS)
        logs.append(paid - rows * np.log1p(point.delta * share) + GRID - np.log(len(points)))
    total = float(np.logaddexp(np.log(IDLE), _log_sum(np.concatenate(logs)) + np.log1p(-IDLE)))
    for place, (point, each) in enumerate(zip(points, logs, strict=True)):
        share = FRACTIONS / point.growth
        weights = np.exp(each + np.log1p(-IDLE) - total)
        f[place, one] = g[place, zero] = float(weights @ (share / (1 + point.delta * share)))
    whole = [np.floor(each * (1 - LEAST_FACTOR) * UNIT).astype(np.int64) for each in (f, g)]
    return total, Stakes(whole[0], whole[1])


def hopes(ones: Reals, zeros: Reals, points: Sequence[Point]) -> float:
    """The gain of the best tail or cell at its best stake: a cheap measure of the worth of a feature."""
    growth = min(point.growth for point in points)
    hope = 0.0
    for wins, losses in ((ones, zeros), (zeros, ones)):
        each = np.array([wins, losses])
        events = np.concatenate(
            [np.cumsum(each, axis=1), np.cumsum(each[:, ::-1], axis=1), each], axis=1
        )
        won, lost = events[:, events[0] > growth * events[1]]
        rows = won + lost
        gains = won * np.log(won / rows * (1 + 1 / growth)) + lost * np.log(
            np.maximum(lost, 0.5) / rows * (1 + growth)
        )
        hope += float(np.max(gains, initial=0.0))
    return hope


@dataclass(frozen=True)
class Side:
    """The simple bets on one coin, by their stakes on the grid.

    Args:
        size: f of each stake of the grid.
        cuts: ln of the prior weights of the lower and of the upper tails, shape (2, cells).
        tails: Evidence of the lower and of the upper tails, shape (2, cells, grid).
        evidence: Evidence of all bets with a stake, shape (grid,).
        inside: The mean share of each cell in these bets, shape (cells, grid).
        free: Evidence of each cell with a stake of its own.
        own: The stakes of that bet, shape (cells,).
    """

    size: Reals
    cuts: Reals
    tails: Reals
    evidence: Reals
    inside: Reals
    free: float
    own: Reals


def _side(
    wins: Reals, losses: Reals, point: Point, prior: Reals, rows: Reals, *, leading: bool = True
) -> Side:
    """The bets that win where `wins` outnumber `losses` by more than the claim allows."""
    share = FRACTIONS / point.growth
    size = share / (1 + point.delta * share / 2)
    cost = float(np.sum(wins) + np.sum(losses)) * np.log1p(point.delta * share / 2)
    log = wins[:, None] * np.log1p(share) + losses[:, None] * np.log1p(-FRACTIONS)
    cells = len(log)
    tails = np.array([np.cumsum(log, axis=0), np.cumsum(log[::-1], axis=0)[::-1]]) - cost
    cuts = np.array([_cuts(rows), _cuts(rows[::-1])[::-1]])
    alone = log - cost
    prior_logs = np.concatenate([*(cuts + np.log(TAILS / 2)), np.log(SINGLE * prior)])
    events = np.concatenate([*tails, alone])
    events = events + leading * _lead(events) + prior_logs[:, None]
    unions: list[Reals] = []
    within: list[Reals] = []
    for width in MERGED:
        merged = np.add.reduceat(log, np.arange(0, cells, width), axis=0)
        for odds in ODDS:
            each = np.logaddexp(0.0, merged + np.log(odds)) - np.log1p(odds)
            unions.append(np.sum(each, axis=0) - cost)
            within.append(np.repeat(_logistic(merged + np.log(odds)), width, axis=0)[:cells])
    united = np.array(unions)
    united = united + leading * _lead(united) + np.log(UNIONS / len(unions))
    evidence = np.logaddexp.reduce(
        np.concatenate([events, united, np.full((1, len(size)), np.log(IDLE))]), axis=0
    )
    lower, upper, single = np.exp(events - evidence).reshape(3, cells, len(size))
    inside = np.cumsum(lower[::-1], axis=0)[::-1] + np.cumsum(upper, axis=0) + single
    for weight, each in zip(united, within, strict=True):
        inside += np.exp(weight - evidence) * each
    mean = np.logaddexp.reduce(log, axis=1) - np.log(len(size))
    own = np.exp(log - np.logaddexp(0.0, mean)[:, None] - np.log(len(size))) @ size
    free = float(np.sum(np.logaddexp(0.0, mean) - np.log(2)) - cost[0] + np.log(FREE))
    return Side(
        size=size, cuts=cuts, tails=tails, evidence=evidence, inside=inside, free=free, own=own
    )


def _both(one: Side, zero: Side, *, leading: bool = True) -> tuple[float, Reals, Reals]:
    """The evidence and both stakes of one point.

    Some of the weight has a stake of its own on each coin; the rest has one for both, and within it some is on pairs of
    tails that mirror each other.
    """
    alone: list[tuple[float, Reals]] = []
    for side in (one, zero):
        evidence = side.evidence + GRID
        total = float(np.logaddexp(_log_sum(evidence) + np.log1p(-FREE), side.free))
        stake = side.inside @ (side.size * np.exp(evidence + np.log1p(-FREE) - total))
        alone.append((total, stake + np.exp(side.free - total) * side.own))
    common = one.evidence + zero.evidence + GRID + np.log1p(-MIRRORED) + np.log1p(-APART)
    mirrored = np.array([one.tails[side][:-1] + zero.tails[1 - side][:-1][::-1] for side in (0, 1)])
    cuts = one.cuts[:, :-1, None]
    mirrored = (
        mirrored + leading * _lead(mirrored) + GRID + cuts + np.log((1 - APART) * MIRRORED / 2)
    )
    apart = alone[0][0] + alone[1][0] + np.log(APART)
    total = _log_sum(np.concatenate([[apart], common, mirrored.ravel()]))
    shared, twins = np.exp(common - total), np.exp(mirrored - total)
    f = np.exp(apart - total) * alone[0][1] + one.inside @ (shared * one.size)
    g = np.exp(apart - total) * alone[1][1] + zero.inside @ (shared * zero.size)
    f[:-1] += np.cumsum(twins[0][::-1] @ one.size)[::-1] + np.cumsum(twins[1] @ one.size)
    # The mirror image of the lower tail up to cell i is the upper tail from cell (cells - 2 - i) on.
    g[:-1] += np.cumsum(twins[0][::-1] @ zero.size) + np.cumsum(twins[1] @ zero.size)[::-1]
    return total, f, g


def _lead(logs: Reals) -> Reals:
    """The addition to the evidence of an event, for every stake on it: of an event that paid, more of the same."""
    return (LEADING - 1) * np.maximum(_log_sums(logs + GRID), 0.0)[..., None]


def _cuts(rows: Reals) -> Reals:
    """ln of prior weights of the lower tails, each up to a cell: a tail of few rows needs not much more evidence."""
    steps = np.diff(np.log(np.cumsum(rows) + 1), prepend=0.0) + 1e-3
    weights = steps / np.sum(steps) * LOGARITHMIC + (1 - LOGARITHMIC) * _ruler(len(rows))
    return np.log(weights)


def _ruler(count: int) -> Reals:
    """Prior weights of cuts: the middle one has as much as both quarters, these as much as four eighths."""
    places = np.arange(1, count + 1)
    weights = (places & -places).astype(np.float64)
    return weights / np.sum(weights)


def _logistic(values: Reals) -> Reals:
    return np.exp(-np.logaddexp(0.0, -values))


def _log_sums(values: Reals) -> Reals:
    """ln of the sum of exponentials, along the last axis."""
    top = np.max(values, axis=-1)
    return top + np.log(np.sum(np.exp(values - top[..., None]), axis=-1))


def _log_sum(values: Reals) -> float:
    return float(_log_sums(values))
