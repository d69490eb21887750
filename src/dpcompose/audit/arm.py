"""An arm of the audit: one pair of datasets, its past outcomes, the bets that they suggest for each
feature, and the wealth that these bets make.

The wealth starts at 1 and grows if bets against the claim succeed. In every batch it is divided
among members, which bet on one feature each; an undivided part stays idle. These weights are fixed
before the coins. Row by row, a member's part is multiplied by the growth factors of its bets. Under
the claim the wealth is a nonnegative supermartingale, so by Ville's inequality it ever reaches
1/alpha with probability at most alpha.

Reference: [WaudbySmithRamdas2024]
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.check import WEIGHTS
from dpcompose.audit.claim import Pair, Point
from dpcompose.audit.feature import Feature, Learner, Memory, features_of
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.audit.stakes import Cells, Stakes, hopes, stakes, twin_stakes

MOST_LOOKS = 1 << 21
"""The wealth is compared with its goal after every row if members times rows is at most this."""


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
        feature, sides = self.feature, {"f": self.stakes.f.tolist(), "g": self.stakes.g.tolist()}
        fitted = {} if feature.parameters is None else {"made": dict(feature.parameters)}
        cuts = [cut.hex() for cut in self.cells.cuts]
        return {"feature": feature.name, "cuts": cuts, "weight": self.weight} | sides | fitted


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
        new: For each row, whether its answer has not occurred before.
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


FIRST, SHARE, FINE, FEW, TEACHING = 24, 8, 20, 1 << 14, 8
"""Rows of a batch: FIRST, or past rows over SHARE, FINE (below FEW), TEACHING (without bets)."""
MANY = 12
"""The most features bet on at once; pairs with more have larger batches, as features take time."""
KEPT = 1 << 18
"""The number of past outcomes that are stored to recompute cells; later rows are only counted."""
WORLDS = (1.0, 2.0, 3.0)
"""The cuts of the feature `Memory`: answer seen in no world, world 0, world 1, both."""
HOPE = 2.0
"""The projected log gain below which no bets on a feature are computed."""
STARTS, FEATURES, AFTER = (24, 192, 1536, 12288), 2, 512
"""Rows at which cells are frozen for the lower bound, features then, rows for tested events."""
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
        features: The features to bet on; None for the built-in ones that suit the past outcomes.
        learners: Algorithms that fit further features to past outcomes and coins.
        seen: The record of earlier answers; None for none.
        worth: The log evidence below which no bets are placed, since with many pairs some show
            evidence by chance.
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
        """Fix the cells of some features for the lower bound on epsilon, once there are enough
        rows.
        """
        for start in STARTS:
            if self.bounded and start <= self.rows and start not in self.frozen:
                leaders = sorted(self.books, key=lambda book: -book.hope(self.points))[:FEATURES]
                self.frozen[start] = [Frozen(book.empty(), book.counts.copy()) for book in leaders]
        if self.rows >= AFTER and not self.events:
            self.events = [book.empty() for book in self.books]

    @property
    def watched(self) -> dict[str, list[Book]]:
        """All books whose counts are updated, grouped by their use."""
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
        hopes = [(book.hope(self.points), book) for book in self.books]
        hopes.sort(key=lambda each: -each[0])
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
        features = features_of(outcomes) if self.features is None else self.features
        memory = [book for book in self.books if book.feature.memory is not None]
        self.books = [*memory, *(Book.of(each, outcomes, coins) for each in features)]
        half = len(coins) // 2
        past = outcomes[:half]
        for learner in self.learners if half else ():
            feature = learner(past, coins[:half])
            if feature is not None:
                self.books.append(Book.of(feature, outcomes, coins, half))
        if self._cut >= KEPT:
            self._outcomes, self._coins = [], []
