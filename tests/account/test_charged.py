"""What a charge stands for: what was paid, whatever its client wrote; a schedule is kept, whoever asks at once."""

from __future__ import annotations

import threading
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest

from dpcompose import Adjacency, Concentrated, Gaussian, Laplace
from dpcompose.account import Account, Exposure, ExposureStatement, exposure, open_scope, open_slots
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
)
from dpcompose.errors import ScopeExistsError, UnsupportedError
from dpcompose.ledger import Ledger

ADA: dict[str, Any] = {"actor": "Ada"}
PURE = "along every path: all charges are pure"


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.open("memory:")


def of(ledger: Ledger, *paths: str, delta: float = 1e-6) -> Exposure:
    return exposure(ledger, paths=paths, delta=delta)


def test_two_threads_never_get_one_round_twice(ledger: Ledger) -> None:
    """Both ask for the first round before either is charged; only one may have it."""
    schedule = [Gaussian(30.0), Gaussian(60.0)]
    open_scope(ledger, "world", filter=ConcentratedFilter(1.0, delta=0.0), schedule=schedule, **ADA)
    accounts, meet = [Account(ledger, scope="world") for _ in range(2)], threading.Barrier(2)
    granted: list[str] = []

    def ask(number: int) -> None:
        decided, account = ledger.store.transact, accounts[number]
        together = SimpleNamespace(transact=lambda request: meet.wait() is None or decided(request))
        object.__setattr__(account, "ledger", Waiting(ledger, together))
        with suppress(UnsupportedError):
            account.charge(Gaussian(30.0), key=str(number), **ADA)
            granted.append(account.scope)

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert granted == ["world"]
    assert of(ledger, "world").spent.regime == "committed schedule"


class Waiting(Ledger):
    """A ledger whose charges wait for each other just before they are decided."""

    def __init__(self, ledger: Ledger, store: Any) -> None:
        store.snapshot = ledger.store.snapshot
        super().__init__(store)


# What a client writes


LIES = [
    {"pure": "0"},
    {"version": 1, "mechanism": None, "adjacency": "add-remove", "pure": "0.001"},
    {
        "version": 1,
        "mechanism": "Laplace(1000000.0)",
        "adjacency": "add-remove",
        "pure": "0.000001",
    },
    {"mechanism": "no mechanism at all", "pure": "0"},
    {"mechanism": 7, "mileage": {"rho": "0", "drift": "0", "failure": "0", "epsilon": "0"}},
]


@pytest.mark.parametrize("said", LIES)
@pytest.mark.parametrize("odometer", [None, Odometer(1e-6)])
def test_what_was_paid_counts_whatever_its_description_says(
    ledger: Ledger, said: dict[str, Any], odometer: Odometer | None
) -> None:
    open_scope(ledger, "world", filter=PureFilter(8.0), odometer=odometer, **ADA)
    ledger.charge("world", cost={"epsilon": "2.5"}, description=said, key="0", **ADA)
    assert of(ledger, "world").spent == ExposureStatement(2.5, "sum along the path", PURE, "sum")


@pytest.mark.parametrize("said", LIES)
def test_an_odometer_reads_what_was_paid(ledger: Ledger, said: dict[str, Any]) -> None:
    odometer = Odometer(1e-6)
    open_scope(ledger, "world", filter=ConcentratedFilter(8.0, delta=0.0), odometer=odometer, **ADA)
    ledger.charge("world", cost={"rho": "0.5", "delta": 0}, description=said, key="0", **ADA)
    spent, state = of(ledger, "world").spent, odometer.step(odometer.start(), Concentrated(0.5))
    assert spent.regime == "odometer" and spent.epsilon >= odometer.reading(state).epsilon


@pytest.mark.parametrize(
    ("filter", "cost"),
    [
        (AdvancedFilter(4.0, delta=1e-3, slack=5e-4), {"epsilon squared": "0.5", "delta": 0}),
        (RenyiFilter(4.0, budget=3.0), {"renyi:4": 1}),
        (GaussianFilter(3.0), {"mu squared": 1}),
        (BasicFilter(4.0, delta=1e-3), {"epsilon": 1, "delta": "1e-6"}),
    ],
)
def test_a_charge_that_nothing_vouches_for_is_not_pure(
    ledger: Ledger, filter: Filter, cost: dict[str, Any]
) -> None:
    open_scope(ledger, "world", filter=filter, **ADA)
    ledger.charge("world", cost=cost, description={"pure": "0.1"}, key="0", **ADA)
    assert not of(ledger, "world").spent.available


def test_a_charge_below_the_price_of_its_mechanism_leaves_no_promise(ledger: Ledger) -> None:
    account = open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    account.charge(Laplace(4.0), key="0", **ADA)
    assert of(ledger, "world", delta=0.0).promised.epsilon == 1.0
    ledger.charge(
        "world", cost={"epsilon": "0.1"}, description={"mechanism": "Laplace(0.5)"}, key="1", **ADA
    )
    found = of(ledger, "world")
    assert not found.promised.available and "charge 3 of 'world' paid less" in found.promised.holds
    assert found.spent.epsilon == 2.25


def test_slots_that_were_opened_below_their_price_leave_no_promise(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(8.0), **ADA)
    slots = open_slots(ledger, "world/slots", slots=4, filter=PureFilter(1.0), **ADA)
    assert of(ledger, "world", delta=0.0).promised.epsilon == 8.0
    said = {"caps": slots.caps, "description": slots.description, "kind": "slots", "slots": 40}
    ledger.scope("world/more", cost={"epsilon": "0.5"}, **said, **ADA)
    assert "'world/more' was charged less" in of(ledger, "world", delta=0.0).promised.holds


def test_an_account_of_before_charges_no_scope_that_was_opened_otherwise() -> None:
    """A standby took over that never had the scope: the same path, the same currency, another adjacency."""
    ledgers = [Ledger.open("memory:") for _ in range(2)]
    for ledger, adjacency in zip(ledgers, (Adjacency.ADD_REMOVE, Adjacency.REPLACE), strict=True):
        open_scope(ledger, "world", filter=PureFilter(8.0), adjacency=adjacency, **ADA)
    account = Account(ledgers[0], scope="world")
    assert account.adjacency is Adjacency.ADD_REMOVE
    object.__setattr__(account, "ledger", ledgers[1])
    with pytest.raises(ScopeExistsError):
        account.charge(Laplace(1.0), key="0", **ADA)
    assert (
        Account(ledgers[1], scope="world")
        .charge(Laplace(1.0), key="0", **ADA)
        .cost["epsilon"]
        .fraction
        == 2
    )
