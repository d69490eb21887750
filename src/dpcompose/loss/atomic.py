"""Losses with finitely many values, pairs of masses on common outcomes, and their sums as transforms."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement
from typing import Self

import numpy as np

from dpcompose.contour import (
    Lattice,
    Line,
    Transform,
    WeightedPoints,
    blockwise,
    careful_nodes,
    summed_line,
)
from dpcompose.loss.atoms import TINY, Atoms
from dpcompose.loss.base import Loss, alike, blocks, bounds_of_rows
from dpcompose.numerics import Reals, U, log_sum, minus_log1p, row_dots, row_sums, row_tops
from dpcompose.proof import Ends, Field
from dpcompose.values import Bound, up

_ENTRIES = 1 << 19
"""So many values of M of single rows are held at once."""


@dataclass(frozen=True, eq=False)
class AtomicSum(Transform):
    """The finite parts of atomic losses with equally many values, each so many times, by exponential sums over Q.

    Args:
        tables: One for each row.
        times: How many copies of each, shape (m, 1).
    """

    tables: tuple[Atoms, ...]
    times: Reals

    @property
    def maximum(self) -> float:
        ends = [
            table.maximum * times for table, times in zip(self.tables, self._counts, strict=True)
        ]
        if len(ends) == 1:
            return ends[0] if ends[0] < 0 else up(ends[0])
        return math.fsum(up(end) for end in ends) + 2 * U * math.fsum(map(abs, ends))

    @property
    def minimum(self) -> float:
        return math.fsum(
            table.minimum * times for table, times in zip(self.tables, self._counts, strict=True)
        )

    @property
    def lattice(self) -> Lattice | None:
        one = self.tables[0].lattice
        if one is None or len(self.tables) > 1:
            return None
        return Lattice(one.spacing, one.offset * self._counts[0])

    @cached_property
    def _counts(self) -> list[float]:
        return self.times[:, 0].tolist()

    @cached_property
    def _rows(self) -> tuple[Reals, ...]:
        """For each row its outcomes: masses under P and Q, log-ratio, and the logarithms of both masses; shape (m, n)
        each."""
        return tuple(
            np.array(each) for each in zip(*[table.rows for table in self.tables], strict=True)
        )

    @cached_property
    def _points(self) -> WeightedPoints:
        p, q, ratio, _, log_q = self._rows
        near = np.clip(ratio, -2.0, 2.0)
        deficit = np.where(np.abs(ratio) < 2.0, q * minus_log1p(np.expm1(near)), p - q - q * ratio)
        # A third of the error of the deficit: p, q and q ln(p / q) are at most three times the deficit.
        masses = self._column([table.relative_error for table in self.tables])
        ratios = self._column([table.ratio_relative_error for table in self.tables])
        like = np.zeros_like(ratio)
        return WeightedPoints(
            log_q, ratio, deficit, like + (masses + 1.5 * ratios + 64 * U), like + (ratios + 16 * U)
        )

    @staticmethod
    def _column(each: Sequence[float]) -> Reals:
        return np.array(each)[:, None]

    @cached_property
    def _mass(self) -> Reals:
        """P's mass on the common support, shape (m, 1)."""
        return self._column([math.fsum(row) for row in self._rows[0]])

    @cached_property
    def _drift(self) -> Reals:
        """Sum of w y over the common support: P's mass there minus Q's, shape (m, 1)."""
        return self._mass - self._column([math.fsum(row) for row in self._rows[1]])

    @cached_property
    def _spans(self) -> Reals:
        """For each row the square of half the difference between its largest and its smallest loss, shape (m, 1)."""
        ratio = self._rows[2]
        return np.square(ratio[:, -1:] - ratio[:, :1]) / 4 + 1e-12

    def cumulants(self, order: float) -> tuple[float, float, float]:
        moments = self._moments(order)
        if len(self._counts) == 1:
            log_m, mean, spread = (self._counts[0] * float(each[0, 0]) for each in moments)
        else:
            log_m, mean, spread = (float((self.times * each).sum()) for each in moments)
        return log_m, mean, spread

    def _moments(self, order: float) -> tuple[Reals, Reals, Reals]:
        """K of one copy of each row and its derivatives, shape (m, 1)."""
        _, _, ratio, log_p, _ = self._rows
        exponent = log_p + order * ratio
        top = row_tops(exponent)
        tilted = np.exp(exponent - top)
        total = row_sums(tilted)
        mean = row_dots(tilted, ratio) / total
        spread = row_dots(tilted, np.square(ratio - mean)) / total
        return top + np.log(total / self._mass), mean, np.maximum(spread, 1e-300)

    @cached_property
    def _mass_error(self) -> Reals:
        """By how much the masses of P and of Q may be off as a whole: what is linear in t then does not cancel."""
        found: list[float] = []
        for table in self.tables:
            sides = () if table.omitted_mass else (table.upper, table.lower)
            off = sum(abs(math.fsum([*side, -1.0])) for side in sides)
            found.append((table.relative_error + 2 * U if table.relative_error else 0.0) + off)
        return self._column(found)

    def _outside(self, order: float, frequencies: Reals) -> Reals:
        """An error of (2 |t| + 1) `_mass_error` max(M(order), 1), in the units of `WeightedPoints.line`.

        It is of the size of M where all masses are off by a factor, and of that of 1 where they are off as a whole:
        M is smaller than 1 where the infinite loss left hardly more than negative ones.
        """
        points = self._points
        top = np.maximum(row_tops(points.log_weight + (order + 1) * points.ratio), 0.0)
        log_m = np.maximum(self._moments(order)[0], 0.0) + 1e-6
        size = self._mass_error * self._mass * np.exp(np.minimum(log_m - top, 700.0))
        return (2 * (order + frequencies) + 1) * size

    def line(self, order: float, frequencies: Reals) -> Line:
        most = max(_ENTRIES // len(frequencies), 1)
        if len(self.tables) > most:
            parts = [slice(at, at + most) for at in range(0, len(self.tables), most)]
            return summed_line(
                (AtomicSum(self.tables[at], self.times[at]) for at in parts), order, frequencies
            )
        one = self._one(order, frequencies, careful_nodes(float(self.times.max())))
        size = self.times * np.abs(one.log)
        error = self.times * one.error + (3 + len(size)) * U * size
        return Line((self.times * one.log).sum(axis=0), error.sum(axis=0))

    def _one(self, order: float, frequencies: Reals, careful: int) -> Line:
        """log M of one copy of each row at the frequencies of a line, shape (m, n)."""
        outside = self._outside(order, frequencies)
        return self._points.line(
            order + 1,
            frequencies,
            sign=1.0,
            drift=self._drift,
            mass=self._mass,
            omitted=outside,
            careful=careful,
        )

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """log |phi| of a few rows at a time from their two heaviest values, with a margin for its rounding.

        |phi|^2 is 1 less the sum over pairs of values of 4 w_j w_k sin^2(u (l_j - l_k) / 2), w the tilted masses.
        """
        if self._rows[0].shape[1] < 2:
            return
        _, _, ratio, log_p, _ = self._rows
        exponent = log_p + order * ratio
        heaviest = np.argsort(exponent, axis=-1)[:, -2:]
        one, two = np.take_along_axis(np.exp(exponent - log_sum(exponent)), heaviest, axis=-1).T[
            :, :, None
        ]
        ends = np.take_along_axis(ratio, heaviest, axis=-1)
        gap = np.abs(ends[:, 1:] - ends[:, :1])
        ratio_error = self._column([table.ratio_error for table in self.tables])
        masses = self._column([table.relative_error for table in self.tables])
        weight = 4 * one * two * np.maximum(1 - 1e-9 - 8 * (masses + order * ratio_error), 0.0)

        def bound(weight: Reals, gap: Reals, ratio_error: Reals, times: Reals, u: Reals) -> Reals:
            square = (
                1
                - weight * np.square(np.sin(gap * u / 2))
                + 1e-14 * (1 + gap * u)
                + 2 * ratio_error * u
            )
            return np.sum(times * 0.5 * np.log(np.minimum(square, 1.0)), axis=0)

        yield from bounds_of_rows(
            bound, (weight, gap, ratio_error, self.times), len(self.tables) // 8
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        # As M is the plain sum over the points, up to the mass, its size alone needs no series for small losses.
        frequencies = np.concatenate([[0.0], edges])
        outside = self._outside(order, frequencies)
        one = self._points.positive_line(order + 1, frequencies, sign=1.0, omitted=outside)
        magnitude = np.exp(one.log.real[:, 1:] + one.error[:, 1:] - one.floor)
        variance = np.minimum(self._moments(order)[2] * 1.01, self._spans)
        return (self.times * blockwise(magnitude, variance, edges)).sum(axis=0)


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

    @property
    def _finite(self) -> Atoms:
        """The outcomes with a finite loss; one outcome with loss 0 if P and Q share none. The finite part has no mass
        then, so that its law does not matter."""
        return self.table if len(self.table.rows[0]) else _ZERO

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses with equally many values in rows of one transform, a few thousand values at once."""
        found: list[Transform] = []
        for size, members in alike(group, lambda loss: len(loss._finite.rows[0])).items():
            for part in blocks(members, min(max(_TOGETHER // size, 1), _MOST_ROWS)):
                counts = np.array([[float(times)] for _, times in part])
                found.append(AtomicSum(tuple(loss._finite for loss, _ in part), counts))
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
    """How many values the sum can take; some number above `MOST_STATES` if that is too many, or if a loss has too many
    values."""
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
    """The law of a sum of losses with finitely many values, as a list of all its values."""
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
            orderings = np.array([_orderings(row) for row in counts.astype(int).tolist()])
            p, log_p = _masses(counts, orderings, p, log_p, faint)
            q, _ = _masses(counts, orderings, q, atomic.logs[1], faint)
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
    log_upper = tuple(logs[kept].tolist()) if faint else ()
    relative_error += 16 * U * -least if faint else 0.0
    masses, errors = (rows[0], rows[1]), (relative_error, omitted)
    table = Atoms(
        *masses, rows[2], None, *errors, log_ratio_relative_error=ratio_error, log_upper=log_upper
    )
    return AtomicLoss(table)


def _counts(times: int, kinds: int) -> Reals:
    """All ways of `times` as an ordered sum of `kinds` numbers >= 0, shape (m, kinds)."""
    picks = np.array(list(combinations_with_replacement(range(kinds), times)))
    counts = np.zeros((len(picks), kinds))
    for column in picks.T:
        counts[np.arange(len(picks)), column] += 1.0
    return counts


def _orderings(row: list[int]) -> float:
    """In how many orders so many of each kind come, rounded once."""
    return float(math.factorial(sum(row)) // math.prod(math.factorial(count) for count in row))


def _masses(
    counts: Reals, orderings: Reals, mass: Reals, logs: Reals, faint: bool
) -> tuple[Reals, Reals]:
    """The masses of the values of a sum: `ways` times the product of the masses of the terms, each to the power of its
    count; also its logarithm if some mass is `faint`."""
    each = orderings * np.prod(mass**counts, axis=1)
    if not faint:
        return each, each
    product = _sums(counts, logs)
    total = product + np.log(orderings)
    return np.where(product > _UNDERFLOW, each, np.exp(total)), total


def _sums(counts: Reals, values: Reals) -> Reals:
    """The values of a sum: the total loss for each way to choose how often each value occurs, infinite ones included."""
    if np.all(np.isfinite(values)):
        return counts @ values
    with np.errstate(invalid="ignore"):
        return np.where(counts == 0, 0.0, counts * values).sum(axis=1)


def _smallest(logs: Reals) -> float:
    return float(logs[np.isfinite(logs)].min(initial=0.0))


class AtomizedLoss(Loss, ABC):
    """A loss with a profile in closed form; where it is composed with others, atoms take its place."""

    @abstractmethod
    def _listed(self) -> Atoms:
        """The atoms that stand for the loss; finding them may take long."""

    @property
    def composed(self) -> AtomicLoss:
        return self._atomic

    @cached_property
    def _atomic(self) -> AtomicLoss:
        return AtomicLoss(self._listed())

    @property
    def support(self) -> int:
        return self.composed.support

    def transform(self, times: int) -> Transform:
        return self.composed.transform(times)

    def atoms(self) -> Atoms:
        return self.composed.table

    def ball(self, field: Field) -> Ends:
        return self.composed.ball(field)
