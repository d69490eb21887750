"""Theorems 3.14 and 3.16, Corollary 3.15: epsilons and deltas add up."""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.numerics.exact import rounded_up


def basic(promises: Iterable[tuple[float, float]]) -> ApproximateDP:
    """Mechanisms that are (epsilon_i, delta_i)-DP compose to (sum epsilon_i, sum delta_i)-DP; each sum is rounded up.

    Theorem 3.14 and Corollary 3.15 are the case of zero deltas. It also holds when mechanisms, databases and parameters
    are chosen from earlier answers, as long as the sums stay within a budget fixed in advance.

    >>> basic([(0.5, 0.0), (0.25, 1e-6)])
    ApproximateDP(epsilon=0.75, delta=1e-06)

    Args:
        promises: Pairs (epsilon, delta): epsilon in [0, inf], delta in [0, 1].

    Raises:
        DomainError: If an element is not such a pair.

    Reference: [DworkRoth2014, Theorem 3.16]
    """
    checked = promises_of(promises)
    delta = rounded_up(min(Fraction(1), sum((Fraction(promise.delta) for promise in checked), Fraction(0))))
    if any(promise.epsilon == math.inf for promise in checked):
        return ApproximateDP(math.inf, delta=delta)
    return ApproximateDP(rounded_up(sum((Fraction(promise.epsilon) for promise in checked), Fraction(0))), delta=delta)


def promises_of(pairs: Any) -> list[ApproximateDP]:
    """Pairs (epsilon, delta) as promises.

    Raises:
        DomainError: If it is not an iterable of such pairs.
    """
    try:
        items = list(pairs)
    except TypeError:
        raise DomainError("promises", pairs, "pairs (epsilon, delta)") from None
    return [_promise(item) for item in items]


def _promise(item: Any) -> ApproximateDP:
    try:
        epsilon, delta = item
    except (TypeError, ValueError):
        raise DomainError("promises", item, "each a pair (epsilon, delta)") from None
    return ApproximateDP(epsilon, delta=delta)
