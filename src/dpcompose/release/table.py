"""Tables with a unit of privacy, and their transformations, which keep every row with the unit that
it came from.

Stability. Write T(rows) for the transformed rows. For each transformation here, the rows of a unit
u in T(rows) are a function of u's own rows and of public data. So tables that differ in one unit's
rows become tables that differ in that unit's rows; by induction this holds for sequences of
transformations. The bounds are enforced on the result of the last transformation: whatever was done
before, one unit has at most `bounds.rows` rows there. The bounds that a transformation sets say how
much of a unit is worth keeping; they assume nothing about rows.

A join on another key is the one exception: its rows belong to no unit, and its bounds state how
many rows one unit changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Any, NoReturn, Self

from dpcompose import check
from dpcompose.errors import (
    DomainError,
    DPComposeError,
    EngineError,
    UnknownMethodError,
    UnsupportedError,
)
from dpcompose.release.arrow import PublicTable
from dpcompose.release.columns import KEYS, MOST_ROWS, Bounds, TableColumn, UnitTable
from dpcompose.release.expression import (
    RowExpression,
    called,
    col,
    one_to_one,
    refused_method,
    row_expression,
)
from dpcompose.release.function import compiled
from dpcompose.release.query import Query, Relation, of_public, unsettled, without_warnings
from dpcompose.release.source import opened
from dpcompose.release.truncation import (
    KeptRows,
    few_of_each_key,
    joined,
    joined_bounds,
    whole_rows,
)

MOST_LETTERS = 1_000_000
"""The largest size of the SQL for the rows of a table: what one statement may ask of an engine for each row."""
CATALOGUED = "catalog:"
"""The prefix of sources from a catalog, and of the trusted entry with the catalog's version."""
MOST_STEPS = 50
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


