"""The columns of a table, its unit of privacy and its bounds: what is known of it without looking at a row."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Self

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.release.arrow import PublicSource
from dpcompose.release.query import Engine, Query, Relation, TableName

MOST_ROWS = 2**31
LARGEST_CHANGE = 2**53
"""The L1 change of one unit: integers up to here are floats."""


@dataclass(frozen=True)
class Change:
    """How far adding or removing one unit can move a vector of integers, in the norms that noise is made for.

    Args:
        largest: The largest change of one coordinate; >= 1.
        coordinates: How many coordinates can change; >= 1.
        l1: The largest sum of the sizes of the changes.
        l2_squared: The largest sum of their squares.
        box: Whether every coordinate may change by `largest` at once, so that the worst case is one known vector.
    """

    largest: int
    coordinates: int
    l1: int
    l2_squared: int
    box: bool

    @property
    def worst(self) -> tuple[int, ...] | None:
        """The change that dominates all others, one integer a coordinate; None where no single one does."""
        return (self.largest,) * self.coordinates if self.box else None


@dataclass(frozen=True)
class Bounds:
    """The part of one unit's rows that is kept: the bounds are enforced on the table, not hoped for.

    Args:
        rows: Rows of one unit in all.
        groups: Groups in which one unit has rows.
        rows_per_group: Rows of one unit in one group.
    """

    rows: int
    groups: int
    rows_per_group: int

    @classmethod
    def stated(
        cls, rows: object, *, groups: object = None, rows_per_group: object = None
    ) -> Bounds:
        """The bounds as typed; what is left out follows from the number of rows.

        Raises:
            DomainError: If a bound is no integer between 1 and 2^31, or exceeds the number of rows.
        """
        most = _bound("max_rows_per_unit", rows, MOST_ROWS)
        return cls(
            most,
            most if groups is None else _bound("max_groups_per_unit", groups, most),
            most if rows_per_group is None else _bound("max_rows_per_group", rows_per_group, most),
        )

    def within(self, cells: int | None) -> Bounds:
        """The same bounds where there are only so many groups; None for an unknown number."""
        return (
            self
            if cells is None
            else Bounds(self.rows, min(self.groups, max(cells, 1)), self.rows_per_group)
        )

    def change(self, size: int, *, bins: int = 1) -> Change:
        """How far one unit moves the sums over groups of integers of at most that size, one a row.

        With v_i rows in group i: v_i <= rows_per_group, at most `groups` of them, sum v_i <= rows. The sum of squares
        is convex, so it is largest with as many full groups as fit and the rest in one more. Where each group is split
        into bins, the same rows may lie in one bin each or spread over several, which lowers the sum of squares.
        """
        full = min(self.groups, self.rows // self.rows_per_group)
        rest = (
            min(self.rows - full * self.rows_per_group, self.rows_per_group)
            if full < self.groups
            else 0
        )
        l1 = full * self.rows_per_group + rest
        if not size * l1 <= LARGEST_CHANGE:
            raise DomainError(
                "change of one unit",
                size * l1,
                "at most 2^53 grid steps",
                "Take a coarser granularity or fewer rows",
            )
        return Change(
            largest=size * self.rows_per_group,
            coordinates=min(self.groups * bins, l1),
            l1=size * l1,
            l2_squared=size * size * (full * self.rows_per_group**2 + rest**2),
            box=full == self.groups and (bins == 1 or self.rows_per_group == 1),
        )

    @property
    def presence(self) -> Change:
        """How far one unit moves the numbers of distinct units: by 1 in every group in which it has a row."""
        groups = min(self.groups, self.rows)
        return Change(largest=1, coordinates=groups, l1=groups, l2_squared=groups, box=True)


def _bound(name: str, value: object, most: int) -> int:
    number = check.count(name, value)
    if not 1 <= number <= most:
        raise DomainError(name, number, f"an integer between 1 and {most:,}")
    return number


Key = tuple[Any, ...]


@dataclass(frozen=True)
class TableColumn:
    """One column: its name, its kind, and how its type is written.

    Args:
        name: As the engine has it.
        kind: "integer", "float", "decimal", "text", "boolean", "date" or "other".
        type: How its type is written, alike for all engines, such as int64, string or decimal(12, 2).
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
        """Whether its values can be keys: equality must mean the same everywhere, which it does not for floats."""
        return self.kind in _READERS

    @property
    def identifies(self) -> bool:
        """Whether it can name a unit of privacy."""
        return self.groups or self.kind in ("decimal", "identifier")

    def key(self, name: str, value: Any) -> Any:
        """`value` as a key of this column; None stands for NULL.

        Raises:
            DomainError: If it cannot be a value of the column.
        """
        if value is None:
            return None
        read, domain = _READERS[self.kind]
        found = read(value)
        if found is None:
            raise DomainError(name, value, f"{domain}, as the column {self.name!r} holds")
        return found


