"""The fixed properties of a scope: the account to charge, unit, bounds and key, and the disjoint
parts of a partition.

If a unit has too many rows, the kept ones depend on a random key that was drawn when the scope was
first used.

Parallel composition. Parts are named by public keys of one column and fixed when the partition is
opened. Every unit is in one part. A keyed hash of the unit chooses a starting point in the cyclic
order of the keys; the unit's part is the first key, from there on, that occurs in its rows. Its
rows with other keys are in no part. So the part of a unit depends only on its own rows, the key of
the partition and public keys, and neighboring data sets, which differ in one unit, differ in one
part. Answers from the other parts have the same distribution for both, so the privacy loss of the
whole is that of the worst part. The ledger charges the maximum over parts to the scope of the
partition, and refunds nothing.

A unit whose rows change between questions may be in two parts over time; then the charges of both
add up.
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
    """The methods of an account that a session needs; `Account` and `RemoteAccount` have them."""

    @property
    def scope(self) -> str:
        """The path of its scope."""
        ...

    @property
    def adjacency(self) -> Adjacency:
        """The adjacency under which every charge is priced."""
        ...

    @property
    def note(self) -> Mapping[str, Any]:
        """The note with which the scope was opened."""
        ...

    def price(self, mechanism: Composable, *, delta: Fraction | None = None) -> dict[str, Amount]:
        """Return the cost of a mechanism in this scope, by currency."""
        ...

    def left(self) -> dict[str, Amount]:
        """Return the largest amount that could still be charged, for each currency separately."""
        ...

    def room(self, cost: Mapping[str, Amount]) -> int:
        """Return how many more charges of this cost fit."""
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
        """Charge a mechanism durably, before it runs."""
        ...

    def description_of(self, name: str) -> Mapping[str, Any] | None:
        """Return the description that `keep` stored in the sub-scope `name`; None if there is none."""
        ...

    def keep(self, name: str, description: Mapping[str, Any], *, actor: str) -> None:
        """Store a description under a name below the scope, unless one is stored."""
        ...


PLACE = "release:table"
"""The sub-scope that stores the unit and bounds of a scope; it takes no charges."""


@dataclass(frozen=True)
class Binding:
    """The unit and bounds that all tables of one scope share; they never change.

    The tables of a catalog share only the unit. The catalog states the bounds of each table, which
    are enforced there, and sensitivities follow from the bounds of the table in question.

    Args:
        unit: The columns that name the unit of privacy, with their types.
        bounds: Bounds on the rows kept of one unit; for a scope with a catalog, those of the first
            table used.
        key: A random key, independent of all rows, that decides which rows of a unit are kept and
            authenticates stored answers.
        catalog: The catalog that states the bounds; empty where the scope has none.
    """

    unit: tuple[tuple[str, str], ...]
    bounds: tuple[int, int, int]
    key: str
    catalog: str = field(default="", compare=False)

    @classmethod
    def of(cls, table: Table) -> Binding:
        """Return the binding of a scope whose first table this is."""
        root = table.roots[0]
        columns = sorted((root.column(name) for name in root.unit), key=lambda column: column.name)
        # Integers of different widths are the same integers; other types might identify different
        # units.
        unit = tuple(
            (each.name, each.kind if each.kind == "integer" else each.type) for each in columns
        )
        # Transformations change the bounds of a table; the scope records those of the table as
        # opened.
        bounds = root.bounds
        return cls(
            unit,
            (bounds.rows, bounds.groups, bounds.rows_per_group),
            secrets.token_hex(32),
            root.catalog,
        )

    def shared(self, tables: Iterable[Table]) -> Binding:
        """Return this binding after checking that all these tables share it.

        Raises:
            DomainError: If a table has another unit or other bounds.
        """
        for table in tables:
            self._require_same(Binding.of(table), "the session's table")
        return self

    def stored(self, payer: Payer) -> Binding:
        """Return the binding that the scope stores, or this one if none is stored yet.

        Raises:
            DomainError: If the scope has another unit or other bounds.
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
        """Write the binding durably; return it, or the one that another process wrote first.

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
        """The rule that chooses which rows to keep of a unit with too many."""
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
    """Refuse a table with rows outside the part that a scope belongs to.

    The path of the scope names the part; other scopes never have such a path.

    Raises:
        DomainError: If the scope is that of a part, or below it, and the table holds rows of other
            parts.
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
    """Open a scope for each part and return the parts' tables by key; each table records its scope.

    Raises:
        DomainError: If the table was changed before, the column or a key does not fit, or a
            partition opened with these arguments belongs to another table.
        UnsupportedError: If the budget is for replacing a unit, which can change two parts, or the
            ledger is behind a service.
    """
    if ledger is None:
        raise UnsupportedError(
            "a partition", "a service cannot open its scopes", "Open the ledger itself"
        )
    scope, adjacency = account.scope, account.adjacency
    if table.opened or table.steps:
        remedy = "Partition the table as it was opened; change its parts"
        raise DomainError("partition", table.name, "a table that was not changed", remedy)
    column = table.column(by)
    if isinstance(keys, str) or not isinstance(keys, Sequence) or not 2 <= len(keys) <= MOST_PARTS:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise DomainError("keys", type(keys).__name__, f"a list of 2 to {MOST_PARTS} keys")
    column.require_key("by")
    found = [column.key(f"keys[{at}]", each) for at, each in enumerate(keys)]
    if None in found or len(set(found)) < len(found):
        raise DomainError("keys", len(found), "different keys without NULL")
    # From here on the scope has one fixed unit: parts of two kinds of unit would not be disjoint.
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
    """Return the rows of each part; every unit is in exactly one of them."""
    engine, names = table.engine, [each.name for each in table.columns]
    same_key = table.comparable(by)
    branches = ((f"{same_key} = {engine.constant(key)}", str(at)) for at, key in enumerate(keys))
    place = case(*branches)
    units = [table.comparable(name) for name in table.unit]
    start = sampling.start(table, units, "parts")
    ranked = table.data.select(
        *names,
        where=[table.is_readable(name) for name in (by, *table.unit)],
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
