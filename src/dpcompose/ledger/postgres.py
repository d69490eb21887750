"""The store on PostgreSQL, for many machines, and on servers that speak its protocol."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock
from typing import Any, cast

import psycopg
from sqlalchemy import Connection, text

from dpcompose.errors import StoreError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.decision import Outcome, Request, RequestDecision
from dpcompose.ledger.driver import Cache, Cached, WriteModel
from dpcompose.ledger.group_commit import GroupCommit
from dpcompose.ledger.postgres_connection import (
    RETRIED,
    SETTINGS,
    commit,
    differences,
    engine_of,
    failure,
    failures,
    require_durable,
    require_tables,
)
from dpcompose.ledger.reading import ReadModel
from dpcompose.ledger.schema import migrate, no_ledger, require_current, require_known, version_of
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.store import Row, closed, read_only

ATTEMPTS = 20
"""How often a transaction is tried that the server gives up in favor of another."""

_MIGRATING = text("SELECT pg_advisory_xact_lock(7234017283807667300)")
_LOCK = (
    f"SELECT {SETTINGS}, (SELECT max(number) FROM migration), "
    "(SELECT 1 FROM balance WHERE root = ? AND path = ? FOR UPDATE)"
)


class PostgresReader:
    """A ledger in a PostgreSQL database that is opened for reading: a standby will do, or a user who may only select.

    Args:
        url: In SQLAlchemy's form, such as `postgresql+psycopg://user@host/database`.
        reading: Whether the server is asked to refuse every write; a standby refuses them by itself.
        older: Whether the schema may be an earlier one.

    Raises:
        StoreError: The server cannot be reached, or shows no such ledger.
    """

    def __init__(self, url: str, *, reading: bool = True, older: bool = False) -> None:
        self.version, self._older = 0, older
        self._engine, self.url = engine_of(url, reading=reading)
        self._process = os.getpid()
        self._closed = False
        try:
            with failures(self.url), self._engine.connect() as connection, connection.begin():
                self._begin(connection)
                require_tables(_driver_of(connection), self.url)
        except BaseException:
            self._engine.dispose()
            raise

    def _begin(self, connection: Connection) -> None:
        """Look for the ledger."""
        self.version = version_of(connection, url=self.url)
        require_current(self.version, url=self.url, older=self._older)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        raise read_only(self.url)

    @contextmanager
    def snapshot(self) -> Generator[ReadModel]:
        self._require_usable()
        options: dict[str, Any] = {
            "isolation_level": "REPEATABLE READ",
            "postgresql_readonly": True,
        }
        with (
            failures(self.url),
            self._engine.connect().execution_options(**options) as connection,
            connection.begin(),
        ):
            yield ReadModel(connection, damage_of_tables)

    def close(self) -> None:
        self._closed = True
        self._engine.dispose(close=os.getpid() == self._process)

    def _require_usable(self) -> None:
        if self._closed:
            raise closed(self.url)
        if os.getpid() != self._process:
            raise StoreError(
                self.url, "was opened in another process", "Open the ledger again after a fork"
            )


class PostgresStore(PostgresReader):
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
        self._create = create
        self._known: Cache = defaultdict(Cached)
        self._group_commits: dict[str, GroupCommit] = {}
        self._lock = Lock()
        super().__init__(url, reading=False)

    def _begin(self, connection: Connection) -> None:
        """Bring the tables up to date, or make them."""
        connection.execute(_MIGRATING)
        if not self._create and version_of(connection, url=self.url) == 0:
            raise no_ledger(self.url)
        migrate(connection, url=self.url)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        self._require_usable()
        (root,) = {root_of(request.path) for request in requests}
        with self._lock:
            group_commit = self._group_commits.setdefault(root, GroupCommit(self._commit))
        return group_commit.submit(requests)

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide requests below one top-level scope and commit their changes together."""
        root = root_of(requests[0].path)
        for attempt in range(1, ATTEMPTS + 1):
            with failures(self.url):
                pooled = self._engine.raw_connection()
            transaction = _Transaction(
                cast("psycopg.Connection[Any]", pooled.driver_connection), self.url
            )
            try:
                return transaction.commit(root, requests, self._known)
            except psycopg.Error as error:
                lost = transaction.connection.closed
                if lost:
                    pooled.invalidate()
                again = error.sqlstate in RETRIED or (lost and not transaction.committing)
                if not again or attempt == ATTEMPTS:
                    uncertain = transaction.committing and error.sqlstate not in RETRIED
                    raise failure(self.url, error, uncertain=uncertain) from error
            finally:
                pooled.close()
        raise AssertionError("the last attempt returns or raises")


@dataclass
class _Transaction:
    """One attempt; `committing` once the server was told to commit, when a lost connection leaves it open whether."""

    connection: psycopg.Connection[Any]
    url: str
    committing: bool = False

    def commit(self, root: str, requests: Sequence[Request], known: Cache) -> list[Outcome]:
        """Decide and commit."""
        found = self.row(_LOCK, (root, root))
        assert found is not None, "a SELECT without a condition has a row"
        *settings, version, _ = found
        require_durable(settings, self.url)
        require_known(version, url=self.url)
        stored = WriteModel(self, known)
        batch = Batch(stored)
        outcomes = batch.decide_all(requests)
        if batch.records:
            stored.write(batch)
        if any(isinstance(outcome, RequestDecision) for outcome in outcomes):
            # Also where all of them repeat what is there: no standby may have it yet. A commit after the lock waits
            # for everything before it.
            self._commit()
        else:
            self.connection.rollback()
        return outcomes

    def _commit(self) -> None:
        self.committing = True
        commit(self.connection, self.url)

    def row(self, statement: str, values: Sequence[Any]) -> Row | None:
        return self.connection.execute(statement.replace("?", "%s").encode(), values).fetchone()

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        with self.connection.cursor() as cursor:
            cursor.executemany(statement.replace("?", "%s").encode(), rows)
            return cursor.rowcount


@contextmanager
def new_tables(url: str) -> Generator[Connection]:
    """A transaction in a database that is empty; what is made in it is committed in the end, as a whole."""
    engine, shown = engine_of(url)
    try:
        with failures(shown), engine.connect() as connection, connection.begin():
            connection.execute(_MIGRATING)
            if version_of(connection, url=shown) != 0:
                raise StoreError(
                    shown,
                    "there is a ledger already",
                    "Name an empty database; nothing is written over",
                )
            yield connection
    finally:
        engine.dispose()


def damage_of_tables(connection: Connection) -> Iterator[str]:
    """Tables that are not as we made them, and what was added to them."""
    return differences(_driver_of(connection))


def _driver_of(connection: Connection) -> psycopg.Connection[Any]:
    return cast("psycopg.Connection[Any]", connection.connection.driver_connection)
