"""The database of people and terms: a SQLite file beside the ledger, or the PostgreSQL database of the ledger."""

from __future__ import annotations

import logging
import os
import sqlite3
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from queue import Empty, LifoQueue
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any, Protocol
from weakref import finalize

from dpcompose.errors import MissingExtraError
from dpcompose.ledger import RecordedFile, sqlite_failure
from dpcompose.serve.tables import TABLES

_log = logging.getLogger("dpcompose.serve")
YEAR = 366 * 86400.0
"""Nothing that is given here lasts longer."""
NOTED_EVERY = 60.0
"""Seconds between two notes of the time: so far may a clock that is set back reach."""
_WRITTEN = "select pg_logical_emit_message(true, 'dpcompose', '')"
"""Written also by what finds nothing to change: such a commit waits for the standby, and so for what it found."""
Row = tuple[Any, ...]


class Run(Protocol):
    """A statement in a transaction, with ? for its values."""

    def __call__(self, statement: str, values: Sequence[object] = ()) -> list[Row]:
        """Its rows."""
        ...


@dataclass(eq=False)
class Database(ABC):
    """Tables of people and terms; several servers share them where the database is PostgreSQL.

    Args:
        clock: Seconds since 1970.
        running: Seconds since some moment, by a clock that nobody sets.
    """

    clock: Callable[[], float] = time.time
    running: Callable[[], float] = time.monotonic
    _latest: float = 0.0
    _noted: float = 0.0
    _noted_at: float = 0.0

    @staticmethod
    def open(url: str | Path, *, clock: Callable[[], float] = time.time) -> Database:
        """The database at a PostgreSQL address, or a SQLite file, which is made where there is none.

        Raises:
            StoreError: It cannot be opened.
        """
        scheme, _, rest = str(url).partition("://")
        if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
            found: Database = PostgresDatabase(clock, url=f"postgresql://{rest}")
        else:
            found = SQLiteDatabase(clock, path=str(url).removeprefix("sqlite:///"))
        with found.transaction() as run:
            for table in TABLES:
                run(table)
        if (ahead := found.now() - found.clock()) > NOTED_EVERY:
            _log.warning(
                "this clock is %.0f s behind a time that was seen; dpcompose serve --trust-clock undoes it",
                ahead,
            )
        return found

    @abstractmethod
    def transaction(self, *, write: bool = True) -> Any:
        """A transaction as a context: it commits when the block ends and rolls back when the block raises."""

    @abstractmethod
    def locked(self, root: str, *, shared: bool = False) -> Any:
        """A transaction that holds the lock of a tree; with `shared`, together with other shared holders."""

    @abstractmethod
    def close(self) -> None:
        """Let go of the connections; nothing is read or written any more."""

    def now(self) -> float:
        """The time in seconds; it never runs back, so an expired token stays expired when the clock is set back.

        It runs on where the clock was ahead once, so that what begins meanwhile ends when it should.
        """
        now, running = self.clock(), self.running()
        if self._noted - now > NOTED_EVERY:
            now = self._noted + running - self._noted_at
        now = self._latest = max(now, self._latest)
        if now >= self._noted + NOTED_EVERY:
            with self.transaction() as run:
                run(
                    "insert into service_time (id, latest) values (1, 0) on conflict (id) do nothing"
                )
                run("update service_time set latest = ? where latest < ?", (now, now))
                ((now,),) = run("select latest from service_time")
            self._noted = self._latest = max(now, self._latest)
            self._noted_at = running
        return self._latest

    def trust_clock(self) -> float:
        """Accept the clock although a later time was recorded; returns the seconds between the two.

        Tokens that were given in the time that is still to come are revoked, and what would last too long ends now.
        """
        now = self.clock()
        ahead = max(self.now() - now, 0.0)
        with self.locked("") as run:
            later = "expires > ? or digest in (select digest from service_issued where issued > ?)"
            run(
                f"update service_token set revoked = 1 where {later}",
                (now + YEAR, now + NOTED_EVERY),
            )
            for table in ("service_reservation", "service_request"):
                run(f"update {table} set expires = ? where expires > ?", (now, now + YEAR))
            run("update service_alert set due = 0")
            run("update service_time set latest = ?", (now,))
        self._latest, self._noted, self._noted_at = now, now, self.running()
        return ahead


