"""Sampled Gaussian losses: envelopes bound lines, one direction is judged beside the other, profiles hold."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import mpmath
import numpy as np
import pytest

from dpcompose import Gaussian, Laplace
from dpcompose.contour import Transform, invert
from dpcompose.contour.quadrature import draw_on
from dpcompose.loss import SampledGaussianLoss

SEEDS = range(40)


def drawn(seed: int) -> tuple[Transform, Transform, float]:
    """One to four losses in rows of one transform, the same in the other order, and an order."""
    rng = Random(seed)
    rows = [
        (10 ** rng.uniform(-0.5, 1), 10 ** rng.uniform(-4, -0.1), int(10 ** rng.uniform(0, 7)))
        for _ in range(4)
    ]
    ulps, remove = rng.choice([0, 2]), rng.random() < 0.5
    group = [
        (SampledGaussianLoss(noise, rate, remove, ulps), times)
        for noise, rate, times in rows[: rng.choice([1, 1, 1, 2, 4])]
    ]
    (own,) = SampledGaussianLoss.pool(group)
    (other,) = SampledGaussianLoss.pool([(loss.reverse, times) for loss, times in group])
    return own, other, math.ldexp(round(2**16 * 10 ** rng.uniform(-1, 1.2)), -16)


@pytest.mark.parametrize("seed", SEEDS)
def test_envelopes_bound_the_line(seed: int) -> None:
    transform, _, order = drawn(seed)
    step = math.ldexp(round(2**16 * 3 / math.sqrt(transform.cumulants(order)[2])), -18)
    edges = step * np.array([12.0, 15.0, 18.0, 24.0, 48.0, 96.0])
    beyond = np.sort(
        np.concatenate(
            [np.linspace(left, right, 9) for left, right in zip(edges, 2 * edges, strict=True)]
        )
    )
    exact = transform.line(order, np.concatenate([[0.0], beyond]))
    # From an error of 1 on a line says nothing from below.
    known = np.where(exact.error < 1, exact.log.real - exact.error, -np.inf)
    least = known[1:] - (exact.log.real + exact.error)[0]
    block = np.searchsorted(edges, beyond, side="right") - 1
    for bounds in (transform.log_envelope(order, edges), transform.finest_envelope(order, edges)):
        assert np.all(least <= bounds[block])


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_other_direction_is_judged_rightly_beside_the_first(seed: int) -> None:
    transform, other, _ = drawn(seed)
    for mass in (1e-3, 1e-9):
        reading = invert.point_of(transform, mass, mass, tolerance=1e-9)
        if not 1e-6 < reading.lower < reading.upper < 1.001 * reading.lower:
            continue
        truth = invert.value_at(other, reading.lower, tolerance=1e-6)
        for beside in (reading, None):
            if truth.lower > 1e-300:
                assert not invert.at_most(other, reading.lower, 0.999 * truth.lower, reverse=beside)
        # The loss of the record removed is asked first; the other one's order says little of it.
        if transform.minimum > -math.inf and 0 < truth.upper < min(1.01 * truth.lower, 0.3):
            assert invert.at_most(other, reading.lower, 1.5 * truth.upper)


@pytest.mark.parametrize(
    ("sigma", "rate", "epsilon"),
    [
        *[
            (1.0, 1.4e-5, 700.0),
            (1.0, 1e-310, 1.0),
            (0.03, 1e-6, 699.0),
            (0.03, 0.2, 39.99),
            (0.03, 0.2, 40.01),
        ],
        *[(0.016208554361452965, 2.491505729e-314, 1093.9577484371687), (0.02, 1e-3, 1200.0)],
    ],
)
def test_far_profiles_hold_the_truth(sigma: float, rate: float, epsilon: float) -> None:
    with mpmath.workdps(400):
        mu, q = 1 / mpmath.mpf(sigma), mpmath.mpf(rate)
        base = mpmath.log((mpmath.exp(epsilon) - (1 - q)) / q)
        tails = [mpmath.erfc((base / mu + end) / mpmath.sqrt(2)) / 2 for end in (-mu / 2, mu / 2)]
        truth = q * (tails[0] - mpmath.exp(base) * tails[1])
        for proof in (False, True):
            found = Gaussian(sigma).sampled(rate).delta(epsilon=epsilon, proof=proof)
            assert found.lower <= truth <= found.upper <= float(truth) * (1 + 1e-9) + 1e-323
    back = Gaussian(0.03).sampled(1e-6).epsilon(delta=1e-12)
    assert back.contains(699.252906242306) and back.width < 1e-10


@pytest.mark.parametrize(("rate", "epsilon"), [(1e-310, 1.0), (1e-6, 700.0)])
def test_far_profiles_of_any_sampled_losses_are_finite(rate: float, epsilon: float) -> None:
    found = (Gaussian(1.0) + Laplace(1.0)).sampled(rate).delta(epsilon=epsilon)
    assert 0 <= found.lower <= found.upper <= rate


def test_a_line_with_gaps_serves_no_other_variable() -> None:
    transform, other, _ = drawn(0)
    reading = invert.point_of(transform, 1e-6, 1e-6, tolerance=1e-9)
    line = reading.contour
    assert line is not None and line.name == "contour"
    assert draw_on(other, line) is not None
    kept = np.arange(line.nodes) != 3
    gap = replace(
        line, frequency=line.frequency[kept], log=line.log[kept], kernel=line.kernel[kept]
    )
    assert draw_on(other, gap) is None
