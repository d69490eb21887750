"""A short version of the campaign that stops servers amid a turn."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
pytest.importorskip("psycopg")
from campaigns.service.stopped import run

pytestmark = [pytest.mark.slow, pytest.mark.server]


def test_a_server_that_was_stopped_amid_a_turn_keeps_nobody_waiting():
    caught, acknowledged, _, problems = run(1)
    assert not problems and caught == 1 and acknowledged
