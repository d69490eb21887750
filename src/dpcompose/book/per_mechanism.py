"""Corollary 3.21: how much each mechanism may spend, where Theorem 3.20 says so."""

from __future__ import annotations

import math

from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import optimal
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, down


def advanced_per_mechanism(epsilon: float, *, slack: float, times: int) -> float:
    """The epsilon that each of k mechanisms may have for (epsilon, k delta + slack) in total; rounded down.

    epsilon_0 = epsilon / (2 sqrt(2 k log(1 / slack))). The book asks for 0 < epsilon < 1 and slack > 0. That is neither
    needed nor enough: Theorem 3.20 implies it exactly where epsilon <= 2 sqrt(2 k L) log(1 + sqrt(2 L / k)), with
    L = log(1 / slack). At slack 1e-6 this allows an epsilon up to 19 at any k; near slack 1 the corollary is false
    (epsilon 0.99, k 100, slack 0.998: the optimum is delta 0.99982). Outside that region it is refused.

    >>> round(advanced_per_mechanism(0.9, slack=1e-6, times=100), 15)
    0.008560793994787

    Args:
        epsilon: The total, in nats; finite, > 0.
        slack: The delta' of Theorem 3.20, in (0, 1).
        times: The number of mechanisms, an integer from 1 to 10^15.

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: Where Theorem 3.20 does not imply the corollary: it says whether the corollary is false there.

    Reference: [DworkRoth2014, Corollary 3.21]
    """
    epsilon, slack = check.positive("epsilon", epsilon), check.open_probability("slack", slack)
    times = check.times(times, least=1)
    logarithm = -math.log(slack)
    width = 2.0 * math.sqrt(2.0 * times * logarithm)
    each = max(0.0, down(epsilon / width * (1.0 - 16 * UNIT_ROUNDOFF)))
    limit = width * math.log1p(math.sqrt(2.0 * logarithm / times)) * (1.0 - 32 * UNIT_ROUNDOFF)
    if not epsilon <= limit:
        raise _refusal(epsilon, slack, times, each, limit)
    return each


def _refusal(epsilon: float, slack: float, times: int, each: float, limit: float) -> UnsupportedError:
    what = f"Corollary 3.21 at epsilon {epsilon!r}, slack {slack!r}, times {times}"
    remedy = "Solve with the optimal theorem instead: book.optimal, or calibrate"
    implied = f"Theorem 3.20 implies it only up to epsilon = {limit:.6g}"
    try:
        truth = optimal.homogeneous_delta(epsilon, epsilon=each, times=times)
    except UnsupportedError:
        return UnsupportedError(what, implied, remedy)
    if truth.lower > slack:
        false = (
            f"it is false there: {times} mechanisms of epsilon {each:.6g} have delta({epsilon:g}) = {truth.lower:.12g}"
        )
        return UnsupportedError(what, f"{false}, more than the slack; {implied}", remedy)
    return UnsupportedError(what, f"not proved: {implied}", remedy)
