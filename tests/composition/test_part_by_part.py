"""A part of negligible cost has negligible effect: bounds from some of the parts, and with some of
the samples.
"""

from __future__ import annotations

import math
from itertools import combinations
from typing import Any

import pytest

import dpcompose
from dpcompose import Adjacency, Gaussian, Laplace, Orientation, compose
from dpcompose.composition import Composable
from dpcompose.mechanisms import FixedSizeSample, MixtureOfGaussians, TruncatedPoisson

PARTNER = Gaussian(10.0).sampled(0.5) * 164
DELTA = 3e-7
TRUTH = {
    Adjacency.ADD_REMOVE: 3.154956511,
    Adjacency.ZERO_OUT: 3.154956511,
    Adjacency.REPLACE: 6.795978595,
}
"""Of the partner alone."""


@pytest.mark.parametrize(
    ("noise", "adjacency"), [(1e5, Adjacency.ADD_REMOVE), *((1e6, each) for each in Adjacency)]
)
def test_a_free_phase_costs_nothing(noise: float, adjacency: Adjacency) -> None:
    both, plain = PARTNER + Gaussian(noise).sampled(0.3) * 3000, PARTNER + Gaussian(noise) * 3000
    found = both.epsilon(delta=DELTA, adjacency=adjacency)
    assert (
        TRUTH[adjacency] * (1 - 1e-9) < found.lower <= found.upper < TRUTH[adjacency] * (1 + 1e-6)
    )
    assert found.upper <= plain.epsilon(delta=DELTA, adjacency=adjacency).upper * (1 + 1e-9)
    for epsilon in (3.15, -1.0):
        alone, back = (each.delta(epsilon=epsilon, adjacency=adjacency) for each in (PARTNER, both))
        assert alone.lower * (1 - 1e-9) <= back.lower <= back.upper <= alone.upper * (1 + 1e-5)


def test_a_free_phase_among_several() -> None:
    others = PARTNER + Gaussian(2.0).sampled(0.01) * 500
    found = (others + Gaussian(1e6).sampled(0.3) * 3000 + Gaussian(1e7).sampled(0.9) * 10).epsilon(
        delta=DELTA
    )
    alone = others.epsilon(delta=DELTA)
    assert alone.lower * (1 - 1e-9) <= found.lower <= found.upper <= alone.upper * (1 + 1e-7)
    batch = dpcompose.epsilon([others, others + Gaussian(1e6).sampled(0.3) * 3000], delta=DELTA)
    assert batch.lower[1] >= batch.lower[0] * (1 - 1e-9) and batch.upper[1] <= batch.upper[0] * (
        1 + 1e-7
    )


@pytest.mark.slow
def test_whoever_orients_the_rounds() -> None:
    both = PARTNER + Gaussian(1e6).sampled(0.3) * 3000
    found = both.delta(epsilon=3.0, orientation=Orientation.FREE)
    alone = PARTNER.delta(epsilon=3.0, orientation=Orientation.FREE)
    assert alone.lower * (1 - 1e-9) <= found.lower <= found.upper <= alone.upper * (1 + 1e-3)


def test_a_phase_that_is_within_delta_altogether_has_no_epsilon() -> None:
    alone = Gaussian(6e5).sampled(0.0031) * 3000
    assert alone.epsilon(delta=DELTA).upper == 0
    # 3000 samples of rate 0.0031 are close to one answer of mu = 0.0031 sqrt(3000) / 6e5.
    truth = 0.0031 * math.sqrt(3000) / 6e5 / math.sqrt(2 * math.pi)
    found = alone.delta(epsilon=0.0)
    assert 0.99 * truth < found.lower <= 1.01 * truth and 0.99 * truth < found.upper < 2 * truth


CAPPED = TruncatedPoisson(1e6, rate=0.01, records=1000, batch=20)
MOVED = MixtureOfGaussians(1e6, shifts=(0.0, 1.0, 3.0), weights=(0.5, 0.3, 0.2))
DRAWN = FixedSizeSample(1e6, records=1000, batch=300)


