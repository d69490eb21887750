"""Every command's documents validate against the schemas that `dpcompose ledger admin schema` prints, its errors included."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import subprocess
import sys
from collections import Counter
from contextlib import redirect_stdout
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from dpcompose.cli import command
from dpcompose.cli.command import Result, emit
from dpcompose.cli.table import COMMANDS, load
from dpcompose.report.layout import Heading, Page, PageTable
from dpcompose.report.schemas import DOCUMENTS, schema
from dpcompose.report.text import text
from tests.cli.runner import invoke

validate = pytest.importorskip("jsonschema").validate

NUMBER = re.compile(r"\d[\d.,]*(?:e[+-]?\d+)?")
STRANGE = Page(
    "שלום", "שָׁלוֹם e\u0301 1234567890.123456789", "plain", (("نام", "0.1234567890123456789"),),
    (PageTable("Wide", (Heading("e\u0301" * 30), Heading("n", "right")), (("שלום" * 20, "17.000000000001"),) * 30),),
)  # fmt: skip
SMALL = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'
COMMAND = "import sys; sys.argv = ['dpcompose']; from dpcompose.cli import main; main()"
ENVIRONMENT = {"DPCOMPOSE_LEDGER": "l.db", "USER": "Ada", "COLUMNS": "100"}
LINES = [
    "account small.toml --risk", "account small.toml --delta 1e-6 --epsilon 1", "account small.toml --epsilon 1",
    "compare small.toml small.toml", "compare small.toml --epsilon 1",
    "calibrate small.toml --vary mechanism.gaussian.sigma --epsilon 1 --delta 1e-6",
    "calibrate small.toml --vary mechanism.gaussian.sigma --advantage 0.1",
    "theorem", "theorem 3.20 --epsilon 0.1 --times 9 --slack 1e-6", "exercise 1", "exercise 2 --a 2.5",
    "experiment repeater small.toml --rounds 2 --transcripts 100",
    "adaptive advise small.toml --epsilon 1",
    "statement small.toml --unit user --privacy privacy.json", "statement verify privacy.json", "import opacus.json",
    "ledger init", "ledger scope world --filter concentrated --epsilon 1 --delta 1e-6", "ledger scope world/a",
    "ledger charge world/a small.toml --key one", "ledger redeem charged.json",
    "ledger charge world/a --cost rho=9 --cost delta=0 --key two",
    "ledger price world small.toml",
    "ledger scope world/s --kind slots --slots 3 --filter concentrated --parameter rho=0.001 --parameter delta=0",
    "ledger scope world/s/x", "ledger show",
    "ledger log world", "ledger exposure world/a --delta 1e-6", "ledger verify",
    "ledger scope y --filter pure --epsilon 1 --renew year", "ledger exposure y --delta 0 --window P3Y",
    "ledger admin backup --out copy.db --keep anchor.json",
    "ledger admin restore copy.db --anchor anchor.json --ledger restored.db",
    "ledger close world/a", "ledger people", "ledger evidence key acme.example --out secret.key",
    "ledger evidence check-proof entry.proof --trust key.txt", "ledger evidence check-proof secret.key --trust key.txt",
    "audit scores scores.csv --epsilon 1",
    "release table.csv --unit id --max-rows 1 --scope r --questions count.toml --spend epsilon=0.1 --quote",
    "release table.csv --unit id --max-rows 1 --scope r --questions count.toml --spend epsilon=0.1",
]  # fmt: skip
ERRORS = [
    "account nowhere.toml", "account", "compare", "compare nowhere.toml", "compare small.toml --delta 1 --epsilon 1",
    "calibrate small.toml --vary x --epsilon 1 --delta 1e-6", "theorem 9.99",
    "theorem 3.20", "exercise 9", "experiment greedy", "experiment nobody small.toml",
    "adaptive advise nowhere.toml --epsilon 1",
    "statement small.toml", "statement verify nowhere.json", "import nowhere.json", "ledger show nowhere", "ledger log nowhere",
    "ledger scope /", "ledger charge world", "ledger charge nowhere --cost rho=1 --key x", "ledger redeem nowhere.json",
    "ledger price nowhere small.toml", "ledger exposure nowhere --delta 1", "ledger verify --anchor nowhere",
    "ledger close nowhere", "ledger init --nonsense", "audit scores nowhere.csv --epsilon 1",
    "ledger evidence key acme.example",
    "ledger admin backup", "ledger admin backup --out l.db", "ledger admin restore nowhere", "ledger admin restore copy.db",
    "ledger evidence check-proof nowhere", "audit check nowhere", "audit nothing --epsilon 1",
    "release nowhere.csv --questions count.toml",
]  # fmt: skip


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "small.toml").write_text(SMALL)
    (folder / "scores.csv").write_text(
        "score,inside\n" + "".join(f"{i % 7},{i % 2}\n" for i in range(40))
    )
    (folder / "table.csv").write_text("id,age\n" + "".join(f"{i},{i % 50}\n" for i in range(200)))
    (folder / "count.toml").write_text('[[question]]\nkind = "count"\n')
    (folder / "opacus.json").write_text('{"history": [[1.0, 0.01, 10]], "mechanism": "rdp"}')
    return folder


def document_of(line: str) -> dict[str, Any]:
    """What a command prints on standard output: one document, valid."""
    found = invoke([*line.split(), "--json"], env=ENVIRONMENT)
    document: dict[str, Any] = json.loads(found.stdout)
    validate(document, schema(document["command"]))
    assert line.startswith(document["command"]), line
    assert ("error" in document) <= (found.exit_code == document.get("error", {}).get("status")), (
        line,
        found.output,
    )
    return document


def test_every_document_is_valid(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    invoke(["ledger", "init"], env=ENVIRONMENT)
    invoke(["ledger", "scope", "r", "--filter", "pure", "--epsilon", "1"], env=ENVIRONMENT)
    seen: set[str] = set()
    pages: list[Page] = []
    monkeypatch.setattr(command, "emit", partial(_emit_both, pages))
    for line in LINES:
        if line.startswith("release"):
            pytest.importorskip("duckdb")
        document = document_of(line)
        assert "error" not in document, (line, document)
        seen.add(document["command"])
        if document["command"] == "ledger evidence key":
            (home / "key.txt").write_text(document["key"])
            prove = "ledger evidence prove world --entry 1 --key secret.key --out entry.proof"
            assert invoke(prove.split(), env=ENVIRONMENT).exit_code == 0
        if document.get("granted"):
            (home / "charged.json").write_text(json.dumps(document))
        shape = DOCUMENTS[document["command"]]
        members = {name for each in shape.get("anyOf", [shape]) for name in each["properties"]}
        assert document.keys() - {"dpcompose", "format", "command"} <= members, line
    assert DOCUMENTS.keys() - seen == {
        "audit",
        "audit check",
    }  # these run code: tests/cli/test_audit.py
    assert len(pages) > 15
    for page in [*pages, STRANGE]:
        _require_whole_numbers(page, monkeypatch)


@pytest.mark.parametrize(
    "line",
    ["account small.toml", "calibrate small.toml --vary mechanism.gaussian.sigma --epsilon 1 --delta 1e-6", "theorem",
     "experiment repeater small.toml --rounds 2 --transcripts 100", "adaptive advise small.toml --epsilon 1",
     "compare small.toml small.toml", "ledger show", "ledger log tables"],
)  # fmt: skip
def test_tables_are_printed_as_csv(home: Path, monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    monkeypatch.chdir(home)
    environment = ENVIRONMENT | {"DPCOMPOSE_LEDGER": "csv.db"}
    invoke(["ledger", "init"], env=environment)
    invoke(["ledger", "scope", "tables", "--filter", "pure", "--epsilon", "1"], env=environment)
    found = invoke([*line.split(), "--csv"], env=environment)
    assert found.exit_code == 0, found.output
    for table in found.stdout.split("\n\n"):
        titles, *rows = csv.reader(io.StringIO(table))
        assert len(titles) > 1 and rows and {len(row) for row in rows} == {len(titles)}, table
    both = invoke([*line.split(), "--csv", "--json"], env=environment)
    assert both.exit_code == 2 and "--csv" in both.output


def _emit_both(pages: list[Page], line: str, result: Result, **how: Any) -> None:
    if result.page is not None:
        pages.append(result.page())
    emit(line, result, **how)


def _require_whole_numbers(page: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """No number of a page is cut, broken or left out, however many columns a terminal has."""
    texts = [page.headline, *page.notes, *(value for _, value in page.facts)]
    texts += [cell for table in page.tables for row in table.rows for cell in row]
    wanted = Counter(number for text in texts for number in NUMBER.findall(text))
    for columns in (40, 43, 60, 79, 80, 97, 110, 150, 200):
        monkeypatch.setenv("COLUMNS", str(columns))
        shown = io.StringIO()
        with redirect_stdout(shown):
            print(text(page), end="")
        found = Counter(NUMBER.findall(shown.getvalue()))
        assert not wanted - found, (page.title, columns, wanted - found)
        assert columns >= 80 or not any(each in shown.getvalue() for each in "─│"), columns


def test_every_error_is_valid(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(home)
    invoke(["ledger", "init"], env=ENVIRONMENT)
    for line in ERRORS:
        assert "error" in document_of(line), line


def test_a_schema_takes_no_other_document() -> None:
    head = {"dpcompose": "1", "format": 1, "command": "ledger init"}
    validate(head | {"ledger": "x", "scopes": 1}, schema("ledger init"))
    for wrong in (
        head,
        head | {"ledger": "x", "scopes": "1"},
        head | {"format": 2, "ledger": "x", "scopes": 1},
    ):
        with pytest.raises(Exception, match=r"valid|expected|required"):
            validate(wrong, schema("ledger init"))


def test_every_command_with_documents_has_a_schema() -> None:
    with_documents = {load(line).line for line in COMMANDS if "json" in load(line).outputs}
    assert with_documents == DOCUMENTS.keys()
    assert invoke(["ledger", "admin", "schema"]).stdout.split("\n")[:-1] == list(DOCUMENTS)
    assert json.loads(invoke(["ledger", "admin", "schema", "ledger", "show"]).stdout) == schema(
        "ledger show"
    )
    assert invoke(["ledger", "admin", "schema", "nonsense"]).exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_has_a_script_for_each_shell(shell: str) -> None:
    found = subprocess.run(
        [sys.executable, "-c", COMMAND], capture_output=True, text=True, check=False,
        env=os.environ | {"_DPCOMPOSE_COMPLETE": f"source_{shell}"},
    )  # fmt: skip
    assert "complete_" + shell in found.stdout or "_DPCOMPOSE_COMPLETE" in found.stdout, found