@dataclass(frozen=True)
class Table(UnitTable):
    """A table with its unit of privacy, made by `table`; its rows are never shown.

    `where`, `mutate` and other methods return a new table of the same unit. Operations without a
    method are not supported.
    """

    @property
    def roots(self) -> tuple[Self, ...]:
        """The opened tables that this table is made of."""
        return self.opened or (self,)

    def changed(
        self, data: Query, step: str, *, roots: Sequence[UnitTable] = (), **others: Any
    ) -> Self:
        """Return the table made by a transformation: other rows of the same units. `others` are
        fields that it has anew.
        """
        if not len(data.words) <= MOST_LETTERS:
            what, reason = (
                f"so many expressions on {self.name!r}",
                "engines would take long to read them",
            )
            raise UnsupportedError(what, reason, "Use fewer functions")
        # Tables with the same description compare as equal, but tables opened separately are
        # different.
        opened = {(each, each.source): each for each in (*self.roots, *roots)}
        result = replace(
            self, data=data, columns=columns_of(data), steps=(*self.steps, step),
            joined=self.joined or "bounds" in others, opened=tuple(opened.values()), **others,
        )  # fmt: skip
        names = {each.name for each in result.columns}
        ranges, copies = (
            {name: each for name, each in of.items() if name in names}
            for of in (result.ranges, result.copies)
        )
        return replace(result, ranges=ranges, copies=copies)

    @property
    def catalog(self) -> str:
        """The version of the catalog that lists this table, as in the list of trusted views; empty
        if none does.
        """
        return self.source.partition(" ")[0] if self.source.startswith(CATALOGUED) else ""

    @property
    def identity(self) -> str:
        """A hash of the table's location and columns; it reveals nothing about rows."""
        columns = [(column.name, column.type) for column in self.columns]
        roots = [root.source for root in self.roots]
        named = (
            [self.source, columns, roots, list(self.steps)]
            if self.steps
            else [self.source, columns]
        )
        return sha256(json.dumps(named).encode()).hexdigest()[:16]

    def require_catalogued(self, trusted: Collection[str]) -> None:
        """Refuse a table that is not in the catalog whose version is among the trusted entries.

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
        """Refuse a table that is not in the catalog, or was opened as a view that no keeper trusts.

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
        """Refuse a view that no keeper trusts, and a table that was changed in the database since
        it was opened.

        Raises:
            UnsupportedError: If it is a view, or no longer the same table.
            DomainError: If the connection was set to compare or to encode texts differently.
            EngineError: If the engine cannot be reached.
        """
        for root in self.roots:
            root.require_catalogued(trusted)
            if root.relation is not None:
                root._require_unchanged(root.relation, trusted)

    def _require_unchanged(self, opened: Relation, trusted: Collection[str]) -> None:
        """Refuse a table that the engine no longer has as it was opened; see `require_plain`."""
        engine, now = self.engine, None
        with without_warnings(), engine.turn:
            # The connection may have been lost since the last question.
            for _ in range(2):
                try:
                    engine.reconnect()
                    engine.require()
                    now = engine.relation(self.base)
                    break
                except DPComposeError:
                    raise
                except Exception:
                    continue
        if now is None:
            raise EngineError(engine.name, charged=False)
        if now != opened or not (now.plain or now.name in trusted):
            raise unsettled(now.name)

    def close(self) -> None:
        """Close the connection to the engine that holds the rows; no questions are possible
        afterwards.
        """
        self.engine.close()

    # Transformations

    def __getattr__(self, name: str) -> NoReturn:
        """Refuse methods of tables in other libraries that do not exist here."""
        if any(each.name == name for each in self.__dict__.get("columns", ())):
            raise UnknownMethodError(
                f"the column {name!r}", "rows are never shown", f"Use release.col({name!r})"
            )
        raise refused_method("a table", name)

    def __getitem__(self, item: object) -> NoReturn:
        raise refused_method("a table", "[...]")

    def where(self, predicate: RowExpression) -> Self:
        """Return the rows for which a condition is true; rows for which it is NULL are left out.

        Whether a row stays depends on that row alone: a unit's rows become some of its rows.

        Raises:
            DomainError: If it is no condition, or names a missing column.
            UnsupportedError: If it is no expression made by `release.col`.
        """
        predicate = row_expression("where", predicate)
        found = compiled(predicate, self._changing("where"))
        if found.kind != "boolean":
            raise DomainError("where", found.kind, "a condition, such as release.col('age') >= 18")
        return self.changed(self.data.filter(found.value), f"where {predicate.text}")

    def mutate(self, **expressions: RowExpression) -> Self:
        """Return the table with computed columns added, or replaced where names are equal.

        Each value depends on its row alone, and no column of the unit changes: a unit's rows stay
        its rows.

        Raises:
            DomainError: If a name is a unit's, or no name, or differs from a column's only in the
                case of letters.
            UnsupportedError: If a value is no expression made by `release.col`.
        """
        if not expressions:
            raise DomainError(
                "mutate", 0, "one column or more, such as hours=release.col('minutes') / 60"
            )
        rows = self._changing("mutate")
        weights = dict(self.weights)
        columns: dict[str, str] = {}
        expressions = {
            name: row_expression(f"mutate {name}", each) for name, each in expressions.items()
        }
        for name, expression in expressions.items():
            self._require_new(f"mutate {name}", name, columns)
            found = compiled(expression, rows)
            if found.kind == "timestamp":
                raise DomainError(
                    f"mutate {name}", found.kind, "a value of another kind, such as its date()"
                )
            columns[name], weights[name] = found.value, found.weight
        step = "mutate " + ", ".join(f"{name}={each.text}" for name, each in expressions.items())
        # Recomputing a column drops the range that the catalog has for it.
        ranges = {name: ends for name, ends in self.ranges.items() if name not in expressions}
        units = {**self.copies, **{name: name for name in self.unit}}
        same = {
            name: one_to_one(expressions.get(name, col(name)), units)
            for name in {**units, **expressions}
        }
        copies = {name: unit for name, unit in same.items() if unit is not None}
        data = self.data.mutate(**columns)
        return self.changed(data, step, weights=weights, ranges=ranges, copies=copies)

    def select(self, *names: str) -> Self:
        """Return the table with these columns and those of the unit, which always stay: a unit's
        rows stay its rows.

        Raises:
            DomainError: If there is no such column.
        """
        self._changing("select")
        for name in names:
            self.column(name, "select")
        kept = list(dict.fromkeys([*self.unit, *names]))
        if not kept:
            raise DomainError("select", 0, "one or more columns, since the table has no unit")
        return self.changed(self.data.select(*kept), f"select {kept}")

    def union(self, other: Self) -> Self:
        """Return the rows of this table and of another with the same unit and columns, bounded
        together.

        Two files or frames are read over one connection; other tables must share a connection
        already.

        A unit's rows become its rows of both tables, so its bounds add up.

        Raises:
            DomainError: If the other has another unit, other columns or other bounds.
            UnsupportedError: If it is no table, or on another connection.
        """
        self._changing("union")
        theirs = self._other("union", other)
        here, there = (
            [(each.name, each.type) for each in columns]
            for columns in (self.columns, other.columns)
        )
        if here != there:
            raise DomainError(
                "union",
                [name for name, _ in there],
                f"the columns {here}, in this order",
                "Use select",
            )
        one, two = self.bounds, other.bounds
        bounds = _bounds(
            one.rows + two.rows, one.groups + two.groups, one.rows_per_group + two.rows_per_group
        )
        data = self.data.union(theirs)
        weights = {
            name: max(self.weights.get(name, 1), other.weights.get(name, 1)) for name, _ in here
        }
        ranges = {
            name: ends for name, ends in self.ranges.items() if other.ranges.get(name) == ends
        }
        step = f"union {other.identity}"
        return self.changed(
            data, step, weights=weights, bounds=bounds, roots=other.roots, ranges=ranges
        )

    def join(
        self,
        other: Self | PublicTable | str,
        *,
        on: str | Sequence[str],
        how: str = "inner",
        at_most: int | tuple[int, int] | None = None,
        rows_per_unit: tuple[int, int] | None = None,
    ) -> Self:
        """Join each row with the rows of another table that have the same key; NULL equals nothing.

        With a public table, on any key: a row meets public rows, at most as many as that table has
        for one key. With a table of the same unit, on the unit: a row meets only rows of its own
        unit, after both sides kept no more rows of a unit than their bounds say, so that the
        product is bounded. Either way a unit's rows depend only on its own rows and public ones,
        and its bounds are multiplied.

        The result has this table's key columns. With `how="left"` an unmatched row has NULL in the
        other table's other columns; to detect it, test a column that has no NULL there.

        On another key with `at_most=(a, b)` the joined rows no longer belong to a unit;
        `keyed_join` proves how many of them one unit changes. Such a table allows where, mutate,
        select and joins with public tables, and answers counts and clamped sums with public keys.

        Args:
            other: A public table made by `release.public`, or its name in the catalog; or a table
                of the same unit, over the same connection unless both are files or frames.
            on: The key of the public table, or the unit's columns.
            how: "inner", or "left" to keep unmatched rows.
            at_most: The largest number of rows of a public table joined for one key; by default its
                key is unique. For two private tables on another key: a pair, the rows of a key kept
                of this table and of the other.
            rows_per_unit: For such a join, the rows of a unit kept of each table; by default their
                bounds.

        Raises:
            DomainError: If a column is missing or of another type, or the key is not unique and no
                bound is given.
            UnsupportedError: For other joins, in which one unit's rows would meet those of others.
        """
        self._changing("join")
        if how not in ("inner", "left"):
            reason = "rows of the other table alone belong to nobody"
            remedy = "Use how='inner' or how='left'"
            raise UnsupportedError(f"a join with how={how!r}", reason, remedy)
        keys = (on,) if isinstance(on, str) else tuple(on)
        if isinstance(other, str):
            if other not in self.public_tables:
                known = ", ".join(self.public_tables) or "there are none"
                raise DomainError(
                    "join", other, f"a table, or the name of a public table of the catalog: {known}"
                )
            other = self.public_tables[other].opened()
        if isinstance(other, PublicTable):
            if isinstance(at_most, tuple) or rows_per_unit is not None:
                raise DomainError(
                    "at_most", at_most, "one number with a public table, without rows_per_unit"
                )
            return self._with_public(other, keys, how, at_most)
        theirs = self._other("join", other)
        if isinstance(at_most, tuple | list):
            return self._on_another_key(other, theirs, keys, how, (at_most, rows_per_unit))
        if set(keys) != set(self.unit) or at_most is not None or rows_per_unit is not None:
            reason = "one unit's rows would meet those of others, and change them"
            remedy = f"Join on the unit, {list(self.unit)}, or give at_most=(rows of a key here, rows there)"
            raise UnsupportedError(f"a join on {list(keys)}", reason, remedy)
        self._require_joinable(each.name for each in other.columns if each.name not in self.unit)
        one, two = self.bounds, other.bounds
        most = one.rows * two.rows
        bounds = _bounds(
            most,
            min(one.groups * two.groups, most),
            min(one.rows_per_group * two.rows_per_group, most),
        )
        left = whole_rows(self, self.data, stage=f"join {len(self.steps)} left")
        right = whole_rows(other, theirs, stage=f"join {len(self.steps)} right")
        names = [name for name in right.types if name not in self.unit]
        pairs = [(name, name) for name in self.unit]
        data = left.join(right, pairs, {name: name for name in names}, how=how)
        step = f"join {other.identity} on {sorted(keys)} {how}"
        return self._joined(other, data, step, bounds, self.unit)

    def _joined(
        self, other: Self, data: Query, step: str, bounds: Bounds, unit: tuple[str, ...]
    ) -> Self:
        """Return the table whose rows have the columns of both tables."""
        weights = {each.name: other.weights.get(each.name, 1) for each in other.columns}
        ranges = {**other.ranges, **self.ranges}
        return self.changed(
            data, step, weights=weights | dict(self.weights), bounds=bounds, roots=other.roots,
            ranges=ranges, unit=unit,
        )  # fmt: skip

    def _on_another_key(
        self,
        other: Self,
        theirs: Query,
        keys: tuple[str, ...],
        how: str,
        limits: tuple[object, object],
    ) -> Self:
        """Return joined rows that belong to no unit; `keyed_join` proves how many of them one unit
        changes.
        """
        if (
            how != "inner"
            or not keys
            or len(set(keys)) < len(keys)
            or set(keys) & {*self.unit, *other.unit}
        ):
            what = f"a join on {list(keys)} with how={how!r}"
            reason = "rows are joined on a key that is not the unit"
            remedy = "Use how='inner', and columns that are not the unit's"
            raise UnsupportedError(what, reason, remedy)
        for name in keys:
            kinds = [table.column(name).kind for table in (self, other)]
            if kinds[0] != kinds[1] or kinds[0] not in KEYS:
                domain = "a column of integers, texts, dates or truth values, in both tables"
                raise DomainError(
                    "join on", name, domain, f"It holds {kinds[0]}, and {kinds[1]} there"
                )
        joined_columns = [each.name for each in other.columns]
        self._require_joinable(each for each in joined_columns if each not in (*self.unit, *keys))
        ours, those = KeptRows.stated((self.bounds, other.bounds), *limits)
        bounds, at = joined_bounds(ours, those), len(self.steps)
        left = few_of_each_key(self, self.data, keys, ours, stage=f"keyed join {at} left")
        right = few_of_each_key(other, theirs, keys, those, stage=f"keyed join {at} right")
        data = joined(left, right, keys)
        step = f"join {other.identity} on {[*keys]}, keeping {ours} and {those}"
        return self._joined(other, data, step, bounds, ())

    def _with_public(
        self, other: PublicTable, keys: tuple[str, ...], how: str, at_most: int | None
    ) -> Self:
        frame, most = other.for_join(keys, at_most)
        self._require_joinable(name for name in frame.column_names if name not in keys)
        same: dict[str, str] = {}
        for at, name in enumerate(keys):
            found = compiled(col(name), self)
            if found.kind != other.kinds[name] or found.kind == "float":
                domain = f"a column of {other.kinds[name]}s here too; it holds {found.kind}"
                raise DomainError("join on", name, domain)
            same[f"dpcompose_{at}"] = found.value
        # One view for each choice of rows, shared by all joins that use it.
        label = sha256(repr((other.digest, keys, most, at_most is None)).encode()).hexdigest()
        there = of_public(self.data.engine, other, frame, label[:32])
        named = dict(zip(frame.column_names, there.types, strict=True))
        pairs = [(own, named[name]) for own, name in zip(same, keys, strict=True)]
        more = {name: of for name, of in named.items() if name not in keys}
        own = [each.name for each in self.columns]
        data = self.data.mutate(**same).join(there, pairs, more, take=own, how=how)
        one = self.bounds
        if not (self.unit or one.rows * most <= MOST_ROWS):
            domain = (
                f"at most {MOST_ROWS:,} joined rows for one unit, its rows times those of a key"
            )
            remedy = "Bound the rows of a unit lower, or take a smaller `at_most`"
            raise DomainError("join", one.rows * most, domain, remedy)
        bounds = _bounds(one.rows * most, one.groups * most, one.rows_per_group * most)
        return self.changed(
            data, f"join public {other.digest} on {list(keys)} {how} {most}", bounds=bounds
        )

    def _changing(self, what: str) -> Self:
        """Return the table after checking that one more transformation may change it."""
        if not len(self.steps) < MOST_STEPS:
            raise DomainError(what, len(self.steps) + 1, f"at most {MOST_STEPS} transformations")
        for each in self.columns:
            if each.name.casefold().startswith("dpcompose_"):
                raise DomainError("column", each.name, "names that do not begin with dpcompose_")
        return self

    def _other(self, what: str, other: object) -> Query:
        """Return the rows of the other table, of the same unit and bounds, over this table's
        connection.
        """
        if not isinstance(other, type(self)):
            reason = "what is not known to be sound is refused"
            raise UnsupportedError(
                f"{what} with {called(other)}", reason, "Give a table of the same unit"
            )
        if not (self.unit and other.unit):
            what, reason = f"{what} of a table joined on another key", "its rows belong to no unit"
            raise UnsupportedError(
                what, reason, "Do it before that join; where, mutate and select can follow it"
            )
        own, theirs = (
            sorted((each.name, each.type) for each in of.columns if each.name in of.unit)
            for of in (self, other)
        )
        if own != theirs:
            raise DomainError(what, other.unit, f"a table of the same unit: {own}")
        roots = (*self.roots, *other.roots)
        catalogs = {root.catalog for root in roots}
        # A catalog has a bound for each of its tables; in other scopes all tables share one.
        if ("" in catalogs or len(catalogs) > 1) and {root.bounds for root in roots} != {
            self.roots[0].bounds
        }:
            raise DomainError(
                what, str(other.roots[0].bounds), f"a table opened with {self.roots[0].bounds}"
            )
        with self.data.engine.turn:
            data = other.data.over(self.data.engine)
        if data is None:
            remedy = (
                "Open both over one connection, or give files or frames: those are asked together"
            )
            raise UnsupportedError(
                f"{what} of tables on two connections", "no query can read both", remedy
            )
        return data

    def _require_joinable(self, names: Iterable[str]) -> None:
        for name in names:
            self._require_new("join", name, (), replaces=False)

    def _require_new(
        self, what: str, name: str, taken: Collection[str], *, replaces: bool = True
    ) -> None:
        """Refuse names that some engine would shorten, or change in case, to another column's name."""
        what = what[:80]
        if not _NAME.fullmatch(name):
            raise DomainError(
                what, name, "a name of 1 to 63 letters A to Z, digits and _, no digit first"
            )
        if name in self.unit or name.casefold() in {each.casefold() for each in self.unit}:
            raise DomainError(what, name, "another name: a column of the unit cannot be changed")
        there = {*(column.name for column in self.columns), *taken}
        alike = [
            each
            for each in there
            if each.casefold() == name.casefold() and not (replaces and each == name)
        ]
        if alike or name.casefold().startswith("dpcompose_"):
            raise DomainError(
                what, name, f"a new name{f', not that of {alike[0]!r}' if alike else ''}"
            )


