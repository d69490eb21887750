"""Local randomizers and staircase noise: golden values, and bounds against exact enumeration."""

from __future__ import annotations

import json
import math
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest

from dpcompose import Adjacency
from dpcompose.adaptive import PureFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.loss import of_law, shuffled_reports
from dpcompose.mechanisms import ShuffledReports, Staircase, UnaryEncoding
from oracles import atoms, shuffles

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "mechanisms_golden.json").read_text())[
    "golden"
]
REPLACE = Adjacency.REPLACE


def test_golden_values() -> None:
    for row in GOLDEN:
        call, value = row["call"], row["value"]
        if row["name"] == "shuffled_reports":
            one = ShuffledReports(float(call["epsilon"]), reports=call["reports"])
            level = float(row["question"].split("=")[1].split(")")[0])
            found = one.delta(epsilon=level, adjacency=REPLACE)
            assert found.contains(float(value)) and found.upper == pytest.approx(
                float(value), rel=1e-10
            )
        if row["name"] == "staircase":
            found = Staircase(1.0).delta(epsilon=0.5)
            assert found.contains(float(value)) and found.width < 1e-12
        if row["name"] == "staircase_atoms":
            pairs: Any = Staircase(1.0).pairs(Adjacency.ADD_REMOVE)
            ((pair, _),) = pairs
            masses = sorted(pair.remove.atoms().upper, reverse=True)
            expected = sorted(map(float, value.split()), reverse=True)
            assert masses == pytest.approx(expected, rel=1e-14)


def test_shuffles_against_all_numbers_of_clones() -> None:
    rng = Random(3)
    for _ in range(8):
        size, reports = float(f"{10 ** rng.uniform(-1.5, 0.8):.5g}"), rng.randint(2, 25)
        level = size * rng.uniform(0, 0.9)
        truth = atoms.delta(level, [(shuffles.clones(size, reports), 1)])
        found = ShuffledReports(size, reports=reports).delta(epsilon=level, adjacency=REPLACE)
        assert found.upper >= truth and found.upper <= float(truth) * (1 + 1e-9) + 1e-30
        assert found.lower <= truth


def test_composed_shuffles_are_above_the_clones() -> None:
    for size, reports, times in ((1.0, 6, 2), (2.5, 4, 3)):
        for level in (0.2, 0.6 * size * times):
            truth = atoms.delta(level, [(shuffles.clones(size, reports), times)])
            found = (ShuffledReports(size, reports=reports) * times).delta(
                epsilon=level, adjacency=REPLACE
            )
            assert found.lower <= truth <= found.upper <= float(truth) * 1.01


def test_blocks_of_clones_are_above_and_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    exact = ShuffledReports(1.0, reports=5000).epsilon(delta=1e-6, adjacency=REPLACE)
    monkeypatch.setattr(shuffled_reports, "MOST_ROWS", 20)
    of_law._cached.cache_clear()
    rough = ShuffledReports(1.0, reports=5000).epsilon(delta=1e-6, adjacency=REPLACE)
    assert exact.upper < rough.upper < exact.upper * 1.01 and exact.lower == rough.lower


def test_random_randomizers_are_below_the_clones() -> None:
    """Randomizers of three inputs, the others with the third: their shuffles are never above the upper end."""
    rng, closest = Random(4), 0.0
    for _ in range(25):
        size, reports = rng.choice([0.5, 1.0, 2.0]), rng.randint(2, 5)
        odds = math.exp(size)
        # The masses a, b, c of outcomes with ratios (e, 1, 1), (1, e, 1); (1, 1, e); (e, e, 1) that add up to 1.
        share = rng.choice([0.0, rng.random()])
        c = share / (odds + 1)
        a = (odds - 1 - (odds * odds - 1) * c) / (odds * odds + odds - 2)
        b = 1 - a * (odds + 1) - odds * c
        first, second, third = (
            [a * odds, a, b, c * odds],
            [a, a * odds, b, c * odds],
            [a, a, b * odds, c],
        )
        binary = rng.random() < 0.3
        if binary:
            first, second = [odds / (odds + 1), 1 / (odds + 1)], [1 / (odds + 1), odds / (odds + 1)]
        others = [rng.choice([first, second]) if binary else third for _ in range(reports - 1)]
        level = size * rng.choice([0.0, 0.3, 0.8])
        truth = shuffles.shuffled_delta(level, first, second, others)
        found = ShuffledReports(size, reports=reports).delta(epsilon=level, adjacency=REPLACE)
        assert truth <= found.upper * (1 + 1e-12)
        closest = max(closest, truth / found.upper)
    assert closest > 0.8


