"""Only plain tables may be queried: in views and other expressions one unit's rows can affect the
rows of others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import dpcompose.release as release
from campaigns.release import tables
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, EngineError, UnsupportedError
from dpcompose.ledger import Ledger
from tests.release import world

SPEND = {"epsilon": 1}
ROWS = [(f"p{n}", n, "Zug", n, None, n == 7, 1.0, None, n, 1, None) for n in range(50)]
VIEWS = {
    "any over all": "SELECT *, max(number) OVER () AS hit FROM {t}",
    "row number": "SELECT *, row_number() OVER (ORDER BY code) AS hit FROM {t}",
    "subquery": "SELECT *, (SELECT max(number) FROM {t}) AS hit FROM {t}",
    "join": "SELECT a.* FROM {t} a JOIN {t} b ON b.number = 7",
    "union": "SELECT * FROM {t} UNION ALL SELECT * FROM {t}",
    "limit": "SELECT * FROM {t} ORDER BY number LIMIT 1",
    "random": "SELECT *, {random}() AS hit FROM {t}",
    "as it is": "SELECT * FROM {t} WHERE number > 3",
}


def of_duckdb(rows: Any) -> tuple[Any, Callable[[str], Any], str]:
    connection = duckdb.connect()
    connection.register("frame", tables.arrow(rows))
    connection.execute("CREATE TABLE people AS SELECT * FROM frame")
    return connection, connection.execute, "random"


@pytest.fixture(params=["duckdb", "postgres", "spark"])
def engine(
    request: pytest.FixtureRequest, tmp_path: Path
) -> Iterator[tuple[Any, Callable[[str], Any], str]]:
    """A connection with the table `people`, how it runs a statement, and its word for a random number."""
    if request.param == "duckdb":
        yield of_duckdb(ROWS)
    elif request.param == "postgres":
        connection = tables.on_postgres(request.getfixturevalue("postgres_url"), ROWS)
        connection.execute("DROP VIEW IF EXISTS seen")
        yield connection, connection.execute, "random"
        connection.execute("DROP VIEW IF EXISTS seen")
        connection.close()
    else:
        spark = request.getfixturevalue("spark")
        yield tables.on_spark(spark, ROWS, tmp_path / "people.parquet"), spark.sql, "rand"


def asked(table: release.Table, ledger: Ledger) -> Any:
    return release.Session(table, ledger=ledger, scope="world", actor="ana").count(spend=SPEND)


def test_every_view_is_refused_before_the_charge(engine: Any) -> None:
    connection, execute, random = engine
    ledger = world.ledger()
    for words in VIEWS.values():
        temporary = "TEMPORARY " if random == "rand" else ""
        execute(
            f"CREATE OR REPLACE {temporary}VIEW seen AS {words.format(t='people', random=random)}"
        )
        view = release.table(connection, name="seen", unit="person", max_rows_per_unit=1)
        with pytest.raises(UnsupportedError, match="view"):
            asked(view, ledger)
        execute("DROP VIEW seen")
    assert [each.kind for each in ledger.entries("world")] == ["opened"]
    plain = release.table(connection, name="people", unit="person", max_rows_per_unit=1)
    assert isinstance(asked(plain, ledger).value, int)


def test_a_view_is_asked_where_the_keeper_trusts_it() -> None:
    connection, execute, _ = of_duckdb(ROWS)
    execute("CREATE VIEW seen AS SELECT * FROM people")
    view = release.table(connection, name="seen", unit="person", max_rows_per_unit=1)
    for note, trusted in (
        ({"trust_view": ["seen"]}, True),
        ({"trust_view": ["other"]}, False),
        (None, False),
    ):
        ledger = Ledger.open("memory:")
        open_scope(ledger, "world", filter=BasicFilter(9, delta=0), note=note, actor="keeper")
        if trusted:
            assert isinstance(asked(view, ledger).value, int)
        else:
            with pytest.raises(UnsupportedError, match="trust_view"):
                asked(view, ledger)
            with pytest.raises(UnsupportedError, match="trust_view"):
                release.Session(view, ledger=ledger, scope="world", actor="ana").quote(
                    release.Count(spend=SPEND)
                )


def test_computed_and_temporary_tables_of_duckdb_are_not_plain() -> None:
    connection, execute, _ = of_duckdb(ROWS)
    execute("CREATE TABLE drawn (person VARCHAR, other DOUBLE GENERATED ALWAYS AS (random()))")
    execute("CREATE TEMP TABLE made AS SELECT person, row_number() OVER () AS n FROM people")
    for name in ("drawn", "made"):
        with pytest.raises(UnsupportedError):
            asked(
                release.table(connection, name=name, unit="person", max_rows_per_unit=1),
                world.ledger(),
            )


def test_row_security_is_not_plain(postgres_url: str) -> None:
    source = tables.on_postgres(postgres_url, ROWS, "guarded")
    source.execute("ALTER TABLE guarded ENABLE ROW LEVEL SECURITY")
    with pytest.raises(UnsupportedError):
        guarded = release.table(source, name="guarded", unit="person", max_rows_per_unit=1)
        asked(guarded, world.ledger())
    source.close()


def test_frames_are_plain() -> None:
    for source in (world.frame().to_pandas(), world.frame()):
        made = release.table(source, unit="person", max_rows_per_unit=3)
        assert isinstance(asked(made, world.ledger()).value, int)


def test_what_is_changed_after_opening_is_found_at_every_question() -> None:
    connection, execute, _ = of_duckdb(ROWS)
    made = release.table(connection, name="people", unit="person", max_rows_per_unit=1)
    ledger = world.ledger()
    asked(made, ledger)
    before = len(list(ledger.entries("world")))
    execute("SET default_collation = 'nocase'")
    with pytest.raises(DomainError, match="RESET default_collation"):
        asked(made, ledger)
    execute("RESET default_collation")
    asked(made, ledger)
    execute("ALTER TABLE people RENAME TO others")
    execute("CREATE VIEW people AS SELECT * FROM others")
    with pytest.raises(UnsupportedError):
        asked(made, ledger)
    assert len(list(ledger.entries("world"))) == before + 2


def test_a_collation_set_between_charge_and_statement_gives_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connection, execute, _ = of_duckdb(ROWS)
    made = release.table(connection, name="people", unit="person", max_rows_per_unit=1)
    redeem = Ledger.redeem

    def meanwhile(self: Ledger, receipt: Any, **said: Any) -> None:
        redeem(self, receipt, **said)
        execute("SET default_collation = 'nocase'")

    monkeypatch.setattr(Ledger, "redeem", meanwhile)
    with pytest.raises(EngineError):
        asked(made, world.ledger())


def test_texts_that_are_no_utf8_are_nobody(spark: Any, tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    # One byte each: 256 different texts, of which 128 are none.
    offsets = pa.array(range(1257), pa.int32()).buffers()[1]
    letters = pa.py_buffer(bytes(range(256)) + b"a" * 1000)
    text = pa.Array.from_buffers(
        pa.string(), 1256, [None, pa.py_buffer(offsets.to_pybytes()), letters]
    )
    frame = pa.table(
        {"person": pa.array([f"p{n}" for n in range(1256)]), "key": text, "unit": text}
    )
    pq.write_table(frame, tmp_path / "bytes.parquet")
    spark.read.parquet(str(tmp_path / "bytes.parquet")).createOrReplaceTempView("bytes")
    sources = [spark, frame]
    private = release.Units(by="key", spend={"epsilon": 1, "delta": 1e-6})
    found = []
    for source in sources:
        by_person = release.table(source, name="bytes", unit="person", max_rows_per_unit=1)
        by_text = release.table(source, name="bytes", unit="unit", max_rows_per_unit=1)
        found.append(
            [_integers(by_person, private), _integers(by_text, release.Units(spend=SPEND))]
        )
    assert found[0] == found[1]
    assert len(found[0][0]) == 128
    assert found[0][0][("a",)] == {0: (1001,)}
    assert found[0][1] == {(): {0: (128,)}}


def _integers(table: release.Table, question: release.Question) -> Any:
    from dpcompose.release.aggregate import exact

    return exact(table, question.design(table).aggregation)
