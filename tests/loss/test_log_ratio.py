"""log r of a sampled Gaussian where it nearly cancels, and answers that stand on it."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import Adjacency, Gaussian, compose
from dpcompose.loss.product import Product
from dpcompose.loss.sampled_gaussian import SampledGaussianLoss
from dpcompose.loss.sampled_gaussian_grid import built, log_ratio, shortened

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
            allowed = (
                8 * abs(truth)
                + 16 * abs(z) * weight
                + 8 * abs((-arb(rate)).log1p()) * (1 if z > 30 else 0)
            )
            assert float((abs(arb(found) - truth) / (allowed * U + 1e-300)).mid()) < 1, (
                x,
                noise,
                rate,
            )


@pytest.mark.parametrize("rate", [1e-3, 1e-14, 1e-20, 1e-200, 1e-306, 1e-310, 5e-324])
def test_a_grid_knows_how_far_off_it_is_where_hardly_anybody_is_sampled(rate: float) -> None:
    """Far out, where the sampled part is about to matter: it is z + log(rate) that nearly cancels there."""
    noise = 0.13
    place = noise**2 * -math.log(rate) + 0.5
    noises, rates, low, high = (
        np.array([[each]]) for each in (noise, rate, place - 0.3, place + 0.3)
    )
    with np.errstate(all="ignore"):
        grid = built(noises, rates, low, high, shortened(np.array([[0.01]])), 0)
    with ctx.workprec(2000):
        for x, found, slant in zip(
            grid.x[0].tolist(), grid.points.ratio[0], grid.points.ratio_error[0], strict=True
        ):
            truth, _, _ = exact(x, noise, rate)
            assert float((abs(arb(float(found)) - truth) / abs(truth)).mid()) <= slant, x


@pytest.mark.slow
@pytest.mark.parametrize("spared", [1e-10, 1e-13, 2.0**-50])
def test_nearly_everybody_is_sampled(spared: float) -> None:
    """A record replaced: log(1 - rate + ...) lost a factor 1 / (1 - rate) that no error held."""
    training = Gaussian(0.25).sampled(1 - spared) * 10
    fast = training.epsilon(delta=1e-10, adjacency=Adjacency.REPLACE)
    sure = training.epsilon(delta=1e-10, adjacency=Adjacency.REPLACE, proof=True, tolerance=1e-6)
    assert fast.lower <= sure.lower and sure.upper <= fast.upper


@pytest.mark.slow
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
    rarely = Gaussian(0.1).sampled(1e-310) * 5
    assert rarely.epsilon(delta=1e-5).upper < 0.001


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sigma", "rate", "times", "delta"), [(0.04, 1e-4, 4418, 0.4), (5.0, 1e-9, 36, 1e-60)]
)
def test_no_grid_is_longer_than_memory(sigma: float, rate: float, times: int, delta: float) -> None:
    found = (Gaussian(sigma).sampled(rate) * times).epsilon(
        delta=delta, adjacency=Adjacency.REPLACE
    )
    assert 0 <= found.lower <= found.upper


def test_no_answer_ends_at_an_epsilon_that_is_no_number() -> None:
    loss = SampledGaussianLoss(7.154816944873974, 0.999999999999999, True)
    found = Product(((loss, 1),)).epsilon(5e-324, tolerance=1e-9)
    assert 0 < found.lower < found.upper == math.inf
