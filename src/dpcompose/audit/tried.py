"""Theorem 5: events of which a violation is excluded, and how rare a violation would not be seen.

For an event S, W = prod (1 - l (1_S(o) (b - e^epsilon (1 - b)) - delta / 2)) with 0 <= l < 1 / (1 - delta / 2) bets on
the converse of the claim: it falls in expectation if P(S) - e^epsilon Q(S) >= delta. Where it reaches K / alpha, a
violation by S is excluded, for all K events together but for alpha. It says nothing of other events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.arm import Arm, Book, tallies
from dpcompose.audit.claim import Point
from dpcompose.audit.outcome import Outcomes, Reals
from dpcompose.audit.verdict import Tried

AFTER = 512
"""Rows of an arm after which its events are chosen."""
EVENTS = 4
"""Events of each feature and direction."""
BETS = 0.5 ** np.arange(1, 16)
"""Bets on a grid, as shares of the largest."""


def log_converse(wins: float, losses: float, rows: float, point: Point) -> float:
    """ln of the mean wealth of the bets on the converse, for an event with so many rows of either coin."""
    bets = BETS / (1 - point.delta / 2)
    other = rows - wins - losses
    logs = wins * np.log1p(-bets * (1 - point.delta / 2)) + losses * np.log1p(
        bets * (point.growth + point.delta / 2)
    )
    return float(
        np.logaddexp.reduce(logs + other * np.log1p(bets * point.delta / 2)) - np.log(len(BETS))
    )


@dataclass(frozen=True)
class Event:
    """A lower or upper tail of a feature: cells below a place, or from it on."""

    book: int
    below: bool
    place: int
    point: int
    coin: int


@dataclass
class Converse:
    """The events of one arm, chosen once from its past, and the rows since.

    Args:
        arm: The arm.
        events: Its events; empty until it has enough rows.
        books: The rows since then, by feature.
    """

    arm: Arm
    events: tuple[Event, ...] = ()
    books: list[Book] = field(default_factory=list[Book])

    def bind(self) -> None:
        """Choose the events, once there are enough rows."""
        if self.events or self.arm.rows < AFTER:
            return
        self.books = [
            Book(each.feature, each.cells, np.zeros_like(each.counts)) for each in self.arm.books
        ]
        self.events = tuple(
            Event(number, below, place, point, coin)
            for number, book in enumerate(self.books)
            for place in _places(len(book.cells.cuts))
            for below in (True, False)
            for point in range(len(self.arm.points))
            for coin in (0, 1)
        )

    def pay(self, outcomes: Outcomes, coins: NDArray[np.uint8]) -> None:
        """Count a batch whose events were chosen before it."""
        self.count(tallies(self.books, outcomes, coins))

    def count(self, counted: Sequence[NDArray[np.intp]]) -> None:
        """Add rows of which only the counts are known."""
        for book, counts in zip(self.books, counted, strict=True):
            book.counts += counts

    def excluded(self, alpha: float, events: int) -> tuple[Tried, ...]:
        """Every event with its verdict, where `events` share alpha."""
        return tuple(self._tried(event, math.log(events / alpha)) for event in self.events)

    def _tried(self, event: Event, goal: float) -> Tried:
        book, point = self.books[event.book], self.arm.points[event.point]
        side = slice(0, event.place) if event.below else slice(event.place, book.cells.count - 1)
        zero, one = (float(each) for each in book.counts[:, side].sum(axis=1))
        wins, losses = (one, zero) if event.coin else (zero, one)
        rows: Reals = book.counts.sum(axis=1).astype(np.float64)
        mine, other = (rows[1], rows[0]) if event.coin else (rows[0], rows[1])
        likely, rival = wins / max(mine, 1.0), losses / max(other, 1.0)
        excess = likely - point.growth * rival - point.delta
        spread = likely * (1 - likely) / max(mine, 1.0) + point.growth**2 * rival * (
            1 - rival
        ) / max(other, 1.0)
        cut = book.cells.cuts[event.place - 1]
        words = f"{book.feature.name} {'below' if event.below else 'at least'} {cut:.6g}"
        reached = log_converse(wins, losses, float(np.sum(rows)), point) >= goal
        return Tried(
            f"{words}, in world {event.coin}", event.point, excess, reached, math.sqrt(spread)
        )


def _places(cuts: int) -> list[int]:
    """A few of the cuts, each as the number of cells below it."""
    even = (round(part * (cuts + 1) / (EVENTS + 1)) for part in range(1, EVENTS + 1))
    return sorted({min(max(place, 1), cuts) for place in even}) if cuts else []


def unseen(rows: int, alpha: float, point: Point, *, weight: float = 1e-3) -> float:
    """The probability of an isolating event that so many rows are not expected to show, at delta 0: Theorem 5.

    Args:
        rows: Rows of either world.
        alpha: The probability of refuting a true claim.
        point: The point of the claim; its delta is added.
        weight: The prior weight of the event.
    """
    if not rows:
        return 1.0
    gain = math.log1p(math.exp(-point.epsilon))
    return min(1.0, point.delta + 2 * math.log(1 / (alpha * weight)) / (rows * gain))
