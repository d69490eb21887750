"""Exact noise: its mechanisms, noisy choices among scores, and intervals for quotients of noisy sums."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate
from statistics import NormalDist

from dpcompose.composition import Composable, calibrate, compose
from dpcompose.errors import DomainError
from dpcompose.mechanisms import (
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    PermuteAndFlip,
)
from dpcompose.release import sampler
from dpcompose.release.columns import Change
from dpcompose.release.spend import Spend, below
from dpcompose.values import rounded_up

LARGEST_SCORE = 2**62
"""Scores are clamped to this size, which is 1-Lipschitz: the sampler takes 64 bits."""


@dataclass(frozen=True)
class Selection:
    """The candidate with the least score, noise of one scale on each.

    For an amount of epsilon the noise is exponential: permute-and-flip, which is never further from the best than the
    exponential mechanism. Its losses are at most those of Laplace noise, and so for choices in several groups, which
    are Laplace noise on several numbers. For an amount of rho it is the exponential mechanism, candidate i with
    probability proportional to e^(-score_i / scale): one unit moves every score by at most `change`, so all losses lie
    in an interval of length 2 change / scale, a bounded range, which costs a quarter of the rho of that epsilon.
    Choices for several groups add up to one of bounded range, `change` being the sum over groups.

    Args:
        scale: Exactly this double.
        change: How far one unit moves any score, summed over groups.
        monotone: Whether one unit moves all scores the same way, as it does counts: then by between 0 and `change`, so
            that all losses lie in an interval of length change / scale.
        flips: Whether by permute-and-flip.

    Reference: [McKennaSheldon2020, Algorithm 1], [DongDurfeeRogers2020, Definition 3.1],
    [McSherryTalwar2007, Definition 2]
    """

    scale: float
    change: int
    monotone: bool = False
    flips: bool = False

    @classmethod
    def costing(cls, change: int, spend: Spend, *, monotone: bool = False) -> Selection:
        """The least scale whose certified price is within the epsilon, or within the rho, epsilon^2 / 8."""
        if spend.delta and spend.currency == "epsilon":
            domain = "an epsilon without a delta, where a quantile is chosen among candidates"
            raise DomainError("spend", spend.amounts(float), domain)
        epsilon = below(spend.amount)
        if spend.currency == "rho":
            epsilon = math.sqrt(8 * epsilon) * (1 - 1e-13)
        ways = 1 if monotone else 2
        flips = spend.currency == "epsilon"
        chosen = cls(
            rounded_up(ways * Fraction(change) / Fraction(epsilon)), change, monotone, flips
        )
        if spend.currency == "rho":
            promise = compose(chosen.mechanism).zcdp()
            price = None if promise is None else promise.rho
        else:
            price = compose(chosen.mechanism).pure()
        assert price is not None and Fraction(price) <= spend.amount, (
            "the reserve covers the rounding of a price"
        )
        return chosen

    @property
    def mechanism(self) -> Composable:
        """Of epsilon 2 change / scale, or half of it: the statement of all choices together."""
        ways = 1 if self.monotone else 2
        epsilon = rounded_up(ways * Fraction(self.change) / Fraction(self.scale))
        return (
            PermuteAndFlip(epsilon, monotone=self.monotone) if self.flips else Exponential(epsilon)
        )

    def draw(self, scores: Sequence[int]) -> int:
        """The index of the chosen candidate; the least score is the best."""
        within = [max(min(score, LARGEST_SCORE), -LARGEST_SCORE) for score in scores]
        return sampler.least_with_noise(within, scale=self.scale, flips=self.flips)

    def error(self, candidates: int, failure: float) -> float:
        """How far the chosen score is above the best, but for a probability of `failure`: an upper bound.

        scale (ln candidates + ln(1 / failure)).

        Reference: [DworkRoth2014, Corollary 3.12]
        """
        return self.scale * (math.log(candidates) - math.log(failure))

    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""
        found: dict[str, object] = {
            "selection": "permute-and-flip" if self.flips else "exponential mechanism",
            "scale": repr(self.scale),
            "change": self.change,
        }
        return found | ({"monotone": True} if self.monotone else {})


LARGEST_SHIFT, MOST_COORDINATES = 4096, 1024
SUMMED = 60.0
"""Up to this sigma a discrete Gaussian's tails are summed; beyond it they are the normal's to e^(-2 pi^2 60^2)."""


@dataclass(frozen=True)
class Noise(ABC):
    """Noise on a vector of integers.

    Args:
        spread: The scale of Laplace noise, the sigma of Gaussian noise: exactly this double.
        change: How far one unit moves the vector.
    """

    spread: float
    change: Change

    @property
    @abstractmethod
    def mechanism(self) -> Composable:
        """The mechanism that is charged."""

    @abstractmethod
    def draw(self, values: Sequence[int]) -> list[int]:
        """Draw the released values: each plus its own noise."""

    @abstractmethod
    def error(self, failure: float) -> int:
        """The least t such that the noise on one coordinate is above t in size with at most that probability."""

    @abstractmethod
    def error_beside(self, other: Noise, weight: float, failure: float) -> float:
        """A t that |noise + weight * other noise| is above with at most that probability; both are of one kind."""

    @abstractmethod
    def plain(self) -> dict[str, object]:
        """The description that the ledger stores."""

    @abstractmethod
    def passing(self, probability: float) -> int:
        """The least t such that noise of at least t has at most that probability (an upper bound on it does)."""

    @property
    def shift(self) -> int | tuple[int, ...] | None:
        """The worst change as a mechanism's shift; None where no single one is the worst, or it is too long."""
        worst, change = self.change.worst, self.change
        if worst is None or change.largest > LARGEST_SHIFT or change.coordinates > MOST_COORDINATES:
            return None
        return worst[0] if len(worst) == 1 else worst


