"""What the grid for planning bounds: moments and variances, against grids forty times as fine."""

import math

import numpy as np
import pytest

from dpcompose.loss.sampled_gaussian_batch import SampledGaussianBatch
from dpcompose.loss.sampled_gaussian_grid import (
    built,
    coarse_step,
    most_moment,
    most_variance,
    shortened,
    trapezoid_error,
)
from dpcompose.numerics.elementary import log_sum

CASES = 300


def test_step_misses_little():
    noise = np.logspace(-4, 5, 2001)
    for each, step in zip(noise.tolist(), coarse_step(noise).tolist(), strict=True):
        assert trapezoid_error(each, 0.0, step, 2.5) < 0.001
        assert trapezoid_error(each, -40 * each * each, step, 2.5) < 0.006


@pytest.mark.slow
@pytest.mark.parametrize("sign", [1, -1])
def test_bounds_hold_and_are_close(sign: int):
    rng = np.random.default_rng(7)
    raised: list[float] = []
    widened: list[float] = []
    for _ in range(CASES):
        noise = float(np.exp(rng.uniform(math.log(0.08), math.log(30))))
        rate = float(np.exp(rng.uniform(math.log(1e-6), math.log(0.9))))
        power = sign * float(np.exp(rng.uniform(math.log(0.1), math.log(4000 * noise * noise + 5))))
        rows = SampledGaussianBatch(*(np.array([[each]]) for each in (noise, rate, 1.0)), ulps=1)
        own = slice(0, 1) if sign > 0 else slice(1, 2)
        order = power - 1 if sign > 0 else -power
        grid, one = rows.coarse(order, own), rows.moments(order, own)
        if grid is None or one is None:
            continue  # too many points: the engine makes no statement
        s, q, p = np.array([[noise]]), np.array([[rate]]), np.array([[power]])
        fine = built(s, q, grid.low, grid.high, shortened(grid.step / 40), 1).points
        exponent = fine.log_weight + p * fine.ratio
        log_m = float(log_sum(exponent)[0, 0])
        share = np.exp(exponent - log_m)
        variance = float((share * np.square(fine.ratio - (share * fine.ratio).sum())).sum())
        upper = float(most_moment(grid, None, s, p)[0, 0])
        widest = float(most_variance(one, s, q, p, np.array([[float(sign)]]))[0, 0])
        assert upper >= log_m, (noise, rate, power)
        assert widest >= variance * (1 - 1e-9), (noise, rate, power)
        raised.append(upper - log_m)
        widened.append(widest / variance)
    assert len(raised) > 0.8 * CASES
    assert np.median(raised) < 0.02
    # Far to the left, where the grid is too coarse, all that is known is 1 / s^2.
    assert np.median(widened) < 1.05 if sign > 0 else np.quantile(widened, 0.2) < 1.05
