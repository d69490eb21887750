"""Short versions of the campaigns that kill what answers statements, and that ask about odd people."""

from __future__ import annotations

import pytest

pytest.importorskip("duckdb")
pytest.importorskip("opendp")
from campaigns.service import answers, hostile

pytestmark = pytest.mark.slow
REVEALS: dict[str, str] = dict(
    zip(
        answers.CONTROLS,
        ("before charge", "after charge", "after draw", "half kept", "after redeem"),
        strict=True,
    )
)
"""The step at which a death shows that a promise is broken."""


def test_whatever_is_killed_a_key_has_one_visible_draw_and_one_charge():
    report = answers.run(3, steps=["half kept", "after charge"])
    assert not report.problems and report.kills.total() == 3
    assert report.closed and report.visible and report.spent


@pytest.mark.parametrize("control", answers.CONTROLS)
def test_what_breaks_a_promise_is_caught(control: str):
    assert answers.run(1, control=control, steps=[REVEALS[control]], moments=False).problems


def test_odd_people_change_nothing_but_numbers():
    report = hostile.run(2, seed=3)
    assert report.outcomes.total() == 2 and not report.problems


def test_a_person_who_costs_more_work_is_found():
    assert any("s more with" in each for each in hostile.run(2, seed=3, slow=True).problems)


def test_a_function_that_fails_on_an_odd_person_is_found():
    assert hostile.run(2, seed=3, defect=True).problems
