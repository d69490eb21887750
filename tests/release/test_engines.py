"""The same questions have equal exact aggregates on DuckDB, PostgreSQL and Spark, integer for
integer.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.engines import BOUNDS, QUESTIONS, differing, odd
from dpcompose.errors import EngineError, UnsupportedError
from dpcompose.release.aggregate import Scan, exact
from tests.release import world
from tests.release.conditions import ROWS, conditions, misread

ORDER = list(BOUNDS)


def _same(make: Callable[[list[tuple[Any, ...]]], Any], name: str) -> None:
    """Every second question, the others under the next bounds: all of them, and all bounds, in half the time."""
    made, bounds = odd(25, len(name)), BOUNDS[name]
    here = release.table(tables.arrow(made), **bounds)
    there = release.table(make(made), name="people", **bounds)
    assert [column.kind for column in here.columns] == [column.kind for column in there.columns]
    try:
        first = ORDER.index(name) % 2
        assert differing(here, there, slice(first, 12, 2)) == []
        # The rest together.
        asked = [
            question.design(here).aggregation for question in [*QUESTIONS.values()][12 + first :: 2]
        ]
        assert Scan.of(there, asked).exact() == [exact(here, each) for each in asked]
    finally:
        # A Spark session is shared by all tests: it is left running.
        if there.engine.name == "PostgreSQL":
            there.close()


@pytest.mark.parametrize("bounds", BOUNDS, ids=str)
def test_postgresql_agrees_with_duckdb(bounds: str, postgres_url: str) -> None:
    _same(lambda made: tables.on_postgres(postgres_url, made), bounds)


def test_spark_agrees_with_duckdb(spark: Any, tmp_path: Path) -> None:
    # One test, so that one worker starts one session. There, questions are asked together; here, each alone.
    for number, bounds in enumerate(("3 rows", "2 groups of 2")):
        made, path = odd(25, number), tmp_path / f"{number}.parquet"
        here = release.table(tables.arrow(made), **BOUNDS[bounds])
        there = release.table(tables.on_spark(spark, made, path), name="people", **BOUNDS[bounds])
        assert [column.kind for column in here.columns] == [column.kind for column in there.columns]
        asked = [question.design(here).aggregation for question in [*QUESTIONS.values()][number::2]]
        for batch in (asked[:5], asked[5:10], asked[10:]):
            assert Scan.of(there, batch).exact() == [exact(here, each) for each in batch]
    asked = tables.on_spark(spark, ROWS, tmp_path / "conditions.parquet", "conditions")
    named = release.table(asked, name="conditions", unit="person", max_rows_per_unit=1)
    assert misread(named, conditions()[::40]) == []
    made = odd(25, 2)
    asked = tables.on_spark(spark, made, tmp_path / "remainders.parquet")
    _remainders(release.table(asked, unit="person", max_rows_per_unit=100, name="people"), made)
    nobody = tables.on_spark(spark, [], tmp_path / "nobody.parquet", "nobody")
    _empty(release.table(nobody, name="nobody", unit="person", max_rows_per_unit=2))


def _remainders(there: release.Table, made: list[tuple[Any, ...]]) -> None:
    """In SQL a remainder has the sign of the dividend, and a quotient is a float."""
    points = [row[8] for row in made if row[0] is not None and row[8] is not None]
    for by in (3, -7):
        text = f"SELECT MOD(points, {by}) AS remainder, COUNT(*) FROM people WHERE points % {by} / 4 < 0.5 GROUP BY 1"
        (question,) = release.questions_of_sql(text, there, keys=[*range(-6, 7)])
        assert question.table is not None
        found = exact(question.table, question.design(question.table, {"epsilon": 1}).aggregation)
        signed = [(abs(point) % abs(by)) * (1 if point > 0 else -1) for point in points]
        assert {key: bins[0][0] for key, bins in found.items()} == Counter(
            (each,) for each in signed if each < 2
        )


def test_remainders_are_those_of_sql_on_postgresql(postgres_url: str) -> None:
    made = odd(25, 2)
    for source in (tables.arrow(made), tables.on_postgres(postgres_url, made)):
        there = release.table(source, unit="person", max_rows_per_unit=100, name="people")
        _remainders(there, made)
        there.close()


def test_empty_tables_agree(postgres_url: str) -> None:
    nobody = tables.on_postgres(postgres_url, [], "nobody")
    there = release.table(nobody, name="nobody", unit="person", max_rows_per_unit=2)
    _empty(there)
    there.close()


def _empty(there: release.Table) -> None:
    here = release.table(tables.arrow([]), unit="person", max_rows_per_unit=2)
    assert differing(here, there, slice(0, None, 3)) == []


def test_a_server_that_went_away(postgres_url: str) -> None:
    made = tables.on_postgres(postgres_url, odd(25, 3), "leaving")
    ledger = world.ledger()
    table = release.table(made, name="leaving", unit="person", max_rows_per_unit=2)
    session = release.Session(table, ledger=ledger, scope="world", actor="ana")
    table.close()
    with pytest.raises(EngineError, match="PostgreSQL failed before the charge: nothing was spent"):
        session.count(spend={"epsilon": 1}, key="q")
    assert ledger.available("world")["epsilon"].fraction == 100


def test_a_frame_of_spark_is_a_source_and_keys_of_few_units_stay_there(
    spark: Any, tmp_path: Path
) -> None:
    made = odd(15, 9)
    (tmp_path / "folder").mkdir()
    tables.on_spark(spark, made, tmp_path / "folder" / "part.parquet")
    frame = spark.read.parquet(str(tmp_path / "folder"))
    there = release.table(
        frame.select("person", "city", "points"), unit="person", max_rows_per_unit=3
    )
    here = release.table(tmp_path / "folder", unit="person", max_rows_per_unit=3)
    question = release.Histogram(
        "points", edges=[-9, 0, 1, 50], by="city", spend={"epsilon": 4, "delta": 1e-6}
    )
    design, plain = question.design(there), question.design(here)
    assert design.threshold is not None and plain.threshold is not None
    assert design.threshold.fewest > 1 == plain.threshold.fewest
    assert design.threshold.least - design.threshold.fewest == plain.threshold.least - 1
    whole = exact(here, plain.aggregation)
    units = {key: sum(numbers[0] for numbers in bins.values()) for key, bins in whole.items()}
    (handed,) = Scan.of(there, [design.wanted]).exact()
    assert handed == {
        key: bins for key, bins in whole.items() if units[key] >= design.threshold.fewest
    }
    assert 0 < len(handed) < len(whole)
    session = world.session_of(
        release.table(frame.filter("points > 0"), unit="person", max_rows_per_unit=3)
    )
    with pytest.raises(UnsupportedError, match="trust_view"):
        session.count(spend={"epsilon": 1})


def test_columns_that_are_never_null_are_as_others() -> None:
    rows = [row for row in odd(60, 3) if None not in row]
    types = zip(tables.SCHEMA.names, tables.split(tables.TYPES), strict=True)
    connection = duckdb.connect()
    connection.execute(
        f"CREATE TABLE people ({', '.join(f'{name} {kind.strip()} NOT NULL' for name, kind in types)})"
    )
    connection.register("odd", tables.arrow(rows))
    connection.execute("INSERT INTO people SELECT * FROM odd")
    connection.execute("CREATE TABLE others AS SELECT * FROM people")
    bounds = BOUNDS["1 a group"]
    here = release.table(tables.arrow(rows), **bounds)
    there, others = (
        release.table(connection, name=name, **bounds) for name in ("people", "others")
    )
    asked = [question.design(here).aggregation for question in [*QUESTIONS.values()][::2]]
    alone = [exact(here, each) for each in asked]
    for start in range(0, len(asked), 5):
        assert Scan.of(there, asked[start : start + 5]).exact() == alone[start : start + 5]
    both = there.union(others)
    assert exact(both, release.Count(spend={"epsilon": 1}).design(both).aggregation)[()][0][0] > 0
    named = there.select("city").join(
        others.mutate(more=release.col("points")).select("more"), on=bounds["unit"]
    )
    assert exact(named, release.Count(spend={"epsilon": 1}).design(named).aggregation)[()][0][0] > 0
