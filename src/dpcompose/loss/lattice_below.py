"""Masses on a lattice of losses whose profile is below that of outcomes at and between its points.

Every event E gives the line P(E) - a Q(E) below the profile of a pair (P, Q). Cut the outcomes between neighboring
points a_j into groups, those next to a_j with masses p_j and q_j, and let c_j = p_j - a_j q_j. The lines of two
successive cuts differ by c_j at a_j; the chord between the lower values of them at a_j and at a_(j + 1) is below the
line of the cut between. These chords are the profile of the masses
  q'_j = q_j + (c_j^- - c_(j+1)^+) / (a_(j+1) - a_j) + (c_j^+ - c_(j-1)^-) / (a_j - a_(j-1)),   p'_j = a_j q'_j,
where no q'_j is negative. Cuts are moved until c_j is of third order. An excess c > 0 of the first group is left out of
q', and what would make c < 0 in the last one goes one group down. Where a mass would be negative, all outcomes between
two points go to the lower one: p is kept, q grows. Profiles of disjoint outcomes add up, so that each stretch is treated
by itself.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dpcompose.numerics import Reals

_QUARTERS = np.array([1.0, 1.0, 0.0, 0.0])
_LOOKS = 3
"""So often stretches are divided where a mass would be negative; then what is wrong goes down as a whole."""


@dataclass(frozen=True)
class Groups:
    """Outcomes at and between the points a_j of a lattice, in tilted units of the point to the left.

    Args:
        mass: Q's masses at the points, times a_j, shape (n,).
        between: Q's masses between the points, times a_j, shape (n - 1, k), of rising losses.
        excess: p - a_j q of those.
    """

    mass: Reals
    between: Reals
    excess: Reals

    def __getitem__(self, chosen: slice) -> Groups:
        points = slice(chosen.start, chosen.stop + 1)
        return Groups(self.mass[points], self.between[chosen], self.excess[chosen])

    def below(self, step: float, order: float) -> Reals:
        """P's masses on the points, whose profile is below that of the outcomes.

        Where a mass of the chords would be negative, the outcomes beside it go down, and the stretches that are left
        are tried again.
        """
        filled = self.between.sum(axis=1) > 0
        inside = _trimmed(np.ones_like(filled), filled)
        down = np.append((self.between + self.excess).sum(axis=1), 0.0)
        for looks in range(_LOOKS + 1):
            found = self._chords(inside, step, order)
            wrong = found < 0
            if not wrong.any():
                break
            beside = wrong[:-1] | wrong[1:]
            if looks == _LOOKS:
                stretch = np.cumsum(np.diff(inside, prepend=False))
                beside = np.isin(stretch, stretch[beside & inside])
            inside = _trimmed(inside & ~beside, filled)
        else:
            found = self._chords(inside, step, order)
        return found + np.where(np.append(inside, False), 0.0, down)

    def _chords(self, inside: NDArray[np.bool_], step: float, order: float) -> Reals:
        """The masses of the chords of each stretch, without outcomes elsewhere.

        Some are negative, or the last of a stretch is -1, where they are not the profile of a pair.
        """
        n, kinds = len(self.mass), self.between.shape[1]
        between, excess = (
            np.where(inside[:, None], each, 0.0) for each in (self.between, self.excess)
        )
        lasts = inside & ~np.append(inside[1:], False)
        fading = math.exp(-order * step)
        right = between * math.exp((order + 1) * step)
        right_excess = (excess - math.expm1(step) * between) / fading
        cut, rows = np.zeros(n - 1), np.arange(n - 1)
        found, away = self.mass, np.zeros(n)
        for looks in range(4):
            if kinds == 1:
                share = (0.5 + cut / 2)[:, None]
            else:
                share = np.tile(_QUARTERS, (n - 1, 1))
                share[:, 1] += np.minimum(cut, 0.0)
                share[:, 2] += np.maximum(cut, 0.0)
            if looks == 3:
                share[lasts] = 1.0
            found, away = self.mass.copy(), np.zeros(n)
            found[:-1] += (between * share).sum(axis=1)
            away[:-1] += (excess * share).sum(axis=1)
            found[1:] += (right * (1 - share)).sum(axis=1)
            away[1:] += (right_excess * (1 - share)).sum(axis=1)
            if looks < 3:
                wanted = -(away[:-1] + away[1:] * fading) / 2
                moving = 0 if kinds == 1 else np.where(wanted > 0, 2, 1)
                gain = excess[rows, moving] - right_excess[rows, moving] * fading
                gain = gain if kinds > 1 else gain / 2
                change = np.divide(wanted, gain, out=np.zeros_like(wanted), where=gain != 0)
                cut = np.clip(cut + 0.7 * np.where(np.isfinite(change), change, 0.0), -0.9, 0.9)
        firsts = np.append(inside & ~np.append(False, inside[:-1]), False)
        found[firsts] += np.maximum(away[firsts], 0.0)
        more, less = np.maximum(away, 0.0), np.maximum(-away, 0.0)
        more[firsts] = 0.0
        found[:-1] += inside * (less[:-1] - more[1:] * fading) / math.expm1(step)
        found[1:] += inside * (more[1:] - less[:-1] / fading) / -math.expm1(-step)
        found[1:][lasts & (less[1:] > 0)] = -1.0
        return found


def _trimmed(inside: NDArray[np.bool_], filled: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The intervals of each stretch, without those at its two ends that hold no mass."""
    found = inside
    for _ in range(2):
        # How many filled ones there are from the beginning of the stretch on.
        total = np.cumsum(filled & inside)
        before = np.maximum.accumulate(np.where(inside, 0, total))
        found = found & (total > before)
        found, inside, filled = found[::-1], inside[::-1], filled[::-1]
    return found
