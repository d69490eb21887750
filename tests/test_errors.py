"""Errors cross the border between processes as they are."""

from __future__ import annotations

import copy
import inspect
import pickle

import pytest

from dpcompose import errors

SAMPLES = [
    errors.DomainError("sigma", -1.0, "a number > 0", "Take its absolute value"),
    errors.UnsupportedError("this", "that", "Do something else"),
    errors.OverdrawnError("city", "epsilon", "2", "1"),
    errors.LedgerError("nothing was changed"),
]
CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, errors.DPComposeError)
]


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__name__)
def test_an_error_survives_a_pickle(error: errors.DPComposeError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert str(again) == str(error)
        assert vars(again) == vars(error)


@pytest.mark.parametrize("name", ["sigma", "--key", "PLAN", "spend['rho']", "[1]"])
def test_a_value_that_is_missing_is_not_printed(name: str) -> None:
    error = errors.DomainError(name, None, "a number", "Take one")
    assert str(error) == f"{name} is missing: expected a number. Take one" and error.value is None
    assert (
        str(errors.DomainError(name, "None", "a number")) == f"{name} = 'None': expected a number"
    )
    assert "None" not in str(
        errors.PlanError("plan.toml", "mechanism[1]", "scale", None, "a number")
    )


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_every_class_survives(kind: type[errors.DPComposeError]) -> None:
    error = kind.__new__(kind, "said")
    error.args = ("said",)
    error.note = "kept"  # type: ignore[attr-defined]
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and again.args == ("said",) and vars(again) == {"note": "kept"}
