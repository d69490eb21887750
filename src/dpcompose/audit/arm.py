"""An arm: one pair, the rows that it answered, and what they teach about every feature."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.feature import Feature, Learner, Memory
from dpcompose.audit.outcome import Outcomes
from dpcompose.audit.stakes import Cells, Stakes, hopes, stakes, twin_stakes
from dpcompose.audit.wealth import WEIGHTS, Member, tally

FIRST, SHARE, FINE, FEW, TEACHING = 24, 8, 20, 1 << 14, 8
"""The first batch of an arm, and later ones as a fraction of its past: a finer one while it has few rows,
a coarser one while they only teach."""
MANY = 12
"""Features that bets are made on at once; an arm with more has larger batches, since each of them costs time."""
KEPT = 1 << 18
"""Rows that are kept to cut cells anew whenever there are half as many again; later rows are only counted."""
WORLDS = (1.0, 2.0, 3.0)
"""The cuts of the feature that remembers: an answer that was met in no world, in world 0, in world 1, in both."""
HOPE = 2.0
"""The hope below which a feature has no evidence: its stakes are not computed."""
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
        memory = feature.memory
        scores = feature.score(outcomes) if memory is None else Memory().learn(outcomes, coins)
        cells = Cells.of(scores) if memory is None else Cells(WORLDS)
        return cls(feature, cells, tally(coins[since:], cells.place(scores[since:]), cells.count))

    def stakes(self, points: Sequence[Point]) -> tuple[float, Stakes]:
        """The evidence, and the stakes for rows to come."""
        zeros, ones = self.counts.astype(np.float64)
        if self.feature.memory is not None:
            return twin_stakes(ones, zeros, points, one=2, zero=1)
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
        seen: The feature that remembers the rows, if any does.
        worth: The evidence below which its rows only teach: of many pairs, one has some by chance.
    """

    pair: Pair
    points: tuple[Point, ...]
    features: tuple[Feature, ...] | None
    learners: tuple[Learner, ...] = ()
    look: Callable[[Outcomes], tuple[Feature, ...]] | None = None
    seen: Feature | None = None
    worth: float = 0.0
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
        share = share if self.evidence > self.worth else TEACHING
        return max(FIRST, 2 * len(self.books), self.rows // share)

    def members(self) -> list[Member]:
        """The members of the next batch: the posterior weights of the features."""
        hopes = sorted(((book.hope(self.points), book) for book in self.books), key=_negative)
        self.hope = hopes[0][0] if hopes else 0.0
        chosen = [book for hope, book in hopes[:MANY] if hope >= HOPE]
        found = [(book, *book.stakes(self.points)) for book in chosen]
        whole = math.fsum(book.feature.weight for book in self.books)
        logs = [
            math.log((1 - IDLE) * book.feature.weight / whole) + evidence
            for book, evidence, _ in found
        ]
        self.evidence = float(np.logaddexp.reduce([math.log(IDLE), *logs]))
        if self.evidence < self.worth:
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
        counted = tallies(self.books, outcomes, coins)
        if self.keeps:
            self._outcomes.append(outcomes)
            self._coins.append(coins)
            if self.seen is not None and self.seen.memory is not None:
                self.seen.memory.learn(outcomes, coins)
        self.count(len(coins), counted)

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
        read = (*(self.features or ()), *(() if self.seen is None else (self.seen,)))
        self.books = [Book.of(feature, outcomes, coins, 0) for feature in read]
        half = len(coins) // 2
        for learner in self.learners if half else ():
            feature = learner.fit(outcomes[:half], coins[:half])
            if feature is not None:
                self.books.append(Book.of(feature, outcomes, coins, half))
        if self._cut >= KEPT:
            self._outcomes, self._coins = [], []


def _negative(hoped: tuple[float, Book]) -> float:
    return -hoped[0]


def _joined(parts: Sequence[Outcomes]) -> Outcomes:
    """Outcomes as one array; of objects, where they are not all plain numbers of one shape."""
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
