"""Verdicts in words: they state values and their frequency in either world, and never a code or a
hash.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, audit

RNG = np.random.default_rng(2)


def says(rows: tuple[float, ...]) -> float:
    print("rows", len(rows))
    return RNG.laplace()


def mironov(rows: tuple[float, ...]) -> float:
    return sum(rows) + RNG.laplace()


def one_sided(rows: tuple[float, ...]) -> float:
    return len(rows) + random.expovariate(1.0)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (says, "beside printed"),
        (mironov, "the answer"),
        (one_sided, "the answer"),
        (lambda rows: 1 / len(rows), "ZeroDivisionError|the answer|the outcome"),
        (lambda rows: len(rows) if rows else 0.0, "the answer|the type|the outcome"),
    ],
)
def test_the_event_is_told_in_words(call: Callable[[Any], Any], words: str) -> None:
    subject, claim = Subject(call), BlackBox(1.0)
    found = audit(subject, [Pair((), (1.0,))], claim=claim, samples=6000, ladder=False)
    assert found.verdict is Verdict.REFUTED and re.search(words, found.event), found.event
    counts = re.search(
        r": in (\d+) of (\d+) answers of world 1, (\d+) of (\d+) of world 0;", found.event
    )
    assert counts is not None and not re.search(r"\d{9}", found.event)
    ones, all_ones, zeros, all_zeros = map(int, counts.groups())
    assert ones <= all_ones and zeros <= all_zeros
    likelier = ones * max(all_zeros, 1) > zeros * max(all_ones, 1)
    assert found.event.endswith(f"too likely in world {int(likelier)}")
