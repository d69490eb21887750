"""The benchmark tells a value below the truth from one above it, and a target met from one missed. No peer is run."""

from __future__ import annotations

import math

import pytest

from benchmarks.case import Case, Part
from benchmarks.catalog import TARGETS, cases
from benchmarks.measure import Measurement
from benchmarks.verdict import Truth, judge, outcomes, truth

CERTIFIED = Truth(1.0, 1.0 + 1e-9, "certified")


@pytest.mark.parametrize("upper", [1.0 - 1e-12, 0.5, 0.0, -math.inf, math.nan])
def test_an_upper_value_below_the_truth_is_unsound(upper: float) -> None:
    verdict = judge(upper, CERTIFIED)
    assert verdict.unsound
    assert "UNSOUND" in verdict.words


@pytest.mark.parametrize(
    ("upper", "words"),
    [(1.0, "inside"), (1.0 + 1e-9, "inside"), (1.5, "+5.0e-01"), (math.inf, "infinite")],
)
def test_an_upper_value_at_or_above_the_truth_is_sound(upper: float, words: str) -> None:
    verdict = judge(upper, CERTIFIED)
    assert not verdict.unsound
    assert verdict.words == words


def test_a_lower_end_above_the_truth_is_unsound() -> None:
    assert judge(3.0, CERTIFIED, lower=2.0).unsound


def test_the_golden_value_judges_us_too() -> None:
    case = Case(
        "golden", "promises", (Part("black-box", 0.1, 100),), 1e-6, golden=4.774567588107986
    )
    ours = Measurement((1.0,), upper=4.7745675, lower=4.7745674)
    known = truth(case, ours)
    assert known is not None and known.source == "golden"
    assert judge(ours.upper, known, lower=ours.lower).unsound


def test_without_a_golden_value_or_an_answer_nothing_is_judged() -> None:
    case = Case("none", "gaussian", (Part("gaussian", 1.0),), 1e-6)
    assert truth(case, None) is None
    assert truth(case, Measurement(failure="over 60 s")) is None


def _outcome(ours: Measurement, reference: Measurement, renyi: Measurement) -> bool:
    case = Case("schedule", "schedules", (Part("gaussian", 1.0, 1000, 0.01),), 1e-5)
    (found,) = outcomes([(case, {"ours": ours, "pld_4": reference, "rdp": renyi})])
    return found.met


def _timed(seconds: float, width: float = 1e-10) -> Measurement:
    return Measurement((seconds,), upper=1.0, lower=1.0 - width)


@pytest.mark.parametrize(
    ("ours", "reference", "renyi", "met"),
    [
        (_timed(1e-3), _timed(0.2), _timed(0.03), True),
        (_timed(1e-3), _timed(0.1), _timed(0.03), False),
        (_timed(1e-3), _timed(0.2), _timed(0.0009), False),
        (_timed(1e-3, width=1e-8), _timed(0.2), _timed(0.03), False),
        (Measurement(failure="over 60 s"), _timed(0.2), _timed(0.03), False),
        (_timed(1e-3), Measurement(failure="over 60 s", over=60.0), _timed(0.03), True),
        (_timed(1e-3), Measurement(failure="ValueError: no"), _timed(0.03), False),
    ],
)
def test_a_target_is_met_only_if_all_of_it_is(
    ours: Measurement, reference: Measurement, renyi: Measurement, met: bool
) -> None:
    assert _outcome(ours, reference, renyi) is met


def test_every_case_belongs_to_a_target_and_every_target_has_cases() -> None:
    assert {case.group for case in cases()} == set(TARGETS)
    assert all(Case.from_json(case.to_json()) == case for case in cases())
    assert (
        len({(case.name, case.delta) for case in cases()}) >= len(cases()) - 2
    )  # two schedules serve two groups
