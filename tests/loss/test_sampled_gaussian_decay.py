"""The fall of |M| from two moments and one shifted path, against fine sums over the noise."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from dpcompose import Gaussian
from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_decay import NearNormal

SLICES = {1: slice(0, 1), -1: slice(1, 2)}


def rows(noise: float, rate: float, times: int) -> SampledGaussianBatch:
    one, share, count = (np.array([[float(value)]]) for value in (noise, rate, times))
    return SampledGaussianBatch(one, share, count, 0)


def tilted(noise: float, rate: float, order: float, sign: int) -> tuple[np.ndarray, np.ndarray]:
    """Shares and losses on a grid sixteen times as fine as any in use."""
    reach = 14 * noise + (order + 2)
    x = np.arange(-reach, reach, min(0.025, 0.1 * noise) * noise)
    z = (2 * x - 1) / (2 * noise**2)
    loss = np.where(z > 30, z + np.log(rate), np.log1p(rate * np.expm1(np.minimum(z, 30))))
    exponent = -(x**2) / (2 * noise**2) + (order + 1 if sign > 0 else -order) * loss
    share = np.exp(exponent - exponent.max())
    return share / share.sum(), loss


def found(
    noise: float, rate: float, times: int, order: float, sign: int, *, together: bool
) -> NearNormal | None:
    return rows(noise, rate, times).near_normal(order, SLICES[sign], together=together)


@pytest.mark.parametrize("seed", range(60))
def test_never_below_the_truth(seed: int) -> None:
    rng = Random(seed)
    noise, rate = 10 ** rng.uniform(-0.5, 1.3), 10 ** rng.uniform(-3, -0.02)
    order, sign, times = (
        10 ** rng.uniform(-1, 1.8),
        rng.choice([1, -1]),
        round(10 ** rng.uniform(2, 10)),
    )
    bounds = found(noise, rate, times, order, sign, together=rng.random() < 0.5)
    if bounds is None:
        return
    share, loss = tilted(noise, rate, order, sign)
    away = loss - share @ loss
    variance, fourth = share @ away**2, share @ away**4
    assert bounds.variance[0, 0] <= variance * (1 + 1e-12)
    assert bounds.fourth[0, 0] >= (2 * fourth + 6 * variance**2) * (1 - 1e-12)
    edges = np.sort(
        np.concatenate([bounds.last[0] * 10 ** np.linspace(-3, 1.5, 60), bounds.last[0]])
    )
    truth = np.abs(np.exp(1j * edges[:, None] * away) @ share)
    envelope = bounds.log_envelope(edges)[0]
    assert np.all(np.log(truth) <= envelope + 1e-12)
    assert np.all(np.log(truth[1:]) <= envelope[:-1] + 1e-12)
    small = edges**2 * variance < 1e-2 * min(1.0, variance**2 / fourth)
    assert np.all(envelope[small] <= -0.25 * variance * edges[small] ** 2 + 1e-7)


@pytest.mark.parametrize(
    ("noise", "rate", "times"), [(4.0, 0.1, 10**4), (1.1, 64 / 15000, 14062), (1.0, 1e-3, 10**9)]
)
def test_schedules_that_it_serves(noise: float, rate: float, times: int) -> None:
    for sign in (1, -1):
        bounds = found(noise, rate, times, 3.0, sign, together=True)
        assert bounds is not None
        assert times * bounds.after[0, 0] < -50


def test_rare_losses_are_left_to_the_survey() -> None:
    assert found(0.5, 1e-4, 10**6, 2.0, 1, together=False) is None
    assert found(1.0, 0.01, 20, 3.0, 1, together=False) is None


def test_the_shared_line_is_that_of_each_direction() -> None:
    """Both directions at once: the same logarithms as alone, within the errors stated."""
    one = (Gaussian(1.1).sampled(0.004) * 10**4).epsilon(delta=1e-6)
    tight = (Gaussian(1.1).sampled(0.004) * 10**4).epsilon(delta=1e-6, tolerance=1e-12)
    assert one.lower <= tight.upper
    assert tight.lower <= one.upper
