"""Sums of discrete Gaussian noises: the Renyi divergences of exact convolutions are below the
bound.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dpcompose import Adjacency
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import distributed_discrete_gaussian

PLACES = np.arange(-400, 401)


def noise(sigma: float, clients: int) -> Any:
    """The law of the sum on the integers from -400 to 400."""
    one = np.exp(-(PLACES**2) / (2 * sigma**2))
    one, total = one / one.sum(), np.array([1.0])
    for _ in range(clients):
        total = np.convolve(total, one)
    middle = len(total) // 2
    return total[middle - 400 : middle + 401]


@pytest.mark.parametrize("sigma", [0.45, 0.6, 1.0])
@pytest.mark.parametrize("clients", [1, 2, 5])
def test_divergences_are_below_the_bound(sigma: float, clients: int) -> None:
    law, closest = noise(sigma, clients), 0.0
    for shift in (1, 2):
        rho = distributed_discrete_gaussian(
            sigma, clients=clients, norm=float(shift), dimension=1
        ).stated.rho
        first, second = law[300 + shift : 501 + shift], law[300:501]
        seen = (first > 1e-250) & (second > 1e-250)
        for order in (1.001, 1.5, 2.0, 5.0):
            log = order * np.log(first[seen]) + (1 - order) * np.log(second[seen])
            divergence = float(np.log(np.sum(np.exp(log)))) / (order - 1)
            assert divergence <= rho * order * (1 + 1e-9) + 1e-9
            closest = max(closest, divergence / (rho * order))
    assert closest > 0.5 or sigma < 0.5


def test_much_noise_is_that_of_one_gaussian() -> None:
    one = distributed_discrete_gaussian(3.0, clients=1000, norm=30.0, dimension=10**6)
    assert one.stated.rho == pytest.approx(30.0**2 / (2 * 1000 * 9.0), rel=1e-9)
    scaled = distributed_discrete_gaussian(
        0.3, clients=1000, norm=3.0, dimension=10**6, granularity=0.1
    )
    assert scaled.stated.rho == pytest.approx(one.stated.rho, rel=1e-12)
    assert 0 < one.epsilon(delta=1e-6).upper < 2
    more = distributed_discrete_gaussian(0.7, clients=10**8, norm=3.0, dimension=10)
    fewer = distributed_discrete_gaussian(0.7, clients=10**4, norm=3.0, dimension=10)
    assert more.stated.rho > 0 and fewer.stated.rho > 0


def test_bad_input() -> None:
    good: dict[str, Any] = {"clients": 10, "norm": 1.0, "dimension": 3}
    for name, value in (
        ("clients", 0),
        ("norm", -1.0),
        ("dimension", 0),
        ("granularity", 0.0),
        ("clients", 10**10),
    ):
        with pytest.raises(DomainError, match=name):
            distributed_discrete_gaussian(1.0, **{**good, name: value})
    with pytest.raises(DomainError, match="quarter"):
        distributed_discrete_gaussian(0.1, **good)
    with pytest.raises(UnsupportedError, match="more noise"):
        distributed_discrete_gaussian(0.26, **good)
    assert (
        distributed_discrete_gaussian(1.0, holds_under=Adjacency.ZERO_OUT, **good).holds_under
        is Adjacency.ZERO_OUT
    )
