"""Formulas of pages become MathML: no script, no font, and nothing of the LaTeX is left over."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

markdown = pytest.importorskip("markdown")
pytest.importorskip("latex2mathml")
DOCS = Path(__file__).parents[2] / "docs"
DOLLARS = [
    page
    for page in DOCS.rglob("*.md")
    if re.search(r"(?<![\\$\w])\$[^\s$]", page.read_text("utf-8"))
]


def _shown(text: str) -> str:
    from website.formulas import Formulas

    extensions = [Formulas(), "tables", "pymdownx.superfences", "attr_list"]
    return markdown.markdown(text, extensions=extensions)


def test_a_formula_is_mathml_with_its_text() -> None:
    shown = _shown(r"*$H_a(Y \Vert Z) \le \delta$*, $5 a day, `$x$`")
    assert shown.count("<math ") == 1 and "&#x02264;" in shown and "<em><math" in shown
    assert r'alttext="H_a(Y \Vert Z) \le \delta"' in shown
    assert "$5 a day" in shown and "<code>$x$</code>" in shown


def test_a_displayed_formula_is_a_block() -> None:
    assert 'display="block"' in _shown("$$\\sum_r x_r$$")


@pytest.mark.parametrize("page", DOLLARS, ids=lambda page: str(page.relative_to(DOCS)))
def test_every_formula_of_a_page_is_converted(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text("utf-8"), flags=re.MULTILINE | re.DOTALL)
    shown = re.sub(r'<code>.*?</code>|alttext="[^"]*"', "", _shown(text), flags=re.DOTALL)
    assert "$" not in shown
    assert not re.search(r"\\[a-zA-Z]+", shown), "a command of LaTeX that the converter left"
    assert "<script" not in shown


def test_the_proofs_have_formulas_in_both_languages() -> None:
    counts = [
        _shown((DOCS / name).read_text("utf-8")).count("<math ")
        for name in ("proofs.md", "proofs.zh.md")
    ]
    assert counts[0] >= 100 and abs(counts[0] - counts[1]) <= 6
