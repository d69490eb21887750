"""The spend of a question, and what it buys: discrete noise drawn exactly, private selection among
scores, and confidence intervals for quotients of noisy sums.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from fractions import Fraction
from functools import cache, partial
from itertools import accumulate
from numbers import Integral
from statistics import NormalDist
from typing import Any, cast

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
from dpcompose.values import double_below, rounded_up

LARGEST_TYPED = 10**30


def exact(name: str, value: object) -> Fraction:
    """Return the number as a fraction.

    Raises:
        DomainError: If it is no finite number below 10^30 in absolute value, written with at most
            60 characters.
    """
    number = _read(value)
    if number is None or not abs(number) < LARGEST_TYPED or not number.denominator < LARGEST_TYPED:
        raise DomainError(name, value, "a decimal number of a size below 10^30")
    return number


def _read(value: object) -> Fraction | None:
    match value:
        case bool():
            return None
        case Fraction():
            return value
        case Integral():
            return Fraction(int(value))
        case float():
            return Fraction(repr(float(value))) if math.isfinite(value) else None
        case Decimal():
            return Fraction(value) if value.is_finite() and abs(value.adjusted()) < 100 else None
        case str() if len(value) <= 60:
            try:
                return _read(Decimal(value))
            except InvalidOperation:
                return None
        case _:
            return None


RESERVE = Fraction(1, 2**40)
"""A relative reserve, so that a thousand rounded-up float prices stay within the spend."""
_LIMITS = {"epsilon": Fraction(100), "rho": Fraction(1000), "delta": Fraction(1, 2)}
SPEND_DOMAIN = "one of {'epsilon': e}, {'rho': r}, {'epsilon': e, 'delta': d} or {'rho': r, 'delta': d}, each > 0"


@dataclass(frozen=True)
class Spend:
    """The most an answer may cost: an amount of epsilon or rho, and a delta.

    Args:
        amount: Exact, > 0.
        currency: "epsilon" or "rho".
        delta: Exact; 0 if none was named.
    """

    amount: Fraction
    currency: str
    delta: Fraction = Fraction(0)

    @classmethod
    def stated(cls, spend: object) -> Spend:
        """Return the spend as typed; a float is read as its shortest decimal.

        Raises:
            DomainError: If it is no such mapping, or a number is not in (0, 100] for epsilon, (0,
                1000] for rho, (0, 1/2] for delta.
        """
        if not isinstance(spend, Mapping) or ("epsilon" in spend) == ("rho" in spend):
            raise DomainError("spend", spend, SPEND_DOMAIN)
        named = cast("Mapping[object, object]", spend)
        if not set(named) <= set(_LIMITS):
            raise DomainError("spend", dict(named), SPEND_DOMAIN)
        amounts = {str(name): exact(f"spend[{name!r}]", value) for name, value in named.items()}
        for name, amount in amounts.items():
            if not 0 < amount <= _LIMITS[name]:
                raise DomainError(
                    f"spend[{name!r}]", named[name], f"a number > 0 and at most {_LIMITS[name]}"
                )
        currency = "rho" if "rho" in amounts else "epsilon"
        return cls(amounts[currency], currency, amounts.get("delta", Fraction(0)))

    def part(self, part: Fraction, *, delta: bool = True) -> Spend:
        """Return this fraction of the amount, with the same fraction of the delta or none."""
        return Spend(self.amount * part, self.currency, self.delta * part if delta else Fraction(0))

    def with_delta(self, delta: Fraction) -> Spend:
        """Return the same amount with another delta."""
        return Spend(self.amount, self.currency, delta)

    def amounts(self, read: Callable[[Fraction], Any] = Fraction) -> dict[str, Any]:
        """Return the amounts by currency, exact by default; `float` and `str` convert them for
        people and ledgers.
        """
        named = {self.currency: self.amount} | ({"delta": self.delta} if self.delta else {})
        return {currency: read(amount) for currency, amount in named.items()}


def below(number: Fraction) -> float:
    """Return a double below `number` by about the reserve. Noise made for it has a price within
    `number`.
    """
    return double_below(number * (1 - RESERVE))


LARGEST_SCORE = 2**62
"""Scores are clamped to this absolute value, since the sampler takes 64 bits."""


@dataclass(frozen=True)
class Selection:
    """Private selection of the candidate with the least score, by noise of one scale on each score.

    A spend in epsilon buys permute-and-flip (exponential noise), whose expected error is at most
    that of the exponential mechanism. Its privacy losses are at most those of Laplace noise;
    choices in several groups compose like Laplace noise on several numbers. A spend in rho buys the
    exponential mechanism: candidate i has probability proportional to e^(-score_i / scale). One
    unit moves every score by at most `change`, so all losses lie in an interval of length 2 change
    / scale (bounded range), which costs a quarter of the rho of a pure mechanism with that epsilon.
    Choices for several groups together have bounded range too, with `change` summed over groups.

    Args:
        scale: The scale of the noise; used exactly as this double.
        change: How far one unit moves any score, summed over groups.
        monotone: Whether one unit moves all scores in the same direction, as it does counts. Then
            each moves by between 0 and `change`, so all losses lie in an interval of length change
            / scale.
        flips: Whether the mechanism is permute-and-flip.

    Reference: [McKennaSheldon2020, Algorithm 1], [DongDurfeeRogers2020, Definition 3.1],
    [McSherryTalwar2007, Definition 2]
    """

    scale: float
    change: int
    monotone: bool = False
    flips: bool = False

    @classmethod
    def costing(cls, change: int, spend: Spend, *, monotone: bool = False) -> Selection:
        """Return the selection with the least scale whose certified price is within the epsilon, or
        within the rho, epsilon^2 / 8.
        """
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
        """The mechanism that is charged for all choices together: epsilon is 2 change / scale, or
        half of it for monotone scores.
        """
        ways = 1 if self.monotone else 2
        epsilon = rounded_up(ways * Fraction(self.change) / Fraction(self.scale))
        return (
            PermuteAndFlip(epsilon, monotone=self.monotone) if self.flips else Exponential(epsilon)
        )

    def draw(self, scores: Sequence[int]) -> int:
        """Draw the index of a candidate; candidates with small scores are likely."""
        within = [max(min(score, LARGEST_SCORE), -LARGEST_SCORE) for score in scores]
        return sampler.least_with_noise(within, scale=self.scale, flips=self.flips)

    def error(self, candidates: int, failure: float) -> float:
        """Return a bound on how far the chosen score is above the best, which fails with
        probability at most `failure`.

        It is scale (ln candidates + ln(1 / failure)).

        Reference: [DworkRoth2014, Corollary 3.12]
        """
        return self.scale * (math.log(candidates) - math.log(failure))

    def plain(self) -> dict[str, object]:
        """Return the description that the ledger stores."""
        found: dict[str, object] = {
            "selection": "permute-and-flip" if self.flips else "exponential mechanism",
            "scale": repr(self.scale),
            "change": self.change,
        }
        return found | ({"monotone": True} if self.monotone else {})


LARGEST_SHIFT, MOST_COORDINATES = 4096, 1024
SUMMED = 60.0
"""The largest sigma with summed tails; above, the normal's are exact to e^(-2 pi^2 60^2)."""


