"""The engines that aggregate exactly: what one must offer, and DuckDB, PostgreSQL and Spark."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from datetime import date
from threading import Lock
from typing import Any

from dpcompose.errors import DomainError, EngineError, UnsupportedError

Expression = Any
"""An ibis expression: ibis types its own only in part, so nothing is claimed of them."""
Order = Callable[[Expression], Sequence[Any]]


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


def base(data: Expression) -> Any:
    """The table of the database, or the frame, of which `data` has some columns by name.

    Raises:
        UnsupportedError: If it is any other expression: ibis has many, so what is not known to be sound is refused.
    """
    import ibis.expr.operations as ops

    node: Any = data.op()
    while True:
        match node:
            case ops.DatabaseTable() | ops.InMemoryTable():
                return node
            case ops.DropColumns():
                node = node.parent
            case ops.Project() if all(
                _is(ops.Field, value, name, node.parent) for name, value in node.values.items()
            ):
                node = node.parent
            case _:
                reason = "one unit's rows can decide there what becomes of other units' rows, and no bound would hold"
                remedy = "Give a table of the database, a frame or a file; columns may be chosen by select and drop"
                raise UnsupportedError(
                    f"an ibis expression with {type(node).__name__}", reason, remedy
                )


def _is(field: type, value: Any, name: str, parent: Any) -> bool:
    return isinstance(value, field) and (value.name, value.rel) == (name, parent)  # pyright: ignore[reportAttributeAccessIssue]


def unsettled(name: str) -> UnsupportedError:
    """The refusal of a table that is not plain, or no longer the one that was opened."""
    reason = "it is a view, or was replaced since it was opened: one unit's rows can decide there what others count"
    remedy = f"Ask the table itself, or let the keeper open a scope with note={{'trust_view': [{name!r}]}}"
    return UnsupportedError(f"the table {name!r}", reason, remedy)


@dataclass(frozen=True)
class EngineStatement:
    """An expression, and the words in which its engine is asked for it.

    Args:
        expression: What is asked; small tables that it names live as long as it does.
        words: In the engine's SQL.
        backend: The connection that it is asked over.
    """

    expression: Expression
    words: str
    backend: Any


class Engine(ABC):
    """The particulars of one engine; all else is ibis expressions."""

    name: str
    """The name in messages."""
    labels: bool = False
    """Whether texts are sorted faster by integers that label them."""
    scattered: bool = False
    """Whether private keys may be too many for the machine that asks."""

    def exact_sum(self, column: Expression) -> Expression:
        """The sum of 64-bit integers, in more bits than 2^63 of them can fill."""
        return column.sum()

    @abstractmethod
    def binary_collation(self, column: Expression) -> Expression:
        """A text column whose values are equal where their code points are, whatever collation was declared.

        Under another one the letters of one row would decide how a group is written, and whether it is that of a key.
        """

    def readable(self, column: Expression) -> Expression:
        """Whether a text column holds a text: what is no UTF-8 would come out as the same text as something else."""
        return column.notnull()

    def by_code_point(self, column: Expression) -> Expression:
        """Something that sorts as the code points of a text column do."""
        return column

    @abstractmethod
    def digest(self, column: Expression) -> Expression:
        """The first 32 bits of the MD5 of a text column's UTF-8 bytes, as an integer: what spreads units evenly."""

    def as_double(self, column: Expression) -> Expression:
        """A decimal column in double precision, without failing on any row."""
        return column.cast("float64")

    def is_in(self, column: Expression, values: Sequence[Any]) -> Expression:
        """Whether a column holds one of these values, however many there are."""
        return column.isin(list(values))

    def dictionary(self, values: Sequence[str]) -> Expression | None:
        """A table of texts, `value`, and their places, `place`, to join with; None where a comparison does as well."""
        return None

    def small(self, rows: Expression) -> Expression:
        """The same rows, expected to be few: what a join keeps in memory, in place of the other side."""
        return rows

    def numbered(self, rows: Expression, of: Sequence[str], order: Order) -> Expression:
        """The rows with their place, from 0, among those that are equal in `of`, and the number of those.

        Args:
            rows: Without NULL in the first column of `of`.
            of: The columns.
            order: The sort keys of rows with the same columns.
        """
        import ibis

        window = ibis.window(group_by=of, order_by=order(rows))
        whole = ibis.window(group_by=of, order_by=order(rows), preceding=None, following=None)
        return rows.mutate(place=ibis.row_number().over(window), number=rows.count().over(whole))

    @abstractmethod
    def relation(self, table: Any, backend: Any) -> Relation:
        """The database's account of a table of its own, now."""

    @abstractmethod
    def require(self, backend: Any) -> None:
        """Raise DomainError if the connection takes different texts for equal, or cannot say all of them."""

    def reconnect(self, backend: Any) -> None:  # noqa: B027
        """Connect again where the connection was lost, and not closed; an embedded engine has none to lose."""

    @abstractmethod
    def rows(self, statement: EngineStatement) -> Sequence[tuple[Any, ...]]:
        """The rows of a small result as plain Python values."""


