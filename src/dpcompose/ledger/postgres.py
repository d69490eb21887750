"""The store on PostgreSQL, for many machines, and connections that keep what they acknowledge."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from selectors import EVENT_READ, DefaultSelector
from threading import Lock
from typing import Any, ClassVar

import psycopg
from psycopg.conninfo import conninfo_to_dict
from psycopg.pq import ExecStatus, TransactionStatus

from dpcompose.errors import DomainError, StoreError
from dpcompose.ledger import tables
from dpcompose.ledger.batch import Batch, GroupCommit
from dpcompose.ledger.entry import Outcome, Request, RequestDecision
from dpcompose.ledger.scope import root_of
from dpcompose.ledger.store import Pool, Store
from dpcompose.ledger.tables import LedgerTables, Row, Rows

PIN = "SELECT set_config('search_path', quote_ident(?) || ', pg_temp', false)"
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
    "FROM pg_class c WHERE c.oid = to_regclass(?)"
)
_COLUMNS = (
    "SELECT attname, format_type(atttypid, atttypmod), attnotnull, attgenerated = '' AND attcollation = typcollation "
    "FROM pg_attribute JOIN pg_type t ON t.oid = atttypid WHERE attrelid = ? AND attnum > 0 AND NOT attisdropped"
)
_UNIQUE = (
    "SELECT (SELECT string_agg(attname, ', ' ORDER BY place) FROM generate_series(0, indnkeyatts - 1) AS place "
    "JOIN pg_attribute ON attrelid = indrelid AND attnum = indkey[place]), pg_get_expr(indpred, indrelid) "
    "FROM pg_index WHERE indrelid = ? AND indisunique AND indisvalid AND indisready AND indimmediate "
    "AND indexprs IS NULL"
)
_TABLES = (
    "SELECT relname FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace WHERE relkind IN ('r', 'p') "
    "AND relpersistence <> 't' AND nspname <> 'pg_catalog' AND pg_table_is_visible(c.oid)"
)


MOST_VALUES = 65_000
"""A statement of PostgreSQL holds at most 65,535 values."""


def _sent(statement: str) -> bytes:
    return statement.replace("?", "%s").encode()


@dataclass
class PostgresRows:
    """Rows of a database."""

    connection: psycopg.Connection[Any]
    by_letter: ClassVar[str] = ' COLLATE "C"'

    def row(self, statement: str, values: Sequence[Any] = ()) -> Row | None:
        return self.connection.execute(_sent(statement), values).fetchone()

    def run(self, statement: str, values: Sequence[Any] = ()) -> list[Row]:
        cursor = self.connection.execute(_sent(statement), values)
        return cursor.fetchall() if cursor.description is not None else []

    def many(self, statement: str, rows: Sequence[Row]) -> int:
        # No pipeline: a client that is stopped amid one may hold its locks for ever, because the server's limit for
        # idle transactions ends with the first message of the next statement, even if that is only a Flush.
        marks = f"({', '.join('?' * len(rows[0]))})" if rows else ""
        if not (rows and statement.startswith("INSERT") and marks in statement):
            return sum(self.connection.execute(_sent(statement), row).rowcount for row in rows)
        done, together = 0, MOST_VALUES // len(rows[0])
        for at in range(0, len(rows), together):
            part = rows[at : at + together]
            several = statement.replace(marks, ", ".join([marks] * len(part)))
            done += self.connection.execute(
                _sent(several), [v for row in part for v in row]
            ).rowcount
        return done

    def tables(self) -> set[str]:
        return {name for (name,) in self.run(_TABLES)}

    def broken(self) -> Iterator[str]:
        return iter(())


def differences(rows: Rows) -> Iterator[str]:
    """Find differences that would lose rows, hide them, change them or let one in twice."""
    (version,) = rows.row(tables.LATEST) or (0,)
    later = tables.STEPS[tables.VERSION][1] if version < tables.VERSION else ()
    for table, declared in tables.TABLES.items():
        found = rows.row(_TABLE, (table,))
        if found is None:
            if table not in later:
                yield f"the table {table} is missing"
            continue
        number, kind, persistence, *added = found
        if kind != "r":
            yield f"{table} is no plain table"
        if persistence != "p":
            yield f"the table {table} is not logged: a crash empties it"
        for there, what in zip(
            added, ("row security", "a rule", "a trigger", "a parent or children"), strict=True
        ):
            if there:
                yield f"the table {table} has {what}, which dpcompose does not make"
        if set(rows.run(_COLUMNS, (number,))) != _columns(declared):
            yield f"the columns of {table} are not as dpcompose makes them"
        unique = set(rows.run(_UNIQUE, (number,)))
        for columns, condition in sorted(_unique(table, declared[-1]) - unique, key=str):
            suffix = f" where {condition}" if condition else ""
            yield f"no index keeps ({columns}) of {table} unique{suffix}"


def _columns(declared: Sequence[str]) -> set[Row]:
    parts = [column.replace('"', "").partition(" NOT NULL") for column in declared[:-1]]
    return {(*text.lower().split(), bool(required), True) for text, required, _ in parts}


def _unique(table: str, primary: str) -> set[tuple[str, str | None]]:
    """The columns of the primary key, and of our indexes with their condition."""
    own = {
        (f"root, {column}", f"({column} IS NOT NULL)")
        for column in tables.UNIQUE.values()
        if table == "entry"
    }
    return {(primary.removeprefix("PRIMARY KEY (").removesuffix(")"), None), *own}


DURABLE: Mapping[str, tuple[str, ...]] = {
    "fsync": ("on",),
    "full_page_writes": ("on",),
    "synchronous_commit": ("on", "remote_apply"),
    "client_min_messages": ("warning", "notice", "log", *(f"debug{n}" for n in range(1, 6))),
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


def pool_of(dsn: str, *, reading: bool = False) -> Pool[psycopg.Connection[Any]]:
    """Connections that are all checked; their name for messages has no password.

    If they are for reading alone, nothing is asked of the server's settings, and every write is refused by it.

    Raises:
        DomainError: The address is none.
    """
    dsn = dsn.replace(" ", "%20")  # libpq takes no blank
    try:
        address = conninfo_to_dict(dsn)
        ports = str(address.get("port") or "0").split(",")
        if not all(port.isascii() and port.isdigit() for port in ports if port):
            raise ValueError(ports)
    except (psycopg.Error, ValueError):
        raise DomainError("url", "(not shown)", "postgresql://user@host/database") from None
    host, port = address.get("host") or "", address.get("port")
    url = f"postgresql://{'' if str(host).startswith('/') else host}{f':{port}' if port else ''}"
    url = f"{url}/{address.get('dbname') or ''}"
    pinned: list[str] = []

    def connect() -> psycopg.Connection[Any]:
        connection = psycopg.connect(dsn)
        try:
            # A transaction locks before it reads, and reads what is committed by then: stricter levels only fail more.
            connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
            if reading:
                connection.execute("SET default_transaction_read_only = on")
            else:
                _require_safe(connection, url)
            _prepare(connection, url, pinned)
        except BaseException:
            connection.close()
            raise
        return connection

    return Pool(url, connect, idle=8, most=64)


@contextmanager
def transaction(
    pool: Pool[psycopg.Connection[Any]], *, confirmed: bool = True
) -> Generator[PostgresRows]:
    """A transaction of its own connection, committed when the block ends; lost while it commits, it is uncertain.

    If it is `confirmed`, a commit that the standby did not confirm is uncertain too.
    """
    with failures(pool.url), pool.connection() as connection:
        yield PostgresRows(connection)
        with failures(pool.url, uncertain=True):
            if confirmed:
                commit(connection, pool.url)
            else:
                connection.commit()


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

    The first connection finds the schema whose tables an unqualified name means, or where they would be made; it holds
    for all: no search path leads to other tables.
    """
    rows, known = PostgresRows(connection), bool(pinned)
    rows.run(f"SET lock_timeout = '{LOCK_TIMEOUT}'")
    rows.run(f"SET idle_in_transaction_session_timeout = '{LOCK_TIMEOUT}'")
    if not known and (found := rows.row(_HOME)) is not None and found[0] is not None:
        pinned.append(found[0])
    if pinned:
        rows.run(PIN, pinned[:1])
    if known:
        require_tables(rows, url)
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


