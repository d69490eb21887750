"""Rows that a store keeps, connections that are used again, and the errors that all stores have."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from threading import Semaphore
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from dpcompose.errors import StoreError

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

    def broken(self) -> Iterator[str]:
        """Pages and indexes that the database itself finds broken; it reads all of them."""
        ...


def closed(url: str) -> StoreError:
    """The error of a store that was closed."""
    return StoreError(url, "this ledger was closed", "Open it again")


def require_process(url: str, process: int) -> None:
    """Raise StoreError in another process than the one that opened the store."""
    if os.getpid() != process:
        remedy = "Open the ledger again after a fork"
        raise StoreError(url, "was opened in another process", remedy)


def read_only(url: str) -> StoreError:
    """The error of a store that was opened for reading, and is asked to write."""
    return StoreError(
        url, "this ledger was opened for reading only", "Nothing was changed; open it for writing"
    )


PATIENCE = 60.0
"""Seconds to wait for a connection where all are in use."""


class Connection(Protocol):
    """A connection of a driver."""

    def rollback(self) -> None:
        """End the transaction, if one is open, without its changes; raise where the connection is lost."""
        ...

    def close(self) -> None:
        """Let go of it."""
        ...


C = TypeVar("C", bound=Connection)


class Pool(Generic[C]):
    """Connections to one database; errors of `connect` reach whoever needs one.

    Args:
        url: Its name for messages.
        connect: Opens a connection.
        idle: How many are kept open that nobody uses.
        most: How many are in use at once.
    """

    def __init__(self, url: str, connect: Callable[[], C], *, idle: int, most: int) -> None:
        self.url, self._connect, self._most_idle = url, connect, idle
        self._idle: deque[C] = deque()
        self._free = Semaphore(most)
        self._closed = False

    @contextmanager
    def connection(self) -> Generator[C]:
        """A connection for this block alone; what the block does not commit is rolled back."""
        if not self._free.acquire(timeout=PATIENCE):
            raise StoreError(self.url, "all its connections are in use", "Ask again")
        try:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._connect()
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._free.release()

    def _put_back(self, connection: C) -> None:
        try:
            connection.rollback()
        except Exception:  # lost, and the others with it: the server ended, or the disk fails
            self.clear()
        else:
            if not self._closed and len(self._idle) < self._most_idle:
                self._idle.append(connection)
                if self._closed:  # meanwhile
                    self.clear()
                return
        with suppress(Exception):
            connection.close()

    def clear(self) -> None:
        """Close the connections that nobody uses; the next ones are new."""
        with suppress(IndexError):
            while True:
                self._idle.pop().close()

    def close(self) -> None:
        """Close them all, those in use once they are not."""
        self._closed = True
        self.clear()
