"""The number of counting queries that can be answered to an accuracy."""

from __future__ import annotations

import math
from typing import Any

import pytest

import dpcompose.release as release
from dpcompose import Exponential, Gaussian, Laplace, compose
from dpcompose.errors import DomainError
from dpcompose.guarantee import advanced
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.release import counting


@pytest.fixture(scope="module")
def plan() -> release.CountingPlan:
    return release.plan(10**6, accuracy=1e-3, epsilon=1.0, delta=1e-6)


def test_each_number_is_the_largest(plan: release.CountingPlan) -> None:
    basic, printed, laplace, gaussian, *_ = plan.rows
    # P(|noise| > 1000) = 0.05.
    assert math.exp(-1000 / basic.noise) == pytest.approx(0.05)
    assert math.erfc(1000 / gaussian.noise / math.sqrt(2)) == pytest.approx(0.05)
    assert basic.queries == math.floor(basic.noise)
    each = ApproximateDP(1 / printed.noise)
    at = [
        advanced.printed_advanced([(each, int(printed.queries) + more)], slack=1e-6).epsilon
        for more in (0, 1)
    ]
    assert at[0] <= 1 < at[1]
    for row, mechanism in ((laplace, Laplace(laplace.noise)), (gaussian, Gaussian(gaussian.noise))):
        k = int(row.queries)
        assert compose(mechanism * k).epsilon(delta=1e-6).upper <= 1
        assert compose(mechanism * (k + 2)).epsilon(delta=1e-6).lower > 1 - 1e-6
    assert basic.queries < printed.queries < laplace.queries < gaussian.queries


def test_the_growth_is_n_and_n_squared() -> None:
    small, large = (release.plan(n, accuracy=0.01, epsilon=1.0, delta=1e-6) for n in (10**6, 10**7))
    assert large.rows[0].queries / small.rows[0].queries == pytest.approx(10, rel=0.01)
    for one, other in zip(small.rows[1:4], large.rows[1:4], strict=True):
        assert other.queries / one.queries == pytest.approx(100, rel=0.02)


def test_coordinated_answering_is_exponential_where_it_reaches() -> None:
    few, many = (
        release.plan(n, accuracy=0.1, epsilon=1.0, delta=1e-6, domain=1024)
        for n in (10**8, 2 * 10**8)
    )
    assert math.log(many.rows[4].queries) == pytest.approx(
        2 * math.log(few.rows[4].queries), rel=0.1
    )
    few, many = (
        release.plan(n, accuracy=0.1, epsilon=1.0, delta=1e-6, domain=1024)
        for n in (10**6, 2 * 10**6)
    )
    assert math.log(many.rows[5].queries) == pytest.approx(
        2 * math.log(few.rows[5].queries), rel=0.2
    )
    assert few.rows[5].accuracy == "all at once"
    assert all(
        row.queries == 0
        for row in release.plan(10**6, accuracy=1e-3, epsilon=1.0, delta=1e-6).rows[4:]
    )


def test_with_a_delta_the_coordinated_error_grows_as_the_square_root() -> None:
    """n^(2/3) without a delta, sqrt(n) with one, but for logarithms."""

    def error(method: str, n: int) -> float:
        found = release.plan(n, accuracy=0.5, epsilon=1.0, delta=1e-6)
        (curve,) = (each for each in found.curves(points=2) if each.method == method)
        return curve.points[0][1] * n

    assert error("coordinated", 10**9) / error("coordinated", 10**7) == pytest.approx(
        100 ** (2 / 3), rel=0.1
    )
    zcdp = error("coordinated, zCDP", 10**9) / error("coordinated, zCDP", 10**7)
    assert zcdp == pytest.approx(10, rel=0.15)


def test_a_round_of_the_coordinated_row_costs_its_share() -> None:
    """T choices and T measurements of the row's own noise are certified within epsilon at delta."""
    epsilon, delta, turns = 1.0, 1e-6, 500
    pure, concentrated = counting.round_costs(epsilon, delta)
    choice, scale = Exponential(2 / pure.choice(turns)), Laplace(2 * turns / epsilon)
    assert compose(choice * turns, scale * turns).epsilon(delta=0.0).upper <= epsilon * (1 + 1e-9)
    choice, sigma = Exponential(2 / concentrated.choice(turns)), concentrated.noise(turns, 0.5)
    assert (
        0.9 * epsilon
        < compose(choice * turns, Gaussian(sigma) * turns).epsilon(delta=delta).upper
        <= epsilon
    )


def test_the_curves_meet_the_plan(plan: release.CountingPlan) -> None:
    by_name = {row.method: row for row in plan.rows}
    for curve in plan.curves(points=9):
        errors = [error for _, error in curve.points]
        assert errors == sorted(errors)
        for queries, error in curve.points:
            if curve.method in by_name and not curve.method.startswith("coordinated"):
                assert (error <= plan.accuracy * (1 + 1e-6)) == (
                    queries <= by_name[curve.method].queries * (1 + 1e-3)
                )


BAD: list[dict[str, Any]] = [
    {"units": 0},
    {"units": 2.5},
    {"units": 10**10},
    {"accuracy": 0},
    {"accuracy": 1e-9},
    {"accuracy": math.nan},
    {"confidence": 1},
    {"epsilon": 0},
    {"epsilon": 101},
    {"delta": 0},
    {"delta": 1},
    {"domain": 1},
]


@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_numbers_outside_their_domain(bad: dict[str, Any]) -> None:
    good: dict[str, Any] = {"units": 1000, "accuracy": 0.1, "epsilon": 1.0, "delta": 1e-6}
    with pytest.raises(DomainError):
        release.plan(**(good | bad))