class DiscreteLaplaceNoise(Noise):
    """Discrete Laplace noise: P(x) proportional to e^(-|x| / scale)."""

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
        epsilon, shift = rounded_up(Fraction(self.change.l1) / Fraction(self.spread)), self.shift
        if shift is not None and 1e-3 < self.spread < 1e9 and epsilon <= 300:
            return DiscreteLaplace(self.spread, shift=shift)
        return BlackBox(epsilon)

    def draw(self, values: Sequence[int]) -> list[int]:
        return sampler.discrete_laplace(values, scale=self.spread)

    def error(self, failure: float) -> int:
        # P(|X| > t) = 2 q^(t + 1) / (1 + q).
        rest = math.log(failure) + math.log1p(math.exp(-1 / self.spread)) - math.log(2)
        return max(math.ceil(-self.spread * rest * (1 - 1e-14)) - 1, 0)

    def error_beside(self, other: Noise, weight: float, failure: float) -> float:
        """The quantile of the sum of two continuous ones, of scales a >= b, and half a step for each rounding.

        P(|X + Y| > t) = (a^2 e^(-t / a) - b^2 e^(-t / b)) / (a^2 - b^2), and (1 + t / 2a) e^(-t / a) for a = b: with
        r = b / a and t = a s, between e^-s and (1 + s / 2) e^-s.
        """
        wide, narrow = sorted((self.spread, abs(weight) * other.spread), reverse=True)
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
        return {"noise": "discrete laplace", "scale": repr(self.spread), "l1": self.change.l1}

    def passing(self, probability: float) -> int:
        # P(X >= t) = q^t / (1 + q) for t >= 0.
        least = self.spread * (-math.log(probability) - math.log1p(math.exp(-1 / self.spread)))
        return max(math.ceil(least * (1 + 1e-12) + 1e-9), 0)


