"""Partitions tell apart what different people met; `campaigns.fronts` tries more trees."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from campaigns.fronts import FEW, apart, first, grown
from dpcompose import BlackBox, Gaussian
from dpcompose.account import Account, open_partition, open_scope
from dpcompose.adaptive import Budget
from dpcompose.errors import CurrencyError, OverdrawnError
from dpcompose.ledger import Amount, Kind, Ledger
from dpcompose.ledger.front import MOST_VECTORS, maximal


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.open("memory:")


ADA: dict[str, Any] = {"actor": "Ada"}
SETS = [{"a": "4", "b": "0"}, {"a": "0", "b": "4"}]
CAPS = {"a": 4, "b": 4}


def test_a_charge_is_granted_where_it_is_for_every_person() -> None:
    assert [found for seed in range(4) for found in grown(seed)] == []


def test_partitions_that_are_judged_each_by_itself_are_caught() -> None:
    with patch("dpcompose.ledger.scope.reduce", apart):
        assert list(grown(12))


def test_where_sums_are_put_together_nothing_is_granted_that_does_not_fit() -> None:
    assert [found for seed in range(3) for found in grown(seed, kept=FEW)] == []
    with patch("dpcompose.ledger.front.max", first, create=True):
        assert list(grown(0, kept=FEW))


def _wards(ledger: Ledger, **fronts: bool) -> None:
    budget = {"budget": {"alternatives": SETS}}
    ledger.scope("w", caps=CAPS, description=budget, **ADA)
    ledger.scope("w/wards", kind="partition", description={"budget": fronts}, **ADA)
    for name in ("north", "south"):
        ledger.scope(f"w/wards/{name}", **ADA)
    ledger.charge("w/wards/north", cost={"a": 4, "b": 0}, key="1", **ADA)


def test_a_partition_that_was_opened_without_fronts_is_charged_as_before(ledger: Ledger) -> None:
    _wards(ledger)
    assert ledger.available("w/wards/south").texts() == {"a": "4", "b": "0"}
    with pytest.raises(OverdrawnError):
        ledger.charge("w/wards/south", cost={"a": 0, "b": 1}, key="2", **ADA)
    ledger.charge("w/wards/south", cost={"a": 4, "b": 0}, key="3", **ADA)
    assert len(ledger.balance("w").front) == 1


def test_fronts_are_stored_and_followed(tmp_path: Path) -> None:
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        _wards(ledger, fronts=True)
        ledger.charge("w/wards/south", cost={"a": 0, "b": 3}, key="2", **ADA)
    with Ledger.open(tmp_path / "ledger.db") as ledger:
        assert ledger.available("w/wards/south").texts() == {"a": "0", "b": "1"}
        assert ledger.balance("w").spent.texts() == {"a": "4", "b": "3"}
        assert len(ledger.balance("w").front) == 2
        with pytest.raises(OverdrawnError) as refusal:
            ledger.charge("w/wards/south", cost={"a": 0, "b": 2}, key="3", **ADA)
        assert (str(refusal.value.requested), str(refusal.value.left)) == ("2", "1")
        with pytest.raises(OverdrawnError):  # the budget's own charges are about everybody
            ledger.charge("w", cost={"a": 0, "b": 1}, key="4", **ADA)
        ledger.charge("w/wards/south", cost={"a": 0, "b": 1}, key="5", **ADA)
        ledger.verify()


def test_of_more_vectors_than_are_kept_neighbors_are_put_together() -> None:
    vectors = [{"a": place, "b": -place} for place in range(MOST_VECTORS + 1)]
    assert maximal(vectors[1:], "ab") == tuple(vectors[:0:-1])
    pairs = tuple({"a": place, "b": min(1 - place, 0)} for place in range(MOST_VECTORS, -1, -2))
    assert maximal(vectors, "ab") == pairs
    assert maximal([{"a": 1, "b": 2, "c": 5}, {"a": 1, "b": 1, "c": 9}], "ab") == (
        {"a": 1, "b": 2},
    )


@pytest.mark.parametrize("theorems", [None, "zcdp"])
def test_a_partition_says_that_it_has_fronts_where_these_matter(
    ledger: Ledger, theorems: str | None
) -> None:
    open_scope(ledger, "w", filter=Budget(1, 1e-6, only=theorems), **ADA)
    scope = open_partition(ledger, "w/wards", **ADA)
    assert scope.has_fronts is (theorems is None)
    assert open_partition(ledger, "w/wards", **ADA) == scope


def test_a_partition_of_an_earlier_version_is_opened_again(ledger: Ledger) -> None:
    open_scope(ledger, "w", filter=Budget(1, 1e-6), **ADA)
    description = {"budget": {"version": 1, "filter": None, "adjacency": "add-remove"}}
    earlier = ledger.scope("w/wards", kind=Kind.PARTITION, description=description, **ADA)
    assert open_partition(ledger, "w/wards", **ADA) == earlier


def test_with_more_sums_than_are_kept_a_charge_does_what_the_room_said() -> None:
    """Sixty-five children, of which none has spent less than another one of everything."""
    with Ledger.open("memory:") as ledger:
        open_scope(ledger, "ward", epsilon=1, delta=1e-6, actor="Ada")
        open_partition(ledger, "ward/cells", actor="Ada")

        def cell(name: str) -> Account:
            return open_scope(ledger, f"ward/cells/{name}", filter=None, actor="Ada")

        cell("noise").charge(Gaussian(8.0), actor="Ada", key="noise")
        for place in range(63):
            mechanism = BlackBox(0.9 - place / 1000, delta=1e-9 * (place + 1))
            cell(f"c{place}").charge(mechanism, actor="Ada", key=str(place))
        for place, mechanism in enumerate(
            (BlackBox(0.83, delta=7e-8), Gaussian(2.0).sampled(0.01))
        ):
            account = cell(f"new{place}")
            assert account.room(account.price(mechanism)) > 0
            account.charge(mechanism, actor="Ada", key=f"new {place}")
        assert len(ledger.balance("ward").front) <= MOST_VECTORS
        with pytest.raises(CurrencyError):
            account.room({"epsilon": Amount.of(1)})
