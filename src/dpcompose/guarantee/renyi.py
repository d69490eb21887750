"""Renyi differential privacy: a curve of bounds, one for each order, and what it implies at a delta."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import epsilon_of
from dpcompose.guarantee.lossless import estimated_epsilon, lossless_epsilon
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF, up
from dpcompose.numerics.roots import parabolic_minimum

Curve = Callable[[float], float]
"""From an order in (1, inf) to an upper bound on the Renyi divergence of that order, in both directions."""

_FARTHEST = 700.0
_FAINT = 36.0
_ONE_MOMENT = "best use of one moment", "[CanonneKamathSteinke2020, Proposition 12]"


@dataclass(frozen=True)
class RenyiDP:
    """The Renyi divergence of every order is at most `curve(order)`, for both orders of every pair of neighbors.

    >>> RenyiDP(lambda order: order / 2)(3)
    1.5

    Args:
        curve: From an order in (1, inf) to an upper bound in [0, inf]; infinite where nothing is known.

    Raises:
        DomainError: If the curve is not callable.

    Reference: [Mironov2017, Definition 4]
    """

    curve: Curve

    def __post_init__(self) -> None:
        if not callable(self.curve):
            raise DomainError("curve", self.curve, "a function of the order")

    def __call__(self, order: float) -> float:
        """The bound at `order`, in (1, inf)."""
        return epsilon_of("curve(order)", self.curve(check.order(order)))

    def epsilon(self, *, delta: float) -> Converted:
        """The smallest epsilon found over all orders: see `best_epsilon`."""
        return best_epsilon(self, delta=delta)


@dataclass(frozen=True)
class Converted:
    """An upper bound on epsilon, and where on a Renyi curve it comes from.

    Args:
        epsilon: The bound, in nats.
        order: The order that gives it; infinite if the curve gives none.
        conversion: The name of the conversion.
        reference: Where the conversion is proved.
    """

    epsilon: float
    order: float
    conversion: str
    reference: str


def mironov_epsilon(rho: float, *, order: float, delta: float) -> float:
    """An epsilon >= 0 that a Renyi divergence of at most `rho` implies: rho + log(1 / delta) / (order - 1); rounded up.

    >>> round(mironov_epsilon(0.5, order=10, delta=1e-6), 12)
    2.035056728663

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order; finite, > 1.
        delta: In [0, 1]; infinite epsilon at 0.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [Mironov2017, Proposition 3]
    """
    rho, order, delta = epsilon_of("rho", rho), check.order(order), check.probability("delta", delta)
    if rho == math.inf or delta == 0.0:
        return 0.0 if rho == 0.0 else math.inf
    return up((rho - math.log(delta) / (order - 1.0)) * (1.0 + 12 * UNIT_ROUNDOFF))


def optimal_moment_epsilon(rho: float, *, order: float, delta: float) -> float:
    """An epsilon >= 0 that a Renyi divergence of at most `rho` implies, by the best use of one moment; rounded up.

    epsilon = rho + log(1 - 1 / order) - (log delta + log order) / (order - 1), never larger than Mironov's. (The
    conversion that uses one order best is `lossless_epsilon`.)

    >>> round(optimal_moment_epsilon(0.5, order=10, delta=1e-6), 12)
    1.673853424894

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order; finite, > 1.
        delta: In [0, 1]; infinite epsilon at 0.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [CanonneKamathSteinke2020, Proposition 12], [Balle2020, Theorem 21]
    """
    rho, order, delta = epsilon_of("rho", rho), check.order(order), check.probability("delta", delta)
    if rho == math.inf or delta == 0.0:
        return 0.0 if rho == 0.0 else math.inf
    # log(1 - 1 / order), without the cancellation next to order 1.
    first = -math.log1p(1.0 / (order - 1.0))
    second, third = math.log(delta) / (order - 1.0), math.log(order) / (order - 1.0)
    slack = 24 * UNIT_ROUNDOFF * (rho + abs(first) + abs(second) + abs(third))
    return max(0.0, up(rho + first - second - third + slack))


def optimal_moment_delta(rho: float, *, order: float, epsilon: float) -> float:
    """A delta that a Renyi divergence of at most `rho` implies at `epsilon`, by the best use of one moment; rounded up.

    delta = e^((order - 1) (rho - epsilon)) (1 - 1 / order)^order / (order - 1), never above 1.

    >>> round(optimal_moment_delta(0.5, order=10, epsilon=2.0) * 1e8, 10)
    5.3113763965

    Args:
        rho: The bound on the divergence, in nats; >= 0, infinite allowed.
        order: The order; finite, > 1.
        epsilon: In nats; >= 0, infinite allowed.

    Raises:
        DomainError: If a number lies outside its domain.

    Reference: [CanonneKamathSteinke2020, Proposition 12], [Balle2020, Theorem 21]
    """
    rho, order, epsilon = epsilon_of("rho", rho), check.order(order), epsilon_of("epsilon", epsilon)
    if rho == 0.0:
        return 0.0
    if epsilon == math.inf:
        return 0.0 if rho < math.inf else 1.0
    if rho == math.inf:
        return 1.0
    return min(1.0, up(math.exp(min(_log_delta(rho, order=order, epsilon=epsilon), 1.0))))


def _log_delta(rho: float, *, order: float, epsilon: float) -> float:
    excess = order - 1.0
    terms = excess * rho, -excess * epsilon, -order * math.log1p(1.0 / excess), -math.log(excess)
    slack = 24 * UNIT_ROUNDOFF * (2.0 + sum(abs(term) for term in terms))
    return math.fsum(terms) + slack if slack < math.inf else math.inf


def best_epsilon(curve: Curve, *, delta: float, exact: bool = True) -> Converted:
    """An epsilon >= 0 that a Renyi curve implies: the least that a search over all orders finds; an upper bound.

    Every order gives a true statement at the same delta, so that the least of them is true whatever the search missed.

    >>> round(best_epsilon(lambda order: order / 2, delta=1e-6).epsilon, 4)
    5.2215

    Args:
        curve: From an order in (1, inf) to an upper bound on the divergence; may be infinite.
        delta: In [0, 1].
        exact: Whether the conversion may be the exact one, which needs two probability measures; else the best use of
            one moment.

    Raises:
        DomainError: If delta is outside [0, 1], or the curve is no function to numbers >= 0.

    Reference: [Mironov2017, Proposition 3], [CanonneKamathSteinke2020, Proposition 12], [Asoodeh2021, Section III]
    """
    delta = check.probability("delta", delta)
    if not callable(curve):
        raise DomainError("curve", curve, "a function of the order")

    def moment(point: float) -> float:
        order = _order_at(point)
        return optimal_moment_epsilon(curve(order), order=order, delta=delta)

    def estimate(point: float) -> float:
        order = _order_at(point)
        return min(estimated_epsilon(epsilon_of("curve(order)", curve(order)), order=order, delta=delta), moment(point))

    def lossless(point: float) -> float:
        order = _order_at(point)
        return min(lossless_epsilon(curve(order), order=order, delta=delta), moment(point))

    point = rough = parabolic_minimum(moment, start=2.0, step=1.0, limit=_FARTHEST, refinements=0 if exact else 6)
    if exact:
        # What the exact conversion gains over the moment alone is about e^(-(order - 1) (rho + epsilon)) of delta.
        order = _order_at(rough)
        plain = (order - 1) * (curve(order) + moment(rough)) > _FAINT
        point = parabolic_minimum(
            moment if plain else estimate, start=rough, step=0.5, limit=_FARTHEST + 2.0, refinements=3
        )
    found = lossless if exact else moment
    epsilon, least = min((found(each), each) for each in (point, *_last_finite(curve, rough)))
    how = ("exact at one order", "[Asoodeh2021, Section III]") if exact else _ONE_MOMENT
    return Converted(epsilon, _order_at(least), *how)


def best_delta(curve: Curve, *, epsilon: float) -> float:
    """A delta that a Renyi curve implies at `epsilon`: the least that a search over all orders finds; an upper bound.

    >>> best_delta(lambda order: 5e-30 * order, epsilon=1e-13) < 1e-200
    True

    Args:
        curve: From an order in (1, inf) to an upper bound on the divergence; may be infinite.
        epsilon: In nats; >= 0, infinite allowed.

    Raises:
        DomainError: If epsilon is negative or NaN, or the curve is no function to numbers >= 0.

    Reference: [CanonneKamathSteinke2020, Proposition 12]
    """
    epsilon = epsilon_of("epsilon", epsilon)

    def log_delta(point: float) -> float:
        order = _order_at(point)
        rho = curve(order)
        return math.inf if rho == math.inf else _log_delta(rho, order=order, epsilon=min(epsilon, 1e300))

    def delta(point: float) -> float:
        order = _order_at(point)
        return optimal_moment_delta(curve(order), order=order, epsilon=epsilon)

    point = parabolic_minimum(log_delta, start=2.0, step=1.0, limit=_FARTHEST, refinements=8)
    return min(delta(each) for each in (point, *_last_finite(curve, point)))


def _order_at(point: float) -> float:
    return max(1.0 + math.exp(point), math.nextafter(1.0, 2.0))


def _last_finite(curve: Curve, point: float) -> list[float]:
    """The largest order at which a curve is finite, if that lies within a step beyond `point`: it may be the best."""
    low, high = point, point + 1.0
    if not curve(_order_at(low)) < math.inf or curve(_order_at(high)) < math.inf:
        return []
    while low < (middle := (low + high) / 2.0) < high:
        low, high = (middle, high) if curve(_order_at(middle)) < math.inf else (low, middle)
    return [low]
