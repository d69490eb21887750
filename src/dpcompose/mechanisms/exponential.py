"""The exponential mechanism, and all mechanisms of bounded range."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.guarantee import TypedAmounts
from dpcompose.law import BoundedRange, BoundedRangeAttained, Laws, Pair, Reversed, TwoPoint
from dpcompose.mechanisms.base import Stated
from dpcompose.mechanisms.parameter import EPSILON, HOLDS_UNDER, amount, declare
from dpcompose.values import Adjacency, exact

SMALLEST, LARGEST = 1e-9, 300.0


def _bounded_range(name: str, value: Any) -> float:
    epsilon = EPSILON.domain(name, value)
    if not epsilon <= LARGEST:
        raise DomainError(name, epsilon, f"at most {LARGEST:g}", "BlackBox(epsilon) dominates it")
    return epsilon


@dataclass(frozen=True, init=False, repr=False)
class Exponential(Stated):
    """Any epsilon-bounded-range mechanism: its losses lie in an interval of length epsilon.

    Examples are the exponential mechanism with weights e^(epsilon u / (2 D)), D the sensitivity of
    the utility u, and report-noisy-max with Gumbel noise. One run attains the dominating pair at
    every epsilon; for several runs, the lower end is that of mechanisms of one fixed shape.

    >>> from dpcompose import Exponential
    >>> Exponential(1.0).delta(epsilon=0.5).contains(0.07740468631569081)
    True

    Args:
        epsilon: The length of the interval of losses, in nats; >= 0.
        holds_under: The adjacency under which epsilon is stated. Under replacement, a value stated
            for add-remove counts as 2 epsilon.

    Raises:
        DomainError: If epsilon is outside its domain.

    Reference: [DongDurfeeRogers2020, Definition 3.1]
    """

    stated: float = field(metadata=declare(epsilon=amount(_bounded_range)))
    holds_under: Adjacency = field(metadata=declare(HOLDS_UNDER))
    event = "ExponentialMechanismDpEvent", {"epsilon": "epsilon"}

    def __init__(self, epsilon: float, *, holds_under: Adjacency = Adjacency.ADD_REMOVE) -> None:
        self._state(epsilon=epsilon, holds_under=holds_under)

    def _amounts(self, adjacency: Adjacency) -> TypedAmounts:
        """Return epsilon as written; 2 epsilon for a group of two."""
        return TypedAmounts(exact(self.stated) * (2 if self._doubled(adjacency) else 1))

    def laws(self, adjacency: Adjacency) -> Laws:
        """Return the dominating law, with the attained two-point laws that it dominates."""
        epsilon = 2 * self.stated if self._doubled(adjacency) else self.stated
        if epsilon < SMALLEST:
            nothing = Pair(TwoPoint(0.0), TwoPoint(0.0))
            return ((Pair(TwoPoint(epsilon), TwoPoint(epsilon), False, (nothing,)), 1),)
        inside = attained_pairs(epsilon)
        loss = BoundedRange(epsilon)
        return ((Pair(loss, loss, False, inside, tight_alone=True), 1),)


def attained_pairs(epsilon: float) -> tuple[Pair, ...]:
    """Return the two-point laws, in both orders, that mechanisms of bounded range `epsilon`
    attain.
    """
    laws = [BoundedRangeAttained(epsilon, at) for at in range(3)]
    return tuple([Pair(law, Reversed(law)) for law in laws])
