"""Tree aggregation over the steps of a run: sensitivities against every pattern, golden values,
laws.
"""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

from dpcompose import Adjacency, Gaussian
from dpcompose.adaptive import GaussianFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import Participation, TreeAggregation
from dpcompose.mechanisms.text import parse, serialize
from oracles import patterns


def squared(steps: int, participation: Participation, restart: int | None = None) -> int:
    found = TreeAggregation(
        10.0, steps=steps, participation=participation, restart=restart
    ).sensitivity_squared
    assert found.lower == found.upper == int(found.upper)
    return int(found.upper)


def test_every_pattern() -> None:
    rng = Random(2)
    for _ in range(400):
        steps, fixed = rng.randint(1, 12), rng.random() < 0.2
        gap, most = rng.randint(1, steps + 1), None if fixed else rng.choice([None, 1, 2, 3, 4, 5])
        restart = rng.choice([None, None, rng.randint(1, steps + 2)])
        found = squared(steps, Participation(separation=gap, most=most, fixed=fixed), restart)
        truth = patterns.tree_sensitivity_squared(steps, gap, most, fixed=fixed, restart=restart)
        assert found == truth, (steps, gap, most, fixed, restart)


def test_longer_runs() -> None:
    for steps, gap, restart in ((20, 3, None), (31, 6, None), (33, 7, 16)):
        for most in (2, 5, None):
            truth = patterns.tree_sensitivity_squared(steps, gap, most, restart=restart)
            assert squared(steps, Participation(separation=gap, most=most), restart) == truth


@pytest.mark.parametrize(
    ("steps", "gap", "most", "apart", "between"),
    [(13, 3, 4, 23, 14), (16, 4, 4, 36, 36), (21, 5, 3, 23, 23)],
)
def test_check_values(steps: int, gap: int, most: int, apart: int, between: int) -> None:
    """Both conventions of the distance, by another program."""
    assert squared(steps, Participation.separated(gap, most=most)) == apart
    assert squared(steps, Participation.separated(strictly_between=gap, most=most)) == between


def test_laws() -> None:
    for steps in (1, 2, 7, 64, 2000):
        assert squared(steps, Participation.single()) == steps.bit_length()
        assert squared(steps, Participation.separated(5, most=3), restart=1) == min(
            3, -(-steps // 5)
        )
        separated = [squared(steps, Participation.separated(gap)) for gap in (7, 9, 40)]
        assert separated == sorted(separated, reverse=True)
        assert squared(steps, Participation(separation=7, fixed=True)) <= separated[0]
    everything = sum(size * size * (64 // size) for size in (1, 2, 4, 8, 16, 32, 64))
    assert squared(64, Participation()) == everything
    # A new tree for each step is fresh noise each time.
    fresh = TreeAggregation(4.0, steps=8, participation=Participation(), restart=1)
    found, truth = fresh.epsilon(delta=1e-6), (Gaussian(4.0) * 8).epsilon(delta=1e-6)
    assert found.lower <= truth.upper and truth.lower <= found.upper
    replaced = fresh.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    assert replaced.contains((Gaussian(2.0) * 8).epsilon(delta=1e-6).upper)


def test_two_thousand_steps() -> None:
    assert squared(2000, Participation.separated(100, most=20)) == 425
    assert squared(2000, Participation.separated(400)) == 60


def test_refusals() -> None:
    tree = TreeAggregation(
        2.0, steps=8, participation=Participation.epochs(2, steps_per_epoch=4), restart=4
    )
    text = serialize(tree)
    assert text is not None and parse(text) == tree
    amounts = tree.typed(adjacency=Adjacency.REPLACE)
    assert amounts is not None and amounts.mu_squared == 4 * Fraction(6) / 2**2
    for limit, granted in (
        (1.25, True),
        (1.2, False),
    ):  # their squares lie on both sides of the price, 6 / 4
        budget = GaussianFilter(limit)
        assert budget.step(budget.start(), tree)[1].granted is granted
    with pytest.raises(UnsupportedError, match="sampled"):
        tree.sampled(0.1).epsilon(delta=1e-6)
    with pytest.raises(DomainError, match="participation"):
        TreeAggregation(2.0, steps=9, participation=Participation.epochs(2, steps_per_epoch=4))
    with pytest.raises(DomainError, match="searched"):
        TreeAggregation(2.0, steps=10**6, participation=Participation.separated(10**4))
