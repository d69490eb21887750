"""DuckDB: the embedded default, for files and data frames."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.release.arrow import arrow_list
from dpcompose.release.expression import Expression

FEW = 50


@dataclass(frozen=True)
class OnDuckDB:
    """Sums of BIGINT are 128-bit integers; text sorts by its UTF-8 bytes, which is by code point."""

    name: str = "DuckDB"

    def exact_sum(self, column: Expression) -> Expression:
        return column.sum()

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

    def rows(self, expression: Expression) -> Sequence[tuple[Any, ...]]:
        found = expression.to_pyarrow()
        return list(zip(*(column.to_pylist() for column in found.columns), strict=True))


def of_arrow(frame: Any) -> Expression:
    """An Arrow table, without a copy, as a table of a DuckDB in memory."""
    import ibis

    connection = ibis.duckdb.connect()
    connection.con.register("frame", frame)
    return connection.table("frame")


def of_parquet(path: str) -> Expression:
    """Parquet files, read when they are asked."""
    import ibis

    return ibis.duckdb.connect().read_parquet(path)
