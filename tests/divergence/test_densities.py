"""Densities: estimates by quadrature, against closed forms; they are never bounds."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
from scipy.stats import norm

from dpcompose.divergence import (
    Density,
    Estimate,
    approximate_max,
    hockey_stick,
    kl,
    max_divergence,
    renyi,
    total_variation,
)
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.values.bound import Bound


def gaussian(mean: float = 0.0, sigma: float = 1.0) -> Density:
    constant = math.log(sigma) + math.log(2 * math.pi) / 2
    return Density(lambda x: -(((x - mean) / sigma) ** 2) / 2 - constant, breakpoints=(mean,))


def laplace(mean: float = 0.0, scale: float = 1.0) -> Density:
    return Density(lambda x: -abs(x - mean) / scale - math.log(2 * scale), breakpoints=(mean,))


def cauchy() -> Density:
    return Density(lambda x: -math.log(math.pi) - math.log1p(x * x))


def uniform(lower: float, upper: float) -> Density:
    return Density(lambda _: -math.log(upper - lower), support=(lower, upper))


def gaussian_delta(mu: float, epsilon: float) -> float:
    return float(
        norm.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * norm.cdf(-mu / 2 - epsilon / mu)
    )


def test_gaussians() -> None:
    y, z = gaussian(1.0), gaussian()
    assert kl(y, z).value == pytest.approx(0.5, rel=1e-10)
    assert total_variation(y, z).value == pytest.approx(0.382924922548026207275, rel=1e-9)
    assert hockey_stick(y, z, epsilon=1).value == pytest.approx(0.126936737506643945801, rel=1e-9)
    assert hockey_stick(y, z, ratio=math.e).value == pytest.approx(
        0.126936737506643945801, rel=1e-9
    )
    assert hockey_stick(y, z, epsilon=-1).value == pytest.approx(gaussian_delta(1, -1), rel=1e-9)


@pytest.mark.parametrize(("mean", "sigma"), [(1e4, 1.0), (-30.0, 1e-3), (0.0, 1e3), (5.0, 1e-6)])
def test_far_and_narrow_gaussians(mean: float, sigma: float) -> None:
    y, z = gaussian(mean + sigma, sigma), gaussian(mean, sigma)
    assert kl(y, z).value == pytest.approx(0.5, rel=1e-8)
    assert hockey_stick(y, z, epsilon=0.5).value == pytest.approx(gaussian_delta(1, 0.5), rel=1e-8)


def test_gaussians_far_apart_do_not_underflow() -> None:
    assert kl(gaussian(40.0), gaussian(-40.0)).value == pytest.approx(3200, rel=1e-10)


@pytest.mark.slow
def test_laplace() -> None:
    y, z = laplace(1.0), laplace()
    assert kl(y, z).value == pytest.approx(math.exp(-1), rel=1e-9)
    assert hockey_stick(y, z, epsilon=0.3).value == pytest.approx(
        -math.expm1((0.3 - 1) / 2), rel=1e-9
    )
    assert hockey_stick(y, z, epsilon=1.0).value == pytest.approx(0, abs=1e-12)


def test_supports() -> None:
    y, z = uniform(0.0, 1.0), uniform(0.25, 2.25)
    assert kl(y, z).value == math.inf
    assert hockey_stick(y, z, epsilon=math.inf).value == pytest.approx(0.25)
    assert total_variation(y, z).value == pytest.approx(0.25 + 0.75 / 2)
    assert kl(uniform(0.5, 1.0), uniform(0.0, 1.0)).value == pytest.approx(math.log(2))


def test_heavy_tails() -> None:
    with pytest.raises(UnsupportedError, match="may be infinite"):
        kl(cauchy(), gaussian())


def test_an_estimate_is_no_bound() -> None:
    found = kl(gaussian(1.0), gaussian())
    assert isinstance(found, Estimate)
    assert not isinstance(found, Bound)
    assert float(found) == found.value
    assert 0 <= found.error < 1e-8


@pytest.mark.parametrize(
    "make",
    [
        lambda: Density(lambda x: -x * x / 2),
        lambda: Density(lambda x: 0.0, support=(0.0, 2.0)),
        lambda: Density(
            lambda x: -(((x - 1e6) / 1e-3) ** 2) / 2 - math.log(1e-3 * math.sqrt(2 * math.pi))
        ),
        lambda: Density(lambda x: math.nan),
        lambda: Density(lambda x: math.inf),
        lambda: Density(lambda x: "0"),  # type: ignore[arg-type,return-value]
        lambda: Density(lambda x: None),  # type: ignore[arg-type,return-value]
        lambda: Density(0.5),  # type: ignore[arg-type]
        lambda: Density(lambda x: 0.0, support=1.0),  # type: ignore[arg-type]
        lambda: Density(lambda x: 0.0, support=(0.0, 1.0, 2.0)),  # type: ignore[arg-type]
        lambda: Density(lambda x: 0.0, support=(0.0, "1")),  # type: ignore[arg-type]
        lambda: Density(lambda x: 0.0, support=(0.0, 1.0), breakpoints=0.5),  # type: ignore[arg-type]
        lambda: Density(lambda x: 0.0, support=(1.0, 0.0)),
        lambda: Density(lambda x: 0.0, support=(0.0, math.nan)),
        lambda: Density(lambda x: 0.0, support=(0.0, 1.0), breakpoints=(math.nan,)),
        lambda: Density(lambda x: 0.0, support=(0.0, 1.0), breakpoints=(math.inf,)),
    ],
)
def test_bad_densities(make: Callable[[], Density]) -> None:
    with pytest.raises(DomainError):
        make()


def test_a_support_that_sticks_out_where_the_density_underflows() -> None:
    half = Density(
        lambda x: -x * x / 2 + math.log(2) - math.log(2 * math.pi) / 2, support=(-40.0, 0.0)
    )
    assert kl(gaussian(), half).value == math.inf
    assert kl(half, gaussian()).value == pytest.approx(math.log(2), rel=1e-10)


def test_divergences_that_are_no_integral_refuse_densities() -> None:
    y, z = gaussian(1.0), gaussian()
    for ask in (
        lambda: renyi(y, z, order=2),  # type: ignore[arg-type]
        lambda: max_divergence(y, z),  # type: ignore[arg-type]
        lambda: approximate_max(y, z, delta=0.1),  # type: ignore[arg-type]
    ):
        with pytest.raises(DomainError, match="first"):
            ask()
