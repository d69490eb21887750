"""Renyi divergences next to order 1, where log M is tiny: no digit of it may be lost unseen."""

from __future__ import annotations

from random import Random

import pytest
from flint import arb, ctx

from dpcompose import Adjacency, BlackBox, RandomizedResponse
from dpcompose.mechanisms import DominatingPair


def divergence(upper: list[arb], lower: list[arb], order: float) -> arb:
    """D_order(upper || lower)."""
    alpha = arb(order)
    total = sum((p**alpha * q ** (1 - alpha) for p, q in zip(upper, lower, strict=True)), arb(0))
    return total.log() / (alpha - 1)


def response(epsilon: float) -> list[arb]:
    likely = arb(epsilon).exp() / (1 + arb(epsilon).exp())
    return [likely, 1 - likely]


@pytest.mark.parametrize("seed", range(60))
def test_two_answers(seed: int) -> None:
    rng = Random(seed)
    epsilon, order, rate = (
        10 ** rng.uniform(-4, 1),
        1 + 10 ** rng.uniform(-4, 1.5),
        10 ** rng.uniform(-5, -0.1),
    )
    with ctx.workprec(400):
        upper = response(epsilon)
        truth = divergence(upper, upper[::-1], order)
        mixed = [
            (1 - arb(rate)) * q + arb(rate) * p for p, q in zip(upper, upper[::-1], strict=True)
        ]
        sampled = divergence(mixed, upper[::-1], order).max(divergence(upper[::-1], mixed, order))
        for mechanism in (BlackBox(epsilon), RandomizedResponse(epsilon)):
            found = mechanism.renyi(order)
            assert truth <= found.upper <= truth * (1 + 1e-11)
            assert found.lower <= truth
        assert BlackBox(epsilon).sampled(rate).renyi(order).upper >= sampled


@pytest.mark.parametrize("seed", range(40))
def test_atoms_with_nearly_equal_masses(seed: int) -> None:
    """Masses are multiples of 2^-52, so that both sums are 1."""
    rng = Random(seed)
    first = rng.randint(1 << 49, 1 << 51)
    moved = min(first + rng.randint(1, 1 << rng.randint(1, 48)), (1 << 52) - 1)
    upper, lower = ([part / 2**52, 1 - part / 2**52] for part in (first, moved))
    order = 1 + 10 ** rng.uniform(-4, 1.5)
    pair = DominatingPair.atoms(upper=upper, lower=lower, adjacency=Adjacency.ADD_REMOVE)
    with ctx.workprec(400):
        first, second = ([arb(mass) for mass in side] for side in (upper, lower))
        truth = divergence(first, second, order).max(divergence(second, first, order))
        found = pair.renyi(order)
        assert found.lower <= truth <= found.upper
