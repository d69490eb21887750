"""Amounts: what a person types is taken exactly, what a theorem computed is rounded in a stated direction."""

from __future__ import annotations

import pickle
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, strategies as st

from dpcompose.errors import DomainError, OverdrawnError
from dpcompose.ledger import Amount, Amounts, Ledger
from dpcompose.ledger.amount import text_of, units_of

GRID = Fraction(1, 10**40)
FLOATS = st.floats(0, 1e39, allow_nan=False)


@pytest.mark.parametrize(
    "typed", [0.1, "0.1", ".1", "1e-1", "+0.10", Decimal("0.1"), Fraction(1, 10), Amount.of("0.1")]
)
def test_one_tenth_is_one_tenth(typed: float) -> None:
    assert Amount.of(typed).fraction == Fraction(1, 10)
    assert str(Amount.of(typed)) == "0.1"


@given(FLOATS)
def test_computed_floats_are_rounded_outward_by_less_than_the_grid(value: float) -> None:
    up, down = Amount.up(value).fraction, Amount.down(value).fraction
    assert down <= Fraction(value) <= up
    assert up - Fraction(value) < GRID
    assert Fraction(value) - down < GRID


@given(st.fractions(0, 10**6))
def test_computed_fractions_are_rounded_outward(value: Fraction) -> None:
    up, down = Amount.up(value).fraction, Amount.down(value).fraction
    assert down <= value <= up < down + 2 * GRID


@given(st.integers(0, 10**80 - 1))
def test_texts_read_back(units: int) -> None:
    assert units_of(text_of(units)) == units
    assert Amount.of(text_of(units)).units == units


@given(st.text(alphabet="0123456789.", max_size=60))
def test_only_canonical_texts_are_read(text: str) -> None:
    try:
        units = units_of(text)
    except ValueError:
        return
    assert text_of(units) == text


@given(st.floats(1e-20, 1e20))
def test_a_typed_float_is_its_shortest_decimal(value: float) -> None:
    assert Amount.of(value).fraction == Fraction(repr(value))


def test_amounts_are_values() -> None:
    amounts = Amounts.of({"epsilon": 0.1, "delta": 0})
    assert list(amounts) == ["delta", "epsilon"]
    assert pickle.loads(pickle.dumps(amounts)) == amounts
    assert hash(amounts) == hash(Amounts.of({"delta": "0", "epsilon": "0.1"}))
    assert Amount.of(1) - Amount.of("0.9") == Amount.of(0.1) < Amount.of(0.2)
    with pytest.raises(AttributeError):
        amounts.units = {}  # type: ignore[misc]
    with pytest.raises(DomainError):
        _ = Amount.of(1) - Amount.of(2)


def test_three_tenths_fit_a_cap_of_three_tenths() -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("world", caps={"epsilon": 0.3}, actor="Ada")
    for number in range(3):
        ledger.charge("world", cost={"epsilon": 0.1}, actor="Ada", key=str(number))
    with pytest.raises(OverdrawnError):
        ledger.charge("world", cost={"epsilon": "1e-40"}, actor="Ada", key="more")


def test_sums_end_at_the_exact_total() -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("world", caps={"epsilon": 10**6}, actor="Ada")
    costs = ["0.1", "1e-30", "3e-40", "0.7"]
    for number in range(2000):
        ledger.charge("world", cost={"epsilon": costs[number % 4]}, actor="Ada", key=str(number))
    assert ledger.balance("world").spent["epsilon"].fraction == 500 * sum(
        Fraction(cost) for cost in costs
    )
