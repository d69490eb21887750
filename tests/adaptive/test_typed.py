"""A float that is typed as an amount is its shortest decimal; noise is priced at the costlier of both its readings."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.account import exposure, open_scope
from dpcompose.adaptive import (
    AdvancedFilter,
    BasicFilter,
    Budget,
    ConcentratedFilter,
    Curators,
    Filter,
    GaussianFilter,
    MenuFilter,
    PureFilter,
    RenyiFilter,
    UnionFilter,
    from_description,
)
from dpcompose.errors import DomainError
from dpcompose.ledger import Ledger
from dpcompose.values.exact import exact, rounded_down, rounded_up


def granted(filter: Filter, mechanism: Any, times: int) -> bool:
    state, decision = filter.start(), None
    for _ in range(times):
        state, decision = filter.step(state, mechanism)
    return decision is not None and decision.granted and not any(state.left.values())


@pytest.mark.parametrize(
    ("filter", "mechanism", "times"),
    [
        (PureFilter(0.1), RandomizedResponse(0.1), 1),
        (PureFilter(0.1), RandomizedResponse(0.1, categories=7), 1),
        (PureFilter(np.float64(0.1)), RandomizedResponse(np.float64(0.1)), 1),
        (PureFilter(0.1), Exponential(0.1), 1),
        (PureFilter(0.1), Laplace(10.0), 1),
        (PureFilter(10.0), Laplace(0.1), 1),
        (PureFilter(0.3), DiscreteLaplace(10.0, shift=1), 3),
        (PureFilter(0.1), Curators(1, filter=PureFilter(0.1)), 1),
        (PureFilter(0.3), BlackBox(0.1) * 3, 1),
        (PureFilter(0.7), BlackBox(0.1), 7),
        (BasicFilter(0.3, delta=0), BlackBox(0.1), 3),
        (BasicFilter(0.3, delta=3e-7), BlackBox(0.1, delta=1e-7), 3),
        (ConcentratedFilter(0.3, delta=3e-7), Concentrated(0.1, delta=1e-7), 3),
        (ConcentratedFilter(0.005, delta=0.0), Gaussian(10.0), 1),
        (GaussianFilter(0.1), GaussianDP(0.1), 1),
        (GaussianFilter(0.3), GaussianDP(0.1), 9),
        (GaussianFilter(0.1), Gaussian(10.0), 1),
    ],
    ids=repr,
)
def test_what_is_typed_fits_to_the_last_digit(filter: Filter, mechanism: Any, times: int) -> None:
    assert granted(filter, mechanism, times)


def test_a_scope_of_a_tenth_pays_for_a_tenth() -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "world", filter=PureFilter(0.1), actor="Ada")
    account.charge(RandomizedResponse(0.1), actor="Ada", key="0")
    assert not account.left()["epsilon"].units


def test_deltas_that_are_named_add_up_as_typed() -> None:
    budget = BasicFilter(9.0, delta=3e-7)
    state = budget.start()
    for _ in range(3):
        state, decision = budget.step(state, Gaussian(10.0), delta=1e-7)
    assert decision.granted and state.left["delta"] == 0
    assert budget.epsilon_at(delta=3e-7) == 9.0


@settings(max_examples=100, deadline=None)
@given(st.floats(1e-6, 1e6), st.floats(1e-3, 1e3), st.sampled_from(Adjacency))
def test_noise_is_priced_at_the_costlier_reading(
    noise: float, sensitivity: float, adjacency: Adjacency
) -> None:
    if not 1e-9 < sensitivity / noise < 1e5:
        return
    twice = 2 if adjacency is Adjacency.REPLACE else 1
    truth = max(
        Fraction(reach) / Fraction(scale)
        for reach in (sensitivity, repr(sensitivity))
        for scale in (noise, repr(noise))
    )
    epsilon = PureFilter(1.0).price(Laplace(noise, sensitivity=sensitivity), adjacency=adjacency)[
        "epsilon"
    ]
    square = GaussianFilter(1.0).price(
        Gaussian(noise, sensitivity=sensitivity), adjacency=adjacency
    )["mu squared"]
    assert 0 <= epsilon - truth * twice <= Fraction(1, 10**40) and 0 <= square - (
        truth * twice
    ) ** 2 <= Fraction(1, 10**40)


@pytest.mark.parametrize("rate", [0.07, 0.1, 0.3, 0.7])
def test_a_rate_is_priced_at_the_costlier_reading(rate: float) -> None:
    """Randomized response on a sample: its largest loss is log(1 + q (e^epsilon - 1)), at either reading of q."""
    (price,) = PureFilter(9.0).price(RandomizedResponse(0.5).sampled(rate)).values()
    with_both = max(float(Fraction(rate)), float(Fraction(repr(rate))))
    assert price >= math.log1p(with_both * math.expm1(0.5)) * (1 - 1e-15)
    (moment,) = RenyiFilter(2.0, budget=9.0).price(Gaussian(1.0).sampled(rate)).values()
    assert moment >= (Gaussian(1.0).sampled(math.nextafter(rate, 0.0))).renyi(2.0).lower


@given(st.fractions(0, 10))
def test_a_rounded_end_bounds_the_number_at_both_readings(number: Fraction) -> None:
    upper, lower = rounded_up(number), rounded_down(number)
    assert (
        max(Fraction(lower), Fraction(repr(lower)))
        <= number
        <= min(Fraction(upper), Fraction(repr(upper)))
    )
    assert upper <= math.nextafter(float(number), math.inf) and lower >= math.nextafter(
        float(number), -math.inf
    )


def test_a_target_is_not_missed_by_a_reading() -> None:
    """What a constructor finds in doubles is a cap whose decimal is not above it."""
    for epsilon in (0.1, 0.3, 0.7, 1.1):
        for only in ("pure", "zcdp", "renyi", "gaussian"):
            assert Budget(epsilon, 1e-6, only=only).epsilon_at(delta=1e-6) <= epsilon


def test_descriptions_of_exact_doubles_are_still_read_as_such() -> None:
    old = {"filter": "pure", "version": 1, "epsilon": "0.1"}
    assert from_description(old).limits == {"epsilon": Fraction(0.1)}
    assert from_description(PureFilter(0.1).description()).limits == {"epsilon": Fraction(1, 10)}


SAME: list[Callable[[Any], Filter]] = [
    PureFilter,
    lambda number: BasicFilter(1.0, delta=number),
    lambda number: BasicFilter(number, delta=0),
    lambda number: AdvancedFilter(1.0, delta=0.5, slack=number),
    lambda number: ConcentratedFilter(number, delta=0),
    lambda number: RenyiFilter(2.0, budget=number),
    GaussianFilter,
    lambda number: UnionFilter((PureFilter(number),), (0,)),
    lambda number: UnionFilter((PureFilter(1.0),), (number,)),
    lambda number: MenuFilter((compose(BlackBox(0.1)),), epsilon=number, delta=0.1, states=((1,),)),
]


@pytest.mark.parametrize("build", SAME)
def test_filters_are_equal_if_their_numbers_are_the_same_exactly(
    build: Callable[[Any], Filter],
) -> None:
    for typed in (0.1, 0.3):
        double, tenths = build(Fraction(typed)), build(Fraction(repr(typed)))
        assert (
            build(typed) == tenths and hash(build(typed)) == hash(tenths) and build(typed) != double
        )
        with pytest.raises(DomainError, match="state of this filter"):
            build(typed).step(double.start(), BlackBox(0.01))
        assert from_description(double.description()) == double
    assert build(1 / 2) == build(Fraction(1, 2)) and build(1 / 2) != PureFilter(7.0)


def test_a_promise_does_not_depend_on_what_was_asked_before() -> None:
    ledger = Ledger.open("memory:")
    for path, number in (("double", Fraction(0.3)), ("tenths", 0.3)):
        open_scope(ledger, path, filter=PureFilter(number), actor="Ada")
    promised = [
        exposure(ledger, paths=[path], delta=0.0).promised.epsilon for path in ("double", "tenths")
    ]
    assert exact(promised[0]) >= Fraction(0.3) and exact(promised[1]) >= Fraction(3, 10)
    assert promised[1] == Curators(1, filter=PureFilter(0.3)).total(delta=0.0).epsilon


class Louder(Laplace):
    """Another mechanism than the one it is made from."""

    def pairs(self, adjacency: Adjacency) -> Any:
        return Laplace(self.scale / 2).pairs(adjacency)


def test_a_subclass_with_other_losses_is_not_priced_by_what_its_parent_states() -> None:
    assert PureFilter(9.0).price(Louder(1.0))["epsilon"] >= 2
