"""SQL queries as values, and the interface that an engine must offer.

A query is SQL text around other queries, with typed columns. The text never contains a value from a
row. A query that several others read is written once, in WITH. An engine is a connection and its
SQL dialect: how it writes names, constants and types, and the functions that differ from engine to
engine in name or meaning.
"""

# The drivers have types in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from threading import Lock
from typing import Any, ClassVar, Self
from weakref import WeakValueDictionary

from dpcompose.errors import DomainError, EngineError, UnsupportedError
from dpcompose.release.arrow import PublicTable

TableName = tuple[str, ...]
"""The name of a table of a database, preceded by its schema if one was typed."""


KIND_TYPES = {
    "integer": "int64",
    "float": "float64",
    "text": "string",
    "boolean": "boolean",
    "date": "date",
}
"""Maps the kinds of values that expressions have to the types used here."""


class Value(str):
    """SQL for a value, with its type, in brackets if it has several words. SQL text without a type
    is a 64-bit integer.
    """

    __slots__ = ("type",)
    type: str

    def __new__(cls, words: str, type: str) -> Self:
        made = super().__new__(cls, words)
        made.type = type
        return made


def type_of(value: str) -> str:
    """Return the type of SQL for a value."""
    return value.type if isinstance(value, Value) else "int64"


def case(*branches: tuple[str, str], other: str = "NULL", type: str = "int64") -> Value:
    """Return SQL for the value of the first branch whose condition holds."""
    words = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return Value(f"CASE {words} ELSE {other} END", type)


def over(
    function: str, *, by: Sequence[str] = (), order: Sequence[str] = (), frame: str = ""
) -> str:
    """Return SQL for a window function over the rows that are equal in `by`."""
    parts = f"PARTITION BY {', '.join(by)}" if by else ""
    sort = f"ORDER BY {', '.join(order)}" if order else ""
    return f"({function} OVER ({' '.join(each for each in (parts, sort, frame) if each)}))"


