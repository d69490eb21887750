"""Stakes on the cells of one feature: a Bayesian portfolio of simple bets, weighed by how they would have paid.

A bet on the event S says that coin 1 is likelier there than the claim allows: with a stake u on S its factor is
  s (1 + u) for coin 1 in S,  s (1 - e^epsilon u) for coin 0 in S,  s elsewhere,  s = 1 / (1 + delta u / 2),
which is Theorem 1 with f = s u on S. Simple bets are fixed before any coin: every stake of a grid on every lower tail,
upper tail and single cell of the feature, and on unions of cells. So the evidence of a bet, ln of its factor on all
past rows, needs no correction for having been chosen, and rows that nobody bet on count too. The portfolio's stakes are
the mean under the posterior weights. A convex combination of stakes is again Theorem 1's: factors are linear in them,
and the charge for delta is convex.

The union of cells with a common stake is summed over all unions at once: each cell is in or out with probability 1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.claim import Point
from dpcompose.audit.outcome import Reals

UNIT = 1 << 50
"""Stakes are integers over it."""
FRACTIONS = np.concatenate([1 - 0.5 ** np.array([8.0, 5.0, 3.0]), 0.5 ** (np.arange(2, 25) / 2)])
"""Stakes on a grid, as shares of the largest, e^-epsilon."""
MERGED = (1, 4, 16)
IDLE, TAILS, SINGLE, UNIONS, FREE = 0.05, 0.45, 0.15, 0.2, 0.15
"""The prior weights of not betting, of tails, of single cells, of unions, and of each cell with a stake of its own."""
LEAST_FACTOR = 1e-3
"""No factor is smaller: a bet never loses everything."""


@dataclass(frozen=True)
class Side:
    """A portfolio on one coin.

    Args:
        evidence: ln of what it would have made of 1 on the past rows.
        stakes: f, for every point of the claim and every cell.
    """

    evidence: float
    stakes: Reals


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
        point.delta / 2 * (np.max(f[place]) + np.max(g[place])) for place, point in enumerate(points)
    )
    return np.array([(g - growth * f).sum(axis=0), (f - growth * g).sum(axis=0)]) + (1 - charge)


def stakes(ones: Reals, zeros: Reals, points: Sequence[Point]) -> tuple[float, Stakes]:
    """The evidence of past rows, and the stakes that they suggest.

    Args:
        ones: The number of past rows of coin 1 in each cell.
        zeros: The same of coin 0.
        points: Points of the claim's curve.
    """
    for_one, for_zero = side(ones, zeros, points), side(zeros, ones, points)
    # Both in one cell lose on either coin.
    both = np.minimum(for_one.stakes, for_zero.stakes)
    f, g = for_one.stakes - both, for_zero.stakes - both
    least = float(np.min(_factors(f, g, points)))
    # A factor is 1 plus something linear in the stakes.
    scale = 1.0 if least >= LEAST_FACTOR else (1 - 2 * LEAST_FACTOR) / (1 - least)
    whole = [np.floor(each * scale * UNIT).astype(np.int64) for each in (f, g)]
    return for_one.evidence + for_zero.evidence, Stakes(whole[0], whole[1])


def side(wins: Reals, losses: Reals, points: Sequence[Point]) -> Side:
    """The portfolio that wins where `wins` outnumber `losses` by more than the claim allows."""
    found = [_portfolio(wins, losses, point) for point in points]
    evidence = np.array([each.evidence for each in found])
    total = _log_sum(evidence) - float(np.log(len(points)))
    weights = np.exp(evidence - _log_sum(evidence))
    return Side(total, np.array([weight * each.stakes for weight, each in zip(weights, found, strict=True)]))


def _portfolio(wins: Reals, losses: Reals, point: Point) -> Side:
    """The same for one point; its stakes have the shape (cells,)."""
    share = FRACTIONS / point.growth
    size = share / (1 + point.delta * share / 2)
    cost = float(np.sum(wins) + np.sum(losses)) * np.log1p(point.delta * share / 2)
    log = wins[:, None] * np.log1p(share) + losses[:, None] * np.log1p(-FRACTIONS)
    cells, grid = log.shape
    # Evidence, and the stakes that the posterior weights of its bets come to.
    lower, upper = np.cumsum(log, axis=0), np.cumsum(log[::-1], axis=0)[::-1]
    tails = np.array([lower, upper]) - cost + np.log(TAILS / (2 * cells * grid))
    single = log - cost + np.log(SINGLE / (cells * grid))
    inside, unions = [], []
    for width in MERGED:
        merged = np.add.reduceat(log, np.arange(0, cells, width), axis=0)
        unions.append(np.sum(np.logaddexp(0.0, merged) - np.log(2), axis=0) - cost)
        inside.append(np.repeat(_logistic(merged), width, axis=0)[:cells])
    union = np.array(unions) + np.log(UNIONS / (len(MERGED) * grid))
    own = np.logaddexp(0.0, _log_sums(log) - np.log(grid)) - np.log(2)
    free = float(np.sum(own) - cost[0] + np.log(FREE))
    total = _log_sum(np.concatenate([tails.ravel(), single.ravel(), union.ravel(), [free, np.log(IDLE)]]))
    tails, single, union = (np.exp(each - total) for each in (tails, single, union))
    spread = np.cumsum(tails[0][::-1], axis=0)[::-1] + np.cumsum(tails[1], axis=0) + single
    for weights, within in zip(union, inside, strict=True):
        spread += weights * within
    stake = spread @ size
    likely = np.exp(log - np.log(2 * grid) - own[:, None])
    stake += np.exp(free - total) * (likely @ share) / (1 + point.delta * share[0] / 2)
    return Side(total, stake)


def _logistic(values: Reals) -> Reals:
    return np.exp(-np.logaddexp(0.0, -values))


def _log_sums(values: Reals) -> Reals:
    """ln of the sum of exponentials, along the last axis."""
    top = np.max(values, axis=-1)
    return top + np.log(np.sum(np.exp(values - top[..., None]), axis=-1))


def _log_sum(values: Reals) -> float:
    return float(_log_sums(values))
