"""log r of a sampled Gaussian where it nearly cancels, and answers that stand on it."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import Adjacency, Gaussian, compose
from dpcompose.loss.sampled_gaussian_points import log_ratio

U = 2.0**-53


def exact(x: float, noise: float, rate: float) -> tuple[arb, arb, arb]:
    """log r, z, and the weight of the sampled part."""
    z = (2 * arb(x) - 1) / (2 * arb(noise) ** 2)
    sampled = arb(rate) * z.exp()
    whole = 1 - arb(rate) + sampled
    return whole.log(), z, sampled / whole


@pytest.mark.parametrize("seed", range(40))
def test_errors_are_those_of_the_result_and_of_the_exponent(seed: int) -> None:
    """Rates next to 0 and to 1, ratios next to 1, the switch at 30 and far beyond."""
    rng = Random(f"ratio {seed}")
    with ctx.workprec(300):
        for _ in range(50):
            noise, small = 10 ** rng.uniform(-2, 6), 10 ** rng.uniform(-15.5, -0.1)
            rate = rng.choice([small, 1 - small])
            edge = noise**2 * rng.choice([30.0, math.log(small), 1e-9, 1.0, 300.0])
            x = rng.choice([0.5, 0.5 + edge, edge * (1 + 1e-9), rng.gauss(0, 1) * noise, 0.0, 1.0])
            found = float(log_ratio(np.array([[x]]), np.array([[noise]]), np.array([[rate]]))[0, 0])
            truth, z, weight = exact(x, noise, rate)
            allowed = 8 * abs(truth) + 16 * abs(z) * weight + 8 * abs((-arb(rate)).log1p()) * (1 if z > 30 else 0)
            assert float((abs(arb(found) - truth) / (allowed * U + 1e-300)).mid()) < 1, (x, noise, rate)


@pytest.mark.parametrize("spared", [1e-10, 1e-13, 2.0**-50])
def test_nearly_everybody_is_sampled(spared: float) -> None:
    """A record replaced: log(1 - rate + ...) lost a factor 1 / (1 - rate) that no error held."""
    training = Gaussian(0.25).sampled(1 - spared) * 10
    fast = training.epsilon(delta=1e-10, adjacency=Adjacency.REPLACE)
    sure = training.epsilon(delta=1e-10, adjacency=Adjacency.REPLACE, proof=True, tolerance=1e-6)
    assert fast.lower <= sure.lower and sure.upper <= fast.upper


def test_beyond_all_grids_an_answer_says_nothing_and_raises_nothing() -> None:
    tiny = Gaussian(0.002).sampled(0.01)
    wide = Gaussian(762278.7638173855).sampled(7.775889419494863e-05) * 34
    for composition, delta in (
        (tiny * 2, 1e-5),
        (compose(Gaussian(1.0).sampled(0.01) * 100, tiny), 1e-5),
        (wide, 1e-101),
    ):
        found = composition.epsilon(delta=delta)
        assert 0 <= found.lower <= found.upper
    assert (tiny * 2).delta(epsilon=1.0).upper <= 1


@pytest.mark.parametrize(("sigma", "rate", "times", "delta"), [(0.04, 1e-4, 4418, 0.4), (5.0, 1e-9, 36, 1e-60)])
def test_no_grid_is_longer_than_memory(sigma: float, rate: float, times: int, delta: float) -> None:
    found = (Gaussian(sigma).sampled(rate) * times).epsilon(delta=delta, adjacency=Adjacency.REPLACE)
    assert 0 <= found.lower <= found.upper
