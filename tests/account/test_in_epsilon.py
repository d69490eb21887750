"""What is asked, spent and left, in epsilon: what is shown is what the ledger would grant."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import suppress
from fractions import Fraction

import pytest

from dpcompose import BlackBox, Gaussian, Laplace, RandomizedResponse
from dpcompose.account import as_promise, open_partition, open_scope
from dpcompose.account.opening import open_slots, take_slot
from dpcompose.account.target import balance_in_epsilon, target_of
from dpcompose.adaptive import (
    Budget,
    ConcentratedFilter,
    MenuFilter,
)
from dpcompose.composition import Composable
from dpcompose.errors import OverdrawnError, ScopeExistsError
from dpcompose.ledger import Ledger
from dpcompose.report.ledger import left_of, tree_page


@pytest.fixture
def ledger() -> Ledger:
    return Ledger.open("memory:")


def test_a_scope_below_leaves_no_more_than_those_above(ledger: Ledger) -> None:
    open_scope(ledger, "w", epsilon=1, delta=1e-6, only="zcdp", actor="a")
    open_scope(ledger, "w/large", filter=ConcentratedFilter(100.0, delta=0.0), actor="a")
    open_partition(ledger, "w/parts", actor="a")
    open_scope(ledger, "w/parts/one", filter=None, actor="a").charge(
        Gaussian(30.0), actor="a", key="1"
    )
    open_slots(ledger, "w/slots", slots=3, filter=ConcentratedFilter(1e-3, delta=0.0), actor="a")
    take_slot(ledger, "w/slots/x", actor="a")
    balances = ledger.balances()
    assert left_of(balances) == {
        each.scope.path: ledger.available(each.scope.path) for each in balances
    }
    shown = [
        cell
        for table in tree_page(balances, where="w").tables
        for row in table.rows
        for cell in row
    ]
    assert (
        "100" in shown and shown.count("100") == 1
    )  # its own cap, and no more is left of it than above


def test_a_refusal_names_the_scope_and_its_epsilon(ledger: Ledger) -> None:
    open_scope(ledger, "w", epsilon=2, delta="1e-6", only="zcdp", actor="a")
    below = open_scope(ledger, "w/b", filter=ConcentratedFilter(100.0, delta=0.0), actor="a")
    with pytest.raises(
        OverdrawnError, match=r"^w/b: epsilon 5.22154 asked, 2 left at delta 1e-6 .*w is"
    ) as caught:
        below.charge(Gaussian(1.0), actor="a", key="1")
    assert "The budget of w is epsilon 2 at delta 1e-6" in str(caught.value)
    assert not any(len(word) > 12 for word in str(caught.value).split())
    again = open_scope(ledger, "w", epsilon=2.0, delta=1e-6, only="zcdp", actor="a")
    assert again.chain[0].target == ("2", "0.000001")
    with pytest.raises(ScopeExistsError):
        open_scope(ledger, "w", epsilon=1, delta=1e-6, only="zcdp", actor="a")
    assert "epsilon 2 at delta 10⁻⁶" in below._repr_html_()  # pyright: ignore[reportPrivateUsage]


def test_children_that_spent_in_different_ways_are_told_apart(ledger: Ledger) -> None:
    """Counts (8, 0) of one child and (0, 4) of another are each within the menu, and nobody met (8, 4)."""
    small, large = BlackBox(0.05), BlackBox(0.1)
    states = ((8, 0), (6, 1), (4, 2), (2, 3), (0, 4))
    menu = MenuFilter((small, large), epsilon=1, delta=1e-6, states=states)  # type: ignore[arg-type]
    open_scope(ledger, "w", filter=menu, actor="a")
    open_partition(ledger, "w/wards", actor="a")
    north, south = (
        open_scope(ledger, f"w/wards/{name}", filter=None, actor="a") for name in ("north", "south")
    )
    for number in range(8):
        north.charge(small, actor="a", key=f"north {number}")
    for number in range(8):
        south.charge(small, actor="a", key=f"south {number}")
    with pytest.raises(OverdrawnError, match="ask for less"):
        south.charge(small, actor="a", key="one more")
    other = open_scope(ledger, "w/wards/east", filter=None, actor="a")
    for number in range(4):
        other.charge(large, actor="a", key=f"east {number}")
    assert [each.room(each.price(large)) for each in (north, south, other)] == [0, 0, 0]
    assert "100 % of the budget spent" in ledger.balance("w").in_words
    assert len(ledger.balance("w").front) == 2
    years = open_partition(ledger, "w/years", actor="a")
    young = open_scope(ledger, f"{years.path}/young", filter=None, actor="a")
    with pytest.raises(
        OverdrawnError, match="ask for less"
    ):  # somebody from the north may be young
        young.charge(small, actor="a", key="young")
    ledger.verify()


@pytest.mark.parametrize("only", ["zcdp", "gaussian", "renyi"])
def test_the_whole_budget_is_its_target(only: str) -> None:
    made = Budget(1, 1e-6, only=only)
    assert made.epsilon_of(made.caps, delta=1e-6) == pytest.approx(1, rel=1e-5)
    assert made.epsilon_of({name: Fraction(0) for name in made.caps}, delta=1e-6) == 0


def test_targets_are_read_without_a_library_of_numbers():
    code = (
        "import sys; from dpcompose.account import balance_in_epsilon, refuse_unknown, target_of; "
        "from dpcompose.ledger import Ledger; Ledger.open('memory:'); "
        "print({'numpy', 'scipy', 'pydantic', 'msgspec'} & sys.modules.keys())"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "set()\n"


def test_a_refusal_by_a_budget_states_what_was_asked() -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "city", epsilon=1, delta=1e-6, actor="a")
    asked = as_promise(ledger, "city", {"epsilon": "9", "delta": "0"})
    assert asked is not None
    with pytest.raises(OverdrawnError, match="epsilon 9 asked, 1 left"):
        account.charge(asked, actor="a", key="nine")


def test_a_refusal_never_reads_as_if_it_would_fit() -> None:
    """Sampled noise alone is 0.57 by one theorem, and what noise of another kind left is 0.6 by another."""
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "city", epsilon=1, delta=1e-6, actor="a")
    refusals: list[str] = []
    for number, mechanism in enumerate(
        [Laplace(4.0), Gaussian(9.0), BlackBox(0.25, delta=1e-9)] * 3
    ):
        with suppress(OverdrawnError):
            account.charge(mechanism, actor="a", key=str(number))
            continue
        with pytest.raises(OverdrawnError) as caught:
            account.charge(mechanism, actor="a", key=f"again {number}")
        refusals.append(str(caught.value))
    assert len(refusals) > 3
    for said in refusals:
        asked, left = map(float, re.findall(r"([0-9.]+)(?: %[a-z ]*)? (?:asked, |left)", said)[:2])
        assert asked > left and "renyi" not in said, said


def test_a_refusal_by_a_menu_is_in_epsilon() -> None:
    ledger, menu = Ledger.open("memory:"), [RandomizedResponse(1 / 8), RandomizedResponse(1 / 2)]
    filter = MenuFilter.for_target(menu, 1.0, 1e-6)
    account = open_scope(ledger, "menu", filter=filter, actor="a")
    with pytest.raises(OverdrawnError, match=r"epsilon 0.125001 asked, 0 left at delta 1e-6"):
        for number in range(9):
            account.charge(menu[0], actor="a", key=str(number))


def test_a_menu_is_read_in_epsilon(ledger: Ledger) -> None:
    """What is left of a menu is the worst case of what it still grants, whoever opened it."""
    menu = MenuFilter.for_target([RandomizedResponse(0.0625), RandomizedResponse(0.125)], 1, 1e-6)
    account = open_scope(ledger, "w", filter=menu, actor="a")
    balance, left = ledger.balance("w"), ledger.available("w")
    assert target_of(balance.scope) == ("1", "0.000001")
    assert balance_in_epsilon(balance, left) == (0.0, 1.0)
    for number in range(3):
        account.charge(RandomizedResponse(0.125), actor="a", key=str(number))
    spent, remaining = balance_in_epsilon(ledger.balance("w"), ledger.available("w")) or (0.0, 0.0)
    # Losses so few and large compose like their sum.
    assert spent == pytest.approx(0.375, abs=1e-3) and remaining == pytest.approx(0.625, abs=1e-2)
    shown = [row for table in tree_page(ledger.balances(), where="w").tables for row in table.rows]
    assert any("epsilon" in row and "1 at 1e-6" in row for row in shown)


@pytest.mark.parametrize(
    "menu",
    [
        [Gaussian(20.0)],
        [Laplace(3.0), Gaussian(20.0)],
        [RandomizedResponse(0.02), RandomizedResponse(0.05), RandomizedResponse(0.2)],
    ],
    ids=len,
)
def test_what_a_menu_leaves_falls_from_its_epsilon(menu: list[Composable]) -> None:
    filter = MenuFilter.for_target(menu, 1.0, 1e-6)
    state, known = filter.start(), [0.0]
    before = filter.epsilon_of(state.left, delta=1e-6, left=True, spent=state.spent)
    assert before is not None and before <= 1.0
    for mechanism in menu:
        state, _ = filter.step(state, mechanism)
        spent = filter.epsilon_of(state.spent, delta=1e-6)
        left = filter.epsilon_of(state.left, delta=1e-6, left=True, spent=state.spent)
        assert spent is not None and left is not None and left <= before
        known, before = [*known, spent], left
    assert known == sorted(known) and known[-1] > 0.1
