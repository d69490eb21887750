"""Entries, each holding the hash of the one before, and the receipts of charges; and what makes entries: requests, decided on
the view that rules have of a store, and statements that change the facts of a tree.
"""

from __future__ import annotations

import json
import re
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime, timedelta
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, ClassVar, Protocol, Self, cast

from dpcompose import errors
from dpcompose.ledger.amount import Amounts, encode, scope_path
from dpcompose.ledger.scope import AccountNode, Scope, root_of
from dpcompose.pictured import Card


def clock() -> int:
    """Nanoseconds since 1970."""
    return time.time_ns()


def now(last: str = "") -> str:
    """The time now in UTC, such as 2030-01-31T12:00:00.000000Z; never before `last`, even if the clock is."""
    seconds, rest = divmod(clock(), 10**9)
    return max(
        f"{_second(seconds)}.{rest // 1000:06d}Z", last
    )  # of one length: texts are in the order of times


@lru_cache(maxsize=1)
def _second(seconds: int) -> str:
    """The text of a second; cached, because most charges are in the same second as the one before."""
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


VERSION = 2
"""The form of entries that are written. Since form 2 no entry has an earlier time than the one before it."""

_TIME = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\d\.\d{6}Z", re.ASCII)
GENESIS = "0" * 64
"""The hash that the first entry of a top-level scope holds as the one before it."""


@dataclass(frozen=True)
class Head:
    """The last entry of a top-level scope: its sequence number and its hash."""

    sequence: int = 0
    hash: str = GENESIS


