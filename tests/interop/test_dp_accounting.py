"""dp_accounting and JAX Privacy, with our accountant in the place of theirs; skipped where they are not installed."""

from __future__ import annotations

import copy
import json
import math
import pickle
import runpy
import sys
import time
import unittest
from collections.abc import Callable
from typing import Any

import pytest

from dpcompose import Adjacency, Concentrated, Gaussian, Laplace, compose
from dpcompose.errors import UnsupportedError
from dpcompose.interop import dp_accounting as adapter
from dpcompose.interop.dp_accounting import ADJACENCIES, from_dp_event, to_dp_event, to_named_tuple
from dpcompose.interop.event_tree import event_to_json
from dpcompose.mechanisms import TruncatedPoisson

pytestmark = [pytest.mark.interop, pytest.mark.filterwarnings("default")]
dp_accounting: Any = pytest.importorskip(
    "dp_accounting", reason="dp_accounting is not installed: make test-interop"
)

Accountant = adapter.Accountant
RELATIONS = dp_accounting.NeighboringRelation
THEIR_OWN = {
    # Without noise a sample at rate q tells of a record with probability q, and of nobody else: delta is q, not 1.
    "zero_noise_multiplier3": lambda: _delta(_sampled(0.1, 0.0), "ADD_OR_REMOVE_ONE", 0.1, 0.1),
    "zero_noise_multiplier4": lambda: _delta(_sampled(0.1, 0.0), "ADD_OR_REMOVE_ONE", 0.1, 0.1),
    # A record of norm C that is replaced moves a sum by at most 2 C: Laplace noise has an answer.
    "errors_for_neighboring_relation1": lambda: _delta(
        dp_accounting.LaplaceDpEvent(4.0), "REPLACE_ONE", 0.1, -math.expm1((0.1 - 0.5) / 2)
    ),
    "errors_for_neighboring_relation3": lambda: _delta(
        dp_accounting.dp_event.DiscreteLaplaceDpEvent(0.25, 1),
        "REPLACE_ONE",
        0.1,
        -math.expm1(-0.4) / (1 + math.exp(-0.25)),
    ),
    # Where others fill the batch, one side of the pair lacks the record; their bound, with it on both, is looser.
    "truncated_subsampled_gaussian_basic": lambda: _below(
        _capped(4) + _capped(4) + _capped(4) + _capped(3) * 2, 1e-6
    ),
}
"""Tests of `PLDAccountant` that ours does not pass, each with the value that is true instead."""


def _sampled(rate: float, noise: float) -> Any:
    return dp_accounting.PoissonSampledDpEvent(rate, dp_accounting.GaussianDpEvent(noise))


def _delta(event: Any, relation: str, epsilon: float, truth: float) -> None:
    found = Accountant(RELATIONS[relation]).compose(event).bound(epsilon=epsilon)
    assert found.lower * (1 - 1e-12) <= truth <= found.upper * (1 + 1e-12)
    assert found.width < 1e-9


def _capped(records: int) -> Any:
    return compose(TruncatedPoisson(1.0, rate=0.5, records=records, batch=2))


def _below(capped: Any, theirs: float) -> None:
    assert capped.delta(epsilon=17.90433).upper < theirs / 2


def _failures(case: type[unittest.TestCase]) -> set[str]:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(case).run(result)
    assert result.testsRun > 10
    failed = [test for test, _ in [*result.failures, *result.errors]]
    return {test._testMethodName for test in failed if isinstance(test, unittest.TestCase)}


def test_their_base_class_of_accountant_tests_passes() -> None:
    base: Any = pytest.importorskip("dp_accounting.privacy_accountant_test")

    class OursTest(base.PrivacyAccountantTest):
        def _make_test_accountants(self) -> list[Any]:
            return [Accountant(), *map(Accountant, RELATIONS)]

    assert _failures(OursTest) == set()


