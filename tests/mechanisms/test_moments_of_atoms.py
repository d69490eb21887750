"""Renyi divergences of mechanisms without infinite losses that are represented by atoms with one,
against high precision.
"""

from __future__ import annotations

import math
from typing import Any

import mpmath
import pytest

from dpcompose import Adjacency, BlackBox, Gaussian
from dpcompose.adaptive import RenyiFilter
from dpcompose.loss.batches import FixedSizeSampleLoss
from dpcompose.mechanisms import FixedSizeSample, PrivateSelection, Skellam

REPLACE = Adjacency.REPLACE


@pytest.mark.parametrize(
    ("noise", "rate", "exponent"),
    [(4, 0.1, 7), (1, 0.01, 3), (10, 0.01, 127), (4, 0.1, 1e-4)],
)
def test_a_batch_of_fixed_size(noise: float, rate: float, exponent: float) -> None:
    with mpmath.workdps(30):
        s, q, b = mpmath.mpf(noise) / 2, mpmath.mpf(rate), mpmath.mpf(exponent)

        def excess(x: mpmath.mpf) -> mpmath.mpf:
            r = 1 - q + q * mpmath.exp((2 * x - 1) / (2 * s * s))
            return mpmath.npdf(x, 0, s) * (r ** (b + 1) - 1) * (1 - r**-b)

        ends = mpmath.linspace(mpmath.mpf(1) / 2, exponent + 2 + 12 * s, 25)
        truth = mpmath.log1p(mpmath.quad(excess, ends))
        found = FixedSizeSampleLoss(float(noise), rate, rate).log_moment(float(exponent))
        assert truth <= found <= truth * (1 + 1e-4)


@pytest.mark.parametrize(
    ("variance", "shift", "order"),
    [(4, 1, 2.0), (10, 2, 16.0), (1, 1, 32.0), (100, 3, 1.5), (0.125, 1, 4.0)],
)
def test_skellam(variance: float, shift: int, order: float) -> None:
    with mpmath.workdps(30):
        v = mpmath.mpf(variance)
        masses = {x: mpmath.exp(-v) * mpmath.besseli(abs(x), v) for x in range(-220, 221)}
        total = mpmath.fsum(
            masses[x - shift] ** order * masses[x] ** (1 - order)
            for x in range(-200, 201)
            if masses[x] > 0
        )
        truth = mpmath.log(total) / (order - 1)
        found = Skellam(float(variance), shift=shift).renyi(order)
        assert found.lower <= truth <= found.upper <= truth * (1 + 1e-9)


@pytest.mark.parametrize(("tries", "shape"), [(1.5, math.inf), (6.0, 1.0)])
def test_the_best_run_by_its_likelihood_ratio(tries: float, shape: float) -> None:
    """Scores that rise with the likelihood ratio of Gaussian noise: the densities are p g'(F_P) and q g'(F_Q)."""
    mu, gamma = mpmath.mpf(1) / 2, 1 / mpmath.mpf(tries)

    def slope(x: mpmath.mpf) -> mpmath.mpf:
        return (
            tries * mpmath.exp(tries * (x - 1))
            if shape == math.inf
            else gamma / (1 - (1 - gamma) * x) ** 2
        )

    selection = PrivateSelection(Gaussian(2.0), tries=tries, shape=shape)
    for order in (3.0,):
        moments: list[Any] = []
        for one, other in ((mu, 0), (0, mu)):

            def power(
                x: mpmath.mpf, one: Any = one, other: Any = other, order: float = order
            ) -> mpmath.mpf:
                p, q = (mpmath.npdf(x, at) * slope(mpmath.ncdf(x, at)) for at in (one, other))
                return p**order * q ** (1 - order)

            nothing = mpmath.exp(-tries) if shape == math.inf else 0
            whole: Any = mpmath.quad(power, mpmath.linspace(-12, 16, 8))
            moments.append(nothing + whole)
        truth = mpmath.log(max(moments)) / (order - 1)
        assert truth <= selection.renyi(order).upper


def test_their_prices_in_one_order() -> None:
    eight = RenyiFilter(8.0, budget=10.0)
    drawn = FixedSizeSample(2.0, records=1000, batch=100)
    assert 1.37 < eight.price(drawn, adjacency=REPLACE)["renyi:8"] < 1.38
    assert (drawn * 5).renyi(8.0, adjacency=REPLACE).upper == pytest.approx(
        5 * drawn.renyi(8.0, adjacency=REPLACE).upper
    )
    assert 0.7369 < eight.price(Skellam(4.0))["renyi:8"] < 0.737
    selected = PrivateSelection(Gaussian(4.0), tries=5.0, shape=1.0)
    assert 0.25 < eight.price(selected)["renyi:8"] < 0.798
    assert math.isinf((selected + BlackBox(0.1, delta=1e-9)).renyi(8.0).upper)
