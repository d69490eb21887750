"""Parts with a Renyi curve: the upper end is the smallest known, and mechanisms attain the lower
end.
"""

from __future__ import annotations

import math
import warnings

import pytest

import dpcompose
from dpcompose import (
    Adjacency,
    Concentrated,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    Orientation,
    RandomizedResponse,
    compose,
)
from dpcompose.composition import Composable
from dpcompose.mechanisms import DominatingPair

MIXED: list[tuple[float, Composable, float]] = [
    (0.02, Gaussian(1.0).sampled(0.01) * 1000, 2.3758),
    (0.125, Gaussian(1.0), 5.7580),
    (0.5, Laplace(10.0) * 100, 7.5572),
    (0.01, RandomizedResponse(0.3) * 4, 2.0),
]


@pytest.mark.parametrize(("rho", "rest", "most"), MIXED)
def test_a_promise_is_composed_by_the_pair_of_its_curve(
    rho: float, rest: Composable, most: float
) -> None:
    found = (Concentrated(rho) + rest).epsilon(delta=1e-6)
    member = (GaussianDP((2 * rho) ** 0.5) + rest).epsilon(delta=1e-6)
    assert found.lower <= member.upper <= found.upper <= most
    assert found.lower >= member.lower * (1 - 1e-9)
    assert ("one pair" in found.certificate.method) == (
        rho != 0.01
    )  # where neither side is always the smaller
    at = (Concentrated(rho) + rest).delta(epsilon=found.upper)
    assert (
        (GaussianDP((2 * rho) ** 0.5) + rest).delta(epsilon=found.upper).lower
        <= at.upper
        <= 1e-6 * (1 + 1e-6)
    )
    free = (Concentrated(rho) + rest).epsilon(delta=1e-6, orientation=Orientation.FREE)
    assert free.lower <= free.upper and member.lower <= free.upper


@pytest.mark.parametrize("mu", [0.01, 0.3, 2.0])
def test_a_promise_alone_contains_the_gaussian_that_keeps_it(mu: float) -> None:
    for delta in (0.0, 1e-8):
        found = Concentrated(mu**2 / 2, delta=delta).epsilon(delta=1e-6)
        member = GaussianDP(mu).epsilon(delta=(1e-6 - delta) / (1 - delta))
        assert found.lower <= member.upper <= found.upper
        assert found.lower >= member.lower * (1 - 1e-6)
    assert Concentrated(mu**2 / 2, delta=1e-3).epsilon(delta=1e-6).upper == float("inf")


@pytest.mark.parametrize(
    ("rho", "rest", "epsilon"), [(1000.0, Laplace(1.0), 1.0), (800.0, Gaussian(1.0), 10.0)]
)
def test_a_curve_that_says_nothing_leaves_the_lower_end(
    rho: float, rest: Composable, epsilon: float
) -> None:
    mixed = Concentrated(rho) + rest
    member = (GaussianDP((2 * rho) ** 0.5) + rest).delta(epsilon=epsilon)
    for found in (
        mixed.delta(epsilon=epsilon),
        dpcompose.delta([mixed], epsilon=epsilon, masked=True)[0],
    ):
        assert 1 - 1e-9 <= found.lower <= member.upper and found.upper == 1
    curve = mixed.profile()([0.0, epsilon])
    assert curve.upper.tolist() == [1, 1] and mixed.risk().advantage.lower >= 1 - 1e-9


def test_a_huge_promise_overflows_in_silence() -> None:
    mixed = Concentrated(1e300) + Gaussian(1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = mixed.epsilon(delta=0.01)
        assert mixed.delta(epsilon=1.0).upper == 1
    assert found.lower <= 1e300 <= found.upper


def test_neighbors_without_a_common_outcome_among_others() -> None:
    apart = DominatingPair.atoms(upper=[1.0, 0.0], lower=[0.0, 1.0], adjacency=Adjacency.ADD_REMOVE)
    for composition in (apart, apart + Gaussian(1.0), apart * 9 + Gaussian(1.0).sampled(0.1)):
        found = composition.delta(epsilon=3.0)
        assert 1 - 1e-13 <= found.lower <= found.upper == 1
        assert (
            composition.epsilon(delta=0.5).lower
            == math.inf
            == composition.epsilon(delta=1 - 2**-53).upper
        )
        assert composition.risk().advantage.contains(1.0)


def test_exponential_mechanisms_among_others_count_by_their_curve() -> None:
    mixed = Exponential(0.2) * 100 + Gaussian(2.0)
    found = mixed.epsilon(delta=1e-6)
    attained = (RandomizedResponse(0.1) * 100 + Gaussian(2.0)).epsilon(
        delta=1e-6
    )  # two points, half the range each
    assert attained.lower <= found.upper and "one pair" in found.certificate.method
    assert found.upper < (Concentrated(0.2**2 / 8) * 100 + Gaussian(2.0)).epsilon(delta=1e-6).upper


@pytest.mark.parametrize("times", [1, 10, 1000])
def test_no_route_makes_exponential_mechanisms_larger(times: int) -> None:
    found = (Exponential(1.0) * times).epsilon(delta=1e-6)
    assert (RandomizedResponse(0.5) * times).epsilon(delta=1e-6).lower <= found.upper
    assert found.upper <= (Concentrated(1 / 8) * times).epsilon(delta=1e-6).upper * (1 + 1e-9)


def test_many_distinct_parts_are_what_their_halves_are_together() -> None:
    sampled = [Gaussian(0.7 + 0.06 * at).sampled(0.002 * (1 + at % 9)) for at in range(40)]
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
        many = compose(*sampled).epsilon(delta=1e-6, adjacency=adjacency)
        fewer = compose(*sampled[:-1]).epsilon(delta=1e-6, adjacency=adjacency)
        costlier = compose(*[Gaussian(0.7 + 0.06 * at).sampled(0.018) for at in range(40)])
        assert fewer.lower <= many.upper <= costlier.epsilon(delta=1e-6, adjacency=adjacency).upper
        assert many.width <= 1e-7
    alike = compose(*[Gaussian(2.0 * (1 + 1e-12 * at)).sampled(0.02) for at in range(64)])
    one = Gaussian(2.0).sampled(0.02) * 64
    for adjacency in (Adjacency.ADD_REMOVE, Adjacency.REPLACE):
        apart, together = (each.epsilon(delta=1e-6, adjacency=adjacency) for each in (alike, one))
        assert abs(apart.upper - together.upper) <= 1e-9 * together.upper


def test_promises_that_add_up_beyond_the_floats_prove_nothing() -> None:
    """Not an overflow: every question has an answer, and it says that nothing is known."""
    promises = compose(
        Concentrated(1.7e308), Concentrated(1.6e308, delta=1e-9), Concentrated(1e300)
    )
    assert promises.epsilon(delta=1e-5).upper == math.inf
    assert promises.delta(epsilon=1.0).upper == 1.0
    assert promises.renyi(2.0).upper == math.inf
    noisy = compose(promises, Gaussian(1.0)).epsilon(delta=1e-5)
    assert noisy.lower >= Gaussian(1.0).epsilon(delta=1e-5).lower - 1e-9
    assert noisy.upper == math.inf