def test_their_tests_of_the_pld_accountant(monkeypatch: pytest.MonkeyPatch) -> None:
    tests: Any = pytest.importorskip("dp_accounting.pld.pld_privacy_accountant_test")

    def made(neighboring_relation: Any = None, value_discretization_interval: float = 1e-4) -> Any:
        return Accountant(neighboring_relation)

    monkeypatch.setattr(tests.pld_privacy_accountant, "PLDAccountant", made)
    failed = _failures(tests.PldPrivacyAccountantTest)
    unexplained = {name for name in failed if not any(each in name for each in THEIR_OWN)}
    assert unexplained == set() and len(failed) <= len(THEIR_OWN)
    for truth in THEIR_OWN.values():
        truth()


def test_objects_and_named_tuples_say_the_same() -> None:
    made = compose(Gaussian(1.0).sampled(0.01) * 1000, Laplace(3.0))
    event, wire = to_dp_event(made), to_named_tuple(made)
    assert dp_accounting.DpEvent.from_named_tuple(wire) == event
    assert (
        from_dp_event(event) == from_dp_event(event.to_named_tuple()) == from_dp_event(wire) == made
    )
    assert json.loads(event_to_json(event)) == json.loads(event_to_json(wire))


def test_every_class_of_the_library_is_read_or_refused_by_name() -> None:
    kinds = [each for each in vars(dp_accounting.dp_event).values() if isinstance(each, type)]
    classes = [
        each
        for each in kinds
        if issubclass(each, dp_accounting.DpEvent) and each is not dp_accounting.DpEvent
    ]
    assert len(classes) >= 17
    for kind in classes:
        fields = {field.name: None for field in kind.__attrs_attrs__}  # type: ignore[attr-defined]
        if fields:
            with pytest.raises(
                (ValueError, UnsupportedError), match=r"event|count|events|DpEvent"
            ) as error:
                from_dp_event(kind(**fields))
            assert "fields" not in str(error.value), (
                "the fields of this class are not the ones known"
            )


def test_every_relation_has_an_adjacency() -> None:
    assert {each.name for each in RELATIONS} == ADJACENCIES.keys()
    assert Accountant().adjacency is Adjacency.ADD_REMOVE
    with pytest.raises(ValueError, match="NeighboringRelation"):
        Accountant(Adjacency.REPLACE)


def test_responses_are_counted() -> None:
    accountant = Accountant(RELATIONS.REPLACE_ONE).compose(
        dp_accounting.RandomizedResponseDpEvent(0.5, 2), 10
    )
    at_most = 10 * math.log(3)
    assert accountant.bound(delta=0.0).contains(at_most) or accountant.get_epsilon(
        0.0
    ) <= at_most * (1 + 1e-14)
    all_true, truth = 0.75**10, accountant.get_epsilon(1e-6)
    assert math.isclose(truth, at_most + math.log1p(-1e-6 / all_true), rel_tol=1e-12)


def test_deep_events_and_many_of_them() -> None:
    deep = dp_accounting.GaussianDpEvent(50.0)
    for each in range(1000):
        inside = [deep, dp_accounting.GaussianDpEvent(100.0)]
        deep = (
            dp_accounting.SelfComposedDpEvent(deep, 1)
            if each % 2
            else dp_accounting.ComposedDpEvent(inside)
        )
    accountant = Accountant().compose(deep).compose(deep, 2)
    assert accountant.supports(deep)
    assert accountant.composition == Gaussian(50.0) * 3 + Gaussian(100.0) * 1500
    for _ in range(1000):
        accountant.compose(_sampled(0.01, 1.0))
    assert accountant.composition.count == 2503
    assert len(accountant.ledger.events) == 2


