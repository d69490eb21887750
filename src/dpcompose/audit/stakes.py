"""Stakes on the cells of one feature: a Bayesian portfolio of simple bets, weighted by their past
gains.

A bet on coin 1 in an event S gains if coin 1 is more frequent in S than the claim allows. With a
stake u on S its factor is
  s (1 + u) for coin 1 in S,  s (1 - e^epsilon u) for coin 0 in S,  s elsewhere,
  s = 1 / (1 + delta u / 2),
which is Theorem 1 with f = s u on S. Simple bets are fixed before any coin: every stake of a grid
on every lower tail, upper tail and single cell of the feature, and on unions of cells. So the
evidence of a bet, the logarithm of its factor on all past rows, needs no correction for selection,
and rows on which nothing was bet count too. The portfolio's stakes are the mean under the posterior
weights. A convex combination of stakes again satisfies Theorem 1: factors are linear in them, and
the charge for delta is convex.

The union of cells with a common stake is summed over all unions at once: each cell is in or out
with probability 1/2.

Events that gained in the past are preferred beyond their evidence: the weight of an event uses
`LEADING` times the evidence, while the size of its stake uses the evidence itself. Weights may
depend on the past in any way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.check import UNIT
from dpcompose.audit.claim import Point
from dpcompose.audit.outcome import Reals

MOST_ATOMS = 40
_HALF = np.concatenate([np.arange(1, 32) / 32, 0.5 ** np.arange(6, 11)])
LEVELS = np.unique(np.concatenate([_HALF, 1 - _HALF]))
LEAST_ROWS = 4
"""The approximate number of past rows between two neighboring cuts of a feature."""


@dataclass(frozen=True)
class Cells:
    """The intervals into which the values of a feature are divided; NaN has a cell of its own, the
    last.

    Args:
        cuts: Increasing numbers; each is the lower end of a cell.
    """

    cuts: tuple[float, ...]

    @classmethod
    def of(cls, scores: Reals) -> Cells:
        """Cells derived from past values of a feature, without their coins.

        The cuts are quantiles. Each of up to `MOST_ATOMS` values that occurred at least twice has a
        cell of its own.
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
        """The number of cells: the intervals between cuts, the two tails, and one cell for NaN."""
        return len(self.cuts) + 2

    @cached_property
    def prior(self) -> Reals:
        """Prior weights of bets on a single cell, with sum at most 1; if some cells hold one value,
        they have most of it.
        """
        known = self._edges
        atoms = np.zeros(self.count, dtype=bool)
        atoms[1 : len(known)] = known[1:] == np.nextafter(known[:-1], np.inf)
        even = np.full(self.count, 1 / self.count)
        return 0.2 * even + (0.8 * atoms / np.sum(atoms) if np.any(atoms) else 0.0)

    @cached_property
    def _edges(self) -> Reals:
        return np.array(self.cuts)

    def index(self, scores: Reals) -> NDArray[np.intp]:
        """The index of the cell of each value."""
        found = np.searchsorted(self._edges, scores, side="right")
        found[np.isnan(scores)] = self.count - 1
        return found

    def words(self, cell: int) -> str:
        """A description of the cell with this index, such as "at least 1 and below 2"."""
        if cell == self.count - 1:
            return "is NaN"
        low = self.cuts[cell - 1] if cell else None
        high = self.cuts[cell] if cell < len(self.cuts) else None
        if low is not None and high == np.nextafter(low, np.inf):
            return f"is {low!r}"
        above = "" if low is None else f"at least {low:.6g}"
        below = "" if high is None else f"below {high:.6g}"
        return " and ".join(text for text in (above, below) if text) or "is any number"


