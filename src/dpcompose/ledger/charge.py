"""A charge: a cost, asked of one scope and of all above it, granted to all or to none."""

from __future__ import annotations

import json
from dataclasses import dataclass

from dpcompose.errors import OverdrawnError, ScopeExistsError, ScopeKindError
from dpcompose.ledger.amounts import Amounts
from dpcompose.ledger.decision import Decision, View, chain_of, decided_before, refused, repeated
from dpcompose.ledger.entry import GRANTED, Entry
from dpcompose.ledger.receipt import Receipt
from dpcompose.ledger.scope import Kind, Scope, root_of
from dpcompose.ledger.spending import charged, require_currencies
from dpcompose.ledger.text import encode


@dataclass(frozen=True)
class Charge:
    """Charge `path` with `cost`.

    Args:
        path: The scope; only one of kind filter takes charges.
        cost: An amount for every currency that is capped on its chain.
        description: What is charged, as JSON.
        actor: Who charges.
        key: The idempotency key: asked again, the same receipt.
        priced: The scopes for which the cost was computed, the last of them `path`; they must still be the same.
    """

    path: str
    cost: Amounts
    description: str
    actor: str
    key: str
    priced: tuple[Scope, ...] = ()

    @property
    def redeems(self) -> None:
        return None

    def decide(self, view: View, *, time: str) -> Decision:
        content = {
            "actor": encode(self.actor),
            "cost": self.cost.text,
            "description": self.description,
            "key": encode(self.key),
            "scope": encode(self.path),
        }
        earlier = decided_before(view, self.path, self.key, content)
        if earlier is not None:
            return repeated(earlier)
        chain = chain_of(view, self.path)
        kind = chain[-1].scope.kind
        if kind is not Kind.FILTER:
            raise ScopeKindError(self.path, kind, "Charge a scope of kind filter below it")
        for node, scope in zip(chain[::-1], self.priced[::-1], strict=False):
            if node.scope is not scope and node.scope != scope:
                raise ScopeExistsError(node.scope.path)
        require_currencies(chain[-1], self.cost.units)
        head = view.head(root_of(self.path))
        try:
            scheduled = chain[-1].scope.schedule is not None
            mechanism = json.loads(self.description).get("mechanism") if scheduled else None
            nodes = charged(chain, self.cost.units, mechanism)
        except OverdrawnError as refusal:
            return refused(head, content, refusal, time=time)
        entry = Entry.after(head, GRANTED, content, time=time)
        receipt = Receipt(self.path, head.sequence + 1, self.key, self.actor, self.cost, time, entry.hash)
        return Decision(entry, nodes, receipt)
