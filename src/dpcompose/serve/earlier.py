"""People and policies that an earlier version kept in a file or database of their own, taken over into the ledger."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Set
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from typing import Any

from dpcompose.errors import DPComposeError, StoreError
from dpcompose.ledger import (
    PEOPLE,
    Amounts,
    ApprovalRequest,
    Ledger,
    Quota,
    Reservation,
    SetFact,
    Threshold,
    Token,
    encode,
    later,
    root_of,
)
from dpcompose.serve.identity import OPERATOR

_POSTGRES_TABLES = (
    "(select tablename as name from pg_tables where schemaname = current_schema()) own"
)
_EPOCH = "1970-01-01T00:00:00.000000Z"


def take_over(ledger: Ledger, source: str | Path) -> int:
    """Record everything in a file of people, or in the tables beside a ledger on PostgreSQL; returns how many facts.

    Taken over again it is not recorded twice. A file is renamed afterwards: `people.db.imported` is the backup.

    Raises:
        StoreError: It cannot be read.
    """
    path, is_file = Path(source), not str(source).startswith("postgres")
    try:
        with closing(_connect(source, is_file=is_file)) as connection:
            names = "sqlite_master where type = 'table'" if is_file else _POSTGRES_TABLES
            tables = {n for (n,) in connection.execute(f"select name from {names}").fetchall()}
            is_earlier = is_file or "service_token" in tables
            facts = list(_facts(connection, tables)) if is_earlier else []
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in ("sqlite3", "psycopg"):
            raise
        remedy = "Name a file of people of an earlier version"
        raise StoreError(path.name if is_file else "PostgreSQL", str(error), remedy) from None
    _record(ledger, facts)
    if is_file:
        path.rename(path.with_name(f"{path.name}.imported"))
    return len(facts)


def _connect(source: str | Path, *, is_file: bool) -> Any:
    """A connection of either driver, for queries alone."""
    if is_file:
        return sqlite3.connect(f"{Path(source).resolve().as_uri()}?mode=ro", uri=True)
    import psycopg

    return psycopg.connect(f"postgresql:{str(source).partition(':')[2]}")


def _record(ledger: Ledger, facts: list[tuple[str, str, str, str]]) -> None:
    roots = {root for root, *_ in facts}
    if PEOPLE in roots:
        ledger.scope(PEOPLE, actor=OPERATOR)
    for root in sorted(roots):
        statements = [
            SetFact(root, OPERATOR, kind, name, text, key=_key(kind, name))
            for top, kind, name, text in facts
            if top == root
        ]
        for outcome in ledger.store.transact(statements):
            if isinstance(outcome, DPComposeError):
                raise outcome


def _key(kind: str, name: str) -> str:
    return f"import-{sha256(encode([kind, name]).encode()).hexdigest()}"


def _facts(connection: Any, tables: Set[str]) -> Iterator[tuple[str, str, str, str]]:
    """Top-level scope, kind, name and text of each."""

    def rows(table: str, columns: str) -> list[tuple[Any, ...]]:
        return connection.execute(f"select {columns} from service_{table}").fetchall()

    issued = dict(rows("issued", "digest, issued")) if "service_issued" in tables else {}
    people = rows("token", "digest, name, role, subtree, expires, revoked")
    for digest, name, role, subtree, expires, revoked in people:
        at, gone = _time(issued.get(digest, 0.0)), OPERATOR if revoked else ""
        token = Token(name, role, subtree, until=_time(expires), at=at, by=OPERATOR)
        text = encode(vars(token) | {"revoked": at if revoked else "", "revoked_by": gone})
        yield PEOPLE, Token.kind, digest, text
    held = rows("reservation", "root, id, scope, actor, held, used, expires, ended")
    for root, name, scope, actor, kept, used, expires, ended in held:
        named = scope, actor, _amounts(kept), _amounts(used), _time(expires)
        kind = Reservation.ENDED if ended else Reservation.kind
        yield root, kind, name, Reservation(*named).text
    quotas = rows("quota", "root, scope, actor, period, caps, keeper")
    for root, scope, actor, period, caps, keeper in quotas:
        quota = Quota(scope, actor, period, _amounts(caps), keeper)
        yield root, Quota.kind, quota.name, quota.text
    for *name, used in rows("quota_used", "scope, quota, actor, period, used"):
        yield root_of(name[0]), Quota.USED, encode(name), _amounts(used).text
    for root, scope, amounts, keeper in rows("threshold", "root, scope, amounts, keeper"):
        yield root, Threshold.kind, scope, Threshold(_amounts(amounts), keeper).text
    columns = "root, id, scope, actor, name, asked, cost, reason, made, expires, state, decided_by"
    names = ("scope", "actor", "name", "charge", "cost", "reason", "at", "until", "state")
    for root, name, *fields in rows("request", columns):
        stated: dict[str, Any] = dict(zip((*names, "decided_by"), fields, strict=True))
        stated["cost"] = _amounts(stated["cost"])
        stated |= {each: _time(stated[each]) for each in ("at", "until")}
        yield root, ApprovalRequest.kind, name, ApprovalRequest(**stated).text


def _amounts(text: str) -> Amounts:
    return Amounts.read(json.loads(text))


def _time(seconds: float) -> str:
    return later(_EPOCH, seconds)
