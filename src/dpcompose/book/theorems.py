"""The composition theorems, one function each: 2.2, 3.14 to 3.16, 3.20 and 3.21, and the optimum.

Each is an adapter of the function of `dpcompose.guarantee` that holds the formula and its rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.advanced import half_squares, printed, tight
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.group import chained
from dpcompose.guarantee.optimal import homogeneous_delta, homogeneous_epsilon
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, down
from dpcompose.numerics.exact import rounded_up


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
    checked = _promises_of(promises)
    delta = rounded_up(min(Fraction(1), sum((Fraction(promise.delta) for promise in checked), Fraction(0))))
    if any(promise.epsilon == math.inf for promise in checked):
        return ApproximateDP(math.inf, delta=delta)
    return ApproximateDP(rounded_up(sum((Fraction(promise.epsilon) for promise in checked), Fraction(0))), delta=delta)


def advanced(epsilon: float, *, delta: float = 0.0, times: int, slack: float) -> ApproximateDP:
    """k mechanisms, each (epsilon, delta)-DP, compose to (epsilon', k delta + slack)-DP; both numbers are rounded up.

    epsilon' = sqrt(2 k log(1 / slack)) epsilon + k epsilon (e^epsilon - 1). Mechanisms and databases may be chosen
    from earlier answers; epsilon and delta are fixed in advance. It is often worse than `basic`, always worse than
    `optimal`, and does not give the 1/801 of Example 3.7 (see `example_3_7`).

    >>> round(advanced(1 / 801, times=10_000, slack=1.2664165549094176e-14).epsilon, 14)
    1.01434730431488

    Args:
        epsilon: The epsilon of each mechanism; finite, >= 0.
        delta: The delta of each mechanism; in [0, 1].
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
        epsilon: The epsilon of each mechanism; finite, >= 0.
        delta: The delta of each mechanism; in [0, 1].
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
    return half_squares([(promise, 1) for promise in _promises_of(promises)], slack=slack)


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


def optimal(epsilon: float, *, delta: float = 0.0, times: int, total_delta: float) -> ApproximateDP:
    """k mechanisms, each (epsilon, delta)-DP, make (epsilon', total_delta)-DP with the least epsilon'; rounded up.

    No theorem that knows only epsilon and delta of each mechanism can give less. Infinite where
    total_delta < 1 - (1 - delta)^k. `guarantee.optimal.homogeneous_epsilon` returns both ends.

    >>> round(optimal(0.1, times=100, total_delta=1e-6).epsilon, 12)
    4.774567588108

    Args:
        epsilon: The epsilon of each mechanism; in [0, inf].
        delta: The delta of each mechanism; in [0, 1].
        times: The number of mechanisms, an integer from 0 to 10^15.
        total_delta: The delta of the composition; in [0, 1].

    Raises:
        DomainError: If a number lies outside its domain.
        UnsupportedError: If more than 2^22 terms matter (beyond about 1e11 mechanisms).

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """
    bound = homogeneous_epsilon(total_delta, epsilon=epsilon, delta=delta, times=times)
    return ApproximateDP(bound.upper, delta=total_delta)


def _promises_of(pairs: Any) -> list[ApproximateDP]:
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


def _each(epsilon: float, delta: float, times: int) -> tuple[ApproximateDP, int]:
    return ApproximateDP(check.nonnegative("epsilon", epsilon), delta=delta), check.times(times, least=1)


def _refusal(epsilon: float, slack: float, times: int, each: float, limit: float) -> UnsupportedError:
    what = f"Corollary 3.21 at epsilon {epsilon!r}, slack {slack!r}, times {times}"
    remedy = "Solve with the optimal theorem instead: book.optimal, or calibrate"
    implied = f"Theorem 3.20 implies it only up to epsilon = {limit:.6g}"
    try:
        truth = homogeneous_delta(epsilon, epsilon=each, times=times)
    except UnsupportedError:
        return UnsupportedError(what, implied, remedy)
    if truth.lower > slack:
        false = (
            f"it is false there: {times} mechanisms of epsilon {each:.6g} have delta({epsilon:g}) = {truth.lower:.12g}"
        )
        return UnsupportedError(what, f"{false}, more than the slack; {implied}", remedy)
    return UnsupportedError(what, f"not proved: {implied}", remedy)
