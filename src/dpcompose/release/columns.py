"""The columns of a table, its unit of privacy and its bounds: everything known of it without
reading a row.
"""

from __future__ import annotations

import numbers
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Self

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.arrow import PublicTables
from dpcompose.release.query import Engine, Query, Relation, TableName, Value

MOST_ROWS = 2**31
LARGEST_CHANGE = 2**53
"""The largest L1 change by one unit; integers up to this are exact as floats."""


@dataclass(frozen=True)
class Change:
    """The sensitivity of a vector of integers: how far adding or removing one unit can move it, in
    several norms.

    Args:
        largest: The largest change of one coordinate; >= 1.
        coordinates: The largest number of coordinates that change; >= 1.
        l1: The largest sum of absolute changes.
        l2_squared: The largest sum of squared changes.
        box: Whether every coordinate may change by `largest` at once, so that the worst case is one
            known vector.
    """

    largest: int
    coordinates: int
    l1: int
    l2_squared: int
    box: bool

    @property
    def worst(self) -> tuple[int, ...] | None:
        """The change that dominates all others, one integer for each coordinate; None if no single
        change does.
        """
        return (self.largest,) * self.coordinates if self.box else None


@dataclass(frozen=True)
class Bounds:
    """Bounds on the rows that are kept of one unit. They are enforced on the table, not assumed.

    Args:
        rows: The largest number of rows of one unit.
        groups: The largest number of groups in which one unit has rows.
        rows_per_group: The largest number of rows of one unit in one group.
    """

    rows: int
    groups: int
    rows_per_group: int

    @classmethod
    def stated(
        cls, rows: object, *, groups: object = None, rows_per_group: object = None
    ) -> Bounds:
        """Return the bounds as typed; those left out follow from the number of rows.

        Raises:
            DomainError: If a bound is no integer between 1 and 2^31, or exceeds the number of rows.
        """
        most = check.count("max_rows_per_unit", rows, least=1, most=MOST_ROWS)
        return cls(
            most,
            most if groups is None else _bound("max_groups_per_unit", groups, most),
            most if rows_per_group is None else _bound("max_rows_per_group", rows_per_group, most),
        )

    def within(self, cells: int | None) -> Bounds:
        """Return the same bounds for a question with this number of groups; None for an unknown
        number.
        """
        return (
            self
            if cells is None
            else Bounds(self.rows, min(self.groups, max(cells, 1)), self.rows_per_group)
        )

    def change(self, size: int, *, bins: int = 1) -> Change:
        """Return how far one unit moves the sums over groups of integers of absolute value at most
        `size`, one for each row.

        With v_i rows in group i: v_i <= rows_per_group, at most `groups` of them, sum v_i <= rows.
        The sum of squares is convex, so it is largest with as many full groups as fit and the
        remaining rows in one more. If each group is split into bins, the same rows may lie in one
        bin or spread over several, which lowers the sum of squares.
        """
        full = min(self.groups, self.rows // self.rows_per_group)
        rest = (
            min(self.rows - full * self.rows_per_group, self.rows_per_group)
            if full < self.groups
            else 0
        )
        l1 = full * self.rows_per_group + rest
        if not size * l1 <= LARGEST_CHANGE:
            remedy = "Take a coarser granularity, or fewer rows of a unit"
            raise DomainError("change of one unit", size * l1, "at most 2^53 grid steps", remedy)
        return Change(
            largest=size * self.rows_per_group,
            coordinates=min(self.groups * bins, l1),
            l1=size * l1,
            l2_squared=size * size * (full * self.rows_per_group**2 + rest**2),
            box=full == self.groups and (bins == 1 or self.rows_per_group == 1),
        )

    @property
    def presence(self) -> Change:
        """How far one unit moves the numbers of distinct units: by 1 in every group in which it has
        a row.
        """
        groups = min(self.groups, self.rows)
        return Change(largest=1, coordinates=groups, l1=groups, l2_squared=groups, box=True)


def _bound(name: str, value: object, most: int) -> int:
    return check.count(name, value, least=1, most=most)


Key = tuple[Any, ...]
MOST_TEXT = 10_000
KEYS = {
    "integer": "a 64-bit integer",
    "text": "a text",
    "boolean": "True or False",
    "date": "a date, such as '2030-01-31'",
}
"""Kinds of columns that can be keys, and their values in words: all engines agree on which are equal."""


@dataclass(frozen=True)
class TableColumn:
    """A column: its name, its kind and its type.

    Args:
        name: The name in the engine.
        kind: "integer", "float", "decimal", "text", "boolean", "date" or "other".
        type: The type, written alike for all engines, such as int64, string or decimal(12, 2).
    """

    name: str
    kind: str
    type: str

    @property
    def numeric(self) -> bool:
        """Whether it can be summed."""
        return self.kind in ("integer", "float", "decimal", "boolean")

    @property
    def groups(self) -> bool:
        """Whether its values can be group keys: all engines must agree on equality, which they do
        not for floats.
        """
        return self.kind in KEYS

    def require_key(self, argument: str) -> None:
        """Raise DomainError, about this argument, unless its values can be group keys."""
        if not self.groups:
            domain = "a column of integers, text, dates or truth values"
            raise DomainError(argument, self.name, domain, f"It holds {self.type}")

    @property
    def identifies(self) -> bool:
        """Whether it can identify a unit of privacy."""
        return self.groups or self.kind in ("decimal", "identifier")

    def key(self, name: str, value: Any) -> Any:
        """Return `value` as a key of this column; None stands for NULL.

        Raises:
            DomainError: If it cannot be a value of the column.
        """
        if value is None:
            return None
        read = value
        if self.kind == "date" and isinstance(value, str) and len(value) == 10:
            # The form in which JSON and SQL write it.
            with suppress(ValueError):
                read = date.fromisoformat(value)
        kind, key = value_with_kind(read)
        if kind != self.kind:
            domain = f"{KEYS[self.kind]}, as the column {self.name!r} holds"
            raise DomainError(name, value, domain)
        return key


def one_of(name: str, value: Any, accepted: Collection[str], remedy: str = "") -> None:
    """Raise DomainError unless `value` is one of these words."""
    if not (isinstance(value, str) and value in accepted):
        raise DomainError(name, value, f"one of {', '.join(dict.fromkeys(accepted))}", remedy)


def value_with_kind(value: Any) -> tuple[str, Any]:
    """Return the kind of a Python value that every engine holds, and the value; the kind is empty
    for all other values.
    """
    match value:
        case bool():
            return "boolean", value
        case numbers.Integral() if -(2**63) <= int(value) < 2**63:
            return "integer", int(value)
        case str() if len(value) <= MOST_TEXT and "\0" not in value and _is_utf8(value):
            return "text", value
        case date() if not isinstance(value, datetime):
            return "date", value
        case _:
            return "", value


def _is_utf8(text: str) -> bool:
    """Whether a text can be encoded, which one with a lone surrogate cannot."""
    return text.encode(errors="ignore").decode() == text


def sorting(key: Key) -> tuple[tuple[bool, Any], ...]:
    """Return the sort key of a group key: text by code point, NULL last."""
    return tuple((value is None, 0 if value is None else value) for value in key)


@dataclass(frozen=True)
class UnitTable:
    """A table with its unit of privacy: what is known of it without its rows.

    Args:
        name: Its name in the ledger; contains no secret.
        unit: The columns that identify the unit of privacy: rows that agree there belong to one
            unit. None after a join on another key, whose rows belong to no unit.
        bounds: Bounds on the rows kept of one unit; where no unit is left, the number of rows that
            one unit changes.
        columns: The columns; public, unlike the rows.
        steps: The transformations that made it, as written, with their constants.
        weights: How often columns of the source occur in each computed column.
        opened: The opened tables from which it was made; empty if it was opened itself.
        ranges: What the keeper states of columns, as defaults for questions: the two ends of
            numbers, or the values of a text.
        public_tables: The public tables that the catalog lists.
        part: The scope of the part of a partition that this table is; empty for a whole table.
        joined: Whether an opened row may now occur several times.
        copies: Maps computed columns that identify units as a unit column does to that column.
    """

    name: str
    unit: tuple[str, ...]
    bounds: Bounds
    columns: tuple[TableColumn, ...]
    data: Query = field(repr=False, compare=False)
    base: TableName = field(default=(), repr=False, compare=False)
    relation: Relation | None = field(default=None, repr=False, compare=False)
    source: str = field(default="", repr=False, compare=False)
    steps: tuple[str, ...] = ()
    weights: Mapping[str, int] = field(default_factory=dict[str, int], repr=False, compare=False)
    opened: tuple[Self, ...] = field(default=(), repr=False, compare=False)
    ranges: Mapping[str, tuple[Any, ...]] = field(
        default_factory=dict[str, tuple[Any, ...]], repr=False, compare=False
    )
    public_tables: PublicTables = field(default_factory=dict[str, Any], repr=False, compare=False)
    part: str = field(default="", repr=False)
    joined: bool = field(default=False, repr=False, compare=False)
    copies: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""
        return self.data.engine

    @property
    def single(self) -> bool:
        """Whether the database enforces at most one row for each unit."""
        unique = () if self.relation is None or self.joined else self.relation.unique
        return any(columns <= {*self.unit} for columns in unique)

    def comparable(self, name: str) -> Value:
        """Return SQL for a column such that equal SQL values mean the same value."""
        column, is_text = self.data[name], self.column(name).kind == "text"
        return self.engine.binary_collation(column) if is_text else column

    def is_readable(self, name: str) -> str:
        """Return SQL for whether a column holds a value that can be told apart from all others."""
        column, is_text = self.data[name], self.column(name).kind == "text"
        return self.engine.readable(column) if is_text else f"({column} IS NOT NULL)"

    def column(self, name: object, argument: str = "column") -> TableColumn:
        """Return the column of that name.

        Raises:
            DomainError: If there is none.
        """
        columns = {column.name: column for column in self.columns}
        one_of(argument, name, columns)
        return columns[str(name)]

    def ends(self, column: str, lower: Any, upper: Any) -> tuple[Any, Any]:
        """Return the lower and upper end of a column's values; an end that is not stated is the
        catalog's.

        Raises:
            DomainError: If the catalog has none.
        """
        if lower is not None and upper is not None:
            return lower, upper
        if column not in self.ranges:
            name, remedy = (
                ("lower" if lower is None else "upper"),
                f"The catalog has no range for {column!r}",
            )
            raise DomainError(name, None, "a number", remedy)
        least, most = self.ranges[column]
        return (least if lower is None else lower), (most if upper is None else upper)
