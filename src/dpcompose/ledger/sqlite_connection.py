"""A SQLite file that keeps what it acknowledges: how it is opened, checked, and how it fails."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock, Thread
from typing import Any, ClassVar
from zlib import crc32

from dpcompose.errors import StoreError
from dpcompose.ledger.entry import Head
from dpcompose.ledger.store import Pool
from dpcompose.ledger.tables import LATEST, LedgerTables, Row, Rows, migrate, require_own

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None

WAITER = "dpcompose-turn"
"""The name of a thread that waits for a turn."""
LOCK_PATIENCE = 10.0
"""Seconds to wait for a turn; then somebody who is stopped, or never writes, holds it, and we go without."""

PATIENCE = 60.0
"""Seconds to wait for the lock of a program that takes no turns."""

_OPTIONS: Mapping[str, Any] = {
    "timeout": PATIENCE,
    "isolation_level": None,
    "check_same_thread": False,
}
"""Of every connection."""

IDLE, MOST = 5, 1000
"""Connections for reading that stay open, and that are in use at once."""

SETTINGS: Mapping[str, str | int] = {
    "journal_mode": "wal",  # with DELETE, FULL loses the last commits at a power loss: the directory is not synced
    "synchronous": 2,  # FULL: with NORMAL, commits in WAL mode are not synced
    "fullfsync": 1,  # where fsync leaves data in the drive's cache (macOS)
    "checkpoint_fullfsync": 1,
    "trusted_schema": 0,
    "cache_size": -65536,
}
"""Set on every connection and read back before it writes."""

_PERMISSIONS = "Check the permissions of the file and of its directory"
_CAUSES: Mapping[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Nothing was changed; free some space and ask again"),
    sqlite3.SQLITE_READONLY: ("cannot be written", _PERMISSIONS),
    sqlite3.SQLITE_PERM: ("cannot be opened", _PERMISSIONS),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", _PERMISSIONS),
    sqlite3.SQLITE_BUSY: ("another program keeps the file locked", "Ask again when it is done"),
    sqlite3.SQLITE_IOERR: (
        "the disk reports an error",
        "Nothing more is written; check the disk, then open it again",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the file is damaged",
        "Restore it; docs/ledger.md says how no budget is given back",
    ),
    sqlite3.SQLITE_NOTADB: ("this file is no SQLite database", "Choose another file"),
}
BESIDE = ("-wal", "-shm", "-head", "-turn", "-journal")
"""How the names of the files end that lie beside a ledger and belong to it."""

_DATABASE = b"SQLite format 3\0"
_OBJECTS = "SELECT type, name, tbl_name, sql FROM sqlite_master WHERE name NOT IN ('sqlite_stat1', 'sqlite_stat4')"
_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT GLOB 'sqlite_*'"
_LOGS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

_LASTING = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


def is_lasting(error: StoreError) -> bool:
    """Whether the store must stop until it is opened again, because it is uncertain what the disk holds."""
    return _code(error.__cause__) in _LASTING


@contextmanager
def failures(url: str, *, committing: bool = False) -> Generator[None]:
    """Turn what the driver raises into StoreError, without the path, which the message names already."""
    try:
        yield
    except (sqlite3.Error, OSError, UnicodeDecodeError) as error:
        code, what, remedy = _code(error), str(error), "Check the file and its directory"
        if isinstance(error, OSError):
            what = f"cannot be used: {error.strerror}" if error.strerror else what
        else:
            what, remedy = _CAUSES.get(code, (f"SQLite says: {what}", ""))
        uncertain = committing and code != sqlite3.SQLITE_FULL
        raise StoreError(url, what, remedy, uncertain=uncertain) from error


def _code(error: BaseException | None) -> int:
    """The primary result code of SQLite, 0 where the driver itself failed."""
    match error:
        case sqlite3.Error(sqlite_errorcode=code):
            return code & 0xFF
        case UnicodeDecodeError():  # text that is none passes the driver as it is: the file is damaged
            return sqlite3.SQLITE_CORRUPT
        case _:
            return 0


def require_place(path: Path, *, create: bool, writing: bool = True) -> None:
    """Raise StoreError unless there is a file at `path` that can be read, or written if `writing`, or may be one."""
    if path.is_dir():
        raise StoreError(str(path), "is a directory", "Give the name of a file in it")
    if not path.absolute().parent.is_dir():
        raise StoreError(
            str(path), "is in a directory that does not exist", "Create the directory first"
        )
    if not path.exists():
        if not create:
            raise StoreError(
                str(path), "there is no such ledger", "dpcompose ledger init makes one"
            )
        return
    if (names := path.stat().st_nlink) > 1:
        remedy = "Keep one name; symbolic links are followed"
        raise StoreError(
            str(path),
            f"this file has {names} names (hard links), and each would have its own log",
            remedy,
        )
    # SQLite would open the file for reading, and begin without an error where it cannot write.
    if writing and not may_write(path):
        raise StoreError(str(path), *_CAUSES[sqlite3.SQLITE_READONLY])


def is_of_database(path: Path) -> bool:
    """Whether this is a SQLite database, the log of one, or by its name, links followed, a file beside one."""
    name = path.resolve()
    ends = [end for end in BESIDE if name.name.endswith(end) and name.name != end]
    owners = [name.with_name(name.name.removesuffix(end)) for end in ends]
    return any(_is_database(each) for each in (path, *owners))


def _is_database(path: Path) -> bool:
    """Whether this is a SQLite database, or the log of one; a file that cannot be read is none."""
    with suppress(OSError), path.open("rb") as handle:
        begin = handle.read(len(_DATABASE))
        return begin == _DATABASE or begin[:4] in _LOGS
    return False


def may_write(path: Path) -> bool:
    """Whether there is such a file, and we may write it."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def identity(path: Path | str) -> tuple[int, int]:
    """Which file this is, whatever its name: its number, and its device."""
    return os.stat(path)[1:3]


