"""docs/questions.md: every statement, example, remark and question of the text has its page and its call."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import dpcompose
from dpcompose import book

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "questions.md").read_text(encoding="utf-8")

# What the text holds, in its order: the section, the kind, and words by which a reader knows it.
TEXT = [
    ("2.3", "remark", "two (epsilon, 0) mechanisms"),
    ("2.3", "remark", "epsilons and deltas add up"),
    ("2.3", "remark", "group privacy gets weaker"),
    ("2.3", "reader's note", "M2(M1(x))"),
    ("2.3", "theorem", "Theorem 2.2"),
    ("2.3", "example", "one family"),
    ("2.3", "remark", "not the same thing"),
    ("2.3", "question", "not help a group"),
    ("2.3", "remark", "k e^((k-1) epsilon) delta"),
    ("2.3", "statement", "Section 2.3.1"),
    ("2.3", "reader's note", "probability simplex"),
    ("2.3", "remark", "Proposition 2.1"),
    ("2.3", "remark", "1 + epsilon"),
    ("2.3", "remark", "does not depend on the utility"),
    ("3.5", "remark", "repeated Laplace answers"),
    ("3.5", "question", "how exactly do epsilon and delta compose"),
    ("3.5", "theorem", "Theorem 3.14"),
    ("3.5", "theorem", "Corollary 3.15"),
    ("3.5", "theorem", "Theorem 3.16"),
    ("3.5", "remark", "composition is automatic"),
    ("3.5.1", "remark", "denominator is 0"),
    ("3.5.1", "definition", "Definition 3.5"),
    ("3.5.1", "remark", "no triangle inequality"),
    ("3.5.1", "reader's note", "support"),
    ("3.5.1", "definition", "Definition 3.6: max divergence"),
    ("3.5.1", "definition", "Definition 3.6: delta-approximate"),
    ("3.5.1", "remark", "Remark 3.1"),
    ("3.5.1", "definition", "statistical distance"),
    ("3.5.1", "lemma", "Lemma 3.17, part 1"),
    ("3.5.1", "lemma", "Lemma 3.17, part 2"),
    ("3.5.1", "lemma", "Lemma 3.18"),
    ("3.5.1", "lemma", "Lemma 3.19"),
    ("3.5.2", "remark", "scenario 1"),
    ("3.5.2", "remark", "scenario 2"),
    ("3.5.2", "remark", "influence future databases"),
    ("3.5.2", "definition", "experiment b"),
    ("3.5.2", "remark", "its view is its coins"),
    ("3.5.2", "example", "the real world"),
    ("3.5.2", "definition", "Definition 3.7: epsilon"),
    ("3.5.2", "definition", "Definition 3.7 with delta"),
    ("3.5.2", "theorem", "Theorem 3.20"),
    ("3.5.2", "theorem", "Corollary 3.21"),
    ("3.5.2", "question", "quadratic equation"),
    ("3.5.2", "remark", "better constants"),
    ("3.5.2", "example", "Example 3.7"),
    ("3.5.2", "remark", "1/801 suffices"),
    ("3.5.2", "remark", "best possible against any adversary"),
    ("3.5.2", "question", "nontrivial accuracy"),
    ("3.5.2", "remark", "nearly n^2 counting queries"),
    ("3.5.2", "remark", "o(sqrt(n))"),
    ("3.5.2", "remark", "exponentially many"),
    ("3.5.2", "remark", "almost tight"),
]


def _rows() -> list[tuple[str, list[str]]]:
    rows: list[tuple[str, list[str]]] = []
    section = ""
    for line in PAGE.splitlines():
        section = found[1] if (found := re.match(r"## Section ([\d.]+):", line)) else section
        if line.startswith("| ") and not line.startswith("| kind"):
            rows.append((section, [cell.strip() for cell in line.strip("|").split("|")]))
    return rows


ROWS = _rows()


def test_every_passage_has_its_row_in_the_order_of_the_text() -> None:
    assert len(ROWS) == len(TEXT)
    listed = [(section, cells[0], cells[1]) for section, cells in ROWS]
    pairs = zip(TEXT, listed, strict=True)
    assert [
        (text, row) for text, row in pairs if text[:2] != row[:2] or text[2] not in row[2]
    ] == []


def _anchors(page: str) -> set[str]:
    headings = re.findall(r"^#{1,4} (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def _linked(cell: str) -> bool:
    found = re.fullmatch(r"\[[^\]]+\]\(([\w.-]+\.md)(?:#([\w-]+))?\)", cell)
    if found is None or not (DOCS / found[1]).exists():
        return False
    return found[2] is None or found[2] in _anchors((DOCS / found[1]).read_text(encoding="utf-8"))


def _callable(cell: str) -> bool:
    name = cell.strip("`")
    if name.startswith("."):
        return hasattr(dpcompose.Composition, name[1:])
    *rooms, last = name.split(".")
    place: Any = import_module(".".join(("dpcompose", *rooms)))
    return hasattr(place, last)


@pytest.mark.parametrize(("section", "cells"), ROWS, ids=[cells[1][:40] for _, cells in ROWS])
def test_every_row_has_an_answer_a_page_and_a_call(section: str, cells: list[str]) -> None:
    _, _, answer, page, call = cells
    assert section and answer
    assert _linked(page), page
    assert _callable(call), call


def test_a_wrong_link_or_call_is_found() -> None:
    assert not _linked("[Theorem 9.9](book.md#theorem-99)")
    assert not _linked("[nothing](nothing.md)")
    assert not _callable("`book.nothing`")


def test_the_misprints_are_listed_by_section() -> None:
    page = (DOCS / "misprints.md").read_text(encoding="utf-8")
    assert re.findall(r"^## Section ([\d.]+)$", page, re.MULTILINE) == [
        "2.3",
        "3.5",
        "3.5.1",
        "3.5.2",
    ]
    for known in ("P[M2(x) = r2] / P[M2(x) = r2]", "at most 1", "numbered 3.16"):
        assert known in page


def test_the_caption_of_the_picture_is_true() -> None:
    def worse(times: int) -> bool:
        return (
            book.advanced(0.01, times=times, slack=1e-6).epsilon
            > book.basic([(0.01, 0.0)] * times).epsilon
        )

    found = re.search(
        r"the theorem is above the sum up to k = (\d+)",
        (DOCS / "book.md").read_text(encoding="utf-8"),
    )
    assert found is not None
    assert worse(int(found[1])) and not worse(int(found[1]) + 1)
