"""Pages as the site shows them; with DPCOMPOSE_REQUIRE=site also the site that was built last (make test-site)."""

# ruff: noqa: RUF001 (Chinese punctuation)
from __future__ import annotations

import importlib
import json
import os
import re
from html import unescape
from inspect import isclass, isfunction
from pathlib import Path

import pytest

from website.build import names, ranked, readme, shown, unambiguous, words_of

ROOT = Path(__file__).parents[2]
SITE = ROOT / "out" / "site"
BUILT = pytest.mark.skipif(
    "site" not in os.environ.get("DPCOMPOSE_REQUIRE", ""), reason="make test-site builds it"
)


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("[here](../README.md)", "[here](readme.md)"),
        ("[plan](../examples/plan.toml)", "plan (`examples/plan.toml`)"),
        ("[a](b.md#c) ![x](y.svg)", "[a](b.md#c) ![x](y.svg)"),
        ("```toml plan.toml\na = 1\n```", '```toml title="plan.toml"\na = 1\n```'),
        ("```python\n>>> 1\n1\n```", "```pycon\n>>> 1\n1\n```"),
        ("```python\na = 1\n```", "```python\na = 1\n```"),
    ],
)
def test_what_the_site_changes(markdown: str, expected: str) -> None:
    assert shown(markdown, up=0) == expected


def test_pages_in_folders_keep_their_links() -> None:
    assert (
        shown("[a](../training.md) [b](../../README.md)", up=1)
        == "[a](../training.md) [b](../readme.md)"
    )
    between = "[a](../play/experiment.md#x) [b](../tutorials/ledger.md)"
    assert shown(between, up=1) == between
    assert shown("[plan](../../examples/plan.toml)", up=1) == "plan (`examples/plan.toml`)"


def test_the_readme_becomes_a_page_beside_the_others() -> None:
    page = "[a](docs/book.zh.md) [b](docs/ledger.md#in-python) [c](LICENSE)"
    assert readme(page) == "[a](book.md) [b](ledger.md#in-python) c (`LICENSE`)"


def _listed(room: str) -> list[str]:
    """The public classes and functions of a room."""
    face = importlib.import_module(room)
    return [
        name for name in face.__all__ if isclass(each := getattr(face, name)) or isfunction(each)
    ]


def test_every_class_and_function_of_a_room_is_in_the_reference() -> None:
    book = names("dpcompose.book")
    assert (
        len(re.findall(r"^::: |\]\[", book, re.MULTILINE)) == len(_listed("dpcompose.book")) >= 18
    )
    assert "::: dpcompose.mechanisms.noise.Laplace\n" in names("dpcompose.mechanisms")
    assert "[`Laplace`][dpcompose.mechanisms.noise.Laplace]" in names("dpcompose")


def test_a_class_has_its_entry_once_and_links_lead_to_it() -> None:
    pages = (ROOT / "docs" / "reference").glob("*.md")
    rooms = [re.findall(r"every name of ([\w.]+)", page.read_text("utf-8"))[0] for page in pages]
    shown = "\n\n".join(names(room) for room in rooms)
    entries = re.findall(r"^::: (\S+)$", shown, re.MULTILINE)
    links = re.findall(r"\]\[([\w.]+)\]", shown)
    assert len(links) + len(entries) == sum(len(_listed(room)) for room in rooms)
    assert links and set(links) <= set(entries)
    assert {each for each in entries if each.startswith("dpcompose.mechanisms")}.isdisjoint(
        re.findall(r"^::: (\S+)$", names("dpcompose"), re.MULTILINE)
    )


def _found(words: str) -> list[str]:
    """The places that hold all tokens of `words`, as the search of the site splits them."""
    index = json.loads((SITE / "search" / "search_index.json").read_text("utf-8"))
    separator = re.compile(index["config"]["separator"])
    wanted = set(words.lower().split())
    texts = {each["location"]: f"{each['title']} {each['text']}" for each in index["docs"]}
    return [
        place
        for place, text in texts.items()
        if wanted <= set(separator.split(re.sub("<[^>]+>", " ", text).lower()))
    ]


@BUILT
@pytest.mark.parametrize("words", ["Opacus", "sparse vector", "隐私预算", "群体隐私"])
def test_the_search_finds(words: str) -> None:
    assert _found(words)


@BUILT
def test_the_search_does_not_find_everything() -> None:
    assert _found("a-word-that-is-nowhere") == []


