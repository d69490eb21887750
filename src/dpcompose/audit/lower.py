"""Theorem 4: the lower bound on epsilon, by a ladder of claims whose wealth is computed from counts.

At a fixed delta every rung is a claim of its own, with its own wealth. The bound is the highest rung such that it and
*all* below it have reached 1/alpha. If epsilon* is true and e its next rung above or at it, the bound is above epsilon*
only if e's wealth reached 1/alpha, which has probability at most alpha. The highest rung alone that reached it would be
no bound: the wealths of several true rungs are several chances.

The wealth of a rung is a mean with fixed weights, over pairs, over the numbers of rows after which the cells of a few
features are frozen, and over these features. Each of its parts is what the portfolio, with the posterior weights of that
moment, makes of the rows since: the evidence of all rows over the evidence of those before. Both are functions of counts,
and a part that is not computed counts as nothing, which lowers the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.arm import Arm, Book, leaders
from dpcompose.audit.claim import Point
from dpcompose.audit.stakes import evidence

RUNGS = (0.125, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4,
         1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.2, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0)  # fmt: skip
"""Multiples of the claim's epsilon."""
LEAST = 0.05
"""The epsilon that takes its place, if the claim's is smaller."""
STARTS, FEATURES, PAIRS = (24, 192, 1536, 12288), 2, 2
"""Rows of a pair after which cells are frozen; features each time, those with most hope; pairs that are computed."""
GROWTH = 4
"""The bound is computed anew whenever there are so many times the rows, and at the end."""


@dataclass(frozen=True)
class Frozen:
    """A feature whose cells do not change.

    Args:
        book: Its rows since.
        before: The rows before, by which its cells were cut.
    """

    book: Book
    before: NDArray[np.intp]

    def log_wealth(self, point: Point) -> float:
        """ln of what its portfolio made of the rows since."""
        rows, prior = self.before.sum(axis=0).astype(np.float64), self.book.cells.prior
        ratio = evidence(self.before + self.book.counts, (point,), prior, rows)
        return ratio - evidence(self.before, (point,), prior, rows)


@dataclass
class Ladder:
    """The rungs, and the rows from which their wealth is computed.

    Args:
        arms: The pairs.
        rungs: (epsilon, delta), increasing.
        delta: The delta of all of them.
        goal: ln of the wealth that refutes a rung.
        crossed: The number of rungs that were refuted, with all below them.
        frozen: For each pair, what was frozen, start by start.
    """

    arms: tuple[Arm, ...]
    rungs: tuple[Point, ...]
    delta: float
    goal: float
    crossed: int = 0
    frozen: tuple[list[list[Frozen]], ...] = ()

    @classmethod
    def of(
        cls, arms: tuple[Arm, ...], claim: Sequence[Point], alpha: float, *, climbed: bool = True
    ) -> Ladder:
        """A ladder around a claim, at the smallest delta of its points; without rungs if it is not to be climbed."""
        point = min(claim, key=lambda each: each.delta)
        base = max(point.epsilon, LEAST)
        rungs = tuple(
            each for rung in RUNGS if climbed and (each := Point(rung * base, point.delta)).testable
        )
        frozen = tuple(list[list[Frozen]]() for _ in arms)
        return cls(arms, rungs, point.delta, -math.log(alpha), frozen=frozen)

    @property
    def lower(self) -> float:
        """The lower bound on epsilon, as it was computed last."""
        return self.rungs[self.crossed - 1].epsilon if self.crossed else 0.0

    def books(self, place: int) -> list[Book]:
        """The frozen books of a pair, which count its rows."""
        return [each.book for start in self.frozen[place] for each in start]

    def bind(self, place: int) -> None:
        """Freeze cells before the next batch of a pair, once it has enough rows."""
        arm, frozen = self.arms[place], self.frozen[place]
        if self.rungs and len(frozen) < len(STARTS) and arm.rows >= STARTS[len(frozen)]:
            frozen.append([
                Frozen(Book(book.feature, book.cells, np.zeros_like(book.counts)), book.counts.copy())
                for book in leaders(arm.books, arm.points, FEATURES)
            ])  # fmt: skip

    def count(self, place: int, counted: Sequence[NDArray[np.intp]]) -> None:
        """Add the rows of a batch."""
        for book, counts in zip(self.books(place), counted, strict=True):
            book.counts += counts

    def climb(self) -> None:
        """Compute the wealth of the rungs, from the first that is not refuted up to the first that stays so."""
        best = sorted(range(len(self.arms)), key=lambda place: -self.arms[place].hope)[:PAIRS]
        while self.crossed < len(self.rungs) and self._reaches(self.rungs[self.crossed], best):
            self.crossed += 1

    def _reaches(self, rung: Point, best: Sequence[int]) -> bool:
        parts, weight = [-math.inf], -math.log(len(self.arms) * len(STARTS) * FEATURES)
        for place in best:
            point = rung.group(self.arms[place].pair.distance)
            for start in self.frozen[place] if point.testable else ():
                parts += [each.log_wealth(point) + weight for each in start]
                if max(parts) >= self.goal:
                    return True
        return bool(np.logaddexp.reduce(parts) >= self.goal)
