"""The statistical distance of section 3.5.1."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import overload

from dpcompose.divergence.density import Density, Estimate, integral
from dpcompose.divergence.distribution import Coupled, Finite, coupled
from dpcompose.divergence.enclosure import Exact
from dpcompose.divergence.hockey import excess


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
            first, second, lambda log_y, log_z: -math.exp(log_y) * math.expm1(log_z - log_y) if log_z < log_y else 0.0
        )
    return Exact.of(distance(coupled(first, second)))


def distance(pair: Coupled) -> Fraction:
    """The larger of Y(S) - Z(S) and Z(S) - Y(S) over all events: they agree when the masses have the same sum."""
    forward = excess(pair, Fraction(1))
    return max(forward, forward - sum(pair.first, Fraction(0)) + sum(pair.second, Fraction(0)))
