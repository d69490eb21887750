"""Zero-concentrated differential privacy (zCDP) and its conversions to and from (epsilon, delta)."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.guarantee import renyi
from dpcompose.guarantee.approximate import (
    checked_epsilon,
    remaining_delta,
)
from dpcompose.values import UNIT_ROUNDOFF, up


@dataclass(frozen=True)
class ConcentratedDP:
    """rho-zCDP up to delta: the Renyi divergence of every order a > 1 is at most rho a.

    With delta > 0 the bound holds for both output distributions conditioned on an event of
    probability at least 1 - delta.

    >>> ConcentratedDP(0.5)
    ConcentratedDP(rho=0.5, delta=0.0)

    Args:
        rho: The bound on the Renyi divergence of order a, divided by a; finite, >= 0.
        delta: The probability outside which the bound holds, in [0, 1].

    Raises:
        DomainError: If rho is not a finite number >= 0, or delta is outside [0, 1].

    Reference: [BunSteinke2016, Definitions 1.1 and 8.1]
    """

    rho: float
    _: KW_ONLY
    delta: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", check.nonnegative("rho", self.rho))
        object.__setattr__(self, "delta", check.probability("delta", self.delta))

    def renyi(self, order: float) -> float:
        """The bound rho * order, rounded up, on the Renyi divergence of order `order`."""
        return up(self.rho * check.order(order))

    @property
    def orders(self) -> tuple[float, ...]:
        """The orders at which the slope of the curve jumps: the empty tuple, since it is a line."""
        return ()

    def epsilon(self, *, delta: float) -> float:
        """An epsilon for which the guarantee implies (epsilon, delta)-DP; see
        `concentrated_epsilon`.
        """
        return concentrated_epsilon(self, delta=delta)


def bun_steinke_epsilon(promise: ConcentratedDP, *, delta: float) -> float:
    """The epsilon rho + 2 sqrt(rho log(1 / delta)) that rho-zCDP implies at `delta`; rounded up.

    If the guarantee has a delta d of its own, the formula is used at (delta - d) / (1 - d); epsilon
    is infinite for delta <= d (unless both are 0 and rho is 0).

    >>> round(bun_steinke_epsilon(ConcentratedDP(0.5), delta=1e-6), 13)
    5.7565217697569

    Args:
        promise: The zCDP guarantee to convert.
        delta: In [0, 1].

    Raises:
        DomainError: If delta is outside [0, 1], or promise is not a ConcentratedDP.

    Reference: [BunSteinke2016, Proposition 1.3]
    """
    promise = _checked(promise)
    remaining = _remaining(promise, delta)
    if remaining is None:
        return math.inf
    if promise.rho == 0.0 or remaining == 1.0:
        return 0.0
    if remaining == 0.0:
        return math.inf
    logarithm = -math.log(remaining)
    return up((promise.rho + 2.0 * math.sqrt(promise.rho * logarithm)) * (1.0 + 16 * UNIT_ROUNDOFF))


def concentrated_epsilon(promise: ConcentratedDP, *, delta: float) -> float:
    """An upper bound on the smallest epsilon that zCDP implies at `delta`, by a search over orders.

    Each order is converted exactly. The result is at most that of `bun_steinke_epsilon` and, to the
    accuracy of the search, of [CanonneKamathSteinke2020, Corollary 13]. If the guarantee has a
    delta d of its own, the bound is converted at (delta - d) / (1 - d).

    >>> 5.2 < concentrated_epsilon(ConcentratedDP(0.5), delta=1e-6) < 5.2215344
    True

    Args:
        promise: The zCDP guarantee to convert.
        delta: In [0, 1].

    Raises:
        DomainError: If delta is outside [0, 1], or promise is not a ConcentratedDP.

    Reference: [Asoodeh2021, Section III], [CanonneKamathSteinke2020, Corollary 13]
    """
    promise = _checked(promise)
    remaining = _remaining(promise, delta)
    if remaining is None:
        return math.inf
    if promise.rho == 0.0 or remaining == 1.0:
        return 0.0
    if remaining == 0.0:
        return math.inf
    return min(
        bun_steinke_epsilon(promise, delta=delta),
        renyi.renyi_epsilon(promise.renyi, delta=remaining).epsilon,
    )


def optimal_moment_delta(promise: ConcentratedDP, *, epsilon: float) -> float:
    """An upper bound on the smallest delta that zCDP implies at `epsilon`, by one moment.

    >>> round(optimal_moment_delta(ConcentratedDP(0.5), epsilon=5.0) * 1e6, 9)
    2.896122809

    Args:
        promise: The zCDP guarantee to convert; if it has a delta d of its own, the result is d + (1
            - d) delta.
        epsilon: In nats; >= 0, infinite allowed.

    Raises:
        DomainError: If epsilon is negative or NaN, or promise is not a ConcentratedDP.

    Reference: [CanonneKamathSteinke2020, Corollary 13]
    """
    promise, epsilon = _checked(promise), checked_epsilon("epsilon", epsilon)
    if promise.rho == 0.0:
        return promise.delta
    return min(1.0, up(promise.delta + renyi.renyi_delta(promise.renyi, epsilon=epsilon)))


def _checked(promise: object) -> ConcentratedDP:
    if not isinstance(promise, ConcentratedDP):
        raise DomainError("promise", promise, "a ConcentratedDP")
    return promise


def _remaining(promise: ConcentratedDP, delta: float) -> float | None:
    # The delta that remains for the concentrated part, rounded down; None where none does.
    remaining = remaining_delta(check.probability("delta", delta), ((promise.delta, 1),))
    return None if remaining is None or remaining.lower < 0.0 else remaining.lower


# Pure differential privacy, and what it implies under the other definitions: randomized response is the worst case.


def pure_renyi(epsilon: float, *, order: float) -> float:
    """The largest Renyi divergence of order `order` under (epsilon, 0)-DP, in nats; rounded up.

    It is log(cosh((order - 1/2) epsilon) / cosh(epsilon / 2)) / (order - 1), the divergence of
    randomized response, of which every (epsilon, 0)-DP pair of distributions is a post-processing.

    >>> round(pure_renyi(1.0, order=2.0), 14), round(pure_renyi(0.3, order=8.0), 14)
    (0.73532566405552, 0.22238464291144)

    Args:
        epsilon: In nats; >= 0, infinite allowed.
        order: The order of the divergence; finite, > 1.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [Mironov2017, Proposition 5]
    """
    epsilon, order = checked_epsilon("epsilon", epsilon), check.order(order)
    if epsilon == math.inf:
        return math.inf
    # cosh A - cosh B = 2 sinh((A + B) / 2) sinh((A - B) / 2): nothing cancels.
    first, second, half = order * epsilon / 2.0, (order - 1.0) * epsilon / 2.0, epsilon / 2.0
    if first < 300.0:
        value = math.log1p(2.0 * math.sinh(first) * (math.sinh(second) / math.cosh(half))) / (
            order - 1.0
        )
        return min(epsilon, up(value * (1.0 + UNIT_ROUNDOFF * (40.0 + 8.0 * first))))
    numerator, denominator = (
        math.log1p(math.exp(-epsilon)),
        math.log1p(math.exp(-(2.0 * order - 1.0) * epsilon)),
    )
    return min(
        epsilon,
        up((epsilon - (numerator - denominator) / (order - 1.0)) * (1.0 + 24 * UNIT_ROUNDOFF)),
    )


def pure_concentrated(epsilon: float) -> ConcentratedDP:
    """The smallest rho for which (epsilon, 0)-DP implies rho-zCDP, rounded up.

    It is epsilon tanh(epsilon / 2).

    Proof, from the Renyi divergence of randomized response: log cosh sqrt(w) is concave in w, hence
    log cosh((order - 1/2) epsilon) - log cosh(epsilon / 2) is at most order (order - 1) epsilon
    tanh(epsilon / 2), with equality in the limit of order 1. The rho is below the epsilon^2 / 2 of
    [BunSteinke2016, Proposition 1.4].

    >>> round(pure_concentrated(1.0).rho, 14)
    0.46211715726001

    Args:
        epsilon: In nats; finite, >= 0.

    Raises:
        DomainError: If epsilon is not a finite number >= 0.

    Reference: [BunSteinke2016, Proposition 3.3]
    """
    epsilon = check.nonnegative("epsilon", epsilon)
    return ConcentratedDP(
        min(epsilon, up(epsilon * math.tanh(epsilon / 2.0) * (1.0 + 12 * UNIT_ROUNDOFF)))
    )
