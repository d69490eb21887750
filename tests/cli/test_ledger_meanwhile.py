"""`dpcompose ledger` beside a schedule of rounds."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.ledger import Ledger
from tests.cli.runner import invoke


@pytest.fixture(autouse=True)
def _a_schedule_of_two_rounds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    schedule, filter = [Gaussian(30.0), Gaussian(60.0)], ConcentratedFilter(1.0, delta=0.0)
    with Ledger.open("l.db") as ledger:
        account = open_scope(ledger, "world", filter=filter, schedule=schedule, actor="Ada")
        account.charge(Gaussian(30.0), actor="Ada", key="one")


def ask(command: str, *rest: str, status: int = 0) -> str:
    result = invoke(
        ["ledger", command, "--ledger", "l.db", *rest], env={"COLUMNS": "140", "USER": "Ada"}
    )
    assert result.exit_code == status, (result.output, result.exception)
    return result.output


def test_a_bare_cost_is_charged_beside_no_schedule() -> None:
    said = ask(
        "charge", "world", "--cost", "rho=0.1", "--cost", "delta=0", "--key", "two", status=3
    )
    assert "round 2 of the schedule of 'world': a cost without a mechanism was asked" in said