def _bounds(rows: int, groups: int, rows_per_group: int) -> Bounds:
    most = min(rows, MOST_ROWS)
    return Bounds(most, min(groups, most), min(rows_per_group, most))


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
    """Open a table for private questions: state its unit of privacy and the bounds on one unit's
    rows.

    Neighboring tables differ in all rows of one unit. Rows whose unit is NULL belong to no unit and
    are left out. So are rows beyond the bounds, the same ones for every question in one scope. A
    view is allowed only if the keeper opened the scope with `note={"trust_view": [its name]}`: in a
    view one unit's rows can affect the rows of others.

    Args:
        source: A pandas, polars, Arrow or Spark frame; the path of a Parquet or CSV file, of a
            folder of Parquet files, or a pattern such as visits/*.parquet; the URL of such files in
            an object store (s3://, gs://); the URL of a database, or an open connection of DuckDB
            or psycopg or a Spark session, with `name` for its table.
        unit: The columns that identify the unit of privacy.
        max_rows_per_unit: Rows kept of one unit; >= 1.
        max_groups_per_unit: Groups of a grouped question in which rows of one unit are kept; by
            default the number of rows.
        max_rows_per_group: Rows kept of one unit in one group; by default the number of rows.
        name: The table in the database; for other sources its name in the ledger. Frames of one
            name are the same table to a retry by key; every unnamed frame is another table.
        schema: Types of columns, such as int64, float64, string, boolean or date, for a source of
            text; values that do not convert become NULL.
        line_breaks: For a CSV file, whether quoted cells may contain line breaks; then an unclosed
            quote swallows the lines after it. By default every line is a row, and a line with an
            unclosed quote is left out.

    Raises:
        DomainError: If an argument is outside its domain, or the source cannot be opened.
        UnsupportedError: If the engine is not supported, or the table is not plain.
        MissingExtraError: If the engine's library is not installed.
    """
    bounds = Bounds.stated(
        max_rows_per_unit, groups=max_groups_per_unit, rows_per_group=max_rows_per_group
    )
    label = None if name is None else check.line("name", name)
    units = _names("unit", unit)
    check.flag("line_breaks", line_breaks)
    made = opened(source, name=label, schema=schema, line_breaks=line_breaks)
    found = Table(unit=units, bounds=bounds, columns=columns_of(made["data"]), **made)
    for each in found.unit:
        if not found.column(each).identifies:
            raise DomainError(
                "unit", each, "a column of integers, text, dates, truth values, decimals or UUIDs"
            )
    return found


def columns_of(data: Query) -> tuple[TableColumn, ...]:
    """Return the columns of a query with their kinds."""
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
