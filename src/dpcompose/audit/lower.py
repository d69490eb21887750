"""Theorem 4: the lower bound on epsilon, by a ladder of claims.

At a fixed delta every rung is a claim of its own, with its own wealth. The bound is the highest rung such that it and
*all* below it have reached 1/alpha. If epsilon* is true and e its next rung above or at it, the bound is above epsilon*
only if e's wealth reached 1/alpha, which has probability at most alpha. The highest rung alone that reached it would be
no bound: the wealths of several true rungs are several chances.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.arm import Arm, Book, leaders
from dpcompose.audit.claim import Point
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.audit.wealth import tally

RUNGS = (0.125, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4,
         1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.2, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0)  # fmt: skip
"""Multiples of the claim's epsilon."""
LEAST = 0.05
"""The epsilon that takes its place, if the claim's is smaller."""
LEAST_ROWS = 64
"""Before so many rows of an arm, rungs bet only where there is evidence against the claim."""
FEATURES = 2
"""Each rung bets on so many features, those with most evidence."""


@dataclass
class Ladder:
    """The rungs and their wealth.

    Args:
        rungs: (epsilon, delta), increasing.
        delta: The delta of all of them.
        goal: ln of the wealth that refutes a rung.
        wealth: ln of the wealth of each.
        peak: The largest that it was.
    """

    rungs: tuple[Point, ...]
    delta: float
    goal: float
    wealth: Reals
    peak: Reals
    _bets: list[tuple[int, Book, Reals, float]] = field(
        default_factory=list[tuple[int, Book, Reals, float]]
    )

    @classmethod
    def of(cls, claim: Sequence[Point], alpha: float, *, climbed: bool = True) -> Ladder:
        """A ladder around a claim, at the smallest delta of its points; without rungs if it is not to be climbed."""
        point = min(claim, key=lambda each: each.delta)
        base = max(point.epsilon, LEAST)
        rungs = tuple(
            each for rung in RUNGS if climbed and (each := Point(rung * base, point.delta)).testable
        )
        return cls(
            rungs, point.delta, float(-np.log(alpha)), np.zeros(len(rungs)), np.zeros(len(rungs))
        )

    @property
    def crossed(self) -> int:
        """The number of rungs that are refuted, with all below them."""
        standing = np.flatnonzero(self.peak < self.goal)
        return int(standing[0]) if len(standing) else len(self.rungs)

    @property
    def lower(self) -> float:
        """The lower bound on epsilon."""
        return self.rungs[self.crossed - 1].epsilon if self.crossed else 0.0

    def written(self) -> list[list[str]]:
        """The wealth of each rung and its peak, for a journal."""
        return [[number.hex() for number in each.tolist()] for each in (self.wealth, self.peak)]

    def restore(self, written: Sequence[Sequence[str]]) -> None:
        """Take the wealth that was written."""
        wealth, peak = (np.array([*map(float.fromhex, each)], dtype=np.float64) for each in written)
        if not len(wealth) == len(peak) == len(self.rungs):
            raise ValueError("a ladder with other rungs")
        self.wealth, self.peak = wealth, peak

    def bind(self, arm: Arm) -> None:
        """Set stakes for the next batch, from the past of the arm that answers it."""
        self._bets = []
        if arm.rows < LEAST_ROWS and arm.evidence <= 0:
            return
        books = list[Book]()
        for rung in range(self.crossed, len(self.rungs)):
            point = self.rungs[rung].group(arm.pair.distance)
            if self.peak[rung] >= self.goal or not point.testable:
                continue
            books = books or leaders(arm.books, (point,), 2 * FEATURES)
            found = sorted(
                ((book, *book.stakes((point,))) for book in books), key=lambda each: -each[1]
            )[:FEATURES]
            if not found or found[0][1] < 0.5:
                return
            books = [book for book, _, _ in found]
            weights = np.exp(np.array([each[1] for each in found]) - found[0][1])
            for (book, _, bets), weight in zip(found, weights / np.sum(weights), strict=True):
                self._bets.append((rung, book, bets.log_factors((point,)), float(weight)))

    def pay(self, outcomes: Outcomes, coins: NDArray[np.uint8]) -> None:
        """Pay every rung for a batch."""
        counts: dict[int, NDArray[np.intp]] = {}
        factors: dict[int, list[float]] = {}
        for rung, book, logs, weight in self._bets:
            if id(book) not in counts:
                counts[id(book)] = tally(
                    coins, book.cells.place(book.feature.score(outcomes)), book.cells.count
                )
            paid = float(np.sum(counts[id(book)] * logs))
            factors.setdefault(rung, []).append(float(np.log(weight) + paid))
        for rung, each in factors.items():
            self.wealth[rung] += float(np.logaddexp.reduce(each))
        self.peak = np.maximum(self.peak, self.wealth)
