"""Measured losses, views and their counts, and confidence limits for delta at all epsilons at once.

With S(t) = P(L > t), L the loss of a transcript drawn in one world,
  delta(epsilon) = E (1 - e^(epsilon - L))_+ = the integral over t > epsilon of e^(epsilon - t) S(t):
limits of S that hold at all t are limits of delta at all epsilon.

Let T_r be the r-th largest of n losses. P(L >= T_r) is at least, and P(L > T_r) at most, the r-th smallest of n uniform
variables, which is Beta(r, n - r + 1) (equal but for atoms). For ranks fixed beforehand, each with a share of the
failure fixed beforehand, the quantiles of these at their shares hold all together with probability at least
1 - failure, and between the ranks S is monotone. Ranks are as close as their own spread makes sensible. Half of the
failure goes to all in equal parts, and half by 1 / sqrt(r), about equally to each magnitude of the tail. So the limits
are relative to S: sharp in the tail, where a band of one width for all t (Dvoretzky-Kiefer-Wolfowitz) says nothing. Of
2^20 losses, at failure 1e-6, they are at most 1.4 times as wide as limits for one single t (Clopper-Pearson).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from dpcompose import check
from dpcompose.composition import entries_of
from dpcompose.errors import DomainError
from dpcompose.experiment.adversaries import Adversary, require_adversary
from dpcompose.experiment.channel import Reals, World
from dpcompose.experiment.round import STOPPED, Query, Round
from dpcompose.experiment.solved import chosen, opened
from dpcompose.pictured import Card

# Counts of the privacy losses of many transcripts, in bins that are fixed beforehand.
#
# Counts take the same memory for any number of transcripts.


SMALLEST, LARGEST = -20, 11
"""Binary exponents between which a loss has a bin of its relative size."""
BITS = 10
SHIFT = 52 - BITS
BASE = (1023 + SMALLEST) << BITS
HALF = (LARGEST - SMALLEST) << BITS
"""Bins on one side of zero; then one for what is larger still."""
BINS = 2 * (HALF + 1) + 1


def _edges() -> Reals:
    """All edges, BINS + 1 of them, from -inf to inf."""
    keys = (np.arange(HALF + 1, dtype=np.int64) + BASE) << SHIFT
    positive = keys.view(np.float64)
    return np.concatenate([[-np.inf], -positive[::-1], positive, [np.inf]])


EDGES = _edges()


@dataclass(frozen=True)
class Tally:
    """The numbers of transcripts by their privacy loss.

    Bins are about a thousandth wide, relative to the loss: bin i is from EDGES[i] to EDGES[i + 1].

    Args:
        counts: The number of losses in each bin, shape (BINS,).
        weights: The sums of e^-loss, same shape.
        infinite: The number of infinite losses, which are in the last bin.
    """

    counts: NDArray[np.int64]
    weights: Reals
    infinite: int = 0

    @property
    def transcripts(self) -> int:
        """The number of transcripts."""
        return int(np.sum(self.counts))

    @classmethod
    def of(cls, loss: Reals) -> Tally:
        """The tally of losses of any number of transcripts, shape (transcripts,)."""
        keys = bins_of(loss)
        weight = np.exp(-np.maximum(loss, -700.0))
        counts = np.bincount(keys, minlength=BINS)
        weights = np.bincount(keys, weight, minlength=BINS).astype(np.float64)
        return cls(counts, weights, int(np.sum(loss == np.inf)))

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.counts + other.counts, self.weights + other.weights, self.infinite + other.infinite
        )

    def estimate(self, epsilons: Reals) -> Reals:
        """The mean of (1 - e^(epsilon - loss))_+, within the width of a bin."""
        above = np.searchsorted(EDGES[:-1], epsilons, side="left")
        count = np.append(np.cumsum(self.counts[::-1])[::-1], 0)[above]
        weight = np.append(np.cumsum(self.weights[::-1])[::-1], 0.0)[above]
        # Above epsilon 700 the sums of e^-loss are below e^-700, less than the effect of a bin's width.
        growth = np.exp(np.minimum(epsilons, 700.0))
        return np.clip((count - growth * weight) / self.transcripts, 0.0, 1.0)


def bins_of(loss: Reals) -> NDArray[np.int64]:
    """The bin of every loss."""
    size = np.abs(loss)
    keys = (np.minimum(size, 2.0**LARGEST).view(np.int64) >> SHIFT) - BASE
    np.clip(keys, -1, HALF, out=keys)
    keys += 1
    np.negative(keys, out=keys, where=loss < 0)
    keys += HALF + 1
    return keys


# The views of many transcripts: answers and coins, from which the questions follow.


Seed = tuple[int, ...]


def coins_of(seed: Seed) -> np.random.Generator:
    """The coins, or the noise, that a seed stands for."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed)))


