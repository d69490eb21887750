"""Catalogs: column ranges stated by the keeper, and public tables that may be joined by name."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import dpcompose.release as release
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.release.table import Table

col = release.col
VISITS = {
    "person": ["ann", "ann", "bob"],
    "clinic": ["n", "s", "n"],
    "minutes": [3, 500, 7],
    "cost": [1.0, 2.0, 3.0],
}
CLINICS = {"clinic": ["n", "s"], "city": ["Oslo", "Rome"], "beds": [1, 2]}
RANGES: dict[str, Any] = {"minutes": (0, 120), "cost": (0, 2.5)}


@pytest.fixture
def ledger() -> Iterator[Ledger]:
    with Ledger.open("memory:") as made:
        yield made


def _defined(ledger: Ledger, home: Path, **changes: Any) -> release.Catalog:
    parquet.write_table(pa.table(VISITS), home / "visits.parquet")
    parquet.write_table(pa.table(CLINICS), home / "clinics.parquet")
    definition = {
        "source": home / "visits.parquet",
        "unit": "person",
        "max_rows_per_unit": 2,
        "ranges": RANGES,
    }
    clinics = changes.pop("public", {"clinics": home / "clinics.parquet"})
    filter = BasicFilter(999, delta=0)
    tables = {"visits": definition | changes}
    return release.Catalog.define(
        ledger, "world", tables, filter=filter, actor="keeper", public=clinics
    )


@pytest.fixture
def visits(ledger: Ledger, tmp_path: Path) -> Table:
    return _defined(ledger, tmp_path).table("visits")


SPEND = {"epsilon": 1}


@pytest.mark.parametrize(
    ("asked", "written"),
    [
        (release.Sum("minutes"), release.Sum("minutes", lower=0, upper=120)),
        (release.Mean("cost"), release.Mean("cost", lower=0, upper=2.5)),
        (release.Sum("minutes", upper=60), release.Sum("minutes", lower=0, upper=60)),
        (
            release.Quantile("minutes", 0.5),
            release.Quantile("minutes", 0.5, lower=0, upper=120, granularity=1),
        ),
        (
            release.Quantile("cost", 0.5),
            release.Quantile("cost", 0.5, lower=0, upper=2.5, granularity=2**-9),
        ),
        (release.Variance("cost"), release.Variance("cost", lower=0, upper=2.5)),
        (
            release.Ratio("cost", per="minutes"),
            release.Ratio("cost", per="minutes", lower=0, upper=2.5, per_lower=0, per_upper=120),
        ),
    ],
    ids=lambda asked: f"{asked.kind}",
)
def test_ends_are_the_catalogs_where_none_are_stated(
    visits: Table, asked: Any, written: Any
) -> None:
    found, stated = asked.design(visits, SPEND), written.design(visits, SPEND)
    assert (found.description, found.steps) == (stated.description, stated.steps)


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("SELECT SUM(minutes) FROM visits", release.Sum("minutes")),
        ("SELECT AVG(v.cost) FROM visits v", release.Mean("cost")),
        ("SELECT MEDIAN(minutes) FROM visits", release.Quantile("minutes", 0.5)),
        (
            "SELECT PERCENTILE(minutes, 0.1, 0.9) FROM visits",
            release.Quantiles("minutes", [0.1, 0.9]),
        ),
        ("SELECT SUM(cost) / SUM(minutes) FROM visits", release.Ratio("cost", per="minutes")),
        ("SELECT SUM(CLAMP(minutes, 0, 9)) FROM visits", release.Sum("minutes", lower=0, upper=9)),
    ],
)
def test_sql_needs_no_clamp_where_the_catalog_has_a_range(
    visits: Table, text: str, question: Any
) -> None:
    (found,) = release.questions_of_sql(text, visits)
    assert found.design(visits, SPEND).description == question.design(visits, SPEND).description


def test_ends_follow_a_column_and_no_other(visits: Table) -> None:
    assert release.Sum("minutes").design(visits.where(col("cost") > 1).select("minutes"), SPEND)
    for made in (
        visits.mutate(minutes=col("minutes") * 9),
        visits.select().mutate(minutes=release.lit(1)),
    ):
        with pytest.raises(DomainError, match="no range for 'minutes'"):
            release.Sum("minutes").design(made, SPEND)
    for text in (
        "SELECT SUM(minutes / minutes) FROM visits",
        "SELECT AVG(beds) FROM visits JOIN clinics USING (clinic)",
    ):
        with pytest.raises((DomainError, UnsupportedError)):
            release.questions_of_sql(text, visits)


@pytest.mark.parametrize(
    "ranges",
    [
        {"minutes": (120, 0)},
        {"minutes": (0, 0)},
        {"minutes": (0, float("nan"))},
        {"minutes": (0, float("inf"))},
        {"minutes": (True, 2)},
        {"minutes": "01"},
        {"minutes": 3},
        {"clinic": (0, 1)},
        {"nothing": (0, 1)},
        ["minutes"],
    ],
    ids=str,
)
def test_ranges_that_are_none_are_refused(ledger: Ledger, tmp_path: Path, ranges: Any) -> None:
    with pytest.raises(DomainError):
        _defined(ledger, tmp_path, ranges=ranges)


def test_public_tables_are_joined_by_name(ledger: Ledger, visits: Table, tmp_path: Path) -> None:
    joined = visits.join("clinics", on="clinic")
    session = release.Session(visits, ledger=ledger, scope="world", actor="ana")
    text = "SELECT city, COUNT(*) FROM visits JOIN clinics USING (clinic) WHERE city IN ('Oslo', 'Rome') GROUP BY city"
    assert release.questions_of_sql(text, visits) == (
        release.Count(by="city", keys=["Oslo", "Rome"], table=joined),
    )
    answer: Any = session.sql(text, spend={"epsilon": 50})
    assert answer.table.column("count").to_pylist() == [2, 1]
    with pytest.raises(DomainError, match="clinics"):
        visits.join("planes", on="clinic")
    parquet.write_table(pa.table(CLINICS | {"beds": [1, 3]}), tmp_path / "clinics.parquet")
    with pytest.raises(DomainError, match="that was catalogued"):
        session.sql(text, spend={"epsilon": 1})


def test_a_public_table_has_a_name_of_its_own(ledger: Ledger, tmp_path: Path) -> None:
    with pytest.raises(DomainError, match="no table has"):
        _defined(ledger, tmp_path, public={"visits": tmp_path / "clinics.parquet"})


def _two(home: Path, **other: Any) -> dict[str, Any]:
    people = {"person": [f"p{at}" for at in range(20)], "age": list(range(20))}
    visits = {"person": [f"p{at % 4}" for at in range(40)], "minutes": list(range(40))}
    for name, columns in (("people", people), ("visits", visits)):
        parquet.write_table(pa.table(columns), home / f"{name}.parquet")
    one = {"source": home / "people.parquet", "unit": "person", "max_rows_per_unit": 1}
    return {
        "people": one,
        "visits": {**one, "source": home / "visits.parquet", "max_rows_per_unit": 6} | other,
    }


@pytest.mark.parametrize("first", ["people", "visits"])
def test_each_table_of_a_catalog_has_its_own_bound(
    ledger: Ledger, tmp_path: Path, first: str
) -> None:
    filter = BasicFilter(999, delta=0)
    catalog = release.Catalog.define(ledger, "world", _two(tmp_path), filter=filter, actor="keeper")
    opened = {name: catalog.table(name) for name in ("people", "visits")}
    asked = {
        name: release.Session(opened[name], ledger=ledger, scope="world", actor="ana")
        for name in opened
    }
    order = [first, *({*asked} - {first})]
    spend = {"epsilon": 100}
    # Scale 6 / 100 at most: another number has a probability of 1e-7.
    assert {name: asked[name].count(spend=spend).value for name in order} == {
        "people": 20,
        "visits": 24,
    }
    for name, rows in (("people", 1), ("visits", 6)):
        assert f"of one unit at most {rows} rows are kept" in str(
            asked[name].explain(release.Count(spend=spend))
        )
    both = asked[first].batch(
        [release.Count(table=table) for table in opened.values()], spend=spend
    )
    assert [answer.value for answer in both] == [20, 24]
    joined = opened["people"].join(opened["visits"], on="person")
    assert joined.bounds.rows == 6
    assert asked[first].count(table=joined, spend=spend).value == 24


def test_a_table_of_another_source_is_none_of_the_catalog_whatever_its_name(
    ledger: Ledger, tmp_path: Path
) -> None:
    catalog = release.Catalog.define(
        ledger, "world", _two(tmp_path), filter=BasicFilter(9, delta=0), actor="keeper"
    )
    visits = catalog.table("visits")
    session = release.Session(visits, ledger=ledger, scope="world", actor="ana")
    typed = release.table(
        tmp_path / "visits.parquet", unit="person", max_rows_per_unit=6, name="visits"
    )
    for mixed in (typed, visits.union(typed), typed.union(visits)):
        with pytest.raises(DomainError, match="scope's catalog"):
            session.count(table=mixed, spend=SPEND)
    with pytest.raises(DomainError, match="a table opened with"):
        catalog.table("people").join(typed, on="person")


def test_a_scope_without_the_catalog_has_one_bound(ledger: Ledger, tmp_path: Path) -> None:
    filter = BasicFilter(999, delta=0)
    catalog = release.Catalog.define(ledger, "world", _two(tmp_path), filter=filter, actor="keeper")
    open_scope(ledger, "plain", filter=filter, actor="keeper")
    one, other = (
        release.Session(catalog.table(name), ledger=ledger, scope="plain", actor="ana")
        for name in ("people", "visits")
    )
    one.count(spend=SPEND)
    with pytest.raises(DomainError, match="the first question charged to 'plain'"):
        other.count(spend=SPEND)


@pytest.mark.parametrize("unit", ["minutes", ["person", "minutes"]])
def test_a_catalog_of_two_units_is_refused(ledger: Ledger, tmp_path: Path, unit: Any) -> None:
    with pytest.raises(
        DomainError,
        match=r"tables\['visits'\]: unit = .*as in tables\['people'\].*a scope of its own",
    ):
        release.Catalog.define(
            ledger,
            "world",
            _two(tmp_path, unit=unit),
            filter=BasicFilter(1, delta=0),
            actor="keeper",
        )
    assert [scope.path for scope in ledger.scopes()] == []


def test_a_catalog_on_postgresql(ledger: Ledger, tmp_path: Path, postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE stays (person text, clinic text, minutes bigint)")
        connection.execute(
            "INSERT INTO stays VALUES ('ann', 'n', 3), ('ann', 's', 500), ('bob', 'n', 7)"
        )
    parquet.write_table(pa.table(CLINICS), tmp_path / "clinics.parquet")
    definition = {"source": postgres_url, "name": "stays", "unit": "person", "max_rows_per_unit": 2}
    release.Catalog.define(
        ledger,
        "world",
        {"stays": definition | {"ranges": {"minutes": (0, 120)}}},
        filter=BasicFilter(999, delta=0),
        actor="keeper",
        public={"clinics": tmp_path / "clinics.parquet"},
    )
    stays = release.Catalog(ledger, "world").table("stays")
    session = release.Session(stays, ledger=ledger, scope="world", actor="ana")
    text = "SELECT city, SUM(minutes) FROM stays JOIN clinics USING (clinic) WHERE city IN ('Oslo', 'Rome') GROUP BY city"
    answer: Any = session.sql(text, spend={"epsilon": 100})
    # Noise of scale 2.4: above 60 with probability 3e-11.
    assert answer.table.column("sum").to_pylist() == pytest.approx([10, 120], abs=60)
    typed = release.table(postgres_url, name="stays", unit="person", max_rows_per_unit=2)
    with pytest.raises(DomainError, match="scope's catalog"):
        release.Session(typed, ledger=ledger, scope="world", actor="ana").count(
            spend={"epsilon": 1}
        )
    typed.close()
    stays.close()


def test_types_that_duckdb_has_not_stand_in_a_table_without_rows() -> None:
    types = [
        ["person", "string"], ["x", "decimal"], ["wide", "decimal(1000, 500)"], ["small", "decimal(3, 5)"],
        ["exact", "decimal(30, 6)"], ["where", "inet"], ["tags", "integer[]"], ["mood", "mood"],
        ["number", "uint32"], ["at", "timestamp(6)"], ["said", "jsonb"],
    ]  # fmt: skip
    described = {"version": "1", "types": types, "unit": ["person"], "bounds": [1, 1, 1]}
    tables = {"visits": {**described, "ranges": {}}}
    for invented in (0, 30):
        (made,) = release.Catalog.without_rows(tables, invented=invented).values()
        assert [[each.name, each.type] for each in made.columns] == types
        with Ledger.open("memory:") as ledger:
            open_scope(ledger, "world", filter=BasicFilter(200, delta=0), actor="keeper")
            session = release.Session(made, ledger=ledger, scope="world", actor="ana")
            text = "SELECT SUM(CLAMP(x, 0, 1)), SUM(CLAMP(wide, 0, 1)) FROM visits WHERE small >= 0"
            assert len(session.sql(text, spend={"epsilon": 50}).rows) == 1
