"""The loss that dominates every epsilon-bounded-range mechanism: no atoms, one exponential density."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from dpcompose.contour import (
    Cumulants,
    Lattice,
    Line,
    Transform,
    blockwise,
    logarithm_of_excess,
    summed_line,
)
from dpcompose.loss.atom_moments import BoundedRangeMoments
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import BoundedRows, Loss, blocks, bounds_of_rows, merged
from dpcompose.numerics import Complexes, Reals, U
from dpcompose.proof import Ends, Field, ends
from dpcompose.values import Bound, around, up

SHARES = (0.5, 0.6, 0.75)
_ROWS, _FEW_ROWS, _ENTRIES = 256, 16, 1 << 19
"""Losses whose moments, and bounds, are taken at once; values of M of single rows that are held at once."""


@dataclass(frozen=True)
class BoundedRangeLoss(Loss):
    """Density e^((l - epsilon) / 2) / (2 (1 - e^-epsilon)) on (-epsilon, epsilon): the same in both orders.

    It is the pair whose profile is the pointwise supremum (1 - e^((e - epsilon) / 2))^2 / (1 - e^-epsilon),
    0 <= e <= epsilon, over the two-point losses t and t - epsilon, 0 <= t <= epsilon, of the bounded-range mechanisms.
    One answer attains it at every epsilon; several only stay below.

    Reference: [DongDurfeeRogers2020, Section 3]
    """

    epsilon: float

    @property
    def maximum(self) -> float:
        return self.epsilon

    @property
    def minimum(self) -> float:
        return -self.epsilon

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        return merged(group)

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """All losses of the family in the rows of transforms, some hundreds in each."""
        columns = np.array([(loss.epsilon, times) for loss, times in group], dtype=float)
        return [BoundedRangeSum(part[:, :1], part[:, 1:]) for part in blocks(columns, _ROWS)]

    @property
    def zcdp(self) -> float:
        """epsilon^2 / 8: of every bounded-range mechanism, which is less than of this dominating loss itself.

        Reference: [CesarRogers2021, Lemma 3.4]
        """
        return min(self.epsilon**2 / 8, self.epsilon * math.tanh(self.epsilon / 2)) * (1 + 16 * U)

    @classmethod
    @np.errstate(
        over="ignore", invalid="ignore"
    )  # at orders whose square overflows the largest loss counts
    def moments_below(cls, group: Sequence[tuple[Self, int]], orders: Reals) -> Reals:
        """Those of the two-point losses t and t - epsilon, the largest over t at each order.

        With b the order and a = b + 1, t has mass (e^epsilon - e^t) / (e^epsilon - 1), and e^t = b / a (e^epsilon + 1 /
        C), C = (e^(b epsilon) - 1) / (e^epsilon - 1), makes the moment the largest: its logarithm is
          K = a u(a) - b u(b) - u(1), u(y) = log(sinh(h) / h), h = y epsilon / 2.
        It is at most a b epsilon^2 / 8, and at most b epsilon.

        Reference: [DongDurfeeRogers2020, Section 3], [CesarRogers2021, Lemma 3.4]
        """
        epsilon, times = np.array([(loss.epsilon, count) for loss, count in group], dtype=float).T[
            :, :, None
        ]
        above, total = orders + 1, np.zeros(len(orders))
        for at in range(0, len(epsilon), _ROWS):
            rows, copies = epsilon[at : at + _ROWS], times[at : at + _ROWS]
            log = _log_sinhc(np.array([above, orders, np.ones_like(orders)])[:, None] * (rows / 2))
            ends = above * log[0], orders * log[1], log[2]
            moment = ends[0] - ends[1] - ends[2] + 32 * U * (ends[0] + ends[1] + ends[2])
            most = np.minimum(orders * rows, orders * above * np.square(rows) / 8) * (1 + 16 * U)
            total += (copies * np.fmin(moment, most)).sum(axis=0)
        return total * (1 + U * (16 + len(epsilon)))

    def profile(self, epsilon: float) -> Bound:
        """For negative epsilon by symmetry: delta(e) = 1 - e^e + e^e delta(-e)."""
        size = abs(epsilon)
        if self.epsilon == 0 or size >= self.epsilon * (1 + 2 * U):
            inner = Bound(0.0, 0.0)
        else:
            root = max(-math.expm1((size - self.epsilon) / 2), 0.0)
            # The root is good to its own roundings and to U of the two exponents, squared and divided.
            error = 8 * U * root + U * (size + self.epsilon)
            scale = 1 / -math.expm1(-self.epsilon) * (1 + 16 * U)
            inner = Bound(
                max((root - error), 0.0) ** 2 * scale * (1 - 64 * U),
                up((root + error) ** 2 * scale),
            )
        if epsilon >= 0:
            return inner
        base = -math.expm1(epsilon)
        low, high = base + math.exp(epsilon) * inner.lower, base + math.exp(epsilon) * inner.upper
        return Bound(around(low, relative=16 * U).lower, around(high, relative=16 * U).upper)

    def ball(self, field: Field) -> Ends:
        # Perhaps multiplied by the size of a group.
        return ends(
            self.epsilon,
            lambda epsilon: BoundedRangeMoments(field, epsilon),
            field=field,
            ulps=1,
            rising=True,
        )


def attained_loss(epsilon: float, at: int) -> AtomicLoss:
    """The attained loss of number `at`, from 0 to 2, in its first order."""
    return attained_losses(epsilon)[at][0]


def attained_losses(epsilon: float) -> list[tuple[AtomicLoss, AtomicLoss]]:
    """Attained losses, both orders: t at probability (1 - e^(t - epsilon)) / (1 - e^-epsilon), else t - epsilon."""
    found: list[tuple[AtomicLoss, AtomicLoss]] = []
    for share in SHARES:
        t = share * epsilon
        high = -math.expm1(t - epsilon) / -math.expm1(-epsilon)
        low = math.exp(t - epsilon) * -math.expm1(-t) / -math.expm1(-epsilon)
        under = high * math.exp(-t), low * math.exp(epsilon - t)
        # t itself is rounded; the losses are those of the masses, which are good to 32 units.
        lattice = Lattice(epsilon, t)
        loss = AtomicLoss(
            Atoms((high, low), under, (t, t - epsilon), lattice, 64 * U * (1 + epsilon))
        )
        found.append((loss, loss.reverse))
    return found


def _log_sinhc(h: Reals) -> Reals:
    """log(sinh(h) / h) for h > 0, relative error at most 8 U."""
    near, far = np.minimum(h, 0.5), np.maximum(h, 0.5)
    square = near * near
    rest = 1 + square / 110 * (1 + square / 156 * (1 + square / 210))
    series = square / 6 * (1 + square / 20 * (1 + square / 42 * (1 + square / 72 * rest)))
    return np.where(h <= 0.5, np.log1p(series), far + np.log(-np.expm1(-2 * far) / (2 * far)))


@dataclass(frozen=True, eq=False)
class BoundedRangeSum(BoundedRows):
    """M = (sinh(a epsilon) / (2 a sinh(epsilon / 2)))^times with a = t + 1/2, multiplied over rows."""

    def curve(self, orders: Reals) -> Cumulants:
        a, width = orders + 0.5, self.epsilon
        product = a * width
        variance = width**2 / 3
        near = variance / 2 * orders * (orders + 1), variance * a, variance + 0 * a
        with np.errstate(all="ignore"):
            far = np.exp(-2 * product)
            rest = -np.expm1(-2 * product)
            log_m = orders * width + np.log(rest / -np.expm1(-width)) - np.log(2 * a)
            spread = np.maximum(
                1 / a**2 - 4 * width**2 * far / rest**2, 1e-3 * width**2 / (1 + product**2)
            )
            wide = log_m, width * (1 + far) / rest - 1 / a, spread
        rows = (np.where(product < 1e-3, one, other) for one, other in zip(near, wide, strict=True))
        return Cumulants(*((self.times * part).sum(axis=0) for part in rows))

    def line(self, order: float, frequencies: Reals) -> Line:
        most = max(_ENTRIES // len(frequencies), 1)
        if len(self.epsilon) > most:
            parts = [slice(at, at + most) for at in range(0, len(self.epsilon), most)]
            return summed_line(
                (BoundedRangeSum(self.epsilon[at], self.times[at]) for at in parts),
                order,
                frequencies,
            )
        log, error = self._log(order, frequencies)
        size = self.times * np.abs(log)
        total = (self.times * error + (3 + len(self.epsilon)) * U * size).sum(axis=0)
        return Line((self.times * log).sum(axis=0), total)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        log, error = self._log(order, np.concatenate([[0.0], edges]))
        magnitude = np.exp(log.real[:, 1:] - log.real[:, :1] + error[:, 1:] + error[:, :1])
        # |sinh(a epsilon)| <= cosh of the real part, and |a| >= u.
        flat = (order + 0.5) / np.tanh((order + 0.5) * self.epsilon) / edges * (1 + 16 * U)
        bounds = np.minimum(
            blockwise(magnitude, self.epsilon**2, edges), np.log(np.minimum(flat, 1.0))
        )
        return (self.times * bounds).sum(axis=0)

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """The same bound by 1 / u, and |sinh(a epsilon)| itself, of a few rows at a time."""
        real = order + 0.5

        def bound(width: Reals, times: Reals, u: Reals) -> Reals:
            steep = 1 / np.square(np.sinh(np.minimum(real * width, 350.0)))
            square = (1 + np.square(np.sin(width * u)) * steep) / (1 + np.square(u / real))
            return (times * 0.5 * np.log(np.minimum(square * (1 + 1e-9), 1.0))).sum(axis=0)

        rows = self.epsilon, self.times
        return bounds_of_rows(bound, rows, -(-len(self.epsilon) // _FEW_ROWS))

    def _log(self, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
        """log M of one copy of each row and its error, shape (m, n)."""
        near = ((order + 0.5) * self.epsilon <= 1)[:, 0] & (order > -0.5)
        log = np.empty((len(near), len(frequencies)), dtype=np.complex128)
        error = np.empty(log.shape)
        for rows, found in ((near, _near_one), (~near, _far_from_one)):
            if rows.any():
                log[rows], error[rows] = found(self.epsilon[rows], order, frequencies)
        return log, error


def _far_from_one(width: Reals, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
    """log M of one copy where M is not close to 1: sinh(a w) / (2 a sinh(w / 2)) = e^(t w) (1 - e^(-2 a w)) / (2 a (1 -
    e^-w))."""
    a = order + 0.5 + 1j * frequencies
    angle = 2 * width * frequencies
    far = np.exp(-2 * (order + 0.5) * width)
    bracket = 1 - far * (np.cos(angle) - 1j * np.sin(angle))
    log = (
        (order + 1j * frequencies) * width
        + np.log(bracket)
        - np.log(2 * a)
        - np.log(-np.expm1(-width))
    )
    size = 64 + 16 * np.abs(log) + 8 * np.abs(order + 1j * frequencies) * width
    return log, U * (size + (16 + 8 * angle) * far / np.abs(bracket))


def _near_one(width: Reals, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
    """log M of one copy where M is close to 1, from M - 1 through s(z) = sinh z / z - 1: M = (1 + s(a w)) / (1 + s(w /
    2))."""
    top, top_error = _sinhc_minus_one((order + 0.5 + 1j * frequencies) * width)
    base = _sinhc_minus_one(width / 2 + 0j)[0].real
    excess = (top - base) / (1 + base)
    result = logarithm_of_excess(
        excess.real, excess.imag, top_error + 64 * U * (np.abs(top) + base)
    )
    return result.log, result.error


def _sinhc_minus_one(z: Complexes) -> tuple[Complexes, Reals]:
    """sinh(z) / z - 1 and its error: a series for |z| <= 1, else the definition."""
    small = np.where(np.abs(z) <= 1, z, 0)
    square = small * small
    series = (
        square
        / 6
        * (
            1
            + square
            / 20
            * (
                1
                + square
                / 42
                * (1 + square / 72 * (1 + square / 110 * (1 + square / 156 * (1 + square / 210))))
            )
        )
    )
    large: Complexes = np.where(np.abs(z) <= 1, 1, z)
    direct = np.sinh(large) / large - 1
    near = np.abs(z) <= 1
    error = np.where(
        near,
        64 * U * np.abs(square),
        U
        * (64 + 16 * np.abs(large))
        * (np.cosh(np.minimum(np.abs(large.real), 700.0)) / np.abs(large) + 1),
    )
    return np.where(near, series, direct), error
