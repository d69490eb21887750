"""A SQLite file that is only read: by auditors, from folders and mounts without the right to write."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

from dpcompose.errors import StoreError
from dpcompose.ledger.decision import Outcome, Request
from dpcompose.ledger.schema import require_current
from dpcompose.ledger.sqlite_checks import CheckedFile
from dpcompose.ledger.sqlite_connection import (
    FrozenConnection,
    are_in_place,
    cause_of,
    identity,
    pool_of,
    require_place,
    settle,
    sqlite_failure,
    transaction,
)
from dpcompose.ledger.store import closed, read_only
from dpcompose.ledger.tables import LedgerTables

_NO_SYNC = (errno.EROFS, errno.EINVAL, errno.EACCES, errno.EPERM)
"""What a file system says that has nothing to sync, or of a folder that may not be read."""


class SQLiteReader:
    """A ledger in one file that is opened for reading: nothing is written, and no file is made.

    Args:
        path: The file.

    Raises:
        StoreError: The file cannot be read, or lacks what was acknowledged.
    """

    def __init__(self, path: Path) -> None:
        self.url = str(path)
        self._closed = False
        with self._failures():
            named, path = Path(os.path.abspath(path)), path.resolve()
            require_place(path, create=False, writing=False)
            self._names = [(str(each), identity(each)) for each in dict.fromkeys((path, named))]
            try:
                settle(path)  # nobody is told of an entry that a power loss would take away
            except OSError as error:
                if error.errno not in _NO_SYNC:
                    raise
            self._file = CheckedFile(path, self.url, pool_of(path, reading=True))
            require_current(self._file.state()[1], url=self.url)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        raise read_only(self.url)

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        if self._closed:
            raise closed(self.url)
        with self._failures():
            if not are_in_place(self._names):
                raise StoreError(
                    self.url, "the file was moved, replaced or deleted", "Open the ledger again"
                )
            before = _stamp(self._file.path)
            with transaction(self._file.pool) as rows:
                yield LedgerTables(rows, inspect=self._file.damage)
                if isinstance(rows.connection, FrozenConnection) and before != _stamp(
                    self._file.path
                ):
                    raise StoreError(
                        self.url, "the file was written while it was read", "Ask again"
                    )

    def close(self) -> None:
        self._closed = True
        self._file.pool.close()

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
            raise sqlite_failure(self.url, cause_of(error), uncertain=False) from error


def _stamp(path: Path) -> tuple[int, int, int]:
    """The size of a file and the times of its last changes."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
