"""The table of docs/adaptivity.md is what the script prints; two runs take a minute and are left to the script."""

from __future__ import annotations

from pathlib import Path

import pytest

from examples.adaptivity import rounds

pytestmark = pytest.mark.slow

QUICK = [
    name
    for name in rounds.RUNS
    if name not in ("Laplace noise, zooming in", "counts, means and choices")
]
PAGE = Path(__file__).parents[2] / "docs" / "adaptivity.md"


@pytest.fixture(scope="module")
def printed() -> list[str]:
    return list(rounds.table(1.0, 1e-6, runs=QUICK))


def test_the_page_shows_what_the_script_counts(printed: list[str]) -> None:
    assert len(printed) == 2 + len(QUICK)
    page = PAGE.read_text(encoding="utf-8").splitlines()
    first = page.index(printed[0])
    assert [
        line for line in page[first : first + 2 + len(rounds.RUNS)] if line in printed
    ] == printed
    assert [name for name in rounds.RUNS if f"| {name} |" in PAGE.read_text(encoding="utf-8")] == [
        *rounds.RUNS
    ]


def test_no_filter_grants_more_than_what_was_fixed_in_advance(printed: list[str]) -> None:
    for line in printed[2:]:
        *counts, limit = (cell.strip() for cell in line.strip("|").split("|")[1:])
        assert all(count == "-" or int(count) <= int(limit) for count in counts)
