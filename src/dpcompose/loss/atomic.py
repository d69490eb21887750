"""A loss with finitely many values: pairs of masses on common outcomes."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Self

import numpy as np

from dpcompose.contour import Lattice, Transform
from dpcompose.loss.atomic_sum import AtomicSum
from dpcompose.loss.atoms import TINY, Atoms
from dpcompose.loss.base import Loss
from dpcompose.numerics import Reals, U
from dpcompose.proof import Ends, Field
from dpcompose.values import Bound, up

_TOGETHER, _MOST_ROWS = 2048, 16
"""Values, and losses, that share arrays."""
_ZERO = Atoms((1.0,), (1.0,), (0.0,))


@dataclass(frozen=True)
class AtomicLoss(Loss):
    """The loss of a pair of distributions on finitely many outcomes."""

    table: Atoms

    @property
    def infinite_mass(self) -> float:
        return self.table.infinite_mass

    @property
    def infinite_relative_error(self) -> float:
        return self.table.relative_error + 8 * U

    @property
    def unplaced_mass(self) -> float:
        return self.table.unplaced_mass

    @property
    def lattice(self) -> Lattice | None:
        """The lattice on which the finite losses lie, if they do."""
        return self.table.lattice

    @cached_property
    def reverse(self) -> AtomicLoss:
        """The loss of (Q, P)."""
        return AtomicLoss(self.table.reverse)

    @property
    def maximum(self) -> float:
        return self.table.maximum

    @property
    def minimum(self) -> float:
        return self.table.minimum

    @property
    def largest(self) -> Bound:
        last, error = float(self._finite.common[2][-1]), self._finite.ratio_error
        return Bound(last - error, last + error)

    def transform(self, times: int) -> Transform:
        return AtomicSum((self._finite,), np.array([[float(times)]]))

    @property
    def _finite(self) -> Atoms:
        """The outcomes; a loss of 0 where P and Q share none: the finite part has no mass then, and any law will do."""
        return self.table if len(self.table.rows[0]) else _ZERO

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses with equally many values in rows of one transform, a few thousand values at once."""
        sizes: dict[int, list[tuple[Self, int]]] = defaultdict(list)
        for loss, times in group:
            sizes[len(loss._finite.rows[0])].append((loss, times))
        found: list[Transform] = []
        for size, members in sizes.items():
            most = min(max(_TOGETHER // size, 1), _MOST_ROWS)
            for at in range(0, len(members), most):
                tables, counts = zip(
                    *[(loss._finite, float(times)) for loss, times in members[at : at + most]],
                    strict=True,
                )
                found.append(AtomicSum(tables, np.array(counts)[:, None]))
        return found

    def profile(self, epsilon: float) -> Bound:
        """delta(epsilon) = sum of (p - e^epsilon q)_+, each term with the error of its own rounding."""
        p, _, ratio = self.table.common
        above = np.searchsorted(ratio, epsilon, side="right")
        value = p[above:] * -np.expm1(epsilon - ratio[above:])
        total = math.fsum(value) + self.infinite_mass
        error = (float(np.sum(value)) + self.infinite_mass) * (
            16 * U + self.table.relative_error
        ) + float(np.sum(p[above:])) * U * (abs(epsilon) + 2)
        # Log-ratios within their own error of epsilon may fall on either side: each adds at most p times that error.
        near = np.abs(ratio - epsilon) <= 2 * self.table.ratio_error
        error += (
            float(np.sum(p[near])) * 3 * self.table.ratio_error
            + float(np.sum(p[above:])) * self.table.ratio_error
        )
        if not self.table.exact:
            error += TINY * (np.count_nonzero(p[above:] < TINY) + np.count_nonzero(p[near] < TINY))
        error = error * (1 + 1e-9) + 4 * U * total + 5e-324 * np.count_nonzero(value < TINY)
        most = total + error + self.unplaced_mass
        return Bound(max(total - error, 0.0), min(up(most), max(1.0, total)) if most > 0 else 0.0)

    @property
    def support(self) -> int:
        return len(self.table.upper)

    def atoms(self) -> Atoms:
        return self.table

    def sampled(self, rate: float, *, remove: bool) -> AtomicLoss:
        return AtomicLoss(self.table.sampled(rate, remove=remove))

    def ball(self, field: Field) -> Ends:
        return self.table.moments(field)


@dataclass(frozen=True)
class AtomsAbove(AtomicLoss):
    """Atoms, some at infinity, above a mechanism of which all moments are finite.

    Args:
        moment: From an exponent > 0 to an upper bound on the mechanism's K.
    """

    moment: Callable[[float], float]

    def log_moment(self, exponent: float) -> float:
        return self.moment(exponent)


MOST_STATES, MOST_COUNTS = 1 << 14, 1 << 21
_MOST_ON_LATTICE = 1 << 11  # beyond them a lattice is as good, and faster
_UNDERFLOW = -667.0  # of what is below e to this, powers are not reliable


def states(group: Sequence[tuple[Loss, int]]) -> int:
    """How many outcomes the sum has; more than `MOST_STATES` if that is too many, or a loss has too many values."""
    latticed = len(group) == 1 and group[0][0].support and group[0][0].atoms().lattice is not None
    total, most = 1, _MOST_ON_LATTICE if latticed else MOST_STATES
    for loss, times in group:
        if not loss.support or times > 64:
            return MOST_STATES + 1
        total *= math.comb(times + loss.support - 1, times)
        if total > most or total * loss.support > MOST_COUNTS:
            return MOST_STATES + 1
    return total


def enumerated(group: Sequence[tuple[Loss, int]]) -> AtomicLoss:
    """The sum of losses with finitely many values."""
    known = [(loss.atoms(), times) for loss, times in group]
    least = math.fsum(times * min(map(_smallest, atomic.logs)) for atomic, times in known)
    upper, lower, ratio, logs = np.ones(1), np.ones(1), np.zeros(1), np.zeros(1)
    relative_error, omitted, faint = 8 * U, 0.0, least < _UNDERFLOW
    for atomic, times in known:
        p, q, step, log_p = (
            np.array(atomic.upper),
            np.array(atomic.lower),
            np.array(atomic.ratios),
            atomic.logs[0],
        )
        rounded = 2 * times * U
        if times > 1:
            counts = _counts(times, len(p))
            ways = np.array([_ways(row) for row in counts.astype(int).tolist()])
            p, log_p = _masses(counts, ways, p, log_p, faint)
            q, _ = _masses(counts, ways, q, atomic.logs[1], faint)
            step = _sums(counts, step)
            # A power errs by 8 U, and so does each of the at most `times` that are not 1; their product by U each.
            rounded = U * (16 + 16 * times)
        upper, lower = np.outer(upper, p).ravel(), np.outer(lower, q).ravel()
        with np.errstate(invalid="ignore"):  # inf - inf is left out below
            ratio = np.add.outer(ratio, step).ravel()
        logs = np.add.outer(logs, log_p).ravel() if faint else logs
        relative_error += times * atomic.relative_error + rounded
        omitted += times * atomic.unplaced_mass
    # With t + 1 tilted every mean is positive: the sum S has E S^2 at least the sum of E L^2, so that errors of every
    # loss relative to itself are, in the mean, one of S times the root of their number. The largest |S| is half of
    # all |L| together, or more.
    most, copies = max(times for _, times in known), sum(times for _, times in known)
    ratio_error = (
        max(atomic.ratio_relative_error for atomic, _ in known) + (32 + 2 * most) * U
    ) * (1 + math.sqrt(1 + copies))
    kept = ~np.isnan(ratio)  # what one loss takes from P, another one may take from Q
    rows = [tuple(row[kept].tolist()) for row in (upper, lower, ratio)]
    if not faint:
        return AtomicLoss(
            Atoms(
                rows[0],
                rows[1],
                rows[2],
                None,
                relative_error,
                omitted,
                log_ratio_relative_error=ratio_error,
            )
        )
    relative_error += 16 * U * -least
    return AtomicLoss(
        Atoms(
            rows[0],
            rows[1],
            rows[2],
            None,
            relative_error,
            omitted,
            log_ratio_relative_error=ratio_error,
            log_upper=tuple(logs[kept].tolist()),
        )
    )


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


def _masses(
    counts: Reals, ways: Reals, mass: Reals, logs: Reals, faint: bool
) -> tuple[Reals, Reals]:
    """ways times the product of the masses, each to the power of its count; and its logarithm if any is `faint`."""
    each = ways * np.prod(mass**counts, axis=1)
    if not faint:
        return each, each
    product = _sums(counts, logs)
    total = product + np.log(ways)
    return np.where(product > _UNDERFLOW, each, np.exp(total)), total


def _sums(counts: Reals, values: Reals) -> Reals:
    """The sums of so many of each value, infinite ones included."""
    if np.all(np.isfinite(values)):
        return counts @ values
    with np.errstate(invalid="ignore"):
        return np.where(counts == 0, 0.0, counts * values).sum(axis=1)


def _smallest(logs: Reals) -> float:
    return float(logs[np.isfinite(logs)].min(initial=0.0))


class AtomizedLoss(Loss):
    """A loss with a closed profile; composed, it is atoms."""

    @property
    @abstractmethod
    def composed(self) -> AtomicLoss:
        """The atoms."""

    @property
    def support(self) -> int:
        return self.composed.support

    def transform(self, times: int) -> Transform:
        return self.composed.transform(times)

    def atoms(self) -> Atoms:
        return self.composed.table

    def ball(self, field: Field) -> Ends:
        return self.composed.ball(field)