class _Silence:
    """Warnings are off while any thread is inside: the filters of Python belong to all threads of a process."""

    def __init__(self) -> None:
        self._lock, self._inside, self._before = Lock(), 0, ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._before.enter_context(warnings.catch_warnings())
                warnings.simplefilter("ignore")
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._before.close()


_SILENCE = _Silence()


def without_warnings() -> AbstractContextManager[None]:
    """Silence the warnings of the libraries below: they are not for analysts, and might speak of rows."""
    return _SILENCE


def narrowest(least: int, most: int) -> str:
    """The narrowest type for all integers from `least` to `most`: what is sorted then takes less time and memory."""
    types = {"int16": 2**15, "int32": 2**31}
    return next((type for type, size in types.items() if -size <= least and most < size), "int64")


def turn(backend: Any) -> Lock:
    """The lock of a connection: its statements run one after the other, whoever shares it."""
    return backend.__dict__.setdefault("dpcompose_turn", Lock())


def run(engine: Engine, statement: EngineStatement) -> Sequence[tuple[Any, ...]]:
    """The rows of a statement; whatever the engine says when it fails stays without_warnings, for it may speak of rows.

    Raises:
        EngineError: If the engine failed.
    """
    failed = False
    found: Sequence[tuple[Any, ...]] = ()
    with without_warnings(), turn(statement.backend):
        try:
            engine.require(statement.backend)
            found = engine.rows(statement)
        except Exception:
            failed = True
    # Raised out here, so that the engine's own error is not even its context.
    if failed:
        raise EngineError(engine.name)
    return found


FEW = 50
_KEY_TYPES = {int: "int64", str: "string", date: "date"}
_RELATIONS = """
SELECT database_name, schema_name, path, CASE WHEN type <> 'duckdb' OR temporary THEN 'other' ELSE 'table' END, sql
FROM duckdb_tables() JOIN duckdb_databases() USING (database_name) WHERE lower(table_name) = lower(?)
UNION ALL
SELECT database_name, schema_name, NULL, CASE WHEN temporary THEN 'frame' ELSE 'other' END, sql
FROM duckdb_views() WHERE lower(view_name) = lower(?)
"""
"""Tables and views of a name; temporary tables hold what some expression gave."""
_UNIQUE = """
SELECT constraint_column_names FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND database_name = ? AND schema_name = ? AND table_name = ?
"""
_FRAME = re.compile(
    r"CREATE TEMP VIEW [^()]+ AS SELECT \* FROM (python_arrow_scan|arrow_scan|pandas_scan|read_parquet|parquet_scan)"
    r"\((list_value\([^()]*\)|[^()]*)\)( AS \w+)?;?",
    re.DOTALL,
)


_STUBS = (lambda: None, lambda one: None, lambda one, two: None, lambda one, two, three: None)  # pyright: ignore


def _function(name: str, *types: str) -> Any:
    """A function that an engine has; `types` are those of its arguments and of its result, as ibis writes them."""
    import ibis

    *arguments, result = types
    builtin: Any = ibis.udf.scalar.builtin
    return builtin(_STUBS[len(arguments)], name=name, signature=(tuple(arguments), result))


