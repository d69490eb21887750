"""Spark: for what outgrows one machine."""
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownParameterType=false, reportMissingTypeStubs=false

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dpcompose.release.engine import Statement
from dpcompose.release.expression import Expression


@dataclass(frozen=True)
class OnSpark:
    """Sums of BIGINT overflow, so they are taken in DECIMAL(38, 0); text sorts by its UTF-8 bytes."""

    name: str = "Spark"

    def exact_sum(self, column: Expression) -> Expression:
        return column.cast("decimal(28, 0)").sum()

    def letter_by_letter(self, column: Expression) -> Expression:
        return column.cast("binary").cast("string")

    def by_code_point(self, column: Expression) -> Expression:
        return column

    def as_double(self, column: Expression) -> Expression:
        return column.cast("float64")

    def among(self, column: Expression, values: Sequence[Any]) -> Expression:
        return column.isin(list(values))

    def places(self, values: Sequence[str]) -> Expression | None:
        return None

    def rows(self, asked: Statement) -> Sequence[tuple[Any, ...]]:
        return [tuple(row) for row in asked.backend.raw_sql(asked.words).collect()]
