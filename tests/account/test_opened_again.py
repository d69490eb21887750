"""A scope that is opened again is the same scope, also where another version searched for its limits."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpcompose.account import open_partition, open_scope, open_scopes
from dpcompose.account.opening import BudgetArguments
from dpcompose.adaptive import Budget
from dpcompose.adaptive.theorems import Gaussian, Theorem
from dpcompose.errors import ScopeExistsError
from dpcompose.ledger import Ledger

WORDS: dict[str, dict[str, str]] = {
    "concentrated": {"delta": "0/1", "rho": "0.02435599893576366"},
    "basic": {"delta": "1/1000000", "epsilon": "1/1"},
    "renyi": {"budget": "0.5354553638895618", "order": "21.9845371697538"},
    "gaussian": {"mu": "0.23670438066343094"},
}
"""What the first versions wrote for the words `--filter NAME --epsilon 1 --delta 1e-6`."""


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.open("memory:")


@pytest.mark.parametrize("name", WORDS)
def test_the_words_of_a_filter_mean_what_they_meant(ledger: Ledger, name: str) -> None:
    words = BudgetArguments(filter=name, target={"epsilon": "1", "delta": "1e-6"})
    scope = words.open(ledger, "city", actor="Ada")
    stated = dict(scope.description["budget"]["filter"])
    assert (stated.pop("filter"), stated.pop("version")) == (name, 2)
    assert stated.keys() == WORDS[name].keys()
    for key, text in WORDS[name].items():
        if "/" in text:
            assert stated[key] == text
        else:
            assert math.isclose(float(stated[key]), float(text), rel_tol=1e-12)


def searched_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    """Another version: its limits of mu are one unit in the last place lower."""
    most: Any = Gaussian.most.__func__  # type: ignore[attr-defined]

    def lower(cls: type[Theorem], *target: float) -> float:
        return math.nextafter(most(cls, *target), 0.0)

    monkeypatch.setattr(Gaussian, "most", classmethod(lower))


def test_limits_may_differ_in_their_last_digits(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = BudgetArguments(filter="gaussian", target={"epsilon": "1", "delta": "1e-6"})

    def open_all() -> list[Any]:
        open_scope(ledger, "city", epsilon=1, delta="1e-6", actor="Ada")
        Budget(1, 1e-6).open(ledger, "town", actor="Ada")
        open_partition(ledger, "town/wards", filter=Budget(1, 1e-6), actor="Ada")
        open_scopes(ledger, ["city/a", "city/b"], filter=Budget(1, 1e-6), actor="Ada")
        words.open(ledger, "village", actor="Ada")
        return [(each.scope.path, each.scope.caps) for each in ledger.balances()]

    first = open_all()
    searched_otherwise(monkeypatch)
    assert open_all() == first
    for other in (Budget(1 + 1e-9, 1e-6), Budget(1, 1e-6, reserve=2e-7), Budget(1, 2e-6)):
        with pytest.raises(ScopeExistsError):
            other.open(ledger, "town", actor="Ada")
    with pytest.raises(ScopeExistsError):
        Budget.limited("gaussian", 0.25).open(ledger, "village", actor="Ada")
