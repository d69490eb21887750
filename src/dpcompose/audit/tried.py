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

import numpy as np

from dpcompose.audit.arm import Arm, Book
from dpcompose.audit.claim import Point
from dpcompose.audit.verdict import Tried

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


def tried_events(arms: Sequence[Arm], alpha: float) -> tuple[Tried, ...]:
    """The tested events of all pairs: lower and upper tails of their features, in either world.

    Those whose violation is excluded are so simultaneously, with probability 1 - alpha (union
    bound). Only rows after the choice of the events count.
    """
    events = [
        (arm, book, cut, below, index, coin)
        for arm in arms
        for book in arm.events
        for cut in _cuts(len(book.cells.cuts))
        for below in (True, False)
        for index in range(len(arm.points))
        for coin in (0, 1)
    ]
    goal = math.log(max(1, len(events)) / alpha)
    return tuple(_tried(*event, goal) for event in events)


def _tried(
    arm: Arm, book: Book, cut: int, below: bool, index: int, coin: int, goal: float
) -> Tried:
    """One event: the cells of a book below a cut, or from it upward.

    Args:
        arm: The pair.
        book: The feature.
        cut: The index of the first cell above the cut.
        below: Whether it is the lower tail.
        index: The index of the claim's point that is tested.
        coin: The world in which the event might be too likely.
        goal: Natural logarithm of the wealth at which a violation is excluded.
    """
    point = arm.points[index]
    side = slice(0, cut) if below else slice(cut, book.cells.count - 1)
    wins, losses = (float(book.counts[world, side].sum()) for world in (coin, 1 - coin))
    own, other = (float(max(book.counts[world].sum(), 1)) for world in (coin, 1 - coin))
    likely, rival = wins / own, losses / other
    excess = likely - point.growth * rival - point.delta
    spread = likely * (1 - likely) / own + point.growth**2 * rival * (1 - rival) / other
    words = f"{book.feature.name} {'below' if below else 'at least'} {book.cells.cuts[cut - 1]:.6g}"
    reached = log_converse(wins, losses, float(book.counts.sum()), point) >= goal
    return Tried(f"{words}, in world {coin}", index, excess, reached, math.sqrt(spread))


def _cuts(cuts: int) -> list[int]:
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