def sidecar(path: Path, end: str) -> Path:
    """The file beside the ledger whose name ends so, one of `BESIDE`."""
    return path.with_name(f"{path.name}{end}")


def mark_of(path: Path) -> int:
    """The mark of a ledger that has a head record: the number of its file, so that a copy is not taken for it."""
    return crc32(str(path.stat().st_ino).encode()) >> 1 or 1


def log_of(handle: int) -> str:
    """Which log this is: SQLite numbers it anew whenever it begins to write it over; empty if nothing is in it."""
    return os.pread(handle, 12, 12).hex()


def log_at(path: Path) -> str:
    """`log_of` the log of the ledger at `path`; empty if there is none."""
    with suppress(FileNotFoundError), sidecar(path, "-wal").open("rb", buffering=0) as handle:
        return log_of(handle.fileno())
    return ""


def is_in_file(path: Path, root: str, head: Head) -> bool:
    """Whether the file holds this entry by itself, its log left aside."""
    address = f"{path.as_uri()}?immutable=1"
    with suppress(sqlite3.Error), closing(sqlite3.connect(address, uri=True)) as connection:
        return LedgerTables(SQLiteRows(connection)).hash(root, head.sequence) == head.hash
    return False


def connect(path: Path) -> sqlite3.Connection:
    """A connection with all settings, read back.

    Raises:
        StoreError: The file is another program's database, or a setting cannot be had.
        sqlite3.Error: It cannot be opened.
    """
    return _set(sqlite3.connect(path, **_OPTIONS), path, tuple(SETTINGS))


def _set(connection: sqlite3.Connection, path: Path, names: Sequence[str]) -> sqlite3.Connection:
    """The connection with these settings, read back; a foreign database is left alone, journal mode included."""
    try:
        require_own(SQLiteRows(connection).tables(), url=str(path))
        for name in names:
            wanted = SETTINGS[name]
            connection.execute(f"PRAGMA {name} = {wanted}").fetchall()
            found = connection.execute(f"PRAGMA {name}").fetchone()
            if found is None or found[0] != wanted:
                what = f"{name} cannot be set to {wanted}: it is {found and found[0]}"
                raise StoreError(
                    str(path),
                    what,
                    "A ledger needs a local file system that SQLite's WAL mode works on",
                )
    except BaseException:
        connection.close()
        raise
    return connection


class FrozenConnection(sqlite3.Connection):
    """A connection to a file that nobody writes: the file is taken as it is, without a lock."""


def connect_reading(path: Path) -> sqlite3.Connection:
    """A connection that writes nothing, neither to the file nor beside it, and makes no file.

    Where the log is empty, everything is in the file itself. SQLite would make a log and an index for it all the same,
    unless it takes the file for one that nobody writes; whether somebody did is looked at afterwards.

    Raises:
        StoreError: The file is another program's database, or its log cannot be read without writing.
    """
    log, made = sidecar(path, "-wal"), sqlite3.Connection
    if not log.exists() or not log.stat().st_size:
        how, made = "immutable=1", FrozenConnection
    elif sidecar(path, "-shm").exists():
        how = "mode=ro&readonly_shm=1"
    else:
        what = (
            f"its log {log.name} has no index beside it ({path.name}-shm), and reading makes none"
        )
        raise StoreError(str(path), what, "Open it for writing once, or copy all its files")
    connection = sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, factory=made, **_OPTIONS)
    return _set(connection, path, ("trusted_schema", "cache_size"))


