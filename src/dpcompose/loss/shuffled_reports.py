"""The loss of shuffled reports of local randomizers: two numbers of clones, one of them larger by one.

Let e = e^epsilon. Of n - 1 others, C ~ Bin(n - 1, 2 / (e + 1)) are clones and A ~ Bin(C, 1/2) of these stand for the
first value. P adds one to A with probability e / (e + 1), else one to C - A; Q the other way around. At (a, b) the loss
is ln((e a + b) / (a + e b)). The pair dominates every shuffled epsilon-private randomizer: the proof is in
docs/theorems.md.

A fair clone more is a function of what is seen, so that the loss falls with C. Where C has many values, each block of
them counts as its smallest, and what is above the largest as the largest. What is below the smallest, less than 1e-39,
counts as the largest loss.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.contour import Transform
from dpcompose.guarantee import mirrored_epsilon
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atomize import envelope
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics import Reals, U, dots
from dpcompose.values import Bound, Certificate, up

LOG_OMITTED, OMITTED = 92.2, 1e-39
CELLS, FEWEST_ROWS, MOST_ROWS, MOST_ATOMS = 2e6, 16, 2048, 512
_CERTIFICATE = Certificate("sum over the number of clones of binomial tails")


@dataclass(frozen=True)
class ShuffledReportsLoss(Loss):
    """The loss of `reports` >= 1 shuffled reports of an epsilon-private randomizer, the same in both orders."""

    epsilon: float
    reports: int

    @property
    def maximum(self) -> float:
        return self.epsilon

    @property
    def minimum(self) -> float:
        return -self.epsilon

    def transform(self, times: int) -> Transform:
        return self.composed.transform(times)

    @cached_property
    def _composed(self) -> AtomicLoss:
        return envelope((self,))

    @property
    def composed(self) -> Loss:
        """The loss that stands for this one in compositions: atoms of a fine polygon above its profile."""
        return self._composed

    @cached_property
    def _clones(self) -> tuple[Reals, Reals, float]:
        """Numbers of clones, their masses, and the relative error of these."""
        first, masses, error = binomial(self.reports - 1, 2 / math.expm1(self.epsilon))
        columns = 2 * _reach(first + len(masses))
        block = math.ceil(len(masses) / min(max(CELLS // columns, FEWEST_ROWS), MOST_ROWS))
        starts = np.arange(0, len(masses), block)
        return (
            first + starts.astype(float),
            np.add.reduceat(masses, starts),
            error + len(masses) * U,
        )

    @cached_property
    def _halves(self) -> tuple[Reals, Reals, Reals, float]:
        """For each number of clones: the smallest A in its row, its masses and tails, their relative error."""
        count = self._clones[0][:, None]
        reach = _reach(float(count[-1, 0]))
        middle, steps = np.floor(count / 2), np.arange(1.0, reach + 1)
        # Ratios of neighbors from the middle outward; below 0 and above the count there is nothing.
        above = np.cumprod(np.maximum(count - middle - steps + 1, 0.0) / (middle + steps), axis=1)
        below = np.cumprod(np.maximum(middle - steps + 1, 0.0) / (count - middle + steps), axis=1)
        masses = np.concatenate([below[:, ::-1], np.ones_like(middle), above], axis=1)
        masses /= masses.sum(axis=1, keepdims=True)
        tails = np.cumsum(masses[:, ::-1], axis=1)[:, ::-1]
        return middle[:, 0] - reach, masses, tails, U * (32 + 8 * reach)

    def profile(self, epsilon: float) -> Bound:
        if epsilon < 0:
            return mirrored_epsilon(epsilon, self._positive, _CERTIFICATE)
        return self._positive(epsilon)

    def _positive(self, epsilon: float) -> Bound:
        """Of each row sum over a >= a*: (e - e^x) / (e + 1) P[A = a* - 1] - (e^x - 1) P[A >= a*], x the epsilon asked.

        Every a* gives a lower bound; one next to the best, by rounding, is off by less than the rounding of its term.
        """
        if epsilon >= self.epsilon * (1 + 8 * U):
            return Bound(0.0, 0.0, _CERTIFICATE)
        (count, weight, weight_error), (first, masses, tails, error) = self._clones, self._halves
        share = math.expm1(-self.epsilon - epsilon) / (
            math.expm1(-self.epsilon) * (1 + math.exp(-epsilon))
        )
        start = np.floor((count + 1) * share) + 1
        column = (start - first).astype(int)
        rows, width = np.arange(len(count)), masses.shape[1]
        at = np.where(
            (column >= 1) & (column <= width), masses[rows, np.clip(column - 1, 0, width - 1)], 0.0
        )
        rest = np.where(column < width, tails[rows, np.clip(column, 0, width - 1)], 0.0)
        gain, cost = (
            -math.expm1(epsilon - self.epsilon) / (1 + math.exp(-self.epsilon)),
            math.expm1(epsilon),
        )
        value = float(dots(weight, np.maximum(gain * at - cost * rest, 0.0)))
        size = float(dots(weight, gain * at + cost * rest))
        margin = 1.01 * (error + weight_error + U * (64 + len(count) + 4 * self.epsilon)) * size
        omitted = -4 * OMITTED * math.expm1(min(epsilon - self.epsilon, 0.0))
        return Bound(
            max(value - margin - omitted, 0.0), min(up(value + margin + omitted), 1.0), _CERTIFICATE
        )


def shuffled_responses(epsilon: float, reports: int) -> Loss:
    """Attained: binary randomized response where all others say no; the number of yes, in at most `MOST_ATOMS` bins.

    At j of n reports the ratio is (e^2 j + n - j) / (e n), e = e^epsilon. The zero loss where it is next to nothing.
    """
    odds = math.exp(-epsilon)
    first, masses, error = binomial(reports, odds)
    said = first + np.arange(len(masses))
    ratio = (said + odds * odds * (reports - said)) / (odds * reports)
    starts = np.arange(0, len(masses), math.ceil(len(masses) / MOST_ATOMS))
    upper, lower = np.add.reduceat(masses * ratio, starts), np.add.reduceat(masses, starts)
    with np.errstate(divide="ignore", invalid="ignore"):
        losses = np.abs(np.log(upper / lower))
    kept = (upper > 1e-250) & (lower > 1e-250) & (losses > 1e-7)
    if np.count_nonzero(kept) < 2:
        return TwoPointLoss(0.0)
    omitted = float(max(upper[~kept].sum(), lower[~kept].sum())) * (1 + 1e-9) + 2 * OMITTED
    error += U * (64 + len(masses) + 8 * epsilon)
    ratio_error = 4 * error * (1 + 1 / float(losses[kept].min()))
    rows = tuple(upper[kept].tolist()), tuple(lower[kept].tolist())
    return AtomicLoss(
        Atoms(
            *rows, relative_error=error, omitted_mass=omitted, log_ratio_relative_error=ratio_error
        )
    )


def binomial(trials: int, odds: float) -> tuple[int, Reals, float]:
    """The binomial law at given odds: the first place, the masses from there on, normalized, their relative error.

    Ratios of neighbors are multiplied outward from the mode, 8 roundings each. Outside is less than `OMITTED` on either
    side, by Bernstein's inequality.
    """
    variance, mode = (
        trials * odds / (1 + odds) ** 2,
        min(int((trials + 1) * (odds / (1 + odds))), trials),
    )
    reach = 2 + math.ceil(
        LOG_OMITTED / 3 + math.sqrt(LOG_OMITTED**2 / 9 + 2 * LOG_OMITTED * variance)
    )
    low, high = max(mode - reach, 0), min(mode + reach, trials)
    upward, downward = np.arange(mode, high, dtype=float), np.arange(mode, low, -1, dtype=float)
    above = np.cumprod((trials - upward) / (upward + 1) * odds)
    below = np.cumprod(downward / ((trials - downward + 1) * odds))
    masses = np.concatenate([below[::-1], [1.0], above])
    return low, masses / masses.sum(), U * (32 + 16 * (high - low))


def _reach(count: float) -> int:
    """How far a fair binomial variable strays from the middle, but for `OMITTED`, by Hoeffding's inequality."""
    return min(math.ceil(math.sqrt(count * LOG_OMITTED / 2)), math.ceil(count / 2)) + 2
