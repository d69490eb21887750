"""A table in disjoint parts, each with spending of its own, of which the largest counts.

Parallel composition. Parts are named by public keys of one column, and fixed when the partition is opened. Every unit
is in one part: of the keys in its own rows the first one, in an order of the keys that begins at a place which a keyed
hash of the unit says; its rows with other keys are in no part. So which part a unit is in follows from its own rows,
the key of the partition and public keys, and neighbors, which differ in one unit, differ in one part. What is asked
of the other parts has the same distribution for both, so the loss of all is that of the largest part. The scope of the
partition is charged the maximum by the ledger, which refunds nothing.

A unit whose rows change from one question to the next may be in two parts over time; then the charges of both add up.
"""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from dpcompose.account import open_partition, open_scope
from dpcompose.errors import DomainError, ReleaseError, UnknownScopeError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.release.bounding import Binding
from dpcompose.release.design import digest
from dpcompose.release.engine import without_warnings
from dpcompose.release.payer import Payer
from dpcompose.release.table import Table
from dpcompose.release.truncation import Sampling

MOST_PARTS = 200


_OF_A_PART = re.compile(r"(.*/parts:[^/]+/[^/]+)(?:/.*)?")


def require_part(table: Table, scope: str) -> None:
    """Refuse a table with rows of others than those of the part that a scope is for.

    The path says which part: no scope below one is called otherwise.

    Raises:
        DomainError: If the scope is that of a part, or below it, and the table is not made of that part alone.
    """
    match = _OF_A_PART.fullmatch(scope)
    if match is not None and any(root.part != match[1] for root in table.roots):
        domain, remedy = (
            f"a table made of the part {match[1]!r} alone",
            "Ask the session that was partitioned",
        )
        raise DomainError("table", table.name, domain, remedy)


def opened_parts(
    table: Table, by: str, keys: Sequence[Any], *, ledger: Ledger | None, account: Payer, actor: str
) -> dict[Any, Table]:
    """The tables of the parts by their keys, each of which says the scope that it is asked in; scopes are opened.

    Raises:
        DomainError: If the table was changed before, the column or a key does not fit, or the partition that was
            opened under these words is of another table.
        UnsupportedError: If the budget is for replacing a unit, which moves two parts, or the ledger is behind a
            service.
    """
    if ledger is None:
        raise UnsupportedError(
            "a partition", "its scopes are opened by a keeper", "Open the ledger itself"
        )
    scope, adjacency = account.scope, account.adjacency
    if table.opened or table.steps:
        remedy = "Partition the table as it was opened; change its parts"
        raise DomainError("partition", table.name, "a table that was not changed", remedy)
    column = table.column(by)
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not 2 <= len(keys) <= MOST_PARTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("keys", type(keys).__name__, f"a list of 2 to {MOST_PARTS} keys")
    if not column.groups:
        raise DomainError("by", by, "a column of integers, text, dates or truth values")
    found = [column.key(f"keys[{at}]", each) for at, each in enumerate(keys)]
    if None in found or len(set(found)) < len(found):
        raise DomainError("keys", len(found), "different keys, without NULL: it is no part")
    # The scope holds for one unit from now on: parts of two units would not be disjoint.
    Binding.of(table).found(account).kept(account, actor=actor)
    above: Any = ledger.balance(scope).scope.description.get("note", {})
    note = {"trust_view": above.get("trust_view", [])}
    if "catalog" in above:
        note["catalog"] = {"version": above["catalog"]["version"]}
    keyed = digest([(each,) for each in found])
    words = {"table": table.identity, "unit": list(table.unit), "by": by, "keys": keyed}
    path = f"{scope}/parts:{digest([tuple(map(str, words.values()))])}"
    try:
        said = ledger.balance(path).scope
    except UnknownScopeError:
        drawn = {"partition": words | {"key": secrets.token_hex(32)}}
        said = open_partition(ledger, path, adjacency=adjacency, note=drawn, actor=actor)
    try:
        sampling = Sampling(bytes.fromhex(said.description["note"]["partition"]["key"]))
    except (KeyError, TypeError, ValueError):
        raise ReleaseError(
            f"{path}: what the partition was opened with cannot be read. Open another scope"
        ) from None
    made: dict[Any, Table] = {}
    for at, (key, data) in enumerate(
        zip(found, rows_of_parts(table, by, found, sampling), strict=True)
    ):
        place = f"{path}/{at}"
        part = note | {"part": {"by": by, "place": at}}
        open_scope(ledger, place, filter=None, adjacency=adjacency, note=part, actor=actor)
        made[key] = replace(table, data=data, part=place, source=f"{table.source} {place}")
    return made


def rows_of_parts(table: Table, by: str, keys: Sequence[Any], sampling: Sampling) -> list[Any]:
    """The rows of each part, as ibis tables; every unit is in one of them."""
    import ibis

    with without_warnings():
        data, engine = table.data, table.engine
        same = {
            name: engine.binary_collation(data[name])
            if table.column(name).kind == "text"
            else data[name]
            for name in (by, *table.unit)
        }
        there = [
            engine.readable(data[each])
            if table.column(each).kind == "text"
            else data[each].notnull()
            for each in same
        ]
        units: dict[str, Any] = {f"unit{at}": same[name] for at, name in enumerate(table.unit)}
        place: Any = ibis.cases(
            *((same[by] == key, at) for at, key in enumerate(keys)), else_=None
        ).cast("int64")
        columns = {f"dpcompose_{name}": column for name, column in units.items()}
        ranked = data.filter(*there).mutate(
            **columns,
            dpcompose_place=place,
            dpcompose_rank=(place + sampling.start(table, units, "parts")) % len(keys),
        )
        ranked = ranked.filter(ranked.dpcompose_place.notnull())
        least = ranked.dpcompose_rank.min().over(ibis.window(group_by=[*columns]))
        chosen = ranked.mutate(dpcompose_least=least)
        chosen = chosen.filter(chosen.dpcompose_rank == chosen.dpcompose_least)
        names = [each.name for each in table.columns]
        return [
            chosen.filter(chosen.dpcompose_place == at).select(*names) for at in range(len(keys))
        ]
