"""Queries as they are written, and what an engine must offer.

A query is text of SQL around other queries, with columns of a type. No value of a row is ever in a text. A query that
several others read is written once, in WITH. An engine is a connection and its SQL: how it writes names, constants and
types, and the functions that engines have under different names or with different meanings.
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
"""A table of a database: its name, after the schema's where one was typed."""


WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"


class Value(str):
    """A value of SQL, in brackets where it has several words, and its type; other texts are 64-bit integers."""

    __slots__ = ("type",)
    type: str

    def __new__(cls, words: str, type: str) -> Self:
        made = super().__new__(cls, words)
        made.type = type
        return made


def type_of(value: str) -> str:
    """The type of a value."""
    return value.type if isinstance(value, Value) else "int64"


def case(*branches: tuple[str, str], other: str = "NULL", type: str = "int64") -> Value:
    """The value of the first branch whose condition holds."""
    words = " ".join(f"WHEN {condition} THEN {value}" for condition, value in branches)
    return Value(f"CASE {words} ELSE {other} END", type)


def over(
    function: str, *, by: Sequence[str] = (), order: Sequence[str] = (), frame: str = ""
) -> str:
    """A function over rows that are equal in `by`."""
    parts = f"PARTITION BY {', '.join(by)}" if by else ""
    sort = f"ORDER BY {', '.join(order)}" if order else ""
    return f"({function} OVER ({' '.join(each for each in (parts, sort, frame) if each)}))"


