"""Individual accounting: exact against a slow model, silent about who drops out, and sound for each record."""

from __future__ import annotations

import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from hypothesis.extra import numpy as arrays

from dpcompose import Adjacency, Gaussian, Laplace
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    ConcentratedFilter,
    Filter,
    GaussianFilter,
    IndividualFilter,
    PureFilter,
    Records,
    RenyiFilter,
)
from dpcompose.errors import DomainError, UnsupportedError

FILTERS: list[Filter] = [
    PureFilter(1.0),
    ConcentratedFilter(0.5, delta=0.0),
    RenyiFilter(8.0, budget=1.0),
    GaussianFilter(0.7),
]
every_filter = pytest.mark.parametrize("filter", FILTERS, ids=lambda each: each.kind)


def gaussian(size: float) -> Gaussian:
    return Gaussian(4.0, sensitivity=size)


def laplace(size: float) -> Laplace:
    return Laplace(4.0, sensitivity=size)


def mask(round: Any) -> list[bool]:
    return round.answer(lambda active: active.tolist())


def model(individual: IndividualFilter, spent: int, price: float) -> tuple[int, bool]:
    """One record, in whole numbers and fractions."""
    if not 0 <= price < math.inf:
        return spent, False
    units = math.ceil(Fraction(price) / Fraction(individual.unit))
    return (spent + units, True) if spent + units <= individual.limit else (spent, False)


@every_filter
@settings(max_examples=40, deadline=None)
@given(
    rounds=st.lists(
        arrays.arrays(
            np.float64, 7, elements=st.one_of(st.floats(0, 0.6), st.floats(allow_nan=True))
        ),
        max_size=12,
    ),
)
def test_every_record_is_charged_exactly(filter: Filter, rounds: list[Any]) -> None:
    individual = IndividualFilter(filter)
    state, expected = individual.start(7), [0] * 7
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for prices in rounds:
            state, round = individual.step(state, prices=prices)
            after = [
                model(individual, spent, float(price))
                for spent, price in zip(expected, prices, strict=True)
            ]
            expected = [spent for spent, _ in after]
            assert state.spent.tolist() == expected
            assert mask(round) == [taken for _, taken in after]


@every_filter
@settings(max_examples=30, deadline=None)
@given(prices=st.lists(st.floats(0, 1), min_size=1, max_size=60))
def test_no_record_pays_less_than_its_prices_or_more_than_the_limit(
    filter: Filter, prices: list[float]
) -> None:
    individual = IndividualFilter(filter)
    limit = next(iter(filter.limits.values()))
    state, true = individual.start(1), Fraction(0)
    for price in prices:
        state, round = individual.step(state, prices=[price])
        true += Fraction(price) if mask(round)[0] else 0
    assert true <= int(state.spent[0]) * Fraction(individual.unit) <= limit


@every_filter
def test_the_limit_is_good_to_a_part_in_a_hundred_million(filter: Filter) -> None:
    individual = IndividualFilter(filter)
    limit = next(iter(filter.limits.values()))
    reached = individual.limit * Fraction(individual.unit)
    assert limit * (1 - Fraction(1, 10**8)) < reached <= limit


def test_a_price_that_underflows_is_not_free() -> None:
    individual = IndividualFilter(PureFilter(2.0**49))
    state, _ = individual.step(individual.start(1), prices=[5e-324])
    assert state.spent.tolist() == [1]


def test_one_record_does_not_feel_the_others() -> None:
    individual = IndividualFilter(PureFilter(1.0))
    generator = np.random.default_rng(5)
    prices = generator.uniform(0, 0.4, (20, 50))
    alone, crowd = individual.start(1), individual.start(50)
    for row in prices:
        alone, one = individual.step(alone, prices=row[:1])
        crowd, all = individual.step(crowd, prices=row)
        assert mask(one)[0] == mask(all)[0] and alone.spent[0] == crowd.spent[0]


