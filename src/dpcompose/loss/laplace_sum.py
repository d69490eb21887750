"""The sum of many Laplace losses, any of them many times, as a transform."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from dpcompose.contour import NEGLIGIBLE, Cumulants, Line, logarithm_of_excess
from dpcompose.loss.base import BoundedRows
from dpcompose.numerics import Complexes, Reals, U, exp_minus_linear, sine_minus_linear

_LARGEST_BLOCK, _LARGEST_SINGLE, _LARGEST_LINE = 1 << 13, 1 << 15, 1 << 15
"""Entries of an array that stays in the cache of the processor; of single precision, and of a line."""
_SWINGS = (0.8, 0.3)
"""How far the phase 2 epsilon u of a row of the mean epsilon may move to either side over a stretch."""
_PHASES = (np.arange(16) + 0.5) * (math.pi / 16)
_TURN = np.float32(2 * math.pi)
_PLANNED_GROUPS = 32
"""Groups of neighboring rows that are planned for together."""


@dataclass(frozen=True, eq=False)
class LaplaceSum(BoundedRows):
    """M = (((t + 1) e^(t epsilon) + t e^(-(t + 1) epsilon)) / (2 t + 1))^times, a product over rows of shape (m, 1)."""

    @property
    def copies(self) -> float:
        return float(self.times.sum())

    def curve(self, orders: Reals) -> Cumulants:
        (epsilon, times), double = self._planned, 2 * orders + 1
        lower_atom = np.exp(-double * epsilon)
        top = orders + 1 + orders * lower_atom
        first = (1 + lower_atom - 2 * epsilon * orders * lower_atom) / top
        second = lower_atom * (4 * epsilon**2 * orders - 4 * epsilon) / top
        flat = (orders + 1) * epsilon < 1e-3
        shrink = epsilon**2 * (1 - epsilon / 3)
        log_m = np.where(
            flat, shrink * orders * (orders + 1) / 2, orders * epsilon + np.log(top / double)
        )
        mean = np.where(flat, shrink * (orders + 0.5), epsilon + first - 2 / double)
        spread = np.where(flat, shrink, second - first**2 + 4 / double**2)
        return Cumulants(*((times * part).sum(axis=0) for part in (log_m, mean, spread)))

    @cached_property
    def _planned(self) -> tuple[Reals, Reals]:
        """Fewer rows of nearly the same curve: neighbors replaced by two with their mean and variance.

        For speed: without it the benchmark row "1,000 Laplace, scale 50 to 149.9" takes 1.15 times as long.
        """
        if len(self.epsilon) <= 4 * _PLANNED_GROUPS:
            return self.epsilon, self.times
        order = np.argsort(self.epsilon[:, 0])
        epsilon, times = self.epsilon[order, 0], self.times[order, 0]
        starts = np.arange(_PLANNED_GROUPS) * len(epsilon) // _PLANNED_GROUPS
        if np.any(epsilon[starts] < 0.85 * epsilon[np.append(starts[1:], len(epsilon)) - 1]):
            return self.epsilon, self.times
        copies = np.add.reduceat(times, starts)
        mean = np.add.reduceat(times * epsilon, starts) / copies
        away = epsilon - np.repeat(mean, np.diff(starts, append=len(epsilon)))
        apart = np.sqrt(np.add.reduceat(times * away * away, starts) / copies)
        return np.concatenate([mean - apart, mean + apart])[:, None], np.tile(copies / 2, 2)[
            :, None
        ]

    def line(self, order: float, frequencies: Reals) -> Line:
        # Close to 1 the series keep the digits that many copies need.
        frequency = ((order + 1) * self.epsilon[:, 0] <= 2) & (self.times[:, 0] > 300)
        value, error = np.zeros(len(frequencies), dtype=np.complex128), np.zeros(len(frequencies))
        chunk = max(1, _LARGEST_LINE // len(self.epsilon))
        for rows, method in ((frequency, _near_one), (~frequency, _product)):
            for at in range(0, len(frequencies), chunk) if rows.any() else ():
                here = slice(at, at + chunk)
                log, log_error = method(
                    self.epsilon[rows], self.times[rows], order, frequencies[here]
                )
                value[here] += log
                error[here] += log_error
        return Line(value, error)

    def log_bounds(self, order: float) -> Iterator[Callable[[Reals], Reals]]:
        """Bounds on log |phi| that are cheap to compute: of some rows, and 0 for all others."""
        return self.screen(order).bounds()

    def screen(self, order: float) -> LaplaceScreen:
        """Cheap bounds on a line, which tell the significant nodes."""
        double = 2 * order + 1
        lower_atom = np.exp(-double * self.epsilon)
        whole = 0.5 + lower_atom / 2 - np.expm1(-double * self.epsilon) / (2 * double)
        return LaplaceScreen(self.epsilon, self.times, lower_atom, whole)

    def limsup(self, order: float) -> float:
        # The mass of the atoms.
        double = 2 * order + 1
        lower_atom = np.exp(-double * self.epsilon)
        return math.exp(
            float(
                (
                    self.times
                    * np.log((1 + lower_atom) / 2 / (order + 1 + order * lower_atom) * double)
                ).sum()
            )
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        found, size = np.zeros(len(edges)), max(1, _LARGEST_BLOCK // len(edges))
        for at in range(0, len(self.epsilon), size):
            rows = slice(at, at + size)
            found += log_modulus(self.times[rows], self._envelope(rows, order, edges))
        return found

    def _envelope(self, rows: slice, order: float, edges: Reals) -> Reals:
        """For each row bounds on |phi|^2 between the edges, those below 1 with a margin."""
        epsilon, double = self.epsilon[rows], 2 * order + 1
        lower_atom = np.exp(-double * epsilon)
        whole = order + 1 + order * lower_atom
        # The tilted smooth part is monotone, so its transform is at most twice its largest density over u.
        bound = ((1 + lower_atom) / 2 + 0.5 / edges) * (double / whole)
        bound *= bound
        # Where a block is wide nothing but that decay is known.
        wide = np.flatnonzero(np.diff(edges, append=math.inf) * float(epsilon.min()) > 2.0)
        last = int(wide[0])
        if last:
            sine, cosine, square_error = self._waves(rows, edges[: last + 1])
            frequency = edges[: last + 1]
            # |t + 1 + t e^(-(2 t + 1) epsilon)| / |2 t + 1| over the same at u = 0.
            real = order + 1 + lower_atom * (order * cosine + frequency * sine)
            imaginary = frequency + lower_atom * (frequency * cosine - order * sine)
            square = (
                (real * real + imaginary * imaginary)
                / (1 + (frequency * (2 / double)) ** 2)
                / (whole * whole)
            )
            square = square * (1 + 256 * U) + square_error
            # f = |phi|^2 has |f''| <= 2 epsilon^2, as in `blockwise`.
            square = (
                np.maximum(square[:, :-1], square[:, 1:]) + (epsilon * np.diff(frequency)) ** 2 / 4
            )
            bound[:, :last] = np.minimum(bound[:, :last], square)
        return np.minimum(bound * (1 + 1e-12), 1.0)

    def _waves(self, rows: slice, edges: Reals) -> tuple[Reals, Reals, Reals]:
        """Sine and cosine of 2 epsilon u, and what they may add to |phi|^2.

        Errors d of both add at most sqrt(2) d to |phi|, so 3 d to its square, and 8 d if d is no small number: the
        angle is good to 2 U of itself. In single precision d is below 1e-6; many copies ask for more digits.
        """
        if len(self.epsilon) < 16 or self.copies > 1e5:
            angle = 2 * self.epsilon[rows] * edges
            return np.sin(angle), np.cos(angle), 16 * U * angle + 256 * U
        turns = self.epsilon[rows] / math.pi * edges
        square_error = 3e-6 + 2e-14 * turns
        turns -= np.rint(turns)
        angle = turns.astype(np.float32) * np.float32(2 * math.pi)
        return np.sin(angle), np.cos(angle), square_error


def _near_one(
    epsilon: Reals, times: Reals, order: float, frequencies: Reals
) -> tuple[Complexes, Reals]:
    """M - 1 = ((t + 1) E(t epsilon) + t E(-(t + 1) epsilon)) / (2 t + 1) with E(z) = e^z - 1 - z, for each row."""
    line = order + 1j * frequencies
    angle = epsilon * frequencies
    up, up_error = _exp_minus_linear(order * epsilon, angle)
    down, down_error = _exp_minus_linear(-(order + 1) * epsilon, -angle)
    excess = ((line + 1) * up + line * down) / (2 * line + 1)
    error = (np.abs(line + 1) * up_error + np.abs(line) * down_error) / np.abs(
        2 * line + 1
    ) + 24 * U * (np.abs(up) + np.abs(down))
    one = logarithm_of_excess(excess.real, excess.imag, error)
    total = times * one.log
    return np.sum(total, axis=0), np.sum(
        times * one.error + U * (4 + len(epsilon)) * np.abs(total), axis=0
    )


def _exp_minus_linear(x: Reals, y: Reals) -> tuple[Complexes, Reals]:
    """e^(x + iy) - 1 - (x + iy) and its error; x of shape (m, 1) with |x| <= 2, y of shape (m, n)."""
    rise, half = np.exp(x), np.sin(y / 2)
    curve = exp_minus_linear(x)
    real = curve - 2 * rise * half * half
    imaginary = np.expm1(x) * np.sin(y) + sine_minus_linear(y)
    flat = np.where(np.abs(x) > 1e-2, 24 * U * np.abs(x), 0.0)
    small = 64 * U * (x * x + rise * y * y + np.abs(x * y) * (1 + rise))
    large = 16 * U * (1 + np.abs(y)) * (1 + rise + np.abs(x) + np.abs(y))
    return real + 1j * imaginary, np.minimum(small, large) + flat


def _waves(amplitude: Reals, rate: Reals, frequencies: Reals) -> Complexes:
    """amplitude e^(-i rate u) for each row: over a grid, products of the waves at its blocks and within one."""
    count = len(frequencies)
    if count < 64 or not bool(np.all(np.diff(frequencies) == frequencies[1] - frequencies[0])):
        waves: Complexes = np.exp(-1j * (rate * frequencies))
        return np.multiply(amplitude, waves, out=waves)
    block = math.isqrt(count)
    within = np.exp(-1j * (rate * (frequencies[:block] - frequencies[0])))
    blocks = amplitude * np.exp(-1j * (rate * frequencies[::block]))
    return (blocks[:, :, None] * within[:, None, :]).reshape(len(rate), -1)[:, :count]


def _product(
    epsilon: Reals, times: Reals, order: float, frequencies: Reals
) -> tuple[Complexes, Reals]:
    """M = e^(t epsilon) mass phi, mass = M(order) e^(-order epsilon): one logarithm for all rows of the same count.

    |phi| is at most 1. A phi that may vanish is replaced by a bound on it, as is a product too small for floats.
    """
    starts = np.zeros(1, dtype=np.intp)
    if len(times) > 1 and times.min() < times.max():
        ranks = np.argsort(times[:, 0], kind="stable")
        epsilon, times = epsilon[ranks], times[ranks]
        starts = np.flatnonzero(np.diff(times[:, 0], prepend=0.0))
    line = order + 1j * frequencies
    lower_atom = np.exp(-(2 * order + 1) * epsilon)
    mass = (order + 1 + order * lower_atom) / (2 * order + 1)
    phi = _waves(lower_atom / mass, 2 * epsilon, frequencies)
    phi *= line / (2 * line + 1)
    phi += ((line + 1) / (2 * line + 1)) * (1 / mass)
    phi_error = (U / mass) * (40 + 16 * (2 * order + 1) * epsilon * lower_atom) + (
        U / mass * 16 * lower_atom * epsilon
    ) * frequencies
    size = np.maximum(np.abs(phi), 1e-300)
    error = phi_error / size
    vanishing = ~(error <= 0.25)
    error *= 2
    if vanishing.any():
        phi[vanishing], error[vanishing] = (size + 2 * phi_error)[vanishing], math.log(3.0)
    alike = len(starts) == 1  # where one reduction is ten times as fast
    product = np.multiply.reduce(phi, keepdims=True) if alike else np.multiply.reduceat(phi, starts)
    error = np.add.reduceat(error, starts) + U * (8 + 4 * len(phi))
    tiny = ~(np.abs(product) > 1e-280)
    if tiny.any():
        product[tiny], error[tiny] = 1e-280, error[tiny] + 1.1
    log, counts = np.log(product), times[starts]
    log_mass = np.log(mass)
    plain, slope = (
        math.fsum((times * (order * epsilon + log_mass)).ravel()),
        math.fsum((times * epsilon).ravel()),
    )
    # Of each row: an epsilon on the line, and the logarithm of a mass; the two numbers are sums without an error.
    size = (
        float((times * (2 * order * epsilon + 9 * np.abs(log_mass))).sum())
        + 4 * slope * frequencies
        + abs(plain)
    )
    total_error = (
        np.sum(counts * (error + U * (8 + len(starts)) * np.abs(log)), axis=0)
        + U * (1 + 1e-9) * size
    )
    return plain + 1j * slope * frequencies + np.sum(counts * log, axis=0), total_error


@dataclass(frozen=True, eq=False)
class LaplaceScreen:
    """Cheap bounds on |M| along a line, in single precision, which tell the significant nodes.

    For speed: without them the benchmark row "1,000 Laplace, scale 50 to 149.9" takes sixteen times as long.

    Row by row |phi|^2 <= level + half cos(2 epsilon u) + 2 c + c^2 with c = 1 / (2 u).

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
    lower_atom: Reals
    whole: Reals

    def bounds(self) -> Iterator[Callable[[Reals], Reals]]:
        """A bound on log |phi| at each frequency: of all rows over whole stretches where that promises to be small
        enough, and otherwise of more and more rows at the frequency itself."""
        for swing in _SWINGS:
            if self._likely(swing) <= -1.2 * NEGLIGIBLE:
                yield partial(self.over, swing)
        for start, step in _shares(len(self.epsilon)):
            yield partial(self._at, slice(start, None, step))

    def _likely(self, swing: float) -> float:
        """About what all rows together add to log |phi| over a stretch, if phases are spread evenly."""
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
        frequency = place[first] * width
        middle, density = (frequency + width / 2).astype(np.float32), _density(frequency)
        found, left = np.zeros(len(first)), np.arange(len(first))
        for start, step in _shares(len(self.epsilon)):
            part = slice(start, None, step)
            size = max(1, _LARGEST_SINGLE * step // len(self.epsilon))
            for at in range(0, len(left), size):
                here = left[at : at + size]
                found[here] += self._log(
                    part, self._nearest(part, middle[here], width / 2), density[here]
                )
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
        bound, size = np.empty(len(u)), max(1, _LARGEST_SINGLE // len(whole_turns))
        for start in range(0, len(u), size):
            here = slice(start, start + size)
            turns = whole_turns * u[here]
            turns -= np.rint(turns)
            bound[here] = self._log(part, turns.astype(np.float32), _density(u[here]) + turn_error)
        return bound

    def _log(self, part: slice, turns: Reals, density: Reals) -> Reals:
        """The sum over some rows of log |phi| where cos^2 is that of so many half turns; `turns` is overwritten."""
        turns *= _TURN
        square = np.cos(turns, out=turns)
        square *= self._half32[part]
        square += self._level32[part]
        square += density
        np.minimum(square, np.float32(1), out=square)
        return log_modulus(self.times[part], square)

    @cached_property
    def _rate32(self) -> Reals:
        return (self.epsilon / math.pi).astype(np.float32)

    @cached_property
    def _half32(self) -> Reals:
        return (self.lower_atom / (2 * self.whole * self.whole)).astype(np.float32)

    @cached_property
    def _level32(self) -> Reals:
        level = ((1 - self.lower_atom) ** 2 / 4 + self.lower_atom / 2) / (self.whole * self.whole)
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


def _density(frequency: Reals) -> Reals:
    """2 c + c^2 from the frequency on, or 1 if that is less, rounded up."""
    c = 0.5 / np.maximum(frequency, 1e-30)
    return np.minimum((2 + c) * c * (1 + 1e-6), 1.0).astype(np.float32)


def _shares(rows: int) -> Iterator[tuple[int, int]]:
    """Slices of the rows, disjoint, that together hold all of them: first some eight rows, then as many again, then
    twice as many, and so on."""
    step = 1
    while rows > 16 * step:
        step *= 2
    yield 0, step
    while step > 1:
        yield step // 2, step
        step //= 2