@dataclass(frozen=True, eq=False)
class Query:
    """Rows of an engine.

    Args:
        engine: Where they are.
        types: The columns, and the types of their values.
        parts: The words that ask for them, around other queries; a table by itself is its name.
        opening: Makes a table of this name on a connection, where it is no table of the database.
        name: The name of a table by itself.
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
        """A column, in what is chosen of this query."""
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
        """Some columns, and computed ones, of the rows for which all conditions hold."""
        taken = {name: self[name] for name in names} | columns
        tail = f" AS t WHERE {' AND '.join(where)}" if where else " AS t"
        return self._select(taken, self, tail)

    def mutate(self, **columns: str) -> Query:
        """All columns, and computed ones in place of those of their names, or beside them."""
        return self.select(**{name: self[name] for name in self.types} | columns)

    def filter(self, *conditions: str) -> Query:
        """The rows for which all conditions hold."""
        return self.select(*self.types, where=conditions) if conditions else self

    def distinct(self) -> Query:
        """Different rows."""
        return self._select(
            {name: self[name] for name in self.types}, self, " AS t", head="SELECT DISTINCT"
        )

    def group(self, by: Sequence[str], **sums: str) -> Query:
        """The rows added up by these columns, if there are any."""
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
        """The rows, each with those of another query that agree with it; NULL agrees with nothing.

        Args:
            other: The other query.
            on: Columns of this query, and of the other one.
            columns: Columns of the other one, by the names that they get.
            take: The columns of this one; by default all.
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
        """The rows of all, with the columns of this one."""
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
        """All queries that it is made of, each once and after those that it reads."""
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
        """The statement."""
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
        """The same rows over another connection; None unless all that is not there yet is a file or a frame.

        A file or a frame is opened there once more, by the words in which it was opened first. So the rows are those
        of the same sources, and no row passes from one connection to another. A connection that somebody else made is
        neither left nor entered: what is declared there is not known here.
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
    """The rows of a public table that are joined, with its columns as c0, c1, ..."""
    columns = [f"c{at}" for at in range(frame.num_columns)]
    kinds = {"integer": "int64", "float": "float64", "text": "string"}
    types = {
        called: kinds.get(table.kinds[of], table.kinds[of])
        for called, of in zip(columns, frame.column_names, strict=True)
    }
    return engine.public(frame.rename_columns(columns), types, f"dpcompose_{name}")


Order = Callable[[Query], Sequence[str]]


@dataclass(frozen=True)
class Relation:
    """An engine's account of a table.

    Args:
        name: As the database has it, with its schema.
        plain: Whether its rows are stored as they are: no view, no computed columns, no rows hidden by a policy.
        location: Where it is for good; None if it lives as long as the connection.
        unique: Columns that no two of its rows agree in, where the database keeps it so.
    """

    name: str
    plain: bool
    location: str | None
    unique: tuple[frozenset[str], ...] = ()


def unsettled(name: str) -> UnsupportedError:
    """The refusal of a table that is not plain, or no longer the one that was opened."""
    reason = "it is a view, or was replaced since it was opened: one unit's rows can decide there what others count"
    remedy = f"Ask the table itself, or let the keeper open a scope with note={{'trust_view': [{name!r}]}}"
    return UnsupportedError(f"the table {name!r}", reason, remedy)


_WORDS = {
    "int8": "tinyint",
    "int16": "smallint",
    "int32": "integer|int",
    "int64": "bigint|oid",
    "uint8": "utinyint",
    "uint16": "usmallint",
    "uint32": "uinteger",
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
"""The types of columns by the words of any engine."""
TYPES = {type: names.split("|")[0].upper() for type, names in _WORDS.items() if "(" not in type}

_TURNS: WeakValueDictionary[int, Lock] = WeakValueDictionary()
"""The lock of each connection: its statements run one after the other, whoever shares it."""


class Engine(ABC):
    """A connection to one engine, and the particulars of its SQL.

    Args:
        raw: The connection, of the engine's own library.
        foreign: Whether somebody else made it, or what is stored there, with whatever is declared there.
        connect: Makes the connection anew where it was lost, if anything can.
    """

    name: str
    """The name in messages."""
    quote: str = '"'
    """What stands around names."""
    types: ClassVar[Mapping[str, str]]
    """Its words for types."""
    kinds: ClassVar[Mapping[str, str]] = KINDS
    """The types of columns by its words for them, without what stands in brackets."""
    labels: bool = False
    """Whether texts are sorted faster by integers that label them."""
    scattered: bool = False
    """Whether private keys may be too many for the machine that asks."""

    def __init__(
        self, raw: Any, *, foreign: bool = True, connect: Callable[[], Any] | None = None
    ) -> None:
        self.raw, self.foreign, self._connect = raw, foreign, connect
        self.turn = _TURNS.setdefault(id(raw), Lock())
        self._opened = set[str]()

    # Words

    def quoted(self, name: str) -> str:
        """A name."""
        return f"{self.quote}{name.replace(self.quote, 2 * self.quote)}{self.quote}"

    def constant(self, value: Any) -> Value:
        """A constant: a truth value, a 64-bit integer, a float, a text or a date; always of the same type."""
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
        """A float, to the last bit; engines take other words for decimals."""

    @abstractmethod
    def text(self, value: str) -> str:
        """A text, whatever the connection takes a backslash for."""

    def cast(self, value: str, type: str) -> Value:
        """A value as one of another type."""
        return Value(f"CAST({value} AS {self.types[type]})", type)

    def double_of(self, value: str) -> str:
        """A number in double precision."""
        return value if type_of(value) == "float64" else self.cast(value, "float64")

    def divided(self, whole: str, by: str) -> str:
        """The quotient of two integers that are not negative, rounded down."""
        return f"({whole} // {by})"

    def is_nan(self, number: str) -> str:
        """Whether a float is NaN."""
        return f"ISNAN({number})"

    def exact_sum(self, value: str) -> str:
        """The sum of 64-bit integers, in more bits than 2^63 of them can fill."""
        return f"SUM({value})"

    @abstractmethod
    def binary_collation(self, column: Value) -> Value:
        """A text column whose values are equal where their code points are, whatever collation was declared.

        Under another one the letters of one row would decide how a group is written, and whether it is that of a key.
        """

    def readable(self, column: str) -> str:
        """Whether a text column holds a text: what is no UTF-8 would come out as the same text as something else."""
        return f"({column} IS NOT NULL)"

    def by_code_point(self, column: str) -> str:
        """Something that sorts as the code points of a text column do."""
        return column

    @abstractmethod
    def digest(self, column: str) -> str:
        """The first 32 bits of the MD5 of a text column's UTF-8 bytes, as an integer: what spreads units evenly."""

    def as_double(self, column: Value) -> Value:
        """A decimal column in double precision, without failing on any row."""
        return self.cast(column, "float64")

    def is_in(self, column: str, values: Sequence[Any]) -> str:
        """Whether a column holds one of these values, however many there are."""
        return f"({column} IN ({', '.join(self.constant(each) for each in values)}))"

    def dictionary(self, values: Sequence[str]) -> Query | None:
        """A table of texts, `value`, and their places, `place`, to join with; None where a comparison does as well."""
        return None

    def numbered(self, rows: Query, of: Sequence[str], order: Order) -> Query:
        """The rows with their place, from 0, among those that are equal in `of`, and the number of those.

        Args:
            rows: Without NULL in the first column of `of`.
            of: The columns.
            order: The sort keys of rows with the same columns.
        """
        by = [rows[name] for name in of]
        place = over("ROW_NUMBER()", by=by, order=order(rows))
        return rows.mutate(place=f"({place} - 1)", number=over("COUNT(*)", by=by))

    # The connection

    def table(self, name: TableName) -> Query:
        """A table of the database, or what was opened under a name.

        Raises:
            Exception: The driver's own, if there is none.
        """
        quoted = ".".join(self.quoted(each) for each in name)
        types = {column: self._type(words) for column, words in self._columns(quoted)}
        return Query(self, types, (quoted,), name=quoted)

    def _type(self, words: str) -> str:
        """The type of a column by the engine's words."""
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
        """The table that an opening makes, under this name."""
        opening(self, name)
        self._opened.add(self.quoted(name))
        return replace(self.table((name,)), opening=opening)

    def open(self, table: Query) -> None:
        """Open a file, a frame or a public table on this connection, unless it is open there.

        Raises:
            DomainError: If a file has other columns by now.
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
        """The rows of a public table, an Arrow table; `name` is that of no other rows."""

    @abstractmethod
    def _columns(self, name: str) -> Sequence[tuple[str, str]]:
        """The columns of a table, and the engine's words for their types."""

    @abstractmethod
    def relation(self, name: TableName) -> Relation:
        """The database's account of a table of its own, now."""

    def require(self) -> None:  # noqa: B027
        """Raise DomainError if the connection takes different texts for equal, or cannot say all of them."""

    def reconnect(self) -> None:  # noqa: B027
        """Connect again where the connection was lost, and not closed; an embedded engine has none to lose."""

    def rows(self, words: str) -> Sequence[tuple[Any, ...]]:
        """The rows of a small result as plain Python values."""
        return self.raw.execute(words).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self.raw.close()


_SILENT, _INSIDE = Lock(), list[ExitStack]()
"""Who is inside `without_warnings`; the first one's stack restores the filters when the last one leaves."""


@contextmanager
def without_warnings() -> Generator[None]:
    """Silence the warnings of the libraries below: they are not for analysts, and might speak of rows.

    Warnings are off while any thread is inside: the filters of Python belong to all threads of a process.
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
    """The narrowest type for all integers from `least` to `most`: what is sorted then takes less time and memory."""
    types = {"int16": 2**15, "int32": 2**31}
    return next((type for type, size in types.items() if -size <= least and most < size), "int64")


def run(query: Query) -> Sequence[tuple[Any, ...]]:
    """The rows of a query; whatever the engine says when it fails stays unsaid, for it may speak of rows.

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
    # Raised out here, so that the engine's own error is not even its context.
    if failed:
        raise EngineError(engine.name)
    return found
