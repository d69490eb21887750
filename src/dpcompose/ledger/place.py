"""Where a ledger is kept: from a URL to its store."""

from __future__ import annotations

import re
from pathlib import Path

from dpcompose.errors import DomainError, MissingExtraError
from dpcompose.ledger.memory import MemoryStore
from dpcompose.ledger.store import Store

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):", re.ASCII)
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f]")
"""What a terminal that shows the name would obey."""
_DOMAIN = "a file, sqlite:///file, postgresql://user@host/database or memory:"


def open_store(url: str, *, create: bool, restored: bool = False) -> Store:
    """The store at `url`; SQL is imported only now, so that `import dpcompose` stays light."""
    # SQLite would make ":memory:" at the end of a URL a file.
    if not url or _CONTROL.search(url) or not _encodable(url) or url.endswith(":memory:"):
        raise DomainError("url", url, _DOMAIN)
    scheme = match[1] if (match := _SCHEME.match(url)) else ""
    if url == "memory:":
        return MemoryStore()
    if scheme in ("postgresql", "postgres", "postgresql+psycopg"):
        return _postgres(url.partition(":")[2], create=create)
    if scheme == "sqlite" and url.startswith("sqlite:///") and len(url) > len("sqlite:///"):
        return _sqlite(url.removeprefix("sqlite:///"), create=create, restored=restored)
    if "://" in url or scheme in ("sqlite", "memory"):
        raise DomainError("url", url, _DOMAIN)
    return _sqlite(url, create=create, restored=restored)


def _encodable(url: str) -> bool:
    try:
        return bool(url.encode())
    except UnicodeEncodeError:
        return False


def _sqlite(path: str, *, create: bool, restored: bool) -> Store:
    from dpcompose.ledger.sqlite import SQLiteStore

    return SQLiteStore(Path(path), create=create, restored=restored)


def _postgres(rest: str, *, create: bool) -> Store:
    try:
        import psycopg  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ImportError:
        raise MissingExtraError("A ledger on PostgreSQL", "postgres") from None
    from dpcompose.ledger.postgres import PostgresStore

    return PostgresStore(f"postgresql+psycopg:{rest}", create=create)
