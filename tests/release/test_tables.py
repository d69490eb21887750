"""Sources, unusual data and bad input give one clear error or a defined answer."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcompose.release as release
from campaigns.release import tables
from dpcompose.errors import (
    DomainError,
    EngineError,
    MissingExtraError,
    PlanError,
    UnsupportedError,
)
from dpcompose.release import source as sources
from dpcompose.release.aggregate import exact
from dpcompose.release.question import questions
from dpcompose.release.source import of_parquet
from tests.release import world

SPEND = {"epsilon": 1}
EPSILON: dict[str, Any] = {"spend": SPEND}


def integers(table: release.Table, question: release.Question) -> Any:
    return exact(table, question.design(table).aggregation)


COUNT = release.Count(by="city", keys=["rome", "oslo", None], spend=SPEND)


@pytest.fixture
def expected() -> Any:
    return integers(world.table(), COUNT)


def _pandas(path: Path) -> Any:
    return world.frame().to_pandas()


def _polars(path: Path) -> Any:
    return pytest.importorskip("polars").from_arrow(world.frame())


def _parquet(path: Path) -> Any:
    pq.write_table(world.frame(), path / "t.parquet")
    return path / "t.parquet"


def _connection(path: Path) -> Any:
    connection = duckdb.connect()
    connection.register("t", world.frame())
    return connection


SOURCES: list[Callable[[Path], Any]] = [_pandas, _polars, _parquet, _connection]


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.__name__.strip("_"))
def test_every_source_gives_the_same_integers(
    source: Callable[[Path], Any], tmp_path: Path, expected: Any
) -> None:
    made = release.table(source(tmp_path), name="t", unit="person", max_rows_per_unit=2)
    assert integers(made, COUNT) == expected


def _folder(path: Path) -> Any:
    for number, part in enumerate(("a[1]", "b")):
        (path / part).mkdir()
        pq.write_table(world.frame().slice(4 * number, 4), path / part / "t.parquet")
    return path


def _pattern(path: Path) -> Any:
    return f"{_folder(path)}/*/t*.parquet"


@pytest.mark.parametrize("source", [_folder, _pattern], ids=["folder", "pattern"])
def test_several_files_are_one_table(
    source: Callable[[Path], Any], tmp_path: Path, expected: Any
) -> None:
    assert (
        integers(release.table(source(tmp_path), unit="person", max_rows_per_unit=2), COUNT)
        == expected
    )


def test_folders_and_patterns_without_parquet_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("person\nann\n")
    for source in (tmp_path, tmp_path / "*", f"{tmp_path}/*.parquet", f"{tmp_path}/t.[c]sv"):
        with pytest.raises(DomainError, match="Parquet files"):
            release.table(source, unit="person", max_rows_per_unit=1)


def test_object_stores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, expected: Any) -> None:
    import duckdb

    def none(pattern: str) -> Any:
        raise duckdb.IOException(f"person 7 is not in {pattern}")

    def stored(pattern: str) -> Any:
        return of_parquet(pattern.replace("s3://bucket", str(tmp_path)))

    monkeypatch.setattr(sources, "of_parquet", none)
    for url in (
        "s3://",
        "gs://me:secret@bucket/a.parquet",
        "s3://bucket/a.csv",
        "gcs://bucket/a.parquet",
    ):
        with pytest.raises(DomainError) as raised:
            release.table(url, unit="person", max_rows_per_unit=1)
        assert "secret" not in str(raised.value) and "person 7" not in str(raised.value)
    _folder(tmp_path)
    monkeypatch.setattr(sources, "of_parquet", stored)
    for url in ("s3://bucket/", "s3://bucket/*/t.parquet"):
        assert integers(release.table(url, unit="person", max_rows_per_unit=2), COUNT) == expected


def test_a_duckdb_url(tmp_path: Path, expected: Any) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.register("frame", world.frame())
        connection.execute("CREATE TABLE visits AS SELECT * FROM frame")
    made = release.table(
        f"duckdb://{tmp_path / 't.duckdb'}", name="visits", unit="person", max_rows_per_unit=2
    )
    assert integers(made, COUNT) == expected
    made.close()


def test_a_postgresql_url(postgres_url: str) -> None:
    rows = tables.rows(random.Random(5), units=9, most=4)
    kept = tables.on_postgres(postgres_url, rows, "visits")
    kept.close()
    made = release.table(postgres_url, name="public.visits", unit="person", max_rows_per_unit=2)
    here = release.table(tables.arrow(rows), unit="person", max_rows_per_unit=2)
    question = release.Count(by="city", keys=tables.CITIES, spend=SPEND)
    assert integers(made, question) == integers(here, question)
    made.close()


def test_a_lost_connection_to_postgresql_is_made_anew_before_the_charge(postgres_url: str) -> None:
    import psycopg

    rows = [(f"p{number}", 1) for number in range(200)]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS lost")
        connection.execute("CREATE TABLE lost (person text, visits int)")
        connection.cursor().executemany("INSERT INTO lost VALUES (%s, %s)", rows)

    def cut() -> None:
        with psycopg.connect(postgres_url, autocommit=True) as connection:
            ours = "datname = current_database() AND pid <> pg_backend_pid()"
            assert connection.execute(
                f"SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE {ours}"
            )

    made = release.table(postgres_url, name="lost", unit="person", max_rows_per_unit=1)
    ledger = world.ledger()
    session = world.session_of(made, ledger)
    for number in range(3):
        answer = session.count(spend=SPEND, key=str(number))
        assert abs(answer.value - 200) < 100
        cut()
    assert session.count(spend=SPEND, key="after").value > 0
    assert [entry.kind for entry in ledger.entries("world")].count("granted") == 4  # one for each
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP TABLE lost")
        connection.execute("CREATE VIEW lost AS SELECT 'x' AS person, 1 AS visits")
    cut()
    with pytest.raises(
        UnsupportedError, match="replaced"
    ):  # connected again, it is looked at again
        session.count(spend=SPEND, key="replaced")
    made.close()
    with pytest.raises(EngineError, match="before the charge"):  # what was closed stays closed
        session.count(spend=SPEND, key="closed")
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("DROP VIEW lost")


def test_numbers_of_any_size_on_postgresql(postgres_url: str) -> None:
    import psycopg

    values = ["NaN", "Infinity", "-Infinity", "1e400", "-1e400", "1e-400", "0.5", "7", None]
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE wide (person int, x numeric)")
        for number, value in enumerate(values):
            connection.execute("INSERT INTO wide VALUES (%s, %s::numeric)", (number, value))
    made = release.table(postgres_url, name="wide", unit="person", max_rows_per_unit=1)
    assert [column.type for column in made.columns] == ["int32", "decimal"]
    question = release.Sum("x", lower=-10, upper=10, granularity="0.5", spend=SPEND)
    # NaN is left out. Clamped: Infinity and 1e400 are 10 each, the negative ones -10 each; 1e-400 is 0.
    assert integers(made, question) == {(): {0: (7, 2 * (20 - 20) + 1 + 14)}}
    made.close()


def test_declared_decimals_beyond_the_doubles_fail_on_no_row(postgres_url: str) -> None:
    import psycopg

    types = {"long": "numeric(400,10)", "wide": "numeric(1000,500)", "fine": "numeric(400,400)"}
    with psycopg.connect(postgres_url, autocommit=True) as connection:
        execute: Any = connection.execute
        columns = ", ".join(f"{name} {type}" for name, type in types.items())
        execute(f"CREATE TABLE digits (person int, {columns}, number oid)")
        execute("INSERT INTO digits VALUES (1, 7, 7, 0.5, 3), (2, 1e380, 1e380, 1e-390, 4)")
        execute("INSERT INTO digits VALUES (3, -1e380, 1e-390, 0, 5)")
    made = release.table(postgres_url, name="digits", unit="person", max_rows_per_unit=1)
    for name, total in {"long": 14 + 20 - 20, "wide": 14 + 20, "fine": 1}.items():
        question = release.Sum(name, lower=-10, upper=10, granularity="0.5", spend=SPEND)
        assert integers(made, question) == {(): {0: (3, total)}}
    product = made.mutate(square=release.col("number") * release.col("number"))
    question = release.Sum("square", lower=0, upper=100, spend=SPEND)
    assert integers(product, question) == {(): {0: (3, 9 + 16 + 25)}}
    made.close()


def test_a_csv_file_is_text_until_types_are_given(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text('person,city,age\nann,"ro,me",4\nbob,,x\ncyd,oslo\nann,rome,7,8\n"dee\n')
    made = release.table(path, unit="person", max_rows_per_unit=2)
    assert {column.kind for column in made.columns} == {"text"}
    with pytest.raises(DomainError, match="schema="):
        release.Sum("age", lower=0, upper=9, spend=SPEND).design(made)
    typed = release.table(path, unit="person", max_rows_per_unit=2, schema={"age": "int64"})
    assert integers(typed, release.Sum("age", lower=0, upper=9, spend=SPEND))[()][0][1] in (4, 11)
    with pytest.raises(DomainError, match="names of columns"):
        release.table(path, unit="person", max_rows_per_unit=2, schema={"size": "int64"})
    with pytest.raises(DomainError, match="int64"):
        release.table(path, unit="person", max_rows_per_unit=2, schema={"age": "number of years"})


@pytest.mark.parametrize(
    "source",
    [
        "nowhere.parquet",
        "nowhere.csv",
        "t.xlsx",
        "mysql://host/db",
        "postgresql://nobody:secret@127.0.0.1:1/db",
        7,
        None,
        pa.table({"a": [1]}).schema,
        {"person": [1]},
    ],
    ids=repr,
)
def test_a_source_that_cannot_be_opened(source: Any) -> None:
    with pytest.raises(DomainError) as raised:
        release.table(
            source, unit="person", max_rows_per_unit=1, name="t" if "://" in str(source) else None
        )
    assert "secret" not in str(raised.value)
    assert raised.value.__cause__ is None


def test_no_line_of_a_csv_file_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    head, good = b"person,city,age\n", b"ann,rome,4\n"
    odd = (
        b"b\xffb,oslo,5\ncyd\x00,rome,x,7,8\n\n,,\nfay\n"
        + b"x" * 200_000
        + b',oslo,1\nzoe,"ro\nme",9\n'
    )
    path.write_bytes(head + good + odd + good)
    made = release.table(path, unit="person", max_rows_per_unit=2, schema={"age": "int8"})
    assert integers(made, COUNT)[("rome",)] == {0: (3,)}
    path.write_bytes(head)
    assert integers(release.table(path, unit="person", max_rows_per_unit=2), COUNT) == {}


def test_many_public_keys() -> None:
    frame = pa.table({"p": [1, 2, 3, 4], "k": pa.array([1, 2, 70, None], pa.int16())})
    made = release.table(frame, unit="p", max_rows_per_unit=1)
    found = integers(made, release.Count(by="k", keys=[*range(90), None], spend=SPEND))
    assert found == {(1,): {0: (1,)}, (2,): {0: (1,)}, (70,): {0: (1,)}, (None,): {0: (1,)}}


def test_files_that_are_none(tmp_path: Path) -> None:
    (tmp_path / "t.parquet").write_text("person 7 is ill")
    (tmp_path / "t.csv").write_bytes(b"")
    (tmp_path / "twice.csv").write_text("a,a\n1,2\n")
    for name in ("t.parquet", "t.csv", "twice.csv"):
        with pytest.raises(DomainError) as raised:
            release.table(tmp_path / name, unit="person", max_rows_per_unit=1)
        assert "ill" not in str(raised.value)


def test_a_frame_that_mixes_types() -> None:
    pandas = pytest.importorskip("pandas")
    with pytest.raises(DomainError, match="one type") as raised:
        release.table(
            pandas.DataFrame({"person": [1, "zwei", 3.0]}), unit="person", max_rows_per_unit=1
        )
    assert "zwei" not in str(raised.value)


def test_a_table_of_ibis_is_refused_with_the_line_to_write() -> None:
    table = type("Table", (), {"__module__": "ibis.expr.types.relations"})()
    with pytest.raises(UnsupportedError, match=r"ibis.*release\.table\("):
        release.table(table, unit="person", max_rows_per_unit=1)


def test_a_missing_extra_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "opendp", None)
    with pytest.raises(MissingExtraError, match=r"dpcompose\[data\]"):
        world.session()
    monkeypatch.setattr(sources, "find_spec", lambda _: None)
    with pytest.raises(MissingExtraError, match=r"dpcompose\[data\]"):
        world.table()


BAD: list[Callable[[], Any]] = [
    lambda: release.Count(by="nothing", keys=[1], **EPSILON),
    lambda: release.Count(by="amount", keys=[1], **EPSILON),
    lambda: release.Count(by=["city", "city"], keys=[("a", "b")], **EPSILON),
    lambda: release.Count(keys=["rome"], **EPSILON),
    lambda: release.Count(by="city", keys="rome", **EPSILON),
    lambda: release.Count(by="city", keys=[], **EPSILON),
    lambda: release.Count(by="city", keys=["rome", "rome"], **EPSILON),
    lambda: release.Count(by="city", keys=[1], **EPSILON),
    lambda: release.Count(by="city", keys=["a\0b"], **EPSILON),
    lambda: release.Count(by="city", keys=["\ud800"], **EPSILON),
    lambda: release.Count(by="city", keys=[("rome", "oslo")], **EPSILON),
    lambda: release.Count(by=["city", "age"], keys=["rome"], **EPSILON),
    lambda: release.Count(by="age", keys=[True], **EPSILON),
    lambda: release.Count(by="age", keys=[2**63], **EPSILON),
    lambda: release.Count(by="age", keys=[1.0], **EPSILON),
    lambda: release.Count(by="city", **EPSILON),
    release.Count,
    lambda: release.Sum("city", lower=0, upper=1, **EPSILON),
    lambda: release.Sum("amount", lower=1, upper=0, **EPSILON),
    lambda: release.Sum("amount", lower=0, upper=0, **EPSILON),
    lambda: release.Sum("amount", lower=math.nan, upper=0, **EPSILON),
    lambda: release.Sum("amount", lower=0, upper=math.inf, **EPSILON),
    lambda: release.Sum("amount", lower="0", upper="one", **EPSILON),
    lambda: release.Sum("amount", lower=0, upper=10**16, **EPSILON),
    lambda: release.Sum("amount", lower=0, upper=1, granularity=0, **EPSILON),
    lambda: release.Sum("amount", lower=0, upper=1, granularity=2, **EPSILON),
    lambda: release.Sum("amount", lower=0, upper=1, granularity="1e-13", **EPSILON),
    lambda: release.Histogram("amount", edges=[1], **EPSILON),
    lambda: release.Histogram("amount", edges=[2, 1], **EPSILON),
    lambda: release.Histogram("amount", edges=[1, math.nan], **EPSILON),
    lambda: release.Histogram("city", edges=[1, 2], **EPSILON),
    lambda: release.Quantile("amount", 0, lower=0, upper=1, granularity="0.1", **EPSILON),
    lambda: release.Quantile("amount", 1.5, lower=0, upper=1, granularity="0.1", **EPSILON),
    lambda: release.Quantile("amount", "1e-7", lower=0, upper=1, granularity="0.1", **EPSILON),
    lambda: release.Quantile("amount", 0.5, lower=0, upper=1, granularity="1e-6", **EPSILON),
    lambda: release.Quantile(
        "amount", 0.5, lower=0, upper=1, granularity="0.1", spend={"epsilon": 1, "delta": 0.1}
    ),
]


@pytest.mark.parametrize("make", BAD, ids=range(len(BAD)))
def test_a_question_that_does_not_fit_costs_nothing(make: Callable[[], release.Question]) -> None:
    ledger = world.ledger()
    before = len(list(ledger.entries("world")))
    with pytest.raises(DomainError):
        world.session(ledger).ask(make())
    assert len(list(ledger.entries("world"))) == before


@pytest.mark.parametrize("unit", ["nothing", "amount", [], ["person", "person"], ""])
def test_a_unit_is_a_column_of_names(unit: Any) -> None:
    with pytest.raises(DomainError):
        world.table(unit=unit)


@pytest.mark.parametrize("rows", [[], world.ROWS[-1:]], ids=["no rows", "nobody's rows"])
def test_empty_tables_answer_too(rows: Any) -> None:
    asked = world.session(rows=rows)
    assert isinstance(asked.count(spend=SPEND).value, int)
    assert asked.count(by="city", keys=["rome", None], spend=SPEND).table.num_rows == 2
    assert isinstance(asked.mean("amount", lower=0, upper=1, spend=SPEND).value, float)
    assert (
        0
        <= asked.quantile("amount", 0.5, lower=0, upper=1, granularity="0.5", spend=SPEND).value
        <= 1
    )


def test_one_unit_that_holds_all_rows() -> None:
    made = world.table([("ann", "rome", 5.0, 1)] * 5000, max_rows_per_unit=7)
    assert integers(made, COUNT) == {("rome",): {0: (7,)}}
    assert integers(made, release.Sum("amount", lower=0, upper=4, granularity=1, spend=SPEND)) == {
        (): {0: (7, 28)}
    }


def test_sums_that_overflow_64_bits_do_not() -> None:
    rows = [(f"p{n}", "rome", 0.0, 2**63 - 1) for n in range(40)]
    made = world.table(rows, max_rows_per_unit=1)
    question = release.Sum("age", lower=0, upper=10**15, granularity=10**3, spend=SPEND)
    assert integers(made, question) == {(): {0: (40, 40 * 10**12)}}


def test_dates_and_truths_as_keys() -> None:
    frame = pa.table(
        {"p": [1, 2, 3], "day": [date(2020, 1, 1), None, date(1, 1, 1)], "ok": [True, None, False]}
    )
    made = release.table(frame, unit="p", max_rows_per_unit=1)
    question = release.Count(by="day", keys=[date(2020, 1, 1), date(1, 1, 1), None], spend=SPEND)
    assert set(integers(made, question)) == {(date(2020, 1, 1),), (date(1, 1, 1),), (None,)}
    assert set(integers(made, release.Count(by="ok", keys=[True, None], spend=SPEND))) == {
        (True,),
        (None,),
    }
    with pytest.raises(DomainError):
        release.Count(by="day", keys=[datetime(2020, 1, 1)], spend=SPEND).design(made)


def test_rows_are_kept_alike_whatever_their_order() -> None:
    rng = random.Random(3)
    rows = tables.rows(rng, units=12, most=9)
    shuffled = rng.sample(rows, len(rows))
    bounds = {
        "unit": "person",
        "max_rows_per_unit": 3,
        "max_groups_per_unit": 2,
        "max_rows_per_group": 2,
    }
    for question in (
        release.Sum("amount", lower=-9, upper=9, by="city", keys=tables.CITIES, spend=SPEND),
        release.Mean("points", lower=-9, upper=9, by="code", spend={"epsilon": 1, "delta": 0.1}),
        release.Histogram("amount", edges=[-9, 0, 9], spend=SPEND),
    ):
        one, other = (release.table(tables.arrow(each), **bounds) for each in (rows, shuffled))
        assert integers(one, question) == integers(other, question)


GOOD = """
[[question]]
kind = "count"
by = ["city", "age"]
keys = [["rome", 1], ["oslo", 2]]
[[question]]
kind = "mean"
column = "amount"
lower = 0
upper = 9.5
spend = { epsilon = 0.1 }
"""
WRONG = [
    "",
    "a = 1",
    "[question]",
    "question = 3",
    "question = []",
    "[[question]]",
    '[[question]]\nkind = "guess"',
    '[[question]]\nkind = "sum"\nlower = 0\nupper = 1',
    '[[question]]\nkind = "count"\nlower = 0',
    '[[question]]\nkind = "count"\nby = 3',
    '[[question]]\nkind = "count"\nby = "a"\nkeys = "b"',
    "[[question",
    "\x00",
]


def test_a_file_of_questions(tmp_path: Path) -> None:
    path = tmp_path / "q.toml"
    path.write_text(GOOD)
    assert questions(path) == (
        release.Count(by=["city", "age"], keys=[("rome", 1), ("oslo", 2)]),
        release.Mean("amount", lower=0, upper=9.5, spend={"epsilon": 0.1}),
    )
    for text in WRONG:
        path.write_text(text)
        with pytest.raises(PlanError, match=r"q\.toml"):
            questions(path)
    with pytest.raises(PlanError):
        questions(tmp_path / "nowhere.toml")


def test_an_end_that_neither_a_file_nor_a_catalog_has_is_refused_before_the_charge(
    tmp_path: Path,
) -> None:
    path = tmp_path / "q.toml"
    path.write_text('[[question]]\nkind = "sum"\ncolumn = "amount"\nlower = 0')
    session = world.session()
    before = session.account.left()
    with pytest.raises(DomainError, match="no range for 'amount'"):
        session.batch(questions(path), spend={"epsilon": 1})
    assert session.account.left() == before
