"""Short versions of the campaigns; the long ones are commands (docs/release.md)."""

from __future__ import annotations

import pytest
from campaigns.release import audit, kills, neighbors


def test_neighbors_differ_in_numbers_only() -> None:
    assert neighbors.run(60, seed=7) == []


@pytest.mark.parametrize("name", audit.QUESTIONS)
def test_no_event_tells_neighbors_apart_too_well(name: str) -> None:
    # 2,000 draws on either side: reports a violation by chance with probability at most 1e-9.
    assert not audited(name).violated


def audited(name: str) -> audit.Excess:
    return audit.audited(audit.QUESTIONS[name], 2000, 1e-9)


def test_whole_sessions_neither() -> None:
    # 100 sessions on either side, by chance with probability at most 1e-9.
    assert not audit.sessions(100, 1e-9).violated


@pytest.mark.parametrize("name", audit.PLANTED)
def test_planted_defects_are_found(name: str) -> None:
    # Their excess is above 0.4, the margin below 0.3: missed with a probability far below 1e-9.
    assert audit.PLANTED[name](4000).violated


def test_a_kill_leaves_no_answer_without_its_charge() -> None:
    wrong, answers, _ = kills.run(12, seed=3)
    assert wrong == []
    assert answers > 0
