"""Sums of few losses with few values, outcome by outcome: equal losses are counted, not listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations_with_replacement

import numpy as np

from dpcompose.loss.atoms import AtomicLoss
from dpcompose.loss.base import Loss
from dpcompose.numerics.elementary import Reals, U

MOST_STATES, MOST_COUNTS = 1 << 14, 1 << 21
_UNDERFLOW = 1e-290  # powers below it are not reliable


def states(group: Sequence[tuple[Loss, int]]) -> int:
    """How many outcomes the sum has; more than `MOST_STATES` if that is too many, or a loss has too many values."""
    total = 1
    for loss, times in group:
        if not loss.support or times > 64:
            return MOST_STATES + 1
        total *= math.comb(times + loss.support - 1, times)
        if total > MOST_STATES or total * loss.support > MOST_COUNTS:
            return MOST_STATES + 1
    return total


def enumerated(group: Sequence[tuple[Loss, int]]) -> AtomicLoss:
    """The sum of losses with finitely many values."""
    upper, lower, ratio = np.ones(1), np.ones(1), np.zeros(1)
    fuzz, lost, spread = 0.0, 0.0, 1.0
    for loss, times in group:
        atomic = loss.atoms()
        p, q = np.array(atomic.upper), np.array(atomic.lower)
        step = np.where((p > 0) & (q > 0), np.array(atomic.ratios), 0.0)
        rounded = 2 * times * U
        if times > 1:
            counts = _counts(times, len(p))
            ways = np.array([_ways(row) for row in counts.astype(int).tolist()])
            (p, lost_p), (q, lost_q) = _masses(counts, ways, p), _masses(counts, ways, q)
            lost += lost_p + lost_q
            step = counts @ step
            # A power errs by 8 U, and so does each of the at most `times` that are not 1; their product by U each.
            rounded = U * (16 + 16 * times)
        upper, lower = np.outer(upper, p).ravel(), np.outer(lower, q).ravel()
        ratio = np.add.outer(ratio, step).ravel()
        fuzz += times * atomic.fuzz + rounded
        lost += times * atomic.lost
        spread += times * float(max(abs(value) for value in atomic.finite_ratios()))
    return AtomicLoss(tuple(upper), tuple(lower), tuple(ratio), None, fuzz * spread + 8 * U, lost)


def _counts(times: int, kinds: int) -> Reals:
    """All ways of `times` as an ordered sum of `kinds` numbers >= 0, shape (m, kinds)."""
    picks = np.array(list(combinations_with_replacement(range(kinds), times)))
    counts = np.zeros((len(picks), kinds))
    for column in picks.T:
        counts[np.arange(len(picks)), column] += 1.0
    return counts


def _ways(row: list[int]) -> float:
    """In how many orders so many of each kind come, rounded once."""
    return float(math.factorial(sum(row)) // math.prod(math.factorial(count) for count in row))


def _masses(counts: Reals, ways: Reals, mass: Reals) -> tuple[Reals, float]:
    """ways times the product of the masses, each to the power of its count; and a bound on what underflows."""
    each = ways * np.prod(mass**counts, axis=1)
    if float(mass[mass > 0].min(initial=1.0)) ** float(counts[0].sum()) > _UNDERFLOW:
        return each, 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        logs = np.where(counts == 0, 0.0, counts * np.log(mass)).sum(axis=1)
    return np.where(logs > math.log(_UNDERFLOW), each, 0.0), float(ways.sum()) * _UNDERFLOW
