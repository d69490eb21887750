"""Connections to PostgreSQL that keep what they acknowledge, and tables that are as we made them."""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psycopg
from sqlalchemy import URL, Engine, Table, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, DBAPIError, SQLAlchemyError

from dpcompose.errors import DomainError, StoreError
from dpcompose.ledger.schema import TABLES

PIN = "SELECT set_config('search_path', quote_ident(%s) || ', pg_temp', false)"
"""One schema, and temporary tables last: nothing of the same name comes before ours."""

_HOME = (
    "SELECT coalesce((SELECT nspname FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
    "WHERE c.oid = to_regclass('entry')), current_schema())"
)
_TABLE = (
    "SELECT c.oid, relkind::text, relpersistence::text, relrowsecurity, "
    "EXISTS (SELECT 1 FROM pg_rewrite WHERE ev_class = c.oid), "
    "EXISTS (SELECT 1 FROM pg_trigger WHERE tgrelid = c.oid AND NOT tgisinternal), "
    "EXISTS (SELECT 1 FROM pg_inherits WHERE inhrelid = c.oid OR inhparent = c.oid) "
    "FROM pg_class c WHERE c.oid = to_regclass(%s)"
)
_COLUMNS = (
    "SELECT attname, format_type(atttypid, atttypmod), attnotnull, attgenerated = '' AND attcollation = typcollation "
    "FROM pg_attribute JOIN pg_type t ON t.oid = atttypid WHERE attrelid = %s AND attnum > 0 AND NOT attisdropped"
)
_UNIQUE = (
    "SELECT (SELECT string_agg(attname, ', ' ORDER BY place) FROM generate_series(0, indnkeyatts - 1) AS place "
    "JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[place]), pg_get_expr(indpred, indrelid) "
    "FROM pg_index WHERE indrelid = %s AND indisunique AND indisvalid AND indisready AND indimmediate "
    "AND indexprs IS NULL"
)
_TYPES = {"INTEGER": "integer", "BIGINT": "bigint", "TEXT": "text"}


def home(connection: psycopg.Connection[Any]) -> str | None:
    """The schema whose tables an unqualified name means; where there is no ledger, the one where it would be made."""
    (schema,) = connection.execute(_HOME).fetchone() or (None,)
    return schema


def differences(connection: psycopg.Connection[Any]) -> Iterator[str]:
    """Find differences that would lose rows, hide them, change them or let one in twice."""
    for table in TABLES.sorted_tables:
        found = connection.execute(_TABLE, (table.name,)).fetchone()
        if found is None:
            yield f"the table {table.name} is missing"
            continue
        number, kind, persistence, *added = found
        if kind != "r":
            yield f"{table.name} is no plain table"
        if persistence != "p":
            yield f"the table {table.name} is not logged: a crash empties it"
        for there, what in zip(
            added, ("row security", "a rule", "a trigger", "a parent or children"), strict=True
        ):
            if there:
                yield f"the table {table.name} has {what}, which dpcompose does not make"
        if set(connection.execute(_COLUMNS, (number,))) != _columns(table):
            yield f"the columns of {table.name} are not as dpcompose makes them"
        unique = set(connection.execute(_UNIQUE, (number,)))
        for columns, condition in sorted(_unique(table) - unique, key=str):
            suffix = f" where {condition}" if condition else ""
            yield f"no index keeps ({columns}) of {table.name} unique{suffix}"


def _columns(table: Table) -> set[tuple[Any, ...]]:
    return {
        (column.name, _TYPES[str(column.type)], not column.nullable, True)
        for column in table.columns
    }


def _unique(table: Table) -> set[tuple[str, str | None]]:
    """The columns of the primary key, and of our indexes with their condition."""
    found: set[tuple[str, str | None]] = {
        (", ".join(column.name for column in table.primary_key), None)
    }
    for index in table.indexes:
        condition = f"({index.dialect_options['postgresql']['where']})"
        found.add((", ".join(column.name for column in index.columns), condition))
    return found


DURABLE: Mapping[str, tuple[str, ...]] = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply"),
    "client_min_messages": (
        "warning",
        "notice",
        "log",
        "debug1",
        "debug2",
        "debug3",
        "debug4",
        "debug5",
    ),
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


def engine_of(given: str, *, reading: bool = False) -> tuple[Engine, str]:
    """An engine whose connections are all checked, and its name for messages, without a password.

    If they are for reading alone, nothing is asked of the server's settings, and every write is refused by it.

    Raises:
        DomainError: The address is none.
    """
    try:
        address = make_url(given)
        # A transaction locks before it reads, and reads what is committed by then: stricter levels only fail more.
        engine = create_engine(
            address, pool_size=8, max_overflow=56, pool_timeout=60, isolation_level="READ COMMITTED"
        )
    except (ArgumentError, ValueError, SQLAlchemyError):
        raise DomainError("url", "(not shown)", "postgresql://user@host/database") from None
    url = _shown(address)
    pinned: list[str] = []

    def connected(connection: psycopg.Connection[Any], _record: object) -> None:
        if reading:
            connection.execute("SET default_transaction_read_only = on")
        else:
            _require_safe(connection, url)
        _prepare(connection, url, pinned)

    event.listen(engine, "connect", connected)
    return engine, url


