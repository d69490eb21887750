"""What is kept of each unit: some of its groups, some of its rows in each, some of its rows in all."""
# ibis types its expressions only in part.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false, reportUnknownLambdaType=false

from __future__ import annotations

from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from dpcompose.release.expression import Expression

if TYPE_CHECKING:
    from dpcompose.release.aggregate import Aggregation
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
    table: Table, rows: Expression, units: list[str], keys: list[str], what: Aggregation, sampling: Sampling
) -> Expression:
    """What is kept of each unit: some of its groups, some of its rows in each, some of its rows in all.

    Rows are ordered by every column that is used, NULLs last, text by code point; ties are identical rows.
    """
    bounds, cells = table.bounds, None if what.public is None else len(what.public)
    few = cells is not None and cells <= bounds.groups
    if not few and bounds.groups < bounds.rows:
        start = sampling.start(table, rows, "groups")
        rows, few = kept(rows, units, ordered(table, rows, keys), bounds.groups, start, dense=True), True
    used = [name for name in ("bin", "value") if name in rows.columns]
    if bounds.rows_per_group < bounds.rows:
        start, order = sampling.start(table, rows, "rows of groups"), ordered(table, rows, used)
        rows = kept(rows, [*units, *keys], order, bounds.rows_per_group, start)
    groups = min(bounds.groups, cells) if cells is not None else bounds.groups
    if not (few and groups * bounds.rows_per_group <= bounds.rows and bounds.rows_per_group < bounds.rows):
        start, order = sampling.start(table, rows, "rows"), ordered(table, rows, [*keys, *used])
        rows = kept(rows, units, order, bounds.rows, start)
    return rows


def ordered(table: Table, rows: Expression, names: list[str]) -> list[Any]:
    """The total order over these columns, as `bounded` says."""
    columns = [(rows[name], name.startswith("key") and rows[name].type().is_string()) for name in names]
    texts = [table.engine.by_code_point(column) if text else column for column, text in columns]
    return [column.asc(nulls_first=False) for column in texts]


def kept(
    rows: Expression, of: list[str], order: list[Any], most: int, start: Expression, *, dense: bool = False
) -> Expression:
    """The rows of each unit, or of what else is named, that `Sampling` keeps; the rows of such groups if dense."""
    import ibis

    window = ibis.window(group_by=of, order_by=order)
    if not order:
        return rows.mutate(place=ibis.row_number().over(window)).filter(lambda each: each.place < most).drop("place")
    if dense:
        placed = rows.mutate(start=start, place=ibis.dense_rank().over(window))
        placed = placed.mutate(number=placed.place.max().over(ibis.window(group_by=of)) + 1)
    else:
        whole = ibis.window(group_by=of, order_by=order, preceding=None, following=None)
        number: Any = rows.count().over(whole)
        placed = rows.mutate(start=start, place=ibis.row_number().over(window), number=number)
    return placed.filter(lambda each: _chosen(each, most)).drop("start", "place", "number")


def _chosen(each: Expression, most: int) -> Expression:
    import ibis

    if most <= FEW:
        return (each.place * most + each.start) % each.number < most
    place: Any = ibis.least(each.place, MANY)
    number: Any = ibis.least(each.number, MANY)
    return (each.place < MANY) & ((place * most + each.start) % number < most)
