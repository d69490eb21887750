"""Entries, each holding the hash of the one before, and the receipts of charges."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from hashlib import sha256
from typing import Any, cast

from dpcompose.errors import DomainError, TamperedError
from dpcompose.ledger.amount import Amounts
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.text import encode, scope_path
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
            raise TamperedError([f"the entry {self.hash!r} cannot be read"])
        return cast("dict[str, Any]", found)

    def _field(self, name: str) -> Any:
        if name not in self.fields:
            raise TamperedError([f"the entry {self.hash!r} has no {name}"])
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
            raise TamperedError([f"the amounts of entry {self.hash!r} cannot be read"]) from None

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
            raise TamperedError([f"the time of entry {self.hash!r} cannot be read"])
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
            raise DomainError(
                "sequence", self.sequence, "the number of an entry, an integer from 1"
            )

    @classmethod
    def of(cls, entry: Entry) -> Receipt:
        """The receipt of a granted charge; the same entry gives the same receipt, byte for byte."""
        if entry.key is None:
            raise TamperedError(
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
            raise DomainError("receipt", text, "the JSON text of a receipt") from None

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
