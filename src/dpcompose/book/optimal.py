"""The optimal composition theorem, which the book announces and later papers prove."""

from __future__ import annotations

from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.optimal import homogeneous_epsilon


def optimal(epsilon: float, *, delta: float = 0.0, times: int, total_delta: float) -> ApproximateDP:
    """k mechanisms, each (epsilon, delta)-DP, make (epsilon', total_delta)-DP with the least epsilon'; rounded up.

    No theorem that knows only epsilon and delta of each mechanism can give less; both ends of it are what
    `guarantee.optimal.homogeneous_epsilon` returns. Infinite where total_delta < 1 - (1 - delta)^k.

    >>> round(optimal(0.1, times=100, total_delta=1e-6).epsilon, 12)
    4.774567588108

    Args:
        epsilon: Of each mechanism; in [0, inf].
        delta: Of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 0 to 10^15.
        total_delta: Of the composition; in [0, 1].

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: If more than 2^22 terms matter (beyond about 1e11 mechanisms).

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """
    bound = homogeneous_epsilon(total_delta, epsilon=epsilon, delta=delta, times=times)
    return ApproximateDP(bound.upper, delta=total_delta)
