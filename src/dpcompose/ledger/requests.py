"""Requests of clients, and the pure rules that decide each: from what is stored to entries and balances, or a refusal."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta
from hashlib import sha256
from typing import Any, Self, cast

from dpcompose import check, errors
from dpcompose.ledger.amount import (
    Amount,
    Amounts,
    Costs,
    Description,
    description_text,
    encode,
    sayable,
    scope_path,
)
from dpcompose.ledger.entry import Entry, Head, Receipt, Request, RequestDecision, View
from dpcompose.ledger.policies import Tree, Use, evaluate, usage
from dpcompose.ledger.scope import (
    AccountNode,
    Kind,
    Renewal,
    Scope,
    charged,
    paths_down_to,
    spend,
)

SLOT = "slots"
"""The name in place of a currency where a scope of slots is full."""


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
            raise errors.UnknownScopeError(each)
        if node.closed:
            raise errors.ClosedScopeError(each)
        chain.append(node.at(time))
    return chain


def refusal_of(entry: Entry) -> errors.OverdrawnError:
    """The refusal that an entry records."""
    short = entry.fields["short"]
    read = int if short["currency"] == SLOT else Amount.of
    asked, left = read(short["asked"]), read(short["left"])
    return errors.OverdrawnError(short["scope"], short["currency"], asked, left)


def refused(
    head: Head, content: Mapping[str, str], refusal: errors.OverdrawnError, *, time: str
) -> RequestDecision:
    """A refusal, recorded; it changes no balance."""
    short = {"scope": refusal.scope, "currency": refusal.currency}
    short |= {"asked": str(refusal.requested), "left": str(refusal.left)}
    entry = Entry.after(head, Entry.REFUSED, {**content, "short": encode(short)}, time=time)
    return RequestDecision(entry, refusal=refusal)


def repeated(entry: Entry) -> RequestDecision:
    """The decision that an earlier entry records, once more."""
    if entry.kind == Entry.REFUSED:
        return RequestDecision(refusal=refusal_of(entry))
    return RequestDecision(receipt=Receipt.of(entry) if entry.kind == Entry.GRANTED else None)


MOST_SLOTS = 10**12


@dataclass(frozen=True)
class Opening(Request):
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

    @classmethod
    def of(
        cls,
        path: str,
        kind: str,
        *,
        caps: Costs | None,
        slots: int | None = None,
        cost: Costs | None = None,
        renew: str | timedelta | None,
        description: Description,
        actor: str,
        key: str | None = None,
    ) -> Self:
        """An opening in the words of `Ledger.scope`, checked by itself.

        Raises:
            DomainError: A value outside its domain.
        """
        if not (isinstance(kind, str) and kind in set(Kind)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.DomainError("kind", kind, "filter, slots or partition")
        if isinstance(slots, bool) or not (slots is None or isinstance(slots, int)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise errors.DomainError("slots", slots, "an integer")
        return cls(
            scope_path(path),
            Kind(kind),
            None if caps is None else Amounts.of(caps, name="caps"),
            slots,
            Amounts.of(cost),
            description_text(_renewing(description, renew)),
            check.line("actor", actor),
            None if key is None else check.line("key", key),
        )

    def __post_init__(self) -> None:
        if self.kind is Kind.SLOTS:
            if self.slots is None or not 1 <= self.slots <= MOST_SLOTS:
                domain = f"an integer from 1 to {MOST_SLOTS} for a scope of kind slots"
                raise errors.DomainError("slots", sayable(self.slots), domain)
            if not self.caps:
                raise errors.DomainError("caps", self.caps, "the caps that each slot has")
        elif self.slots is not None:
            raise errors.DomainError(
                "slots", sayable(self.slots), f"None for a scope of kind {self.kind}"
            )
        elif self.cost:
            remedy = "What is spent in other scopes is charged as it is spent"
            raise errors.DomainError(
                "cost", self.cost, "nothing, unless the scope is of kind slots", remedy
            )

    def decide(self, view: View, *, time: str) -> RequestDecision:
        content = self._own_content()
        earlier = self.decided_before(view, content)
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
        head = view.head(self.root)
        scope = Scope(self.path, self.kind, caps, self.slots, self.description, head.sequence + 1)
        _require_renewal(scope, [each.scope for each in chain])
        node = AccountNode(scope, dict.fromkeys(sorted(tracked | own), 0)).at(time)
        try:
            nodes = self._nodes(chain, node)
        except errors.OverdrawnError as refusal:
            return refused(head, content, refusal, time=time)
        if self.cost:
            above = self.path.rpartition("/")[0]
            evaluate(Tree(view, self.root, time), Use(above, self.actor, self.cost.units))
        entry = Entry.after(head, Entry.OPENED, content, time=time)
        facts = usage(view, self.path, self.actor, self.cost.units, time=time)
        return RequestDecision(entry, nodes, scope=scope, facts=facts)

    def _nodes(self, chain: list[AccountNode], node: AccountNode) -> tuple[AccountNode, ...]:
        """The new scope, and the balances above it that opening it changes."""
        above = chain[-1] if chain else None
        if above is not None and above.scope.kind is Kind.SLOTS:
            if not above.taken < (above.scope.slots or 0):
                raise errors.OverdrawnError(above.scope.path, SLOT, 1, 0)
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
            raise errors.ScopeKindError(above.path, above.kind, "A slot is a scope of kind filter")
        if self.caps is None or self.caps == above.caps:
            return above.caps
        differing = next(
            name
            for name in sorted({*self.caps, *above.caps})
            if self.caps.get(name) != above.caps.get(name)
        )
        raise errors.CurrencyError(
            self.path, differing, sorted(above.caps), missing=differing not in self.caps
        )

    def _again(self, view: View, scope: Scope, content: dict[str, str]) -> RequestDecision:
        """The scope that exists, if it was opened by the same request."""
        entry = view.entry(scope.root, scope.opened)
        if entry is None or not entry.holds(content):
            raise errors.ScopeExistsError(self.path)
        return RequestDecision(scope=scope)

    def _own_content(self) -> dict[str, str]:
        caps = None if self.caps is None else self.caps.texts()
        slots = {} if self.slots is None else {"slots": self.slots}
        cost = {"cost": self.cost.text} if self.kind is Kind.SLOTS else {}
        definition = encode({"kind": str(self.kind), "caps": caps, **slots})
        return self.content(definition=definition, description=self.description, **cost)


def _renewing(description: Description, renew: str | timedelta | None) -> Description:
    """A description that says how the scope renews."""
    if renew is None:
        return description
    text = description_text(description)
    budget: Any = {} if description is None else description.get("budget", {})
    if not isinstance(budget, Mapping):
        raise errors.DomainError("description", text, "a mapping where its budget stands")
    return {
        **(description or {}),
        "budget": {**cast("Mapping[str, Any]", budget), "renew": Renewal.read(renew).text},
    }


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
        what = f"the scope {scope.path!r} (renewed {_often(own)})"
        raise errors.UnsupportedError(what, reason, "Renew both alike, or none")


def _often(renewal: Renewal | None) -> str:
    return "never" if renewal is None else renewal.words


@dataclass(frozen=True)
class Charge(Request):
    """Charge `path` with `cost`.

    Args:
        path: The scope; only one of kind filter takes charges.
        cost: An amount for every currency that is capped on its chain.
        description: What is charged, as JSON.
        actor: Who charges.
        key: The idempotency key: asked again, the same receipt.
        priced: The scopes for which the cost was computed, the last of them `path`; they must still be the same.
        attempt: The attempt that redeems it in the same commit; None: it is redeemed later. Of a charge that another
            attempt redeemed nothing is told but that.
    """

    path: str
    cost: Amounts
    description: str
    actor: str
    key: str
    priced: tuple[Scope, ...] = ()
    attempt: str | None = None

    @classmethod
    def of(
        cls,
        path: str,
        cost: Costs,
        description: Description,
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

    def redeemed_by(self, nonce: str) -> Self:
        """The same charge, redeemed in its commit by the attempt of this nonce; see `Ledger.redeem`.

        AlreadyRedeemedError is raised if another attempt redeemed it before.
        """
        return replace(self, attempt=attempt_of(nonce))

    def enforced(
        self, charge: str, reservation: str | None, may_record: Callable[[str, str], bool]
    ) -> EnforcedCharge:
        """The same charge under the policies of its tree; see `EnforcedCharge`."""
        policies: dict[str, Any] = {"reservation": reservation, "may_record": may_record}
        return EnforcedCharge(**vars(self), charge=charge, **policies)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        content = self.content(cost=self.cost.text, description=self.description)
        earlier = self.decided_before(view, content)
        if earlier is not None:
            return self._redeemed(repeated(earlier))
        chain = chain_of(view, self.path, time=time)
        kind = chain[-1].scope.kind
        if kind is not Kind.FILTER:
            raise errors.ScopeKindError(self.path, kind, "Charge a scope of kind filter below it")
        for node, scope in zip(chain[::-1], self.priced[::-1], strict=False):
            if node.scope is not scope and node.scope != scope:
                raise errors.ScopeExistsError(node.scope.path)
        chain[-1].require_currencies(self.cost.units)
        head = view.head(self.root)
        try:
            scheduled = chain[-1].scope.schedule is not None
            mechanism = json.loads(self.description).get("mechanism") if scheduled else None
            nodes = charged(chain, self.cost.units, mechanism)
        except errors.OverdrawnError as refusal:
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
        facts = usage(view, self.path, self.actor, self.cost.units, self.description, time=time)
        return self._redeemed(RequestDecision(entry, nodes, receipt, facts=facts))

    def _redeemed(self, decision: RequestDecision) -> RequestDecision:
        if self.attempt is None or decision.receipt is None:
            return decision
        redemption = Redemption(decision.receipt, self.actor, self.attempt)
        return replace(decision, redemption=redemption)


def noted(description: Mapping[str, Any]) -> dict[str, Any]:
    """The note of a description."""
    note: Any = description.get("note")
    return note if isinstance(note, dict) else {}  # pyright: ignore[reportUnknownVariableType]


def _shortened(charge: Charge) -> Charge:
    """The charge with the digest of its description in place of it."""
    digest = sha256(charge.description.encode()).hexdigest()
    return replace(charge, description=encode({"digest": digest}))


LARGEST_REFUSAL = 1024
"""Bytes of the entry of a refusal; a longer description is replaced by its digest."""


@dataclass(frozen=True)
class EnforcedCharge(Charge):
    """A charge for which the policies of its tree are evaluated.

    Args:
        charge: The mechanism and delta as they were typed, as JSON.
        reservation: The name of the reservation to use, if one is to be used.
        may_record: Whether one more refusal of an actor is an entry.
    """

    charge: str = field(kw_only=True)
    reservation: str | None = field(kw_only=True)
    may_record: Callable[[str, str], bool] = field(kw_only=True, compare=False)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        root = self.root
        earlier = view.keyed(root, self.key)
        if earlier is None:
            named = self.key, self.charge, self.reservation
            note = evaluate(
                Tree(view, root, time), Use(self.path, self.actor, self.cost.units, *named)
            )
        else:  # it is answered as it was, whatever the policies have become
            approved = noted(earlier.description).get("approved")
            note = {} if self.reservation is None else {"reservation": self.reservation}
            note |= {} if approved is None else {"approved": approved}
        charge = self._described(self.description, note)
        if earlier is not None and "digest" in earlier.description:
            return _shortened(charge).decide(view, time=time)
        decision = charge.decide(view, time=time)
        if decision.refusal is None or decision.entry is None:
            return decision
        node, is_long = view.node(self.path), len(decision.entry.body) > LARGEST_REFUSAL
        if is_long and node is not None and node.scope.schedule is None:
            decision, is_long = _shortened(charge).decide(view, time=time), False
        if not is_long and self.may_record(self.path, self.actor):
            return decision
        return RequestDecision(refusal=decision.refusal)

    def _described(self, description: str, note: Mapping[str, Any]) -> Charge:
        if note:
            written = json.loads(description)
            description = encode({**written, "note": {**noted(written), **note}})
        own = self.actor, self.key, self.priced, self.attempt
        return Charge(self.path, self.cost, description, *own)


@dataclass(frozen=True)
class Redemption(Request):
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

    def __post_init__(self) -> None:
        vars(self).update(path=self.receipt.scope, redeems=self.receipt.sequence)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        receipt = self.receipt
        entry = view.entry(receipt.root, receipt.sequence)
        if entry is None or entry.kind != Entry.GRANTED or Receipt.of(entry) != receipt:
            what = "this ledger did not give it. Charge first"
            raise errors.ReceiptError(receipt.scope, receipt.sequence, what)
        if self.actor != entry.actor:
            what = "somebody else charged it. Who charged may redeem it"
            raise errors.ReceiptError(receipt.scope, receipt.sequence, what)
        own = {} if self.attempt is None else {"attempt": encode(self.attempt)}
        content = self.content(redeems=str(entry.sequence), **own)
        earlier = view.redemption(receipt.root, receipt.sequence)
        if earlier is not None and self.attempt is not None and earlier.holds(content):
            return RequestDecision()
        if earlier is not None:
            raise errors.AlreadyRedeemedError(receipt.scope, receipt.sequence)
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
        raise errors.DomainError(
            "nonce", "(not shown)", "32 to 256 ASCII characters, such as secrets.token_hex(32)"
        )
    return sha256(nonce.encode()).hexdigest()


@dataclass(frozen=True)
class Closing(Request):
    """Close the scope `path`, for good; what was spent in it stays spent."""

    path: str
    actor: str
    key: str

    def decide(self, view: View, *, time: str) -> RequestDecision:
        content = self.content()
        if self.decided_before(view, content) is not None:
            return RequestDecision()
        node = chain_of(view, self.path, time=time)[-1]
        entry = Entry.after(view.head(self.root), Entry.CLOSED, content, time=time)
        return RequestDecision(entry, (replace(node, closed=True),))