def test_what_was_composed_is_one_event() -> None:
    one, two = dp_accounting.GaussianDpEvent(1.0), dp_accounting.LaplaceDpEvent(2.0)
    assert Accountant().ledger == dp_accounting.NoOpDpEvent()
    assert Accountant().compose(one).ledger == one
    several = (
        Accountant().compose(dp_accounting.SelfComposedDpEvent(one, 2)).compose(one, 3).compose(two)
    )
    assert several.ledger == dp_accounting.ComposedDpEvent(
        [dp_accounting.SelfComposedDpEvent(one, 5), two]
    )
    for copied in (copy.deepcopy(several), pickle.loads(pickle.dumps(several))):
        assert copied.get_epsilon(1e-6) == several.get_epsilon(1e-6)
        assert copied.compose(two).get_epsilon(1e-6) > several.get_epsilon(1e-6)


def test_an_event_with_a_list_may_change() -> None:
    growing = dp_accounting.ComposedDpEvent([dp_accounting.GaussianDpEvent(1.0)])
    accountant = Accountant().compose(growing)
    growing.events.append(dp_accounting.LaplaceDpEvent(1.0))
    assert accountant.compose(growing).composition == Gaussian(1.0) * 2 + Laplace(1.0)


@pytest.mark.parametrize("bad", [-1, 0, 1.5, True, math.nan])
def test_a_bad_count(bad: Any) -> None:
    with pytest.raises(ValueError, match="count"):
        Accountant().compose(dp_accounting.GaussianDpEvent(1.0), bad)


def test_other_errors() -> None:
    with pytest.raises(TypeError, match="must be `DpEvent`"):
        Accountant().compose(to_named_tuple(Gaussian(1.0)))
    with pytest.raises(ValueError, match=r"GaussianDpEvent.noise_multiplier = nan"):
        Accountant().compose(dp_accounting.GaussianDpEvent(math.nan))
    cycle = dp_accounting.ComposedDpEvent([])
    cycle.events.append(cycle)
    with pytest.raises(ValueError, match="a cycle"):
        Accountant().compose(cycle)
    assert not Accountant().supports(cycle)
    with pytest.raises(ValueError, match="one of the two"):
        Accountant().bound()


def test_a_class_that_the_installed_version_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(dp_accounting.dp_event, "ZCDpEvent")
    with pytest.raises(UnsupportedError, match="has no ZCDpEvent"):
        to_dp_event(Concentrated(0.1))


def test_calibration_meets_its_target_and_asks_for_no_more_noise() -> None:
    pld: Any = pytest.importorskip("dp_accounting.pld")

    def training(noise: float) -> Any:
        return dp_accounting.SelfComposedDpEvent(_sampled(0.01, noise), 1000)

    found: list[float] = []
    seconds: list[float] = []
    makers: list[Callable[[], Any]] = [Accountant, pld.PLDAccountant]
    for each in makers:
        start = time.process_time()
        found.append(dp_accounting.calibrate_dp_mechanism(each, training, 2.0, 1e-5))
        seconds.append(time.process_time() - start)
    assert Accountant().compose(training(found[0])).get_epsilon(1e-5) <= 2.0
    assert found[0] <= found[1] + 2e-6
    assert seconds[0] < seconds[1]


@pytest.mark.parametrize("name", ["dpsgd_accounting", "band_matrix"])
def test_the_example_runs(
    name: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    if name == "band_matrix":
        pytest.importorskip("jax_privacy", reason="jax_privacy is not installed: make test-interop")
    monkeypatch.setattr(sys, "argv", [name])
    runpy.run_module(f"examples.interop.{name}", run_name="__main__")
    assert "epsilon at most" in capsys.readouterr().out


def test_a_factory_of_accountants_for_a_relation() -> None:
    """JAX Privacy calls `accountant_fn(neighboring_relation)`, and copies the accountants that it is given."""
    for relation in RELATIONS:
        fresh = Accountant(relation)
        assert (
            copy.deepcopy(fresh).compose(dp_accounting.GaussianDpEvent(2.0)).get_epsilon(1e-6) > 0
        )
        assert fresh.get_epsilon(0) == 0