@dataclass(frozen=True)
class Questions:
    """The questions of many transcripts.

    >>> from dpcompose import Laplace
    >>> from dpcompose.experiment import Experiment, Query, Repeater, World
    >>> adversary = Repeater(Query(Laplace(1.0), ("Bob",), ()))
    >>> game = Experiment(adversary, family=[Laplace(1.0)], rounds=2)
    >>> views = game.play(World.ONE, transcripts=3, rng=np.random.default_rng(1))
    >>> [query.mechanism for query in views.questions(adversary).of(0)]
    [Laplace(1.0), Laplace(1.0)]

    Args:
        queries: Every query that some transcript asked.
        which: Shape (rounds, transcripts): the place of a question in `queries`; -1 where nothing was asked.
    """

    queries: tuple[Query, ...]
    which: NDArray[np.intp]

    def of(self, transcript: int) -> tuple[Query | None, ...]:
        """The questions of one transcript, round after round; None where it asked nothing.

        Args:
            transcript: Its place, from zero.

        Raises:
            DomainError: If there is no such transcript.
        """
        played, place = self.which.shape[1], check.integer("transcript", transcript)
        if not 0 <= place < played:
            raise DomainError("transcript", transcript, f"an integer from 0 to {played - 1}")
        places: list[int] = self.which[:, place].tolist()
        return tuple(None if place == STOPPED else self.queries[place] for place in places)


@dataclass(frozen=True)
class Views:
    """The views of many independent transcripts.

    Args:
        world: The world in which they were played.
        answers: Shape (rounds, transcripts): y_1, ..., y_k; NaN where nothing was asked.
        loss: ln V^0(view) / V^1(view), shape (transcripts,): the adversary's coins are the same in both worlds.
        coins: The seeds of the adversary's coins, each by the first transcript that it serves.
    """

    world: World
    answers: Reals
    loss: Reals
    coins: Mapping[int, Seed] = field(default_factory=dict[int, Seed])

    @property
    def tally(self) -> Tally:
        """The losses in the direction of this world, counted."""
        return Tally.of(self.loss if self.world is World.ZERO else -self.loss)

    def questions(self, adversary: Adversary) -> Questions:
        """The questions of the adversary: they follow from its coins and the answers alone, as the definition says.

        The adversary is started with the same coins and shown the same answers; no database is looked at.

        Args:
            adversary: The one that played.

        Raises:
            DomainError: If these views have no coins, as `play` keeps them, or it is no adversary.
            RefusedRoundError: If it fails, as another one may.
        """
        if not self.coins:
            raise DomainError("coins", self.coins, "the seeds that `play` keeps")
        require_adversary(adversary)
        places, which = dict[Query, int](), np.full(self.answers.shape, STOPPED)

        def numbered(proposal: Round) -> Any:
            listed = [places.setdefault(query, len(places)) for query in proposal.queries]
            # The place -1, of whoever asks nothing, is that of the last.
            return np.array([*listed, STOPPED])[0 if proposal.which is None else proposal.which]

        ends = [*list(self.coins)[1:], len(self.loss)]
        for (start, seed), end in zip(self.coins.items(), ends, strict=True):
            state = opened(adversary, coins_of(seed))
            for number in range(len(which)):
                seen = self.answers[:number, start:end]
                state, numbers = chosen(adversary, state, seen, numbered)
                if numbers is None:
                    break
                which[number, start:end] = numbers
        return Questions(tuple(places), which)


# Confidence limits: see above.


MOST_BINS = 10**6
STRIDE = 0.8
"""The distance of successive ranks, in standard deviations of a rank, about."""
HALVINGS = 64
QUANTILE_ERROR = 1e-9
"""The relative error granted to the inverse of the incomplete beta function."""


@dataclass(frozen=True)
class Limits(Card):
    """delta at some epsilons, three arrays of one shape.

    Args:
        lower: Confidence limits from below.
        estimate: The means.
        upper: Confidence limits from above.
    """

    lower: Reals
    estimate: Reals
    upper: Reals


