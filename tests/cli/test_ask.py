"""`dpcompose ask`: one shot, standard input and the prompt; what is charged, kept and refused."""

from __future__ import annotations

import builtins
import stat
from collections.abc import Iterator
from contextlib import chdir
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

pytest.importorskip("duckdb", reason="the extra `data` is not installed")
pytest.importorskip("opendp", reason="the extra `data` is not installed")

import dpcompose.release as release
from dpcompose.cli import ask as module
from dpcompose.cli.ask import Counter
from tests.cli.runner import Ended, invoke

OPEN = ("--person", "patient", "--budget", "2", "--column", "minutes=float,0,120")
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    lines = [f"p{n},{n % 90},{'north' if n % 2 else 'south'}" for n in range(400)]
    (tmp_path / "visits.csv").write_text("\n".join(["patient,minutes,clinic", *lines]))
    with chdir(tmp_path):
        yield tmp_path


def asked(*words: str, lines: str = "") -> Ended:
    return invoke(["ask", "visits.csv", *words], stdin=lines.encode())


def spent(path: Path) -> float:
    session = release.open(path)
    assert session.ledger is not None
    found = session.ledger.balance("file").spent["epsilon"].fraction
    session.ledger.close()
    return float(found)


def test_one_command_gives_a_first_answer(home: Path) -> None:
    found = asked(*OPEN, "-c", COUNT)
    assert found.exit_code is None or found.exit_code == 0
    head, _, row = found.stdout.splitlines()
    assert head.split() == ["n"] and "±" in row
    assert "Price: epsilon 0.1, 5.0 %" in found.stderr and "± 300 at 95 %" in found.stderr
    assert 0.0999 < spent(home / "visits.csv") <= 0.1
    again = asked("-c", COUNT, "--spend", "0.25")
    assert "epsilon 0.25" in again.stderr and 0.3499 < spent(home / "visits.csv") <= 0.35


def test_statements_of_standard_input_and_what_is_said_of_them(home: Path) -> None:
    text = "SELECT COUNT(*)\n  FROM visits;\n.history\n.budget\n.tables\n.error 100\n"
    found = asked(*OPEN, lines=f"{text}{COUNT};\n.save answer.csv\n.help\n.quit\n{COUNT};\n")
    assert found.exit_code == 0
    assert "statement" in found.stdout
    assert "% spent; epsilon 1.9" in found.stdout and "minutes" in found.stdout
    assert "n ± 100" in found.stderr or "count ± 100" in found.stderr
    assert (home / "answer.csv").read_text().splitlines()[0] == '"n"'
    assert "Ctrl-D" in found.stdout
    session = release.open(home / "visits.csv")
    assert [said for _, said, _ in session.history()] == [
        "SELECT COUNT(*)\n  FROM visits;",
        f"{COUNT};",
    ]
    assert session.ledger is not None
    session.ledger.close()


@pytest.mark.parametrize("moment", ["before", "within"])
def test_ctrl_c_before_the_charge_costs_nothing(home: Path, moment: str, capsys: Any) -> None:
    session = release.open("visits.csv", person="patient", budget=2)
    lines = iter([COUNT + ";", KeyboardInterrupt(), ".budget", EOFError()])

    def typed(prompt: str = "") -> str:
        said: Any = (
            next(lines) if moment == "before" or "Enter" not in prompt else (next(lines), "")[1]
        )
        if isinstance(said, BaseException):
            raise said
        return str(said)

    def stopped(*_: Any, **__: Any) -> Any:
        raise KeyboardInterrupt

    within = patch.object(release.Session, "batch", stopped)
    with patch.object(builtins, "input", typed):
        if moment == "within":
            with within:
                Counter(session).run(typed=True)
        else:
            Counter(session).run(typed=True)
    printed = capsys.readouterr()
    assert "Nothing was charged" in printed.err and "0 % spent; epsilon 2 of 2" in printed.out
    assert session.ledger is not None
    session.ledger.close()


