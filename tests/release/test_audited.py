"""Releases are audited by betting: correct designs are not refuted, and a design other than the
charged one is.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from campaigns.release.audit import QUESTIONS, neighbors
from campaigns.release.audited import World, audited_question, audited_session, audited_worlds
from dpcompose.audit import Verdict, audit
from dpcompose.release.aggregate import exact


@pytest.mark.parametrize(
    ("name", "columns"),
    [("count", 2), ("count by private keys", 6), ("mean", 3), ("histogram", 12), ("quantile", 2)],
)
def test_an_answer_is_a_row_of_numbers(name: str, columns: int) -> None:
    what = audited_question(QUESTIONS[name], *neighbors())
    for coins in (np.array([0, 1, 1]), np.zeros(3, dtype=int), np.ones(3, dtype=int)):
        rows = what.subject.draw(what.pair, coins)
        assert rows.shape == (3, columns)


def test_a_question_keeps_what_is_charged_and_half_its_noise_does_not() -> None:
    what = audited_question(QUESTIONS["count"], *neighbors())
    found = audit(what.subject, [what.pair], claim=what.claim, samples=600, ladder=False)
    assert found.verdict is Verdict.NOT_REFUTED
    half = replace(QUESTIONS["count"], spend={"epsilon": 4})
    worlds = [
        World(half.design(table), exact(table, half.design(table).aggregation))
        for table in neighbors()
    ]
    less = audited_worlds(worlds[0], worlds[1], claim=what.claim, name="count")
    assert (
        audit(less.subject, [less.pair], claim=less.claim, samples=2000, ladder=False).verdict
        is Verdict.REFUTED
    )


def test_a_session_is_played_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(
        tmp_path
    )  # the files below the working folder are looked at, and of many this is said
    what = audited_session([QUESTIONS["count"], QUESTIONS["units by keys"]], *neighbors())
    found = audit(what.subject, [what.pair], claim=what.claim, samples=24, ladder=False)
    assert found.verdict is Verdict.NOT_REFUTED and found.samples == 24 and not what.subject.notes
