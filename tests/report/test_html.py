"""HTML pages: the answer first, in words; bars; what is folded; text that is escaped."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from fractions import Fraction

import pytest

from dpcompose.plan import Plan, PlanAccount, account
from dpcompose.report import Heading, Page, PageTable, html, page
from dpcompose.report.html import SHOWN, contents
from dpcompose.report.words import answer, meaning

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
    shown = re.search(r"epsilon &lt;= ([\d.]+) \(delta = 1e-06\)", heading)
    assert shown and Fraction(shown[1]) >= Fraction(done.total.upper)
    factor = re.search(r"at most by the factor ([\d.e+]+), and by at most 1e-06 beyond", text)
    assert factor and float(factor[1]) >= math.exp(done.total.upper)
    assert "Gaussian, sigma 1.235" in text and "Gaussian(" not in text


def test_the_largest_is_first_and_ten_rows_are_shown() -> None:
    text = html(page(_account(f"delta = 1e-6\n{GAUSSIANS}")))
    first, rest = text.split('<tbody class="rest">')
    widths = [float(width) for width in re.findall(r'class="bar" style="width: ([\d.]+)%', text)]
    assert widths == sorted(widths, reverse=True) and widths[0] == 100 and widths[1] < 100
    assert first.count('class="bar"') == SHOWN and rest.count('class="bar"') == 2
    assert "Show all 12 rows" in text


def test_verdicts_and_published_numbers() -> None:
    done = _account(f"delta = 1e-6\n{GAUSSIANS}")
    assert answer(done, published=done.total.upper / 0.96).endswith(": 4 % lower")
    assert answer(done, published=done.total.upper / 2).endswith("not lower by a percent")
    for epsilon, said in ((100.0, "It keeps within the budget"), (0.01, "It exceeds the budget")):
        assert said in meaning(replace(done, limit=epsilon))


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", '" onload="x', "اسم", "e\u0301", "a" * 300]
)
def test_names_of_all_kinds_are_escaped(name: str) -> None:
    table = PageTable(
        name, (Heading(name), Heading("")), ((name, "1"),) * 10_000, shares=(0.5,) * 10_000
    )
    for text in (
        html(Page(name, name, "plain", (), (table,))),
        contents(name, ((name, name, name),)),
    ):
        assert "<script" not in text and 'onload="x' not in text.replace(
            "&quot; onload=&quot;x", ""
        )
