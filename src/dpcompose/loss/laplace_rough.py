"""The line of a sum of Laplace losses in single precision: for nodes that hardly matter."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour.transform import Line
from dpcompose.numerics.elementary import Complexes, Reals, U

_CELLS = 1 << 15
# With more different counts no product is shared.
_COUNTS = 8
_TURN = np.float32(2 * math.pi)
# What a row's phi is off, the phase apart, and what one product of two loses.
_LOST, _LOST_BY_PRODUCT = 5e-6, 2e-7
_MOST_LOST = 0.01


def rough_line(epsilon: Reals, times: Reals, order: float, frequencies: Reals) -> Line | None:
    """log M to a few 1e-6 for each copy, at increasing frequencies; None if the rows' whole counts differ much.

    far = e^(-(2 t + 1) epsilon), T = (t + 1 + t far) / (2 t + 1), s = t + iu: a copy has M = e^(epsilon s) T phi, where
    T phi = (s + 1) / (2 s + 1) + s / (2 s + 1) far e^(-2i epsilon u). The two terms are at most T and far / 2 <= far T.
    In single precision sine and cosine err by 1e-6, and each operation by 6e-8 of its result.
    """
    counts = np.unique(times)
    if len(counts) > _COUNTS:
        return None
    line = order + 1j * frequencies
    far = np.exp(-(2 * order + 1) * epsilon)
    mass = (order + 1 + order * far) / (2 * order + 1)
    plain = float((times * (order * epsilon + np.log(mass))).sum())
    slope = float((times * epsilon).sum())
    log = plain + 1j * slope * frequencies
    # An epsilon, its exponential and the logarithm of a mass are good to 16 U; so many terms are added up.
    size = float((times * ((order + 1) * epsilon * 4 + 1 + np.abs(np.log(mass)))).sum())
    error = U * (16 + len(epsilon)) * (size + slope * frequencies)
    for count in counts.tolist():
        rows = (times == count)[:, 0]
        found = _product(epsilon[rows], far[rows], mass[rows], line)
        log += count * found.log
        error += count * found.error
    return Line(log, error + 8 * U * np.abs(log))


def _product(epsilon: Reals, far: Reals, mass: Reals, line: Complexes) -> Line:
    """The logarithm of the product of phi over rows."""
    log, error = np.empty(len(line), dtype=np.complex128), np.empty(len(line))
    first, second = (line + 1) / (2 * line + 1), line / (2 * line + 1)
    rate, far, weight = epsilon / math.pi, (far / mass).astype(np.float32), (1 / mass).astype(np.float32)
    size = max(1, _CELLS // len(epsilon))
    for at in range(0, len(line), size):
        here = slice(at, at + size)
        turns = rate * line.imag[here]
        lost = _LOST + 5e-14 * float(turns.max())
        if not lost < _MOST_LOST:
            log[here], error[here] = 0.0, math.inf
            continue
        turns -= np.rint(turns)
        angle = turns.astype(np.float32) * _TURN
        phi = np.empty(angle.shape, dtype=np.complex64)
        phi.real, phi.imag = np.cos(angle), -np.sin(angle)
        phi *= second[here].astype(np.complex64)
        phi *= far
        phi += first[here].astype(np.complex64) * weight
        log[here], error[here] = _multiplied(phi, lost)
    return Line(log, error)


def _multiplied(phi: NDArray[np.complex64], lost: float) -> tuple[Complexes, Reals]:
    """log of the product over rows and its error; each phi is good to `lost`, and at most 1.

    A phi that may vanish is replaced by 6 lost: it is then within twice that. So is a product that is too small.
    """
    square = phi.real * phi.real + phi.imag * phi.imag
    silent = square < (4.1 * lost) ** 2
    vague = np.zeros(phi.shape[1])
    if silent.any():
        phi[silent], square[silent] = 6 * lost, (6 * lost) ** 2
        vague = 1.1 * silent.sum(axis=0)
    # |log(1 - x)| is below 1.2 |x| up to 1 / 4.1.
    error = vague + 1.2 * lost * np.sum(1 / np.sqrt(square), axis=0, dtype=float)
    error += 2 * _LOST_BY_PRODUCT * len(phi)
    while len(phi) > 1:
        half = len(phi) // 2
        odd = phi[2 * half :]
        phi = np.concatenate([phi[:half] * phi[half : 2 * half], odd]) if len(odd) else phi[:half] * phi[half:]
    product = phi[0].astype(np.complex128)
    small = ~(np.abs(product) > 1e-30)
    product[small] = 2e-30
    log: Complexes = np.log(product)
    error[small] += 1.1
    return log, error
