"""The store in memory: for tests, and for trying things out. It is gone with its process."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import RLock

from dpcompose.ledger.batch import Batch
from dpcompose.ledger.decision import Outcome, Request
from dpcompose.ledger.schema import migrate
from dpcompose.ledger.sqlite_connection import SQLiteRows
from dpcompose.ledger.store import closed
from dpcompose.ledger.tables import LedgerTables


class MemoryStore:
    """A SQLite database in memory, with one connection and one lock around it."""

    url = "memory:"

    def __init__(self) -> None:
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._tables = LedgerTables(SQLiteRows(self._connection))
        self._lock, self._closed = RLock(), False
        migrate(self._tables.rows, url=self.url)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        with self.snapshot() as tables:
            self._connection.execute("BEGIN")
            try:
                batch = Batch(tables)
                outcomes = batch.decide_all(requests)
                if batch.records:
                    tables.write(batch)
                self._connection.execute("COMMIT")
                return outcomes
            finally:
                self._connection.rollback()

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        with self._lock:
            if self._closed:
                raise closed(self.url)
            yield self._tables

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._connection.close()
