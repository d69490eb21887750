"""Files of every kind that commit aa7d735 wrote are read, checked and continued.

`tests/data/aa7d735/make.txt` is the program that wrote them, and `read.json` what that commit read in its ledgers:
every hash, balance and scope. A ledger that is opened here is a copy.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from signal import SIGKILL
from typing import Any
from unittest.mock import patch

import pytest

from campaigns.ledger.processes import fork
from campaigns.ledger.server import Server
from dpcompose import Laplace, release
from dpcompose.account import Account, exposure
from dpcompose.ledger import Ledger, Statement, entry
from dpcompose.ledger.head_record import HeadRecord

FILES = Path(__file__).parent / "data" / "aa7d735"
READ: dict[str, Any] = json.loads((FILES / "read.json").read_text())
# Tokens last a year and a request 30 days: whoever opens the people of that day opens them on that day.
THAT_DAY = 1795498400.0


def contents(ledger: Ledger) -> dict[str, Any]:
    """Every entry's hash, and every scope with what was spent and is left."""
    balances = ledger.balances()
    return {
        "entries": {top: [entry.hash for entry in ledger.entries(top)] for top in _tops(ledger)},
        "scopes": {
            balance.scope.path: {
                "kind": str(balance.scope.kind),
                "spent": {name: str(amount) for name, amount in balance.spent.items()},
                "available": {
                    name: str(amount)
                    for name, amount in ledger.available(balance.scope.path).items()
                },
                "closed": balance.closed,
                "description": balance.scope.description,
            }
            for balance in balances
        },
    }


def _tops(ledger: Ledger) -> list[str]:
    return sorted({scope.root for scope in ledger.scopes()})


@pytest.fixture
def files(tmp_path: Path) -> Path:
    return Path(shutil.copytree(FILES, tmp_path / "files"))


def _command(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "dpcompose", *words],
        check=False,
        cwd=folder,
        capture_output=True,
        text=True,
    )


@contextmanager
def _opened(url: str | Path) -> Iterator[Ledger]:
    with Ledger.open(url) as ledger:
        yield ledger


@pytest.mark.parametrize("name", ["city", "served", "answers"])
def test_a_ledger_in_a_file(name: str, files: Path) -> None:
    with _opened(files / f"{name}.db") as ledger:
        assert contents(ledger) == READ[name]
        assert ledger.verify().entries == sum(
            len(hashes) for hashes in READ[name]["entries"].values()
        )


def test_a_ledger_in_a_file_goes_on(files: Path) -> None:
    with _opened(files / "city.db") as ledger:
        account = Account(ledger, scope="pure")
        first = account.charge(Laplace(1000.0), key="after the move", actor="Ada")
        assert (
            account.charge(Laplace(1000.0), key="after the move", actor="Ada").sequence
            == first.sequence
        )
        assert exposure(ledger, paths=["zcdp/wards/north"], delta=1e-6).promised.available
        ledger.verify()


def test_a_ledger_in_a_file_is_verified_as_it_is(files: Path) -> None:
    before = (files / "city.db").read_bytes()
    with Ledger.open(files / "city.db", read_only=True) as ledger:
        assert ledger.verify().entries == sum(map(len, READ["city"]["entries"].values()))
    assert (files / "city.db").read_bytes() == before


def test_a_ledger_whose_move_was_killed_half_way_is_moved_again(files: Path) -> None:
    """Nothing names the log that the killed process began, and its last commit has no end."""

    def client() -> None:
        with patch.object(HeadRecord, "begin_log", lambda *_: os.kill(os.getpid(), SIGKILL)):
            Ledger.open(files / "city.db")

    os.waitpid(fork(client), 0)
    log = files / "city.db-wal"
    os.truncate(log, log.stat().st_size - 1)
    with _opened(files / "city.db") as ledger:
        assert contents(ledger) == READ["city"]
        ledger.verify()


def test_evidence_of_a_ledger(files: Path) -> None:
    trust = (files / "keeper.pub").read_text().strip()
    for words in (
        ("ledger", "evidence", "check-proof", "entry.proof", "--trust", trust),
        ("ledger", "verify", "--ledger", "city.db", "--anchor", "anchor.json"),
        (
            "ledger",
            "verify",
            "--ledger",
            "city.db",
            "--anchor",
            "checkpoints.txt",
            "--trust",
            trust,
        ),
    ):
        done = _command(files, *words)
        assert done.returncode == 0, done.stderr


def test_a_ledger_on_postgresql(postgres: Server, tmp_path: Path) -> None:
    url = postgres.create("aa7d735")
    program = [
        postgres.binaries / "psql",
        "-h",
        postgres.home,
        "-U",
        "ledger",
        "-q",
        "-v",
        "ON_ERROR_STOP=1",
        "aa7d735",
    ]
    text = (FILES / "city.sql").read_text()
    done = subprocess.run(
        program,
        check=False,
        input=text,
        text=True,
        capture_output=True,
        user=postgres.user,
        cwd="/",
    )
    assert done.returncode == 0, done.stderr
    with Ledger.open(url, read_only=True) as ledger:
        ledger.verify()
    with _opened(url) as ledger:
        assert contents(ledger) == READ["postgres"]
        ledger.verify()
        Account(ledger, scope="pure").charge(Laplace(1000.0), key="after the move", actor="Ada")


