"""The binding of a scope: the unit, the bounds and the key that it holds for.

Which rows are kept of a unit with too many follows from the key that was drawn when the scope was first asked.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from dpcompose.errors import DomainError, ReleaseError
from dpcompose.release.payer import Payer
from dpcompose.release.table import CATALOGUED, Table
from dpcompose.release.truncation import Sampling

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

    def found(self, payer: Payer) -> Binding:
        """The binding of the scope; this one where the scope is asked for the first time.

        Raises:
            DomainError: If the scope holds for another unit, or for other bounds.
        """
        described = payer.kept(PLACE)
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

    def kept(self, payer: Payer, *, actor: str) -> Binding:
        """Write the binding, durably; return it, or the one that another program wrote first.

        Raises:
            ScopeKindError: If the scope takes no charges.
        """
        unit, bounds = [list(each) for each in self.unit], list(self.bounds)
        payer.keep(
            PLACE, {"release": {"unit": unit, "bounds": bounds, "key": self.key}}, actor=actor
        )
        return self.found(payer)

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
