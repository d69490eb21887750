"""Connections to PostgreSQL that keep what they acknowledge: how they are opened, checked, and how they fail."""

from __future__ import annotations

from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from dpcompose.errors import DomainError, StoreError

DURABLE: Mapping[str, frozenset[str]] = {
    "fsync": frozenset({"on"}),
    "full_page_writes": frozenset({"on"}),
    "synchronous_commit": frozenset({"on", "local", "remote_write", "remote_apply"}),
}
"""Settings without which a crash loses or tears acknowledged commits, and the values that do."""

LOCK_TIMEOUT = "60s"
RETRIED = frozenset({"40001", "40P01", "23505"})
"""Given up in favor of another transaction: serialization, deadlock, and two who open one scope at once."""

_CAUSES: Mapping[str, tuple[str, str]] = {
    "53100": ("the server's disk is full", "Nothing was changed; free some space and ask again"),
    "25006": ("the server takes no writes (a standby?)", "Connect to the primary server"),
    "42501": ("this user may not write here", "Grant the rights, or connect as another user"),
    "55P03": ("another client keeps the scope locked", "Ask again when it is done"),
    "40001": ("too many transactions at once", "Nothing was changed; ask again"),
}


def engine_of(address: str) -> tuple[Engine, str]:
    """An engine whose connections are all checked, and its name for messages, without a password.

    Raises:
        DomainError: The address is none.
    """
    try:
        url = make_url(address)
        engine = create_engine(url, pool_size=8, max_overflow=56, pool_timeout=60)
    except (ArgumentError, ValueError, SQLAlchemyError):
        raise DomainError("url", "(not shown)", "postgresql://user@host/database") from None
    where = _shown(url)

    def connected(connection: psycopg.Connection[Any], _record: object) -> None:
        _prepare(connection, where)

    event.listen(engine, "connect", connected)
    return engine, where


def _shown(url: URL) -> str:
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()


def _prepare(connection: psycopg.Connection[Any], where: str) -> None:
    """Refuse a server that may lose what it acknowledges; wait for no lock forever, and let nobody wait for us."""
    (version,) = connection.execute("SELECT version()").fetchone() or ("",)
    for name, safe in DURABLE.items():
        (value,) = connection.execute("SELECT current_setting(%s, true)", (name,)).fetchone() or (None,)
        # A server that only speaks the protocol may have no such setting; PostgreSQL itself has all three.
        if value not in safe and (value is not None or str(version).startswith("PostgreSQL")):
            raise StoreError(where, f"{name} is {value}: it may lose what it acknowledges", f"Set {name} = on")
    connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{LOCK_TIMEOUT}'")
    connection.commit()


def failure(where: str, error: psycopg.Error, *, uncertain: bool) -> StoreError:
    """What happened, in words; nothing of the connection string is repeated."""
    cause = _CAUSES.get(error.sqlstate or "")
    if cause is not None:
        return StoreError(where, *cause)
    if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
        remedy = "Ask again with the same key" if uncertain else "Check that the server runs, then ask again"
        return StoreError(where, "the server cannot be reached, or ended the connection", remedy, uncertain=uncertain)
    return StoreError(where, f"PostgreSQL says: {error.diag.message_primary}", uncertain=uncertain)


@contextmanager
def failures(where: str) -> Generator[None]:
    """Turn what the driver raises into StoreError."""
    try:
        yield
    except psycopg.Error as error:
        raise failure(where, error, uncertain=False) from error
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise failure(where, error.orig, uncertain=False) from error
        raise StoreError(where, str(error.orig)) from error
    except SQLAlchemyError as error:
        raise StoreError(where, str(error)) from error
