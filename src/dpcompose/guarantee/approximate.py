"""(epsilon, delta)-differential privacy: Definition 2.4."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from dpcompose.errors import DomainError
from dpcompose.numerics import check
from dpcompose.numerics.bound import Bound


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
        object.__setattr__(self, "epsilon", epsilon_of("epsilon", self.epsilon))
        object.__setattr__(self, "delta", check.probability("delta", self.delta))

    @property
    def vacuous(self) -> bool:
        """Whether nothing is promised."""
        return self.epsilon == math.inf or self.delta == 1.0

    def tradeoff(self, alpha: float) -> Bound:
        """The smallest type II error that the promise allows at type I error alpha; see `guarantee.tradeoff`."""
        from dpcompose.guarantee import tradeoff

        return tradeoff.approximate(alpha, promise=self)


def promise_of(value: object) -> ApproximateDP:
    """`value`, if it is an (epsilon, delta) promise."""
    if not isinstance(value, ApproximateDP):
        raise DomainError("promise", value, "an ApproximateDP")
    return value


def epsilon_of(name: str, value: object) -> float:
    """`value` as a float in [0, inf]."""
    number = check.real(name, value)
    if not number >= 0.0:
        raise DomainError(name, value, "a number >= 0")
    return number + 0.0
