"""The store in a SQLite file: one machine, any number of processes and threads."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from time import monotonic, sleep, time_ns
from typing import Any
from weakref import finalize

from sqlalchemy import Connection, Engine, create_engine, event, text
from sqlalchemy.exc import DBAPIError, SQLAlchemyError
from sqlalchemy.pool import QueuePool

from dpcompose.errors import StoreError, TamperedError
from dpcompose.ledger.batch import Batch
from dpcompose.ledger.convoy import Convoy, Outcome
from dpcompose.ledger.decision import Decision, Request
from dpcompose.ledger.driver import HASH, Stored
from dpcompose.ledger.entry import GENESIS, Head
from dpcompose.ledger.head_record import Claim, HeadRecord, LossError, label_of, read_claims, share, write_record
from dpcompose.ledger.migration import STEPS, migrate, require_known, version_of
from dpcompose.ledger.reading import Reading
from dpcompose.ledger.row import Row
from dpcompose.ledger.sqlite_file import (
    BESIDE,
    LASTING,
    beside,
    cause_of,
    code_of,
    connect,
    failure,
    identity,
    is_in_file,
    log_at,
    log_of,
    mark_of,
    may_write,
    require_place,
    settle,
)
from dpcompose.ledger.store import closed
from dpcompose.ledger.turn import Turn
from dpcompose.ledger.verification import verify

LOOK_AGAIN = 1.0
"""Seconds after which a commit looks at the names of all files again."""

COARSEST = 2 * 10**9
"""Nanoseconds: no file system tells the times of changes apart less well than this."""

VERSION = "SELECT coalesce(max(number), 0) FROM migration"
HEAD_AND_VERSION = f"SELECT sequence, hash, ({VERSION}) FROM entry WHERE root = ? ORDER BY sequence DESC LIMIT 1"
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT IN ('sqlite_stat1', 'sqlite_stat4')"


class SQLiteStore:
    """A ledger in one file, in WAL mode with `synchronous=FULL`: what is acknowledged is on disk.

    Args:
        path: The file.
        create: Whether to make it where there is none.

    Raises:
        StoreError: The file cannot be used, or not safely.
    """

    def __init__(self, path: Path, *, create: bool, restored: bool = False) -> None:
        self.where = str(path)
        self._process = os.getpid()
        self._broken: StoreError | None = None
        with self._failures(_Progress()), ExitStack() as opened:
            named, path = Path(os.path.abspath(path)), path.resolve()  # SQLite follows links too
            require_place(path, create=create)
            self._path, self._head_path = path, beside(path, "-head")
            self._turn = Turn(beside(path, "-turn"))
            opened.callback(self._turn.close)
            self._engine = engine_of(path)
            opened.callback(self._engine.dispose)
            is_new = not path.exists() or not path.stat().st_size
            with self._turn if is_new else nullcontext():
                self._writer = connect(path)
            opened.callback(self._writer.close)
            if restored or not self._is_ready():
                self._prepare(create=create, restored=restored)
            settle(path)
            self._record = HeadRecord(self._head_path)
            opened.callback(self._record.close)
            self._log, self._directory = (self._open(each, opened) for each in (beside(path, "-wal"), path.parent))
            self._unchanged_since = 0
            self._known_log = log_of(self._log)
            files = [*(str(beside(path, end)) for end in BESIDE[:3]), str(path), str(named)]
            self._files = [(each, identity(each)) for each in dict.fromkeys(files)]
            self._names = self._files[3:]
            self._looked_at = 0.0
            self._opened = opened.pop_all()
        self._writing = Lock()
        self._stored = _Claimed(_Writer(self._writer), record=self._record, where=self.where)
        self._convoy = Convoy(self._commit)

    def _open(self, path: Path, opened: ExitStack) -> int:
        handle = os.open(path, os.O_RDONLY)
        opened.callback(finalize(self, os.close, handle))
        return handle

    def _is_ready(self) -> bool:
        """Whether the ledger is whole and nothing is to be written before it is used."""
        claims = self._claims()
        with self._engine.connect() as connection, connection.begin():
            version = version_of(connection, where=self.where)
            require_known(version, where=self.where)
            is_marked = connection.exec_driver_sql("PRAGMA user_version").scalar_one() == mark_of(self._path)
            if claims is None and is_marked and not self._head_path.exists():
                raise self._lost(f"its head record {self._head_path.name} is gone, and entries may be gone with it")
            self._require_whole(connection, version, claims or [])
        return claims is not None and version == len(STEPS) and is_marked and may_write(self._head_path)

    def _claims(self) -> list[Claim] | None:
        """What the head record says, read before the ledger is; None if there is no record."""
        for pause in (0.001, 0.01, 0.1):
            with suppress(ValueError):
                return read_claims(self._head_path) if self._head_path.exists() else None
            sleep(pause)  # another process may be writing that sector
        raise self._lost(f"its head record {self._head_path.name} is damaged, and entries may be gone")

    def _require_whole(self, connection: Connection, version: int, claims: Sequence[Claim]) -> None:
        """Raise StoreError if an entry is missing, or the log is none that this file can have."""
        reading = Reading(connection, self._damage)
        missing = list(_missing(connection, claims if version else [], reading.roots))
        missing += [f"all of {claim.label[1:]}" for claim in claims[1:] if claim.head.sequence and not version]
        if missing:
            raise self._lost(f"what was acknowledged is missing: {missing[0]}")
        if version == len(STEPS) and not self._belongs(log_at(self._path), claims):
            try:
                verify(reading, anchor=None, progress=None)
            except TamperedError as error:
                what = f"the file and its log {self._path.name}-wal do not belong together: {error.problems[0]}"
                raise self._lost(what) from error

    def _belongs(self, log: str, claims: Sequence[Claim]) -> bool:
        """Whether a log is known to go on where this file ends; if not, it may, and everything is looked at."""
        if not log:
            return True
        if not claims or claims[0].log != log:
            return False
        root, head = claims[0].label[1:], claims[0].head
        return not head.sequence or is_in_file(self._path, root, head)

    def _lost(self, what: str) -> StoreError:
        remedy = "Put back what is missing; docs/ledger.md, Backup, says how to go on without it"
        return StoreError(self.where, what, remedy)

    def _prepare(self, *, create: bool, restored: bool) -> None:
        """Bring the schema up to date, and give this file a head record of its own."""
        path, record = self._path, self._head_path
        with self._turn, self._engine.connect().execution_options(begin="IMMEDIATE") as connection:
            before = log_at(path)
            with connection.begin():
                if not create and version_of(connection, where=self.where) == 0:
                    raise StoreError(self.where, "there is no ledger in this file", "dpcompose ledger init makes one")
                migrate(connection, where=self.where)
                settle(path)  # what the record claims is on disk, also where a killed process left it
                heads = _heads(Reading(connection, self._damage))
                if restored or not may_write(record):
                    write_record(record, heads, like=path)
                    settle(path)
                connection.exec_driver_sql(f"PRAGMA user_version = {mark_of(path)}")
            if (log := log_at(path)) != before:
                with closing(HeadRecord(record)) as written:
                    written.begin_log(log, *next(iter(heads.items()), ("", Head())))
        share(beside(path, "-turn"), like=path)
        self._writer.execute("PRAGMA wal_checkpoint").fetchall()  # the mark is in the file, whatever befalls the log

    def transact(self, request: Request) -> Decision:
        self._require_own_process()
        return self._convoy.submit(request)

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide the requests one after the other and commit their changes together."""
        progress = _Progress()
        with self._writing, self._failures(progress):
            self._require_in_place()
            with self._turn:
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
                for root in batch.ends:
                    self._record.reserve(root)
                progress.committing = True
                self._writer.execute("COMMIT")
                self._acknowledge(batch.ends)
            return outcomes
        finally:
            if self._writer.in_transaction:
                with suppress(sqlite3.Error):
                    self._writer.execute("ROLLBACK")

    def _acknowledge(self, heads: Mapping[str, Head]) -> None:
        """Record what was committed: it is on disk, if the log still has a name, where the next one looks for it."""
        if not self._log_has_name():
            raise self._misplaced(uncertain=True)
        if (log := log_of(self._log)) != self._known_log:
            self._known_log = log
            if not self._record.is_beside(log):
                root = next(iter(heads))
                self._record.begin_log(log, root, self._record.claim(root))
        for root, head in heads.items():
            self._record.advance(root, head)

    def _log_has_name(self) -> bool:
        """Whether the log is still in a directory.

        A file whose times were read gets new ones with its next write, which costs as much as a tenth of a commit. So
        the log is asked only if its directory has changed. A change may carry the time of one that came shortly
        before it: the directory is believed once its last change is old.
        """
        changed = os.fstat(self._directory).st_ctime_ns
        if changed == self._unchanged_since:
            return True
        if not os.fstat(self._log).st_nlink:
            return False
        if time_ns() - changed > COARSEST:
            self._unchanged_since = changed
        return True

    @contextmanager
    def snapshot(self) -> Generator[Reading]:
        with self._failures(_Progress()):
            self._require_usable()
            with self._engine.connect() as connection:
                with connection.begin():
                    driver: Any = connection.connection.driver_connection
                    require_known(driver.execute(VERSION).fetchone()[0], where=self.where)
                    yield Reading(connection, self._damage)
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
        self._require_in_place()

    def _require_in_place(self) -> None:
        if self._broken is None and not self._is_in_place():
            self._broken = self._misplaced(uncertain=False)
        if self._broken is not None:
            raise self._broken

    def _misplaced(self, *, uncertain: bool) -> StoreError:
        what = "the file, or one of those beside it, was moved, replaced or deleted while it was open"
        return StoreError(self.where, what, "Nothing more is written; open the ledger again", uncertain=uncertain)

    def _require_own_process(self) -> None:
        if os.getpid() != self._process:
            raise StoreError(self.where, "was opened in another process", "Open the ledger again after a fork")

    def _is_in_place(self) -> bool:
        """Whether the names lead to the files that are open: the file itself every time, the others once a second."""
        now = monotonic()
        if now - self._looked_at < LOOK_AGAIN:
            return _are_in_place(self._names)
        self._looked_at = now
        return _are_in_place(self._files)

    def _damage(self, connection: Connection) -> Iterator[str]:
        """What the file itself shows, and what the head record says that the ledger does not hold."""
        claims = self._claims() or []
        with self._engine.connect() as later, later.begin():  # begun after the record was read
            yield from _missing(later, claims, Reading(later, self._damage).roots)
        yield from _damage(connection)

    @contextmanager
    def _failures(self, progress: _Progress) -> Generator[None]:
        """Turn what the driver raises into StoreError; stop for good where the disk cannot be relied on."""
        try:
            yield
        except LossError as error:
            self._broken = self._lost(f"what was acknowledged is missing: {error}")
            raise self._broken from None
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


