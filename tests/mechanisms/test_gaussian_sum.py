"""Many different Gaussians are added in one pass: the sum is as accurate as claimed, and no result
changes.
"""

from __future__ import annotations

import math
import random
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from dpcompose import (
    Adjacency,
    Bound,
    Composition,
    Gaussian,
    GaussianDP,
    Laplace,
    Orientation,
    compose,
)
from dpcompose.composition import Composable
from dpcompose.composition.losses import MANY, Pairs, gathered
from dpcompose.composition.question import Asking, ask
from dpcompose.guarantee import gaussian
from dpcompose.loss.gaussian import GaussianLoss
from dpcompose.values.bound import UNIT_ROUNDOFF

SEED = 20
ADJACENCIES = list(Adjacency)


def drawn(number: int, rng: random.Random) -> list[Gaussian]:
    """Mechanisms of all sizes, with one sensitivity or two."""
    found: list[Gaussian] = []
    for _ in range(number):
        sensitivity = 10 ** rng.uniform(-2, 2)
        better = rng.choice([None, sensitivity * rng.uniform(0.5, 2.0)])
        found.append(
            Gaussian(10 ** rng.uniform(-1, 5), sensitivity=sensitivity, replace_sensitivity=better)
        )
    return found


def counted(composition: Composition) -> list[tuple[Gaussian, int]]:
    return [(part, times) for part, times in composition.parts if isinstance(part, Gaussian)]


def square(one: Gaussian, adjacency: Adjacency) -> Fraction:
    """mu^2 of one mechanism, exactly."""
    distance = Fraction(one.sensitivity)
    if adjacency is Adjacency.REPLACE:
        distance = (
            2 * distance if one.replace_sensitivity is None else Fraction(one.replace_sensitivity)
        )
    return (distance / Fraction(one.sigma)) ** 2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("number", [MANY, 3 * MANY, 1000])
def test_the_squares_add_up_to_the_digits_that_are_claimed(
    number: int, adjacency: Adjacency
) -> None:
    rng = random.Random(SEED + number)
    composition = compose(
        *(one * rng.choice([1, 2, 7, 10**6, 10**15]) for one in drawn(number, rng))
    )
    losses = gathered(composition.parts, adjacency, summed=True)
    (pair, times), *others = losses.pairs
    assert (
        isinstance(pair.remove, GaussianLoss)
        and pair.add is pair.remove
        and (times, others, losses.promises) == (1, [], ())
    )
    exact = sum(
        (square(one, adjacency) * count for one, count in counted(composition)), Fraction(0)
    )
    doubt = Fraction(pair.remove.ulps) * Fraction(UNIT_ROUNDOFF)
    mu = Fraction(pair.remove.mu)
    assert (mu * (1 - doubt)) ** 2 <= exact <= (mu * (1 + doubt)) ** 2


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize("orientation", list(Orientation))
def test_one_by_one_gives_the_same_answer(adjacency: Adjacency, orientation: Orientation) -> None:
    composition = compose(*(Gaussian(10 + index / 10) for index in range(MANY)))
    together = composition.epsilon(delta=1e-6, adjacency=adjacency, orientation=orientation)
    total = math.fsum(float(square(one, adjacency)) * times for one, times in counted(composition))
    assert (
        together.contains(gaussian.gaussian_epsilon(1e-6, mu=math.sqrt(total)).upper)
        and together.width < 1e-12
    )
    apart = [
        compose(*(one for one, _ in counted(composition)[:number])) for number in (1, MANY - 1)
    ]
    assert all(
        part.epsilon(delta=1e-6, adjacency=adjacency).upper < together.upper for part in apart
    )


def other_parts() -> list[Composable]:
    return [
        Laplace(20.0),
        Laplace(30.0) * 3,
        GaussianDP(0.02),
        GaussianDP(0.03) * 2,
        Laplace(40.0).sampled(0.1),
    ]


@pytest.mark.parametrize("orientation", list(Orientation))
def test_among_others(orientation: Orientation) -> None:
    """With other parts the interval still meets that of equal noise, which is asked part by part."""
    spread = compose(
        *(Gaussian(90 + index, sensitivity=1 + index / 90) for index in range(MANY)), *other_parts()
    )
    equal = compose(Gaussian(90.0) * MANY, *other_parts())
    one, other = (asked.epsilon(delta=1e-6, orientation=orientation) for asked in (spread, equal))
    assert max(one.lower, other.lower) <= min(one.upper, other.upper) * (1 + 1e-13)


def test_no_order_matters() -> None:
    rng = random.Random(SEED)
    parts: list[Composable] = [
        *(Gaussian(rng.uniform(20, 200)) for _ in range(2 * MANY)),
        *other_parts(),
    ]
    answers: set[Bound] = set()
    for _ in range(5):
        rng.shuffle(parts)
        answers.add(compose(*parts).epsilon(delta=1e-6))
        answers.add((compose(*parts[:9]) + compose(*parts[9:])).epsilon(delta=1e-6))
    assert len(answers) == 1 and 0.1 < answers.pop().lower < 10


def test_a_proof_takes_each_by_itself() -> None:
    composition = compose(*(Gaussian(50 + index / 10) for index in range(MANY)))
    proved = ask(composition.parts, Asking(proof=True))
    floats = ask(composition.parts, Asking())
    assert len(proved.dominating[0].group) == MANY and len(floats.dominating[0].group) == 1


def test_a_subclass_is_asked_for_its_own_losses() -> None:
    class Leaky(Gaussian):
        def pairs(self, adjacency: Adjacency) -> Pairs | None:
            return replace(Gaussian(self.sigma), sensitivity=2 * self.sensitivity).pairs(adjacency)

    leaky = compose(*(Leaky(50.0 + index) for index in range(MANY)))
    twice = compose(*(Gaussian(50.0 + index, sensitivity=2.0) for index in range(MANY)))
    one, other = leaky.epsilon(delta=1e-6), twice.epsilon(delta=1e-6)
    assert one.lower <= other.upper and other.lower <= one.upper


@pytest.mark.parametrize("far", [0.5, 1.0, 1.4, 2.0])
@pytest.mark.parametrize("rate", [0.1, 0.999999])
def test_a_replaced_record_of_a_sample_moves_as_far_as_is_stated(far: float, rate: float) -> None:
    """Vectors a and b of norm at most 1 and `far` apart; no sample costs more than all records do."""
    noise = Gaussian(1.3, replace_sensitivity=far)
    whole, found = (
        each.delta(epsilon=0.2, adjacency=Adjacency.REPLACE)
        for each in (noise, noise.sampled(rate))
    )
    assert found.lower <= whole.upper and found.upper <= whole.upper * (1 + 1e-12)

    def beyond(mean: float, point: float) -> float:
        return math.erfc((point - mean) / 1.3 / math.sqrt(2)) / 2

    pairs = [(shift, shift - far) for shift in (far / 2, min(far, 1.0), 1.0) if shift - far >= -1]
    reached = max(
        rate * (beyond(a, x) - math.exp(0.2) * beyond(b, x))
        - (1 - rate) * math.expm1(0.2) * beyond(0, x)
        for a, b in pairs
        for x in np.linspace(-6, 6, 2401).tolist()
    )
    assert reached <= found.upper
    if far == 2.0:
        assert found.width < 1e-12 and reached == pytest.approx(found.lower, rel=1e-4)
    group = noise.sampled(rate).group(2).delta(epsilon=0.2, adjacency=Adjacency.REPLACE)
    assert group.lower <= noise.group(2).delta(epsilon=0.2, adjacency=Adjacency.REPLACE).upper
