"""DuckDB: the embedded default, for files and data frames."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from dpcompose.errors import DomainError
from dpcompose.release.arrow import arrow_list, arrow_table
from dpcompose.release.engine import Statement
from dpcompose.release.expression import Expression

FEW = 50


@dataclass(frozen=True)
class OnDuckDB:
    """Sums of BIGINT are 128-bit integers; text sorts by its UTF-8 bytes, which is by code point.

    Args:
        foreign: Whether columns may have been declared with a collation.
    """

    name: str = "DuckDB"
    foreign: bool = False

    def exact_sum(self, column: Expression) -> Expression:
        return column.sum()

    def letter_by_letter(self, column: Expression) -> Expression:
        if not self.foreign:
            return column
        encode, decode = _codec()
        return decode(encode(column))

    def by_code_point(self, column: Expression) -> Expression:
        return column

    def as_double(self, column: Expression) -> Expression:
        return column.cast("float64")

    def among(self, column: Expression, values: Sequence[Any]) -> Expression:
        """A table of the values where there are many: to write and read thousands of literals takes long."""
        if len(values) <= FEW:
            return column.isin(list(values))
        import ibis

        return column.isin(ibis.memtable(arrow_list(values)).value)

    def places(self, values: Sequence[str]) -> Expression | None:
        """Windows and groups over small integers take half the time of those over text."""
        import ibis

        return ibis.memtable(arrow_table([("value", "string", values), ("place", "int32", range(len(values)))]))

    def rows(self, asked: Statement) -> Sequence[tuple[Any, ...]]:
        asked.backend._run_pre_execute_hooks(asked.expression)
        found = asked.backend.con.sql(asked.words).to_arrow_table()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


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


def collation(expression: Expression) -> str:
    """The collation of columns that declare none; empty where letters are compared as they are."""
    ((found,),) = expression.get_backend().con.execute("SELECT current_setting('default_collation')").fetchall()
    return str(found or "")


def _codec() -> tuple[Any, Any]:
    import ibis

    def encode(text: str) -> bytes: ...

    def decode(text: bytes) -> str: ...

    builtin: Any = ibis.udf.scalar.builtin
    return builtin(encode), builtin(decode)


def of_parquet(path: str) -> Expression:
    """Parquet files, read when they are asked."""
    import ibis

    return ibis.duckdb.connect().read_parquet(path)
