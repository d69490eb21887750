"""A clock that was ahead once: what was given then ends in time, and a command undoes it."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

pytest.importorskip("starlette")
from dpcompose.ledger import Ledger, entry
from dpcompose.serve import Identities, Role
from tests.cli.runner import invoke

DAY, YEARS = 86400.0, 10 * 366 * 86400.0


class Clocks:
    """A clock that people set, one that nobody sets, and the people who live by them."""

    def __init__(self, path: Path, patch: pytest.MonkeyPatch) -> None:
        self.path, self.now, self.passed = path, 1e9, 0.0
        patch.setattr(entry, "clock", lambda: int(self.now * 1e9))
        patch.setattr("dpcompose.serve.identity.monotonic", lambda: monotonic() + self.passed)
        self.people = Identities(Ledger.open(path))

    def restart(self) -> None:
        self.people.ledger.close()
        self.people = Identities(Ledger.open(self.path))

    def go(self, seconds: float, *, looks: int = 10) -> None:
        for _ in range(looks):
            self.now, self.passed = self.now + seconds / looks, self.passed + seconds / looks
            self.people.now()


@pytest.fixture
def clocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Clocks:
    return Clocks(tmp_path / "city.db", monkeypatch)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_token_of_an_hour_lasts_an_hour_also_behind_a_clock_that_was_ahead(
    clocks: Clocks, restarts: bool
):
    clocks.now += YEARS
    clocks.people.invite("Grace", Role.KEEPER, "")
    clocks.now -= YEARS
    if restarts:
        clocks.restart()
    token = clocks.people.invite("Ada", Role.ANALYST, "city", seconds=3600)
    clocks.go(3000)
    assert clocks.people.find(token) is not None
    clocks.go(700)
    assert clocks.people.find(token) is None


def test_a_time_that_was_ahead_is_undone_by_a_command(clocks: Clocks):
    old = clocks.people.invite("Ada", Role.ANALYST, "city", seconds=30 * DAY)
    over = clocks.people.invite("Ben", Role.ANALYST, "city", seconds=60)
    clocks.go(DAY)
    revoked = clocks.people.invite("Eve", Role.ANALYST, "city")
    assert clocks.people.revoke("Eve", "city") == 1
    for ahead in (90 * DAY, YEARS):  # less than a token lasts, and more
        clocks.now += ahead
        wrong = clocks.people.invite("Cleo", Role.ANALYST, "city", seconds=3600)
        clocks.now -= ahead
        clocks.restart()
        running = Identities(Ledger.open(clocks.path))  # another server sees it without a restart
        assert clocks.people.ahead == pytest.approx(ahead, abs=100)
        assert clocks.people.find(old) is None and running.find(old) is None
        assert clocks.people.trust_clock() == pytest.approx(ahead, abs=100)
        assert clocks.people.find(old) is not None and running.find(old) is not None
        assert [clocks.people.find(each) for each in (over, revoked, wrong)] == [None] * 3
        clocks.go(3700)
    token = clocks.people.invite("Dan", Role.ANALYST, "city", seconds=3600)
    assert clocks.people.find(token) is not None
    clocks.go(3601)
    assert clocks.people.find(token) is None and clocks.people.find(old) is not None
    assert clocks.people.trust_clock() == 0.0 and clocks.people.find(old) is not None
    assert clocks.people.ledger.verify().entries


def test_the_command_says_what_it_undid(clocks: Clocks, monkeypatch: pytest.MonkeyPatch):
    clocks.now = 9e9
    token = clocks.people.invite("Ada", Role.ANALYST, "city")
    clocks.people.ledger.close()
    clocks.now = 1e9
    monkeypatch.chdir(clocks.path.parent)
    done = invoke(["ledger", "people", "--ledger", str(clocks.path), "--trust-clock"])
    assert done.exit_code == 0 and int(done.stdout.split()[0]) > 10**9 and "undone" in done.stdout
    assert Identities(Ledger.open(clocks.path)).find(token) is None