@dataclass
class _Claimed(Stored):
    """What is stored, held against the head record: nothing is added to a chain that has lost its end."""

    record: HeadRecord = field(kw_only=True)
    where: str = field(kw_only=True)

    def head(self, root: str) -> Head:
        found, claimed, kept = self._last(root), self.record.claim(root), self.known[root]
        if not kept.is_at(found):
            kept.head = found
        if claimed is found or claimed == found:
            return found
        if what := Claim(label_of(root), claimed).missing(self._hash, lambda: [root]):
            raise LossError(what)
        return found

    def _last(self, root: str) -> Head:
        """The last entry; and the schema is still one that we know, which another program may have renewed."""
        row = self.driver.row(HEAD_AND_VERSION, (root,))
        sequence, hash, version = row or (0, GENESIS, (self.driver.row(VERSION, ()) or (0,))[0])
        if version != len(STEPS):
            require_known(version, where=self.where)
        head = self.known[root].head  # mostly that which was written here before
        return head if (head.sequence, head.hash) == (sequence, hash) else Head(sequence, hash)

    def _hash(self, root: str, sequence: int) -> str | None:
        row = self.driver.row(HASH, (root, sequence))
        return None if row is None else row[0]


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


def _are_in_place(files: Sequence[tuple[str, tuple[int, int]]]) -> bool:
    """Whether these names still lead to these files; what is written to others is written nowhere."""
    try:
        for path, found in files:
            if os.stat(path)[1:3] != found:
                return False
    except FileNotFoundError:
        return False
    return True


def _heads(reading: Reading) -> dict[str, Head]:
    try:
        return {root: reading.head(root) for root in reading.roots()}
    except TypeError as error:  # other things than text where names are
        raise TamperedError([f"the names of top-level scopes cannot be read ({error})"]) from error


def _missing(connection: Connection, claims: Sequence[Claim], roots: Callable[[], list[str]]) -> Iterator[str]:
    """What a head record claims and the ledger does not hold."""

    def entries(root: str, sequence: int) -> str | None:
        return connection.exec_driver_sql(HASH, (root, sequence)).scalar()

    yield from (what for claim in claims[1:] if (what := claim.missing(entries, roots)))


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
