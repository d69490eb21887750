"""Monotonicity: the cost does not decrease with less noise, more mechanisms, a smaller epsilon or
delta, or a larger change.
"""

from __future__ import annotations

import math

import pytest
from hypothesis import strategies as st

from dpcompose import Adjacency, Bound, DiscreteGaussian, Laplace, Orientation, calibrate, compose
from dpcompose.composition import Calibration, Composable, parallel
from dpcompose.errors import UnsupportedError
from tests.laws.members import (
    DELTAS,
    EPSILONS,
    MEMBERS,
    RATES,
    SIZES,
    TIMES,
    VARIANTS,
    Member,
    every,
    members,
)

FACTORS = st.floats(1.01, 3.0)


def never_above(one: Bound, other: Bound) -> bool:
    """Two enclosed numbers do not contradict `one` <= `other`."""
    return one.lower <= other.upper


@members(lambda member: member.monotone)
def test_more_noise_never_costs_more(member: Member) -> None:
    @every(member, size=SIZES, variant=VARIANTS, factor=FACTORS, delta=DELTAS, epsilon=EPSILONS)
    def law(
        one: Composable, size: float, variant: int, factor: float, delta: float, epsilon: float
    ) -> None:
        noisier, other = member.build(size / factor, variant), member.build(size, variant)
        assert never_above(noisier.epsilon(delta=delta), other.epsilon(delta=delta))
        assert never_above(noisier.delta(epsilon=epsilon), other.delta(epsilon=epsilon))
        assert never_above(noisier.renyi(3.0), other.renyi(3.0))


def test_the_discrete_gaussian_is_the_exception() -> None:
    less, more = (
        DiscreteGaussian(0.41).epsilon(delta=1e-5),
        DiscreteGaussian(0.43).epsilon(delta=1e-5),
    )
    assert (round(float(less), 2), round(float(more), 2)) == (8.92, 12.69)
    assert [member.name for member in MEMBERS if not member.monotone] == ["DiscreteGaussian"]


@members()
def test_delta_decreases_in_epsilon(member: Member) -> None:
    @every(member, times=TIMES, first=EPSILONS, second=EPSILONS)
    def law(one: Composable, times: int, first: float, second: float) -> None:
        small, large = sorted((first, second))
        at_small, at_large = (one * times).delta(epsilon=small), (one * times).delta(epsilon=large)
        assert never_above(at_large, at_small)
        # What dominates every profile from below, and all of them from above.
        assert never_above(Bound(max(-math.expm1(small), 0.0), 1.0), at_small)
        assert at_large.lower >= 0 and at_small.upper <= 1


@members()
def test_epsilon_decreases_in_delta(member: Member) -> None:
    @every(member, times=TIMES, first=DELTAS, second=DELTAS)
    def law(one: Composable, times: int, first: float, second: float) -> None:
        small, large = sorted((first, second))
        at_small, at_large = (one * times).epsilon(delta=small), (one * times).epsilon(delta=large)
        assert never_above(at_large, at_small)
        assert 0 <= at_large.lower <= at_large.upper
        assert at_large.upper < math.inf or (one * times).delta(epsilon=math.inf).upper >= large


@members()
def test_the_profile_is_convex_in_the_exponential_of_epsilon(member: Member) -> None:
    @every(member, left=EPSILONS, right=EPSILONS, share=st.floats(0.05, 0.95))
    def law(one: Composable, left: float, right: float, share: float) -> None:
        between = math.log(share * math.exp(left) + (1 - share) * math.exp(right))
        chord = share * one.delta(epsilon=left).upper + (1 - share) * one.delta(epsilon=right).upper
        assert one.delta(epsilon=between).lower <= chord * (1 + 1e-12) + 1e-15


