"""Recorded time never runs back, whatever the clocks of the writers do."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.server import Server
from dpcompose.errors import TamperedError
from dpcompose.ledger import Ledger, batch, entry

Clock = Callable[[int], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clock of this process to a second."""
    found = [0]
    monkeypatch.setattr(time, "time_ns", lambda: found[0])

    def at(second: int) -> None:
        found[0] = second * 10**9

    return at


@pytest.fixture(params=["memory", "sqlite", pytest.param("postgres", marks=pytest.mark.server)])
def ledger(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Ledger]:
    if request.param == "postgres":
        server: Server = request.getfixturevalue("postgres")
        url = server.create(tmp_path.name)
    else:
        url = "memory:" if request.param == "memory" else str(tmp_path / "ledger.db")
    with Ledger.open(url) as opened:
        yield opened


def _opened(ledger: Ledger) -> None:
    ledger.scope("world", caps={"epsilon": 100}, actor="Ada")


def _charge(ledger: Ledger, key: str) -> Any:
    return ledger.charge("world", cost={"epsilon": 0.1}, actor="Ada", key=key)


def _times(ledger: Ledger) -> list[str]:
    return [each.time[11:19] for each in ledger.entries("world")]


def test_a_clock_that_is_set_back_stops_and_does_not_run_back(ledger: Ledger, clock: Clock) -> None:
    for second, name in [(60, ""), (120, "a"), (30, "b"), (119, "c"), (121, "d")]:
        clock(second)
        if not name:
            _opened(ledger)
            continue
        receipt = _charge(ledger, name)
        if name == "b":
            ledger.redeem(receipt, actor="Ada")
        assert receipt.time[14:19] == {"a": "02:00", "b": "02:00", "c": "02:00", "d": "02:01"}[name]
    assert _times(ledger) == [
        "00:01:00",
        "00:02:00",
        "00:02:00",
        "00:02:00",
        "00:02:00",
        "00:02:01",
    ]
    ledger.verify()


def test_trees_have_times_of_their_own(ledger: Ledger, clock: Clock) -> None:
    clock(120)
    _opened(ledger)
    clock(60)
    ledger.scope("moon", caps={"epsilon": 1}, actor="Ada")
    assert next(iter(ledger.entries("moon"))).time[11:19] == "00:01:00"


def test_requests_that_share_a_commit_are_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    second = iter(range(10**6, 0, -1))
    monkeypatch.setattr(time, "time_ns", lambda: next(second) * 10**9)
    with Ledger.open(tmp_path / "ledger.db") as ledger, ThreadPoolExecutor(8) as pool:
        _opened(ledger)
        list(pool.map(lambda name: _charge(ledger, str(name)), range(40)))
        assert len(set(_times(ledger))) == 1
        ledger.verify()


def test_another_client_with_a_slow_clock_goes_on_from_what_is_stored(
    tmp_path: Path, clock: Clock
) -> None:
    with Ledger.open(tmp_path / "ledger.db") as one, Ledger.open(tmp_path / "ledger.db") as other:
        clock(60)
        _opened(one)
        _charge(other, "seen")
        clock(600)
        _charge(one, "later")
        clock(61)
        assert _charge(other, "behind").time[11:19] == "00:10:00"
        other.verify()


def _running_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """The control: writers that believe their clock."""
    for module in (batch,):
        monkeypatch.setattr(module, "now", lambda last="": entry.now())


def test_time_that_runs_back_is_found(
    ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    _running_back(monkeypatch)
    clock(120)
    _opened(ledger)
    clock(60)
    _charge(ledger, "early")
    with pytest.raises(TamperedError, match="entry 2 runs back in time"):
        ledger.verify()


def test_older_ledgers_stay_valid(
    ledger: Ledger, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        _running_back(older)
        older.setattr(entry, "VERSION", 1)
        for second, name in [(120, ""), (60, "early")]:
            clock(second)
            _charge(ledger, name) if name else _opened(ledger)
        ledger.scope("world/below", actor="Ada")
    clock(30)
    _charge(ledger, "new")
    assert [each.fields["version"] for each in ledger.entries("world")] == [1, 1, 1, 2]
    assert _times(ledger) == ["00:02:00", "00:01:00", "00:01:00", "00:01:00"]
    ledger.verify()
    monkeypatch.setattr(entry, "VERSION", 1)
    _charge(ledger, "by an older client")
    with pytest.raises(TamperedError, match="entry 5 is of form 1, and one before it of form 2"):
        ledger.verify()
