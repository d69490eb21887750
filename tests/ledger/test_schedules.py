"""A committed schedule is kept where the charge is decided: whoever charges, however many at once, on every store."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.server import Server
from dpcompose.errors import OverdrawnError, TamperedError, UnsupportedError
from dpcompose.ledger import Ledger, Receipt, Scope

PLAN = {"budget": {"schedule": [["Gaussian(30.0)", 1], ["Gaussian(60.0)", 2]]}}


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        return server.create(f"schedule {tmp_path.name}")
    return {"memory": "memory:", "sqlite": str(tmp_path / "ledger.db")}[request.param]


@pytest.fixture
def ledger(url: str) -> Iterator[Ledger]:
    with Ledger.open(url) as opened:
        opened.scope("world", caps={"rho": 1}, description=PLAN, actor="Ada")
        yield opened


def charge(
    ledger: Ledger, key: str, mechanism: str | None, rho: Any = "0.1", path: str = "world"
) -> Receipt:
    said = None if mechanism is None else {"mechanism": mechanism}
    return ledger.charge(path, cost={"rho": rho}, description=said, actor="Ada", key=key)


def test_rounds_are_charged_in_order_and_to_the_end(ledger: Ledger) -> None:
    with pytest.raises(UnsupportedError, match="a cost without a mechanism was asked"):
        charge(ledger, "bare", None)
    with pytest.raises(UnsupportedError, match=r"round 1 .* Gaussian\(30.0\) was committed"):
        charge(ledger, "late", "Gaussian(60.0)")
    first = charge(ledger, "1", "Gaussian(30.0)")
    assert charge(ledger, "1", "Gaussian(30.0)") == first
    with pytest.raises(UnsupportedError, match="round 2"):
        charge(ledger, "again", "Gaussian(30.0)")
    with pytest.raises(OverdrawnError):
        charge(ledger, "much", "Gaussian(60.0)", 2)
    charge(ledger, "2", "Gaussian(60.0)", 0)
    charge(ledger, "3", "Gaussian(60.0)", 0)
    with pytest.raises(UnsupportedError, match=r"round 4 .* nothing more"):
        charge(ledger, "4", "Gaussian(60.0)", 0)
    assert ledger.balance("world").taken == 3
    assert ledger.verify().entries == 5


def test_many_threads_at_once_get_each_round_once(ledger: Ledger) -> None:
    granted: list[Receipt] = []

    def ask(number: int) -> None:
        with suppress(UnsupportedError):
            granted.append(charge(ledger, str(number), "Gaussian(30.0)"))

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(granted) == 1
    ledger.verify()


@pytest.mark.parametrize(
    "schedule", ["Gaussian(30.0)", [["Gaussian(30.0)"]], [[7, 1]], [["Gaussian(30.0)", "1"]], 7]
)
def test_a_schedule_that_cannot_be_read_grants_nothing(ledger: Ledger, schedule: Any) -> None:
    ledger.scope(
        "odd", caps={"rho": 1}, description={"budget": {"schedule": schedule}}, actor="Ada"
    )
    with pytest.raises(UnsupportedError, match="nothing more was committed"):
        charge(ledger, "1", "Gaussian(30.0)", path="odd")


def test_a_charge_beside_the_schedule_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Written by a client that knows of no schedules, hashes and all."""
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        ledger.scope("world", caps={"rho": 1}, description=PLAN, actor="Ada")
        with monkeypatch.context() as old:
            old.setattr(Scope, "schedule", None)
            for key in ("1", "2"):
                charge(ledger, key, "Gaussian(30.0)")
        with pytest.raises(TamperedError, match="round 2 of the schedule"):
            ledger.verify()


def test_the_round_is_in_no_entry(ledger: Ledger) -> None:
    """What is hashed stays as it was: the round follows from the entries."""
    charge(ledger, "1", "Gaussian(30.0)")
    (entry,) = [each for each in ledger.entries("world") if each.kind == "granted"]
    assert json.loads(entry.body).keys() >= {"cost", "key"} and "taken" not in entry.body