@members()
def test_both_orders_of_a_pair_have_one_profile(member: Member) -> None:
    @every(member, times=TIMES, epsilon=EPSILONS)
    def law(one: Composable, times: int, epsilon: float) -> None:
        # delta(epsilon) of (P, Q) is 1 - e^epsilon + e^epsilon delta(-epsilon) of (Q, P).
        asked, factor = one * times, math.exp(epsilon)
        here, there = asked.delta(epsilon=epsilon), asked.delta(epsilon=-epsilon)
        slack = 1e-15 * (1 + factor)
        assert here.lower <= factor * there.upper - math.expm1(epsilon) + slack
        assert factor * there.lower - math.expm1(epsilon) - slack <= here.upper


@members()
def test_composing_more_never_costs_less(member: Member) -> None:
    @every(member, other=SIZES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, other: float, delta: float, epsilon: float) -> None:
        more = one + Laplace(1 / other)
        assert never_above(one.epsilon(delta=delta), more.epsilon(delta=delta))
        assert never_above(one.delta(epsilon=epsilon), more.delta(epsilon=epsilon))
        assert never_above(one.renyi(4.0), more.renyi(4.0))
        # Basic composition, from the other side.
        assert more.epsilon(delta=delta).lower <= one.epsilon(delta=delta).upper + other * (
            1 + 1e-15
        )


@members()
def test_epsilon_and_delta_are_inverse(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS)
    def law(one: Composable, times: int, delta: float) -> None:
        asked = one * times
        epsilon = asked.epsilon(delta=delta)
        # Below the mass of an infinite loss no epsilon suffices, not even the infinite one.
        assert math.isinf(epsilon.upper) or asked.delta(epsilon=epsilon.upper).lower <= delta
        assert epsilon.lower == 0 or delta <= asked.delta(epsilon=epsilon.lower).upper


@members(lambda member: member.attained)
def test_attained_answers_are_narrow(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS)
    def law(one: Composable, times: int, delta: float) -> None:
        epsilon = (one * times).epsilon(delta=delta)
        assert epsilon.width <= 1e-6 * epsilon.upper


@members()
def test_tolerances_agree(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, times: int, delta: float, epsilon: float) -> None:
        tolerances = (1e-2, 1e-6, 1e-11)
        epsilons = [
            (one * times).epsilon(delta=delta, tolerance=tolerance) for tolerance in tolerances
        ]
        deltas = [
            (one * times).delta(epsilon=epsilon, tolerance=tolerance) for tolerance in tolerances
        ]
        for bounds in (epsilons, deltas):
            assert max(bound.lower for bound in bounds) <= min(bound.upper for bound in bounds)


@members(lambda member: member.replaceable)
def test_replacing_never_costs_less_than_removing(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, times: int, delta: float, epsilon: float) -> None:
        removed = one * times
        assert never_above(
            removed.epsilon(delta=delta), removed.epsilon(delta=delta, adjacency=Adjacency.REPLACE)
        )
        assert never_above(
            removed.delta(epsilon=epsilon),
            removed.delta(epsilon=epsilon, adjacency=Adjacency.REPLACE),
        )
        assert never_above(removed.renyi(2.5), removed.renyi(2.5, adjacency=Adjacency.REPLACE))


@members(lambda member: not member.replaceable)
def test_what_says_nothing_about_replacing_is_refused(member: Member) -> None:
    @every(member)
    def law(one: Composable) -> None:
        for ask in (
            lambda: one.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE),
            lambda: one.delta(epsilon=1.0, adjacency=Adjacency.REPLACE),
            lambda: one.renyi(2.0, adjacency=Adjacency.REPLACE),
            lambda: one.pure(adjacency=Adjacency.REPLACE),
            lambda: one.approximate(adjacency=Adjacency.REPLACE),
            lambda: one.zcdp(adjacency=Adjacency.REPLACE),
            lambda: one.gdp(adjacency=Adjacency.REPLACE),
            lambda: one.compare(delta=1e-6, adjacency=Adjacency.REPLACE),
            lambda: (one + Laplace(1.0)).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE),
        ):
            with pytest.raises(UnsupportedError):
                ask()


