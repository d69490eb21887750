"""A composition of a billion copies is as accurate as one of a thousand, at the same cost."""

from __future__ import annotations

import math

import pytest

from dpcompose import Composition, DiscreteGaussian, Gaussian, Laplace, compose

WIDEST = 1e-9


@pytest.mark.parametrize("times", [10**3, 10**6, 10**9])
@pytest.mark.parametrize(
    "kind", ["Laplace", "two Laplace", "sampled Gaussian", "discrete Gaussian", "three kinds"]
)
def test_copies_keep_their_digits(kind: str, times: int) -> None:
    root = math.sqrt(times)
    made: dict[str, Composition] = {
        "Laplace": Laplace(2 * root) * times,
        "two Laplace": compose(Laplace(2 * root) * times, Laplace(3 * root) * times),
        "sampled Gaussian": Gaussian(1.0).sampled(0.3 / root) * times,
        "discrete Gaussian": DiscreteGaussian(2 * root) * times,
        "three kinds": compose(
            DiscreteGaussian(4 * root) * times,
            Laplace(4 * root) * times,
            Gaussian(4 * root) * times,
        ),
    }
    found = made[kind].epsilon(delta=1e-8)
    assert found.lower > 0 and found.width <= WIDEST * found.upper
    method = found.certificate.method
    assert "smoothed" not in method and ("spline" in method or int(method.split()[1]) < 1000)
