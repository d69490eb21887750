"""Renyi curves: tables and functions, alone and composed with losses, against mechanisms that have
the curve.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpcompose import Adjacency, Concentrated, Gaussian, Laplace
from dpcompose.adaptive import ConcentratedFilter, PureFilter, RenyiFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.renyi import lossless_epsilon
from dpcompose.mechanisms import DominatingPair, RenyiCurve
from oracles import renyi

ADD_REMOVE = Adjacency.ADD_REMOVE
ORDERS = [1.5, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]


def table(rho: float, orders: list[float] = ORDERS) -> RenyiCurve:
    return RenyiCurve([rho * order for order in orders], orders=orders, holds_under=ADD_REMOVE)


def test_a_function_is_as_good_as_a_rho() -> None:
    curve, training = (
        RenyiCurve(lambda order: 0.02 * order, holds_under=ADD_REMOVE),
        Gaussian(1.0).sampled(0.01) * 1000,
    )
    for rest in (training, Gaussian(1.0), Laplace(10.0) * 100):
        found, known = (
            (each + rest).epsilon(delta=1e-6).upper for each in (curve, Concentrated(0.02))
        )
        assert found == pytest.approx(known, rel=1e-12)
    assert (curve + training).epsilon(delta=1e-6).upper < 2.3758
    assert (curve * 7).renyi(3.0).upper == pytest.approx(0.42, rel=1e-12)
    assert curve.delta(epsilon=0.5).upper == pytest.approx(
        Concentrated(0.02).delta(epsilon=0.5).upper, rel=1e-9
    )


def test_a_table_is_above_the_curve_and_below_each_of_its_orders() -> None:
    for delta in (1e-2, 1e-5, 1e-9):
        found, best = (
            table(0.05).epsilon(delta=delta),
            Concentrated(0.05).epsilon(delta=delta).upper,
        )
        each = min(lossless_epsilon(0.05 * order, order=order, delta=delta) for order in ORDERS)
        assert found.lower == 0 and best <= found.upper <= each * (1 + 1e-12)
    assert table(0.05, [3]).epsilon(delta=0.01).upper <= lossless_epsilon(
        0.05 * 3, order=3, delta=0.01
    ) * (1 + 1e-12)


def test_between_the_orders_lies_a_chord() -> None:
    known = RenyiCurve([0.1, 0.4], orders=[2, 5], holds_under=ADD_REMOVE)
    chord = (Fraction(0.1) * (5 - 3) + 4 * Fraction(0.4) * (3 - 2)) / (5 - 2) / 2
    assert chord <= known.renyi(3.0).upper <= chord * (1 + Fraction(1, 10**14))
    assert known.renyi(1.2).upper == known.renyi(2.0).upper and known.renyi(5.0).upper < math.inf
    assert known.renyi(5.1).upper == math.inf and known.renyi(2.0).lower == 0
    assert RenyiCurve([0.1, 0.4, math.inf], orders=[2, 5, 9], holds_under=ADD_REMOVE) == known


@pytest.mark.parametrize("masses", [(0.75, 0.25), (0.5625, 0.375), (0.0625, 0.015625)])
@pytest.mark.parametrize("times", [1, 4])
def test_a_mechanism_that_has_the_curve_is_below(masses: tuple[float, float], times: int) -> None:
    """Two outcomes have exact divergences and profiles."""
    p, q = masses
    pair = DominatingPair.atoms(upper=[p, 1 - p], lower=[q, 1 - q], adjacency=ADD_REMOVE)
    values = [renyi.two_point(p, q, order) for order in ORDERS]
    known = RenyiCurve(values, orders=ORDERS, holds_under=ADD_REMOVE)
    for rest in (None, Laplace(4.0) * 2):
        truth, found = (
            each * times if rest is None else each * times + rest for each in (pair, known)
        )
        for epsilon in (0.0, 0.4, 1.5):
            assert truth.delta(epsilon=epsilon).lower <= found.delta(epsilon=epsilon).upper
        assert truth.epsilon(delta=1e-4).lower <= found.epsilon(delta=1e-4).upper
    small = (
        RenyiCurve([value / 8 for value in values], orders=ORDERS, holds_under=ADD_REMOVE) * times
    )
    assert (pair * times).delta(epsilon=0.4).lower > small.delta(epsilon=0.4).upper


def test_its_price() -> None:
    known = table(0.02)
    assert RenyiFilter(8.0, budget=1.0).price(known)["renyi:8"] == pytest.approx(0.16)
    assert ConcentratedFilter(1.0, delta=1e-3).price(known, delta=1e-6)["rho"] > 0.02
    with pytest.raises(UnsupportedError, match="curve"):
        ConcentratedFilter(1.0, delta=1e-3).price(known)
    for refusing in (PureFilter(1.0), RenyiFilter(65.0, budget=1.0)):
        with pytest.raises(UnsupportedError):
            refusing.price(known)


def test_refusals_name_the_remedy() -> None:
    known = table(0.02)
    with pytest.raises(UnsupportedError, match=r"holds_under=Adjacency\.REPLACE"):
        known.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    with pytest.raises(UnsupportedError, match="no group guarantee"):
        known.group(2).epsilon(delta=1e-6)
    with pytest.raises(UnsupportedError, match="Renyi curve"):
        known.sampled(0.1).epsilon(delta=1e-6)
    with pytest.raises(DomainError, match="decrease"):
        RenyiCurve([0.3, 0.2], orders=[2, 4], holds_under=ADD_REMOVE)
    with pytest.raises(DomainError, match="finite at some order"):
        RenyiCurve([math.inf, math.inf], orders=[2, 4], holds_under=ADD_REMOVE)
    with pytest.raises(DomainError, match="2 values"):
        RenyiCurve([0.1], orders=[2, 4], holds_under=ADD_REMOVE)
    with pytest.raises(DomainError, match="curve"):
        RenyiCurve(lambda order: 0.1 if order < 1025 else math.nan, holds_under=ADD_REMOVE).renyi(
            2000.0
        )


def test_a_mass_outside() -> None:
    known = RenyiCurve([0.1, 0.4], orders=[2, 5], holds_under=ADD_REMOVE, delta=1e-6)
    assert known.epsilon(delta=1e-6).upper == math.inf
    assert (
        known.epsilon(delta=1e-3).upper
        > RenyiCurve([0.1, 0.4], orders=[2, 5], holds_under=ADD_REMOVE).epsilon(delta=1e-3).upper
    )
    assert (known + Gaussian(2.0)).delta(epsilon=5.0).lower >= 1e-6 * (1 - 1e-9)
    assert (
        repr(known)
        == "RenyiCurve((0.1, 0.4), orders=(2.0, 5.0), holds_under=Adjacency.ADD_REMOVE, delta=1e-06)"
    )
