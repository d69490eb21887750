"""A request is decided by pure rules: what is stored, and what is asked, give entries and balances, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from dpcompose.errors import (
    ClosedScopeError,
    DPComposeError,
    KeyReusedError,
    OverdrawnError,
    UnknownScopeError,
)
from dpcompose.ledger.amount import Amount
from dpcompose.ledger.entry import GRANTED, REFUSED, Entry, Head, Receipt
from dpcompose.ledger.scope import AccountNode, Scope, paths_down_to, root_of
from dpcompose.ledger.text import encode

SLOT = "slots"
"""The name in place of a currency where a scope of slots is full."""


class View(Protocol):
    """The questions that rules may ask of a store; answers belong to one moment."""

    def node(self, path: str) -> AccountNode | None:
        """The scope of that path with its balance."""
        ...

    def keyed(self, root: str, key: str) -> Entry | None:
        """The entry of that idempotency key below a top-level scope."""
        ...

    def entry(self, root: str, sequence: int) -> Entry | None:
        """The entry of that number."""
        ...

    def redemption(self, root: str, sequence: int) -> Entry | None:
        """The entry that redeems the charge of that number."""
        ...

    def head(self, root: str) -> Head:
        """The last entry below a top-level scope."""
        ...

    def time(self, root: str) -> str:
        """The recorded time of that entry; empty if there is none. Asked after `head`."""
        ...


@dataclass(frozen=True)
class RequestDecision:
    """The outcome of a request.

    Args:
        entry: The entry to append; None if the request was decided before.
        nodes: The scopes with a new balance, new scopes included.
        receipt: Of a charge that was granted, now or before.
        scope: That was opened, now or before.
        refusal: Of what does not fit; the store raises it once the entry is written.
    """

    entry: Entry | None = None
    nodes: tuple[AccountNode, ...] = ()
    receipt: Receipt | None = None
    scope: Scope | None = None
    refusal: OverdrawnError | None = None


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
    entry = Entry.after(head, REFUSED, {**content, "short": encode(short)}, time=time)
    return RequestDecision(entry, refusal=refusal)


def repeated(entry: Entry) -> RequestDecision:
    """The decision that an earlier entry records, once more."""
    if entry.kind == REFUSED:
        return RequestDecision(refusal=refusal_of(entry))
    return RequestDecision(receipt=Receipt.of(entry) if entry.kind == GRANTED else None)