def _integer(value: Any) -> int | None:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        return None
    number = int(value)
    return number if -(2**63) <= number < 2**63 else None


def _text(value: Any) -> str | None:
    if not isinstance(value, str) or len(value) > 10_000:
        return None
    try:
        # Half a surrogate pair is no text in UTF-8.
        value.encode()
    except UnicodeEncodeError:
        return None
    return value if "\0" not in value else None


def _date(value: Any) -> date | None:
    if isinstance(value, str) and len(value) == 10:  # as JSON and SQL write it
        try:
            return date.fromisoformat(value)
        except ValueError:
            return None
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "integer": (_integer, "a 64-bit integer"),
    "text": (_text, "a text"),
    "boolean": (_boolean, "True or False"),
    "date": (_date, "a date, such as '2030-01-31'"),
}


def sorting(key: Key) -> tuple[tuple[bool, Any], ...]:
    """The sort key of a table's keys: text by code point, NULL last."""
    return tuple((value is None, 0 if value is None else value) for value in key)


@dataclass(frozen=True)
class UnitTable:
    """A table with its unit of privacy: what is known of it without its rows.

    Args:
        name: What the ledger calls it; no secret is in it.
        unit: The columns that name the unit of privacy: all rows that agree there belong to one unit. None after a
            join on another key, whose rows belong to nobody.
        bounds: What of one unit's rows is kept; where no unit is left, how many rows one unit moves.
        columns: The columns; public, unlike the rows.
        steps: The transformations that made it, as they are written, and their constants.
        weights: How often the columns of its source occur in a computed one.
        opened: The tables as they were opened, of which it is made; none if it is one itself.
        ranges: What the keeper knows of columns, for questions that state none: the two ends of numbers, or the values of
            a text.
        public_tables: The public tables that the catalog lists.
        part: The scope of the part of a partition that this is; empty for a whole table.
        joined: Whether a row of what was opened may be several now.
        copies: For computed columns that tell units apart as a column of the unit does, the name of that one.
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
    public_tables: Mapping[str, PublicSource] = field(
        default_factory=dict[str, PublicSource], repr=False, compare=False
    )
    part: str = field(default="", repr=False)
    joined: bool = field(default=False, repr=False, compare=False)
    copies: Mapping[str, str] = field(default_factory=dict[str, str], repr=False, compare=False)

    @property
    def engine(self) -> Engine:
        """The engine that holds the rows."""
        return self.data.engine

    @property
    def single(self) -> bool:
        """Whether the database keeps it so that no unit has more than one row."""
        unique = () if self.relation is None or self.joined else self.relation.unique
        return any(columns <= {*self.unit} for columns in unique)

    def column(self, name: object, argument: str = "column") -> TableColumn:
        """The column of that name.

        Raises:
            DomainError: If there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise DomainError(
            argument, name, f"one of {', '.join(column.name for column in self.columns)}"
        )

    def ends(self, column: str, lower: Any, upper: Any) -> tuple[Any, Any]:
        """The ends of a column's values as typed; those that are not are the catalog's.

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
