"""Where a ledger is: the file, database or memory that an address names, and the store there."""

from __future__ import annotations

import re
from pathlib import Path

from dpcompose.errors import DomainError, MissingExtraError
from dpcompose.ledger.store import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):", re.ASCII)
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
"""Characters that a terminal would obey when it shows the name."""
_DOMAIN = "a file, sqlite:///file, postgresql://user@host/database or memory:"


def open_store(url: str, *, create: bool, restored: bool = False, read_only: bool = False) -> Store:
    """The store at `url`; SQL is imported only now, so that `import dpcompose` stays light."""
    if read_only and (restored or url == "memory:"):
        raise DomainError(
            "read_only",
            read_only,
            "False for a ledger in memory, or one whose head record begins anew",
        )
    path = file_of(url)
    if url == "memory:":
        from dpcompose.ledger.memory import MemoryStore

        return MemoryStore()
    if path is None:
        return _postgres(address_of(url), create=create, read_only=read_only)
    return _sqlite(path, create=create, restored=restored, read_only=read_only)


def file_of(url: str) -> Path | None:
    """The file that is named; None for memory and for a database.

    Raises:
        DomainError: It is no name of a ledger.
    """
    # SQLite would make ":memory:" at the end of a URL a file.
    if not url or _CONTROL.search(url) or not _encodable(url) or url.endswith(":memory:"):
        raise DomainError("url", url, _DOMAIN)
    scheme = match[1] if (match := _SCHEME.match(url)) else ""
    if url == "memory:" or scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return None
    if scheme == "sqlite" and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return Path(url.removeprefix("sqlite:///"))
    if "://" in url or scheme in ("sqlite", "memory"):
        raise DomainError("url", url, _DOMAIN)
    return Path(url)


def _encodable(url: str) -> bool:
    try:
        return bool(url.encode())
    except UnicodeEncodeError:
        return False


def _sqlite(path: Path, *, create: bool, restored: bool, read_only: bool) -> Store:
    from dpcompose.ledger.sqlite import SQLiteStore
    from dpcompose.ledger.sqlite_reading import SQLiteReader

    if read_only:
        return SQLiteReader(path)
    return SQLiteStore(path, create=create, restored=restored)


def _postgres(url: str, *, create: bool, read_only: bool) -> Store:
    try:
        import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingExtraError("A ledger on PostgreSQL", "postgres") from None
    from dpcompose.ledger.postgres import PostgresReader, PostgresStore

    return PostgresReader(url) if read_only else PostgresStore(url, create=create)


def address_of(url: str) -> str:
    """The address of a database as its driver reads it."""
    return f"postgresql:{url.partition(':')[2]}"
