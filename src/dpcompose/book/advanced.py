"""Theorem 3.20, advanced composition, and its two strict improvements under the same hypotheses."""

from __future__ import annotations

import decimal
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction

from dpcompose.book.basic import promises_of
from dpcompose.guarantee import rational
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.decimals import digits, expm1, rounded_up, tanh
from dpcompose.guarantee.times import times_of
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
    epsilon, delta, times, slack = _checked(epsilon, delta, times, slack)
    # Beyond e^700 the formula is of no use, and infinity is above it.
    if epsilon > 700.0:
        return _promise(Decimal("inf"), delta, times, slack)
    with decimal.localcontext(digits(80)):
        each = Decimal(epsilon)
        total = _deviation(times * each * each, slack) + times * each * expm1(each)
        return _promise(total, delta, times, slack)


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
    epsilon, delta, times, slack = _checked(epsilon, delta, times, slack)
    with decimal.localcontext(digits(80)):
        each = Decimal(epsilon)
        total = _deviation(times * each * each, slack) + times * each * tanh(each / 2)
        return _promise(total, delta, times, slack)


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

    Reference: [Steinke2022, Theorem 22]
    """
    slack, checked = check.open_probability("slack", slack), promises_of(promises)
    delta = sum((Fraction(promise.delta) for promise in checked), Fraction(slack))
    with decimal.localcontext(digits(80)):
        squares = sum((Decimal(promise.epsilon) ** 2 for promise in checked), Decimal(0))
        return ApproximateDP(rounded_up(squares / 2 + _deviation(squares, slack)), delta=_probability(delta))


def _checked(epsilon: float, delta: float, times: int, slack: float) -> tuple[float, float, int, float]:
    return (
        check.nonnegative("epsilon", epsilon),
        check.probability("delta", delta),
        times_of(times, least=1),
        check.open_probability("slack", slack),
    )


def _deviation(squares: Decimal, slack: float) -> Decimal:
    return (-2 * squares * Decimal(slack).ln()).sqrt() if squares else Decimal(0)


def _promise(epsilon: Decimal, delta: float, times: int, slack: float) -> ApproximateDP:
    return ApproximateDP(rounded_up(epsilon), delta=_probability(times * Fraction(delta) + Fraction(slack)))


def _probability(number: Fraction) -> float:
    return rational.rounded_up(min(Fraction(1), number))