def test_the_caller_is_shown_nothing() -> None:
    individual = IndividualFilter(PureFilter(1.0))
    fresh = individual.start(3)
    state, round = individual.step(fresh, prices=[0.5, 2.0, 0.5])
    assert repr(state) == "<Records of 3>" and repr(round) == "<Round>" == str(round)
    assert set(vars(round)) == {"active"} and set(vars(state)) == {"spent", "filter"}
    assert fresh.spent.tolist() == [0, 0, 0]
    for array in (state.spent, round.active):
        with pytest.raises(ValueError):
            array[0] = 1


def test_the_round_always_answers_and_bad_prices_are_silent() -> None:
    individual = IndividualFilter(PureFilter(1.0))
    state, round = individual.step(individual.start(4), prices=[math.nan, -1.0, math.inf, 7.0])
    assert mask(round) == [False] * 4 and state.spent.tolist() == [0] * 4
    assert round.answer(lambda active: 3.25 + active.sum()) == 3.25


def test_what_the_mechanism_raises_leaves_the_round_paid() -> None:
    individual = IndividualFilter(PureFilter(1.0))
    state, round = individual.step(individual.start(1), prices=0.75)

    def broken(active: Any) -> float:
        raise RuntimeError("disk")

    with pytest.raises(RuntimeError):
        round.answer(broken)
    _, again = individual.step(state, prices=0.75)
    assert mask(again) == [False]


@pytest.mark.parametrize(
    "prices",
    [
        [0.1],
        [0.1, 0.2, 0.3],
        [[0.1, 0.2]],
        ["a", "b"],
        None,
        [None, 0.1],
        [1j, 1j],
        [[0.1], [0.2, 0.3]],
        [True, False],
    ],
)
def test_prices_of_the_wrong_shape_are_refused_without_their_values(prices: Any) -> None:
    individual = IndividualFilter(PureFilter(1.0))
    with pytest.raises(DomainError, match="2 numbers") as refusal:
        individual.step(individual.start(2), prices=prices)
    assert "0.1" not in str(refusal.value)


@pytest.mark.parametrize(
    ("filter", "noise", "prices", "mechanism"),
    [
        (GaussianFilter(9.0), {"sigma": 4.0}, "gaussian_prices", gaussian),
        (ConcentratedFilter(9.0, delta=0.0), {"sigma": 4.0}, "gaussian_prices", gaussian),
        (RenyiFilter(6.0, budget=9.0), {"sigma": 4.0}, "gaussian_prices", gaussian),
    ],
)
def test_prices_of_records_are_those_of_mechanisms_of_their_sensitivity(
    filter: Filter, noise: dict[str, float], prices: str, mechanism: Any
) -> None:
    sizes = np.array([0.001, 0.3, 1.0, 2.5, 40.0])
    found = getattr(IndividualFilter(filter), prices)(sizes, **noise)
    for size, price in zip(sizes, found, strict=True):
        (stated,) = list(filter.price(mechanism(float(size))).values())[:1]
        assert Fraction(price) >= stated * (1 - Fraction(1, 10**14))
        if filter.kind != "renyi" or "sigma" in noise:
            assert Fraction(price) <= stated * (1 + Fraction(1, 10**13))


def test_noise_without_a_price_is_refused() -> None:
    with pytest.raises(UnsupportedError):
        IndividualFilter(PureFilter(1.0)).gaussian_prices(1.0, sigma=1.0)


@pytest.mark.parametrize(
    "build",
    [
        lambda: IndividualFilter(BasicFilter(1.0, delta=1e-6)),
        lambda: IndividualFilter(AdvancedFilter(1.0, delta=1e-6, slack=1e-7)),
        lambda: IndividualFilter(ConcentratedFilter(1.0, delta=1e-9)),
        lambda: IndividualFilter(PureFilter(1.0), adjacency=Adjacency.REPLACE),
    ],
)
def test_what_is_not_proved_for_individuals_is_refused(build: Any) -> None:
    with pytest.raises(UnsupportedError):
        build()


