"""`dpcompose ledger`: what a keeper does to the ledger as a whole."""

from __future__ import annotations

from typing import Annotated

import typer

from dpcompose.cli.ledger_read import opened
from dpcompose.cli.options import Json, LedgerUrl, option
from dpcompose.cli.output import emit_document, error_boundary
from dpcompose.cli.streams import stderr, stdout
from dpcompose.errors import DomainError


def roles(
    url: LedgerUrl,
    analyst: Annotated[
        list[str] | None, option("A role that charges at and below a scope; again for more.", "ROLE=SCOPE")
    ] = None,
    auditor: Annotated[list[str] | None, option("A role that reads and writes nothing.", "ROLE")] = None,
    withdraw: Annotated[list[str] | None, option("A role that loses all its rights.", "ROLE")] = None,
    apply: Annotated[bool, typer.Option("--apply", help="Execute the SQL instead of printing it.")] = False,
    json: Json = False,
) -> None:
    """Print the SQL that lets roles of PostgreSQL charge by functions, or read; nothing else is open to them."""
    analysts: dict[str, list[str]] = {}
    with error_boundary():
        for each in analyst or ():
            role, equals, scope = each.rpartition("=")
            if not equals:
                raise DomainError("--analyst", each, "a role and a scope, such as ada=city/health")
            analysts.setdefault(role, []).append(scope)
        with opened(url) as ledger:
            from dpcompose.ledger.postgres import PostgresStore

            if not isinstance(ledger.store, PostgresStore):
                raise DomainError(
                    "--ledger", url, "postgresql://user@host/database; rights on a file are its permissions"
                )
        from dpcompose.ledger.postgres_roles import roles as roles_of

        sql = roles_of(url, analysts=analysts, auditors=auditor or (), withdrawn=withdraw or (), apply=apply)
    if json:
        emit_document("ledger roles", {"ledger": url, "sql": sql, "applied": apply})
    elif apply:
        stderr("the roles have their rights, and no others on the ledger")
    else:
        stdout(sql)