@pytest.mark.parametrize(
    ("part", "reach", "adjacency"),
    [
        (CAPPED, 2.0, Adjacency.ADD_REMOVE), (MOVED, 3.0, Adjacency.ADD_REMOVE), (DRAWN, 2.0, Adjacency.REPLACE),
        (TruncatedPoisson(1e6, rate=0.5, records=10, batch=10), 1.0, Adjacency.ADD_REMOVE),
    ],
)  # fmt: skip
def test_a_dominating_pair_without_the_sample(
    part: Any, reach: float, adjacency: Adjacency
) -> None:
    inner = part.unsampled(adjacency)
    ((plain, times),) = inner.parts
    assert plain.gdp(adjacency=adjacency) == pytest.approx(reach / 1e6) and (times, inner.rate) == (
        1,
        1.0,
    )
    for small in (part, type(part)(**{**vars(part), "sigma": 0.7})):
        (without, _) = small.unsampled(adjacency).parts[0]
        for epsilon in (-1.0, 0.0, 1e-6, 0.5, 3.0, 9.0):
            above, below = (
                each.delta(epsilon=epsilon, adjacency=adjacency) for each in (without, small)
            )
            assert below.lower <= above.upper
    partner = PARTNER if adjacency is not Adjacency.REPLACE else Gaussian(10.0).sampled(0.5) * 20
    alone, found = (
        each.epsilon(delta=DELTA, adjacency=adjacency) for each in (partner, partner + part * 300)
    )
    assert alone.lower * (1 - 1e-9) <= found.lower and found.upper <= alone.upper * (1 + 1e-6)


@pytest.mark.parametrize("delta", [1e-20, 1e-40, 1e-100, 1e-300])
def test_one_batch_of_fixed_size_has_a_finite_epsilon_at_every_delta(delta: float) -> None:
    one = FixedSizeSample(2.0, records=1000, batch=100)
    found = one.epsilon(delta=delta, adjacency=Adjacency.REPLACE)
    # By advanced joint convexity it is the record removed from a sample of that rate, with noise of half the size.
    truth = Gaussian(1.0).sampled(0.1).epsilon(delta=delta)
    assert max(found.lower, truth.lower) <= min(found.upper, truth.upper) < 40
    assert one.delta(epsilon=math.inf, adjacency=Adjacency.REPLACE).lower == 0


HARD: list[tuple[Composable, ...]] = [
    (
        Gaussian(28.432731236066376).sampled(0.0009386492170698906) * 644708,
        Gaussian(123773.998).sampled(0.846) * 1388519,
    ),
    (
        Gaussian(0.8056701983699789) * 30098,
        Gaussian(30807.714528384462).sampled(0.3435373705071826) * 319,
    ),
    (
        Gaussian(748438.4579330627).sampled(1.487280108118853e-06) * 5145,
        Laplace(1.5175765135084134).sampled(4.1e-07) * 15,
    ),
    (
        FixedSizeSample(2.0, records=1000, batch=100),
        FixedSizeSample(3.0, records=1000, batch=10) * 3,
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize("parts", HARD, ids=str)
@pytest.mark.parametrize("delta", [1e-9, 1e-70])
def test_no_lower_end_is_below_that_of_some_parts(
    parts: tuple[Composable, ...], delta: float
) -> None:
    under = Adjacency.REPLACE if isinstance(parts[0], FixedSizeSample) else Adjacency.ADD_REMOVE
    whole = compose(*parts).epsilon(delta=delta, adjacency=under)
    for size in range(1, len(parts)):
        for some in combinations(parts, size):
            alone = compose(*some).epsilon(delta=delta, adjacency=under)
            assert alone.lower * (1 - 2e-6) <= whole.lower <= whole.upper
