"""The sparse vector technique: charged once when opened, closed by the last answer "above", and
never resumed.
"""

from __future__ import annotations

import copy
import pickle
from collections import Counter
from typing import Any

import pytest

from dpcompose.account import Account, open_scope
from dpcompose.adaptive import PureFilter
from dpcompose.errors import (
    AlreadyRedeemedError,
    DomainError,
    OverdrawnError,
    SpentError,
    UnsupportedError,
)
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import AboveThreshold
from dpcompose.release import SparseVector


def account(epsilon: float = 1.0) -> Account:
    ledger = Ledger.open("memory:")
    open_scope(ledger, "alarms", filter=PureFilter(epsilon), actor="Ada")
    return Account(ledger, scope="alarms")


def opened(
    where: Account, mechanism: AboveThreshold, key: str = "one", **given: Any
) -> SparseVector:
    arguments: dict[str, Any] = {"threshold": 1000, "actor": "Ada", "key": key} | given
    return SparseVector.open(where, mechanism, **arguments)


def test_one_charge_for_any_number_of_answers_below() -> None:
    where = account()
    vector = opened(where, AboveThreshold(0.5, positives=2))
    assert not any(vector.above(-10_000) for _ in range(200))
    assert float(where.left()["epsilon"].fraction) == 0.5 and vector.left == 2
    assert vector.above(10_000) and not vector.closed and vector.above(10_000) and vector.closed
    with pytest.raises(SpentError, match="charged anew"):
        vector.above(0)
    assert float(where.left()["epsilon"].fraction) == 0.5


def test_to_resume_is_to_charge_again() -> None:
    where = account()
    first = opened(where, AboveThreshold(0.7))
    with pytest.raises(AlreadyRedeemedError):
        opened(where, AboveThreshold(0.7))
    with pytest.raises(OverdrawnError):
        opened(where, AboveThreshold(0.4), key="two")
    opened(where, AboveThreshold(0.3), key="three").close()
    for again in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(UnsupportedError, match="one process"):
            again(first)
    assert "threshold" not in repr(first) and not [
        name for name in vars(first) if name.endswith("scales")
    ]


def test_what_is_refused_costs_nothing() -> None:
    where = account()
    refused: list[dict[str, Any]] = [
        {"threshold": 0.5},
        {"threshold": True},
        {"sensitivity": 0},
        {"sensitivity": 2**60},
    ]
    for given in refused:
        with pytest.raises(DomainError):
            opened(where, AboveThreshold(0.5), **given)
    with pytest.raises(DomainError, match="epsilon > 0"):
        opened(where, AboveThreshold(0.0))
    assert float(where.left()["epsilon"].fraction) == 1.0
    vector = opened(where, AboveThreshold(0.5))
    for wrong in (0.5, True, "1", None, 2**63):
        with pytest.raises(DomainError, match="value"):
            vector.above(wrong)  # pyright: ignore[reportArgumentType]
    assert vector.left == 1


def test_the_noise_has_the_scales_of_the_mechanism() -> None:
    """One question at the threshold: the difference of both noises is symmetric, and beyond its spread at times."""
    counts: Counter[int] = Counter()
    for gap in (-6, 0, 6):
        for turn in range(200):
            where = account()
            counts[gap] += opened(where, AboveThreshold(1.0), key=str(turn), threshold=0).above(gap)
    # P[nu - rho >= -gap] at scales 2.587 and 3.260: about 0.85, 0.54 and 0.18; six deviations wide.
    assert 139 < counts[6] < 200 and 65 < counts[0] < 151 and 3 < counts[-6] < 69
