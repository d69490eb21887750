"""A SQLite file that is only read: by auditors, from folders and mounts without the right to write."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from dpcompose.errors import StoreError
from dpcompose.ledger.decision import Outcome, Request
from dpcompose.ledger.reading import ReadModel
from dpcompose.ledger.schema import require_current
from dpcompose.ledger.sqlite_checks import CheckedFile
from dpcompose.ledger.sqlite_connection import (
    FrozenConnection,
    are_in_place,
    cause_of,
    engine_of,
    identity,
    require_place,
    settle,
    sqlite_failure,
)
from dpcompose.ledger.store import closed, read_only

_NO_SYNC = (errno.EROFS, errno.EINVAL, errno.EACCES, errno.EPERM)
"""What a file system says that has nothing to sync, or of a folder that may not be read."""


class SQLiteReader:
    """A ledger in one file that is opened for reading: nothing is written, and no file is made.

    Args:
        path: The file.
        older: Whether the schema may be an earlier one.

    Raises:
        StoreError: The file cannot be read, or lacks what was acknowledged.
    """

    def __init__(self, path: Path, *, older: bool = False) -> None:
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
            self._file = CheckedFile(path, self.url, engine_of(path, reading=True))
            self.version = self._file.state()[1]
            require_current(self.version, url=self.url, older=older)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        raise read_only(self.url)

    @contextmanager
    def snapshot(self) -> Generator[ReadModel]:
        if self._closed:
            raise closed(self.url)
        with self._failures():
            if not are_in_place(self._names):
                raise StoreError(
                    self.url, "the file was moved, replaced or deleted", "Open the ledger again"
                )
            before = _stamp(self._file.path)
            with self._file.engine.connect() as connection, connection.begin():
                yield ReadModel(connection, self._file.damage)
                driver: Any = connection.connection.driver_connection
                if isinstance(driver, FrozenConnection) and before != _stamp(self._file.path):
                    raise StoreError(
                        self.url, "the file was written while it was read", "Ask again"
                    )

    def close(self) -> None:
        self._closed = True
        self._file.engine.dispose()

    @contextmanager
    def _failures(self) -> Generator[None]:
        try:
            yield
        except (sqlite3.Error, SQLAlchemyError, OSError, UnicodeDecodeError) as error:
            raise sqlite_failure(self.url, cause_of(error), uncertain=False) from error


def _stamp(path: Path) -> tuple[int, int, int]:
    """The size of a file and the times of its last changes."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns
