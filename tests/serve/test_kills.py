"""A short version of the campaign that kills servers."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from campaigns.service.kills import CONTROLS, MOST, run

pytestmark = pytest.mark.slow


def test_what_was_acknowledged_is_in_the_log_exactly_once():
    acknowledged, kills, problems = run(3, clients=4)
    assert not problems and kills == 3 and 0 < acknowledged <= 3 * MOST


@pytest.mark.server
def test_the_same_with_two_servers_over_one_database():
    acknowledged, _, problems = run(3, clients=4, servers=2, postgres=True)
    assert not problems and 0 < acknowledged <= 3 * MOST


@pytest.mark.parametrize("control", CONTROLS)
def test_what_breaks_a_promise_is_caught(control: str):
    assert any(run(2, clients=4, control=control, seed=seed)[2] for seed in range(5))