FRACTIONS = np.concatenate(
    [
        1 - 0.5 ** np.array([8.0, 5.0, 3.0]),
        0.5 ** np.arange(1, 3.1, 0.5),
        0.5 ** np.arange(3.7, 12, 0.75),
    ]
)
"""The grid of stakes, as fractions of the largest possible stake, e^-epsilon."""
MERGED, ODDS = (1, 4, 16), (1.0, 1 / 32)
"""Unions of cells: neighbors merged, and the prior odds that a merged cell belongs to one."""
IDLE, TAILS, SINGLE, UNIONS = 0.35, 0.29, 0.23, 0.13
"""Prior weights of not betting, and of bets on tails, on single cells and on unions."""
FREE, APART, MIRRORED = 0.15, 0.5, 0.4
"""Prior weights of separate stakes for cells, for coins, and otherwise of mirrored tails."""
GRID = np.log(
    np.concatenate([np.full(3, 0.06), np.full(len(FRACTIONS) - 3, 0.82 / (len(FRACTIONS) - 3))])
)
"""Log prior weights of the grid: the first ones suit events that isolate a world."""
LOGARITHMIC = 0.4
"""The part of the tails' prior weight that is uniform in the logarithm of rows below a cut."""
LEADING = 2.0
"""The exponent of the evidence by which events that gained in the past are preferred."""
LEAST_FACTOR = 1e-3
"""A lower limit on every factor, so that no bet loses the whole wealth."""


@dataclass(frozen=True)
class Stakes:
    """The stakes on the cells of one feature.

    Args:
        f: Stakes on coin 1, shape (points, cells), in units of 1 / UNIT.
        g: Stakes on coin 0, likewise.
    """

    f: NDArray[np.int64]
    g: NDArray[np.int64]

    def log_factors(self, points: Sequence[Point]) -> Reals:
        """The log growth factor of a row with coin 0 and with coin 1 in each cell, shape (2,
        cells), in floating point.
        """
        return np.log(_factors(self.f / UNIT, self.g / UNIT, points))


def _factors(f: Reals, g: Reals, points: Sequence[Point]) -> Reals:
    """The growth factors of Theorem 1 for each coin and cell, shape (2, cells)."""
    growth = np.array([point.growth for point in points])[:, None]
    charge = sum(
        point.delta / 2 * (np.max(f[place]) + np.max(g[place]))
        for place, point in enumerate(points)
    )
    return np.array([(g - growth * f).sum(axis=0), (f - growth * g).sum(axis=0)]) + (1 - charge)


def evidence(
    counts: NDArray[np.intp], points: Sequence[Point], single: Reals, rows: Reals
) -> float:
    """The log wealth of the whole portfolio, each bet with its prior weight, after rows with these
    counts.

    It is a mean, with fixed weights, of products of Theorem 1's factors. If cells, `single` and
    `rows` come from before the counted rows, its expectation under the claim is at most 1. (For f
    on coin 1 and g on coin 0 in the same cells too, with a = e^epsilon: E[(1 + f (b - a (1 - b)))
    (1 + g ((1 - b) - a b))] <= 1 + delta (F + G) / 2 <= (1 + delta F / 2) (1 + delta G / 2).)

    Args:
        counts: The number of rows with coin 0 and with coin 1 in each cell, shape (2, cells).
        points: Points of the claim's curve.
        single: The prior weights of bets on one cell, sum at most 1.
        rows: The number of earlier rows in each cell, which determine the prior weights of tails.
    """
    zeros, ones = counts.astype(np.float64)
    logs = [_at_point(ones, zeros, point, single, rows, leading=False)[0] for point in points]
    return _log_sum(np.array(logs)) - float(np.log(len(points)))


def stakes(
    ones: Reals, zeros: Reals, points: Sequence[Point], single: Reals
) -> tuple[float, Stakes]:
    """The log evidence of past rows, and the stakes for the next batch that follow from it.

    Args:
        ones: The number of past rows with coin 1 in each cell; the last cell, of NaN, is outside
            the order of the others.
        zeros: The same for coin 0.
        points: Points of the claim's curve.
        single: The prior weights of bets on one cell, sum at most 1.
    """
    each = [_at_point(ones, zeros, point, single, ones + zeros) for point in points]
    logs = np.array([log for log, _, _ in each])
    total = _log_sum(logs)
    f, g = (
        np.exp(logs - total)[:, None] * np.array([stake[side] for stake in each]) for side in (1, 2)
    )
    # Stakes on both coins in the same cell lose on either coin, so they are cancelled.
    both = np.minimum(f, g)
    f, g = f - both, g - both
    least = float(np.min(_factors(f, g, points)))
    # Factors minus 1 are linear in the stakes, so scaling the stakes limits the largest loss.
    scale = 1.0 if least >= LEAST_FACTOR else (1 - 2 * LEAST_FACTOR) / (1 - least)
    whole = [np.floor(each * scale * UNIT).astype(np.int64) for each in (f, g)]
    return total - float(np.log(len(points))), Stakes(whole[0], whole[1])


