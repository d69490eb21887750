"""The line at Re t = -1/2 against the lines to the right of 0, and the library against it."""

from __future__ import annotations

from random import Random

import pytest

from campaigns import rare
from oracles import contour, halfway
from oracles.ball import ratio
from oracles.contour import Parts
from oracles.law import Gaussian, Law, Terms
from oracles.normal import Direction, SampledGaussian
from oracles.residues import Laplace

GOLDENS = ((1.0, 1e-4, 10**5, 1e-15, 0.40942683639813), (2.0, 1e-5, 10**7, 1e-30, 0.18382356633282))


def orders(
    *rows: tuple[float, float, int], others: tuple[tuple[Law, int], ...] = ()
) -> tuple[Parts, Parts]:
    """Sampled Gaussians of (sigma, rate, steps) and symmetric losses, in both orders."""
    first, second = (
        [(SampledGaussian(rate, ratio(1, sigma), direction), steps) for sigma, rate, steps in rows]
        for direction in (Direction.REMOVE, Direction.ADD)
    )
    return (*first, *others), (*second, *others)


@pytest.mark.parametrize(("sigma", "rate", "steps", "delta", "epsilon"), GOLDENS)
def test_rare_sampling_has_the_values_that_a_split_of_the_loss_gives(
    sigma: float, rate: float, steps: int, delta: float, epsilon: float
) -> None:
    line = halfway.around(epsilon, *orders((sigma, rate, steps)), goal=delta)
    assert line.delta(epsilon - 1e-12) > delta > line.delta(epsilon + 1e-12)
    assert line.reverse(epsilon) < delta


@pytest.mark.parametrize("seed", range(4))
def test_both_orders_are_those_of_a_line_to_the_right(seed: int) -> None:
    rng = Random(f"halfway {seed}")
    steps = rng.randint(200, 2000)
    noise = (Terms(Laplace(ratio(1, 20))), 3) if seed % 2 else (Gaussian(ratio(1, 30)), 2)
    ours, theirs = orders((rng.uniform(0.8, 2), rng.uniform(0.02, 0.2), steps), others=(noise,))
    epsilon = rng.uniform(0.2, 3.0)
    line = halfway.around(epsilon, ours, theirs)
    for one, other in ((line.delta(epsilon), ours), (line.reverse(epsilon), theirs)):
        truth = contour.delta(epsilon, other)
        assert one.rel_accuracy_bits() >= 20
        assert one.overlaps(truth)


def test_a_line_that_ends_too_early_or_is_too_coarse_is_wide_not_wrong() -> None:
    ours, theirs = orders((1.0, 0.05, 500))
    truth = contour.delta(1.0, ours)
    for step, count in ((0.5, 8), (4.0, 200), (1.0, 30)):
        found = halfway.Line(ours, theirs, step, count, 120).delta(1.0)
        assert found.overlaps(truth)
        assert found.rel_accuracy_bits() < 20


def test_replaced_records_have_one_order() -> None:
    law = SampledGaussian(0.01, ratio(1, 1.5), Direction.REPLACE)
    line = halfway.around(0.5, [(law, 400)], [(law, 400)])
    assert line.delta(0.5).rel_accuracy_bits() >= 30
    assert line.delta(0.5).overlaps(line.reverse(0.5))
    assert line.delta(0.5).overlaps(contour.delta(0.5, [(law, 400)]))


def test_a_short_campaign_of_rare_samples() -> None:
    for number in (3, 11, 23, 24):
        counts = rare.examined(rare.drawn(number, 1))
        assert counts["proved"] == 1, rare.drawn(number, 1)


@pytest.mark.parametrize("shift", [1e-9, -1e-9])
def test_an_answer_that_is_moved_is_outside(shift: float) -> None:
    assert rare.examined(rare.drawn(24, 1), shift)["outside"] == 1
