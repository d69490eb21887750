"""Rounds with adversarial orientation: the bound is never below the best adversary, found by
exhaustive search.
"""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    Concentrated,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.composition import Composable
from dpcompose.errors import UnsupportedError
from dpcompose.loss.atomize import envelope
from dpcompose.mechanisms import DominatingPair

FREE = Orientation.FREE
REMOVE = Adjacency.ADD_REMOVE
Pair = tuple[tuple[Fraction, ...], tuple[Fraction, ...]]


def best(
    pairs: list[Pair], a: Fraction, p: Fraction = Fraction(1), q: Fraction = Fraction(1)
) -> Fraction:
    """The largest delta at e^epsilon = a of an adversary who orients each pair after all earlier answers."""
    if not pairs:
        return max(p - a * q, Fraction(0))
    (one, other), *rest = pairs
    return max(
        sum((best(rest, a, p * x, q * y) for x, y in zip(*order, strict=True)), Fraction(0))
        for order in ((one, other), (other, one))
    )


def pair_of(upper: list[int], lower: list[int]) -> tuple[Composable, Pair]:
    """Masses in 64ths, exact as floats."""
    high, low = tuple(Fraction(x, 64) for x in upper), tuple(Fraction(x, 64) for x in lower)
    return DominatingPair.atoms(
        upper=list(map(float, high)), lower=list(map(float, low)), adjacency=REMOVE
    ), (
        high,
        low,
    )


def split(cuts: list[int]) -> list[int]:
    ends = [0, *sorted(cuts), 64]
    return [after - before for before, after in pairwise(ends)]


MASSES = st.lists(st.integers(0, 64), min_size=2, max_size=2).map(split)
A = st.integers(8, 256).map(lambda n: Fraction(n, 64))


def delta(mechanism: Composable, a: Fraction, orientation: Orientation = FREE) -> Bound:
    """Enclosed at ln a, which is no float: from both sides of it."""
    point = math.log(a)
    slack = 1e-15 * (1 + abs(point))
    low, high = (
        mechanism.delta(epsilon=point + side * slack, orientation=orientation) for side in (1, -1)
    )
    return Bound(low.lower, high.upper)


@settings(max_examples=60)
@given(st.lists(st.tuples(MASSES, MASSES), min_size=1, max_size=4), A)
def test_the_best_adversary_is_enclosed(
    masses: list[tuple[list[int], list[int]]], a: Fraction
) -> None:
    built = [pair_of(upper, lower) for upper, lower in masses]
    truth = best([pair for _, pair in built], a)
    bound = delta(compose(*(mechanism for mechanism, _ in built)), a)
    assert bound.lower <= truth <= bound.upper


@settings(max_examples=20)
@given(MASSES, MASSES, st.integers(2, 6), A)
def test_the_same_pair_again_and_again(
    upper: list[int], lower: list[int], times: int, a: Fraction
) -> None:
    mechanism, pair = pair_of(upper, lower)
    truth, bound, same = (
        best([pair] * times, a),
        delta(mechanism * times, a),
        delta(mechanism * times, a, Orientation.SAME),
    )
    assert same.lower <= truth <= bound.upper
    assert bound.lower <= truth
    assert bound.lower >= same.lower * (1 - 1e-9) - 1e-15


def response(epsilon: float, rate: float) -> Pair:
    """Randomized response on a sample, to 60 digits."""
    high = 1 / (1 + Fraction(math.exp(-epsilon)))
    with_it = rate_of(high, Fraction(rate))
    return (with_it, 1 - with_it), (1 - high, high)


def rate_of(high: Fraction, rate: Fraction) -> Fraction:
    return (1 - rate) * (1 - high) + rate * high


def test_an_adversary_who_orients_freely_gets_more_than_one_who_may_not() -> None:
    """Randomized response of epsilon 1 sampled at 0.1, twice, at epsilon 0.107826."""
    mechanism, point = RandomizedResponse(1.0).sampled(0.1) * 2, 0.107826199675374
    same, free = mechanism.delta(epsilon=point), mechanism.delta(epsilon=point, orientation=FREE)
    truth = float(best([response(1.0, 0.1)] * 2, Fraction(math.exp(point))))
    assert round(same.upper, 6) == 0.018757
    assert round(truth, 6) == 0.025242
    assert round(free.upper, 6) == 0.031726
    assert same.upper < truth <= free.upper
    assert free.lower == pytest.approx(truth, rel=1e-9)


@pytest.mark.parametrize(
    "one",
    [
        Gaussian(1.0).sampled(0.01),
        Gaussian(5.0).sampled(1e-4),
        Laplace(1.0).sampled(0.2),
        BlackBox(0.5, delta=1e-3).sampled(0.1),
    ],
    ids=repr,
)
def test_the_loss_above_is_above_and_close(one: Composable) -> None:
    ((pair, _),) = one.pairs(REMOVE)  # type: ignore[attr-defined]
    above = envelope((pair.remove, pair.add))
    for epsilon in np.linspace(-0.3, 0.8, 45):
        truth = one.delta(epsilon=float(epsilon))
        found = above.profile(float(epsilon)).upper
        assert found >= truth.lower
        rest = max(-math.expm1(epsilon), 0.0)
        # Where there is anything left to lose; the tails are coarse on purpose.
        if truth.upper - rest > 1e-6:
            assert found - truth.upper <= 2e-2 * (truth.upper - rest)
    assert math.fsum(above.table.upper) == pytest.approx(1, abs=1e-12)
    assert math.fsum(above.table.lower) == pytest.approx(1, abs=1e-12)


