"""Theorems about a composition agree with its certified bounds: none is below the lower end."""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st

from dpcompose import Bound, compose
from dpcompose.composition import Composable
from dpcompose.guarantee import gaussian, renyi
from tests.laws.members import DELTAS, TIMES, Member, every, members

ORDERS = st.floats(-2.0, 2.5).map(lambda exponent: 1 + 10**exponent)


@members()
def test_renyi_increases_in_the_order(member: Member) -> None:
    @every(member, times=TIMES, first=ORDERS, second=ORDERS)
    def law(one: Composable, times: int, first: float, second: float) -> None:
        low, high = sorted((first, second))
        below, above = (one * times).renyi(low), (one * times).renyi(high)
        assert 0 <= below.lower <= below.upper and below.lower <= above.upper
        pure = (one * times).pure()
        assert pure is None or above.upper <= pure * (1 + 1e-9)


# Skellam noise has an upper end alone: a price.
@members(lambda member: member.attained and member.name != "Skellam")
def test_renyi_is_known_to_its_digits(member: Member) -> None:
    @every(member, order=ORDERS)
    def law(one: Composable, order: float) -> None:
        bound = one.renyi(order)
        assert bound.width <= 1e-6 * bound.upper or bound == Bound(math.inf, math.inf)


@members()
def test_renyi_adds_up(member: Member) -> None:
    @every(member, times=TIMES, order=ORDERS)
    def law(one: Composable, times: int, order: float) -> None:
        single, several = one.renyi(order), (one * times).renyi(order)
        assert several.lower <= times * single.upper * (1 + 1e-15) + 1e-300
        assert times * single.lower * (1 - 1e-15) <= several.upper


@members()
def test_renyi_bounds_epsilon(member: Member) -> None:
    @every(member, times=TIMES, order=ORDERS, delta=DELTAS)
    def law(one: Composable, times: int, order: float, delta: float) -> None:
        asked = one * times
        rho = asked.renyi(order).upper
        if rho < math.inf:
            assert asked.epsilon(delta=delta).lower <= renyi.optimal_moment_epsilon(
                rho, order=order, delta=delta
            )


@members()
def test_concentrated_bounds_everything(member: Member) -> None:
    @every(member, times=TIMES, order=ORDERS, delta=DELTAS)
    def law(one: Composable, times: int, order: float, delta: float) -> None:
        asked = one * times
        promise = asked.zcdp()
        if promise is None:
            return
        if promise.delta == 0:
            assert asked.renyi(order).lower <= promise.renyi(order)
        assert asked.epsilon(delta=delta).lower <= promise.epsilon(delta=delta)


@members()
def test_pure_is_epsilon_at_delta_zero(member: Member) -> None:
    @every(member, times=TIMES)
    def law(one: Composable, times: int) -> None:
        asked = one * times
        pure, epsilon = asked.pure(), asked.epsilon(delta=0.0)
        if pure is None:
            assert epsilon.upper == math.inf
        else:
            assert epsilon.lower <= pure and (
                epsilon.upper == pytest.approx(pure, rel=1e-11) or not member.attained
            )


@members()
def test_the_basic_promise_holds(member: Member) -> None:
    @every(member, times=TIMES)
    def law(one: Composable, times: int) -> None:
        promise = (one * times).approximate()
        if promise is None:
            assert (one * times).pure() is None
        else:
            assert (one * times).delta(epsilon=promise.epsilon).lower <= promise.delta
            assert (one * times).epsilon(delta=promise.delta).lower <= promise.epsilon


@members()
def test_gaussian_is_exact_where_it_is_offered(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS)
    def law(one: Composable, times: int, delta: float) -> None:
        mu, epsilon = (one * times).gdp(), (one * times).epsilon(delta=delta)
        assert (mu is not None) == member.gaussian
        if mu is not None:
            assert (
                epsilon.lower
                <= gaussian.gaussian_epsilon(delta, mu=mu).upper
                <= epsilon.upper * (1 + 1e-12) + 1e-300
            )


@members()
def test_the_comparison_is_in_order_and_no_bound_is_too_small(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS)
    def law(one: Composable, times: int, delta: float) -> None:
        asked = compose(one) * times
        rows, certified = asked.compare(delta=delta), asked.epsilon(delta=delta)
        kinds = [row.kind for row in rows]
        assert kinds.count("certified") == 1
        bounds = [row for row in rows if row.kind != "estimate"]
        assert [row.kind for row in rows[len(bounds) :]] == ["estimate"] * (len(rows) - len(bounds))
        assert [row.epsilon for row in bounds] == sorted(row.epsilon for row in bounds)
        for row in bounds:
            assert row.name and row.reference and row.epsilon >= certified.lower
            assert row.kind == "upper bound" or (row.lower, row.epsilon) == (
                certified.lower,
                certified.upper,
            )


@members()
def test_the_curve_is_the_same_as_its_points(member: Member) -> None:
    @every(member, times=TIMES)
    def law(one: Composable, times: int) -> None:
        asked = one * times
        points = [[-1.0, 0.0], [0.5, 2.0]]
        curve = asked.profile()(points)
        assert curve.lower.shape == curve.upper.shape == (2, 2)
        for row, lower, upper in zip(points, curve.lower, curve.upper, strict=True):
            assert [asked.delta(epsilon=epsilon) for epsilon in row] == [
                Bound(*ends) for ends in zip(lower, upper, strict=True)
            ]


@members()
def test_the_tradeoff_is_the_dual_of_the_profile(member: Member) -> None:
    @every(member, alpha=st.floats(0.01, 0.99), epsilon=st.floats(-1.0, 2.0))
    def law(one: Composable, alpha: float, epsilon: float) -> None:
        error = one.profile().tradeoff(alpha)
        assert 0 <= error.lower <= error.upper <= (1 - alpha) * (1 + 1e-12)
        line = 1 - one.delta(epsilon=epsilon).upper - math.exp(epsilon) * alpha
        assert error.upper >= line - 1e-15
