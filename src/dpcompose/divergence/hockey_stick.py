"""The hockey-stick divergence, the delta at which an epsilon holds; and total variation, its value at epsilon 0."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import overload

from dpcompose import check
from dpcompose.divergence.density import Density, Estimate, integral
from dpcompose.divergence.distribution import Coupled, Finite, Rational, coupled, exact
from dpcompose.divergence.enclosure import (
    Arithmetic,
    Exact,
    exact_ratio,
    exponential,
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
    """The smallest delta with Y(S) <= e^epsilon Z(S) + delta for every event S, for Y = `first`, Z = `second`.

    H_a(Y||Z) = max_S Y(S) - a Z(S) = sum_x max(0, Y(x) - a Z(x)), with a = e^epsilon. Then Y and Z satisfy the
    inequality of (epsilon, delta)-differential privacy, in this order, exactly when delta >= H_a(Y||Z). For finite
    distributions the bound contains the truth: exact rational arithmetic, with e^epsilon enclosed. For densities it is
    a quadrature estimate.

    >>> hockey_stick([Fraction(3, 4), Fraction(1, 4)], [Fraction(1, 4), Fraction(3, 4)], ratio=2).value
    Fraction(1, 4)

    Args:
        first: The distribution Y.
        second: The distribution Z, over outcomes that need not be the same.
        epsilon: A loss in nats, any real number, or an infinite float; or
        ratio: e^epsilon itself, >= 0, taken exactly; then the result is `Exact`, with the rational `.value`.

    Raises:
        DomainError: If a distribution is none, or unless exactly one of epsilon and ratio is given, in its domain.

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
    return narrowed(lambda arithmetic: _enclosed(pair, power, arithmetic))


def excess(pair: Coupled, ratio: Fraction) -> Fraction:
    """The sum of the positive parts of Y(x) - ratio Z(x)."""
    return sum((y - ratio * z for y, z in pair.masses if y > ratio * z), Fraction(0))


def singular(pair: Coupled) -> Fraction:
    """The mass of Y where Z has none."""
    return sum((y for y, z in pair.masses if z == 0), Fraction(0))


@overload
def total_variation(first: Density, second: Density) -> Estimate: ...
@overload
def total_variation(first: Finite, second: Finite) -> Exact: ...


def total_variation(first: Finite | Density, second: Finite | Density) -> Exact | Estimate:
    """The statistical distance of two distributions, exactly.

    Delta(Y, Z) = max_S |Y(S) - Z(S)| = half the sum of |Y(x) - Z(x)| = H_1(Y||Z), the largest advantage in telling them
    apart. The result carries the rational number itself as `.value`. For densities it is a quadrature estimate.

    >>> total_variation({"a": 1}, {"a": Fraction(2, 3), "b": Fraction(1, 3)}).value
    Fraction(1, 3)

    Args:
        first: One distribution.
        second: The other.

    Raises:
        DomainError: If a distribution is none.

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
    """The larger of Y(S) - Z(S) and Z(S) - Y(S) over all events: they agree when the masses have the same sum."""
    forward = excess(pair, Fraction(1))
    return max(forward, forward - sum(pair.first, Fraction(0)) + sum(pair.second, Fraction(0)))


def _enclosed(pair: Coupled, power: Fraction, arithmetic: Arithmetic) -> tuple[Fraction, Fraction]:
    # H_a does not increase with a.
    lower, upper = exponential(power, arithmetic=arithmetic)
    return excess(pair, upper), excess(pair, lower)


def _ceiling_of_losses(pair: Coupled) -> int:
    """An integer that no finite loss ln(Y(x)/Z(x)) exceeds: ln(p/q) <= ln 2 * (bits of p - bits of q + 1)."""
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
