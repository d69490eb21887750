"""Copies of one Laplace loss: the profile as an exponential spline."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.contour import invert
from dpcompose.contour.transform import Transform
from dpcompose.guarantee.failure import mirrored
from dpcompose.loss.base import Loss
from dpcompose.loss.laplace_spline import LaplaceSpline
from dpcompose.loss.spline_root import root
from dpcompose.numerics.bound import Bound, Certificate, down, up
from dpcompose.numerics.elementary import U

_CERTIFICATE = Certificate("exponential spline, a sum of positive terms")
_CONTOUR = Certificate("contour")
_TOLERANCE = 1e-10
# Of one value of the profile: a line for each.
_COARSE = 1e-9
_ULPS = 2


def suits(epsilon: float, times: int) -> bool:
    """Whether the spline is short; beyond, the contour is narrow and no slower."""
    return epsilon <= 100.0 and (times <= 64 or (times <= 1000 and times * epsilon <= 45.0))


@dataclass(frozen=True)
class LaplaceFoldLoss(Loss):
    """The sum of `times` >= 2 copies of `LaplaceLoss(epsilon)`, epsilon good to a few units of roundoff.

    An epsilon that is larger by d moves the sum up by at most d times the copies. Where the spline has too many terms
    the contour answers.
    """

    epsilon: float
    times: int

    @property
    def maximum(self) -> float:
        return self.epsilon * self.times

    @property
    def minimum(self) -> float:
        return -self.epsilon * self.times

    def transform(self, times: int) -> Transform:
        from dpcompose.loss.laplace import LaplaceSum

        return LaplaceSum(np.array([[self.epsilon]]), np.array([[float(self.times * times)]]))

    @property
    def closed(self) -> bool:
        return True

    @cached_property
    def _spline(self) -> LaplaceSpline:
        return LaplaceSpline(self.epsilon, self.times)

    @property
    def _doubt(self) -> float:
        """How far the sum may lie from that of the exact epsilon, roundings of the place included."""
        return 4 * U * (_ULPS + 2) * self.maximum

    def profile(self, epsilon: float) -> Bound:
        if epsilon < 0:
            return mirrored(epsilon, self._positive, _CERTIFICATE)
        return self._positive(epsilon)

    def _positive(self, epsilon: float) -> Bound:
        """The profile at a loss >= 0."""
        if epsilon >= self.maximum * (1 + 8 * U):
            return Bound(0.0, 0.0, _CERTIFICATE)
        depth = self.maximum - epsilon
        places = np.array([depth - self._doubt, depth + self._doubt]) / (2 * self.epsilon)
        low = max(float(places[0]), 0.0)
        places[0] = low if low > 0 else places[1]
        found = self._spline.values(places, self._spline.saddle(float(places[1])))
        if found is None:
            reading = invert.value_at(self.transform(1), epsilon, tolerance=_COARSE)
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
            upper = 0.0 if none else min(upper + self._doubt, most)
            return Bound(max(lower - self._doubt, 0.0), upper, _CERTIFICATE)
        reading = invert.point_of(self.transform(1), delta, delta, tolerance=_TOLERANCE)
        upper = min(max(reading.upper, 0.0), most)
        return Bound(min(max(reading.lower, 0.0), upper), upper, _CONTOUR)