@dataclass(frozen=True)
class OnDuckDB(Engine):
    """Sums of BIGINT are 128-bit integers; text sorts by its UTF-8 bytes, which is by code point.

    Args:
        foreign: Whether columns may have been declared with a collation.
    """

    name: str = "DuckDB"
    labels: bool = True
    foreign: bool = False

    def binary_collation(self, column: Expression) -> Expression:
        if not self.foreign:
            return column
        return _function("decode", "binary", "string")(
            _function("encode", "string", "binary")(column)
        )

    def digest(self, column: Expression) -> Expression:
        import ibis

        return (
            ibis.literal("0x") + _function("md5", "string", "string")(column).substr(0, 8)
        ).cast("int64")

    def is_in(self, column: Expression, values: Sequence[Any]) -> Expression:
        """A table of the values where there are many: to write and read thousands of literals takes long."""
        types = {_KEY_TYPES.get(value.__class__) for value in values}
        type = types.pop() if len(types) == 1 else None
        listed = (
            None
            if type is None or len(values) <= FEW
            else _listed([str(value) for value in values])
        )
        return column.isin(
            list(values) if listed is None else listed.select(value=listed.value.cast(type)).value
        )

    def dictionary(self, values: Sequence[str]) -> Expression | None:
        """Windows and groups over small integers take half the time of those over text."""
        return _listed(values)

    def small(self, rows: Expression) -> Expression:
        """DuckDB expects one row of what is unpacked from one list, and many of a filter."""
        import ibis

        listed = rows.agg(listed=ibis.struct({name: rows[name] for name in rows.columns}).collect())
        unpacked = listed.select(row=listed.listed.unnest())
        return unpacked.select(**{name: unpacked.row[name] for name in rows.columns})

    def numbered(self, rows: Expression, of: Sequence[str], order: Order) -> Expression:
        """The ranks of all rows, sorted once, say where a group begins and ends: faster than a window for each group.

        DuckDB sorts keys of at most eight bytes in two thirds of the time. So integers that fit 32 bits are sorted
        apart. All rows of a group are on the same side.
        """
        import ibis

        first = rows[of[0]]
        if not first.type().is_int64():
            return _numbered(rows, of, order)
        fits = first.between(-(2**31), 2**31 - 1)
        narrow = rows.filter(fits)
        narrow = _numbered(narrow.mutate(**{of[0]: narrow[of[0]].cast("int32")}), of, order)
        narrow = narrow.mutate(**{of[0]: narrow[of[0]].cast("int64")})
        return ibis.union(narrow, _numbered(rows.filter(~fits), of, order))

    def relation(self, table: Any, backend: Any) -> Relation:
        """Views of frames and of Parquet files count as tables: DuckDB and ibis make them so."""
        wanted = (table.namespace.catalog, table.namespace.database)
        found = backend.con.execute(_RELATIONS, [table.name, table.name]).fetchall()
        named = [
            each
            for each in found
            if all(want in (None, has) for want, has in zip(wanted, each[:2], strict=True))
        ]
        # Of several of one name the engine takes one: all have to be plain.
        plain = bool(named) and all(
            _plain(table.name, kind, words) for _, _, _, kind, words in named
        )
        if len(named) != 1:
            return Relation(table.name, plain, None)
        catalog, schema, path, _, _ = named[0]
        unique = (
            backend.con.execute(_UNIQUE, [catalog, schema, table.name]).fetchall() if plain else []
        )
        place = path and f"duckdb {path} {schema}.{table.name}"
        return Relation(
            table.name, plain, place, tuple(frozenset(columns) for (columns,) in unique)
        )

    def require(self, backend: Any) -> None:
        """Refuse a connection that takes different texts for equal, whatever their columns say."""
        ((found,),) = backend.con.execute("SELECT current_setting('default_collation')").fetchall()
        if self.foreign and found not in (None, "", "binary"):
            remedy = "Equal keys would be written as one row or another has them: RESET default_collation"
            raise DomainError("default_collation", found, "none, or binary", remedy)

    def rows(self, statement: EngineStatement) -> Sequence[tuple[Any, ...]]:
        statement.backend._run_pre_execute_hooks(statement.expression)
        found = statement.backend.con.execute(statement.words).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def _listed(values: Sequence[str]) -> Expression | None:
    """A table of texts, `value`, and their places, `place`, written as one literal; None if no letter separates them.

    A table of Arrow's would import its data sets and pandas: 60 MB, and half a second.
    """
    import ibis

    letters = set[str]().union(*values)
    separator = next(
        (letter for letter in map(chr, range(1, 2**15)) if letter not in letters), None
    )
    if separator is None or not values:
        return None
    together: Any = ibis.literal(separator.join(values))
    listed: Any = together.split(separator).name("listed").as_table()
    # DuckDB's ranges are of 64 bits, whatever ibis takes them for.
    place: Any = ibis.range(ibis.literal(0, "int64"), ibis.literal(len(values), "int64")).unnest()
    return listed.select(value=listed.listed.unnest(), place=place.cast(narrowest(0, len(values))))