@dataclass(frozen=True)
class Noise(ABC):
    """Discrete noise on a vector of integers.

    Args:
        spread: The scale of Laplace noise or the sigma of Gaussian noise; used exactly as this
            double.
        change: The sensitivity of the vector to one unit.
    """

    spread: float
    change: Change

    @property
    @abstractmethod
    def mechanism(self) -> Composable:
        """The mechanism that is charged."""

    @abstractmethod
    def draw(self, values: Sequence[int]) -> list[int]:
        """Return each value plus independent noise."""

    @abstractmethod
    def error(self, failure: float) -> int:
        """Return the least t such that the noise on one coordinate exceeds t in absolute value with
        at most this probability.
        """

    @abstractmethod
    def error_with(self, other: Noise, weight: float, failure: float) -> float:
        """Return a t that |noise + weight * other noise| exceeds with at most this probability;
        both are of one kind.
        """

    @abstractmethod
    def plain(self) -> dict[str, object]:
        """Return the description that the ledger stores."""

    @abstractmethod
    def passing(self, probability: float) -> int:
        """Return the least t for which an upper bound on P(noise >= t) is at most this probability."""

    @property
    def shift(self) -> int | tuple[int, ...] | None:
        """The worst change of the vector as a mechanism's shift; None if no single change is worst,
        or it is too long.
        """
        worst, change = self.change.worst, self.change
        if worst is None or change.largest > LARGEST_SHIFT or change.coordinates > MOST_COORDINATES:
            return None
        return worst[0] if len(worst) == 1 else worst


