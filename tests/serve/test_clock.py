"""A clock that was ahead once: what was given then ends in time, and a command undoes it."""

from __future__ import annotations

from pathlib import Path
from time import monotonic

import pytest

pytest.importorskip("starlette")
from dpcompose.serve import Identities, Role
from tests.cli.runner import invoke

DAY, YEARS = 86400.0, 10 * 366 * 86400.0


class Clocks:
    """A clock that people set, one that nobody sets, and the people who live by them."""

    def __init__(self, path: Path) -> None:
        self.path, self.now, self.passed = path, 1e9, 0.0
        self.people = self.start()

    def start(self) -> Identities:
        people, before = Identities.open(self.path, clock=lambda: self.now), self.passed
        people.database.running = lambda: monotonic() + self.passed - before
        return people

    def restart(self) -> None:
        self.people.database.close()
        self.people = self.start()

    def go(self, seconds: float, *, looks: int = 100) -> None:
        for _ in range(looks):
            self.now, self.passed = self.now + seconds / looks, self.passed + seconds / looks
            self.people.database.now()


@pytest.fixture
def clocks(tmp_path: Path) -> Clocks:
    return Clocks(tmp_path / "people.db")


@pytest.mark.parametrize("restarts", [False, True])
def test_a_token_of_an_hour_lasts_an_hour_also_behind_a_clock_that_was_ahead(
    clocks: Clocks, restarts: bool
):
    clocks.now += YEARS
    clocks.people.database.now()
    clocks.now -= YEARS
    if restarts:
        clocks.restart()
    token = clocks.people.invite("Ada", Role.ANALYST, "city", seconds=3600)
    clocks.go(3000)
    assert clocks.people.find(token) is not None
    clocks.go(700)
    assert clocks.people.find(token) is None


def test_a_time_that_was_ahead_is_undone_by_a_command(
    clocks: Clocks, caplog: pytest.LogCaptureFixture
):
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
        assert "--trust-clock" in caplog.text and clocks.people.find(old) is None
        assert clocks.people.database.trust_clock() == pytest.approx(ahead, abs=100)
        clocks.restart()
        assert clocks.people.find(old) is not None
        assert [clocks.people.find(each) for each in (over, revoked, wrong)] == [None] * 3
        clocks.go(3700)
    token = clocks.people.invite("Dan", Role.ANALYST, "city", seconds=3600)
    assert clocks.people.find(token) is not None
    clocks.go(3601)
    assert clocks.people.find(token) is None and clocks.people.find(old) is not None
    assert clocks.people.database.trust_clock() == 0.0 and clocks.people.find(old) is not None


def test_terms_that_would_last_for_years_end_when_the_time_is_undone(clocks: Clocks):
    with clocks.people.database.transaction() as run:
        for number, expires in enumerate((clocks.now + DAY, clocks.now + YEARS)):
            run(
                "insert into service_reservation (id, root, scope, actor, asked, held, used, expires)"
                " values (?, 'city', 'city', 'Ada', '', '', '', ?)",
                (str(number), expires),
            )
    clocks.now += YEARS
    clocks.people.database.now()
    clocks.now -= YEARS
    clocks.people.database.trust_clock()
    with clocks.people.database.transaction(write=False) as run:
        assert run(
            "select id from service_reservation where expires > ?", (clocks.people.database.now(),)
        ) == [("0",)]


def test_the_command_says_what_it_undid(tmp_path: Path):
    people = Identities.open(tmp_path / "people.db", clock=lambda: 9e9)
    token = people.invite("Ada", Role.ANALYST, "city")
    people.database.close()
    done = invoke(["serve", "--people", str(tmp_path / "people.db"), "--trust-clock"])
    assert done.exit_code == 0 and int(done.stdout.split()[0]) > 10**9 and "undone" in done.stdout
    assert Identities.open(tmp_path / "people.db").find(token) is None
