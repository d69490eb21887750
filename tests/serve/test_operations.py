"""Metrics, logs, alerts, the unit of systemd, and the guide."""

from __future__ import annotations

import configparser
import json
import logging
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("httpx")
pytest.importorskip("starlette")
from typer.main import get_command

from dpcompose import Gaussian
from dpcompose.cli.app import app
from dpcompose.errors import OverdrawnError, TamperedError
from dpcompose.ledger import Ledger
from dpcompose.serve import Identities, Role, Service
from dpcompose.serve.gate import refusal
from dpcompose.serve.web import application
from tests.cli.runner import invoke
from tests.serve.conftest import TestClient, Town


def test_metrics_and_logs_tell_routes_and_nothing_of_the_data(
    town: Town, caplog: pytest.LogCaptureFixture
):
    caplog.set_level(logging.DEBUG)
    account = town.account()
    account.charge(Gaussian(37.25), key="secret-key")
    with pytest.raises(OverdrawnError):
        account.charge(Gaussian(0.01), key="much")
    token = town.tokens[Role.AUDITOR]
    town.client.post("/login", data={"token": token})
    for path in (
        "/?words=needle&at=city/health",
        "/v1/left?scope=city",
        "/none/needle",
        "/download?what=needle",
    ):
        town.client.request(
            "SEARCH" if "none" in path else "GET",
            path,
            headers={"authorization": f"Bearer {token}"},
        )
    logged = [
        json.loads(each.message)
        for each in caplog.records
        if each.name == "dpcompose.serve.requests"
    ]
    assert {"time", "method", "route", "status", "milliseconds"} == set().union(*logged) and len(
        logged
    ) >= 7
    assert [(each["route"], each["status"]) for each in logged][:2] == [
        ("charge", 200),
        ("charge", 409),
    ]
    own = "".join(each.getMessage() for each in caplog.records if each.name.startswith("dpcompose"))
    said = own + town.client.get("/metrics").text
    assert 'dpcompose_requests_total{route="charge",status="409"} 1.0' in said
    assert 'route="unknown"' in said and 'dpcompose_seconds_count{route="page"}' in said
    words = [
        "Ada",
        "city",
        "health",
        "37.25",
        "secret-key",
        "needle",
        "rho",
        "testclient",
        "Gaussian",
    ]
    assert [each for each in [*words, *town.tokens.values()] if each in said] == []


