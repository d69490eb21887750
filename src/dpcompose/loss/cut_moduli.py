"""Upper sums of the moduli of cut pieces of sampled Gaussian losses, on paths beside the real line.

With the notation of `cut_noise`: on Im x = angle b every factor of n |share| |r|^p e^(slant arg r) rises or falls with
Re x, so that in each cell it is taken where it is largest.

Cut pieces of sampled Gaussian losses on a path beside the real line, where a high power does not oscillate.

Over Im x = angle b the integrand of E share r^(p + iu) has modulus n |share| |r|^p e^(-u arg r): what is large is faint
at high frequencies, and so many points are enough at all of them. Its error is absolute, so that it serves few copies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpcompose.contour import Line, joined, logarithm_of_excess, remembered
from dpcompose.loss.sampled_gaussian_grid import (
    argument,
    log_ratio,
    on_shifted,
    positions,
    sampled_weight,
    shortened,
)
from dpcompose.numerics import (
    Complexes,
    Reals,
    U,
    between,
    exp_or_inf,
    exponential_sums,
    log_sum_exp,
)

_ANGLES = (0.02, 0.1, 0.3, 0.6, 0.9, 1.1, 1.25, 1.38)
LEFT = 6.3
"""So many widths below a cut the share above it is below e^-500 on the real line."""


@dataclass(frozen=True, eq=False)
class Moduli:
    """The piece of the noise that is below a cut, above one, or both, and cells of it.

    Args:
        noise: sigma / sensitivity.
        rate: The sampling rate.
        width: b.
        x: Ends of cells, increasing.
        below: The cut that the piece is below, if any.
        above: The cut that it is above, if any.
        slant: The most that a slant times an argument comes to, as far as it is bounded.
    """

    noise: float
    rate: float
    width: float
    x: Reals
    below: float | None
    above: float | None
    slant: float

    def envelope(self, power: float, edges: Reals) -> Reals:
        """log of a bound on |E r^(power + iu)| for u from each edge on, the best of several shifts."""
        found = [self.integral(power, angle, -edges) + self.lift(angle) for angle in self.angles]
        return np.min(found, axis=0)

    def quiet(self, power: float, edges: Reals, floor: float) -> Reals:
        """log of a bound on |E r^(power + iu)| e^-floor for u from each edge on, where many copies are asked for.

        1 - |phi(u)|^2 is E (1 - cos u (L - L')), and 1 - cos 2 v <= 4 (1 - cos v): so 1 - |phi(u)|^2 is at least
        4^-m (1 - |phi(2^m u)|^2).
        """
        far = float(edges[0]) * 4.0 ** np.arange(12)
        least = -np.expm1(2 * np.minimum(self.envelope(power, far) - floor, 0.0))
        doublings = np.ceil(np.maximum(np.log2(far / edges[:, None]) - 1e-9, 0.0))
        reached = far * (1 - 1e-12) <= edges[:, None] * 2.0**doublings
        shrunk = np.where(reached, least * 4.0**-doublings, 0.0).max(axis=1)
        return 0.5 * np.log1p(-np.minimum(shrunk * (1 - 1e-9), 1 - 1e-15))

    def second(self, power: float, center: float) -> float:
        """log of an upper bound on E of the share times r^power (log r - center)^2."""
        return float(self.integral(power, 0.0, np.zeros(1), center=center)[0])

    @cached_property
    def angles(self) -> tuple[float, ...]:
        """The angles phi that a path may have so that theta, its height over s^2, stays below the limit."""
        return tuple(angle for angle in _ANGLES if angle * self.width / self.noise**2 < 1.4)

    def lift(self, angle: float) -> float:
        """How much the density may gain off the real line, as a logarithm."""
        return (angle * self.width / self.noise) ** 2 / 2

    @cached_property
    def _cells(self) -> _Cells:
        """The cells over which upper sums are taken: between neighboring points, and above all cuts wider ones, up to
        where the frequency's effect no longer matters."""
        x = self.x
        if self.below is None:
            end = math.hypot(float(x[-1]), self.noise * math.sqrt(2 * self.slant))
            x = np.concatenate([x, np.linspace(float(x[-1]), end, 80)[1:]])
        tails = ndtr(-np.abs(x) / self.noise)
        masses = np.abs(np.diff(tails))
        middle = int(np.searchsorted(x, 0.0)) - 1
        if 0 <= middle < len(masses):
            masses[middle] = 1 - tails[middle] - tails[middle + 1]
        least = np.minimum(np.abs(x[:-1]), np.abs(x[1:]))
        log_mass = np.where(
            masses > 1e-290, np.log(np.maximum(masses, 1e-290)), log_ndtr(-least / self.noise)
        )
        return _Cells(x, log_mass, log_ratio(x, self.noise, self.rate))

    @cached_property
    def _weight(self) -> Reals:
        """The weight of the sampled part at the ends of the cells."""
        return sampled_weight(self._cells.x, self.noise, self.rate)

    @remembered
    def _argument(self, angle: float) -> Reals:
        """arg r on Im x = angle b, at the ends of the cells."""
        theta = angle * self.width / self.noise**2
        return argument(self._cells.x, theta, self.noise, self.rate)

    @remembered
    def _shares(self, angle: float) -> _Shares:
        """The shares of the cells on the line Im x = angle b."""
        found, fall, left = np.zeros(len(self._cells.x) - 1), 0.0, 0.0
        for cut, above in ((self.below, False), (self.above, True)):
            if cut is None:
                continue
            v = between((self._cells.x - cut) / self.width, -LEFT - 0.2, 100.0)
            falling = np.exp(-v)
            log_size, turn = v - falling * math.cos(angle), angle + falling * math.sin(angle)
            size, cosine = (
                np.exp(log_size),
                np.where(turn < math.pi, np.cos(np.minimum(turn, math.pi)), -1.0),
            )
            # The cosine is least at the left end of a cell.
            least = np.where(cosine[:-1] > 0, -size[:-1] * cosine[:-1], -size[1:] * cosine[:-1])
            if above:
                found = (
                    found + math.log(2.0) + np.minimum(log_size[1:], 0.0) + np.maximum(least, 0.0)
                )
                left = math.log(2.0) + float(log_size[0])
            else:
                found = found + least
                fall = float(size[-1] * max(cosine[-1], 0.0))
        return _Shares(found, left, fall)

    def integral(
        self, power: float, angle: float, slants: Reals, *, center: float | None = None
    ) -> Reals:
        """log of an upper sum of n times the share times r^power e^(slant arg r) on Im x = angle b, without `lift`.

        With a center, of that times (log r - center)^2.
        """
        cells = self._cells
        s2, ratio, shares, arg = (
            self.noise**2,
            self._ratio(power, angle),
            self._shares(angle),
            self._argument(angle),
        )
        theta = angle * self.width / s2
        lifted = cells.log_mass + power * (ratio[1:] if power > 0 else ratio[:-1]) + shares.log_most
        ends = power * float(ratio[0]), power * float(ratio[-1])
        tails = np.array(
            [self._tails(power, ends, shares, slant * theta) for slant in slants.tolist()]
        )
        if center is not None:
            away = np.abs(ratio - center)
            lifted = lifted + 2 * np.log(np.maximum(np.maximum(away[1:], away[:-1]), 1e-300))
            tails = tails * 4 * (float(away[-1]) ** 2 + float(away[0]) ** 2 + 1 / s2)
        if float(slants.max()) >= 0:
            pairs = zip(slants.tolist(), tails.tolist(), strict=True)
            return 1e-9 + np.array(
                [_log_sum(lifted + slant * arg[1:], tail) for slant, tail in pairs]
            )
        top = float(lifted.max())
        decay = np.exp(slants[:, None] * (arg[:-1] * (1 - 1e-12)))
        with np.errstate(divide="ignore"):
            return (
                top
                + np.log(decay @ np.exp(lifted - top) + tails * math.exp(min(-top, 700.0)))
                + 1e-9
            )

    @property
    def ends(self) -> Reals:
        """The ends of the cells."""
        return self._cells.x

    def beyond(self, power: float, angle: float) -> float:
        """A bound on the integral beyond the cells without a slant, without `lift`."""
        ratio = self._ratio(power, angle)
        return self._tails(
            power, (power * float(ratio[0]), power * float(ratio[-1])), self._shares(angle), 0.0
        )

    def _ratio(self, power: float, angle: float) -> Reals:
        """log of a bound on |r| at the ends of the cells: from above for a positive power, from below for others."""
        cells = self._cells
        if not power < 0:
            return cells.ratio
        # |r(x + i theta s^2)| rises with x as well: its square is r^2 (1 - 4 w (1 - w) sin^2(theta / 2)).
        weight, theta = self._weight, angle * self.width / self.noise**2
        return cells.ratio + 0.5 * np.log1p(-4 * weight * (1 - weight) * math.sin(theta / 2) ** 2)

    def _tails(
        self, power: float, ends: tuple[float, float], shares: _Shares, slant: float
    ) -> float:
        """A bound on the integral beyond the cells, where log |r^power| is `ends`; infinite if unknown."""
        cells, s = self._cells, self.noise
        low, high = float(cells.x[0]), float(cells.x[-1])
        # The argument rises with x, and beyond the left end is at most w sin theta / (1 - w) <= 2 w theta; the slope of
        # log |r| is at most 2 w / s^2 there.
        weight = min(2 * float(self._weight[0]), 1.0)
        log_left = ends[0] - 0.5 * (low / s) ** 2 + max(slant, 0.0) * weight
        log_right = ends[1] - 0.5 * (high / s) ** 2 + max(slant, 0.0) - shares.fall
        left, right = low + max(-power, 0.0) * weight, max(power, 0.0) - high
        if self.above is not None and low > self.above - 7 * self.width:
            log_left += shares.log_left
            left = min(left, 0.0) - s**2 / self.width
        return _falling(log_left, left / s) + _falling(
            log_right, right / s - shares.fall * s / self.width
        )


class _Shares(NamedTuple):
    """Logarithms of bounds on the modulus of the share in each cell and, above a cut, at the left end; b times how fast
    it falls at the right end."""

    log_most: Reals
    log_left: float
    fall: float


class _Cells(NamedTuple):
    """The ends of cells, the log of the probability of each, and log r at their ends."""

    x: Reals
    log_mass: Reals
    ratio: Reals


def _falling(log_first: float, slope: float) -> float:
    """The integral of e^(log_first + slope v) / sqrt(2 pi) over v > 0; infinite where it does not fall."""
    return math.exp(log_first) / -slope if slope < 0 and log_first < 700 else math.inf


def _log_sum(exponents: Reals, more: float) -> float:
    """log of the sum of e^exponents and of one further exponential."""
    total = log_sum_exp(exponents)
    return (
        math.inf
        if not more < math.inf
        else float(np.logaddexp(total, math.log(more)))
        if more > 0
        else total
    )


ANGLE, INNER, OUTER = 0.75, 0.15, 1.35
"""The path, and the edges of the strip around it."""
_FAINT = 60.0


class _ShiftedLine(NamedTuple):
    """The path at its points: log of the weight and share, log |r|, arg r, and units of roundoff of the last two.

    `units` are those of the weight, `slanted` those of log r, absolute.
    """

    log_weight: Complexes
    ratio: Reals
    argument: Reals
    units: Reals
    slanted: Reals


@dataclass(frozen=True)
class ShiftedPath:
    """The path Im x = ANGLE width of one piece.

    Args:
        moduli: The piece, and its moduli.
        ulps: How many units of roundoff the noise may be off.
        depth: -log of what the step may leave out.
    """

    moduli: Moduli
    ulps: int
    depth: float

    @cached_property
    def step(self) -> float:
        """The distance of the points."""
        return float(
            shortened(np.array(2 * math.pi * (OUTER - ANGLE) * self.moduli.width / self.depth))
        )

    @cached_property
    def _path(self) -> _ShiftedLine:
        piece = self.moduli
        s, rate, low, high = piece.noise, piece.rate, float(piece.ends[0]), float(piece.ends[-1])
        x, s2, height = positions(low, high, self.step), s * s, ANGLE * piece.width
        theta = height / s2
        ratio, argument = on_shifted(s, rate, x, theta)
        square, plain = x * x / (2 * s2), log_ratio(x, s, rate)
        norm = math.log(self.step / s) - 0.5 * math.log(2 * math.pi) + height * height / (2 * s2)
        log_weight = (norm - square) - 1j * (x * theta)
        wide = 4 + 2 * self.ulps
        units = 16 + wide * (2 + abs(norm) + square + np.abs(x) * theta)
        if piece.below is not None:
            height_below, off = self._height(x, piece.below)
            log_weight, units = (
                log_weight - np.exp(height_below),
                units + np.exp(height_below.real) * off,
            )
        if piece.above is not None:
            height_above, off = self._height(x, piece.above)
            # 1 - e^-w is w where w is small, and 1 where it is large; w > 0 has no zero between. Its logarithm moves by
            # at most about as much as log w does.
            size = np.exp(between(height_above.real, -30.0, 6.0)) * np.exp(1j * height_above.imag)
            sampled_weight = np.where(
                height_above.real < -30, height_above, np.log(-np.expm1(-size))
            )
            sampled_weight = np.where(height_above.real > 6, 0.0, sampled_weight)
            log_weight, units = log_weight + sampled_weight, units + 4 * off
        # The weight of the sampled part is good to so many units of itself, and log r to as many of its size.
        z = np.abs(2 * x - 1) / (2 * s2)
        slant = (64 + 2 * wide * (1 + z + theta) + 16 * abs(math.log(rate))) / np.exp(
            np.minimum(plain, 0.0)
        )
        slanted = slant * (np.abs(plain) + np.abs(ratio - plain) + argument)
        return _ShiftedLine(log_weight, ratio, argument, units, slanted)

    def _height(self, x: Reals, cut: float) -> tuple[Complexes, Reals]:
        """log w at a cut, and by how many units of roundoff it may be off."""
        v = between((x - cut) / self.moduli.width, -LEFT - 0.2, 100.0)
        falling = np.exp(-v)
        turned = v + 1j * ANGLE - falling * complex(math.cos(ANGLE), -math.sin(ANGLE))
        return turned, (1 + falling) * (2 * np.abs(v) + 16)

    def line(self, power: float, frequencies: Reals, sign: float) -> Line:
        """log E of the share times r^(power + i sign u), u >= 0 increasing."""
        found: Line | None = None
        while len(frequencies):
            count = int((frequencies <= 2 * frequencies[0]).sum())
            part = self._octave(power, frequencies[:count], sign)
            found, frequencies = part if found is None else joined(found, part), frequencies[count:]
        assert found is not None
        return found

    def _octave(self, power: float, frequencies: Reals, sign: float) -> Line:
        """`line` at frequencies of which the last is at most twice the first."""
        path, first = self._path, float(frequencies[0])
        exponent = path.log_weight.real + power * path.ratio
        faded = exponent - first * path.argument
        top = float(faded.max())
        keep = faded > top - _FAINT
        if not keep.any():  # beyond floats, or so large that its digits are, nothing is known
            return Line(
                np.zeros(len(frequencies), dtype=np.complex128), np.full(len(frequencies), math.inf)
            )
        log_weight, ratio, argument, units, slanted = (each[keep] for each in path)
        size = np.exp(exponent[keep] - top - first * argument)
        phase = log_weight.imag + power * argument + first * ratio
        rate = 1j * ratio - argument
        value = exponential_sums(
            frequencies - first, size * (np.cos(phase) + 1j * np.sin(phase)), rate
        )
        errors = (
            units
            + (abs(power) + 2 * first) * (slanted + 20 * np.abs(rate))
            + 4 * len(size)
            + 96
            + 4 * abs(top)
        )
        error = float((size * U * errors).sum()) * 1.001 + len(keep) * math.exp(-_FAINT)
        error += self._left_out(power, first) * math.exp(-top) if top > -700 else math.inf
        line = logarithm_of_excess(
            value.real - 1, sign * value.imag, np.full(len(frequencies), error)
        )
        return Line(line.log + top, line.error + 8 * U * (1 + abs(top)))

    def _left_out(self, power: float, first: float) -> float:
        """A bound on the part of E r^(power + iu) that lies between the points of the path or beyond them, for all u
        from a frequency on."""
        slant, piece = np.array([-first]), self.moduli
        edges = [
            float(piece.integral(power, angle, slant)[0]) + piece.lift(angle)
            for angle in (INNER, OUTER)
        ]
        strip = math.expm1(2 * math.pi * (OUTER - ANGLE) * piece.width * (1 - 8 * U) / self.step)
        return sum(map(exp_or_inf, edges)) / strip + piece.beyond(power, ANGLE) * math.exp(
            piece.lift(ANGLE)
        )
