"""The pictures of an audit, and its lower bound in words."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from matplotlib.figure import Figure

from dpcompose import BlackBox
from dpcompose.audit import AuditResult, Pair, Subject, Verdict, audit
from dpcompose.report import pictures, save
from dpcompose.report.audit import bound_in_words
from dpcompose.values.bound import Bound


def _response(truth: float) -> Subject:
    return Subject(lambda present: present ^ (random.random() > truth))


@pytest.fixture(scope="module")
def refuted() -> AuditResult:
    return audit(_response(0.9), [Pair(0, 1)], claim=BlackBox(1.0), alpha=1e-3)


def _drawn(result: AuditResult) -> list[Any]:
    axes = [Figure().subplots() for _ in range(2)]
    for each, picture in zip(axes, pictures(result), strict=True):
        picture.draw(each)
    return axes


def test_every_picture_is_drawn_and_said(refuted: AuditResult, tmp_path: Path) -> None:
    assert refuted.verdict is Verdict.REFUTED
    for picture in pictures(refuted):
        assert "<title>" in picture.svg() and picture.caption in picture.svg()
    wealth, score = _drawn(refuted)
    assert wealth.lines[0].get_ydata()[-1] >= wealth.lines[1].get_ydata()[0] == 3
    limits, measured = (each.get_ydata() for each in score.lines)
    assert limits[-1] == measured[-1] == 1 and measured[0] == 0 < limits[1]
    assert max(measured[1:-1]) > 0.8
    for name in ("a.png", "a.svg"):
        save(tmp_path / name, refuted)
        assert (tmp_path / name).stat().st_size > 10_000


def test_an_audit_without_bets_says_so() -> None:
    result = audit(Subject(lambda _: 0), [Pair(0, 1)], claim=BlackBox(1.0), samples=30)
    assert _drawn(result)[1].texts[0].get_text() == "nothing was bet"
    assert bound_in_words(result) == "no lower bound yet at delta = 0; claimed: 1"


def test_the_bound_is_said_beside_the_claim(refuted: AuditResult) -> None:
    assert bound_in_words(replace(refuted, epsilon=Bound(1.5, 9.0))).endswith("above the claimed 1")
    said = bound_in_words(replace(refuted, epsilon=Bound(0.9, 9.0)))
    assert said.startswith(">= 0.9") and "which is refuted" in said
