"""The engines DuckDB, PostgreSQL and Spark, each of which aggregates exact integers.

Each class states how its engine writes names, constants and types, and the functions that differ
from engine to engine in name or meaning.
"""

# The drivers have types in part only.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false
# pyright: reportMissingTypeStubs=false

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release.query import (
    Engine,
    Order,
    Query,
    Relation,
    TableName,
    Value,
    case,
    narrowest,
    over,
)

FEW = 50
_WHOLE = "ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING"
_KEY_TYPES = {int: "int64", str: "string", date: "date"}
_RELATIONS = """
SELECT database_name, schema_name, path, CASE WHEN type <> 'duckdb' OR temporary THEN 'other' ELSE 'table' END, sql
FROM duckdb_tables() JOIN duckdb_databases() USING (database_name) WHERE lower(table_name) = lower(?)
UNION ALL
SELECT database_name, schema_name, NULL, CASE WHEN temporary THEN 'frame' ELSE 'other' END, sql
FROM duckdb_views() WHERE lower(view_name) = lower(?)
"""
"""The tables and views of a name; a temporary table may hold the result of any expression."""
_UNIQUE = """
SELECT constraint_column_names FROM duckdb_constraints()
WHERE constraint_type IN ('PRIMARY KEY', 'UNIQUE') AND database_name = ? AND schema_name = ? AND table_name = ?
"""
_FRAME = re.compile(
    r"CREATE TEMP VIEW [^()]+ AS SELECT \* FROM (python_arrow_scan|arrow_scan|pandas_scan|read_parquet|parquet_scan)"
    r"\((list_value\([^()]*\)|[^()]*)\)( AS \w+)?;?",
    re.DOTALL,
)


