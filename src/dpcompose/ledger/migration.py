"""The schema, in numbered steps: what a step does and the record that it was done are one transaction."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass

from sqlalchemy import Connection, func, inspect, select

from dpcompose.errors import NewerSchemaError, StoreError
from dpcompose.ledger.entry import GRANTED
from dpcompose.ledger.row import scope_of
from dpcompose.ledger.schema import BALANCE, ENTRY, MIGRATION, SCOPE


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
    for row in connection.execute(select(SCOPE).where(SCOPE.c.description.contains('"schedule":'))).all():
        scope = scope_of(tuple(row))
        if scope.schedule is not None:
            own = select(ENTRY.c.body).where(ENTRY.c.root == scope.root, ENTRY.c.scope == scope.path)
            kinds = [json.loads(body)["kind"] for body in connection.execute(own).scalars()]
            balance = BALANCE.update().where(BALANCE.c.root == scope.root, BALANCE.c.path == scope.path)
            connection.execute(balance.values(taken=kinds.count(GRANTED)))


STEPS = (
    Step(1, "scopes, balances and entries", _create_tables),
    Step(2, "rounds of schedules, attempts of redemptions", _count_rounds),
)


def version_of(connection: Connection, *, where: str) -> int:
    """The number of the last step that was applied; 0 for an empty database.

    Raises:
        StoreError: The database holds something that is no ledger.
    """
    names = set(inspect(connection).get_table_names())
    require_own(names, where=where)
    if not names:
        return 0
    return connection.execute(select(func.coalesce(func.max(MIGRATION.c.number), 0))).scalar_one()


def require_own(names: Set[str], *, where: str) -> None:
    """Raise StoreError if a database has tables, and they are not those of a ledger."""
    if names and not names >= {MIGRATION.name, ENTRY.name}:
        raise StoreError(where, "a database that is no ledger", "Choose another file or database")


def migrate(connection: Connection, *, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Apply the steps that are missing; the caller's transaction holds them all and locks others out.

    Raises:
        NewerSchemaError: There are steps that this version does not know.
    """
    version = version_of(connection, where=where)
    require_known(version, where=where, steps=steps)
    if version == 0:
        MIGRATION.create(connection, checkfirst=True)
    for step in steps[version:]:
        step.apply(connection)
        connection.execute(MIGRATION.insert().values(number=step.number, name=step.name))


def require_known(version: int, *, where: str, steps: Sequence[Step] = STEPS) -> None:
    """Raise NewerSchemaError unless this version of dpcompose knows that version of the schema."""
    if not version <= len(steps):
        raise NewerSchemaError(where, version, len(steps))
