"""The same questions on DuckDB, PostgreSQL and Spark give the same exact aggregates, integer for integer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.engines import BOUNDS, differing, odd

ORDER = list(BOUNDS)


def _same(make: Callable[[list[tuple[Any, ...]]], Any], name: str) -> None:
    """Every second question, the others under the next bounds: all of them, and all bounds, in half the time."""
    made, bounds = odd(25, len(name)), BOUNDS[name]
    here = release.table(tables.arrow(made), **bounds)
    there = release.table(make(made), name="frame", **bounds)
    assert [column.kind for column in here.columns] == [column.kind for column in there.columns]
    try:
        assert differing(here, there, slice(ORDER.index(name) % 2, None, 2)) == []
    finally:
        # A Spark session is shared by all tests: it is left running.
        if there.engine.name == "PostgreSQL":
            there.close()


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_postgresql_agrees_with_duckdb(bounds: str, postgres_url: str) -> None:
    _same(lambda made: tables.on_postgres(postgres_url, made), bounds)


def test_spark_agrees_with_duckdb(spark: Any, tmp_path: Path) -> None:
    # One test, so that one worker starts one session.
    for bounds in ("3 rows", "2 groups of 2"):
        path = tmp_path / f"{len(bounds)}.parquet"
        _same(lambda made, path=path: tables.on_spark(spark, made, path), bounds)
    nobody = tables.on_spark(spark, [], tmp_path / "nobody.parquet", "nobody")
    _empty(release.table(nobody, unit="person", max_rows_per_unit=2))


def test_empty_tables_agree(postgres_url: str) -> None:
    nobody = tables.on_postgres(postgres_url, [], "nobody")
    there = release.table(nobody, unit="person", max_rows_per_unit=2)
    _empty(there)
    there.close()


def _empty(there: release.Table) -> None:
    here = release.table(tables.arrow([]), unit="person", max_rows_per_unit=2)
    assert differing(here, there, slice(0, None, 3)) == []


def test_a_server_that_went_away(postgres_url: str) -> None:
    from dpcompose.errors import EngineError
    from tests.release import world

    made = tables.on_postgres(postgres_url, odd(25, 3), "leaving")
    ledger = world.ledger()
    table = release.table(made, unit="person", max_rows_per_unit=2)
    session = release.Session(table, ledger=ledger, scope="world", actor="ana")
    table.close()
    with pytest.raises(EngineError, match="PostgreSQL failed before the charge: nothing was spent"):
        session.count(spend={"epsilon": 1}, key="q")
    assert ledger.available("world")["epsilon"].fraction == 100