LONGEST_COMMIT = 4.0
"""Seconds for which a standby may confirm a commit."""


def _commit(connection: psycopg.Connection[Any]) -> None:
    """Commit; cancelled where no standby confirms it in time, because the server's own limits end before it waits."""
    server = connection.pgconn
    if server.transaction_status == TransactionStatus.IDLE:
        return
    server.send_query(b"COMMIT")
    with DefaultSelector() as selector:
        selector.register(server.socket, EVENT_READ)
        while server.is_busy():
            if not selector.select(LONGEST_COMMIT):
                connection.cancel_safe(timeout=1.0)
            server.consume_input()
    while (result := server.get_result()) is not None:
        if result.status == ExecStatus.FATAL_ERROR:
            raise psycopg.errors.error_from_result(result)


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
        _commit(connection)
    finally:
        connection.remove_notice_handler(noted)
    if warnings:
        what = f"the server committed with a warning: {warnings[0]}"
        raise StoreError(url, what, "Ask again with the same key", uncertain=True)


def require_tables(rows: Rows, url: str) -> None:
    """Raise StoreError unless the tables are such that they keep and show what is written."""
    for problem in differences(rows):
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
def failures(url: str, *, uncertain: bool = False) -> Generator[None]:
    """Turn what the driver raises into StoreError."""
    try:
        yield
    except psycopg.Error as error:
        raise failure(url, error, uncertain=uncertain) from error


