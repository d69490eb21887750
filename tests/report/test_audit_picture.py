"""The pictures of an audit, and its lower bound in words."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

import pytest

from dpcompose import BlackBox
from dpcompose.audit import AuditResult, Pair, Subject, Verdict, audit
from dpcompose.report.audit import bound_in_words
from dpcompose.report.audit_picture import audit_svgs, save_audit
from dpcompose.values.bound import Bound


def _response(truth: float) -> Subject:
    return Subject(lambda present: present ^ (random.random() > truth))


@pytest.fixture(scope="module")
def refuted() -> AuditResult:
    return audit(_response(0.9), [Pair(0, 1)], claim=BlackBox(1.0), alpha=1e-3)


def test_every_picture_is_drawn_and_said(refuted: AuditResult, tmp_path: Path) -> None:
    assert refuted.verdict is Verdict.REFUTED
    pictures = audit_svgs(refuted, alpha=1e-3)
    assert len(pictures) == 5 and all(
        "<title>" in svg and caption in svg for caption, svg in pictures
    )
    for name in ("a.png", "a.svg"):
        save_audit(tmp_path / name, refuted, alpha=1e-3)
        assert (tmp_path / name).stat().st_size > 10_000


def test_an_audit_without_bets_says_so() -> None:
    found = audit(_response(0.7), [Pair(0, 1)], claim=BlackBox(1.0), samples=30)
    assert len(audit_svgs(found, alpha=1e-6)) == 5
    assert bound_in_words(found) == "no lower bound yet at delta = 0; claimed: 1"


def test_the_bound_is_said_beside_the_claim(refuted: AuditResult) -> None:
    assert bound_in_words(replace(refuted, epsilon=Bound(1.5, 9.0))).endswith("above the claimed 1")
    said = bound_in_words(replace(refuted, epsilon=Bound(0.9, 9.0)))
    assert said.startswith(">= 0.9") and "which is refuted" in said
