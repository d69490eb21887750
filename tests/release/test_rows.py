"""No row raises an error or changes how another row is read, even where an engine holds values that
Python cannot.
"""

from __future__ import annotations

import stat
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpcompose.release as release
from dpcompose.errors import DomainError, KeyReusedError, ReleaseError, SpentError
from dpcompose.release.aggregate import exact
from dpcompose.release.aggregation import Aggregation, Edges
from dpcompose.release.noise import LARGEST_SCORE, Selection
from tests.release import world

SPEND = {"epsilon": 1}
PRIVATE = {"epsilon": 1, "delta": 1e-6}


def integers(table: release.Table, question: release.Question) -> Any:
    return exact(table, question.design(table).aggregation)


def _of(column: pa.Array) -> release.Table:
    frame = pa.table({"person": list(range(len(column))), "x": column})
    return release.table(frame, unit="person", max_rows_per_unit=1)


def test_dates_that_no_answer_can_hold_are_left_out() -> None:
    days = pa.array([0, 0, 3_000_000, -1_000_000, None], pa.int32()).cast(pa.date32())
    assert integers(_of(days), release.Count(by="x", spend=PRIVATE)) == {
        (date(1970, 1, 1),): {0: (2, 2)}
    }
    assert integers(_of(days), release.Units(by="x", spend=PRIVATE)) == {
        (date(1970, 1, 1),): {0: (2,)}
    }
    ends = pa.array([date.min, date.max])
    assert set(integers(_of(ends), release.Units(by="x", spend=PRIVATE))) == {
        (date.min,),
        (date.max,),
    }