def _numbered(rows: Expression, of: Sequence[str], order: Order) -> Expression:
    import ibis

    equal = ibis.window(order_by=[rows[name] for name in of])
    sort = [*(rows[name] for name in of), *order(rows)]
    everywhere = ibis.window(order_by=sort, preceding=None, following=None)
    # DuckDB finds a sum over all rows once, but count(*) again for each row.
    total: Any = rows[of[0]].notnull().sum().over(everywhere)
    before: Any = ibis.rank().over(equal)
    last: Any = (ibis.cume_dist().over(equal) * total).round()
    place = ibis.row_number().over(ibis.window(order_by=sort)) - before
    return rows.mutate(place=place, number=last - before)


def _plain(name: str, kind: str, words: str) -> bool:
    """Whether rows come out as they are stored: an expression for a column is one for all rows of everybody."""
    if kind == "frame":
        quoted = (name, '"' + name.replace('"', '""') + '"')
        heads = tuple(f"CREATE TEMP VIEW {each} AS SELECT * FROM " for each in quoted)
        return words.startswith(heads) and _FRAME.fullmatch(words) is not None
    return kind == "table" and "GENERATED ALWAYS AS" not in words


_RELATION = """
WITH RECURSIVE part(oid) AS (
    SELECT to_regclass(%s)::oid UNION SELECT inhrelid FROM pg_inherits JOIN part ON inhparent = part.oid
)
SELECT bool_and(relkind IN ('r', 'p') AND relpersistence <> 't' AND NOT relrowsecurity),
    min(nspname || '.' || relname) FILTER (WHERE relkind IN ('r', 'p') AND relpersistence <> 't')
FROM part JOIN pg_class ON pg_class.oid = part.oid JOIN pg_namespace ON pg_namespace.oid = relnamespace
"""
_KEPT_UNIQUE = """
SELECT array_agg(attname::text) FROM pg_index
    JOIN pg_class ON pg_class.oid = indrelid
    JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY ((indkey::int2[])[0:indnkeyatts - 1])
WHERE indrelid = to_regclass(%s) AND indisunique AND indisvalid AND indisready AND indimmediate
    AND indpred IS NULL AND indexprs IS NULL
    AND (relkind = 'p' OR NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = indrelid))
GROUP BY indexrelid HAVING bool_and(attcollation = 0)
"""
"""Columns that are unique at every moment, with the rows of children. Texts are not among them: an index of theirs is
not unique any more when the system's collation has changed below it."""