class DiscreteLaplaceNoise(Noise):
    """Discrete Laplace noise: P(x) is proportional to e^(-|x| / scale)."""

    @classmethod
    def costing(cls, change: Change, spend: Spend) -> DiscreteLaplaceNoise:
        """Return the noise with the least scale whose certified price is within the epsilon."""
        epsilon = below(spend.amount)
        noise = cls(rounded_up(Fraction(change.l1) / Fraction(epsilon)), change)
        price = compose(noise.mechanism).pure()
        assert price is not None and Fraction(price) <= spend.amount, (
            "the reserve covers the rounding of a price"
        )
        return noise

    @property
    def mechanism(self) -> Composable:
        """The composition over the coordinates of the worst change, if there is one; else epsilon =
        l1 / scale.
        """
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

    def error_with(self, other: Noise, weight: float, failure: float) -> float:
        """Return the quantile for continuous Laplace noise of scales a >= b, plus half a step for
        each rounding.

        P(|X + Y| > t) = (a^2 e^(-t / a) - b^2 e^(-t / b)) / (a^2 - b^2), and (1 + t / 2a) e^(-t /
        a) for a = b. With r = b / a and t = a s it lies between e^-s and (1 + s / 2) e^-s.
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
    """Discrete Gaussian noise: P(x) is proportional to e^(-x^2 / (2 sigma^2))."""

    @classmethod
    def costing(cls, change: Change, spend: Spend) -> DiscreteGaussianNoise:
        """Return noise whose certified price is within the rho, or within the epsilon at the delta."""
        if spend.currency == "rho":
            sigma = math.sqrt(change.l2_squared / (2 * below(spend.amount))) * (1 + 1e-13)
        else:
            sigma = _calibrated(change, spend)
        noise = cls(sigma, change)
        price = compose(noise.mechanism).zcdp()
        assert price is not None
        assert spend.currency != "rho" or Fraction(price.rho) <= spend.amount, (
            "the reserve covers the rounding"
        )
        return noise

    @property
    def mechanism(self) -> Composable:
        """The composition over the coordinates of the worst change, if there is one; else rho =
        l2^2 / (2 sigma^2).
        """
        if self.shift is not None and 1e-2 < self.spread < 1e9:
            return DiscreteGaussian(self.spread, shift=self.shift)
        return Concentrated(
            rounded_up(Fraction(self.change.l2_squared) / (2 * Fraction(self.spread) ** 2))
        )

    def draw(self, values: Sequence[int]) -> list[int]:
        return sampler.discrete_gaussian(values, sigma=self.spread)

    def error(self, failure: float) -> int:
        if self.spread > SUMMED:
            # P(|X| <= t) is the normal's probability of [-t - 1/2, t + 1/2], up to a relative error
            # of 1 / (24 sigma^2).
            return max(math.ceil(self.spread * -NormalDist().inv_cdf(failure / 2) - 0.5), 0)
        # Weights proportional to the probabilities of 0, 1, 2, ..., as far as they are not
        # negligible.
        masses = [
            math.exp(-x * x / (2 * self.spread**2)) for x in range(math.ceil(12 * self.spread) + 2)
        ]
        most, beyond = failure * (2 * math.fsum(masses) - masses[0]), 0.0
        # Summing from the tail keeps the digits of small probabilities.
        for reach in range(len(masses) - 1, 0, -1):
            beyond += 2 * masses[reach]
            if beyond > most:
                return reach
        return 0

    def error_with(self, other: Noise, weight: float, failure: float) -> float:
        both = math.hypot(self.spread, weight * other.spread)
        return -NormalDist().inv_cdf(failure / 2) * both + (1 + abs(weight)) / 2

    def plain(self) -> dict[str, object]:
        return {
            "noise": "discrete gaussian",
            "sigma": repr(self.spread),
            "l2 squared": self.change.l2_squared,
        }

    def passing(self, probability: float) -> int:
        """The bound used is P(X >= t) <= P(N(0, sigma^2) >= t - 1), for discrete Gaussian X.

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
    """Return Laplace noise for a spend in epsilon; Gaussian noise for rho, or for epsilon with a
    delta.
    """
    if spend.currency == "epsilon" and not spend.delta:
        return DiscreteLaplaceNoise.costing(change, spend)
    return DiscreteGaussianNoise.costing(change, spend)


def rho_within(spend: Spend) -> float:
    """Return the largest rho that is within an epsilon with a delta."""
    epsilon, delta = below(spend.amount), below(spend.delta)
    return calibrate(Concentrated, epsilon=epsilon, delta=delta, parameter="increasing").value


