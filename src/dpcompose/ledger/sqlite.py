"""The stores in SQLite: a file of any number of processes and threads, a file that is only read, and memory."""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from pathlib import Path
from threading import Lock, RLock
from weakref import finalize

from dpcompose.errors import StoreError
from dpcompose.ledger import head_record, sqlite_connection as driver, tables
from dpcompose.ledger.batch import Batch, GroupCommit
from dpcompose.ledger.entry import Head, Outcome, Request
from dpcompose.ledger.head_record import CheckedFile, CheckedTables, HeadRecord, LossError
from dpcompose.ledger.sqlite_connection import (
    FileLock,
    FrozenConnection,
    SQLiteRows,
    settle,
    sidecar,
    transaction,
)
from dpcompose.ledger.store import Store
from dpcompose.ledger.tables import LedgerTables


def copy_before(path: Path, version: int) -> None:
    """Keep a copy of a ledger, as it was before its schema is brought up to date, beside it."""
    copy = path.with_name(f"{path.name}.schema{version}")
    if not copy.exists():
        part = copy.with_name(f"{copy.name}.part")
        part.unlink(missing_ok=True)
        os.close(os.open(part, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
        with closing(sqlite3.connect(path)) as connection, closing(sqlite3.connect(part)) as target:
            connection.backup(target)
        settle(part)
        part.replace(copy)


class SQLiteStore(Store):
    """A ledger in one file, in WAL mode with `synchronous=FULL`: what is acknowledged is on disk.

    Args:
        path: The file.
        create: Whether to make it where there is none.

    Raises:
        StoreError: The file cannot be used, or not safely.
    """

    _checks: type[CheckedFile] = CheckedFile

    def __init__(self, path: Path, *, create: bool, restored: bool = False) -> None:
        super().__init__(str(path), str(path))
        with self._failures(), ExitStack() as opened:
            named, path = Path(os.path.abspath(path)), path.resolve()  # SQLite follows links too
            driver.require_place(path, create=create)
            self._file_lock = FileLock(sidecar(path, "-turn"))
            opened.callback(self._file_lock.close)
            self._pool = driver.pool_of(path)
            opened.callback(self._pool.close)
            self._file = self._checks(path, self.url, self._pool)
            is_new = not path.exists() or not path.stat().st_size
            with self._file_lock if is_new else nullcontext():
                os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))  # its owner's alone
                self._writer = driver.connect(path)
            opened.callback(self._writer.close)
            if restored or not self._is_ready():
                self._prepare(create=create, restored=restored)
            settle(path)
            self._record = HeadRecord(self._file.record)
            opened.callback(self._record.close)
            self._log = os.open(sidecar(path, "-wal"), os.O_RDONLY)
            opened.callback(finalize(self, os.close, self._log))
            self._known_log = driver.log_of(self._log)
            files = [*(str(sidecar(path, end)) for end in driver.BESIDE[:3]), str(path), str(named)]
            self._files = [(each, driver.identity(each)) for each in dict.fromkeys(files)]
            self._opened = opened.pop_all()
        self._writing = Lock()
        self._stored = CheckedTables(SQLiteRows(self._writer), record=self._record, url=self.url)
        self._group_commit = GroupCommit(self._commit)

    def _is_ready(self) -> bool:
        """Whether the ledger is whole and nothing is to be written before it is used."""
        claims, version, is_marked = self._file.state()
        return (
            claims is not None
            and version == tables.VERSION
            and is_marked
            and driver.may_write(self._file.record)
        )

    def _prepare(self, *, create: bool, restored: bool) -> None:
        """Bring the schema up to date, and give this file a head record of its own."""
        path, record = self._file.path, self._file.record
        with self._file_lock:
            with transaction(self._pool) as rows:
                version = tables.version_of(rows, url=self.url)
            if not create and version == 0:
                raise tables.no_ledger(self.url)
            if version in tables.STEPS and version != tables.VERSION:
                copy_before(path, version)
            before = driver.log_at(path)
            with transaction(self._pool, "IMMEDIATE") as rows:
                tables.migrate(rows, url=self.url)
                settle(
                    path
                )  # what the record claims is on disk, also where a killed process left it
                heads = head_record.heads_of(LedgerTables(rows))
                if restored or not driver.may_write(record):
                    head_record.write_record(record, heads, like=path)
                    settle(path)
                rows.run(f"PRAGMA user_version = {driver.mark_of(path)}")
            if (log := driver.log_at(path)) != before:
                with closing(HeadRecord(record)) as written:
                    written.begin_log(log, *next(iter(heads.items()), ("", Head())))
        head_record.copy_permissions(sidecar(path, "-turn"), like=path)
        self._writer.execute(
            "PRAGMA wal_checkpoint"
        ).fetchall()  # the mark is in the file, whatever befalls the log

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        self._require_usable()
        return self._group_commit.submit(requests)

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide the requests one after the other and commit their changes together."""
        with self._writing, self._failures(), ExitStack() as turn:
            self._require_in_place()
            turn.enter_context(self._file_lock)
            outcomes = self._committed(requests)
            with self._failures(committing=True):
                turn.close()
            return outcomes

    def _committed(self, requests: Sequence[Request]) -> list[Outcome]:
        try:
            if (
                self._writer.in_transaction
            ):  # an earlier commit was interrupted before it could do this itself
                self._writer.execute("ROLLBACK")
            self._writer.execute("BEGIN IMMEDIATE")
            batch = Batch(self._stored)
            outcomes = batch.decide_all(requests)
            if batch.records:
                self._stored.write(batch)
                for root in batch.ends:
                    self._record.reserve(root)
                with self._failures(committing=True):
                    self._writer.execute("COMMIT")
                    self._acknowledge(batch.ends)
            return outcomes
        finally:
            if self._writer.in_transaction:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")

    def _acknowledge(self, heads: Mapping[str, Head]) -> None:
        """Record what was committed: it is on disk, if the log still has a name, where the next one looks for it."""
        if not os.fstat(self._log).st_nlink:
            raise self._misplaced(uncertain=True)
        if (log := driver.log_of(self._log)) != self._known_log:
            self._known_log = log
            if not self._record.is_beside(log):
                root = next(iter(heads))
                self._record.begin_log(log, root, self._record.claim(root))
        for root, head in heads.items():
            self._record.advance(root, head)

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        with self._failures():
            self._require_in_place()
            with transaction(self._pool) as rows:
                (version,) = rows.row(tables.LATEST) or (0,)
                tables.require_known(version, url=self.url)
                yield LedgerTables(rows, inspect=self._file.damage)

    def close(self) -> None:
        if self._is_own_process:
            with self._writing:
                super().close()
                self._opened.close()

    def _require_in_place(self) -> None:
        """Raise StoreError unless this is the file, and nothing is broken."""
        if self._stopped is None and not driver.are_in_place(self._files):
            # Where another thread closed the ledger meanwhile, the files went with it, and it says so.
            self._stopped = self._stopped or self._misplaced(uncertain=False)
        self._require_usable()

    def _misplaced(self, *, uncertain: bool) -> StoreError:
        what = (
            "the file, or one of those beside it, was moved, replaced or deleted while it was open"
        )
        return StoreError(
            self.url, what, "Nothing more is written; open the ledger again", uncertain=uncertain
        )

    @contextmanager
    def _failures(self, *, committing: bool = False) -> Generator[None]:
        """Turn what the driver raises into StoreError; stop for good where the disk cannot be relied on."""
        try:
            with driver.failures(self.url, committing=committing):
                yield
        except LossError as error:
            self._stopped = self._file.lost(f"what was acknowledged is missing: {error}")
            raise self._stopped from None
        except StoreError as error:
            if driver.is_lasting(error):
                self._stopped = error
            raise


_NO_SYNC = (errno.EROFS, errno.EINVAL, errno.EACCES, errno.EPERM)
"""What a file system says that has nothing to sync, or of a folder that may not be read."""


class SQLiteReader(Store):
    """A ledger in one file that is opened for reading: nothing is written, and no file is made.

    Args:
        path: The file.

    Raises:
        StoreError: The file cannot be read, or lacks what was acknowledged.
    """

    is_forkable = True

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), str(path))
        with driver.failures(self.url):
            named, path = Path(os.path.abspath(path)), path.resolve()
            driver.require_place(path, create=False, writing=False)
            self._names = [
                (str(each), driver.identity(each)) for each in dict.fromkeys((path, named))
            ]
            try:
                settle(path)  # nobody is told of an entry that a power loss would take away
            except OSError as error:
                if error.errno not in _NO_SYNC:
                    raise
            self._file = CheckedFile(path, self.url, driver.pool_of(path, reading=True))
            tables.require_readable(self._file.state()[1], url=self.url)

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        self._require_usable()
        with driver.failures(self.url):
            if not driver.are_in_place(self._names):
                raise StoreError(
                    self.url, "the file was moved, replaced or deleted", "Open the ledger again"
                )
            before = _stamp(self._file.path)
            with transaction(self._file.pool) as rows:
                yield LedgerTables(rows, inspect=self._file.damage)
                if isinstance(rows.connection, FrozenConnection) and before != _stamp(
                    self._file.path
                ):
                    raise StoreError(
                        self.url, "the file was written while it was read", "Ask again"
                    )

    def close(self) -> None:
        super().close()
        self._file.pool.close()


def _stamp(path: Path) -> tuple[int, int, int]:
    """The size of a file and the times of its last changes."""
    found = path.stat()
    return found.st_size, found.st_mtime_ns, found.st_ctime_ns


COLLECTED = 20_000
"""Entries that are written together at the latest."""


class MemoryStore(Store):
    """A SQLite database in memory, with one connection and one lock around it.

    Decisions are collected in a batch, and written when somebody reads, or once it holds `COLLECTED` entries.
    """

    is_forkable = True

    def __init__(self) -> None:
        super().__init__("memory:", None)
        self._connection = sqlite3.connect(
            ":memory:", isolation_level=None, check_same_thread=False
        )
        self._tables = LedgerTables(SQLiteRows(self._connection))
        tables.migrate(self._tables.rows, url=self.url)
        self._batch = Batch(self._tables)
        self._lock = RLock()

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

    def close(self) -> None:
        with self._lock:
            super().close()
            self._connection.close()
