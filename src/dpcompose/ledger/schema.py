"""The tables."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Index, Integer, MetaData, Table, Text, text

TABLES = MetaData()

MIGRATION = Table(
    "migration",
    TABLES,
    Column("number", Integer, primary_key=True, autoincrement=False),
    Column("name", Text, nullable=False),
)

# `root` is the top-level scope; it leads every key, so that a distributed database can keep one tree on one machine.
SCOPE = Table(
    "scope",
    TABLES,
    Column("root", Text, primary_key=True),
    Column("path", Text, primary_key=True),
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
    Column("root", Text, primary_key=True),
    Column("path", Text, primary_key=True),
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

KEY_IS_USED_ONCE = Index(
    "key_is_used_once",
    ENTRY.c.root,
    ENTRY.c.key,
    unique=True,
    sqlite_where=text("key IS NOT NULL"),
    postgresql_where=text("key IS NOT NULL"),
)
CHARGE_IS_REDEEMED_ONCE = Index(
    "charge_is_redeemed_once",
    ENTRY.c.root,
    ENTRY.c.redeems,
    unique=True,
    sqlite_where=text("redeems IS NOT NULL"),
    postgresql_where=text("redeems IS NOT NULL"),
)
