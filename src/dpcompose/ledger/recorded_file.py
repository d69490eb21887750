"""A SQLite file beside a ledger, such as that of people, which has a head record as a ledger has, and is compared with it.

Its changes have numbers: a file that is older than its record, or lacks its log, is refused.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from secrets import token_hex
from threading import Lock

from dpcompose.errors import StoreError
from dpcompose.ledger.entry import Head
from dpcompose.ledger.head_record import HeadRecord, read_claims, write_record
from dpcompose.ledger.sqlite_connection import (
    FileLock,
    beside,
    log_at,
    mark_of,
    require_place,
    settle,
)

_CHAIN = "people"
_HEAD = "select sequence, hash from service_head"
_TABLE = "create table if not exists service_head (id integer primary key, sequence bigint not null, hash text not null)"


class RecordedFile:
    """A file with its record; the file is made where there is none.

    Args:
        path: The file, links followed.
        connect: Makes a connection that writes.

    Raises:
        StoreError: What was acknowledged is missing.
    """

    def __init__(self, path: Path, connect: Callable[[], sqlite3.Connection]) -> None:
        require_place(path, create=True)
        self._path, self._at, self._committing = path, beside(path, "-head"), Lock()
        self._turn = FileLock(beside(path, "-turn"))
        with self._turn:
            if not self._is_ready():
                with closing(connect()) as connection:
                    self._prepare(connection)
        self._record = HeadRecord(self._at)

    def commit(self, connection: sqlite3.Connection) -> None:
        """Commit a change, then record that it is on the disk; none is added to a file that has lost its end."""
        connection.execute(
            "update service_head set sequence = sequence + 1, hash = ?", (token_hex(32),)
        )
        head = Head(*connection.execute(_HEAD).fetchone())
        with self._committing, self._turn:
            claimed = self._record.claim(_CHAIN)
            if not claimed.sequence < head.sequence:
                raise self._lost()
            connection.execute("commit")
            if not self._record.is_beside(log := log_at(self._path)):
                self._record.begin_log(log, _CHAIN, claimed)
            self._record.advance(_CHAIN, head)

    def close(self) -> None:
        """Let go of the files."""
        self._turn.close()
        self._record.close()

    def _is_ready(self) -> bool:
        """Whether the file has its record, and holds what that claims.

        What the log leaves to the file has to be in the file: all that is claimed, unless the record names this log.
        """
        is_there, log = self._path.exists(), log_at(self._path)
        head, mark = self._read("mode=ro") if is_there else (Head(), 0)
        in_file = self._read("immutable=1")[0] if is_there and log else head
        is_marked = is_there and mark == mark_of(self._path)
        try:
            first, last = read_claims(self._at)
        except (FileNotFoundError, ValueError) as error:
            if is_marked or isinstance(error, ValueError):
                raise self._lost() from None
            return False
        begun = first if first.log == log else last
        is_last = (head.sequence, head.hash == last.head.hash) >= (last.head.sequence, True)
        if not (is_last and in_file.sequence >= begun.head.sequence):
            raise self._lost()
        return is_marked

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Give the file a record of its own."""
        connection.execute("begin immediate")
        connection.execute(_TABLE)
        connection.execute("insert into service_head values (1, 0, '') on conflict (id) do nothing")
        settle(self._path)  # what the record claims is on the disk
        write_record(
            self._at, {_CHAIN: Head(*connection.execute(_HEAD).fetchone())}, like=self._path
        )
        connection.execute(f"pragma user_version = {mark_of(self._path)}")
        connection.execute("commit")
        connection.execute(
            "pragma wal_checkpoint"
        ).fetchall()  # the mark is in the file, whatever befalls the log

    def _read(self, how: str) -> tuple[Head, int]:
        """The last change, and the mark; connections of these kinds move nothing from the log to the file."""
        with closing(
            sqlite3.connect(f"{self._path.as_uri()}?{how}", uri=True, timeout=10.0)
        ) as connection:
            (mark,) = connection.execute("pragma user_version").fetchone()
            has_table = connection.execute(
                "select 1 from sqlite_master where name = 'service_head'"
            ).fetchone()
            return (Head(*connection.execute(_HEAD).fetchone()) if has_table else Head()), mark

    def _lost(self) -> StoreError:
        name = self._path.name
        what = f"changes that were acknowledged are missing: the file, {name}-wal or {name}-head is gone or older"
        remedy = "Revoked tokens may be good again. Put it back; docs/service.md, Operations, says how to go on without it"
        return StoreError(str(self._path), what, remedy)