def test_the_unit_is_one_that_systemd_takes(tmp_path: Path):
    asked = [
        sys.executable,
        "-m",
        "dpcompose",
        "serve",
        "--unit",
    ]
    made = subprocess.run(
        [*asked, "--ledger", "/var/lib/dpcompose/city.db"],
        capture_output=True,
        text=True,
        check=True,
    )
    parsed = configparser.ConfigParser(strict=False, interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment]
    parsed.read_string(made.stdout)
    assert (
        parsed["Service"]["NoNewPrivileges"] == "yes"
        and parsed["Install"]["WantedBy"] == "multi-user.target"
    )
    if shutil.which("systemd-analyze"):
        for name, broken in (("good", False), ("bad", True)):
            unit = tmp_path / f"{name}.service"
            unit.write_text(
                made.stdout.replace("Type=exec", "Type=nonsense" if broken else "Type=exec")
            )
            found = subprocess.run(
                ["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False
            )
            assert ("nonsense" in found.stderr) == broken and (
                unit.name in found.stderr
            ) == broken, found.stderr
    assert (
        subprocess.run([*asked, "--ledger", "a b"], capture_output=True, check=False).returncode
        == 2
    )


VALUES = {
    "--ledger": ["/var/lib/dpcompose/city.db"],
    "--people": ["/var/lib/dpcompose/people.db"],
    "--catalog": ["/etc/dpcompose/catalog.toml"],
    "--host": ["::1"],
    "--port": ["9000"],
    "--issuer": ["https://login.example/a%20city?a=$1&b=%2F"],
    "--audience": ["budgets"],
    "--checkpoints": ["checkpoints.txt"],
    "--trust": ["one.example+1234abcd+AQ==", "two.example+1234abcd+AQ=="],
    "--rate": ["50.0"],
    "--log": [],
}


def test_the_unit_has_every_option_that_was_typed():
    options = {each.opts[0] for each in get_command(app).commands["serve"].params}  # type: ignore[attr-defined]
    assert options - {"--unit", "--help"} == {*VALUES, "--demo"}
    typed = [
        word
        for name, values in VALUES.items()
        for value in values or [""]
        for word in (name, value)
        if word
    ]
    made = invoke(["serve", "--unit", *typed])
    (line,) = [each for each in made.stdout.splitlines() if each.startswith("ExecStart=")]
    words = line.replace("%%", "%").replace("$$", "$").partition(" serve ")[2].split()
    assert sorted(words) == sorted(typed) and line.count("%") == 4 and line.count("$") == 2
    said = invoke(["serve", "--unit", "--ledger", "city.db", "--demo"])
    assert said.exit_code == 2 and "--demo" in said.stderr
    for name in ("--issuer", "--audience"):
        assert (
            invoke(
                ["serve", "--unit", "--ledger", "city.db", "--audience", "b", name, 'https://a b"']
            ).exit_code
            == 2
        )


def test_health_and_ready_say_why_nothing_moves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("dpcompose.serve.web.PATIENCE", 0.2)
    with Ledger.open(tmp_path / "city.db") as ledger:
        people = Identities(ledger)
        people.invite("Grace", Role.KEEPER, "")
        client = TestClient(application(Service(ledger, people)))
        entries = ledger.verify().entries
        assert client.get("/health").json() == {"status": "ok"}
        assert client.get("/ready").json() == {"status": "ready", "reasons": []}
        with closing(sqlite3.connect(tmp_path / "city.db", isolation_level=None)) as other:
            other.execute("begin immediate")
            held = client.get("/ready")
            assert client.get("/health").status_code == 200
        assert held.status_code == 503 and "another process has it" in held.json()["reasons"][0]
        assert ledger.verify().entries == entries  # asking is no entry
    closed = client.get("/ready")
    assert closed.status_code == 503 and str(tmp_path) not in closed.text


def test_a_second_server_of_one_file_is_refused_with_the_first_ones_number(tmp_path: Path):
    command = "from dpcompose.serve import require_only; from pathlib import Path; import sys;"
    command += "require_only(Path(sys.argv[1]))"
    run = [sys.executable, "-c", command, str(tmp_path / "city.db")]
    first = subprocess.Popen(
        [*run[:2], f"{command}; print(1, flush=True); input()", run[3]], stdin=-1, stdout=-1
    )
    assert first.stdout is not None and first.stdout.readline() == b"1\n"
    second = subprocess.run(run, capture_output=True, text=True, check=False)
    assert second.returncode and f"process {first.pid} serves this ledger" in second.stderr
    first.communicate(b"\n")
    assert subprocess.run(run, check=False).returncode == 0


def test_gauges_of_budgets_are_an_auditors(town: Town):
    town.account().charge(Gaussian(10.0), key="k")

    def metrics(role: Role) -> Any:
        headers = {"authorization": f"Bearer {town.tokens[role]}"}
        return town.client.get("/metrics", headers=headers)

    text = metrics(Role.AUDITOR).text
    assert 'dpcompose_spent{scope="city/health",currency="rho"} 0.005' in text
    assert 'dpcompose_left{scope="city",currency="rho"}' in text and "other" not in text
    assert metrics(Role.ANALYST).status_code == 403
    assert "dpcompose_spent" not in town.client.get("/metrics").text


def test_a_full_disk_is_named_in_the_log_once(tmp_path: Path, caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.WARNING)
    town = Town(url=str(tmp_path / "city.db"))
    town.ledger.store._writer.execute("pragma max_page_count = 1")  # type: ignore[attr-defined]
    charge = {"scope": "city", "mechanism": "Gaussian(50.0)", "description": {"a": "b" * 9000}}
    answers = [
        town.ask("charge", town.tokens[Role.ANALYST], key=f"{key}", **charge) for key in range(150)
    ]
    failed = [each for each in answers if each.status_code == 503]
    assert failed and not any(str(tmp_path) in each.text or "full" in each.text for each in failed)
    logged = [each.getMessage() for each in caplog.records if each.name == "dpcompose.serve"]
    assert len(logged) == 1 and "the disk is full" in logged[0] and "city.db" in logged[0]


def test_a_ledger_that_was_tampered_with_is_named_in_the_log(
    town: Town, caplog: pytest.LogCaptureFixture
):
    answer = refusal(TamperedError(["entry 7 of city has another hash"]))
    assert (
        answer.status_code == 409
        and b"entry 7" not in answer.body
        and "entry 7 of city" in caplog.text
    )