def test_an_error_at_the_prompt_is_a_sentence_and_the_next_line_is_read(
    home: Path, capsys: Any
) -> None:
    session = release.open("visits.csv", person="patient", budget=2)
    lines = iter(
        [
            "SELECT nothing FROM visits;",
            ".error much",
            ".what",
            ".save x.csv",
            "SELECT",
            KeyboardInterrupt(),
            ".budget",
        ]
    )

    def typed(prompt: str = "") -> str:
        said: Any = next(lines, EOFError())
        if isinstance(said, BaseException):
            raise said
        return str(said)

    with patch.object(builtins, "input", typed):
        Counter(session).run(typed=True)
    printed = capsys.readouterr()
    assert "0 % spent; epsilon 2 of 2" in printed.out
    assert (
        len([line for line in printed.err.splitlines() if "expected" in line or "sql" in line]) == 4
    )
    assert session.ledger is not None
    session.ledger.close()


def test_what_is_not_said_is_asked_for_at_a_prompt_alone(home: Path) -> None:
    refused = asked("-c", COUNT)
    assert (
        refused.exit_code == 2
        and "dpcompose ask visits.csv --person COLUMN --budget 2" in refused.stderr
    )
    answers = iter(["patient", "2", "minutes=float,0,120 clinic=str,north,south"])
    with (
        patch.object(builtins, "input", lambda _="": next(answers, ".quit")),
        patch.object(module.sys.stdin.__class__, "isatty", lambda _: True, create=True),
        patch.object(module, "_remember", lambda *_: None),
    ):
        module.ask.function(file=Path("visits.csv"))
    session = release.open("visits.csv")
    assert session.table.ranges == {"minutes": ("0", "120"), "clinic": ("north", "south")}
    assert session.ledger is not None
    session.ledger.close()


BAD = [
    (("--person", "nobody", "--budget", "2", "-c", COUNT), "one of patient, minutes, clinic"),
    (("--person", "patient", "--budget", "much", "-c", COUNT), "--budget"),
    ((*OPEN, "--column", "minutes=strange", "-c", COUNT), "each name once"),
    (
        ("--person", "patient", "--budget", "2", "--column", "minutes=strange", "-c", COUNT),
        "float, int, str",
    ),
    ((*OPEN, "--spend", "500%", "-c", COUNT), "spend"),
    ((*OPEN, "--spend", "x", "-c", COUNT), "spend"),
    ((*OPEN, "--error", "x", "-c", COUNT), "--error"),
    ((*OPEN, "--error", "1", "--spend", "1%", "-c", COUNT), "spend"),
    ((*OPEN, "-c", "SELECT * FROM visits"), "sql"),
    ((*OPEN, "-c", "SELECT COUNT(*) FROM elsewhere"), "visits"),
]


@pytest.mark.parametrize(("words", "said"), BAD, ids=[" ".join(each[0])[-40:] for each in BAD])
def test_bad_input_is_one_sentence_and_costs_nothing(
    home: Path, words: tuple[str, ...], said: str
) -> None:
    found = asked(*words)
    lines = [line for line in found.stderr.splitlines() if line.startswith("dpcompose:")]
    assert found.exit_code in (2, 3) and len(lines) == 1 and said in lines[0] and not found.stdout
    if (home / "visits.csv.ledger").exists():
        assert spent(home / "visits.csv") == 0


def test_a_budget_that_is_used_up_and_a_file_that_is_no_table(home: Path) -> None:
    assert asked(*OPEN, "--spend", "90%", "-c", COUNT).exit_code == 0
    over = asked("--spend", "90%", "-c", COUNT)
    assert over.exit_code == 1 and "left" in over.stderr and not over.stdout
    nowhere = invoke(["ask", "nowhere.csv", *OPEN, "-c", COUNT])
    assert nowhere.exit_code == 2 and "a file that exists" in nowhere.stderr


def test_the_history_of_the_prompt_is_its_owner_s_alone(home: Path) -> None:
    pytest.importorskip("readline")
    session = release.open("visits.csv", person="patient", budget=2)
    with patch("atexit.register") as register:
        module._remember("typed", session)
    assert register.called
    assert stat.S_IMODE((home / "typed").stat().st_mode) == 0o600
    assert session.ledger is not None
    session.ledger.close()
