"""The store on PostgreSQL, for many machines, and on servers that speak its protocol."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Lock

import psycopg

from dpcompose.errors import StoreError
from dpcompose.ledger.batch import Batch, GroupCommit
from dpcompose.ledger.postgres_connection import (
    RETRIED,
    SETTINGS,
    PostgresRows,
    commit,
    differences,
    failure,
    failures,
    pool_of,
    require_durable,
    require_tables,
    transaction,
)
from dpcompose.ledger.rules import Outcome, Request, RequestDecision
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.store import Rows, closed, read_only, require_process
from dpcompose.ledger.tables import (
    Cache,
    Cached,
    LedgerTables,
    migrate,
    no_ledger,
    require_known,
    require_readable,
    version_of,
)

ATTEMPTS = 20
"""How often a transaction is tried that the server gives up in favor of another."""

_MIGRATING = "SELECT pg_advisory_xact_lock(7234017283807667300)"
STOPPED = "4s"
"""A client that was stopped while it holds a tree, and a standby that confirms no commit, are waited for so long."""
_TIMEOUTS = ("idle_in_transaction_session_timeout", "statement_timeout")
_LOCK = (
    f"SELECT {SETTINGS}, (SELECT max(number) FROM migration), "
    + ", ".join(f"set_config('{name}', '{STOPPED}', true)" for name in _TIMEOUTS)
    + ", (SELECT 1 FROM balance WHERE root = ? AND path = ? FOR UPDATE)"
)


class PostgresReader:
    """A ledger in a PostgreSQL database that is opened for reading: a standby will do, or a user who may only select.

    Args:
        url: Such as `postgresql://user@host/database`.
        reading: Whether the server is asked to refuse every write; a standby refuses them by itself.

    Raises:
        StoreError: The server cannot be reached, or shows no such ledger.
    """

    def __init__(self, url: str, *, reading: bool = True) -> None:
        self._pool = pool_of(url, reading=reading)
        self.url = self._pool.url
        self._process = os.getpid()
        self._closed = False
        try:
            with transaction(
                self._pool, confirmed=False
            ) as rows:  # every charge waits for its own confirmation
                self._begin(rows)
                require_tables(rows, self.url)
        except BaseException:
            self._pool.close()
            raise

    def _begin(self, rows: Rows) -> None:
        """Look for the ledger."""
        require_readable(version_of(rows, url=self.url), url=self.url)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        raise read_only(self.url)

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        self._require_usable()
        with transaction(self._pool) as rows:
            rows.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield LedgerTables(rows, inspect=differences)

    def close(self) -> None:
        self._closed = True
        if os.getpid() == self._process:
            self._pool.close()

    def _require_usable(self) -> None:
        if self._closed:
            raise closed(self.url)
        require_process(self.url, self._process)


class PostgresStore(PostgresReader):
    """A ledger in a PostgreSQL database.

    A transaction locks the balance of its top-level scope first. One chain of hashes makes the charges below a
    top-level scope wait for each other anyway; charges below different ones do not meet.

    Args:
        url: Such as `postgresql://user@host/database`.
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

    def _begin(self, rows: Rows) -> None:
        """Make the tables where there are none."""
        rows.run(_MIGRATING)
        if not self._create and version_of(rows, url=self.url) == 0:
            raise no_ledger(self.url)
        migrate(rows, url=self.url)

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
            with failures(self.url), self._pool.connection() as connection:
                attempted = _Transaction(connection, self.url)
                try:
                    return attempted.commit(root, requests, self._known)
                except psycopg.Error as error:
                    again = error.sqlstate in RETRIED or (
                        connection.closed and not attempted.committing
                    )
                    if not again or attempt == ATTEMPTS:
                        uncertain = attempted.committing and error.sqlstate not in RETRIED
                        raise failure(self.url, error, uncertain=uncertain) from error
        raise AssertionError("the last attempt returns or raises")


@dataclass
class _Transaction(PostgresRows):
    """One attempt; `committing` once the server was told to commit, when a lost connection leaves it open whether."""

    url: str
    committing: bool = False

    def commit(self, root: str, requests: Sequence[Request], cache: Cache) -> list[Outcome]:
        """Decide and commit."""
        found = self.row(_LOCK, (root, root))
        assert found is not None, "a SELECT without a condition has a row"
        *settings, version = found[: -1 - len(_TIMEOUTS)]
        require_durable(settings, self.url)
        require_known(version, url=self.url)
        stored = LedgerTables(self, cache)
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


@contextmanager
def new_tables(url: str) -> Generator[PostgresRows]:
    """A transaction in a database that is empty; what is made in it is committed in the end, as a whole."""
    pool = pool_of(url)
    try:
        with transaction(pool) as rows:
            rows.run(_MIGRATING)
            if version_of(rows, url=pool.url) != 0:
                raise StoreError(
                    pool.url,
                    "there is a ledger already",
                    "Name an empty database; nothing is written over",
                )
            yield rows
    finally:
        pool.close()