@dataclass(frozen=True, eq=False)
class Query:
    """A query of one engine.

    Args:
        engine: The engine that runs it.
        types: The columns and the types of their values.
        parts: The pieces of SQL text around the queries that it reads; for a plain table, its name.
        opening: Creates a table of this name on a connection, if it is no table of the database.
        name: The name of a plain table.
    """

    engine: Engine
    types: Mapping[str, str]
    parts: tuple[str | Query, ...]
    opening: Callable[[Engine, str], None] | None = None
    name: str = ""

    @property
    def columns(self) -> list[str]:
        """The names of the columns."""
        return list(self.types)

    def __getitem__(self, name: str) -> Value:
        """SQL for a column, as used in the selected expressions of this query."""
        return Value(f"t.{self.engine.quoted(name)}", self.types[name])

    def _select(
        self, columns: Mapping[str, str], *more: str | Query, head: str = "SELECT"
    ) -> Query:
        words = ", ".join(
            f"{value} AS {self.engine.quoted(name)}" for name, value in columns.items()
        )
        types = {name: type_of(value) for name, value in columns.items()}
        return Query(self.engine, types, (f"{head} {words} FROM ", *more))

    def select(self, *names: str, where: Collection[str] = (), **columns: str) -> Query:
        """Select columns and computed values of the rows for which all conditions hold."""
        taken = {name: self[name] for name in names} | columns
        tail = f" AS t WHERE {' AND '.join(where)}" if where else " AS t"
        return self._select(taken, self, tail)

    def mutate(self, **columns: str) -> Query:
        """Keep all columns; add computed ones, or replace those of the same name."""
        return self.select(**{name: self[name] for name in self.types} | columns)

    def filter(self, *conditions: str) -> Query:
        """Keep the rows for which all conditions hold."""
        return self.select(*self.types, where=conditions) if conditions else self

    def distinct(self) -> Query:
        """Keep one of each set of equal rows."""
        return self._select(
            {name: self[name] for name in self.types}, self, " AS t", head="SELECT DISTINCT"
        )

    def group(self, by: Sequence[str], **sums: str) -> Query:
        """Aggregate the rows by these columns; if there are none, all rows together."""
        columns = {name: self[name] for name in by}
        tail = f" AS t GROUP BY {', '.join(columns.values())}" if by else " AS t"
        return self._select(columns | sums, self, tail)

    def join(
        self,
        other: Query,
        on: Sequence[tuple[str, str]],
        columns: Mapping[str, str] | None = None,
        *,
        take: Sequence[str] | None = None,
        how: str = "inner",
    ) -> Query:
        """Join each row with the rows of another query that have equal keys; NULL equals nothing.

        Args:
            other: The other query.
            on: Pairs of a column of this query and one of the other.
            columns: Maps columns of the other query to their new names.
            take: The columns of this query to keep; by default all.
            how: "inner" or "left".
        """
        quoted = self.engine.quoted
        own = {
            name: Value(f"l.{quoted(name)}", self.types[name])
            for name in (self.types if take is None else take)
        }
        theirs = {
            name: Value(f"r.{quoted(of)}", other.types[of]) for name, of in (columns or {}).items()
        }
        equal = " AND ".join(f"l.{quoted(own)} = r.{quoted(of)}" for own, of in on)
        return self._select(
            own | theirs, self, f" AS l {how.upper()} JOIN ", other, f" AS r ON {equal}"
        )

    def union(self, *others: Query) -> Query:
        """Append the rows of other queries, with the columns of this one."""
        parts: list[str | Query] = []
        for each in (self, *others):
            columns = ", ".join(each[name] for name in self.types)
            parts += [f"{' UNION ALL ' if parts else ''}SELECT {columns} FROM ", each, " AS t"]
        return Query(self.engine, self.types, tuple(parts))

    def tables(self) -> Iterator[Query]:
        """The tables that it reads, each once."""
        return (each for each in self._all if each.name)

    @cached_property
    def _all(self) -> tuple[Query, ...]:
        """Yield all queries it consists of, each once and after those that it reads."""
        found: dict[int, Query] = {}
        waiting: list[tuple[Query, bool]] = [(self, False)]
        while waiting:
            query, ready = waiting.pop()
            if ready:
                found.setdefault(id(query), query)
            elif id(query) not in found:
                waiting.append((query, True))
                waiting += [(each, False) for each in query.parts if isinstance(each, Query)]
        return tuple(found.values())

    @cached_property
    def words(self) -> str:
        """Return the complete SQL statement."""
        if self.name:
            return self.select(*self.types).words
        read: dict[int, int] = {}
        for each in self._all:
            for part in each.parts:
                if isinstance(part, Query):
                    read[id(part)] = read.get(id(part), 0) + 1
        texts: dict[int, str] = {}
        shared: list[str] = []
        for each in self._all:
            text = "".join(
                part if isinstance(part, str) else texts[id(part)] for part in each.parts
            )
            if each.name or each is self:
                texts[id(each)] = text
            elif read[id(each)] > 1:
                texts[id(each)] = f"shared{len(shared)}"
                shared.append(f"shared{len(shared)} AS ({text})")
            else:
                texts[id(each)] = f"({text})"
        start = f"WITH {', '.join(shared)} " if shared else ""
        return start + texts[id(self)]

    def over(self, engine: Engine) -> Query | None:
        """Return the same rows over another connection; None unless all tables missing there are
        files or frames.

        A file or frame is opened there again by its original description, so the rows come from the
        same sources, and no row passes between connections. A connection made by somebody else is
        never left or entered, since what is declared on it is unknown here.
        """
        if engine.raw is self.engine.raw:
            return self
        if engine.foreign or not all(each.opening for each in self.tables()):
            return None
        made: dict[int, Query] = {}
        for each in self._all:
            parts = tuple(part if isinstance(part, str) else made[id(part)] for part in each.parts)
            made[id(each)] = Query(engine, each.types, parts, each.opening, each.name)
            if each.name:
                engine.open(made[id(each)])
        return made[id(self)]


def of_public(engine: Engine, table: PublicTable, frame: Any, name: str) -> Query:
    """Return the rows of a public table for a join, with its columns as c0, c1, ..."""
    columns = [f"c{at}" for at in range(frame.num_columns)]
    kinds = [table.kinds[name] for name in frame.column_names]
    types = {name: KIND_TYPES[kind] for name, kind in zip(columns, kinds, strict=True)}
    return engine.public(frame.rename_columns(columns), types, f"dpcompose_{name}")


Order = Callable[[Query], Sequence[str]]


@dataclass(frozen=True)
class Relation:
    """The entry for a table in an engine's catalog.

    Args:
        name: The name in the database, with its schema.
        plain: Whether rows are returned as stored: no view, no computed columns, no rows hidden by
            a policy.
        location: Its permanent location; None if it lives only as long as the connection.
        unique: Sets of columns that the database enforces to be unique.
    """

    name: str
    plain: bool
    location: str | None
    unique: tuple[frozenset[str], ...] = ()


def unsettled(name: str) -> UnsupportedError:
    """Return the error for a table that is not plain, or differs from the one that was opened."""
    reason = "it is a view, or was replaced since it was opened: one unit's rows can decide there what others count"
    remedy = f"Ask the table itself, or let the keeper open a scope with note={{'trust_view': [{name!r}]}}"
    return UnsupportedError(f"the table {name!r}", reason, remedy)


