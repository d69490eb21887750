"""Closing a scope: nothing more is charged in it or below it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from dpcompose.ledger.decision import Decision, View, chain_of, decided_before
from dpcompose.ledger.entry import CLOSED, Entry
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.text import encode


@dataclass(frozen=True)
class Closing:
    """Close the scope `path`, for good; what was spent in it stays spent."""

    path: str
    actor: str
    key: str

    @property
    def redeems(self) -> None:
        return None

    def decide(self, view: View, *, time: str) -> Decision:
        content = {"actor": encode(self.actor), "key": encode(self.key), "scope": encode(self.path)}
        if decided_before(view, self.path, self.key, content) is not None:
            return Decision()
        node = chain_of(view, self.path)[-1]
        entry = Entry.after(view.head(root_of(self.path)), CLOSED, content, time=time)
        return Decision(entry, (replace(node, closed=True),))
