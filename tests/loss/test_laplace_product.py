"""The line of Laplace sums, one logarithm for many rows: every value within its own error of ball arithmetic."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import acb, arb, ctx

from dpcompose import Laplace, compose
from dpcompose.loss.laplace_sum import LaplaceSum


def moment(transform: LaplaceSum, order: float, u: float) -> acb:
    t, value = acb(arb(order), arb(u)), acb(1)
    for epsilon, times in zip(
        transform.epsilon.ravel().tolist(), transform.times.ravel().tolist(), strict=True
    ):
        exact = arb(epsilon)
        one = ((t + 1) * (t * exact).exp() + t * (-(t + 1) * exact).exp()) / (2 * t + 1)
        value *= one ** int(times)
    return value


def off(transform: LaplaceSum, order: float, u: float, log: complex) -> float:
    """|M / e^log - 1|, rounded down a little."""
    with ctx.workprec(240):
        ratio = moment(transform, order, u) * (-acb(arb(log.real), arb(log.imag))).exp()
        return float(abs(ratio - 1).lower()) * (1 - 1e-12)


def drawn(rng: Random) -> LaplaceSum:
    rows, size, spread = (
        rng.choice([1, 2, 3, 9, 40, 150]),
        10 ** rng.uniform(-2.5, 0.7),
        rng.choice([1e-9, 0.1, 1.0]),
    )
    epsilon = np.array([size * math.exp(rng.uniform(-spread, spread)) for _ in range(rows)])
    choices = rng.choice([[1], [1, 2, 7], [3, 250], [*range(1, 400, 7)]])
    times = np.array([float(rng.choice(choices)) for _ in range(rows)])
    return LaplaceSum(epsilon[:, None], times[:, None])


@pytest.mark.parametrize("seed", range(40))
def test_values_are_within_their_errors(seed: int) -> None:
    """Where rows are silent, too, and where the product of all is too small for a float."""
    rng = Random(f"rough {seed}")
    transform, order = drawn(rng), 10 ** rng.uniform(-2.0, 3.0)
    row = float(transform.epsilon[0, 0])
    silent = [math.pi / 2 / row * (2 * rng.randint(0, 400) + 1) for _ in range(10)]
    u = np.array([0.0, *sorted(silent + [10 ** rng.uniform(-2.0, 5.0) / row for _ in range(20)])])
    found = transform.line(order, u)
    for frequency, log, error in zip(
        u.tolist(), found.log.tolist(), found.error.tolist(), strict=True
    ):
        distance = off(transform, order, frequency, log)
        assert distance <= math.expm1(min(error, 700.0)), frequency
    assert (
        found.error[0] <= 2e-14 * float(transform.times.sum()) + 1e-14 * order * transform.maximum
    )


def test_a_product_below_the_floats_is_bounded() -> None:
    """At half a turn each of 3,000 rows has a modulus of about a half: their product is below any float."""
    transform = LaplaceSum(np.full((3000, 1), 2.0), np.ones((3000, 1)))
    found = transform.line(1.0, np.array([0.0, 40.0]))
    assert found.error[0] < 1e-9 and found.error[1] > 1.0
    one = moment(LaplaceSum(np.array([[2.0]]), np.ones((1, 1))), 1.0, 40.0)
    assert 3000 * float(abs(one).log()) <= found.log[1].real + found.error[1]


def test_a_silent_row_makes_a_value_vague() -> None:
    """Two atoms of nearly the same mass cancel: nothing is known of the phase, and little of the modulus."""
    transform, order = LaplaceSum(np.array([[1e-9], [0.3]]), np.ones((2, 1))), 2.0**-30
    u = math.pi / 2e-9
    found = transform.line(order, np.array([u]))
    assert off(transform, order, u, complex(found.log[0])) <= math.expm1(found.error[0])


@pytest.mark.slow
def test_many_copies_leave_no_node_too_vague_to_be_summed() -> None:
    """An error of a copy counts as often as there are copies: nodes that hardly matter must not undo the sum."""
    few = [Laplace(4.0 + 12.0 * index / 30) for index in range(30)]
    found = compose(*few, Laplace(1e9) * 10**9).delta(epsilon=2.0, tolerance=1e-10)
    assert 0 < found.upper - found.lower < 1e-6 * found.upper