def test_one_round_is_oriented_once() -> None:
    one = Gaussian(1.0).sampled(0.1)
    assert one.delta(epsilon=0.5, orientation=FREE) == one.delta(epsilon=0.5)
    assert one.epsilon(delta=1e-6, orientation=FREE) == one.epsilon(delta=1e-6)


def test_the_better_of_the_product_and_the_moments() -> None:
    """Many rounds: at every order the removals have the larger moment, so that moments do not notice the choice."""
    many = Gaussian(1.0).sampled(0.01) * 10_000
    same, free = many.epsilon(delta=1e-10), many.epsilon(delta=1e-10, orientation=FREE)
    assert same.lower * (1 - 1e-12) <= free.lower <= free.upper < 1.06 * same.upper
    assert "Renyi" in free.certificate.method
    few = Gaussian(1.0).sampled(0.01) * 2
    assert "Renyi" not in few.epsilon(delta=1e-5, orientation=FREE).certificate.method


def test_renyi_divergences_add_up_whoever_orients() -> None:
    many = Gaussian(1.0).sampled(0.01) * 100 + RandomizedResponse(1.0).sampled(0.1)
    for order in (1.5, 2.0, 8.0):
        same, free = many.renyi(order), many.renyi(order, orientation=FREE)
        assert free.lower <= same.upper
        assert same.lower <= free.upper <= same.upper * (1 + 1e-9)
    unbounded = Gaussian(1.0).sampled(0.01) * 2
    # A loss without an end: no finite number may replace it, even where the atoms above end.
    assert unbounded.renyi(90.0, orientation=FREE).upper >= unbounded.renyi(90.0).lower


def test_a_largest_loss_stays_what_it_is() -> None:
    """No mass is lost to infinity where every loss is bounded: pure privacy is that of the largest losses."""
    bounded = RandomizedResponse(1.0).sampled(0.1) * 3
    same, free = bounded.epsilon(delta=0.0), bounded.epsilon(delta=0.0, orientation=FREE)
    assert same.lower * (1 - 1e-12) <= free.upper <= same.upper * (1 + 1e-12)
    leaking = BlackBox(1.0, delta=1e-5).sampled(0.1) * 2
    assert leaking.delta(epsilon=50.0, orientation=FREE).contains(2e-6 - 1e-12)
    hopeless = BlackBox(0.0, delta=1.0).sampled(0.5) * 2
    assert hopeless.delta(epsilon=9.0, orientation=FREE).contains(0.75)


def test_with_a_part_that_has_no_loss() -> None:
    mixed = RandomizedResponse(1.0).sampled(0.1) + Concentrated(0.01)
    same, free = mixed.epsilon(delta=1e-5), mixed.epsilon(delta=1e-5, orientation=FREE)
    assert same.lower <= free.upper
    assert (
        free.upper <= same.upper * 1.001
    )  # the one round may be turned after the answer of the other part


def test_groups_may_be_turned_too() -> None:
    pair = BlackBox(0.5).sampled(0.5) * 2
    same, free = (
        pair.group(2).delta(epsilon=0.1),
        pair.group(2).delta(epsilon=0.1, orientation=FREE),
    )
    assert same.upper <= free.upper
    assert same.lower <= free.lower * (1 + 1e-9)
    assert pair.delta(epsilon=0.1, orientation=FREE).upper <= free.upper
    single = BlackBox(0.5).sampled(0.5).group(2)
    assert single.delta(epsilon=0.1, orientation=FREE) == single.delta(epsilon=0.1)
    with pytest.raises(UnsupportedError, match="proof"):
        pair.group(2).delta(epsilon=0.1, orientation=FREE, proof=True)


def test_curves_share_their_lines() -> None:
    curve = (RandomizedResponse(1.0).sampled(0.1) * 3).profile(orientation=FREE)
    points = np.linspace(-0.2, 0.4, 9)
    at_once = curve(points)
    for place, point in enumerate(points):
        alone = curve.question.delta(float(point))
        assert at_once.lower[place] <= alone.upper
        assert alone.lower <= at_once.upper[place]


def test_no_proof_is_offered() -> None:
    with pytest.raises(UnsupportedError, match="floats"):
        (RandomizedResponse(1.0).sampled(0.1) * 2).delta(epsilon=0.1, orientation=FREE, proof=True)
    symmetric = Gaussian(1.0) * 2
    assert symmetric.delta(epsilon=0.1, orientation=FREE, proof=True) == symmetric.delta(
        epsilon=0.1, proof=True
    )


def test_a_pair_of_replaced_records_may_lie_either_way_round() -> None:
    """A sampled answer, twice: a round each way may tell more than two alike."""
    upper, lower = [0.3, 0.7], [0.25, 0.75]
    pair = DominatingPair.atoms(upper=upper, lower=lower, adjacency=Adjacency.REPLACE)
    for epsilon in (0.0, 0.05, 0.108, 0.2):
        found = 0.0
        for ways in itertools.product(((upper, lower), (lower, upper)), repeat=2):
            outcomes = itertools.product(range(2), repeat=2)
            masses = [tuple(math.prod(way[side][o] for way, o in zip(ways, out, strict=True)) for side in (0, 1))
                      for out in outcomes]  # fmt: skip
            found = max(found, math.fsum(max(p - math.exp(epsilon) * q, 0.0) for p, q in masses))
        bound = (pair * 2).delta(epsilon=epsilon, adjacency=Adjacency.REPLACE)
        assert found <= bound.upper * (1 + 1e-12) + 1e-15
        assert bound.upper <= 1.1 * found + 0.01
