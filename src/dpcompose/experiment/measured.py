"""What the transcripts of both worlds say about delta."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dpcompose.errors import DomainError
from dpcompose.experiment.channel import Reals
from dpcompose.experiment.limits import Survival, survival
from dpcompose.experiment.tally import EDGES, Tally
from dpcompose.numerics import check

MOST_BINS = 10**6


@dataclass(frozen=True)
class Limits:
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
    """The losses of the transcripts of an experiment, counted.

    Args:
        zero: ln p_0 / p_1 of transcripts of world 0.
        one: ln p_1 / p_0 of transcripts of world 1.
        rounds: The most rounds of a transcript.
        failure: The probability with which any limit may be wrong.
        shares: How many experiments share it.
        fuzz: By how much the loss of a round may be off because answers are rounded, in nats.
    """

    zero: Tally
    one: Tally
    rounds: int
    failure: float
    shares: int = 1
    fuzz: float = 0.0

    def delta(self, epsilons: ArrayLike) -> Limits:
        """delta(epsilon), the larger of both directions: limits that hold for all epsilons, and directions, together.

        With probability at least 1 - failure, over all the experiments that share it, no limit is wrong anywhere.

        Args:
            epsilons: Any real numbers, an array of any shape.

        Raises:
            DomainError: If one is not a finite number.

        Reference: [David1981, Section 2.1]
        """
        try:
            points = np.asarray(epsilons, dtype=np.float64)
        except Exception:  # whatever the object raises that is asked for its number
            raise DomainError("epsilons", epsilons, "finite numbers") from None
        if not np.all(np.isfinite(points)):
            raise DomainError("epsilons", epsilons, "finite numbers")
        flat = points.ravel()
        zero, one = self._survivals
        lower = np.maximum(zero.lower(flat), one.lower(flat))
        # (x - 1e-15)_+: the sums themselves are rounded.
        lower = np.maximum(lower * (1 - 1e-9) - 1e-15, 0.0)
        upper = np.minimum(np.maximum(zero.upper(flat), one.upper(flat)) * (1 + 1e-9) + 1e-15, 1.0)
        middle = np.maximum(self.zero.estimate(flat), self.one.estimate(flat))
        return Limits(*(each.reshape(points.shape) for each in (lower, middle, upper)))

    def histogram(self, bins: int = 80) -> tuple[Reals, Reals, Reals]:
        """Edges, and in each bin the share of world 0's and of world 1's transcripts by ln p_0 / p_1, finite ones.

        Args:
            bins: How many, at most 10^6.
        """
        if not check.count("bins", bins, least=1) <= MOST_BINS:
            raise DomainError("bins", bins, f"an integer from 1 to {MOST_BINS}")
        mirrored = Tally(self.one.counts[::-1], self.one.weights[::-1])
        inside = np.flatnonzero((self.zero.counts + mirrored.counts)[1:-1]) + 1
        low, high = (EDGES[inside[0]], EDGES[inside[-1] + 1]) if len(inside) else (-1.0, 1.0)
        edges = np.linspace(low, high, bins + 1)
        middles = (EDGES[1:-2] + EDGES[2:-1]) / 2
        zero, one = (
            np.histogram(middles, edges, weights=tally.counts[1:-1])[0] / tally.transcripts
            for tally in (self.zero, mirrored)
        )
        return edges, zero, one

    @property
    def _survivals(self) -> tuple[Survival, Survival]:
        # Each round's loss is a few roundings off, relative to the numbers that it is made of; so is their sum.
        margin = (1e-12 * max(1.0, self._largest) + self.fuzz) * (1 + self.rounds)
        # One half for each direction.
        failure = self.failure / self.shares / 2
        return (
            survival(self.zero, failure=failure, margin=margin),
            survival(self.one, failure=failure, margin=margin),
        )

    @property
    def _largest(self) -> float:
        """The largest finite loss, in size."""
        inside = np.flatnonzero((self.zero.counts + self.one.counts)[1:-1]) + 1
        ends = [abs(EDGES[place]) for i in (0, -1) for place in (inside[i], inside[i] + 1)] if len(inside) else [1.0]
        return max((float(end) for end in ends if math.isfinite(end)), default=1.0)
