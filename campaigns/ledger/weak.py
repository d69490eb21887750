"""Stores that are broken on purpose: a campaign that does not catch them proves nothing."""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from dpcompose.ledger import Ledger, sqlite, sqlite_connection
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.entry import Request
from dpcompose.ledger.head_record import CheckedFile
from dpcompose.ledger.scope import AccountNode, paths_down_to
from dpcompose.ledger.sqlite import SQLiteStore
from dpcompose.ledger.sqlite_connection import SQLiteRows
from dpcompose.ledger.tables import LedgerTables


class _Trusted(CheckedFile):
    """Looks at no entry when it is opened."""

    def _require_whole(self, rows: Any, version: int, claims: Any) -> None:
        pass


class _Unread(_Trusted):
    """Nor at the head record."""

    def _claims(self) -> list[Any]:
        return []


@dataclass
class _Stale(Batch):
    """Believes the balances that were read before the lock was taken."""

    before: dict[str, AccountNode | None] = field(default_factory=dict[str, Any])

    def node(self, path: str) -> AccountNode | None:
        return self.balances.get(path) or self.before.get(path) or super().node(path)


class Checking(SQLiteStore):
    """Checks balances first and takes the lock afterwards: two clients both see what only one may spend."""

    _checks = _Trusted  # clients that come later would find it before the campaign does

    def _commit(self, requests: Sequence[Request]) -> list[Any]:
        batch = _Stale(self._stored)
        for request in requests:
            for path in paths_down_to(request.path):
                batch.before[path] = self._stored.node(path)
        time.sleep(0.002)
        with self._file_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            try:
                outcomes = batch.decide_all(requests)
                self._stored.write(batch)
                self._writer.execute("COMMIT")
                return outcomes
            finally:
                if self._writer.in_transaction:
                    self._writer.execute("ROLLBACK")


class Early(SQLiteStore):
    """Acknowledges first and commits with the next request, a moment later: most kills fall before it."""

    def _commit(self, requests: Sequence[Request]) -> list[Any]:
        with self._file_lock:
            if self._writer.in_transaction:
                time.sleep(0.01)
                self._writer.execute("COMMIT")
            self._writer.execute("BEGIN IMMEDIATE")
            batch = Batch(self._stored)
            outcomes = batch.decide_all(requests)
            self._stored.write(batch)
            return outcomes


class Careless(SQLiteStore):
    """Takes no notice of errors while it commits."""

    def _commit(self, requests: Sequence[Request]) -> list[Any]:
        with self._failures(), self._file_lock:
            self._writer.execute("BEGIN IMMEDIATE")
            batch = Batch(self._stored)
            outcomes = batch.decide_all(requests)
            self._stored.write(batch)
            with suppress(sqlite3.Error):
                self._writer.execute("COMMIT")
            if self._writer.in_transaction:
                self._writer.execute("ROLLBACK")
            return outcomes


class Unrecorded(SQLiteStore):
    """Looks neither at its head record nor at the names of its files."""

    _checks = _Unread

    def __init__(self, path: Path, *, create: bool) -> None:
        super().__init__(path, create=create)
        self._stored = LedgerTables(SQLiteRows(self._writer))

    def _require_in_place(self) -> None:
        pass

    def _acknowledge(self, heads: Any) -> None:
        pass


SETTINGS: dict[str, dict[str, Any]] = {
    "shipped": {},
    "normal": {"synchronous": 1},
    "off": {"synchronous": 0},
    "delete": {"journal_mode": "delete"},
}
STORES = {"checking": Checking, "early": Early, "careless": Careless, "unrecorded": Unrecorded}
UNSETTLED = "unsettled"
"""Shipped settings, without the sync of what a killed process left behind."""

WEAKNESSES = (*SETTINGS, *STORES, UNSETTLED)


def _beside_without_log(path: Path, end: str) -> Path:
    """The file itself stands for the log that it does not have."""
    return path if end in ("-wal", "-shm") else sqlite_connection.sidecar(path, end)


@contextmanager
def opened(url: str, weakness: str = "shipped") -> Any:
    """A ledger with that weakness; `shipped` has none."""
    if weakness in STORES:
        ledger = Ledger(STORES[weakness](Path(url), create=True))
        try:
            yield ledger
        finally:
            ledger.close()
        return
    settings = {**sqlite_connection.SETTINGS, **SETTINGS.get(weakness, {})}
    logless = (
        patch.object(sqlite, "sidecar", _beside_without_log)
        if weakness == "delete"
        else patch.dict({})
    )
    unsettled = (
        patch.object(sqlite, "settle", lambda _: None) if weakness == UNSETTLED else patch.dict({})
    )
    with (
        patch.object(sqlite_connection, "SETTINGS", settings),
        logless,
        unsettled,
        Ledger.open(url) as ledger,
    ):
        yield ledger
