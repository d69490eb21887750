"""Compositions written as events, events as JSON, and documents as plans; all without dp_accounting."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Composition,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.composition.composition import Composable
from dpcompose.errors import DomainError, MissingExtraError, PlanError, UnsupportedError
from dpcompose.guarantee.promise import RenyiLine
from dpcompose.interop import dp_accounting as adapter
from dpcompose.interop.dp_accounting import from_dp_event, to_named_tuple
from dpcompose.interop.event_tree import event_from_document, event_to_json
from dpcompose.interop.imported import import_plan, plan_of
from dpcompose.mechanisms import (
    AboveThreshold,
    FixedSizeSample,
    MixtureOfGaussians,
    Participation,
    PermuteAndFlip,
    PrivateSelection,
    RenyiCurve,
    Skellam,
    TreeAggregation,
    TruncatedPoisson,
)
from dpcompose.plan import Plan, PlanQuestion
from tests.cli.runner import invoke

ADD_REMOVE, REPLACE, ZERO_OUT = Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT
EACH = tuple(Adjacency)
SINGLE = Participation.single()

SAID: list[tuple[Any, tuple[Adjacency, ...]]] = [
    (Composition(), EACH),
    (Gaussian(2.0), EACH),
    (Gaussian(2.0) * 10 + Laplace(3.0), EACH),
    (Gaussian(1.0).sampled(0.01) * 1000, EACH),
    (compose(Gaussian(1.0), Laplace(2.0)).sampled(0.1) * 2, (ADD_REMOVE, ZERO_OUT)),
    (DiscreteLaplace(4.0, shift=3), EACH),
    (DiscreteGaussian(4.0, shift=3), EACH),
    (MixtureOfGaussians(1.5, shifts=(0.0, 1.0), weights=(0.5, 0.5)), (ADD_REMOVE, ZERO_OUT)),
    (TruncatedPoisson(1.2, rate=0.3, records=20, batch=6), (ADD_REMOVE,)),
    (FixedSizeSample(2.0, records=100, batch=10), (REPLACE,)),
    (TreeAggregation(2.0, steps=9, participation=SINGLE), (ZERO_OUT,)),
    (PrivateSelection(Gaussian(2.0).sampled(0.5), tries=5.0), (ADD_REMOVE, ZERO_OUT)),
    (PrivateSelection(Gaussian(2.0) * 3, tries=5.0, shape=0.0), EACH),
]
SAID += [
    (made(adjacency), (adjacency,))
    for adjacency in EACH
    for made in (
        lambda each: BlackBox(0.3, delta=1e-6, holds_under=each) * 3,
        lambda each: BlackBox(0.0, delta=1.0, holds_under=each),
        lambda each: Concentrated(0.1, holds_under=each),
        lambda each: RenyiCurve(RenyiLine(0.1, 0.2), holds_under=each),
        lambda each: Exponential(0.5, holds_under=each),
        lambda each: PermuteAndFlip(0.5, holds_under=each),
    )
]
ALL = [(mechanism, adjacency) for mechanism, adjacencies in SAID for adjacency in adjacencies]


@pytest.mark.parametrize(("mechanism", "adjacency"), ALL, ids=str)
def test_what_is_written_is_read_again(mechanism: Composable, adjacency: Adjacency) -> None:
    written = to_named_tuple(mechanism, adjacency=adjacency)
    assert from_dp_event(written, adjacency=adjacency) == compose(mechanism)
    document = json.loads(event_to_json(written))
    assert from_dp_event(event_from_document(document), adjacency=adjacency) == compose(mechanism)


@pytest.mark.parametrize(
    ("mechanism", "adjacency", "event"),
    [
        (Gaussian(3.0, sensitivity=1.1), ADD_REMOVE, "Gaussian"),
        (Gaussian(3.0, sensitivity=1.1, replace_sensitivity=1.5), ADD_REMOVE, "Gaussian"),
        (Laplace(0.3, sensitivity=0.7), REPLACE, "Laplace"),
        (GaussianDP(0.3), ADD_REMOVE, "Gaussian"),
        (DiscreteLaplace(3.3, shift=(1, -2)), ADD_REMOVE, "Composed"),
        (DiscreteGaussian(3.3, shift=(1, -2)), ZERO_OUT, "Composed"),
        (RandomizedResponse(0.7, categories=5, holds_under=REPLACE), REPLACE, "RandomizedResponse"),
        (
            TreeAggregation(2.0, steps=100, participation=SINGLE, restart=16),
            ZERO_OUT,
            "SingleEpochTreeAggregation",
        ),
    ],
    ids=str,
)
def test_what_is_rounded_costs_no_less(
    mechanism: Composable, adjacency: Adjacency, event: str
) -> None:
    written = to_named_tuple(mechanism, adjacency=adjacency)
    assert written.class_name == f"{event}DpEvent"
    again, own = (
        each.delta(epsilon=0.1, adjacency=adjacency)
        for each in (from_dp_event(written, adjacency=adjacency), mechanism)
    )
    assert own.lower <= again.upper <= own.upper * (1 + 1e-9)
    assert written.module_name == "dp_accounting.dp_event" and written._fields[:2] == (
        "module_name",
        "class_name",
    )


@pytest.mark.parametrize(
    ("mechanism", "adjacency"),
    [
        (Skellam(4.0), ADD_REMOVE),
        (AboveThreshold(2.0), ADD_REMOVE),
        (Gaussian(2.0, replace_sensitivity=1.0), REPLACE),
        (DiscreteLaplace(2.0, shift=(1, 1), replace=(1, 1)), REPLACE),
        (RandomizedResponse(1.0), ADD_REMOVE),
        (BlackBox(1.0), REPLACE),
        (GaussianDP(1.0), ZERO_OUT),
        (Concentrated(1.0, delta=1e-6), ADD_REMOVE),
        (RenyiCurve([0.1, 0.3], orders=[2, 5], holds_under=ADD_REMOVE), ADD_REMOVE),
        (MixtureOfGaussians(1.5, shifts=(0.0, 1.0), weights=(0.5, 0.5)), REPLACE),
        (FixedSizeSample(2.0, records=100, batch=10), ADD_REMOVE),
        (TruncatedPoisson(1.2, rate=0.3, records=20, batch=6), ZERO_OUT),
        (TreeAggregation(2.0, steps=9, participation=Participation.separated(3)), ZERO_OUT),
        (TreeAggregation(2.0, steps=9, participation=SINGLE), ADD_REMOVE),
    ],
    ids=str,
)
def test_what_no_event_says_is_refused(mechanism: Composable, adjacency: Adjacency) -> None:
    with pytest.raises(UnsupportedError, match="no event of dp_accounting"):
        to_named_tuple(mechanism + Gaussian(1.0), adjacency=adjacency)


@pytest.mark.parametrize(
    ("mechanism", "adjacency"), [pair for pair in ALL if pair[0] != Composition()], ids=str
)
def test_a_plan_of_it_is_the_same(mechanism: Composable, adjacency: Adjacency) -> None:
    plan = plan_of(mechanism, adjacency=adjacency, question=PlanQuestion("delta", 1e-6))
    assert Plan.parse(plan.toml()) == plan
    assert plan.composition() == compose(mechanism)


def test_a_plan_of_a_pair_and_of_all_that_runs_together() -> None:
    stated = {"class_name": "RandomizedResponseDpEvent", "noise_parameter": 0.25, "num_buckets": 3}
    pair = from_dp_event(event_from_document(stated), adjacency=ZERO_OUT)
    mixture = MixtureOfGaussians(1.5, shifts=(0.0, 1.0), weights=(0.5, 0.5))
    for whole in (
        pair,
        compose(mixture, Gaussian(2.0) * 2).sampled(0.5),
        PrivateSelection(Gaussian(2.0) + mixture, tries=3.0),
    ):
        plan = plan_of(whole, adjacency=ZERO_OUT)
        assert Plan.parse(plan.toml()) == plan and plan.composition() == compose(whole)
    with pytest.raises(UnsupportedError, match="given by a function"):
        plan_of(RenyiCurve(lambda order: order, holds_under=ADD_REMOVE), adjacency=ADD_REMOVE)
    with pytest.raises(DomainError, match="nothing"):
        plan_of(Composition(), adjacency=ADD_REMOVE)


DOCUMENT = {
    "class_name": "SelfComposedDpEvent",
    "count": 100,
    "event": {
        "class_name": "PoissonSampledDpEvent",
        "sampling_probability": 0.25,
        "event": {"class_name": "GaussianDpEvent", "noise_multiplier": 2.0},
    },
}


def _file(folder: Path, content: Any) -> Path:
    path = folder / "event.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def test_the_command_prints_a_plan(tmp_path: Path) -> None:
    done = invoke(
        ["import", str(_file(tmp_path, DOCUMENT)), "--adjacency", "zero-out", "--delta", "1e-6"]
    )
    assert done.exit_code == 0, done.output
    plan = Plan.parse(done.stdout)
    assert plan.composition() == Gaussian(2.0).sampled(0.25) * 100
    assert plan.adjacency is ZERO_OUT and plan.question == PlanQuestion("delta", 1e-6)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("", "JSON"),
        ("{", "JSON"),
        ("[1]", "a JSON object"),
        ("{}", "a DpEvent"),
        ('{"history": 1}', "a DpEvent"),
        ('{"class_name": "NoOpDpEvent", "class_name": "NoOpDpEvent"}', "twice"),
        ('{"class_name": "NoOpDpEvent"}', "at least one mechanism"),
        ('{"class_name": 1}', "event"),
        (
            '{"class_name": "GaussianDpEvent", "noise_multiplier": NaN}',
            "GaussianDpEvent.noise_multiplier",
        ),
        ('{"class_name": "GaussianDpEvent", "class": 1.0}', "event"),
        ('{"class_name": "GaussianDpEvent", "noise_multiplier": {"a": 1}}', "event"),
        ('{"class_name": "ComposedDpEvent", "events": [' * 40_000, "nested so deeply|JSON"),
        (DOCUMENT | {"count": -1}, "count = -1"),
        (DOCUMENT | {"count": 1e300}, "count"),
    ],
)
def test_a_bad_document_is_one_clear_error(content: Any, said: str, tmp_path: Path) -> None:
    path = _file(tmp_path, content)
    with pytest.raises(PlanError, match=said):
        import_plan(path, adjacency=ADD_REMOVE)
    done = invoke(["import", str(path)])
    assert done.exit_code == 2 and done.stdout == ""


def test_other_errors_of_the_command(tmp_path: Path) -> None:
    unknown = _file(tmp_path, {"class_name": "QuantumDpEvent"})
    assert invoke(["import", str(unknown)]).exit_code == 3
    assert invoke(["import", str(unknown), "--adjacency", "none"]).exit_code == 2
    assert invoke(["import", str(tmp_path / "none.json")]).exit_code == 2


def test_json_of_what_is_no_event() -> None:
    for value in (1.0, None, object(), [object()], math.inf, {}):
        with pytest.raises(DomainError):
            event_to_json(value)


@pytest.mark.parametrize(
    "asked", [lambda: adapter.Accountant, lambda: adapter.to_dp_event(Gaussian(1.0))]
)
def test_a_missing_library_says_what_to_type(asked: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "dp_accounting", None)
    monkeypatch.delitem(vars(adapter), "Accountant", raising=False)
    with pytest.raises(MissingExtraError, match=r"dpcompose\[dp-accounting\]"):
        asked()
    with pytest.raises(AttributeError, match="no attribute 'Acountant'"):
        _ = adapter.Acountant
