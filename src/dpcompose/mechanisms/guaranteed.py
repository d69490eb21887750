"""Mechanisms known only by a guarantee, and discrete Gaussian noise distributed over the clients of
a sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee import ApproximateDP, ConcentratedDP, KnownCurve, TypedAmounts
from dpcompose.law import Chained, GaussianShift, Laws, TwoPoint, alike, bounded_by
from dpcompose.mechanisms.base import Stated, set_fields
from dpcompose.mechanisms.parameter import DELTA, EPSILON, HOLDS_UNDER, Parameter, amount, declare
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, exact, larger_reading, smaller_reading, up


def _mu(name: str, value: Any) -> float:
    mu = check.nonnegative(name, value)
    if not (mu == 0 or 1e-12 < mu < 1e6):
        raise DomainError(name, mu, "0, or a number between 1e-12 and 1e6")
    return mu


SMALLEST = 1e-9
"""Below this epsilon the losses of a group have too many lattice points to enumerate."""
_VALUES = Parameter("numbers", lambda name, value: value)


@dataclass(frozen=True, init=False, repr=False)
class BlackBox(Stated):
    """Any (epsilon, delta)-differentially private mechanism.

    Its losses are those of the worst such mechanism: +epsilon, -epsilon, or infinite with
    probability delta.

    >>> from dpcompose import BlackBox
    >>> (BlackBox(0.1) * 100).epsilon(delta=1e-6).contains(4.774567588107986)
    True

    Args:
        epsilon: The epsilon of the guarantee in nats; >= 0.
        delta: The delta of the guarantee, in [0, 1].
        holds_under: The adjacency of the guarantee. Under replacement, one stated for add-remove
            counts as for a group of two.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [KairouzOhViswanath2015, Theorem 3.3]
    """

    stated: ApproximateDP = field(metadata=declare(epsilon=EPSILON, delta=DELTA))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    closed_form = True
    event = "EpsilonDeltaDpEvent", {"epsilon": "epsilon", "delta": "delta"}

    def __init__(
        self, epsilon: float, *, delta: float = 0.0, holds_under: Adjacency = Adjacency.ADD_REMOVE
    ) -> None:
        values = self._checked(epsilon=epsilon, delta=delta, holds_under=holds_under)
        stated = ApproximateDP(values["epsilon"], delta=values["delta"])
        set_fields(self, stated=stated, holds_under=values["holds_under"])

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts | None:
        """Return epsilon and delta as the decimals that the user typed; twice epsilon for a group
        of two, or None if delta is above 0.
        """
        epsilon, delta = exact(self.stated.epsilon), exact(self.stated.delta)
        if not self._doubled(adjacency):
            return TypedAmounts(epsilon, delta)
        return TypedAmounts(2 * epsilon) if delta == 0 else None

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the two-point law, or for a group of two the pair of its trade-off function
        iterated twice.
        """
        if self._doubled(adjacency) and 0 < self.stated.epsilon < SMALLEST:
            # The losses of a group lie on a lattice with too many points; (2 epsilon, (1 +
            # e^epsilon) delta) dominates them.
            delta = min(up(self.stated.delta * (2 + 4 * SMALLEST)), 1.0)
            return bounded_by(TwoPoint(2 * self.stated.epsilon, delta))
        if self._doubled(adjacency):
            return alike(Chained(self.stated.epsilon, self.stated.delta, categories=2, steps=2))
        return alike(TwoPoint(self.stated.epsilon, self.stated.delta))


@dataclass(frozen=True, init=False, repr=False)
class Concentrated(Stated):
    """Any mechanism that is rho-zero-concentrated differentially private, except with probability
    delta.

    The guarantee determines no privacy loss, so that a composition with it is bounded from above by
    Renyi divergences.

    Args:
        rho: The rho of the guarantee; >= 0.
        delta: The probability that the guarantee fails, in [0, 1].
        holds_under: The adjacency of the guarantee. Under replacement, one stated for add-remove
            counts as 4 rho if delta is 0.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [BunSteinke2016, Definition 1.1]
    """

    stated: ConcentratedDP = field(metadata=declare(rho=amount(), delta=DELTA))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    closed_form = True

    def __init__(
        self, rho: float, *, delta: float = 0.0, holds_under: Adjacency = Adjacency.ADD_REMOVE
    ) -> None:
        values = self._checked(rho=rho, delta=delta, holds_under=holds_under)
        stated = ConcentratedDP(values["rho"], delta=values["delta"])
        set_fields(self, stated=stated, holds_under=values["holds_under"])

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts | None:
        """Return rho and delta as the typed decimals; for a group of two 4 rho, or None if delta is
        above 0.
        """
        rho, delta = exact(self.stated.rho), exact(self.stated.delta)
        if not self._doubled(adjacency):
            return TypedAmounts(delta=delta, rho=rho)
        return TypedAmounts(rho=4 * rho) if delta == 0 else None

    def laws(self, adjacency: Adjacency) -> Laws | None:
        """Return None, since only the Renyi curve rho * order is known; no laws if rho and delta
        are 0.
        """
        promise = self.promise(adjacency)
        return () if promise.rho == 0 and promise.delta == 0 else None

    def promise(self, adjacency: Adjacency) -> ConcentratedDP:
        """Return the guarantee; for a group of two with 4 rho.

        Raises:
            UnsupportedError: If it is not covered under the adjacency, or delta is above 0 for a
                group of two.
        """
        if not self._doubled(adjacency):
            return self.stated
        if self.stated.delta > 0:
            raise UnsupportedError(
                repr(self),
                "no group guarantee is offered for zero-concentrated privacy with delta > 0",
            )
        return ConcentratedDP(4 * self.stated.rho)


