"""Exponential sums E[r^p - 1 - p (r - 1)] over weighted points, at complex powers p, without cancellation.

A ratio r = 1 + y of two measures with E y = 0 under the weights has E[r^p] - 1 = E[r^p - 1 - p y]: for real p outside
[0, 1] every term has one sign and is O(y^2), so a sum close to 1 keeps its distance from 1. That is what lets a power
of 10^9 keep its digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import cast

import numpy as np

from dpcompose.numerics.elementary import (
    ULPS,
    Complexes,
    Reals,
    U,
    exp_minus_linear,
    log_one_plus,
    sine_minus_linear,
)
from dpcompose.numerics.transform import Line

_CHUNK = 1 << 18
_CAREFUL, _MANY = 64, 256


@dataclass(frozen=True)
class Points:
    """Weighted points: weight w = e^log_weight, log-ratio, and deficit w (y - log(1 + y)) for the ratio 1 + y.

    Args:
        log_weight: log w, shape (n,).
        ratio: log r, finite, shape (n,).
        deficit: w (r - 1 - log r) >= 0, shape (n,).
        fuzz: A bound on the relative error of w and of the deficit, and on the error of log r relative to itself, shape
            (n,).
    """

    log_weight: Reals
    ratio: Reals
    deficit: Reals
    fuzz: Reals

    def moments(self, power: float, *, sign: float = 1.0) -> tuple[float, float, float]:
        """log E r^p and its first two derivatives along `sign` p, planning quality."""
        exponent = self.log_weight + power * self.ratio
        top = float(np.max(exponent))
        if top < 600:
            weight = np.exp(self.log_weight)
            tilted = np.exp(exponent)
            linear = weight * (1 + power * self.ratio) + power * self.deficit
            excess = float(
                np.sum(
                    np.where(
                        np.abs(power * self.ratio) < 1e-4,
                        0.5 * weight * (power * self.ratio) ** 2 - power * self.deficit,
                        tilted - linear,
                    )
                )
            )
            mass, log_mass = 1 + excess, math.log1p(excess) if excess > -1 else math.nan
        else:
            tilted = np.exp(exponent - top)
            mass = float(np.sum(tilted))
            log_mass = top + math.log(mass)
        first = float(tilted @ self.ratio) / mass
        second = float(tilted @ (self.ratio - first) ** 2) / mass
        return log_mass, sign * first, second

    def log_moments(self, powers: Reals) -> Reals:
        """log E r^p at many real powers, planning quality."""
        shifted = np.multiply.outer(powers, self.ratio)
        exponent = self.log_weight + shifted
        top: Reals = np.max(exponent, axis=1)
        weight = np.exp(self.log_weight)
        flat = np.abs(shifted) < 1e-4
        tilted = np.exp(exponent - np.maximum(top, 0.0)[:, None])
        linear = weight * (1 + shifted) + np.multiply.outer(powers, self.deficit)
        excess: Reals = np.sum(
            np.where(flat, 0.5 * weight * shifted**2 - np.multiply.outer(powers, self.deficit), tilted - linear), axis=1
        )
        return np.where(
            top < 0.5,
            np.log1p(np.maximum(excess, -0.999)),
            top + np.log(np.sum(np.exp(exponent - top[:, None]), axis=1)),
        )

    def line(
        self,
        power: float,
        frequencies: Reals,
        *,
        sign: float,
        drift: float = 0.0,
        mass: float = 1.0,
        outside: Reals | float = 0.0,
        careful: int = _CAREFUL,
    ) -> Line:
        """log of (mass + sum of w (r^p - 1 - p y) + t drift) / mass at p = power + i sign u, t = (p - [sign > 0]) sign.

        Args:
            power: Real part of p, outside [0, 1].
            frequencies: u >= 0, shape (m,).
            sign: 1 if p = t + 1, -1 if p = -t.
            drift: What is left linear in t when the two measures put different mass outside their common support.
            mass: The mass that makes the transform 1 at t = 0.
            outside: A bound on what the points leave out of the sum (quadrature, truncation), in units of the largest
                term if that is above 1, shape (m,) or a float.
            careful: How many of the first frequencies keep their distance from 1; many later ones only their size.
        """
        exponent = self.log_weight + power * self.ratio
        if float(np.max(exponent)) > 3.0:
            return self._steep(exponent, power, frequencies, sign, mass, outside)
        if len(frequencies) > max(_MANY, careful):
            rest = np.broadcast_to(outside, frequencies.shape)
            first = self.line(power, frequencies[:careful], sign=sign, drift=drift, mass=mass, outside=rest[:careful])
            far = self._steep(exponent, power, frequencies[careful:], sign, mass, rest[careful:])
            return Line(np.concatenate([first.log, far.log]), np.concatenate([first.error, far.error]))
        order = power - 1 if sign > 0 else -power
        weight, tilted = np.exp(self.log_weight), np.exp(exponent)
        shifted = power * self.ratio
        curved = np.where(
            shifted < 1, weight * exp_minus_linear(np.minimum(shifted, 1.0)), tilted - weight * (1 + shifted)
        )
        rise = np.where(shifted < 1, weight * np.expm1(np.minimum(shifted, 1.0)), tilted - weight)
        base = curved - power * self.deficit
        doubt = U * (len(weight) + 40 + 2 * ULPS + 2 * (np.abs(self.log_weight) + np.abs(shifted)))
        doubt = doubt + 3 * self.fuzz * (1 + np.abs(shifted))
        flat = np.where(
            np.abs(shifted) <= 1e-2, 0.0, 16 * U * (weight * np.abs(shifted) + np.where(shifted < 1, 0.0, tilted))
        )
        constant = float(np.sum(doubt * (np.abs(curved) + abs(power) * self.deficit) + flat))
        moving = bool(frequencies[-1] > 0) if len(frequencies) else False
        lost = constant + (
            self._angular(doubt, tilted + weight, np.abs(rise), frequencies) if moving else 0.0 * frequencies
        )
        lost = lost + outside * math.exp(max(float(np.max(exponent)), 0.0))
        lost = lost + 4 * U * abs(drift) * (order + frequencies)
        sum_base, sum_deficit = float(np.sum(base)), float(np.sum(self.deficit))
        real, imaginary = np.full(len(frequencies), sum_base), np.zeros(len(frequencies))
        chunk = max(1, _CHUNK // len(weight))
        for at in range(0, len(frequencies) if moving else 0, chunk):
            u = frequencies[at : at + chunk]
            angle = np.multiply.outer(u, self.ratio)
            sine, cosine = np.sin(angle / 2), np.cos(angle / 2)
            real[at : at + chunk] = sum_base - 2 * ((sine * sine) @ tilted)
            imaginary[at : at + chunk] = (
                2 * ((sine * cosine) @ rise) + sine_minus_linear(angle) @ weight - u * sum_deficit
            )
        x = (real + order * drift) / mass
        y = (sign * imaginary + frequencies * drift) / mass
        return _logarithm(x, y, lost / mass)

    def _angular(self, doubt: Reals, mass: Reals, rise: Reals, frequencies: Reals) -> Reals:
        """The doubt about what depends on the angle u log r: of second order where it is below 2, else the mass."""
        size = np.abs(self.ratio)
        order = np.argsort(size)
        size, doubt, mass, rise = size[order], doubt[order], mass[order], rise[order]
        before = np.zeros((2, len(size) + 1))
        before[:, 1:] = np.cumsum([4 * doubt * mass * size * size, doubt * rise * size], axis=1)
        after = np.zeros((2, len(size) + 1))
        after[:, :-1] = np.cumsum(np.array([12 * doubt * mass, 4 * doubt * mass * size])[:, ::-1], axis=1)[:, ::-1]
        cut = np.searchsorted(size, 2.0 / np.maximum(frequencies, 1e-300))
        second, first = before[:, cut]
        flat, slanted = after[:, cut]
        linear = float(np.sum(doubt * self.deficit[order]))
        return second * frequencies**2 + (first + slanted + linear) * frequencies + flat

    def _steep(
        self, exponent: Reals, power: float, frequencies: Reals, sign: float, mass: float, outside: Reals | float
    ) -> Line:
        """The same where E r^p is far from 1, so that 1 + p y does not matter to it: a plain scaled sum."""
        top = float(np.max(exponent))
        tilted = np.exp(exponent - top)
        doubt = (
            U
            * (
                4 * len(exponent)
                + 104
                + 2 * ULPS
                + 2 * (np.abs(self.log_weight) + np.abs(power * self.ratio) + abs(top))
            )
            + (1 + abs(power) * np.abs(self.ratio)) * self.fuzz
        )
        constant = float(np.sum(doubt * tilted))
        linear = float(np.sum(doubt * tilted * np.abs(self.ratio)))
        lost = constant + frequencies * linear + outside * math.exp(-min(top, 0.0))
        value = exponential_sums(frequencies, tilted, sign * 1j * self.ratio)
        line = _logarithm(value.real - 1, value.imag, lost)
        shift = top - math.log(mass)
        return Line(line.log + shift, line.error + 8 * U * (abs(top) + 1))


def careful_nodes(times: float) -> int:
    """How many nodes of a power are worth keeping their distance from 1: the error of one copy counts `times` times."""
    return _CAREFUL if times <= 1000 else 1 << 14


def exponential_sums(frequencies: Reals, amplitude: Complexes | Reals, rate: Complexes) -> Complexes:
    """The sums over j of amplitude[j] e^(u rate[j]), Re rate <= 0, at each frequency u.

    Many equidistant frequencies are split as u = u_block + u_within, so that only their square root of exponentials is
    taken and a matrix product does the rest. Error: at most (4 n + 64 + 16 u |rate|) U times the sum of the moduli,
    either way.
    """
    count = len(frequencies)
    if count > _MANY and bool(np.all(np.diff(frequencies) == frequencies[1] - frequencies[0])):
        block = math.isqrt(count)
        within = np.exp(np.multiply.outer(rate, frequencies[:block] - frequencies[0]))
        blocks = np.exp(np.multiply.outer(frequencies[::block], rate)) * amplitude
        return cast("Complexes", blocks @ within).ravel()[:count]
    value = np.empty(count, dtype=np.complex128)
    chunk = max(1, _CHUNK // len(rate))
    for at in range(0, count, chunk):
        value[at : at + chunk] = np.exp(np.multiply.outer(frequencies[at : at + chunk], rate)) @ amplitude
    return value


def _logarithm(x: Reals, y: Reals, lost: Reals) -> Line:
    """log(1 + x + iy), x + iy known to within `lost`; where it may vanish, a bound on its modulus and error log 3."""
    log = log_one_plus(x, y)
    modulus = np.exp(log.real)
    relative = lost / np.maximum(modulus, 1e-300)
    error = 2 * relative + 32 * U * np.minimum(np.hypot(x, y) / np.maximum(modulus, 1e-300), 1 + np.abs(log))
    blurred = relative > 0.25
    if blurred.any():
        log = np.where(blurred, np.log(modulus + 2 * lost) + 0j, log)
        error = np.where(blurred, math.log(3.0), error)
    return Line(log, error)


def logarithm_of_excess(x: Reals, y: Reals, lost: Reals) -> Line:
    """log(1 + x + iy) as a `Line`, for x + iy known to within `lost`."""
    return _logarithm(x, y, lost)
