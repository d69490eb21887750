"""A loss with finitely many values: pairs of masses on common outcomes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from dpcompose.contour.exponential_sums import Points, careful_nodes
from dpcompose.contour.transform import Lattice, Line, Transform, blockwise
from dpcompose.loss.base import Loss
from dpcompose.loss.finite import by_floats, by_formula
from dpcompose.loss.law import AtomLaw, GivenLaw, ReversedLaw, SampledLaw
from dpcompose.numerics.bound import Bound, up
from dpcompose.numerics.elementary import Reals, U, log_mixed, minus_log1p
from dpcompose.proof.ball import Field
from dpcompose.proof.moments import Ends

# A mass below it is not read from its float, which may have underflowed, but through its logarithm.
TINY = 2.0**-1000


@dataclass(frozen=True)
class AtomicLoss(Loss):
    """Outcomes with mass `upper[i]` under P and `lower[i]` under Q; one that only P has is an infinite loss.

    Args:
        upper: Masses under P, each good to `fuzz` relative; below `TINY` only their logarithms count.
        lower: Masses under Q, likewise, same length.
        log_ratio: ln(upper / lower), inf where only P and -inf where only Q has the outcome, good to `slant` and 8 U
            relative; empty: computed from the masses, which are then exact unless `fuzz` says otherwise.
        lattice: The lattice on which the finite losses lie, if they do.
        fuzz: Relative error of the masses.
        lost: Mass (of either measure) that is not in the lists, or may be misplaced.
        law: The formula of the masses, if they have one: what proofs use in their place.
        slant: Relative error of the log-ratios; None: `fuzz`.
        log_upper: ln(upper), good to `fuzz` and as a float; needed where P and Q both have less than `TINY`.
    """

    upper: tuple[float, ...]
    lower: tuple[float, ...]
    log_ratio: tuple[float, ...] = ()
    lattice: Lattice | None = None
    fuzz: float = 0.0
    lost: float = field(default=0.0)
    law: AtomLaw | None = None
    slant: float | None = None
    log_upper: tuple[float, ...] = ()

    @property
    def unplaced_mass(self) -> float:
        """What is lost, and outcomes of which no mass is good to `fuzz`."""
        return self._unplaced[1]

    @property
    def infinite_mass(self) -> float:
        return self._unplaced[0]

    @cached_property
    def _unplaced(self) -> tuple[float, float]:
        """The mass of infinite losses, and `unplaced_mass`."""
        (p, q, ratio), masses = self._arrays, self._infinite_masses
        if self._exact:
            return math.fsum(masses), self.lost
        largest = np.maximum(p, q)
        if not float(largest.min(initial=1.0)) < TINY:
            return math.fsum(masses), self.lost
        known = np.isfinite(ratio) if self.log_upper else ratio == -math.inf
        faint = np.count_nonzero((largest < TINY) & ~(known | np.isnan(ratio)))
        return math.fsum(masses[masses >= TINY]), up(self.lost + faint * TINY) if faint else self.lost

    @property
    def _infinite_masses(self) -> Reals:
        p, _, ratio = self._arrays
        return p[ratio == math.inf]

    @cached_property
    def _arrays(self) -> tuple[Reals, Reals, Reals]:
        """upper, lower and log-ratio of every outcome."""
        return np.array(self.upper), np.array(self.lower), np.array(self.ratios)

    @property
    def _exact(self) -> bool:
        """Whether every float is the mass itself."""
        return self.fuzz == 0 and not self.log_ratio

    @property
    def infinite_relative_error(self) -> float:
        return self.fuzz + 8 * U

    @cached_property
    def reverse(self) -> AtomicLoss:
        """The loss of (Q, P)."""
        lattice = None if self.lattice is None else Lattice(self.lattice.spacing, -self.lattice.offset)
        ratio = tuple(-value for value in self.log_ratio)
        law = None if self.formula is None else ReversedLaw(self.formula)
        logs = tuple(self.logs[1].tolist()) if self.log_upper else ()
        return AtomicLoss(self.lower, self.upper, ratio, lattice, self.fuzz, self.lost, law, self.slant, logs)

    @cached_property
    def logs(self) -> tuple[Reals, Reals]:
        """ln(upper) and ln(lower) of every outcome, -inf where there is none: where a float may have underflowed,
        through the other mass and the log-ratio, or from `log_upper`."""
        p, q, ratio = self._arrays
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p, log_q = np.log(p), np.log(q)
            if not (self._exact or float(np.minimum(p, q).min(initial=1.0)) >= TINY):
                given = np.array(self.log_upper) if self.log_upper else np.where(q >= TINY, log_q + ratio, log_p)
                log_p = np.where((p < TINY) & np.isfinite(ratio), given, log_p)
                log_q = np.where((q < TINY) & np.isfinite(ratio), log_p - ratio, log_q)
        return log_p, log_q

    @cached_property
    def rows(self) -> tuple[Reals, ...]:
        """upper, lower, log-ratio, ln(upper) and ln(lower) of the outcomes that both have, by increasing log-ratio."""
        (p, q, ratio), (log_p, log_q) = self._arrays, self.logs
        order = np.argsort(ratio, kind="stable")
        order = order[np.isfinite(ratio[order]) & np.isfinite(log_p[order])]
        return tuple(row[order] for row in (p, q, ratio, log_p, log_q))

    @property
    def common(self) -> tuple[Reals, Reals, Reals]:
        """upper, lower and log-ratio of the outcomes that both measures have, by increasing log-ratio."""
        return self.rows[0], self.rows[1], self.rows[2]

    @property
    def maximum(self) -> float:
        ratio = self.common[2]
        return float(ratio[-1]) + self.ratio_error if len(ratio) else -math.inf

    @property
    def minimum(self) -> float:
        ratio = self.common[2]
        return float(ratio[0]) - self.ratio_error if len(ratio) else math.inf

    @property
    def largest(self) -> Bound:
        ratio = self.common[2]
        if not len(ratio):
            return Bound(-math.inf, -math.inf)
        return Bound(float(ratio[-1]) - self.ratio_error, float(ratio[-1]) + self.ratio_error)

    @property
    def tilt(self) -> float:
        """The relative error of the log-ratios, but for 8 units of roundoff."""
        return self.fuzz if self.slant is None else self.slant

    @cached_property
    def ratio_error(self) -> float:
        """A bound on the error of every log-ratio."""
        ratio = self.common[2]
        return (self.tilt + 16 * U) * float(np.max(np.abs(ratio), initial=0.0))

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
        near = np.abs(ratio - epsilon) <= 2 * self.ratio_error
        doubt += float(np.sum(p[near])) * 3 * self.ratio_error + float(np.sum(p[above:])) * self.ratio_error
        if not self._exact:
            doubt += TINY * (np.count_nonzero(p[above:] < TINY) + np.count_nonzero(p[near] < TINY))
        doubt = doubt * (1 + 1e-9) + 4 * U * total + 5e-324 * np.count_nonzero(value < TINY)
        most = total + doubt + self.unplaced_mass
        return Bound(max(total - doubt, 0.0), min(up(most), max(1.0, total)) if most > 0 else 0.0)

    @property
    def support(self) -> int:
        return len(self.upper)

    def atoms(self) -> AtomicLoss:
        return self

    def sampled(self, rate: float, *, remove: bool) -> AtomicLoss:
        """Outcome by outcome: (1 - q) lower + q upper against lower, or upper against (1 - q) upper + q lower."""
        p, q, ratio = self._arrays
        loss = ratio if remove else -ratio
        found = log_mixed(loss, rate)
        mixed = (1 - rate) * q + rate * p if remove else (1 - rate) * p + rate * q
        upper, lower = (mixed, q) if remove else (p, mixed)
        law = None if self.formula is None else SampledLaw(self.formula, rate, remove)
        logs = self.logs[0] if np.any(np.maximum(upper, lower) < TINY) else np.zeros(0)
        if remove and len(logs):
            logs = np.logaddexp(math.log1p(-rate) + self.logs[1], math.log(rate) + logs)
        slant = 24 * U + _bend(loss, found, rate) * (self.tilt + 16 * U)
        ratios = tuple((found if remove else -found).tolist())
        masses = tuple(upper.tolist()), tuple(lower.tolist())
        fuzz = self.fuzz + (4 + (8 * float(np.max(np.abs(logs[np.isfinite(logs)]), initial=0.0)))) * U
        return AtomicLoss(*masses, ratios, None, fuzz, self.lost, law, slant, tuple(logs.tolist()))

    @cached_property
    def ratios(self) -> tuple[float, ...]:
        """ln(upper / lower) of every outcome, infinite ones included; NaN where neither measure has it."""
        return self.log_ratio or tuple(_log_ratio(p, q) for p, q in zip(self.upper, self.lower, strict=True))

    @classmethod
    def of(cls, upper: Sequence[float], lower: Sequence[float]) -> AtomicLoss:
        """Masses given by a caller: what their sums miss or exceed of one is counted as lost."""
        lost = max(abs(1 - math.fsum(upper)), abs(1 - math.fsum(lower)))
        return cls(tuple(upper), tuple(lower), lost=0.0 if lost == 0 else up(lost))

    @property
    def formula(self) -> AtomLaw | None:
        """The exact masses: the given ones if they are exact themselves, else by their formula if there is one."""
        return self.law or (GivenLaw(self.upper, self.lower) if self._exact else None)

    def ball(self, field: Field) -> Ends:
        """By the formula of the masses; where there is none by the floats, with what they may be off by."""
        formula = self.formula
        if formula is not None:
            below = by_formula(field, formula.outcomes(field), formula.grid(field), 0.0)
            above = (
                below if self.lost == 0 else by_formula(field, formula.outcomes(field), formula.grid(field), self.lost)
            )
            return Ends(below, above)
        p, _, ratio, log_p, _ = self.rows
        moved, masses = self.ratio_error * (1 + 1e-9) + (0.0 if self.log_ratio else 2.1 * self.fuzz), 1.01 * self.fuzz
        if np.any(p < TINY):
            masses += 1.01 * (self.ratio_error + 4 * U * float(np.max(np.abs(log_p))))
        balls = [
            field.exact(a) if a >= TINY else field.exact(b).exp()
            for a, b in zip(p.tolist(), log_p.tolist(), strict=True)
        ]
        listed = list(zip(balls, ratio.tolist(), strict=True))
        outside = [mass for mass in self._infinite_masses.tolist() if mass >= TINY]
        below, above = (
            by_floats(field, listed, outside, self.lattice, masses, moved, side, self.unplaced_mass) for side in (-1, 1)
        )
        return Ends(below, above if outside or self.unplaced_mass > 0 else below)


def _log_ratio(p: float, q: float) -> float:
    """ln(p / q), a small one without cancellation; infinite where one mass vanishes, NaN where both do."""
    if not (p > 0 and q > 0):
        return math.inf if p > 0 else -math.inf if q > 0 else math.nan
    if abs(p - q) < 0.5 * q:
        return math.log1p((p - q) / q)
    ratio = float(np.divide(p, q)) if q > p * 1e-300 else math.inf
    return math.log(ratio) if 1e-300 < ratio < math.inf else math.log(p) - math.log(q)


def _bend(loss: Reals, mixed: Reals, rate: float) -> float:
    """By how much a relative error of l grows in f = ln(1 - q + q e^l), at most: l f'(l) / f, never above 1 + l."""
    with np.errstate(all="ignore"):
        bend = np.abs(loss / mixed) * np.exp(np.minimum(loss + (math.log(rate) - mixed), 0.0))
    most = np.where(np.isfinite(loss), 1 + np.maximum(loss, 0.0), 1.0)
    return float(np.max(np.fmin(bend, most), initial=1.0))