def test_people_and_their_terms(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    serve = pytest.importorskip("dpcompose.serve")
    from dpcompose.serve.gate import ROUTES

    tokens = json.loads((files / "tokens.json").read_text())
    monkeypatch.setattr(entry, "clock", lambda: int(THAT_DAY * 1e9))
    ledger = Ledger.open(files / "served.db")
    for _ in range(2):  # taken over again, it is not recorded twice
        copied = shutil.copy(files / "people.db", files / "copied.db")
        assert serve.take_over(ledger, copied) > 8
        entries = ledger.verify().entries
    assert entries == ledger.verify().entries and (files / "copied.db.imported").exists()
    people = serve.Identities(ledger)
    identities = {name: people.find(token) for name, token in tokens.items()}
    assert {name: identity and identity.actor for name, identity in identities.items()} == {
        "Grace": "Grace@city",
        "Ada": "Ada@city/health",
        "Ben": "Ben@city/health",
        "Eve": None,  # revoked
        "Cleo": "Cleo@city",
    }
    service = serve.Service(ledger, people)
    requests = ROUTES["requests"].answer(service, identities["Grace"], "city/health", {})
    assert [(each["state"], each["reason"]) for each in requests["requests"]] == [
        ("approved", "the map")
    ]
    agreed = ROUTES["agreed"].answer(service, identities["Grace"], "city/health", {})
    assert agreed == READ["agreed"]


def test_stored_answers_and_a_catalog(files: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(files)
    with _opened(files / "answers.db") as ledger:
        catalog = release.Catalog(ledger, "hospital")
        # That commit catalogued them in a folder that no other machine has.
        catalog.tables["visits"]["source"] = str(files / "visits.parquet")  # pyright: ignore[reportIndexIssue]
        visits = catalog.table("visits")
        session = release.Session(
            visits, ledger=ledger, scope="hospital", actor="ana", answers=files / "answers"
        )
        before = len(list(ledger.entries("hospital")))
        answer = session.count(
            by="clinic", keys=["north", "south"], spend={"epsilon": 0.1}, key="first"
        )
        assert answer.table.to_pylist() == READ["first answer"]
        session.sql("SELECT AVG(minutes) FROM visits", spend={"epsilon": 0.2}, key="second")
        session.quantile("minutes", q=0.5, spend={"epsilon": 0.2}, key="third")
        assert len(list(ledger.entries("hospital"))) == before, "a stored answer was charged again"
        session.count(spend={"epsilon": 0.1}, key="a new one")


def _without_lines(value: Any) -> Any:
    """The account without its version and without what a line is proved by: its nodes, errors and width."""
    if isinstance(value, dict):
        lines = ("dpcompose", "width", "method", "errors")
        return {key: _without_lines(each) for key, each in value.items() if key not in lines}
    if isinstance(value, list):
        return [_without_lines(each) for each in value]
    return re.sub(r"\d+ nodes", "nodes", value) if isinstance(value, str) else value


def _close(value: Any) -> Any:
    """The same, with its numbers to 1e-9."""
    if isinstance(value, dict):
        return {key: _close(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_close(each) for each in value]
    return pytest.approx(value, rel=1e-9, abs=0) if isinstance(value, float) else value


def test_a_plan_and_its_statement(files: Path) -> None:
    done = _command(files, "account", "plan.toml", "--json")
    now, then = json.loads(done.stdout), json.loads((files / "account.json").read_text())
    # Another engine may draw another line: the bounds agree to 1e-9, everything else to the letter.
    assert _without_lines(now) == _close(_without_lines(then))
    assert _command(files, "statement", "verify", "privacy.json").returncode == 0


def test_certificates_and_a_journal_of_an_audit(files: Path) -> None:
    shutil.copy(files / "noisy.txt", files / "noisy.py")
    for certificate, verdict in (
        ("refuted.json", "it refutes its claim"),
        ("honest.json", "it does not refute"),
    ):
        done = _command(files, "audit", "check", certificate)
        assert done.returncode == 0 and verdict in done.stdout, done.stdout + done.stderr
    claim = ("--epsilon", "1", "--resume", "refuted.journal")
    done = _command(files, "audit", "noisy.py:total", *claim)
    assert done.returncode == 1 and done.stdout.startswith("REFUTED"), done.stderr


def test_statements_of_every_kind_are_read_as_they_were_written(tmp_path: Path) -> None:
    """A ledger with each kind of statement once, as the first version of schema 6 named them."""
    copied = tmp_path / "statements.db"
    shutil.copy(FILES.parent / "schema6" / "statements.db", copied)
    with Ledger.open(copied) as ledger:
        assert ledger.verify().entries == 17
        stated = [
            entry.fields["statement"]["kind"]
            for root in ("city", "~people")
            for entry in ledger.entries(root)
            if entry.kind == "stated"
        ]
    assert set(stated) == set(Statement.kinds) and len(stated) == 14
