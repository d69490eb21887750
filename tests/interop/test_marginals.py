"""Marginals and synthetic data with the graphical model of mbi: the page's example, and what comes of a measurement."""

from __future__ import annotations

from pathlib import Path

import pytest

from dpcompose.release.aim import GraphicalModel, Marginal
from tests.interop.conftest import library
from tests.test_docs import ROOT, blocks, run_block

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("ignore")]


@pytest.fixture(autouse=True)
def installed() -> None:
    for name in ("mbi", "duckdb", "opendp"):
        library(name)


def test_the_model_agrees_with_what_was_measured() -> None:
    sizes, noise = (2, 3, 2), 1.0
    pairs = (
        Marginal((0, 1), (40, 10, 0, 0, 20, 30), noise),
        Marginal((1, 2), (40, 0, 15, 15, 0, 30), noise),
    )
    start = GraphicalModel(sizes).after([Marginal((0,), (50, 50), noise)])
    assert start.megabytes((0,)) == 0 < start.megabytes((0, 1)) < start.megabytes((0, 1, 2)) < 0.01
    model = start.after([*pairs])
    assert model.counts((0, 1)) == pytest.approx([40, 10, 0, 0, 20, 30], abs=0.5)
    # Given the second column the others are independent.
    assert model.counts((0, 1, 2)) == pytest.approx([40, 0, 5, 5, 0, 0, 0, 0, 10, 10, 0, 30], abs=1)
    rows = list(zip(*model.sample(1000), strict=True))
    assert len(rows) == 1000
    assert sum(row[:2] == (0, 2) for row in rows) < 10
    assert abs(sum(row == (0, 0, 0) for row in rows) - 400) < 30


def test_the_example_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    namespace: dict[str, object] = {"__name__": "release.md"}
    shown = [
        block
        for block in blocks((ROOT / "docs" / "release.md").read_text())
        if block.needs == "mbi"
    ]
    assert len(shown) == 2
    for block in shown:
        run_block(block, "release.md", tmp_path, namespace)
