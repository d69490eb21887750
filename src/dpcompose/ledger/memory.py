"""The store in memory: for tests, and for trying things out. It is gone with its process."""

from __future__ import annotations

import sqlite3
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from threading import RLock

from dpcompose.errors import StoreError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.decision import Outcome, Request
from dpcompose.ledger.schema import migrate
from dpcompose.ledger.sqlite_connection import SQLiteRows
from dpcompose.ledger.store import closed
from dpcompose.ledger.tables import LedgerTables


COLLECTED = 1000
"""Entries that are written together at the latest."""


class MemoryStore:
    """A SQLite database in memory, with one connection and one lock around it.

    Decisions are collected in a batch, and written when somebody reads, or once it holds `COLLECTED` entries.
    """

    url = "memory:"

    def __init__(self) -> None:
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._tables = LedgerTables(SQLiteRows(self._connection))
        migrate(self._tables.rows, url=self.url)
        self._batch = Batch(self._tables)
        self._lock = RLock()
        self._stopped: StoreError | None = None

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        with self._lock:
            self._require_usable()
            try:
                outcomes = self._batch.decide_all(requests)
            except BaseException as error:
                what = f"a decision was interrupted ({type(error).__name__})"
                self._stopped = StoreError(self.url, what, "Begin with a new ledger")
                raise
            if len(self._batch.records) >= COLLECTED:
                self._write()
            return outcomes

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        with self._lock:
            self._require_usable()
            if self._batch.records:
                self._write()
            yield self._tables

    def _write(self) -> None:
        self._connection.execute("BEGIN")
        try:
            self._tables.write(self._batch)
            self._connection.execute("COMMIT")
            self._batch = Batch(self._tables)
        finally:
            self._connection.rollback()

    def _require_usable(self) -> None:
        if self._stopped is not None:
            raise self._stopped

    def close(self) -> None:
        with self._lock:
            self._stopped = closed(self.url)
            self._connection.close()
