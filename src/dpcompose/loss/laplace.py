"""The loss of Laplace noise: an atom at either end and a smooth part between them, or D + 1 atoms on the integers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import ClassVar, Self

import numpy as np

from dpcompose.contour import Lattice, Transform, point_of, value_at
from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import mirrored_epsilon
from dpcompose.loss.atom_moments import DiscreteLaplaceLaw, LaplaceMoments
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.base import Loss
from dpcompose.loss.laplace_spline import LaplaceSpline, root
from dpcompose.loss.laplace_sum import LaplaceSum
from dpcompose.loss.lattice_noise import Noise
from dpcompose.loss.sampled_laplace import LARGEST_EPSILON, LARGEST_RATE, SampledLaplaceLoss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.numerics import U
from dpcompose.proof import Ends, Field, ends
from dpcompose.values import Bound, Certificate, around, down, up

CELLS = 2048
_CERTIFICATE = Certificate("exponential spline, a sum of positive terms")
_CONTOUR = Certificate("contour")
_TOLERANCE = 1e-10
_VALUE_TOLERANCE = 1e-9
"""For one value of the profile, which has a line of its own."""
_ULPS = 2


@lru_cache(maxsize=1 << 12)
def _largest_quotient(over: float, under: float) -> Fraction:
    """The larger of the two quotients that the double and its shortest decimal give."""
    return max(Fraction(over) / Fraction(under), Fraction(repr(over)) / Fraction(repr(under)))


@dataclass(frozen=True)
class LaplaceLoss(Loss):
    """+epsilon with probability 1/2, -epsilon with e^-epsilon / 2, density e^((l - epsilon) / 2) / 4 between.

    epsilon = sensitivity / scale, the `quotient` where it is known, good to `ulps` units of roundoff. delta(e) =
    1 - e^((e - epsilon) / 2) for |e| <= epsilon. Both orders are the same.
    """

    epsilon: float
    ulps: int = 1
    quotient: tuple[float, float] | None = None
    alike: ClassVar[bool] = True
    has_least_rho: ClassVar[bool] = True

    @property
    def additive_noise(self) -> Noise:
        return Noise(self.epsilon, 1.0, True, False, self.ulps)

    @property
    def maximum(self) -> float:
        return self.epsilon

    @property
    def minimum(self) -> float:
        return -self.epsilon

    @property
    def top(self) -> Fraction | None:
        if self.quotient is None:
            return Fraction(self.epsilon) * (1 + Fraction(2 * self.ulps, 2**53))
        return _largest_quotient(*self.quotient)

    @property
    def largest(self) -> Bound:
        error = 2 * self.ulps * U * self.epsilon
        return Bound(self.epsilon - error, self.epsilon + error)

    @property
    def zcdp(self) -> float:
        """epsilon - 1 + e^-epsilon, the divergence in the limit of order 1: no other order has a larger D_a / a.

        With c = 2 a - 1, the derivative by epsilon of a (a - 1) times that, less (a - 1) D_a, is a (a - 1) times
        (1 - e^-epsilon) - 2 / (1 + c coth(c epsilon / 2)). y coth y grows, and at c = 1 the difference is 0.
        """
        least = self.epsilon + math.expm1(-self.epsilon) + 4 * U * self.epsilon
        return min(least, self.epsilon * math.tanh(self.epsilon / 2)) * (
            1 + (16 + 4 * self.ulps) * U
        )

    def profile(self, epsilon: float) -> Bound:
        if epsilon <= -self.epsilon:
            return around(-math.expm1(epsilon), relative=8 * U)
        if epsilon >= self.epsilon * (1 + 2 * U):
            return Bound(0.0, 0.0)
        error = U * (abs(epsilon) + 2 * self.epsilon)
        value = around(-math.expm1((epsilon - self.epsilon) / 2), relative=8 * U, absolute=error)
        return Bound(max(value.lower, 0.0), max(value.upper, 0.0))

    def enclosing(self) -> tuple[Atoms, Atoms] | None:
        """The smooth part in cells: a cell's two masses moved to its ends (above) or merged into an outcome (below)."""
        if self.epsilon > 300:
            return None
        edges = self.epsilon * np.linspace(-1.0, 1.0, CELLS + 1)
        width = np.diff(edges)
        # Under Q the density is e^((-l - epsilon) / 2) / 4; under P it is e^l times that.
        q = np.exp(-(edges[1:] + self.epsilon) / 2) * np.expm1(width / 2) / 2
        p = np.exp((edges[:-1] - self.epsilon) / 2) * np.expm1(width / 2) / 2
        # Both masses are kept: the share that goes right is (p - q e^left) / (e^right - e^left), without cancellation.
        right = (
            np.exp(-(edges[1:] + self.epsilon) / 2) / 2 * np.expm1(width / 2) ** 2 / np.expm1(width)
        )
        far = math.exp(-self.epsilon) / 2
        lower = (
            np.concatenate([[0.5], np.zeros(CELLS)])
            + np.concatenate([q - right, [0.0]])
            + np.concatenate([[0.0], right])
        )
        lower[-1] += far
        above = Atoms(tuple(lower * np.exp(edges)), tuple(lower), tuple(edges), None, 256 * U)
        ratio = (edges[1:] + edges[:-1]) / 2
        below = Atoms(
            (far, *p, 0.5), (0.5, *q, far), (-self.epsilon, *ratio, self.epsilon), None, 256 * U
        )
        return above, below

    def sampled(self, rate: float, *, remove: bool) -> Loss | None:
        if not (self.epsilon <= LARGEST_EPSILON and rate <= LARGEST_RATE):
            return None
        return SampledLaplaceLoss(self, self.epsilon, self.ulps, rate, remove)

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        """Copies of one and the same loss are a spline, unless they are so many that the contour is as good."""
        (loss, times), *others = group
        if others or times == 1:
            return group
        return [(LaplaceFoldLoss(loss.epsilon, times), 1)] if _suits(loss.epsilon, times) else group

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        columns = np.array([(loss.epsilon, times) for loss, times in group], dtype=float)
        return [LaplaceSum(*columns.T[:, :, None].copy())]

    def ball(self, field: Field) -> Ends:
        # A quotient of two floats, perhaps multiplied by the size of a group.
        return ends(
            self.epsilon,
            lambda epsilon: LaplaceMoments(field, epsilon),
            field=field,
            ulps=2,
            rising=True,
        )


