"""Bounds on the fall of |M| by paths beside the real line, against fine sums over the noise."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dpcompose import Gaussian
from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_plan import THETAS

SLICES = {1: slice(0, 1), -1: slice(1, 2)}


def rows(noise: float, rate: float, times: int) -> SampledGaussianBatch:
    one, share, count = (np.array([[float(value)]]) for value in (noise, rate, times))
    return SampledGaussianBatch(one, share, count, 0)


def tilted(noise: float, rate: float, order: float, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares and losses on a grid a hundred times as fine as any in use."""
    reach = 14 * noise + (order + 2)
    x = np.arange(-reach, reach, min(0.003, 0.01 * noise) * noise)
    z = (2 * x - 1) / (2 * noise**2)
    loss = np.where(z > 30, z + np.log(rate), np.log1p(rate * np.expm1(np.minimum(z, 30))))
    exponent = -(x**2) / (2 * noise**2) + (order + 1 if sign > 0 else -order) * loss
    share = np.exp(exponent - exponent.max())
    return share / share.sum(), loss


def loss_slope(loss: np.ndarray, noise: float, rate: float) -> np.ndarray:
    """d log r / dx."""
    return -np.expm1(np.log1p(-rate) - loss) / noise**2


@pytest.mark.parametrize("seed", range(60))
def test_never_below_the_truth(seed: int) -> None:
    rng = Random(seed)
    noise, rate = 10 ** rng.uniform(-0.5, 1.3), 10 ** rng.uniform(-3, -0.02)
    order, sign, times = (
        10 ** rng.uniform(-1, 1.8),
        rng.choice([1, -1]),
        round(10 ** rng.uniform(0, 10)),
    )
    share, loss = tilted(noise, rate, order, sign)
    away = loss - share @ loss
    variance, fourth = share @ away**2, share @ away**4
    edges = 10 ** np.linspace(-3, 1.5, 24) / np.sqrt(variance)
    truth = times * np.log(np.abs(np.exp(1j * edges[:, None] * away) @ share))
    batch = rows(noise, rate, times)
    for thetas in ((), THETAS, (*THETAS, 1.0, 1.3)):
        envelope = batch.envelope(order, edges, SLICES[sign], thetas)
        highest = np.maximum.accumulate(truth[::-1])[::-1]
        assert np.all(envelope <= 0)
        exact = highest > -30 * times  # below, the sums of floats end
        assert np.all((envelope >= highest - 1e-12 * times - 1e-9)[exact])
    alike = batch.envelope(order, edges, SLICES[sign], ())
    small = edges**2 * variance < 1e-2 * min(1.0, variance**2 / fourth)
    slope = share @ loss_slope(loss, noise, rate)
    assert np.all(alike[small] <= -times * (0.12 * (slope * noise * edges[small]) ** 2 - 1e-7))


@pytest.mark.parametrize(
    ("noise", "rate", "times"), [(4.0, 0.1, 10**4), (1.1, 64 / 15000, 14062), (1.0, 1e-3, 10**9)]
)
def test_nearly_normal_sums_are_quiet_where_a_gaussian_is(
    noise: float, rate: float, times: int
) -> None:
    batch = rows(noise, rate, times)
    for sign, own in SLICES.items():
        share, loss = tilted(noise, rate, 3.0, sign)
        variance = times * (share @ (loss - share @ loss) ** 2)
        (bound,) = batch.envelope(3.0, np.array([12 / np.sqrt(variance)]), own, ())
        assert bound < -35


def test_the_shared_line_is_that_of_each_direction() -> None:
    """Both directions at once: the same logarithms as alone, within the errors stated."""
    one = (Gaussian(1.1).sampled(0.004) * 10**4).epsilon(delta=1e-6)
    tight = (Gaussian(1.1).sampled(0.004) * 10**4).epsilon(delta=1e-6, tolerance=1e-12)
    assert one.lower <= tight.upper
    assert tight.lower <= one.upper
