"""Confidence limits for delta at all epsilons at once, from a tally of privacy losses.

With S(t) = P(L > t), L the loss of a transcript drawn in one world,
  delta(epsilon) = E (1 - e^(epsilon - L))_+ = the integral over t > epsilon of e^(epsilon - t) S(t):
whatever holds of S at all t holds of delta at all epsilon. Let T_r be the r-th largest of n losses. P(L >= T_r) is at
least, and P(L > T_r) at most, the r-th smallest of n uniform variables, which is Beta(r, n - r + 1) (equal but for
atoms). For ranks fixed beforehand, m of them, the quantiles of these at failure / m hold all together with probability
at least 1 - failure, and between the ranks S is monotone. Ranks are as close as their own spread makes sensible, so the
limits are relative to S: sharp in the tail, where a band of one width for all t (Dvoretzky-Kiefer-Wolfowitz) says
nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv

from dpcompose.experiment.channel import Reals
from dpcompose.experiment.tally import EDGES, Tally

STRIDE = 1.6
"""How many standard deviations of a rank, about, lie between it and the next."""
QUANTILE_SLACK = 1e-9
"""The relative error granted to the inverse of the incomplete beta function."""


@dataclass(frozen=True)
class Survival:
    """Two step functions that enclose S: masses and the places where they sit, as the tails of distributions.

    Args:
        low: Masses, shape (m,): S(t) is at least the sum of those at places above t.
        low_at: Their places.
        high: Masses: S(t) is at most the sum of those at places above t.
        high_at: Their places, infinite ones included.
    """

    low: Reals
    low_at: Reals
    high: Reals
    high_at: Reals

    def lower(self, epsilons: Reals) -> Reals:
        """Below delta, at every epsilon."""
        return _expected(self.low, self.low_at, epsilons)

    def upper(self, epsilons: Reals) -> Reals:
        """Above delta, at every epsilon."""
        return np.minimum(_expected(self.high, self.high_at, epsilons), 1.0)


def survival(tally: Tally, *, failure: float, margin: float) -> Survival:
    """Limits for S that hold at all t together with probability at least 1 - failure.

    Args:
        tally: The losses of independent transcripts.
        failure: In (0, 1).
        margin: What rounding may have moved a loss by, in nats.
    """
    n = tally.transcripts
    ranks = ranks_of(n)
    level = failure / (2 * len(ranks))
    low: Reals = np.asarray(betaincinv(ranks, n - ranks + 1.0, level), dtype=np.float64) * (1 - QUANTILE_SLACK)
    # 1 minus the quantile of the mirrored variable keeps its digits.
    high = np.minimum((1 - betaincinv(n - ranks + 1.0, ranks, level)) * (1 + QUANTILE_SLACK) + 1e-15, 1.0)
    bins = _bins_of_ranks(tally, ranks)
    start, end = EDGES[bins] - margin, EDGES[bins + 1] + margin
    # Losses that are infinite stay so, and count as finite beyond the last edge only from below.
    start = np.where(ranks <= tally.infinite, np.inf, start)
    low_masses = np.concatenate([low[:1], np.diff(low)])
    high_masses = np.concatenate([high[:1], np.diff(high), [1.0 - high[-1]]])
    return Survival(low_masses, start, high_masses, np.concatenate([[np.inf], end]))


def ranks_of(transcripts: int) -> Reals:
    """Ranks from 1 to all, about `STRIDE` standard deviations of a rank apart; they depend on the number alone."""
    half: list[int] = []
    rank = 1
    while rank <= transcripts // 2:
        half.append(rank)
        rank += max(1, int(STRIDE * rank**0.5))
    found = {*half, *(transcripts + 1 - rank for rank in half), (transcripts + 1) // 2}
    return np.array(sorted(found), dtype=np.float64)


def _bins_of_ranks(tally: Tally, ranks: Reals) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The bin in which the r-th largest loss lies."""
    from_above = np.cumsum(tally.counts[::-1])
    return len(tally.counts) - 1 - np.searchsorted(from_above, ranks, side="left").astype(np.int64)


def _expected(masses: Reals, places: Reals, epsilons: Reals) -> Reals:
    """The sum of masses times (1 - e^(epsilon - place))_+, for every epsilon."""
    found = np.zeros(len(epsilons))
    # -inf at a place contributes nothing.
    for start in range(0, len(epsilons), 64):
        block = epsilons[start : start + 64, None]
        found[start : start + 64] = -np.expm1(np.minimum(block - places[None, :], 0.0)) @ masses
    return found
