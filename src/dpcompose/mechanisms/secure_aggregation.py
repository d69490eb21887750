"""Discrete Gaussian noise that clients add to their vectors before secure aggregation."""

from __future__ import annotations

import math

from dpcompose import check
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms.guaranteed import Concentrated
from dpcompose.values import UNIT_ROUNDOFF, Adjacency

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

    The sum of n noises is no discrete Gaussian. In units of the granularity, with V = n sigma^2, it
    is the discrete Gaussian of parameter V times a factor that varies by at most e^tau, tau = sum
    over k < n of ln((1 + 2 theta_k) / (1 - 2 theta_k)), theta_k = sum over m >= 1 of e^(-2 pi^2 m^2
    sigma^2 k / (k + 1)): adding one more noise multiplies a Gaussian by a theta function of its
    place, which Poisson's formula bounds, and averages the factor so far. A discrete Gaussian has
    at most the moments of the continuous one, hence the Renyi divergence of order a > 1 at a shift
    s of a coordinate is at most tau + a s^2 / (2 V), and rho = norm^2 / (2 V) + dimension * tau.

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
