"""Renyi orders so large that a rounding error of one loss changes the moment by more than its value
give no information.
"""

import itertools
import math

import pytest
from mpmath import exp, mp, mpf

from dpcompose import Adjacency, compose
from dpcompose.mechanisms import DominatingPair

ONE = ([1.0, 1.4211356059221848e-199], [1.6076557056520227e-10, 0.9999999998392344])
OTHER = ([1.0, 2.4261102161414428e-24], [1.0, 4.3716522151104714e-39])


def _delta(rate: float, epsilon: float) -> mpf:
    """Of two samples of twice the one and once the other, in 400 digits; every record of it has mass 1."""
    mp.dps = 400
    sides = [
        [[mpf(mass) / sum(map(mpf, side)) for mass in side] for side in pair]
        for pair in (ONE, ONE, OTHER)
    ]
    rows = [(mpf(1), mpf(1))]
    for upper, lower in sides:
        rows = [(p * x, q * y) for p, q in rows for x, y in zip(upper, lower, strict=True)]
    mixed = [((1 - mpf(rate)) * q + mpf(rate) * p, q) for p, q in rows]
    a = exp(mpf(epsilon))
    return sum(
        (max(p * x - a * q * y, mpf(0)) for (p, q), (x, y) in itertools.product(mixed, mixed)),
        mpf(0),
    )


@pytest.mark.parametrize("rate", [2.4574366683725784e-163, 1e-200, 1e-100])
@pytest.mark.parametrize("delta", [1e-300, 1e-270])
def test_no_order_however_large_says_less_than_the_truth(rate: float, delta: float) -> None:
    one, other = (
        DominatingPair.atoms(upper=upper, lower=lower, adjacency=Adjacency.ADD_REMOVE)
        for upper, lower in (ONE, OTHER)
    )
    answer = (compose(one * 2, other).sampled(rate) * 2).epsilon(delta=delta)
    assert math.isfinite(answer.upper)
    assert _delta(rate, answer.upper) <= delta