class OnDuckDB(Engine):
    """DuckDB. Sums of BIGINT are 128-bit integers; text sorts by its UTF-8 bytes, which is the
    order of code points.
    """

    name = "DuckDB"
    labels = True
    types = Engine.types | {"timestamp": "TIMESTAMP", "decimal": "DECIMAL(18, 3)"}

    def quotient(self, one: str, two: str) -> str:
        """As in any engine; DuckDB's NULLIF would write the divisor twice."""
        return f"({one} / {two})"

    @classmethod
    def embedded(cls) -> OnDuckDB:
        """Open a DuckDB in memory, for files and frames."""
        import duckdb

        return cls(duckdb.connect(), foreign=False)

    def __init__(self, raw: Any, *, foreign: bool = True) -> None:
        super().__init__(raw, foreign=foreign)
        raw.execute("SET timezone = 'UTC'")
        if not foreign:
            # Without this a table name could be resolved to a Python variable.
            raw.execute("SET python_enable_replacements = false")

    def tried(self, value: str, type: object) -> Value:
        """Return a value cast to a type that a user typed; NULL where the cast fails.

        Raises:
            DomainError: If there is no such type.
        """
        words = self.types.get(str(type).lower())
        decimal = re.fullmatch(r"decimal\((\d{1,2}), *(\d{1,2})\)", str(type))
        if decimal is not None and int(decimal[2]) <= int(decimal[1]) <= 38:
            words = str(type)
        if words is None:
            raise DomainError(
                "schema", type, "a type such as int64, float64, string, boolean, date"
            )
        return Value(f"TRY_CAST({value} AS {words})", self._type(words))

    def double(self, number: str) -> str:
        return f"({number})" if "e" in number else f"({number}e0)"

    def text(self, value: str) -> str:
        return "'" + value.replace("'", "''") + "'"

    def table(self, name: TableName) -> Query:
        """Return a table; values of an enumeration become texts, which sort by code point."""
        found = super().table(name)
        listed = {
            each: words for each, words in self._columns(found.name) if words.startswith("ENUM(")
        }
        return (
            found.mutate(**{each: self.cast(found[each], "string") for each in listed})
            if listed
            else found
        )

    def binary_collation(self, column: Value) -> Value:
        return Value(f"DECODE(ENCODE({column}))", "string") if self.foreign else column

    def digest(self, column: str) -> str:
        return self.cast(f"('0x' || SUBSTRING(MD5({column}), 1, 8))", "int64")

    def is_in(self, column: str, values: Sequence[Any]) -> str:
        """Return SQL for membership in a set. Many values are written as a table, since thousands
        of literals are slow to write and parse.
        """
        types = {_KEY_TYPES.get(value.__class__) for value in values}
        type = types.pop() if len(types) == 1 else None
        texts = (
            None
            if type is None or len(values) <= FEW
            else self._listed([str(each) for each in values])
        )
        if texts is None or type is None:
            return super().is_in(column, values)
        return f"({column} IN (SELECT {self.cast(texts, type)}))"

    def _listed(self, values: Sequence[str]) -> str | None:
        """Return SQL for one row per text, written as a single literal; None if no character can
        separate the texts.

        An Arrow table would import pyarrow's data sets and pandas: 60 MB and half a second.
        """
        letters = set[str]().union(*values)
        separator = next(
            (letter for letter in map(chr, range(1, 2**15)) if letter not in letters), None
        )
        if separator is None or not values:
            return None
        return f"UNNEST(STR_SPLIT({self.text(separator.join(values))}, {self.text(separator)}))"

    def dictionary(self, values: Sequence[str]) -> Query | None:
        """Return texts with small integer labels, since windows and groups over integers take half
        the time of those over text.
        """
        texts, type = self._listed(values), narrowest(0, len(values))
        if texts is None:
            return None
        places = self.cast(f"UNNEST(RANGE(0, {len(values)}))", type)
        return Query(
            self,
            {"value": "string", "place": type},
            (f"SELECT {texts} AS value, {places} AS place",),
        )

    def numbered(self, rows: Query, of: Sequence[str], order: Order) -> Query:
        """Number the rows of each group from one sort over all rows, which is faster than a window
        for each group.

        DuckDB sorts keys of at most eight bytes in two thirds of the time, so integers that fit in
        32 bits are sorted separately. All rows of a group are on the same side of that split.
        """
        first = of[0]
        if rows.types[first] != "int64":
            return _numbered(rows, of, order)
        fits = f"({rows[first]} BETWEEN {-(2**31)} AND {2**31 - 1})"
        narrow = rows.filter(fits).mutate(**{first: self.cast(rows[first], "int32")})
        narrow = _numbered(narrow, of, order)
        narrow = narrow.mutate(**{first: self.cast(narrow[first], "int64")})
        return narrow.union(_numbered(rows.filter(f"(NOT {fits})"), of, order))

    def public(self, frame: Any, types: Mapping[str, str], name: str) -> Query:
        return self.opened(lambda engine, name: engine.raw.register(name, frame), name)

    def _columns(self, name: str) -> Sequence[tuple[str, str]]:
        return [row[:2] for row in self.raw.execute(f"DESCRIBE SELECT * FROM {name}").fetchall()]

    def relation(self, name: TableName) -> Relation:
        """Return what the catalog states about a table. Views that DuckDB makes of frames and
        Parquet files count as tables.
        """
        *schema, table = name
        found = self.raw.execute(_RELATIONS, [table, table]).fetchall()
        named = [each for each in found if not schema or each[1] == schema[-1]]
        # If several relations have this name, the engine picks one, so all must be plain.
        plain = bool(named) and all(_plain(table, kind, words) for _, _, _, kind, words in named)
        if len(named) != 1:
            return Relation(table, plain, None)
        catalog, home, path, _, _ = named[0]
        unique = self.raw.execute(_UNIQUE, [catalog, home, table]).fetchall() if plain else []
        place = path and f"duckdb {path} {home}.{table}"
        return Relation(table, plain, place, tuple(frozenset(columns) for (columns,) in unique))

    def require(self) -> None:
        """Refuse a connection whose default collation takes different texts for equal."""
        ((found,),) = self.raw.execute("SELECT current_setting('default_collation')").fetchall()
        if self.foreign and found not in (None, "", "binary"):
            remedy = "The spelling of a key would depend on rows: RESET default_collation"
            raise DomainError("default_collation", found, "none, or binary", remedy)


def _numbered(rows: Query, of: Sequence[str], order: Order) -> Query:
    equal = [f"{rows[name]} ASC NULLS LAST" for name in of]
    sort = [*equal, *order(rows)]
    # DuckDB computes a sum over all rows once, but count(*) again for each row.
    total = over(
        f"SUM({case((f'{rows[of[0]]} IS NOT NULL', '1'), other='0')})", order=sort, frame=_WHOLE
    )
    before = f"({over('RANK()', order=equal)} - 1)"
    last = f"CAST(ROUND({over('CUME_DIST()', order=equal)} * {total}) AS BIGINT)"
    place = f"({over('ROW_NUMBER()', order=sort)} - 1 - {before})"
    return rows.mutate(place=place, number=f"({last} - {before})")


def _plain(name: str, kind: str, words: str) -> bool:
    """Whether rows are returned as stored. A column computed by an expression could depend on other
    people's rows.
    """
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
"""Columns with an enforced unique index; not text, whose index a new collation may break."""


_IN_COPIES = 10**4
"""Public tables with more rows are copied to PostgreSQL instead of written as constants."""


