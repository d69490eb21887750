"""Correlated noise: sensitivities against every pattern in exact fractions, conventions, laws and
refusals.
"""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any

import numpy as np
import pytest

from dpcompose import Adjacency, Gaussian
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import MatrixMechanism, Participation
from dpcompose.mechanisms.text import parse, serialize
from oracles import patterns

KINDS = ["positive", "integers", "bands", "toeplitz", "mixed", "quarters"]


def drawn(rng: Random, kind: str, steps: int) -> list[list[float]]:
    falling, bands = (
        sorted((rng.random() for _ in range(steps)), reverse=True),
        rng.randint(1, steps),
    )

    def entry(row: int, column: int) -> float:
        match kind:
            case "positive":
                return rng.random() + 0.01
            case "integers":
                return float(rng.randint(row == column, 3))
            case "bands":
                return rng.random() + 0.01 if row - column < bands else 0.0
            case "toeplitz":
                return falling[row - column] + 0.01
            case "mixed":
                return rng.gauss(0, 1)
            case _:
                return rng.choice([-2, -1, 1, 2]) / 4

    return [[entry(i, j) if j <= i else 0.0 for j in range(steps)] for i in range(steps)]


@pytest.mark.parametrize("kind", KINDS)
def test_every_pattern(kind: str) -> None:
    rng, methods = Random(kind), set[str]()
    for _ in range(25):
        steps = rng.choice([1, 3, 5, 6, 7, 8])
        gap, fixed = rng.randint(1, steps + 1), rng.random() < 0.25
        most = None if fixed else rng.choice([None, rng.randint(1, 4)])
        strategy = drawn(rng, kind, steps)
        mechanism = MatrixMechanism(
            strategy, sigma=1.0, participation=Participation(separation=gap, most=most, fixed=fixed)
        )
        found, truth = (
            mechanism.sensitivity_squared,
            patterns.sensitivity_squared(strategy, gap, most, fixed),
        )
        methods.add(found.certificate.method)
        assert truth.equal <= Fraction(found.upper) and Fraction(found.lower) <= truth.sizes
        if truth.exact:
            assert Fraction(found.lower) <= truth.equal and found.width <= 1e-12 * found.upper
            if kind in ("integers", "quarters"):
                assert found.lower == found.upper == truth.equal
        assert found.upper <= truth.sizes * (1 + Fraction(1, 10**12))
        ends = mechanism.sensitivity
        assert Fraction(ends.lower) ** 2 <= Fraction(found.lower) and Fraction(
            ends.upper
        ) ** 2 >= Fraction(found.upper)
    assert len(methods) >= 3 or kind not in ("bands", "toeplitz")


def test_twelve_steps() -> None:
    for kind in KINDS:
        strategy = drawn(Random(kind), kind, 12)
        found = MatrixMechanism(
            strategy, sigma=1.0, participation=Participation.separated(2, most=5)
        )
        truth = patterns.sensitivity_squared(strategy, 2, 5, False)
        assert Fraction(found.sensitivity_squared.lower) <= truth.sizes
        assert truth.equal <= Fraction(found.sensitivity_squared.upper)


COEFFICIENTS = [math.comb(2 * j, j) / 4**j for j in range(12)]
SQUARE_ROOT = [[COEFFICIENTS[i - j] if j <= i else 0.0 for j in range(12)] for i in range(12)]
THREE_BANDS = [[1.0 if 0 <= i - j < 3 else 0.0 for j in range(9)] for i in range(9)]
ALTERNATING = [[{0: 1.0, 1: -0.5, 2: 0.25}.get(i - j, 0.0) for j in range(5)] for i in range(5)]


@pytest.mark.parametrize(
    ("strategy", "gap", "most", "value"),
    [
        (SQUARE_ROOT, 12, 1, 1.8506765780512068886),
        (SQUARE_ROOT, 4, 3, 8.4076301926288579125),
        (SQUARE_ROOT, 3, 4, 13.383036405477469089),
        (SQUARE_ROOT, 5, 2, 4.7868258064154360909),
        (THREE_BANDS, 3, 3, 9),
        (THREE_BANDS, 2, 3, 13),
        (ALTERNATING, 2, 3, 4.625),
    ],
)
def test_check_values(strategy: list[list[float]], gap: int, most: int, value: float) -> None:
    """Largest over all patterns, in exact rationals, by another program."""
    between = Participation.separated(strictly_between=gap - 1, most=most)
    assert between == Participation.separated(gap, most=most)
    found = MatrixMechanism(strategy, sigma=1.0, participation=between).sensitivity_squared
    assert (
        found.lower * (1 - 1e-15) <= value <= found.upper * (1 + 1e-15)
        and found.width < 1e-13 * value
    )


def test_many_steps_without_a_theorem() -> None:
    """A pattern that is drawn never costs more than the upper end; the lower end is above most of them."""
    rng, steps = np.random.default_rng(1), 120
    strategy = np.tril(rng.random((steps, steps))) + np.eye(steps)
    for gap, most in ((10, None), (10, 6), (25, 3), (1, 40)):
        participation = Participation(separation=gap, most=most)
        found = MatrixMechanism(
            strategy, sigma=1.0, participation=participation
        ).sensitivity_squared
        times, costs = participation.times(steps), []
        for _ in range(200):
            free = steps - (times - 1) * gap
            chosen = np.sort(rng.integers(0, free, times)) + gap * np.arange(times)
            costs.append(float(np.square(strategy[:, chosen].sum(axis=1)).sum()))
        assert max(costs) <= found.upper and found.lower <= found.upper
        assert np.mean(costs) <= found.lower, (gap, most)


