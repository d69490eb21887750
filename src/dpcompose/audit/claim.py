"""The claim of an audit as (epsilon, delta) points, for neighboring datasets and for groups.

Rounding favors the mechanism: every epsilon and delta is rounded up, which only lowers the wealth.
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
    """Two datasets at a known distance, on which a claim is tested.

    Args:
        zero: The dataset used if the coin is 0 (world 0).
        one: The dataset used if the coin is 1 (world 1).
        distance: The number of neighboring steps from one to the other under the claim's adjacency,
            at least 1.
    """

    zero: Any
    one: Any
    _: KW_ONLY
    distance: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "distance", check.count("distance", self.distance, least=1))

    def __getitem__(self, coin: int) -> Any:
        """The dataset of world 0 or world 1."""
        return self.one if coin else self.zero


DELTAS = (0.1, 0.01, 1e-4, 1e-6)
"""Deltas at which a claim's privacy curve is evaluated, besides delta = 0."""
EPSILONS = (0.0, 1.0)
"""Epsilons at which the curve is evaluated too: at a large epsilon stakes are small, and gain
little even if the worlds are easily distinguished.
"""
LARGEST = 30.0
"""The largest epsilon tested: a larger one allows almost anything."""
_REMEDY = (
    "A claim with infinite epsilon or delta 1 holds for every mechanism: nothing can refute it"
)


@dataclass(frozen=True)
class Point:
    """One (epsilon, delta) guarantee of a claim.

    Args:
        epsilon: In nats, at least 0.
        delta: In [0, 1); 1 if the point bounds nothing.
    """

    epsilon: float
    delta: float

    @property
    def growth(self) -> float:
        """e^epsilon, rounded up."""
        return up(math.exp(self.epsilon) * (1 + 4 * UNIT_ROUNDOFF))

    def group(self, size: int) -> Point:
        """The guarantee for datasets `size` neighboring steps apart, rounded up (group privacy,
        Theorem 6).

        It is (k epsilon, delta (e^(k epsilon) - 1) / (e^epsilon - 1)) for k = `size`; the quotient
        is computed as the sum of e^(i epsilon), i < k. The point (infinity, 1) is returned if k
        epsilon exceeds `LARGEST`.
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
        """Whether a bet against this point can gain: epsilon is at most `LARGEST` and delta below
        1.
        """
        return self.epsilon <= LARGEST and self.delta < 1


def points(
    claim: Composable, *, distance: int = 1, adjacency: Adjacency = Adjacency.ADD_REMOVE
) -> tuple[Point, ...]:
    """The (epsilon, delta) points at which the claim is tested, for datasets at a distance.

    Args:
        claim: The claim. A `BlackBox` gives its single point, anything else several points of its
            privacy curve.
        distance: The number of neighboring steps between the datasets, at least 1.
        adjacency: The neighboring relation of the claim.

    Raises:
        DomainError: If the claim is not a mechanism or composition, or bounds nothing at distance
            1.
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
    """Whether a declared law is certified to satisfy a claim.

    A `BlackBox` claim is compared at its (epsilon, delta), a `Concentrated` one by rho and delta, a
    `GaussianDP` one by mu. For any other claim, law and claim must be the same composition.

    Args:
        law: The mechanism or composition that the code is declared to implement.
        claim: The privacy claim.
        adjacency: The neighboring relation of the claim.
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
