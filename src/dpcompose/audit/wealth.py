"""The wealth of the audit, which starts at 1 and grows if bets against the claim succeed.

In every batch the wealth is divided among members, which bet on one feature each; an undivided part
stays idle. These weights are fixed before the coins. Row by row, a member's part is multiplied by
the growth factors of its bets. Under the claim the wealth is a nonnegative supermartingale, so by
Ville's inequality it ever reaches 1/alpha with probability at most alpha.

Reference: [WaudbySmithRamdas2024]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.claim import Point
from dpcompose.audit.feature import Feature
from dpcompose.audit.outcome import Reals
from dpcompose.audit.stakes import Cells, Stakes

WEIGHTS = 1 << 20
"""The members' weights are integers in units of 1 / WEIGHTS."""
MOST_LOOKS = 1 << 21
"""The largest product of members and rows at which the wealth is compared with its goal after every
row; beyond it, less often.
"""


@dataclass(frozen=True)
class Member:
    """A fraction of the wealth and its bets on one feature in one batch.

    Args:
        feature: The feature that it bets on.
        cells: The cells of the feature.
        weight: Its fraction of the wealth, in units of 1 / WEIGHTS.
        stakes: The stakes on each cell and coin.
    """

    feature: Feature
    cells: Cells
    weight: int
    stakes: Stakes

    def written(self) -> dict[str, Any]:
        """The bet as a dictionary for the certificate, fixed before the coins are derived."""
        cuts = [cut.hex() for cut in self.cells.cuts]
        f, g = self.stakes.f.tolist(), self.stakes.g.tolist()
        written = {
            "feature": self.feature.name,
            "cuts": cuts,
            "weight": self.weight,
            "f": f,
            "g": g,
        }
        return (
            written
            if self.feature.parameters is None
            else written | {"made": dict(self.feature.parameters)}
        )


@dataclass(frozen=True)
class Paid:
    """The settlement of one batch.

    Args:
        rows: The number of rows bet on: all of them, or those until the wealth reached its goal.
        log_wealth: Natural logarithm of the wealth after the last row.
        peak: The largest log wealth after any row of the batch.
        counts: For each member, the rows with coin 0 and with coin 1 in each cell, shape (2,
            cells).
        factors: For each member, the log growth factor of its part of the wealth.
        new_growth: The log growth of the wealth if every recurring answer were the worst one for
            the bets: of a mechanism that answers from memory, no more than fresh calls would give.
    """

    rows: int
    log_wealth: float
    peak: float
    counts: tuple[NDArray[np.intp], ...]
    factors: tuple[float, ...]
    new_growth: float


def step(
    log_wealth: float, members: Sequence[Member], points: Sequence[Point], coins: NDArray[np.uint8],
    places: Sequence[NDArray[np.intp]], goal: float, new: NDArray[np.bool_] | bool = True,
) -> Paid:  # fmt: skip
    """Settle the bets of a batch, and stop at the row where the wealth reaches its goal.

    Args:
        log_wealth: Natural logarithm of the wealth before the batch.
        members: The members; their weights sum to at most WEIGHTS.
        points: The points of the claim at the distance of the pair.
        coins: The coin of each row.
        places: For each member, the cell index of each row.
        goal: Natural logarithm of the wealth at which to stop.
        new: Whether each row's answer has not occurred before.
    """
    rows = len(coins)
    ends = np.arange(0, rows, max(1, len(members) * rows // MOST_LOOKS))[1:]
    ends = np.append(ends, rows)
    idle = WEIGHTS - sum(member.weight for member in members)
    parts = [np.full(len(ends), np.log(idle / WEIGHTS))] if idle else []
    own: list[Reals] = []
    least: list[Reals] = []
    for member, place in zip(members, places, strict=True):
        logs = member.stakes.log_factors(points)
        paid = logs[coins, place]
        least.append(np.where(new, paid, logs.min(axis=1)[coins]))
        own.append(np.cumsum(np.add.reduceat(paid, np.append(0, ends[:-1]))))
        parts.append(own[-1] + np.log(member.weight / WEIGHTS))
    course = (
        log_wealth + np.logaddexp.reduce(np.array(parts), axis=0)
        if parts
        else np.full(len(ends), log_wealth)
    )
    reached = np.flatnonzero(course >= goal)
    last = int(reached[0]) if len(reached) else len(ends) - 1
    rows = int(ends[last])
    counts = tuple(
        tally(coins[:rows], place[:rows], member.cells.count)
        for member, place in zip(members, places, strict=True)
    )
    factors = tuple(float(each[last]) for each in own)
    terms = [math.log(idle / WEIGHTS)] if idle else []
    for member, each in zip(members, least, strict=True):
        terms.append(float(np.log(member.weight / WEIGHTS) + each[:rows].sum()))
    new_growth, peak = float(np.logaddexp.reduce(terms)), float(np.max(course[: last + 1]))
    return Paid(rows, float(course[last]), peak, counts, factors, new_growth)


def tally(coins: NDArray[np.uint8], places: NDArray[np.intp], cells: int) -> NDArray[np.intp]:
    """The number of rows with each coin in each cell, shape (2, cells), from the coin and cell
    index of each row.
    """
    return np.bincount(coins * cells + places, minlength=2 * cells).reshape(2, cells)
