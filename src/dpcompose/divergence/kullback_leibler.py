"""Definition 3.5: the Kullback-Leibler divergence, the mean of the privacy loss."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import overload

from dpcompose.divergence.density import Density, Estimate, integral
from dpcompose.divergence.distribution import Coupled, Finite, coupled
from dpcompose.divergence.enclosure import Arithmetic, Exact, Interval, narrowed
from dpcompose.numerics import Bound


@overload
def kl(first: Density, second: Density) -> Estimate: ...
@overload
def kl(first: Finite, second: Finite) -> Bound: ...


def kl(first: Finite | Density, second: Finite | Density) -> Bound | Estimate:
    """The Kullback-Leibler divergence of Y = `first` from Z = `second`, in nats.

    D(Y||Z) = E_{x ~ Y} ln(Y(x)/Z(x)) = sum_x Y(x) ln(Y(x)/Z(x)); infinite if Y has mass where Z has none, by
    the book's convention for denominators of 0; 0 ln 0 = 0. For finite distributions the bound contains the truth; for
    densities it is a quadrature estimate. (Where floats were given, masses may sum to 1 + 1e-16, and D be as much below
    0.)

    >>> kl([0.5, 0.5], [0.25, 0.75]), kl([0.5, 0.5], [1, 0]).lower
    (Bound(lower=0.14384103622589045, upper=0.14384103622589048), inf)

    Args:
        first: The distribution Y, from which outcomes are drawn.
        second: The distribution Z.

    Raises:
        DomainError: If a distribution is none.

    Reference: [DworkRoth2014, Definition 3.5].
    """
    if isinstance(first, Density) and isinstance(second, Density):
        return integral(first, second, _weighted_loss)
    return mean_loss(coupled(first, second))


def mean_loss(pair: Coupled) -> Bound:
    """The sum of Y(x) ln(Y(x)/Z(x)) over two coupled distributions."""
    if any(y > 0 == z for y, z in pair.masses):
        return Bound(math.inf, math.inf)
    if pair.first == pair.second:
        return Exact.of(Fraction(0))
    return narrowed(lambda arithmetic: _sum(pair, arithmetic).ends)


def _weighted_loss(log_y: float, log_z: float) -> float:
    # Where log_z is -inf the loss is infinite, even if the density itself underflows to 0.
    return math.inf if log_z == -math.inf else math.exp(log_y) * (log_y - log_z)


def _sum(pair: Coupled, arithmetic: Arithmetic) -> Interval:
    total = Interval(Decimal(0), Decimal(0))
    for y, z in pair.masses:
        if y > 0:
            term = arithmetic.multiply(arithmetic.of(y), arithmetic.log(arithmetic.of(y / z)))
            total = arithmetic.add(total, term)
    return total
