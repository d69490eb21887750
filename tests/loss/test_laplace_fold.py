"""Copies of one Laplace loss as a spline: every bound against residues in ball arithmetic."""

from __future__ import annotations

import math
import random

import pytest
from flint import arb

from dpcompose.loss.laplace import LaplaceFoldLoss, LaplaceLoss
from dpcompose.loss.product import Product
from oracles import residues as truth


def draw(rng: random.Random, most: int) -> tuple[float, int]:
    """An epsilon and a number of copies: small, and as large as a single loss may be."""
    times = rng.randint(2, most)
    if rng.random() < 0.5:
        return math.exp(rng.uniform(math.log(0.02), math.log(3))) / math.sqrt(times), times
    return math.exp(rng.uniform(math.log(1e-6), math.log(rng.choice([8.0, 30.0])))), times


def place(rng: random.Random, epsilon: float, times: int) -> float:
    """Anywhere: lattice points, next to the largest loss, near the mean, below 0, 0."""
    most = times * epsilon
    mean = times * (epsilon + math.expm1(-epsilon))
    return rng.choice(
        [
            0.0,
            rng.uniform(-most, most),
            (times - 2 * rng.randint(0, times // 2)) * epsilon,
            most * (1 - 10 ** rng.uniform(-15, -1)),
            min(mean + rng.uniform(-3, 8) * math.sqrt(times) * min(epsilon, 2.0), 0.999 * most),
        ]
    )


@pytest.mark.slow
@pytest.mark.parametrize("block", range(8))
def test_profile_and_inverse_enclose_the_truth(block: int) -> None:
    rng = random.Random(block)
    for _ in range(20):
        epsilon, times = draw(rng, 14)
        loss, parts = LaplaceFoldLoss(epsilon, times), [(truth.Laplace(epsilon), times)]
        at = place(rng, epsilon, times)
        bound = loss.profile(at)
        true = truth.delta(at, parts)
        assert not (true < arb(bound.lower) or true > arb(bound.upper)), (epsilon, times, at)
        wanted = rng.choice(
            [10 ** rng.uniform(-300, 0), 10 ** rng.uniform(-12, -0.1), bound.upper, bound.lower]
        )
        if not 0 < wanted < 1:
            continue
        root = loss.inverse(wanted)
        assert not truth.delta(root.upper, parts) > arb(wanted), (epsilon, times, wanted)
        assert root.lower == 0 or not truth.delta(root.lower, parts) < arb(wanted), (
            epsilon,
            times,
            wanted,
        )


@pytest.mark.parametrize(
    ("times", "scale"), [(2, 3), (10, 3), (30, 10), (60, 10), (100, 10), (100, 3), (250, 40)]
)
@pytest.mark.parametrize("wanted", [1e-3, 1e-6, 1e-20])
def test_the_inverse_is_narrow(times: int, scale: float, wanted: float) -> None:
    bound = LaplaceFoldLoss(1 / scale, times).inverse(wanted)
    assert bound.certificate.method.startswith("exponential spline")
    assert bound.width <= 1e-11 * bound.upper
    if times <= 60:
        parts = [(truth.Laplace(1 / scale), times)]
        assert truth.delta(bound.upper, parts) <= arb(wanted) <= truth.delta(bound.lower, parts)


@pytest.mark.parametrize(("times", "scale"), [(400, 10), (700, 30), (1000, 20), (1000, 60)])
def test_the_spline_meets_the_contour(times: int, scale: float) -> None:
    loss = LaplaceFoldLoss(1 / scale, times)
    others = Product(((LaplaceLoss(1 / scale), times), (LaplaceLoss(1e-9 / scale), 1)))
    for wanted in (1e-2, 1e-6, 1e-30):
        spline, contour = loss.inverse(wanted), others.epsilon(wanted, tolerance=1e-9)
        assert spline.width <= 1e-10 * spline.upper
        assert spline.lower <= contour.upper
        # One more loss of at most 1e-9 / scale moves the root by no more than that.
        assert contour.lower - 1e-9 / scale <= spline.upper


def test_what_the_spline_cannot_answer_the_contour_does() -> None:
    assert LaplaceFoldLoss(1 / 3, 10).inverse(1e-300).upper <= 10 / 3 * (1 + 1e-14)
    assert LaplaceFoldLoss(20.0, 24).profile(1.0).upper <= 1.0
    assert LaplaceFoldLoss(0.1, 1000).inverse(0.999999).lower >= 0.0
    assert LaplaceFoldLoss(0.1, 10).inverse(0.0).upper >= 1.0
    assert LaplaceFoldLoss(0.1, 10).inverse(1.0).upper == 0.0
    assert LaplaceFoldLoss(0.1, 10).profile(2.0).upper == 0.0
