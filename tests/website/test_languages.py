"""English and Chinese pages: the same headings, the same code, the field's terms."""

# ruff: noqa: RUF001 (Chinese punctuation)
from __future__ import annotations

import re
from pathlib import Path

import pytest

from website.languages import (
    CODE,
    anchored,
    chinese_of,
    headings,
    linked,
    pages,
    slug,
    with_code_of,
)

ROOT = Path(__file__).parents[2]
PAGES = pages()
PLAYED = [
    page for page in (ROOT / "docs" / "play").glob("*.md") if not page.name.endswith(".zh.md")
]
TERMS = ("隐私损失", "组合", "群体隐私", "近似最大散度", "统计距离", "隐私预算")


def _both(page: Path) -> tuple[str, str]:
    return page.read_text("utf-8"), chinese_of(page).read_text("utf-8")


def test_the_pages_that_are_promised_in_chinese_are_there() -> None:
    names = {str(page.relative_to(ROOT)) for page in PAGES}
    assert {
        "README.md",
        "docs/book.md",
        "docs/notation.md",
        "docs/misprints.md",
        "docs/proofs.md",
        "docs/questions.md",
        "docs/experiment.md",
        "docs/averaging.md",
        *(f"docs/tutorials/{name}.md" for name in ("ledger", "table", "training")),
        *(f"docs/play/{page.name}" for page in PLAYED),
    } <= names
    assert len(PLAYED) == 8


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_both_languages_have_the_same_headings_and_code(page: Path) -> None:
    english, chinese = _both(page)
    assert [level for level, _ in headings(english)] == [level for level, _ in headings(chinese)]
    assert CODE.findall(english) == CODE.findall(chinese), "run python -m website.languages"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_tables_have_the_same_rows(page: Path) -> None:
    rows = [len(re.findall(r"^\|", CODE.sub("", text), re.MULTILINE)) for text in _both(page)]
    assert rows[0] == rows[1]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_a_chinese_page_links_to_chinese_pages_and_headings_that_exist(page: Path) -> None:
    chinese = chinese_of(page)
    links = re.findall(r"\]\(((?:[\w./-]+\.md)?)(?:#([^)\s]+))?\)", chinese.read_text("utf-8"))
    assert page.name == "README.md" or links or "](" not in chinese.read_text("utf-8")
    for file, anchor in links:
        target = chinese.parent / file if file else chinese
        assert target.exists(), file
        assert (
            file == "README.md" or target.name.endswith(".zh.md") or not chinese_of(target).exists()
        ), file
        found = {slug(words) for _, words in headings(target.read_text("utf-8"))}
        assert not anchor or anchor in found, f"{file}#{anchor}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_on_the_site_links_have_the_english_names_and_anchors(page: Path) -> None:
    shown = linked(chinese_of(page))
    assert not re.search(r"\]\([^)#]*\.zh\.md[)#]", shown)
    anchors = {slug(words) for _, words in headings(page.read_text("utf-8"))}
    assert set(re.findall(r"\]\(#([^)]+)\)", shown)) <= anchors


def test_the_book_uses_the_terms_of_the_field() -> None:
    book = (ROOT / "docs" / "book.zh.md").read_text("utf-8")
    assert [term for term in TERMS if term not in book] == []
    assert not re.search("差异隐私|差别隐私|群隐私", book)
    beside = re.sub(r"（(?:译本：)?[^（）]*合成[^（）]*）|高级组合高级合成|译本合成定理", "", book)
    assert "合成" in book and "合成" not in beside  # the translation's word, beside the field's


def test_a_witness_is_a_witness() -> None:
    book = (ROOT / "docs" / "book.zh.md").read_text("utf-8")
    assert "见证" in book and "证据" not in book


def test_the_numbers_of_the_book_are_the_same() -> None:
    english, chinese = _both(ROOT / "docs" / "book.md")
    numbers = re.compile(r"\b[23]\.\d{1,2}\b")
    sections = [
        [numbers.findall(words) for _, words in headings(text)] for text in (english, chinese)
    ]
    assert sections[0] == sections[1]


def test_a_difference_is_found() -> None:
    english = "# One\n\n```python\n1\n```\n"
    assert with_code_of("# 一\n\n```python\n2\n```\n", english) == "# 一\n\n```python\n1\n```\n"
    with pytest.raises(ValueError, match="1 blocks of code in English, 0 in Chinese"):
        with_code_of("# 一\n", english)
    assert (
        anchored("# 一\n\n```text\n# 二\n```\n", english) == "# 一 {#one}\n\n```text\n# 二\n```\n"
    )


def test_a_link_without_a_heading_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.zh.md"
    (tmp_path / "page.md").write_text("# One\n", "utf-8")
    page.write_text("# 一\n\n[一](#一) [二](page.zh.md#一) [三](other.md#one)\n", "utf-8")
    assert linked(page) == "# 一\n\n[一](#one) [二](page.md#one) [三](other.md#one)\n"
    page.write_text("# 一\n\n[一](#one)\n", "utf-8")
    with pytest.raises(KeyError):
        linked(page)
