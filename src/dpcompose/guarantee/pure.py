"""Pure differential privacy, and what it implies under the other definitions: randomized response is the worst case."""

from __future__ import annotations

import math

from dpcompose import check
from dpcompose.guarantee.approximate import checked_epsilon
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.values import UNIT_ROUNDOFF, up


def pure_renyi(epsilon: float, *, order: float) -> float:
    """The largest Renyi divergence that (epsilon, 0)-DP allows, that of randomized response; rounded up.

    log(cosh((order - 1/2) epsilon) / cosh(epsilon / 2)) / (order - 1): every (epsilon, 0)-DP pair of distributions is a
    post-processing of randomized response.

    >>> round(pure_renyi(1.0, order=2.0), 14), round(pure_renyi(0.3, order=8.0), 14)
    (0.73532566405552, 0.22238464291144)

    Args:
        epsilon: In nats; >= 0, infinite allowed.
        order: The order; finite, > 1.

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
    """The smallest rho for which (epsilon, 0)-DP implies rho-zCDP: epsilon tanh(epsilon / 2); rounded up.

    By the Renyi divergence of randomized response: log cosh sqrt(w) is concave, hence the difference
    log cosh((order - 1/2) epsilon) - log cosh(epsilon / 2) is at most order (order - 1) epsilon tanh(epsilon / 2), with
    equality in the limit of order 1. It is below the epsilon^2 / 2 of [BunSteinke2016, Proposition 1.4].

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
