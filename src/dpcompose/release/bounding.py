"""The account that pays, the fixed parameters of its scope, and the parts of a partition.

Which rows are kept of a unit with too many follows from the key that was drawn when the scope was first asked.

Parallel composition. Parts are named by public keys of one column, and fixed when the partition is opened. Every unit
is in one part: of the keys in its own rows the first one, in an order of the keys that begins at a place which a keyed
hash of the unit says; its rows with other keys are in no part. So which part a unit is in follows from its own rows,
the key of the partition and public keys, and neighbors, which differ in one unit, differ in one part. What is asked
of the other parts has the same distribution for both, so the loss of all is that of the largest part. The scope of the
partition is charged the maximum by the ledger, which refunds nothing.

A unit whose rows change from one question to the next may be in two parts over time; then the charges of both add up.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from hashlib import sha256
from typing import Any, Protocol

from dpcompose.account import open_partition, open_scope
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, ReleaseError, UnknownScopeError, UnsupportedError
from dpcompose.ledger import Amount, Ledger, Receipt
from dpcompose.release.aggregate import is_readable, same
from dpcompose.release.design import digest
from dpcompose.release.query import Query, Value, case, over
from dpcompose.release.table import CATALOGUED, Table
from dpcompose.release.truncation import Sampling
from dpcompose.values import Adjacency


class Redeemer(Protocol):
    """Marks the receipt of a charge as used, so that it pays for one draw of noise only."""

    def redeem(self, receipt: Receipt, *, actor: str, nonce: str) -> None:
        """Use up a receipt before any noise is drawn; see `Ledger.redeem`."""
        ...


class Payer(Redeemer, Protocol):
    """An account as a session needs it; `Account` is one, and so is `RemoteAccount`."""

    @property
    def scope(self) -> str:
        """Its path."""
        ...

    @property
    def adjacency(self) -> Adjacency:
        """Under which every charge is priced."""
        ...

    @property
    def note(self) -> Mapping[str, Any]:
        """The note with which the scope was opened."""
        ...

    def price(self, mechanism: Composable, *, delta: Fraction | None = None) -> dict[str, Amount]:
        """The cost of a mechanism here, by currency."""
        ...

    def left(self) -> dict[str, Amount]:
        """The most that a charge could still ask, each currency by itself."""
        ...

    def room(self, cost: Mapping[str, Amount]) -> int:
        """How many more charges of this cost fit."""
        ...

    def charge(
        self,
        mechanism: Composable,
        *,
        actor: str,
        key: str,
        delta: Fraction | None = None,
        description: Mapping[str, Any] | None = None,
    ) -> Receipt:
        """Charge a mechanism, durably, before it runs."""
        ...

    def description_of(self, name: str) -> Mapping[str, Any] | None:
        """The description that is kept below the scope under a name."""
        ...

    def keep(self, name: str, description: Mapping[str, Any], *, actor: str) -> None:
        """Keep a description below the scope under a name, unless one is kept there."""
        ...


PLACE = "release:table"
"""The scope below a scope in which the ledger keeps what it holds for; it has no budget, and takes no charges."""


@dataclass(frozen=True)
class Binding:
    """The unit and bounds that all tables of one scope share; they never change.

    The tables of a catalog share the unit alone. Its keeper wrote a bound for each, and what one unit moves follows
    from the bound of the table that is asked, which is enforced there.

    Args:
        unit: The columns that name the unit of privacy, with their types.
        bounds: What of one unit's rows is kept; of a scope with a catalog, in the table that was asked first.
        key: Random; what is kept of a unit and the seal of stored answers follow from it, and nothing about rows does.
        catalog: The catalog that says the bounds; empty where the scope has none.
    """

    unit: tuple[tuple[str, str], ...]
    bounds: tuple[int, int, int]
    key: str
    catalog: str = field(default="", compare=False)

    @classmethod
    def of(cls, table: Table) -> Binding:
        """The binding of a scope whose first table this is."""
        root = table.roots[0]
        columns = sorted((root.column(name) for name in root.unit), key=lambda column: column.name)
        # Integers of another width are the same integers; other types may take different units for one.
        unit = tuple(
            (each.name, each.kind if each.kind == "integer" else each.type) for each in columns
        )
        # Transformations change bounds as they must; what the scope holds for is what was opened.
        bounds = root.bounds
        return cls(
            unit,
            (bounds.rows, bounds.groups, bounds.rows_per_group),
            secrets.token_hex(32),
            root.catalog,
        )

    def shared(self, tables: Iterable[Table]) -> Binding:
        """This binding, which all these tables share too.

        Raises:
            DomainError: If one has another unit, or other bounds.
        """
        for table in tables:
            self._require_same(Binding.of(table), "the session's table")
        return self

    def stored(self, payer: Payer) -> Binding:
        """The binding that the scope stores; this one if the scope stores none yet.

        Raises:
            DomainError: If the scope holds for another unit, or for other bounds.
        """
        described = payer.description_of(PLACE)
        if described is None:
            return self
        try:
            said: dict[str, Any] = described["release"]
            unit = tuple((str(name), str(type)) for name, type in said["unit"])
            rows, groups, rows_per_group = (int(number) for number in said["bounds"])
            noted: dict[str, Any] = payer.note.get("catalog") or {}
            catalog = f"{CATALOGUED}{noted.get('version', '')}"
            kept = Binding(unit, (rows, groups, rows_per_group), str(said["key"]), catalog)
        except (AttributeError, KeyError, TypeError, ValueError):
            raise ReleaseError(
                f"{payer.scope}/{PLACE}: what the scope holds for cannot be read. Open another scope"
            ) from None
        kept._require_same(self, f"the first question charged to {payer.scope!r}")
        return kept

    def _require_same(self, other: Binding, where: str) -> None:
        for name, own, given in (
            ("unit", self.unit, other.unit),
            ("bounds", self.bounds, other.bounds),
        ):
            catalogued = name == "bounds" and self.catalog and self.catalog == other.catalog
            if own != given and not catalogued:
                domain = f"{_shown(own)}, as in {where}"
                raise DomainError(
                    name, _shown(given), domain, "Another unit or bound needs a scope of its own"
                )

    def write(self, payer: Payer, *, actor: str) -> Binding:
        """Write the binding, durably; return it, or the one that another program wrote first.

        Raises:
            ScopeKindError: If the scope takes no charges.
        """
        unit, bounds = [list(each) for each in self.unit], list(self.bounds)
        payer.keep(
            PLACE, {"release": {"unit": unit, "bounds": bounds, "key": self.key}}, actor=actor
        )
        return self.stored(payer)

    @property
    def sampling(self) -> Sampling:
        """Which rows are kept of a unit with too many."""
        return Sampling(self._derived("sampling"))

    @property
    def seal(self) -> bytes:
        """The key that authenticates stored answers; engines never see it."""
        return self._derived("answers")

    def _derived(self, purpose: str) -> bytes:
        return sha256(f"{purpose} {self.key}".encode()).digest()


def _shown(value: tuple[Any, ...]) -> str:
    if all(isinstance(each, int) for each in value):
        return "max_rows_per_unit={}, max_groups_per_unit={}, max_rows_per_group={}".format(*value)
    return ", ".join(f"{name} ({type})" for name, type in value)


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
    Binding.of(table).stored(account).write(account, actor=actor)
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


def rows_of_parts(table: Table, by: str, keys: Sequence[Any], sampling: Sampling) -> list[Query]:
    """The rows of each part; every unit is in one of them."""
    engine, names = table.engine, [each.name for each in table.columns]
    same_key = same(table, by)
    branches = ((f"{same_key} = {engine.constant(key)}", str(at)) for at, key in enumerate(keys))
    place = case(*branches)
    units = [same(table, name) for name in table.unit]
    start = sampling.start(table, units, "parts")
    ranked = table.data.select(
        *names,
        where=[is_readable(table, name) for name in (by, *table.unit)],
        dpcompose_place=engine.cast(place, "int64"),
        dpcompose_rank=Value(f"(({place} + {start}) % {len(keys)})", "int64"),
        **{f"dpcompose_unit{at}": unit for at, unit in enumerate(units)},
    )
    ranked = ranked.filter(f"{ranked['dpcompose_place']} IS NOT NULL")
    of = [ranked[f"dpcompose_unit{at}"] for at in range(len(units))]
    chosen = ranked.mutate(dpcompose_least=over(f"MIN({ranked['dpcompose_rank']})", by=of))
    first = f"{chosen['dpcompose_rank']} = {chosen['dpcompose_least']}"
    return [
        chosen.select(*names, where=[first, f"{chosen['dpcompose_place']} = {at}"])
        for at in range(len(keys))
    ]
