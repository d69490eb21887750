"""How fast the transform of a discrete Gaussian loss falls along the half circle."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest
from flint import acb, arb, ctx

from dpcompose import DiscreteGaussian
from dpcompose.loss.discrete_noise import DiscreteGaussianSum


def modulus(sigma: float, shift: int, order: float, u: float) -> float:
    """log |M(order + iu) / M(order)| of one copy, rounded down, by the dual sum in balls."""
    with ctx.workprec(200):
        rate = 2 * (arb.pi() * arb(sigma)) ** 2
        place = arb(u) * shift / (2 * arb.pi() * arb(sigma) ** 2)
        turn = arb(order) * shift

        def total(offset: arb) -> acb:
            terms = range(-12, 13)
            return sum(
                (
                    (-rate * (m + offset) ** 2).exp() * acb(0, 2 * arb.pi() * m * turn).exp()
                    for m in terms
                ),
                acb(0),
            )

        return float((abs(total(place)) / abs(total(arb(0)))).log().lower())


@pytest.mark.parametrize("seed", range(30))
def test_every_block_is_bounded(seed: int) -> None:
    rng = Random(f"fall {seed}")
    sigma, shift, order = (
        10 ** rng.uniform(-0.09, 1.5),
        rng.choice([1, 2, 5, 30]),
        10 ** rng.uniform(-1, 3),
    )
    column = [np.array([[float(each)]]) for each in (sigma, shift, 1)]
    transform = DiscreteGaussianSum(*column)
    end = math.pi * sigma**2 / shift
    edges = np.append(end * np.sort([rng.random() ** 3 for _ in range(6)]), end)
    bounds = transform.log_envelope(order, edges)
    assert bounds[-1] == 0
    for at, bound in enumerate(bounds[:-1].tolist()):
        for u in (edges[at], edges[at] + rng.random() * (edges[at + 1] - edges[at]), edges[at + 1]):
            assert modulus(sigma, shift, order, float(u)) <= bound, (sigma, shift, order, u)


def test_the_cost_does_not_grow_with_noise_or_copies() -> None:
    """The circle of a wide one has millions of nodes, of which a dozen matter."""
    few = (DiscreteGaussian(10.0) * 10).epsilon(delta=1e-6)
    for sigma, times in ((1000.0, 1000), (5000.0, 10**5), (20.0, 10**9), (1e5, 10**9)):
        found = (DiscreteGaussian(sigma) * times).epsilon(delta=1e-10)
        nodes = int(found.certificate.method.split()[1])
        assert nodes < 40 and found.width <= 1e-9 * found.upper
    assert int(few.certificate.method.split()[1]) < 40
