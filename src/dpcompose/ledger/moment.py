"""A ledger at one moment: whatever is asked of it belongs together."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dpcompose.errors import UnknownScopeError
from dpcompose.ledger.amounts import Amounts
from dpcompose.ledger.anchor import Anchor
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.scope import Balance, Node, Scope, paths_down_to, root_of
from dpcompose.ledger.spending import available
from dpcompose.ledger.store import Snapshot
from dpcompose.ledger.text import scope_path


@dataclass(frozen=True)
class Moment:
    """What `Ledger.moment` gives; it ends with its block."""

    snapshot: Snapshot

    def balance(self, path: str) -> Balance:
        """What has been spent in a scope, and what its caps leave."""
        return Balance.of(self._node(scope_path(path)))

    def available(self, path: str) -> Amounts:
        """The most that a charge of this scope could still ask, each currency by itself, the whole chain heeded."""
        return Amounts(available([self._node(each) for each in paths_down_to(scope_path(path))]))

    def balances(self, path: str | None = None) -> tuple[Balance, ...]:
        """The balances of a scope and of all below it, sorted by path; of all scopes without `path`."""
        if path is None:
            return tuple(Balance.of(node) for node in self.snapshot.nodes())
        top = self._node(scope_path(path)).scope.path
        return tuple(Balance.of(node) for node in self.snapshot.nodes() if is_at_or_below(node.scope.path, top))

    def scopes(self, path: str | None = None) -> tuple[Scope, ...]:
        """A scope and all below it, sorted by path; all scopes without `path`."""
        return tuple(balance.scope for balance in self.balances(path))

    def entries(self, path: str) -> Iterator[Entry]:
        """The entries of a scope and of all below it, oldest first."""
        top = self._node(scope_path(path)).scope.path
        records = self.snapshot.records(root_of(top), after=0, limit=None)
        return (record.entry for record in records if is_at_or_below(record.scope, top))

    def anchor(self) -> Anchor:
        """The heads of all chains; kept elsewhere, they show later whether anything was taken away."""
        return Anchor.of(self.snapshot)

    def _node(self, path: str) -> Node:
        node = self.snapshot.node(path)
        if node is None:
            raise UnknownScopeError(path)
        return node


def is_at_or_below(path: str, top: str) -> bool:
    """Whether a scope is this one or below it."""
    return path == top or path.startswith(f"{top}/")
