"""What a filter or a ledger may ask of anything that costs privacy."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from dpcompose.guarantee.adjacency import Adjacency, Orientation
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.concentrated import ConcentratedDP
from dpcompose.numerics.bound import Bound


@runtime_checkable
class Priced(Protocol):
    """Whatever names its price in every currency: each answer is an upper bound, or None where no finite one holds.

    Who charges at a point of a curve asks with `Orientation.FREE`: an adversary may turn every pair inside, and a
    charge is the sum over the members of the larger order. The other answers are such sums, whoever turns what.

    Every method raises UnsupportedError where the adjacency has no sound statement.
    """

    def pure(self, *, adjacency: Adjacency = ...) -> float | None:
        """The epsilon of pure differential privacy."""
        ...

    def approximate(self, *, adjacency: Adjacency = ...) -> ApproximateDP | None:
        """An (epsilon, delta) that holds without choosing a delta."""
        ...

    def epsilon(self, *, delta: float, adjacency: Adjacency = ..., orientation: Orientation = ...) -> Bound:
        """The epsilon at a delta: a point of the curve, for whoever charges at one."""
        ...

    def renyi(self, order: float, *, adjacency: Adjacency = ..., orientation: Orientation = ...) -> Bound:
        """The Renyi divergence of an order above 1, the larger of both directions."""
        ...

    def zcdp(self, *, adjacency: Adjacency = ...) -> ConcentratedDP | None:
        """The zero-concentrated guarantee."""
        ...

    def gdp(self, *, adjacency: Adjacency = ...) -> float | None:
        """The mu of Gaussian differential privacy."""
        ...
