"""Elementary functions without cancellation, and sums in a fixed order, each with a proved error.

The float engine makes one assumption: numpy's real exp, expm1, log, log1p, sin, cos, tan and
arctan2 err by at most `ULPS` units in the last place (their own test-suite asserts as much).
Everything else is IEEE arithmetic and is derived.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcompose.values import UNIT_ROUNDOFF

Reals = NDArray[np.floating[Any]]
Complexes = NDArray[np.complexfloating[Any, Any]]

ULPS = 4
U = UNIT_ROUNDOFF
_SMALL = 1e-2
# The number of array entries processed in one block, and the number up to which no matrix product
# is used.
_CHUNK, _SERIAL = 1 << 18, 1 << 15
# For arrays larger than this, a series is evaluated only at the entries that need it.
_ONE_PASS = 1 << 11
# Every BLAS computes matrix products of fewer than 2^16 multiplications in one thread; from 2^16 on
# it may use more.
_SINGLE_THREAD, _ROWS = (1 << 16) - 1, 16
_DOT = 1 << 13
# With fewer frequencies than this, splitting them as a grid saves nothing.
_GRID, _FEW = 256, 32


def between(x: Reals, low: Any, high: Any) -> Reals:
    """x clipped to [low, high], elementwise; faster than numpy's clip on small arrays."""
    return np.minimum(np.maximum(x, low), high)


def row_sums(x: Reals) -> Reals:
    """The sum of each row of `x`, as a column; faster than numpy's method on small arrays."""
    return np.add.reduce(x, axis=-1, keepdims=True)


def dots(x: Reals, y: Reals) -> Any:
    """The sum of the products x y over each row of n terms; error at most n U times that of |x y|.

    Rows are summed in blocks too short for BLAS to use threads, so that the result does not depend
    on their number.
    """
    if x.shape[-1] <= _DOT:
        return np.vecdot(x, y)
    found = [
        np.vecdot(x[..., at : at + _DOT], y[..., at : at + _DOT])
        for at in range(0, x.shape[-1], _DOT)
    ]
    return np.add.reduce(found, axis=0)


def row_dots(x: Reals, y: Reals) -> Reals:
    """`dots` of `x` and `y`, as a column."""
    return dots(x, y)[..., None]


def row_tops(x: Reals) -> Reals:
    """The maximum of each row of `x`, as a column."""
    return np.maximum.reduce(x, axis=-1, keepdims=True)


def exp_minus_linear(z: Reals) -> Reals:
    """e^z - 1 - z for real z < 709; relative error at most 2^-43, and 24 U for |z| < 0.01."""
    small = between(z, -_SMALL, _SMALL)
    series = (
        0.5
        * small
        * small
        * (1 + small / 3 * (1 + small / 4 * (1 + small / 5 * (1 + small / 6 * (1 + small / 7)))))
    )
    return np.where(np.abs(z) <= _SMALL, series, np.expm1(z) - z)


def minus_log1p(y: Reals) -> Reals:
    """y - log(1 + y) >= 0 for real y > -1; relative error at most 192 U, and 24 U for |y| < 0.1."""
    small = between(y, -0.1, 0.1)
    # With s = y / (2 + y): log(1 + y) = 2 (s + s^3 / 3 + ...) and y - 2 s = y s.
    s = small / (2 + small)
    square = s * s
    tail = 2 / 9 + square * (2 / 11 + square * (2 / 13 + square * (2 / 15)))
    series = s * (small - square * (2 / 3 + square * (2 / 5 + square * (2 / 7 + square * tail))))
    return np.where(np.abs(y) <= 0.1, series, y - np.log1p(y))


