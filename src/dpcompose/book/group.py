"""Theorem 2.2, group privacy."""

from __future__ import annotations

from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.group import chained


def group(epsilon: float, *, delta: float = 0.0, size: int) -> ApproximateDP:
    """A group of k: (epsilon, delta) becomes (k epsilon, delta (1 + e^epsilon + ... + e^((k - 1) epsilon))).

    With delta = 0 it is the book's (k epsilon, 0). Both numbers are rounded up. The delta is the smallest at k epsilon;
    for smaller epsilons `guarantee.group.tight_delta` has the exact curve, and for Gaussians k mu is exact.

    >>> group(0.25, size=4)
    ApproximateDP(epsilon=1.0, delta=0.0)

    Args:
        epsilon: For one person, in [0, inf].
        delta: For one person, in [0, 1].
        size: The number of people, an integer from 1 to 10^5.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Theorem 2.2]
    """
    return chained(ApproximateDP(epsilon, delta=delta), size=size)
