"""Batches of a fixed size: golden values, both ends against independent computations, refusals."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import Adjacency, Bound, Composition, Gaussian
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.loss.batches import largest_batch
from dpcompose.loss.product import Product
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.mechanisms import FixedSizeSample, ShuffledEpochs
from dpcompose.mechanisms.text import parse, serialize
from oracles import fixed_size, gaussian
from oracles.ball import ball


def below(z: arb) -> arb:
    """The normal distribution function."""
    return (-z / arb(2).sqrt()).erfc() / 2


def attack(sigma: float, steps: int, epsilon: float, threshold: float) -> arb:
    """What the set of answers whose largest batch is above the threshold says, in balls."""
    noise, place = arb(sigma), arb(threshold)
    others = below(place / noise) ** (steps - 1)
    first, second = (1 - below((place - mean) / noise) * others for mean in (2, 1))
    return first - arb(epsilon).exp() * second


def shuffled(sigma: float, steps: int, epsilon: float) -> Bound:
    return ShuffledEpochs(sigma, steps=steps).delta(epsilon=epsilon, adjacency=Adjacency.ZERO_OUT)


@pytest.mark.parametrize(
    ("sigma", "steps", "epsilon", "value"),
    [(1.0, 100, 1.0, 0.0167057960785729), (0.7, 1000, 2.0, 0.0215528331989615)],
)
def test_the_lower_end_is_the_best_threshold(
    sigma: float, steps: int, epsilon: float, value: float
) -> None:
    """The largest over all thresholds, by another program."""
    found = shuffled(sigma, steps, epsilon)
    assert value * (1 - 1e-3) <= found.lower <= value * (1 + 1e-12) and found.contains(value)


def test_shuffled_ends() -> None:
    """The lower end is near the best of many thresholds in balls, never above the upper, which is Gaussian noise."""
    rng = Random(4)
    with ctx.workprec(200):
        for _ in range(40):
            sigma, steps, epsilon = (
                10 ** rng.uniform(-0.7, 0.5),
                int(10 ** rng.uniform(0.3, 4)),
                rng.uniform(0, 4),
            )
            found = shuffled(sigma, steps, epsilon)
            best = max(
                float(attack(sigma, steps, epsilon, at).lower())
                for at in np.linspace(-sigma, 2 + 9 * sigma, 400)
            )
            truth = gaussian.profile(ball(epsilon), (1 / ball(sigma)) ** 2)
            assert found.lower >= best * 0.99 - 1e-9
            assert found.lower <= float(truth.upper()) and found.upper >= float(truth.lower())
            assert found.upper <= float(truth.upper()) * (1 + 1e-9)


def test_the_cells_are_what_balls_say() -> None:
    with ctx.workprec(200):
        for noise, steps in ((1.0, 100), (0.3, 7), (4.0, 10**5), (1.0, 1), (0.5, 2)):
            table = largest_batch(noise, steps).table
            assert (
                abs(math.fsum(table.upper) - 1) < 1e-12 and abs(math.fsum(table.lower) - 1) < 1e-12
            )
            assert table.relative_error < 1e-7
            for masses, mean in ((table.upper, 2), (table.lower, 1)):
                tail = math.fsum(masses[len(masses) // 2 :])
                low, high = -20.0 * noise, 40.0 * noise + 2
                for _ in range(200):  # the place of the cell, by its mass
                    middle = (low + high) / 2
                    value = 1 - below((arb(middle) - mean) / noise) * below(
                        arb(middle) / noise
                    ) ** (steps - 1)
                    low, high = (middle, high) if value > tail else (low, middle)
                other = table.lower if mean == 2 else table.upper
                reach = 1 - below((arb(low) - (3 - mean)) / noise) * below(arb(low) / noise) ** (
                    steps - 1
                )
                assert math.fsum(other[len(masses) // 2 :]) == pytest.approx(float(reach), rel=1e-8)


def test_shuffled_laws() -> None:
    one, plain = shuffled(1.5, 1, 1.0), Gaussian(1.5).delta(epsilon=1.0)
    assert one == plain
    epochs = (ShuffledEpochs(5.0, steps=100) * 1000).epsilon(
        delta=1e-6, adjacency=Adjacency.ZERO_OUT
    )
    total = (Gaussian(50.0) * 1000).epsilon(delta=1e-6)
    assert epochs.lower >= total.lower * (1 - 1e-9)
    assert (
        epochs.upper == (Gaussian(5.0) * 1000).epsilon(delta=1e-6).upper
        and float(epochs) == epochs.upper
    )
    costs = [shuffled(1.0, steps, 1.0).lower for steps in (2, 10, 100, 1000)]
    assert costs == sorted(costs, reverse=True)


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE])
def test_shuffled_refusals(adjacency: Adjacency) -> None:
    epochs = ShuffledEpochs(1.0, steps=10)
    for question in (epochs, epochs * 3, epochs + Gaussian(1.0)):
        with pytest.raises(UnsupportedError, match="zero-out"):
            question.epsilon(delta=1e-6, adjacency=adjacency)
    with pytest.raises(UnsupportedError, match="zero-out"):
        epochs.typed(adjacency=adjacency)
    with pytest.raises(UnsupportedError, match="sampled"):
        epochs.sampled(0.1).epsilon(delta=1e-6, adjacency=Adjacency.ZERO_OUT)
    group = epochs.group(2).epsilon(delta=1e-6, adjacency=Adjacency.ZERO_OUT)
    assert group.lower < group.upper == pytest.approx(Gaussian(0.5).epsilon(delta=1e-6).upper)
    text = serialize(epochs * 2)
    assert text is not None and parse(text) == epochs * 2


def fixed(sigma: float, records: int, batch: int, times: int = 1) -> Composition:
    return FixedSizeSample(sigma, records=records, batch=batch) * times


@pytest.mark.parametrize(
    ("sigma", "records", "epsilon", "value"),
    [(2.0, 10, 0.5, 0.0020325369203403576533), (1.0, 100, 0.2, 0.0016667247500385624936)],
)
def test_one_batch_of_fixed_size(sigma: float, records: int, epsilon: float, value: float) -> None:
    """q times the Gaussian profile, by another program; the share of the records is all that counts."""
    for factor in (1, 7):
        found = fixed(sigma, records * factor, factor).delta(
            epsilon=epsilon, adjacency=Adjacency.REPLACE
        )
        assert found.contains(value) and found.width < 1e-9 * value


def divergence(first: np.ndarray, second: np.ndarray, epsilon: float, step: float) -> float:
    """The hockey-stick divergence of two densities on a grid."""
    return float(np.sum(np.maximum(first - math.exp(epsilon) * second, 0.0)) * step)


def test_no_three_records_do_worse() -> None:
    """500 times any other record and any two that are exchanged, by a sum over a grid."""
    rng = Random(5)
    grid, step = np.linspace(-14, 14, 6001, retstep=True)

    def density(mean: float, sigma: float) -> np.ndarray:
        return np.exp(-(((grid - mean) / sigma) ** 2) / 2) / (sigma * math.sqrt(2 * math.pi))

    for _ in range(500):
        sigma, records = rng.uniform(0.4, 1.5), rng.randint(2, 30)
        q, epsilon = 1 / records, rng.uniform(-2, 3)
        other, one, two = (rng.choice([-1.0, 1.0, rng.uniform(-1, 1)]) for _ in range(3))
        first, second = (
            (1 - q) * density(other, sigma) + q * density(each, sigma) for each in (one, two)
        )
        bound = fixed(sigma, records, 1).delta(epsilon=epsilon, adjacency=Adjacency.REPLACE)
        assert divergence(first, second, epsilon, float(step)) <= bound.upper + 1e-6


def test_adversaries_who_alternate() -> None:
    """Two rounds, the attained pair in one order and then in the other: below the upper end, above no lower one."""
    for sigma, records in ((1.0, 10), (0.7, 50)):
        remove, add = (SampledGaussianLoss(sigma / 2, 1 / records, side) for side in (True, False))
        composed = fixed(sigma, records, 1, 2)
        for epsilon in (0.1, 1.0):
            found = composed.delta(epsilon=epsilon, adjacency=Adjacency.REPLACE)
            for group in (((remove, 1), (add, 1)), ((remove, 2),), ((add, 2),)):
                assert Product(group).deltas([epsilon], tolerance=1e-9)[0].lower <= found.upper
            assert found.lower <= found.upper < 1.2 * found.lower


def test_rounds_of_fixed_size() -> None:
    """Two-sided, and never above the noise without a sample."""
    found = fixed(2.0, 1000, 100, 100).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    assert 8.05 < found.lower < 8.06 and 8.8 < found.upper < 8.84
    whole = FixedSizeSample(2.0, records=7, batch=7).epsilon(
        delta=1e-6, adjacency=Adjacency.REPLACE
    )
    assert whole == Gaussian(2.0).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    costs = [
        fixed(2.0, 100, batch, 5).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE).upper
        for batch in (5, 50, 100)
    ]
    assert costs == sorted(costs)
    mixed = (fixed(2.0, 100, 3, 2) + Gaussian(3.0)).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    alone = Gaussian(3.0).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    assert mixed.upper >= mixed.lower >= alone.lower * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.ZERO_OUT])
def test_refusals_of_fixed_size(adjacency: Adjacency) -> None:
    sample = FixedSizeSample(1.0, records=10, batch=2)
    with pytest.raises(UnsupportedError, match="replace"):
        sample.delta(epsilon=1.0, adjacency=adjacency)
    with pytest.raises(UnsupportedError, match="sampled"):
        sample.sampled(0.1).epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    with pytest.raises(DomainError, match="batch"):
        FixedSizeSample(1.0, records=10, batch=11)
    amounts = sample.typed(adjacency=Adjacency.REPLACE)
    assert amounts is not None and amounts.mu_squared == 4
    text = serialize(sample * 2)
    assert text is not None and parse(text) == sample * 2


def random_rounds(rng: Random) -> None:
    """The truth of the dominating loss, two-ended, is below the upper end and near it; the lower end is below both."""
    sigma, records, times = (
        rng.uniform(0.8, 4.0),
        int(10 ** rng.uniform(0.5, 3)),
        rng.randint(1, 30),
    )
    epsilon = rng.uniform(0, 3)
    found = fixed(sigma, records, 1, times).delta(epsilon=epsilon, adjacency=Adjacency.REPLACE)
    low, high = fixed_size.deltas(sigma, 1 / records, times=times, epsilon=epsilon)
    assert found.upper >= low - 1e-12 and found.lower <= high + 1e-12, (
        sigma,
        records,
        times,
        epsilon,
    )
    assert found.upper <= high * 1.01 + 1e-10, (sigma, records, times, epsilon)


def test_rounds_against_a_convolution() -> None:
    rng = Random(6)
    for _ in range(4):
        random_rounds(rng)
