"""A table with its unit of privacy and bounds, and its columns."""

from __future__ import annotations

import json
import numbers
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from hashlib import sha256
from typing import Any, Self

from dpcompose import check
from dpcompose.errors import DomainError, DPComposeError, EngineError
from dpcompose.release.bounds import Bounds
from dpcompose.release.public import PublicSource
from dpcompose.release.query import Engine, Query, Relation, TableName, unsettled, without_warnings
from dpcompose.release.source import opened
from dpcompose.release.transformation import Transformations

Key = tuple[Any, ...]
CATALOGUED = "catalog:"
"""How the sources of a catalog's tables begin, and what its version is told by among the views that are trusted."""


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
    return value if isinstance(value, date) and not isinstance(value, datetime) else None


def _boolean(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


_READERS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "integer": (_integer, "a 64-bit integer"),
    "text": (_text, "a text"),
    "boolean": (_boolean, "True or False"),
    "date": (_date, "a date"),
}


def sorting(key: Key) -> tuple[tuple[bool, Any], ...]:
    """The sort key of a table's keys: text by code point, NULL last."""
    return tuple((value is None, 0 if value is None else value) for value in key)


@dataclass(frozen=True)
class Table(Transformations):
    """A table with its unit of privacy. Make it with `table`; its rows are never shown.

    What it was changed by follows it: `where`, `mutate` and the like give a table of the same unit.

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
    def roots(self) -> tuple[Self, ...]:
        """The tables of the engine that it is made of."""
        return self.opened or (self,)

    def changed(
        self, data: Query, step: str, *, weights: Mapping[str, int] | None = None, bounds: Bounds | None = None,
        roots: tuple[Any, ...] = (), ranges: Mapping[str, tuple[Any, ...]] | None = None,
        unit: tuple[str, ...] | None = None, copies: Mapping[str, str] | None = None,
    ) -> Self:  # fmt: skip
        """The table that a transformation made: other rows of the same units."""
        known = self.ranges if ranges is None else ranges
        same = self.copies if copies is None else copies
        # Tables are equal that are called alike; what was opened elsewhere is another one.
        there = [(each, each.source) for each in self.roots]
        columns = _columns(data)
        return replace(
            self,
            unit=self.unit if unit is None else unit,
            data=data,
            columns=columns,
            ranges={each.name: known[each.name] for each in columns if each.name in known},
            copies={each.name: same[each.name] for each in columns if each.name in same},
            steps=(*self.steps, step),
            weights=self.weights if weights is None else weights,
            bounds=self.bounds if bounds is None else bounds,
            joined=self.joined or bounds is not None,
            opened=(*self.roots, *(each for each in roots if (each, each.source) not in there)),
        )

    @property
    def catalog(self) -> str:
        """The catalog that lists it, as it is told among what is trusted; empty where none does."""
        return self.source.partition(" ")[0] if self.source.startswith(CATALOGUED) else ""

    @property
    def single(self) -> bool:
        """Whether the database keeps it so that no unit has more than one row."""
        unique = () if self.relation is None or self.joined else self.relation.unique
        return any(columns <= {*self.unit} for columns in unique)

    def column(self, name: object) -> TableColumn:
        """The column of that name.

        Raises:
            DomainError: If there is none.
        """
        for column in self.columns:
            if column.name == name:
                return column
        raise DomainError(
            "column", name, f"one of {', '.join(column.name for column in self.columns)}"
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

    @property
    def identity(self) -> str:
        """A short name for where the table is and what its columns are; it says nothing of its rows."""
        columns = [(column.name, column.type) for column in self.columns]
        roots = [root.source for root in self.roots]
        named = (
            [self.source, columns, roots, list(self.steps)]
            if self.steps
            else [self.source, columns]
        )
        return sha256(json.dumps(named).encode()).hexdigest()[:16]

    def require_catalogued(self, trusted: Collection[str]) -> None:
        """Refuse a table that is none of the catalog whose version is among what is trusted.

        Raises:
            DomainError: If there is a catalog, and it does not have this table.
        """
        catalog = next((each for each in trusted if each.startswith(CATALOGUED)), None)
        if catalog is not None and not all(root.catalog == catalog for root in self.roots):
            domain, remedy = (
                "a table of the scope's catalog",
                "Use release.Catalog(ledger, scope).table(name)",
            )
            raise DomainError("table", self.name, domain, remedy)

    def require_trusted(self, trusted: Collection[str]) -> None:
        """Refuse a table that is not of the catalog, or was a view that no keeper trusts when it was opened.

        Raises:
            DomainError, UnsupportedError: As `require_plain`.
        """
        self.require_catalogued(trusted)
        for root in self.roots:
            if root.relation is not None and not (
                root.relation.plain or root.relation.name in trusted
            ):
                raise unsettled(root.relation.name)

    def require_plain(self, trusted: Collection[str]) -> None:
        """Refuse a view that no keeper trusts, and what was changed in the database since the table was opened.

        Raises:
            UnsupportedError: If it is a view, or no longer the same table.
            DomainError: If the connection was set to compare or to write texts in another way.
            EngineError: If the engine cannot be asked.
        """
        for root in self.opened:
            root.require_plain(trusted)
        self.require_catalogued(trusted)
        if self.opened or self.relation is None:
            return
        engine, now = self.engine, None
        with without_warnings(), engine.turn:
            # A connection may have been lost since the last question.
            for connect in (None, engine.reconnect):
                try:
                    if connect is not None:
                        connect()
                    engine.require()
                    now = engine.relation(self.base)
                    break
                except DPComposeError:
                    raise
                except Exception:
                    continue
        if now is None:
            raise EngineError(engine.name, charged=False)
        if now != self.relation or not (now.plain or now.name in trusted):
            raise unsettled(now.name)

    def close(self) -> None:
        """Close the connection to the engine that holds the rows; nothing can be asked afterwards."""
        self.engine.close()


def table(
    source: Any,
    *,
    unit: str | Sequence[str],
    max_rows_per_unit: int,
    max_groups_per_unit: int | None = None,
    max_rows_per_group: int | None = None,
    name: str | None = None,
    schema: Mapping[str, str] | None = None,
    line_breaks: bool = False,
) -> Table:
    """A table to ask privately: who is protected, and what of one unit's rows is kept.

    Neighboring tables differ in all rows of one unit. Rows whose unit is NULL belong to nobody and are left out. Rows
    beyond the bounds are left out too, the same ones every time a question is asked in one scope. A view is asked only
    where the keeper opened the scope with `note={"trust_view": [its name]}`: in a view one unit's rows can decide what
    becomes of the rows of others.

    Args:
        source: A pandas, polars, Arrow or Spark frame; the path of a Parquet or CSV file, of a folder of Parquet files,
            or a pattern such as visits/*.parquet; the URL of such files in an object store (s3://, gs://); the URL of
            a database, or an open connection of DuckDB or psycopg or a Spark session, with `name` for its table.
        unit: The column, or columns, that name the unit of privacy.
        max_rows_per_unit: Rows kept of one unit; >= 1.
        max_groups_per_unit: Groups of a grouped question in which one unit is kept; by default the number of rows.
        max_rows_per_group: Rows kept of one unit in one group; by default the number of rows.
        name: The table in the database; for other sources what the ledger calls it. Frames of one name are one table
            to a retry by key; without a name every frame is another one.
        schema: Types of columns, such as int64, float64, string, boolean or date, for a source whose own are text; what
            does not read is NULL.
        line_breaks: For a CSV file, whether cells in quotes go on over lines; then one unclosed quote swallows the
            lines after it. By default every line is a row, and a line with an unclosed quote is left out.

    Raises:
        DomainError: If an argument is outside its domain, or the source cannot be opened.
        UnsupportedError: If the engine is none of the three, or the table is no plain one.
        MissingExtraError: If the engine's library is not installed.
    """
    bounds = Bounds.stated(
        max_rows_per_unit, groups=max_groups_per_unit, rows_per_group=max_rows_per_group
    )
    label = None if name is None else check.line("name", name)
    units = _names("unit", unit)
    check.flag("line_breaks", line_breaks)
    made = opened(source, name=label, schema=schema, line_breaks=line_breaks)
    found = Table(
        made.label,
        units,
        bounds,
        _columns(made.data),
        data=made.data,
        base=made.base,
        relation=made.relation,
        source=made.identity,
    )
    for each in found.unit:
        if not found.column(each).identifies:
            raise DomainError(
                "unit", each, "a column of integers, text, dates, truth values, decimals or UUIDs"
            )
    return found


def _columns(data: Query) -> tuple[TableColumn, ...]:
    return tuple(TableColumn(name, _kind(type), type) for name, type in data.types.items())


def _names(name: str, value: str | Sequence[str]) -> tuple[str, ...]:
    names = (
        (value,) if isinstance(value, str) else tuple(value) if isinstance(value, Sequence) else ()  # pyright: ignore[reportUnnecessaryIsInstance]
    )
    names = tuple(check.line(name, each) for each in names)
    if not names or len(set(names)) < len(names):
        raise DomainError(name, value, "the name of a column, or several different ones")
    return names


def _kind(type: str) -> str:
    head = type.partition("(")[0]
    kinds = {
        "boolean": "boolean",
        "decimal": "decimal",
        "string": "text",
        "date": "date",
        "uuid": "identifier",
    }
    number = head.removeprefix("u").rstrip("0123456789") if head[-1:].isdigit() else ""
    return {"int": "integer", "float": "float"}.get(number) or kinds.get(head, "other")
