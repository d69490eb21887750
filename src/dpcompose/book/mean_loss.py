"""Lemma 3.18: the mean of a bounded privacy loss."""

from __future__ import annotations

import decimal
import math
from dataclasses import dataclass
from decimal import Decimal

from dpcompose.guarantee.approximate import epsilon_of
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
