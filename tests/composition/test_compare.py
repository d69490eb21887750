"""The comparison of theorems: which ones apply, in which order, and that none is below the
certified interval.
"""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Composition,
    Concentrated,
    DiscreteLaplace,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.composition import Comparison, compare
from dpcompose.errors import DomainError
from dpcompose.guarantee import gaussian, optimal

CASES: list[tuple[Any, float]] = [
    (BlackBox(0.1) * 100, 1e-6),
    (BlackBox(0.1, delta=1e-9) * 100, 1e-6),
    (BlackBox(1 / 801) * 10_000, math.exp(-32)),
    (compose(BlackBox(0.1) * 10, BlackBox(0.2, delta=1e-8) * 5, BlackBox(0.3)), 1e-5),
    (Gaussian(10.0) * 100, 1e-5),
    (Gaussian(1.0).sampled(0.01) * 1000, 1e-5),
    (Laplace(1.0) * 1, 1e-6),
    (Laplace(5.0) * 3 + Gaussian(3.0), 1e-6),
    (RandomizedResponse(0.5, categories=4) * 20, 1e-6),
    (DiscreteLaplace(4.0) * 6, 1e-4),
    (Concentrated(0.1) + Laplace(3.0), 1e-6),
    (GaussianDP(0.5) * 4, 0.3),
    (BlackBox(0.1) * 100, 0.0),
    (BlackBox(0.1) * 3, 1.0),
]


def named(rows: tuple[Comparison, ...]) -> dict[str, Comparison]:
    return {row.name: row for row in rows}


@pytest.mark.parametrize(("composition", "delta"), CASES)
def test_no_bound_is_below_the_certified_interval(composition: Any, delta: float) -> None:
    rows = compare(compose(composition), delta=delta)
    (certified,) = [row for row in rows if row.kind == "certified"]
    assert certified.lower is not None and certified.lower <= certified.epsilon
    bounds = [row for row in rows if row.kind != "estimate"]
    assert all(row.epsilon >= certified.lower for row in bounds)
    assert [row.epsilon for row in bounds] == sorted(row.epsilon for row in bounds)
    assert list(rows[len(bounds) :]) == [row for row in rows if row.kind == "estimate"]
    assert all(row.name and row.reference.startswith("[") for row in rows)
    assert len({row.name for row in rows}) == len(rows)


def test_every_theorem_about_equal_promises() -> None:
    rows = named(compare(BlackBox(0.1) * 100, delta=1e-6))
    assert rows["advanced composition"].epsilon == pytest.approx(6.30823095051340822674, rel=1e-14)
    assert rows["advanced, tight mean loss"].epsilon == pytest.approx(
        5.75610551933573170061, rel=1e-14
    )
    assert rows["basic composition"].epsilon == 10.0 or rows[
        "basic composition"
    ].epsilon == pytest.approx(10, rel=1e-15)
    wanted = optimal.homogeneous_epsilon(1e-6, epsilon=0.1, times=100)
    assert rows["optimal composition of the promises"].epsilon == wanted.upper
    assert rows["certified composition"].lower == pytest.approx(wanted.lower, rel=1e-12)
    assert {"zero-concentrated", "Renyi, best order and conversion", "central limit"} <= rows.keys()


def test_what_the_deltas_of_the_parts_use_up() -> None:
    rows = named(compare(BlackBox(0.1, delta=1e-7) * 100, delta=1e-5))
    # 100 deltas of 1e-7 and the slack of 3.20 do not fit; nor does, at doubles, their sum.
    assert "advanced composition" not in rows
    rows = named(compare(BlackBox(0.1, delta=1e-8) * 100, delta=1e-5))
    smaller = named(compare(BlackBox(0.1) * 100, delta=9e-6))["advanced composition"].epsilon
    assert rows["advanced composition"].epsilon == pytest.approx(smaller, rel=1e-9)


def test_infeasible_is_infinite_and_says_so_once() -> None:
    rows = compare(BlackBox(0.1, delta=1e-3) * 100, delta=1e-6)
    assert [row.epsilon for row in rows] == [math.inf] and rows[0].kind == "certified"


def test_gaussians_are_exact() -> None:
    rows = named(compare(Gaussian(10.0) * 100, delta=1e-5))
    assert rows["Gaussian"].epsilon == pytest.approx(
        gaussian.gaussian_epsilon(1e-5, mu=1.0).upper, rel=1e-12
    )
    assert "central limit" not in rows and "basic composition" not in rows


def test_the_central_limit_is_an_estimate() -> None:
    rows = compare(compose(Gaussian(1.0).sampled(0.01) * 1000), delta=1e-5)
    last = rows[-1]
    assert last.kind == "estimate" and last.lower is None and "no bound" in last.note
    (certified,) = [row for row in rows if row.kind == "certified"]
    # It is too small here: offering it as a bound would be wrong.
    assert certified.lower is not None and last.epsilon < certified.lower


def test_a_part_without_losses_leaves_the_curves() -> None:
    rows = named(compare(Concentrated(0.1) + Laplace(3.0), delta=1e-6))
    assert "optimal composition of the promises" not in rows and "basic composition" not in rows
    assert {
        "certified composition",
        "zero-concentrated",
        "Renyi, best order and conversion",
    } <= rows.keys()


def test_replacing_costs_more() -> None:
    add, replace = (
        named(compare(compose(Laplace(5.0) * 3), delta=1e-6, adjacency=adjacency))
        for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE)
    )
    for name in add.keys() & replace.keys():
        assert add[name].epsilon < replace[name].epsilon


def test_nothing_costs_nothing() -> None:
    rows = compare(Composition(), delta=0.0)
    assert all(row.epsilon == 0.0 for row in rows)


@pytest.mark.parametrize("delta", [-0.1, 1.1, math.nan, math.inf, True, "x", None])
def test_bad_delta(delta: Any) -> None:
    with pytest.raises(DomainError):
        compare(BlackBox(0.1) * 2, delta=delta)


@pytest.mark.parametrize(
    "bad", [{"adjacency": "swap"}, {"orientation": 1}, {"tolerance": 0.0}, {"tolerance": math.nan}]
)
def test_bad_keywords(bad: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        compare(BlackBox(0.1) * 2, delta=0.1, **bad)
