"""The loss of Gaussian noise on a Poisson sample when a record is replaced.

The pair is (1 - q) N(0, s^2) + q N(-1, s^2) against the same with +1: a mixture against its mirror image. With
r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and x ~ N(0, s^2), the densities are n(x) r(-x) and n(x) r(x), and the loss is
ln r(-x) - ln r(x).

Reference: [Lebeda2024, Proposition 13]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from scipy.special import log_ndtr, ndtr

from dpcompose.contour import Transform
from dpcompose.loss.base import Loss
from dpcompose.loss.gaussian_mixture import GaussianMixture, OpposedMixtures
from dpcompose.loss.mixture_loss import MixtureLoss
from dpcompose.loss.sampled_gaussian import ReplacedMoments
from dpcompose.numerics import U
from dpcompose.proof import Ends, Field, ends
from dpcompose.values import Bound, up


@dataclass(frozen=True)
class ReplacedGaussianLoss(Loss):
    """The same in both orders, by the symmetry x -> -x.

    Args:
        noise: sigma / sensitivity, > 0, good to one unit of roundoff.
        rate: The sampling rate, in (0, 1).
    """

    noise: float
    rate: float

    @property
    def maximum(self) -> float:
        return math.inf

    @property
    def minimum(self) -> float:
        return -math.inf

    @property
    def unplaced_mass(self) -> float:
        return self._mixture.infinite_error

    @cached_property
    def _mixture(self) -> MixtureLoss:
        """(1 - q) N(0, 1) + q N(1 / s, 1) against its mirror image, the mean good to two roundings."""
        one, lost = GaussianMixture((1 / self.noise,), ulps=2).sampled(self.rate)
        return MixtureLoss(((1.0, OpposedMixtures(one, one)),), infinite_error=2 * lost)

    def transform(self, times: int) -> Transform:
        return self._mixture.transform(times)

    @classmethod
    def pool(cls, group: Sequence[tuple[ReplacedGaussianLoss, int]]) -> Sequence[Transform]:
        return MixtureLoss.pool([(loss._mixture, times) for loss, times in group])

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        """P(x < c) - e^epsilon Q(x < c) at the point c where the loss is epsilon.

        c = s^2 (asinh(-A sinh(epsilon / 2)) - epsilon / 2), A = (1 - q) / q e^(1 / (2 s^2)). A test at another c would
        be worse only to second order in its distance, so that the rounding of c does not matter next to that of the
        four terms.
        """
        s, q = self.noise, self.rate
        half = epsilon / 2
        steep = math.log1p(-q) - math.log(q) + 1 / (2 * s * s)
        c = s * s * (_asinh_scaled(steep, half) - half)
        plus = ((1 - q, c / s), (q, (c + 1) / s))
        minus = ((math.log1p(-q), c / s), (math.log(q), (c - 1) / s))
        # Where the loss is above epsilon, e^epsilon Q is below P: no exponent is positive.
        values = [weight * _below(z) for weight, z in plus]
        values += [
            -math.exp(min(epsilon + log_weight + float(log_ndtr(z)), 0.0))
            for log_weight, z in minus
        ]
        places = [z for _, z in plus + minus]
        error = math.fsum(
            abs(value) * U * (64 + 16 * z * z + 8 * abs(epsilon))
            for value, z in zip(values, places, strict=True)
        )
        floor = -math.expm1(epsilon) * (1 - 8 * U) if epsilon < 0 else 0.0
        value = math.fsum(values)
        return Bound(
            max(value - error, floor, 0.0),
            min(up(max(value + error, floor * (1 + 32 * U), 1e-320)), 1.0),
        )

    def ball(self, field: Field) -> Ends:
        return ends(
            self.noise,
            lambda noise: ReplacedMoments(field, noise, field.exact(self.rate)),
            field=field,
            ulps=1,
            rising=False,
        )


def _below(z: float) -> float:
    """P(N <= z); far out through its logarithm, because ndtr loses digits before it underflows."""
    return float(ndtr(z)) if z > -30 else math.exp(float(log_ndtr(z)))


def _asinh_scaled(log_scale: float, half: float) -> float:
    """asinh(-e^log_scale sinh(half)), without overflow."""
    if half == 0:
        return 0.0
    log_size = log_scale + abs(half) + math.log(-math.expm1(-2 * abs(half)) / 2)
    size = log_size + math.log(2) if log_size > 300 else math.asinh(math.exp(log_size))
    return -math.copysign(size, half)
