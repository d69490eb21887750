"""`dpcompose release`: what it prints, writes, charges and refuses."""

from __future__ import annotations

import json
from contextlib import chdir
from dataclasses import dataclass
from pathlib import Path

import pytest

from dpcompose.adaptive import BasicFilter
from dpcompose.ledger import Ledger

pytest.importorskip("duckdb", reason="the extra `data` is not installed")
pytest.importorskip("opendp", reason="the extra `data` is not installed")

from dpcompose.release import Catalog
from tests.cli.runner import invoke
from tests.release import world

COUNT = ["--sql", "SELECT COUNT(*) FROM t"]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    import pyarrow.parquet as pq

    pq.write_table(world.frame(), tmp_path / "t.parquet")
    world.ledger(tmp_path / "ledger.db", epsilon=3.0).close()
    return tmp_path


@dataclass(frozen=True)
class Run:
    returncode: int
    stdout: str
    stderr: str


def run(home: Path, *arguments: str) -> Run:
    always = [
        "release",
        "t.parquet",
        "--unit",
        "person",
        "--max-rows",
        "2",
        "--ledger",
        "ledger.db",
    ]
    always += ["--scope", "world", "--actor", "ana", "--answers", "answers"]
    with chdir(home):
        found = invoke([*always, *arguments])
    assert found.exception is None or isinstance(found.exception, SystemExit), found.exception
    assert isinstance(found.exit_code, int)
    return Run(found.exit_code, found.stdout, found.stderr)


def test_one_question_in_every_form(home: Path) -> None:
    text = "SELECT city, COUNT(*) FROM t WHERE city IN ('rome', 'oslo') GROUP BY city"
    asked = ["--sql", text, "--spend", "epsilon=0.5", "--key", "k"]
    first = run(home, *asked, "--json", "--out", "a.csv")
    document = json.loads(first.stdout)
    assert first.returncode == 0
    assert document["answers"][0]["columns"]["city"] == ["rome", "oslo"]
    assert document["answers"][0]["error"] == {"confidence": 0.95, "at most": 12.0}
    assert (home / "a.csv").read_text().splitlines()[0] == '"city","count"'
    again = json.loads(run(home, *asked, "--json").stdout)
    assert again["replayed"]
    assert again["answers"] == document["answers"]
    assert again["left"] == document["left"]
    page = run(home, *asked).stdout
    assert "± 12" in page
    assert "stored" in page
    assert float(document["left"]["epsilon"]) == pytest.approx(2.5)


def test_refusals_and_bad_input(home: Path) -> None:
    refused = run(home, *COUNT, "--spend", "epsilon=4")
    assert refused.returncode == 1
    assert "left" in refused.stderr
    for arguments in (
        [*COUNT],
        ["--spend", "epsilon=1"],
        ["--sql", "SELECT SUM(amount) FROM t", "--spend", "epsilon=1"],
        ["--sql", "SELECT nothing, COUNT(*) FROM t GROUP BY nothing", "--spend", "epsilon=1"],
        [*COUNT, "--spend", "epsilon"],
        [*COUNT, "--spend", "epsilon=1,epsilon=1"],
        [*COUNT, "--spend", "epsilon=1", "--out", "a.xls"],
        ["--questions", "nowhere.toml", "--spend", "epsilon=1"],
    ):
        found = run(home, *arguments)
        assert (found.returncode, found.stdout) == (2, ""), arguments
        assert "Traceback" not in found.stderr
        assert found.stderr.count("dpcompose:") >= 1
    document = json.loads(run(home, *COUNT, "--spend", "epsilon=1", "--quote", "--json").stdout)
    assert float(document["left"]["epsilon"]) == 3
    assert document["quotes"][0]["error"]["at most"] == 6.0


