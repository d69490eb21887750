"""The hot path: prepared statements, sent straight through the driver, inside one transaction."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpcompose.errors import TamperedError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.entry import GENESIS, Entry, Head
from dpcompose.ledger.scope import AccountNode, root_of
from dpcompose.ledger.store import (
    Row,
    balance_row,
    entry_of,
    entry_row,
    node_of,
    scope_of,
    scope_row,
)

SCOPE = "SELECT root, path, kind, caps, slots, description, opened FROM scope WHERE root = ? AND path = ?"
BALANCE = "SELECT spent, taken, closed FROM balance WHERE root = ? AND path = ?"
KEYED = "SELECT body, hash FROM entry WHERE root = ? AND key = ?"
HASH = "SELECT hash FROM entry WHERE root = ? AND sequence = ?"
NUMBERED = "SELECT body, hash FROM entry WHERE root = ? AND sequence = ?"
REDEEMED = "SELECT body, hash FROM entry WHERE root = ? AND redeems = ?"
HEAD = "SELECT sequence, hash FROM entry WHERE root = ? ORDER BY sequence DESC LIMIT 1"
NEW_SCOPE = "INSERT INTO scope (root, path, kind, caps, slots, description, opened) VALUES (?, ?, ?, ?, ?, ?, ?)"
NEW_BALANCE = "INSERT INTO balance (spent, taken, closed, root, path) VALUES (?, ?, ?, ?, ?)"
NEW_ENTRY = "INSERT INTO entry (root, sequence, scope, key, redeems, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
CHANGE = "UPDATE balance SET spent = ?, taken = ?, closed = ? WHERE root = ? AND path = ?"


@dataclass
class Cached:
    """Rows read below one top-level scope, for later transactions: scopes of one history never change.

    Args:
        head: The last entry of that history when something was last read or written.
        nodes: By path, each with the row of its balance: the same row is the same balance.
        current: The paths of those that were read or written since `head`: the same entries are the same balances.
        time: The hash of an entry, and its recorded time.
    """

    head: Head = field(default_factory=Head)
    nodes: dict[str, tuple[Row | None, AccountNode]] = field(
        default_factory=dict[str, tuple[Row | None, AccountNode]]
    )
    current: set[str] = field(default_factory=set[str])
    time: tuple[str, str] = (GENESIS, "")

    def is_at(self, head: Head) -> bool:
        """Whether nothing was written since; if something was, every balance is read again."""
        if head is self.head or head == self.head:
            return True
        self.current.clear()
        return False


Cache = defaultdict[str, Cached]
"""By top-level scope."""


class Driver(Protocol):
    """A connection inside a transaction."""

    def row(self, statement: str, values: Sequence[Any]) -> Row | None:
        """The first row."""
        ...

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        """Execute the statement once for each row of values; how many rows of the database it wrote."""
        ...


@dataclass
class WriteModel:
    """The stored ledger, as the rules see it.

    Args:
        driver: The connection.
        known: What a store keeps from one transaction to the next.
    """

    driver: Driver
    known: Cache = field(default_factory=lambda: defaultdict(Cached))

    def node(self, path: str) -> AccountNode | None:
        """See `View`; asked after `head`, which forgets the scopes of another history."""
        root = root_of(path)
        kept = self.known[root]
        known = kept.nodes.get(path)
        if known is not None and path in kept.current:
            return known[1]
        if known is None:
            row = self.driver.row(SCOPE, (root, path))
            if row is None:
                return None
            scope = scope_of(row)
        else:
            scope = known[1].scope
        balance = self.driver.row(BALANCE, (root, path))
        if known is None or known[0] != balance:
            known = kept.nodes[path] = balance, node_of(scope, balance)
        kept.current.add(path)
        return known[1]

    def keyed(self, root: str, key: str) -> Entry | None:
        return entry_of(self.driver.row(KEYED, (root, key)))

    def entry(self, root: str, sequence: int) -> Entry | None:
        return entry_of(self.driver.row(NUMBERED, (root, sequence)))

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return entry_of(self.driver.row(REDEEMED, (root, sequence)))

    def head(self, root: str) -> Head:
        row, kept = self.driver.row(HEAD, (root,)), self.known[root]
        head = Head() if row is None else Head(*row)
        if not kept.is_at(head) and kept.nodes and not self._goes_on(root, kept.head):
            kept.nodes.clear()
        kept.head = head
        return head

    def time(self, root: str) -> str:
        kept = self.known[root]
        if kept.time[0] != kept.head.hash:
            last = self.entry(root, kept.head.sequence)
            kept.time = kept.head.hash, "" if last is None else last.time
        return kept.time[1]

    def _goes_on(self, root: str, head: Head) -> bool:
        """Whether what is stored has this entry, hence all before it: another server or a restored copy may not."""
        return self.driver.row(HASH, (root, head.sequence)) == (head.hash,)

    def write(self, batch: Batch) -> None:
        """Write what a batch changes."""
        new = {scope.path for scope in batch.scopes}
        changed = {
            path: balance_row(node) for path, node in batch.balances.items() if path not in new
        }
        if batch.scopes:
            self._write(NEW_SCOPE, [scope_row(scope) for scope in batch.scopes])
            self._write(
                NEW_BALANCE, [balance_row(batch.balances[scope.path]) for scope in batch.scopes]
            )
        if changed:
            self._write(CHANGE, list(changed.values()))
        self._write(NEW_ENTRY, [entry_row(record) for record in batch.records])
        # Whether this is committed or not: such a row will mean such a balance, and only after such an entry. Heads
        # first: if we are interrupted in between, they are not those that are stored, and balances are read again.
        for root, head in batch.ends.items():
            self.known[root].head, self.known[root].time = head, (head.hash, batch.times[root])
        for path, row in changed.items():
            self.known[root_of(path)].nodes[path] = row[:3], batch.balances[path]

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        if (written := self.driver.many(statement, rows)) != len(rows):
            what = statement.partition(" (")[0].partition(" SET")[0]
            raise TamperedError(
                [
                    f"{what!r} wrote {written} rows instead of {len(rows)}: a trigger or rule that is not ours"
                ]
            )
