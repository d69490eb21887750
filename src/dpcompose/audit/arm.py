"""An arm of the audit: one pair of datasets, its past outcomes, and the bets they suggest for each
feature.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.feature import Feature, Learner, Memory
from dpcompose.audit.outcome import Outcomes
from dpcompose.audit.stakes import Cells, Stakes, hopes, stakes, twin_stakes
from dpcompose.audit.wealth import WEIGHTS, Member, tally

FIRST, SHARE, FINE, FEW, TEACHING = 24, 8, 20, 1 << 14, 8
"""Batch sizes of one pair: FIRST rows in the first batch, and 1 / SHARE of the past rows in later
ones. While there are fewer than FEW past rows it is 1 / FINE of them; while no bets are placed, 1 /
TEACHING.
"""
MANY = 12
"""The largest number of features bet on at once. A pair with more features has larger batches,
since evaluating each feature takes time.
"""
KEPT = 1 << 18
"""The number of past outcomes stored. The cells of features are recomputed whenever the stored rows
have grown by half; later rows are only counted.
"""
WORLDS = (1.0, 2.0, 3.0)
"""The cuts of the feature that remembers answers: seen in neither world, in world 0, in world 1, in
both.
"""
HOPE = 2.0
"""The projected log gain below which a feature has no evidence, so that no bets are computed for
it.
"""
STARTS, FEATURES, AFTER = (24, 192, 1536, 12288), 2, 512
"""The numbers of rows of a pair at which cells are frozen for the lower bound, and how many features
each time; the number of rows at which the tried events are chosen.
"""
IDLE = 0.1
"""The prior weight of betting on no feature."""
LIGHTEST = WEIGHTS >> 12
"""The smallest integer weight of a member; lighter ones are left out."""


@dataclass
class Book:
    """Counts of the past rows of one pair in the cells of one feature.

    Args:
        feature: The feature, which maps each outcome to a number.
        cells: The intervals into which the feature's values are divided.
        counts: The number of rows with coin 0 and with coin 1 in each cell, shape (2, number of
            cells).
    """

    feature: Feature
    cells: Cells
    counts: NDArray[np.intp]

    @classmethod
    def of(
        cls, feature: Feature, outcomes: Outcomes, coins: NDArray[np.uint8], since: int = 0
    ) -> Book:
        """Divide the values of a feature into cells, and count the past rows in each of them.

        Args:
            feature: The feature.
            outcomes: All past outcomes of the pair. Their values determine the cells; the coins do
                not.
            coins: The coin of each outcome.
            since: The index of the first row to count. A learned feature was fitted to the earlier
                rows and their coins, so they must not count as evidence.
        """
        scores = feature.score(outcomes)
        cells = Cells.of(scores)
        return cls(feature, cells, tally(coins[since:], cells.index(scores[since:]), cells.count))

    def empty(self) -> Book:
        """The same feature and cells without counts."""
        return Book(self.feature, self.cells, np.zeros_like(self.counts))

    def add(self, outcomes: Outcomes, coins: NDArray[np.uint8]) -> None:
        """Count new outcomes."""
        self.counts += tally(
            coins, self.cells.index(self.feature.score(outcomes)), self.cells.count
        )

    def stakes(self, points: Sequence[Point]) -> tuple[float, Stakes]:
        """The log evidence of past bets on this feature at the claim's points, and the stakes for
        the next batch.
        """
        zeros, ones = self.counts.astype(np.float64)
        if self.feature.memory is not None:
            return twin_stakes(ones, zeros, points, one=2, zero=1)
        return stakes(ones, zeros, points, self.cells.prior)

    def hope(self, points: Sequence[Point]) -> float:
        """The projected log gain of the best single event of this feature on the past rows, in
        nats.
        """
        zeros, ones = self.counts.astype(np.float64)
        return hopes(ones, zeros, points)


@dataclass(frozen=True)
class Frozen:
    """A feature with fixed cells, whose later rows are counted.

    Args:
        book: The counts of the rows since the cells were frozen.
        before: The counts of the earlier rows, from which the cells were derived.
    """

    book: Book
    before: NDArray[np.intp]


@dataclass
class Arm:
    """A pair of datasets with its past outcomes and the bets that they suggest.

    Args:
        pair: The two datasets.
        points: The (epsilon, delta) points of the claim at the distance of the pair.
        features: The features to bet on; None until `look` chooses them.
        learners: Algorithms that fit further features to past outcomes and coins.
        look: Chooses features for the past outcomes; None if they are fixed.
        seen: The record of earlier answers; None for none.
        worth: The log evidence below which no bets are placed: of many pairs, some have evidence by
            chance.
        bounded: Whether cells are frozen for the lower bound.
        rows: The number of past rows.
        books: The counts of past rows for each feature.
        frozen: The best features at each number of rows in `STARTS`, for the lower bound.
        events: All features at `AFTER` rows with the counts of later rows, for the tried events.
        evidence: The log evidence against the claim in the past rows.
        hope: The largest projected log gain of a single event.
    """

    pair: Pair
    points: tuple[Point, ...]
    features: tuple[Feature, ...] | None
    learners: tuple[Learner, ...] = ()
    look: Callable[[Outcomes], tuple[Feature, ...]] | None = None
    seen: Memory | None = None
    worth: float = 0.0
    bounded: bool = True
    rows: int = 0
    books: list[Book] = field(default_factory=list[Book])
    frozen: dict[int, list[Frozen]] = field(default_factory=dict[int, list[Frozen]])
    events: list[Book] = field(default_factory=list[Book])
    evidence: float = 0.0
    hope: float = 0.0
    _outcomes: list[Outcomes] = field(default_factory=list[Outcomes])
    _coins: list[NDArray[np.uint8]] = field(default_factory=list[NDArray[np.uint8]])
    _cut: int = 0

    def __post_init__(self) -> None:
        if self.seen is not None:
            counts = np.zeros((2, len(WORLDS) + 2), dtype=np.intp)
            self.books.append(Book(self.seen.feature, Cells(WORLDS), counts))

    def freeze(self) -> None:
        """Freeze the cells of features before the next batch, once there are enough rows."""
        for start in STARTS:
            if self.bounded and start <= self.rows and start not in self.frozen:
                leaders = sorted(self.books, key=lambda book: -book.hope(self.points))[:FEATURES]
                self.frozen[start] = [Frozen(book.empty(), book.counts.copy()) for book in leaders]
        if self.rows >= AFTER and not self.events:
            self.events = [book.empty() for book in self.books]

    @property
    def watched(self) -> dict[str, list[Book]]:
        """All books whose counts grow, by their use."""
        frozen = [each.book for start in self.frozen.values() for each in start]
        return {"books": self.books, "frozen": frozen, "events": self.events}

    @property
    def counts(self) -> dict[str, list[NDArray[np.intp]]]:
        """Copies of the counts of all watched books."""
        return {
            name: [book.counts.copy() for book in books] for name, books in self.watched.items()
        }

    @property
    def next_rows(self) -> int:
        """The number of rows of the next batch for this pair."""
        share = FINE if self.rows < FEW and len(self.books) <= MANY else SHARE
        share = share if self.evidence > self.worth else TEACHING
        return max(FIRST, 2 * len(self.books), self.rows // share)

    def members(self) -> list[Member]:
        """The bets of the next batch: one member per promising feature, weighted by its posterior.

        Returns an empty list while the evidence is below `worth`. Updates `evidence` and `hope`.
        """
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
        """Whether the outcomes of the next batch will be stored, and not only counted."""
        return self.rows < KEPT

    def learn(self, outcomes: Outcomes, coins: NDArray[np.uint8]) -> None:
        """Add the outcomes of a batch and their coins to the past. Only later batches may bet on
        what they show.
        """
        for book in (each for books in self.watched.values() for each in books):
            book.add(outcomes, coins)
        if self.keeps:
            self._outcomes.append(outcomes)
            self._coins.append(coins)
            if self.seen is not None:
                self.seen.learn(outcomes, coins)
        self.rows += len(coins)
        if self._cut < KEPT and self.rows >= min(self._cut * 3 // 2, KEPT):
            self._cut_anew()

    def count(self, rows: int, counted: Mapping[str, Sequence[Any]]) -> None:
        """Add a batch of which only the counts are available, as when a journal is replayed.

        Args:
            rows: The number of rows in the batch.
            counted: For each of the `watched` books, the batch's rows with coin 0 and with coin 1
                in each cell, shape (2, cells).
        """
        self.rows += rows
        for name, books in self.watched.items():
            for book, counts in zip(books, counted[name], strict=True):
                book.counts += np.array(counts, dtype=np.intp)

    def _cut_anew(self) -> None:
        outcomes = self._outcomes[0] if len(self._outcomes) == 1 else np.concatenate(self._outcomes)
        coins = np.concatenate(self._coins)
        self._outcomes, self._coins, self._cut = [outcomes], [coins], len(coins)
        self.features = self.features if self.look is None else self.look(outcomes)
        memory = [book for book in self.books if book.feature.memory is not None]
        self.books = [*memory, *(Book.of(each, outcomes, coins) for each in self.features or ())]
        half = len(coins) // 2
        for learner in self.learners if half else ():
            feature = learner.fit(outcomes[:half], coins[:half])
            if feature is not None:
                self.books.append(Book.of(feature, outcomes, coins, half))
        if self._cut >= KEPT:
            self._outcomes, self._coins = [], []


def _negative(hoped: tuple[float, Book]) -> float:
    return -hoped[0]
