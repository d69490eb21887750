"""Bounds on M and on the fall of |M|, from the grid for planning, against fine sums over the noise."""

from __future__ import annotations

import math
from random import Random
from typing import Any

import numpy as np
import pytest

from dpcompose import Gaussian
from dpcompose.loss import sampled_gaussian_plan as plan
from dpcompose.loss.sampled_gaussian_plan import Parts
from dpcompose.loss.sampled_gaussian_sum import Rows, SampledGaussianBatch


def rows(noise: float, rate: float, times: int, sign: int) -> Rows:
    one, share, count = (np.array([[float(value)]]) for value in (noise, rate, times))
    return SampledGaussianBatch(Parts(one, share, count, 1, 0)).rows(remove=sign > 0)


def tilted(
    noise: float, rate: float, order: float, sign: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Shares and losses on a grid sixteen times as fine as any in use, and log M."""
    reach = 14 * noise + (order + 2)
    step = min(0.025, 0.1 * noise) * noise
    x = np.arange(-reach, reach, step)
    z = (2 * x - 1) / (2 * noise**2)
    loss = np.where(z > 30, z + np.log(rate), np.log1p(rate * np.expm1(np.minimum(z, 30))))
    exponent = -(x**2) / (2 * noise**2) + (order + 1 if sign > 0 else -order) * loss
    share = np.exp(exponent - exponent.max())
    norm = math.log(step / noise) - 0.5 * math.log(2 * math.pi)
    return share / share.sum(), loss, float(exponent.max() + math.log(share.sum()) + norm)


@pytest.mark.parametrize("seed", range(60))
def test_never_below_the_truth(seed: int) -> None:
    rng = Random(seed)
    noise, rate = 10 ** rng.uniform(-0.5, 1.3), 10 ** rng.uniform(-3, -0.02)
    order, sign, times = (
        10 ** rng.uniform(-1, 1.8),
        rng.choice([1, -1]),
        round(10 ** rng.uniform(0.4, 10)),
    )
    found = rows(noise, rate, times, sign)
    share, loss, log_m = tilted(noise, rate, order, sign)
    integrands = found.integrands(order)
    assert integrands is not None
    upper = float(integrands.log_moment[0, 0])
    assert log_m - 1e-12 * (1 + abs(log_m)) <= upper <= log_m + 1e-2
    assert times > 1e8 or times * float(integrands.log_factor[0, 0]) < 0.05
    away = loss - share @ loss
    variance, fourth = share @ away**2, share @ away**4
    quiet = math.sqrt(60 / times / variance)
    # Up to where the sums still follow the waves: log r moves by at most step / noise^2.
    most = 2 * noise / min(0.025, 0.1 * noise)
    edges = np.minimum(quiet * 10 ** np.linspace(-1, 1.5, 60), most)
    truth = np.abs(np.exp(1j * edges[:, None] * away) @ share) - 1e-14
    for finest in (False, True):
        envelope = found.envelope(order, edges, finest=finest)[0]
        assert np.all(truth <= np.exp(envelope) * (1 + 1e-12))
        assert np.all(truth[1:] <= np.exp(envelope[:-1]) * (1 + 1e-12))
        # All copies together, where the losses are alike.
        if times > 1000 and fourth < 5 * variance * variance:
            assert times * float(envelope[edges.searchsorted(1.5 * quiet)]) < -30


def test_the_shared_line_is_that_of_each_direction() -> None:
    """Both directions at once: the same logarithms as alone, within the errors stated."""
    one = (Gaussian(1.1).sampled(0.004) * 10**4).epsilon(delta=1e-6)
    tight = (Gaussian(1.1).sampled(0.004) * 10**4).epsilon(delta=1e-6, tolerance=1e-12)
    assert one.lower <= tight.upper
    assert tight.lower <= one.upper


def test_the_cells_at_both_ends_stand_for_what_is_beyond_them() -> None:
    """So many copies of so little noise that one step of the grid is short, and log r turns complex at its end."""
    noise, rate, angle = 0.05526654804300222, 6.680834216693311e-161, 0.8122356754416638
    order, reach = 2.31051012633543e-06, 5159.310170555704
    one, share, count = (np.array([[value]]) for value in (noise, rate, 1e13))
    parts = Parts(one, share, count, 1, 0)
    at = np.array([[order]])
    grid = parts.gridded(*plan.coarse_ends(parts, at, 1.25 * at), 4096)
    sides = plan.Integrands(parts, grid, at + 1), plan.Integrands(parts, grid, -at)
    bound = float(plan._lower_edges(*sides, np.array(reach), np.array([[angle]]))[0, 0])
    x = np.arange(-20 * noise, 40 * noise, noise / 4000)
    ratio: Any = np.log(1 - rate + rate * np.exp((2 * x - 1) / (2 * noise**2) - 1j * angle))
    norm = (angle * noise) ** 2 / 2 - math.log(4000 * math.sqrt(2 * math.pi))
    truths: list[float] = []
    for power in (order + 1, -order):
        logs = norm - np.square(x / noise) / 2 + power * ratio.real + reach * np.abs(ratio.imag)
        truths.append(float(logs.max() + np.log(np.exp(logs - logs.max()).sum())))
    assert max(truths) < bound < max(truths) + 1
