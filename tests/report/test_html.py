"""HTML pages: the answer first, in words; bars; what is folded; text that is escaped."""

# ruff: noqa: RUF001 (Greek letters and signs)
from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
from dataclasses import replace
from fractions import Fraction
from importlib.resources import files
from pathlib import Path

import pytest

from dpcompose import Gaussian
from dpcompose.account import open_scope
from dpcompose.ledger import Ledger
from dpcompose.notebook import written
from dpcompose.plan import Plan, PlanAccount, account
from dpcompose.report import Heading, Page, PageTable, headings, html, page, pictures
from dpcompose.report.html import SHOWN, fragment
from dpcompose.report.picture import figure, style

GAUSSIANS = "".join(
    f'[[mechanism]]\nname = "part {number}"\nkind = "gaussian"\nsigma = {1.23456789 + number}\n'
    for number in range(12)
)


def _account(text: str) -> PlanAccount:
    plan = Plan.parse(text, source="plan")
    assert plan.question is not None
    return account(plan, plan.question)


def test_the_answer_is_the_heading_and_what_it_means_follows() -> None:
    done = _account(f'delta = 1e-6\nadjacency = "replace"\n{GAUSSIANS}')
    text = html(page(done))
    (heading,) = re.findall(r"<h1[^>]*>(.*?)</h1>", text)
    shown = re.search(r"ε ≤ ([\d.]+) at δ = 10⁻⁶", heading)
    assert shown and Fraction(shown[1]) >= Fraction(done.total.upper)
    factor = re.search(r"at most by the factor ([\d.e+]+), and by at most 10⁻⁶ beyond", text)
    assert factor and float(factor[1]) >= math.exp(done.total.upper)
    assert "Gaussian, sigma 1.235" in text and "Gaussian(" not in text


def test_the_largest_is_first_and_ten_rows_are_shown() -> None:
    text = html(page(_account(f"delta = 1e-6\n{GAUSSIANS}")))
    first, rest = text.split('<tbody class="rest">')
    widths = [float(width) for width in re.findall(r'class="bar" style="width: ([\d.]+)%', text)]
    assert widths == sorted(widths, reverse=True) and widths[0] == 100 and widths[1] < 100
    assert first.count('class="bar"') == SHOWN and rest.count('class="bar"') == 2
    assert "Show all 12 rows" in text


def test_the_heading_has_the_verdict() -> None:
    done = _account(f"delta = 1e-6\n{GAUSSIANS}")
    for epsilon, verdict in ((100.0, "Within budget: "), (0.01, "Over budget: ")):
        limited = replace(done, limit=epsilon)
        assert f">{verdict}ε ≤ " in html(page(limited))


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '" onload="x', "اسم", "e\u0301", "a" * 300]
)
def test_names_of_all_kinds_are_escaped(name: str) -> None:
    table = PageTable(
        name, (Heading(name), Heading("")), ((name, "1"),) * 10_000, shares=(0.5,) * 10_000
    )
    shown = Page(name, name, "plain", ((name, name),), (table,), notes=(name,))
    for text in (html(shown), fragment(shown)):
        assert "<script" not in text and 'onload="x' not in text.replace(
            "&quot; onload=&quot;x", ""
        )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("epsilon <= 1.554 at delta = 1e-08", "ε ≤ 1.554 at δ = 10⁻⁸"),
        ("1.5e-08, 1e+16 and 3e-7", "1.5 × 10⁻⁸, 10¹⁶ and 3 × 10⁻⁷"),
        ("the factor 1.42e+07, 2e+100", "the factor 1.42 × 10⁷, 2 × 10¹⁰⁰"),
        ("rate >= 0.1, a == b <== c", "rate ≥ 0.1, a == b <== c"),
        (
            "run 1e5 of scope a/1e5, v1.1e-06, epsilon alone",
            "run 1e5 of scope a/1e5, v1.1e-06, epsilon alone",
        ),
    ],
)
def test_numbers_and_signs_are_written_as_people_write_them(text: str, expected: str) -> None:
    assert written(text) == expected


