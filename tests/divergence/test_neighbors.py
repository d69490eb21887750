"""The smallest epsilon of Remark 3.1 for mechanisms with known answers."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest

from dpcompose.divergence import approximate_max, hockey_stick, smallest_epsilon
from dpcompose.errors import DomainError
from dpcompose.values.bound import Bound


def truncated_geometric(a: Fraction, top: int) -> dict[int, dict[int, Fraction]]:
    """Counts 0 to `top` with geometric noise of ratio 1/a, clamped: neighboring counts are exactly ln a apart."""
    b = 1 / a
    edge, inner = 1 / (1 + b), (1 - b) / (1 + b)

    def mass(count: int, answer: int) -> Fraction:
        return (edge if answer in (0, top) else inner) * b ** abs(count - answer)

    return {
        count: {answer: mass(count, answer) for answer in range(top + 1)}
        for count in range(top + 1)
    }


def test_geometric_noise() -> None:
    outputs = truncated_geometric(Fraction(3), 6)
    steps = [(count, count + 1) for count in range(6)]
    found = smallest_epsilon(outputs, neighbors=steps)
    assert found.ratio == 3
    assert found.epsilon.contains(math.log(3)) or found.epsilon.lower == pytest.approx(
        math.log(3), rel=1e-15
    )
    assert smallest_epsilon(outputs).ratio == 3**6
    assert smallest_epsilon(outputs).pair == (0, 6)


def test_the_pair_attains_it_and_no_other_exceeds_it() -> None:
    outputs = {
        "x": {"a": Fraction(1, 2), "b": Fraction(1, 2)},
        "y": {"a": Fraction(1, 3), "b": Fraction(2, 3)},
        "z": {"a": Fraction(9, 10), "b": Fraction(1, 10)},
    }
    delta = Fraction(1, 100)
    found = smallest_epsilon(outputs, delta=delta, neighbors=[("x", "y"), ("z", "x")])
    assert found.pair == ("x", "z")
    first, second = (outputs[x] for x in found.pair)
    assert found.epsilon == approximate_max(first, second, delta=delta)
    assert found.ratio == (Fraction(1, 2) - delta) / Fraction(1, 10)
    for x, y in (("x", "y"), ("y", "x"), ("x", "z"), ("z", "x")):
        assert hockey_stick(outputs[x], outputs[y], ratio=found.ratio).value <= delta


def test_orders_and_infinity() -> None:
    outputs = {"x": [1, 0], "y": [Fraction(1, 2), Fraction(1, 2)]}
    assert smallest_epsilon(outputs).epsilon == Bound(math.inf, math.inf)
    assert smallest_epsilon(outputs).pair == ("y", "x")
    assert smallest_epsilon(outputs, delta=0.5).ratio == 1
    assert smallest_epsilon(outputs, delta=0.5).epsilon == Bound(0, 0)


def test_never_below_0() -> None:
    same = smallest_epsilon({"x": [0.5, 0.5], "y": [0.5, 0.5]}, delta=Fraction(1, 4))
    assert same.epsilon == Bound(0, 0)
    assert same.ratio == Fraction(3, 4)


@pytest.mark.parametrize(
    "neighbors", [[], [("x", "nobody")], [("x",)], [("x", "y", "x")], 5, [(["x"], "y")]]
)
def test_refuses_without_neighbors(neighbors: Any) -> None:
    with pytest.raises(DomainError, match="neighbors"):
        smallest_epsilon({"x": [1], "y": [1]}, neighbors=neighbors)


@pytest.mark.parametrize("outputs", [[[1], [1]], None, {"x": [1], "y": 1.0}])
def test_refuses_what_is_no_mechanism(outputs: Any) -> None:
    with pytest.raises(DomainError, match="outputs"):
        smallest_epsilon(outputs)


def test_refuses_a_single_input() -> None:
    with pytest.raises(DomainError, match="at least one pair"):
        smallest_epsilon({"x": [1]})


def test_names_the_bad_output() -> None:
    with pytest.raises(DomainError, match=r"outputs\['y'\]\[1\] = -0.5"):
        smallest_epsilon({"x": [1], "y": [1.5, -0.5]})
