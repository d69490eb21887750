"""Every case of the benchmark is answered as narrowly as the benchmark demands. No peer is run, nothing is timed."""

from __future__ import annotations

import pytest

from benchmarks.case import Case
from benchmarks.catalog import TARGETS, cases
from benchmarks.systems import ours


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name + f", delta {case.delta:g}")
def test_the_answer_is_as_narrow_as_is_demanded(case: Case) -> None:
    answer = ours.confirmed(case, ours.solve(case))
    wanted = TARGETS[case.group].width
    assert 0 < answer.lower <= answer.upper
    assert wanted is None or answer.upper - answer.lower <= wanted * answer.upper
