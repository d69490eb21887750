"""Losses of Gaussian noise on batches: drawn without replacement, and shuffled.

The loss of Gaussian noise on a batch drawn without replacement, where a record is replaced.

Draw a (B - 1)-subset of the other records, and one more of them, y. The batch is the subset with y or, with
probability q = B / n, with the record. Given the subset and y, which do not depend on the record, the answers are
(1 - q) N(y) + q N(x) against (1 - q) N(y) + q N(x'), where no two of the three means are farther apart than 2. For
epsilon >= 0 advanced joint convexity bounds every such pair by h(epsilon) = q D(ln(1 + (e^epsilon - 1) / q)), D the
Gaussian profile at mu = 2 / s, which y = x' attains. Both orders are possible, so that for epsilon < 0 the bound is
1 - e^epsilon + e^epsilon h(-epsilon). Given every history this holds again, so that the symmetric pair with this
profile dominates adaptive compositions.

The loss of an attack on shuffled batches: how large the largest of many normal variables is, not which one.

Reference: [BalleBartheGaboardi2018, Theorem 2], [ZhuDongWang2022, Theorem 10]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.special import log_ndtr

from dpcompose.guarantee import gaussian_profile
from dpcompose.loss.atomic import AtomicLoss, AtomizedLoss
from dpcompose.loss.atomize import atoms_above
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import sampled_profile
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_grid import log_ratio
from dpcompose.numerics import Reals, U, bracketed_root
from dpcompose.values import Bound, Certificate, around, up

_CERTIFICATE = Certificate("closed form, by advanced joint convexity")


@dataclass(frozen=True)
class FixedSizeSampleLoss(AtomizedLoss):
    """The loss of Gaussian noise on a batch of fixed size, the same when the record is removed and when it is added.
    One step has the profile h in closed form; in a composition atoms stand for it, whose profile is above h.

    Args:
        noise: sigma over the largest norm of a record, > 0.
        rate: The share of the records in a batch, rounded down, in (0, 1).
        rate_above: The same, rounded up.
    """

    noise: float
    rate: float
    rate_above: float

    def _listed(self) -> Atoms:
        return atoms_above(self.profile, self._upper)

    def profile(self, epsilon: float) -> Bound:
        """h(epsilon), the profile of the mixture, which grows with the rate."""
        low = SampledGaussianLoss(self.noise / 2, self.rate, True).profile(abs(epsilon)).lower
        if epsilon < 0:
            low = around(-math.expm1(epsilon) + math.exp(epsilon) * low, relative=16 * U).lower
        return Bound(low, self._upper(epsilon), _CERTIFICATE)

    def _upper(self, epsilon: float) -> float:
        def base(location: float, error: float) -> Bound:
            mu = 2 / self.noise * (1 + 4 * U)
            return Bound(0.0, gaussian_profile(location - error, mu=mu).upper)

        found = sampled_profile(abs(epsilon), self.rate_above, remove=True, base=base).upper
        if epsilon >= 0:
            return found
        return min(
            around(-math.expm1(epsilon) + math.exp(epsilon) * found, relative=16 * U).upper, 1.0
        )

    def log_moment(self, exponent: float) -> float:
        """K of the pair, or that of the noise alone where it is less; to a few 1e-5.

        Let n be the density of N(0, s^2), r that of the mixture relative to n, and g(r) = (r^(b + 1) - 1) (1 - r^-b).
        Then M = 1 + the integral of n g(r) over r > 1. In the ratio g is convex and rises: in a cell of noise it is at
        most its chord at the mean of r.
        """
        s, q, b = self.noise / 2, self.rate_above, exponent
        known = b * (b + 1) * self.zcdp
        end, log_beyond = self._end(b)
        cells = min(max(int((end - 0.5) * (b + 1) / (0.01 * s * s)), 400), 20_000)
        x = np.linspace(0.5, end, cells + 1)
        z, losses = (2 * x - 1) / (2 * s * s), log_ratio(x, s, q)
        with np.errstate(divide="ignore"):  # g is 0 where r is 1
            log_g = (b + 1) * losses + np.log(np.expm1(-(b + 1) * losses) * np.expm1(-b * losses))
        (plain, plain_error), (moved, moved_error) = (
            _log_masses((x - mean) / s) for mean in (0, 1)
        )
        error = plain_error + moved_error + 16 * U * (1 + z[:-1])
        share = (np.expm1(moved - plain - z[:-1]) + 2 * error) / np.expm1(np.diff(z)) + error
        low, high = (plain + 2 * plain_error + each for each in (log_g[:-1], log_g[1:]))
        top = max(float(high.max()), log_beyond)
        share, low, high = np.minimum(share, 1.0), np.exp(low - top), np.exp(high - top)
        above = float((low + share * (high - low)).sum()) * (1 + 1e-9) + math.exp(log_beyond - top)
        excess = top + math.log(above)
        whole = math.log1p(math.exp(excess)) if excess < 30 else excess + math.exp(-excess)
        return min(whole * (1 + 8 * U) + 1e-12 * max(excess, 0.0), known)

    def _end(self, exponent: float) -> tuple[float, float]:
        """A place so far out that little is left, and log of a bound on the integral beyond it.

        Beyond it r <= c q e^z, c = 1 + (1 - q) / q e^-z there, and r^(b + 1) n is a Gaussian density at b + 1.
        """
        s, q, a = self.noise / 2, self.rate_above, exponent + 1
        end, log_beyond = 0.0, math.inf
        for deviations in range(9, 60):
            end = a + deviations * s
            lifted = math.log(q) + math.log1p((1 - q) / q * math.exp(-(2 * end - 1) / (2 * s * s)))
            log_beyond = (
                a * lifted + exponent * a / (2 * s * s) + float(log_ndtr(-deviations)) + 1e-9
            )
            if log_beyond < -40:
                break
        return end, log_beyond

    @property
    def zcdp(self) -> float:
        """The zCDP parameter of the noise without a sample, which is an upper bound: h is at most D."""
        return 2 / self.noise**2 * (1 + 16 * U)

    @property
    def unplaced_mass(self) -> float:
        """The infinite mass of the atoms above h; h itself has none."""
        return up(self.composed.infinite_mass + self.composed.unplaced_mass)


def _log_masses(edges: Reals) -> tuple[Reals, Reals]:
    """log of the standard normal masses between increasing edges, and bounds on their errors."""
    tails = log_ndtr(-edges)
    falls = -np.diff(tails)
    error = 16 * U * (1 + np.abs(tails[1:])) / falls
    return tails[:-1] + np.log(-np.expm1(-falls)), error


CELLS, STEP, LEAST_NOISE = 1024, 0.02, 0.05
FARTHEST, RAREST = 16.0, 1e-12
LOG_ERROR = 1e-12
"""The relative error of ln Phi at a rounded place, z <= 37: against balls the worst of 20,000 is below 3e-13."""


@lru_cache(maxsize=64)
def largest_batch(noise: float, steps: int) -> AtomicLoss:
    """The loss of the largest of `steps` batches, in cells: one mean is 2 with the record and 1 without, all others 0.

    All other records contribute -1 to their batch; the record contributes +1, or nothing. Seen from -(batch size), the
    mean of its batch is 2 or 1, which batch it is being uniform, and that of the others 0; the noise has standard
    deviation `noise`. Below z the largest has probability Phi(z - 2 / noise) Phi(z)^(steps - 1), or the same with 1.
    What is computed from an answer never costs more than the answer. So any cells, and more noise where there is next
    to none, give a loss that is below an attained one.

    Reference: [Chua2024]
    """
    far = 2 / max(noise, LEAST_NOISE)
    high = far + FARTHEST
    rare = math.log(RAREST)
    low = bracketed_root(
        lambda z: float(_log_below(np.array([z]), far, steps)[0]) - rare,
        lower=-FARTHEST,
        upper=high,
    )
    places = np.linspace(low, high, min(CELLS, max(2, math.ceil((high - low) / STEP))))
    (upper, first), (lower, second) = (
        _cells(_log_below(places, shift, steps)) for shift in (far, far / 2)
    )
    return AtomicLoss(
        Atoms(tuple(upper.tolist()), tuple(lower.tolist()), relative_error=max(first, second))
    )


def _log_below(places: Reals, shift: float, steps: int) -> Reals:
    """The logarithm of the probability that all of several independent variables are below a place: a sum of negative
    terms."""
    return log_ndtr(places - shift) + (steps - 1) * log_ndtr(places)


def _cells(logs: Reals) -> tuple[Reals, float]:
    """The masses between the places, from whichever tail is smaller, and the largest relative error of one."""
    below, above = np.exp(logs), -np.expm1(logs)
    below_error, above_error = (
        (np.abs(logs) * LOG_ERROR + 8 * U) * below,
        (LOG_ERROR + 8 * U) * above,
    )
    from_below = np.append(below, 1.0)
    lower_half = below[:-1] < 0.5
    inner = np.where(lower_half, np.diff(below), -np.diff(above))
    inner_error = np.where(
        lower_half, below_error[:-1] + below_error[1:], above_error[:-1] + above_error[1:]
    )
    masses = np.concatenate([from_below[:1], inner, above[-1:]])
    errors = np.concatenate([below_error[:1], inner_error, above_error[-1:]])
    return masses, float(np.max(errors / masses)) * (1 + 1e-9) + 8 * U
