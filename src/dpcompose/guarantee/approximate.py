"""(epsilon, delta)-differential privacy: Definition 2.4."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass
from fractions import Fraction

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.values import UNIT_ROUNDOFF, Bound, Certificate, down, up

_CLOSED_FORM = Certificate("closed form, round-off bounded", unit="relative type II error")


@dataclass(frozen=True)
class ApproximateDP:
    """P[M(x) in S] <= e^epsilon P[M(x') in S] + delta, for both orders of every pair of neighbors and every S.

    An infinite epsilon, or a delta of 1, promises nothing.

    >>> ApproximateDP(0.5, delta=1e-6)
    ApproximateDP(epsilon=0.5, delta=1e-06)

    Args:
        epsilon: In nats; >= 0, infinite allowed.
        delta: In [0, 1].

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
        """Whether nothing is promised."""
        return self.epsilon == math.inf or self.delta == 1.0

    def tradeoff(self, alpha: float) -> Bound:
        """The smallest type II error that the promise allows at type I error alpha: the function `tradeoff`."""
        return tradeoff(alpha, promise=self)


def blowup(alpha: float, *, promise: ApproximateDP) -> Bound:
    """The largest power at level alpha of a test against an (epsilon, delta)-DP mechanism: 1 minus the trade-off.

    min(1, delta + e^epsilon alpha, 1 - e^-epsilon (1 - delta - alpha)); certified to a few units in the last place.

    >>> round(blowup(0.3, promise=ApproximateDP(0.5, delta=1e-3)).upper, 13)
    0.49561638121

    Args:
        alpha: The type I error, in [0, 1].
        promise: The mechanism's promise.

    Raises:
        DomainError: If alpha is outside [0, 1], or promise is not an ApproximateDP.

    Reference: [DongRothSu2022, Proposition 2.5]
    """
    alpha, promise = check.probability("alpha", alpha), promise_of(promise)
    epsilon, delta = promise.epsilon, promise.delta
    if promise.vacuous or Fraction(alpha) >= 1 - Fraction(delta):
        return Bound(1.0, 1.0, _CLOSED_FORM)
    # The third line as a sum of positive terms, (1 - e^-epsilon) + e^-epsilon (delta + alpha).
    steep = delta + math.exp(min(epsilon, 700.0)) * alpha
    shallow = -math.expm1(-epsilon) + math.exp(-epsilon) * (delta + alpha)
    lower = min(1.0, steep, shallow)
    # Beyond e^700 the steep line is known from below only.
    upper = lower if epsilon <= 700.0 or alpha == 0.0 else min(1.0, shallow)
    return Bound(
        max(0.0, down(lower * (1.0 - 16 * UNIT_ROUNDOFF))),
        min(1.0, up(upper * (1.0 + 16 * UNIT_ROUNDOFF))),
    )


def tradeoff(alpha: float, *, promise: ApproximateDP) -> Bound:
    """The trade-off of (epsilon, delta)-DP: max(0, 1 - delta - e^epsilon alpha, e^-epsilon (1 - delta - alpha)).

    >>> tradeoff(0.05, promise=ApproximateDP(1.0, delta=1e-5)).contains(0.8640759085770477)
    True

    Args:
        alpha: The type I error, in [0, 1].
        promise: The mechanism's promise.

    Raises:
        DomainError: If alpha is outside [0, 1], or promise is not an ApproximateDP.

    Reference: [DongRothSu2022, Proposition 2.5]
    """
    power = blowup(alpha, promise=promise)
    room = 1 - Fraction(alpha) - Fraction(promise.delta)
    if promise.vacuous or room <= 0:
        return Bound(0.0, 0.0, _CLOSED_FORM)
    # Where the third line is active, its own form keeps the relative accuracy that 1 - power loses.
    shallow = math.exp(-promise.epsilon) * float(room)
    lower = max(0.0, down(1.0 - power.upper), down(shallow * (1.0 - 16 * UNIT_ROUNDOFF)))
    return Bound(lower, max(lower, up(1.0 - power.lower)), _CLOSED_FORM)


def promise_of(value: object) -> ApproximateDP:
    """`value`, if it is an (epsilon, delta) promise."""
    if not isinstance(value, ApproximateDP):
        raise DomainError("promise", value, "an ApproximateDP")
    return value


def checked_epsilon(name: str, value: object) -> float:
    """`value` as a float in [0, inf]."""
    number = check.real(name, value)
    if not number >= 0.0:
        raise DomainError(name, value, "a number >= 0")
    return number + 0.0