def log_mixed(loss: Reals, rate: Reals | float) -> Reals:
    """log(1 - q + q e^l) for q in (0, 1) and real or infinite l; relative error at most 24 U.

    Here q = `rate`, l = `loss`. For l > 700 the error is that of l + log q, 16 U times l over the
    result. No difference cancels: with r = 1 - q + q e^l the result is log1p(r - 1) if r > 1/2,
    else log r.
    """
    low = np.minimum(loss, 700.0)
    y = rate * np.expm1(low)
    if float(y.min(initial=0.0)) > -0.5:
        found = np.log1p(y)
    else:
        found = np.where(
            y > -0.5, np.log1p(np.maximum(y, -0.5)), np.log((1 - rate) + rate * np.exp(low))
        )
    if not float(loss.max(initial=0.0)) > 700:
        return found
    kept = np.log1p(-rate)
    return np.where(loss > 700, kept + np.logaddexp(0.0, loss + (np.log(rate) - kept)), found)


def log_unmixed(loss: float, rate: float) -> tuple[float, float] | None:
    """y = ln(1 + (e^loss - 1) / rate), the inverse of `log_mixed`, and a bound on its error.

    None if e^y is below 1e-9 or negative.

    For loss > 40 it is loss - ln(rate) up to e^-40 < U.
    """
    inner = math.expm1(min(loss, 40.0)) / rate
    if loss > 40 or inner > 1e300:
        value = (loss if loss > 40 else math.log(math.expm1(loss))) - math.log(rate)
        return value, 16 * U * (value + 2)
    if not inner > -1 + 1e-9:
        return None
    value = math.log1p(inner)
    return value, 16 * U * (1 + abs(inner) / (1 + inner) + abs(value))


def sine_minus_linear(v: Reals, sine: Reals | None = None) -> Reals:
    """sin v - v, absolute error at most 72 U v^2 for every real v.

    For |v| > 0.25 this includes the error of the sine: at most 16 U |v| = 64 U v^2 there.

    Args:
        v: Real numbers.
        sine: sin v to a relative 16 U, if already computed.
    """
    if v.size <= _ONE_PASS or (v.max() <= 0.25 and v.min() >= -0.25):
        series = _sine_series(between(v, -0.25, 0.25))
        if not v.size or (v.max() <= 0.25 and v.min() >= -0.25):
            return series
        return np.where(np.abs(v) <= 0.25, series, (np.sin(v) if sine is None else sine) - v)
    found = (np.sin(v) if sine is None else sine) - v
    small = np.abs(v) <= 0.25
    found[small] = _sine_series(v[small])
    return found


def _sine_series(v: Reals) -> Reals:
    square = v * v
    tail = 1 - square / 110 * (1 - square / 156)
    return -v * square / 6 * (1 - square / 20 * (1 - square / 42 * (1 - square / 72 * tail)))


def log_one_plus(real: Reals, imaginary: Reals) -> Complexes:
    """log(1 + x + iy); normwise relative error at most 16 U of max(|x + iy|, |log|) plus that of x
    + iy.

    |1 + x + iy|^2 - 1 = x (2 + x) + y^2 cancels when the modulus is small: there the modulus itself
    is taken.
    """
    excess = real * (2 + real) + imaginary * imaginary
    log = np.empty(excess.shape, dtype=np.complex128)
    log.real = 0.5 * np.log1p(np.maximum(excess, -0.5))
    if excess.min(initial=0.0) <= -0.5:
        with np.errstate(divide="ignore"):
            log.real = np.where(
                excess > -0.5, log.real, 0.5 * np.log((1 + real) ** 2 + imaginary * imaginary)
            )
    log.imag = np.arctan2(imaginary, 1 + real)
    return log


def exp_or_inf(x: float) -> float:
    """e^x, or infinity if that overflows: valid in upper bounds only."""
    return math.exp(x) if x < 709 else math.inf


def log_add_exp(x: float, y: float) -> float:
    """log(e^x + e^y), without overflow."""
    top = max(x, y)
    return top + math.log1p(math.exp(min(x, y) - top))


def log_sum_exp(exponents: Reals) -> float:
    """log of the sum of e^exponents, without overflow; -inf for an empty sum."""
    top = float(np.max(exponents, initial=-math.inf))
    return top if math.isinf(top) else top + math.log(float(np.sum(np.exp(exponents - top))))


