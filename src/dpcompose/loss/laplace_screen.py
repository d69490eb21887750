"""Single precision for sums of Laplace losses: cheap bounds on |M| along a line, and a rough line of small terms.

Both are for speed. Without the bounds the benchmark row "1,000 Laplace, scale 50 to 149.9" takes sixteen times as long.
The rough line is for sums of fewer: 50 distinct Laplace of scale 5 to 9.9 take five times as long without it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from numpy.typing import NDArray

from dpcompose.contour.placement import NEGLIGIBLE
from dpcompose.contour.transform import Line
from dpcompose.numerics.elementary import Complexes, Reals, U

_LARGEST_BLOCK = 1 << 15
"""Entries of an array that stays in the cache of the processor."""
_SWINGS = (0.8, 0.3)
"""How far the phase 2 epsilon u of a row of the mean epsilon may move to either side over a stretch."""
_PHASES = (np.arange(16) + 0.5) * (math.pi / 16)
_TURN = np.float32(2 * math.pi)
_MOST_COUNTS = 8
"""With more different counts no product is shared."""
_ROW_ERROR, _PRODUCT_ERROR = 5e-6, 2e-7
"""Bounds on the error of the phi of a row, its phase apart, and on that of one product of two."""
_LARGEST_ERROR = 0.01


@dataclass(frozen=True, eq=False)
class LaplaceScreen:
    """Row by row |phi|^2 <= level + half cos(2 epsilon u) + 2 c + c^2 with c = 1 / (2 u).

    |phi| is at most that of the two atoms, whose square is ((1 - far)^2 / 4 + far cos^2(epsilon u)) / whole^2, and that
    of the smooth part, below (1 + far) / (4 whole u) <= c. The square of a sum of two that are at most 1 and c is at
    most that of the first, and 2 c + c^2.

    Single precision: a cosine errs by 1e-6, what is made of it by 4e-7 of `level` and 6e-8 of itself. `level`, which is
    at least `half`, is taken 4e-5 too large, and 2 c + c^2 1e-6: so every sum is 8e-7 too large at least.

    Args:
        epsilon: Of each row, shape (m, 1).
        times: Of each row, shape (m, 1).
        far: The mass of the lower atom over that of the upper one, on this line.
        whole: The mass of all over twice that of the upper one.
    """

    epsilon: Reals
    times: Reals
    far: Reals
    whole: Reals

    def bounds(self) -> Iterator[Callable[[Reals], Reals]]:
        """Of all rows over stretches, where that promises to be enough; then, at each frequency, of more and more."""
        for swing in _SWINGS:
            if self._likely(swing) <= -1.2 * NEGLIGIBLE:
                yield partial(self.over, swing)
        for start, step in _shares(len(self.epsilon)):
            yield partial(self._at, slice(start, None, step))

    def _likely(self, swing: float) -> float:
        """About what all rows add up to over a stretch, if the phases are spread evenly."""
        row = len(self.epsilon) // 2
        cosine = np.cos(np.maximum(_PHASES - swing, 0.0))
        square = self._level32[row, 0] + self._half32[row, 0] * cosine
        return float(self.times.sum()) * 0.5 * float(np.log(np.minimum(square, 1.0)).mean())

    def over(self, swing: float, u: Reals) -> Reals:
        """A bound on log |phi| of all rows over the stretch that each of increasing u lies in; 0 where it is not faint.

        A frequency within d of the middle c has |cos| at most that of the angle nearest to a multiple of pi in
        epsilon c -+ epsilon d.
        """
        width = swing / float(self.epsilon.mean())
        place = np.floor(u / width)
        first = np.flatnonzero(np.diff(place, prepend=-1.0))
        if 3 * len(first) > len(u):
            return np.zeros(len(u))
        near = place[first] * width
        middle, rest = (near + width / 2).astype(np.float32), _rest(near)
        found, left = np.zeros(len(first)), np.arange(len(first))
        for start, step in _shares(len(self.epsilon)):
            part = slice(start, None, step)
            size = max(1, _LARGEST_BLOCK * step // len(self.epsilon))
            for at in range(0, len(left), size):
                here = left[at : at + size]
                found[here] += self._log(part, self._nearest(part, middle[here], width / 2), rest[here])
            left = left[found[left] > -NEGLIGIBLE]
            if not len(left):
                break
        found = np.where(found > -NEGLIGIBLE, 0.0, found)
        return np.repeat(found, np.diff(first, append=len(u)))

    def _nearest(self, part: slice, middle: Reals, reach: float) -> Reals:
        """How many half turns at least are between epsilon u and a multiple of pi, |u - middle| <= reach."""
        rate = self._rate32[part]
        turns = rate * middle
        turn_error = 2.5e-7 * float(self._rate32.max()) * float(middle[-1]) + 2e-7
        turns -= np.rint(turns)
        np.abs(turns, out=turns)
        turns -= rate * np.float32(reach * (1 + 1e-5)) + np.float32(turn_error)
        return np.maximum(turns, np.float32(0), out=turns)

    def _at(self, part: slice, u: Reals) -> Reals:
        """A bound on log |phi| of some rows at increasing u; the angle is reduced in double precision."""
        whole_turns = self.epsilon[part] / math.pi
        turn_error = np.float32(1e-14 * float(whole_turns.max()) * float(u[-1]))
        bound, size = np.empty(len(u)), max(1, _LARGEST_BLOCK // len(whole_turns))
        for start in range(0, len(u), size):
            here = slice(start, start + size)
            turns = whole_turns * u[here]
            turns -= np.rint(turns)
            bound[here] = self._log(part, turns.astype(np.float32), _rest(u[here]) + turn_error)
        return bound

    def _log(self, part: slice, turns: Reals, rest: Reals) -> Reals:
        """The sum over some rows of log |phi| where cos^2 is that of so many half turns; `turns` is overwritten."""
        turns *= _TURN
        square = np.cos(turns, out=turns)
        square *= self._half32[part]
        square += self._level32[part]
        square += rest
        np.minimum(square, np.float32(1), out=square)
        return log_modulus(self.times[part], square)

    @cached_property
    def _rate32(self) -> Reals:
        return (self.epsilon / math.pi).astype(np.float32)

    @cached_property
    def _half32(self) -> Reals:
        return (self.far / (2 * self.whole * self.whole)).astype(np.float32)

    @cached_property
    def _level32(self) -> Reals:
        level = ((1 - self.far) ** 2 / 4 + self.far / 2) / (self.whole * self.whole)
        return (level * (1 + 4e-5)).astype(np.float32)


def log_modulus(times: Reals, square: Reals) -> Reals:
    """The sum over rows of times log(square) / 2, rounded up, where every `square` below 1 is itself 4e-13 too large.

    That is more than it loses to rounding in a product, in double precision. A logarithm errs by 5e-7 of its own size
    in single precision, too.
    """
    if bool((times == times[0]).all()):
        product = np.multiply.reduce(square, axis=0, dtype=float)
        return float(times[0, 0]) / 2 * np.log(np.maximum(product, 1e-300)) * (1 - 1e-12)
    return (0.5 - 2.5e-7) * np.sum(times * np.log(np.maximum(square, 1e-30)), axis=0)


def _rest(near: Reals) -> Reals:
    """2 c + c^2 from the frequency on, or 1 if that is less, rounded up."""
    c = 0.5 / np.maximum(near, 1e-30)
    return np.minimum((2 + c) * c * (1 + 1e-6), 1.0).astype(np.float32)


def _shares(rows: int) -> Iterator[tuple[int, int]]:
    """Starts and steps of disjoint sets of rows that are all of them: some eight, as many more, twice as many, ..."""
    step = 1
    while rows > 16 * step:
        step *= 2
    yield 0, step
    while step > 1:
        yield step // 2, step
        step //= 2


def rough_line(epsilon: Reals, times: Reals, order: float, frequencies: Reals) -> Line | None:
    """log M to a few 1e-6 for each copy, at increasing frequencies; None if the rows' whole counts differ much.

    far = e^(-(2 t + 1) epsilon), T = (t + 1 + t far) / (2 t + 1), s = t + iu: a copy has M = e^(epsilon s) T phi, where
    T phi = (s + 1) / (2 s + 1) + s / (2 s + 1) far e^(-2i epsilon u). The two terms are at most T and far / 2 <= far T.
    In single precision sine and cosine err by 1e-6, and each operation by 6e-8 of its result.
    """
    counts = np.unique(times)
    if len(counts) > _MOST_COUNTS:
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
    size = max(1, _LARGEST_BLOCK // len(epsilon))
    for at in range(0, len(line), size):
        here = slice(at, at + size)
        turns = rate * line.imag[here]
        phi_error = _ROW_ERROR + 5e-14 * float(turns.max())
        if not phi_error < _LARGEST_ERROR:
            log[here], error[here] = 0.0, math.inf
            continue
        turns -= np.rint(turns)
        angle = turns.astype(np.float32) * _TURN
        phi = np.empty(angle.shape, dtype=np.complex64)
        phi.real, phi.imag = np.cos(angle), -np.sin(angle)
        phi *= second[here].astype(np.complex64)
        phi *= far
        phi += first[here].astype(np.complex64) * weight
        log[here], error[here] = _multiplied(phi, phi_error)
    return Line(log, error)


def _multiplied(phi: NDArray[np.complex64], phi_error: float) -> tuple[Complexes, Reals]:
    """log of the product over rows and its error; each phi is good to `phi_error`, and at most 1.

    A phi that may vanish is replaced by 6 `phi_error`: it is then within twice that. So is a product that is too small.
    """
    square = phi.real * phi.real + phi.imag * phi.imag
    vanishing = square < (4.1 * phi_error) ** 2
    vanishing_error = np.zeros(phi.shape[1])
    if vanishing.any():
        phi[vanishing], square[vanishing] = 6 * phi_error, (6 * phi_error) ** 2
        vanishing_error = 1.1 * vanishing.sum(axis=0)
    # |log(1 - x)| is below 1.2 |x| up to 1 / 4.1.
    error = vanishing_error + 1.2 * phi_error * np.sum(1 / np.sqrt(square), axis=0, dtype=float)
    error += 2 * _PRODUCT_ERROR * len(phi)
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
