"""The store in a SQLite file: one machine, any number of processes and threads."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from dpcompose.errors import StoreError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.convoy import Convoy, Outcome
from dpcompose.ledger.decision import Decision, Request
from dpcompose.ledger.driver import Stored
from dpcompose.ledger.migration import migrate, version_of
from dpcompose.ledger.reading import Reading
from dpcompose.ledger.row import Row
from dpcompose.ledger.sqlite_file import (
    LASTING,
    cause_of,
    code_of,
    connect,
    failure,
    identity,
    require_place,
    settle,
)
from dpcompose.ledger.store import closed
from dpcompose.ledger.turn import Turn

_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT IN ('sqlite_stat1', 'sqlite_stat4')"


class SQLiteStore:
    """A ledger in one file, in WAL mode with `synchronous=FULL`: what is acknowledged is on disk.

    Args:
        path: The file.
        create: Whether to make it where there is none.

    Raises:
        StoreError: The file cannot be used, or not safely.
    """

    def __init__(self, path: Path, *, create: bool) -> None:
        self.where = str(path)
        self._process = os.getpid()
        self._broken: StoreError | None = None
        with self._failures(_Progress()), ExitStack() as opened:
            path = path.resolve()  # SQLite follows links too: log and lock lie beside the file itself
            require_place(path, create=create)
            self._turn = Turn(path.with_name(f"{path.name}-turn"))
            opened.callback(self._turn.close)
            self._engine = engine_of(path)
            opened.callback(self._engine.dispose)
            with self._turn():
                self._writer = connect(path)
                opened.callback(self._writer.close)
                with self._engine.connect().execution_options(begin="IMMEDIATE") as connection, connection.begin():
                    if not create and version_of(connection, where=self.where) == 0:
                        raise StoreError(
                            self.where, "there is no ledger in this file", "dpcompose ledger init makes one"
                        )
                    migrate(connection, where=self.where)
                settle(path)
            self._path, self._identity = path, identity(path)
            self._opened = opened.pop_all()
        self._writing = Lock()
        self._stored = Stored(_Writer(self._writer))
        self._convoy = Convoy(self._commit)

    def transact(self, request: Request) -> Decision:
        self._require_own_process()
        return self._convoy.submit(request)

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide the requests one after the other and commit their changes together."""
        progress = _Progress()
        with self._writing, self._failures(progress):
            self._require_usable()
            with self._turn():
                return self._committed(requests, progress)

    def _committed(self, requests: Sequence[Request], progress: _Progress) -> list[Outcome]:
        try:
            if self._writer.in_transaction:  # an earlier commit was interrupted before it could do this itself
                self._writer.execute("ROLLBACK")
            self._writer.execute("BEGIN IMMEDIATE")
            batch = Batch(self._stored)
            outcomes = batch.decide_all(requests)
            if batch.records:
                self._stored.write(batch)
                progress.committing = True
                self._writer.execute("COMMIT")
            return outcomes
        finally:
            if self._writer.in_transaction:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")

    @contextmanager
    def snapshot(self) -> Generator[Reading]:
        with self._failures(_Progress()):
            self._require_usable()
            with self._engine.connect() as connection:
                with connection.begin():
                    yield Reading(connection, _damage)
                if self._broken is not None:  # closed meanwhile: no pool waits for it any more
                    connection.detach()

    def close(self) -> None:
        if os.getpid() == self._process:
            with self._writing:
                self._broken = closed(self.where)
                self._opened.close()

    def _require_usable(self) -> None:
        """Raise StoreError unless this is the process and the file, and nothing is broken."""
        self._require_own_process()
        if self._broken is None and not self._is_in_place():
            what = "the file was moved, replaced or deleted while it was open"
            self._broken = StoreError(self.where, what, "Nothing more is written; open the ledger again")
        if self._broken is not None:
            raise self._broken

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(self.where, "was opened in another process", "Open the ledger again after a fork")

    def _is_in_place(self) -> bool:
        """Whether the path still leads to the file that is open; what is charged in another is charged nowhere."""
        try:
            return identity(self._path) == self._identity
        except FileNotFoundError:
            return False

    @contextmanager
    def _failures(self, progress: _Progress) -> Generator[None]:
        """Turn what the driver raises into StoreError; stop for good where the disk cannot be relied on."""
        try:
            yield
        except (sqlite3.Error, SQLAlchemyError, OSError, UnicodeDecodeError) as error:
            cause = (error.orig or error) if isinstance(error, DBAPIError) else error
            raise self._failed(cause, uncertain=progress.committing) from error

    def _failed(self, cause: BaseException, *, uncertain: bool) -> StoreError:
        if isinstance(cause, UnicodeDecodeError):  # text that is none: the driver passes it on as it is
            cause = sqlite3.DatabaseError(str(cause))
            cause.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
        if not isinstance(cause, sqlite3.Error):
            return StoreError(self.where, cause_of(cause), "Check the file and its directory", uncertain=uncertain)
        found = failure(self.where, cause, uncertain=uncertain)
        if code_of(cause) in LASTING:
            self._broken = found
        return found


@dataclass
class _Progress:
    """How far a transaction came: an error while it commits leaves open whether it did."""

    committing: bool = False


@dataclass(frozen=True)
class _Writer:
    """The connection that writes; the driver keeps its statements prepared."""

    connection: sqlite3.Connection

    def row(self, statement: str, values: Sequence[Any]) -> Row | None:
        return self.connection.execute(statement, values).fetchone()

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        return self.connection.executemany(statement, rows).rowcount


def engine_of(path: Path) -> Engine:
    """Connections for reads and migrations, with the same settings; a transaction says itself how it begins."""
    engine = create_engine("sqlite://", creator=lambda: connect(path), poolclass=QueuePool, max_overflow=-1)

    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(f"BEGIN {connection.get_execution_options().get('begin', 'DEFERRED')}")

    event.listen(engine, "begin", begin)
    return engine


def _damage(connection: Connection) -> Iterator[str]:
    """Broken pages and indexes; tables, triggers and views that are not ours, or not as we made them."""
    for (complaint,) in connection.execute(text("PRAGMA integrity_check")):
        if complaint != "ok":
            yield f"SQLite: {complaint}"
    found = {tuple(row) for row in connection.execute(text(_OBJECTS))}
    model = create_engine("sqlite://")
    with model.begin() as fresh:
        migrate(fresh, where="model")
        expected = {tuple(row) for row in fresh.execute(text(_OBJECTS))}
    model.dispose()
    for kind, name, *_ in sorted(found ^ expected, key=str):
        yield f"the {kind} {name} is not as dpcompose makes it"
