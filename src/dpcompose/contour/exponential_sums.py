"""Exponential sums E[r^p - 1 - p (r - 1)] over weighted points, at complex powers p, without cancellation.

A ratio r = 1 + y of two measures with E y = 0 under the weights has E[r^p] - 1 = E[r^p - 1 - p y]: for real p outside
[0, 1] every term has one sign and is O(y^2), so a sum close to 1 keeps its distance from 1. That is what lets a power
of 10^9 keep its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from dpcompose.contour.transform import Cumulants, Line
from dpcompose.numerics.elementary import (
    ULPS,
    Complexes,
    Reals,
    U,
    exp_minus_linear,
    log_one_plus,
    row_dots,
    row_sums,
    row_tops,
    sine_minus_linear,
)

_CHUNK = 1 << 18
_SERIAL = 1 << 15
_CAREFUL, _MANY = 64, 256
# Above this largest exponent E r^p is far from 1.
_STEEP = 3.0
# e to this and its multiples by a few thousand are floats.
_LARGEST = 600.0


@dataclass(frozen=True)
class Points:
    """Weighted points: weight w = e^log_weight, log-ratio, and deficit w (y - log(1 + y)) for the ratio 1 + y.

    Several sets of as many points each may be held at once, in rows: every shape below then starts with their number.

    Args:
        log_weight: log w, shape (n,).
        ratio: log r, finite, shape (n,).
        deficit: w (r - 1 - log r) >= 0, shape (n,).
        fuzz: A bound on the relative error of w and of the deficit, shape (n,).
        slant: A bound on the error of log r relative to itself, shape (n,).
    """

    log_weight: Reals
    ratio: Reals
    deficit: Reals
    fuzz: Reals
    slant: Reals

    def __getitem__(self, rows: Any) -> Points:
        """Some of the rows."""
        return Points(self.log_weight[rows], self.ratio[rows], self.deficit[rows], self.fuzz[rows], self.slant[rows])

    @cached_property
    def weight(self) -> Reals:
        """e^log_weight."""
        return np.exp(self.log_weight)

    @cached_property
    def _lost(self) -> Reals:
        """The sum of the deficits, shape (1,)."""
        return row_sums(self.deficit)

    def curve(self, powers: Reals, *, sign: Reals | float = 1.0) -> Cumulants:
        """log E r^p and its first two derivatives along `sign` p at many real powers, shape (..., m); for planning."""
        shifted = powers[..., :, None] * self.ratio[..., None, :]
        top = shifted.max(axis=-1)
        if float(top.max()) < _LARGEST:
            return self._curve_from_one(shifted, sign)
        if float(top.min()) >= _LARGEST:
            return self._scaled_curve(shifted, sign)
        small = top < _LARGEST
        near = self._curve_from_one(np.where(small[..., None], shifted, 0.0), sign)
        far = self._scaled_curve(shifted, sign)
        pairs = ((near.log_m, far.log_m), (near.first, far.first), (near.second, far.second))
        return Cumulants(*(np.where(small, one, other) for one, other in pairs))

    def _curve_from_one(self, shifted: Reals, sign: Reals | float) -> Cumulants:
        """`curve` where the moments are within the range of floats: what is close to 1 keeps its distance from it."""
        ratio, weight = self.ratio, self.weight[..., None, :]
        rise = weight * np.expm1(shifted)
        excess = rise.sum(axis=-1)
        first = applied(rise, ratio) + row_dots(self.weight, ratio)
        second = applied(rise + weight, ratio * ratio)
        return _curve(1 + excess, np.log1p(np.maximum(excess, -0.999)), first, second, sign)

    def _scaled_curve(self, shifted: Reals, sign: Reals | float) -> Cumulants:
        """`curve` where the moments may be too large for a float."""
        exponent = self.log_weight[..., None, :] + shifted
        top = exponent.max(axis=-1)
        tilted = np.exp(exponent - top[..., None])
        mass = tilted.sum(axis=-1)
        first, second = applied(tilted, self.ratio), applied(tilted, self.ratio * self.ratio)
        return _curve(mass, top + np.log(mass), first, second, sign)

    def moment_bound(self, power: Reals | float, outside: Reals) -> tuple[Reals, Reals]:
        """An upper bound on log of the sum of w r^p and of what the points leave out, and how much of it is rounding.

        Shape (m, 1) each; `outside` as in `line`.
        """
        shifted = power * self.ratio
        exponent = self.log_weight + shifted
        top = row_tops(exponent)
        terms = np.exp(exponent - top)
        total = row_sums(terms)
        doubt = self._doubt(np.abs(shifted))
        lost = row_dots(terms, doubt) + 8 * U * (1 + np.abs(top)) * total
        lost = np.where(row_tops(doubt) <= 1, lost, np.inf)  # twice as much holds up to there, as in `_steep`
        most = total + 2 * lost + outside * np.exp(-np.minimum(top, 0.0))
        return top + np.log(most) + 8 * U * (1 + np.abs(top)), 2 * lost / total

    def moments(self, power: float, *, sign: float = 1.0) -> tuple[float, float, float]:
        """`curve` at one power of one set."""
        at = self.curve(np.array([power]), sign=sign)
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def line(
        self,
        power: Reals | float,
        frequencies: Reals,
        *,
        sign: Reals | float,
        drift: float = 0.0,
        mass: float = 1.0,
        outside: Reals | float = 0.0,
        careful: int = _CAREFUL,
        plain: bool = False,
    ) -> Line:
        """log of (mass + sum of w (r^p - 1 - p y) + t drift) / mass at p = power + i sign u, t = (p - [sign > 0]) sign.

        Args:
            power: Real part of p, outside [0, 1]; of each row, shape (m, 1), or of all.
            frequencies: u >= 0, shape (m,).
            sign: 1 if p = t + 1, -1 if p = -t; likewise.
            drift: What is left linear in t when the two measures put different mass outside their common support.
            mass: The mass that makes the transform 1 at t = 0.
            outside: A bound on what the points leave out of the sum (quadrature, truncation), in units of the largest
                term if that is above 1, shape (m,) or a float.
            careful: How many of the first frequencies keep their distance from 1; many later ones only their size.
            plain: Without drift: allow an error of a few U |log r|, which is cheaper, and enough for powers up to some
                10^8: what so many copies lose grows like the root of their number.
        """
        shifted = power * self.ratio
        exponent = self.log_weight + shifted
        top = row_tops(exponent)
        if float(top.min()) > _STEEP:
            return self._steep(exponent, top, power, frequencies, sign, mass, outside)
        if float(top.max()) > _STEEP:
            steep = top[..., 0] > _STEEP
            log = np.empty((len(steep), len(frequencies)), dtype=np.complex128)
            error, rest = np.empty(log.shape), np.broadcast_to(outside, log.shape)
            for rows in (steep, ~steep):
                one = self[rows].line(
                    _part(power, rows),
                    frequencies,
                    sign=_part(sign, rows),
                    drift=drift,
                    mass=mass,
                    outside=rest[rows],
                    careful=careful,
                    plain=plain,
                )
                log[rows], error[rows] = one.log, one.error
            return Line(log, error)
        if len(frequencies) > max(_MANY, careful):
            rest = np.broadcast_to(outside, (*self.ratio.shape[:-1], len(frequencies)))
            near, far = frequencies[:careful], frequencies[careful:]
            first = self.line(power, near, sign=sign, drift=drift, mass=mass, outside=rest[..., :careful], plain=plain)
            last = self._steep(exponent, top, power, far, sign, mass, rest[..., careful:])
            return joined(first, last)
        if plain:
            return self._plain(power, frequencies, shifted, exponent, top, sign, outside)
        order = np.where(np.greater(sign, 0), power - 1, -power)
        weight, tilted = self.weight, np.exp(exponent)
        curved, rise, flat = _curved(shifted, weight, tilted)
        doubt = self._doubt(np.abs(shifted))
        lost = row_dots(doubt, np.abs(curved) + abs(power) * self.deficit) + row_sums(flat)
        lost = lost + outside * np.exp(np.maximum(top, 0.0)) + 4 * U * abs(drift) * (order + frequencies)
        real: Reals = row_sums(curved - power * self.deficit)
        imaginary: Reals | float = 0.0
        if len(frequencies) and frequencies[-1] > 0:
            lost = lost + self._angular(doubt, tilted + weight, np.abs(rise), frequencies)
            turned, imaginary = self._turned(tilted, rise, weight, frequencies)
            real = real - turned
        x = (real + order * drift) / mass
        y = (sign * imaginary + frequencies * drift) / mass
        return logarithm_of_excess(x, y, lost / mass)

    def _plain(
        self,
        power: Reals | float,
        frequencies: Reals,
        shifted: Reals,
        exponent: Reals,
        top: Reals,
        sign: Reals | float,
        outside: Reals | float,
    ) -> Line:
        """The same sums without series for small logarithms: what cancels leaves a few U |log r| of a point."""
        tilted, weight = np.exp(exponent), self.weight
        wide, size = np.abs(shifted), np.abs(self.ratio)
        if float(shifted.max()) < 30:
            rise, rounded = weight * np.expm1(shifted), weight * wide
        else:
            rise = np.where(shifted < 1, weight * np.expm1(np.minimum(shifted, 1.0)), tilted - weight)
            rounded = weight * wide + np.where(shifted < 1, 0.0, tilted)
        curved, doubt = rise - weight * shifted, self._doubt(wide)
        lost = row_dots(doubt, np.abs(curved) + abs(power) * self.deficit) + 16 * U * row_sums(rounded)
        lost = lost + outside * np.exp(np.maximum(top, 0.0))
        real: Reals = row_sums(curved) - power * self._lost
        if not len(frequencies) or frequencies[-1] == 0:
            return logarithm_of_excess(real, np.zeros_like(lost), lost)
        lost = lost + self._angular(doubt, tilted + weight, np.abs(rise), frequencies)
        lost = lost + frequencies * (20 * U * row_dots(weight, size))
        turned, imaginary = np.empty(lost.shape), np.empty(lost.shape)
        chunk = max(1, _CHUNK // self.ratio.size)
        for at in range(0, len(frequencies), chunk):
            angle = frequencies[at : at + chunk, None] * self.ratio[..., None, :]
            half = 0.5 * angle
            sine = np.sin(half)
            turned[..., at : at + chunk] = applied(sine * sine, tilted)
            sine *= np.cos(half)
            sine *= 2.0
            angle = np.subtract(sine, angle, out=angle)
            imaginary[..., at : at + chunk] = applied(sine, rise) + applied(angle, weight)
        return logarithm_of_excess(real - 2 * turned, sign * (imaginary - frequencies * self._lost), lost)

    def _doubt(self, shifted: Reals) -> Reals:
        """A bound on the relative error of w and of r^p at a real power, and of their sum over the points."""
        doubt = U * (shifted.shape[-1] + 40 + 2 * ULPS + 2 * (np.abs(self.log_weight) + shifted))
        return doubt + 3 * (self.fuzz + self.slant * (1 + shifted))

    def _turned(self, tilted: Reals, rise: Reals, weight: Reals, frequencies: Reals) -> tuple[Reals, Reals]:
        """What the angle u log r takes from the real part of the sum, and the imaginary part."""
        real = np.empty((*self.ratio.shape[:-1], len(frequencies)))
        imaginary = np.empty(real.shape)
        chunk = max(1, _CHUNK // self.ratio.size)
        for at in range(0, len(frequencies), chunk):
            u = frequencies[at : at + chunk]
            angle = u[:, None] * self.ratio[..., None, :]
            half = 0.5 * angle
            sine, cosine = np.sin(half), np.cos(half)
            real[..., at : at + chunk] = 2 * applied(sine * sine, tilted)
            sine *= cosine
            sine *= 2.0
            imaginary[..., at : at + chunk] = (
                applied(sine, rise) + applied(sine_minus_linear(angle, sine), weight) - u * self._lost
            )
        return real, imaginary

    def _angular(self, doubt: Reals, mass: Reals, rise: Reals, frequencies: Reals) -> Reals:
        """The doubt about what depends on the angle a = u log r, moduli summed.

        A point's is at most 4 doubt mass min(1.3 a^2, 3 + |a|), of second order or of the size of the mass, and
        doubt (rise |a| + deficit u).
        """
        size, loose = np.abs(self.ratio), 4 * doubt * mass
        slanting = loose * size
        second = 1.3 * row_dots(slanting, size)
        flat, slanted = 3 * row_sums(loose), row_sums(slanting)
        linear = row_dots(doubt, rise * size + self.deficit)
        return np.minimum(second * frequencies**2, flat + slanted * frequencies) + linear * frequencies

    def _steep(
        self,
        exponent: Reals,
        top: Reals,
        power: Reals | float,
        frequencies: Reals,
        sign: Reals | float,
        mass: float,
        outside: Reals | float,
    ) -> Line:
        """The same where E r^p is far from 1, so that 1 + p y does not matter to it: a plain scaled sum."""
        size, shifted = np.abs(self.ratio), np.abs(power * self.ratio)
        tilted = np.exp(exponent - top)
        doubt = U * (4 * exponent.shape[-1] + 104 + 2 * ULPS + 2 * (np.abs(self.log_weight) + shifted + np.abs(top)))
        doubt = doubt + self.fuzz + (1 + abs(power) * size) * self.slant
        # An exponent off by d puts its term off by a factor e^d, which is at most 1 + d + d^2 up to d = 1; at orders
        # beyond 1 / slant nothing is known.
        known = row_tops(doubt) <= 1
        doubt = doubt * (1 + doubt) * tilted
        lost = row_sums(doubt) + frequencies * row_sums(doubt * size)
        lost = lost + outside * np.exp(-np.minimum(top, 0.0))
        value = exponential_sums(frequencies, tilted, sign * 1j * self.ratio)
        line = logarithm_of_excess(value.real - 1, value.imag, lost)
        error = line.error + 8 * U * (np.abs(top) + 1)
        return Line(line.log + (top - math.log(mass)), np.where(known, error, np.inf))


def _part(each: Reals | float, rows: Any) -> Reals | float:
    return each[rows] if isinstance(each, np.ndarray) else each


def _curve(mass: Reals, log_mass: Reals, first: Reals, second: Reals, sign: Reals | float) -> Cumulants:
    first = first / mass
    return Cumulants(log_mass, sign * first, np.maximum(second / mass - first * first, 1e-300))


def _curved(shifted: Reals, weight: Reals, tilted: Reals) -> tuple[Reals, Reals, Reals]:
    """w (e^s - 1 - s), w (e^s - 1), and a bound on what s of a size above 0.01 adds to the error of the first."""
    wide = np.abs(shifted)
    if float(shifted.max()) < 1:
        curved, rise = weight * exp_minus_linear(shifted), weight * np.expm1(shifted)
        return curved, rise, np.where(wide <= 1e-2, 0.0, 16 * U * weight * wide)
    low, near = np.minimum(shifted, 1.0), shifted < 1
    curved = np.where(near, weight * exp_minus_linear(low), tilted - weight * (1 + shifted))
    rise = np.where(near, weight * np.expm1(low), tilted - weight)
    return curved, rise, np.where(wide <= 1e-2, 0.0, 16 * U * (weight * wide + np.where(near, 0.0, tilted)))


def joined(first: Line, last: Line) -> Line:
    """Two lines, one after the other."""
    log, error = np.concatenate([first.log, last.log], axis=-1), np.concatenate([first.error, last.error], axis=-1)
    return Line(log, error)


def careful_nodes(times: float) -> int:
    """How many nodes of a power are worth keeping their distance from 1: the error of one copy counts `times` times."""
    return _CAREFUL if times <= 1000 else 1 << 14


def exponential_sums(frequencies: Reals, amplitude: Complexes | Reals, rate: Complexes) -> Complexes:
    """The sums over j of amplitude[j] e^(u rate[j]), Re rate <= 0, at each frequency u; rows as in `Points`.

    Many frequencies on a grid are split as u = u_block + u_within, so that hardly more than their square root of
    exponentials is taken and a matrix product does the rest; empty blocks are left out. Error: at most
    (4 n + 64 + 16 u |rate|) U times the sum of the moduli, either way.
    """
    count = len(frequencies)
    if count > _MANY and bool(np.all(np.diff(frequencies) == frequencies[1] - frequencies[0])):
        block = math.isqrt(count)
        within = np.exp(rate[..., :, None] * (frequencies[:block] - frequencies[0]))
        blocks = np.exp(frequencies[::block, None] * rate[..., None, :]) * amplitude[..., None, :]
        value = blocks @ within
        return value.reshape(*value.shape[:-2], -1)[..., :count]
    places = _on_grid(frequencies) if count > _MANY else None
    if places is not None:
        size, step = math.isqrt(count), frequencies[-1] / places[-1]
        rows, which = np.unique(places // size, return_inverse=True)
        within = np.exp(rate[..., :, None] * (step * np.arange(size)))
        blocks = np.exp((step * size * rows)[:, None] * rate[..., None, :]) * amplitude[..., None, :]
        return (blocks @ within)[..., which, places % size]
    value = np.empty((*rate.shape[:-1], count), dtype=np.complex128)
    chunk = max(1, _CHUNK // rate.size)
    for at in range(0, count, chunk):
        terms = np.exp(frequencies[at : at + chunk, None] * rate[..., None, :])
        value[..., at : at + chunk] = applied(terms, amplitude)
    return value


def _on_grid(frequencies: Reals) -> Any:
    """The frequencies as multiples of their least distance, exactly, if they are that and not too scattered."""
    step = float(np.diff(frequencies).min())
    places = np.rint(frequencies / step) if step > 0 else frequencies
    exact = step > 0 and places[-1] < 1 << 40 and bool(np.all(places * step == frequencies))
    return places.astype(np.int64) if exact else None


def applied(matrix: Any, vector: Any) -> Any:
    """matrix @ vector over the last axes, rows apart; small products do not wake the threads of a BLAS."""
    if matrix.size <= _SERIAL:
        if matrix.dtype == vector.dtype == np.float64:
            return np.vecdot(matrix, vector[..., None, :])
        return np.einsum("...ij,...j->...i", matrix, vector)
    return (matrix @ vector[..., None])[..., 0]


def logarithm_of_excess(x: Reals, y: Reals, lost: Reals) -> Line:
    """log(1 + x + iy), x + iy known to within `lost`; where it may vanish, a bound on its modulus and error log 3."""
    log = log_one_plus(x, y)
    modulus = np.exp(log.real)
    if modulus.min(initial=1.0) > 0.25 and lost.max(initial=0.0) < 0.0625:
        return Line(log, (2 * lost + 32 * U * (np.abs(x) + np.abs(y))) / modulus)
    size = np.maximum(modulus, 1e-300)
    relative = lost / size
    error = 2 * relative + 32 * U * np.minimum(np.hypot(x, y) / size, 1 + np.abs(log))
    blurred = ~(relative <= 0.25)
    return Line(np.where(blurred, np.log(modulus + 2 * lost) + 0j, log), np.where(blurred, math.log(3.0), error))
