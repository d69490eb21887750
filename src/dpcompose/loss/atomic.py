"""A loss with finitely many values: pairs of masses on common outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations_with_replacement

import numpy as np

from dpcompose.contour.exponential_sums import WeightedPoints, careful_nodes
from dpcompose.contour.transform import Lattice, Line, Transform, blockwise
from dpcompose.loss.atoms import TINY, Atoms
from dpcompose.loss.base import Loss
from dpcompose.numerics.bound import Bound, up
from dpcompose.numerics.elementary import Reals, U, minus_log1p
from dpcompose.proof.ball import Field
from dpcompose.proof.moments import Ends


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
        ratio = self.table.common[2]
        if not len(ratio):
            return Bound(-math.inf, -math.inf)
        return Bound(float(ratio[-1]) - self.table.ratio_error, float(ratio[-1]) + self.table.ratio_error)

    def transform(self, times: int) -> Transform:
        return AtomicSum(self.table, float(times))

    def profile(self, epsilon: float) -> Bound:
        """delta(epsilon) = sum of (p - e^epsilon q)_+, each term with the error of its own rounding."""
        p, _, ratio = self.table.common
        above = np.searchsorted(ratio, epsilon, side="right")
        value = p[above:] * -np.expm1(epsilon - ratio[above:])
        total = math.fsum(value) + self.infinite_mass
        error = (float(np.sum(value)) + self.infinite_mass) * (16 * U + self.table.relative_error) + float(
            np.sum(p[above:])
        ) * U * (abs(epsilon) + 2)
        # Log-ratios within their own error of epsilon may fall on either side: each adds at most p times that error.
        near = np.abs(ratio - epsilon) <= 2 * self.table.ratio_error
        error += float(np.sum(p[near])) * 3 * self.table.ratio_error + float(np.sum(p[above:])) * self.table.ratio_error
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


@dataclass(frozen=True, eq=False)
class AtomicSum(Transform):
    """`times` copies of the finite part of an atomic loss, through the exponential sum over Q."""

    atoms: Atoms
    times: float

    @property
    def maximum(self) -> float:
        return self.atoms.maximum * self.times if self.atoms.maximum < 0 else up(self.atoms.maximum * self.times)

    @property
    def minimum(self) -> float:
        return self.atoms.minimum * self.times

    @property
    def lattice(self) -> Lattice | None:
        one = self.atoms.lattice
        return None if one is None else Lattice(one.spacing, one.offset * self.times)

    @cached_property
    def _points(self) -> WeightedPoints:
        p, q, ratio, _, log_q = self.atoms.rows
        near = np.clip(ratio, -2.0, 2.0)
        deficit = np.where(np.abs(ratio) < 2.0, q * minus_log1p(np.expm1(near)), p - q - q * ratio)
        # A third of the error of the deficit: p, q and q ln(p / q) are at most three times the deficit.
        relative_error = np.full(len(q), self.atoms.relative_error + 1.5 * self.atoms.ratio_relative_error + 64 * U)
        return WeightedPoints(
            log_q, ratio, deficit, relative_error, np.full(len(q), self.atoms.ratio_relative_error + 16 * U)
        )

    @cached_property
    def _mass(self) -> tuple[float, float]:
        p, q, _ = self.atoms.common
        return math.fsum(p), math.fsum(p) - math.fsum(q)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        _, _, ratio, log_p, _ = self.atoms.rows
        exponent = log_p + order * ratio
        top = float(np.max(exponent))
        tilted = np.exp(exponent - top)
        total = float(np.sum(tilted))
        mean = float(tilted @ ratio) / total
        spread = float(tilted @ (ratio - mean) ** 2) / total
        log_m = top + math.log(total / self._mass[0])
        return self.times * log_m, self.times * mean, self.times * max(spread, 1e-300)

    @property
    def _drift(self) -> float:
        """Sum of w y over the common support: P's mass there minus Q's."""
        return self._mass[1]

    @cached_property
    def _mass_error(self) -> float:
        """By how much the masses of P and of Q may be off as a whole: what is linear in t then does not cancel."""
        off = (
            0.0
            if self.atoms.omitted_mass
            else sum(abs(math.fsum([*side, -1.0])) for side in (self.atoms.upper, self.atoms.lower))
        )
        return (self.atoms.relative_error + 2 * U if self.atoms.relative_error else 0.0) + off

    def _outside(self, order: float, frequencies: Reals) -> Reals:
        """An error of (2 |t| + 1) `_mass_error` max(M(order), 1), in the units of `WeightedPoints.line`.

        It is of the size of M where all masses are off by a factor, and of that of 1 where they are off as a whole:
        M is smaller than 1 where the infinite loss left hardly more than negative ones.
        """
        points = self._points
        top = max(float((points.log_weight + (order + 1) * points.ratio).max()), 0.0)
        log_m = max(self.cumulants(order)[0] / self.times, 0.0) + 1e-6
        return (2 * (order + frequencies) + 1) * (self._mass_error * self._mass[0] * math.exp(min(log_m - top, 700.0)))

    def line(self, order: float, frequencies: Reals) -> Line:
        one = self._points.line(
            order + 1,
            frequencies,
            sign=1.0,
            drift=self._drift,
            mass=self._mass[0],
            omitted=self._outside(order, frequencies),
            careful=careful_nodes(self.times),
        )
        return Line(self.times * one.log, self.times * one.error + 4 * U * self.times * np.abs(one.log))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        nodes = np.concatenate([[0.0], edges])
        outside = self._outside(order, nodes)
        one = self._points.line(order + 1, nodes, sign=1.0, drift=self._drift, mass=self._mass[0], omitted=outside)
        magnitude = np.exp(one.log.real[1:] + one.error[1:] - one.floor)
        _, _, ratio = self.atoms.common
        variance = min(self.cumulants(order)[2] / self.times * 1.01, float(ratio[-1] - ratio[0]) ** 2 / 4 + 1e-12)
        return self.times * blockwise(magnitude, variance, edges)


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
        p, q, step, log_p = np.array(atomic.upper), np.array(atomic.lower), np.array(atomic.ratios), atomic.logs[0]
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
    ratio_error = (max(atomic.ratio_relative_error for atomic, _ in known) + (32 + 2 * most) * U) * (
        1 + math.sqrt(1 + copies)
    )
    kept = ~np.isnan(ratio)  # what one loss takes from P, another one may take from Q
    rows = [tuple(row[kept].tolist()) for row in (upper, lower, ratio)]
    if not faint:
        return AtomicLoss(
            Atoms(rows[0], rows[1], rows[2], None, relative_error, omitted, log_ratio_relative_error=ratio_error)
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


def _masses(counts: Reals, ways: Reals, mass: Reals, logs: Reals, faint: bool) -> tuple[Reals, Reals]:
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