def _shown(address: URL) -> str:
    return URL.create(
        "postgresql", host=address.host, port=address.port, database=address.database
    ).render_as_string()


def _require_safe(connection: psycopg.Connection[Any], url: str) -> None:
    """Refuse a server that may lose what it acknowledges."""
    (version,) = connection.execute("SELECT version()").fetchone() or ("",)
    connection.execute("SET client_min_messages = warning")
    values = connection.execute(f"SELECT {SETTINGS}".encode()).fetchone() or ()
    # A server that only speaks the protocol may have no such setting; PostgreSQL itself has them all.
    require_durable(values, url, all_known=str(version).startswith("PostgreSQL"))
    # What is set here is not changed any more by the server's configuration.
    connection.execute(
        "SELECT set_config('synchronous_commit', current_setting('synchronous_commit'), false)"
    )


def _prepare(connection: psycopg.Connection[Any], url: str, pinned: list[str]) -> None:
    """Wait for no lock forever, and let nobody wait for us.

    The first connection finds the schema, and it holds for all: no search path leads to other tables.
    """
    connection.execute(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    connection.execute(f"SET idle_in_transaction_session_timeout = '{LOCK_TIMEOUT}'")
    known = bool(pinned)
    if not known and (schema := home(connection)) is not None:
        pinned.append(schema)
    if pinned:
        connection.execute(PIN, pinned)
    if known:
        require_tables(connection, url)
    connection.commit()


def require_durable(values: Sequence[str | None], url: str, *, all_known: bool = False) -> None:
    """Raise StoreError unless these are values of `SETTINGS` under which nothing acknowledged is lost."""
    for (name, safe), value in zip(DURABLE.items(), values, strict=True):
        if value not in safe and (value is not None or all_known):
            raise StoreError(
                url,
                f"{name} is {value}: it may lose what it acknowledges",
                f"Set {name} = {safe[0]}",
            )


def commit(connection: psycopg.Connection[Any], url: str) -> None:
    """Commit, and make sure that whoever must confirm it did.

    Raises:
        StoreError: The server committed with a warning: it was done there, and no standby confirmed it.
    """
    warnings: list[str] = []

    def noted(notice: psycopg.errors.Diagnostic) -> None:  # it can be read only now
        if notice.severity_nonlocalized in ("WARNING", None):
            warnings.append(str(notice.message_primary))

    connection.add_notice_handler(noted)
    try:
        connection.commit()
    finally:
        connection.remove_notice_handler(noted)
    if warnings:
        what = f"the server committed with a warning: {warnings[0]}"
        raise StoreError(url, what, "Ask again with the same key", uncertain=True)


def require_tables(connection: psycopg.Connection[Any], url: str) -> None:
    """Raise StoreError unless the tables are such that they keep and show what is written."""
    for problem in differences(connection):
        raise StoreError(
            url, problem, "Nothing is written to such tables; undo the change, then verify"
        )


def failure(url: str, error: psycopg.Error, *, uncertain: bool) -> StoreError:
    """The error in words; nothing of the connection string is repeated but what the server itself says of it."""
    cause = _CAUSES.get(error.sqlstate or "")
    if cause is not None:
        return StoreError(url, *cause)
    if (
        error.sqlstate is None and not uncertain and "FATAL:" in str(error)
    ):  # it answered, and let nobody in
        said = str(error).rpartition("FATAL:")[2].strip().partition("\n")[0]
        remedy = "Check the address: the database has to be there, and open to this user"
        return StoreError(url, f"the server refuses the connection: {said}", remedy)
    if error.sqlstate is None or error.sqlstate.startswith(("08", "57P")):
        remedy = (
            "Ask again with the same key"
            if uncertain
            else "Check that the server runs, then ask again"
        )
        return StoreError(
            url,
            "the server cannot be reached, or ended the connection",
            remedy,
            uncertain=uncertain,
        )
    return StoreError(url, f"PostgreSQL says: {error.diag.message_primary}", uncertain=uncertain)


@contextmanager
def failures(url: str) -> Generator[None]:
    """Turn what the driver raises into StoreError."""
    try:
        yield
    except psycopg.Error as error:
        raise failure(url, error, uncertain=False) from error
    except DBAPIError as error:
        if isinstance(error.orig, psycopg.Error):
            raise failure(url, error.orig, uncertain=False) from error
        raise StoreError(url, str(error.orig)) from error
    except SQLAlchemyError as error:
        raise StoreError(url, str(error)) from error