def test_no_page_shows_code_in_place_of_a_formula() -> None:
    done = _account(f"delta = 1e-6\n{GAUSSIANS}")
    for text in (html(page(done, explain=True)), fragment(page(done, explain=True))):
        shown = re.sub(r"<style>.*?</style>|<pre>.*?</pre>|<[^>]*>", " ", text, flags=re.DOTALL)
        assert not re.search(r"&lt;=|&gt;=|\d[eE][+-]\d", shown)


def test_a_percent_stands_beside_every_bar_of_a_budget() -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "z", epsilon=1, delta=1e-6, only="zcdp", actor="Ada")
    account.charge(Gaussian(12.0), actor="Ada", key="first")
    balance = ledger.balance("z")
    text = html(page([balance]))
    assert re.search(r'<span class="bar" style="[^"]*"></span>15 %', text)
    assert "delta" not in str(balance).replace("delta of the scope", "")  # 0 of 0 is left out


def test_pictures_on_a_narrow_page_are_as_wide_as_their_smallest_text_needs() -> None:
    """Their smallest text has 9 points, on 540 points of width; a reader scrolls, by the keyboard too."""
    style = (files("dpcompose.report") / "page.css").read_text("utf-8")
    (width,) = (float(each) for each in re.findall(r"figure svg { min-width: (\d+)rem; }", style))
    assert 16 * width * 9 / 540 >= 11
    done = _account(f"delta = 1e-6\n{GAUSSIANS}")
    drawn = pictures(done)
    assert '<figure tabindex="0">' in html(page(done), pictures=drawn[:1])
    for each in drawn:
        axes = figure(7.5).subplots()
        each.draw(axes)
        texts = [*axes.texts, *axes.get_xticklabels(), *axes.get_yticklabels(), axes.xaxis.label]
        legend = axes.get_legend()
        texts += [] if legend is None else legend.get_texts()
        assert min(float(text.get_fontsize()) for text in texts) >= 9, each.title


def test_ticks_and_titles_of_pictures_are_written_as_people_write_them() -> None:
    axes = figure(7.5).subplots()
    axes.set(xscale="log", yscale="log", xlim=(0.4, 6), ylim=(1e-9, 1e6), title="delta = 1e-08")
    style(axes)
    axes.figure.canvas.draw()
    shown = [text.get_text() for text in axes.get_xticklabels(which="both") if text.get_text()]
    assert {"1", "2"} <= set(shown) and not any("10^" in text for text in shown)
    powers = [text.get_text() for text in axes.get_yticklabels() if text.get_text()]
    assert "10^{-8}" in "".join(powers) and "1" in powers and axes.get_title() == "δ = 10⁻⁸"


CHROMIUM = shutil.which(os.environ.get("CHROMIUM", "chromium"))


def test_every_sheet_of_paper_has_a_date_with_its_zone(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    rows = tuple((f"row {number}", str(number)) for number in range(120))
    whole = Page("plan", "it is long", tables=(PageTable("Rows", headings("", ">n"), rows),))
    page.write_text(html(whole), "utf-8")
    style, body = page.read_text("utf-8").split("</style>")
    dated = re.compile(r"on \d{4}-\d\d-\d\d \(UTC\)\.")
    assert dated.search(body) and "footer { display: table-footer-group" in style
    if CHROMIUM is None or shutil.which("pdftotext") is None:
        pytest.skip("Chromium and pdftotext print it")
    printed, flags = tmp_path / "page.pdf", ["--headless", "--no-sandbox", "--disable-gpu"]
    flags += ["--no-pdf-header-footer", f"--print-to-pdf={printed}"]
    subprocess.run([CHROMIUM, *flags, page.as_uri()], capture_output=True, check=True, timeout=60)
    command = ["pdftotext", str(printed), "-"]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    sheets = text.split("\f")[:-1]
    assert len(sheets) > 2 and all(map(dated.search, sheets))
    assert "row 119" in text
