"""Exponential sums E[r^p - 1 - p (r - 1)] over weighted points at complex powers p, without
cancellation.

A ratio r = 1 + y of two measures with E y = 0 under the weights has E[r^p] - 1 = E[r^p - 1 - p y].
For real p outside [0, 1] all terms of this sum have the same sign and are O(y^2), so a moment close
to 1 has a small relative error in its difference from 1. This keeps 10^9-th powers of it accurate.

For equally spaced frequencies and many points, the sums are computed as matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from dpcompose.contour.transform import ArrayRows, Cumulants, Line, joined
from dpcompose.numerics import (
    ULPS,
    Complexes,
    Reals,
    U,
    applied,
    exp_minus_linear,
    exponential_sums,
    log_one_plus,
    product,
    row_dots,
    row_sums,
    row_tops,
    sine_minus_linear,
)

_LARGE = 1 << 17
"""The least number of entries for which matrix products are cheaper than single sines."""
Weights = tuple[Reals, Reals, Reals]


def on_grid(ratio: Reals, frequencies: Reals) -> bool:
    """Whether the frequencies are multiples of one step, and rows and nodes so many, that
    `turned_on_grid` saves time.
    """
    if ratio.ndim < 2 or ratio.size * len(frequencies) < _LARGE or len(frequencies) < 9:
        return False
    return bool(np.all(frequencies == frequencies[1] * np.arange(len(frequencies))))


def turned_on_grid(ratio: Reals, weights: Weights, frequencies: Reals) -> tuple[Reals, Reals]:
    """Return the sums of tilted v(a), and of rise sin(a) + weight d(a), with v = 1 - cos and d(a) =
    sin a - a, for a = u log r.

    With u = u_block + u_within the angles are a = A + B, so few sines are computed, and
      v(a) = v(A) + cos(A) v(B) + sin(A) sin(B),   d(a) = d(A) + d(B) - sin(A) v(B) - v(A) sin(B),
      sin(a) = sin(A) - sin(A) v(B) + cos(A) sin(B).
    The terms of v and d are at most 3 min(a^2, 3 + |a|) in absolute value, those of the sine at
    most 2 |a|.

    Args:
        ratio: log r, shape (m, k).
        weights: tilted, rise and weight = tilted - rise, shape (m, k) each.
        frequencies: Multiples of the second frequency, shape (n,).

    Returns:
        Two arrays of shape (m, n).
    """
    tilted, rise, weight = weights
    count = len(frequencies)
    size = math.isqrt(count)
    sine, versed, lag = _wave(frequencies[::size, None] * ratio[:, None, :])
    sine_within, versed_within, lag_within = _wave(frequencies[:size, None] * ratio[:, None, :])
    cosine, slanted = 1 - versed, tilted[:, None, :] * sine
    right = np.swapaxes(versed_within, 1, 2), np.swapaxes(sine_within, 1, 2)
    real = applied(versed, tilted)[..., None] + product(tilted[:, None, :] * cosine, right[0])
    real += product(slanted, right[1])
    whole = (applied(sine, rise) + applied(lag, weight))[..., None] + applied(lag_within, weight)[
        :, None, :
    ]
    leaning = rise[:, None, :] * cosine - weight[:, None, :] * versed
    imaginary = whole - product(slanted, right[0]) + product(leaning, right[1])
    return real.reshape(len(ratio), -1)[:, :count], imaginary.reshape(len(ratio), -1)[:, :count]


def _wave(angle: Reals) -> tuple[Reals, Reals, Reals]:
    """Return sin a, 1 - cos a and sin a - a, accurate for small angles too."""
    half = np.sin(0.5 * angle)
    sine = 2 * half * np.cos(0.5 * angle)
    return sine, 2 * half * half, sine_minus_linear(angle, sine)


# The number of array entries processed in one block.
_CHUNK = 1 << 14
_CAREFUL, _MANY = 64, 256
# If the largest exponent p log r exceeds this, E r^p is not close to 1.
_STEEP = 3.0
# e to the power of this number, times a few thousand, does not overflow.
_LARGEST = 600.0


class _Powers(NamedTuple):
    """r^p at a real power p of all points: p, p log r, log (w r^p), and the largest of these in
    each row.
    """

    power: Reals | float
    shifted: Reals
    exponent: Reals
    top: Reals


@dataclass(frozen=True)
class WeightedPoints(ArrayRows):
    """Weighted points: weight w = e^log_weight, log-ratio log(1 + y), and deficit w (y - log(1 +
    y)) for the ratio 1 + y.

    Several sets of equally many points may be stored as rows; then every shape below starts with
    the number of sets.

    Args:
        log_weight: log w, shape (n,).
        ratio: log r, finite, shape (n,).
        deficit: w (r - 1 - log r) >= 0, shape (n,).
        weight_error: A bound on the relative error of w and of the deficit, shape (n,).
        ratio_error: A bound on the relative error of log r, shape (n,).
    """

    log_weight: Reals
    ratio: Reals
    deficit: Reals
    weight_error: Reals
    ratio_error: Reals

    @cached_property
    def weight(self) -> Reals:
        """The weights, e^log_weight."""
        return np.exp(self.log_weight)

    @cached_property
    def _total_deficit(self) -> Reals:
        """The sum of the deficits, shape (1,)."""
        return row_sums(self.deficit)

    def curve(self, powers: Reals, *, sign: Reals | float = 1.0) -> Cumulants:
        """Return log E r^p and its first two derivatives along `sign` p at many real powers, shape
        (..., m); uncertified.
        """
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
        """Return `curve` if no moment overflows; a moment close to 1 keeps the accuracy of its
        difference from 1.
        """
        ratio, weight = self.ratio, self.weight[..., None, :]
        rise = weight * np.expm1(shifted)
        excess = rise.sum(axis=-1)
        first = applied(rise, ratio) + row_dots(self.weight, ratio)
        second = applied(rise + weight, ratio * ratio)
        return _curve(1 + excess, np.log1p(np.maximum(excess, -0.999)), first, second, sign)

    def _scaled_curve(self, shifted: Reals, sign: Reals | float) -> Cumulants:
        """Return `curve` if moments may overflow."""
        exponent = self.log_weight[..., None, :] + shifted
        top = exponent.max(axis=-1)
        tilted = np.exp(exponent - top[..., None])
        mass = tilted.sum(axis=-1)
        first, second = applied(tilted, self.ratio), applied(tilted, self.ratio * self.ratio)
        return _curve(mass, top + np.log(mass), first, second, sign)

    def positive_curve(self, powers: Reals, *, sign: float) -> Cumulants:
        """Return the logarithm of the sum of w r^p and its derivatives, for any sum of the weights;
        uncertified.
        """
        return self._scaled_curve(powers[..., :, None] * self.ratio[..., None, :], sign)

    def positive_line(
        self, power: float, frequencies: Reals, *, sign: float, omitted: Reals | float
    ) -> Line:
        """Return the logarithm of the sum of w r^p at p = power + i sign u, for any sum of the
        weights; `omitted` is absolute.
        """
        return self._steep(self._powers(power), frequencies, sign, 1.0, omitted)

    def moment_bound(self, power: Reals | float, omitted: Reals) -> tuple[Reals, Reals]:
        """Return an upper bound on the logarithm of the sum of w r^p including omitted points, and
        the part of it that is rounding.

        Both have shape (m, 1); `omitted` as in `line`.
        """
        _, shifted, exponent, top = self._powers(power)
        terms = np.exp(exponent - top)
        total = row_sums(terms)
        relative = self._relative_error(np.abs(shifted))
        error = row_dots(terms, relative) + 8 * U * (1 + np.abs(top)) * total
        # As in `_steep`, an error d <= 1 of an exponent changes its term by at most d + d^2 <= 2 d.
        error = np.where(row_tops(relative) <= 1, error, np.inf)
        most = total + 2 * error + omitted * np.exp(-np.minimum(top, 0.0))
        return top + np.log(most) + 8 * U * (1 + np.abs(top)), 2 * error / total

    def moments(self, power: float, *, sign: float = 1.0) -> tuple[float, float, float]:
        """Return `curve` at one power of one set of points."""
        at = self.curve(np.array([power]), sign=sign)
        return float(at.log_m[0]), float(at.first[0]), float(at.second[0])

    def line(
        self,
        power: Reals | float,
        frequencies: Reals,
        *,
        sign: Reals | float,
        drift: Reals | float = 0.0,
        mass: Reals | float = 1.0,
        omitted: Reals | float = 0.0,
        careful: int = _CAREFUL,
        plain: bool = False,
    ) -> Line:
        """Return log of (mass + sum of w (r^p - 1 - p y) + t drift) / mass at p = power + i sign u,
        with t = (p - [sign > 0]) sign.

        Args:
            power: The real part of p, outside [0, 1]; for each row, shape (m, 1), or one for all.
            frequencies: The imaginary parts u >= 0, shape (m,).
            sign: 1 if p = t + 1, -1 if p = -t; for each row or one for all.
            drift: The term linear in t, from different masses of the two measures outside their
                common support; for each row or one for all.
            mass: The mass that makes the transform 1 at t = 0; for each row or one for all.
            omitted: A bound on the part of the sum that the points omit (quadrature, truncation),
                in units of the largest term if that is above 1, shape (m,) or a float.
            careful: The number of leading frequencies at which 1 - M keeps its relative accuracy;
                at many later ones only M does.
            plain: Without drift: allow an error of a few units of roundoff times |log r|. It is
                cheaper and suffices for powers up to about 10^8, since the error of so many copies
                grows like the root of their number.
        """
        at = self._powers(power)
        _, shifted, exponent, top = at
        if float(top.min()) > _STEEP:
            return self._steep(at, frequencies, sign, mass, omitted)
        if float(top.max()) > _STEEP:
            steep = top[..., 0] > _STEEP
            log = np.empty((len(steep), len(frequencies)), dtype=np.complex128)
            error, omitted = np.empty(log.shape), np.broadcast_to(omitted, log.shape)
            for rows in (steep, ~steep):
                one = self[rows].line(
                    _part(power, rows),
                    frequencies,
                    sign=_part(sign, rows),
                    drift=_part(drift, rows),
                    mass=_part(mass, rows),
                    omitted=omitted[rows],
                    careful=careful,
                    plain=plain,
                )
                log[rows], error[rows] = one.log, one.error
            return Line(log, error)
        if len(frequencies) > max(_MANY, careful):
            omitted = np.broadcast_to(omitted, (*self.ratio.shape[:-1], len(frequencies)))
            near, far = frequencies[:careful], frequencies[careful:]
            first = self.line(
                power,
                near,
                sign=sign,
                drift=drift,
                mass=mass,
                omitted=omitted[..., :careful],
                plain=plain,
            )
            last = self._steep(at, far, sign, mass, omitted[..., careful:])
            return joined(first, last)
        if plain:
            return self._plain(at, frequencies, sign, omitted)
        order = np.where(np.greater(sign, 0), power - 1, -power)
        weight, tilted = self.weight, np.exp(exponent)
        curved, rise, flat = _curved(shifted, weight, tilted)
        relative = self._relative_error(np.abs(shifted))
        error = row_dots(relative, np.abs(curved) + abs(power) * self.deficit) + row_sums(flat)
        error = (
            error
            + omitted * np.exp(np.maximum(top, 0.0))
            + 4 * U * abs(drift) * (order + frequencies)
        )
        real: Reals = row_sums(curved - power * self.deficit)
        imaginary: Reals | float = 0.0
        if len(frequencies) and frequencies[-1] > 0:
            error = error + self._angular(relative, tilted + weight, np.abs(rise), frequencies)
            turned, imaginary = self._rotated(tilted, rise, weight, frequencies)
            real = real - turned
        x = (real + order * drift) / mass
        y = (sign * imaginary + frequencies * drift) / mass
        return logarithm_of_excess(x, y, error / mass)

    def _powers(self, power: Reals | float) -> _Powers:
        shifted = power * self.ratio
        exponent = self.log_weight + shifted
        return _Powers(power, shifted, exponent, row_tops(exponent))

    def _plain(
        self, at: _Powers, frequencies: Reals, sign: Reals | float, omitted: Reals | float
    ) -> Line:
        """Return the same sums without series for small logarithms; cancellation leaves an error of
        a few unit roundoffs times |log r| for each point.
        """
        power, shifted, exponent, top = at
        tilted, weight = np.exp(exponent), self.weight
        wide, size = np.abs(shifted), np.abs(self.ratio)
        if float(shifted.max()) < 30:
            rise, rounded = weight * np.expm1(shifted), weight * wide
        else:
            rise = np.where(
                shifted < 1, weight * np.expm1(np.minimum(shifted, 1.0)), tilted - weight
            )
            rounded = weight * wide + np.where(shifted < 1, 0.0, tilted)
        curved, relative = rise - weight * shifted, self._relative_error(wide)
        error = row_dots(relative, np.abs(curved) + abs(power) * self.deficit) + 16 * U * row_sums(
            rounded
        )
        error = error + omitted * np.exp(np.maximum(top, 0.0))
        real: Reals = row_sums(curved) - power * self._total_deficit
        if not len(frequencies) or frequencies[-1] == 0:
            return logarithm_of_excess(real, np.zeros_like(error), error)
        error = error + self._angular(relative, tilted + weight, np.abs(rise), frequencies)
        if not on_grid(self.ratio, frequencies):
            error = error + frequencies * (20 * U * row_dots(weight, size))
        turned, imaginary = self._rotated(tilted, rise, weight, frequencies, _difference)
        return logarithm_of_excess(real - turned, sign * imaginary, error)

    def _relative_error(self, shifted: Reals) -> Reals:
        """Return a bound on the relative error of w, of r^p at a real power, and of their sum over
        the points.
        """
        relative = U * (shifted.shape[-1] + 40 + 2 * ULPS + 2 * (np.abs(self.log_weight) + shifted))
        return relative + 3 * (self.weight_error + self.ratio_error * (1 + shifted))

    def _rotated(
        self,
        tilted: Reals,
        rise: Reals,
        weight: Reals,
        frequencies: Reals,
        lag: Callable[[Reals, Reals], Reals] = sine_minus_linear,
    ) -> tuple[Reals, Reals]:
        """Return the part that the angle u log r subtracts from the real part of the sum, and the
        imaginary part; `lag` returns sin a - a for angles a and their sines.
        """
        if on_grid(self.ratio, frequencies):
            turned, imaginary = turned_on_grid(self.ratio, (tilted, rise, weight), frequencies)
            return turned, imaginary - frequencies * self._total_deficit
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
                applied(sine, rise) + applied(lag(angle, sine), weight) - u * self._total_deficit
            )
        return real, imaginary

    def _angular(self, relative: Reals, mass: Reals, rise: Reals, frequencies: Reals) -> Reals:
        """Return a bound on the error of all terms that depend on the angle a = u log r, as a sum
        of moduli.

        With e the relative error of a point, the parts are at most 4 e mass min(1.3 a^2, 3 + |a|),
        which is of second order or of the size of the mass, and e (rise |a| + deficit u).
        """
        size, errors = np.abs(self.ratio), 4 * relative * mass
        slanting = errors * size
        second = 1.3 * row_dots(slanting, size)
        flat, slanted = 3 * row_sums(errors), row_sums(slanting)
        linear = row_dots(
            relative, (2 if on_grid(self.ratio, frequencies) else 1) * rise * size + self.deficit
        )
        return (
            np.minimum(second * frequencies**2, flat + slanted * frequencies) + linear * frequencies
        )

    def _steep(
        self,
        at: _Powers,
        frequencies: Reals,
        sign: Reals | float,
        mass: Reals | float,
        omitted: Reals | float,
    ) -> Line:
        """Return the same line where E r^p is not close to 1, so that the term 1 + p y is
        negligible: a plain scaled sum.
        """
        power, shifted, exponent, top = at
        size, shifted = np.abs(self.ratio), np.abs(shifted)
        tilted = np.exp(exponent - top)
        relative = U * (
            4 * exponent.shape[-1]
            + 104
            + 2 * ULPS
            + 2 * (np.abs(self.log_weight) + shifted + np.abs(top))
        )
        relative = relative + self.weight_error + (1 + abs(power) * size) * self.ratio_error
        # An error d of an exponent changes its term by a factor e^d, at most 1 + d + d^2 for d <=
        # 1; at orders beyond 1 / ratio_error there is no bound.
        known = row_tops(relative) <= 1
        relative = relative * (1 + relative) * tilted
        error = row_sums(relative) + frequencies * row_sums(relative * size)
        error = error + omitted * np.exp(-np.minimum(top, 0.0))
        value = exponential_sums(frequencies, tilted, sign * 1j * self.ratio)
        line = logarithm_of_excess(value.real - 1, value.imag, error)
        error = line.error + 8 * U * (np.abs(top) + 1)
        return Line(line.log + (top - np.log(mass)), np.where(known, error, np.inf))


def _difference(angle: Reals, sine: Reals) -> Reals:
    """Return sin a - a, accurate to a few units of its own, stored in the array of the angles."""
    return np.subtract(sine, angle, out=angle)


def _part(each: Reals | float, rows: Any) -> Reals | float:
    return each[rows] if isinstance(each, np.ndarray) else each


def _curve(
    mass: Reals, log_mass: Reals, first: Reals, second: Reals, sign: Reals | float
) -> Cumulants:
    first = first / mass
    return Cumulants(log_mass, sign * first, np.maximum(second / mass - first * first, 1e-300))


def _curved(shifted: Reals, weight: Reals, tilted: Reals) -> tuple[Reals, Reals, Reals]:
    """Return w (e^s - 1 - s), w (e^s - 1), and a bound on the additional error of the first where
    |s| > 0.01.
    """
    wide = np.abs(shifted)
    if float(shifted.max()) < 1:
        curved, rise = weight * exp_minus_linear(shifted), weight * np.expm1(shifted)
        return curved, rise, np.where(wide <= 1e-2, 0.0, 16 * U * weight * wide)
    low, near = np.minimum(shifted, 1.0), shifted < 1
    curved = np.where(near, weight * exp_minus_linear(low), tilted - weight * (1 + shifted))
    rise = np.where(near, weight * np.expm1(low), tilted - weight)
    return (
        curved,
        rise,
        np.where(wide <= 1e-2, 0.0, 16 * U * (weight * wide + np.where(near, 0.0, tilted))),
    )


def careful_nodes(times: float) -> int:
    """Return the number of leading nodes at which the moment generating function M needs relative
    accuracy of 1 - M, given that errors are multiplied by `times`.
    """
    return _CAREFUL if times <= 1000 else 1 << 14


def logarithm_of_excess(x: Reals, y: Reals, error: Reals) -> Line:
    """Return log(1 + x + iy) where x + iy is accurate to `error`; where 1 + x + iy may be 0, a
    bound on its modulus with error log 3.
    """
    log = log_one_plus(x, y)
    modulus = np.exp(log.real)
    if modulus.min(initial=1.0) > 0.25 and error.max(initial=0.0) < 0.0625:
        return Line(log, (1.5 * error + 32 * U * (np.abs(x) + np.abs(y))) / modulus)
    return guarded(x, y, error, log)


def guarded(x: Reals, y: Reals, error: Reals, log: Complexes) -> Line:
    """Return the result of `logarithm_of_excess` entry by entry, given log(1 + x + iy)."""
    size = np.maximum(np.exp(log.real), 1e-300)
    relative = error / size
    spread = np.minimum(np.hypot(x, y) / size, 1 + np.abs(log))
    # |log(1 + z)| <= |z| (1 + 2 |z|) up to |z| = 1/4.
    log_error = relative * (1.01 + 2 * np.minimum(relative, 1.0)) + 32 * U * spread
    vanishing = ~(relative <= 0.25)
    if vanishing.any():
        log = np.where(vanishing, np.log(size + 2 * error) + 0j, log)
        log_error = np.where(vanishing, math.log(3.0), log_error)
    return Line(log, log_error)
