"""DuckDB: the embedded default, for files and data frames."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.arrow import arrow_list, arrow_table
from dpcompose.release.engine import Engine, EngineStatement, Expression, Order, Relation

FEW = 50
_RELATIONS = """
SELECT database_name, schema_name, path, CASE WHEN type <> 'duckdb' OR temporary THEN 'other' ELSE 'table' END, sql
FROM duckdb_tables() JOIN duckdb_databases() USING (database_name) WHERE lower(table_name) = lower(?)
UNION ALL
SELECT database_name, schema_name, NULL, CASE WHEN temporary THEN 'frame' ELSE 'other' END, sql
FROM duckdb_views() WHERE lower(view_name) = lower(?)
"""
"""Tables and views of a name; temporary tables hold what some expression gave."""
_FRAME = re.compile(
    r"CREATE TEMP VIEW [^()]+ AS SELECT \* FROM (python_arrow_scan|arrow_scan|pandas_scan|read_parquet|parquet_scan)"
    r"\((list_value\([^()]*\)|[^()]*)\)( AS \w+)?;?",
    re.DOTALL,
)


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
        encode, decode = _codec()
        return decode(encode(column))

    def digest(self, column: Expression) -> Expression:
        import ibis

        return (ibis.literal("0x") + _md5()(column).substr(0, 8)).cast("int64")

    def is_in(self, column: Expression, values: Sequence[Any]) -> Expression:
        """A table of the values where there are many: to write and read thousands of literals takes long."""
        if len(values) <= FEW:
            return column.isin(list(values))
        import ibis

        return column.isin(ibis.memtable(arrow_list(values)).value)

    def dictionary(self, values: Sequence[str]) -> Expression | None:
        """Windows and groups over small integers take half the time of those over text."""
        import ibis

        width = "int16" if len(values) <= 2**15 else "int32"
        return ibis.memtable(arrow_table([("value", "string", values), ("place", width, range(len(values)))]))

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
        named = [each for each in found if all(want in (None, has) for want, has in zip(wanted, each[:2], strict=True))]
        # Of several of one name the engine takes one: all have to be plain.
        plain = bool(named) and all(_plain(table.name, kind, words) for _, _, _, kind, words in named)
        path = named[0][2] if len(named) == 1 else None
        return Relation(table.name, plain, path and f"duckdb {path} {named[0][1]}.{table.name}")

    def require(self, backend: Any) -> None:
        """Refuse a connection that takes different texts for equal, whatever their columns say."""
        ((found,),) = backend.con.execute("SELECT current_setting('default_collation')").fetchall()
        if self.foreign and found not in (None, "", "binary"):
            remedy = "Equal keys would be written as one row or another has them: RESET default_collation"
            raise DomainError("default_collation", found, "none, or binary", remedy)

    def rows(self, asked: EngineStatement) -> Sequence[tuple[Any, ...]]:
        asked.backend._run_pre_execute_hooks(asked.expression)
        found = asked.backend.con.sql(asked.words).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


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


def of_arrow(frame: Any) -> Expression:
    """An Arrow table, without a copy, as a table of a DuckDB in memory.

    Raises:
        DomainError: If DuckDB holds no such types.
    """
    import duckdb
    import ibis

    connection = ibis.duckdb.connect()
    found = None
    with suppress(duckdb.Error):
        connection.con.register("frame", frame)
        found = connection.table("frame")
    if found is None:
        connection.disconnect()
        types = ", ".join(sorted({str(each.type) for each in frame.schema}))
        raise DomainError("source", types, "a frame whose types DuckDB holds", "Cast the columns, or leave some out")
    return found


def _codec() -> tuple[Any, Any]:
    import ibis

    def encode(text: str) -> bytes: ...

    def decode(text: bytes) -> str: ...

    builtin: Any = ibis.udf.scalar.builtin
    return builtin(encode), builtin(decode)


def _md5() -> Any:
    import ibis

    def md5(text: str) -> str: ...

    builtin: Any = ibis.udf.scalar.builtin
    return builtin(md5)


def of_parquet(path: str) -> Expression:
    """Parquet files, read when they are asked."""
    import ibis

    return ibis.duckdb.connect().read_parquet(path)