class OnPostgreSQL(Engine):
    """PostgreSQL. Sums of bigint are unlimited numeric; text sorts by its collation, so its UTF-8
    bytes are sorted instead.
    """

    name = "PostgreSQL"
    types = Engine.types | {"float64": "DOUBLE PRECISION", "string": "TEXT"}

    def __init__(self, raw: Any, *, connect: Callable[[], Any] | None = None) -> None:
        super().__init__(raw, connect=connect)
        raw.execute("SET TIMEZONE = UTC")

    def double(self, number: str) -> str:
        return f"CAST('{number}' AS DOUBLE PRECISION)"

    def text(self, value: str) -> str:
        return "E'" + value.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def is_nan(self, number: str) -> str:
        return f"({number} = 'NaN'::float8)"

    def binary_collation(self, column: Value) -> Value:
        """Return SQL for a text column converted to bytes and back, which gives it the database's
        default collation; under that, different texts are never equal.
        """
        return Value(f"CONVERT_FROM({self.by_code_point(column)}, 'UTF8')", "string")

    def by_code_point(self, column: str) -> str:
        return f"CONVERT_TO(CAST({column} AS TEXT), 'UTF8')"

    def digest(self, column: str) -> str:
        found = f"DECODE(MD5({self.by_code_point(column)}), 'hex')"
        bytes = (f"CAST(GET_BYTE({found}, {at}) AS BIGINT) * {256 ** (3 - at)}" for at in range(4))
        return f"({' + '.join(bytes)})"

    def as_double(self, column: Value) -> Value:
        """Return SQL for a decimal column as a double. If no precision is declared, or one beyond
        the doubles, numbers beyond 10^16 are clamped and those below 10^-60 become 0.

        PostgreSQL raises an error when it converts other numbers to double. NaN stays NaN.
        """
        digits = [int(each) for each in re.findall("[0-9]+", column.type)]
        if digits and sum(digits) <= 300:
            return self.cast(column, "float64")
        wide = case(
            (f"{column} = 'NaN'", column),
            (f"{column} > {10**16}", str(10**16)),
            (f"{column} < {-(10**16)}", str(-(10**16))),
            other=column,
        )
        return self.cast(f"ROUND({wide}, 60)", "float64")

    def public(self, frame: Any, types: Mapping[str, str], name: str) -> Query:
        columns = ", ".join(map(self.quoted, types))
        rows = list(zip(*(column.to_pylist() for column in frame.columns), strict=True))
        if len(rows) <= _IN_COPIES:
            # PostgreSQL takes the types of all rows from the first one.
            cells = [[self.cast("NULL", type) for type in types.values()]]
            cells += [
                ["NULL" if each is None else self.constant(each) for each in row] for row in rows
            ]
            listed = ", ".join(f"({', '.join(row)})" for row in cells)
            words = f"SELECT * FROM (VALUES {listed}) AS listed ({columns}) OFFSET 1"
            return Query(self, types, (words,))

        def copied(engine: Engine, name: str) -> None:
            table = engine.quoted(name)
            typed = ", ".join(
                f"{self.quoted(each)} {self.types[type]}" for each, type in types.items()
            )
            with engine.raw.transaction(), engine.raw.cursor() as cursor:
                cursor.execute(f"CREATE TEMPORARY TABLE {table} ({typed})")
                with cursor.copy(f"COPY {table} FROM STDIN") as copy:
                    for row in rows:
                        copy.write_row(row)

        try:
            with self.turn:
                return self.opened(copied, name)
        except Exception:
            reason = (
                f"a public table of more than {_IN_COPIES:,} rows is copied into a temporary table"
            )
        raise UnsupportedError(
            "this join on PostgreSQL", reason, "Let the role make one: GRANT TEMPORARY"
        )

    def _columns(self, name: str) -> Sequence[tuple[str, str]]:
        found = self.raw.execute(_COLUMNS, [name]).fetchall()
        if not found:
            raise LookupError(name)
        return found

    def relation(self, name: TableName) -> Relation:
        """Return what the catalog states about a table. Views, foreign tables, temporary tables and
        tables with row security are not plain, nor are tables with such partitions.
        """
        quoted = ".".join(map(self.quoted, name))
        plain, place = self.raw.execute(_RELATION, [quoted]).fetchone()
        info = self.raw.info
        place = f"postgresql {info.host} {info.port} {info.dbname} {place}" if place else None
        unique = self.raw.execute(_KEPT_UNIQUE, [quoted]).fetchall() if plain else []
        kept = tuple(sorted((frozenset(columns) for (columns,) in unique), key=sorted))
        return Relation(".".join(name), bool(plain), place, kept)

    def require(self) -> None:
        """Refuse encodings that cannot hold or return every text, since some texts in rows would
        raise errors.
        """
        for name in ("server_encoding", "client_encoding"):
            found = self.raw.info.parameter_status(name)
            if found != "UTF8":
                raise DomainError(
                    name,
                    found,
                    "UTF8",
                    "Copy the table to a database in UTF8, or set the client to it",
                )

    def reconnect(self) -> None:
        if self.raw.broken and self._connect is not None:
            self.raw = self._connect()
            self._opened.clear()
            self.raw.execute("SET TIMEZONE = UTC")