@members(lambda member: member.symmetric)
def test_free_orientation_is_the_same_for_symmetric_losses(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, times: int, delta: float, epsilon: float) -> None:
        asked = one * times
        assert asked.epsilon(delta=delta) == asked.epsilon(
            delta=delta, orientation=Orientation.FREE
        )
        assert asked.delta(epsilon=epsilon) == asked.delta(
            epsilon=epsilon, orientation=Orientation.FREE
        )


@members(lambda member: not member.symmetric)
@pytest.mark.slow
def test_free_orientation_costs_no_less_for_other_losses(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, times: int, delta: float, epsilon: float) -> None:
        asked = one * times
        assert never_above(
            asked.epsilon(delta=delta), asked.epsilon(delta=delta, orientation=Orientation.FREE)
        )
        assert never_above(
            asked.delta(epsilon=epsilon), asked.delta(epsilon=epsilon, orientation=Orientation.FREE)
        )
        assert never_above(asked.renyi(3.0), asked.renyi(3.0, orientation=Orientation.FREE))
        assert asked.zcdp(orientation=Orientation.FREE) == asked.zcdp()


@members(lambda member: member.sampleable)
@pytest.mark.slow
def test_sampling_never_costs_more(member: Member) -> None:
    @every(member, rate=RATES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, rate: float, delta: float, epsilon: float) -> None:
        part = one.sampled(rate)
        assert never_above(part.epsilon(delta=delta), one.epsilon(delta=delta))
        assert never_above(part.delta(epsilon=epsilon), one.delta(epsilon=epsilon))
        assert never_above(part.renyi(2.5), one.renyi(2.5))
        assert never_above(one.sampled(rate / 2).epsilon(delta=delta), part.epsilon(delta=delta))


@members(lambda member: member.sampleable and member.symmetric)
def test_sampling_amplifies_as_the_mixture_does(member: Member) -> None:
    @every(member, rate=RATES, epsilon=st.floats(0.01, 3.0))
    def law(one: Composable, rate: float, epsilon: float) -> None:
        # H of ((1 - q) Q + q P, Q) at 1 + q (e^epsilon - 1) is q times H of (P, Q) at e^epsilon: the larger order.
        outside = one.sampled(rate).delta(epsilon=math.log1p(rate * math.expm1(epsilon)))
        inside = one.delta(epsilon=epsilon)
        slack = 1e-14
        assert outside.lower <= rate * inside.upper * (1 + slack) + 1e-16
        assert rate * inside.lower * (1 - slack) - 1e-16 <= outside.upper


@members()
def test_disjoint_people_cost_the_larger_cell(member: Member) -> None:
    @every(member, delta=DELTAS)
    def law(one: Composable, delta: float) -> None:
        assert parallel(one, one).epsilon(delta=delta) == one.epsilon(delta=delta)
        cells = one.epsilon(delta=delta), Laplace(0.25).epsilon(delta=delta)
        largest = Bound(max(cell.lower for cell in cells), max(cell.upper for cell in cells))
        assert parallel(one, Laplace(0.25)).epsilon(delta=delta) == largest


@members(lambda member: member.monotone and member.attained and member.examples > 1)
def test_calibration_finds_the_least_noise(member: Member) -> None:
    @every(member, size=st.floats(0.05, 0.6), variant=VARIANTS, delta=st.floats(1e-9, 1e-4))
    def law(one: Composable, size: float, variant: int, delta: float) -> None:
        target = member.build(size, variant).epsilon(delta=delta).upper
        if not 0 < target < math.inf:
            return
        found: Calibration = calibrate(
            lambda value: compose(member.build(value, variant)),
            epsilon=target, delta=delta, parameter="increasing", bracket=(0.01, 2.0), tolerance=1e-10,
        )  # fmt: skip
        assert found.bound.upper <= target and found.extreme
        assert (
            compose(member.build(found.value, variant)).epsilon(delta=delta, tolerance=1e-10)
            == found.bound
        )
        assert found.neighbor is None or found.neighbor.upper > target
        assert found.value == pytest.approx(size, rel=1e-7)