class DiscreteGaussianNoise(Noise):
    """Discrete Gaussian noise: P(x) proportional to e^(-x^2 / (2 sigma^2))."""

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
        if self.shift is not None and 1e-2 < self.spread < 1e9:
            return DiscreteGaussian(self.spread, shift=self.shift)
        return Concentrated(
            rounded_up(Fraction(self.change.l2_squared) / (2 * Fraction(self.spread) ** 2))
        )

    def draw(self, values: Sequence[int]) -> list[int]:
        return sampler.discrete_gaussian(values, sigma=self.spread)

    def error(self, failure: float) -> int:
        if self.spread > SUMMED:
            # P(|X| <= t) is the normal's between -t - 1/2 and t + 1/2, to a relative 1 / (24 sigma^2).
            return max(math.ceil(self.spread * -NormalDist().inv_cdf(failure / 2) - 0.5), 0)
        # Proportional to the probabilities of 0, 1, 2, ..., as far as they matter.
        masses = [
            math.exp(-x * x / (2 * self.spread**2)) for x in range(math.ceil(12 * self.spread) + 2)
        ]
        most, beyond = failure * (2 * math.fsum(masses) - masses[0]), 0.0
        # From the far end, where the digits of a small probability are.
        for reach in range(len(masses) - 1, 0, -1):
            beyond += 2 * masses[reach]
            if beyond > most:
                return reach
        return 0

    def error_beside(self, other: Noise, weight: float, failure: float) -> float:
        both = math.hypot(self.spread, weight * other.spread)
        return -NormalDist().inv_cdf(failure / 2) * both + (1 + abs(weight)) / 2

    def plain(self) -> dict[str, object]:
        return {
            "noise": "discrete gaussian",
            "sigma": repr(self.spread),
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
        reach = math.ceil(self.spread * least) + 1
        while (
            0.5 * math.erfc((reach - 1) / (self.spread * math.sqrt(2))) * (1 + 1e-12) > probability
        ):
            reach += max(1, math.floor(self.spread * 1e-6))
        return max(reach, 1)


def noise_for(change: Change, spend: Spend) -> Noise:
    """Laplace noise for an epsilon; Gaussian noise for a rho, or an epsilon with a delta."""
    if spend.currency == "epsilon" and not spend.delta:
        return DiscreteLaplaceNoise.costing(change, spend)
    return DiscreteGaussianNoise.costing(change, spend)


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


SUMMED_STEPS = 16.0
"""Up to this spread the denominator's noise is summed value by value; beyond it, half a step is a few percent of it."""
SCANNED, HALVINGS = 16, 26


def quotient_interval(
    released: tuple[float, int],
    noises: tuple[Noise, Noise],
    ends: tuple[float, float],
    failure: float,
) -> tuple[float, float]:
    """The quotients t between two ends that what was released does not speak against.

    With noise x on the numerator and y on the denominator, released a and b, the true quotient t has a - t b = x - t y,
    whose distribution is known. The interval holds every t at which |x - t y| is as large as |a - t b| with more than
    the failure probability; so it misses the truth with at most that probability. Where all of that is not one piece,
    what lies between is taken in: found by a scan from both ends.

    Reference: [Fieller1954]
    """
    numerator, denominator = released
    if denominator <= 0:
        return ends
    exceeds = partial(_exceeds, failure * (1 - 1e-6), noises[0], noises[1])

    def plausible(quotient: float) -> bool:
        return exceeds(quotient, abs(numerator - quotient * denominator))

    low, high = ends
    middle = min(max(numerator / denominator, low), high)
    return _edge(plausible, low, middle), _edge(plausible, high, middle)


def _edge(plausible: Callable[[float], bool], outer: float, inner: float) -> float:
    """The plausible number next to `outer`, approached from outside; `inner` is plausible."""
    inside, outside = inner, outer
    for step in range(SCANNED):
        # Finer towards `near`, where intervals end.
        place = inner + (outer - inner) * ((SCANNED - step) / SCANNED) ** 6
        if plausible(place):
            inside = place
            break
        outside = place
    for _ in range(0 if inside == outside else HALVINGS):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if plausible(middle) else (inside, middle)
    return outside


def _exceeds(chance: float, noise: Noise, other: Noise, weight: float, reach: float) -> bool:
    """Whether P(|noise + weight * other noise| >= reach) is above a chance, to steps of the noise; both of one kind."""
    size, laplace = abs(weight), isinstance(noise, DiscreteLaplaceNoise)
    if other.spread > SUMMED_STEPS:
        return (
            _beyond(
                noise.spread, size * other.spread, max(reach - (1 + size) / 2, 0.0), laplace=laplace
            )
            > chance
        )
    tail, spread, found = _laplace_tail if laplace else _gaussian_tail, noise.spread, 0.0
    for y, mass, rest in _masses(other.spread, laplace):
        # The noise is as likely at y as at -y, so one tail is enough; where both overlap they are 1.
        found += mass * min(tail(spread, reach - size * y) + tail(spread, reach + size * y), 1.0)
        if found > chance or found + rest <= chance:
            break
    return found > chance


def _beyond(spread: float, other: float, within: float, *, laplace: bool) -> float:
    """P(|x + y| >= within) for continuous noise of these spreads."""
    if not laplace:
        return math.erfc(within / math.hypot(spread, other) / math.sqrt(2))
    wide, narrow = sorted((spread, other), reverse=True)
    ratio, place = min(narrow / wide, 1 - 1e-6), within / wide
    inner = ratio * ratio * math.exp(-place * (1 / ratio - 1)) if ratio > 1e-3 else 0.0
    return math.exp(-place) * (1 - inner) / (1 - ratio * ratio)


def _shape(spread: float, offset: float, laplace: bool) -> float:
    return math.exp(-offset / spread if laplace else -0.5 * (offset / spread) ** 2)


@cache
def _masses(spread: float, laplace: bool) -> Sequence[tuple[int, float, float]]:
    """The probabilities of 0, 1, 2, ..., those of two signs together, as far as they matter, and that of all beyond."""
    reach = math.ceil(spread * (30 if laplace else 8)) + 2
    masses = [_shape(spread, y, laplace) * (2 if y else 1) for y in range(reach)]
    whole = math.fsum(masses)
    rests = list(accumulate(reversed(masses)))[::-1]
    return [(y, mass / whole, (rests[y] - mass) / whole) for y, mass in enumerate(masses)]


def _laplace_tail(scale: float, reach: float) -> float:
    """P(x >= reach): q^t / (1 + q) for t >= 0, with q = e^(-1 / scale); else 1 - P(x >= 1 - t)."""
    steps = math.ceil(reach - 1e-9)
    below = math.exp(-abs(steps if steps > 0 else 1 - steps) / scale) / (1 + math.exp(-1 / scale))
    return below if steps > 0 else 1 - below


def _gaussian_tail(sigma: float, reach: float) -> float:
    """P(x >= reach): summed, or the normal's at half a step less."""
    steps = math.ceil(reach - 1e-9)
    if sigma > SUMMED_STEPS:
        return 0.5 * math.erfc((steps - 0.5) / sigma / math.sqrt(2))
    tails = _tails(sigma)
    if steps <= 0:
        return 1 - (tails[1 - steps] if 1 - steps < len(tails) else 0.0)
    return tails[steps] if steps < len(tails) else 0.0


@cache
def _tails(sigma: float) -> Sequence[float]:
    """P(x >= t) for t = 0, 1, 2, ..."""
    masses = _masses(sigma, False)
    found = [0.0]
    for y, mass, _ in reversed(masses):
        found.append(found[-1] + (mass / 2 if y else mass))
    return found[::-1]