_WORDS = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "integer|int",
    "int64": "bigint",
    "uint8": "utinyint",
    "uint16": "usmallint",
    "uint32": "uinteger|oid",
    "uint64": "ubigint",
    "float32": "float|real",
    "float64": "double|double precision",
    "string": "varchar|string|text|char|character|character varying|enum|name|citext",
    "decimal(38, 0)": "hugeint",
    "boolean": "boolean",
    "date": "date",
    "time": "time|time without time zone",
    "uuid": "uuid",
    "binary": "blob|binary|bytea",
    "timestamp": "timestamp_ntz",
    "timestamp(6)": "timestamp|timestamp without time zone",
    "timestamp(9)": "timestamp_ns",
    "timestamp(3)": "timestamp_ms",
    "timestamp(0)": "timestamp_s",
    "timestamp('UTC', 6)": "timestamp with time zone",
}
KINDS = {words: type for type, names in _WORDS.items() for words in names.split("|")}
"""Maps the type names of all engines to the types used here."""
TYPES = {type: names.split("|")[0].upper() for type, names in _WORDS.items() if "(" not in type}

_TURNS: WeakValueDictionary[int, Lock] = WeakValueDictionary()
"""One lock for each connection, so that its statements run one after the other."""


class Engine(ABC):
    """A connection to one database engine, and its SQL dialect.

    Args:
        raw: The connection, of the engine's own library.
        foreign: Whether somebody else made the connection or its contents, so that unknown
            declarations may be in force.
        connect: Reconnects after the connection was lost; None if that is impossible.
    """

    name: str
    """The name of the engine in messages."""
    quote: str = '"'
    """The character that quotes names."""
    types: ClassVar[dict[str, str]] = TYPES
    """Maps the types used here to the engine's names for them."""
    kinds: ClassVar[dict[str, str]] = KINDS
    """Maps the engine's type names, without what stands in brackets, to the types used here."""
    labels: bool = False
    """Whether sorting texts is faster by integer labels."""
    scattered: bool = False
    """Whether private keys may be too many for the client's memory."""

    def __init__(
        self, raw: Any, *, foreign: bool = True, connect: Callable[[], Any] | None = None
    ) -> None:
        self.raw, self.foreign, self._connect = raw, foreign, connect
        self.turn = _TURNS.setdefault(id(raw), Lock())
        self._opened = set[str]()

    # SQL text

    def quoted(self, name: str) -> str:
        """Return SQL for a name, in quotes."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def constant(self, value: Any) -> Value:
        """Return SQL for a constant with a fixed type: a truth value, a 64-bit integer, a float, a
        text or a date.
        """
        match value:
            case bool():
                return Value(str(value).upper(), "boolean")
            case int():
                return self.cast(str(value), "int64")
            case float():
                return Value(self.double(repr(value)), "float64")
            case date():
                return Value(f"DATE '{value.isoformat()}'", "date")
            case _:
                return Value(self.text(value), "string")

    @abstractmethod
    def double(self, number: str) -> str:
        """Return SQL for a float, exact to the last bit; engines read decimal notation as another
        type.
        """

    @abstractmethod
    def text(self, value: str) -> str:
        """Return SQL for a text, valid whatever a backslash means on the connection."""

    def cast(self, value: str, type: str) -> Value:
        """Return SQL for a value cast to a type."""
        return Value(f"CAST({value} AS {self.types[type]})", type)

    def double_of(self, value: str) -> str:
        """Return SQL for a number in double precision."""
        return value if type_of(value) == "float64" else self.cast(value, "float64")

    def quotient(self, one: str, two: str) -> str:
        """Return SQL for the quotient of two floats: NULL, infinite or NaN if the second is 0."""
        return f"({one} / NULLIF({two}, {self.constant(0.0)}))"

    def is_nan(self, number: str) -> str:
        """Return SQL for whether a float is NaN."""
        return f"ISNAN({number})"

    def exact_sum(self, value: str) -> str:
        """Return SQL for the sum of 64-bit integers, in a type that 2^63 of them cannot overflow."""
        return f"SUM({value})"

    @abstractmethod
    def binary_collation(self, column: Value) -> Value:
        """Return SQL for a text column under which values are equal only if their code points are.

        Under other collations, the spelling in one row could decide how a group is written and
        which key it matches.
        """

    def readable(self, column: str) -> str:
        """Return SQL for whether a text column holds valid text; invalid UTF-8 could read the same
        as another text.
        """
        return f"({column} IS NOT NULL)"

    def by_code_point(self, column: str) -> str:
        """Return SQL that sorts a text column by code point."""
        return column

    @abstractmethod
    def digest(self, column: str) -> str:
        """Return SQL for the first 32 bits of the MD5 of a text's UTF-8 bytes, as an integer; it
        spreads units evenly.
        """

    def as_double(self, column: Value) -> Value:
        """Return SQL for a decimal column in double precision that fails on no row."""
        return self.cast(column, "float64")

    def is_in(self, column: str, values: Sequence[Any]) -> str:
        """Return SQL for whether a column holds one of these values, however many there are."""
        return f"({column} IN ({', '.join(self.constant(each) for each in values)}))"

    def dictionary(self, values: Sequence[str]) -> Query | None:
        """Return a table of texts, `value`, and their positions, `place`, to join with; None if
        that saves nothing.
        """
        return None

    def numbered(self, rows: Query, of: Sequence[str], order: Order) -> Query:
        """Add to each row its position, from 0, among the rows equal in `of`, and the number of
        those rows.

        Args:
            rows: Rows without NULL in the first column of `of`.
            of: The columns that define groups.
            order: Returns the sort keys for rows with these columns.
        """
        by = [rows[name] for name in of]
        place = over("ROW_NUMBER()", by=by, order=order(rows))
        return rows.mutate(place=f"({place} - 1)", number=over("COUNT(*)", by=by))

    # Connection

    def table(self, name: TableName) -> Query:
        """Return a table of the database, or one that was opened under this name.

        Raises:
            Exception: The driver's own, if there is none.
        """
        quoted = ".".join(self.quoted(each) for each in name)
        types = {column: self._type(words) for column, words in self._columns(quoted)}
        return Query(self, types, (quoted,), name=quoted)

    def _type(self, words: str) -> str:
        """Return the type for an engine's type name."""
        head, _, inner = words.partition("(")
        if head.lower() in ("decimal", "numeric"):
            return f"decimal({', '.join(re.findall('[0-9]+', inner))})" if inner else "decimal"
        named = (
            re.sub(r"\([^()]*\)", "", words).lower()
            if "timestamp" in words.lower()
            else head.lower()
        )
        return self.kinds.get(named, words.lower())

    def opened(self, opening: Callable[[Engine, str], None], name: str) -> Query:
        """Create a table by this function and return it under this name."""
        opening(self, name)
        self._opened.add(self.quoted(name))
        return replace(self.table((name,)), opening=opening)

    def open(self, table: Query) -> None:
        """Open a file, a frame or a public table on this connection, unless it is open there.

        Raises:
            DomainError: If the columns of a file have changed.
        """
        if table.opening is None or table.name in self._opened:
            return
        name = table.name.strip(self.quote)
        if self.opened(table.opening, name).types != table.types:
            raise DomainError(
                "table", table.columns, "the columns that the file had when it was opened"
            )

    @abstractmethod
    def public(self, frame: Any, types: Mapping[str, str], name: str) -> Query:
        """Register an Arrow table under a name that no other rows have, and return it."""

    @abstractmethod
    def _columns(self, name: str) -> Sequence[tuple[str, str]]:
        """Return the columns of a table with the engine's type names."""

    @abstractmethod
    def relation(self, name: TableName) -> Relation:
        """Return what the database's catalog states about a table now."""

    def require(self) -> None:  # noqa: B027
        """Raise DomainError if the connection takes different texts for equal, or cannot represent
        all texts.
        """

    def reconnect(self) -> None:  # noqa: B027
        """Reconnect if the connection was lost, not closed; an embedded engine cannot lose it."""

    def rows(self, words: str) -> Sequence[tuple[Any, ...]]:
        """Return the rows of a small result as Python values."""
        return self.raw.execute(words).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


