"""The rows kept of each unit, and the binding of a scope: the unit, the bounds and the key that it holds for.

A unit keeps some of its groups, some of its rows in each, some of its rows in all. Which ones follows from the key that
was drawn when the scope was first asked.
"""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

from dpcompose.errors import DomainError, ReleaseError, ScopeExistsError, ScopeKindError, UnknownScopeError
from dpcompose.ledger import Kind, Ledger
from dpcompose.release.engine import Expression
from dpcompose.release.table import Table

PRIME = 2**31 - 1
FEW, MANY = 2**20, 2**31
"""Products of a place and a bound stay below 2^63: for bounds above FEW, places are cut off at MANY."""


@dataclass(frozen=True)
class Sampling:
    """Which rows of a unit with too many are kept: every one with the same probability, over the key.

    Of n rows in a total order, numbered from 0, i is kept where (most i + h) mod n < most, h a keyed hash of the
    unit: exactly min(n, most) of them, spread evenly, so that every group keeps its share to within one row. What is
    kept of a unit follows from its own rows and the key. The hash is linear in the unit modulo 2^31 - 1, which makes
    different units independent in pairs.

    Args:
        key: Drawn once for a scope, independent of the data.
    """

    key: bytes = b""

    def start(self, table: Table, rows: Expression, stage: str) -> Expression:
        """The hash of the unit of each row, from 0 to 2^33; another one for each stage."""
        found: Any = self._number(stage, "")
        for at, name in enumerate(table.unit):
            column: Any = rows[f"unit{at}"]
            number = _number(table, name, column)
            found = (number % PRIME * (self._number(stage, at) or 1)) % PRIME + (found + PRIME)
        return found

    def _number(self, stage: str, column: object) -> int:
        digest = sha256(self.key + f"/{stage}/{column}".encode()).digest()
        return int.from_bytes(digest[:16], "big") % PRIME


def _number(table: Table, name: str, column: Expression) -> Expression:
    """The unit as a 64-bit integer: itself, or a digest of its text."""
    kind = table.column(name).kind
    if kind == "boolean":
        return column.ifelse(1, 0).cast("int64")
    if table.column(name).type == "uint64":
        return (column % PRIME).cast("int64")
    return column.cast("int64") if kind == "integer" else table.engine.digest(column.cast("string"))


def bounded(
    table: Table, rows: Expression, units: list[str], keys: list[str], *, cells: int | None, sampling: Sampling
) -> Expression:
    """The rows kept of each unit: some of its groups, some of its rows in each, some of its rows in all.

    Rows are ordered by every column that is used, NULLs last, text by code point; ties are identical rows. `cells` is
    the number of groups where they are public.
    """
    bounds = table.bounds
    few = cells is not None and cells <= bounds.groups
    if not few and bounds.groups < bounds.rows:
        rows = kept(table, rows, units, keys, most=bounds.groups, sampling=sampling, stage="groups", dense=True)
        few = True
    used = [name for name in rows.columns if name.startswith(("bin", "value", "item", "raw"))]
    if bounds.rows_per_group < bounds.rows:
        rows = kept(
            table, rows, [*units, *keys], used, most=bounds.rows_per_group, sampling=sampling, stage="rows of groups"
        )
    groups = min(bounds.groups, cells) if cells is not None else bounds.groups
    if not (few and groups * bounds.rows_per_group <= bounds.rows and bounds.rows_per_group < bounds.rows):
        rows = kept(table, rows, units, [*keys, *used], most=bounds.rows, sampling=sampling, stage="rows")
    return rows


def kept(
    table: Table,
    rows: Expression,
    of: list[str],
    names: list[str],
    *,
    most: int,
    sampling: Sampling,
    stage: str,
    dense: bool = False,
) -> Expression:
    """The rows of each unit, or of what else is in `of`, that `Sampling` keeps in the order of `names`.

    If dense, what is numbered and kept are not rows, but the groups that agree in `names`.
    """
    import ibis

    def order(of_rows: Expression) -> list[Any]:
        """The total order over these columns, as `bounded` says."""
        columns = [
            (of_rows[name], name.startswith(("key", "item")) and of_rows[name].type().is_string()) for name in names
        ]
        texts = [table.engine.by_code_point(column) if text else column for column, text in columns]
        return [column.asc(nulls_first=False) for column in texts]

    start = None
    if not names:
        window = ibis.window(group_by=of)
        return rows.mutate(place=ibis.row_number().over(window)).filter(lambda each: each.place < most).drop("place")
    if dense:
        placed = rows.mutate(place=ibis.dense_rank().over(ibis.window(group_by=of, order_by=order(rows))))
        placed = placed.mutate(number=placed.place.max().over(ibis.window(group_by=of)) + 1)
    elif table.engine.labels and all(name.startswith("unit") for name in of) and _texts(table):
        placed = table.engine.numbered(_labelled(table, rows, of, sampling, stage), ["label"], order)
        start = placed.start
    else:
        placed = table.engine.numbered(rows, of, order)
    # The hash is asked for last, so that no sort carries it along.
    start = sampling.start(table, placed, stage) if start is None else start
    return placed.filter(_chosen(placed.place, placed.number, start, most)).select(*rows.columns)