def test_dates_without_an_end_on_postgresql(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        connection.execute("CREATE TABLE days (person int, x date)")
        for number, day in enumerate(
            ["infinity", "-infinity", "0044-03-15 BC", "20000-01-01", "1999-09-09"]
        ):
            connection.execute("INSERT INTO days VALUES (%s, %s::date)", (number, day))
    made = release.table(postgres_url, name="days", unit="person", max_rows_per_unit=1)
    assert integers(made, release.Units(by="x", spend=PRIVATE)) == {(date(1999, 9, 9),): {0: (1,)}}
    assert integers(made, release.Units(by="x", keys=[date(1999, 9, 9), None], spend=SPEND)) == {
        (date(1999, 9, 9),): {0: (1,)}
    }
    made.close()


def test_unsigned_integers_beyond_a_key() -> None:
    made = _of(pa.array([5, 5, 2**63 - 1, 2**63, 2**64 - 1, None], pa.uint64()))
    assert set(integers(made, release.Count(by="x", spend=PRIVATE))) == {(5,), (2**63 - 1,)}
    assert integers(made, release.Count(by="x", keys=[5, -1], spend=SPEND)) == {(5,): {0: (2,)}}
    assert integers(made, release.Sum("x", lower=-7, upper=100, spend=SPEND)) == {(): {0: (5, 310)}}
    assert integers(made, release.Histogram("x", edges=[0, 6, 1e29], spend=SPEND)) == {
        (): {0: (2,), 1: (3,)}
    }


def test_a_declared_collation_makes_no_texts_equal(tmp_path: Path) -> None:
    import duckdb

    with duckdb.connect(str(tmp_path / "t.duckdb")) as connection:
        connection.execute(
            "CREATE TABLE t (person VARCHAR COLLATE nocase, x VARCHAR COLLATE nocase)"
        )
        connection.execute("INSERT INTO t VALUES ('p', 'A'), ('P', 'a'), ('q', 'a'), ('q', 'é')")
    made = release.table(
        f"duckdb://{tmp_path / 't.duckdb'}", name="t", unit="person", max_rows_per_unit=2
    )
    assert integers(made, release.Count(by="x", spend=PRIVATE)) == {
        ("A",): {0: (1, 1)},
        ("a",): {0: (2, 2)},
        ("é",): {0: (1, 1)},
    }
    public = {("A",): {0: (1,)}, ("a",): {0: (2,)}}
    assert integers(made, release.Count(by="x", keys=["A", "a"], spend=SPEND)) == public
    assert integers(made, release.Count(by="x", keys=["A", "a", None], spend=SPEND)) == public
    assert integers(made, release.Units(spend=SPEND)) == {(): {0: (3,)}}
    made.close()


def test_a_connection_with_a_collation_is_refused() -> None:
    import duckdb

    connection = duckdb.connect()
    connection.execute("CREATE TABLE t (person INT, x VARCHAR)")
    connection.execute("SET default_collation = 'nocase'")
    with pytest.raises(DomainError, match="RESET default_collation"):
        release.table(connection, name="t", unit="person", max_rows_per_unit=1)
    connection.execute("RESET default_collation")
    release.table(connection, name="t", unit="person", max_rows_per_unit=1)


def test_a_collation_under_which_texts_are_equal_on_postgresql(postgres_url: str) -> None:
    import psycopg

    with psycopg.connect(postgres_url, autocommit=True) as connection:
        try:
            connection.execute(
                "CREATE COLLATION loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
        except psycopg.errors.FeatureNotSupported:
            pytest.skip("this PostgreSQL has no ICU")
        connection.execute(
            "CREATE TABLE loose (person text COLLATE loose, x text COLLATE loose, y char(3))"
        )
        connection.execute(
            "INSERT INTO loose VALUES ('p', 'A', 'u'), ('P', 'a', 'u'), ('q', 'a', 'v')"
        )
    made = release.table(postgres_url, name="loose", unit="person", max_rows_per_unit=2)
    counts = integers(made, release.Count(by="x", spend=PRIVATE))
    assert counts == {("A",): {0: (1, 1)}, ("a",): {0: (2, 2)}}
    assert integers(made, release.Count(by="x", keys=["a", "A"], spend=SPEND)) == {
        ("A",): {0: (1,)},
        ("a",): {0: (2,)},
    }
    assert integers(made, release.Units(by="y", keys=["u", "v"], spend=SPEND)) == {
        ("u",): {0: (2,)},
        ("v",): {0: (1,)},
    }
    made.close()


def test_a_long_cell_of_a_csv_file_is_no_row_of_others(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(f'person,city\nann,"{"x" * 200_000}\nbob,rome\nbob,rome\n"\nann,oslo\n')
    count = release.Count(by="city", keys=["rome", "oslo"], spend=SPEND)
    made = release.table(path, unit="person", max_rows_per_unit=5, line_breaks=True)
    assert integers(made, count) == {("oslo",): {0: (1,)}}
    made = release.table(path, unit="person", max_rows_per_unit=5)
    assert integers(made, count) == {("rome",): {0: (2,)}, ("oslo",): {0: (1,)}}


@pytest.mark.slow
def test_an_unclosed_quote_of_a_csv_file_swallows_nobody(tmp_path: Path) -> None:
    lines = [f"p{n},rome\n" for n in range(1000)]
    count = release.Count(by="city", keys=["rome"], spend=SPEND)
    for bad in ('ann,"rome\n', '"ann,rome\n', 'ann,"ro"me\n', "ann,\xff\n", "ann\n", '"\n'):
        path = tmp_path / "t.csv"
        for at in (0, 500, 1000):
            path.write_bytes(
                ("person,city\n" + "".join([*lines[:at], bad, *lines[at:]])).encode("latin-1")
            )
            made = release.table(path, unit="person", max_rows_per_unit=5)
            assert integers(made, count) == {("rome",): {0: (1000,)}}


def test_types_that_duckdb_does_not_hold() -> None:
    with pytest.raises(DomainError, match="Cast"):
        _of(pa.array([1.0, 2.0]).cast(pa.float16()))


def test_more_cells_than_fit_are_refused_before_the_charge() -> None:
    bins = ("x", Edges.stated(range(1002)))
    keys = tuple((number,) for number in range(10_000))
    with pytest.raises(DomainError, match="keys times bins"):
        Aggregation(("k",), keys, bins=bins)
    Aggregation(("k",), keys[:9_000], bins=bins)


def test_scores_of_any_size_are_taken() -> None:
    selection = Selection(1.0, 1)
    assert selection.draw([2**70, -(2**70), 0]) == 1
    assert selection.draw([LARGEST_SCORE, 0]) == 1


def test_an_answer_that_cannot_be_stored_does_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = world.ledger()
    asked = world.session(ledger, answers=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(
            "os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left on device"))
        )
        # The ledger in memory needs no disk.
        with pytest.raises(
            ReleaseError, match=r"No space left on device.*the charge stands, and no answer left"
        ):
            asked.count(spend=SPEND, key="q")
    with pytest.raises(SpentError):
        asked.count(spend=SPEND, key="q")


def test_a_stored_answer_that_was_damaged(tmp_path: Path) -> None:
    ledger = world.ledger()
    asked = world.session(ledger, answers=tmp_path)
    first = asked.count(spend=SPEND, key="q")
    left = ledger.available("world")
    (file,) = tmp_path.iterdir()
    whole = file.read_text()
    for damaged in ("", whole[:-5], "[]", "{}"):
        file.write_text(damaged)
        with pytest.raises(ReleaseError, match="Nothing was charged now"):
            asked.count(spend=SPEND, key="q")
    file.write_text(whole)
    assert asked.count(spend=SPEND, key="q").value == first.value
    assert ledger.available("world") == left
    with pytest.raises(KeyReusedError):
        asked.count(spend={"epsilon": 2}, key="q")


def test_a_directory_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Mode bits do not bind everybody who runs tests.
    tmp_path.chmod(stat.S_IRUSR | stat.S_IXUSR)
    monkeypatch.setattr("os.access", lambda *_: False)
    with pytest.raises(DomainError, match="can be written"):
        world.session(answers=tmp_path)
