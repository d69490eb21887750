"""Lower confidence bound on epsilon (Theorem 4), from a ladder of claims whose wealth is computed
from counts.

At a fixed delta every rung is a claim with its own epsilon and its own wealth. The bound is the
highest rung such that it and *all* rungs below it have reached 1/alpha. If epsilon* is true and e
is the first rung at or above it, the bound exceeds epsilon* only if the wealth of e reached
1/alpha, which has probability at most alpha. The highest rung alone to reach 1/alpha would be no
bound, since several true rungs are several chances of error.

The wealth of a rung is a mean with fixed weights over pairs, over the row numbers at which the
cells of a few features are frozen, and over these features. Each part is what the portfolio, with
its posterior weights at that moment, makes of the rows since: the evidence of all rows divided by
that of the earlier ones. Both are functions of counts. A part that is not computed counts as 0,
which lowers the mean.

Events are tested for the absence of a violation as well: for an event S, W = prod (1 - l (1_S(o) (b
- e^epsilon (1 - b)) - delta / 2)) with 0 <= l < 1 / (1 - delta / 2) bets on the converse of the
claim. It is a supermartingale if P(S) - e^epsilon Q(S) >= delta. If it reaches K / alpha, a
violation by S is excluded, simultaneously for all K events, with probability at least 1 - alpha
(Theorem 5). Nothing follows for other events.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpcompose.audit.arm import FEATURES, STARTS, Arm, Book, Frozen
from dpcompose.audit.claim import Point, Tried
from dpcompose.audit.stakes import evidence

RUNGS = (0.125, 0.25, 0.5, 0.6, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95, 1.0, 1.05, 1.1, 1.15, 1.2, 1.25, 1.3, 1.35, 1.4,
         1.5, 1.6, 1.7, 1.8, 1.9, 2.0, 2.2, 2.5, 3.0, 4.0, 6.0, 8.0, 12.0)  # fmt: skip
"""The epsilons of the tested claims (rungs), as multiples of the claim's epsilon."""
LEAST = 0.05
"""The smallest base epsilon of the rungs, used if the claim's is smaller."""
PAIRS = 2
"""The number of pairs that are evaluated."""
GROWTH = 4
"""The bound is recomputed whenever the number of rows has grown by this factor, and at the end."""


def log_wealth(frozen: Frozen, point: Point) -> float:
    """The log wealth that the portfolio at a point has made of the rows since the cells were
    frozen.
    """
    rows, prior = frozen.before.sum(axis=0).astype(np.float64), frozen.book.cells.prior
    ratio = evidence(frozen.before + frozen.book.counts, (point,), prior, rows)
    return ratio - evidence(frozen.before, (point,), prior, rows)


@dataclass
class Ladder:
    """The claims tested for the lower bound on epsilon.

    Args:
        rungs: The tested (epsilon, delta), in increasing epsilon.
        delta: The delta of all rungs.
        goal: Natural logarithm of the wealth that refutes a rung.
        crossed: The number of rungs refuted without a gap, from the lowest.
    """

    rungs: tuple[Point, ...]
    delta: float
    goal: float
    crossed: int = 0

    @classmethod
    def of(cls, claim: Sequence[Point], alpha: float, *, climbed: bool = True) -> Ladder:
        """A ladder around the claim's epsilon at the smallest delta of its points.

        Args:
            claim: The points of the claim at distance 1.
            alpha: The probability of a bound above the true epsilon.
            climbed: Whether to compute a bound; if False, there are no rungs and the bound is 0.
        """
        point = min(claim, key=lambda each: each.delta)
        rungs = (Point(rung * max(point.epsilon, LEAST), point.delta) for rung in RUNGS if climbed)
        return cls(tuple(each for each in rungs if each.testable), point.delta, -math.log(alpha))

    @property
    def lower(self) -> float:
        """The most recently computed lower bound on epsilon; 0 if no rung is refuted."""
        return self.rungs[self.crossed - 1].epsilon if self.crossed else 0.0

    def climb(self, arms: Sequence[Arm]) -> None:
        """Update the bound: evaluate rungs upward until one is not refuted."""
        while self.crossed < len(self.rungs) and self._reaches(self.rungs[self.crossed], arms):
            self.crossed += 1

    def _reaches(self, rung: Point, arms: Sequence[Arm]) -> bool:
        parts, weight = [-math.inf], -math.log(len(arms) * len(STARTS) * FEATURES)
        for arm in sorted(arms, key=lambda arm: -arm.hope)[:PAIRS]:
            point = rung.group(arm.pair.distance)
            for start in arm.frozen.values() if point.testable else ():
                parts += [log_wealth(each, point) + weight for each in start]
                if max(parts) >= self.goal:
                    return True
        return bool(np.logaddexp.reduce(parts) >= self.goal)


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
