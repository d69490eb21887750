"""Differences of elementary functions without cancellation, each with a bound on its error.

The one assumption of the float engine stands here: numpy's real exp, expm1, log, log1p, sin, cos and arctan2 err by at
most `ULPS` units in the last place (their own test-suite asserts as much). Everything else is IEEE arithmetic and is
derived.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]

ULPS = 4
U = 2.0**-53
_SMALL = 1e-2


def exp_minus_linear(z: Reals) -> Reals:
    """e^z - 1 - z for real z below 709, relative error at most 2^-43, and at most 24 U below |z| = 0.01."""
    small = np.clip(z, -_SMALL, _SMALL)
    series = (
        0.5 * small * small * (1 + small / 3 * (1 + small / 4 * (1 + small / 5 * (1 + small / 6 * (1 + small / 7)))))
    )
    return np.where(np.abs(z) <= _SMALL, series, np.expm1(z) - z)


def minus_log1p(y: Reals) -> Reals:
    """y - log(1 + y) >= 0 for real y > -1, relative error at most 2^-43, and at most 24 U below |y| = 0.01."""
    small = np.clip(y, -_SMALL, _SMALL)
    tail = 0.0
    for n in range(10, 1, -1):
        tail = 1.0 / n - small * tail
    return np.where(np.abs(y) <= _SMALL, small * small * tail, y - np.log1p(y))


def sine_minus_linear(v: Reals) -> Reals:
    """sin v - v, absolute error at most 24 U v^2 for every real v."""
    small = np.clip(v, -0.1, 0.1)
    square = small * small
    series = -small * square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72)))
    return np.where(np.abs(v) <= 0.1, series, np.sin(v) - v)


def log_one_plus(real: Reals, imaginary: Reals) -> Complexes:
    """log(1 + x + iy), normwise relative error at most 16 U of max(|x + iy|, |log|) plus that of the argument.

    |1 + x + iy|^2 - 1 = x (2 + x) + y^2 cancels when the modulus is small: there the modulus itself is taken.
    """
    excess = real * (2 + real) + imaginary * imaginary
    near = np.log1p(np.maximum(excess, -0.5))
    with np.errstate(divide="ignore"):
        far = np.log((1 + real) ** 2 + imaginary * imaginary)
    return 0.5 * np.where(excess > -0.5, near, far) + 1j * np.arctan2(imaginary, 1 + real)


def log_sum_exp(exponents: Reals) -> float:
    """log of the sum of e^exponents; -inf for an empty sum."""
    top = float(np.max(exponents, initial=-math.inf))
    return top if math.isinf(top) else top + math.log(float(np.sum(np.exp(exponents - top))))
