"""Losses of discrete noise at an integer shift: the discrete Gaussian and Skellam.

The loss of discrete Gaussian noise at an integer shift: a lattice, and a ratio of theta functions.

The loss of Skellam noise, the difference of two Poisson variables: atoms of the integers, in closed form.

p(x) = e^-v I_x(v). The ratios r_n = I_(n+1)(v) / I_n(v) obey r_n = 1 / (2 (n + 1) / v + r_(n+1)). Downward every step
shrinks an error by r_n r_(n+1) < 1, so that integers of 192 bits give all of them to 150 bits, from whatever start so
far out that p has fallen by e^-60 more. The losses at a shift are sums of -ln r_n of one sign; the masses follow from
the sums up to n. Below e^-95 the masses of either distribution are omitted: their place is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate
from typing import Self

import numpy as np

from dpcompose.contour import Lattice, Line, Transform, blockwise
from dpcompose.errors import UnsupportedError
from dpcompose.loss.atom_moments import DiscreteGaussianMoments
from dpcompose.loss.atomic import AtomicLoss, AtomsAbove
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss, blocks
from dpcompose.numerics import Complexes, Reals, U, log_one_plus
from dpcompose.proof import Ends, Field, ends
from dpcompose.values import Bound, up

_WIDE = 0.8
_SUMMED, _LISTED = 2000.0, 60.0


@dataclass(frozen=True)
class DiscreteGaussianLoss(Loss):
    """(D^2 - 2 D x) / (2 sigma^2), the integer x as likely as e^(-x^2 / (2 sigma^2)): the same in both orders.

    Reference: [CanonneKamathSteinke2020, Theorem 7]
    """

    sigma: float
    shift: int

    @property
    def zcdp(self) -> float:
        return self.shift * self.shift / (2 * self.sigma * self.sigma) * (1 + 16 * U)

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        # The fastest to fall along the line first, so that screening drops nodes early.
        ordered = sorted(group, key=lambda entry: -entry[1] * min(entry[0].sigma, 1e6))
        columns = np.array(
            [(loss.sigma, loss.shift, times) for loss, times in ordered], dtype=float
        )
        return [DiscreteGaussianSum(*part.T[:, :, None].copy()) for part in blocks(columns, 8)]

    @property
    def has_profile(self) -> bool:
        return self.sigma <= _SUMMED

    def profile(self, epsilon: float) -> Bound | None:
        """The profile as a sum over the integers whose loss is above epsilon, all terms positive; None if sigma makes
        the sum long."""
        if self.sigma > _SUMMED:
            return None
        x, mass = self._masses(40.0)
        loss = (self.shift**2 - 2.0 * self.shift * x) / (2 * self.sigma**2)
        above = loss > epsilon
        terms = mass[above] * -np.expm1(epsilon - loss[above])
        value = float(np.sum(terms))
        # Each term: a relative error of the mass, and of its factor the rounding of epsilon - loss.
        factor_error = 8 * U * (abs(epsilon) + np.abs(loss[above]) + 1)
        error = float(np.sum(terms * U * (96 + np.square(x[above]) / self.sigma**2 * 4))) + float(
            np.sum(mass[above] * factor_error)
        )
        near = float(np.max(mass)) * 32 * U * (abs(epsilon) + 1) if value == 0.0 else 0.0
        # Beyond 40 sigma: below e^-799.
        return Bound(
            max(value - error * 1.01, 0.0), min(up(value + error * 1.01) + min(near, 5e-324), 1.0)
        )

    def sampled(self, rate: float, *, remove: bool) -> Loss | None:
        return (
            AtomicLoss(self._listed().sampled(rate, remove=remove))
            if self.sigma <= _LISTED
            else None
        )

    def _listed(self) -> Atoms:
        """The integers within 37 sigma of either center as atoms; what is beyond is below 1e-290 and is omitted."""
        x, mass = self._masses(37.0)
        other = np.exp(-np.square(x - self.shift) / (2 * self.sigma**2)) / self._whole()
        loss = (self.shift**2 - 2.0 * self.shift * x) / (2 * self.sigma**2)
        # One of the two masses is a normal float, whatever the other is.
        kept = np.minimum(np.abs(x), np.abs(x - self.shift)) <= 37.0 * self.sigma
        relative_error = U * (64 + 4 * 37.0**2)
        masses = tuple(mass[kept]), tuple(other[kept])
        return Atoms(
            *masses,
            tuple(loss[kept]),
            None,
            relative_error,
            1e-290,
            log_ratio_relative_error=16 * U,
        )

    def _masses(self, reach: float) -> tuple[Reals, Reals]:
        side = math.ceil(reach * self.sigma) + 2 * abs(self.shift)
        x = np.arange(-side, side + 1.0)
        return x, np.exp(-np.square(x) / (2 * self.sigma**2)) / self._whole()

    def _whole(self) -> float:
        """The sum of e^(-x^2 / (2 sigma^2)) over the integers, by Poisson summation where that converges at once."""
        if self.sigma >= _WIDE:
            return (
                math.sqrt(2 * math.pi)
                * self.sigma
                * (1 + 2 * sum(math.exp(-2 * (math.pi * self.sigma * m) ** 2) for m in (1, 2, 3)))
            )
        return 1 + 2 * sum(math.exp(-x * x / (2 * self.sigma**2)) for x in range(12, 0, -1))

    def ball(self, field: Field) -> Ends:
        return ends(
            self.sigma,
            lambda sigma: DiscreteGaussianMoments(field, sigma, self.shift),
            field=field,
            ulps=0,
            rising=False,
        )


@dataclass(frozen=True, eq=False)
class DiscreteGaussianSum(Transform):
    """M = (e^(t (t + 1) D^2 / (2 sigma^2)) theta(t D) / theta(0))^times, multiplied over rows of shape (m, 1).

    theta(v) = sum over x of e^(-(x + v)^2 / (2 sigma^2)). Completing the square, M is e^(l (l + 1) D^2 / (2 sigma^2))
    times a sum of Gaussians in u: over the dual lattice (Poisson) for sigma >= 0.8, over the integers below.
    """

    sigma: Reals
    shift: Reals
    times: Reals

    @property
    def lattice(self) -> Lattice | None:
        if len(self.sigma) > 1:
            return None
        sigma, shift = float(self.sigma[0, 0]), float(self.shift[0, 0])
        return Lattice(abs(shift) / sigma**2, float(self.times[0, 0]) * shift**2 / (2 * sigma**2))

    def cumulants(self, order: float) -> tuple[float, float, float]:
        rho = self.shift**2 / self.sigma**2
        log, first, second = self._theta(order)
        return (
            float(np.sum(self.times * (rho * order * (order + 1) / 2 + log))),
            float(np.sum(self.times * (rho * (order + 0.5) + first))),
            float(np.sum(self.times * np.maximum(rho + second, 1e-12 * rho))),
        )

    def line(self, order: float, frequencies: Reals) -> Line:
        log, error = self._log(order, frequencies)
        total = self.times * log
        return Line(
            np.sum(total, axis=0),
            np.sum(self.times * error + U * (4 + len(self.sigma)) * np.abs(total), axis=0),
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        line = Line(*self._log(order, np.concatenate([[0.0], edges])))
        magnitude = np.exp(line.log.real[:, 1:] + line.error[:, 1:] - line.floor)
        variance = (
            np.maximum(self.shift**2 / self.sigma**2 + self._theta(order)[2], 0.0) * 1.01
            + 1e-9 * self.shift**2 / self.sigma**2
        )
        return np.sum(
            self.times * np.minimum(blockwise(magnitude, variance, edges), self._fall(edges)),
            axis=0,
        )

    def _fall(self, edges: Reals) -> Reals:
        """log of a bound from each edge to the next for sigma >= 0.8, where both are on the half circle u D <= pi s^2.

        With v = u D / s the terms of the dual sum are e^(-(v + 2 pi s m)^2 / 2). Those of m = 0 and of m = -1 are at
        most e^(-v^2 / 2) and e^(-(pi s)^2 / 2), each pair beyond is e^(-2 (pi s r)^2) times that or less, and M(order)
        has at least 1 less two of each.
        """
        size, end = np.abs(self.shift), math.pi * self.sigma**2 * (1 + 1e-12)
        decayed = np.exp(-np.square(edges * size / self.sigma) * (0.5 - 16 * U))
        rest = np.exp(-2 * np.square(math.pi * self.sigma))
        ends = np.log1p(1.01 * rest) - np.log1p(-2.02 * rest)
        fall = (
            np.log(decayed + 3 * np.exp(-np.square(math.pi * self.sigma) / 2) + 1e-300)
            * (1 - 16 * U)
            + ends
            + 8 * U
        )
        inside = np.append(edges[1:], math.inf) * size <= end
        return np.where(inside & (self.sigma >= _WIDE), np.minimum(fall, 0.0), 0.0)

    def _theta(self, order: float) -> tuple[Reals, Reals, Reals]:
        """log of theta(order D) / theta(0), and its first two derivatives in the order."""
        log, first, second = (
            np.empty(self.sigma.shape),
            np.empty(self.sigma.shape),
            np.empty(self.sigma.shape),
        )
        wide = self.sigma >= _WIDE
        sigma, shift = np.where(wide, self.sigma, 1.0), self.shift
        value, slope, curve, base = 1.0 + 0 * sigma, 0 * sigma, 0 * sigma, 1.0 + 0 * sigma
        for m in (1, 2):
            weight, turn = 2 * np.exp(-2 * (math.pi * sigma * m) ** 2), 2 * math.pi * m * shift
            angle = 2 * math.pi * m * np.remainder(order * shift, 1.0)
            value, base = value + weight * np.cos(angle), base + weight
            slope, curve = (
                slope - weight * turn * np.sin(angle),
                curve - weight * turn**2 * np.cos(angle),
            )
        log, first, second = (
            np.log(value / base),
            slope / value,
            curve / value - (slope / value) ** 2,
        )
        sigma = np.where(wide, 0.5, self.sigma)
        a = order * shift - np.round(order * shift)
        x = np.arange(-12.0, 13.0)
        plain = np.sum(np.exp(-np.square(x) / (2 * sigma**2)), axis=1, keepdims=True)
        moved = np.exp(-np.square(x + a) / (2 * sigma**2))
        total = np.sum(moved, axis=1, keepdims=True)
        drift = -(x + a) * shift / sigma**2
        mean = np.sum(moved * drift, axis=1, keepdims=True) / total
        square = np.sum(moved * drift**2, axis=1, keepdims=True) / total
        narrow = (np.log(total / plain), mean, square - mean**2 - shift**2 / sigma**2)
        return (
            np.where(wide, log, narrow[0]),
            np.where(wide, first, narrow[1]),
            np.where(wide, second, narrow[2]),
        )

    def _log(self, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
        log = np.empty((len(self.sigma), len(frequencies)), dtype=np.complex128)
        error = np.empty(log.shape)
        wide = self.sigma[:, 0] >= _WIDE
        log[wide], error[wide] = _dual(self.sigma[wide], self.shift[wide], order, frequencies)
        log[~wide], error[~wide] = _direct(self.sigma[~wide], self.shift[~wide], order, frequencies)
        return log, error


def _dual(sigma: Reals, shift: Reals, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
    """The sum by Poisson's formula: 5 Gaussians of width sigma around multiples of 2 pi sigma^2 in u D; the rest is
    below e^-78."""
    rho, b = shift**2 / sigma**2, frequencies * np.abs(shift)
    period = 2 * math.pi * sigma**2
    nearest = np.round(-b / period)
    a = np.remainder(order * np.abs(shift), 1.0)
    angle = rho * (order + 0.5) * frequencies
    peak = -np.square(b + period * nearest) / (2 * sigma**2)
    rest = np.zeros(b.shape, dtype=np.complex128)
    size = np.zeros(b.shape)
    for step in (-2, -1, 1, 2):
        gauss = np.exp(-np.square(b + period * (nearest + step)) / (2 * sigma**2) - peak)
        turn = 2 * math.pi * step * a
        rest += gauss * (np.cos(turn) + 1j * np.sin(turn))
        size += gauss
    base = np.log1p(
        2 * np.exp(-2 * (math.pi * sigma) ** 2) + 2 * np.exp(-2 * (2 * math.pi * sigma) ** 2)
    )
    log = (
        rho * order * (order + 1) / 2
        + peak
        + 1j * (angle + 2 * math.pi * np.remainder(nearest * a, 1.0))
        + log_one_plus(rest.real, rest.imag)
        - base
    )
    modulus = np.maximum(np.abs(1 + rest), 1e-300)
    # The squares in the exponents move by 8 U times themselves, and by the cross terms of b and the period; that of the
    # nearest is the peak, which has no cross terms where the nearest multiple is 0.
    bend = U * (8 * b * (b + period * np.abs(nearest)) / sigma**2 + 16)
    sum_error = (
        size * (bend + 64 * U * (1 + np.abs(nearest))) + 64 * U * base * np.exp(base)
    ) / modulus
    error = (
        sum_error
        + np.where(nearest != 0, bend, 0.0)
        + U
        * (
            16 * np.abs(peak)
            + 8 * rho * order * (order + 1)
            + 8 * angle
            + 32 * np.abs(nearest) * (1 + np.abs(a))
        )
    )
    uncertain = ~(sum_error < 0.25)
    log = np.where(
        uncertain,
        np.real(log) - np.log(modulus) + np.log(modulus + 2 * sum_error * modulus) + 0j,
        log,
    )
    return log, np.where(uncertain, math.log(3.0) + error - sum_error, 2 * error)


def _direct(
    sigma: Reals, shift: Reals, order: float, frequencies: Reals
) -> tuple[Complexes, Reals]:
    """The sum over the integers: e^(-(x + a)^2 / (2 sigma^2)) e^(-i u D (x + a) / sigma^2), a = order D reduced to
    [-1/2, 1/2]."""
    log = np.empty((len(sigma), len(frequencies)), dtype=np.complex128)
    error = np.empty(log.shape)
    x = np.arange(-12.0, 13.0)
    for row in range(len(sigma)):
        s, d = float(sigma[row, 0]), abs(float(shift[row, 0]))
        whole = order * d
        a = whole - round(whole)
        exponent = -np.square(x + a) / (2 * s * s)
        weight = np.exp(exponent - np.max(exponent))
        turn = np.multiply.outer(frequencies, (x + a) * (d / s / s))
        value = np.cos(turn) @ weight - 1j * (np.sin(turn) @ weight)
        plain = float(np.sum(np.exp(-np.square(x) / (2 * s * s))))
        shiftless = d * d / (2 * s * s)
        total = float(np.sum(weight))
        sum_error = U * (
            96 * total
            + 8 * float(np.sum(weight * np.abs(exponent)))
            + 8 * frequencies * float(weight @ np.abs(x + a)) * d / (s * s)
        )
        # whole is rounded: a moves by U whole, which every term feels by |x + a| / s^2.
        sum_error = sum_error + 4 * U * whole * float(weight @ (np.abs(x + a) + d * 0)) / (s * s)
        modulus = np.maximum(np.abs(value), 1e-300)
        uncertain = ~(sum_error < 0.25 * modulus)
        base = shiftless * order * (order + 1) + float(np.max(exponent)) - math.log(plain)
        # t (t + 1) D^2 / (2 s^2) holds -u^2 D^2 / (2 s^2), which the square of the sum's own exponent cancels.
        angle = shiftless * (2 * order + 1) * frequencies
        log[row] = np.where(
            uncertain,
            base + np.log(modulus + 2 * sum_error) + 0j,
            base + np.log(modulus) + 1j * (angle + np.angle(value)),
        )
        fixed = U * (
            16 * shiftless * order * (order + 1)
            + 8 * angle
            + 8 * abs(base)
            + 48
            + 4 * whole * whole / (s * s)
        )
        error[row] = fixed + np.where(uncertain, math.log(3.0), 2 * sum_error / modulus)
    return log, error


BITS, ONE = 192, 1 << 192
DEEP, LARGEST = 95.0, 600.0


@lru_cache(maxsize=64)
def skellam(variance: float, shift: int) -> AtomicLoss:
    """The loss of noise moved by `shift` >= 1 against the noise."""
    falls = _falls(variance, shift)
    sums = [0, *accumulate(falls)]
    reach = next(place for place, fall in enumerate(sums) if fall > DEEP * ONE)
    deepest = sums[reach + shift] / ONE
    if not deepest < LARGEST:
        raise UnsupportedError(
            f"Skellam({variance!r}, shift={shift})",
            f"masses of e^-{deepest:.0f} are beyond e^-{LARGEST:.0f}",
            "Use more noise",
        )
    places = range(-reach, reach + shift + 1)
    weights = np.exp(
        [-sums[abs(place)] / ONE for place in range(-reach - shift, reach + shift + 1)]
    )
    # Ratios of neighbors fall, so that what is beyond the last is at most geometric.
    last = math.exp(-falls[reach + shift] / ONE)
    beyond = float(weights[-1]) * last / (1 - last)
    total = float(weights.sum())
    masses = weights / total
    losses = tuple((sums[abs(place)] - sums[abs(place - shift)]) / ONE for place in places)
    upper, lower = masses[: len(losses)], masses[shift:]
    outside = 2.1 * (float(masses[: shift + 1].sum()) + beyond / total)
    error = U * (64 + 16 * deepest) + 2.1 * beyond / total
    table = Atoms(
        tuple(upper.tolist()),
        tuple(lower.tolist()),
        losses,
        relative_error=error,
        omitted_mass=outside,
        log_ratio_relative_error=16 * U,
    )
    return AtomsAbove(table, SkellamMoment(table, variance, shift, reach, -falls[reach] / ONE))


@dataclass(frozen=True)
class SkellamMoment:
    """K of the noise moved by `shift`: the sum over the atoms, and bounds beyond them.

    On the left the losses are negative. On the right 1 / r_n = 2 (n + 1) / v + r_(n+1) < 2 (n + 1) / v + 1, so that
    e^(b L(x)) <= (1 + 2 x / v)^(b shift), while the masses fall at least by the ratio at `reach` from one integer to
    the next.

    Args:
        table: The atoms.
        variance: v.
        shift: The shift.
        reach: The last integer of the masses, before the shift.
        log_fall: log of the ratio there, good to 16 U of itself.
    """

    table: Atoms
    variance: float
    shift: int
    reach: int
    log_fall: float

    def __call__(self, exponent: float) -> float:
        p, _, losses = self.table.common
        most, start = exponent * float(losses[-1]), self.reach + self.shift + 1
        terms = np.exp(exponent * losses - max(most, 0.0)) * p
        growth = 2 * exponent * self.shift / (2 * start + self.variance)
        fall = self.log_fall * (1 - 32 * U) + growth * (1 + 32 * U)
        if not (fall < -1e-9 and most < 1e300):
            return math.inf
        log_beyond = math.log(p[-1]) + exponent * self.shift * math.log1p(2 * start / self.variance)
        log_beyond -= math.log(-math.expm1(fall))
        relative_error = self.table.relative_error + U * (
            4 * len(p) + 64 + 64 * abs(most) + 8 * abs(log_beyond)
        )
        parts = [
            math.log(float(terms.sum())) + max(most, 0.0),
            math.log(self.table.unplaced_mass),
            log_beyond,
        ]
        top = max(parts)
        return top + math.log(sum(math.exp(part - top) for part in parts)) + 2 * relative_error


def _falls(variance: float, shift: int) -> list[int]:
    """-ln r_n for n = 0, 1, ..., with r_n the quotient of neighboring Bessel functions, in fixed point, each good to 8
    U of itself."""
    count = math.ceil(14.5 * math.sqrt(variance)) + 120 + shift
    exact = Fraction(variance)
    unit = 2 * exact.denominator * ONE // exact.numerator
    ratio, falls = ONE // 2, [0] * count
    for place in range(2 * count, -1, -1):
        ratio = ONE * ONE // ((place + 1) * unit + ratio)
        if place < count:
            lost = (ONE - ratio) / ONE
            fall = -math.log1p(-lost) if lost < 0.5 else -math.log(ratio / ONE)
            numerator, denominator = fall.as_integer_ratio()
            falls[place] = (numerator << BITS) // denominator
    return falls
