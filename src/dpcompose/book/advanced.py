"""Theorem 3.20, advanced composition, and its two strict improvements under the same hypotheses."""

from __future__ import annotations

from collections.abc import Iterable

from dpcompose.book.basic import promises_of
from dpcompose.guarantee.advanced import half_squares, printed, tight
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.numerics import check


def advanced(epsilon: float, *, delta: float = 0.0, times: int, slack: float) -> ApproximateDP:
    """k mechanisms, each (epsilon, delta)-DP, compose to (epsilon', k delta + slack)-DP; both numbers are rounded up.

    epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon (e^epsilon - 1). Mechanisms and databases may be chosen
    from earlier answers; epsilon and delta are fixed in advance. It is often worse than `basic`, always worse than
    `optimal`, and does not give the 1/801 of Example 3.7 (see `example_3_7`).

    >>> round(advanced(1 / 801, times=10_000, slack=1.2664165549094176e-14).epsilon, 14)
    1.01434730431488

    Args:
        epsilon: Of each mechanism; finite, >= 0.
        delta: Of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 1 to 10^15.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRoth2014, Theorem 3.20]
    """
    return printed([_each(epsilon, delta, times)], slack=slack)


def advanced_tight(epsilon: float, *, delta: float = 0.0, times: int, slack: float) -> ApproximateDP:
    """Theorem 3.20 with the tight mean loss: epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon tanh(epsilon / 2).

    The same proof with the best constant of Lemma 3.18, hence never larger than `advanced`; rounded up.

    >>> round(advanced_tight(0.1, times=100, slack=1e-6).epsilon, 12)
    5.756105519336

    Args:
        epsilon: Of each mechanism; finite, >= 0.
        delta: Of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 1 to 10^15.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [DworkRothblumVadhan2010, Theorem III.3]
    """
    return tight([_each(epsilon, delta, times)], slack=slack)


def advanced_heterogeneous(promises: Iterable[tuple[float, float]], *, slack: float) -> ApproximateDP:
    """Different promises: epsilon' = sum epsilon_i^2 / 2 + sqrt(2 log(1 / slack) sum epsilon_i^2), by concentration.

    The delta is sum delta_i + slack; both are rounded up. Each (epsilon_i, 0) is (epsilon_i^2 / 2)-zCDP, these add up
    and convert. For equal epsilons it is below `advanced` too, epsilon^2 / 2 being below epsilon (e^epsilon - 1).

    >>> round(advanced_heterogeneous([(0.1, 0.0)] * 10, slack=1e-6).epsilon, 11)
    1.71225813627

    Args:
        promises: Pairs (epsilon, delta): epsilon in [0, inf], delta in [0, 1].
        slack: In (0, 1).

    Raises:
        DomainError: If an element is not such a pair, or slack is outside (0, 1).

    Reference: [BunSteinke2016, Propositions 1.3 and 1.4]
    """
    return half_squares([(promise, 1) for promise in promises_of(promises)], slack=slack)


def _each(epsilon: float, delta: float, times: int) -> tuple[ApproximateDP, int]:
    return ApproximateDP(check.nonnegative("epsilon", epsilon), delta=delta), check.times(times, least=1)