@dataclass(frozen=True, init=False, repr=False)
class RenyiCurve(Stated):
    """Any mechanism with these bounds on its Renyi divergences in both directions, except with
    probability delta.

    The bounds are a function of the order, or values at some orders: between two of these (order -
    1) times the divergence lies below its chord, and beyond the last one no bound is known. All
    such parts of a composition are added order by order and converted once, to a pair that is
    composed with the losses of all other parts.

    >>> from dpcompose import Adjacency
    >>> from dpcompose.mechanisms import RenyiCurve
    >>> known = RenyiCurve([0.04, 0.1, 0.3], orders=[2, 5, 12], holds_under=Adjacency.ADD_REMOVE)
    >>> known.renyi(5.0).upper < 0.1 + 1e-15
    True

    Args:
        curve: A function from an order in (1, inf) to a divergence in nats, >= 0, infinite where it
            is unknown; or the divergences at `orders`.
        orders: The orders of the divergences, finite and increasing, > 1; None if `curve` is a
            function.
        holds_under: The adjacency of the bounds; no other adjacency is supported.
        delta: The probability that the bounds fail, in [0, 1].

    Raises:
        DomainError: If the curve decreases or is nowhere finite, `curve` is neither a function nor
            values, or delta is outside [0, 1].

    Reference: [Mironov2017, Definition 4]
    """

    stated: KnownCurve = field(metadata=declare(curve=_VALUES, orders=_VALUES, delta=DELTA))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))

    def __init__(
        self,
        curve: Callable[[float], float] | Sequence[float],
        *,
        orders: Sequence[float] | None = None,
        holds_under: Adjacency,
        delta: float = 0.0,
    ) -> None:
        stated = KnownCurve.of(curve, orders, DELTA.domain("delta", delta))
        set_fields(self, stated=stated, **self._checked(holds_under=holds_under))

    def _costlier(self) -> RenyiCurve:
        delta = min(larger_reading(self.stated.delta), 1.0)
        curve, orders = self.stated.curve, self.stated.orders
        if not callable(curve):
            curve = tuple(map(larger_reading, curve))
            orders = tuple(smaller_reading(order) if order > 1.001 else order for order in orders)
        return RenyiCurve(curve, orders=orders or None, holds_under=self.holds_under, delta=delta)

    def laws(self, adjacency: Adjacency) -> Laws | None:
        """Return None, since only the Renyi curve is known."""
        self._covered(adjacency)
        return None

    def promise(self, adjacency: Adjacency) -> KnownCurve:
        """Return the Renyi curve.

        Raises:
            UnsupportedError: If the adjacency is not `holds_under`.
        """
        self._covered(adjacency)
        return self.stated

    def _covered(self, adjacency: Adjacency) -> None:
        """Raise an UnsupportedError if the adjacency is not `holds_under`."""
        if self._doubled(adjacency):
            remedy = "State the curve with holds_under=Adjacency.REPLACE, if it is known"
            raise UnsupportedError(
                repr(self), "no group guarantee is offered for a Renyi curve", remedy
            )


@dataclass(frozen=True, init=False, repr=False)
class GaussianDP(Stated):
    """Any mechanism that is mu-Gaussian differentially private.

    Args:
        mu: The mu of the guarantee, in (0, 1e6), or 0.
        holds_under: The adjacency of the guarantee. Under replacement, one stated for add-remove
            counts as 2 mu.

    Raises:
        DomainError: If mu is outside its domain.

    Reference: [DongRothSu2022, Definition 2.6]
    """

    mu: float = field(metadata=declare(amount(_mu)))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    closed_form = True

    def __init__(self, mu: float, *, holds_under: Adjacency = Adjacency.ADD_REMOVE) -> None:
        self._state(mu=mu, holds_under=holds_under)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return mu squared from the typed decimal of mu; from 2 mu for a group of two."""
        square = (exact(self.mu) * (2 if self._doubled(adjacency) else 1)) ** 2
        return TypedAmounts.gaussian(square)

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the Gaussian law of mu, or of 2 mu for a group of two."""
        mu = 2 * self.mu if self._doubled(adjacency) else self.mu
        return alike(GaussianShift(mu, 0)) if mu > 0 else ()


