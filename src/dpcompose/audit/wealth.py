"""Wealth: what the auditor's bets have made of 1, and one step of it.

In every batch the wealth is divided among members, one feature each, and what is not divided is kept: the weights are
set before the coins. In a batch a member's part is multiplied by its factors, row after row. Under the claim wealth is
a nonnegative supermartingale: by Ville's inequality it ever reaches 1/alpha with probability at most alpha. Reference:
[WaudbySmithRamdas2024]
"""

from __future__ import annotations

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
"""Weights are integers over it."""
MOST_LOOKS = 1 << 21
"""Members times rows at which a batch looks at its wealth after every row; beyond, it looks less often."""


@dataclass(frozen=True)
class Member:
    """A part of the wealth and its bets in one batch.

    Args:
        feature: The feature it bets on.
        cells: The cells of the feature.
        weight: Its part of the wealth, over WEIGHTS.
        stakes: Its stakes.
    """

    feature: Feature
    cells: Cells
    weight: int
    stakes: Stakes

    def written(self) -> dict[str, Any]:
        """For the certificate: what is bound before the coins."""
        cuts = [cut.hex() for cut in self.cells.cuts]
        f, g = self.stakes.f.tolist(), self.stakes.g.tolist()
        written = {
            "feature": self.feature.name,
            "cuts": cuts,
            "weight": self.weight,
            "f": f,
            "g": g,
        }
        return written if self.feature.made is None else written | {"made": dict(self.feature.made)}


@dataclass(frozen=True)
class Paid:
    """One batch, paid.

    Args:
        rows: The rows that were bet on: all of them, or those before the wealth reached the goal.
        log_wealth: ln of the wealth after the last one.
        peak: The largest ln of the wealth after a row.
        counts: For each member, the rows of coin 0 and of coin 1 in each cell, shape (2, cells).
        factors: ln of each member's own factor.
    """

    rows: int
    log_wealth: float
    peak: float
    counts: tuple[NDArray[np.intp], ...]
    factors: tuple[float, ...]


def step(
    log_wealth: float, members: Sequence[Member], points: Sequence[Point], coins: NDArray[np.uint8],
    places: Sequence[NDArray[np.intp]], goal: float,
) -> Paid:  # fmt: skip
    """Pay the members for a batch, and stop where the wealth reaches its goal.

    Args:
        log_wealth: ln of the wealth before.
        members: The members; their weights sum to at most WEIGHTS.
        points: The points of the claim for the pair that answered.
        coins: The coins of the rows.
        places: For each member, the cells of the rows.
        goal: ln of the wealth at which to stop.
    """
    rows = len(coins)
    ends = np.arange(0, rows, max(1, len(members) * rows // MOST_LOOKS))[1:]
    ends = np.append(ends, rows)
    idle = WEIGHTS - sum(member.weight for member in members)
    parts = [np.full(len(ends), np.log(idle / WEIGHTS))] if idle else []
    own: list[Reals] = []
    for member, place in zip(members, places, strict=True):
        paid = member.stakes.log_factors(points)[coins, place]
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
    return Paid(rows, float(course[last]), float(np.max(course[: last + 1])), counts, factors)


def tally(coins: NDArray[np.uint8], places: NDArray[np.intp], cells: int) -> NDArray[np.intp]:
    """The rows of each coin in each cell, shape (2, cells)."""
    return np.bincount(coins * cells + places, minlength=2 * cells).reshape(2, cells)
