"""One run as an audit: canaries put in by fair coins, and guesses of these coins from scores of the result.

For r guesses of coins of a run with (epsilon, delta) and m canaries, v of them right has probability at most
P(B >= v) + 2 m delta max over i of P(v > B >= v - i) / i, B ~ Bin(r, 1 / (1 + e^-epsilon)). The numbers of guesses are
fixed beforehand and share alpha. Reference: [SteinkeNasrJagielski2023, Theorem 5.2]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from scipy.special import gammaln

from dpcompose import check
from dpcompose.audit.verdict import Verdict
from dpcompose.composition import Composable
from dpcompose.errors import DomainError
from dpcompose.mechanisms import BlackBox
from dpcompose.numerics import at_least
from dpcompose.values import Bound

FEWEST, LARGEST, STEP = 8, 30.0, 1 / 64
"""The fewest guesses, the largest epsilon that is asked for, and the grid of its lower ends."""
MARGIN = 1 + 1e-6
"""Above the relative errors of the masses in the term of delta."""


@dataclass(frozen=True)
class Canaries:
    """One run, audited.

    Args:
        verdict: `REFUTED` or `NOT_REFUTED`.
        epsilon: The least epsilon at `delta` that the run can claim: its lower end holds but for alpha.
        delta: The delta.
        guesses: The number of guesses that shows most.
        right: How many of them were right.
        pvalue: The probability of as many right, at most, if the claim were true; times the numbers of guesses tried.
    """

    verdict: Verdict
    epsilon: Bound
    delta: float
    guesses: int
    right: int
    pvalue: float


def canaries(
    scores: Any, bits: Any, *, claim: Composable, alpha: float = 0.05, delta: float | None = None
) -> Canaries:
    """Audit one run from the scores of its canaries.

    Args:
        scores: A number for each canary, larger where the run looks as if it was in.
        bits: Whether it was in: fair coins, which the run did not see.
        claim: The claim of the run.
        alpha: The probability of refuting a true claim, in (0, 1).
        delta: Where the claim's curve is read; a `BlackBox` has its own.

    Raises:
        DomainError: If an argument is outside its domain.
    """
    alpha = check.open_probability("alpha", alpha)
    known, inside = _numbers(scores, bits)
    if isinstance(claim, BlackBox):
        delta, epsilon = claim.stated.delta, claim.stated.epsilon
    else:
        delta = check.open_probability(
            "delta", alpha / (1000 * len(known)) if delta is None else delta
        )
        epsilon = claim.epsilon(delta=delta).upper
    order = np.argsort(known, kind="stable")
    tried = _guesses(len(known))
    right = [
        int((~inside[order[: r // 2]]).sum() + inside[order[len(order) - r // 2 :]].sum())
        for r in tried
    ]

    def pvalue(epsilon: float) -> tuple[float, int]:
        each = [
            chance(2 * (r // 2), v, len(known), epsilon, delta)
            for r, v in zip(tried, right, strict=True)
        ]
        best = int(np.argmin(each))
        return min(1.0, each[best] * len(tried)), best

    claimed, best = pvalue(epsilon) if epsilon <= LARGEST else (1.0, 0)
    # The run keeps its least epsilon at every larger one, so the first point of the grid at or above it stops the walk.
    steps = takewhile(lambda step: pvalue(step * STEP)[0] <= alpha, range(int(LARGEST / STEP)))
    low = max(steps, default=0) * STEP
    verdict = Verdict.REFUTED if claimed <= alpha else Verdict.NOT_REFUTED
    return Canaries(verdict, Bound(low, math.inf), delta, tried[best], right[best], claimed)


def _guesses(canaries: int) -> list[int]:
    """All, half of them, a quarter, and so on: those with the largest and the smallest scores."""
    return [canaries >> halved for halved in range(8) if not halved or canaries >> halved >= FEWEST]


def _numbers(scores: Any, bits: Any) -> tuple[np.ndarray, np.ndarray]:
    try:
        known, inside = np.asarray(scores, dtype=np.float64), np.asarray(bits, dtype=np.float64)
    except (TypeError, ValueError):
        raise DomainError("scores", scores, "a number for each canary") from None
    if known.ndim != 1 or known.shape != inside.shape or len(known) < 2:
        raise DomainError("scores", known.shape, "at least two numbers, and as many bits")
    if np.isnan(known).any():
        raise DomainError("scores", math.nan, "numbers; a run that gives NaN has no score")
    if not np.isin(inside, (0, 1)).all():
        raise DomainError("bits", bits, "0 or 1 for each canary")
    return known, inside == 1


def chance(guesses: int, right: int, canaries: int, epsilon: float, delta: float) -> float:
    """The probability of as many right guesses, at most, rounded up.

    >>> round(chance(10, 10, 10, 0.0, 0.0) * 1024, 9)
    1.0
    """
    rate = min(1.0, (1 / (1 + math.exp(-epsilon))) * (1 + 2.0**-50)) if epsilon else 0.5
    if not right:
        return 1.0
    tail = at_least(right, times=guesses, rate=rate)[0].upper
    if not delta:
        return min(1.0, tail)
    below = np.arange(right - 1, -1, -1)
    logs = gammaln(guesses + 1) - gammaln(below + 1) - gammaln(guesses - below + 1)
    logs += below * math.log(rate) + (guesses - below) * math.log1p(-rate)
    most = float(np.max(np.cumsum(np.exp(logs)) / np.arange(1, right + 1))) * MARGIN
    return min(1.0, (tail + 2 * canaries * delta * most) * MARGIN)
