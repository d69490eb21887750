"""The claim of an audit as (epsilon, delta) points, for neighboring datasets and for groups; and the
verdict about it.

Rounding favors the mechanism: every epsilon and delta is rounded up, which only lowers the wealth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from typing import Any

from dpcompose import check
from dpcompose.composition import Composable, compose
from dpcompose.errors import DomainError, DPComposeError
from dpcompose.mechanisms import BlackBox, Concentrated, GaussianDP
from dpcompose.pictured import Card
from dpcompose.values import UNIT_ROUNDOFF, Adjacency, Bound, up


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
"""Small epsilons of the curve that are tested too; at a large epsilon stakes gain little."""
LARGEST = 30.0
"""The largest epsilon tested, since a larger one allows almost anything."""
_REMEDY = (
    "A claim with infinite epsilon or delta 1 holds for every mechanism: nothing can refute it"
)


@dataclass(frozen=True)
class Point:
    """One (epsilon, delta) guarantee of a claim.

    Args:
        epsilon: In nats, at least 0.
        delta: In [0, 1], where 1 bounds nothing.
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
    accepted = "a mechanism or composition, such as BlackBox(1.0, delta=1e-6)"
    check.kind("claim", claim, Composable, accepted)
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


class Verdict(Enum):
    """The conclusion of an audit. Testing alone never shows that a mechanism is private."""

    REFUTED = "refuted"
    """The wealth reached 1/alpha: of probability at most alpha if the claim is true, at any time."""
    NOT_REFUTED = "not refuted"
    """No violation was detected; events that were not tested may still violate the claim."""
    CERTIFIED = "certified"
    """The certified privacy curve of the declared output distribution satisfies the claim."""


@dataclass(frozen=True)
class Tried(Card):
    """One tested event, and whether a violation of the claim by it is excluded.

    Args:
        event: A description of the event.
        point: The index of the tested (epsilon, delta) among the points of the claim.
        excess: An estimate of P(S) - e^epsilon Q(S) - delta for the event S; above 0 it violates
            the claim.
        excluded: Whether a violation is excluded at level alpha, simultaneously for all tested
            events.
        error: The standard error of the estimate.
    """

    event: str
    point: int
    excess: float
    excluded: bool
    error: float = 0.0


@dataclass(frozen=True)
class Moment(Card):
    """The state of an audit after one batch, for progress displays and plots.

    Args:
        samples: The number of rows (outcomes) so far.
        log_wealth: Natural logarithm of the wealth.
        epsilon: The current lower bound on epsilon.
        pair: The index of the pair of datasets in this batch.
        members: For each feature bet on, the log growth factor of its bets in this batch.
    """

    samples: int
    log_wealth: float
    epsilon: float
    pair: int
    members: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class AuditResult(Card):
    """The result of an audit.

    Args:
        verdict: Whether the claim is refuted, not refuted, or certified from the declared law.
        epsilon: The mechanism's epsilon at `delta`. Its lower end is a lower confidence bound,
            valid with probability 1 - alpha; its upper end is infinite.
        delta: The delta at which epsilon is bounded.
        event: A description of the event with the strongest evidence against the claim.
        samples: The number of outcomes, over both datasets of each pair.
        log_wealth: Natural logarithm of the wealth at the end; the claim is refuted from
            ln(1/alpha) on.
        tried: The events tested for absence of a violation.
        unseen: The probability below which a violating event could have gone undetected with this
            many rows.
        certificate: The evidence as a document that `check` verifies.
        moments: The state after each batch.
        freshness: How isolated the calls were: a value of `Fresh`.
        peak: The largest log wealth during the audit.
        unread: The parts of answers that were not examined, with their number in one answer.
        repeated: Whether a refutation rests on recurring answers of calls that were not isolated:
            had they been the worst ones for the bets, it would fail. It then concerns repeated
            calls, since a mechanism may legitimately return a stored answer.
        description: Whether the declared law satisfies the claim, in words; empty if none was
            declared.
    """

    verdict: Verdict
    epsilon: Bound
    delta: float
    event: str
    samples: int
    log_wealth: float
    tried: tuple[Tried, ...] = ()
    unseen: float = 1.0
    certificate: dict[str, Any] | None = None
    moments: tuple[Moment, ...] = ()
    freshness: str = "call"
    peak: float = 0.0
    description: str = ""
    unread: tuple[str, ...] = ()
    repeated: bool = False
