"""The claim of an audit: points (epsilon, delta) of a Composable's curve, for one step and for groups.

Every point is rounded in favor of the mechanism: wealth falls in e^epsilon and in delta.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from dpcompose import check
from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.mechanisms import BlackBox, Concentrated, GaussianDP
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, up


@dataclass(frozen=True)
class Pair:
    """Two datasets that a claim speaks of.

    Args:
        zero: The dataset of world 0.
        one: The dataset of world 1.
        distance: The number of steps from one to the other under the claim's adjacency, at least 1.
    """

    zero: Any
    one: Any
    _: KW_ONLY
    distance: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", check.count("distance", self.distance, least=1))

    def __getitem__(self, coin: int) -> Any:
        """The dataset of a world."""
        return self.one if coin else self.zero


DELTAS = (0.1, 0.01, 1e-4, 1e-6)
"""Where a curve is read, besides its pure epsilon."""
EPSILONS = (0.0, 1.0)
"""Where it is read too: bets at a large epsilon are small, so that between worlds far apart they hardly gain."""
LARGEST = 30.0
"""A larger epsilon promises nothing that could be tested."""
_REMEDY = (
    "A claim with infinite epsilon or delta 1 holds for every mechanism: nothing can refute it"
)


@dataclass(frozen=True)
class Point:
    """(epsilon, delta) of a claim.

    Args:
        epsilon: In nats.
        delta: In [0, 1).
    """

    epsilon: float
    delta: float

    @property
    def growth(self) -> float:
        """e^epsilon, rounded up."""
        return up(math.exp(self.epsilon) * (1 + 4 * UNIT_ROUNDOFF))

    def group(self, size: int) -> Point:
        """The point that holds for databases so many steps apart, rounded up: Theorem 6.

        delta (e^(k epsilon) - 1) / (e^epsilon - 1) is delta times the sum of e^(i epsilon), i < k.
        """
        if size == 1:
            return self
        epsilon = up(self.epsilon * size)
        if not epsilon <= LARGEST:
            return Point(math.inf, 1.0)
        total = math.fsum(math.exp(step * self.epsilon) for step in range(size))
        return Point(
            epsilon,
            min(1.0, up(self.delta * total * (1 + 16 * UNIT_ROUNDOFF))) if self.delta else 0.0,
        )

    @property
    def testable(self) -> bool:
        """Whether any bet could win."""
        return self.epsilon <= LARGEST and self.delta < 1


def points(
    claim: Composable, *, distance: int = 1, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> tuple[Point, ...]:
    """The points of the claim that bets are made at, for databases at a distance.

    Args:
        claim: The claim. A `BlackBox` is one point, every other one a few points of its curve.
        distance: Steps of the adjacency, at least 1.
        adjacency: The neighboring relation of the claim.

    Raises:
        DomainError: If the claim is none, or promises nothing.
    """
    if not isinstance(claim, Composable):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "claim", claim, "a mechanism or composition, such as BlackBox(1.0, delta=1e-6)"
        )
    check.member("adjacency", adjacency, Adjacency)
    size = check.count("distance", distance, least=1)
    if isinstance(claim, BlackBox):
        found = [Point(claim.stated.epsilon, claim.stated.delta).group(size)]
    else:
        found = list(_curve(claim, size, adjacency))
    kept = tuple(point for point in found if point.testable)
    if not kept and distance == 1:
        raise DomainError(
            "claim", claim, "a claim with a finite epsilon at a delta below 1", _REMEDY
        )
    return kept


def _curve(claim: Composable, size: int, adjacency: Adjacency) -> Sequence[Point]:
    asked = claim if size == 1 else claim.group(size)
    seen: dict[float, Point] = {}
    for level, delta in (
        *((each, 1.0) for each in EPSILONS),
        *((None, each) for each in (0.0, *DELTAS)),
    ):
        try:
            epsilon = (
                asked.epsilon(delta=delta, adjacency=adjacency).upper if level is None else level
            )
            epsilon = max(0.0, epsilon)
            if epsilon <= LARGEST and epsilon not in seen:
                seen[epsilon] = Point(
                    epsilon, asked.delta(epsilon=epsilon, adjacency=adjacency).upper
                )
        except DPComposeError:
            continue
    return tuple(seen.values())


def certified(
    law: Composable, claim: Composable, *, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> bool:
    """Whether the law certainly keeps the claim.

    At the point of a `BlackBox`; by the rho of a `Concentrated`, by the mu of a `GaussianDP`; of other curves, only
    where law and claim are the same composition.
    """
    whole = compose(law)
    match claim:
        case BlackBox():
            ((point),) = points(claim)
            return law.delta(epsilon=point.epsilon, adjacency=adjacency).upper <= point.delta
        case Concentrated():
            found = whole.zcdp(adjacency=adjacency)
            return (
                found is not None
                and found.rho <= claim.stated.rho
                and found.delta <= claim.stated.delta
            )
        case GaussianDP():
            mu = whole.gdp(adjacency=adjacency)
            return mu is not None and mu <= claim.mu
        case _:
            return whole == compose(claim)
