"""docs/book.md: every numbered statement of sections 2.3 and 3.5 in order, with a row, a section and an example."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dpcompose import book

PAGE = (Path(__file__).parents[2] / "docs" / "book.md").read_text()
PRINTED = [
    "Definition 2.1",
    "Definition 2.2",
    "Definition 2.3",
    "Definition 2.4",
    "Proposition 2.1",
    "Theorem 2.2",
    "Section 2.3.1",
    "Theorem 3.14",
    "Corollary 3.15",
    "Theorem 3.16",
    "Definition 3.5",
    "Definition 3.6",
    "Remark 3.1",
    "Lemma 3.17",
    "Lemma 3.18",
    "Lemma 3.19",
    "Definition 3.7",
    "Theorem 3.20",
    "Corollary 3.21",
    "Example 3.7",
]
ROWS = re.findall(r"^\| \[([^\]]+)\]\(#([^)]+)\) \| (.+) \|$", PAGE, re.MULTILINE)


def section(title: str) -> str:
    """The text below a heading, up to the next one."""
    found = re.search(rf"^### {re.escape(title)}: .*\n((?:(?!^##).*\n?)*)", PAGE, re.MULTILINE)
    assert found, f"no section on {title}"
    return found[1]


def test_rows_in_the_order_of_the_book() -> None:
    assert [title for title, _, _ in ROWS if title in PRINTED] == PRINTED


@pytest.mark.parametrize(("title", "anchor", "cells"), ROWS, ids=[title for title, _, _ in ROWS])
def test_row_is_whole_and_leads_to_its_section(title: str, anchor: str, cells: str) -> None:
    says, call, erratum = re.split(r"(?<!\\)\|", cells)
    assert all(cell.strip() for cell in (says, call, erratum))
    headings = re.findall(r"^### (.+)$", PAGE, re.MULTILINE)
    anchors = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    assert anchor in anchors


@pytest.mark.parametrize("title", PRINTED)
def test_section_has_an_executed_example(title: str) -> None:
    assert "\n>>> " in section(title)


def test_every_statement_that_can_be_evaluated_has_a_section() -> None:
    for number in book.STATEMENTS:
        printed = number.removeprefix("example ").split()[0]
        assert printed == "optimal" or any(title.endswith(f" {printed}") for title in PRINTED), number


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`book\.(\w+)`", PAGE))))
def test_named_calls_exist(name: str) -> None:
    assert name in book.__all__
