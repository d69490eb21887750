"""Requests that share a commit: decided one after the other on one view, and grouped over threads."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from threading import Lock
from typing import Protocol

from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger.entry import Entry, Head, Outcome, Record, Request, RequestDecision, View, now
from dpcompose.ledger.scope import AccountNode, Scope, root_of


class Stored(View, Protocol):
    """The view of a database, which answers many questions at once faster than one after the other."""

    def keyed_all(self, root: str, keys: Sequence[str]) -> Mapping[str, Entry]:
        """The entries of those of these idempotency keys that have one, below a top-level scope."""
        ...


@dataclass
class Batch:
    """A view of what is stored with the changes of this commit laid over it.

    Args:
        stored: What is stored, inside the transaction.
        records: The entries to write.
        scopes: The scopes to write.
        balances: The balances to write, those of new scopes included, by path.
        ends: The last of the entries to write, by top-level scope.
        times: The recorded time of the last of the entries to write, by top-level scope.
        changed: The facts to write, by top-level scope, kind and name; None for one that ends.
    """

    stored: Stored
    records: list[Record] = field(default_factory=lambda: [])
    scopes: list[Scope] = field(default_factory=lambda: [])
    balances: dict[str, AccountNode] = field(default_factory=lambda: {})
    ends: dict[str, Head] = field(default_factory=lambda: {})
    times: dict[str, str] = field(default_factory=lambda: {})
    changed: dict[str, dict[tuple[str, str], str | None]] = field(default_factory=lambda: {})
    _heads: dict[str, Head] = field(default_factory=lambda: {})
    _entries: dict[tuple[str, int | str], Entry | None] = field(default_factory=lambda: {})
    _redemptions: dict[tuple[str, int], Entry] = field(default_factory=lambda: {})

    def decide_all(self, requests: Sequence[Request]) -> list[Outcome]:
        """The outcome of each request, in order: a decision, or the error that the rules raised."""
        outcomes: list[Outcome] = []
        if len(requests) > 1:
            self._look_up(requests)
        for request in requests:
            try:
                outcomes.append(self.decide(request))
            except DPComposeError as error:
                outcomes.append(error)
        return outcomes

    def _look_up(self, requests: Sequence[Request]) -> None:
        """Read the entries of the keys of all requests at once: each look-up would let other threads run first."""
        keys: dict[str, list[str]] = {}
        for request in requests:
            if request.key is not None:
                keys.setdefault(root_of(request.path), []).append(request.key)
        for root, own in keys.items():
            stored = self.stored.keyed_all(root, own)
            for key in own:
                self._entries.setdefault((root, key), stored.get(key))

    def decide(self, request: Request) -> RequestDecision:
        """The decision, whose changes are then part of the batch; what the rules raise changes nothing."""
        root = root_of(request.path)
        head = self.head(root)  # first: what is stored may be another history than before
        time = now(self.time(root))
        decision = request.decide(self, time=time)
        if decision.entry is not None:
            self.times[root] = time
            self._append(root, head.sequence + 1, request, decision.entry)
            if decision.scope is not None:
                self.scopes.append(decision.scope)
            if decision.facts:
                self.changed.setdefault(root, {}).update(decision.facts)
            for node in decision.nodes:
                self.balances[node.scope.path] = node
        if decision.redemption is not None:
            self.decide(decision.redemption)
        return decision

    def _append(self, root: str, sequence: int, request: Request, entry: Entry) -> None:
        self._heads[root] = self.ends[root] = Head(sequence, entry.hash)
        self._entries[root, sequence] = entry
        if request.key is not None:
            self._entries[root, request.key] = entry
        if request.redeems is not None:
            self._redemptions[root, request.redeems] = entry
        self.records.append(
            Record(sequence, request.path, request.key, request.redeems, entry.body, entry.hash)
        )

    def node(self, path: str) -> AccountNode | None:
        return self.balances.get(path) or self.stored.node(path)

    def head(self, root: str) -> Head:
        head = self._heads.get(root)
        if head is None:
            head = self._heads[root] = self.stored.head(root)
        return head

    def time(self, root: str) -> str:
        return self.times.get(root) or self.stored.time(root)

    def keyed(self, root: str, key: str) -> Entry | None:
        if (root, key) not in self._entries:
            self._entries[root, key] = self.stored.keyed(root, key)
        return self._entries[root, key]

    def entry(self, root: str, sequence: int) -> Entry | None:
        return self._entries.get((root, sequence)) or self.stored.entry(root, sequence)

    def fact(self, root: str, kind: str, name: str) -> str | None:
        changed = self.changed.get(root, {})
        return (
            changed[kind, name] if (kind, name) in changed else self.stored.fact(root, kind, name)
        )

    def facts(self, root: str, kind: str) -> Mapping[str, str]:
        stored = self.stored.facts(root, kind)
        if root not in self.changed:
            return stored
        own = {name: text for (of, name), text in self.changed[root].items() if of == kind}
        if not own:
            return stored
        return {name: text for name, text in {**stored, **own}.items() if text is not None}

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return self._redemptions.get((root, sequence)) or self.stored.redemption(root, sequence)


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
        """Release the waiting thread; a second call has no effect."""
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
    """The error for the other requests when their leader was stopped by an error outside the ledger."""
    what = f"the commit was interrupted ({type(error).__name__})"
    return StoreError("ledger", what, "Ask again with the same key", uncertain=True)
