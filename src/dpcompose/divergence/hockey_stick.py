"""The hockey-stick, total variation and max divergences: delta at an epsilon, epsilon at a delta."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import overload

from dpcompose import check
from dpcompose.divergence.density import Density, Estimate, integral
from dpcompose.divergence.distribution import (
    Coupled,
    Ends,
    Exact,
    Finite,
    Rational,
    coupled,
    exact,
    exact_probability,
    exact_ratio,
    exponential,
    log_bound,
    narrowed,
    one_of,
)
from dpcompose.values import Bound


@overload
def hockey_stick(first: Density, second: Density, *, epsilon: float) -> Estimate: ...
@overload
def hockey_stick(first: Density, second: Density, *, ratio: float) -> Estimate: ...
@overload
def hockey_stick(first: Finite, second: Finite, *, epsilon: Rational) -> Bound: ...
@overload
def hockey_stick(first: Finite, second: Finite, *, ratio: Rational) -> Exact: ...


def hockey_stick(
    first: Finite | Density,
    second: Finite | Density,
    *,
    epsilon: Rational | None = None,
    ratio: Rational | None = None,
) -> Bound | Estimate:
    """The smallest delta with Y(S) <= e^epsilon Z(S) + delta for all S, Y = `first`, Z = `second`.

    It is the hockey-stick divergence H_a(Y||Z) = max_S Y(S) - a Z(S) = sum_x max(0, Y(x) - a Z(x)),
    with a = e^epsilon. Then Y and Z satisfy the inequality of (epsilon, delta)-differential
    privacy, in this order, exactly when delta >= H_a(Y||Z). For finite distributions the bound
    contains the truth: exact rational arithmetic, with e^epsilon enclosed. For densities it is a
    quadrature estimate.

    >>> hockey_stick([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], ratio=2).value
    Fraction(1, 4)

    Args:
        first: The distribution Y.
        second: The distribution Z, over outcomes that need not be the same.
        epsilon: A privacy loss in nats, any real number or an infinite float. Either epsilon or
            ratio is passed.
        ratio: e^epsilon, >= 0, taken exactly; then the result is `Exact`, with the rational
            `.value`.

    Raises:
        DomainError: If `first` or `second` is not a distribution, or unless exactly one of epsilon
            and ratio is passed, within its domain.

    Reference: [DworkRoth2014, Definition 2.4 and Remark 3.1].
    """
    one_of(epsilon, ratio)
    if isinstance(first, Density) and isinstance(second, Density):
        return _of_densities(first, second, epsilon, ratio)
    pair = coupled(first, second)
    if epsilon is None:
        return Exact.of(excess(pair, exact_ratio(ratio)))
    if isinstance(epsilon, float) and math.isinf(epsilon):
        return Exact.of(singular(pair) if epsilon > 0 else sum(pair.first, Fraction(0)))
    power = exact("epsilon", epsilon, "a real number, not NaN")
    if power >= _ceiling_of_losses(pair):
        return Exact.of(singular(pair))

    def ends(digits: int) -> Ends:
        # H_a does not increase with a.
        lower, upper = exponential(power, digits)
        return excess(pair, upper), excess(pair, lower)

    return narrowed(ends)


def excess(pair: Coupled, ratio: Fraction) -> Fraction:
    """The sum over outcomes x of max(0, Y(x) - ratio Z(x)), exactly."""
    return sum((y - ratio * z for y, z in pair.masses if y > ratio * z), Fraction(0))


def singular(pair: Coupled) -> Fraction:
    """The mass under Y of the outcomes impossible under Z."""
    return sum((y for y, z in pair.masses if z == 0), Fraction(0))


@overload
def total_variation(first: Density, second: Density) -> Estimate: ...
@overload
def total_variation(first: Finite, second: Finite) -> Exact: ...


def total_variation(first: Finite | Density, second: Finite | Density) -> Exact | Estimate:
    """The total variation (statistical) distance of two distributions.

    Delta(Y, Z) = max_S |Y(S) - Z(S)| = half the sum of |Y(x) - Z(x)| = H_1(Y||Z), the largest
    advantage of a test between them. For finite distributions the result is exact, with the
    rational `.value`; for densities it is a quadrature estimate.

    >>> total_variation({"a": 1}, {"a": Fraction(2, 3), "b": Fraction(1, 3)}).value
    Fraction(1, 3)

    Args:
        first: The distribution Y.
        second: The distribution Z.

    Raises:
        DomainError: If `first` or `second` is not a distribution.

    Reference: [DworkRoth2014, section 3.5.1].
    """
    if isinstance(first, Density) and isinstance(second, Density):
        return integral(
            first,
            second,
            lambda log_y, log_z: (
                -math.exp(log_y) * math.expm1(log_z - log_y) if log_z < log_y else 0.0
            ),
        )
    return Exact.of(distance(coupled(first, second)))


def distance(pair: Coupled) -> Fraction:
    """The larger of max_S Y(S) - Z(S) and max_S Z(S) - Y(S), over events S.

    They are equal if the masses have equal sums.
    """
    forward = excess(pair, Fraction(1))
    return max(forward, forward - sum(pair.first, Fraction(0)) + sum(pair.second, Fraction(0)))


def _ceiling_of_losses(pair: Coupled) -> int:
    """An integer >= every finite loss ln(Y(x)/Z(x)): ln(p/q) <= ln 2 * (bits of p - bits of q + 1)."""
    ratios = [y / z for y, z in pair.masses if z > 0]
    return max(
        0, *(ratio.numerator.bit_length() - ratio.denominator.bit_length() + 1 for ratio in ratios)
    )


def _of_densities(
    first: Density, second: Density, epsilon: Rational | None, ratio: Rational | None
) -> Estimate:
    if ratio is not None:
        power = math.log(ratio) if check.nonnegative("ratio", ratio) > 0 else -math.inf
    else:
        power = check.real("epsilon", epsilon)

    def positive_part(log_first: float, log_second: float) -> float:
        excess_log = power + log_second - log_first if log_second > -math.inf else -math.inf
        return -math.exp(log_first) * math.expm1(excess_log) if excess_log < 0 else 0.0

    return integral(first, second, positive_part)


# Definition 3.6: the max divergence and its delta-approximate form, the smallest epsilon for one ordered pair.


def max_divergence(first: Finite, second: Finite) -> Bound:
    """The max divergence of Y = `first` and Z = `second`: the largest privacy loss, in nats.

    D_inf(Y||Z) = max_S ln(Y(S)/Z(S)) = ln max_x Y(x)/Z(x); infinite if Y has mass where Z has none.
    The ratio itself is `max_ratio`.

    >>> max_divergence([0.75, 0.25], [0.25, 0.75]), max_divergence([1, 0], [0, 1]).upper
    (Bound(lower=1.0986122886681096, upper=1.0986122886681098), inf)

    Args:
        first: The distribution Y.
        second: The distribution Z.

    Raises:
        DomainError: If `first` or `second` is not a distribution.

    Reference: [DworkRoth2014, Definition 3.6].
    """
    return log_ratio(largest_ratio(coupled(first, second), Fraction(0)))


def approximate_max(first: Finite, second: Finite, *, delta: Rational) -> Bound:
    """The delta-approximate max divergence of Y = `first` and Z = `second`, in nats.

    D_inf^delta(Y||Z) = max over events S with Y(S) >= delta of ln((Y(S) - delta)/Z(S)): the
    smallest epsilon, possibly negative, with H_{e^epsilon}(Y||Z) <= delta. It is infinite if Y has
    more than delta of its mass where Z has none, and -inf at delta = 1. An event of the outcomes
    with the largest Y(x)/Z(x) attains the maximum, which sorting therefore computes exactly;
    `max_ratio` returns the ratio.

    >>> approximate_max([0.75, 0.25], [0.25, 0.75], delta=0.25)
    Bound(lower=0.6931471805599453, upper=0.6931471805599454)

    Args:
        first: The distribution Y.
        second: The distribution Z.
        delta: A probability, taken exactly.

    Raises:
        DomainError: If `first` or `second` is not a distribution, or delta is outside [0, 1].

    Reference: [DworkRoth2014, Definition 3.6].
    """
    return log_ratio(largest_ratio(coupled(first, second), exact_probability("delta", delta)))


def max_ratio(first: Finite, second: Finite, *, delta: Rational = 0) -> Fraction | float:
    """e^epsilon of `approximate_max`, exactly: max(0, max_S (Y(S) - delta)/Z(S)), which may be inf.

    >>> max_ratio([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)])
    Fraction(3, 1)

    Args:
        first: The distribution Y.
        second: The distribution Z.
        delta: A probability, taken exactly.

    Raises:
        DomainError: If `first` or `second` is not a distribution, or delta is outside [0, 1].
    """
    return largest_ratio(coupled(first, second), exact_probability("delta", delta))


def largest_ratio(pair: Coupled, delta: Fraction) -> Fraction | float:
    """The largest (Y(S) - delta)/Z(S) over events S with Y(S) > delta; 0 if none; may be inf."""
    mass = singular(pair)
    if mass > delta:
        return math.inf
    ratios = sorted(((y / z, y, z) for y, z in pair.masses if y > 0 < z), reverse=True)
    if delta == 0:
        return ratios[0][0]
    # H_a is attained on {Y > a Z}, so the best event holds the outcomes of largest ratio: one of the initial segments.
    best, second = Fraction(0), Fraction(0)
    for _, y, z in ratios:
        mass, second = mass + y, second + z
        best = max(best, (mass - delta) / second)
    return best


def log_ratio(ratio: Fraction | float) -> Bound:
    """The natural logarithm of a rational or infinite ratio, enclosed."""
    return log_bound(ratio) if isinstance(ratio, Fraction) else Bound(math.inf, math.inf)
