"""Randomized response over k categories."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from dpcompose.errors import DomainError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import Atoms, Chained, Law, Laws, Pair, Response, TwoPoint, alike
from dpcompose.mechanisms.base import Stated
from dpcompose.mechanisms.parameter import EPSILON, HOLDS_UNDER, count, declare
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, exact

SMALLEST, LARGEST = 1e-9, 300.0
_CATEGORIES = count(
    10**15,
    "an integer from 2 to 10^15",
    "BlackBox(epsilon) dominates any number of them",
    least=2,
)


@dataclass(frozen=True, init=False, repr=False)
class RandomizedResponse(Stated):
    """The true category with probability e^epsilon / (e^epsilon + k - 1), else a uniformly random
    other one.

    Any mechanism that this pair dominates can be stated as one.

    >>> from dpcompose import RandomizedResponse
    >>> RandomizedResponse(1.0, categories=10).delta(epsilon=0.5).contains(0.09127281400259379)
    True

    Args:
        epsilon: The largest loss of an answer, in nats; >= 0.
        categories: The number k of categories, an integer from 2 to 10^15.
        holds_under: The adjacency under which the answer is randomized. Under replacement, a
            statement for add-remove counts as for a group of two.

    Raises:
        DomainError: If a number is outside its domain.

    Reference: [KairouzOhViswanath2015, Section 1]
    """

    stated: float = field(metadata=declare(epsilon=EPSILON))
    categories: int = field(metadata=declare(_CATEGORIES))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    closed_form = True

    def __init__(
        self, epsilon: float, *, categories: int = 2, holds_under: Adjacency = Adjacency.ADD_REMOVE
    ) -> None:
        self._state(categories=categories, epsilon=epsilon, holds_under=holds_under)
        if self.categories > 2 and not self.stated <= LARGEST:
            raise DomainError(
                "epsilon",
                self.stated,
                f"at most {LARGEST:g} for more than two categories",
                "BlackBox(epsilon) dominates it",
            )

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as written; 2 epsilon for a group of two."""
        return TypedAmounts(exact(self.stated) * (2 if self._doubled(adjacency) else 1))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the law with losses +epsilon, -epsilon, and 0 for an answer that is neither of the
        two true categories.
        """
        doubled = self._doubled(adjacency)
        if (doubled or self.categories > 2) and 0 < self.stated < SMALLEST:
            # A lattice this fine has too many points; the largest losses alone are above these.
            above = TwoPoint(self.stated * (2 if doubled else 1))
            return ((Pair(above, above, attained=False), 1),)
        if doubled:
            return alike(Chained(self.stated, 0.0, self.categories, steps=2))
        return alike(_loss(self.stated, self.categories))


def _loss(epsilon: float, categories: int) -> Law:
    if categories == 2 or epsilon == 0:
        return TwoPoint(epsilon)
    others = (categories - 1) * math.exp(-epsilon)
    truth, other = 1 / (1 + others), math.exp(-epsilon) / (1 + others)
    rest = (categories - 2) * other
    return Atoms(
        (truth, rest, other),
        (other, rest, truth),
        (epsilon, 0.0, -epsilon),
        (epsilon, 0.0),
        16 * UNIT_ROUNDOFF,
        formula=Response(epsilon, categories),
    )