def log_sum(exponents: Reals) -> Reals:
    """log of the sum of e^exponents over each row, as a column, for finite exponents."""
    top = row_tops(exponents)
    return top + np.log(row_sums(np.exp(exponents - top)))


def exponential_sums(
    frequencies: Reals, amplitude: Complexes | Reals, rate: Complexes
) -> Complexes:
    """The sums over j of amplitude[j] e^(u rate[j]), Re rate <= 0, at each frequency u, by rows.

    Many frequencies on a grid are split as u = u_block + u_within, so that about the square root of
    their number of exponentials is computed, followed by a matrix product; empty blocks are
    skipped. Split or not, the error is at most (4 n + 64 + 16 u |rate|) U times the sum of the
    moduli.
    """
    count = len(frequencies)
    many = count > _GRID or (rate.ndim > 1 and count > _FEW)
    if many and bool(np.all(np.diff(frequencies) == frequencies[1] - frequencies[0])):
        block = math.isqrt(count)
        within = np.exp(rate[..., :, None] * (frequencies[:block] - frequencies[0]))
        blocks = np.exp(frequencies[::block, None] * rate[..., None, :]) * amplitude[..., None, :]
        value = product(blocks, within)
        return value.reshape(*value.shape[:-2], -1)[..., :count]
    places = _on_grid(frequencies) if count > _GRID else None
    if places is not None:
        size, step = math.isqrt(count), frequencies[-1] / places[-1]
        rows, which = np.unique(places // size, return_inverse=True)
        within = np.exp(rate[..., :, None] * (step * np.arange(size)))
        blocks = (
            np.exp((step * size * rows)[:, None] * rate[..., None, :]) * amplitude[..., None, :]
        )
        return product(blocks, within)[..., which, places % size]
    value = np.empty((*rate.shape[:-1], count), dtype=np.complex128)
    chunk = max(1, _CHUNK // rate.size)
    for at in range(0, count, chunk):
        terms = np.exp(frequencies[at : at + chunk, None] * rate[..., None, :])
        value[..., at : at + chunk] = applied(terms, amplitude)
    return value


def product(left: NDArray[Any], right: NDArray[Any]) -> NDArray[Any]:
    """left @ right in blocks of rows, with the same order of summation on every machine.

    Blocks are too small for BLAS to use threads. A single row is computed as two, since BLAS uses
    threads for smaller matrix-vector products.
    """
    (count, inner), columns = left.shape[-2:], right.shape[-1]
    if count == 1:
        return product(np.repeat(left, 2, axis=-2), right)[..., :1, :]
    rows = _SINGLE_THREAD // max(inner * columns, 1)
    if rows < 2 and inner > 1:
        deep = max(_SINGLE_THREAD // (_ROWS * columns), 1)
        places = range(0, inner, deep)
        pieces = (
            product(left[..., at : at + deep], right[..., at : at + deep, :]) for at in places
        )
        return reduce(np.add, pieces)
    rows = max(rows, 2)
    if rows >= count:
        return left @ right
    found = [left[..., at : at + rows, :] @ right for at in range(0, count - 1, rows)]
    if count % rows == 1:
        found.append((left[..., -2:, :] @ right)[..., 1:, :])
    return np.concatenate(found, axis=-2)


def _on_grid(frequencies: Reals) -> Any:
    """The frequencies as integer multiples of their least distance, up to 2^40; else None."""
    step = float(np.diff(frequencies).min())
    places = np.rint(frequencies / step) if step > 0 else frequencies
    exact = step > 0 and places[-1] < 1 << 40 and bool(np.all(places * step == frequencies))
    return places.astype(np.int64) if exact else None


def applied(matrix: Any, vector: Any) -> Any:
    """matrix @ vector over the last axes, in blocks too small for BLAS to use threads."""
    if matrix.size <= _SERIAL or matrix.ndim > 2:
        if matrix.dtype == vector.dtype == np.float64:
            return dots(matrix, vector[..., None, :])
        return np.einsum("...ij,...j->...i", matrix, vector)
    return (matrix @ vector[..., None])[..., 0]