def test_laws() -> None:
    identity, rng = np.eye(10), Random(3)
    for gap in (1, 3, 20):
        for most in (None, 1, 2, 50):
            square = MatrixMechanism(
                identity, sigma=1.0, participation=Participation(separation=gap, most=most)
            ).sensitivity_squared
            assert square.lower == square.upper == min(most or 50, -(-10 // gap))
    for kind in KINDS:
        strategy = np.array(drawn(rng, kind, 7))
        costs = [
            MatrixMechanism(
                strategy, sigma=1.0, participation=Participation.separated(2, most=most)
            ).sensitivity_squared
            for most in (1, 2, 3, 4)
        ]
        assert all(more.upper >= less.upper * (1 - 1e-12) for less, more in pairwise(costs))
        scaled = MatrixMechanism(
            4 * strategy, sigma=4.0, participation=Participation.separated(2, most=3)
        )
        plain = MatrixMechanism(
            strategy, sigma=1.0, participation=Participation.separated(2, most=3)
        )
        assert scaled.delta(epsilon=1.0).upper == pytest.approx(
            plain.delta(epsilon=1.0).upper, rel=1e-9
        )


def test_the_loss_is_gaussian_of_the_sensitivity() -> None:
    mechanism = MatrixMechanism(THREE_BANDS, sigma=6.0, participation=Participation.separated(3))
    for adjacency, mu in (
        (Adjacency.ADD_REMOVE, 0.5),
        (Adjacency.ZERO_OUT, 0.5),
        (Adjacency.REPLACE, 1.0),
    ):
        found, truth = (
            mechanism.epsilon(delta=1e-6, adjacency=adjacency),
            Gaussian(1 / mu).epsilon(delta=1e-6),
        )
        assert found.lower <= truth.upper and truth.lower <= found.upper and found.width < 1e-12
    ends = MatrixMechanism(
        np.tril(-np.ones((3, 3)), -1) / 2 + np.eye(3), sigma=1.0, participation=Participation()
    )
    assert ends.epsilon(delta=1e-6).width > 0.01
    low, high = ends.sensitivity.lower, ends.sensitivity.upper
    two = ends.group(2).epsilon(delta=1e-6)
    assert two.upper >= Gaussian(1 / (2 * high)).epsilon(delta=1e-6).lower
    assert two.lower <= Gaussian(1 / (2 * low)).epsilon(delta=1e-6).upper


def test_sampled_cyclically() -> None:
    grouped = MatrixMechanism(THREE_BANDS, sigma=2.0, participation=Participation.separated(3))
    found: Any = grouped.sampled_cyclically(0.1)
    assert found.count == 3 and len(found.parts) == 1
    plain = Gaussian(2.0, sensitivity=math.sqrt(3)).sampled(0.1) * 3
    assert abs(found.epsilon(delta=1e-6).upper - plain.epsilon(delta=1e-6).upper) < 1e-9
    uneven = MatrixMechanism(
        THREE_BANDS, sigma=2.0, participation=Participation.separated(4)
    ).sampled_cyclically(0.1)
    assert (
        uneven.epsilon(delta=1e-6).upper < found.epsilon(delta=1e-6).upper
    )  # the last turn has one row
    with pytest.raises(UnsupportedError, match="bands"):
        MatrixMechanism(
            THREE_BANDS, sigma=2.0, participation=Participation.separated(2)
        ).sampled_cyclically(0.1)
    with pytest.raises(UnsupportedError, match="turns"):
        MatrixMechanism(
            THREE_BANDS, sigma=2.0, participation=Participation.separated(3, most=2)
        ).sampled_cyclically(0.1)
    with pytest.raises(UnsupportedError, match="sampled_cyclically"):
        grouped.sampled(0.1).epsilon(delta=1e-6)


def test_it_is_read_back() -> None:
    mechanism = MatrixMechanism(
        [[1, 0], [0.1, 2]], sigma=3, participation=Participation.epochs(1, steps_per_epoch=2)
    )
    text = serialize(mechanism * 2)
    assert text is not None and parse(text) == mechanism * 2
    assert serialize(MatrixMechanism(np.eye(100), sigma=1.0, participation=Participation())) is None


@pytest.mark.parametrize(
    "given",
    [
        {"separation": 0},
        {"separation": 1.5},
        {"strictly_between": -1},
        {"separation": 2, "strictly_between": 1},
        {"most": 0},
        {"most": True},
        {"fixed": 1},
    ],
)
def test_a_participation_that_cannot_be(given: dict[str, object]) -> None:
    with pytest.raises(DomainError, match="expected"):
        Participation(**given)  # pyright: ignore[reportArgumentType]


@pytest.mark.parametrize("epochs", [1, 2, 4])
def test_epochs_that_do_not_make_up_the_run(epochs: int) -> None:
    with pytest.raises(DomainError, match="participation"):
        MatrixMechanism(
            np.eye(9), sigma=1.0, participation=Participation.epochs(epochs, steps_per_epoch=3)
        )
    assert MatrixMechanism(
        np.eye(9), sigma=1.0, participation=Participation.epochs(3, steps_per_epoch=3)
    )
