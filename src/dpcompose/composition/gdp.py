"""Gaussian differential privacy of a composition of Gaussians: the root of the sum of squares."""

from __future__ import annotations

from dpcompose.composition.container import Composition
from dpcompose.composition.numerical import gathered
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.loss.product import Product


def mu(composition: Composition, *, adjacency: Adjacency) -> float | None:
    """The mu for which the composition is exactly mu-GDP, rounded up; None if a part is not Gaussian.

    >>> from dpcompose import Gaussian
    >>> round((Gaussian(2.0) * 16).gdp(), 12)
    2.0

    Args:
        composition: What is composed.
        adjacency: What one person's data may change.

    Raises:
        UnsupportedError: If a part has no sound statement under the adjacency.

    Reference: [DongRothSu2022, Corollary 3.3]
    """
    pairs, promises = gathered(composition, adjacency)
    if promises or not all(pair.symmetric for pair, _ in pairs):
        return None
    reduced = Product(tuple((pair.remove, times) for pair, times in pairs)).reduced
    if not reduced:
        return 0.0
    return reduced[0][0].gdp if len(reduced) == 1 and reduced[0][1] == 1 else None
