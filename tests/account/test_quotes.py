"""An account remembers the last mechanisms that it priced; no entry has the words or the price of another."""

from __future__ import annotations

from decimal import Decimal
from typing import Any, cast

from dpcompose import Gaussian, Laplace
from dpcompose.account import Account, open_scope
from dpcompose.account.account import MOST_QUOTES
from dpcompose.adaptive import BasicFilter
from dpcompose.ledger import Ledger


def _account() -> Account:
    return open_scope(
        Ledger.open("memory:"), "a", filter=BasicFilter(1000.0, delta=0.5), actor="keeper"
    )


def test_entries_have_the_price_and_the_words_of_their_own_mechanism() -> None:
    account, fresh = _account(), _account()
    mechanisms = [Laplace(2.0 + place) for place in range(MOST_QUOTES + 3)] * 2
    for place, mechanism in enumerate(mechanisms):
        account.charge(mechanism, actor="Ada", key=str(place))
        alone = Account(fresh.ledger, scope="a")  # which remembers nothing
        alone.charge(mechanism, actor="Ada", key=str(place))
    found, expected = (
        [(e.cost, e.description) for e in each.ledger.entries("a")] for each in (account, fresh)
    )
    assert found == expected
    assert {each["mechanism"] for _, each in found if "mechanism" in each} == {
        repr(each) for each in mechanisms
    }


def test_a_note_stays_with_its_charge() -> None:
    account, mechanism = _account(), Laplace(2.0)
    for key, note in (("1", None), ("2", {"query": "age"}), ("3", None)):
        account.charge(mechanism, actor="Ada", key=key, description=note)
    assert [each.description.get("note") for each in account.ledger.entries("a") if each.key] == [
        None,
        {"query": "age"},
        None,
    ]


def test_another_delta_is_another_price() -> None:
    account, mechanism = _account(), Gaussian(3.0)
    for place, delta in enumerate(("1e-6", Decimal("1e-6"), 1e-6, "1e-9", 1e-6)):
        account.charge(mechanism, actor="Ada", key=str(place), delta=delta)
    found = [
        (each.cost["epsilon"], each.description["delta"])
        for each in account.ledger.entries("a")
        if each.key
    ]
    assert [delta for _, delta in found] == ["1/1000000"] * 3 + ["1/1000000000", "1/1000000"]
    assert found[0] == found[1] == found[2] == found[4] and found[3][0] > found[0][0]


def test_what_may_change_is_priced_anew() -> None:
    class Changing:
        mechanism = Laplace(2.0)

        def __getattr__(self, name: str) -> Any:
            return getattr(self.mechanism, name)

    account, changing = _account(), Changing()
    account.charge(cast("Any", changing), actor="Ada", key="1")
    changing.mechanism = Laplace(0.5)
    account.charge(cast("Any", changing), actor="Ada", key="2")
    first, second = (each.cost["epsilon"] for each in account.ledger.entries("a") if each.key)
    assert float(first.fraction) == 0.5 and float(second.fraction) == 2
