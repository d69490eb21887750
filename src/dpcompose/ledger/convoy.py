"""Group commit: requests of many threads travel together, behind whichever of them came first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
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
    outcome: Outcome | BaseException | None = None

    def __post_init__(self) -> None:
        self.gate.acquire()

    def call(self) -> None:
        """Open the gate; called twice, it stays open."""
        if self.gate.locked():
            self.gate.release()


@dataclass
class Convoy:
    """One commit at a time; whoever waits meanwhile travels in the next.

    Any step may be interrupted by what a signal handler raises: whoever is interrupted repairs what it left half done.

    Args:
        commit: Decides requests in order and makes their changes durable together; one outcome for each. If it
            raises, that is the outcome of them all.
    """

    commit: Commit
    _lock: Lock = field(default_factory=Lock)
    _waiting: deque[_Traveller] = field(default_factory=deque[_Traveller])
    _travelling: list[_Traveller] = field(default_factory=list[_Traveller])
    _leader: _Traveller | None = None

    def submit(self, request: Request) -> Decision:
        """The decision on `request`, once it is durable; raises what deciding it raised."""
        traveller = _Traveller(request)
        try:
            with self._lock:
                self._waiting.append(traveller)
                if self._leader is None:
                    self._leader = traveller
            if self._leader is not traveller:
                traveller.gate.acquire()
            if self._leader is traveller:
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
            self._travelling = list(islice(self._waiting, LONGEST))
        try:
            outcomes = self.commit([traveller.request for traveller in self._travelling])
            for traveller, outcome in zip(self._travelling, outcomes, strict=True):
                traveller.outcome = outcome
        except BaseException as error:
            for traveller in self._travelling:
                traveller.outcome = traveller.outcome or (error if isinstance(error, DPComposeError) else _lost(error))
            leader.outcome = error
        with self._lock:
            self._arrive()

    def _arrive(self) -> None:
        """All who travelled arrive, and the next who waits leads."""
        for traveller in self._travelling:
            traveller.outcome = traveller.outcome or _lost(InterruptedError())
            if traveller in self._waiting:
                self._waiting.remove(traveller)
            traveller.call()
        self._travelling = []
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.call()

    def _abandon(self, traveller: _Traveller) -> None:
        """Interrupted: stay out of the next convoy, let those who travel with us arrive, and do not keep the lead."""
        with self._lock:
            if traveller in self._waiting:
                self._waiting.remove(traveller)
            if self._leader is traveller:
                self._arrive()
            elif self._leader is not None:
                self._leader.call()  # if it was us who had to


def _lost(error: BaseException) -> StoreError:
    """What the others are told when their leader was stopped by something that is not about the ledger."""
    what = f"the commit was interrupted ({type(error).__name__})"
    return StoreError("ledger", what, "Ask again with the same key", uncertain=True)
