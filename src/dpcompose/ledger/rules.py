"""The view that rules have of a store, the facts and statements of a tree, and decisions of requests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, ClassVar, Protocol, Self

from dpcompose.errors import DPComposeError, KeyReusedError, OverdrawnError, UnknownScopeError
from dpcompose.ledger.amount import Amounts
from dpcompose.ledger.entry import Entry, Head, Receipt
from dpcompose.ledger.scope import AccountNode, Scope, root_of
from dpcompose.ledger.text import encode

Facts = Mapping[tuple[str, str], str | None]
"""JSON texts by kind and name, in one tree; None where a fact ends."""


class View(Protocol):
    """The questions that rules may ask of a store; answers belong to one moment."""

    def node(self, path: str) -> AccountNode | None:
        """The scope of that path with its balance."""
        ...

    def keyed(self, root: str, key: str) -> Entry | None:
        """The entry of that idempotency key below a top-level scope."""
        ...

    def head(self, root: str) -> Head:
        """The last entry below a top-level scope."""
        ...

    def redemption(self, root: str, sequence: int) -> Entry | None:
        """The entry that redeems the charge of that number."""
        ...

    def fact(self, root: str, kind: str, name: str) -> str | None:
        """The fact of that kind and name in a tree, as JSON."""
        ...

    def facts(self, root: str, kind: str) -> Mapping[str, str]:
        """All facts of a kind in a tree, by name, as JSON."""
        ...

    def entry(self, root: str, sequence: int) -> Entry | None:
        """The entry of that number."""
        ...

    def time(self, root: str) -> str:
        """The recorded time of the last entry of a tree; empty if there is none. Asked after `head`."""
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
        facts: That are new, changed, or end.
        redemption: The request to decide next, in the same commit; if it is refused, so is this one.
    """

    entry: Entry | None = None
    nodes: tuple[AccountNode, ...] = ()
    receipt: Receipt | None = None
    scope: Scope | None = None
    refusal: OverdrawnError | None = None
    facts: Facts = field(default_factory=dict[tuple[str, str], str | None])
    redemption: Request | None = None


Outcome = RequestDecision | DPComposeError
"""A decision, or what the rules raise where there is none."""


class Request:
    """A request to the ledger: checked by itself, not yet against what is stored."""

    path: str
    """The scope it is about."""
    actor: str
    """Who asks."""
    key: Any
    """Its idempotency key, a text; None where it has none."""
    redeems: int | None = None
    """The charge that it redeems."""

    @property
    def root(self) -> str:
        """The top-level scope in whose chain it is decided."""
        return root_of(self.path)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        """Decide it; raise LedgerError where it must leave no trace."""
        raise NotImplementedError

    def content(self, **own: str) -> dict[str, str]:
        """The content of its entry, as JSON by name: the part that all have, and its own."""
        named = {"actor": _quoted(self.actor), "scope": _quoted(self.path)}
        return named | ({} if self.key is None else {"key": encode(self.key)}) | own

    def decided_before(self, view: View, content: Mapping[str, str]) -> Entry | None:
        """The entry of an earlier request with the same key; KeyReusedError if that was another request."""
        entry = None if self.key is None else view.keyed(self.root, self.key)
        if entry is not None and not entry.holds(content):
            raise KeyReusedError(entry.key or "", self.root)
        return entry


@lru_cache(maxsize=1024)
def _quoted(text: str) -> str:
    """A text as JSON; the same people charge the same scopes again and again."""
    return encode(text)


def later(time: str, seconds: float) -> str:
    """The time so many seconds after a recorded one, in the same form."""
    moment = datetime.fromisoformat(time) + timedelta(seconds=seconds)
    return f"{moment.replace(tzinfo=None).isoformat(timespec='microseconds')}Z"


