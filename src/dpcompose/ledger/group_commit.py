"""Group commit: requests of many threads are committed together, by whichever of them came first."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock

from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger.decision import Outcome, Request, RequestDecision

LONGEST = 256
"""Requests that share a commit at most."""

Commit = Callable[[Sequence[Request]], Sequence[Outcome]]


@dataclass(eq=False)
class _Waiter:
    """A submitted request; `gate` opens when it leads the next commit, or has its outcome."""

    request: Request
    gate: Lock = field(default_factory=Lock)
    outcome: Outcome | BaseException | None = None

    def __post_init__(self) -> None:
        self.gate.acquire()

    def wake(self) -> None:
        """Open the gate; called twice, it stays open."""
        if self.gate.locked():
            self.gate.release()


@dataclass
class GroupCommit:
    """One commit at a time; requests that arrive meanwhile share the next one.

    Any step may be interrupted by what a signal handler raises: whoever is interrupted repairs what it left half done.

    Args:
        commit: Decides requests in order and makes their changes durable together; one outcome for each. If it
            raises, that is the outcome of them all.
    """

    commit: Commit
    _lock: Lock = field(default_factory=Lock)
    _waiting: deque[_Waiter] = field(default_factory=deque[_Waiter])
    _committing: list[_Waiter] = field(default_factory=list[_Waiter])
    _leader: _Waiter | None = None

    def submit(self, requests: Sequence[Request]) -> list[Outcome]:
        """The outcome of each request, in their order, once all are durable."""
        waiters = [_Waiter(request) for request in requests]
        try:
            with self._lock:
                self._waiting.extend(waiters)
                if self._leader is None and waiters:
                    self._leader = waiters[0]
            for waiter in waiters:
                if self._leader is not waiter:
                    waiter.gate.acquire()
                if self._leader is waiter:
                    self._lead(waiter)
        except BaseException:
            for waiter in waiters:
                self._withdraw(waiter)
            raise
        return [_outcome_of(waiter) for waiter in waiters]

    def _lead(self, leader: _Waiter) -> None:
        """Commit for all who wait, then let the next one lead."""
        with self._lock:
            self._committing = list(islice(self._waiting, LONGEST))
        try:
            outcomes = self.commit([waiter.request for waiter in self._committing])
            for waiter, outcome in zip(self._committing, outcomes, strict=True):
                waiter.outcome = outcome
        except BaseException as error:
            for waiter in self._committing:
                waiter.outcome = waiter.outcome or (
                    error if isinstance(error, DPComposeError) else _lost(error)
                )
            leader.outcome = error
        with self._lock:
            self._finish()

    def _finish(self) -> None:
        """Release everyone who was in this commit, and let the next waiter lead."""
        for waiter in self._committing:
            waiter.outcome = waiter.outcome or _lost(InterruptedError())
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            waiter.wake()
        self._committing = []
        self._leader = self._waiting[0] if self._waiting else None
        if self._leader is not None:
            self._leader.wake()

    def _withdraw(self, waiter: _Waiter) -> None:
        """Clean up after an interruption: leave the queue, release those in this commit, and give up the lead."""
        with self._lock:
            if waiter in self._waiting:
                self._waiting.remove(waiter)
            if self._leader is waiter:
                self._finish()
            elif self._leader is not None:
                self._leader.wake()  # if it was us who had to


def _outcome_of(waiter: _Waiter) -> Outcome:
    outcome = waiter.outcome
    if isinstance(outcome, RequestDecision | DPComposeError):
        return outcome
    assert outcome is not None, "a released waiter has an outcome"
    raise outcome


def _lost(error: BaseException) -> StoreError:
    """The error for the others when their leader was stopped by something that is not about the ledger."""
    what = f"the commit was interrupted ({type(error).__name__})"
    return StoreError("ledger", what, "Ask again with the same key", uncertain=True)
