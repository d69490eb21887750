"""Skellam noise against modified Bessel functions in ball arithmetic."""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random

import pytest

from dpcompose import Adjacency, Gaussian
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import Skellam
from oracles import atoms, lattices

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "mechanisms_golden.json").read_text())[
    "golden"
]


def test_golden_values() -> None:
    rows = [row for row in GOLDEN if row["name"] == "skellam"]
    for row in rows:
        level = float(row["question"].split("=")[1].split(")")[0])
        found = Skellam(float(row["call"]["variance"]), shift=row["call"]["shift"]).delta(
            epsilon=level
        )
        assert found.contains(float(row["value"])) and found.width <= 1e-12 * found.upper
    assert len(rows) == 2


def test_random_cases() -> None:
    rng = Random(8)
    for _ in range(15):
        variance, shift, times = (
            10 ** rng.uniform(-2, 1.7),
            rng.randint(1, 3),
            rng.choice([1, 1, 1, 2]),
        )
        if variance > 2 and times > 1:
            continue
        level = rng.uniform(-0.5, 2) * shift / variance**0.5
        truth = atoms.delta(level, [(lattices.skellam(variance, shift), times)])
        found = (Skellam(variance, shift=shift) * times).delta(epsilon=level)
        assert found.lower <= truth <= found.upper and found.width <= 1e-6 * found.upper + 1e-30


def test_much_noise_is_gaussian() -> None:
    found = (Skellam(1e4, shift=100) * 4).epsilon(delta=1e-6)
    assert found.upper == pytest.approx(Gaussian(0.5).epsilon(delta=1e-6).upper, rel=1e-2)


def test_several_coordinates_and_replacing() -> None:
    both = Skellam(10.0, shift=(1, 2)).epsilon(delta=1e-6)
    single = Skellam(10.0, shift=2).epsilon(delta=1e-6)
    assert single.upper < both.lower
    assert Skellam(10.0).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE) == single
    with pytest.raises(UnsupportedError, match="replace="):
        Skellam(10.0, shift=(1, 2)).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    with pytest.raises(UnsupportedError, match="more noise"):
        Skellam(0.01, shift=2000).epsilon(delta=1e-6)
    with pytest.raises(DomainError, match="RenyiCurve"):
        Skellam(1e7)


def test_below_the_mass_of_unknown_place_moments_decide() -> None:
    """What has no place in the table is at most what the moments of the noise itself allow, and finite."""
    assert Skellam(6.25).epsilon(delta=0.0).upper == float("inf")
    for delta, most in ((1e-206, 5.4), (1e-45, 3.3)):
        found = Skellam(6.25).epsilon(delta=delta)
        order = 40.0
        theorem = Skellam(6.25).renyi(order).upper - math.log(delta) / (order - 1)
        assert 2.7 < found.lower < found.upper <= min(theorem, most)
        assert Skellam(6.25).delta(epsilon=found.upper).upper <= delta * (1 + 1e-6)
    assert Skellam(6.25).epsilon(delta=1e-40).upper < 2.72