def settle(path: Path) -> None:
    """Sync the log and the directory: what a killed process wrote is visible now, and must not be lost later."""
    for each in (sidecar(path, "-wal"), path.absolute().parent):
        with suppress(FileNotFoundError):
            handle = os.open(each, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)


@dataclass(frozen=True)
class SQLiteRows:
    """Rows of a file or of memory; the driver keeps its statements prepared."""

    connection: sqlite3.Connection
    by_letter: ClassVar[str] = ""

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        return self.connection.execute(statement, values).fetchone()

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        return self.connection.execute(statement, values).fetchall()

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        return self.connection.executemany(statement, rows).rowcount

    def tables(self) -> set[str]:
        return {name for (name,) in self.run(_TABLES)}

    def broken(self) -> Iterator[str]:
        for (complaint,) in self.run("PRAGMA integrity_check"):
            if complaint != "ok":
                yield f"SQLite: {complaint}"


def pool_of(path: Path, *, reading: bool = False) -> Pool[sqlite3.Connection]:
    """Connections for reads and migrations, with the same settings.

    If they are for reading alone, each transaction has a connection of its own, which finds the log as it is by then.
    """
    opened = connect_reading if reading else connect
    return Pool(str(path), lambda: opened(path), idle=0 if reading else IDLE, most=MOST)


@contextmanager
def transaction(pool: Pool[sqlite3.Connection], begin: str = "DEFERRED") -> Generator[SQLiteRows]:
    """A transaction of its own connection; committed when the block ends, rolled back when it raises."""
    with pool.connection() as connection:
        connection.execute(f"BEGIN {begin}")
        yield SQLiteRows(connection)
        connection.execute("COMMIT")


def are_in_place(files: Sequence[tuple[str, tuple[int, int]]]) -> bool:
    """Whether these names still lead to these files; what is written to others is written nowhere."""
    try:
        for path, found in files:
            if os.stat(path)[1:3] != found:
                return False
    except FileNotFoundError:
        return False
    return True


def damage_of(rows: Rows) -> Iterator[str]:
    """Tables, triggers and views that are not ours, or not as we made them."""
    (version,) = rows.row(LATEST) or (0,)
    with closing(sqlite3.connect(":memory:")) as connection:
        model = SQLiteRows(connection)
        migrate(model, url="model", last=version)
        found, expected = set(rows.run(_OBJECTS)), set(model.run(_OBJECTS))
    for kind, name, *_ in sorted(found ^ expected, key=str):
        yield f"the {kind} {name} is not as dpcompose makes it"


class FileLock:
    """A lock among all processes that use this file, in the order of their requests; held for one transaction.

    Args:
        path: A file of its own. The database itself must not be opened for it: closing it would drop SQLite's locks.
    """

    def __init__(self, path: Path) -> None:
        self._handle: int | None = None
        with suppress(PermissionError):  # then without turns
            self._handle = os.open(
                path, os.O_RDONLY | os.O_CREAT, 0o666
            )  # whoever may read it may wait his turn
        self._waiter: Thread | None = None

    def __enter__(self) -> None:
        """Acquire the lock, and hold it inside the block."""
        if fcntl is None or self._handle is None:
            return
        try:
            try:
                fcntl.flock(self._handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                self._wait(self._handle)
        except BaseException:  # what a signal handler raises while we wait, or just after
            fcntl.flock(self._handle, fcntl.LOCK_UN)
            raise

    def __exit__(self, *_: object) -> None:
        if fcntl is not None and self._handle is not None:
            fcntl.flock(self._handle, fcntl.LOCK_UN)

    def _wait(self, handle: int) -> None:
        """Wait in another thread, because a wait in the kernel has no time limit."""
        if self._waiter is not None and self._waiter.is_alive():
            return  # whoever holds it has held it for too long already
        arrived, given_up = Lock(), Lock()
        arrived.acquire()

        def wait() -> None:
            assert fcntl is not None
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
                arrived.release()
                if given_up.locked():
                    fcntl.flock(handle, fcntl.LOCK_UN)

        self._waiter = Thread(target=wait, name=WAITER, daemon=True)
        try:
            self._waiter.start()
            if not arrived.acquire(timeout=LOCK_PATIENCE):
                given_up.acquire()
        except BaseException:
            given_up.acquire()
            raise
        if not given_up.locked():
            self._waiter = None

    def close(self) -> None:
        """Let go of the file."""
        if self._handle is not None:
            with suppress(OSError):
                os.close(self._handle)
