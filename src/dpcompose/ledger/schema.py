"""The tables, and the numbered steps that bring older ones up to date."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
    func,
    inspect,
    select,
    text,
)

from dpcompose.errors import NewerSchemaError, StoreError
from dpcompose.ledger.entry import GRANTED
from dpcompose.ledger.store import scope_of

TABLES = MetaData()

MIGRATION = Table(
    "migration",
    TABLES,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
)


def _place() -> tuple[Column[str], Column[str]]:
    """The top-level scope leads every key, so that a distributed database can keep one tree on one machine."""
    return Column("root", Text, primary_key=True), Column("path", Text, primary_key=True)


SCOPE = Table(
    "scope",
    TABLES,
    *_place(),
    Column("kind", Text, nullable=False),
    Column("caps", Text, nullable=False),
    Column("slots", BigInteger),
    Column("description", Text, nullable=False),
    Column("opened", BigInteger, nullable=False),
    sqlite_with_rowid=False,
)

BALANCE = Table(
    "balance",
    TABLES,
    *_place(),
    Column("spent", Text, nullable=False),
    Column("taken", BigInteger, nullable=False),
    Column("closed", Integer, nullable=False),
    sqlite_with_rowid=False,
)

ENTRY = Table(
    "entry",
    TABLES,
    Column("root", Text, primary_key=True),
    Column("sequence", BigInteger, primary_key=True, autoincrement=False),
    Column("scope", Text, nullable=False),
    Column("key", Text),
    Column("redeems", BigInteger),
    Column("body", Text, nullable=False),
    Column("hash", Text, nullable=False),
    sqlite_with_rowid=False,
)


def _once(name: str, column: Column[Any]) -> Index:
    """Below a top-level scope, no two entries have the same value there."""
    present = text(f"{column.name} IS NOT NULL")
    return Index(
        name, ENTRY.c.root, column, unique=True, sqlite_where=present, postgresql_where=present
    )


KEY_IS_USED_ONCE = _once("key_is_used_once", ENTRY.c.key)
CHARGE_IS_REDEEMED_ONCE = _once("charge_is_redeemed_once", ENTRY.c.redeems)


@dataclass(frozen=True)
class Step:
    """One step of the schema.

    Args:
        number: Its place, from 1 without gaps.
        name: What it does.
        apply: Does it, inside the transaction that also records it.
    """

    number: int
    name: str
    apply: Callable[[Connection], None]


def _create_tables(connection: Connection) -> None:
    """The tables, and with them their indexes."""
    for table in (SCOPE, BALANCE, ENTRY):
        table.create(connection)


def _count_rounds(connection: Connection) -> None:
    """How many rounds of each schedule were charged: kept from now on, by clients that know of it."""
    for row in connection.execute(
        select(SCOPE).where(SCOPE.c.description.contains('"schedule":'))
    ).all():
        scope = scope_of(tuple(row))
        if scope.schedule is not None:
            own = select(ENTRY.c.body).where(
                ENTRY.c.root == scope.root, ENTRY.c.scope == scope.path
            )
            kinds = [json.loads(body)["kind"] for body in connection.execute(own).scalars()]
            balance = BALANCE.update().where(
                BALANCE.c.root == scope.root, BALANCE.c.path == scope.path
            )
            connection.execute(balance.values(taken=kinds.count(GRANTED)))


def _index_scopes(connection: Connection) -> None:
    """Scopes at or below a path are found by a range of texts, letter by letter, whatever the collation."""
    on_postgres = connection.dialect.name == "postgresql"
    by_letter = ' COLLATE "C"' if on_postgres else ""
    connection.exec_driver_sql(
        f"CREATE INDEX entry_of_scope ON entry (root, scope{by_letter}, sequence)"
    )
    if on_postgres:  # elsewhere the primary key does
        connection.exec_driver_sql(f"CREATE INDEX scope_by_path ON scope (root, path{by_letter})")


def _refuse_older_clients(connection: Connection) -> None:
    """The tables stay; clients that do not know of this step, and would write entries in an older form, are refused."""


STEPS = (
    Step(1, "scopes, balances and entries", _create_tables),
    Step(2, "rounds of schedules, attempts of redemptions", _count_rounds),
    Step(3, "entries by scope", _index_scopes),
    Step(4, "times that never run back", _refuse_older_clients),
    Step(5, "scopes that renew", _refuse_older_clients),
)


def version_of(connection: Connection, *, url: str) -> int:
    """The number of the last step that was applied; 0 for an empty database.

    Raises:
        StoreError: The database holds something that is no ledger.
    """
    names = set(inspect(connection).get_table_names())
    require_own(names, url=url)
    if not names:
        return 0
    return connection.execute(select(func.coalesce(func.max(MIGRATION.c.number), 0))).scalar_one()


def require_own(names: Set[str], *, url: str) -> None:
    """Raise StoreError if a database has tables, and they are not those of a ledger."""
    if names and not names >= {MIGRATION.name, ENTRY.name}:
        raise StoreError(url, "a database that is no ledger", "Choose another file or database")


def migrate(connection: Connection, *, url: str, steps: Sequence[Step] = STEPS) -> None:
    """Apply the steps that are missing; the caller's transaction holds them all and locks others out.

    Raises:
        NewerSchemaError: There are steps that this version does not know.
    """
    version = version_of(connection, url=url)
    require_known(version, url=url, steps=steps)
    if version == 0:
        MIGRATION.create(connection, checkfirst=True)
    for step in steps[version:]:
        step.apply(connection)
        connection.execute(MIGRATION.insert().values(number=step.number, name=step.name))


def require_current(version: int, *, url: str, older: bool = False) -> None:
    """Raise StoreError unless the schema is the last one, or an `older` one if that will do: reading changes none."""
    if version == 0:
        raise no_ledger(url)
    require_known(version, url=url)
    if version < len(STEPS) and not older:
        what = f"has the schema of an earlier version ({version}; this one reads {len(STEPS)})"
        raise StoreError(url, what, "dpcompose ledger admin migrate brings it up to date")


def no_ledger(url: str) -> StoreError:
    """The error of a file or database that is empty, and is not to become a ledger."""
    return StoreError(url, "there is no ledger here", "dpcompose ledger init makes one")


def require_known(version: int, *, url: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise NewerSchemaError unless this version of dpcompose knows that version of the schema."""
    if not version <= len(steps):
        raise NewerSchemaError(url, version, len(steps))
