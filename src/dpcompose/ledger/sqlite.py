"""The store in a SQLite file: one machine, any number of processes and threads."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from dpcompose.errors import StoreError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.convoy import Convoy, Outcome
from dpcompose.ledger.decision import Decision, Request
from dpcompose.ledger.driver import Stored
from dpcompose.ledger.migration import migrate
from dpcompose.ledger.reading import Reading
from dpcompose.ledger.row import Row
from dpcompose.ledger.sqlite_file import LASTING, cause_of, code_of, connect, failure, require_place, settle
from dpcompose.ledger.turn import Turn

_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT LIKE 'sqlite_stat%'"


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
                    migrate(connection, where=self.where)
                settle(path)
            self._opened = opened.pop_all()
        self._stored = Stored(_Writer(self._writer))
        self._convoy = Convoy(self._commit)

    def transact(self, request: Request) -> Decision:
        self._require_usable()
        return self._convoy.submit(request)

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide the requests one after the other and commit their changes together."""
        self._require_usable()
        progress = _Progress()
        with self._failures(progress), self._turn():
            self._writer.execute("BEGIN IMMEDIATE")
            try:
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
        self._require_usable()
        with self._failures(_Progress()), self._engine.connect() as connection, connection.begin():
            yield Reading(connection, _damage)

    def close(self) -> None:
        if os.getpid() == self._process:
            self._opened.close()

    def _require_usable(self) -> None:
        if self._broken is not None:
            raise self._broken
        if os.getpid() != self._process:
            raise StoreError(self.where, "was opened in another process", "Open the ledger again after a fork")

    @contextmanager
    def _failures(self, progress: _Progress) -> Generator[None]:
        """Turn what the driver raises into StoreError; stop for good where the disk cannot be relied on."""
        try:
            yield
        except (sqlite3.Error, SQLAlchemyError, OSError, UnicodeError) as error:
            cause = (error.orig or error) if isinstance(error, DBAPIError) else error
            raise self._failed(cause, uncertain=progress.committing) from error

    def _failed(self, cause: BaseException, *, uncertain: bool) -> StoreError:
        if isinstance(cause, UnicodeError):  # text that is none: the driver passes it on as it is
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

    def many(self, statement: str, rows: Sequence[Row]) -> None:
        self.connection.executemany(statement, rows)


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
