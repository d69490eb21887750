"""A SQLite file that keeps what it acknowledges: how it is opened, checked, and how it fails."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from zlib import crc32

from dpcompose.errors import StoreError
from dpcompose.ledger.driver import HASH
from dpcompose.ledger.entry import Head
from dpcompose.ledger.migration import require_own

PATIENCE = 60.0
"""Seconds to wait for the lock of a program that takes no turns."""

SETTINGS: Mapping[str, str | int] = {
    "journal_mode": "wal",  # with DELETE, FULL loses the last commits at a power loss: the directory is not synced
    "synchronous": 2,  # FULL: with NORMAL, commits in WAL mode are not synced
    "fullfsync": 1,  # where fsync leaves data in the drive's cache (macOS)
    "checkpoint_fullfsync": 1,
    "trusted_schema": 0,
    "cache_size": -65536,
}
"""Set on every connection and read back before it writes."""

_CAUSES: Mapping[int, tuple[str, str]] = {
    sqlite3.SQLITE_FULL: ("the disk is full", "Nothing was changed; free some space and ask again"),
    sqlite3.SQLITE_READONLY: ("cannot be written", "Check the permissions of the file and of its directory"),
    sqlite3.SQLITE_PERM: ("cannot be opened", "Check the permissions of the file and of its directory"),
    sqlite3.SQLITE_CANTOPEN: ("cannot be opened", "Check the permissions of the file and of its directory"),
    sqlite3.SQLITE_BUSY: ("another program keeps the file locked", "Ask again when it is done"),
    sqlite3.SQLITE_IOERR: ("the disk reports an error", "Nothing more is written; check the disk, then open it again"),
    sqlite3.SQLITE_CORRUPT: ("the file is damaged", "Restore it; docs/ledger.md says how no budget is given back"),
    sqlite3.SQLITE_NOTADB: ("this file is no SQLite database", "Choose another file"),
}
BESIDE = ("-wal", "-shm", "-head", "-turn", "-journal")
"""How the names of the files end that lie beside a ledger and belong to it."""

_DATABASE = b"SQLite format 3\0"
_LOGS = (b"\x37\x7f\x06\x82", b"\x37\x7f\x06\x83")

LASTING = {sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
"""After these the store stops until it is opened again: what the disk holds is not known."""


def code_of(error: sqlite3.Error) -> int:
    """The primary result code of SQLite, 0 where the driver itself failed."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF


def cause_of(error: BaseException) -> str:
    """What the system says, without the path, which the message names already."""
    return f"cannot be used: {error.strerror}" if isinstance(error, OSError) and error.strerror else str(error)


def failure(where: str, error: sqlite3.Error, *, uncertain: bool) -> StoreError:
    """What happened, in words."""
    what, remedy = _CAUSES.get(code_of(error), (f"SQLite says: {error}", ""))
    return StoreError(where, what, remedy, uncertain=uncertain and code_of(error) != sqlite3.SQLITE_FULL)


def require_place(path: Path, *, create: bool) -> None:
    """Raise StoreError unless there is a file at `path`, or may be one."""
    if path.is_dir():
        raise StoreError(str(path), "is a directory", "Give the name of a file in it")
    if not path.absolute().parent.is_dir():
        raise StoreError(str(path), "is in a directory that does not exist", "Create the directory first")
    if not path.exists():
        if not create:
            raise StoreError(str(path), "there is no such ledger", "dpcompose ledger init makes one")
        return
    if (names := path.stat().st_nlink) > 1:
        remedy = "Keep one name; symbolic links are followed"
        raise StoreError(
            str(path), f"this file has {names} names (hard links), and each would have its own log", remedy
        )
    # SQLite would open the file for reading, and begin without an error where it cannot write.
    if not may_write(path):
        raise StoreError(str(path), *_CAUSES[sqlite3.SQLITE_READONLY])


def is_database(path: Path) -> bool:
    """Whether this is a SQLite database, or the log of one; a file that cannot be read is none."""
    with suppress(OSError), path.open("rb") as handle:
        begin = handle.read(len(_DATABASE))
        return begin == _DATABASE or begin[:4] in _LOGS
    return False


def is_of_database(path: Path) -> bool:
    """Whether this name, links followed, is that of a file which lies beside a SQLite database and belongs to it."""
    name = path.resolve()
    ends = [end for end in BESIDE if name.name.endswith(end) and name.name != end]
    return any(is_database(name.with_name(name.name.removesuffix(end))) for end in ends)


def may_write(path: Path) -> bool:
    """Whether there is such a file, and we may write it."""
    return os.access(path, os.W_OK, effective_ids=os.access in os.supports_effective_ids)


def identity(path: Path | str) -> tuple[int, int]:
    """Which file this is, whatever its name: its number, and its device."""
    return os.stat(path)[1:3]


def beside(path: Path, end: str) -> Path:
    """The file beside the ledger whose name ends so, one of `BESIDE`."""
    return path.with_name(f"{path.name}{end}")


def mark_of(path: Path) -> int:
    """What a ledger holds that has a head record: the number of its file, so that a copy is not taken for it."""
    return crc32(str(path.stat().st_ino).encode()) >> 1 or 1


def log_of(handle: int) -> str:
    """Which log this is: SQLite numbers it anew whenever it begins to write it over; empty if nothing is in it."""
    return os.pread(handle, 12, 12).hex()


def log_at(path: Path) -> str:
    """`log_of` the log of the ledger at `path`; empty if there is none."""
    with suppress(FileNotFoundError), beside(path, "-wal").open("rb", buffering=0) as handle:
        return log_of(handle.fileno())
    return ""


def is_in_file(path: Path, root: str, head: Head) -> bool:
    """Whether the file holds this entry by itself, its log left aside."""
    with suppress(sqlite3.Error):
        connection = sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        try:
            found = connection.execute(HASH, (root, head.sequence)).fetchone()
            return found is not None and found[0] == head.hash
        finally:
            connection.close()
    return False


def connect(path: Path) -> sqlite3.Connection:
    """A connection with all settings, read back.

    Raises:
        StoreError: The file is another program's database, or a setting cannot be had.
        sqlite3.Error: It cannot be opened.
    """
    connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        _require_own(connection, str(path))
        for name, wanted in SETTINGS.items():
            connection.execute(f"PRAGMA {name} = {wanted}").fetchall()
            found = connection.execute(f"PRAGMA {name}").fetchone()
            if found is None or found[0] != wanted:
                what = f"{name} cannot be set to {wanted}: it is {found and found[0]}"
                raise StoreError(str(path), what, "A ledger needs a local file system that SQLite's WAL mode works on")
    except BaseException:
        connection.close()
        raise
    return connection


def _require_own(connection: sqlite3.Connection, where: str) -> None:
    """A foreign database is left alone, journal mode included."""
    tables = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    require_own({name for (name,) in tables}, where=where)


def settle(path: Path) -> None:
    """Sync the log and the directory: what a killed process wrote is visible now, and must not be lost later."""
    for each in (beside(path, "-wal"), path.absolute().parent):
        with suppress(FileNotFoundError):
            handle = os.open(each, os.O_RDONLY)
            try:
                os.fsync(handle)
            finally:
                os.close(handle)