ATTEMPTS = 20
"""How often a transaction is tried that the server gives up in favor of another."""

_MIGRATING = "SELECT pg_advisory_xact_lock(7234017283807667300)"
STOPPED = "4s"
"""A client that was stopped while it holds a tree is waited for so long."""
_TIMEOUTS = ("idle_in_transaction_session_timeout", "statement_timeout")
_LOCK = (
    f"SELECT {SETTINGS}, (SELECT max(number) FROM migration), "
    + ", ".join(f"set_config('{name}', '{STOPPED}', true)" for name in _TIMEOUTS)
    + ", (SELECT 1 FROM balance WHERE root = ? AND path = ? FOR UPDATE)"
)


class PostgresReader(Store):
    """A ledger in a PostgreSQL database that is opened for reading: a standby will do, or a user who may only select.

    Args:
        url: Such as `postgresql://user@host/database`.
        reading: Whether the server is asked to refuse every write; a standby refuses them by itself.

    Raises:
        StoreError: The server cannot be reached, or shows no such ledger.
    """

    def __init__(self, url: str, *, reading: bool = True) -> None:
        self._pool = pool_of(url, reading=reading)
        super().__init__(self._pool.url, url)
        try:
            with transaction(
                self._pool, confirmed=False
            ) as rows:  # every charge waits for its own confirmation
                self._begin(rows)
                require_tables(rows, self.url)
        except BaseException:
            self._pool.close()
            raise

    def _begin(self, rows: Rows) -> None:
        """Look for the ledger."""
        tables.require_readable(tables.version_of(rows, url=self.url), url=self.url)

    @contextmanager
    def snapshot(self) -> Generator[LedgerTables]:
        self._require_usable()
        with transaction(self._pool) as rows:
            rows.run("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield LedgerTables(rows, inspect=differences)

    def close(self) -> None:
        super().close()
        if self._is_own_process:
            self._pool.close()


class PostgresStore(PostgresReader):
    """A ledger in a PostgreSQL database.

    A transaction locks the balance of its top-level scope first. One chain of hashes makes the charges below a
    top-level scope wait for each other anyway; charges below different ones do not meet.

    Args:
        url: Such as `postgresql://user@host/database`.
        create: Whether to make the tables where there are none.

    Raises:
        StoreError: The server cannot be reached, or may lose what it acknowledges.
    """

    def __init__(self, url: str, *, create: bool) -> None:
        self._create = create
        self._known: tables.Cache = defaultdict(tables.Cached)
        self._group_commits: dict[str, GroupCommit] = {}
        self._lock = Lock()
        super().__init__(url, reading=False)

    def _begin(self, rows: Rows) -> None:
        """Make the tables where there are none."""
        rows.run(_MIGRATING)
        if not self._create and tables.version_of(rows, url=self.url) == 0:
            raise tables.no_ledger(self.url)
        tables.migrate(rows, url=self.url)

    def transact(self, requests: Sequence[Request]) -> list[Outcome]:
        self._require_usable()
        (root,) = {root_of(request.path) for request in requests}
        with self._lock:
            group_commit = self._group_commits.setdefault(root, GroupCommit(self._commit))
        return group_commit.submit(requests)

    @contextmanager
    def turn(self, name: str) -> Generator[PostgresRows]:
        """Lock a name against all processes; in the block each statement of these rows is a transaction.

        The lock ends with its process or its connection; after that no statement of these rows is executed.
        """
        self._require_usable()
        with failures(self.url), self._pool.connection() as connection:
            connection.autocommit = True
            rows = PostgresRows(connection)
            rows.run("SELECT pg_advisory_lock(hashtextextended(?, 0))", [name])
            try:
                yield rows
            finally:
                try:
                    rows.run("SELECT pg_advisory_unlock_all()")
                    connection.autocommit = False
                except psycopg.Error:
                    connection.close()

    def _commit(self, requests: Sequence[Request]) -> list[Outcome]:
        """Decide requests below one top-level scope and commit their changes together."""
        root = root_of(requests[0].path)
        for attempt in range(1, ATTEMPTS + 1):
            with failures(self.url), self._pool.connection() as connection:
                attempted = _Transaction(connection, self.url)
                try:
                    return attempted.commit(root, requests, self._known)
                except psycopg.Error as error:
                    again = error.sqlstate in RETRIED or (
                        connection.closed and not attempted.committing
                    )
                    if not again or attempt == ATTEMPTS:
                        uncertain = attempted.committing and error.sqlstate not in RETRIED
                        raise failure(self.url, error, uncertain=uncertain) from error
        raise AssertionError("the last attempt returns or raises")


@dataclass
class _Transaction(PostgresRows):
    """One attempt; `committing` once the server was told to commit, when a lost connection leaves it open whether."""

    url: str
    committing: bool = False

    def commit(self, root: str, requests: Sequence[Request], cache: tables.Cache) -> list[Outcome]:
        """Decide and commit."""
        found = self.row(_LOCK, (root, root))
        assert found is not None, "a SELECT without a condition has a row"
        *settings, version = found[: -1 - len(_TIMEOUTS)]
        require_durable(settings, self.url)
        tables.require_known(version, url=self.url)
        stored = LedgerTables(self, cache)
        batch = Batch(stored)
        outcomes = batch.decide_all(requests)
        if batch.records:
            stored.write(batch)
        if any(isinstance(outcome, RequestDecision) for outcome in outcomes):
            # Also where all of them repeat what is there: no standby may have it yet. A commit after the lock waits
            # for everything before it.
            self._commit()
        else:
            self.connection.rollback()
        return outcomes

    def _commit(self) -> None:
        self.committing = True
        commit(self.connection, self.url)


@contextmanager
def new_tables(url: str) -> Generator[PostgresRows]:
    """A transaction in a database that is empty; what is made in it is committed in the end, as a whole."""
    pool = pool_of(url)
    try:
        with transaction(pool) as rows:
            rows.run(_MIGRATING)
            if tables.version_of(rows, url=pool.url) != 0:
                remedy = "Name an empty database; nothing is written over"
                raise StoreError(pool.url, "there is a ledger already", remedy)
            yield rows
    finally:
        pool.close()
