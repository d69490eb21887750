"""The stated error of every elementary function, on dense random inputs, against ball arithmetic; seeds are fixed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import ClassVar

import numpy as np
import pytest
from flint import acb, arb, ctx, fmpq

from dpcompose.numerics.elementary import (
    ULPS,
    U,
    exp_minus_linear,
    log_one_plus,
    log_sum_exp,
    minus_log1p,
    product,
    sine_minus_linear,
)

RNG = np.random.default_rng(20240607)
COUNT = 3000
# Enough for the cancellation of 1e-150 squared.
BITS = 1200
Reals = np.ndarray


def both_signs(least: float, most: float, count: int = COUNT) -> Reals:
    """Of every magnitude alike, and of both signs."""
    size = 10 ** RNG.uniform(math.log10(least), math.log10(most), count)
    return np.where(RNG.random(count) < 0.5, -size, size)


def error(computed: float, truth: arb) -> float:
    """An upper bound on |computed - truth|."""
    return float(abs(arb(computed) - truth).upper())


def size(truth: arb) -> float:
    return float(abs(truth).mid())


@pytest.fixture(autouse=True)
def precision():  # type: ignore[no-untyped-def]
    with ctx.workprec(BITS):
        yield


def test_exp_minus_linear() -> None:
    z = np.concatenate(
        [both_signs(1e-150, 1e-2), both_signs(1e-2, 700.0), RNG.uniform(-0.02, 0.02, COUNT)]
    )
    z = np.concatenate([z, [0.0, 1e-2, -1e-2, math.nextafter(1e-2, 1), 708.9, -1e300]])
    for point, computed in zip(z, exp_minus_linear(z), strict=True):
        truth = arb(point).expm1() - arb(point)
        stated = 24 * U if abs(point) <= 1e-2 else 2.0**-43
        assert error(computed, truth) <= stated * size(truth), point


def test_minus_log1p() -> None:
    y = np.concatenate(
        [
            both_signs(1e-150, 1e-2),
            -(10 ** RNG.uniform(-2, 0, COUNT)),
            10 ** RNG.uniform(-2, 300, COUNT),
        ]
    )
    y = np.concatenate(
        [y, -1 + 10 ** RNG.uniform(-16, -1, 300), [0.0, 1e-2, -1e-2, math.nextafter(-1, 0)]]
    )
    y = y[y > -1]
    for point, computed in zip(y, minus_log1p(y), strict=True):
        truth = arb(point) - arb(point).log1p()
        stated = 24 * U if abs(point) <= 0.1 else 192 * U
        assert computed >= 0 and error(computed, truth) <= stated * size(truth), point


def test_sine_minus_linear() -> None:
    v = np.concatenate(
        [both_signs(1e-100, 0.1), both_signs(0.1, 10.0), both_signs(10.0, 1e15), [0.0, 0.1, -0.1]]
    )
    for point, computed in zip(v, sine_minus_linear(v), strict=True):
        truth = arb(point).sin() - arb(point)
        assert error(computed, truth) <= 24 * U * point * point, point


def test_log_one_plus() -> None:
    near = both_signs(1e-20, 1.0) + 1j * both_signs(1e-20, 1.0)
    # Around -1, where the modulus of 1 + z vanishes, and on its circle |1 + z| = 1, where the logarithm is imaginary.
    zero = -1 + both_signs(1e-15, 0.5) + 1j * both_signs(1e-15, 0.5)
    circle = np.exp(1j * RNG.uniform(-3.1, 3.1, COUNT)) - 1
    far = both_signs(1e-3, 1e100) + 1j * both_signs(1e-3, 1e100)
    z = np.concatenate([near, zero, circle * (1 + both_signs(1e-16, 1e-2)), far])
    for point, computed in zip(z, log_one_plus(z.real, z.imag), strict=True):
        x, y = arb(point.real), arb(point.imag)
        truth = acb(1 + x, y).log()
        difference = acb(arb(computed.real), arb(computed.imag)) - truth
        # The rounding of 1 + x is an error of the argument: of at most U, relative to the modulus.
        argument = U * float((1 / abs(acb(1 + x, y))).upper()) if abs(1 + point) < 0.5 else 0.0
        stated = 16 * U * max(abs(point), abs(computed)) + argument
        assert float(abs(difference).upper()) <= stated, point


def test_log_sum_exp() -> None:
    assert log_sum_exp(np.array([])) == -math.inf
    assert log_sum_exp(np.array([-math.inf, -math.inf])) == -math.inf
    for _ in range(200):
        exponents = RNG.uniform(-1, 1, 50) * 10 ** RNG.uniform(-3, 4) + RNG.uniform(-1e5, 1e5)
        truth = sum((arb(each).exp() for each in exponents), arb(0)).log()
        assert error(log_sum_exp(exponents), truth) <= 1e-14 * (1 + size(truth))


ASSUMED: list[tuple[str, Callable[[Reals], Reals], Callable[[arb], arb], Reals]] = [
    ("exp", np.exp, arb.exp, both_signs(1e-10, 700.0)),
    (
        "expm1",
        np.expm1,
        arb.expm1,
        np.concatenate([both_signs(1e-300, 1.0), both_signs(1.0, 700.0)]),
    ),
    (
        "log",
        np.log,
        arb.log,
        np.concatenate([10 ** RNG.uniform(-300, 300, COUNT), 1 + both_signs(1e-16, 0.5)]),
    ),
    (
        "log1p",
        np.log1p,
        arb.log1p,
        np.concatenate([both_signs(1e-300, 0.99), 10 ** RNG.uniform(0, 300, COUNT)]),
    ),
    ("sin", np.sin, arb.sin, np.concatenate([both_signs(1e-300, 10.0), both_signs(10.0, 1e16)])),
    ("cos", np.cos, arb.cos, np.concatenate([both_signs(1e-10, 10.0), both_signs(10.0, 1e16)])),
    ("tanh", np.tanh, arb.tanh, both_signs(1e-300, 20.0)),
    ("cosh", np.cosh, arb.cosh, both_signs(1e-10, 700.0)),
    ("sinh", np.sinh, arb.sinh, both_signs(1e-300, 700.0)),
]


@pytest.mark.parametrize(
    ("function", "exact", "points"), [pytest.param(*rest, id=name) for name, *rest in ASSUMED]
)
def test_numpy_is_as_good_as_assumed(
    function: Callable[[Reals], Reals], exact: Callable[[arb], arb], points: Reals
) -> None:
    for point, computed in zip(points, function(points), strict=True):
        assert error(computed, exact(arb(point))) <= ULPS * math.ulp(abs(computed)), point


def test_numpy_arctangents_are_as_good_as_assumed() -> None:
    y, x = both_signs(1e-100, 1e100), both_signs(1e-100, 1e100)
    for ordinate, abscissa, computed in zip(y, x, np.arctan2(y, x), strict=True):
        truth = arb.atan2(arb(ordinate), arb(abscissa))
        assert error(computed, truth) <= ULPS * math.ulp(abs(computed))


def test_the_unit_roundoff() -> None:
    assert np.finfo(np.float64).eps == 2 * U
    assert fmpq(1, 2**53) == fmpq(*U.as_integer_ratio())


class _Watched(np.ndarray):
    """A matrix that counts the multiplications of its products."""

    sizes: ClassVar[list[int]] = []

    def __matmul__(self, other: np.ndarray) -> np.ndarray:
        self.sizes.append(self.shape[-2] * self.shape[-1] * other.shape[-1])
        return np.matmul(np.asarray(self), np.asarray(other))


@pytest.mark.parametrize("shape", [(129, 892, 128), (130, 64, 64), (3, 5000, 16), (257, 256, 2)])
def test_products_wake_no_thread(shape: tuple[int, int, int]) -> None:
    """A product of 2^16 complex multiplications is the least that a BLAS shares among threads."""
    count, inner, columns = shape
    left, right = np.ones((count, inner), complex), np.ones((inner, columns), complex)
    _Watched.sizes.clear()
    found = product(left.view(_Watched), right)
    assert found.shape == (count, columns)
    assert np.all(found == inner)
    assert 0 < max(_Watched.sizes) < 1 << 16
