"""The same questions on DuckDB, PostgreSQL and Spark give the same exact aggregates, integer for integer."""

from __future__ import annotations

import random
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from campaigns.release import tables

import dpcompose.release as release
from dpcompose.release.aggregate import exact
from dpcompose.release.table import Table

ENDS = {"lower": -100, "upper": 1000}
EPSILON = {"epsilon": 1}
PRIVATE = {"epsilon": 1, "delta": 1e-6}
CITIES = [*tables.CITIES, None]
DAYS = [date(1969, 12, 30), date(1970, 1, 1), date(1999, 9, 9), None]
QUESTIONS: dict[str, release.Question] = {
    "count": release.Count(spend=EPSILON),
    "count by text": release.Count(by="city", keys=CITIES, spend=EPSILON),
    "count by private text": release.Count(by="city", spend=PRIVATE),
    "count by integer": release.Count(by="code", keys=[0, 2**40, 2**63 - 1, 9, None], spend=EPSILON),
    "count by date": release.Count(by="day", keys=DAYS, spend=EPSILON),
    "count by truth": release.Count(by="flag", keys=[True, False, None], spend=EPSILON),
    "count by two": release.Count(
        by=["city", "flag"], keys=[("Zug", True), ("東京", None), ("", False)], spend=EPSILON
    ),
    "units": release.Units(spend=EPSILON),
    "units by text": release.Units(by="city", keys=CITIES, spend=EPSILON),
    "units by private pair": release.Units(by=["city", "code"], spend=PRIVATE),
    "sum of doubles": release.Sum("amount", **ENDS, granularity="0.01", spend=EPSILON),
    "sum of doubles by text": release.Sum("amount", **ENDS, by="city", keys=CITIES, spend=EPSILON),
    "sum of doubles by private text": release.Sum("amount", **ENDS, by="city", spend=PRIVATE),
    "sum in thirds": release.Sum("amount", lower=-5, upper="5.5", granularity="0.3", spend=EPSILON),
    "sum of integers": release.Sum("points", **ENDS, by="flag", keys=[True, False], spend=EPSILON),
    "sum of integers in steps": release.Sum("points", **ENDS, granularity=7, spend=EPSILON),
    "sum of huge integers": release.Sum("points", lower=-(10**12), upper=10**12, spend=EPSILON),
    "sum of floats": release.Sum("single", **ENDS, spend=EPSILON),
    "sum of small integers": release.Sum("small", lower=-40000, upper=40000, spend=EPSILON),
    "sum of decimals": release.Sum("price", lower="-1e9", upper="1e9", granularity="0.01", spend=EPSILON),
    "sum of truths": release.Sum("flag", lower=0, upper=1, spend=EPSILON),
    "mean": release.Mean("amount", **ENDS, by="city", keys=CITIES, spend=EPSILON),
    "mean by private date": release.Mean("points", **ENDS, by="day", spend=PRIVATE),
    "histogram": release.Histogram("amount", edges=[-1e3, -1, 0, "0.1", 5, 1e3], spend=EPSILON),
    "histogram of integers by private text": release.Histogram(
        "points", edges=[-9, 0, 1, 50], by="city", spend=PRIVATE
    ),
    "median": release.Quantile("amount", 0.5, lower=-10, upper=10, granularity="0.25", spend=EPSILON),
    "quantile by text": release.Quantile(
        "points", 0.9, lower=-9, upper=9, granularity=1, by="city", keys=CITIES, spend=EPSILON
    ),
}
BOUNDS: dict[str, dict[str, Any]] = {
    "3 rows": {"unit": "person", "max_rows_per_unit": 3},
    "many rows": {"unit": "person", "max_rows_per_unit": 10**3},
    "2 groups": {"unit": "number", "max_rows_per_unit": 5, "max_groups_per_unit": 2},
    "2 groups of 2": {
        "unit": ["person", "number"],
        "max_rows_per_unit": 3,
        "max_groups_per_unit": 2,
        "max_rows_per_group": 2,
    },
    "1 a group": {"unit": "person", "max_rows_per_unit": 4, "max_rows_per_group": 1},
}


def _rows(seed: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    made = tables.rows(rng, units=25, most=8)
    made += tables.of_unit(rng, None, most=8)
    rng.shuffle(made)
    return made


def _same(make: Callable[[list[tuple[Any, ...]]], Any], seed: int, **bounds: Any) -> None:
    made = _rows(seed)
    here = release.table(tables.arrow(made), **bounds)
    there = release.table(make(made), name="frame", **bounds)
    assert [column.kind for column in here.columns] == [column.kind for column in there.columns]
    try:
        for name, question in QUESTIONS.items():
            assert _integers(here, question) == _integers(there, question), name
    finally:
        # A Spark session is shared by all tests: it is left running.
        if there.engine.name == "PostgreSQL":
            there.close()


def _integers(table: Table, question: release.Question) -> object:
    return exact(table, question.design(table).aggregation)


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_postgresql_agrees_with_duckdb(bounds: str, postgres_url: str) -> None:
    _same(lambda made: tables.on_postgres(postgres_url, made), len(bounds), **BOUNDS[bounds])


def test_spark_agrees_with_duckdb(spark: Any, tmp_path: Path) -> None:
    # One test, so that one worker starts one session.
    for bounds in ("3 rows", "2 groups of 2"):
        path = tmp_path / f"{len(bounds)}.parquet"
        _same(lambda made, path=path: tables.on_spark(spark, made, path), len(bounds), **BOUNDS[bounds])
    nobody = tables.on_spark(spark, [], tmp_path / "nobody.parquet", "nobody")
    _empty(release.table(nobody, unit="person", max_rows_per_unit=2))


def test_empty_tables_agree(postgres_url: str) -> None:
    nobody = tables.on_postgres(postgres_url, [], "nobody")
    there = release.table(nobody, unit="person", max_rows_per_unit=2)
    _empty(there)
    there.close()


def _empty(there: Table) -> None:
    here = release.table(tables.arrow([]), unit="person", max_rows_per_unit=2)
    for name, question in QUESTIONS.items():
        assert _integers(here, question) == _integers(there, question), name


def test_a_server_that_went_away(postgres_url: str) -> None:
    from release import world

    from dpcompose.errors import EngineError

    made = tables.on_postgres(postgres_url, _rows(3), "leaving")
    ledger = world.ledger()
    table = release.table(made, unit="person", max_rows_per_unit=2)
    session = release.Session(table, ledger=ledger, scope="world", actor="ana")
    table.close()
    with pytest.raises(EngineError, match="PostgreSQL failed while it aggregated: the charge stands"):
        session.count(spend=EPSILON, key="q")
    assert ledger.available("world")["epsilon"].fraction < 100
