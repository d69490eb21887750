"""Roles of PostgreSQL for a ledger without the service: analysts who charge by functions, auditors who only read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files
from typing import Any, cast

import psycopg

from dpcompose.errors import DomainError, UnknownScopeError
from dpcompose.ledger.address import address_of
from dpcompose.ledger.entry import VERSION
from dpcompose.ledger.postgres_connection import engine_of, failures, home
from dpcompose.ledger.text import DEEPEST, line_of_text, scope_path

AHEAD = 60
"""Seconds that the time of an entry may be ahead of the server's clock."""

MOST_BYTES = 100_000
"""Of the text of one entry."""

CALLED = ("ledger_append(text)", "ledger_lock(text)")
"""The functions that an analyst calls."""

OTHERS = (
    "ledger_string(text)", "ledger_number(text)", "ledger_text(json, integer)", "ledger_amount(text)",
    "ledger_balance(jsonb)", "ledger_period(text, timestamp)", "ledger_may(text)", "ledger_charge(json, timestamp)",
)  # fmt: skip

LONGEST_ROLE = 63
"""Bytes: PostgreSQL cuts a longer name short."""

_RIGHTS = "CREATE TABLE IF NOT EXISTS ledger_right (role text, path text, PRIMARY KEY (role, path));"
_READ = "entry, balance, scope, migration"


def roles(
    url: str,
    *,
    analysts: Mapping[str, Sequence[str]],
    auditors: Sequence[str],
    withdrawn: Sequence[str] = (),
    apply: bool = False,
) -> str:
    """The SQL that makes the functions and gives roles their rights; executed too, in one transaction, if `apply`.

    Args:
        url: The ledger, as whoever owns its tables.
        analysts: The scopes that each may charge, at and below them. The name of the role is the actor.
        auditors: Who read, and write nothing.
        withdrawn: Who lose every right on the ledger.
        apply: Whether to execute it.

    Raises:
        DomainError: A name that no role can have, or that is in two lists.
        UnknownScopeError: There is no such scope.
        StoreError: The server refuses.
    """
    named = [*analysts, *auditors, *withdrawn]
    for name in named:
        line_of_text("role", name)
        if not len(name.encode()) <= LONGEST_ROLE or named.count(name) > 1:
            raise DomainError("role", name, f"a role in one list only, its name of at most {LONGEST_ROLE} bytes")
    engine, shown = engine_of(address_of(url))
    try:
        with failures(shown):
            pooled = engine.raw_connection()
            connection = cast("psycopg.Connection[Any]", pooled.driver_connection)
            try:
                for path in [scope_path(each) for found in analysts.values() for each in found]:
                    if connection.execute("SELECT FROM scope WHERE path = %s", (path,)).fetchone() is None:
                        raise UnknownScopeError(path)
                statements = _statements(home(connection) or "public", analysts, auditors, withdrawn)
                if apply:
                    connection.execute(statements.encode())
                    connection.commit()
                return statements
            finally:
                pooled.close()
    finally:
        engine.dispose()


def _statements(
    schema: str, analysts: Mapping[str, Sequence[str]], auditors: Sequence[str], withdrawn: Sequence[str]
) -> str:
    place, functions = _name(schema), files("dpcompose.ledger").joinpath("postgres_functions.sql").read_text()
    values = {
        "schema": f"{place}, pg_temp",
        "version": VERSION,
        "ahead": AHEAD,
        "most": MOST_BYTES,
        "levels": DEEPEST + 2,
    }
    for name, value in values.items():
        functions = functions.replace(f"@{name}@", str(value))
    lines = [f"SET search_path = {place}, pg_temp;", _RIGHTS, "", functions, ""]
    lines += [f"REVOKE ALL ON {_READ}, ledger_right FROM PUBLIC;", f"REVOKE CREATE ON SCHEMA {place} FROM PUBLIC;"]
    lines += [f"REVOKE ALL ON FUNCTION {', '.join([*CALLED, *OTHERS])} FROM PUBLIC;"]
    for name in (*analysts, *auditors):
        lines += [
            "",
            f"DO $do$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = {_text(name)})"
            f" THEN CREATE ROLE {_name(name)} LOGIN; END IF; END $do$;",
            f"GRANT USAGE ON SCHEMA {place} TO {_name(name)};",
            f"REVOKE ALL ON {_READ}, ledger_right FROM {_name(name)};",
            f"GRANT SELECT ON {_READ} TO {_name(name)};",
        ]
    for name, paths in analysts.items():
        rows = ", ".join(f"({_text(name)}, {_text(path)})" for path in paths)
        lines += ["", f"DELETE FROM ledger_right WHERE role = {_text(name)};"]
        lines += [f"INSERT INTO ledger_right VALUES {rows};"] if rows else []
        lines += [f"GRANT EXECUTE ON FUNCTION {', '.join(CALLED)} TO {_name(name)};"]
    for name in withdrawn:
        lines += [
            "",
            f"DELETE FROM ledger_right WHERE role = {_text(name)};",
            f"REVOKE ALL ON {_READ}, ledger_right FROM {_name(name)};",
            f"REVOKE ALL ON FUNCTION {', '.join(CALLED)} FROM {_name(name)};",
            f"REVOKE ALL ON SCHEMA {place} FROM {_name(name)};",
        ]
    return "\n".join(lines) + "\n"


def _name(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _text(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
