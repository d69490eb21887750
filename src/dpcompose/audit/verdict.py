"""The three verdicts, and what is found."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any

from dpcompose.values import Bound


class Verdict(Enum):
    """The answer of an audit: never that a mechanism is private, unless its law is known."""

    REFUTED = "refuted"
    """If the claim were true, this would have happened with probability at most alpha, whenever one had stopped."""
    NOT_REFUTED = "not refuted"
    """No violation was found; nothing is proved of events that were not tried."""
    CERTIFIED = "certified"
    """The declared law is known, and its certified profile is at most the claim's."""


@dataclass(frozen=True)
class Tried:
    """One event that was tried, and what is excluded of it.

    Args:
        event: The event in words.
        point: The place of its (epsilon, delta) on the claim's curve.
        excess: An estimate of P(S) - e^epsilon Q(S) - delta.
        excluded: Whether a violation by this event is excluded, at the audit's alpha for all events together.
        error: The standard error of the estimate.
    """

    event: str
    point: int
    excess: float
    excluded: bool
    error: float = 0.0


@dataclass(frozen=True)
class Moment:
    """The state of an audit after one batch, for progress and pictures.

    Args:
        samples: Rows so far.
        log_wealth: ln of the wealth.
        epsilon: The lower bound on epsilon.
        pair: The place of the pair that answered.
        members: ln of the factor of each member in this batch, by the name of its feature.
    """

    samples: int
    log_wealth: float
    epsilon: float
    pair: int
    members: tuple[tuple[str, float], ...] = ()


@dataclass(frozen=True)
class Found:
    """The outcome of an audit.

    Args:
        verdict: One of three.
        epsilon: The least epsilon, at `delta`, that the mechanism can claim: its lower end holds but for alpha.
        delta: The delta of that epsilon.
        event: The event that refutes the claim, or the best one, in words.
        samples: The rows, of either world.
        log_wealth: ln of the wealth when the audit stopped.
        tried: The events that were tried.
        unseen: The probability below which an isolating event would not be seen with so many rows.
        certificate: What `check` reads.
        moments: The course of the audit.
        freshness: How the subject was called.
        peak: The largest ln of the wealth at any look.
        unread: What was not looked at in the answers, and how many of it in one.
        repeated: Whether a refutation rests on answers that came again, of calls that are not isolated: it is one of
            repeated calls, since a mechanism may rightly answer from memory.
        silent: What all calls did, in words, where none answered and nothing was audited.
        description: What is known of the declared law.
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
