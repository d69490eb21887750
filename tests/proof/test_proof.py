"""The parts of the ball-arithmetic engine, each against a computation that does not share its
formulas.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb

from dpcompose.loss.atom_moments import (
    BoundedRangeMoments,
    DiscreteGaussianMoments,
    LaplaceMoments,
    TwoPointMoments,
)
from dpcompose.loss.laplace import LaplaceLoss
from dpcompose.loss.product import Product
from dpcompose.loss.sampled_gaussian import SampledGaussianMoments
from dpcompose.proof.ball import Ball, ball_field, crossing
from dpcompose.proof.finite_sums import Residues, expanded
from dpcompose.proof.line import LinePlan, TailBound, draw, plan
from dpcompose.proof.moments import Moments, NormalMoments, exponential_sums
from oracles.law import DiscreteGaussian
from oracles.normal import Direction, SampledGaussian

FIELD = ball_field()
EXACT = FIELD.exact
MIXTURES = [
    ((True, False), Direction.REMOVE),
    ((False, True), Direction.ADD),
    ((True, True), Direction.REPLACE),
]
FAMILIES: dict[str, Callable[[], Moments]] = {
    "normal": lambda: NormalMoments(FIELD, EXACT(0.3)),
    "laplace": lambda: LaplaceMoments(FIELD, EXACT(0.7)),
    "bounded range": lambda: BoundedRangeMoments(FIELD, EXACT(0.7)),
    "two points": lambda: TwoPointMoments(FIELD, EXACT(0.7), EXACT(0.01), 2),
    "discrete gaussian": lambda: DiscreteGaussianMoments(FIELD, EXACT(1.5), 2),
    "removed": lambda: SampledGaussianMoments(FIELD, EXACT(0.8), EXACT(0.05), True, False),
    "added": lambda: SampledGaussianMoments(FIELD, EXACT(0.8), EXACT(0.05), False, True),
    "replaced": lambda: SampledGaussianMoments(FIELD, EXACT(0.8), EXACT(0.05), True, True),
}


@pytest.mark.parametrize(("sides", "direction"), MIXTURES)
@pytest.mark.parametrize(
    ("noise", "rate", "order"), [(1.0, 0.01, 7.0), (0.5, 0.3, 2.5), (4.0, 0.001, 40.0)]
)
def test_sampled_moments_agree_with_the_oracle(
    sides: tuple[bool, bool],
    direction: Direction,
    noise: float,
    rate: float,
    order: float,
) -> None:
    with FIELD.precision(100):
        ours = SampledGaussianMoments(FIELD, EXACT(noise), EXACT(rate), *sides).line(
            order, EXACT(0.75), 20
        )
        theirs = SampledGaussian(rate, 1 / Fraction(noise), direction).moments(order, 0.75, 20)
    for one, other in zip(ours, theirs, strict=True):
        assert one.overlaps(other)
        assert one.rad() < ours[0].abs_upper() * arb(2) ** -85


@pytest.mark.parametrize("sigma", [0.3, 0.5, 7.0])
def test_discrete_gaussian_moments_agree_with_the_oracle(sigma: float) -> None:
    with FIELD.precision(100):
        ours = DiscreteGaussianMoments(FIELD, EXACT(sigma), 2).line(1.25, EXACT(0.4), 12)
        theirs = DiscreteGaussian(sigma, 2).moments(1.25, 0.4, 12)
    for one, other in zip(ours, theirs, strict=True):
        assert one.overlaps(other) and one.rad() < ours[0].abs_upper() * arb(2) ** -85


@pytest.mark.parametrize("name", FAMILIES)
def test_what_is_said_of_the_decay_is_true_from_there_on(name: str) -> None:
    with FIELD.precision(90):
        moments, order = FAMILIES[name](), 3.25
        bound = moments.decay(order)
        frequencies = [EXACT(0.3) * EXACT(1.37) ** n for n in range(24)]
        whole, *values = moments.at(order, [EXACT(0), *frequencies])
        sizes = [abs(value) / whole.real for value in values]
        for index in range(0, 24, 4):
            said = bound(frequencies[index])
            assert all(size <= said * (1 + arb(2) ** -60) for size in sizes[index:])


@pytest.mark.parametrize("name", ["two points", "discrete gaussian"])
def test_half_a_circle_is_bounded_too(name: str) -> None:
    with FIELD.precision(90):
        moments = FAMILIES[name]()
        assert moments.grid is not None
        half, bound = FIELD.pi / moments.grid.spacing, moments.half_circle(1.5)
        frequencies = [half * n / 20 for n in range(1, 21)]
        whole, *values = moments.at(1.5, [EXACT(0), *frequencies])
        for index, frequency in enumerate(frequencies):
            said = bound(frequency) * (1 + arb(2) ** -60)
            assert all(abs(value) / whole.real <= said for value in values[index:])


@pytest.mark.parametrize("name", FAMILIES)
def test_the_rest_of_a_line_is_not_more_than_its_bound(name: str) -> None:
    times, step = 60, 0.25
    with FIELD.precision(120):
        moments = FAMILIES[name]()
        order, edge = 2.5, EXACT(2.0)
        rest = TailBound(FIELD, [(moments, times)], order, times * 0.1, 8.0)
        bound = rest.beyond(edge, EXACT(step), EXACT(0))
        frequencies = [edge + EXACT(step) * j for j in range(300)]
        whole, *values = moments.at(order, [EXACT(0), *frequencies])
        terms = [
            (abs(value) / whole.real) ** times / u**2
            for value, u in zip(values, frequencies, strict=True)
        ]
        assert step * sum(terms, EXACT(0)) <= bound


def test_residues_and_the_smoothed_contour_agree() -> None:
    loss, times, x = LaplaceLoss(0.2), 30, 1.5
    transform = Product(((loss, times),)).transform
    with FIELD.precision(160):
        factors = [(LaplaceMoments(FIELD, EXACT(0.2)), times)]
        exact = Residues(FIELD, expanded(FIELD, factors)).value(EXACT(x))
        planned = plan(transform, x, tolerance=1e-4, most_nodes=3000, falling=False)
        assert planned is not None and planned.smoothing > 0
        found = draw(FIELD, factors, planned).enclosure(EXACT(x))
    assert found.lower < exact < found.upper and found.upper - found.lower < 2e-4 * exact


@pytest.mark.parametrize("share", [0.8, 1.0, 1.3])
def test_the_line_may_stand_anywhere(share: float) -> None:
    """Normal variables have a closed form; the smoothed line must hold it wherever it stands."""
    with FIELD.precision(140):
        factors = [(NormalMoments(FIELD, EXACT(0.5)), 1), (NormalMoments(FIELD, EXACT(0.25)), 2)]
        exact = NormalMoments(FIELD, EXACT(1)).profile(EXACT(1.5))
        for smoothing, last in ((0.0, 16.0), (0.05, 160.0)):
            line = LinePlan(
                order=1.75 * share,
                period=30.0,
                beyond=4.0,
                last=last,
                smoothing=smoothing,
                variance=1.0,
                error=1e-30,
                magnitude=8.0,
            )
            found = draw(FIELD, factors, line).enclosure(EXACT(1.5))
            assert found.lower <= exact <= found.upper
            assert found.upper - found.lower < (1e-15 if smoothing == 0 else 2e-2) * exact


def test_powers_of_a_rotation_stay_narrow() -> None:
    with FIELD.precision(100):
        turn = FIELD.disc(0, 0.7).exp()
        powers = FIELD.powers(FIELD.disc(1), turn, 20_000)
        assert powers[-1].rad() < arb(2) ** -60
        assert FIELD.power_sum(powers)(turn.conjugate()).real.contains(20_000)
        sums = exponential_sums(
            FIELD, [FIELD.disc(0), FIELD.disc(1)], [FIELD.disc(0, 0.3), FIELD.disc(0, -1)], 50
        )
        assert sums[37].overlaps(FIELD.disc(0, EXACT(0.3) * 37).exp() + FIELD.disc(1, -37).exp())


def test_floats_from_balls_are_rounded_outward() -> None:
    for value in (
        EXACT(1) / 3,
        -(EXACT(10) ** -400),
        EXACT(10) ** 400,
        EXACT(5e-324) / 3,
        EXACT(0.5),
    ):
        low, high = FIELD.down(value), FIELD.up(value)
        assert EXACT(low) <= value <= EXACT(high)
        assert high == math.inf or math.nextafter(low, math.inf) >= high - 2 * math.ulp(high)
    assert FIELD.down(arb.nan()) == -math.inf and FIELD.up(arb.nan()) == math.inf


@pytest.mark.parametrize("target", [1e-3, 1e-200, 0.75])
def test_a_crossing_is_proved_at_both_ends(target: float) -> None:
    def curve(x: float) -> tuple[Ball, Ball]:
        value = (-EXACT(x)).exp()
        return (value * (1 - 1e-13)).lower(), (value * (1 + 1e-13)).upper()

    found = crossing(curve, EXACT(target), guess=0.01, rate=3.0, low=0.0, high=math.inf)
    exact = -math.log(target)
    assert found.lower <= exact <= found.upper and found.upper - found.lower < 2e-12
    assert curve(found.lower)[0] >= target >= curve(found.upper)[1]
