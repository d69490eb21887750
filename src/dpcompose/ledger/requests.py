"""Requests of clients, and the pure rules that decide each: from what is stored to entries and balances, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import Any, Protocol, Self

from dpcompose import check
from dpcompose.errors import (
    AlreadyRedeemedError,
    ClosedScopeError,
    CurrencyError,
    DomainError,
    DPComposeError,
    KeyReusedError,
    OverdrawnError,
    ReceiptError,
    ScopeExistsError,
    ScopeKindError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.ledger.amount import Amount, Amounts, Costs, sayable
from dpcompose.ledger.entry import Entry, Head, Receipt
from dpcompose.ledger.policies import Facts, Reservation, Use, View, usage
from dpcompose.ledger.scope import (
    AccountNode,
    Kind,
    Renewal,
    Scope,
    charged,
    paths_down_to,
    root_of,
    spend,
)
from dpcompose.ledger.text import description_text, encode, scope_path

SLOT = "slots"
"""The name in place of a currency where a scope of slots is full."""


@dataclass(frozen=True)
class RequestDecision:
    """The outcome of a request.

    Args:
        entry: The entry to append; None if the request was decided before.
        nodes: The scopes with a new balance, new scopes included.
        receipt: Of a charge that was granted, now or before.
        scope: That was opened, now or before.
        refusal: Of what does not fit; the store raises it once the entry is written.
        facts: That are new, changed, or end.
    """

    entry: Entry | None = None
    nodes: tuple[AccountNode, ...] = ()
    receipt: Receipt | None = None
    scope: Scope | None = None
    refusal: OverdrawnError | None = None
    facts: Facts = field(default_factory=dict[tuple[str, str], str | None])


Outcome = RequestDecision | DPComposeError
"""A decision, or what the rules raise where there is none."""


class Request(Protocol):
    """A request to the ledger: checked by itself, not yet against what is stored."""

    @property
    def path(self) -> str:
        """The scope it is about."""
        ...

    @property
    def key(self) -> str | None:
        """Its idempotency key."""
        ...

    @property
    def redeems(self) -> int | None:
        """The charge that it redeems."""
        ...

    def decide(self, view: View, *, time: str) -> RequestDecision:
        """Decide it; raise LedgerError where it must leave no trace."""
        ...


def chain_of(view: View, path: str, *, time: str) -> list[AccountNode]:
    """The scope and all above it, the root first, all of them open, in the periods that hold a recorded time.

    Raises:
        UnknownScopeError: The first that does not exist.
        ClosedScopeError: The first that is closed.
    """
    chain: list[AccountNode] = []
    for each in paths_down_to(path):
        node = view.node(each)
        if node is None:
            raise UnknownScopeError(each)
        if node.closed:
            raise ClosedScopeError(each)
        chain.append(node.at(time))
    return chain


def decided_before(
    view: View, path: str, key: str | None, content: Mapping[str, str]
) -> Entry | None:
    """The entry of an earlier request with the same key; KeyReusedError if that was another request."""
    entry = None if key is None else view.keyed(root_of(path), key)
    if entry is not None and not entry.holds(content):
        raise KeyReusedError(entry.key or "", root_of(path))
    return entry


def refusal_of(entry: Entry) -> OverdrawnError:
    """The refusal that an entry records."""
    short = entry.fields["short"]
    read = int if short["currency"] == SLOT else Amount.of
    asked, left = read(short["asked"]), read(short["left"])
    return OverdrawnError(short["scope"], short["currency"], asked, left)


def refused(
    head: Head, content: Mapping[str, str], refusal: OverdrawnError, *, time: str
) -> RequestDecision:
    """A refusal, recorded; it changes no balance."""
    short = {
        "scope": refusal.scope,
        "currency": refusal.currency,
        "asked": str(refusal.asked),
        "left": str(refusal.left),
    }
    entry = Entry.after(head, Entry.REFUSED, {**content, "short": encode(short)}, time=time)
    return RequestDecision(entry, refusal=refusal)


def repeated(entry: Entry) -> RequestDecision:
    """The decision that an earlier entry records, once more."""
    if entry.kind == Entry.REFUSED:
        return RequestDecision(refusal=refusal_of(entry))
    return RequestDecision(receipt=Receipt.of(entry) if entry.kind == Entry.GRANTED else None)


MOST_SLOTS = 10**12


@dataclass(frozen=True)
class Opening:
    """Open the scope `path`; the scope above it must be open.

    Args:
        path: Where.
        kind: What it does with the spending of its children.
        caps: The most that may be spent in it; for slots, in each of them. None in a slot: those of the slot.
        slots: For kind slots, how many.
        cost: For kind slots, what the whole chain above is charged at once.
        description: What it is, as JSON.
        actor: Who opens it.
        key: The idempotency key; None: asked again in the same words, the same scope.
    """

    path: str
    kind: Kind
    caps: Amounts | None
    slots: int | None
    cost: Amounts
    description: str
    actor: str
    key: str | None
    redeems = None

    def __post_init__(self) -> None:
        if self.kind is Kind.SLOTS:
            if self.slots is None or not 1 <= self.slots <= MOST_SLOTS:
                raise DomainError(
                    "slots",
                    sayable(self.slots),
                    f"an integer from 1 to {MOST_SLOTS} for a scope of kind slots",
                )
            if not self.caps:
                raise DomainError("caps", self.caps, "the caps that each slot has")
        elif self.slots is not None:
            raise DomainError("slots", sayable(self.slots), f"None for a scope of kind {self.kind}")
        elif self.cost:
            remedy = "What is spent in other scopes is charged as it is spent"
            raise DomainError(
                "cost", self.cost, "nothing, unless the scope is of kind slots", remedy
            )

    def decide(self, view: View, *, time: str) -> RequestDecision:
        content = self._content()
        earlier = decided_before(view, self.path, self.key, content)
        if earlier is not None and earlier.kind == Entry.REFUSED:
            return repeated(earlier)
        existing = view.node(self.path)
        if existing is not None:
            return self._again(view, existing.scope, content)
        chain = (
            chain_of(view, parent, time=time) if (parent := self.path.rpartition("/")[0]) else []
        )
        caps = self._caps(chain[-1].scope if chain else None)
        tracked = (
            set(chain[-1].spent) if chain and chain[-1].scope.kind is not Kind.SLOTS else set[str]()
        )
        own = set[str]() if self.kind is Kind.SLOTS else set(caps)
        head = view.head(root_of(self.path))
        scope = Scope(self.path, self.kind, caps, self.slots, self.description, head.sequence + 1)
        _require_renewal(scope, [each.scope for each in chain])
        node = AccountNode(scope, dict.fromkeys(sorted(tracked | own), 0)).at(time)
        try:
            nodes = self._nodes(chain, node)
        except OverdrawnError as refusal:
            return refused(head, content, refusal, time=time)
        entry = Entry.after(head, Entry.OPENED, content, time=time)
        facts = usage(view, Use(self.path, self.actor, self.cost.units), time)
        return RequestDecision(entry, nodes, scope=scope, facts=facts)

    def _nodes(self, chain: list[AccountNode], node: AccountNode) -> tuple[AccountNode, ...]:
        """The new scope, and the balances above it that opening it changes."""
        above = chain[-1] if chain else None
        if above is not None and above.scope.kind is Kind.SLOTS:
            if not above.taken < (above.scope.slots or 0):
                raise OverdrawnError(above.scope.path, SLOT, 1, 0)
            return (node, replace(above, taken=above.taken + 1))
        if self.kind is not Kind.SLOTS:
            return (node,)
        node.require_currencies(self.cost.units)
        changed = spend([*chain, node], self.cost.units)
        return changed if any(each.scope == node.scope for each in changed) else (node, *changed)

    def _caps(self, above: Scope | None) -> Amounts:
        if above is None or above.kind is not Kind.SLOTS:
            return self.caps or Amounts({})
        if self.kind is not Kind.FILTER:
            raise ScopeKindError(above.path, above.kind, "A slot is a scope of kind filter")
        if self.caps is None or self.caps == above.caps:
            return above.caps
        differing = next(
            name
            for name in sorted({*self.caps, *above.caps})
            if self.caps.get(name) != above.caps.get(name)
        )
        raise CurrencyError(
            self.path, differing, sorted(above.caps), missing=differing not in self.caps
        )

    def _again(self, view: View, scope: Scope, content: dict[str, str]) -> RequestDecision:
        """The scope that exists, if it was opened by the same request."""
        entry = view.entry(scope.root, scope.opened)
        if entry is None or not entry.holds(content):
            raise ScopeExistsError(self.path)
        return RequestDecision(scope=scope)

    def _content(self) -> dict[str, str]:
        definition = {
            "kind": str(self.kind),
            "caps": None if self.caps is None else self.caps.texts(),
        }
        content = {
            "actor": encode(self.actor),
            "definition": encode(
                definition | ({} if self.slots is None else {"slots": self.slots})
            ),
            "description": self.description,
            "scope": encode(self.path),
        }
        content |= {"key": encode(self.key)} if self.key is not None else {}
        return content | ({"cost": self.cost.text} if self.kind is Kind.SLOTS else {})


def _require_renewal(scope: Scope, above: Sequence[Scope]) -> None:
    """Raise UnsupportedError where periods would hide a charge, or reach above what does not renew with them.

    A child of a partition is compared with the others, and a partition with what it passed up before: they renew at
    once, with all above them that renew. Slots are charged above once, and used in every later period.
    """
    own, parent = scope.renewal, above[-1] if above else None
    beyond = {each.renewal for each in above} - {None}
    reason = ""
    if own is not None and scope.schedule is not None:
        reason = "a schedule is committed once, and a renewal would begin it again"
    elif parent is not None and parent.kind is Kind.SLOTS and own is not None:
        reason = "a slot was charged above once and for good"
    elif scope.kind is Kind.SLOTS and (own is not None or beyond):
        reason = "slots are charged once, and what is asked of them in later periods would be charged to none"
    elif parent is not None and parent.kind is Kind.PARTITION and own != parent.renewal:
        reason = f"the partition above it renews {_often(parent.renewal)}, and all its children do as it does"
    elif scope.kind is Kind.PARTITION and beyond - {own}:
        reason = f"a scope above it renews {_often(next(iter(beyond - {own})))}, and it passes on only a rise"
    if reason:
        raise UnsupportedError(
            f"the scope {scope.path!r}, renewed {_often(own)},", reason, "Renew both alike, or none"
        )


def _often(renewal: Renewal | None) -> str:
    return "never" if renewal is None else renewal.words


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
    redeems = None

    @classmethod
    def of(
        cls,
        path: str,
        cost: Costs,
        description: Mapping[str, Any] | None,
        *,
        actor: str,
        key: str,
        priced: Sequence[Scope] = (),
    ) -> Self:
        """A charge in the words of `Ledger.charge`, checked by itself.

        Raises:
            DomainError: A value outside its domain.
        """
        scopes = tuple(priced) if isinstance(priced, Sequence) else (priced,)  # pyright: ignore[reportUnnecessaryIsInstance]
        for each in scopes:
            check.kind("priced", each, Scope, "the scopes for which the cost was computed")
        named = check.line("actor", actor), check.line("key", key)
        return cls(
            scope_path(path), Amounts.of(cost), description_text(description), *named, scopes
        )

    def decide(self, view: View, *, time: str) -> RequestDecision:
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
        chain = chain_of(view, self.path, time=time)
        kind = chain[-1].scope.kind
        if kind is not Kind.FILTER:
            raise ScopeKindError(self.path, kind, "Charge a scope of kind filter below it")
        for node, scope in zip(chain[::-1], self.priced[::-1], strict=False):
            if node.scope is not scope and node.scope != scope:
                raise ScopeExistsError(node.scope.path)
        chain[-1].require_currencies(self.cost.units)
        head = view.head(root_of(self.path))
        try:
            scheduled = chain[-1].scope.schedule is not None
            mechanism = json.loads(self.description).get("mechanism") if scheduled else None
            nodes = charged(chain, self.cost.units, mechanism)
        except OverdrawnError as refusal:
            return refused(head, content, refusal, time=time)
        entry = Entry.after(head, Entry.GRANTED, content, time=time)
        receipt = Receipt(
            self.path,
            head.sequence + 1,
            self.key,
            self.actor,
            cost=self.cost,
            time=time,
            hash=entry.hash,
        )
        facts = usage_of(view, self.path, self.actor, self.cost.units, self.description, time)
        return RequestDecision(entry, nodes, receipt, facts=facts)


def usage_of(
    view: View, path: str, actor: str, cost: Mapping[str, int], description: str, time: str
) -> Facts:
    """The facts that a granted charge changes: quotas are counted, and the reservation that its note names."""
    name: Any = None
    if '"reservation"' in description and view.facts(root_of(path), Reservation.kind):
        note: Any = json.loads(description).get("note")
        name = note.get("reservation") if isinstance(note, dict) else None  # pyright: ignore[reportUnknownVariableType, reportUnknownMemberType]
    own = name if isinstance(name, str) else None
    return usage(view, Use(path, actor, cost, reservation=own), time)


@dataclass(frozen=True)
class Redemption:
    """Redeem `receipt`; a second time is refused, unless it is the same attempt, asked again.

    Args:
        receipt: What to redeem.
        actor: Who redeems it: only who charged may.
        attempt: The digest of the nonce that names the attempt, if it has one. The nonce stays with whoever draws: the
            digest lets nobody else redeem.
    """

    receipt: Receipt
    actor: str
    attempt: str | None = None
    key = None

    @property
    def path(self) -> str:
        return self.receipt.scope

    @property
    def redeems(self) -> int:
        return self.receipt.sequence

    def decide(self, view: View, *, time: str) -> RequestDecision:
        receipt = self.receipt
        entry = view.entry(receipt.root, receipt.sequence)
        if entry is None or entry.kind != Entry.GRANTED or Receipt.of(entry) != receipt:
            raise ReceiptError(
                receipt.scope, receipt.sequence, "this ledger did not give it. Charge first"
            )
        if self.actor != entry.actor:
            raise ReceiptError(
                receipt.scope,
                receipt.sequence,
                "somebody else charged it. Who charged may redeem it",
            )
        content = {
            "actor": encode(self.actor),
            "redeems": str(entry.sequence),
            "scope": encode(entry.scope),
        }
        if self.attempt is not None:
            content["attempt"] = encode(self.attempt)
        earlier = view.redemption(receipt.root, receipt.sequence)
        if earlier is not None and self.attempt is not None and earlier.holds(content):
            return RequestDecision()
        if earlier is not None:
            raise AlreadyRedeemedError(receipt.scope, receipt.sequence)
        return RequestDecision(
            Entry.after(view.head(receipt.root), Entry.REDEEMED, content, time=time)
        )


def attempt_of(nonce: str | None) -> str | None:
    """The digest of a nonce, which is all that the ledger keeps of it.

    Raises:
        DomainError: It could be guessed; it is not repeated.
    """
    if nonce is None:
        return None
    if not (isinstance(nonce, str) and 32 <= len(nonce) <= 256 and nonce.isascii()):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError(
            "nonce", "(not shown)", "32 to 256 ASCII characters, such as secrets.token_hex(32)"
        )
    return sha256(nonce.encode()).hexdigest()


@dataclass(frozen=True)
class Closing:
    """Close the scope `path`, for good; what was spent in it stays spent."""

    path: str
    actor: str
    key: str
    redeems = None

    def decide(self, view: View, *, time: str) -> RequestDecision:
        content = {"actor": encode(self.actor), "key": encode(self.key), "scope": encode(self.path)}
        if decided_before(view, self.path, self.key, content) is not None:
            return RequestDecision()
        node = chain_of(view, self.path, time=time)[-1]
        entry = Entry.after(view.head(root_of(self.path)), Entry.CLOSED, content, time=time)
        return RequestDecision(entry, (replace(node, closed=True),))