def test_questions_of_a_file(home: Path) -> None:
    text = '[[question]]\nkind = "units"\n[[question]]\nkind = "histogram"\ncolumn = "amount"\nedges = [0, 4.5, 9]\n'
    (home / "q.toml").write_text(text)
    found = run(home, "--questions", "q.toml", "--spend", "epsilon=1", "--out", "a.json", "--json")
    document = json.loads(found.stdout)
    assert [answer["question"] for answer in document["answers"]] == ["units", "histogram"]
    assert json.loads((home / "a.json").read_text()) == document
    assert float(document["left"]["epsilon"]) == pytest.approx(2)


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            [*COUNT, "--spend", "epsilon=0.1", "--confidence", "2"],
            "--confidence = 2.0: expected a number in (0, 1)",
        ),
        ([*COUNT], "--spend is missing: expected what it may cost, such as epsilon=0.1"),
        (
            ["--questions", "text.toml", "--spend", "epsilon=0.1"],
            "--schema city=float64",
        ),
        (
            ["--sql", "SELECT city, COUNT(*) FROM t GROUP BY city", "--spend", "epsilon=0.1"],
            "spend = {'epsilon': 0.1}: expected a delta > 0",
        ),
        (
            ["--questions", "q.toml", *COUNT, "--spend", "epsilon=0.1"],
            "a SELECT, or --questions with a file, one of them",
        ),
        (
            ["--questions", "q.toml", "--spend", "epsilon=0.1"],
            "question[2]: column = 'size': expected one of person",
        ),
        (["--questions", "q.toml"], "--spend is missing: expected what it may cost"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_what_is_refused_before_the_charge_says_that_there_was_none(
    home: Path, asked: list[str], said: str
) -> None:
    (home / "q.toml").write_text(
        '[[question]]\nkind = "count"\n[[question]]\nkind = "mean"\ncolumn = "size"\nlower = 0\nupper = 1\n'
    )
    (home / "text.toml").write_text(
        '[[question]]\nkind = "sum"\ncolumn = "city"\nlower = 0\nupper = 9\n'
    )
    found = run(home, *asked)
    assert found.returncode == 2
    assert said in found.stderr
    assert found.stderr.endswith("Nothing was charged\n")
    ledger = Ledger.open(home / "ledger.db")
    assert [entry for entry in ledger.entries("world") if entry.kind == "granted"] == []
    ledger.close()


def test_several_columns_and_sql(home: Path) -> None:
    spend = ["--spend", "epsilon=0.1", "--json"]
    where = "WHERE city IN ('rome', 'oslo') AND age IN (1, 2)"
    several = f"SELECT city, age, COUNT(*) FROM t {where} GROUP BY city, age"
    (answer,) = json.loads(run(home, "--sql", several, *spend).stdout)["answers"]
    keys = list(zip(answer["columns"]["city"], answer["columns"]["age"], strict=True))
    assert keys == [("rome", 1), ("rome", 2), ("oslo", 1), ("oslo", 2)]
    text = (
        "SELECT city, COUNT(*), COUNT(DISTINCT person) FROM t WHERE city IN ('oslo') GROUP BY city"
    )
    asked = json.loads(run(home, "--sql", text, *spend).stdout)
    assert [each["columns"]["city"] for each in asked["answers"]] == [["oslo"], ["oslo"]]
    assert float(asked["charged"]["epsilon"]) <= 0.1
    left = json.loads(run(home, "--sql", text, "--quote", *spend).stdout)["left"]
    explained = run(home, "--sql", f"EXPLAIN {text}", "--spend", "epsilon=0.1")
    assert "Nothing was charged" in explained.stdout and "Explained" in explained.stdout
    for arguments, said in (
        (["--sql", "SELECT COUNT(*) FROM t -- all"], "sql: a comment"),
        (["--sql", text, "--questions", "q.toml"], "one of them"),
    ):
        found = run(home, *arguments, *spend)
        assert found.returncode in (2, 3) and said in found.stderr
    assert (
        asked["left"]
        == left
        == json.loads(run(home, "--sql", text, "--quote", *spend).stdout)["left"]
    )


def test_a_table_of_the_catalog_is_named_and_joined_with_a_public_one(tmp_path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(world.frame(), tmp_path / "t.parquet")
    pq.write_table(
        pa.table({"city": ["rome", "oslo"], "country": ["it", "no"]}), tmp_path / "c.parquet"
    )
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        definition = {"source": tmp_path / "t.parquet", "unit": "person", "max_rows_per_unit": 2}
        tables = {"people": definition | {"ranges": {"age": (0, 10)}}}
        public = {"cities": tmp_path / "c.parquet"}
        Catalog.define(
            ledger, "world", tables, filter=BasicFilter(3, delta=0), actor="keeper", public=public
        )
    text = "SELECT country, SUM(age) FROM people JOIN cities USING (city) WHERE country IN ('it','no') GROUP BY country"
    always = ["--ledger", "ledger.db", "--scope", "world", "--spend", "epsilon=1"]
    with chdir(tmp_path):
        found = invoke(["release", "people", *always, "--sql", text, "--json"])
        assert json.loads(found.stdout)["answers"][0]["columns"]["country"] == ["it", "no"]
        for wrong in (
            ["other", "--sql", "SELECT COUNT(*) FROM other"],
            ["people", "--unit", "person", "--sql", "SELECT COUNT(*) FROM people"],
            ["people", "--sql", "SELECT SUM(amount) FROM people"],
        ):
            refused = invoke(["release", *wrong, *always])
            assert refused.exit_code == 2 and "Nothing was charged" in refused.stderr, wrong


def test_synthetic_rows_are_written(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world.without_a_model(monkeypatch)
    question = '[[question]]\nkind = "synthetic data"\nby = ["city", "age"]\nkeys = [["rome", "oslo"], [1, 2]]\n'
    (home / "q.toml").write_text(f"{question}rounds = 4\n")
    asked = ["--questions", "q.toml", "--spend", "epsilon=1,delta=1e-6", "--rows", "rows.csv"]
    quote = json.loads(run(home, *asked, "--quote", "--json").stdout)
    assert quote["quotes"][0]["error"]["at most"] is None
    found = run(home, *asked)
    assert (found.returncode, found.stderr.splitlines()[-1]) == (0, "wrote rows.csv")
    assert "synthetic data" in found.stdout
    assert (home / "rows.csv").read_text().splitlines()[0] == '"city","age"'
    refused = run(home, *COUNT, "--spend", "epsilon=1", "--rows", "rows.csv")
    assert refused.returncode == 2
    assert "synthetic data" in refused.stderr
    assert "Nothing was charged" in refused.stderr
