"""Commands as they are declared: read here as typer reads them, each with its own file, and nothing more, imported."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from dpcompose.adaptive import Budget
from dpcompose.cli.app import app
from dpcompose.cli.command import Command
from dpcompose.cli.table import COMMANDS, GROUPS, load, split
from dpcompose.ledger import Ledger
from tests.cli.runner import invoke
from tests.cli.test_documents import ENVIRONMENT, ERRORS, LINES

MORE = [
    "account plan.toml --delta=1e-6 --epsilon .5 --explain --html=a.html", "account --risk - --plot b.svg --csv",
    "account plan.toml --delta 1E-6 --delta 2e-6", "ledger scope a --cap x=1 --cap y=2 --slots 7 --renew year",
    "ledger log a --after 3 --most 1 --tail 2", "ledger log a --after -3", "ledger log a --most 0", "ledger log a --tail 1_0",
    "ledger exposure a b c --delta 0", "audit noisy.py:mean --epsilon 1 --samples 10 --fresh call --timing",
    "theorem 3.20 --epsilon=0.1 --times 9", "theorem Theorem 3.20 --json", "theorem --epsilon 1",
    "experiment greedy plan.toml --orientation same --seed 3", "experiment GREEDY plan.toml", "serve --port 0",
    "serve --port 70 --trust a --trust b --rate 2.5 --log",
    "ledger people --invite keeper:Ada --invite auditor:Ben", "serve --rate nan",
    "release t.csv --scope a --sql SELECT --unit id --unit name --confidence 0.9",
    "statement plan.toml --unit one", "statement verify a.json", "statement write plan.toml --unit x",
    "ledger init -h", "ledger init --ledger", "ledger init --json=1", "ledger close a -- b", "ledger close a b",
    "account plan.toml --delta 1e999", "account '' --delta 1", "calibrate plan.toml --vary '' --epsilon 1",
    "import a.json --adjacency replace", "account --delta inf plan.toml",
]  # fmt: skip
PARSERS = {"typer", "click", "rich", "pydantic", "msgspec"}
LIGHT = {
    "--version": {*PARSERS, "numpy", "dpcompose.cli.command", "dpcompose.report"},
    "ledger init": {*PARSERS, "numpy"},
    "ledger scope other --cap epsilon=1": PARSERS,
    "ledger show": {*PARSERS, "numpy", "dpcompose.account"},
    "ledger show capped --csv": {*PARSERS, "numpy", "dpcompose.account"},
    "ledger log capped --json": {*PARSERS - {"msgspec"}, "numpy", "dpcompose.account"},
    "ledger charge capped --cost epsilon=0.1 --cost delta=0 --key one": {*PARSERS, "numpy", "dpcompose.account"},
    "ledger charge city/health --cost rho=0.001 --cost delta=0 --key two": {*PARSERS, "numpy", "scipy"},
    "ledger show city/health": {*PARSERS, "numpy", "scipy", "dpcompose.composition"},
    "ledger log city": {*PARSERS, "numpy", "scipy", "dpcompose.composition"},
    "theorem 3.20 --epsilon 0.1 --times 9 --slack 1e-6": {*PARSERS, "dpcompose.composition"},
    "account plan.toml": {*PARSERS, "matplotlib", "scipy.optimize", "dpcompose.ledger", "dpcompose.account"},
}  # fmt: skip
"""Lines, and modules that they do without."""
PLAN = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'


@pytest.mark.parametrize("line", [*LINES, *ERRORS, *MORE])
def test_a_line_is_read_as_typer_reads_it(line: str) -> None:
    words = shlex.split(line)
    read: list[tuple[Any, ...]] = []

    def record(self: Command, words: Any = (), /, **values: Any) -> None:
        read.append((self.line, list(words), values))

    with patch.dict(os.environ, ENVIRONMENT), patch.object(Command, "__call__", record):
        with suppress(
            Exception, SystemExit
        ):  # typer's own errors: the line is not read here either
            app(list(words), standalone_mode=False)
        name, rest = split(words)
        parsed = load(name).parse(rest) if name in COMMANDS else None
    assert parsed is None or read == [(load(name).line, *parsed)]


@pytest.mark.parametrize("line", LINES)
def test_a_correct_line_needs_no_typer(line: str) -> None:
    with patch.dict(os.environ, ENVIRONMENT):
        name, rest = split(line.split())
        assert load(name).parse(rest) is not None


def test_the_groups_are_those_of_the_commands() -> None:
    assert set(GROUPS) == {line.rpartition(" ")[0] for line in COMMANDS if " " in line}
    for line in (*GROUPS, *COMMANDS):
        shown = invoke([*line.split(), "--help"])
        assert shown.exit_code == 0 and "Usage" in shown.stdout, line


@pytest.mark.parametrize("line", LIGHT)
def test_a_command_imports_no_more_than_it_needs(line: str, tmp_path: Path) -> None:
    (tmp_path / "plan.toml").write_text(PLAN)
    program = (
        "import sys; sys.argv[0] = 'dpcompose'\nfrom dpcompose.cli import main\n"
        "try: main()\nfinally: print(*sys.modules, file=sys.stderr)"
    )
    environment = {**os.environ, **ENVIRONMENT}
    with Ledger.open(tmp_path / "l.db") as ledger:
        ledger.scope("capped", caps={"epsilon": 1, "delta": 0}, actor="Ada")
        if "city" in line:
            Budget(1, 1e-6, only="zcdp").open(ledger, "city", actor="Ada")
            Budget(1, 1e-6, only="zcdp").open(ledger, "city/health", actor="Ada")
    done = subprocess.run(
        [sys.executable, "-c", program, *line.split()],
        check=True, capture_output=True, text=True, cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.stdout and LIGHT[line] & set(done.stderr.split()) == set()
