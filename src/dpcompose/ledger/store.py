"""What a store does for the rules: it shows one moment, and makes decisions durable, all or none."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from dpcompose.errors import StoreError
from dpcompose.ledger.decision import Decision, Request, View
from dpcompose.ledger.entry import Entry
from dpcompose.ledger.scope import Node


@dataclass(frozen=True, slots=True)
class Record:
    """An entry as it is stored: its text and hash, and the columns by which it is found."""

    sequence: int
    scope: str
    key: str | None
    redeems: int | None
    body: str
    hash: str

    @classmethod
    def of(cls, entry: Entry) -> Record:
        """The record of a sound entry."""
        return cls(entry.sequence, entry.scope, entry.key, entry.redeems, entry.body, entry.hash)

    @property
    def entry(self) -> Entry:
        """The entry, as it is stored."""
        return Entry(self.body, self.hash)


class Snapshot(View, Protocol):
    """Everything stored, at one moment."""

    def roots(self) -> list[str]:
        """The top-level scopes, sorted; also those that have entries but no scope."""
        ...

    def nodes(self) -> Iterator[Node]:
        """Every scope with its balance, sorted by path."""
        ...

    def records(self, root: str, *, after: int, limit: int | None) -> Iterator[Record]:
        """The records of a top-level scope in order, above the number `after`."""
        ...

    def count(self, root: str) -> int:
        """How many records a top-level scope has."""
        ...

    def damage(self) -> Iterator[str]:
        """What the store itself finds wrong with its file: broken pages, foreign tables or triggers."""
        ...


class Store(Protocol):
    """A place that keeps a ledger."""

    @property
    def where(self) -> str:
        """Its name for messages."""
        ...

    def transact(self, request: Request) -> Decision:
        """Decide the request; what is returned is durable. Raises what the rules raise, and StoreError."""
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read everything at one moment."""
        ...

    def close(self) -> None:
        """Let go of files and connections; asked after this, it raises StoreError."""
        ...


def closed(where: str) -> StoreError:
    """What a store says that was closed."""
    return StoreError(where, "this ledger was closed", "Open it again")
