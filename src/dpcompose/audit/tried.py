"""Events for which a violation is excluded, and the probability below which a violation would go
undetected (Theorem 5).

For an event S, W = prod (1 - l (1_S(o) (b - e^epsilon (1 - b)) - delta / 2)) with 0 <= l < 1 / (1 -
delta / 2) bets on the converse of the claim: it is a supermartingale if P(S) - e^epsilon Q(S) >=
delta. If it reaches K / alpha, a violation by S is excluded, simultaneously for all K events, with
probability at least 1 - alpha. Nothing follows for other events.
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
"""The number of rows of a pair after which its events are chosen."""
EVENTS = 4
"""The number of cuts chosen per feature and direction."""
BETS = 0.5 ** np.arange(1, 16)
"""The grid of bets, as fractions of the largest possible bet."""


def log_converse(wins: float, losses: float, rows: float, point: Point) -> float:
    """The log wealth of the averaged bets on the converse of the claim, for one event.

    Args:
        wins: The rows in the event with the coin that it favors.
        losses: The rows in the event with the other coin.
        rows: The total number of rows.
        point: The point of the claim.
    """
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
    """A lower or upper tail of a feature: its cells below an index, or from it upward.

    Args:
        book: The index of the feature.
        below: Whether it is the lower tail.
        cut: The index of the first cell above the cut.
        point: The index of the claim's point that is tested.
        coin: The world in which the event might be too likely.
    """

    book: int
    below: bool
    cut: int
    point: int
    coin: int


@dataclass
class Converse:
    """The tested events of one pair, chosen once from its past rows, with the counts of later rows.

    Args:
        arm: The pair and its past.
        events: The events; empty until the pair has enough rows.
        books: For each feature, the counts of the rows since the events were chosen.
    """

    arm: Arm
    events: tuple[Event, ...] = ()
    books: list[Book] = field(default_factory=list[Book])

    def bind(self) -> None:
        """Choose the events once the pair has `AFTER` rows."""
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
        """Count the outcomes of a batch, which was drawn after the events were chosen."""
        self.count(tallies(self.books, outcomes, coins))

    def count(self, counted: Sequence[NDArray[np.intp]]) -> None:
        """Add the counts of a batch, by coin and cell for each feature."""
        for book, counts in zip(self.books, counted, strict=True):
            book.counts += counts

    def excluded(self, alpha: float, events: int) -> tuple[Tried, ...]:
        """Each event with whether its violation is excluded at level alpha / `events` (union
        bound).
        """
        return tuple(self._tried(event, math.log(events / alpha)) for event in self.events)

    def _tried(self, event: Event, goal: float) -> Tried:
        book, point = self.books[event.book], self.arm.points[event.point]
        side = slice(0, event.cut) if event.below else slice(event.cut, book.cells.count - 1)
        zero, one = (float(each) for each in book.counts[:, side].sum(axis=1))
        wins, losses = (one, zero) if event.coin else (zero, one)
        rows: Reals = book.counts.sum(axis=1).astype(np.float64)
        mine, other = (rows[1], rows[0]) if event.coin else (rows[0], rows[1])
        likely, rival = wins / max(mine, 1.0), losses / max(other, 1.0)
        excess = likely - point.growth * rival - point.delta
        spread = likely * (1 - likely) / max(mine, 1.0) + point.growth**2 * rival * (
            1 - rival
        ) / max(other, 1.0)
        cut = book.cells.cuts[event.cut - 1]
        words = f"{book.feature.name} {'below' if event.below else 'at least'} {cut:.6g}"
        reached = log_converse(wins, losses, float(np.sum(rows)), point) >= goal
        return Tried(
            f"{words}, in world {event.coin}", event.point, excess, reached, math.sqrt(spread)
        )


def _places(cuts: int) -> list[int]:
    """Up to EVENTS evenly spaced cuts, each as the number of cells below it."""
    even = (round(part * (cuts + 1) / (EVENTS + 1)) for part in range(1, EVENTS + 1))
    return sorted({min(max(place, 1), cuts) for place in even}) if cuts else []


def unseen(rows: int, alpha: float, point: Point, *, weight: float = 1e-3) -> float:
    """The probability below which an isolating event might not refute the claim with this many rows
    (Theorem 5).

    Args:
        rows: The number of rows, over both worlds.
        alpha: The probability of refuting a true claim.
        point: The point of the claim; the result is at least its delta.
        weight: The prior weight of the bet on the event.
    """
    if not rows:
        return 1.0
    gain = math.log1p(math.exp(-point.epsilon))
    return min(1.0, point.delta + 2 * math.log(1 / (alpha * weight)) / (rows * gain))
