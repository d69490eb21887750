"""docs/book.md: every numbered statement of sections 2.3 and 3.5 in order, with a row, a section and an example."""

from __future__ import annotations

import math
import re
from fractions import Fraction
from pathlib import Path

import pytest

from dpcompose import book
from dpcompose.divergence import max_ratio
from dpcompose.guarantee.gaussian import gaussian_mu

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
    "Theorem 3.22",
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
    for number in (*book.STATEMENTS, *book.ELSEWHERE):
        kind, printed = (
            found.groups() if (found := re.match(r"([a-z]+ )?([\d.]+)", number)) else ("", number)
        )
        title = f"{kind or ''}{printed}".capitalize()
        assert printed == "optimal" or any(
            each.endswith(f"{'' if kind else ' '}{title}") for each in PRINTED
        ), number


def test_every_printed_statement_is_evaluated_or_named() -> None:
    known = {
        each.split()[0] if each[0].isdigit() else each
        for each in (*book.STATEMENTS, *book.ELSEWHERE)
    }
    bare = [re.sub(r"^(theorem|corollary|lemma|section) ", "", title.lower()) for title in PRINTED]
    assert set(bare) == known - {"optimal"}


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`book\.(\w+)`", PAGE))))
def test_named_calls_exist(name: str) -> None:
    assert name in dir(book)


DOCS = Path(__file__).parents[2] / "docs"
CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
PROSE = {
    name: CODE.sub("", (DOCS / name).read_text("utf-8"))
    for name in ("book.md", "book.zh.md", "questions.md")
}
PROSE["play/example-3-7.md"] = (DOCS / "play" / "example-3-7.md").read_text("utf-8")
PROSE["the docstring"] = book.example_3_7.__doc__ or ""
PROSE["the caveats"] = " ".join(book.STATEMENTS["example 3.7"].caveats)


@pytest.mark.parametrize("name", PROSE)
def test_example_3_7_is_bracketed_the_same_way_everywhere(name: str) -> None:
    assert "1/781" in PROSE[name] and "1/776" in PROSE[name] and "1/785" not in PROSE[name]


def test_theorem_3_14_needs_fresh_coins() -> None:
    coin = {0: Fraction(2, 3), 1: Fraction(1, 3)}
    alone = [{x ^ c: mass for c, mass in coin.items()} for x in (0, 1)]
    together = [{(x ^ c, c): mass for c, mass in coin.items()} for x in (0, 1)]
    assert (max_ratio(*alone), max_ratio(coin, coin), max_ratio(*together)) == (2, 1, math.inf)
    row = next(cells for title, _, cells in ROWS if title == "Theorem 3.14")
    assert "must be fresh" in row and "independence is not needed" not in PAGE.lower()
    assert "不需要独立性" not in PROSE["book.zh.md"] and "硬币必须是新的" in PROSE["book.zh.md"]
    assert "fresh" in " ".join(book.STATEMENTS["3.14"].caveats)


def test_theorem_3_22_is_38_percent_too_large_at_its_example() -> None:
    least = 1 / gaussian_mu(0.5, delta=1e-5).upper
    assert book.gaussian_noise(0.5, delta=1e-5) / least == pytest.approx(1.38, abs=0.005)
    assert "38 percent" in section("Theorem 3.22") and "38%" in PROSE["book.zh.md"]
    assert "by a third" not in PAGE and "松三分之一" not in PROSE["book.zh.md"]
    assert "38 percent" in book.STATEMENTS["3.22"].caveats[0]


def test_what_solves_theorem_3_20_is_named_where_it_is_solved() -> None:
    assert "book.advanced_inverse(total" in section("Corollary 3.21")
    assert round(book.advanced_inverse(0.9, slack=1e-6, times=100), 6) == 0.016593


@pytest.mark.parametrize("name", ["misprints.md", "misprints.zh.md"])
def test_one_word_for_two_things_is_no_misprint_of_the_translation(name: str) -> None:
    page = (DOCS / name).read_text("utf-8")
    assert "synthesis" not in page and "用同一个词" not in page


@pytest.mark.parametrize("name", ["misprints.md", "misprints.zh.md"])
def test_the_slips_of_the_translation_are_listed(name: str) -> None:
    page = (DOCS / name).read_text("utf-8").replace("k 因子", "k因子")
    slips = [
        "k因子",
        "收益隐私",
        "三英里",
        "弹性",
        "保持不变",
        "重新制定最大散度公式",
        "合成",
        "没有协调",
    ]
    slips += ["数据库间协调", "差分私有", "k 倍", "数据提供者"]
    assert [slip for slip in slips if slip not in page] == []