@dataclass(eq=False)
class SQLiteDatabase(Database):
    """A file; of one process, whose threads take turns by themselves."""

    path: str = ":memory:"
    synchronous: str = "full"
    _idle: LifoQueue[sqlite3.Connection] = field(default_factory=LifoQueue[sqlite3.Connection])
    _closed: bool = False

    def __post_init__(self) -> None:
        if self.path == ":memory:":
            self.synchronous = "off"
            folder = mkdtemp(prefix="dpcompose-")
            finalize(self, rmtree, folder, ignore_errors=True)
            self.path = f"{folder}/people.db"
        with self._failures(uncertain=False):
            self._file = RecordedFile(Path(self.path).resolve(), self._connected)

    @contextmanager
    def transaction(self, *, write: bool = True) -> Generator[Run]:
        with self._failures(uncertain=False):
            connection = self._connection()

        def run(statement: str, values: Sequence[object] = ()) -> list[Row]:
            with self._failures(uncertain=False):
                return connection.execute(statement, values).fetchall()

        try:
            if write:
                run("begin immediate")
            before = connection.total_changes
            yield run
            if write:
                with self._failures(uncertain=True):
                    self._file.commit(connection) if connection.total_changes > before else run(
                        "commit"
                    )
        except BaseException:
            if connection.in_transaction:
                connection.rollback()
            raise
        finally:
            self._idle.put(connection)

    @contextmanager
    def _failures(self, *, uncertain: bool) -> Generator[None]:
        """Turn what the driver raises into StoreError, which names the cause."""
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise sqlite_failure(self.path, error, uncertain=uncertain) from None

    @contextmanager
    def locked(self, root: str, *, shared: bool = False) -> Generator[Run]:
        with self.transaction(write=not shared) as run:
            yield run

    def close(self) -> None:
        self._closed = True
        while not self._idle.empty():
            self._idle.get().close()
        self._file.close()

    def _connection(self) -> sqlite3.Connection:
        if self._closed or not os.path.exists(self.path):
            raise sqlite3.OperationalError("the file was closed, or is gone")
        try:
            return self._idle.get_nowait()
        except Empty:
            return self._connected()

    def _connected(self) -> sqlite3.Connection:
        connection = sqlite3.connect(
            self.path, timeout=10.0, check_same_thread=False, isolation_level=None
        )
        connection.execute("pragma journal_mode=wal")
        connection.execute(f"pragma synchronous={self.synchronous}")
        return connection


@dataclass(eq=False)
class PostgresDatabase(Database):
    """The database of the ledger, with its connections and their checks."""

    url: str = ""

    def __post_init__(self) -> None:
        try:
            from dpcompose.ledger import pool_of
        except ImportError:
            raise MissingExtraError("People on PostgreSQL", "postgres") from None
        self._pool = pool_of(self.url)

    def close(self) -> None:
        self._pool.close()

    @contextmanager
    def transaction(self, *, write: bool = True) -> Generator[Run]:
        from dpcompose.ledger import transaction

        with transaction(self._pool) as rows:
            yield rows.run
            if write:
                rows.run(_WRITTEN)

    @contextmanager
    def locked(self, root: str, *, shared: bool = False) -> Generator[Run]:
        number = int.from_bytes(
            sha256(f"dpcompose serve {root}".encode()).digest()[:8], signed=True
        )
        with self.transaction(write=not shared) as run:
            run(f"select pg_advisory_xact_lock{'_shared' if shared else ''}(?)", (number,))
            yield run
