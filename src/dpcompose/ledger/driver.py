"""The hot path: prepared statements, sent straight through the driver, inside one transaction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from dpcompose.errors import TamperedError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.entry import Entry, Head
from dpcompose.ledger.row import Row, balance_row, entry_of, entry_row, node_of, scope_of, scope_row
from dpcompose.ledger.scope import Node, root_of

NODE = (
    "SELECT scope.root, scope.path, kind, caps, slots, description, opened, spent, taken, closed FROM scope "
    "LEFT JOIN balance ON balance.root = scope.root AND balance.path = scope.path "
    "WHERE scope.root = ? AND scope.path = ?"
)
KEYED = "SELECT body, hash FROM entry WHERE root = ? AND key = ?"
HASH = "SELECT hash FROM entry WHERE root = ? AND sequence = ?"
NUMBERED = "SELECT body, hash FROM entry WHERE root = ? AND sequence = ?"
REDEEMED = "SELECT body, hash FROM entry WHERE root = ? AND redeems = ?"
HEAD = "SELECT sequence, hash FROM entry WHERE root = ? ORDER BY sequence DESC LIMIT 1"
NEW_SCOPE = "INSERT INTO scope (root, path, kind, caps, slots, description, opened) VALUES (?, ?, ?, ?, ?, ?, ?)"
NEW_BALANCE = "INSERT INTO balance (spent, taken, closed, root, path) VALUES (?, ?, ?, ?, ?)"
NEW_ENTRY = "INSERT INTO entry (root, sequence, scope, key, redeems, body, hash) VALUES (?, ?, ?, ?, ?, ?, ?)"
CHANGE = "UPDATE balance SET spent = ?, taken = ?, closed = ? WHERE root = ? AND path = ?"


Known = dict[str, tuple[Row, Node]]


class Driver(Protocol):
    """A connection inside a transaction."""

    def row(self, statement: str, values: Sequence[Any]) -> Row | None:
        """The first row."""
        ...

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        """Execute the statement once for each row of values; how many rows of the database it wrote."""
        ...


@dataclass
class Stored:
    """What is stored, as the rules see it.

    Args:
        driver: The connection.
        known: Nodes read before, by path, each with its row. A store keeps them from one transaction to the next: the
            same row is the same node. The whole row is read every time, for what is stored may be another history
            since: a standby took over, a copy was restored.
    """

    driver: Driver
    known: Known = field(default_factory=dict[str, tuple[Row, Node]])

    def node(self, path: str) -> Node | None:
        row = self.driver.row(NODE, (root_of(path), path))
        if row is None:
            return None
        known = self.known.get(path)
        if known is not None and known[0] == row:
            return known[1]
        scope = known[1].scope if known is not None and known[0][:7] == row[:7] else scope_of(row[:7])
        node = node_of(scope, row[7:])
        self.known[path] = row, node
        return node

    def keyed(self, root: str, key: str) -> Entry | None:
        return entry_of(self.driver.row(KEYED, (root, key)))

    def entry(self, root: str, sequence: int) -> Entry | None:
        return entry_of(self.driver.row(NUMBERED, (root, sequence)))

    def redemption(self, root: str, sequence: int) -> Entry | None:
        return entry_of(self.driver.row(REDEEMED, (root, sequence)))

    def head(self, root: str) -> Head:
        row = self.driver.row(HEAD, (root,))
        return Head() if row is None else Head(*row)

    def write(self, batch: Batch) -> None:
        """Write what a batch changes."""
        new = {scope.path for scope in batch.scopes}
        if new:
            self._write(NEW_SCOPE, [scope_row(scope) for scope in batch.scopes])
            self._write(NEW_BALANCE, [balance_row(batch.balances[path]) for path in sorted(new)])
        changed = {path: balance_row(node) for path, node in batch.balances.items() if path not in new}
        if changed:
            self._write(CHANGE, list(changed.values()))
        self._write(NEW_ENTRY, [entry_row(record) for record in batch.records])
        # Of scopes that were there; whether this is committed or not, such a row will mean such a balance.
        self.known.update(
            {path: (self.known[path][0][:7] + row[:3], batch.balances[path]) for path, row in changed.items()}
        )

    def _write(self, statement: str, rows: Sequence[Row]) -> None:
        if (written := self.driver.many(statement, rows)) != len(rows):
            what = statement.partition(" (")[0].partition(" SET")[0]
            raise TamperedError(
                [f"{what!r} wrote {written} rows instead of {len(rows)}: a trigger or rule that is not ours"]
            )