@every_filter
def test_the_whole_limit_is_one_charge_to_a_budget_above(filter: Filter) -> None:
    above = ConcentratedFilter(9.0, delta=1e-6)
    asked = above.price(IndividualFilter(filter).budget, delta=1e-9)
    known = filter.promised().zcdp()
    least = Fraction(known.rho) * (1 - Fraction(1, 10**14)) if known is not None else None
    assert asked["rho"] >= (
        filter.limits[next(iter(filter.limits))] / 8 if least is None else least
    )


def test_states_come_from_start() -> None:
    individual = IndividualFilter(PureFilter(1.0))
    with pytest.raises(DomainError):
        individual.step(np.zeros(3), prices=0.1)  # type: ignore[arg-type]
    with pytest.raises(DomainError):
        individual.start(-1)
    assert isinstance(individual.start(0), Records)


def test_records_stay_with_the_filter_they_were_started_with() -> None:
    """Units differ: 1 of a limit of 1,000 would be less than half of a limit of 1, and 0.9 more would be granted."""
    wide, narrow = IndividualFilter(PureFilter(1000.0)), IndividualFilter(PureFilter(1.0))
    state, _ = wide.step(wide.start(1), prices=[1.0])
    with pytest.raises(DomainError, match="this very filter"):
        narrow.step(state, prices=[0.9])


def test_no_price_becomes_smaller_on_its_way_to_a_double() -> None:
    individual = IndividualFilter(PureFilter(2.0**49))
    long = np.array([1], dtype=np.longdouble) + np.longdouble(2) ** -60
    with pytest.raises(DomainError, match="1 numbers"):
        individual.step(individual.start(1), prices=long)
    (price,) = IndividualFilter(GaussianFilter(1.0)).gaussian_prices([2**53 + 1], sigma=1.0)
    assert int(price) >= (2**53 + 1) ** 2


def test_what_moves_nothing_costs_nothing() -> None:
    individual = IndividualFilter(ConcentratedFilter(0.5, delta=0.0))
    prices = individual.gaussian_prices([0.0, 1e-200], sigma=1.0)
    assert prices[0] == 0.0 < prices[1]


@pytest.mark.parametrize("sensitivity", ["wide", None, [1j], [None]])
def test_sensitivities_are_numbers(sensitivity: Any) -> None:
    with pytest.raises(DomainError, match="sensitivity"):
        IndividualFilter(ConcentratedFilter(0.5, delta=0.0)).gaussian_prices(sensitivity, sigma=1.0)


@pytest.mark.parametrize("limit", [5e-324, 1e-310, 1e-100, 1e15])
def test_limits_of_any_size_have_a_unit(limit: float) -> None:
    individual = IndividualFilter(PureFilter(limit))
    _, round = individual.step(individual.start(2), prices=[0.0, 2e15])
    assert mask(round) == [True, False]


@pytest.mark.parametrize(
    "build",
    [
        lambda: IndividualFilter("pure"),  # type: ignore[arg-type]
        lambda: IndividualFilter(PureFilter(1.0), adjacency=3),  # type: ignore[arg-type]
        lambda: IndividualFilter(PureFilter(1.0), adjacency=[]),  # type: ignore[arg-type]
        lambda: IndividualFilter(PureFilter(1.0)).start(10**30),
    ],
)
def test_what_is_no_argument_of_individuals_is_refused_by_name(build: Any) -> None:
    with pytest.raises(DomainError, match=r"^(filter|adjacency|count) = .*expected"):
        build()


def test_a_sensitivity_that_is_no_number_costs_more_than_any_limit() -> None:
    individual = IndividualFilter(ConcentratedFilter(1.0, delta=0.0))
    given = [math.nan, -1.0, math.inf, 0.0, 0.1]
    prices = individual.gaussian_prices(given, sigma=1.0)
    assert list(prices[:4]) == [math.inf, math.inf, math.inf, 0.0] and 0.0 < prices[4] < 0.01
    _, played = individual.step(individual.start(5), prices=prices)
    assert played.answer(list) == [False, False, False, True, True]
