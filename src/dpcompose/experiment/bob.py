"""The question about Bob with the largest loss that a mechanism allows."""

from __future__ import annotations

from functools import singledispatch

from dpcompose import check
from dpcompose.composition import Composable, Sampled
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.experiment.query import Database, Holds, Query
from dpcompose.mechanisms import DiscreteGaussian, DiscreteLaplace, Gaussian, Laplace
from dpcompose.values import Adjacency

_OTHER: dict[Adjacency, Database] = {
    Adjacency.ADD_REMOVE: (),
    Adjacency.REPLACE: ("Eve",),
    Adjacency.ZERO_OUT: (None,),
}


def about_bob(mechanism: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE) -> Query:
    """The question whether Bob is in the database: he is in world 0, and the values differ by the whole sensitivity.

    >>> from dpcompose import Laplace
    >>> query = about_bob(Laplace(1.0, sensitivity=2.0))
    >>> query.statistic(query.zero), query.statistic(query.one)
    (2.0, 0.0)

    Args:
        mechanism: The mechanism that answers.
        adjacency: The neighboring relation.

    Raises:
        DomainError: If the one is no mechanism, or the other no Adjacency.
        UnsupportedError: If the mechanism has several coordinates.
    """
    if not isinstance(mechanism, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("mechanism", mechanism, "a mechanism, such as Laplace(2.0)")
    other = _OTHER[check.member("adjacency", adjacency, Adjacency)]
    return Query(mechanism, ("Bob",), other, Holds("Bob", reach_of(mechanism, adjacency)))


@singledispatch
def reach_of(mechanism: Composable, adjacency: Adjacency) -> float:
    """The largest distance of the two values of the statistic; 1 where the mechanism has no unit of its own."""
    return 1.0


@reach_of.register(Laplace)
@reach_of.register(Gaussian)
def _(mechanism: Laplace | Gaussian, adjacency: Adjacency) -> float:
    return mechanism.sensitivity_under(adjacency)


@reach_of.register(DiscreteLaplace)
@reach_of.register(DiscreteGaussian)
def _(mechanism: DiscreteLaplace | DiscreteGaussian, adjacency: Adjacency) -> float:
    doubled = adjacency is Adjacency.REPLACE and mechanism.replace is None
    change = mechanism.shift if adjacency is not Adjacency.REPLACE or doubled else mechanism.replace
    if isinstance(change, tuple) or change is None:
        raise UnsupportedError(repr(mechanism), "the experiment draws one coordinate")
    return float(abs(change) * (2 if doubled else 1))


@reach_of.register
def _(mechanism: Sampled, adjacency: Adjacency) -> float:
    return reach_of(mechanism.base.parts[0][0], adjacency) if mechanism.base.count == 1 else 1.0
