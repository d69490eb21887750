"""The short version of campaigns.robustness, and planted defects that it finds."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from typing import Any

import pytest

from campaigns.robustness import commands, plans, run
from campaigns.robustness.cases import Case
from campaigns.robustness.values import VALUES
from dpcompose import check
from dpcompose.errors import DomainError


@pytest.mark.slow
def test_every_public_callable_meets_bad_values_with_documented_errors() -> None:
    assert len(VALUES) >= 70
    counts, found = run.calls(every=97)
    assert counts.callables > 250 and counts.calls > 600
    assert found == []


@pytest.mark.slow
def test_generated_plans_give_numbers_or_errors() -> None:
    assert plans.run(12, seed=2) == []


@pytest.mark.slow
def test_a_command_whose_output_is_full_is_told_in_one_sentence() -> None:
    assert commands.run(["--version"], {"full output": ">/dev/full"}) == []


def _healthy(epsilon: float) -> float:
    return check.nonnegative("epsilon", epsilon)


def _foreign_error(epsilon: float) -> float:
    return math.sqrt(_healthy(epsilon) - 0.1)


def _accepts_all(epsilon: float) -> float:
    return 1.0 if epsilon else 2.0


def _not_a_number(epsilon: float) -> float:
    return _healthy(epsilon) * math.nan


def _type_error_inside(epsilon: float) -> float:
    return epsilon + 1.0


def _works_for_ever(epsilon: float) -> float:
    while _healthy(epsilon) > 1e100:
        pass
    return 1.0


def _warns(epsilon: float) -> float:
    if _healthy(epsilon) > 1.0:
        warnings.warn("of something", stacklevel=1)
    return 1.0


def _obeyed_by_terminals(epsilon: float) -> float:
    if not isinstance(epsilon, float):
        raise DomainError("epsilon", epsilon, f"a float, not {epsilon!s:.10}")
    return 1.0 if _healthy(epsilon) else 2.0


def _case(planted: Callable[..., Any]) -> Case:
    return Case(planted.__name__, lambda: planted, lambda: {"epsilon": 0.5})


@pytest.mark.parametrize(
    "planted",
    [
        _foreign_error,
        _accepts_all,
        _not_a_number,
        _type_error_inside,
        _works_for_ever,
        _warns,
        _obeyed_by_terminals,
    ],
)
def test_a_planted_defect_is_found(planted: Callable[..., Any]) -> None:
    assert run.calls(subjects=[_case(planted)], work=10_000)[1]


def test_what_is_in_order_is_not_found() -> None:
    assert run.calls(subjects=[_case(_healthy)])[1] == []


def test_a_planted_defect_of_a_plan_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(plans.plan, "account", lambda *_: {}["total"])
    assert plans.run(5, seed=1)
