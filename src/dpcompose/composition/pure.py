"""Pure and approximate privacy of a composition whose losses are bounded: the basic theorem."""

from __future__ import annotations

import math

from dpcompose.composition.container import Composition
from dpcompose.composition.numerical import gathered
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.numerics.bound import up


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
    if promises:
        return None
    largest, infinite = 0.0, 0.0
    for pair, times in pairs:
        largest = up(largest + up(times * max(pair.remove.maximum, pair.add.maximum, 0.0)))
        masses = [loss.infinite_mass + loss.slack for loss in (pair.remove, pair.add)]
        infinite = up(infinite + up(times * up(max(masses)))) if max(masses) > 0 else infinite
    return ApproximateDP(largest, delta=min(infinite, 1.0)) if math.isfinite(largest) else None