@BUILT
def test_pages_load_nothing_from_other_hosts() -> None:
    pages = list(SITE.rglob("*.html"))
    assert len(pages) > 40
    loads = re.compile(
        r"<(?:script|img|iframe|source)[^>]* src=\"?(https?:[^\" >]+)|<link[^>]*rel=\"?stylesheet[^>]*(https?:[^\" >]+)"
    )
    assert [
        (page.name, found) for page in pages for found in loads.findall(page.read_text("utf-8"))
    ] == []


@BUILT
def test_every_page_says_what_can_be_done() -> None:
    pages = [unescape(page.read_text("utf-8")) for page in SITE.rglob("*.html")]
    assert not any("not callable yet" in page.lower() for page in pages)


def test_examples_of_docstrings_are_code() -> None:
    doctests = pytest.importorskip("griffe") and importlib.import_module("website.doctests")
    shown = doctests.fenced("Says so.\n\n>>> 1 +\\\n... 1\n2\n\nArgs:\n    a: Not >>> this.")
    assert shown == "Says so.\n\n```pycon\n>>> 1 +\\\n... 1\n2\n```\n\nArgs:\n    a: Not >>> this."


def test_errors_that_every_call_raises_are_said_once() -> None:
    doctests = pytest.importorskip("griffe") and importlib.import_module("website.doctests")
    raised = "Raises:\n    DomainError: If it is NaN,\n        or below 0.\n"
    other = "    StoreError: If the disk is full.\n"
    assert doctests.shortened(f"Says so.\n\n{raised}") == "Says so.\n"
    assert doctests.shortened(f"Says so.\n\n{raised}{other}") == f"Says so.\n\nRaises:\n{other}"
    kept = f"Says so.\n\nArgs:\n    a: Such as DomainError: no.\n\n{raised}\nReference: [X]"
    assert doctests.shortened(kept).count("DomainError") == 1
    assert doctests.shortened(kept).endswith("no.\n\nReference: [X]")


def test_a_member_that_overrides_is_told_at_its_base() -> None:
    griffe = pytest.importorskip("griffe")
    doctests = importlib.import_module("website.doctests")
    code = 'class A:\n    def f(self): "Says so."\n\nclass B(A):\n    def f(self): "Again."\n    def g(self): "New."\n'
    with griffe.temporary_visited_module(code) as module:
        assert [doctests.overrides(module[name]) for name in ("A.f", "B.f", "B.g")] == [
            False,
            True,
            False,
        ]


def test_states_of_the_search_have_names_of_their_own() -> None:
    worker = 'a(){var e="0";for(;;){var s=r[i],o=this.edges[s];e=e+s+o.id}return e},b=c+d+f.id'
    assert unambiguous(worker).count(';"') == 1 and 'e=e+s+o.id+";"}return e}' in unambiguous(
        worker
    )


@BUILT
def test_the_search_was_mended() -> None:
    (worker,) = SITE.glob("assets/javascripts/workers/search.*.js")
    assert '.id+";"}' in worker.read_text("utf-8")


def test_words_of_a_page_are_those_of_its_article_without_code() -> None:
    page = "<header>no</header><article><h1>One two</h1><pre>x y</pre><p>three <code>four</code></p></article>"
    assert words_of(page) == 4 and words_of("<p>no article</p>") == 0


def test_a_page_that_explains_ranks_above_one_that_lists() -> None:
    explains, lists = (ranked(name, "# Title\n") for name in ("book.zh.md", "reference/book.md"))
    boosts = [float(re.findall(r"boost: ([\d.]+)", each)[0]) for each in (explains, lists)]
    assert boosts[0] > 1 > boosts[1] and explains.endswith("# Title\n")
    assert ranked("notation.md", "# Title\n") == "# Title\n"
    assert ranked("book.md", "---\na: 1\n---\n") == "---\na: 1\n---\n"


@pytest.mark.parametrize("page", ["README.md", "README.zh.md", "docs/index.md", "docs/index.zh.md"])
def test_the_start_pages_have_a_path_for_each_reader(page: str) -> None:
    text = (ROOT / page).read_text("utf-8")
    table = text.split("## Which are you?" if ".zh." not in page else "## 你是哪一种读者？")[
        1
    ].split("\n## ")[0]
    for name in ("tutorials/training", "tutorials/ledger", "tutorials/table", "play/index"):
        assert name in table, name
    for name in ("service", "gallery", "play/index", "questions", "ledger", "release", "book"):
        assert re.search(rf"\]\((?:docs/)?{name}(?:\.zh)?\.md", table), name
