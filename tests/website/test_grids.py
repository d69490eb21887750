"""docs/assets/grids.js: upper ends stay above what is computed now, and the file is what the generator writes."""

from __future__ import annotations

import json
import random
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest

from dpcompose import book
from dpcompose.guarantee.optimal import homogeneous_epsilon
from website.grids import (
    DELTAS,
    EPSILONS,
    ODDS,
    SLACK,
    START,
    TIMES,
    above,
    below,
    bob,
    mean,
    optimum,
)

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs" / "assets" / "grids.js").read_text("utf-8")
GRIDS = json.loads(TEXT.removeprefix(START).rstrip(";\n"))
PLACES = [
    (i, j, k) for i in range(len(TIMES)) for j in range(len(EPSILONS)) for k in range(len(DELTAS))
]


def test_the_axes_are_those_of_the_generator_and_in_order() -> None:
    assert (GRIDS["times"], GRIDS["epsilons"], GRIDS["deltas"]) == (TIMES, EPSILONS, DELTAS)
    assert GRIDS["odds"] == ODDS
    assert all(one < other for axis in (TIMES, EPSILONS, ODDS) for one, other in pairwise(axis))
    assert all(one > other for one, other in pairwise(DELTAS))


@pytest.mark.parametrize("seed", range(30))
def test_a_point_is_above_the_optimum_of_all_that_is_read_as_it(seed: int) -> None:
    i, j, k = random.Random(seed).choice(PLACES)
    found = GRIDS["optimum"][i][j][k]
    truth = homogeneous_epsilon(DELTAS[k], epsilon=EPSILONS[j], times=TIMES[i])
    assert truth.upper <= found <= truth.upper * 1.0002 + 1e-12
    assert found == optimum(TIMES[i], EPSILONS[j], DELTAS[k])


def test_values_only_grow_towards_where_the_pages_look() -> None:
    values = GRIDS["optimum"]
    for i, j, k in PLACES:
        found = values[i][j][k]
        assert i == 0 or values[i - 1][j][k] <= found
        assert j == 0 or values[i][j - 1][k] <= found
        assert k == 0 or values[i][j][k - 1] <= found


@pytest.mark.parametrize("odds", [690, 768, 785, 801, 860])
def test_bob_and_the_mean_are_rounded_outward(odds: int) -> None:
    total, loss, response = GRIDS["bob"][ODDS.index(odds)]
    example = book.example_3_7(1 / odds)
    assert example.optimum <= total and example.loss_above_1 / SLACK <= loss
    assert response <= example.loss_above_1_response / SLACK
    assert [total, loss, response] == bob(odds)
    assert GRIDS["mean"] == [mean(each) for each in EPSILONS]


def test_bob_only_falls_with_the_odds() -> None:
    assert all(one[0] >= other[0] and one[1] >= other[1] for one, other in pairwise(GRIDS["bob"]))


@pytest.mark.parametrize("value", [0.1, 1 / 3, 1e-300, 12345.6, 0.0])
def test_digits_are_cut_outward(value: float) -> None:
    assert (
        Fraction(Decimal(str(below(value))))
        <= Fraction(value)
        <= Fraction(Decimal(str(above(value))))
    )
