"""The tables."""

from __future__ import annotations

from typing import Any

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text, text

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
    return Index(name, ENTRY.c.root, column, unique=True, sqlite_where=present, postgresql_where=present)


KEY_IS_USED_ONCE = _once("key_is_used_once", ENTRY.c.key)
CHARGE_IS_REDEEMED_ONCE = _once("charge_is_redeemed_once", ENTRY.c.redeems)
