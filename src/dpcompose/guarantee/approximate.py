"""(epsilon, delta)-differential privacy: Definition 2.4."""

from __future__ import annotations

import decimal
import math
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from decimal import Decimal
from fractions import Fraction

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, decimal_context, down, up

_CLOSED_FORM = Certificate("closed form, round-off bounded", unit="relative type II error")


@dataclass(frozen=True)
class ApproximateDP:
    """An (epsilon, delta)-differential privacy guarantee.

    P[M(x) in S] <= e^epsilon P[M(x') in S] + delta, for both orders of every pair of neighbors and
    every event S. With epsilon infinite or delta 1 it guarantees nothing.

    >>> ApproximateDP(0.5, delta=1e-6)
    ApproximateDP(epsilon=0.5, delta=1e-06)

    Args:
        epsilon: The bound on the privacy loss, in nats; >= 0, infinite allowed.
        delta: The additive slack in probability, in [0, 1].

    Raises:
        DomainError: If epsilon is negative or NaN, or delta is outside [0, 1].

    Reference: [DworkRoth2014, Definition 2.4]
    """

    epsilon: float
    _: KW_ONLY
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", checked_epsilon("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check.probability("delta", self.delta))

    @property
    def vacuous(self) -> bool:
        """Whether the guarantee holds for every mechanism: epsilon is infinite or delta is 1."""
        return self.epsilon == math.inf or self.delta == 1.0

    def tradeoff(self, alpha: float) -> Bound:
        """The trade-off function of the guarantee at type I error `alpha`, in [0, 1]; see
        `tradeoff`.
        """
        return tradeoff(alpha, promise=self)


def blowup(alpha: float, *, promise: ApproximateDP) -> Bound:
    """The largest power of a level-`alpha` test between neighbors, under (epsilon, delta)-DP.

    It is 1 minus the trade-off function, min(1, delta + e^epsilon alpha, 1 - e^-epsilon (1 - delta
    - alpha)), certified to a few units in the last place.

    >>> round(blowup(0.3, promise=ApproximateDP(0.5, delta=1e-3)).upper, 13)
    0.49561638121

    Args:
        alpha: The type I error, in [0, 1].
        promise: The (epsilon, delta) guarantee of the mechanism.

    Raises:
        DomainError: If alpha is outside [0, 1], or promise is not an ApproximateDP.

    Reference: [DongRothSu2022, Proposition 2.5]
    """
    alpha, promise = check.probability("alpha", alpha), promise_of(promise)
    epsilon, delta = promise.epsilon, promise.delta
    if promise.vacuous or Fraction(alpha) >= 1 - Fraction(delta):
        return Bound(1.0, 1.0, _CLOSED_FORM)
    # The third term of the minimum, written as a sum of positive numbers: (1 - e^-epsilon) +
    # e^-epsilon (delta + alpha).
    steep = delta + math.exp(min(epsilon, 700.0)) * alpha
    shallow = -math.expm1(-epsilon) + math.exp(-epsilon) * (delta + alpha)
    lower = min(1.0, steep, shallow)
    # Above e^700 only a lower bound of the line delta + e^epsilon alpha is computed.
    upper = lower if epsilon <= 700.0 or alpha == 0.0 else min(1.0, shallow)
    return Bound(
        max(0.0, down(lower * (1.0 - 16 * UNIT_ROUNDOFF))),
        min(1.0, up(upper * (1.0 + 16 * UNIT_ROUNDOFF))),
    )


def tradeoff(alpha: float, *, promise: ApproximateDP) -> Bound:
    """The smallest type II error at type I error `alpha` of a test between neighbors, under
    (epsilon, delta)-DP.

    It is max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha)), with certified ends.

    >>> tradeoff(0.05, promise=ApproximateDP(1.0, delta=1e-5)).contains(0.8640759085770477)
    True

    Args:
        alpha: The type I error, in [0, 1].
        promise: The (epsilon, delta) guarantee of the mechanism.

    Raises:
        DomainError: If alpha is outside [0, 1], or promise is not an ApproximateDP.

    Reference: [DongRothSu2022, Proposition 2.5]
    """
    power = blowup(alpha, promise=promise)
    room = 1 - Fraction(alpha) - Fraction(promise.delta)
    if promise.vacuous or room <= 0:
        return Bound(0.0, 0.0, _CLOSED_FORM)
    # Where the third term is the largest, it is evaluated directly, since 1 - power would lose
    # relative accuracy.
    shallow = math.exp(-promise.epsilon) * float(room)
    lower = max(0.0, down(1.0 - power.upper), down(shallow * (1.0 - 16 * UNIT_ROUNDOFF)))
    return Bound(lower, max(lower, up(1.0 - power.lower)), _CLOSED_FORM)


def promise_of(value: object) -> ApproximateDP:
    """`value` itself; raises DomainError if it is not an ApproximateDP."""
    if not isinstance(value, ApproximateDP):
        raise DomainError("promise", value, "an ApproximateDP")
    return value