_SILENT, _INSIDE = Lock(), list[ExitStack]()
"""The lock and the users of `without_warnings`; the last to leave restores the filters."""


@contextmanager
def without_warnings() -> Generator[None]:
    """Silence warnings of database libraries, which are not meant for analysts and may reveal rows.

    Python's warning filters belong to the process, so warnings are off while any thread is inside.
    """
    with _SILENT:
        _INSIDE.append(ExitStack())
        if len(_INSIDE) == 1:
            _INSIDE[0].enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")
    try:
        yield
    finally:
        with _SILENT:
            _INSIDE.pop() if len(_INSIDE) > 1 else _INSIDE.pop().close()


def narrowest(least: int, most: int) -> str:
    """Return the narrowest type for all integers from `least` to `most`, which saves time and
    memory in sorts.
    """
    types = {"int16": 2**15, "int32": 2**31}
    return next((type for type, size in types.items() if -size <= least and most < size), "int64")


def run(query: Query) -> Sequence[tuple[Any, ...]]:
    """Run a query and return its rows. The engine's own error message is suppressed, since it may
    reveal rows.

    Raises:
        EngineError: If the engine failed.
    """
    engine, failed = query.engine, False
    found: Sequence[tuple[Any, ...]] = ()
    with without_warnings(), engine.turn:
        try:
            engine.require()
            for each in query.tables():
                engine.open(each)
            found = engine.rows(query.words)
        except Exception:
            failed = True
    # Raised outside of the handler, so that the engine's error is not even attached as context.
    if failed:
        raise EngineError(engine.name)
    return found
