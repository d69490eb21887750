"""Group commit: requests of many threads travel together, behind whichever of them came first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger.decision import Decision, Request

LONGEST = 256
"""Requests that share a commit at most."""

Outcome = Decision | DPComposeError
Commit = Callable[[Sequence[Request]], Sequence[Outcome]]


@dataclass(eq=False)
class _Traveller:
    """A request on its way; `gate` opens when it leads, or has its outcome."""

    request: Request
    gate: Lock = field(default_factory=Lock)
    leads: bool = False
    outcome: Outcome | BaseException | None = None

    def __post_init__(self) -> None:
        self.gate.acquire()


@dataclass
class Convoy:
    """One commit at a time; whoever waits meanwhile travels in the next.

    Args:
        commit: Decides requests in order and makes their changes durable together; one outcome for each. If it
            raises, that is the outcome of them all.
    """

    commit: Commit
    _lock: Lock = field(default_factory=Lock)
    _waiting: deque[_Traveller] = field(default_factory=deque[_Traveller])
    _moving: bool = False

    def submit(self, request: Request) -> Decision:
        """The decision on `request`, once it is durable; raises what deciding it raised."""
        traveller = _Traveller(request)
        try:
            with self._lock:
                self._waiting.append(traveller)
                traveller.leads, self._moving = not self._moving, True
            if not traveller.leads:
                traveller.gate.acquire()
            if traveller.leads:
                self._lead(traveller)
        except BaseException:
            self._abandon(traveller)
            raise
        outcome = traveller.outcome
        if isinstance(outcome, Decision):
            return outcome
        assert outcome is not None, "a traveller that arrived has an outcome"
        raise outcome

    def _lead(self, leader: _Traveller) -> None:
        """Commit for all who wait, then let the next one lead."""
        with self._lock:
            convoy = [self._waiting.popleft() for _ in range(min(len(self._waiting), LONGEST))]
        try:
            outcomes = self.commit([traveller.request for traveller in convoy])
            for traveller, outcome in zip(convoy, outcomes, strict=True):
                traveller.outcome = outcome
        except BaseException as error:
            for traveller in convoy:
                traveller.outcome = error if isinstance(error, DPComposeError) else _lost(error)
            leader.outcome = error
        finally:
            with self._lock:
                self._hand_over(leader)
            for traveller in convoy:
                traveller.gate.release()

    def _abandon(self, traveller: _Traveller) -> None:
        """Interrupted: stay out of the next convoy, and do not keep the lead."""
        with self._lock:
            if traveller in self._waiting:
                self._waiting.remove(traveller)
            if traveller.leads:
                self._hand_over(traveller)

    def _hand_over(self, leader: _Traveller) -> None:
        leader.leads = False
        if self._waiting:
            self._waiting[0].leads = True
            self._waiting[0].gate.release()
        else:
            self._moving = False


def _lost(error: BaseException) -> StoreError:
    """What the others are told when their leader was stopped by something that is not about the ledger."""
    what = f"the commit was interrupted ({type(error).__name__})"
    return StoreError("ledger", what, "Ask again with the same key", uncertain=True)