def checked_epsilon(name: str, value: object) -> float:
    """`value` as a float in [0, inf].

    Raises DomainError, which calls it `name`, if it is NaN or negative.
    """
    number = check.real(name, value)
    if not number >= 0.0:
        raise DomainError(name, value, "a number >= 0")
    return number + 0.0


# The probability that any of several (epsilon, delta) guarantees fails completely, and the delta
# that remains for the bounded losses.


Failures = Sequence[tuple[float, int]]
"""Pairs (delta, count): mechanisms with an infinite loss of probability delta."""


def with_failures(pure: Bound, failures: Failures, certificate: Certificate) -> Bound:
    """The delta of a composition, 1 - (1 - pure) prod (1 - delta_i)^(k_i), with certified ends.

    Args:
        pure: The delta of the composition given that no mechanism fails.
        failures: The failure probability delta_i of the mechanisms, each with its count k_i.
        certificate: The certificate of the result.
    """
    if any(delta == 1.0 and times for delta, times in failures):
        return Bound(1.0, 1.0, certificate)
    exponent = math.fsum(times * math.log1p(-delta) for delta, times in failures)
    if exponent == 0.0:
        return Bound(pure.lower, pure.upper, certificate)
    infinite, finite = -math.expm1(exponent), math.exp(exponent)
    error = UNIT_ROUNDOFF * (40.0 + 12.0 * min(abs(exponent), 800.0))
    lower = down((infinite + finite * pure.lower) * (1.0 - error))
    return Bound(
        max(0.0, lower), min(1.0, up((infinite + finite * pure.upper) * (1.0 + error))), certificate
    )


def remaining_delta(target: float, failures: Failures) -> Bound | None:
    """The delta allowed for a composition without failures, for a delta of `target` in all.

    It is (target - D) / (1 - D), where D = 1 - prod (1 - delta_i)^(k_i) is the probability that
    some mechanism fails. The result encloses it, and is None if it is certainly negative, that is
    if the target is infeasible.

    A negative lower end means that feasibility could not be decided.
    """
    failures = [(delta, times) for delta, times in failures if delta > 0.0 and times > 0]
    if not failures:
        return Bound(target, target)
    if len(failures) == 1 and failures[0] == (target, 1):
        return Bound(0.0, 0.0)
    quick = _remaining(target, failures)
    if quick is not None:
        return quick
    # Enough digits to tell k delta from 1 - (1 - delta)^k, which differ by about (k delta)^2 / 2.
    places = 80 + 2 * max(math.ceil(-math.log10(delta)) for delta, _ in failures)
    places = max(places, 80 + math.ceil(-math.log10(target)) if target else 0)
    with decimal.localcontext(decimal_context(places)):
        kept = Decimal(1)
        for delta, times in failures:
            kept *= (1 - Decimal(delta)) ** times
        failed = 1 - kept
        uncertain = Decimal(10) ** (20 - places)
        low, high = Decimal(target) - failed - uncertain, Decimal(target) - failed + uncertain
        if high < 0 or kept < uncertain:
            return None
        lower = down(float(low / kept))
        return Bound(lower if low < 0 else max(0.0, lower), min(1.0, up(float(high / kept))))


def _remaining(target: float, failures: Failures) -> Bound | None:
    """`remaining_delta` in floats; None where target - D would lose digits to cancellation."""
    if any(delta > 0.5 for delta, _ in failures):
        return None
    exponent = math.fsum(times * math.log1p(-delta) for delta, times in failures)
    # log1p errs by 8 u, so do expm1 and exp; the product and the sum by u each.
    failed = -math.expm1(exponent)
    difference = target - failed
    if not (
        difference > 1e-300
        and 40 * UNIT_ROUNDOFF * failed <= 1e-13 * difference
        and exponent > -1.0
    ):
        return None
    value = difference / math.exp(exponent)
    error = UNIT_ROUNDOFF * (20.0 * failed / difference - 10.0 * exponent + 16.0)
    return Bound(value * (1.0 - error), value * (1.0 + error))


def mirrored_epsilon(
    target: float, delta: Callable[[float], Bound], certificate: Certificate
) -> Bound:
    """The delta of a symmetric pair of distributions at `target` < 0.

    For such a pair delta(epsilon) = 1 - e^epsilon + e^epsilon delta(-epsilon), a sum of positive
    terms.

    Args:
        target: The epsilon, in nats; negative.
        delta: The privacy profile of the pair at epsilons >= 0.
        certificate: The certificate of the result.
    """
    floor, factor, other = -math.expm1(target), math.exp(target), delta(-target)
    error = 24 * UNIT_ROUNDOFF
    lower, upper = (
        (floor + factor * other.lower) * (1.0 - error),
        (floor + factor * other.upper) * (1.0 + error),
    )
    return Bound(max(0.0, down(lower)), min(1.0, up(upper)), certificate)
