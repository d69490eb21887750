"""The interface of stores: they show one moment, and make decisions durable, all or none; and the rows they keep."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

from dpcompose.errors import StoreError, TamperedError
from dpcompose.ledger.amount import Amounts, units_of, units_text
from dpcompose.ledger.decision import Outcome, Request
from dpcompose.ledger.entry import Entry, Head
from dpcompose.ledger.scope import AccountNode, Kind, Scope, root_of

Row = tuple[Any, ...]


class Rows(Protocol):
    """A connection to a database of any kind, inside a transaction. Statements have ? for their values."""

    by_letter: ClassVar[str]
    """The words after a column that have texts compared letter by letter, as indexes of scopes do."""

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        """The first row."""
        ...

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        """All rows; none of a statement that has no rows."""
        ...

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        """Execute the statement once for each row of values; how many rows of the database it wrote."""
        ...

    def tables(self) -> set[str]:
        """The names of all tables."""
        ...


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


class Snapshot(Protocol):
    """Everything stored, at one moment."""

    def node(self, path: str) -> AccountNode | None:
        """The scope of that path with its balance."""
        ...

    def head(self, root: str) -> Head:
        """The last entry below a top-level scope."""
        ...

    def keyed(self, root: str, key: str) -> Entry | None:
        """The entry below a top-level scope whose request had that idempotency key."""
        ...

    def roots(self) -> list[str]:
        """The top-level scopes, sorted; also those that have entries but no scope."""
        ...

    def nodes(self) -> Iterator[AccountNode]:
        """Every scope with its balance, sorted by path."""
        ...

    def nodes_between(
        self, start: str, stop: str, *, limit: int | None = None
    ) -> Iterator[AccountNode]:
        """The scopes of one tree with paths from `start` to before `stop`, letter by letter, sorted; the first ones."""
        ...

    def records(self, root: str, *, after: int, limit: int | None) -> Iterator[Record]:
        """The records of a top-level scope in order, above the number `after`."""
        ...

    def records_of(
        self, path: str, *, below: bool, after: int = 0, limit: int | None = None
    ) -> Iterator[Record]:
        """The records of a scope, and of those below it if `below`, in order, above the number `after`."""
        ...

    def count(self, root: str) -> int:
        """How many records a top-level scope has."""
        ...

    def damage(self) -> Iterator[str]:
        """Faults that the store itself finds in its file: broken pages, foreign tables or triggers."""
        ...


def is_at_or_below(path: str, top: str) -> bool:
    """Whether a scope is this one or below it."""
    return path == top or path.startswith(f"{top}/")


class Store(Protocol):
    """A place that keeps a ledger."""

    @property
    def url(self) -> str:
        """Its name for messages."""
        ...

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide requests below one top-level scope, in their order; what is returned is durable.

        The outcome of each is its decision, or what the rules raise. Raises StoreError.
        """
        ...

    def snapshot(self) -> AbstractContextManager[Snapshot]:
        """Read everything at one moment."""
        ...

    def close(self) -> None:
        """Let go of files and connections; asked after this, it raises StoreError."""
        ...


def closed(url: str) -> StoreError:
    """The error of a store that was closed."""
    return StoreError(url, "this ledger was closed", "Open it again")


def read_only(url: str) -> StoreError:
    """The error of a store that was opened for reading, and is asked to write."""
    return StoreError(
        url, "this ledger was opened for reading only", "Nothing was changed; open it for writing"
    )


def scope_row(scope: Scope) -> Row:
    """root, path, kind, caps, slots, description, opened."""
    return (
        scope.root,
        scope.path,
        str(scope.kind),
        scope.caps.text,
        scope.slots,
        scope.description_text,
        scope.opened,
    )


def scope_of(row: Row) -> Scope:
    """The scope of such a row."""
    root, path, kind, caps, slots, description, opened = row
    try:
        if root != root_of(path):
            raise ValueError(root)
        return Scope(path, Kind(kind), Amounts(_units(caps)), slots, description, opened)
    except (ValueError, TypeError, AttributeError):
        raise TamperedError([f"the row of scope {path!r} cannot be read"]) from None


def _units(text: Any) -> dict[str, int]:
    """The amounts of a text that `units_text` wrote; another text of the same amounts is not what was written."""
    if not isinstance(text, str):
        raise TypeError(text)
    units = {name: units_of(each) for name, each in json.loads(text).items()}
    if units_text(units) != text:  # such as one that names a currency twice
        raise ValueError(text)
    return units


def balance_row(node: AccountNode) -> Row:
    """spent, taken, closed, root, path."""
    return (
        units_text(node.spent),
        node.taken,
        int(node.closed),
        root_of(node.scope.path),
        node.scope.path,
    )


def node_of(scope: Scope, row: Row | None) -> AccountNode:
    """The scope with its balance: spent, taken, closed."""
    try:
        if row is None:
            raise ValueError(scope.path)
        spent, taken, closed = row
        balance = _units(spent)
        counted = scope.schedule is not None or scope.renewal is not None
        if not (type(taken) is int and taken >= 0 and (counted or taken <= (scope.slots or 0))):
            raise ValueError(taken)
        if scope.kind is not Kind.SLOTS and any(
            balance[name] > cap for name, cap in scope.caps.units.items()
        ):
            raise ValueError(spent)
        return AccountNode(scope, balance, taken, {0: False, 1: True}[closed])
    except (ValueError, TypeError, AttributeError, KeyError):
        raise TamperedError(
            [f"the balance of scope {scope.path!r} is none that a ledger writes"]
        ) from None


def entry_row(record: Record) -> Row:
    """root, sequence, scope, key, redeems, body, hash."""
    return (
        root_of(record.scope),
        record.sequence,
        record.scope,
        record.key,
        record.redeems,
        record.body,
        record.hash,
    )


def entry_of(row: Row | None) -> Entry | None:
    """The entry of a row of body and hash."""
    return None if row is None else Entry(*row)
