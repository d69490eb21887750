"""The tables of a ledger on PostgreSQL, as the server has them: what differs from how dpcompose makes them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import psycopg
from sqlalchemy import Table

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
    """What would lose rows, hide them, change them or let one in twice."""
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
        for there, what in zip(added, ("row security", "a rule", "a trigger", "a parent or children"), strict=True):
            if there:
                yield f"the table {table.name} has {what}, which dpcompose does not make"
        if set(connection.execute(_COLUMNS, (number,))) != _columns(table):
            yield f"the columns of {table.name} are not as dpcompose makes them"
        unique = set(connection.execute(_UNIQUE, (number,)))
        for columns, where in sorted(_unique(table) - unique, key=str):
            yield f"no index keeps ({columns}) of {table.name} unique{f' where {where}' if where else ''}"


def _columns(table: Table) -> set[tuple[Any, ...]]:
    return {(column.name, _TYPES[str(column.type)], not column.nullable, True) for column in table.columns}


def _unique(table: Table) -> set[tuple[str, str | None]]:
    """The columns of the primary key, and of our indexes with their condition."""
    found: set[tuple[str, str | None]] = {(", ".join(column.name for column in table.primary_key), None)}
    for index in table.indexes:
        condition = f"({index.dialect_options['postgresql']['where']})"
        found.add((", ".join(column.name for column in index.columns), condition))
    return found