@dataclass(frozen=True)
class Measured:
    """The counted losses of the transcripts of an experiment.

    Args:
        zero: ln p_0 / p_1 of transcripts of world 0.
        one: ln p_1 / p_0 of transcripts of world 1.
        rounds: The most rounds of a transcript.
        failure: The probability with which any limit may be wrong.
        shares: The number of experiments that share it.
        error: A bound on the error of a round's loss, because answers are rounded, in nats.
    """

    zero: Tally
    one: Tally
    rounds: int
    failure: float
    shares: int = 1
    error: float = 0.0

    def delta(self, epsilons: ArrayLike) -> Limits:
        """delta(epsilon), the larger of both directions: limits that hold for all epsilons, and directions, together.

        With probability at least 1 - failure, over all the experiments that share it, no limit is wrong anywhere.

        Args:
            epsilons: Any real numbers, an array of any shape.

        Raises:
            DomainError: If one is not a finite number.

        Reference: [David1981, Section 2.1]
        """
        points = entries_of("epsilons", epsilons, check.finite)
        flat = points.ravel()
        # The loss of each round errs by a few roundings of its terms, and so does their sum.
        inside = np.flatnonzero((self.zero.counts + self.one.counts)[1:-1]) + 1
        ends = EDGES[[inside[0], inside[-1] + 1]] if len(inside) else np.ones(1)
        margin = (1e-12 * max(1.0, float(np.max(np.abs(ends)))) + self.error) * (1 + self.rounds)
        # Each direction gets half of the failure probability.
        failure = self.failure / self.shares / 2
        zero = survival(self.zero, failure=failure, margin=margin)
        one = survival(self.one, failure=failure, margin=margin)
        lower = np.maximum(zero.lower(flat), one.lower(flat))
        # The margin of 1e-15 covers the rounding of the sums.
        lower = np.maximum(lower * (1 - 1e-9) - 1e-15, 0.0)
        upper = np.minimum(np.maximum(zero.upper(flat), one.upper(flat)) * (1 + 1e-9) + 1e-15, 1.0)
        middle = np.maximum(self.zero.estimate(flat), self.one.estimate(flat))
        return Limits(*(each.reshape(points.shape) for each in (lower, middle, upper)))

    def epsilon(self, deltas: ArrayLike) -> Limits:
        """epsilon(delta): the smallest epsilon >= 0 at which delta(epsilon) is at most this.

        The limits hold for all deltas, and together with those of `delta`. The upper one is infinite below what this
        number of transcripts can exclude, and so is the estimate where losses were infinite more often than delta.

        Args:
            deltas: Probabilities, an array of any shape.

        Raises:
            DomainError: If one is not in [0, 1].
        """
        asked = entries_of("deltas", deltas, check.probability)
        end = 2.0**LARGEST
        low, middle = np.zeros((2, 3, *asked.shape))
        high = np.full_like(low, end)
        for _ in range(HALVINGS):
            found = self.delta(middle)
            enough = np.stack([found.lower[0], found.estimate[1], found.upper[2]]) <= asked
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
            middle = (low + high) / 2
        beyond = np.where(high < end, high, np.inf)
        return Limits(low[0], beyond[1], beyond[2])

    def histogram(self, bins: int = 80) -> tuple[Reals, Reals, Reals]:
        """Edges, and in each bin the share of world 0's and of world 1's transcripts by ln p_0 / p_1, finite ones.

        Args:
            bins: The number of bins, at most 10^6.
        """
        check.count("bins", bins, least=1, most=MOST_BINS)
        mirrored = Tally(self.one.counts[::-1], self.one.weights[::-1])
        inside = np.flatnonzero((self.zero.counts + mirrored.counts)[1:-1]) + 1
        low, high = (EDGES[inside[0]], EDGES[inside[-1] + 1]) if len(inside) else (-1.0, 1.0)
        edges = np.linspace(low, high, bins + 1)
        middles = (EDGES[1:-2] + EDGES[2:-1]) / 2
        zero = np.histogram(middles, edges, weights=self.zero.counts[1:-1])[0]
        one = np.histogram(middles, edges, weights=mirrored.counts[1:-1])[0]
        return edges, zero / self.zero.transcripts, one / mirrored.transcripts


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
        margin: A bound on the rounding error of a loss, in nats.
    """
    n = tally.transcripts
    ranks = ranks_of(n)
    level = failure / 2 * shares_of(ranks, n)
    low: Reals = np.asarray(betaincinv(ranks, n - ranks + 1.0, level), dtype=np.float64) * (
        1 - QUANTILE_ERROR
    )
    # 1 minus the quantile of the mirrored variable avoids cancellation.
    high = np.minimum(
        (1 - betaincinv(n - ranks + 1.0, ranks, level)) * (1 + QUANTILE_ERROR) + 1e-15, 1.0
    )
    # The bin in which the r-th largest loss lies.
    from_above = np.cumsum(tally.counts[::-1])
    bins = BINS - 1 - np.searchsorted(from_above, ranks, side="left").astype(np.int64)
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


def shares_of(ranks: Reals, transcripts: int) -> Reals:
    """The shares of the failure that the ranks have; they sum to at most 1 after every rounding."""
    tail = np.minimum(ranks, transcripts + 1 - ranks) ** -0.5
    return (0.5 / len(ranks) + 0.5 * tail / tail.sum()) * (1 - 1e-12)


def _expected(masses: Reals, places: Reals, epsilons: Reals) -> Reals:
    """The sum of masses times (1 - e^(epsilon - place))_+, for every epsilon."""
    found = np.zeros(len(epsilons))
    # -inf at a place contributes nothing.
    for start in range(0, len(epsilons), 64):
        block = epsilons[start : start + 64, None]
        found[start : start + 64] = -np.expm1(np.minimum(block - places[None, :], 0.0)) @ masses
    return found
