"""`release.open`: a session for one person with one table, its budget beside the file, and a clear
error for each bad input.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcompose.release as release
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, OverdrawnError
from dpcompose.ledger import Ledger
from dpcompose.release import Catalog

COLUMNS: dict[str, Any] = {"minutes": (float, 0, 120), "clinic": (str, "north", "south")}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "visits.csv"
    made.write_text("patient,minutes,clinic\nann,3,north\nbob,5,south\nbob,7,\n")
    return made


def closed(session: release.Session) -> release.Session:
    assert session.ledger is not None
    session.ledger.close()
    return session


def test_what_was_spent_stays_spent(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    session = release.open(path, person="patient", budget=1, columns=COLUMNS)
    said = capsys.readouterr().err
    assert (
        said.startswith("visits: epsilon 1 of 1 at delta 1e-06 is left")
        and "visits.csv.ledger" in said
    )
    session.count(spend={"epsilon": 0.75})
    closed(session)
    path.write_text("patient,minutes,clinic\neve,9,north\n")  # the same people, the same budget
    again = release.open(path)
    assert again.table.ranges == {"minutes": ("0", "120"), "clinic": ("north", "south")}
    assert again.table.name == "visits" and again.table.column("minutes").kind == "float"
    with pytest.raises(OverdrawnError):
        again.count(spend={"epsilon": 0.5})
    closed(again)
    others: tuple[dict[str, Any], ...] = (
        {"budget": 2}, {"person": "clinic"}, {"columns": {}}, {"max_rows_per_person": 3},
    )  # fmt: skip
    for other in others:
        with pytest.raises(DomainError, match="opened before"):
            release.open(path, **other)
    closed(release.open(path, person="patient", budget=1, columns=COLUMNS))


def test_a_percentage_is_one_of_the_whole_budget(path: Path) -> None:
    session = release.open(path, person="patient", budget=2)
    for _ in range(2):
        (answer,) = session.batch([release.Count()], spend="5%")
        assert 0.0999 < float(answer.spent["epsilon"].fraction) <= 0.1
        assert not answer.spent["delta"].fraction
    (private,) = session.batch([release.Count(by="clinic")], spend="5%")
    assert 0 < float(private.spent["delta"].fraction) <= 1e-7 * 0.05
    # Every method of a question takes one, as does each question of a batch.
    assert session.count(spend="5%").spent == answer.spent
    assert session.count(by="clinic", spend="5%").spent == private.spent
    assert (
        session.quote(release.Count(spend="5%")).price
        == session.quote(release.Count(), spend={"epsilon": 0.1}).price
    )
    for wrong in ("5", "0%", "101%", "-1%", "nan%", "%", "five %"):
        with pytest.raises(DomainError, match="spend"):
            session.batch([release.Count()], spend=wrong)
        with pytest.raises(DomainError, match="spend"):
            session.count(spend=wrong)
    closed(session)


def test_parquet_and_frames_are_opened_alike(tmp_path: Path) -> None:
    frame = pa.table({"who": [1, 2, 2], "minutes": [1.5, 2, 3], "age": [3, 4, 5]})
    columns = {"minutes": (float, 0, 9), "age": (float, 0, 120)}
    pq.write_table(frame, tmp_path / "stays.parquet")
    one = release.open(tmp_path / "stays.parquet", person="who", budget=1, columns=columns)
    two = release.open(
        frame, person="who", budget=1, columns=columns, name="stays", ledger=tmp_path / "kept"
    )
    for session in (one, two):
        assert session.table.name == "stays" and session.table.bounds.rows == 10
        assert session.sql("SELECT SUM(minutes) FROM stays", spend="1%")
        assert session.table.column("age").kind == "integer"
        closed(session)
    again = release.open(frame, name="stays", ledger=tmp_path / "kept")
    assert again.table.ranges["age"] == ("0", "120")
    with pytest.raises(OverdrawnError):
        again.count(spend={"epsilon": 1})
    closed(again)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"source": "nowhere.csv"}, "a file that exists"),
    ({"source": "visits.txt"}, "ends in .parquet or .csv"),
    ({"source": "torn.parquet"}, "can be read"),
    ({"person": "nobody"}, "one of patient, minutes, clinic"),
    ({"person": None}, "the column that names the person"),
    ({"budget": None}, "budget is missing"),
    ({"budget": -1}, "epsilon = -1"),
    ({"budget": float("nan")}, "epsilon = nan"),
    ({"columns": {"nothing": float}}, "one of patient, minutes, clinic"),
    ({"columns": {"minutes": "imaginary"}}, "float, int, str, bool or date"),
    ({"columns": {"minutes": (float, 9)}}, "a lower and an upper end"),
    ({"columns": {"minutes": (float, 9, 1)}}, "below"),
    ({"columns": {"clinic": (str, 3)}}, "a text"),
    ({"columns": 3}, "a mapping"),
    ({"max_rows_per_person": 0}, "1"),
    ({"source": pa.table({"patient": [1]})}, "A frame has no path"),
    ({"source": 3, "name": "three", "ledger": "three.ledger"}, "Spark frame"),
]


@pytest.mark.parametrize(
    ("wrong", "words"), WRONG, ids=[str(sorted(each[0].items()))[:50] for each in WRONG]
)
def test_bad_input_is_one_sentence_and_leaves_no_ledger(
    path: Path, monkeypatch: pytest.MonkeyPatch, wrong: dict[str, Any], words: str
) -> None:
    monkeypatch.chdir(path.parent)
    (path.parent / "torn.parquet").write_bytes(b"PAR1")
    (path.parent / "visits.txt").write_text("x")
    before = sorted(each.name for each in path.parent.iterdir())
    options: dict[str, Any] = {"source": "visits.csv", "person": "patient", "budget": 1} | wrong
    with pytest.raises(DomainError, match=words) as refusal:
        release.open(**options)
    assert "\n" not in str(refusal.value)
    assert sorted(each.name for each in path.parent.iterdir()) == before


def test_a_type_that_is_not_the_file_s_is_refused(tmp_path: Path) -> None:
    frame = pa.table({"who": [1], "minutes": [1.5]})
    for stated in (int, "date", (str, "a")):
        with pytest.raises(DomainError, match="float, as the table has it"):
            release.open(
                frame,
                person="who",
                budget=1,
                name="x",
                ledger=tmp_path / "x",
                columns={"minutes": stated},
            )


def test_a_ledger_of_an_earlier_version_is_gone_on_with(path: Path) -> None:
    ledger = Ledger.open(f"{path}.ledger")
    definition = {"source": str(path), "unit": ["patient"], "max_rows_per_unit": 4}
    Catalog.define(
        ledger, "file", {"file": definition}, filter=BasicFilter(1, delta=0), actor="owner"
    )
    ledger.close()
    session = release.open(path, person="patient")
    assert session.table.bounds.rows == 4
    session.batch([release.Count()], spend="50%")
    with pytest.raises(OverdrawnError):
        session.batch([release.Count()], spend="60%")
    closed(session)
    with pytest.raises(DomainError, match="Leave it out"):
        release.open(path, budget=1)


def test_what_is_left_is_said_as_people_write_it(
    path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    closed(release.open(path, person="patient", budget=20))
    assert "epsilon 20 of 20 at delta 1e-06 is left" in capsys.readouterr().err


def test_arguments_of_functions_over_answers_keep_their_brackets(path: Path) -> None:
    session = release.open(path, person="patient", budget=90)
    answer = session.sql(
        "SELECT SAFE_DIVIDE(COUNT(*) + 1, 2) AS half, COUNT(*) AS n FROM visits", spend="90%"
    )
    assert not isinstance(answer, release.Explanation)
    row = answer.to_pandas().iloc[0]
    assert row["half"] == (row["n"] + 1) / 2
    closed(session)
