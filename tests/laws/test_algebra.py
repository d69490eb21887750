"""A composition is a multiset: notation does not matter, and repeated questions have bit-identical
answers.
"""

from __future__ import annotations

import copy
import pickle

import pytest
from hypothesis import strategies as st

import dpcompose
from campaigns import names
from dpcompose import Bound, Gaussian, Laplace, compose
from dpcompose.composition import Composable, Composition
from dpcompose.mechanisms import kinds
from tests.laws.members import DELTAS, EPSILONS, MEMBERS, TIMES, Member, every, members

OTHERS = st.sampled_from([Laplace(3.0), Gaussian(2.0) * 2])


def same(one: Composable, other: Composable, delta: float, epsilon: float) -> bool:
    """Equal, and equal in every bit of both answers; asked apart, so that no answer can be the other's memory."""
    first: list[Bound] = [one.epsilon(delta=delta), one.delta(epsilon=epsilon)]
    second: list[Bound] = [other.epsilon(delta=delta), other.delta(epsilon=epsilon)]
    return (
        compose(one) == compose(other)
        and hash(compose(one)) == hash(compose(other))
        and first == second
    )


@members()
def test_times_is_repeated_composition(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, times: int, delta: float, epsilon: float) -> None:
        assert same(one * times, compose(*[one] * times), delta, epsilon)
        assert times * one == one * times and (one * times) * 3 == one * (3 * times)


@members()
def test_order_does_not_matter(member: Member) -> None:
    @every(member, other=OTHERS, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, other: Composable, delta: float, epsilon: float) -> None:
        assert same(one + other, other + one, delta, epsilon)
        assert (
            (one + other) + Laplace(7.0)
            == one + (other + Laplace(7.0))
            == compose(Laplace(7.0), one, other)
        )


@members()
def test_the_identity_changes_nothing(member: Member) -> None:
    @every(member, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, delta: float, epsilon: float) -> None:
        assert same(one + compose() + Gaussian(1.0) * 0, compose(one), delta, epsilon)
        assert one * 0 == compose() == Composition()
        assert one * 1 == compose(one)


def test_nothing_composed_loses_nothing() -> None:
    assert compose().epsilon(delta=0.0) == Bound(0.0, 0.0)
    assert compose().delta(epsilon=0.0) == Bound(0.0, 0.0)
    assert compose().renyi(2.0) == Bound(0.0, 0.0)
    assert compose().pure() == 0.0 and compose().gdp() == 0.0
    zcdp = compose().zcdp()
    assert zcdp is not None and (zcdp.rho, zcdp.delta) == (0.0, 0.0)


@members()
def test_asking_twice_gives_the_same_answer(member: Member) -> None:
    @every(member, times=TIMES, delta=DELTAS, epsilon=EPSILONS)
    def law(one: Composable, times: int, delta: float, epsilon: float) -> None:
        asked, again = compose(one) * times, compose(one) * times
        assert same(asked, asked, delta, epsilon)
        # What was asked of it before, at other points, leaves no trace either.
        again.epsilon(delta=delta / 3)
        again.delta(epsilon=epsilon + 0.1)
        assert same(asked, again, delta, epsilon)


NAMES = names.NAMES | kinds()


@members(lambda member: member.name not in ("atoms", "profile"))
def test_what_is_printed_builds_it_again(member: Member) -> None:
    @every(member, times=TIMES)
    def law(one: Composable, times: int) -> None:
        assert eval(repr(one), NAMES) == one
        for asked in (one * times, compose(one, Laplace(0.3)) * times):
            assert compose(eval(repr(asked), NAMES)) == asked


@members()
def test_a_building_block_is_a_value(member: Member) -> None:
    @every(member)
    def law(one: Composable) -> None:
        field = next(iter(vars(one)))
        with pytest.raises(AttributeError):
            setattr(one, field, 1.0)


@members(lambda member: member.sampleable)
def test_sampling_is_a_product(member: Member) -> None:
    # Powers of two: their products with any rate are exact.
    @every(member, first=st.sampled_from([0.5, 0.25]), second=st.sampled_from([0.5, 0.125]))
    def law(one: Composable, first: float, second: float) -> None:
        assert compose(one.sampled(1.0)) == compose(one)
        assert one.sampled(first).sampled(second) == one.sampled(first * second)
        assert compose(one.sampled(first)).sampled(1) == compose(one.sampled(first))
        both = compose(one, Laplace(3.0))
        assert both.sampled(first).sampled(second) == both.sampled(first * second)
        assert Laplace(3.0).sampled(0.3).sampled(first / 3) == Laplace(3.0).sampled(
            0.3 * (first / 3)
        )


def test_every_building_block_has_a_member() -> None:
    blocks = {
        name for name, cls in NAMES.items() if isinstance(cls, type) and issubclass(cls, Composable)
    }
    # The last two hold under one adjacency alone, not the one that the laws ask under: tests/mechanisms/test_batches.py.
    missing = {
        name
        for name in blocks
        - {
            "Choice",
            "Composable",
            "ComposablePart",
            "Composition",
            "FixedSizeSample",
            "ShuffledEpochs",
        }
        if not any(type(one.build(0.5, 0)).__name__ == name for one in MEMBERS)
    }
    assert not missing


def test_a_sum_of_many_terms_is_their_composition_however_it_is_nested() -> None:
    terms = [Gaussian(1.0 + index % 1500) for index in range(3000)]
    left = right = compose(terms[0])
    for term in terms[1:]:
        left, right = left + term, term + right
    assert pickle.loads(pickle.dumps(left)).parts == compose(*terms).parts
    assert copy.deepcopy(right).parts == compose(*reversed(terms)).parts
    assert left == right and left.count == 3000 and left.parts[0] == (Gaussian(1.0), 2)
    assert (left + left).parts == (left * 2).parts and (left + right) + (right + left) == left * 4


def test_doubling_a_sum_doubles_its_counts_and_refuses_too_many() -> None:
    doubled = compose(Gaussian(1.0), Laplace(1.0))
    for _ in range(49):
        doubled = doubled + doubled
    assert doubled.parts == ((Gaussian(1.0), 2**49), (Laplace(1.0), 2**49))
    with pytest.raises(dpcompose.errors.DomainError, match="10\\^15"):
        _ = doubled + doubled
