"""Copies of a ledger at one moment, verified before and after: backups, ledgers restored from them, new schemas.

A copy gets its name, or its tables, once it is complete and verified; until then there is nothing.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from tempfile import mkstemp

from dpcompose.errors import DomainError, StoreError, TamperedError
from dpcompose.ledger import tables
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.ledger import Ledger, address_of, file_of
from dpcompose.ledger.requests import Closing
from dpcompose.ledger.sqlite import SQLiteReader
from dpcompose.ledger.sqlite_connection import (
    BESIDE,
    SQLiteRows,
    failures,
    settle,
    sidecar,
)
from dpcompose.ledger.tables import LedgerTables, Row, Rows
from dpcompose.ledger.verification import Anchor, Progress, Verification, followed, verify

AT_A_TIME = 1000


@dataclass(frozen=True)
class Restored:
    """A ledger that was restored.

    Args:
        verification: The verification of the restored ledger.
        lost: By top-level scope, the number of its last entry here, and of the last one in the anchor. Those between
            are lost, and the scope is closed.
    """

    verification: Verification
    lost: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def backup(ledger: Ledger, out: Path, *, progress: Progress | None = None) -> Verification:
    """Copy the state of a ledger at one moment into a new file, which is a ledger itself; others may go on using the ledger.

    Args:
        ledger: Any ledger.
        out: The file; there is none yet.
        progress: Called with how far it is.

    Raises:
        TamperedError: The ledger does not agree with itself; nothing is copied.
        StoreError: There is such a file, or it cannot be written.
    """
    with ledger.store.snapshot() as snapshot:

        def fill(rows: Rows) -> None:
            _require_sound(followed(snapshot, Anchor(), progress)[1])
            _copy(snapshot, rows)

        return _in_new_file(out, fill, progress, Anchor.of(snapshot))


def restore(
    source: Path,
    url: str,
    *,
    anchor: Anchor | None = None,
    actor: str,
    progress: Progress | None = None,
) -> Restored:
    """Make a ledger from a backup, in a new file or an empty database.

    A top-level scope that lacks entries which an anchor has is closed: their answers are out, and its budget would be
    given back. What it lacks without an anchor nobody can know.

    Args:
        source: The backup.
        url: Where; there is no ledger yet.
        anchor: Heads or checkpoints that were kept elsewhere.
        actor: Who restores, for the entries that close scopes.
        progress: Called with how far it is.

    Raises:
        TamperedError: The backup does not agree with itself, or is another history than the anchor's.
        StoreError: There is a ledger already, or it cannot be written.
    """
    wanted, path = anchor or Anchor(), file_of(url)
    with Ledger(SQLiteReader(source)) as kept, kept.store.snapshot() as snapshot:
        own = Anchor.of(snapshot)
        last = {root: head.sequence for root, head in own.heads}
        within, lost = _parted(wanted, last)
        _require_sound(followed(snapshot, within, progress)[1])

        def fill(rows: Rows) -> None:
            _copy(snapshot, rows)
            _close(rows, {root: last[root] for root in lost if root in last}, actor)

        reached = Anchor() if lost else own
        if path is not None:
            return Restored(_in_new_file(path, fill, progress, reached), lost)
        return Restored(_in_database(url, fill, progress, reached), lost)


def _require_sound(problems: Sequence[str]) -> None:
    if problems:
        raise TamperedError(problems)


def _parted(anchor: Anchor, last: Mapping[str, int]) -> tuple[Anchor, dict[str, tuple[int, int]]]:
    """The part of an anchor that chains of these lengths can hold, and the entries that they lack."""
    sizes = [(root, head.sequence) for root, head in anchor.heads] + [
        (c.root, c.size) for c in anchor.checkpoints
    ]
    lost: dict[str, tuple[int, int]] = {}
    for root, size in sorted(sizes):  # the largest of each root last
        if size > last.get(root, 0):
            lost[root] = last.get(root, 0), size
    heads = tuple(each for each in anchor.heads if each[1].sequence <= last.get(each[0], 0))
    return Anchor(
        heads, tuple(each for each in anchor.checkpoints if each.size <= last.get(each.root, 0))
    ), lost


def _in_database(
    url: str, fill: Callable[[Rows], None], progress: Progress | None, anchor: Anchor
) -> Verification:
    """Fill an empty database, and verify it before it is committed."""
    if url == "memory:":
        domain = "a file or a database: what is in memory ends with the command"
        raise DomainError("url", url, domain)
    from dpcompose.ledger.postgres import differences, new_tables

    with new_tables(address_of(url)) as rows:
        fill(rows)
        return verify(LedgerTables(rows, inspect=differences), anchor=anchor, progress=progress)


def _in_new_file(
    path: Path, fill: Callable[[Rows], None], progress: Progress | None, anchor: Anchor
) -> Verification:
    """Fill a file under a temporary name; it gets its own once it is on disk and verified."""
    for each in (path, *(sidecar(path, end) for end in BESIDE)):
        if os.path.lexists(each):
            remedy = "Choose a new name; nothing is written over"
            raise StoreError(str(path), f"{each.name} is there already", remedy)
    folder = path.absolute().parent
    with failures(str(path)):
        handle, name = mkstemp(prefix=f".{path.name[:100]}-", suffix=".part", dir=folder)
        os.close(handle)
        part = Path(name)
        try:
            with closing(_connect(part)) as connection:
                fill(SQLiteRows(connection))
                connection.execute("COMMIT")
            with Ledger(SQLiteReader(part)) as ledger:
                found = ledger.verify(anchor, progress)
            _name(part, path)
            settle(path)
        finally:
            part.unlink(missing_ok=True)
    return found


def _connect(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(path, isolation_level=None)
    connection.execute("PRAGMA journal_mode = memory")  # a file that is not finished is thrown away
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute("BEGIN")
    return connection


def _name(part: Path, path: Path) -> None:
    """Give a file its name, unless somebody else took it."""
    try:
        os.link(part, path)
    except FileExistsError:
        raise StoreError(
            str(path), "was made meanwhile", "Choose a new name; nothing is written over"
        ) from None
    except OSError:  # a file system without links
        if os.path.lexists(path):
            raise
        part.rename(path)


def _copy(snapshot: LedgerTables, rows: Rows) -> None:
    """Make the tables, and fill them with everything of one moment."""
    tables.migrate(rows, url="a copy")
    nodes = list(snapshot.nodes())
    _write(rows, tables.NEW_SCOPE, (tables.scope_row(node.scope) for node in nodes))
    _write(rows, tables.NEW_BALANCE, (tables.balance_row(node) for node in nodes))
    _write(rows, tables.NEW_FACT, snapshot.every_fact())
    copy = LedgerTables(rows)
    for root in snapshot.roots():
        _write(
            rows,
            tables.NEW_ENTRY,
            (tables.entry_row(record) for record in snapshot.records(root, after=0, limit=None)),
        )
        copy.fill_tiles(root, 0, snapshot.head(root).sequence)


def _write(rows: Rows, statement: str, values: Iterable[Row]) -> None:
    rest = iter(values)
    while page := list(islice(rest, AT_A_TIME)):
        rows.many(statement, page)


def _close(rows: Rows, lost: Mapping[str, int], actor: str) -> None:
    """Close the top-level scopes that lack entries; those that were closed before are."""
    copy = LedgerTables(rows)
    batch = Batch(copy)
    for root, last in lost.items():
        node = batch.node(root)
        if node is not None and not node.closed:
            batch.decide(Closing(root, actor, f"restored without what came after entry {last}"))
    if batch.records:
        copy.write(batch)
