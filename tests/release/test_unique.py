"""If the database enforces unique units, no rows are sorted or left out; otherwise rows are
bounded.
"""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dpcompose.release as release
from dpcompose.errors import UnsupportedError
from dpcompose.release.aggregate import Scan, exact
from tests.release import world

COLUMNS = "person BIGINT, visit BIGINT, city {text}, amount DOUBLE PRECISION"
ROWS = "SELECT i, i + 100, CASE WHEN i % 3 = 0 THEN 'Oslo' ELSE 'Rome' END, i / 4.0 FROM {series}"
EPSILON = {"epsilon": 1}
QUESTIONS = [
    release.Count(spend=EPSILON),
    release.Sum(
        "amount", lower=0, upper=9, granularity=1, by="city", keys=["Oslo", "Rome"], spend=EPSILON
    ),
    release.Units(by="city", spend={"epsilon": 1, "delta": 1e-6}),
    release.Quantile("amount", 0.5, lower=0, upper=9, granularity=1, spend=EPSILON),
]
SINGLE = {
    "primary key": ("PRIMARY KEY (person)", "person"),
    "unique": ("UNIQUE (person)", "person"),
    "one of two columns": ("PRIMARY KEY (person)", ["person", "visit"]),
    "both columns": ("UNIQUE (visit, person)", ["person", "visit"]),
}
SEVERAL = {
    "nothing": ("CHECK (person >= 0)", "person"),
    "both columns, a unit of one": ("PRIMARY KEY (person, visit)", "person"),
    "another column": ("PRIMARY KEY (visit)", "person"),
}


def on_duckdb(constraint: str) -> Any:
    connection = duckdb.connect()
    connection.execute(f"CREATE TABLE people ({COLUMNS.format(text='VARCHAR')}, {constraint})")
    connection.execute("INSERT INTO people " + ROWS.format(series="range(30) rows(i)"))
    return connection


def on_postgres(url: str, *statements: str) -> Any:
    import psycopg

    connection = psycopg.connect(url, autocommit=True)
    connection.execute("DROP TABLE IF EXISTS people CASCADE")
    for each in statements:
        connection.execute(each.encode())
    connection.execute(
        ("INSERT INTO people " + ROWS.format(series="generate_series(0, 29) i")).encode()
    )
    return connection


def made(constraint: str) -> str:
    return f"CREATE TABLE people ({COLUMNS.format(text='TEXT')}, {constraint})"


def sorts(table: release.Table) -> bool:
    """Whether every question but the first, which sorts nowhere, sorts the rows of units, or none does."""
    words = [
        Scan.of(table, [each.design(table).aggregation]).statement.words for each in QUESTIONS[1:]
    ]
    found = {" OVER " in " ".join(each.split()) for each in words}
    assert len(found) == 1
    return found.pop()


def integers(table: release.Table) -> list[Any]:
    return [exact(table, question.design(table).aggregation) for question in QUESTIONS]


def of(source: Any, unit: Any) -> release.Table:
    return release.table(source, name="people", unit=unit, max_rows_per_unit=2)


PLAIN = pa.table(
    {
        "person": list(range(30)),
        "visit": list(range(100, 130)),
        "city": ["Rome" if i % 3 else "Oslo" for i in range(30)],
        "amount": [i / 4.0 for i in range(30)],
    }
)


@pytest.mark.parametrize("constraint, unit", SINGLE.values(), ids=SINGLE)
def test_duckdb_sorts_nothing_of_units_with_one_row(constraint: str, unit: Any) -> None:
    table, plain = of(on_duckdb(constraint), unit), of(PLAIN, unit)
    assert not sorts(table) and sorts(plain)
    assert integers(table) == integers(plain)
    changed = (
        table.where(release.col("visit") > 3)
        .mutate(twice=release.col("amount") * 2)
        .select("city", "amount")
    )
    assert not sorts(changed)


@pytest.mark.parametrize("constraint, unit", SEVERAL.values(), ids=SEVERAL)
def test_duckdb_bounds_the_rows_of_other_units(constraint: str, unit: Any) -> None:
    assert sorts(of(on_duckdb(constraint), unit))


def test_rows_that_were_joined_are_bounded() -> None:
    table = of(on_duckdb("PRIMARY KEY (person)"), "person")
    assert sorts(table.union(table))
    both = table.join(table.mutate(more=release.col("amount")).select("more"), on="person")
    many = table.join(release.public(CITIES), on="city", at_most=2)
    assert sorts(both) and sorts(many)
    assert sorts(many.where(release.col("visit") > 3))
    # A union of a table with itself holds two rows of each unit, and keeps as many as were stated, twice.
    assert integers(table.union(table))[0] == {(): {0: (60,)}}


CITIES = pa.table({"city": ["Oslo", "Oslo", "Rome"], "area": ["a", "b", "c"]})


@pytest.mark.parametrize("constraint, unit", SINGLE.values(), ids=SINGLE)
def test_postgresql_sorts_nothing_of_units_with_one_row(
    constraint: str, unit: Any, postgres_url: str
) -> None:
    table = of(on_postgres(postgres_url, made(constraint)), unit)
    assert not sorts(table)
    assert integers(table) == integers(of(PLAIN, unit))
    table.close()


NOT_ENOUGH = {
    "for some rows": ["CREATE UNIQUE INDEX only_some ON people (person) WHERE visit > 3"],
    "of an expression": ["CREATE UNIQUE INDEX only_some ON people ((person + 1))"],
    "with a column beside": ["CREATE UNIQUE INDEX only_some ON people (visit) INCLUDE (person)"],
    "at the end of a transaction": ["ALTER TABLE people ADD UNIQUE (person) DEFERRABLE"],
    "not of children": [
        "ALTER TABLE people ADD UNIQUE (person)",
        "CREATE TABLE others () INHERITS (people)",
    ],
    "not valid": [
        "CREATE UNIQUE INDEX only_some ON people (person)",
        "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'only_some'::regclass",
    ],
    "of texts": [
        "ALTER TABLE people ALTER person TYPE TEXT",
        "ALTER TABLE people ADD UNIQUE (person)",
    ],
    "not at all": [],
}


@pytest.mark.parametrize("statements", NOT_ENOUGH.values(), ids=NOT_ENOUGH)
def test_postgresql_bounds_rows_where_a_constraint_is_not_enough(
    statements: list[str], postgres_url: str
) -> None:
    table = of(on_postgres(postgres_url, made("CHECK (visit >= 0)"), *statements), "person")
    assert sorts(table)
    table.close()


def test_postgresql_knows_the_constraint_of_a_partitioned_table(postgres_url: str) -> None:
    parts = [f"{made('PRIMARY KEY (person)')} PARTITION BY RANGE (person)"]
    parts += [
        f"CREATE TABLE p{n} PARTITION OF people FOR VALUES FROM ({n}) TO ({n + 15})"
        for n in (0, 15)
    ]
    table = of(on_postgres(postgres_url, *parts), "person")
    assert not sorts(table)
    table.close()


def test_a_constraint_that_was_dropped_since_is_noticed(postgres_url: str) -> None:
    source = on_postgres(postgres_url, made("CONSTRAINT one UNIQUE (person)"))
    asked = release.Session(of(source, "person"), ledger=world.ledger(), scope="world", actor="ana")
    asked.count(spend=EPSILON)
    source.execute("ALTER TABLE people DROP CONSTRAINT one")
    with pytest.raises(UnsupportedError, match="was replaced since it was opened"):
        asked.count(spend=EPSILON)
    source.close()
