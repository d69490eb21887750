"""Advanced composition of (epsilon, delta) promises: the bound of Dwork, Rothblum and Vadhan, and two below it."""

from __future__ import annotations

import decimal
from collections.abc import Iterable, Sequence
from decimal import Decimal
from fractions import Fraction

from dpcompose import check
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.values import (
    decimal_context,
    decimal_expm1,
    decimal_tanh,
    float_above,
    rounded_down,
    rounded_up,
)

Counted = Sequence[tuple[ApproximateDP, int]]
"""Promises, each with how many times it is used."""


def printed_advanced(promises: Counted, *, slack: float) -> ApproximateDP:
    """epsilon' = sqrt(2 log(1 / slack) sum epsilon_i^2) + sum epsilon_i (e^epsilon_i - 1).

    The delta is sum delta_i + slack; both are rounded up. For equal promises it is Theorem 3.20; the proof is the same
    for different ones.

    >>> round(printed_advanced([(ApproximateDP(0.1), 100)], slack=1e-6).epsilon, 12)
    6.308230950513

    Args:
        promises: Of the mechanisms, fixed in advance, with their counts.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If slack is outside (0, 1).

    Reference: [DworkRoth2014, Theorem 3.20]
    """
    # Beyond e^700 the formula is of no use, and infinity is above it.
    means = (
        (Decimal("inf") if each > 700 else each * decimal_expm1(each), times)
        for each, times in _epsilons(promises)
    )
    return _total(promises, means, slack)


def tight_advanced(promises: Counted, *, slack: float) -> ApproximateDP:
    """epsilon' = sqrt(2 log(1 / slack) sum epsilon_i^2) + sum epsilon_i tanh(epsilon_i / 2).

    The delta is sum delta_i + slack; both are rounded up. The proof is that of Theorem 3.20, with the largest mean that
    a loss within +-epsilon can have.

    >>> round(tight_advanced([(ApproximateDP(0.1), 100)], slack=1e-6).epsilon, 12)
    5.756105519336

    Args:
        promises: Of the mechanisms, fixed in advance, with their counts.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If slack is outside (0, 1).

    Reference: [DworkRothblumVadhan2010, Theorem III.3]
    """
    return _total(
        promises,
        ((each * decimal_tanh(each / 2), times) for each, times in _epsilons(promises)),
        slack,
    )


def advanced_half_squares(promises: Counted, *, slack: float) -> ApproximateDP:
    """epsilon' = sqrt(2 log(1 / slack) sum epsilon_i^2) + sum epsilon_i^2 / 2.

    The delta is sum delta_i + slack; both are rounded up. Each (epsilon_i, 0) is (epsilon_i^2 / 2)-zCDP; these add up,
    and convert. The bound lies between the two others.

    >>> round(advanced_half_squares([(ApproximateDP(0.1), 10)], slack=1e-6).epsilon, 11)
    1.71225813627

    Args:
        promises: Of the mechanisms, fixed in advance, with their counts.
        slack: The theorem's delta', in (0, 1).

    Raises:
        DomainError: If slack is outside (0, 1).

    Reference: [BunSteinke2016, Propositions 1.3 and 1.4]
    """
    return _total(
        promises, ((each * each / 2, times) for each, times in _epsilons(promises)), slack
    )


def advanced_slack(promises: Counted, *, delta: float) -> float | None:
    """delta - sum delta_i, rounded down: the slack that remains; None if it is negative."""
    remaining = Fraction(check.probability("delta", delta)) - _total_delta(promises)
    return rounded_down(remaining) if remaining >= 0 else None


def _epsilons(promises: Counted) -> Iterable[tuple[Decimal, int]]:
    return ((Decimal(promise.epsilon), times) for promise, times in promises)


def _total_delta(promises: Counted) -> Fraction:
    return sum((Fraction(promise.delta) * times for promise, times in promises), Fraction(0))


def _total(promises: Counted, means: Iterable[tuple[Decimal, int]], slack: float) -> ApproximateDP:
    slack = check.open_probability("slack", slack)
    with decimal.localcontext(decimal_context(80)):
        squares = sum((times * each * each for each, times in _epsilons(promises)), Decimal(0))
        mean = sum((times * each for each, times in means), Decimal(0))
        deviation = (-2 * squares * Decimal(slack).ln()).sqrt()
        delta = rounded_up(min(Fraction(1), _total_delta(promises) + Fraction(slack)))
        return ApproximateDP(float_above(deviation + mean), delta=delta)