def _suits(epsilon: float, times: int) -> bool:
    """Whether the spline of so many copies is short enough; with more, a contour is as narrow and no slower."""
    return epsilon <= 100.0 and (times <= 64 or (times <= 1000 and times * epsilon <= 45.0))


@dataclass(frozen=True)
class LaplaceFoldLoss(Loss):
    """The sum of `times` >= 2 copies of `LaplaceLoss(epsilon)`, epsilon good to a few units of roundoff.

    An epsilon that is larger by d moves the sum up by at most d times the copies. Where the spline has too many terms
    the contour answers.
    """

    epsilon: float
    times: int
    alike: ClassVar[bool] = True

    @property
    def maximum(self) -> float:
        return self.epsilon * self.times

    @property
    def minimum(self) -> float:
        return -self.epsilon * self.times

    def transform(self, times: int) -> Transform:
        return LaplaceSum(np.array([[self.epsilon]]), np.array([[float(self.times * times)]]))

    @cached_property
    def _spline(self) -> LaplaceSpline:
        return LaplaceSpline(self.epsilon, self.times)

    @property
    def _error(self) -> float:
        """A bound on the distance between the computed sum and the profile at the exact epsilon, with the rounding of
        epsilon's place."""
        return 4 * U * (_ULPS + 2) * self.maximum

    def profile(self, epsilon: float) -> Bound:
        if epsilon < 0:
            return mirrored_epsilon(epsilon, self._positive, _CERTIFICATE)
        return self._positive(epsilon)

    def _positive(self, epsilon: float) -> Bound:
        """The profile at a loss >= 0."""
        if epsilon >= self.maximum * (1 + 8 * U):
            return Bound(0.0, 0.0, _CERTIFICATE)
        depth = self.maximum - epsilon
        places = np.array([depth - self._error, depth + self._error]) / (2 * self.epsilon)
        low = max(float(places[0]), 0.0)
        places[0] = low if low > 0 else places[1]
        found = self._spline.values(places, self._spline.saddle(float(places[1])))
        if found is None:
            reading = value_at(self.transform(1), epsilon, tolerance=_VALUE_TOLERANCE)
            return Bound(reading.lower, reading.upper, _CONTOUR)
        lower = float(found[0][0]) if low > 0 else 0.0
        return Bound(max(down(lower), 0.0), min(up(float(found[1][1])), 1.0), _CERTIFICATE)

    def inverse(self, delta: float) -> Bound:
        if delta >= 1:
            return Bound(0.0, 0.0, _CERTIFICATE)
        most = self.maximum * (1 + 8 * U)
        if delta == 0:
            return Bound(self.maximum * (1 - 8 * U), most, _CERTIFICATE)
        found = root(self._spline, delta)
        if found is not None:
            lower, upper = found
            none = upper == 0 and self._positive(0.0).upper <= delta
            upper = 0.0 if none else min(upper + self._error, most)
            return Bound(max(lower - self._error, 0.0), upper, _CERTIFICATE)
        reading = point_of(self.transform(1), delta, delta, tolerance=_TOLERANCE)
        upper = min(max(reading.upper, 0.0), most)
        return Bound(min(max(reading.lower, 0.0), upper), upper, _CONTOUR)


LARGEST_LOSS = 600.0


def discrete_laplace(scale: float, shift: int) -> Loss:
    """The loss at an integer shift D of noise like e^(-a |x|), a = 1 / scale: the same in both orders.

    It is a (D - 2 x) for x = 0 .. D.

    P(a D) = 1 / (1 + e^-a), P(-a D) = e^(-a D) / (1 + e^-a), P(a (D - 2 x)) = tanh(a / 2) e^(-a x) between. For D = 1
    it is randomized response.
    """
    rate, shift = 1 / scale, abs(shift)
    if shift == 1:
        return TwoPointLoss(rate, ulps=0 if math.frexp(scale)[0] == 0.5 else 1)
    if not rate * shift <= LARGEST_LOSS:
        raise UnsupportedError(
            f"DiscreteLaplace({scale!r}, shift={shift})",
            f"its loss of {rate * shift:.4g} nats is beyond {LARGEST_LOSS:g}",
            "Use BlackBox(shift / scale)",
        )
    whole = 1 / (1 + math.exp(-rate))
    masses = [
        whole,
        *(math.tanh(rate / 2) * math.exp(-rate * x) for x in range(1, shift)),
        whole * math.exp(-rate * shift),
    ]
    ratios = tuple(rate * (shift - 2 * x) for x in range(shift + 1))
    relative_error = U * (24 + 4 * rate * shift)
    law = DiscreteLaplaceLaw(scale, shift)
    lattice = Lattice(2 * rate, rate * shift)
    return AtomicLoss(
        Atoms(tuple(masses), tuple(reversed(masses)), ratios, lattice, relative_error, law=law)
    )
