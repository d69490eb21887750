"""Nested conditions have the same values on every engine as in Python, including NULL."""

from __future__ import annotations

import dpcompose.release as release
from campaigns.release import tables
from tests.release.conditions import ROWS, conditions, misread


def test_duckdb_reads_conditions_as_they_were_said() -> None:
    table = release.table(tables.arrow(ROWS), unit="person", max_rows_per_unit=1)
    assert misread(table, conditions()[::7]) == []


def test_postgresql_reads_conditions_as_they_were_said(postgres_url: str) -> None:
    made = tables.on_postgres(postgres_url, ROWS, "conditions")
    table = release.table(made, name="conditions", unit="person", max_rows_per_unit=1)
    assert misread(table, conditions()[::11]) == []
    table.close()
