"""The store on PostgreSQL, for many machines, and on servers that speak its protocol."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, inspect, text

from dpcompose.errors import StoreError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.convoy import Convoy, Outcome
from dpcompose.ledger.decision import Decision, Request
from dpcompose.ledger.driver import Known, Stored
from dpcompose.ledger.migration import migrate, version_of
from dpcompose.ledger.postgres_session import RETRIED, engine_of, failure, failures
from dpcompose.ledger.reading import Reading
from dpcompose.ledger.row import Row
from dpcompose.ledger.schema import ENTRY
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.store import closed

ATTEMPTS = 20
"""How often a transaction is tried that the server gives up in favor of another."""

_MIGRATING = text("SELECT pg_advisory_xact_lock(7234017283807667300)")
_LOCK = "SELECT 1 FROM balance WHERE root = ? AND path = ? FOR UPDATE"
_TRIGGERS = text(
    "SELECT tgname FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid "
    "WHERE NOT tgisinternal AND relname IN ('migration', 'scope', 'balance', 'entry') ORDER BY tgname"
)


class PostgresStore:
    """A ledger in a PostgreSQL database.

    A transaction locks the balance of its top-level scope first. One chain of hashes makes the charges below a
    top-level scope wait for each other anyway; charges below different ones do not meet.

    Args:
        url: In SQLAlchemy's form, such as `postgresql+psycopg://user@host/database`.
        create: Whether to make the tables where there are none.

    Raises:
        StoreError: The server cannot be reached, or may lose what it acknowledges.
    """

    def __init__(self, url: str, *, create: bool) -> None:
        self._engine, self.where = engine_of(url)
        self._process = os.getpid()
        self._closed = False
        self._known: Known = {}
        self._convoys: dict[str, Convoy] = {}
        self._lock = Lock()
        try:
            with failures(self.where), self._engine.connect() as connection, connection.begin():
                connection.execute(_MIGRATING)
                if not create and version_of(connection, where=self.where) == 0:
                    raise StoreError(
                        self.where, "there is no ledger in this database", "dpcompose ledger init makes one"
                    )
                migrate(connection, where=self.where)
        except BaseException:
            self._engine.dispose()
            raise

    def transact(self, request: Request) -> Decision:
        self._require_usable()
        root = root_of(request.path)
        with self._lock:
            convoy = self._convoys.setdefault(root, Convoy(self._commit))
        return convoy.submit(request)

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide requests below one top-level scope and commit their changes together."""
        root = root_of(requests[0].path)
        for attempt in range(1, ATTEMPTS + 1):
            with failures(self.where):
                pooled = self._engine.raw_connection()
            transaction = _Transaction(cast("psycopg.Connection[Any]", pooled.driver_connection))
            try:
                return transaction.commit(root, requests, self._known)
            except psycopg.Error as error:
                lost = transaction.connection.closed
                if lost:
                    pooled.invalidate()
                again = error.sqlstate in RETRIED or (lost and not transaction.committing)
                if not again or attempt == ATTEMPTS:
                    uncertain = transaction.committing and error.sqlstate not in RETRIED
                    raise failure(self.where, error, uncertain=uncertain) from error
            finally:
                pooled.close()
        raise AssertionError("the last attempt returns or raises")

    @contextmanager
    def snapshot(self) -> Generator[Reading]:
        self._require_usable()
        options: dict[str, Any] = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
        with (
            failures(self.where),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield Reading(connection, _damage)

    def close(self) -> None:
        self._closed = True
        self._engine.dispose(close=os.getpid() == self._process)

    def _require_usable(self) -> None:
        if self._closed:
            raise closed(self.where)
        if os.getpid() != self._process:
            raise StoreError(self.where, "was opened in another process", "Open the ledger again after a fork")


@dataclass
class _Transaction:
    """One attempt; `committing` once the server was told to commit, when a lost connection leaves it open whether."""

    connection: psycopg.Connection[Any]
    committing: bool = False

    def commit(self, root: str, requests: Sequence[Request], known: Known) -> list[Outcome]:
        self.row(_LOCK, (root, root))
        stored = Stored(self, known)
        batch = Batch(stored)
        outcomes = batch.decide_all(requests)
        if batch.records:
            stored.write(batch)
            self.committing = True
            self.connection.commit()
        else:
            self.connection.rollback()
        return outcomes

    def row(self, statement: str, values: Sequence[Any]) -> Row | None:
        return self.connection.execute(statement.replace("?", "%s").encode(), values).fetchone()

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s").encode(), rows)
            return cursor.rowcount


def _damage(connection: Connection) -> Iterator[str]:
    """Triggers on our tables, and the indexes that keep keys and redemptions unique."""
    for name in connection.execute(_TRIGGERS).scalars():
        yield f"the trigger {name} is not as dpcompose makes it"
    found = {index["name"]: index["unique"] for index in inspect(connection).get_indexes(ENTRY.name)}
    for index in sorted(str(index.name) for index in ENTRY.indexes):
        if not found.get(index):
            yield f"the index {index} is not as dpcompose makes it"
