"""Counts of the privacy losses of many transcripts, in bins that are fixed beforehand.

Counts take the same memory for any number of transcripts.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcompose.experiment.channel import Reals

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
