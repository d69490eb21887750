"""A loss with finitely many values: pairs of masses on common outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpcompose.loss.base import Loss
from dpcompose.loss.finite import by_floats, by_formula
from dpcompose.loss.law import AtomLaw, GivenLaw, ReversedLaw, SampledLaw
from dpcompose.numerics.ball import Field
from dpcompose.numerics.bound import Bound, up
from dpcompose.numerics.elementary import Reals, U, minus_log1p
from dpcompose.numerics.moments import Ends
from dpcompose.numerics.tilted import Points, careful_nodes
from dpcompose.numerics.transform import Lattice, Line, Transform, blockwise


@dataclass(frozen=True)
class AtomicLoss(Loss):
    """Outcomes with mass `upper[i]` under P and `lower[i]` under Q; an outcome with lower[i] = 0 has infinite loss.

    Args:
        upper: Masses under P, each good to `fuzz` relative.
        lower: Masses under Q, likewise, same length.
        log_ratio: ln(upper / lower) where both are positive, good to `fuzz` and 8 units of roundoff, relative; empty:
            computed.
        lattice: The lattice on which the finite losses lie, if they do.
        fuzz: Relative error of the masses and of the log-ratios.
        slack: Mass (of either measure) that is not in the lists, or may be misplaced.
        law: The formula of the masses, if they have one: what proofs use in their place.
    """

    upper: tuple[float, ...]
    lower: tuple[float, ...]
    log_ratio: tuple[float, ...] = ()
    lattice: Lattice | None = None
    fuzz: float = 0.0
    lost: float = field(default=0.0)
    law: AtomLaw | None = None

    @property
    def slack(self) -> float:
        return self.lost

    @property
    def infinite_mass(self) -> float:
        return math.fsum(p for p, q in zip(self.upper, self.lower, strict=True) if q == 0)

    @property
    def infinite_doubt(self) -> float:
        return self.fuzz + 8 * U

    @cached_property
    def reverse(self) -> AtomicLoss:
        """The loss of (Q, P)."""
        lattice = None if self.lattice is None else Lattice(self.lattice.spacing, -self.lattice.offset)
        ratio = tuple(-value for value in self.log_ratio)
        law = None if self.formula is None else ReversedLaw(self.formula)
        return AtomicLoss(self.lower, self.upper, ratio, lattice, self.fuzz, self.lost, law)

    @cached_property
    def common(self) -> tuple[Reals, Reals, Reals]:
        """upper, lower and log-ratio of the outcomes that both measures have, by increasing log-ratio."""
        p, q = np.array(self.upper), np.array(self.lower)
        both = (p > 0) & (q > 0)
        p, q = p[both], q[both]
        ratio = np.array(self.ratios)[both]
        order = np.argsort(ratio, kind="stable")
        return p[order], q[order], ratio[order]

    @property
    def maximum(self) -> float:
        ratio = self.common[2]
        return float(ratio[-1]) + self._ratio_error if len(ratio) else -math.inf

    @property
    def minimum(self) -> float:
        ratio = self.common[2]
        return float(ratio[0]) - self._ratio_error if len(ratio) else math.inf

    @property
    def largest(self) -> Bound:
        ratio = self.common[2]
        if not len(ratio):
            return Bound(-math.inf, -math.inf)
        return Bound(float(ratio[-1]) - self._ratio_error, float(ratio[-1]) + self._ratio_error)

    @cached_property
    def _ratio_error(self) -> float:
        ratio = self.common[2]
        return (self.fuzz + 16 * U) * float(np.max(np.abs(ratio), initial=0.0))

    def transform(self, times: int) -> Transform:
        return AtomicSum(self, float(times))

    @property
    def closed(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        """delta(epsilon) = sum of (p - e^epsilon q)_+, each term with the error of its own rounding."""
        p, _, ratio = self.common
        above = np.searchsorted(ratio, epsilon, side="right")
        value = p[above:] * -np.expm1(epsilon - ratio[above:])
        total = math.fsum(value) + self.infinite_mass
        doubt = (float(np.sum(value)) + self.infinite_mass) * (16 * U + self.fuzz) + float(np.sum(p[above:])) * U * (
            abs(epsilon) + 2
        )
        # Log-ratios within their own error of epsilon may fall on either side: each adds at most p times that error.
        near = np.abs(ratio - epsilon) <= 2 * self._ratio_error
        doubt += float(np.sum(p[near])) * 3 * self._ratio_error + float(np.sum(p[above:])) * self._ratio_error
        doubt = doubt * (1 + 1e-9) + 4 * U * total
        return Bound(max(total - doubt, 0.0), min(up(total + doubt + self.lost), max(1.0, total)))

    @property
    def support(self) -> int:
        return len(self.upper)

    def atoms(self) -> AtomicLoss:
        return self

    def sampled(self, rate: float, *, remove: bool) -> AtomicLoss:
        """Outcome by outcome: (1 - q) lower + q upper against lower, or upper against (1 - q) upper + q lower."""
        kept = 1 - rate
        ratio: list[float] = []
        mixed: list[float] = []
        for p, q, log_ratio in zip(self.upper, self.lower, self.ratios, strict=True):
            mixed.append(kept * q + rate * p if remove else kept * p + rate * q)
            ratio.append(_sampled_ratio(log_ratio if remove else -log_ratio, rate) * (1 if remove else -1))
        upper, lower = (tuple(mixed), self.lower) if remove else (self.upper, tuple(mixed))
        # ln(1 - q + q e^l) has a relative condition number of at most 1 + |l|.
        largest = max((abs(value) for value in self.ratios if math.isfinite(value)), default=0.0)
        law = None if self.formula is None else SampledLaw(self.formula, rate, remove)
        return AtomicLoss(upper, lower, tuple(ratio), None, (2 + largest) * (self.fuzz + 16 * U), self.lost, law)

    @cached_property
    def ratios(self) -> tuple[float, ...]:
        """ln(upper / lower) of every outcome, infinite ones included."""
        p, q, finite = np.array(self.upper), np.array(self.lower), iter(self.log_ratio or ())
        given = (
            [next(finite, 0.0) for _ in p] if self.log_ratio else [_log_ratio(a, b) for a, b in zip(p, q, strict=True)]
        )
        return tuple(
            math.inf if b == 0 < a else -math.inf if a == 0 < b else value
            for a, b, value in zip(p, q, given, strict=True)
        )

    def finite_ratios(self) -> list[float]:
        """The finite losses, and 0."""
        return [0.0, *(value for value in self.ratios if math.isfinite(value))]

    @classmethod
    def of(cls, upper: Sequence[float], lower: Sequence[float]) -> AtomicLoss:
        """Masses given by a caller: what their sums miss or exceed of one is counted as lost."""
        lost = max(abs(1 - math.fsum(upper)), abs(1 - math.fsum(lower)))
        return cls(tuple(upper), tuple(lower), lost=0.0 if lost == 0 else up(lost))

    @property
    def formula(self) -> AtomLaw | None:
        """The exact masses: the given ones if they are exact themselves, else by their formula if there is one."""
        exact = self.fuzz == 0 and not self.log_ratio
        return self.law or (GivenLaw(self.upper, self.lower) if exact else None)

    def ball(self, field: Field) -> Ends:
        """By the formula of the masses; where there is none by the floats, with what they may be off by."""
        formula = self.formula
        if formula is not None:
            below = by_formula(field, formula.outcomes(field), formula.grid(field), 0.0)
            above = (
                below if self.lost == 0 else by_formula(field, formula.outcomes(field), formula.grid(field), self.lost)
            )
            return Ends(below, above)
        moved = self._ratio_error * (1 + 1e-9) + (0.0 if self.log_ratio else 2.1 * self.fuzz)
        listed = [
            (p, ratio) for p, q, ratio in zip(self.upper, self.lower, self.ratios, strict=True) if p > 0 and q > 0
        ]
        outside = [p for p, q in zip(self.upper, self.lower, strict=True) if p > 0 and q == 0]
        below, above = (
            by_floats(field, listed, outside, self.lattice, 1.01 * self.fuzz, moved, side, self.lost)
            for side in (-1, 1)
        )
        return Ends(below, above if outside or self.lost > 0 else below)


def _log_ratio(p: float, q: float) -> float:
    """ln(p / q) for positive masses, a small one without cancellation; 0 where a mass vanishes."""
    if not (p > 0 and q > 0):
        return 0.0
    if abs(p - q) < 0.5 * q:
        return math.log1p((p - q) / q)
    ratio = float(np.divide(p, q)) if q > p * 1e-300 else math.inf
    return math.log(ratio) if 1e-300 < ratio < math.inf else math.log(p) - math.log(q)


def _sampled_ratio(ratio: float, rate: float) -> float:
    """ln(1 - q + q e^ratio), for ratio up to inf and down to -inf."""
    if ratio == math.inf:
        return 0.0
    if ratio > 30:
        return ratio + math.log(rate) + math.log1p((1 - rate) / rate * math.exp(-ratio))
    return math.log1p(rate * math.expm1(ratio))


@dataclass(frozen=True, eq=False)
class AtomicSum:
    """`times` copies of the finite part of an atomic loss, through the exponential sum over Q."""

    loss: AtomicLoss
    times: float

    @property
    def maximum(self) -> float:
        return self.loss.maximum * self.times if self.loss.maximum < 0 else up(self.loss.maximum * self.times)

    @property
    def minimum(self) -> float:
        return self.loss.minimum * self.times

    @property
    def lattice(self) -> Lattice | None:
        one = self.loss.lattice
        return None if one is None else Lattice(one.spacing, one.offset * self.times)

    @cached_property
    def _points(self) -> Points:
        p, q, ratio = self.loss.common
        near = np.clip(ratio, -0.5, 0.5)
        deficit = np.where(np.abs(ratio) < 0.5, q * minus_log1p(np.expm1(near)), p - q - q * ratio)
        fuzz = np.full(len(q), self.loss.fuzz * 3 + 64 * U)
        return Points(np.log(q), ratio, deficit, fuzz, fuzz)

    @cached_property
    def _mass(self) -> tuple[float, float]:
        p, q, _ = self.loss.common
        return math.fsum(p), math.fsum(p) - math.fsum(q)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        p, _, ratio = self.loss.common
        exponent = np.log(p) + order * ratio
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
    def _unsure(self) -> float:
        """By how much the masses of P and of Q may be off as a whole: what is linear in t then does not cancel."""
        off = (
            0.0 if self.loss.lost else sum(abs(math.fsum([*side, -1.0])) for side in (self.loss.upper, self.loss.lower))
        )
        return (self.loss.fuzz + 2 * U if self.loss.fuzz else 0.0) + off

    def _outside(self, order: float, frequencies: Reals) -> Reals:
        """An error of (2 |t| + 1) `_unsure` max(M(order), 1), in the units of `Points.line`.

        It is of the size of M where all masses are off by a factor, and of that of 1 where they are off as a whole:
        M is smaller than 1 where the infinite loss left hardly more than negative ones.
        """
        points = self._points
        top = max(float((points.log_weight + (order + 1) * points.ratio).max()), 0.0)
        log_m = max(self.cumulants(order)[0] / self.times, 0.0) + 1e-6
        return (2 * (order + frequencies) + 1) * (self._unsure * self._mass[0] * math.exp(min(log_m - top, 700.0)))

    def line(self, order: float, frequencies: Reals) -> Line:
        one = self._points.line(
            order + 1,
            frequencies,
            sign=1.0,
            drift=self._drift,
            mass=self._mass[0],
            outside=self._outside(order, frequencies),
            careful=careful_nodes(self.times),
        )
        return Line(self.times * one.log, self.times * one.error + 4 * U * self.times * np.abs(one.log))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        nodes = np.concatenate([[0.0], edges])
        outside = self._outside(order, nodes)
        one = self._points.line(order + 1, nodes, sign=1.0, drift=self._drift, mass=self._mass[0], outside=outside)
        magnitude = np.exp(one.log.real[1:] + one.error[1:] - one.floor)
        _, _, ratio = self.loss.common
        variance = min(self.cumulants(order)[2] / self.times * 1.01, float(ratio[-1] - ratio[0]) ** 2 / 4 + 1e-12)
        return self.times * blockwise(magnitude, variance, edges)
