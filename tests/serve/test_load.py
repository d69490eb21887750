"""A short version of the campaign of many clients and a network that fails."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from campaigns.service.load import CONTROLS, Answered, Run, disorder, run

pytestmark = pytest.mark.slow


def require_kept(found: Run, said: str) -> None:
    assert not found.problems
    assert found.granted and found.refused and found.answers
    assert "Traceback" not in said


def test_many_clients_are_told_one_history(capfd: pytest.CaptureFixture[str]):
    require_kept(run(1500, clients=40, trees=3), capfd.readouterr().err)


def test_a_network_that_fails_loses_and_doubles_nothing(capfd: pytest.CaptureFixture[str]):
    found = run(1000, clients=20, trees=2, partitions=6)
    require_kept(found, capfd.readouterr().err)
    assert found.cuts == 6


@pytest.mark.server
def test_the_same_between_two_servers_and_their_database(capfd: pytest.CaptureFixture[str]):
    found = run(400, clients=16, trees=2, partitions=8, servers=2, postgres=True)
    require_kept(found, capfd.readouterr().err)


@pytest.mark.parametrize("control", CONTROLS)
def test_what_breaks_a_promise_is_caught(control: str):
    assert run(300, clients=10, control=control).problems


def test_an_order_is_told_from_a_disorder():
    first, second = (
        Answered((1, 0), 0.0, 1.0, "the first"),
        Answered((2, 0), 0.5, 2.0, "the second"),
    )
    seen = Answered((1, 1), 1.5, 1.9, "one charge seen")
    assert not disorder([first, second, seen])
    assert disorder([Answered((1, 0), 2.5, 3.0, "the first"), second]) == [
        "the second came before the first was asked"
    ]
    assert disorder([first, second, Answered((1, 1), 2.5, 3.0, "one charge seen")])
    assert not disorder(
        [Answered((1, 1), 0.0, 9.0, "one"), Answered((1, 1), 8.0, 9.0, "one"), first]
    )
