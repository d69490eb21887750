"""Stores of ledgers: what all of them have, and connections that are used again."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from threading import Semaphore
from typing import Any, ClassVar, Generic, TypeVar

from dpcompose.errors import StoreError
from dpcompose.ledger.entry import Outcome, Request
from dpcompose.ledger.tables import LedgerTables


class Store(ABC):
    """The storage of a ledger; one that is opened for reading takes no requests.

    Args:
        url: Its name for messages.
        source: The URL that opens it, with its password; None where no other process can.
    """

    is_forkable: ClassVar[bool] = False
    """Whether processes that are forked may go on using it."""

    def __init__(self, url: str, source: str | None) -> None:
        self.url, self.source, self._process = url, source, os.getpid()
        self._stopped: StoreError | None = None

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide requests below one top-level scope, in their order; what is returned is durable.

        The outcome of each is its decision, or what the rules raise. Raises StoreError.
        """
        what = "this ledger was opened for reading only"
        raise StoreError(self.url, what, "Nothing was changed; open it for writing")

    @abstractmethod
    def snapshot(self) -> AbstractContextManager[LedgerTables]:
        """Read everything at one moment."""

    def close(self) -> None:
        """Let go of files and connections; asked after this, it raises StoreError."""
        self._stopped = StoreError(self.url, "this ledger was closed", "Open it again")

    def _require_usable(self) -> None:
        """Raise StoreError if it was closed, cannot be relied on, or was opened by another process."""
        if self._stopped is not None:
            raise self._stopped
        if not (self.is_forkable or self._is_own_process):
            what = "was opened in another process"
            raise StoreError(self.url, what, "Open the ledger again after a fork")

    @property
    def _is_own_process(self) -> bool:
        return os.getpid() == self._process


PATIENCE = 60.0
"""Seconds to wait for a connection where all are in use."""


C = TypeVar("C", bound=Any)
"""A connection of a driver, which can be rolled back and closed."""


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
