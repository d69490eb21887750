"""A mass that underflows is no infinite loss, and ln(1 - q + q e^l) keeps its digits at every rate and every loss."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.mechanisms import DominatingPair
from dpcompose.numerics.elementary import U, log_mixed
from oracles import atoms
from oracles.ball import ball

REPLACE = {"adjacency": Adjacency.REPLACE}


def encloses(found: Bound, mass: Callable[[float], arb], delta: float) -> bool:
    """Whether the two ends are on the two sides of delta."""
    with ctx.workprec(4000):
        return bool(mass(found.lower) >= delta >= mass(found.upper))


def largest_loss(epsilon: float, mass: Callable[[], arb], delta: float) -> arb:
    """Where mass (1 - e^(x - epsilon)) is delta: nothing but the largest loss, of that mass, is above x."""
    with ctx.workprec(4000):
        return ball(epsilon) + (1 - ball(delta) / mass()).log()


@pytest.mark.parametrize("proof", [False, True])
def test_a_finite_total_is_finite(proof: bool) -> None:
    """Many answers among three; two promises; a group of two; sampled noise far away: beyond e^-745 under Q."""
    told = RandomizedResponse(20.0, categories=3) * 38
    rows = [
        (told, {}, 760.0, lambda: (ball(20).exp() / (ball(20).exp() + 2)) ** 38),
        (compose(BlackBox(400.0), BlackBox(401.0)), {}, 801.0, lambda: arb(1)),
        (BlackBox(400.0), REPLACE, 800.0, lambda: arb(1)),
        (BlackBox(1e5), REPLACE, 2e5, lambda: arb(1)),
        (BlackBox(5e4) * 2, {}, 1e5, lambda: arb(1)),
    ]
    for composition, options, largest, mass in rows:
        found = composition.epsilon(delta=1e-6, proof=proof, **options)
        truth = largest_loss(largest, mass, 1e-6)
        assert truth >= found.lower and truth <= found.upper, composition
        assert found.width <= 1e-9 * found.upper
        assert composition.delta(epsilon=largest * (1 + 1e-9), proof=proof, **options).upper == 0.0


@pytest.mark.parametrize("proof", [False, True])
def test_nothing_is_lost_beyond_the_largest_loss(proof: bool) -> None:
    sampled = (BlackBox(1.0) * 1000).sampled(0.01)
    assert sampled.delta(epsilon=1001.0, proof=proof).upper == 0.0
    half = BlackBox(5e4).sampled(0.5).epsilon(delta=1e-6, proof=proof)
    truth = largest_loss(5e4, lambda: arb(1), 2e-6) - arb(2).log()
    assert half.lower - 1e-5 <= truth <= half.upper + 1e-5


def test_lattices_far_beyond_the_range_of_floats() -> None:
    scale, shift, times = 0.0545, 7, 6
    rate = 1 / arb(scale)

    def pair() -> atoms.Points:
        inside, end = (rate / 2).tanh(), 1 / (1 + (-rate).exp())
        middle = [inside * (-rate * x).exp() for x in range(1, shift)]
        masses = [end, *middle, end * (-rate * shift).exp()]
        return list(zip(masses, reversed(masses), strict=True))

    found = (DiscreteLaplace(scale, shift=shift) * times).epsilon(delta=1e-6)
    assert found.width < 1e-8
    assert encloses(found, lambda x: atoms.delta(x, [(pair, times)]), 1e-6)


def test_far_shifts_on_a_sample() -> None:
    """Between two centers 40 deviations apart, where either mass underflows, is what decides."""

    def law() -> atoms.Points:
        masses = [(-(ball(x) ** 2) / 2).exp() for x in range(-90, 91)]
        whole = sum(masses, arb(0))
        other = [(-((ball(x) - 40) ** 2) / 2).exp() for x in range(-90, 91)]
        return [(p / whole, q / whole) for p, q in zip(masses, other, strict=True)]

    found = DiscreteGaussian(1.0, shift=40).sampled(0.5).epsilon(delta=1e-6)
    assert encloses(found, lambda x: atoms.delta(x, [(atoms.remove(law, 0.5), 1)]), 1e-6)
    assert found.width < 1e-6


def test_what_underflows_on_both_sides_raises_no_lower_end() -> None:
    """delta^2 below the floats: at most the upper end knows of it."""
    found = (BlackBox(1.0, delta=1e-200).sampled(0.5) * 2).delta(epsilon=math.inf)
    assert found.lower <= 1e-200 <= found.upper <= 1.1e-200
    tiny = BlackBox(800.0).sampled(1e-310)
    assert tiny.delta(epsilon=50.0).lower <= 1e-310 <= tiny.delta(epsilon=50.0).upper < 1e-290


@pytest.mark.parametrize("seed", range(6))
def test_asymmetric_atoms_where_nearly_everybody_is_sampled(seed: int) -> None:
    """A mass far smaller under P than under Q is in the mixture what the rate leaves out."""
    rng = Random(f"asymmetric {seed}")
    for _ in range(10):
        rare, rate = 2.0 ** -rng.randint(10, 50), min(1 - 10 ** -rng.uniform(1, 16), 1 - U)
        rows = [[1 - rare, rare], rng.choice([[0.5, 0.5], [0.75, 0.25], [rare, 1 - rare]])]
        times, delta = rng.choice([1, 2, 3, 70]), 10 ** -rng.uniform(0.3, 40)
        mechanism = DominatingPair.atoms(
            upper=rows[0], lower=rows[1], adjacency=Adjacency.ADD_REMOVE
        ).sampled(rate)
        found = (mechanism * times).epsilon(delta=delta)

        def pair(rows: list[list[float]] = rows) -> atoms.Points:
            return [(arb(p), arb(q)) for p, q in zip(*rows, strict=True)]

        both = atoms.remove(pair, rate), atoms.add(atoms.swapped(pair), rate)
        with ctx.workprec(300):
            low, high = (
                [atoms.delta(end, [(one, times)]) for one in both]
                for end in (found.lower, found.upper)
            )
            assert found.lower == 0 or any(not value < delta for value in low), (
                rows,
                rate,
                times,
                delta,
            )
            assert all(not value > delta for value in high), (rows, rate, times, delta)


@pytest.mark.parametrize("seed", range(10))
def test_a_mixture_s_logarithm_keeps_its_digits(seed: int) -> None:
    rng = Random(f"mixed {seed}")
    with ctx.workprec(3000):
        for _ in range(100):
            small = 10 ** -rng.uniform(0.1, rng.choice([3, 16, 300]))
            rate = rng.choice([small, max(1 - small, 0.5) if small > 1e-16 else 1 - U])
            edge = -math.log(small)
            loss = rng.choice([-1, 1]) * rng.choice(
                [edge, edge + rng.gauss(0, 1), 30.0, 700.0, 10 ** rng.uniform(-9, 5)]
            )
            found = float(log_mixed(np.array([loss]), rate)[0])
            truth = (1 - arb(rate) + arb(rate) * arb(loss).exp()).log()
            allowed = 24 * abs(truth) + (16 * max(loss, 0.0) if loss > 700 else 0.0)
            assert abs(arb(found) - truth) <= allowed * U + 1e-320, (loss, rate)


def test_rates_next_to_0_know_losses_beyond_30() -> None:
    """The logarithm of the rate and the loss cancelled there."""
    rate, loss = 1e-20, 31.0
    found = float(log_mixed(np.array([loss]), rate)[0])
    assert found == pytest.approx(rate * math.expm1(loss), rel=1e-6)
    assert Laplace(1 / loss).sampled(rate).pure() == pytest.approx(found, rel=1e-6)