def twin_stakes(
    ones: Reals, zeros: Reals, points: Sequence[Point], one: int, zero: int
) -> tuple[float, Stakes]:
    """The log evidence and the stakes of equal bets on coin 1 in one cell and on coin 0 in another.

    Only stakes of the grid are mixed: it is determined beforehand which cell favors which coin, so
    little has to be learned.

    Args:
        ones: The number of past rows with coin 1 in each cell.
        zeros: The same for coin 0.
        points: Points of the claim's curve.
        one: The index of the cell that favors coin 1.
        zero: The index of the cell that favors coin 0.
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
    """The log gain of the best single tail or cell at its best stake, an inexpensive measure of a
    feature's value.
    """
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
        size: The stake f at each grid point, shape (grid,).
        cuts: Log prior weights of the lower and of the upper tails, shape (2, cells).
        tails: Log evidence of the lower and of the upper tails, shape (2, cells, grid).
        evidence: Log evidence of all bets with the same stake, shape (grid,).
        inside: The posterior probability that each cell belongs to the bet, shape (cells, grid).
        free: Log evidence of the bet with a separate stake in each cell.
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
    """The bets on one coin, which gain if `wins` (its rows) exceed `losses` by more than the claim
    allows.

    Args:
        wins: The rows in each cell with the coin that is bet on.
        losses: The rows in each cell with the other coin.
        point: The point of the claim.
        prior: Prior weights of bets on one cell.
        rows: The rows in each cell that determine the prior weights of tails.
        leading: Whether events that gained are preferred beyond their evidence.
    """
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
    return Side(size, cuts, tails, evidence, inside, free=free, own=own)


def _at_point(
    ones: Reals, zeros: Reals, point: Point, prior: Reals, rows: Reals, *, leading: bool = True
) -> tuple[float, Reals, Reals]:
    """The log evidence and the stakes on coin 1 and on coin 0 at one point of the claim.

    Part of the prior weight has separate stakes for the two coins. What remains has one stake for
    both, and within it some is on pairs of mirrored tails.
    """
    one, zero = (
        _side(*counts, point, prior, rows, leading=leading)
        for counts in ((ones, zeros), (zeros, ones))
    )
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
    """The bonus added to the log evidence of an event that gained in the past, for every stake."""
    return (LEADING - 1) * np.maximum(_log_sums(logs + GRID), 0.0)[..., None]


def _cuts(rows: Reals) -> Reals:
    """Log prior weights of the lower tails, one per upper cell; tails with few rows have nearly the
    same weight.
    """
    steps = np.diff(np.log(np.cumsum(rows) + 1), prepend=0.0) + 1e-3
    weights = steps / np.sum(steps) * LOGARITHMIC + (1 - LOGARITHMIC) * _ruler(len(rows))
    return np.log(weights)


def _ruler(count: int) -> Reals:
    """Prior weights of cuts by dyadic level: each level, from the middle cut downward, has the same
    total weight.
    """
    places = np.arange(1, count + 1)
    weights = (places & -places).astype(np.float64)
    return weights / np.sum(weights)


def _logistic(values: Reals) -> Reals:
    return np.exp(-np.logaddexp(0.0, -values))


def _log_sums(values: Reals) -> Reals:
    """The logarithm of the sum of exponentials, along the last axis."""
    top = np.max(values, axis=-1)
    return top + np.log(np.sum(np.exp(values - top[..., None]), axis=-1))


def _log_sum(values: Reals) -> float:
    return float(_log_sums(values))
