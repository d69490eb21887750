"""Accounts: prices along a chain, charges, slots and partitions, committed schedules."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest

from dpcompose import Adjacency, BlackBox, Concentrated, Gaussian, GaussianDP, Laplace, compose
from dpcompose.account import (
    Account,
    open_partition,
    open_scope,
    open_scopes,
    open_slots,
    take_slot,
)
from dpcompose.account.opening import BudgetArguments
from dpcompose.account.target import refuse_unknown
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    Budget,
    ConcentratedFilter,
    Curators,
    Filter,
    GaussianFilter,
    Odometer,
    PureFilter,
    RenyiFilter,
)
from dpcompose.errors import (
    DomainError,
    DPComposeError,
    KeyReusedError,
    OverdrawnError,
    ScopeExistsError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.ledger import Amount, Ledger
from dpcompose.mechanisms import DominatingPair
from dpcompose.mechanisms.text import parse, serialize
from tests.laws.members import MEMBERS

ADA: dict[str, Any] = {"actor": "Ada"}


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.open("memory:")


def spent(ledger: Ledger, path: str) -> dict[str, Fraction]:
    return {name: amount.fraction for name, amount in ledger.balance(path).spent.items()}


# Prices


def test_the_price_is_the_largest_of_the_filters_on_the_chain(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=ConcentratedFilter(1.0, delta=1e-5), **ADA)
    account = open_scope(ledger, "world/sales", filter=BasicFilter(5.0, delta=1e-5), **ADA)
    mechanism = BlackBox(0.5, delta=1e-7)
    prices = [
        ConcentratedFilter(1.0, delta=1e-5).price(mechanism),
        BasicFilter(5.0, delta=1e-5).price(mechanism),
    ]
    price = account.price(mechanism)
    assert {name: amount.fraction for name, amount in price.items()} == {
        name: max(each.get(name, Fraction(0)) for each in prices)
        for name in ("rho", "delta", "epsilon")
    }
    receipt = account.charge(mechanism, key="one", **ADA)
    assert dict(receipt.cost) == price
    assert ledger.balance("world").spent["rho"] == price["rho"]


def test_one_filter_that_cannot_price_refuses_the_whole_charge(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(5.0), **ADA)
    account = open_scope(ledger, "world/sales", filter=ConcentratedFilter(1.0, delta=1e-6), **ADA)
    with pytest.raises(UnsupportedError, match="pure filter of 'world'"):
        account.charge(Gaussian(10.0), key="one", **ADA)
    assert [entry.kind for entry in ledger.entries("world")] == ["opened", "opened"]


def test_typed_numbers_are_decimals(ledger: Ledger) -> None:
    account = open_scope(ledger, "world", filter=BasicFilter(10, 1e-5), **ADA)
    assert ledger.balance("world").scope.caps["delta"] == Amount.of("0.00001")
    for number in range(10):
        account.charge(Gaussian(30.0), delta=1e-6, key=str(number), **ADA)
    assert account.left()["delta"].fraction < Fraction(1, 10**20)
    with pytest.raises(OverdrawnError):
        account.charge(Gaussian(30.0), delta=1e-12, key="one more", **ADA)


def test_the_same_key_charges_once(ledger: Ledger) -> None:
    account = open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    first = account.charge(Laplace(10.0), key="mean", **ADA)
    assert account.charge(Laplace(10.0), key="mean", **ADA) == first
    with pytest.raises(KeyReusedError):
        account.charge(Laplace(11.0), key="mean", **ADA)
    assert ledger.balance("world").spent == first.cost


def test_a_refusal_changes_nothing_and_names_the_scope(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(0.5), **ADA)
    account = open_scope(ledger, "world/sales", filter=PureFilter(1.0), **ADA)
    with pytest.raises(OverdrawnError) as refusal:
        account.charge(Laplace(1.25), key="one", **ADA)
    assert (refusal.value.scope, refusal.value.currency) == ("world", "epsilon")
    assert set(spent(ledger, "world").values()) == {0}


def test_left_heeds_the_whole_chain(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(0.5), **ADA)
    account = open_scope(ledger, "world/sales", filter=PureFilter(2.0), **ADA)
    assert account.left()["epsilon"].fraction == Fraction(1, 2)


def test_charges_never_exceed_what_the_filters_themselves_would_grant(ledger: Ledger) -> None:
    """The ledger's decisions are the filter's, a tie of 1e-40 apart."""
    filter = AdvancedFilter(1.0, delta=1e-6, slack=8e-7)
    account, state = open_scope(ledger, "world", filter=filter, **ADA), filter.start()
    for number in range(60):
        mechanism = BlackBox(0.01 + 0.003 * (number % 7), delta=1e-9 * (number % 3))
        state, decision = filter.step(state, mechanism)
        try:
            account.charge(mechanism, key=str(number), **ADA)
            granted = True
        except OverdrawnError:
            granted = False
        assert granted == decision.granted


@pytest.mark.parametrize("mechanism", [None, 1.0, "Laplace(1)", math.nan])
def test_what_is_no_mechanism_is_not_charged(ledger: Ledger, mechanism: Any) -> None:
    account = open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    with pytest.raises(UnsupportedError):
        account.charge(mechanism, key="one", **ADA)


@pytest.mark.parametrize("delta", [math.nan, -1e-9, 2, "much", math.inf, True])
def test_a_bad_delta_is_named(ledger: Ledger, delta: Any) -> None:
    account = open_scope(ledger, "world", filter=BasicFilter(1.0, delta=1e-6), **ADA)
    with pytest.raises(DomainError, match="delta"):
        account.price(Gaussian(10.0), delta=delta)


# Opening


def test_an_account_needs_a_scope_and_a_filter(ledger: Ledger) -> None:
    with pytest.raises(UnknownScopeError):
        Account(ledger, scope="nowhere")
    ledger.scope("raw", caps={"epsilon": 1}, **ADA)
    with pytest.raises(UnsupportedError, match="names no filter"):
        Account(ledger, scope="raw")
    group = open_scope(ledger, "group", filter=None, **ADA)
    assert group.left() == {}
    with pytest.raises(UnsupportedError, match="no filter bounds"):
        group.charge(Laplace(1.0), key="one", **ADA)
    assert [entry.kind for entry in ledger.entries("group")] == ["opened"]


def test_a_description_that_names_other_caps_is_refused(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    said = ledger.balance("world").scope.description
    ledger.scope("forged", caps={"epsilon": 2}, description=said, **ADA)
    with pytest.raises(UnsupportedError, match="caps are not those"):
        Account(ledger, scope="forged")


@pytest.mark.parametrize(
    "budget",
    [
        "pure",
        {},
        {"version": 1},
        {"version": 2, "filter": None, "adjacency": "add-remove"},
        {"version": 1, "filter": None, "adjacency": "both"},
        {"version": 1, "filter": {"filter": "natural"}, "adjacency": "add-remove"},
        {"version": 1, "filter": {"filter": "pure", "version": 1}, "adjacency": "add-remove"},
        {"version": 1, "filter": None, "adjacency": "add-remove", "odometer": {"odometer": "line"}},
        {
            "version": 1,
            "filter": None,
            "adjacency": "add-remove",
            "schedule": [["Laplace(1.0)", -1]],
        },
        {"version": 1, "filter": None, "adjacency": "add-remove", "schedule": "Laplace(1.0)"},
    ],
)
def test_a_description_that_cannot_be_read_is_refused(ledger: Ledger, budget: Any) -> None:
    ledger.scope("odd", description={"budget": budget}, **ADA)
    with pytest.raises(UnsupportedError):
        Account(ledger, scope="odd")


@pytest.mark.parametrize(
    "arguments",
    [
        {"filter": PureFilter(1.0), "epsilon": 1},
        {"filter": PureFilter},
        {"filter": "pure"},
        {"filter": BasicFilter, "epsilon": math.nan, "delta": 1e-6},
        {"filter": BasicFilter, "epsilon": 1, "delta": -1},
        {"filter": PureFilter(1.0), "adjacency": "swap"},
        {"filter": PureFilter(1.0), "schedule": [(Laplace(1.0), 0)]},
        {"filter": None, "schedule": [(Laplace(1.0), 1)]},
    ],
)
def test_bad_openings_are_refused_and_write_nothing(
    ledger: Ledger, arguments: dict[str, Any]
) -> None:
    with pytest.raises(DomainError):
        open_scope(ledger, "world", **arguments, **ADA)
    assert ledger.scopes() == ()


def test_one_adjacency_along_the_chain(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), adjacency=Adjacency.REPLACE, **ADA)
    with pytest.raises(DomainError, match="adjacency"):
        open_scope(ledger, "world/sales", filter=PureFilter(1.0), **ADA)
    account = open_scope(
        ledger, "world/sales", filter=PureFilter(1.0), adjacency=Adjacency.REPLACE, **ADA
    )
    assert account.price(Laplace(4.0))["epsilon"].fraction >= Fraction(1, 2)


# Slots


SLOTTED = [
    (
        ConcentratedFilter(9.0, delta=1e-5),
        PureFilter(0.1),
        {"rho": 10 * 0.1 * math.tanh(0.05), "delta": 0},
    ),
    (
        ConcentratedFilter(9.0, delta=1e-5),
        BasicFilter(0.1, delta=1e-9),
        {"rho": 1.0 * math.tanh(0.05), "delta": 1e-8},
    ),
    (
        ConcentratedFilter(9.0, delta=1e-5),
        ConcentratedFilter(0.01, delta=1e-9),
        {"rho": 0.1, "delta": 1e-8},
    ),
    (ConcentratedFilter(9.0, delta=1e-5), GaussianFilter(0.1), {"rho": 0.05, "delta": 0}),
    (PureFilter(9.0), PureFilter(0.1), {"epsilon": 1.0}),
    (BasicFilter(9.0, delta=1e-5), PureFilter(0.1), {"epsilon": None, "delta": 1e-6}),
    (
        AdvancedFilter(99.0, delta=1e-5, slack=1e-6),
        BasicFilter(0.1, delta=1e-9),
        {"epsilon squared": None, "delta": 1e-6},
    ),
    (
        RenyiFilter(8.0, budget=9.0),
        PureFilter(0.1),
        {"renyi:8": 10 * math.log(math.cosh(0.75) / math.cosh(0.05)) / 7},
    ),
    (RenyiFilter(8.0, budget=9.0), RenyiFilter(16.0, budget=0.1), {"renyi:8": 1.0}),
    (RenyiFilter(8.0, budget=9.0), ConcentratedFilter(0.01, delta=0.0), {"renyi:8": 0.8}),
    (GaussianFilter(9.0), GaussianFilter(0.1), {"mu squared": 0.1}),
]


@pytest.mark.parametrize(
    ("above", "below", "price"), SLOTTED, ids=lambda each: getattr(each, "kind", "")
)
def test_opening_slots_charges_the_chain_once(
    ledger: Ledger, above: Filter, below: Filter, price: dict[str, float | None]
) -> None:
    open_scope(ledger, "world", filter=above, **ADA)
    open_slots(ledger, "world/slots", slots=10, filter=below, delta=1e-6, **ADA)
    charged = spent(ledger, "world")
    for currency, expected in price.items():
        total = below.total(10, delta=1e-6).epsilon
        wanted = expected if expected is not None else total if currency == "epsilon" else total**2
        assert float(charged[currency]) == pytest.approx(wanted, rel=1e-8, abs=1e-300)
    taken = take_slot(ledger, "world/slots/ann", **ADA)
    mechanism = Gaussian(1000.0) if "gaussian" in below.kind else BlackBox(0.001)
    taken.charge(mechanism, key="inside", **ADA)
    assert spent(ledger, "world") == charged


@pytest.mark.parametrize(
    ("above", "below"),
    [
        (PureFilter(9.0), BasicFilter(0.1, delta=1e-9)),
        (PureFilter(9.0), ConcentratedFilter(0.1, delta=0.0)),
        (PureFilter(9.0), GaussianFilter(0.1)),
        (RenyiFilter(8.0, budget=9.0), BasicFilter(0.1, delta=1e-9)),
        (RenyiFilter(8.0, budget=9.0), AdvancedFilter(0.1, delta=1e-9, slack=1e-10)),
        (RenyiFilter(8.0, budget=9.0), RenyiFilter(4.0, budget=0.1)),
        (GaussianFilter(9.0), PureFilter(0.1)),
        (GaussianFilter(9.0), ConcentratedFilter(0.1, delta=0.0)),
        (BasicFilter(9.0, delta=1e-5), ConcentratedFilter(0.1, delta=0.0)),
    ],
    ids=lambda each: each.kind,
)
def test_slots_without_a_price_above_are_refused(
    ledger: Ledger, above: Filter, below: Filter
) -> None:
    open_scope(ledger, "world", filter=above, **ADA)
    with pytest.raises(UnsupportedError):
        open_slots(ledger, "world/slots", slots=10, filter=below, **ADA)
    assert [scope.path for scope in ledger.scopes()] == ["world"]


def test_slots_are_limited_and_each_has_its_own_cap(ledger: Ledger) -> None:
    open_slots(ledger, "slots", slots=2, filter=PureFilter(0.5), **ADA)
    for name in ("a", "b"):
        account = take_slot(ledger, f"slots/{name}", **ADA)
        account.charge(Laplace(4.0), key=name, **ADA)
        with pytest.raises(OverdrawnError):
            account.charge(Laplace(2.0), key=f"{name} more", **ADA)
    with pytest.raises(OverdrawnError):
        take_slot(ledger, "slots/c", **ADA)
    with pytest.raises(DomainError, match="scope of slots"):
        take_slot(ledger, "slots/a/b", **ADA)


# Partitions


def test_only_the_largest_child_of_a_partition_counts_above(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    open_partition(ledger, "world/regions", **ADA)
    for name, scale in [("north", 2.0), ("south", 4.0), ("west", 2.0)]:
        open_scope(ledger, f"world/regions/{name}", filter=PureFilter(1.0), **ADA).charge(
            BlackBox(1 / scale), key=name, **ADA
        )
    assert spent(ledger, "world") == {"epsilon": Fraction(1, 2)}


def test_a_partition_under_replace_is_refused(ledger: Ledger) -> None:
    with pytest.raises(UnsupportedError, match="both pay"):
        open_partition(ledger, "regions", adjacency=Adjacency.REPLACE, **ADA)


# Schedules


def test_a_committed_schedule_is_kept_in_order(ledger: Ledger) -> None:
    schedule = [(Laplace(100.0), 2), Gaussian(50.0) * 3, (BlackBox(0.01), 1)]
    account = open_scope(
        ledger, "world", filter=BasicFilter(5.0, delta=1e-5), schedule=schedule, **ADA
    )
    with pytest.raises(UnsupportedError, match="round 1"):
        account.charge(BlackBox(0.01), key="early", **ADA)
    first = account.charge(Laplace(100.0), key="0", **ADA)
    account.charge(Laplace(100.0), key="1", **ADA)
    assert account.charge(Laplace(100.0), key="0", **ADA) == first
    with pytest.raises(UnsupportedError, match="round 3"):
        account.charge(Laplace(100.0), key="2", **ADA)
    account.charge(Gaussian(50.0) * 3, delta=1e-7, key="2", **ADA)
    account.charge(BlackBox(0.01), key="3", **ADA)
    with pytest.raises(UnsupportedError, match="nothing more was committed"):
        account.charge(BlackBox(0.01), key="4", **ADA)


def test_a_schedule_that_cannot_be_written_down_is_refused(ledger: Ledger) -> None:
    opaque = DominatingPair.atoms(
        upper=[0.6, 0.4], lower=[0.4, 0.6], adjacency=Adjacency.ADD_REMOVE
    )
    with pytest.raises(UnsupportedError, match="written down"):
        open_scope(ledger, "world", filter=PureFilter(1.0), schedule=[opaque], **ADA)


# Wording


@pytest.mark.slow
@pytest.mark.parametrize("member", MEMBERS, ids=lambda member: member.name)
def test_a_mechanism_reads_back_from_its_text(member: Any) -> None:
    for size, variant in [(0.1, 0), (0.3, 1), (0.7, 2)]:
        one = member.build(size, variant)
        for mechanism in (one, one * 3, one + Laplace(3.0), Gaussian(1.0) * 2 + one * 5):
            text = serialize(mechanism)
            assert text is None or compose(parse(text)) == compose(mechanism)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Laplace",
        "Laplace(",
        "Laplace(-1.0)",
        "Laplace(nan)",
        "Laplace('a')",
        "Laplace(1.0, 2.0, 3.0)",
        "Laplace(1.0).epsilon(delta=0.1)",
        "__import__('os').system('true')",
        "print(1)",
        "Laplace(1.0) ** 2",
        "Laplace(__import__('os'))",
        "Laplace(1.0) * -1",
        "1",
        "(" * 300,
        "Laplace(1.0)" * 5000,
        "Laplace(1.0)\n+ exec('1')",
        "Adjacency.REPLACE",
        None,
        1.0,
        b"Laplace(1.0)",
    ],
)
def test_texts_that_are_no_mechanism_are_refused(text: Any) -> None:
    with pytest.raises(DomainError):
        parse(text)


def test_an_opaque_mechanism_is_charged_and_said_to_be_opaque(ledger: Ledger) -> None:
    opaque = DominatingPair.atoms(
        upper=[0.6, 0.4], lower=[0.4, 0.6], adjacency=Adjacency.ADD_REMOVE
    )
    account = open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    account.charge(opaque, key="one", **ADA)
    said = list(ledger.entries("world"))[-1].description
    assert said["mechanism"] is None and "DominatingPair" in said["opaque"]


def test_an_odometer_is_written_at_opening_and_measures_each_charge(ledger: Ledger) -> None:
    odometer = Odometer(1e-6, mechanism_delta=1e-7)
    account = open_scope(
        ledger, "world", filter=ConcentratedFilter(9.0, delta=1e-5), odometer=odometer, **ADA
    )
    account.charge(GaussianDP(0.5), key="0", **ADA)
    account.charge(BlackBox(0.5, delta=1e-9), key="1", **ADA)
    account.charge(Concentrated(0.1), key="2", **ADA)
    mileages = [entry.description["mileage"] for entry in ledger.entries("world", after=1)]
    assert [Fraction(each["failure"]) > 0 for each in mileages] == [False, True, False]
    assert Decimal(0) < sum(Fraction(each["rho"]) for each in mileages)


# Any, since they are called with arguments of the wrong kind.
opening: Any = open_scope
parting: Any = open_partition
taking: Any = take_slot
opened: Any = Account


@pytest.mark.parametrize(
    "ask",
    [
        lambda ledger: opening(ledger, "new", filter=Filter, epsilon=1, **ADA),
        lambda ledger: opening(ledger, 3, filter=None, **ADA),
        lambda ledger: opening(None, "new", filter=None, **ADA),
        lambda ledger: opening(ledger, "new", filter=PureFilter(1.0), schedule=Laplace(1.0), **ADA),
        lambda ledger: opening(
            ledger, "new", filter=PureFilter(1.0), schedule=[(Laplace(1.0), 2, 3)], **ADA
        ),
        lambda ledger: opening(ledger, "new", filter=PureFilter(1.0), note="mine", **ADA),
        lambda ledger: opening(ledger, "new", filter=PureFilter(1.0), odometer="mixture", **ADA),
        lambda ledger: parting(ledger, "new", filter="pure", **ADA),
        lambda ledger: taking(ledger, "new", **ADA),
        lambda ledger: taking(ledger, None, **ADA),
        lambda ledger: opened(ledger, scope=3),
        lambda ledger: opened(None, scope="world"),
        lambda ledger: opened(ledger, scope="world").charge(
            Laplace(9.0), key="0", description="mine", **ADA
        ),
    ],
)
def test_arguments_of_the_wrong_kind_are_named(ledger: Ledger, ask: Any) -> None:
    """The class of all filters, of all things, opened a scope that capped nothing."""
    open_scope(ledger, "world", filter=PureFilter(1.0), **ADA)
    with pytest.raises(DomainError):
        ask(ledger)
    assert [scope.path for scope in ledger.scopes("world")] == ["world"] and not spent(
        ledger, "world"
    )["epsilon"]


# Budgets in words


@pytest.mark.parametrize("text", ["0.1", "0.3", "1e-7", "0.5"])
@pytest.mark.parametrize("how", ["parameters", "target"])
def test_what_is_typed_is_the_cap_exactly(ledger: Ledger, text: str, how: str) -> None:
    """--parameter epsilon=0.1 capped at the double next to one tenth, which is larger."""
    given: dict[str, Any] = {how: {"epsilon": text}}
    scope = BudgetArguments(filter="pure", **given).open(ledger, "world", **ADA)
    assert scope.caps["epsilon"].fraction == Fraction(text)


def test_the_failure_of_an_odometer_is_at_most_what_was_typed(ledger: Ledger) -> None:
    BudgetArguments(filter="pure", parameters={"epsilon": "1"}, odometer="0.1").open(
        ledger, "world", **ADA
    )
    (found,) = [each.odometer for each in Account(ledger, scope="world").chain]
    assert found is not None and Fraction(found.delta) < Fraction(1, 10)


@pytest.mark.parametrize(
    ("spelling", "said"),
    [
        (BudgetArguments(kind="heap"), "filter, slots, partition"),
        (BudgetArguments(filter="natural"), "pure, basic"),
        (BudgetArguments(filter=["pure"]), "pure, basic"),  # type: ignore[arg-type]
        (BudgetArguments(adjacency=["replace"]), "add-remove, replace"),  # type: ignore[arg-type]
        (
            BudgetArguments(filter="basic", parameters={"epsilon": "1"}),
            "those of a basic filter: epsilon, delta",
        ),
        (
            BudgetArguments(filter="pure", parameters={"rho": "1"}),
            "those of a pure filter: epsilon",
        ),
        (BudgetArguments(filter="pure", parameters={"epsilon": "nan"}), "epsilon"),
        (BudgetArguments(filter="pure", target={"delta": "0.1"}), "the target of the budget"),
        (BudgetArguments(filter="pure", target={"epsilon": "1"}, slots=2), "goes with kind slots"),
        (
            BudgetArguments(filter="pure", target={"epsilon": "1"}, price_delta="0.1"),
            "goes with kind slots",
        ),
        (BudgetArguments(kind="partition", odometer="0.1"), "goes with kind filter"),
        (BudgetArguments(kind="slots", slots=2), "the filter that each has"),
    ],
)
def test_words_that_mean_nothing_here_are_refused(
    ledger: Ledger, spelling: BudgetArguments, said: str
) -> None:
    with pytest.raises(DomainError, match=said):
        spelling.open(ledger, "world", **ADA)


def test_a_slot_keeps_the_adjacency_of_the_slots(ledger: Ledger) -> None:
    BudgetArguments(kind="slots", slots=2, filter="pure", parameters={"epsilon": "1"}).open(
        ledger, "world", **ADA
    )
    with pytest.raises(DomainError, match="add-remove, which was fixed with the slots"):
        BudgetArguments(adjacency="replace").open(ledger, "world/a", **ADA)
    assert BudgetArguments().open(ledger, "world/a", **ADA).path == "world/a"


def test_what_goes_on_answering_is_no_charge_inside_a_partition_unless_it_is_pure(
    ledger: Ledger,
) -> None:
    """Of many children one shows early that it is about to fail, and a person who is put there meets the failure."""
    open_scope(ledger, "world", filter=BasicFilter(9.0, delta=0.5), **ADA)
    open_partition(ledger, "world/wards", **ADA)
    north = open_scope(ledger, "world/wards/north", filter=None, **ADA)
    late = BasicFilter(0.1, delta=1e-3)
    with pytest.raises(UnsupportedError, match="in a partition"):
        open_slots(ledger, "world/wards/north/slots", slots=2, filter=late, **ADA)
    with pytest.raises(UnsupportedError, match="in a partition"):
        north.charge(Curators(2, filter=late), key="interactive", **ADA)
    assert not ledger.balance("world").spent["delta"].units
    # One-shot mechanisms with fresh noise, and pure budgets, hold whatever was seen before.
    north.charge(BlackBox(0.1, delta=1e-3), key="one shot", **ADA)
    north.charge(Gaussian(20.0), delta=1e-4, key="noise", **ADA)
    open_slots(ledger, "world/wards/north/pure", slots=2, filter=PureFilter(0.1), **ADA)
    open_slots(ledger, "world/outside", slots=2, filter=late, **ADA)


@pytest.mark.parametrize(
    "filter", [ConcentratedFilter(1.0, delta=0.0), RenyiFilter(8.0, budget=1.0)]
)
def test_averages_bound_no_interaction_inside_a_partition(ledger: Ledger, filter: Filter) -> None:
    open_scope(ledger, "world", filter=filter, **ADA)
    open_partition(ledger, "world/wards", **ADA)
    open_scope(ledger, "world/wards/north", filter=None, **ADA)
    with pytest.raises(UnsupportedError, match="in a partition"):
        open_slots(
            ledger,
            "world/wards/north/slots",
            slots=2,
            filter=ConcentratedFilter(0.01, delta=0.0),
            **ADA,
        )
    open_slots(ledger, "world/wards/north/pure", slots=2, filter=PureFilter(0.01), **ADA)


def test_a_bare_cost_with_a_delta_is_refused_inside_a_partition(ledger: Ledger) -> None:
    open_scope(ledger, "world", filter=BasicFilter(9.0, delta=0.5), **ADA)
    open_partition(ledger, "world/wards", **ADA)
    open_scope(ledger, "world/wards/north", filter=None, **ADA)
    with pytest.raises(UnsupportedError, match="bare cost"):
        refuse_unknown(ledger, "world/wards/north", cost={"delta": "1e-9"})
    refuse_unknown(ledger, "world/wards/north", cost={"delta": 0})
    refuse_unknown(ledger, "world", cost={"delta": "1e-9"})


def test_a_bare_cost_in_averages_is_refused_inside_a_partition(ledger: Ledger) -> None:
    open_scope(ledger, "world", epsilon=1, delta=1e-6, **ADA)
    open_partition(ledger, "world/wards", **ADA)
    open_scope(ledger, "world/wards/north", filter=None, **ADA)
    for name in ledger.balance("world").spent.keys() - {"epsilon"}:
        with pytest.raises(UnsupportedError, match=f"bare cost with a {name} "):
            refuse_unknown(ledger, "world/wards/north", cost={"epsilon": "0.1", name: "1e-9"})
        refuse_unknown(ledger, "world", cost={name: "1e-9"})
    refuse_unknown(ledger, "world/wards/north", cost={"epsilon": "0.1", "delta": "0"})


def test_many_scopes_are_opened_alike_in_one_call(ledger: Ledger) -> None:
    open_scope(ledger, "world", epsilon=2, actor="Grace")
    paths = [f"world/city{city}{street}" for city in range(3) for street in ("", "/a", "/b")]
    words: dict[str, Any] = {"filter": Budget(1), "actor": "Grace"}
    assert open_scopes(ledger, paths, **words) == open_scopes(ledger, iter(paths), **words) == 9
    alone = open_scope(ledger, "world/alone", filter=Budget(1), actor="Grace")
    opened = {scope.path: scope for scope in ledger.scopes("world") if scope.path != "world"}
    assert opened.keys() == {*paths, "world/alone"}
    for path in paths:  # each is the scope that it would be by itself
        assert opened[path].description == alone.chain[-1].scope.description
        assert opened[path].caps == alone.chain[-1].scope.caps
    assert ledger.verify().entries == 11


@pytest.mark.parametrize(
    ("paths", "more", "error"),
    [
        ("world/a", {}, "paths"),
        (["world/a", "world/ b"], {}, "path"),
        (["world/a"], {"adjacency": "replace"}, "scopes above"),
        (["world/a", "world/slots/a"], {}, "outside of slots"),
        (["world/a", "elsewhere/a"], {}, "elsewhere"),
    ],
)
def test_many_scopes_of_which_one_cannot_be_opened(
    ledger: Ledger, paths: Any, more: dict[str, Any], error: str
) -> None:
    open_scope(ledger, "world", epsilon=4, actor="Grace")
    open_slots(ledger, "world/slots", slots=2, filter=Budget(1), actor="Grace")
    with pytest.raises(DPComposeError, match=error):
        open_scopes(ledger, paths, **{"filter": Budget(1), "actor": "Grace"} | more)
    assert len(ledger.scopes()) == 2


def test_a_refusal_among_many_openings_leaves_what_was_opened(ledger: Ledger) -> None:
    open_scope(ledger, "world", epsilon=4, actor="Grace")
    open_scope(ledger, "world/b", epsilon=3, actor="Grace")
    with pytest.raises(ScopeExistsError, match="world/b"):
        open_scopes(ledger, ["world/a", "world/b", "world/c"], filter=Budget(1), actor="Grace")
    assert open_scopes(ledger, ["world/a", "world/c"], filter=Budget(1), actor="Grace") == 2
