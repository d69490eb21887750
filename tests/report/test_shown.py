"""Every public result on one page, as it is printed, shown in a notebook and written as HTML: out/gallery/index.html.

The classes are taken from the rooms: a new one is made in `RESULTS`, or named in `HANDED_IN`.
"""

from __future__ import annotations

import importlib
import inspect
import math
import random
import re
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from functools import cache
from html import escape
from pathlib import Path
from typing import Any

import pytest

from dpcompose import (
    BlackBox,
    Gaussian,
    Laplace,
    RandomizedResponse,
    adaptive,
    audit,
    book,
    calibrate,
    compose,
    divergence,
    epsilon,
    guarantee,
    release,
)
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import Budget, Odometer
from dpcompose.experiment import Experiment, Repeater, about_bob, summarize
from dpcompose.ledger import Ledger
from dpcompose.mechanisms import ComposablePart
from dpcompose.plan import over_delta, over_times
from dpcompose.report import html, page
from dpcompose.values import Bound
from tests.report.test_cards import RESULTS as CARDS

GALLERY = Path(__file__).parents[2] / "out" / "gallery" / "index.html"
ROOMS = "account adaptive audit book composition divergence experiment guarantee ledger plan release values"
HANDED_IN = {
    "Amount",
    "Amounts",
    "ApproximateDP",
    "Budget",
    "Catalog",
    "Certificate",
    "Certified",
    "Composable",
    "Composition",
    "ConcentratedDP",
    "Curators",
    "Density",
    "Distribution",
    "Experiment",
    "Feature",
    "FixedAdversary",
    "GaussianTradeoff",
    "Greedy",
    "Group",
    "GrowingEpsilon",
    "Holds",
    "IndividualFilter",
    "Line",
    "ManyDatabases",
    "Measured",
    "MenuFilter",
    "Mixture",
    "NaturalFilterBreaker",
    "Outcome",
    "Pair",
    "Parallel",
    "Parameter",
    "Plan",
    "PlanEntry",
    "PlanQuestion",
    "PublicTable",
    "Query",
    "Questions",
    "RandomAdversary",
    "Records",
    "RenyiDP",
    "Repeater",
    "Round",
    "Scope",
    "Session",
    "Solved",
    "SparseVector",
    "States",
    "Subject",
    "Table",
    "Tally",
    "Transcripts",
    "TypedAmounts",
    "IndividualRound",
    "SyntheticData",
    "Views",
    "Wanderer",
}
"""What people make, hand in or ask again: it is written as the Python that makes it."""
TOTAL = compose(Gaussian(2.0) * 10, Laplace(30.0))
_BELL = divergence.Density(lambda x: -math.pi * x * x)
_Y, _Z = ({"yes": Fraction(odds, 4), "no": Fraction(4 - odds, 4)} for odds in (3, 1))


@cache
def _ledger() -> Ledger:
    ledger = Ledger.open("memory:")
    scope = open_scope(ledger, "city", epsilon=2, delta=1e-6, actor="Ada", odometer=Odometer(1e-6))
    scope.charge(Gaussian(20.0), actor="Ada", key="one")
    return ledger


def _coin(truth: float) -> audit.Subject:
    return audit.Subject(lambda present: present ^ (random.random() > truth))


@cache
def _fair() -> Any:
    return audit.audit(_coin(0.7), [audit.Pair(0, 1)], claim=BlackBox(1.0), samples=3000)


@cache
def _audited() -> tuple[Any, Any]:
    subject = _coin(0.9)
    found = audit.audit(subject, [audit.Pair(0, 1)], claim=BlackBox(1.0), alpha=1e-3)
    assert found.certificate is not None
    return found, audit.again(found.certificate, subject, [audit.Pair(0, 1)])


@cache
def _summary() -> Any:
    query = about_bob(RandomizedResponse(0.7))
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=3)
    return summarize(game, epsilon=1.0, transcripts=1000, seed=1)


def _decision(sigma: float = 30.0) -> Any:
    budget = Budget(1.0, 1e-6)
    return budget.step(budget.start(), Gaussian(sigma))[1]


def _distance() -> Any:
    odometer = Odometer(1e-6)
    return odometer, odometer.step(odometer.start(), Gaussian(30.0))


def _session() -> release.Session:
    session = CARDS["answer"][0]  # its session is shared with the cards
    assert session
    return importlib.import_module("tests.report.test_cards")._session()


