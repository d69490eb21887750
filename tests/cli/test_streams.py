"""How a command meets the world: its ledger, its streams, its files and narrow terminals. Real processes."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from dpcompose.cli.output import progress
from tests.cli.runner import invoke

pytestmark = pytest.mark.slow

PLAN = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'
COMMAND = [sys.executable, "-c", "from dpcompose.cli import main; main()"]


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "plan.toml").write_text(PLAN)
    return tmp_path


def run(*words: str, **how: Any) -> subprocess.CompletedProcess[str]:
    how = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE} | how
    return subprocess.run([*COMMAND, *words], text=True, check=False, timeout=60, **how)


def shell(words: str) -> subprocess.CompletedProcess[str]:
    line = f"""{sys.executable} -c 'from dpcompose.cli import main; main()' {words}"""
    return subprocess.run(
        ["bash", "-c", line], text=True, check=False, timeout=60, capture_output=True
    )


def test_every_ledger_command_takes_the_variable(home: Path) -> None:
    lines = [
        "init", "scope world --filter concentrated --epsilon 1 --delta 1e-6", "scope world/a",
        "charge world/a plan.toml --key one", "show", "show world", "log world/a", "exposure world/a --delta 1e-6",
        "verify --keep anchor.json", "verify --anchor anchor.json", "close world/a",
    ]  # fmt: skip
    for line in lines:
        found = invoke(["ledger", *line.split()], env={"DPCOMPOSE_LEDGER": "l.db", "USER": "Ada"})
        assert found.exit_code == 0, (line, found.output)
    for line in lines:
        found = invoke(["ledger", *line.split()], env={"DPCOMPOSE_LEDGER": None, "USER": "Ada"})
        assert (found.exit_code, "--ledger" in found.output) == (2, True), (line, found.output)


def test_the_option_goes_before_the_variable(home: Path) -> None:
    invoke(["ledger", "init", "--ledger", "l.db"], env={"DPCOMPOSE_LEDGER": "other.db"})
    assert (home / "l.db").exists() and not (home / "other.db").exists()


@pytest.mark.parametrize("columns", [20, 50, 79, 80, 85])
@pytest.mark.parametrize(
    "words", ["account plan.toml --explain", "theorem 3.20 --epsilon 0.1 --times 9 --slack 1e-6"]
)
def test_no_number_is_cut_whatever_the_width(home: Path, words: str, columns: int) -> None:
    number = re.compile(r"\d+(?:\.\d+)?(?:e[-+]?\d+)?")
    wide, narrow = (
        invoke(words.split(), env={"COLUMNS": str(width)}).stdout for width in (400, columns)
    )
    assert set(number.findall(wide)) == set(number.findall(narrow))


def test_a_closed_standard_output_is_said_before_anything_is_done(home: Path) -> None:
    done = shell("ledger init --ledger l.db >&-")
    assert (done.returncode, "closed" in done.stderr, (home / "l.db").exists()) == (3, True, False)


@pytest.mark.parametrize(
    "words", ["account plan.toml", "account plan.toml --json", "theorem", "--version"]
)
def test_a_full_standard_output_is_no_defect(home: Path, words: str) -> None:
    done = shell(f"{words} >/dev/full")
    *progress, said = done.stderr.splitlines()
    assert (
        done.returncode == 3
        and "standard output cannot be written (No space left on device)" in said
    ), done.stderr
    assert all(line.startswith("dpcompose: ") and "written" not in line for line in progress), (
        done.stderr
    )


def test_a_reader_that_went_away_is_met_with_silence(home: Path) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    done = run("account", "plan.toml", stdout=writing)
    os.close(writing)
    assert (done.returncode, done.stderr) == (3, "")


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_is_for_terminals_and_logs_have_none(
    monkeypatch: pytest.MonkeyPatch, terminal: bool
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: terminal)
    monkeypatch.setattr("sys.stderr", stream)
    monkeypatch.setattr("dpcompose.cli.output.BRIEF", 0.02)
    with progress("reading") as steps:
        time.sleep(0.2)
        steps("pricing", 1, 3)
    assert ("reading" in stream.getvalue() or "pricing" in stream.getvalue()) is terminal


def test_a_terminal_without_utf_8_shows_every_character(home: Path) -> None:
    name = "\u05e9\u05dc\u05d5\u05dd \u00e9\u0302 \u9690\u79c1"
    (home / "named.toml").write_text(PLAN + f'name = "{name}"\n', encoding="utf-8")
    for encoding, shown in (("ascii", ascii(name)[1:-1]), ("utf-8", name)):
        done = run(
            "account",
            "named.toml",
            env={**os.environ, "PYTHONIOENCODING": encoding},
            encoding="utf-8",
        )
        assert done.returncode == 0 and shown in done.stdout, done
        assert ("\u2500" in done.stdout, "-----" in done.stdout) == (
            encoding == "utf-8",
            encoding == "ascii",
        )


def test_a_closed_standard_error_does_not_mix_with_what_is_printed(home: Path) -> None:
    assert json.loads(shell("account plan.toml --json 2>&-").stdout)["command"] == "account"
    missing = shell("account missing.toml --json 2>&-")
    assert missing.returncode == 2 and json.loads(missing.stdout)["error"]["status"] == 2


@pytest.mark.parametrize("option", ["--html", "--plot"])
def test_a_name_that_no_file_can_have_is_bad_input(home: Path, option: str) -> None:
    end = {"--html": ".html", "--plot": ".png"}[option]
    os.mkfifo(home / f"pipe{end}")
    for name in (
        f"{'x' * 300}{end}",
        f"nowhere/x{end}",
        f"pipe{end}",
        f"plan.toml/x{end}",
        f"a\ud800{end}",
    ):
        found = invoke(["account", "plan.toml", option, name])
        assert found.exit_code == 2 and not found.stdout, (name, found.output, found.exception)
        assert all(line.isprintable() for line in found.stderr.splitlines())


def test_a_deleted_directory_is_bad_input(home: Path) -> None:
    (home / "gone").mkdir()
    for words in (
        "account plan.toml",
        "account ../plan.toml --html x.html",
        "ledger init --ledger l.db",
    ):
        line = f"cd {home}/gone && rmdir {home}/gone && {COMMAND[0]} -c '{COMMAND[2]}' {words}"
        done = subprocess.run(
            ["bash", "-c", line], text=True, check=False, timeout=60, capture_output=True
        )
        assert done.returncode in (1, 2) and "defect" not in done.stderr, (words, done.stderr)
        (home / "gone").mkdir()


def test_a_page_takes_the_place_of_a_link_to_the_plan(home: Path) -> None:
    (home / "page.html").symlink_to(home / "plan.toml")
    found = invoke(["account", "plan.toml", "--html", "page.html"])
    assert found.exit_code == 0, found.output
    assert (home / "plan.toml").read_text() == PLAN
    assert (home / "page.html").read_text().startswith("<!doctype html>")


def test_a_full_disk_leaves_the_old_page(home: Path) -> None:
    (home / "page.html").write_text("old")
    # No file may grow beyond a kilobyte.
    code = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    code += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); from dpcompose.cli import main; main()"
    words = [sys.executable, "-c", code, "account", "plan.toml", "--html", "page.html"]
    done = subprocess.run(words, text=True, check=False, timeout=120, capture_output=True)
    assert done.returncode == 2 and "page.html" in done.stderr, done.stderr
    assert (home / "page.html").read_text() == "old"
    assert sorted(each.name for each in home.iterdir()) == ["page.html", "plan.toml"]


@pytest.mark.parametrize("name", ["\x1b[2Jx", "a\nsound: yes", "\x9bx", "\u202ex"])
def test_a_name_is_told_without_what_a_terminal_obeys(home: Path, name: str) -> None:
    (home / f"{name}.toml").write_text(PLAN)
    for words in (
        ["account", f"{name}.toml"], ["account", f"{name}.toml", "--html", f"{name}.html"], ["account", f"{name}.none"],
        ["ledger", "init", "--ledger", f"{name}.db"], ["ledger", "show", "--ledger", f"{name}.db"],
        ["ledger", "show", "--ledger", f"{name}.none"], ["ledger", "verify", "--ledger", f"{name}.db", "--keep", name],
    ):  # fmt: skip
        found = invoke(words)
        assert all(each.isprintable() for each in found.output.split("\n")), (words, found.output)
        assert "\nsound: yes" not in found.output, words
