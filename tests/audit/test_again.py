"""New draws confirm true certificates and no forged ones; certificates of older versions are still
verified.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, again, audit, check
from dpcompose.audit.certificate import text_of
from dpcompose.errors import DomainError

OLD = Path(__file__).parents[1] / "data" / "audit_certificate.json"
PAIRS = [Pair(0.0, 1.0)]
ALPHA = 1e-6


def laplace(seed: int, scale: float) -> Subject:
    rng = np.random.default_rng(seed)
    return Subject(
        batch=lambda data, n: np.round((data + rng.laplace(scale=scale, size=n)) * 2**30) / 2**30
    )


def one_sided(seed: int) -> Subject:
    rng = np.random.default_rng(seed)
    return Subject(batch=lambda data, n: np.round((data + rng.exponential(size=n)) * 2**30) / 2**30)


@pytest.mark.parametrize(
    "make", [one_sided, lambda seed: laplace(seed, 0.5)], ids=["one-sided", "half the scale"]
)
def test_a_true_certificate_is_confirmed(make: Any) -> None:
    for seed in range(4):
        found = audit(
            make(seed), PAIRS, claim=BlackBox(1.0), alpha=ALPHA, samples=20_000, ladder=False
        )
        assert found.verdict is Verdict.REFUTED and found.certificate is not None
        assert again(found.certificate, make(100 + seed)).refuted


def test_a_correct_mechanism_is_not_refuted_by_the_bets_that_go_on() -> None:
    found = audit(
        laplace(1, 0.5), PAIRS, claim=BlackBox(1.0), alpha=0.05, samples=20_000, ladder=False
    )
    assert found.certificate is not None
    wealth = [
        again(found.certificate, laplace(seed, 1.0), PAIRS, samples=400).log_wealth
        for seed in range(12)
    ]
    assert sum(each >= math.log(20) for each in wealth) <= 3


def test_limits_of_new_draws() -> None:
    whole = json.loads(OLD.read_text())
    calls: list[int] = []
    subject = Subject(batch=lambda data, n: calls.append(n) or np.zeros(n))
    again(whole, subject, [Pair((), (1.0,))], samples=100)
    assert sum(calls) <= 100
    with pytest.raises(DomainError, match="samples"):
        again(whole, subject, [Pair((), (1.0,))], samples=0)


def test_a_certificate_of_an_earlier_version_is_checked_as_before() -> None:
    text = OLD.read_text()
    found = check(text)
    assert (
        found["refuted"]
        and found["samples"] == 265
        and found["log_wealth"] == pytest.approx(13.951701656559974)
    )
    assert text_of(json.loads(text)) == text.rstrip("\n")

    def labelled(rows: Any) -> dict[Any, Any]:
        return {"count": len(rows) + random.expovariate(1.0), "label": "abc", 1: 2.0}

    assert again(json.loads(text), Subject(labelled), [Pair((), (1.0,))]).refuted
