"""Pairs of distributions on finitely many outcomes, by the masses of these."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np

from dpcompose.contour import Lattice
from dpcompose.loss.atom_moments import (
    AtomLaw,
    GivenLaw,
    ReversedLaw,
    SampledLaw,
    by_floats,
    by_formula,
)
from dpcompose.numerics import Reals, U, log_mixed
from dpcompose.proof import Ends, Field
from dpcompose.values import up

TINY = 2.0**-1000
"""A mass below it is not read from its float, which may have underflowed, but through its logarithm."""


@dataclass(frozen=True)
class Atoms:
    """Outcomes with mass `upper[i]` under P and `lower[i]` under Q; one that only P has is an infinite loss.

    Args:
        upper: Masses under P, each good to `relative_error`; below `TINY` only their logarithms count.
        lower: Masses under Q, likewise, same length.
        log_ratio: ln(upper / lower), inf where only P and -inf where only Q has the outcome, good to
            `log_ratio_relative_error` and 8 U; empty: computed from the masses, which are then exact unless
            `relative_error` says otherwise.
        lattice: The lattice on which the finite losses lie, if they do.
        relative_error: Of the masses.
        omitted_mass: Mass (of either measure) that is not in the lists, or may be misplaced.
        law: The formula of the masses, if they have one: what proofs use in their place.
        log_ratio_relative_error: Of the log-ratios; None: `relative_error`.
        log_upper: ln(upper), good to `relative_error` and as a float; needed where P and Q both have less than `TINY`.
    """

    upper: tuple[float, ...]
    lower: tuple[float, ...]
    log_ratio: tuple[float, ...] = ()
    lattice: Lattice | None = None
    relative_error: float = 0.0
    omitted_mass: float = 0.0
    law: AtomLaw | None = None
    log_ratio_relative_error: float | None = None
    log_upper: tuple[float, ...] = ()

    @property
    def infinite_mass(self) -> float:
        """The probability under P of outcomes that are impossible under Q."""
        return self._unplaced[0]

    @property
    def unplaced_mass(self) -> float:
        """Mass whose loss is not known: what the list of outcomes omits, and outcomes whose masses are all less
        accurate than `relative_error`."""
        return self._unplaced[1]

    @cached_property
    def _unplaced(self) -> tuple[float, float]:
        """The mass of infinite losses, and `unplaced_mass`."""
        (p, q, ratio), masses = self.arrays, self.infinite_masses
        if self.exact:
            return math.fsum(masses), self.omitted_mass
        largest = np.maximum(p, q)
        if not float(largest.min(initial=1.0)) < TINY:
            return math.fsum(masses), self.omitted_mass
        known = np.isfinite(ratio) if self.log_upper else ratio == -math.inf
        faint = np.count_nonzero((largest < TINY) & ~(known | np.isnan(ratio)))
        return math.fsum(masses[masses >= TINY]), up(
            self.omitted_mass + faint * TINY
        ) if faint else self.omitted_mass

    @property
    def infinite_masses(self) -> Reals:
        """The masses under P of outcomes that Q lacks."""
        p, _, ratio = self.arrays
        return p[ratio == math.inf]

    @cached_property
    def arrays(self) -> tuple[Reals, Reals, Reals]:
        """upper, lower and log-ratio of every outcome."""
        return np.array(self.upper), np.array(self.lower), np.array(self.ratios)

    @property
    def exact(self) -> bool:
        """Whether the floats are the masses themselves, without rounding."""
        return self.relative_error == 0 and not self.log_ratio

    @cached_property
    def reverse(self) -> Atoms:
        """The atoms of the pair (Q, P)."""
        lattice = (
            None if self.lattice is None else Lattice(self.lattice.spacing, -self.lattice.offset)
        )
        ratio = tuple(-value for value in self.log_ratio)
        law = None if self.formula is None else ReversedLaw(self.formula)
        logs = tuple(self.logs[1].tolist()) if self.log_upper else ()
        return replace(
            self,
            upper=self.lower,
            lower=self.upper,
            log_ratio=ratio,
            lattice=lattice,
            law=law,
            log_upper=logs,
        )

    @cached_property
    def logs(self) -> tuple[Reals, Reals]:
        """ln(upper) and ln(lower) of every outcome, -inf where there is none: where a float may have underflowed,
        through the other mass and the log-ratio, or from `log_upper`."""
        p, q, ratio = self.arrays
        with np.errstate(divide="ignore", invalid="ignore"):
            log_p, log_q = np.log(p), np.log(q)
            if not (self.exact or float(np.minimum(p, q).min(initial=1.0)) >= TINY):
                given = (
                    np.array(self.log_upper)
                    if self.log_upper
                    else np.where(q >= TINY, log_q + ratio, log_p)
                )
                log_p = np.where((p < TINY) & np.isfinite(ratio), given, log_p)
                log_q = np.where((q < TINY) & np.isfinite(ratio), log_p - ratio, log_q)
        return log_p, log_q

    @cached_property
    def rows(self) -> tuple[Reals, ...]:
        """upper, lower, log-ratio, ln(upper) and ln(lower) of the outcomes that both have, by increasing log-ratio."""
        (p, q, ratio), (log_p, log_q) = self.arrays, self.logs
        order = np.argsort(ratio, kind="stable")
        order = order[np.isfinite(ratio[order]) & np.isfinite(log_p[order])]
        return tuple(row[order] for row in (p, q, ratio, log_p, log_q))

    @property
    def common(self) -> tuple[Reals, Reals, Reals]:
        """upper, lower and log-ratio of the outcomes that both measures have, by increasing log-ratio."""
        return self.rows[0], self.rows[1], self.rows[2]

    @property
    def ratio_relative_error(self) -> float:
        """A bound on the relative error of each log-ratio, without 8 units of roundoff that are counted where it is used."""
        return (
            self.relative_error
            if self.log_ratio_relative_error is None
            else self.log_ratio_relative_error
        )

    @cached_property
    def ratio_error(self) -> float:
        """A bound on the error of every log-ratio."""
        ratio = self.common[2]
        return (self.ratio_relative_error + 16 * U) * float(np.max(np.abs(ratio), initial=0.0))

    @property
    def maximum(self) -> float:
        """The largest finite loss, rounded up."""
        ratio = self.common[2]
        return float(ratio[-1]) + self.ratio_error if len(ratio) else -math.inf

    @property
    def minimum(self) -> float:
        """The smallest finite loss, rounded down."""
        ratio = self.common[2]
        return float(ratio[0]) - self.ratio_error if len(ratio) else math.inf

    @cached_property
    def ratios(self) -> tuple[float, ...]:
        """ln(upper / lower) of every outcome, infinite ones included; NaN where neither measure has it."""
        return self.log_ratio or tuple(
            _log_ratio(p, q) for p, q in zip(self.upper, self.lower, strict=True)
        )

    @property
    def formula(self) -> AtomLaw | None:
        """The law that gives every mass exactly: `law`, else the floats if they are exact, else None."""
        return self.law or (GivenLaw(self.upper, self.lower) if self.exact else None)

    def sampled(self, rate: float, *, remove: bool) -> Atoms:
        """The atoms of the pair on a Poisson sample, outcome by outcome: (1 - q) lower + q upper against lower if the
        record is removed, or upper against (1 - q) upper + q lower."""
        p, q, ratio = self.arrays
        loss = ratio if remove else -ratio
        found = log_mixed(loss, rate)
        mixed = (1 - rate) * q + rate * p if remove else (1 - rate) * p + rate * q
        upper, lower = (mixed, q) if remove else (p, mixed)
        law = None if self.formula is None else SampledLaw(self.formula, rate, remove)
        logs = self.logs[0] if np.any(np.maximum(upper, lower) < TINY) else np.zeros(0)
        if remove and len(logs):
            logs = np.logaddexp(math.log1p(-rate) + self.logs[1], math.log(rate) + logs)
        ratio_error = 24 * U + _bend(loss, found, rate) * (self.ratio_relative_error + 16 * U)
        ratios = tuple((found if remove else -found).tolist())
        masses = tuple(upper.tolist()), tuple(lower.tolist())
        relative_error = (
            self.relative_error
            + (4 + (8 * float(np.max(np.abs(logs[np.isfinite(logs)]), initial=0.0)))) * U
        )
        errors = relative_error, self.omitted_mass
        logs = tuple(logs.tolist())
        return Atoms(
            *masses,
            ratios,
            None,
            *errors,
            law=law,
            log_ratio_relative_error=ratio_error,
            log_upper=logs,
        )

    @classmethod
    def of(cls, upper: Sequence[float], lower: Sequence[float]) -> Atoms:
        """Atoms from masses that a caller gives: whatever their sums are above or below 1 is omitted mass."""
        omitted = max(abs(1 - math.fsum(upper)), abs(1 - math.fsum(lower)))
        return cls(tuple(upper), tuple(lower), omitted_mass=0.0 if omitted == 0 else up(omitted))

    def moments(self, field: Field) -> Ends:
        """The loss in balls: by the formula of the masses, or else by the floats and their stated errors."""
        formula = self.formula
        if formula is not None:
            below = by_formula(field, formula.outcomes(field), formula.grid(field), 0.0)
            above = (
                below
                if self.omitted_mass == 0
                else by_formula(
                    field, formula.outcomes(field), formula.grid(field), self.omitted_mass
                )
            )
            return Ends(below, above)
        p, _, ratio, log_p, _ = self.rows
        masses = 1.01 * self.relative_error
        error = self.ratio_error * (1 + 1e-9)
        error += 0.0 if self.log_ratio else 2.1 * self.relative_error
        if np.any(p < TINY):
            masses += 1.01 * (self.ratio_error + 4 * U * float(np.max(np.abs(log_p))))
        balls = [
            field.exact(a) if a >= TINY else field.exact(b).exp()
            for a, b in zip(p.tolist(), log_p.tolist(), strict=True)
        ]
        listed = list(zip(balls, ratio.tolist(), strict=True))
        outside = [mass for mass in self.infinite_masses.tolist() if mass >= TINY]
        enclosing = partial(
            by_floats, field, listed, outside, self.lattice, relative_error=masses, error=error
        )
        below, above = (enclosing(side=side, unplaced_mass=self.unplaced_mass) for side in (-1, 1))
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
