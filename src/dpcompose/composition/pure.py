"""Pure and approximate privacy of a composition whose losses are bounded: the basic theorem."""

from __future__ import annotations

from dpcompose.composition.container import Composition
from dpcompose.composition.elementary import added
from dpcompose.composition.numerical import gathered
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.approximate import ApproximateDP


def epsilon(composition: Composition, *, adjacency: Adjacency) -> float | None:
    """The sum of the largest losses, rounded up; None if one may be infinite.

    Reference: [DworkRoth2014, Corollary 3.15]
    """
    promise = approximate(composition, adjacency=adjacency)
    return promise.epsilon if promise is not None and promise.delta == 0 else None


def approximate(composition: Composition, *, adjacency: Adjacency) -> ApproximateDP | None:
    """The sums of the largest finite losses and of the infinite ones' masses, rounded up; None if a loss is unbounded.

    Reference: [DworkRoth2014, Theorem 3.16]
    """
    pairs, promises = gathered(composition, adjacency)
    return None if promises else added(pairs)