def _calibrated(change: Change, spend: Spend) -> float:
    """Return a sigma for which the mechanism is certified (epsilon, delta)-differentially private."""
    epsilon, delta = below(spend.amount), below(spend.delta)
    enough = math.sqrt(change.l2_squared / (2 * rho_within(spend))) * (1 + 1e-9)
    # The curve of the continuous Gaussian gives a first guess; then the discrete mechanism itself
    # is checked.
    length = math.sqrt(change.l2_squared)
    sigma = length * calibrate(Gaussian, epsilon=epsilon, delta=delta).value * (1 + 1e-6)
    while sigma < enough:
        noise = DiscreteGaussianNoise(sigma, change)
        if compose(noise.mechanism).epsilon(delta=delta).upper <= epsilon:
            return sigma
        sigma *= 1.02
    return enough


SUMMED_STEPS = 16.0
"""The largest spread of a denominator's noise that is summed value by value."""
SCANNED, HALVINGS = 16, 26


def quotient_interval(
    released: tuple[float, int],
    noises: tuple[Noise, Noise],
    ends: tuple[float, float],
    failure: float,
) -> tuple[float, float]:
    """Return a confidence interval for the quotient of two sums with noise, within two ends.

    With noise x on the numerator and y on the denominator and released values a and b, the true
    quotient t satisfies a - t b = x - t y, whose distribution is known. The interval contains every
    t for which P(|x - t y| >= |a - t b|) exceeds the failure probability, so it misses the truth
    with at most that probability. If these t are not one interval, their hull is returned; a scan
    from both ends finds it.

    Args:
        released: The noisy numerator and denominator.
        noises: The noise on each.
        ends: The smallest and largest possible quotient.
        failure: The allowed probability to miss the truth.

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
    """Return the number closest to `outer` that is plausible, searched from outside; `inner` is
    plausible.
    """
    inside, outside = inner, outer
    for step in range(SCANNED):
        # The steps become finer towards `inner`, where most intervals end.
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
    """Whether P(|noise + weight * other noise| >= reach) exceeds `chance`, up to steps of the
    noise; both are of one kind.
    """
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
        # The noise is symmetric in y, so one tail suffices; where the two tails overlap, the
        # probability is 1.
        found += mass * min(tail(spread, reach - size * y) + tail(spread, reach + size * y), 1.0)
        if found > chance or found + rest <= chance:
            break
    return found > chance


def _beyond(spread: float, other: float, within: float, *, laplace: bool) -> float:
    """Return P(|x + y| >= within) for continuous noise of these spreads."""
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
    """Return for 0, 1, 2, ...: the value, the probability of both signs together, and the
    probability of all larger absolute values.
    """
    reach = math.ceil(spread * (30 if laplace else 8)) + 2
    masses = [_shape(spread, y, laplace) * (2 if y else 1) for y in range(reach)]
    whole = math.fsum(masses)
    rests = list(accumulate(reversed(masses)))[::-1]
    return [(y, mass / whole, (rests[y] - mass) / whole) for y, mass in enumerate(masses)]


def _laplace_tail(scale: float, reach: float) -> float:
    """Return P(x >= reach): q^t / (1 + q) for t >= 0, with q = e^(-1 / scale); else 1 - P(x >= 1 -
    t).
    """
    steps = math.ceil(reach - 1e-9)
    below = math.exp(-abs(steps if steps > 0 else 1 - steps) / scale) / (1 + math.exp(-1 / scale))
    return below if steps > 0 else 1 - below


def _gaussian_tail(sigma: float, reach: float) -> float:
    """Return P(x >= reach), summed for small sigma, else the normal's at half a step less."""
    steps = math.ceil(reach - 1e-9)
    if sigma > SUMMED_STEPS:
        return 0.5 * math.erfc((steps - 0.5) / sigma / math.sqrt(2))
    tails = _tails(sigma)
    if steps <= 0:
        return 1 - (tails[1 - steps] if 1 - steps < len(tails) else 0.0)
    return tails[steps] if steps < len(tails) else 0.0


@cache
def _tails(sigma: float) -> Sequence[float]:
    """Return P(x >= t) for t = 0, 1, 2, ..., x discrete Gaussian."""
    masses = _masses(sigma, False)
    found = [0.0]
    for y, mass, _ in reversed(masses):
        found.append(found[-1] + (mass / 2 if y else mass))
    return found[::-1]