@dataclass(frozen=True, eq=False)
class AtomicSum(Transform):
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
        p, q, ratio, _, log_q = self.loss.rows
        near = np.clip(ratio, -2.0, 2.0)
        deficit = np.where(np.abs(ratio) < 2.0, q * minus_log1p(np.expm1(near)), p - q - q * ratio)
        # A third of the deficit's error, which three times `fuzz` allow: p, q and q ln(p / q) are at most 3 times it.
        fuzz = np.full(len(q), self.loss.fuzz + 1.5 * self.loss.tilt + 64 * U)
        return Points(log_q, ratio, deficit, fuzz, np.full(len(q), self.loss.tilt + 16 * U))

    @cached_property
    def _mass(self) -> tuple[float, float]:
        p, q, _ = self.loss.common
        return math.fsum(p), math.fsum(p) - math.fsum(q)

    def cumulants(self, order: float) -> tuple[float, float, float]:
        _, _, ratio, log_p, _ = self.loss.rows
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
            omitted=self._outside(order, frequencies),
            careful=careful_nodes(self.times),
        )
        return Line(self.times * one.log, self.times * one.error + 4 * U * self.times * np.abs(one.log))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        nodes = np.concatenate([[0.0], edges])
        outside = self._outside(order, nodes)
        one = self._points.line(order + 1, nodes, sign=1.0, drift=self._drift, mass=self._mass[0], omitted=outside)
        magnitude = np.exp(one.log.real[1:] + one.error[1:] - one.floor)
        _, _, ratio = self.loss.common
        variance = min(self.cumulants(order)[2] / self.times * 1.01, float(ratio[-1] - ratio[0]) ** 2 / 4 + 1e-12)
        return self.times * blockwise(magnitude, variance, edges)
