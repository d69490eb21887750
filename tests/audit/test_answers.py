"""Answers of any type: the audit distinguishes all answers that a caller can, or its verdict names
the unread part.
"""

from __future__ import annotations

import datetime
import math
import os
import random
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from campaigns.audit_answers import CALLS, KINDS, Foreign, Slots, audited, frame
from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, audit
from dpcompose.audit.feature import Table
from dpcompose.audit.outcome import Outcome, rows_of
from dpcompose.audit.subject import Fresh
from dpcompose.report.audit import audit_page

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
PAIR = Pair((), (1.0,))


def separates(name: str) -> bool:
    """Whether some column of an answer beside noise tells the datasets apart, or a part is named as unread."""
    coins = np.tile([0, 1], 12)
    rows = rows_of([(random.gauss(), KINDS[name](int(coin))) for coin in coins])
    table = Table(rows)
    columns = [table.kind, *(table.column(path) for path in table.paths)]
    texts = [table.letters_at(path, most) for path, most in table.letters.items()]
    for column in (*columns, *(row for text in texts for row in text)):
        zero, one = (
            set(np.nan_to_num(column[coins == coin], nan=-math.pi).tolist()) for coin in (0, 1)
        )
        if not zero & one and len(zero) == len(one) == 1:
            return True
    return bool(table.unread)


def test_there_are_seventy_six_kinds_of_answers() -> None:
    assert len(KINDS) >= 76


@pytest.mark.parametrize("name", KINDS)
def test_a_difference_beside_noise_has_a_column_or_is_named_as_unread(name: str) -> None:
    assert separates(name)
    assert Outcome.of([KINDS[name](1)]).unread or Outcome.of([KINDS[name](0)]) != Outcome.of(
        [KINDS[name](1)]
    )


def test_equal_answers_are_read_alike() -> None:
    for name in KINDS:
        if name not in ("number in a text", "default of a mapping"):
            assert Outcome.of(KINDS[name](1)) == Outcome.of(KINDS[name](1)), name


BESIDE_NOISE = ["columns", "slots", "imaginary part", "return of a generator", "order of keys"]
"""The others are in `python -m campaigns.audit_answers`."""


@pytest.mark.parametrize("name", BESIDE_NOISE)
def test_the_difference_is_found_beside_noise(name: str) -> None:
    subject = Subject(lambda rows: (random.gauss(), KINDS[name](len(rows))))
    found = audit(subject, [PAIR], claim=BlackBox(1.0), samples=300, ladder=False)
    assert found.verdict is Verdict.REFUTED


@pytest.mark.parametrize("name", CALLS)
def test_what_a_call_shows_in_half_of_its_calls_is_found(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "environ", os.environ.copy())
    result = audited(name, 500, seed=1)  # with fresh coins one run in twenty misses a kind
    assert result.verdict is Verdict.REFUTED or result.unread


@pytest.mark.parametrize("fresh", [Fresh.CALL, Fresh.WORKER])
def test_coroutines_are_waited_for(fresh: Fresh) -> None:
    async def once(rows: Any) -> int:
        return len(rows)

    async def stream(rows: Any) -> AsyncIterator[int]:
        yield len(rows)

    for call in (once, stream):
        found = audit(
            Subject(call, fresh=fresh), [PAIR], claim=BlackBox(1.0), samples=150, ladder=False
        )
        assert found.verdict is Verdict.REFUTED


UNREAD: dict[str, Callable[[], Any]] = {
    "inside of a function": lambda: lambda: 0,
    "parts nested too deeply": lambda: __import__("functools").reduce(
        lambda inner, _: [inner], range(60), 1
    ),
    "numbers after the first 1,088": lambda: [0.5] * 2000,
    "items of a collection after the first 4,096": lambda: [None] * 5000,
    "items of an iterator after the first 4,096": lambda: iter(range(5000)),
    "letters of texts after the first 512": lambda: "a" * 600,
    "attributes of a Foreign": lambda: Foreign(0),
}


@pytest.mark.parametrize("fresh", [Fresh.CALL, Fresh.WORKER])
@pytest.mark.parametrize("name", UNREAD)
def test_the_verdict_names_what_was_not_looked_at(name: str, fresh: Fresh) -> None:
    found = audit(
        Subject(lambda rows: UNREAD[name](), fresh=fresh), [PAIR], claim=BlackBox(1.0), samples=24
    )
    assert any(each.startswith(name) for each in found.unread)
    page = audit_page(found)
    assert any(each.startswith(f"Not looked at: {name}") for each in page.notes)


def test_nothing_is_missed_in_common_answers() -> None:
    for value in (1, 2.5, "a", [1, {"a": 2.0}], np.zeros(9), frame(0), pd.Series([1.0]), pl.DataFrame({"a": [1]}),
                  pa.table({"a": [1]}), {1, 2}, Slots(1), datetime.datetime(2020, 1, 1), complex(1, 2)):  # fmt: skip
        assert Outcome.of(value).unread == ()
