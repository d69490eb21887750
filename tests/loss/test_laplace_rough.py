"""The line of Laplace sums in single precision: every value within its own error of ball arithmetic."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import acb, arb, ctx

from dpcompose import Laplace, compose
from dpcompose.contour import quadrature
from dpcompose.contour.transform import Line
from dpcompose.loss.laplace_sum import LaplaceSum


def moment(transform: LaplaceSum, order: float, u: float) -> acb:
    t, value = acb(arb(order), arb(u)), acb(1)
    for epsilon, times in zip(transform.epsilon.ravel().tolist(), transform.times.ravel().tolist(), strict=True):
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
    rows, size, spread = rng.choice([1, 2, 3, 9, 40, 150]), 10 ** rng.uniform(-2.5, 0.7), rng.choice([1e-9, 0.1, 1.0])
    epsilon = np.array([size * math.exp(rng.uniform(-spread, spread)) for _ in range(rows)])
    choices = rng.choice([[1], [1, 2, 7], [3, 250]])
    times = np.array([float(rng.choice(choices)) for _ in range(rows)])
    return LaplaceSum(epsilon[:, None], times[:, None])


@pytest.mark.parametrize("seed", range(40))
def test_rough_values_are_within_their_errors(seed: int) -> None:
    """Where rows are silent, too, and where the product of all is too small for a float of 32 bits."""
    rng = Random(f"rough {seed}")
    transform, order = drawn(rng), 10 ** rng.uniform(-2.0, 3.0)
    row = float(transform.epsilon[0, 0])
    silent = [math.pi / 2 / row * (2 * rng.randint(0, 400) + 1) for _ in range(10)]
    u = np.array([0.0, *sorted(silent + [10 ** rng.uniform(-2.0, 5.0) / row for _ in range(20)])])
    found = transform.rough_line(order, u)
    assert found is not None
    for frequency, log, error in zip(u.tolist(), found.log.tolist(), found.error.tolist(), strict=True):
        assert off(transform, order, frequency, log) <= math.expm1(min(error, 700.0)), frequency
    assert found.error[0] <= 1e-5 * float(transform.times.sum()) + 1e-12 * abs(found.log[0])


def test_a_silent_row_makes_a_value_vague() -> None:
    """Two atoms of nearly the same mass cancel: nothing is known of the phase, and little of the modulus."""
    transform, order = LaplaceSum(np.array([[1e-6], [0.3]]), np.ones((2, 1))), 2.0**-10
    u = math.pi / 2e-6
    found = transform.rough_line(order, np.array([u]))
    assert found is not None and 1.0 < found.error[0] < 3.0
    assert off(transform, order, u, complex(found.log[0])) <= math.expm1(found.error[0])


def test_rows_of_many_different_counts_have_no_rough_line() -> None:
    times = np.arange(1.0, 21.0)[:, None]
    assert LaplaceSum(np.full((20, 1), 0.1), times).rough_line(1.0, np.array([0.0, 1.0])) is None


@pytest.mark.parametrize("rows", [30, 60, 90])
def test_a_rough_line_does_not_show(rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The answer with and without it: the same but for a twentieth of what its tolerance leaves open."""
    composed = compose(*(Laplace(4.0 + 12.0 * index / rows) for index in range(rows)))
    rough = composed.delta(epsilon=2.0)
    seen: list[Line | None] = []
    whole = LaplaceSum.rough_line

    def noted(self: LaplaceSum, order: float, frequencies: np.ndarray) -> Line | None:
        seen.append(whole(self, order, frequencies))
        return seen[-1]

    monkeypatch.setattr(LaplaceSum, "rough_line", noted)
    composed.delta(epsilon=2.0)
    assert any(seen)
    monkeypatch.setattr(quadrature, "_MANY", math.inf)
    plain = composed.delta(epsilon=2.0)
    assert max(rough.lower, plain.lower) <= min(rough.upper, plain.upper)
    assert rough.width <= 1.05 * plain.width


@pytest.mark.slow
def test_many_copies_leave_no_node_too_vague_to_be_summed() -> None:
    """An error of 5e-6 a copy is thousands here: nodes that hardly matter kept it, and nothing was certified."""
    few = [Laplace(4.0 + 12.0 * index / 30) for index in range(30)]
    found = compose(*few, Laplace(1e9) * 10**9).delta(epsilon=2.0, tolerance=1e-10)
    assert 0 < found.upper - found.lower < 1e-6 * found.upper


def test_angles_beyond_single_precision_are_refused() -> None:
    """Where a turn is not known to a hundredth nothing is said, and nothing overflows."""
    transform = LaplaceSum(np.geomspace(1e-6, 1e6, 60)[:, None], np.ones((60, 1)))
    with np.errstate(over="raise", invalid="raise"):
        found = transform.rough_line(0.5, np.array([0.0, 1e15]))
    assert found is not None and (found.error == math.inf).all()