@dataclass(frozen=True)
class Fact:
    """A fact of a tree, stored as JSON under its kind and a name; fields are text, numbers, and amounts."""

    kind: ClassVar[str]

    @property
    def text(self) -> str:
        """The fact as JSON."""
        return encode(_plain(vars(self)))

    @classmethod
    def read(cls, text: str) -> Self:
        """The fact of a text that `text` wrote."""
        return _read(cls, text)

    @classmethod
    def of(cls, view: View, root: str, name: str) -> Self | None:
        """The fact of that name in a tree."""
        text = view.fact(root, cls.kind, name)
        return None if text is None else cls.read(text)

    @classmethod
    def all(cls, view: View, root: str) -> dict[str, Self]:
        """Those of a tree, by name, sorted."""
        return {name: cls.read(text) for name, text in sorted(view.facts(root, cls.kind).items())}


def _plain(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: v.texts() if isinstance(v, Amounts) else v for name, v in values.items()}


def _typed(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values that `_plain` wrote: what is a mapping are amounts."""
    return {name: Amounts.read(v) if isinstance(v, dict) else v for name, v in values.items()}  # pyright: ignore[reportUnknownArgumentType]


@lru_cache(maxsize=4096)
def _read(kind: Any, text: str) -> Any:
    return kind(**_typed(json.loads(text)))


@dataclass(frozen=True)
class Statement(Request):
    """An entry that changes facts, and no balance; fields besides these are what it states.

    This one states nothing and is never an entry: it waits for a turn as a charge does.

    Args:
        path: The scope that it is about.
        actor: Who states it.
        key: The idempotency key; None: stated again, it is another entry.
    """

    path: str
    actor: str
    key: str | None = field(default=None, kw_only=True)
    kind: ClassVar[str] = ""
    """The name that entries have for such a statement; a name once written stays."""
    kinds: ClassVar[dict[str, type[Statement]]] = {}

    def __init_subclass__(cls, *, stated: str) -> None:
        cls.kind = stated
        Statement.kinds[stated] = cls

    @staticmethod
    def read(path: str, actor: str, key: str | None, stated: Mapping[str, Any]) -> Statement:
        """The statement that an entry records."""
        values = _typed(stated)
        return Statement.kinds[values.pop("kind")](path, actor, key=key, **values)

    def decide(self, view: View, *, time: str) -> RequestDecision:
        """Decide it; a statement that changes nothing is no entry."""
        common = {each.name for each in fields(Statement)}
        own = {name: value for name, value in vars(self).items() if name not in common}
        stated = encode({"kind": self.kind, **_plain(own)})
        content = self.content(statement=stated)
        head = view.head(self.root)
        if self.decided_before(view, content) is not None:
            return RequestDecision()
        if view.node(self.path) is None:
            raise UnknownScopeError(self.path)
        facts = self.changes(view, time)
        if not facts:
            return RequestDecision()
        return RequestDecision(Entry.after(head, Entry.STATED, content, time=time), facts=facts)

    def changes(self, view: View, time: str) -> Facts:
        """The facts that it changes; raises LedgerError where it must leave no trace."""
        return {}


@dataclass(frozen=True)
class SetFact(Statement, stated="Import"):
    """State a fact that no rule is about."""

    fact: str
    name: str
    value: str

    def changes(self, view: View, time: str) -> Facts:
        return {(self.fact, self.name): self.value}


@dataclass(frozen=True)
class Correct(Statement, stated="Correct"):
    """Correct a description below a scope; entries of an earlier version state it so, `SetFact` does since."""

    name: str
    description: str

    def changes(self, view: View, time: str) -> Facts:
        return {("kept", encode([self.path, self.name])): self.description}


@dataclass(frozen=True)
class CountRefusals(Statement, stated="CountRefusals"):
    """Count the refusals of a person in an hour that are no entries; likewise of an earlier version."""

    person: str
    hour: str
    count: int

    def changes(self, view: View, time: str) -> Facts:
        return {("refusals", encode([self.person, self.hour])): str(self.count)}
