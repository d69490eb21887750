"""The loss that dominates every (epsilon, delta)-private mechanism: +epsilon, -epsilon, or infinite."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Self

import numpy as np

from dpcompose.contour import Cumulants, Lattice, Line, Transform, blockwise
from dpcompose.guarantee import homogeneous_delta, homogeneous_epsilon
from dpcompose.loss.atom_moments import PromiseLaw, TwoPointMoments
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import BoundedRows, Loss, both_readings, bounds_of_rows
from dpcompose.numerics import Reals, U
from dpcompose.proof import Ball, Ends, Field, Moments, ends
from dpcompose.values import Bound

_MOST_VARIANCE = 5e9
"""Of the number of answers with one of the losses; ten deviations to either side are then a million terms."""
_MOST_LISTED = 1 << 20
"""Copies whose outcomes may be listed."""
_HUGE = 30.0
"""Above this (t + 1) epsilon the moment is e^(t epsilon) up to the last digits."""


@dataclass(frozen=True)
class TwoPointLoss(Loss):
    """+epsilon with probability (1 - delta) / (1 + e^-epsilon), -epsilon with (1 - delta) / (1 + e^epsilon), else inf.

    The same in both orders. `times` independent copies are still in closed form.

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """

    epsilon: float
    delta: float = 0.0
    times: int = 1
    ulps: int = 0
    has_least_rho: ClassVar[bool] = True

    @property
    def infinite_mass(self) -> float:
        if self.times == 1 or self.delta == 1:
            return self.delta
        return -math.expm1(self.times * math.log1p(-self.delta))

    @property
    def infinite_relative_error(self) -> float:
        return 0.0 if self.times == 1 else super().infinite_relative_error

    @property
    def maximum(self) -> float:
        return self.times * self.epsilon

    @property
    def top(self) -> Fraction:
        largest = both_readings(self.epsilon)
        largest = largest if self.times == 1 else self.times * largest
        return largest * (1 + Fraction(2 * self.ulps, 2**53)) if self.ulps else largest

    @property
    def minimum(self) -> float:
        return -self.times * self.epsilon

    def transform(self, times: int) -> Transform:
        return TwoPointSum(np.array([[self.epsilon]]), np.array([[float(self.times * times)]]))

    @property
    def has_profile(self) -> bool:
        """Whether the binomial masses that matter are few enough to be added one by one."""
        low = math.exp(-self.epsilon)
        return self.times * low / (1 + low) ** 2 < _MOST_VARIANCE

    def profile(self, epsilon: float) -> Bound:
        return self._between(
            lambda end: homogeneous_delta(epsilon, epsilon=end, delta=self.delta, times=self.times)
        )

    def inverse(self, delta: float) -> Bound:
        return self._between(
            lambda end: homogeneous_epsilon(delta, epsilon=end, delta=self.delta, times=self.times)
        )

    def _between(self, answer: Callable[[float], Bound]) -> Bound:
        """Bounds on a quantity that increases with epsilon, from its values at both ends of epsilon."""
        if self.ulps == 0:
            return answer(self.epsilon)
        low, high = (answer(end) for end in self._ends)
        return Bound(low.lower, high.upper, high.certificate)

    @property
    def _ends(self) -> tuple[float, float]:
        """The smallest and the largest epsilon that the stated one may be, which is known to `ulps` units of roundoff."""
        spread = 2 * U * self.ulps
        return self.epsilon * (1 - spread), self.epsilon * (1 + spread)

    @property
    def support(self) -> int:
        if self.times == 1:
            return 4 if self.delta > 0 else 2
        return self.times + 1 if self.delta == 0 and self.times < _MOST_LISTED else 0

    def atoms(self) -> Atoms:
        """One copy: +epsilon, -epsilon and two outcomes that one measure lacks; several without delta: a binomial."""
        if self.times > 1:
            return self._binomial()
        high, low = (
            1 / (1 + math.exp(-self.epsilon)),
            math.exp(-self.epsilon) / (1 + math.exp(-self.epsilon)),
        )
        rest = 1 - self.delta
        upper, lower = [rest * high, rest * low], [rest * low, rest * high]
        ratio = [self.epsilon, -self.epsilon]
        if self.delta > 0:
            upper, lower, ratio = (
                [*upper, self.delta, 0.0],
                [*lower, 0.0, self.delta],
                [*ratio, math.inf, -math.inf],
            )
        lattice = Lattice(2 * self.epsilon, self.epsilon) if self.epsilon > 0 else None
        law = PromiseLaw(self.epsilon, self.delta) if self.ulps == 0 else None
        relative_error = U * (24 + 4 * self.ulps * self.epsilon)
        return Atoms(
            tuple(upper),
            tuple(lower),
            tuple(ratio),
            lattice,
            relative_error,
            law=law,
            log_ratio_relative_error=24 * U,
        )

    def _binomial(self) -> Atoms:
        """`times` copies of the two points, by the logarithms of their masses."""
        high, ways = np.arange(self.times + 1.0), [1]
        for count in range(self.times):
            ways.append(ways[-1] * (self.times - count) // (count + 1))
        common = np.array([math.log(number) for number in ways]) - self.times * math.log1p(
            math.exp(-self.epsilon)
        )
        logs = common - (self.times - high) * self.epsilon
        ratios, masses = self.epsilon * (2.0 * high - self.times), np.exp(logs)
        relative_error = U * (16 + 8 * self.times + 4 * self.times * self.epsilon * (1 + self.ulps))
        return Atoms(
            tuple(masses.tolist()),
            tuple(masses[::-1].tolist()),
            tuple(ratios.tolist()),
            None,
            relative_error,
            log_ratio_relative_error=U * (8 + 2 * self.ulps),
            log_upper=tuple(logs.tolist()),
        )

    def sampled(self, rate: float, *, remove: bool) -> Loss | None:
        if self.times > 4096 or (self.times > 1 and self.delta > 0):
            return None
        return AtomicLoss(self.atoms().sampled(rate, remove=remove))

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        merged: dict[tuple[float, float, int], int] = defaultdict(int)
        for loss, times in group:
            merged[loss.epsilon, loss.delta, loss.ulps] += loss.times * times
        return [
            (TwoPointLoss(epsilon, delta, times, ulps), 1)
            for (epsilon, delta, ulps), times in merged.items()
        ]

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        merged: dict[float, int] = defaultdict(int)
        for loss, times in group:
            if loss.epsilon > 0:
                merged[loss.epsilon] += loss.times * times
        if not merged:
            return []
        epsilon, times = (
            np.array(list(merged)),
            np.array([float(times) for times in merged.values()]),
        )
        return [TwoPointSum(epsilon[:, None], times[:, None])]

    def ball(self, field: Field) -> Ends:
        def make(epsilon: Ball) -> Moments:
            return TwoPointMoments(field, epsilon, field.exact(self.delta), self.times)

        return ends(self.epsilon, make, field=field, ulps=self.ulps, rising=True)


@dataclass(frozen=True, eq=False)
class TwoPointSum(BoundedRows):
    """The sum of losses of randomized response: each row has `times` losses of +-epsilon, shape (m, 1).

    The moment E e^(t L) is the product of ((e^((t + 1) epsilon) + e^(-t epsilon)) / (1 + e^epsilon))^times over rows.
    """

    @property
    def lattice(self) -> Lattice | None:
        if len(self.epsilon) > 1:
            return None
        epsilon = float(self.epsilon[0, 0])
        return Lattice(2 * epsilon, epsilon * float(self.times[0, 0]))

    def curve(self, orders: Reals) -> Cumulants:
        half = (orders + 0.5) * self.epsilon
        rows = (
            self._log_moment(orders),
            self.epsilon * np.tanh(half),
            self.epsilon**2 / np.cosh(np.minimum(half, 350.0)) ** 2,
        )
        return Cumulants(*((self.times * part).sum(axis=0) for part in rows))

    def line(self, order: float, frequencies: Reals) -> Line:
        log_modulus, argument, error = self._log(order, frequencies)
        real = self.times * (self._log_moment(order) + log_modulus)
        imaginary = self.times * argument
        error = (
            self.times * error
            + 4 * U * (np.abs(real) + np.abs(imaginary))
            + self._error_units(order) * U * self.times * self._log_moment(order)
        )
        rows = U * len(self.epsilon)
        error = error + rows * (np.abs(real) + np.abs(imaginary))
        return Line(np.sum(real, axis=0) + 1j * np.sum(imaginary, axis=0), np.sum(error, axis=0))

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """log |phi| of a few rows at a time, with a margin for its rounding."""

        def bound(epsilon: Reals, times: Reals, steep: Reals, u: Reals) -> Reals:
            square = 1 - np.minimum(np.sin(epsilon * u) / steep, 1.0) ** 2
            return np.sum(
                times * 0.5 * np.log(square * (1 + 1e-12) + 1e-14 * (1 + epsilon * u)), axis=0
            )

        steep = np.cosh(np.minimum((order + 0.5) * self.epsilon, 350.0))
        rows = self.epsilon, self.times, steep
        return bounds_of_rows(bound, rows, len(self.epsilon) // 8)

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        log_modulus, _, error = self._log(order, edges)
        magnitude = np.exp(np.minimum(log_modulus + error, 0.0))
        half = np.minimum((order + 0.5) * self.epsilon, 350.0)
        variance = (self.epsilon / np.cosh(half)) ** 2 * (1 + 1e-9)
        return np.sum(self.times * blockwise(magnitude, variance, edges), axis=0)

    def _log_moment(self, order: Reals | float) -> Reals:
        """K per copy: through M - 1 unless that is huge, relative error at most `_error_units` U either way."""
        epsilon = self.epsilon
        small = np.minimum(epsilon, _HUGE / (order + 1))
        near = np.log1p(
            np.expm1(order * small)
            * np.expm1((order + 1) * small)
            * np.exp(-order * small)
            / (1 + np.exp(small))
        )
        far = (
            order * epsilon
            + np.log1p(np.exp(-(2 * order + 1) * epsilon))
            - np.log1p(np.exp(-epsilon))
        )
        return np.where((order + 1) * epsilon <= _HUGE, near, far)

    def _error_units(self, order: float) -> Reals:
        """Each exponential errs by the rounding of its exponent and 4 U."""
        return 48 + 4 * np.minimum((order + 1) * self.epsilon, _HUGE)

    def _log(self, order: float, frequencies: Reals) -> tuple[Reals, Reals, Reals]:
        """log |phi|, arg phi and their joint error for phi = M(order + iu) / M(order), rows by frequencies."""
        angle = self.epsilon * frequencies
        half = np.minimum((order + 0.5) * self.epsilon, 350.0)
        sine, cosine = np.sin(angle), np.cos(angle)
        log_modulus = 0.5 * np.log1p(-np.minimum((sine / np.cosh(half)) ** 2, 1 - 1e-300))
        argument = np.arctan2(np.tanh(half) * sine, cosine)
        modulus_square = np.maximum(np.tanh(half) ** 2, cosine**2)
        error = 32 * U * (angle * np.minimum(angle, 1.0) / modulus_square + np.abs(argument))
        return log_modulus, argument, error
