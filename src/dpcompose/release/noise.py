"""Integer noise: the object that names its mechanism is the one that draws, from the same two numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from statistics import NormalDist
from typing import Protocol

from dpcompose.composition import Composable, calibrate, compose
from dpcompose.mechanisms import BlackBox, Concentrated, DiscreteGaussian, DiscreteLaplace, Gaussian
from dpcompose.release import sampler
from dpcompose.release.bounds import Change
from dpcompose.release.spend import Spend, below
from dpcompose.values import rounded_up

LARGEST_SHIFT, MOST_COORDINATES = 4096, 1024
SUMMED = 60.0
"""Up to this sigma a discrete Gaussian's tails are summed; beyond it they are the normal's to e^(-2 pi^2 60^2)."""


class Noise(Protocol):
    """Noise on a vector of integers."""

    @property
    def change(self) -> Change:
        """How far one unit moves the vector."""
        ...

    @property
    def mechanism(self) -> Composable:
        """The mechanism that is charged."""
        ...

    def draw(self, values: Sequence[int]) -> list[int]:
        """Draw the released values: each plus its own noise."""
        ...

    def error(self, failure: float) -> int:
        """The least t such that the noise on one coordinate is above t in size with at most that probability."""
        ...

    def error_beside(self, other: Noise, weight: float, failure: float) -> float:
        """A t that |noise + weight * other noise| is above with at most that probability; both are of one kind."""
        ...

    @property
    def spread(self) -> float:
        """The scale, or sigma."""
        ...

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        ...

    def passing(self, probability: float) -> int:
        """The least t such that noise of at least t has at most that probability (an upper bound on it does)."""
        ...


@dataclass(frozen=True)
class DiscreteLaplaceNoise:
    """Discrete Laplace noise: P(x) proportional to e^(-|x| / scale).

    Args:
        scale: Exactly this double.
        change: How far one unit moves the vector.
    """

    scale: float
    change: Change

    @classmethod
    def costing(cls, change: Change, spend: Spend) -> DiscreteLaplaceNoise:
        """The least scale whose certified price is within the epsilon."""
        epsilon = below(spend.amount)
        noise = cls(rounded_up(Fraction(change.l1) / Fraction(epsilon)), change)
        price = compose(noise.mechanism).pure()
        assert price is not None and Fraction(price) <= spend.amount, (
            "the reserve covers the rounding of a price"
        )
        return noise

    @property
    def mechanism(self) -> Composable:
        """The composition of the worst change, where one change is the worst; else epsilon = l1 / scale."""
        worst = self.change.worst
        if (
            worst is not None
            and _listed(self.change)
            and 1e-3 < self.scale < 1e9
            and self._epsilon <= 300
        ):
            return DiscreteLaplace(self.scale, shift=worst[0] if len(worst) == 1 else worst)
        return BlackBox(self._epsilon)

    @property
    def _epsilon(self) -> float:
        return rounded_up(Fraction(self.change.l1) / Fraction(self.scale))

    def draw(self, values: Sequence[int]) -> list[int]:
        return sampler.discrete_laplace(values, scale=self.scale)

    def error(self, failure: float) -> int:
        # P(|X| > t) = 2 q^(t + 1) / (1 + q).
        rest = math.log(failure) + math.log1p(math.exp(-1 / self.scale)) - math.log(2)
        return max(math.ceil(-self.scale * rest * (1 - 1e-14)) - 1, 0)

    @property
    def spread(self) -> float:
        return self.scale

    def error_beside(self, other: Noise, weight: float, failure: float) -> float:
        """The quantile of the sum of two continuous ones, of scales a >= b, and half a step for each rounding.

        P(|X + Y| > t) = (a^2 e^(-t / a) - b^2 e^(-t / b)) / (a^2 - b^2), and (1 + t / 2a) e^(-t / a) for a = b: with
        r = b / a and t = a s, between e^-s and (1 + s / 2) e^-s.
        """
        wide, narrow = sorted((self.scale, abs(weight) * other.spread), reverse=True)
        ratio = min(narrow / wide, 1 - 1e-6)
        low = high = -math.log(failure)
        while math.log1p(high / 2) - high > math.log(failure):
            high = 2 * high + 1
        for _ in range(40):
            middle = (low + high) / 2
            inner = ratio * ratio * math.exp(-middle * (1 / ratio - 1)) if ratio > 1e-3 else 0.0
            beyond = math.log1p(-inner) - middle - math.log1p(-ratio * ratio)
            low, high = (middle, high) if beyond > math.log(failure) else (low, middle)
        return wide * high * (1 + 1e-5) + (1 + abs(weight)) / 2

    def plain(self) -> dict[str, object]:
        return {"noise": "discrete laplace", "scale": repr(self.scale), "l1": self.change.l1}

    def passing(self, probability: float) -> int:
        # P(X >= t) = q^t / (1 + q) for t >= 0.
        least = self.scale * (-math.log(probability) - math.log1p(math.exp(-1 / self.scale)))
        return max(math.ceil(least * (1 + 1e-12) + 1e-9), 0)


@dataclass(frozen=True)
class DiscreteGaussianNoise:
    """Discrete Gaussian noise: P(x) proportional to e^(-x^2 / (2 sigma^2)).

    Args:
        sigma: Exactly this double.
        change: How far one unit moves the vector.
    """

    sigma: float
    change: Change

    @classmethod
    def costing(cls, change: Change, spend: Spend) -> DiscreteGaussianNoise:
        """A sigma whose certified price is within the rho, or within the epsilon at the delta."""
        if spend.currency == "rho":
            sigma = math.sqrt(change.l2_squared / (2 * below(spend.amount))) * (1 + 1e-13)
        else:
            sigma = _calibrated(change, below(spend.amount), below(spend.delta))
        noise = cls(sigma, change)
        price = compose(noise.mechanism).zcdp()
        assert price is not None
        assert spend.currency != "rho" or Fraction(price.rho) <= spend.amount, (
            "the reserve covers the rounding"
        )
        return noise

    @property
    def mechanism(self) -> Composable:
        """The composition of the worst change, where one change is the worst; else rho = l2^2 / (2 sigma^2)."""
        worst = self.change.worst
        if worst is not None and _listed(self.change) and 1e-2 < self.sigma < 1e9:
            return DiscreteGaussian(self.sigma, shift=worst[0] if len(worst) == 1 else worst)
        return Concentrated(
            rounded_up(Fraction(self.change.l2_squared) / (2 * Fraction(self.sigma) ** 2))
        )

    def draw(self, values: Sequence[int]) -> list[int]:
        return sampler.discrete_gaussian(values, sigma=self.sigma)

    def error(self, failure: float) -> int:
        if self.sigma > SUMMED:
            # P(|X| <= t) is the normal's between -t - 1/2 and t + 1/2, to a relative 1 / (24 sigma^2).
            return max(math.ceil(self.sigma * -NormalDist().inv_cdf(failure / 2) - 0.5), 0)
        # Proportional to the probabilities of 0, 1, 2, ..., as far as they matter.
        masses = [
            math.exp(-x * x / (2 * self.sigma**2)) for x in range(math.ceil(12 * self.sigma) + 2)
        ]
        most, beyond = failure * (2 * math.fsum(masses) - masses[0]), 0.0
        # From the far end, where the digits of a small probability are.
        for reach in range(len(masses) - 1, 0, -1):
            beyond += 2 * masses[reach]
            if beyond > most:
                return reach
        return 0

    @property
    def spread(self) -> float:
        return self.sigma

    def error_beside(self, other: Noise, weight: float, failure: float) -> float:
        both = math.hypot(self.sigma, weight * other.spread)
        return -NormalDist().inv_cdf(failure / 2) * both + (1 + abs(weight)) / 2

    def plain(self) -> dict[str, object]:
        return {
            "noise": "discrete gaussian",
            "sigma": repr(self.sigma),
            "l2 squared": self.change.l2_squared,
        }

    def passing(self, probability: float) -> int:
        """From P(X >= t) <= P(N(0, sigma^2) >= t - 1).

        Reference: [CanonneKamathSteinke2020, Proposition 25]
        """
        least = (
            -NormalDist().inv_cdf(probability)
            if probability > 1e-16
            else math.sqrt(-2 * math.log(probability))
        )
        reach = math.ceil(self.sigma * least) + 1
        while (
            0.5 * math.erfc((reach - 1) / (self.sigma * math.sqrt(2))) * (1 + 1e-12) > probability
        ):
            reach += max(1, math.floor(self.sigma * 1e-6))
        return max(reach, 1)


def noise_for(change: Change, spend: Spend) -> Noise:
    """Laplace noise for an epsilon; Gaussian noise for a rho, or an epsilon with a delta."""
    if spend.currency == "epsilon" and not spend.delta:
        return DiscreteLaplaceNoise.costing(change, spend)
    return DiscreteGaussianNoise.costing(change, spend)


def _listed(change: Change) -> bool:
    """Whether the worst change can be written down as a mechanism's shift."""
    return change.largest <= LARGEST_SHIFT and change.coordinates <= MOST_COORDINATES


def _calibrated(change: Change, epsilon: float, delta: float) -> float:
    """A sigma at which the mechanism is (epsilon, delta)-differentially private, certified."""
    rho = calibrate(Concentrated, epsilon=epsilon, delta=delta, parameter="increasing").value
    enough = math.sqrt(change.l2_squared / (2 * rho)) * (1 + 1e-9)
    # The continuous curve is a good guess; whether the discrete one meets the target is asked of it.
    length = math.sqrt(change.l2_squared)
    sigma = length * calibrate(Gaussian, epsilon=epsilon, delta=delta).value * (1 + 1e-6)
    while sigma < enough:
        noise = DiscreteGaussianNoise(sigma, change)
        if compose(noise.mechanism).epsilon(delta=delta).upper <= epsilon:
            return sigma
        sigma *= 1.02
    return enough
