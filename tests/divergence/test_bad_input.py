"""Every bad distribution and parameter is refused, with the offending entry; nothing is normalized."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcompose.divergence import (
    Density,
    Distribution,
    approximate_max,
    extreme_pair,
    hockey_stick,
    kl,
    max_divergence,
    max_ratio,
    one_sided_witness,
    renyi,
    symmetric_witness,
    total_variation,
)
from dpcompose.errors import DomainError

CALLS: list[Callable[[Any, Any], Any]] = [
    kl,
    max_divergence,
    total_variation,
    max_ratio,
    lambda y, z: approximate_max(y, z, delta=0.1),
    lambda y, z: hockey_stick(y, z, epsilon=0.1),
    lambda y, z: hockey_stick(y, z, ratio=2),
    lambda y, z: renyi(y, z, order=2),
    lambda y, z: renyi(y, z, order=1),
    lambda y, z: renyi(y, z, order=math.inf),
    lambda y, z: one_sided_witness(y, z, epsilon=0.1),
    lambda y, z: symmetric_witness(y, z, epsilon=0.1),
]
GAUSSIAN = Density(lambda x: -x * x / 2 - math.log(2 * math.pi) / 2)
PAIRS: list[tuple[Any, Any]] = [([1], [1]), (GAUSSIAN, GAUSSIAN)]
BAD: list[tuple[Any, str]] = [
    ([0.5, -0.5, 1.0], "[1] = -0.5"),
    ([0.5, math.nan], "[1] = nan"),
    ([1, Decimal("1e-999999999")], "10000 digits"),
    ([math.inf, 0.5], "[0] = inf"),
    ([0.5, -math.inf], "[1] = -inf"),
    ({"a": 0.5, "b": Decimal("NaN")}, "['b'] = Decimal('NaN')"),
    ({"a": 0.5, "b": "0.5"}, "['b'] = '0.5'"),
    ({"a": True, "b": 0}, "['a'] = True"),
    ([0.5, None], "[1] is missing"),
    ([0.5, 0.5j], "[1] = 0.5j"),
    (np.array([0.5, math.nan]), "[1] = "),
    (np.array([True, False]), "[0] = "),
    ([0.5, 0.4], "sum of "),
    ([0.5, 0.5000001], "sum of "),
    ([Fraction(1, 2), Fraction(1, 2) + Fraction(1, 10**30)], "sum of "),
    ([Decimal("0.1")] * 9, "sum of "),
    ([2, -1], "[1] = -1"),
    ([], "sum of "),
    ({}, "sum of "),
    (np.array([[0.5, 0.5]]), "shape of "),
    (np.array(1.0), "shape of "),
    (np.array([0.1, 0.9], dtype=np.float32), "sum of "),
    ({0.5}, "expected a mapping"),
    ("1", "expected a mapping"),
    (1.0, "expected a mapping"),
    (None, "expected a mapping"),
    (iter([1.0]), "expected a mapping"),
]


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize(("bad", "said"), BAD, ids=lambda value: repr(value).split(" at 0x")[0])
def test_bad_distribution(call: Callable[[Any, Any], Any], bad: Any, said: str) -> None:
    good = {"a": 1}
    with pytest.raises(DomainError, match=re.escape(said)) as first:
        call(bad, good)
    assert "first" in str(first.value)
    with pytest.raises(DomainError, match=re.escape(said)) as second:
        call(good, bad)
    assert "second" in str(second.value)


@pytest.mark.parametrize("call", CALLS)
def test_mismatched_supports(call: Callable[[Any, Any], Any]) -> None:
    with pytest.raises(
        DomainError, match="outcome of second = 2: expected an outcome among the positions 0 to 1"
    ):
        call([0.5, 0.5], [0.5, 0.25, 0.25])
    with pytest.raises(DomainError, match="outcome of first = 2"):
        call([0.5, 0.25, 0.25], [0.5, 0.5])
    with pytest.raises(DomainError, match="outcome of second = 'a'"):
        call([0.5, 0.5], {"a": 1})
    with pytest.raises(DomainError, match="outcome of first = -1"):
        call({-1: 1}, [0.5, 0.5])
    with pytest.raises(DomainError, match="first"):
        call(GAUSSIAN, [0.5, 0.5])
    with pytest.raises(DomainError, match="second"):
        call([0.5, 0.5], GAUSSIAN)


NO_NUMBER: list[Any] = [
    Decimal("1e999999999"),
    Decimal("1e-999999999"),
    math.nan,
    "1",
    None,
    True,
    [1],
    1j,
]


@pytest.mark.parametrize(
    "bad", [*NO_NUMBER, -0.1, 1.1, math.inf, -math.inf, Decimal("NaN"), Fraction(-1, 10**40)]
)
def test_delta(bad: Any) -> None:
    for call in (approximate_max, max_ratio):
        with pytest.raises(DomainError, match="delta"):
            call([1], [1], delta=bad)


@pytest.mark.parametrize("bad", [*NO_NUMBER, 0, -1, -math.inf, Decimal(0)])
def test_order(bad: Any) -> None:
    for pair in PAIRS:
        with pytest.raises(DomainError, match="order"):
            renyi(*pair, order=bad)


def test_huge_orders() -> None:
    with pytest.raises(DomainError, match="order"):
        renyi([1], [1], order=np.array([1.0, 2.0]))  # type: ignore[call-overload]
    assert renyi([0.75, 0.25], [0.25, 0.75], order=10**400) == max_divergence(
        [0.75, 0.25], [0.25, 0.75]
    )


@pytest.mark.parametrize("bad", [x for x in NO_NUMBER if x is not None])
def test_epsilon_of_the_hockey_stick(bad: Any) -> None:
    for pair in PAIRS:
        with pytest.raises(DomainError, match="epsilon"):
            hockey_stick(*pair, epsilon=bad)


@pytest.mark.parametrize("bad", [*(x for x in NO_NUMBER if x is not None), -1, -math.inf, math.inf])
def test_ratio_of_the_hockey_stick(bad: Any) -> None:
    for pair in PAIRS:
        with pytest.raises(DomainError, match="ratio"):
            hockey_stick(*pair, ratio=bad)


@pytest.mark.parametrize(
    "bad", [*(x for x in NO_NUMBER if x is not None), -1.0, math.inf, -math.inf, 1.1e6]
)
def test_epsilon_of_a_witness(bad: Any) -> None:
    for call in (one_sided_witness, symmetric_witness):
        with pytest.raises(DomainError, match="epsilon"):
            call([1], [1], epsilon=bad)
    with pytest.raises(DomainError, match="epsilon"):
        extreme_pair(epsilon=bad)


@pytest.mark.parametrize("bad", [*(x for x in NO_NUMBER if x is not None), 0, 0.5, math.inf, -2])
def test_ratio_of_a_witness(bad: Any) -> None:
    for call in (one_sided_witness, symmetric_witness):
        with pytest.raises(DomainError, match="ratio"):
            call([1], [1], ratio=bad)
    with pytest.raises(DomainError, match="ratio"):
        extreme_pair(ratio=bad)


@pytest.mark.parametrize("keywords", [{}, {"epsilon": 1.0, "ratio": 2}])
def test_exactly_one_of_epsilon_and_ratio(keywords: dict[str, Any]) -> None:
    for call in (hockey_stick, one_sided_witness, symmetric_witness):
        with pytest.raises(DomainError, match="exactly one of the two"):
            call([1], [1], **keywords)
    with pytest.raises(DomainError, match="exactly one of the two"):
        extreme_pair(**keywords)


def test_rounded_masses_are_accepted_within_the_stated_tolerance_and_left_as_they_are() -> None:
    tenths = Distribution([0.1] * 10)
    assert tenths.total == 10 * Fraction(0.1) != 1
    assert Distribution([0.5, 0.5 + 8 * 2**-53]).total == 1 + Fraction(8, 2**53)
    with pytest.raises(DomainError, match="sum of distribution"):
        Distribution([0.5, 0.5 + 9 * 2**-53])


def test_a_distribution_cannot_be_changed() -> None:
    given = {"a": Fraction(1)}
    distribution = Distribution(given)
    given["a"] = Fraction(1, 2)
    assert distribution["a"] == 1
    assert hash(distribution) == hash(Distribution({"a": 1}))
    assert distribution == {"a": 1}
    with pytest.raises(TypeError):
        distribution.masses["a"] = Fraction(0)  # type: ignore[index]
