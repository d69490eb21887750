"""Questions of the text, put to the site's own search in English and Chinese: the right page is among the first three."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).parent
SITE = HERE.parents[1] / "out" / "site"
ASKED = [line.split("\t") for line in (HERE / "asked.tsv").read_text("utf-8").splitlines()]
"""The page that answers, and what is asked in Chinese and in English."""
BUILT = pytest.mark.skipif(
    "site" not in os.environ.get("DPCOMPOSE_REQUIRE", ""), reason="make test-site builds it"
)


def found(words: list[str]) -> list[list[str]]:
    """The first three pages for each, as the search of the built site ranks them."""
    node = shutil.which("node")
    assert node is not None, "the search runs in Node"
    command = [node, str(HERE / "searched.js"), str(SITE), json.dumps(words)]
    printed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return [pages[:3] for pages in json.loads(printed)]


def test_there_are_64_questions_about_pages_in_both_languages() -> None:
    assert len(ASKED) == 64 and all(len(row) == 3 for row in ASKED)
    assert len({chinese for _, chinese, _ in ASKED}) == len({row[2] for row in ASKED}) == 64
    docs = HERE.parents[1] / "docs"
    for page, _, _ in ASKED:
        assert (docs / f"{page}.md").exists() and (docs / f"{page}.zh.md").exists(), page


@BUILT
@pytest.mark.parametrize(("column", "folder"), [(1, "zh/"), (2, "")], ids=["Chinese", "English"])
def test_the_right_page_is_among_the_first_three(column: int, folder: str) -> None:
    pages = found([row[column] for row in ASKED])
    assert [
        (row[column], row[0], shown)
        for row, shown in zip(ASKED, pages, strict=True)
        if f"{folder}{row[0]}.html" not in shown
    ] == []


@BUILT
def test_words_that_are_nowhere_find_no_page() -> None:
    assert found(["xyzzyplugh"]) == [[]]


@BUILT
@pytest.mark.parametrize("words", ["delta-close", "e^epsilon", "epsilon:0.1", "delta-接近"])
def test_a_sign_amid_a_word_is_no_command(words: str) -> None:
    assert any(page.endswith("book.html") for page in found([words])[0])
