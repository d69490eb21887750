"""Finite distributions: bounds contain the truth, which ball arithmetic computes from the definitions."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from itertools import chain, combinations, pairwise
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx, fmpq
from hypothesis import example, given, strategies as st

from dpcompose.divergence import (
    approximate_max,
    hockey_stick,
    kl,
    max_divergence,
    max_ratio,
    renyi,
    total_variation,
)
from dpcompose.values.bound import Bound

ctx.prec = 3000
Y, Z = [0.7, 0.2, 0.1], [0.3, 0.3, 0.4]


def ball(value: Any) -> arb:
    ratio = Fraction(value)
    return arb(fmpq(ratio.numerator, ratio.denominator))


def contains(bound: Bound, truth: arb) -> bool:
    return bool(arb(bound.lower) <= truth) and bool(truth <= arb(bound.upper))


def tight(bound: Bound) -> bool:
    # Next to 0 floats are 5e-324 apart: an enclosed e^epsilon may leave a truth close to one on either side of it.
    return bound.width <= 2.3e-16 * abs(bound.upper) or bound.width <= 1e-323


@st.composite
def pairs(draw: st.DrawFn, *, full: bool = False) -> tuple[list[Fraction], list[Fraction]]:
    size = draw(st.integers(1, 6))
    weights = st.lists(st.integers(1 if full else 0, 10**6), min_size=size, max_size=size).filter(
        any
    )
    first, second = draw(weights), draw(weights)
    return [Fraction(w, sum(first)) for w in first], [Fraction(w, sum(second)) for w in second]


epsilons = st.floats(-20, 20)


@given(pairs(full=True))
def test_kl(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    y, z = pair
    truth = sum((ball(p) * (ball(p) / ball(q)).log() for p, q in zip(y, z, strict=True)), arb(0))
    bound = kl(y, z)
    assert (bound == Bound(0, 0)) if y == z else contains(bound, truth)
    assert tight(bound)


@example(([Fraction(1)], [Fraction(1)]), -5e-324)
@given(pairs(), epsilons)
def test_hockey_stick(pair: tuple[list[Fraction], list[Fraction]], epsilon: float) -> None:
    y, z = pair
    ratio = ball(epsilon).exp()
    differences = [ball(p) - ratio * ball(q) for p, q in zip(y, z, strict=True)]
    bound = hockey_stick(y, z, epsilon=epsilon)
    assert contains(bound, sum((d for d in differences if d > 0), arb(0)))
    assert tight(bound)


@given(pairs(full=True), st.floats(0.01, 300).filter(lambda order: order != 1))
def test_renyi(pair: tuple[list[Fraction], list[Fraction]], order: float) -> None:
    y, z = pair
    power = ball(order)
    terms = [
        ((ball(p).log() * power) + (ball(q).log() * (1 - power))).exp()
        for p, q in zip(y, z, strict=True)
    ]
    bound = renyi(y, z, order=order)
    assert (
        (bound == Bound(0, 0))
        if y == z
        else contains(bound, sum(terms, arb(0)).log() / (power - 1))
    )
    assert tight(bound)


@given(pairs(), st.fractions(0, 1, max_denominator=1000))
def test_max_ratio_is_the_maximum_over_all_events(
    pair: tuple[list[Fraction], list[Fraction]], delta: Fraction
) -> None:
    y, z = pair
    outcomes = range(len(y))
    ratios: list[Fraction | float] = [Fraction(0)]
    for event in chain.from_iterable(combinations(outcomes, size) for size in range(1, len(y) + 1)):
        mass, other = sum(y[x] for x in event), sum(z[x] for x in event)
        if mass > delta:
            ratios.append(math.inf if other == 0 else (mass - delta) / other)
    assert max_ratio(y, z, delta=delta) == max(ratios)


@given(pairs(), st.fractions(0, 1, max_denominator=1000))
def test_approximate_max_inverts_the_hockey_stick(
    pair: tuple[list[Fraction], list[Fraction]], delta: Fraction
) -> None:
    y, z = pair
    ratio, bound = max_ratio(y, z, delta=delta), approximate_max(y, z, delta=delta)
    if isinstance(ratio, float):
        assert bound == Bound(math.inf, math.inf)
        assert hockey_stick(y, z, epsilon=math.inf).lower > delta
    else:
        assert hockey_stick(y, z, ratio=ratio).value <= delta
        assert (
            bound == Bound(-math.inf, -math.inf)
            if ratio == 0
            else contains(bound, ball(ratio).log())
        )
        if ratio > 0:
            assert hockey_stick(y, z, ratio=ratio * Fraction(999, 1000)).value > delta


@given(pairs())
def test_total_variation(pair: tuple[list[Fraction], list[Fraction]]) -> None:
    y, z = pair
    distance = total_variation(y, z)
    assert distance.value == sum(abs(p - q) for p, q in zip(y, z, strict=True)) / 2
    assert distance.value == hockey_stick(y, z, ratio=1).value == total_variation(z, y).value
    assert distance.lower <= distance.value <= distance.upper


@given(pairs(), epsilons)
def test_the_two_orders_mirror_each_other(
    pair: tuple[list[Fraction], list[Fraction]], epsilon: float
) -> None:
    y, z = pair
    a = Fraction(math.exp(epsilon))
    assert hockey_stick(y, z, ratio=a).value == 1 - a + a * hockey_stick(z, y, ratio=1 / a).value


def test_renyi_grows_with_the_order_from_kl_to_the_maximum() -> None:
    orders = [0.1, 0.5, 0.999, 1, 1.001, 2, 10, 1000, 1e6, 1e300, math.inf]
    values = [renyi(Y, Z, order=order) for order in orders]
    assert all(low.lower <= high.upper for low, high in pairwise(values))
    assert values[3] == kl(Y, Z)
    assert values[-1] == max_divergence(Y, Z)
    assert values[-2].upper == pytest.approx(values[-1].upper, rel=1e-15)


def test_extreme_epsilons() -> None:
    y, z = {"a": Fraction(3, 4), "b": Fraction(1, 4)}, {"a": 1}
    assert (
        hockey_stick(y, z, epsilon=1e300)
        == hockey_stick(y, z, epsilon=math.inf)
        == Bound(0.25, 0.25)
    )
    assert hockey_stick(y, z, epsilon=-math.inf) == Bound(1, 1)
    assert hockey_stick(y, z, epsilon=-1e300) == Bound(math.nextafter(1, 0), 1)
    assert hockey_stick(y, z, epsilon=-0.0).contains(0.25)


def test_tiny_masses_keep_their_digits() -> None:
    y, z = {"a": 1, "b": Fraction(0)}, {"a": 1 - Fraction(1, 10**300), "b": Fraction(1, 10**300)}
    assert contains(hockey_stick(z, y, epsilon=1.0), ball(Fraction(1, 10**300)))
    assert contains(kl(y, z), -ball(1 - Fraction(1, 10**300)).log())
    assert kl(z, y) == max_divergence(z, y) == renyi(z, y, order=2) == Bound(math.inf, math.inf)
    assert renyi(z, y, order=0.5).lower > 0
    assert approximate_max(z, y, delta=1e-299).upper < 0


def test_infinite_where_the_definition_says_so() -> None:
    y, z = {"a": 0.5, "b": 0.5}, {"b": 0.5, "c": 0.5}
    infinite = Bound(math.inf, math.inf)
    assert (
        kl(y, z)
        == max_divergence(y, z)
        == renyi(y, z, order=1.5)
        == approximate_max(y, z, delta=0.49)
        == infinite
    )
    assert (
        approximate_max(y, z, delta=0.5) == Bound(0, 0)
        or approximate_max(y, z, delta=0.5).upper <= 0
    )
    assert renyi({"a": 1}, {"b": 1}, order=0.5) == infinite
    assert total_variation({"a": 1}, {"b": 1}).value == 1


def test_every_kind_of_input_means_the_same() -> None:
    kinds: list[Any] = [
        [0.5, 0.25, 0.25],
        (0.5, 0.25, 0.25),
        np.array([0.5, 0.25, 0.25]),
        np.array([0.5, 0.25, 0.25], dtype=np.float32),
        [Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)],
        [Decimal("0.5"), Decimal("0.25"), Decimal("0.25")],
        {0: 0.5, 2: 0.25, 1: 0.25},
        {0: Fraction(1, 2), 1: 0.25, 2: Decimal("0.25")},
    ]
    other = {0: 0.25, 1: 0.75}
    assert {kl(kind, [0.25, 0.5, 0.25]) for kind in kinds} == {kl(kinds[0], [0.25, 0.5, 0.25])}
    assert {total_variation(kind, other).value for kind in kinds} == {Fraction(1, 2)}
    assert total_variation(np.array([1, 0]), [0, 1]).value == 1


def test_a_divergence_of_zero_has_no_sign() -> None:
    for zero in (kl([1], [1]), renyi([1], [1], order=2), hockey_stick([1], [1], ratio=1)):
        assert math.copysign(1.0, zero.lower) == math.copysign(1.0, zero.upper) == 1.0
