"""Bounds are never above the values in other libraries' tests, or those of their papers' formulas.

dp-accounting: rdp_privacy_accountant_test.py. JAX Privacy:
matrix_factorization/sensitivity_test.py.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcompose import Adjacency, Gaussian, Laplace
from dpcompose.mechanisms import (
    MatrixMechanism,
    NoisyArgmax,
    Participation,
    PrivateSelection,
    RenyiCurve,
    TreeAggregation,
)

ZERO_OUT = Adjacency.ZERO_OUT
CORNER = [[1.0, 0.0, 0.0, 0.0], [2.0, 1.0, 0.0, 0.0], [0.0, 1.0, 1.0, 0.0], [0.0, 0.0, 1.0, -6.0]]


def sensitivity(strategy: object, participation: Participation) -> tuple[float, float]:
    found = MatrixMechanism(strategy, sigma=1.0, participation=participation).sensitivity  # pyright: ignore
    return found.lower, found.upper


@pytest.mark.parametrize(("noise", "epsilon"), [(1.13, 19.74), (8.83, 2.04)])
def test_one_tree(noise: float, epsilon: float) -> None:
    found = TreeAggregation(noise, steps=1600, participation=Participation.single())
    assert found.epsilon(delta=1e-6, adjacency=ZERO_OUT).upper < epsilon


@pytest.mark.parametrize(("each", "trees"), [(400, 4), (800, 2)])
def test_a_record_in_every_tree(each: int, trees: int) -> None:
    once = Participation.separated(each, most=trees)
    found = TreeAggregation(0.1, steps=each * trees, participation=once, restart=each)
    one = TreeAggregation(0.1, steps=each, participation=Participation.single())
    assert found.renyi(2.0).upper == pytest.approx(trees * one.renyi(2.0).upper, rel=1e-12)
    assert one.renyi(2.0).upper == pytest.approx(
        2 * math.ceil(math.log2(each + 1)) / (2 * 0.1**2), rel=1e-12
    )


@pytest.mark.parametrize(("steps", "noise"), [(100, 0.1), (1000, 0.01)])
def test_a_tree_for_each_step_is_plain_noise(steps: int, noise: float) -> None:
    trees = TreeAggregation(noise, steps=steps, participation=Participation(), restart=1)
    for order in (1.1, 2.0, 10.9, 63.0):
        assert trees.renyi(order).upper == pytest.approx(
            (Gaussian(noise) * steps).renyi(order).upper, rel=1e-12
        )


def test_sensitivities() -> None:
    other = [row[:] for row in CORNER]
    other[3][2] = 3.0
    single = Participation.single()
    assert sensitivity(other, single) == pytest.approx((6.0, 6.0), rel=1e-12)
    assert sensitivity([row[:3] for row in other[:3]], single) == pytest.approx(
        (math.sqrt(5),) * 2, rel=1e-12
    )
    assert sensitivity([[3.0]], single) == pytest.approx((3.0, 3.0), rel=1e-12)
    assert sensitivity(CORNER, Participation.separated(2, most=1)) == pytest.approx(
        (6.0, 6.0), rel=1e-12
    )
    for apart in (2, 3):
        assert sensitivity(CORNER, Participation.separated(apart)) == pytest.approx(
            (math.sqrt(41),) * 2, rel=1e-12
        )
    dense = [*CORNER[:2], [0.5, 1.0, 1.0, 0.0], [0.4, 0.0, 1.0, -6.0]]
    gram = np.array(dense).T @ np.array(dense)
    assert sensitivity(dense, Participation())[1] <= math.sqrt(np.abs(gram).sum()) * (1 + 1e-12)
    for epochs in (1, 2, 4, 8, 16):
        slots = Participation(separation=16 // epochs, fixed=True)
        assert sensitivity(np.eye(16).tolist(), slots) == pytest.approx(
            (math.sqrt(epochs),) * 2, rel=1e-12
        )
    for steps in (1, 2, 5, 10):  # one participation, whatever may be more
        ones = np.tri(steps).tolist()
        assert sensitivity(ones, Participation.separated(steps)) == sensitivity(ones, single)


def test_a_curve_at_a_few_orders() -> None:
    constant = RenyiCurve([1.1] * 31, orders=range(2, 33), holds_under=Adjacency.ADD_REMOVE)
    assert constant.epsilon(delta=1e-5).upper <= 1.32783806176
    assert constant.delta(epsilon=1.32783806176).upper <= 1e-5
    orders = [1 + 0.001 * step for step in range(1, 99_000, 100)]
    normal = RenyiCurve(
        [order / (2 * 4.530877117**2) for order in orders], orders=orders, holds_under=ZERO_OUT
    )
    assert normal.epsilon(delta=1e-6, adjacency=ZERO_OUT).upper <= 1.0000001
    assert normal.delta(epsilon=1.0, adjacency=ZERO_OUT).upper <= 1.00001e-6


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 2.0, 5.0])
def test_the_best_of_pure_runs(shape: float) -> None:
    """Corollary 3 of the paper on private selection."""
    one = PrivateSelection(Laplace(1.0), tries=100.0, shape=shape)
    assert one.epsilon(delta=0.0).upper <= (2 + shape) * (1 + 1e-9)
    assert one.renyi(1e6).upper <= (2 + shape) * (1 + 1e-9)


@pytest.mark.parametrize("shape", [0.0, 0.5, 1.0, 5.0])
@pytest.mark.parametrize(("rho", "gamma"), [(0.01, 0.01), (1.0, 0.1)])
def test_the_best_of_gaussian_runs(rho: float, gamma: float, shape: float) -> None:
    """Corollary 4 of the same paper, at its own orders."""
    odds = 1 / gamma - 1
    tries = odds / -math.log(gamma) if shape == 0 else shape * odds / (1 - gamma**shape)
    selection = PrivateSelection(Gaussian(math.sqrt(0.5 / rho)), tries=tries, shape=shape)
    for order in (1.1, 2.0, 3.0, 5.0, 10.0, 100.0):
        at = max(order, 1 + math.sqrt(math.log(tries) / rho))
        bound = rho * (at - 1) + math.log(tries) / (at - 1)
        bound += 2 * (1 + shape) * math.sqrt(-rho * math.log(gamma)) - shape * rho
        assert selection.renyi(order).upper <= bound * 1.02, order


@pytest.mark.parametrize(("sigma", "tries"), [(1.0, 1.0), (1.0, 10.0), (20.0, 1000.0)])
def test_the_best_of_a_poisson_number_of_gaussian_runs(sigma: float, tries: float) -> None:
    """Theorem 6, at single orders; releasing nothing is an outcome here, of probability e^-tries."""
    selection = PrivateSelection(Gaussian(sigma), tries=tries)
    for order in (1.5, 2.0, 5.0, 17.0, 65.0):
        level = math.log1p(1 / (order - 1))
        delta = Gaussian(sigma).delta(epsilon=level).upper
        bound = order / (2 * sigma**2) + tries * delta + math.log(tries) / (order - 1)
        nothing = math.log1p(math.exp(-tries - (order - 1) * bound)) / (order - 1)
        assert selection.renyi(order).upper <= (bound + nothing) * (1 + 1e-9)


@pytest.mark.parametrize("sigma", [2.0, 40.0, 150.0])
def test_teachers_vote(sigma: float) -> None:
    """The divergence that does not depend on the votes: order / sigma^2."""
    for order in (1.5, 8.0, 200.0):
        assert (NoisyArgmax(sigma) * 1).renyi(order).upper == pytest.approx(
            order / sigma**2, rel=1e-12
        )
