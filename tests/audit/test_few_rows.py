"""An audit may end after any number of rows; the last batch of a pair may have a single row."""

from __future__ import annotations

import random
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, audit
from dpcompose.audit.learned import LEARNERS
from dpcompose.errors import DomainError

PAIRS = (Pair((0.0,), (1.0,)), Pair((), (1.0,)))


def _raises(rows: Any) -> None:
    if random.random() < 0.5:
        raise ValueError("x" * random.randrange(3))


ANSWERS: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda rows: random.gauss(0, 1),
    "texts": lambda rows: "abc" * random.randrange(4),
    "nothing": lambda rows: None,
    "errors": _raises,
    "lists": lambda rows: [random.random() for _ in range(random.randrange(5))],
    "arrays": lambda rows: np.array([random.random(), 1.0]),
    "mappings": lambda rows: {"a": random.random(), str(random.randrange(3)): 1},
    "anything": lambda rows: random.choice([1, "a", None, 2.5, [1], b"x"]),
}


@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS.keys())
def test_any_number_of_rows(answer: Callable[[Any], Any]) -> None:
    for samples in (1, 2, 3, 5, 23, 25, 26, 49, 73, 97, 121):
        try:
            found = audit(
                Subject(answer), PAIRS, claim=BlackBox(1.0), samples=samples, learners=LEARNERS
            )
        except DomainError as error:  # each call raised: of few calls that happens
            assert answer is _raises and samples <= 26 and f"{samples} calls, none" in str(error)
            continue
        assert found.samples == samples and found.verdict is Verdict.NOT_REFUTED


def test_slow_calls_end_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [0.0]

    def slow(rows: Any) -> float:
        clock[0] += 1.0
        return random.gauss(0, 1)

    monkeypatch.setattr(
        import_module("dpcompose.audit.audit"), "time", SimpleNamespace(monotonic=lambda: clock[0])
    )
    found = audit(Subject(slow), PAIRS[:1], claim=BlackBox(1.0), seconds=100, learners=LEARNERS)
    assert found.samples == clock[0] == 100