MOST_CLIENTS, EXPLICIT = 10**9, 10**4


def distributed_discrete_gaussian(
    sigma: float,
    *,
    clients: int,
    norm: float,
    dimension: int,
    granularity: float = 1.0,
    holds_under: Adjacency = Adjacency.ADD_REMOVE,
) -> Concentrated:
    """Return the guarantee Concentrated(rho) of the sum of `clients` integer vectors, each with its
    own discrete Gaussian noise.

    Vectors must be clipped and rounded to the granularity so that their norm is at most `norm`;
    random rounding may be repeated until it is. Adding them modulo a number is post-processing of
    the noisy sum.

    >>> from dpcompose.mechanisms import distributed_discrete_gaussian
    >>> distributed_discrete_gaussian(2.0, clients=100, norm=10.0, dimension=1000)
    Concentrated(0.1250000000000295)

    Args:
        sigma: The parameter of each client's noise, in the units of the vectors; at least a quarter
            of the granularity.
        clients: The number of honest clients that are certain to add their noise; from 1 to 10^9.
        norm: The largest L2 norm of a client's rounded vector, in the same units.
        dimension: The number of coordinates.
        granularity: The distance of adjacent values of a coordinate.
        holds_under: The adjacency under which one person's data moves the sum by at most `norm`.

    Raises:
        DomainError: If a parameter is outside its domain.
        UnsupportedError: If the noise is too small for a finite rho.

    Reference: [KairouzLiuSteinke2021, Theorem 1], [CanonneKamathSteinke2020, Theorem 7]
    """

    # Proof. The sum of n noises is no discrete Gaussian. In units of the granularity, with V = n
    # sigma^2, it is the discrete Gaussian of parameter V times a factor that varies by at most
    # e^tau, tau = sum over k < n of ln((1 + 2 theta_k) / (1 - 2 theta_k)), theta_k = sum over m >=
    # 1 of e^(-2 pi^2 m^2 sigma^2 k / (k + 1)): adding one more noise multiplies a Gaussian by a
    # theta function of its position, which Poisson's formula bounds, and averages the factor so
    # far. A discrete Gaussian has at most the moments of the continuous one, hence the Renyi
    # divergence of order a > 1 at a shift s of a coordinate is at most tau + a s^2 / (2 V), and rho
    # = norm^2 / (2 V) + dimension * tau.
    sigma, norm = check.positive("sigma", sigma), check.positive("norm", norm)
    granularity = check.positive("granularity", granularity)
    clients, dimension = (
        check.count("clients", clients, least=1),
        check.count("dimension", dimension, least=1),
    )
    if not clients <= MOST_CLIENTS:
        raise DomainError(
            "clients",
            clients,
            "an integer from 1 to 10^9",
            "State fewer: the noise is at least theirs",
        )
    unit = sigma / granularity
    if not 0.25 <= unit < 1e9:
        raise DomainError(
            "sigma", sigma, "at least a quarter of the granularity, and less than 1e9 times as much"
        )
    ratio = norm / granularity / unit
    rho = (ratio * ratio / (2 * clients) + dimension * _spread(unit, clients)) * (
        1 + 64 * UNIT_ROUNDOFF
    )
    if not rho < math.inf:
        raise UnsupportedError(
            f"distributed_discrete_gaussian({sigma!r})",
            "the noise is too little for the bound",
            "Use more noise",
        )
    return Concentrated(rho, holds_under=holds_under)


def _spread(unit: float, clients: int) -> float:
    """Return an upper bound on tau; the terms fall with k, so that the last explicit one bounds
    those after it.
    """
    total, terms = 0.0, min(clients - 1, EXPLICIT)
    term = 0.0
    for k in range(1, terms + 1):
        decay = math.exp(-2 * math.pi**2 * unit * unit * (k / (k + 1)) * (1 - 32 * UNIT_ROUNDOFF))
        theta = decay + decay**4 / (1 - decay)
        if not 2 * theta < 0.999:
            return math.inf
        term = math.log1p(4 * theta / (1 - 2 * theta))
        total += term
    return (total + (clients - 1 - terms) * term) * (1 + 1e-9)