@dataclass(frozen=True)
class Entry(Card):
    """One entry. Its body is JSON with sorted names, its hash the SHA-256 of the body, which holds the hash before.

    Args:
        body: The text that was hashed.
        hash: Its SHA-256, in hexadecimal.
    """

    body: str
    hash: str

    # The kinds of entries.
    OPENED, GRANTED, REFUSED = "opened", "granted", "refused"
    REDEEMED, CLOSED, STATED = "redeemed", "closed", "stated"

    @classmethod
    def after(cls, head: Head, kind: str, content: Mapping[str, str], *, time: str) -> Entry:
        """The next entry; `content` are JSON texts by name."""
        texts = {
            **content,
            "kind": f'"{kind}"',
            "previous": f'"{head.hash}"',
            "sequence": str(head.sequence + 1),
            "time": f'"{time}"',
            "version": str(VERSION),
        }
        return cls.of("{" + ",".join([f'"{name}":{texts[name]}' for name in sorted(texts)]) + "}")

    @classmethod
    def of(cls, body: str) -> Entry:
        """The entry of a body, with its hash."""
        return cls(body, sha256(body.encode()).hexdigest())

    def in_form(self, version: int) -> Entry:
        """The same entry as it was written in an earlier form: only the number differs."""
        return Entry.of(f"{self.body.removesuffix(f'{VERSION}}}')}{version}}}")

    @cached_property
    def fields(self) -> Mapping[str, Any]:
        """The body, read.

        Raises:
            TamperedError: It is not what an entry looks like.
        """
        try:
            found = json.loads(self.body)
        except (ValueError, TypeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise errors.TamperedError([f"the entry {self.hash!r} cannot be read"])
        return cast("dict[str, Any]", found)

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise errors.TamperedError([f"the entry {self.hash!r} has no {name}"])
        return self.fields[name]

    @property
    def kind(self) -> str:
        """One of opened, granted, refused, redeemed, closed, stated."""
        return self._field("kind")

    @property
    def scope(self) -> str:
        """The path of the scope it is about."""
        return self._field("scope")

    @property
    def root(self) -> str:
        """The top-level scope in whose chain it stands."""
        return root_of(self.scope)

    @property
    def sequence(self) -> int:
        """Its place in the chain of its top-level scope, from 1."""
        return self._field("sequence")

    @property
    def previous(self) -> str:
        """The hash of the entry before it."""
        return self._field("previous")

    @property
    def cost(self) -> Amounts:
        """The amounts charged or asked; empty where none are."""
        try:
            return Amounts.read(self.fields.get("cost", {}))
        except (ValueError, TypeError, AttributeError):
            raise errors.TamperedError(
                [f"the amounts of entry {self.hash!r} cannot be read"]
            ) from None

    @property
    def description(self) -> dict[str, Any]:
        """The description of what was charged or opened; empty where none was given."""
        return self.fields.get("description", {})

    @property
    def actor(self) -> str:
        """Who asked."""
        return self._field("actor")

    @property
    def key(self) -> str | None:
        """The idempotency key of the request; a redemption has none."""
        return self.fields.get("key")

    @property
    def redeems(self) -> int | None:
        """The sequence number of the charge that a redemption redeems."""
        return self.fields.get("redeems")

    @property
    def time(self) -> str:
        """When it was written, by the clock of its writer, or the time of the entry before it if that is later."""
        found = self._field("time")
        if not is_time(found):
            raise errors.TamperedError([f"the time of entry {self.hash!r} cannot be read"])
        return found

    def holds(self, content: Mapping[str, str]) -> bool:
        """Whether the entry records this request and no other."""
        own = {"kind", "previous", "sequence", "short", "time", "version"}
        return {
            name: encode(value) for name, value in self.fields.items() if name not in own
        } == content


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as it is stored: its text and hash, and the columns by which it is found."""

    sequence: int
    scope: str
    key: str | None
    redeems: int | None
    body: str
    hash: str

    @property
    def entry(self) -> Entry:
        """The entry, as it is stored."""
        return Entry(self.body, self.hash)


def is_time(value: object) -> bool:
    """Whether this is a time as `now` writes it; such texts are in the order of the times."""
    return isinstance(value, str) and _TIME.fullmatch(value) is not None


@dataclass(frozen=True)
class Receipt(Card):
    """Proof of one charge; it pays for one answer, once redeemed.

    Args:
        scope: The path that was charged.
        sequence: The number of the entry in the chain of the top-level scope.
        key: The idempotency key.
        actor: Who charged.
        cost: The amounts charged.
        time: When the entry was written.
        hash: The hash of the entry.
    """

    scope: str
    sequence: int
    key: str
    actor: str
    cost: Amounts
    time: str
    hash: str

    def __post_init__(self) -> None:
        scope_path(self.scope)
        if not (type(self.sequence) is int and 0 < self.sequence < 2**63):
            raise errors.DomainError(
                "sequence", self.sequence, "the number of an entry, an integer from 1"
            )

    @classmethod
    def of(cls, entry: Entry) -> Receipt:
        """The receipt of a granted charge; the same entry gives the same receipt, byte for byte."""
        if entry.key is None:
            raise errors.TamperedError(
                [f"entry {entry.sequence} of {entry.root} is a charge without a key"]
            )
        return cls(
            entry.scope,
            entry.sequence,
            entry.key,
            entry.actor,
            cost=entry.cost,
            time=entry.time,
            hash=entry.hash,
        )

    @classmethod
    def read(cls, text: str) -> Receipt:
        """The receipt that `to_json` wrote.

        Raises:
            DomainError: The text is no receipt.
        """
        try:
            fields: dict[str, Any] = json.loads(text)
            fields["cost"] = Amounts.read(fields["cost"])
            return cls(**fields)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            raise errors.DomainError("receipt", text, "the JSON text of a receipt") from None

    @property
    def root(self) -> str:
        """The top-level scope in whose chain the charge stands."""
        return root_of(self.scope)

    def to_json(self) -> str:
        """The receipt as one line of JSON."""
        return encode(
            {name: getattr(self, name) for name in self.__match_args__}
            | {"cost": self.cost.texts()}
        )


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
    refusal: errors.OverdrawnError | None = None
    facts: Facts = field(default_factory=dict[tuple[str, str], str | None])
    redemption: Request | None = None


Outcome = RequestDecision | errors.DPComposeError
"""A decision, or what the rules raise where there is none."""


class Request(ABC):
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

    @abstractmethod
    def decide(self, view: View, *, time: str) -> RequestDecision:
        """Decide it; raise LedgerError where it must leave no trace."""

    def content(self, **own: str) -> dict[str, str]:
        """The content of its entry, as JSON by name: the part that all have, and its own."""
        named = {"actor": _quoted(self.actor), "scope": _quoted(self.path)}
        return named | ({} if self.key is None else {"key": encode(self.key)}) | own

    def decided_before(self, view: View, content: Mapping[str, str]) -> Entry | None:
        """The entry of an earlier request with the same key; KeyReusedError if that was another request."""
        entry = None if self.key is None else view.keyed(self.root, self.key)
        if entry is not None and not entry.holds(content):
            raise errors.KeyReusedError(entry.key or "", self.root)
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
            raise errors.UnknownScopeError(self.path)
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