RESULTS: dict[str, Callable[[], Any]] = {
    **{type_: make for type_, (make, _) in CARDS.items()},
    "Account": lambda: Account(_ledger(), scope="city"),
    "AuditResult": lambda: _audited()[0],
    "Bound": lambda: TOTAL.epsilon(delta=1e-8),
    "Bounds": lambda: epsilon([Gaussian(1.0), Gaussian(2.0)], delta=1e-8),
    "Calibrations": lambda: calibrate([Gaussian, Laplace], epsilon=1.0, delta=1e-5),
    "Comparison": lambda: TOTAL.compare(delta=1e-8)[0],
    "Contribution": lambda: CARDS["account"][0]().contributions[0],
    "Curve": lambda: TOTAL.profile()([0.5, 1.0]),
    "Decision": _decision,
    "Decision, refused": lambda: _decision(0.1),
    "Deviation": lambda: book.azuma(3.0, times=100, size=0.1, drift=0.005),
    "Distance": lambda: _distance()[1],
    "Entry": lambda: list(_ledger().entries("city"))[-1],
    "EpsilonCurve": lambda: over_delta(CARDS["account"][0]()),
    "Estimate": lambda: divergence.kl(_BELL, _BELL),
    "Exact": lambda: divergence.hockey_stick(_Y, _Z, ratio=2),
    "Example": book.example_3_7,
    "Explanation": lambda: _session().explain([release.Count(spend={"epsilon": 0.1})]),
    "ExposureStatement": lambda: CARDS["exposure"][0]().promised,
    "FilterAdvice": lambda: adaptive.advise([(Gaussian(60.0), 20)], 1.0, delta=1e-6)[0],
    "Growth": lambda: over_times(CARDS["account"][0]()),
    "Ledger": _ledger,
    "Lesson": lambda: book.LESSONS[1],
    "Limits": lambda: _summary().measured.delta(1.0),
    "MeanLoss": lambda: book.kl_bound(0.5),
    "Mileage": lambda: _distance()[1].mileage,
    "Moment": lambda: _audited()[0].moments[-1],
    "Odometer": lambda: Odometer(1e-6),
    "OneSidedWitness": lambda: divergence.one_sided_witness(_Y, _Z, ratio=2),
    "Profile": TOTAL.profile,
    "Promise": lambda: book.promise(guarantee.ApproximateDP(0.1), utility_range=10.0),
    "Reading": lambda: _distance()[0].reading(_distance()[1]),
    "Repeated": lambda: _audited()[1],
    "SmallestEpsilon": lambda: divergence.smallest_epsilon({0: _Y, 1: _Z}),
    "Spending": lambda: _decision().after,
    "Statement": lambda: book.STATEMENTS["3.20"],
    "Summary": _summary,
    "SymmetricWitness": lambda: divergence.symmetric_witness(_Y, _Z, ratio=2),
    "Total": lambda: Budget(1.0, 1e-6).total(3, delta=1e-5),
    "Tried": lambda: _fair().tried[0],
    "Anchor": lambda: _ledger().anchor(),
}  # fmt: skip


def _public() -> set[type]:
    """The classes of the rooms' faces that are no errors, mechanisms, questions, adversaries or enumerations."""
    faces = [importlib.import_module(f"dpcompose.{room}") for room in ROOMS.split()]
    values = (getattr(face, name) for face in faces for name in face.__all__)
    classes = {each for each in values if inspect.isclass(each)}
    apart = (BaseException, ComposablePart, release.Question, Enum)
    return {
        each
        for each in classes
        if not (issubclass(each, apart) or inspect.isabstract(each))
        and not getattr(each, "_is_protocol", False)
    }


@cache
def _shown(name: str) -> tuple[Any, str, str, str]:
    """A result, and how it is printed, shown in a notebook and written as HTML."""
    random.seed(0)
    result = RESULTS[name]()
    return result, str(result), result._repr_html_(), html(page(result))


def test_every_class_of_results_is_shown() -> None:
    shown = {type(make()).__name__ for make in RESULTS.values()}
    assert {each.__name__ for each in _public()} - HANDED_IN - shown == set()


@pytest.mark.parametrize("name", RESULTS)
def test_a_result_reads_itself(name: str) -> None:
    result, printed, notebook, whole = _shown(name)
    body = whole.partition("</style>")[2]
    for text in (printed, notebook, body):
        assert not re.search(r"object at 0x|units=\d|<function|<class|array\(|mappingproxy", text)
        if not isinstance(result, Bound):
            assert f"{type(result).__name__}(" not in text
    if name in {"balance", "Account", "Ledger"}:
        assert all("%" in text for text in (printed, notebook, body))
    for text in (notebook, body):
        words = re.sub(r"<pre>.*?</pre>|<[^>]*>", " ", text, flags=re.DOTALL)
        words = re.sub(
            r"\b[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|[0-9a-f]{64}", "a key", words
        )
        assert not re.search(r"&lt;=|&gt;=|(?<![\w.])\d[\d.]*[eE][+-]\d", words), words
        assert "<script" not in text


def test_one_page_has_them_all() -> None:
    parts = []
    for name in sorted(RESULTS, key=str.lower):
        _, printed, notebook, whole = _shown(name)
        frame = f'<iframe title="{escape(name)} as HTML" srcdoc="{escape(whole)}"></iframe>'
        parts.append(
            f"<h2>{escape(name)}</h2><pre>{escape(printed)}</pre><div>{notebook}</div>{frame}"
        )
    style = "iframe { width: 100%; height: 30em } pre { overflow: auto } table { border-spacing: 1em 0 }"
    head = f'<!doctype html><html lang="en"><meta charset="utf-8"><title>Results</title><style>{style}</style>'
    GALLERY.parent.mkdir(parents=True, exist_ok=True)
    GALLERY.write_text(f"{head}<main><h1>Results</h1>{''.join(parts)}</main></html>", "utf-8")
