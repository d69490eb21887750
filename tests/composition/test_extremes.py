"""A short campaign over parameters ten orders of magnitude apart. The long one is `python -m
campaigns.extremes`.
"""

from __future__ import annotations

import time

import pytest

from campaigns.extremes import VIOLATIONS, OutOfTimeError, Trial, drawn, limited, run


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, 10])
def test_no_law_is_broken(first: int) -> None:
    trial = run(range(first, first + 3), 1, Trial(seconds=0.3))
    assert not any(trial.counts[kind] for kind in VIOLATIONS), trial.lines
    assert trial.counts["cases"] == 3


def test_parameters_lie_ten_orders_apart() -> None:
    code = [drawn(number, 1).code for number in range(200)]
    assert len(set(code)) == 200 and {drawn(0, 1)} == {drawn(0, 1)}
    assert any("e-12)" in each or "e-11)" in each for each in code) and any(
        "Laplace" in each for each in code
    )
    assert min(drawn(number, 1).delta for number in range(200)) < 1e-250


def test_a_question_without_an_end_is_left() -> None:
    def endless(**_: object) -> None:
        start = time.process_time()
        while time.process_time() < start + 30:
            pass

    with pytest.raises(OutOfTimeError), limited(0.05):
        endless()
    trial = Trial(seconds=0.05)
    assert trial.read(drawn(0, 1), endless) is None and trial.counts["slow"] == 1


def test_violations_are_seen() -> None:
    trial, case = Trial(seconds=5.0), drawn(0, 1)
    assert trial.read(case, lambda **_: 1 / 0) is None and trial.counts["failed"] == 1
