"""Gaussian noise on a Poisson sample: its losses, and their moments in balls.

The moments of Gaussian noise on a Poisson sample, in balls.

With X standard normal, mu = 1 / noise and r(x) = 1 - q + q e^(mu x - mu^2 / 2), M(t) is E r(-X)^(t + 1) when a record
is removed, E r(X)^-t when one is added, and E r(-X)^(t + 1) r(X)^-t when one is replaced: at orders in (-1, 0) no power
is negative. For |y| < pi / mu and theta = mu |y|,
  r(x) cos(theta / 2) <= |r(x + iy)| <= r(x)   and   0 <= arg r(x + i |y|) <= theta,
because |a + b e^(i theta)|^2 = (a + b)^2 - 4 a b sin^2(theta / 2). The derivative of log r is mu w, where
w = q e^(mu x - mu^2 / 2) / r is increasing, in (0, 1).

The losses of Gaussian noise on a Poisson sample: (1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), in both orders.

Reference: [Lebeda2024, Proposition 13], [ZhuDongWang2022, Theorem 11]
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np

from dpcompose.contour import Transform
from dpcompose.guarantee import gaussian_profile
from dpcompose.loss.base import Loss, alike, blocks, merged, sampled_profile
from dpcompose.loss.gaussian_mixture import GaussianMixture, OpposedMixtures
from dpcompose.loss.lattice_noise import Noise
from dpcompose.loss.mixture_loss import MixtureLoss, OpposedLoss
from dpcompose.loss.sampled_gaussian_plan import Parts
from dpcompose.loss.sampled_gaussian_sum import SampledGaussianBatch, SampledGaussianSum
from dpcompose.numerics import U
from dpcompose.proof import (
    Ball,
    Disc,
    Ends,
    Field,
    NormalMoments,
    TrapezoidMoments,
    ends,
    upper_tail,
)
from dpcompose.values import Bound


@dataclass(frozen=True)
class SampledGaussianMoments(TrapezoidMoments):
    """The loss of P against Q, of which one or both are a sample with the record: P has it at -1, Q at 1.

    Args:
        noise: sigma / sensitivity, > 0.
        rate: q, in (0, 1).
        first: Whether P is such a sample; else it is the noise alone.
        second: Whether Q is one.
    """

    noise: Ball
    rate: Ball
    first: bool
    second: bool

    @property
    def smallest(self) -> Ball:
        return super().smallest if self.second else (-self.rate).log1p()

    @property
    def largest(self) -> Ball:
        return super().largest if self.first else -(-self.rate).log1p()

    @property
    def reverse(self) -> SampledGaussianMoments:
        if self.first and self.second:
            return self
        return replace(self, first=self.second, second=self.first)

    @property
    def _limit(self) -> Ball:
        return self.field.pi * self.noise

    @property
    def _side(self) -> int:
        return -1

    def _growing(self, x: Disc) -> Disc:
        """q e^(mu x - mu^2 / 2), the term of the likelihood ratio that grows with x."""
        return self.rate * (x / self.noise - 1 / (2 * self.noise**2)).exp()

    def _log_ratio(self, x: Disc) -> Disc:
        return (1 - self.rate + self._growing(x)).log()

    def _weight(self, x: Ball) -> Ball:
        growing = self._growing(self.field.disc(x)).real
        return growing / (1 - self.rate + growing)

    def _shrunk(self, x: Ball, y: Ball) -> Ball:
        """|r(x + iy)|^2 / r(x)^2 = 1 - 4 w (1 - w) sin^2(theta / 2), from cos^2(theta / 2) to 1."""
        weight, sine = self._weight(x), (y / (2 * self.noise)).sin()
        exact = 1 - 4 * weight * (1 - weight) * sine**2
        return exact.max(1 - sine**2).min(self.field.exact(1))

    def _terms(self, x: Disc) -> tuple[Disc, Disc]:
        one = self._log_ratio(-x) if self.first else self.field.disc(0)
        return one, one - self._log_ratio(x) if self.second else one

    def _growth(self, order: float, y: Ball) -> Ball:
        """e^(y^2 / 2) cos(mu y / 2)^-order, no cosine at negative orders: what |r^-order| may gain off the line."""
        grown = (y * y / 2).exp()
        if order < 0 or not self.second:
            return grown
        return grown * (y / (2 * self.noise)).cos() ** -self.field.exact(order)

    def _steep(self, order: float) -> tuple[Ball, Ball]:
        """By how much log F falls at most with the shares w(-x) and w(x)."""
        zero, order_ball = self.field.exact(0), self.field.exact(order)
        one = (order_ball + 1) / self.noise if self.first else zero
        return one, order_ball / self.noise if self.second else zero

    def _slope(self, order: float, x: Ball) -> Ball:
        one, two = self._steep(order)
        return -one * self._weight(-x) - two * self._weight(x) - x

    def _lift(self, order: float, x: Ball, y: Ball) -> Ball:
        lifted, half = (y * y / 2).exp(), self.field.exact(order) / 2
        if self.first:
            lifted *= self._shrunk(-x, y) ** (half + 0.5)
        return lifted * self._shrunk(x, y) ** -half if self.second else lifted

    def _centers(self, order: float) -> tuple[Ball, Ball]:
        one, two = self._steep(order)
        if order < 0 or not self.second:
            return -one, -two
        return self._left_of(one, two), self.field.exact(0)

    def _left_of(self, fixed: Ball, steep: Ball) -> Ball:
        """A point a < 0 with -a >= fixed + steep w(a).

        From there on to the left -x - fixed - steep w(x) >= a - x, because w falls.
        """
        low, high = -(fixed + steep), self.field.exact(0)
        for _ in range(60):
            if not high - low > 0.25:
                break
            middle = ((low + high) / 2).mid()
            low, high = (
                (middle, high) if -middle >= fixed + steep * self._weight(middle) else (low, middle)
            )
        return low

    def _valley(self, order: float, reach: float) -> tuple[float, float, Ball] | None:
        """Where x^2 / 2 outweighs (order + 1) log r, between the modes of f(x) = e^(-x^2 / 2) r(x)^(order + 1).

        The derivative of log f, G(x) = -x + (order + 1) mu w(x), first falls, then rises, then falls, because w is a
        logistic function. So where G(a) < 0 < G(b), a < b, it changes its sign once in between: there f is at most the
        larger of f(a) and f(b). F at -x is f(x), or f(x) r(-x)^-order, which is at most (1 - q)^-order f(x) at positive
        orders, and at most f(x) at others, since r(-x) <= 1 there.
        """
        steep = self._steep(order)[0]
        low, high = reach, float(steep.mid()) - reach
        if not low + reach < high:
            return None
        a, b = self.field.exact(low), self.field.exact(high)
        if not (steep * self._weight(a) < a and steep * self._weight(b) > b):
            return None
        ends = [
            (-x * x / 2).exp() * self._log_ratio(self.field.disc(x)).real.exp() ** (order + 1)
            for x in (a, b)
        ]
        most = ends[0].max(ends[1])
        if self.second and order > 0:
            most *= (1 - self.rate) ** -self.field.exact(order)
        return -high, -low, most.upper()

    def profile(self, x: Ball) -> Ball:
        """delta(x): that of the noise without sampling elsewhere, or P(X < c) - e^x Q(X < c) at the point c where the
        loss is x.

        If P is a sample, q times at ln(1 + (e^x - 1) / q). If Q is one, with c = 1 - (1 - q) e^x, c times at
        x + ln(q / c), 0 for c <= 0. If both are, mu c = asinh(-(1 - q) / q e^(mu^2 / 2) sinh(x / 2)) - x / 2.
        """
        mu, q = 1 / self.noise, self.rate
        if self.first and self.second:
            odds = (1 - q) / q * (mu * mu / 2).exp()
            point = ((-odds * (x / 2).sinh()).asinh() - x / 2) / mu
            below = (1 - q) * upper_tail(self.field, -point)
            with_record = [
                below + q * upper_tail(self.field, side * mu - point) for side in (-1, 1)
            ]
            return with_record[0] - x.exp() * with_record[1]
        plain = NormalMoments(self.field, mu * mu).profile
        if self.second:
            rest = q - (1 - q) * x.expm1()
            if rest > 0:
                return rest * plain(x + (q / rest).log())
            zero = self.field.exact(0)
            return zero if rest <= 0 else zero.union(rest.upper())
        odds = 1 + x.expm1() / q
        if odds > 0:
            return q * plain(odds.log())
        # 1 - a <= profile at ln a <= 1.
        unknown = self.field.exact(0) if odds <= 0 else odds.upper() * self.field.ball(0.5, 0.5)
        return q * unknown - x.expm1()


_TOGETHER = 16
"""Rows that share arrays: enough to make the cost of a call small, few enough for the caches of the processor."""


@dataclass(frozen=True)
class SampledGaussianLoss(Loss):
    """Gaussian noise of standard deviation `noise` (in units of sensitivity) on a Poisson sample of rate `rate` < 1.

    It is an opposed mixture like that of replaced records, and could have its transform; a quadrature of its own is five
    to twelve times as fast in the benchmark's rows of DP-SGD, for 800 lines.

    Args:
        noise: sigma / sensitivity, > 0.
        rate: The sampling rate, in (0, 1).
        remove: Whether the loss is that of (with the record, without it).
        ulps: How many units of roundoff `noise` may be off.
    """

    noise: float
    rate: float
    remove: bool
    ulps: int = 0

    @property
    def additive_noise(self) -> Noise:
        return Noise(1 / self.noise, self.rate, self.remove, True, self.ulps + 1)

    @property
    def maximum(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate) * (1 + 8 * U)

    @property
    def minimum(self) -> float:
        return math.log1p(-self.rate) * (1 + 8 * U) if self.remove else -math.inf

    @property
    def reverse(self) -> SampledGaussianLoss:
        """The loss of the same pair in the other order."""
        return replace(self, remove=not self.remove)

    @property
    def shared_reverse(self) -> SampledGaussianLoss:
        return self.reverse

    @classmethod
    def pool(cls, group: Sequence[tuple[Self, int]]) -> Sequence[Transform]:
        """Losses of similar noise in rows of one transform."""
        rows = sorted(group, key=lambda entry: (not entry[0].remove, entry[0].noise))
        sides = alike(rows, lambda loss: loss.remove).values()
        return [_summed(part) for side in sides for part in blocks(side, _TOGETHER)]

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        return merged(group)

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        mu, spread = 1 / self.noise, 2 * U * (self.ulps + 2)

        def base(location: float, error: float) -> Bound:
            low = gaussian_profile(location + error, mu=mu * (1 - spread))
            high = gaussian_profile(location - error, mu=mu * (1 + spread))
            return Bound(low.lower, high.upper)

        return sampled_profile(epsilon, self.rate, remove=self.remove, base=base)

    def ball(self, field: Field) -> Ends:
        sides, rate = (self.remove, not self.remove), field.exact(self.rate)
        return ends(
            self.noise,
            lambda noise: SampledGaussianMoments(field, noise, rate, *sides),
            field=field,
            ulps=self.ulps,
            rising=False,
        )


def _summed(rows: Sequence[tuple[SampledGaussianLoss, int]]) -> SampledGaussianSum:
    columns = np.array([(loss.noise, loss.rate, times) for loss, times in rows], dtype=float)
    ulps = max(loss.ulps for loss, _ in rows)
    parts = Parts(columns[:, 0:1], columns[:, 1:2], columns[:, 2:3], len(rows), ulps)
    return SampledGaussianSum(SampledGaussianBatch(parts), rows[0][0].remove)


def _mixed(noise: float, rate: float, ulps: int) -> tuple[GaussianMixture, float]:
    """(1 - q) N(0, 1) + q N(1 / s, 1), its mean good to so many units, and a bound on the mass that is left out."""
    return GaussianMixture((1 / noise,), ulps=ulps).sampled(rate)


@dataclass(frozen=True)
class ReplacedGaussianLoss(OpposedLoss):
    """The same noise where a record is replaced: a mixture against its mirror image, the same in both orders.

    Args:
        noise: sigma / sensitivity, > 0, good to one unit of roundoff.
        rate: The sampling rate, in (0, 1).
    """

    noise: float
    rate: float

    @property
    def mixture(self) -> MixtureLoss:
        return self._mixture

    @cached_property
    def _mixture(self) -> MixtureLoss:
        one, lost = _mixed(self.noise, self.rate, 2)
        return MixtureLoss(((1.0, OpposedMixtures(one, one)),), infinite_error=2 * lost)

    def ball(self, field: Field) -> Ends:
        return ends(
            self.noise,
            lambda noise: SampledGaussianMoments(field, noise, field.exact(self.rate), True, True),
            field=field,
            ulps=1,
            rising=False,
        )
