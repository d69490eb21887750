"""An arm: one pair, the rows that it answered, and what they teach about every feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.cells import Cells
from dpcompose.audit.claim import Point
from dpcompose.audit.feature import Feature, Learner
from dpcompose.audit.outcome import Outcomes
from dpcompose.audit.pair import Pair
from dpcompose.audit.stakes import Stakes, hopes, stakes
from dpcompose.audit.wealth import WEIGHTS, Member, tally

FIRST, SHARE, FINE, FEW = 24, 8, 20, 1 << 14
"""The first batch of an arm, and later ones as a fraction of its past: a finer one while it has few rows."""
WORTH = 0.0
"""The evidence of an arm below which its rows only teach."""
MANY = 12
"""Features that bets are made on at once; an arm with more has larger batches, since each of them costs time."""
KEPT = 1 << 18
"""Rows that are kept to cut cells anew whenever there are half as many again; later rows are only counted."""
IDLE = 0.1
"""The prior weight of betting on no feature."""
LIGHTEST = WEIGHTS >> 12
"""A member with less weight is left out."""


@dataclass
class Book:
    """The past rows of one feature.

    Args:
        feature: The feature.
        cells: Its cells.
        counts: The rows of either coin in each cell, shape (2, cells).
    """

    feature: Feature
    cells: Cells
    counts: NDArray[np.intp]

    @classmethod
    def of(cls, feature: Feature, outcomes: Outcomes, coins: NDArray[np.uint8], since: int) -> Book:
        """Cells from all rows; counts from those whose coins the feature was not made from."""
        scores = feature.score(outcomes)
        cells = Cells.of(scores)
        return cls(feature, cells, tally(coins[since:], cells.place(scores[since:]), cells.count))

    def stakes(self, points: Sequence[Point]) -> tuple[float, Stakes]:
        """The evidence, and the stakes for rows to come."""
        zeros, ones = self.counts.astype(np.float64)
        return stakes(ones, zeros, points, self.cells.prior)

    def hope(self, points: Sequence[Point]) -> float:
        """The gain of its best event."""
        zeros, ones = self.counts.astype(np.float64)
        return hopes(ones, zeros, points)


def leaders(books: Sequence[Book], points: Sequence[Point], number: int) -> list[Book]:
    """The books with the highest hopes, that one first: on the others nothing is bet, which saves their stakes."""
    return sorted(books, key=lambda book: -book.hope(points))[:number]


def tallies(
    books: Sequence[Book], outcomes: Outcomes, coins: NDArray[np.uint8]
) -> list[NDArray[np.intp]]:
    """The counts of rows in the cells of each book."""
    return [
        tally(coins, each.cells.place(each.feature.score(outcomes)), each.cells.count)
        for each in books
    ]


@dataclass
class Arm:
    """A pair and its past.

    Args:
        pair: The pair.
        points: The points of the claim at its distance.
        features: What is read from its outcomes; None until the first ones are drawn.
        learners: What makes further features.
        look: From outcomes to what is read of them, anew whenever cells are cut; None: the same features always.
    """

    pair: Pair
    points: tuple[Point, ...]
    features: tuple[Feature, ...] | None
    learners: tuple[Learner, ...] = ()
    look: Callable[[Outcomes], tuple[Feature, ...]] | None = None
    rows: int = 0
    books: list[Book] = field(default_factory=list[Book])
    evidence: float = 0.0
    hope: float = 0.0
    _outcomes: list[Outcomes] = field(default_factory=list[Outcomes])
    _coins: list[NDArray[np.uint8]] = field(default_factory=list[NDArray[np.uint8]])
    _cut: int = 0

    @property
    def next_rows(self) -> int:
        """The size of the next batch."""
        share = FINE if self.rows < FEW and len(self.books) <= MANY else SHARE
        return max(FIRST, 2 * len(self.books), self.rows // share)

    @property
    def promise(self) -> float:
        """An optimistic growth of the wealth for each row, by which arms are chosen."""
        return (self.hope + 2.0) / (self.rows + 1)

    def members(self) -> list[Member]:
        """The members of the next batch: the posterior weights of the features."""
        chosen = leaders(self.books, self.points, MANY)
        self.hope = chosen[0].hope(self.points) if chosen else 0.0
        found = [(book, *book.stakes(self.points)) for book in chosen]
        whole = math.fsum(book.feature.weight for book in self.books)
        logs = [
            math.log((1 - IDLE) * book.feature.weight / whole) + evidence
            for book, evidence, _ in found
        ]
        self.evidence = float(np.logaddexp.reduce([math.log(IDLE), *logs]))
        if self.evidence < WORTH:
            return []
        weights = [math.floor(math.exp(log - self.evidence) * WEIGHTS) for log in logs]
        return [
            Member(book.feature, book.cells, weight, bets)
            for (book, _, bets), weight in zip(found, weights, strict=True)
            if weight >= LIGHTEST and (bets.f.any() or bets.g.any())
        ]

    @property
    def keeps(self) -> bool:
        """Whether the next rows are kept, and not only counted."""
        return self.rows < KEPT

    def learn(self, outcomes: Outcomes, coins: NDArray[np.uint8]) -> None:
        """Add rows to the past: the stakes of later batches may depend on them."""
        if self.keeps:
            self._outcomes.append(outcomes)
            self._coins.append(coins)
        self.count(len(coins), tallies(self.books, outcomes, coins))

    def count(self, rows: int, counted: Sequence[NDArray[np.intp]]) -> None:
        """Add rows of which only the counts are known.

        Args:
            rows: Their number.
            counted: Their counts in the cells of each book.
        """
        self.rows += rows
        if self._cut < KEPT and self.rows >= min(self._cut * 3 // 2, KEPT):
            self._cut_anew()
            return
        for book, counts in zip(self.books, counted, strict=True):
            book.counts += counts

    def _cut_anew(self) -> None:
        outcomes, coins = _joined(self._outcomes), np.concatenate(self._coins)
        self._outcomes, self._coins, self._cut = [outcomes], [coins], len(coins)
        self.features = self.features if self.look is None else self.look(outcomes)
        self.books = [Book.of(feature, outcomes, coins, 0) for feature in self.features or ()]
        half = len(coins) // 2
        for learner in self.learners if half else ():
            feature = learner.fit(outcomes[:half], coins[:half])
            if feature is not None:
                self.books.append(Book.of(feature, outcomes, coins, half))
        if self._cut >= KEPT:
            self._outcomes, self._coins = [], []


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Outcomes as one array; of objects, where they are not all plain numbers of one shape."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