@dataclass(frozen=True)
class OnPostgreSQL(Engine):
    """Sums of bigint are numeric, without a limit; text sorts by its collation, so its UTF-8 bytes are sorted."""

    name: str = "PostgreSQL"

    def binary_collation(self, column: Expression) -> Expression:
        """Text made of bytes has the collation of the database itself: there, different texts are never equal."""
        return _function("convert_from", "binary", "string", "string")(
            self.by_code_point(column), "UTF8"
        )

    def by_code_point(self, column: Expression) -> Expression:
        return _function("convert_to", "string", "string", "binary")(column.cast("string"), "UTF8")

    def digest(self, column: Expression) -> Expression:
        hexadecimal = _function("md5", "binary", "string")(self.by_code_point(column))
        found = _function("decode", "string", "string", "binary")(hexadecimal, "hex")
        byte = _function("get_byte", "binary", "int32", "int32")
        return sum(byte(found, place).cast("int64") * 256 ** (3 - place) for place in range(4))

    def as_double(self, column: Expression) -> Expression:
        """Where no precision is declared, numbers beyond 10^16 become that and those below 10^-60 become 0.

        PostgreSQL refuses to make a double of anything else. Its numeric NaN counts as larger than every number, here
        as in its own comparisons.
        """
        import ibis

        if column.type().precision is not None:
            return column.cast("float64")
        wide: Expression = ibis.cases(
            (column > 10**16, 10**16), (column < -(10**16), -(10**16)), else_=column
        )
        return _function("round", "decimal", "int32", "decimal")(wide, 60).cast("float64")

    def relation(self, table: Any, backend: Any) -> Relation:
        """Views, foreign tables, temporary ones and row security are not plain, nor are tables with such parts."""
        from psycopg import sql

        schema = table.namespace.database
        name = sql.Identifier(*([schema] if schema else []), table.name).as_string(backend.con)
        plain, place = backend.con.execute(_RELATION, [name]).fetchone()
        info = backend.con.info
        place = f"postgresql {info.host} {info.port} {info.dbname} {place}" if place else None
        unique = backend.con.execute(_KEPT_UNIQUE, [name]).fetchall() if plain else []
        kept = tuple(sorted((frozenset(columns) for (columns,) in unique), key=sorted))
        return Relation(
            f"{schema}.{table.name}" if schema else table.name, bool(plain), place, kept
        )

    def require(self, backend: Any) -> None:
        """Refuse what cannot hold or hand over every text: there, the letters of one row would be an error."""
        for name in ("server_encoding", "client_encoding"):
            found = backend.con.info.parameter_status(name)
            if found != "UTF8":
                raise DomainError(
                    name,
                    found,
                    "UTF8",
                    "Copy the table to a database in UTF8, or set the client to it",
                )

    def reconnect(self, backend: Any) -> None:
        if backend.con.broken:
            backend.__dict__.get("dpcompose_connect", backend.reconnect)()

    def rows(self, statement: EngineStatement) -> Sequence[tuple[Any, ...]]:
        statement.backend._run_pre_execute_hooks(statement.expression)
        with statement.backend._safe_raw_sql(statement.words) as cursor:
            return cursor.fetchall()


def _columns_alone(plan: Any, kind: str) -> bool:
    """Whether a plan of Spark's chooses columns, and computes none."""
    columns = plan.projectList() if kind == "Project" else None
    return columns is not None and all(
        columns.apply(at).getClass().getSimpleName() == "AttributeReference"
        for at in range(columns.size())
    )


@dataclass(frozen=True)
class OnSpark(Engine):
    """Sums of BIGINT overflow, so they are taken in DECIMAL(38, 0); text sorts by its UTF-8 bytes."""

    name: str = "Spark"
    scattered: bool = True

    def exact_sum(self, column: Expression) -> Expression:
        return column.cast("decimal(28, 0)").sum()

    def binary_collation(self, column: Expression) -> Expression:
        return column.cast("binary").cast("string")

    def readable(self, column: Expression) -> Expression:
        """Spark keeps whatever bytes a file has."""
        return column.notnull() & _function("is_valid_utf8", "string", "boolean")(column)

    def digest(self, column: Expression) -> Expression:
        hexadecimal = _function("md5", "binary", "string")(column.cast("binary")).substr(0, 8)
        return _function("conv", "string", "int32", "int32", "string")(hexadecimal, 16, 10).cast(
            "int64"
        )

    def relation(self, table: Any, backend: Any) -> Relation:
        """Names that stand for files or frames are tables here; a view that selects, computes or joins is none."""
        name = ".".join(
            part for part in (table.namespace.catalog, table.namespace.database, table.name) if part
        )
        plan, lasting = backend._session.table(name)._jdf.queryExecution().analyzed(), True
        while (kind := plan.getClass().getSimpleName()) in (
            "SubqueryAlias",
            "View",
        ) or _columns_alone(plan, kind):
            lasting = lasting and kind != "View"
            plan = plan.children().apply(0)
        if kind == "LogicalRelation":
            kind = plan.relation().getClass().getSimpleName()
        home = backend._session.conf.get("spark.sql.warehouse.dir")
        plain = kind in ("HadoopFsRelation", "HiveTableRelation", "LocalRelation", "LogicalRDD")
        return Relation(table.name, plain, f"spark {home} {name}" if lasting else None)

    def require(self, backend: Any) -> None:
        """Nothing: the columns are compared byte by byte, whatever is set."""

    def rows(self, statement: EngineStatement) -> Sequence[tuple[Any, ...]]:
        statement.backend._run_pre_execute_hooks(statement.expression)
        return [tuple(row) for row in statement.backend.raw_sql(statement.words).collect()]
