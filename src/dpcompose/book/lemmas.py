"""Lemma 3.18, the mean of a bounded privacy loss, and Lemma 3.19, the tail of a sum of bounded variables."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal

from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import epsilon_of
from dpcompose.numerics import check
from dpcompose.numerics.exact import digits, expm1, float_above, tanh


@dataclass(frozen=True)
class MeanLoss:
    """Two upper bounds on a Kullback-Leibler divergence, in nats.

    Args:
        book: As printed.
        tight: The least that is true.
    """

    book: float
    tight: float


def kl_bound(epsilon: float) -> MeanLoss:
    """If the loss lies within +-epsilon in both directions, its mean is at most epsilon (e^epsilon - 1); rounded up.

    The tight bound is epsilon tanh(epsilon / 2) = epsilon (e^epsilon - 1) / (e^epsilon + 1), attained by randomized
    response (`book.extreme_pair`): more than twice smaller.

    >>> bound = kl_bound(1.0)
    >>> round(bound.book, 12), round(bound.tight, 12)
    (1.718281828459, 0.46211715726)

    Args:
        epsilon: In nats; in [0, inf].

    Raises:
        DomainError: If epsilon is negative or NaN.

    Reference: [DworkRoth2014, Lemma 3.18]
    """
    epsilon = epsilon_of("epsilon", epsilon)
    if epsilon > 700.0:
        return MeanLoss(math.inf, epsilon)
    with decimal.localcontext(digits(80)):
        each = Decimal(epsilon)
        return MeanLoss(float_above(each * expm1(each)), min(epsilon, float_above(each * tanh(each / 2))))


@dataclass(frozen=True)
class Deviation:
    """P[sum > threshold] <= probability, both rounded up.

    Args:
        threshold: The number that the sum is compared with.
        probability: The bound.
    """

    threshold: float
    probability: float


def azuma(deviations: float, *, times: int, size: float, drift: float) -> Deviation:
    """If |C_i| <= size and E[C_i | past] <= drift, then P[sum C_i > k drift + z sqrt(k) size] <= e^(-z^2 / 2).

    It is Hoeffding's form, which uses that each C_i varies over a range of 2 size; Azuma's own, with |C_i - E C_i| <=
    2 size, would give e^(-z^2 / 8).

    >>> round(azuma(3.0, times=100, size=0.1, drift=0.005).probability, 15)
    0.011108996538242

    Args:
        deviations: The z of the lemma; finite, > 0.
        times: The number of variables, an integer from 1 to 10^15.
        size: The bound on each of them; finite, >= 0.
        drift: The bound on each conditional mean; finite, of at most `size` in absolute value.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Lemma 3.19]
    """
    deviations, times = check.positive("deviations", deviations), check.times(times, least=1)
    size, drift = check.nonnegative("size", size), check.finite("drift", drift)
    if not abs(drift) <= size:
        raise DomainError("drift", drift, f"at most the size {size!r} in absolute value: no variable has another mean")
    with decimal.localcontext(digits(80)):
        score = Decimal(deviations)
        reach = score * Decimal(times).sqrt() * Decimal(size)
        # A negative drift may cancel nearly all of it, and most of the known digits.
        threshold = times * Decimal(drift) + reach * (1 + Decimal("1e-70"))
        return Deviation(float_above(threshold), float_above((-min(score * score / 2, Decimal(10**6))).exp()))
