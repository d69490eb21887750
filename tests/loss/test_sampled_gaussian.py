"""Sampled Gaussian losses: what is cheap bounds what is dear, and both directions agree with each made by itself."""

from __future__ import annotations

import math
from dataclasses import replace
from random import Random

import mpmath
import numpy as np
import pytest

from dpcompose import Gaussian, Laplace
from dpcompose.contour import invert
from dpcompose.contour.quadrature import draw_on
from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_decay import _multiples, _stepped_sums
from dpcompose.loss.sampled_gaussian_sum import SampledGaussianSum
from dpcompose.numerics.elementary import exponential_sums

SEEDS = range(40)


def drawn(seed: int) -> tuple[SampledGaussianSum, float]:
    """One to four rows in one direction, and an order."""
    rng = Random(seed)
    rows = [
        (10 ** rng.uniform(-0.5, 1), 10 ** rng.uniform(-4, -0.1), 10 ** rng.uniform(0, 7))
        for _ in range(4)
    ]
    columns = np.array(rows[: rng.choice([1, 1, 1, 2, 4])])
    times = np.floor(columns[:, 2:3])
    losses = SampledGaussianBatch(columns[:, 0:1], columns[:, 1:2], times, rng.choice([0, 2]))
    own = losses.rows_of(remove=rng.random() < 0.5)
    return SampledGaussianSum(losses, own), math.ldexp(
        round(2**16 * 10 ** rng.uniform(-1, 1.2)), -16
    )


@pytest.mark.parametrize("seed", SEEDS)
def test_a_survey_bounds_the_line(seed: int) -> None:
    transform, order = drawn(seed)
    step = math.ldexp(round(2**16 * 3 / math.sqrt(transform.cumulants(order)[2])), -18)
    nodes, edges = step * np.arange(12), step * np.array([12.0, 15.0, 18.0, 24.0, 48.0, 96.0])
    line = transform.line(order, nodes)
    for together in (True, False):
        rough, bounds = transform.coarse_line(order, nodes, edges, with_reverse=together)
        distance = np.abs(np.exp(rough.log - line.log) - 1)
        assert np.all(distance <= np.expm1(rough.error + line.error))
        beyond = np.concatenate(
            [np.linspace(left, right, 9) for left, right in zip(edges, 2 * edges, strict=True)]
        )
        beyond.sort()
        exact = transform.line(order, np.concatenate([[0.0], beyond]))
        least = (exact.log.real - exact.error)[1:] - (exact.log.real + exact.error)[0]
        block = np.searchsorted(edges, beyond, side="right") - 1
        assert np.all(least <= bounds[block])


@pytest.mark.parametrize("seed", SEEDS)
def test_a_moment_is_bounded_from_above_and_closely(seed: int) -> None:
    transform, order = drawn(seed)
    line = transform.line(order, np.zeros(1))
    low, high = float(line.log[0].real - line.error[0]), float(line.log[0].real + line.error[0])
    for at in (order, math.ceil(order)):
        bound = transform.moment_bound(float(at))
        assert bound >= low
        assert at > order or bound <= high + 2.1
    summed = transform._by_sum(order)
    assert summed is None or low <= summed <= high + 0.1 + 1e-6 * abs(high)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_other_direction_is_what_it_would_be_by_itself(seed: int) -> None:
    transform, order = drawn(seed)
    transform.curve(np.array([order, 4 * order]))
    other = transform.reverse
    assert isinstance(other, SampledGaussianSum)
    losses = transform.batch
    alone = SampledGaussianSum(
        SampledGaussianBatch(losses.noise, losses.rate, losses.times, losses.ulps),
        losses.rows_of(remove=not transform.remove),
    )
    assert other.cumulants(order) == pytest.approx(alone.cumulants(order), rel=1e-6, abs=1e-12)
    nodes = np.array([0.0, 0.25, 1.5])
    one, two = other.line(order, nodes), alone.line(order, nodes)
    assert np.all(np.abs(np.exp(one.log - two.log) - 1) <= np.expm1(one.error + two.error))


def test_products_of_waves_are_the_sums_of_exponentials() -> None:
    rng = np.random.default_rng(3)
    first = rng.normal(size=(2, 70)) + 1j * rng.normal(size=(2, 70))
    modulus, argument = 3 * rng.normal(size=(2, 70)), rng.random((2, 70))
    frequencies = 0.28125 * np.array([*range(9), 11.0, 13.0, 18.0, 36.0, 72.0])
    multiples = _multiples(frequencies)
    assert multiples is not None and multiples == [*range(9), 11, 13, 18, 36, 72]
    found = _stepped_sums(multiples, frequencies[1], first, modulus, argument)
    expected = exponential_sums(frequencies, first, 1j * modulus - argument)
    assert np.all(np.abs(found - expected) <= 1e-13 * np.abs(first).sum(axis=-1)[:, None])
    assert _multiples(frequencies + 0.01) is None
    assert _multiples(frequencies[:5]) is None


@pytest.mark.slow
@pytest.mark.parametrize("seed", SEEDS)
def test_the_other_direction_is_judged_rightly_beside_the_first(seed: int) -> None:
    transform, _ = drawn(seed)
    other = transform.reverse
    assert other is not None
    for mass in (1e-3, 1e-9):
        reading = invert.point_of(transform, mass, mass, tolerance=1e-9)
        if not 1e-6 < reading.lower < reading.upper < 1.001 * reading.lower:
            continue
        truth = invert.value_at(other, reading.lower, tolerance=1e-6)
        for beside in (reading, None):
            if truth.lower > 1e-300:
                assert not invert.at_most(other, reading.lower, 0.999 * truth.lower, reverse=beside)
        if 0 < truth.upper < min(1.01 * truth.lower, 0.3):
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
    transform, _ = drawn(0)
    reading = invert.point_of(transform, 1e-6, 1e-6, tolerance=1e-9)
    line, other = reading.contour, transform.reverse
    assert line is not None and other is not None and line.name == "contour"
    assert draw_on(other, line) is not None
    kept = np.arange(line.nodes) != 3
    gap = replace(
        line, frequency=line.frequency[kept], log=line.log[kept], kernel=line.kernel[kept]
    )
    assert draw_on(other, gap) is None
