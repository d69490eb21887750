"""rho is the supremum of D_a / a, from above, in both orders."""

from __future__ import annotations

import math
import random

import pytest
from flint import arb, ctx

from dpcompose import Adjacency, Laplace, RandomizedResponse
from dpcompose.adaptive import ConcentratedFilter
from dpcompose.composition import Composable
from dpcompose.mechanisms import DominatingPair
from oracles import atoms
from oracles.atoms import Pair
from oracles.renyi import largest_quotient

REACHED = 1e-6


def drawn(rng: random.Random) -> tuple[Composable, list[Pair]]:
    """A mechanism with finitely many answers, and its pairs in both orders."""
    epsilon, rate = (
        rng.choice([0.03, 0.2, 1.0, 4.0]) * rng.uniform(0.5, 2),
        rng.choice([0.01, 0.1, 0.5, 0.9]),
    )
    match rng.randrange(4):
        case 0:
            categories = rng.choice([2, 3, 10, 1000])
            pair = atoms.response(epsilon, categories)
            return RandomizedResponse(epsilon, categories=categories), [pair]
        case 1:
            pair = atoms.response(epsilon, 2)
            sampled = RandomizedResponse(epsilon).sampled(rate)
            return sampled, [atoms.remove(pair, rate), atoms.add(pair, rate)]
        case _:
            many = rng.choice([2, 3, 8])
            upper, lower = ([rng.randrange(1, 60) for _ in range(many)] for _ in range(2))
            first, second = ([*each, 1024 - sum(each)] for each in (upper, lower))
            pair = [(arb(a) / 1024, arb(b) / 1024) for a, b in zip(first, second, strict=True)]
            floats = [[each / 1024 for each in row] for row in (first, second)]
            mechanism = DominatingPair.atoms(
                upper=floats[0], lower=floats[1], adjacency=Adjacency.ADD_REMOVE
            )
            return mechanism, [lambda: pair, lambda: [(q, p) for p, q in pair]]


@pytest.mark.parametrize("seed", range(6))
def test_rho_is_just_above_the_supremum(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(10):
        mechanism, pairs = drawn(rng)
        found = mechanism.zcdp()
        assert found is not None
        truth = max(float(largest_quotient(pair)) for pair in pairs)
        assert truth * (1 - 1e-14) <= found.rho <= truth * (1 + REACHED), mechanism


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.25, 1.0, 2.0, 30.0, 1000.0])
def test_laplace_is_charged_its_mean_loss(epsilon: float) -> None:
    found = Laplace(1 / epsilon).zcdp()
    with ctx.workprec(200):
        exact = 1 / arb(1 / epsilon)
        truth = exact + (-exact).expm1()
        assert found is not None and arb(found.rho) >= truth
        assert float(arb(found.rho) - truth) <= 1e-9 * min(1.0, float(truth) * 100)


def test_a_divergence_of_laplace_is_never_above_rho_times_its_order() -> None:
    with ctx.workprec(300):
        for epsilon in (1e-3, 0.25, 1.0, 8.0):
            rho = arb(epsilon) + (-arb(epsilon)).expm1()
            for tilt in (1e-6, 1e-2, 0.5, 1.0, 7.0, 200.0):
                a, e = 1 + arb(tilt), arb(epsilon)
                moment = (a * ((a - 1) * e).exp() + (a - 1) * (-a * e).exp()) / (2 * a - 1)
                assert moment.log() / (a - 1) < a * rho


@pytest.mark.parametrize(
    "mechanism", [Laplace(0.5).sampled(0.1), Laplace(4.0), RandomizedResponse(0.5, categories=100)]
)
def test_no_order_has_a_larger_divergence(mechanism: Composable) -> None:
    (rho, _) = ConcentratedFilter(1.0, delta=0.0).price(mechanism).values()
    for tilt in (1e-6, 1e-3, 0.1, 1.0, 5.0, 16.0, 300.0):
        assert mechanism.renyi(1 + tilt).lower <= float(rho) * (1 + tilt)


def test_a_composition_pays_the_sum() -> None:
    one, two = Laplace(2.0).sampled(0.1), RandomizedResponse(0.5, categories=10)
    both, first, second = (
        (each * times).zcdp() for each, times in ((one + two, 3), (one, 3), (two, 3))
    )
    assert both and first and second
    assert math.isclose(both.rho, first.rho + second.rho, rel_tol=1e-12)