def _labelled(table: Table, rows: Expression, of: list[str], sampling: Sampling, stage: str) -> Expression:
    """Rows with the hash of their unit, which is asked for once for a unit, and an integer that stands for the unit.

    Units that are text are sorted by it in less than half the time.
    """
    import ibis

    units = rows.select(*of).distinct()
    units = units.mutate(start=sampling.start(table, units, stage), label=ibis.row_number().over(ibis.window()))
    return rows.join(units, of).select(*rows.columns, "start", "label")


def _texts(table: Table) -> bool:
    return any(table.column(name).kind == "text" for name in table.unit)


def _chosen(place: Any, number: Any, start: Any, most: int) -> Any:
    import ibis

    if most <= FEW:
        return (place * most + start) % number < most
    within: Any = ibis.least(place, MANY)
    number = ibis.least(number, MANY)
    return (place < MANY) & ((within * most + start) % number < most)


PLACE = "release:table"
"""The scope below a scope in which the ledger keeps what it holds for; it has no budget, and takes no charges."""


@dataclass(frozen=True)
class Binding:
    """The unit and bounds that all tables of one scope share; they never change.

    Args:
        unit: The columns that name the unit of privacy, with their types.
        bounds: What of one unit's rows is kept.
        key: Random; what is kept of a unit and the seal of stored answers follow from it, and nothing about rows does.
    """

    unit: tuple[tuple[str, str], ...]
    bounds: tuple[int, int, int]
    key: str

    @classmethod
    def of(cls, table: Table) -> Binding:
        """The binding of a scope whose first table this is."""
        columns = sorted((table.column(name) for name in table.unit), key=lambda column: column.name)
        # Integers of another width are the same integers; other types may take different units for one.
        unit = tuple((each.name, each.kind if each.kind == "integer" else each.type) for each in columns)
        # Transformations change bounds as they must; what the scope holds for is what was opened.
        bounds = table.roots[0].bounds
        return cls(unit, (bounds.rows, bounds.groups, bounds.rows_per_group), secrets.token_hex(32))

    def shared(self, tables: Iterable[Table]) -> Binding:
        """This binding, which all these tables share too.

        Raises:
            DomainError: If one has another unit, or other bounds.
        """
        for table in tables:
            self._require_same(Binding.of(table), "the session's table")
        return self

    def found(self, ledger: Ledger, scope: str) -> Binding:
        """The binding of the scope; this one where the scope is asked for the first time.

        Raises:
            DomainError: If the scope holds for another unit, or for other bounds.
        """
        try:
            said: dict[str, Any] = ledger.balance(f"{scope}/{PLACE}").scope.description["release"]
            unit = tuple((str(name), str(type)) for name, type in said["unit"])
            rows, groups, rows_per_group = (int(number) for number in said["bounds"])
            kept = Binding(unit, (rows, groups, rows_per_group), str(said["key"]))
        except UnknownScopeError:
            return self
        except (KeyError, TypeError, ValueError):
            raise ReleaseError(
                f"{scope}/{PLACE}: what the scope holds for cannot be read. Open another scope"
            ) from None
        kept._require_same(self, f"the first question charged to {scope!r}")
        return kept

    def _require_same(self, other: Binding, where: str) -> None:
        for name, own, given in (("unit", self.unit, other.unit), ("bounds", self.bounds, other.bounds)):
            if own != given:
                domain = f"{_shown(own)}, as in {where}"
                raise DomainError(name, _shown(given), domain, "Another unit or bound needs a scope of its own")

    def kept(self, ledger: Ledger, scope: str, *, actor: str) -> Binding:
        """Write the binding, durably; return it, or the one that another program wrote first.

        Raises:
            ScopeKindError: If the scope takes no charges; below slots, what is kept would be one of them.
        """
        if (kind := ledger.balance(scope).scope.kind) is not Kind.FILTER:
            raise ScopeKindError(scope, kind, "Charge a scope of kind filter below it")
        unit, bounds = [list(each) for each in self.unit], list(self.bounds)
        said = {"release": {"unit": unit, "bounds": bounds, "key": self.key}}
        with suppress(ScopeExistsError):
            ledger.scope(f"{scope}/{PLACE}", description=said, actor=actor)
        return self.found(ledger, scope)

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