@pytest.mark.parametrize("gamma", [None, 0.9])
def test_no_smaller_shift_of_a_staircase_costs_more(gamma: float | None) -> None:
    one = Staircase(1.5, gamma=gamma)
    for level in (0.0, 1.1):
        found = one.delta(epsilon=level)
        for shift in (0.4, 0.85, 1):
            truth = atoms.delta(level, [(shuffles.staircase(1.5, gamma, shift=shift), 1)])
            assert truth <= found.upper + 1e-20
        assert found.lower <= float(truth) + 1e-20 and found.width < 1e-12


def test_encodings_against_all_outcomes() -> None:
    rng = Random(5)
    for _ in range(15):
        keep, flip, times = rng.uniform(0.02, 0.98), rng.uniform(0.02, 0.98), rng.randint(1, 4)
        one = UnaryEncoding(keep, flip=flip) * times
        level = rng.uniform(0, 1) * one.pure(adjacency=REPLACE)  # type: ignore[operator]
        truth = atoms.delta(level, [(shuffles.encoding(keep, flip), times)])
        found = one.delta(epsilon=level, adjacency=REPLACE)
        assert found.lower <= truth <= found.upper and found.width <= 1e-9 * found.upper + 1e-14


def test_adjacencies() -> None:
    for one in (UnaryEncoding(0.75, flip=0.25), ShuffledReports(1.0, reports=9)):
        with pytest.raises(UnsupportedError, match=r"Adjacency\.REPLACE"):
            one.epsilon(delta=1e-6)
        with pytest.raises(UnsupportedError):
            one.sampled(0.5).epsilon(delta=1e-6, adjacency=REPLACE)
    with pytest.raises(UnsupportedError, match=r"group\(2\)"):
        Staircase(1.0).epsilon(delta=1e-6, adjacency=REPLACE)
    assert Staircase(1.0, holds_under=REPLACE).pure(adjacency=REPLACE) == pytest.approx(
        1.0, rel=1e-13
    )


def test_what_is_pure_stays_pure() -> None:
    assert (
        ShuffledReports(1.0, reports=100).epsilon(delta=0.0, adjacency=REPLACE).upper <= 1 + 1e-12
    )
    assert UnaryEncoding(0.5, flip=0.5).epsilon(delta=0.0, adjacency=REPLACE).upper == 0
    price = PureFilter(1.0).price(ShuffledReports(0.1, reports=100), adjacency=REPLACE)
    assert float(price["epsilon"]) == 0.1


@pytest.mark.parametrize("keep, flip", [(0.5, 0.25), (0.75, 0.25), (0.9, 0.2), (0.3, 0.6)])
def test_a_group_sends_a_report_each(keep: float, flip: float) -> None:
    """By enumeration of all reports; a path of neighbors through one report would cost more."""
    bits = [(keep * (1 - flip), flip * (1 - keep)), (flip * (1 - keep), keep * (1 - flip))]
    equal = 1 - sum(bits[0])
    bits.append((equal, equal))
    absent = [(0.4 * one + 0.6 * other, other) for one, other in bits]
    whole = UnaryEncoding(keep, flip=flip, holds_under=Adjacency.ADD_REMOVE)

    def truth(members: list[list[tuple[float, float]]], epsilon: float) -> float:
        pairs = [
            [math.prod(each) for each in zip(*drawn, strict=True)] for drawn in product(*members)
        ]
        return sum(max(0.0, one - math.exp(epsilon) * other) for one, other in pairs)

    added = [(other, one) for one, other in absent]
    for epsilon, size in ((0.0, 2), (0.5, 2), (1.2, 3)):
        every = [[absent] * removed + [added] * (size - removed) for removed in range(size + 1)]
        twice = [bits, bits] if size == 2 else [bits]
        rounds = [
            [0.4 * math.prod(pair[side] for pair in drawn) + 0.6 * math.prod(pair[1] for pair in drawn) for side in (0, 1)]
            for drawn in product(*twice)
        ]  # fmt: skip
        forward, back = ([(pair[side], pair[1 - side]) for pair in rounds] for side in (0, 1))
        both = [[forward] * removed + [back] * (size - removed) for removed in range(size + 1)]
        for composed, value in (
            (whole, truth([bits] * size, epsilon)),
            (whole.sampled(0.4), max(truth(members, epsilon) for members in every)),
            ((whole * len(twice)).sampled(0.4), max(truth(members, epsilon) for members in both)),
        ):
            found = composed.group(size).delta(epsilon=epsilon)
            assert found.lower - 1e-14 <= value <= found.upper + 1e-14 and found.width < 1e-10


def test_chances_below_floats_are_refused() -> None:
    with pytest.raises(DomainError, match="at least 1e-300"):
        UnaryEncoding(0.999999, flip=5e-324)
    assert UnaryEncoding(0.5, flip=1e-290).epsilon(delta=0.0, adjacency=REPLACE).upper > 600
