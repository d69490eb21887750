"""Randomized response over k categories."""

from __future__ import annotations

import math
from dataclasses import KW_ONLY, dataclass

from dpcompose.composition.container import Pairs
from dpcompose.guarantee.adjacency import Adjacency
from dpcompose.loss.atoms import AtomicLoss
from dpcompose.loss.base import Loss
from dpcompose.loss.two_point import TwoPointLoss
from dpcompose.loss.twice import two_in_a_row
from dpcompose.mechanism.base import Stated, symmetric
from dpcompose.mechanism.guaranteed import bounded_epsilon
from dpcompose.numerics import check
from dpcompose.numerics.bound import UNIT_ROUNDOFF
from dpcompose.numerics.transform import Lattice


@dataclass(frozen=True)
class RandomizedResponse(Stated):
    """The truth with probability e^epsilon / (e^epsilon + k - 1), else one of the other k - 1 categories; or any mechanism that this pair dominates.

    >>> from dpcompose import RandomizedResponse
    >>> RandomizedResponse(1.0, categories=10).delta(epsilon=0.5).contains(0.09127281400259379)
    True

    Args:
        epsilon: In nats; >= 0.
        categories: k, an integer >= 2.
        holds_under: The adjacency of the statement; asked about replacing, an add-remove statement is a group of two.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [KairouzOhViswanath2015, Section 1]
    """

    epsilon: float
    _: KW_ONLY
    categories: int = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "epsilon", bounded_epsilon(self.epsilon))
        object.__setattr__(self, "categories", check.count("categories", self.categories, least=2))

    def pairs(self, adjacency: Adjacency) -> Pairs:
        """+epsilon, -epsilon, or 0 for an answer that is neither the one truth nor the other."""
        if self._doubled(adjacency):
            return symmetric((two_in_a_row(self.epsilon, delta=0.0, categories=self.categories), 1))
        return symmetric((_loss(self.epsilon, self.categories), 1))


def _loss(epsilon: float, categories: int) -> Loss:
    if categories == 2 or epsilon == 0:
        return TwoPointLoss(epsilon)
    others = (categories - 1) * math.exp(-epsilon)
    truth, other = 1 / (1 + others), math.exp(-epsilon) / (1 + others)
    if other < 1e-290:
        # Every mechanism of this epsilon is dominated by the two-point loss; the difference is below 1e-280.
        return TwoPointLoss(epsilon)
    rest = (categories - 2) * other
    return AtomicLoss(
        (truth, rest, other), (other, rest, truth), (epsilon, 0.0, -epsilon), Lattice(epsilon, 0.0), 16 * UNIT_ROUNDOFF
    )