_COLUMNS = """
SELECT attname::text, format_type(atttypid, atttypmod) FROM pg_attribute
WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum
"""


def _columns_alone(plan: Any, kind: str) -> bool:
    """Whether a plan of Spark only selects columns and computes none."""
    columns = plan.projectList() if kind == "Project" else None
    return columns is not None and all(
        columns.apply(at).getClass().getSimpleName() == "AttributeReference"
        for at in range(columns.size())
    )


class OnSpark(Engine):
    """Spark. Sums of BIGINT can overflow, so they are taken in DECIMAL(38, 0); text sorts by its
    UTF-8 bytes.
    """

    name = "Spark"
    quote = "`"
    scattered = True
    types = Engine.types | {"string": "STRING"}
    kinds = Engine.kinds | {"timestamp": "timestamp('UTC')"}

    def double(self, number: str) -> str:
        return f"({number}D)"

    def text(self, value: str) -> str:
        """Return SQL for a text. All characters but letters and digits are written as bytes, since
        settings decide what a backslash and ${...} mean.
        """
        if value.isascii() and value.replace(" ", "").isalnum():
            return f"'{value}'"
        return f"CAST(X'{value.encode().hex()}' AS STRING)"

    def exact_sum(self, value: str) -> str:
        return f"SUM(CAST({value} AS DECIMAL(28, 0)))"

    def binary_collation(self, column: Value) -> Value:
        return Value(f"CAST(CAST({column} AS BINARY) AS STRING)", "string")

    def readable(self, column: str) -> str:
        """Return SQL for whether a text is valid UTF-8, which Spark does not check by itself."""
        return f"({column} IS NOT NULL AND IS_VALID_UTF8({column}))"

    def digest(self, column: str) -> str:
        return self.cast(f"CONV(SUBSTRING(MD5(CAST({column} AS BINARY)), 1, 8), 16, 10)", "int64")

    def public(self, frame: Any, types: Mapping[str, str], name: str) -> Query:
        def viewed(engine: Engine, name: str) -> None:
            engine.raw.createDataFrame(frame).createOrReplaceTempView(name)

        return self.opened(viewed, name)

    def _columns(self, name: str) -> Sequence[tuple[str, str]]:
        return self.raw.table(name).dtypes

    def relation(self, name: TableName) -> Relation:
        """Return what the catalog states about a table. Names that stand for files or frames count
        as tables; a view that selects, computes or joins does not.
        """
        quoted = ".".join(map(self.quoted, name))
        plan, lasting = self.raw.table(quoted)._jdf.queryExecution().analyzed(), True
        while (kind := plan.getClass().getSimpleName()) in (
            "SubqueryAlias",
            "View",
        ) or _columns_alone(plan, kind):
            lasting = lasting and kind != "View"
            plan = plan.children().apply(0)
        if kind == "LogicalRelation":
            kind = plan.relation().getClass().getSimpleName()
        home = self.raw.conf.get("spark.sql.warehouse.dir")
        plain = kind in ("HadoopFsRelation", "HiveTableRelation", "LocalRelation", "LogicalRDD")
        return Relation(name[-1], plain, f"spark {home} {'.'.join(name)}" if lasting else None)

    def rows(self, words: str) -> Sequence[tuple[Any, ...]]:
        return [tuple(row) for row in self.raw.sql(words).collect()]

    def close(self) -> None:
        """Stop the Spark session."""
        self.raw.stop()


def engine_of(connection: object) -> Engine | None:
    """Return the engine of an open connection of DuckDB or psycopg, or of a Spark session; None for
    anything else.
    """
    match type(connection).__module__.partition(".")[0].strip("_"), type(connection).__name__:
        case "duckdb", "DuckDBPyConnection":
            return OnDuckDB(connection)
        case "psycopg", "Connection":
            return OnPostgreSQL(connection)
        case "pyspark", "SparkSession":
            return OnSpark(connection)
        case _:
            return None
