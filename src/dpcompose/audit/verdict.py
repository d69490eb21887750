"""The result of an audit: the verdict, its evidence, and what remains undetected."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dpcompose.pictured import Card
from dpcompose.values import Bound


class Verdict(Enum):
    """The conclusion of an audit. Testing alone never shows that a mechanism is private."""

    REFUTED = "refuted"
    """The evidence against the claim reached 1/alpha, which has probability at most alpha if the
    claim is true, however the stopping time is chosen.
    """
    NOT_REFUTED = "not refuted"
    """No violation was detected; events that were not tested may still violate the claim."""
    CERTIFIED = "certified"
    """The mechanism's output distribution was declared, and its certified privacy curve satisfies
    the claim.
    """


@dataclass(frozen=True)
class Tried:
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
class Moment:
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
        silent: A description of the common failure if no call answered, so that nothing was
            audited; otherwise empty.
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
    silent: str = ""
    repeated: bool = False
