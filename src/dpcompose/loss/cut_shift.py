"""Cut pieces of sampled Gaussian losses on a path beside the real line, where a high power does not oscillate.

Over Im x = angle b the integrand of E share r^(p + iu) has modulus n |share| |r|^p e^(-u arg r): what is large is faint
at high frequencies, and so many points are enough at all of them. Its error is absolute, so that it serves few copies.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.contour import Line, joined, logarithm_of_excess
from dpcompose.loss.cut_moduli import LEFT, Moduli
from dpcompose.loss.sampled_gaussian_grid import log_ratio, on_shifted, positions, shortened
from dpcompose.numerics import Complexes, Reals, U, between, exp_or_inf, exponential_sums

ANGLE, INNER, OUTER = 0.75, 0.15, 1.35
"""The path, and the edges of the strip around it."""
_FAINT = 60.0


class _Path(NamedTuple):
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
    def _path(self) -> _Path:
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
            share = np.where(height_above.real < -30, height_above, np.log(-np.expm1(-size)))
            share = np.where(height_above.real > 6, 0.0, share)
            log_weight, units = log_weight + share, units + 4 * off
        # The weight of the sampled part is good to so many units of itself, and log r to as many of its size.
        z = np.abs(2 * x - 1) / (2 * s2)
        slant = (64 + 2 * wide * (1 + z + theta) + 16 * abs(math.log(rate))) / np.exp(
            np.minimum(plain, 0.0)
        )
        slanted = slant * (np.abs(plain) + np.abs(ratio - plain) + argument)
        return _Path(log_weight, ratio, argument, units, slanted)

    def _height(self, x: Reals, cut: float) -> tuple[Complexes, Reals]:
        """log w for a cut, and how many units it may be off."""
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
        """A bound on the part of E r^(power + iu) that the points leave out, from a frequency on."""
        slant, piece = np.array([-first]), self.moduli
        edges = [
            float(piece.integral(power, angle, slant)[0]) + piece.lift(angle)
            for angle in (INNER, OUTER)
        ]
        strip = math.expm1(2 * math.pi * (OUTER - ANGLE) * piece.width * (1 - 8 * U) / self.step)
        return sum(map(exp_or_inf, edges)) / strip + piece.beyond(power, ANGLE) * math.exp(
            piece.lift(ANGLE)
        )
