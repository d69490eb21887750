"""Requests that share a commit: each is decided on what is stored and on what those before it change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from dpcompose.errors import DPComposeError
from dpcompose.ledger.decision import Outcome, Request, RequestDecision, View
from dpcompose.ledger.entry import Entry, Head, now
from dpcompose.ledger.scope import AccountNode, Scope, root_of
from dpcompose.ledger.store import Record


@dataclass
class Batch:
    """A view of what is stored with the changes of this commit laid over it.

    Args:
        stored: What is stored, inside the transaction.
        records: The entries to write.
        scopes: The scopes to write.
        balances: The balances to write, those of new scopes included, by path.
        ends: The last of the entries to write, by top-level scope.
        times: The recorded time of the last entry, by top-level scope.
    """

    stored: View
    records: list[Record] = field(default_factory=lambda: [])
    scopes: list[Scope] = field(default_factory=lambda: [])
    balances: dict[str, AccountNode] = field(default_factory=lambda: {})
    ends: dict[str, Head] = field(default_factory=lambda: {})
    times: dict[str, str] = field(default_factory=lambda: {})
    _seen: dict[str, AccountNode] = field(default_factory=lambda: {})
    _heads: dict[str, Head] = field(default_factory=lambda: {})
    _entries: dict[tuple[str, int | str], Entry] = field(default_factory=lambda: {})
    _redemptions: dict[tuple[str, int], Entry] = field(default_factory=lambda: {})

    def decide_all(self, requests: Sequence[Request]) -> list[Outcome]:
        """The outcome of each request, in order: a decision, or the error that the rules raised."""
        outcomes: list[Outcome] = []
        for request in requests:
            try:
                outcomes.append(self.decide(request))
            except DPComposeError as error:
                outcomes.append(error)
        return outcomes

    def decide(self, request: Request) -> RequestDecision:
        """The decision, whose changes are then part of the batch; what the rules raise changes nothing."""
        root = root_of(request.path)
        self.head(root)  # first: what is stored may be another history than before
        time = now(self.time(root))
        decision = request.decide(self, time=time)
        if decision.entry is not None:
            self.times[root] = time
            self._append(request, decision.entry)
            if decision.scope is not None:
                self.scopes.append(decision.scope)
            for node in decision.nodes:
                self.balances[node.scope.path] = self._seen[node.scope.path] = node
        return decision

    def _append(self, request: Request, entry: Entry) -> None:
        root = root_of(request.path)
        sequence = self.head(root).sequence + 1
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
        node = self._seen.get(path)
        if node is None:
            node = self.stored.node(path)
            if node is not None:
                self._seen[path] = node
        return node

    def head(self, root: str) -> Head:
        head = self._heads.get(root)
        if head is None:
            head = self._heads[root] = self.stored.head(root)
        return head

    def time(self, root: str) -> str:
        time = self.times.get(root)
        if time is None:
            time = self.times[root] = self.stored.time(root)
        return time

    def keyed(self, root: str, key: str) -> Entry | None:
        return self._entries.get((root, key)) or self.stored.keyed(root, key)

    def entry(self, root: str, sequence: int) -> Entry | None:
        return self._entries.get((root, sequence)) or self.stored.entry(root, sequence)

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return self._redemptions.get((root, sequence)) or self.stored.redemption(root, sequence)
