"""Connections to PostgreSQL that keep what they acknowledge: how they are opened, checked, and how they fail."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from dpcompose.errors import DomainError, StoreError
from dpcompose.ledger.postgres_tables import PIN, differences, home

DURABLE: Mapping[str, tuple[str, ...]] = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply"),
    "client_min_messages": ("warning", "notice", "log", "debug1", "debug2", "debug3", "debug4", "debug5"),
}
"""Settings that decide whether an acknowledged commit survives a crash, or the loss of the machine where a standby is
left, and whether a commit that no standby confirmed is told; and the values under which it does."""

SETTINGS = ", ".join(f"current_setting('{name}', true)" for name in DURABLE)

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
        # A transaction locks before it reads, and reads what is committed by then: stricter levels only fail more.
        engine = create_engine(url, pool_size=8, max_overflow=56, pool_timeout=60, isolation_level="READ COMMITTED")
    except (ArgumentError, ValueError, SQLAlchemyError):
        raise DomainError("url", "(not shown)", "postgresql://user@host/database") from None
    where = _shown(url)
    pinned: list[str] = []

    def connected(connection: psycopg.Connection[Any], _record: object) -> None:
        _prepare(connection, where, pinned)

    event.listen(engine, "connect", connected)
    return engine, where


def _shown(url: URL) -> str:
    return URL.create("postgresql", host=url.host, port=url.port, database=url.database).render_as_string()


def _prepare(connection: psycopg.Connection[Any], where: str, pinned: list[str]) -> None:
    """Refuse a server that may lose what it acknowledges; wait for no lock forever, and let nobody wait for us.

    The first connection finds the schema, and it holds for all: no search path leads to other tables.
    """
    (version,) = connection.execute("SELECT version()").fetchone() or ("",)
    connection.execute("SET client_min_messages = warning")
    values = connection.execute(f"SELECT {SETTINGS}".encode()).fetchone() or ()
    # A server that only speaks the protocol may have no such setting; PostgreSQL itself has them all.
    require_durable(values, where, all_known=str(version).startswith("PostgreSQL"))
    # What is set here is not changed any more by the server's configuration.
    connection.execute("SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), false)")
    connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{LOCK_TIMEOUT}'")
    known = bool(pinned)
    if not known and (schema := home(connection)) is not None:
        pinned.append(schema)
    if pinned:
        connection.execute(PIN, pinned)
    if known:
        require_tables(connection, where)
    connection.commit()


def require_durable(values: Sequence[str | None], where: str, *, all_known: bool = False) -> None:
    """Raise StoreError unless these are values of `SETTINGS` under which nothing acknowledged is lost."""
    for (name, safe), value in zip(DURABLE.items(), values, strict=True):
        if value not in safe and (value is not None or all_known):
            raise StoreError(where, f"{name} is {value}: it may lose what it acknowledges", f"Set {name} = {safe[0]}")


def require_tables(connection: psycopg.Connection[Any], where: str) -> None:
    """Raise StoreError unless the tables are such that they keep and show what is written."""
    for problem in differences(connection):
        raise StoreError(where, problem, "Nothing is written to such tables; undo the change, then verify")


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
