"""Questions asked in one batch have the same exact integers as each asked alone."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.engines import BOUNDS, QUESTIONS, odd
from dpcompose.release import aggregate
from dpcompose.release.aggregate import Scan, exact
from dpcompose.release.truncation import Sampling

SAMPLING = Sampling(b"a scope's")
TOGETHER = [
    ["count", "units", "sum of doubles", "median", "variance", "histogram"],
    ["count by text", "units by text", "sum of doubles by text", "mean", "quantile by text"],
    [
        "count by private text",
        "sum of doubles by private text",
        "histogram of integers by private text",
    ],
    [
        "sum of truths",
        "sum of truths",
        "units",
        "count by date",
        "count by two",
        "sum of huge integers",
    ],
]


def alone(table: release.Table, name: str) -> Any:
    what = QUESTIONS[name].design(table).aggregation
    return exact(table, what, SAMPLING)


def together(table: release.Table, names: list[str]) -> list[Any]:
    return Scan.of(
        table, [QUESTIONS[name].design(table).aggregation for name in names], SAMPLING
    ).exact()


@pytest.mark.parametrize("bounds", ["3 rows", "2 groups of 2", "many rows"])
def test_questions_asked_together_have_the_same_integers(bounds: str) -> None:
    rng = random.Random(bounds)
    table = release.table(tables.arrow(odd(12, 4)), **BOUNDS[bounds])
    names = rng.sample([*QUESTIONS], 3)
    for each in (rng.choice(TOGETHER), names):
        assert together(table, each) == [alone(table, name) for name in each]


@pytest.mark.parametrize(
    "names",
    [
        ["count", "variance", "median"],
        ["mean by private date", "deviation by private text", "sum of integers"],
    ],
)
def test_squares_share_the_order_of_their_column(names: list[str]) -> None:
    table = release.table(tables.arrow(odd(12, 4)), **BOUNDS["3 rows"])
    assert together(table, names) == [alone(table, name) for name in names]


def test_units_with_rows_that_count_for_some_questions_only_are_bounded_for_each(
    monkeypatch: Any,
) -> None:
    table = release.table(tables.arrow(odd(60, 3)), **BOUNDS["3 rows"])
    names = ["histogram", "sum of doubles"]
    assert together(table, names) == [alone(table, name) for name in names]
    # The control: as if what is in no bin were in none of the sum.
    monkeypatch.setattr(aggregate, "_decider", lambda what: True)
    assert together(table, names) != [alone(table, name) for name in names]


def test_a_batch_sorts_the_rows_of_questions_that_share_once() -> None:
    schema = pa.schema([pa.field("p", pa.int64(), nullable=False), pa.field("x", pa.int64())])
    table = release.table(
        pa.table({"p": [1, 1, 2], "x": [1, 2, None]}, schema=schema), unit="p", max_rows_per_unit=1
    )
    spend: dict[str, Any] = {"epsilon": 1}
    ends: dict[str, Any] = {"lower": 0, "upper": 9}
    questions = [release.Sum("x", **ends, spend=spend), release.Mean("x", **ends, spend=spend)]
    words = Scan.of(
        table, [question.design(table).aggregation for question in questions]
    ).statement.words
    one = Scan.of(table, [questions[0].design(table).aggregation]).statement.words
    assert words.count(" OVER ") == one.count(" OVER ") > 0
