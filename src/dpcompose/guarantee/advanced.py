"""Advanced composition: the theorem of Dwork, Rothblum and Vadhan, and two smaller bounds."""

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
"""Pairs (guarantee, count): an (epsilon, delta) guarantee, and how many mechanisms have it."""


def printed_advanced(promises: Counted, *, slack: float) -> ApproximateDP:
    """(epsilon', sum delta_i + slack), the total of the advanced composition theorem as printed.

    epsilon' = sqrt(2 log(1 / slack) sum epsilon_i^2) + sum epsilon_i (e^epsilon_i - 1); both
    numbers are rounded up.

    For equal guarantees this is Theorem 3.20, whose proof holds for different ones too.

    >>> round(printed_advanced([(ApproximateDP(0.1), 100)], slack=1e-6).epsilon, 12)
    6.308230950513

    Args:
        promises: Pairs of the (epsilon_i, delta_i) guarantee of a mechanism and the number of its
            uses. All are fixed before the first answer.
        slack: The delta' of the theorem, the probability of a large total loss; in (0, 1).

    Raises:
        DomainError: If slack is outside (0, 1).

    Reference: [DworkRoth2014, Theorem 3.20]
    """
    # Above e^700 the formula overflows, and infinity is a valid upper bound.
    means = (
        (Decimal("inf") if each > 700 else each * decimal_expm1(each), times)
        for each, times in _epsilons(promises)
    )
    return _total(promises, means, slack)


def tight_advanced(promises: Counted, *, slack: float) -> ApproximateDP:
    """(epsilon', sum delta_i + slack), the total of advanced composition with the tight mean loss.

    epsilon' = sqrt(2 log(1 / slack) sum epsilon_i^2) + sum epsilon_i tanh(epsilon_i / 2); both
    numbers are rounded up.

    The proof is that of Theorem 3.20, with epsilon tanh(epsilon / 2), the largest mean of a privacy
    loss within +-epsilon.

    >>> round(tight_advanced([(ApproximateDP(0.1), 100)], slack=1e-6).epsilon, 12)
    5.756105519336

    Args:
        promises: Pairs of the (epsilon_i, delta_i) guarantee of a mechanism and the number of its
            uses. All are fixed before the first answer.
        slack: The delta' of the theorem, the probability of a large total loss; in (0, 1).

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
    """(epsilon', sum delta_i + slack), the total of advanced composition by way of zCDP.

    epsilon' = sqrt(2 log(1 / slack) sum epsilon_i^2) + sum epsilon_i^2 / 2; both numbers are
    rounded up.

    (epsilon_i, 0)-DP implies (epsilon_i^2 / 2)-zCDP; the sum of these rho is converted to
    (epsilon', slack). The bound lies between `tight_advanced` and `printed_advanced`.

    >>> round(advanced_half_squares([(ApproximateDP(0.1), 10)], slack=1e-6).epsilon, 11)
    1.71225813627

    Args:
        promises: Pairs of the (epsilon_i, delta_i) guarantee of a mechanism and the number of its
            uses. All are fixed before the first answer.
        slack: The delta' of the theorem, the probability of a large total loss; in (0, 1).

    Raises:
        DomainError: If slack is outside (0, 1).

    Reference: [BunSteinke2016, Propositions 1.3 and 1.4]
    """
    return _total(
        promises, ((each * each / 2, times) for each, times in _epsilons(promises)), slack
    )


def advanced_slack(promises: Counted, *, delta: float) -> float | None:
    """delta - sum delta_i, rounded down: the slack for a total delta of `delta` in advanced
    composition.

    None if the difference is negative. Raises DomainError if `delta` is outside [0, 1].

    None if the difference is negative. Raises DomainError if `delta` is outside [0, 1].
    """
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
