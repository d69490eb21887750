"""The Kullback-Leibler divergence (Definition 3.5) and the Renyi divergence of every order."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import overload

from dpcompose.divergence.density import Density, Estimate, integral
from dpcompose.divergence.distribution import (
    Coupled,
    Ends,
    Exact,
    Finite,
    Rational,
    coupled,
    exact,
    exponential,
    logarithm,
    narrowed,
)
from dpcompose.divergence.hockey_stick import largest_ratio, log_ratio
from dpcompose.errors import DomainError
from dpcompose.values import Bound


@overload
def kl(first: Density, second: Density) -> Estimate: ...
@overload
def kl(first: Finite, second: Finite) -> Bound: ...


def kl(first: Finite | Density, second: Finite | Density) -> Bound | Estimate:
    """The Kullback-Leibler divergence of Y = `first` from Z = `second`, in nats.

    D(Y||Z) = E_{x ~ Y} ln(Y(x)/Z(x)) = sum_x Y(x) ln(Y(x)/Z(x)); infinite if Y has mass where Z has
    none, by the book's convention for denominators of 0; 0 ln 0 = 0. For finite distributions the
    bound contains the truth; for densities it is a quadrature estimate. (Float masses may sum to 1
    + 1e-16; then D may be below 0 by as much.)

    >>> kl([0.5, 0.5], [0.25, 0.75]), kl([0.5, 0.5], [1, 0]).lower
    (Bound(lower=0.14384103622589045, upper=0.14384103622589048), inf)

    Args:
        first: The distribution Y, from which outcomes are drawn.
        second: The distribution Z.

    Raises:
        DomainError: If `first` or `second` is not a distribution.

    Reference: [DworkRoth2014, Definition 3.5].
    """
    if isinstance(first, Density) and isinstance(second, Density):
        return integral(first, second, _weighted_loss)
    return mean_loss(coupled(first, second))


def mean_loss(pair: Coupled) -> Bound:
    """The sum over x of Y(x) ln(Y(x)/Z(x)) for two coupled distributions, enclosed."""
    if any(y > 0 == z for y, z in pair.masses):
        return Bound(math.inf, math.inf)
    if pair.first == pair.second:
        return Exact.of(Fraction(0))
    return narrowed(lambda digits: _mean_loss(pair, digits))


def _mean_loss(pair: Coupled, digits: int) -> Ends:
    terms = [(y, logarithm(y / z, digits)) for y, z in pair.masses if y > 0]
    lower = sum((y * ends[0] for y, ends in terms), Fraction(0))
    return lower, sum((y * ends[1] for y, ends in terms), Fraction(0))


def _weighted_loss(log_y: float, log_z: float) -> float:
    # Where log_z is -inf the loss is infinite, even if the density itself underflows to 0.
    return math.inf if log_z == -math.inf else math.exp(log_y) * (log_y - log_z)


_DOMAIN = "an order > 0, possibly inf"


def renyi(first: Finite, second: Finite, *, order: Rational) -> Bound:
    """The Renyi divergence of Y = `first` and Z = `second`, in nats.

    D_order(Y||Z) = ln(sum_x Y(x)^order Z(x)^(1 - order)) / (order - 1); `kl` at order 1,
    `max_divergence` at infinity. It does not decrease with the order; infinite if Y has mass where
    Z has none (order >= 1), or if they have no outcome in common. The bound contains the truth.

    >>> renyi([0.75, 0.25], [0.25, 0.75], order=2)
    Bound(lower=0.8472978603872036, upper=0.8472978603872037)

    Args:
        first: The distribution Y.
        second: The distribution Z.
        order: The order, > 0, taken exactly; may be inf.

    Raises:
        DomainError: If `first` or `second` is not a distribution, or the order is not > 0.

    Reference: [Mironov2017, Definition 3].
    """
    alpha = (
        None if isinstance(order, float) and order == math.inf else exact("order", order, _DOMAIN)
    )
    if alpha is not None and not alpha > 0:
        raise DomainError("order", order, _DOMAIN)
    pair = coupled(first, second)
    if alpha is None:
        return log_ratio(largest_ratio(pair, Fraction(0)))
    return mean_loss(pair) if alpha == 1 else _of_finite(pair, alpha)


def _of_finite(pair: Coupled, order: Fraction) -> Bound:
    shared = [(y, z) for y, z in pair.masses if y > 0 < z]
    if not shared or (order > 1 and any(y > 0 == z for y, z in pair.masses)):
        return Bound(math.inf, math.inf)
    if pair.first == pair.second:
        return Exact.of(Fraction(0))
    return narrowed(lambda digits: _log_moment(shared, order, digits))


def _log_moment(shared: list[tuple[Fraction, Fraction]], order: Fraction, digits: int) -> Ends:
    # With r the largest ratio: (order ln r + ln sum_x Z(x) (Y(x)/Z(x)/r)^order) / (order - 1), where nothing overflows.
    largest = max(y / z for y, z in shared)
    losses = [(z, logarithm(y / z / largest, digits)) for y, z in shared]
    peak, ends = logarithm(largest, digits), list[Fraction]()
    for end in (0, 1):
        total = sum(
            (z * exponential(order * loss[end], digits)[end] for z, loss in losses), Fraction(0)
        )
        ends.append((order * peak[end] + logarithm(total, digits)[end]) / (order - 1))
    return min(ends), max(ends)
