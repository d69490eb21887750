"""Cells: a partition of the values of one feature, at quantiles of past rows and around values that came again."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from dpcompose.audit.outcome import Reals

MOST_ATOMS = 40
_HALF = np.concatenate([np.arange(1, 32) / 32, 0.5 ** np.arange(6, 11)])
LEVELS = np.unique(np.concatenate([_HALF, 1 - _HALF]))
LEAST_ROWS = 4
"""About so many past rows lie between two quantiles."""


@dataclass(frozen=True)
class Cells:
    """Cells between cuts, each with its lower cut; NaN has a cell of its own, the last.

    Args:
        cuts: Increasing numbers.
    """

    cuts: tuple[float, ...]

    @classmethod
    def of(cls, scores: Reals) -> Cells:
        """Cells for rows to come, from the scores of past ones, whose coins play no part.

        A value that came twice has a cell, at most `MOST_ATOMS` of them; so has what lies between two of these.
        """
        known = np.sort(scores[~np.isnan(scores)])
        if not len(known):
            return cls(())
        levels = LEVELS[np.minimum(LEVELS, 1 - LEVELS) * len(known) >= LEAST_ROWS]
        levels = (
            levels[:: max(1, int(len(levels) * LEAST_ROWS / len(known)))]
            if len(levels)
            else np.array([0.5])
        )
        values, times = np.unique(known, return_counts=True)
        again = values[times > 1]
        atoms = again[np.argsort(-times[times > 1], kind="stable")[:MOST_ATOMS]]
        cuts = np.concatenate(
            [np.quantile(known, levels, method="lower"), atoms, np.nextafter(atoms, np.inf)]
        )
        return cls(tuple(np.unique(cuts[np.isfinite(cuts)] + 0.0).tolist()))

    @property
    def count(self) -> int:
        """The number of cells."""
        return len(self.cuts) + 2

    @cached_property
    def prior(self) -> Reals:
        """Weights for bets on a single cell, sum at most 1: most on cells of one value, if there are any."""
        known = self._edges
        atoms = np.zeros(self.count, dtype=bool)
        atoms[1 : len(known)] = known[1:] == np.nextafter(known[:-1], np.inf)
        even = np.full(self.count, 1 / self.count)
        return 0.2 * even + (0.8 * atoms / np.sum(atoms) if np.any(atoms) else 0.0)

    @cached_property
    def _edges(self) -> Reals:
        return np.array(self.cuts)

    def place(self, scores: Reals) -> NDArray[np.intp]:
        """The cell of every score."""
        found = np.searchsorted(self._edges, scores, side="right")
        found[np.isnan(scores)] = self.count - 1
        return found

    def words(self, place: int) -> str:
        """A cell in words."""
        if place == self.count - 1:
            return "is NaN"
        low = self.cuts[place - 1] if place else None
        high = self.cuts[place] if place < len(self.cuts) else None
        if low is not None and high == np.nextafter(low, np.inf):
            return f"is {low!r}"
        above = "" if low is None else f"at least {low:.6g}"
        below = "" if high is None else f"below {high:.6g}"
        return " and ".join(text for text in (above, below) if text) or "is any number"
