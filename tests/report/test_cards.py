"""Every result shows itself as one card: printed, in a notebook, and as HTML; no repr of a class reaches a person."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa
import pytest

from dpcompose import BlackBox, Gaussian, calibrate, release
from dpcompose.account import Account, exposure, open_scope
from dpcompose.adaptive import BasicFilter, Budget
from dpcompose.interop.guard import TrainingGuard
from dpcompose.ledger import Ledger
from dpcompose.pictured import Card
from dpcompose.plan import Plan, PlanQuestion, account, calibrate as calibrated, risk_of
from dpcompose.report import html, page, pictures

PLAN = 'delta = 1e-6\n[[mechanism]]\nkind = "gaussian"\nsigma = 30.0\ntimes = 5\n'


@cache
def _session() -> release.Session:
    table = pa.table({"person": list(range(400)), "town": ["Rome", "Oslo"] * 200})
    ledger = Ledger.open("memory:")
    open_scope(ledger, "town", filter=BasicFilter(1, delta=1e-6), actor="Ada")
    data = release.table(table, unit="person", max_rows_per_unit=1)
    return release.Session(data, ledger=ledger, scope="town", actor="Ben")


@cache
def _plan() -> Plan:
    return Plan.parse(PLAN, source="plan.toml")


def _ledger() -> Ledger:
    account = _session().account
    assert isinstance(account, Account)
    return account.ledger


def _risk() -> Any:
    return risk_of(_plan())


def _account() -> Any:
    plan = _plan()
    assert plan.question is not None
    return account(plan, plan.question)


def _history() -> Any:
    guard = TrainingGuard(epsilon=1.0, delta=1e-6, filter=Budget(1.0, 1e-6, only="zcdp"))
    for _ in range(4):
        with guard.step(sigma=30.0):
            pass
    return guard.history(points=2)


RESULTS: dict[str, tuple[Callable[[], Any], str]] = {
    "account": (_account, "epsilon <= "),
    "calibration of a plan": (
        lambda: calibrated(_plan(), "mechanism.gaussian.sigma", epsilon=1.0, delta=1e-6),
        "is the smallest value",
    ),
    "calibration": (lambda: calibrate(Gaussian, epsilon=0.5, delta=1e-5), "7.03182667"),
    "risk": (
        lambda: BlackBox(1.0, delta=0.01).risk(prior=0.5, false_positive_rate=0.001),
        "0.467496",
    ),
    "risk of a plan": (_risk, "advantage <= "),
    "answer": (
        lambda: _session().count(by="town", keys=["Rome", "Oslo"], spend={"epsilon": 0.1}),
        "Rome",
    ),
    "quote": (
        lambda: _session().explain([release.Count(spend={"epsilon": 0.1})]).quotes[0],
        "epsilon 0.1",
    ),
    "counting plan": (
        lambda: release.plan(1_000_000, accuracy=0.001, epsilon=1.0, delta=1e-6),
        "Queries at an error of 0.001 n",
    ),
    "balance": (lambda: _ledger().balance("town"), "epsilon"),
    "verification": (lambda: Ledger.open("memory:").verify(), "Every hash"),
    "receipt": (
        lambda: _session().account.charge(BlackBox(0.01), actor="Ben", key="k"),
        "Granted: entry",
    ),
    "exposure": (
        lambda: exposure(_ledger(), paths=["town"], delta=1e-6),
        "is promised",
    ),
    "training": (
        _history,
        "Epsilon over steps",
    ),
}


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_is_one_card_wherever_it_is_shown(name: str) -> None:
    make, words = RESULTS[name]
    result = make()
    assert isinstance(result, Card)
    printed, notebook, whole = str(result), result._repr_html_(), html(page(result))
    assert words in printed
    headline = page(result).headline
    assert headline.split(":")[0] in " ".join(printed.split()), "the answer comes first"
    for text in (notebook, whole):
        shown = re.sub(r"<style>.*?</style>|<pre>.*?</pre>|<[^>]*>", " ", text, flags=re.DOTALL)
        shown = re.sub(r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b", "a key", shown)
        assert not re.search(r"&lt;=|&gt;=|\d[eE][+-]\d", shown), shown
        assert "<script" not in text
    for text in (printed, notebook):
        assert not re.search(rf"{type(result).__name__}\(|object at 0x|units=\d", text)


def test_a_printed_answer_is_a_table_with_its_errors() -> None:
    printed = str(RESULTS["answer"][0]())
    rows = [line for line in printed.splitlines() if line.startswith(("Rome", "Oslo"))]
    assert len(rows) == 2 and all(re.search(r"\d+ +± \d+", row) for row in rows)


def test_the_account_of_a_training_draws_epsilon_over_its_steps_and_the_budget() -> None:
    from matplotlib.figure import Figure

    plan = Plan.parse("".join(
        f'[[mechanism]]\nkind = "gaussian"\nsigma = {sigma}\nrate = 0.01\ntimes = {times}\n'
        for sigma, times in ((1.1, 20), (2.0, 30))
    ))  # fmt: skip
    first, second = (Gaussian(sigma).sampled(0.01) for sigma in (1.1, 2.0))
    for limit in (None, 1.5):
        result = account(plan, PlanQuestion("delta", 1e-5), limit=limit)
        drawn = next(each for each in pictures(result) if each.title == "Epsilon over steps")
        axes: Any = Figure().subplots()
        drawn.draw(axes)
        lines: Any = [list(zip(*line.get_data(), strict=True)) for line in axes.lines]
        steps: dict[int, float] = dict(lines[0])
        assert steps[20] == (first * 20).epsilon(delta=1e-5).upper
        assert steps[24] == (first * 20 + second * 4).epsilon(delta=1e-5).upper
        assert max(steps) == 50 and steps[50] == result.total.upper
        assert [line[0][1] for line in lines[1:]] == ([] if limit is None else [limit])
    one = Plan.parse('[[mechanism]]\nkind = "gaussian"\nsigma = 2.0\n')
    shown = pictures(account(one, PlanQuestion("delta", 1e-5)))
    assert "Epsilon over steps" not in [each.title for each in shown]
