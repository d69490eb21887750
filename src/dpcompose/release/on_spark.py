"""Spark: for what outgrows one machine."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.release.engine import Engine, EngineStatement, Expression, Relation


@dataclass(frozen=True)
class OnSpark(Engine):
    """Sums of BIGINT overflow, so they are taken in DECIMAL(38, 0); text sorts by its UTF-8 bytes."""

    name: str = "Spark"

    def exact_sum(self, column: Expression) -> Expression:
        return column.cast("decimal(28, 0)").sum()

    def binary_collation(self, column: Expression) -> Expression:
        return column.cast("binary").cast("string")

    def readable(self, column: Expression) -> Expression:
        """Spark keeps whatever bytes a file has."""
        import ibis

        def is_valid_utf8(text: str) -> bool: ...

        builtin: Any = ibis.udf.scalar.builtin
        return column.notnull() & builtin(is_valid_utf8)(column)

    def digest(self, column: Expression) -> Expression:
        import ibis

        def md5(text: bytes) -> str: ...

        def conv(text: str, base: int, other: int) -> str: ...

        builtin: Any = ibis.udf.scalar.builtin
        hexadecimal = builtin(md5)(column.cast("binary")).substr(0, 8)
        return builtin(conv, signature=(("string", "int32", "int32"), "string"))(hexadecimal, 16, 10).cast("int64")

    def relation(self, table: Any, backend: Any) -> Relation:
        """Names that stand for files or frames are tables here; a view that selects, computes or joins is none."""
        name = ".".join(part for part in (table.namespace.catalog, table.namespace.database, table.name) if part)
        plan, lasting = backend._session.table(name)._jdf.queryExecution().analyzed(), True
        while plan.children().size() == 1 and plan.getClass().getSimpleName() in ("SubqueryAlias", "View"):
            lasting = lasting and plan.getClass().getSimpleName() != "View"
            plan = plan.children().apply(0)
        kind = plan.getClass().getSimpleName()
        if kind == "LogicalRelation":
            kind = plan.relation().getClass().getSimpleName()
        home = backend._session.conf.get("spark.sql.warehouse.dir")
        plain = kind in ("HadoopFsRelation", "HiveTableRelation", "LocalRelation", "LogicalRDD")
        return Relation(table.name, plain, f"spark {home} {name}" if lasting else None)

    def require(self, backend: Any) -> None:
        """Nothing: the columns are compared byte by byte, whatever is set."""

    def rows(self, asked: EngineStatement) -> Sequence[tuple[Any, ...]]:
        return [tuple(row) for row in asked.backend.raw_sql(asked.words).collect()]
