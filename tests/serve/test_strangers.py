"""A short version of the campaign of callers who leave, never end or never begin."""

from __future__ import annotations

import pytest

pytest.importorskip("uvicorn")
pytest.importorskip("starlette")
from campaigns.service.strangers import CONTROLS, run

pytestmark = pytest.mark.slow


def test_strangers_hold_nobody_back():
    counts, problems = run(8, seed=1)
    assert not problems and len(counts) == 4


@pytest.mark.parametrize("control", CONTROLS)
def test_a_limit_that_is_missing_is_caught(control: str):
    assert run(2, control=control)[1]
