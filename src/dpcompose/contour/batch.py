"""Many contours with equally many nodes, as rows of arrays: `contour` and `invert` for all rows in
one call.

Every row is summed and iterated independently, so its result does not depend on the other rows.
Complex arrays are multiplied by `np.multiply`: for large temporary arrays numpy swaps the factors
of `*`, which changes the rounding.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np

from dpcompose.contour.contour import kernel_peak, simple_kernel
from dpcompose.contour.transform import ArrayRows
from dpcompose.numerics import Complexes, Reals, U, between, row_dots, row_sums

_MOST_STEPS, _CLOSE = 24, 2e-4
_OFFSETS, _SIDES = (1.25, 4.0), np.array([-1.0, 1.0])[:, None, None]
_EXPONENT = 600.0
_ANGLE_ERROR = 24


@dataclass(frozen=True)
class ContourRows(ArrayRows):
    """m contours of n nodes each, to be summed at one x for each. Formulas and proofs are those of
    `Contour`.

    Args:
        order: The real parts of the lines, shape (m, 1).
        step: The distances of the nodes, shape (m, 1).
        log: log M at the nodes, shape (m, n).
        error: Bounds on the error of `log`, shape (m, n).
        tail: Bounds on the sum over omitted nodes, as multiples of M(order) e^(-order x) step / (2
            pi).
        outer: Orders larger than `order`.
        outer_log: Upper bounds on log M at `outer`.
    """

    order: Reals
    step: Reals
    log: Complexes
    error: Reals
    tail: Reals
    outer: Reals
    outer_log: Reals

    @cached_property
    def _scale(self) -> Reals:
        return self._real[:, :1]

    @cached_property
    def _real(self) -> Reals:
        return self.log.real

    @cached_property
    def _nodes(self) -> tuple[Reals, Complexes, Reals]:
        """The frequencies, the kernel and its modulus."""
        count = self.log.shape[1]
        if len(self.order) == 1:
            return _nodes_of_one(float(self.order[0, 0]), float(self.step[0, 0]), count)
        return _nodes_of(self.order, self.step, count)

    @cached_property
    def _frequency(self) -> Reals:
        return self._nodes[0]

    @cached_property
    def _size(self) -> Reals:
        return np.exp(self._real - self._scale)

    @cached_property
    def _kernel(self) -> Complexes:
        return self._nodes[1]

    @cached_property
    def _cosine(self) -> tuple[Reals, Reals]:
        """The factors of cosine and sine in the terms of the hockey-stick divergence g, shape (m,
        n) each.
        """
        return self._size * self._kernel.real, self._size * self._kernel.imag

    @cached_property
    def _derivatives(self) -> list[tuple[Reals, Reals]]:
        """The factors of cosine and sine in the terms of -g', and of g'', shape (m, n) each."""
        factor = self.order + 1j * self._frequency
        slanted: Complexes = np.multiply(self._kernel, factor)
        bent: Complexes = np.multiply(slanted, factor)
        return [(self._size * each.real, self._size * each.imag) for each in (slanted, bent)]

    def _rotation(self, x: Reals) -> tuple[Reals, Reals]:
        """Return cosine and sine of the phases v at x, with an error of at most `_ANGLE_ERROR` unit
        roundoffs.

        With t = tan(v / 2) they are (1 - t^2) / (1 + t^2) and 2 t / (1 + t^2), so errors of t are
        not amplified.
        """
        tangent = np.tan(0.5 * (self.log.imag - self._frequency * x))
        share = 2 / (1 + tangent * tangent)
        return share - 1, share * tangent

    def _sum(self, factors: tuple[Reals, Reals], rotation: tuple[Reals, Reals]) -> Reals:
        return row_sums(factors[0] * rotation[0] - factors[1] * rotation[1])

    def _unit(self, x: Reals) -> Reals:
        """Return the common factor of the sums at x; NaN where it could overflow or underflow."""
        exponent = self._scale - self.order * x
        return (
            np.where(np.abs(exponent) < _EXPONENT, np.exp(exponent), np.nan)
            * self.step
            / (2 * math.pi)
        )

    def _errors(self, reach: Reals) -> Reals:
        """Return a bound on the error of the sum for all |x| up to `reach`, divided by `_unit`; NaN
        if it is too large.
        """
        relative = self.error + U * (4.5 * np.abs(self.log) + 2 * np.abs(self._scale))
        relative = relative + U * (24 + 3 * reach * self._frequency)
        rounded = np.expm1(np.minimum(relative, 1.0)) + U * (64 + 2 * _ANGLE_ERROR)
        found = row_dots(self._nodes[2] * self._size, np.where(relative < 1, rounded, np.nan))
        return np.where(np.isfinite(found), found * (1 + 1e-9), np.nan)

    def _aliases(self, x: Reals) -> Reals:
        """Return a bound on the aliases: those below x are at most e^(-order W |n|), those above x
        by Chernoff's bound.
        """
        period = 2 * math.pi / self.step * (1 - 4 * U)
        moved = self.outer * x
        chernoff = self.outer_log - moved + kernel_peak(self.outer)
        chernoff = chernoff + U * (8 * np.abs(self.outer_log) + 8 * np.abs(moved) + 64) + 1e-12
        falling = (self.outer - self.order) * period
        return (_geometric(0.0, -self.order * period) + _geometric(chernoff, -falling)) * (
            1 + 1e-12
        )

    def ends(self, x: Reals) -> tuple[Reals, Reals]:
        """Return lower and upper bounds on the hockey-stick divergence g(x), shape (m, 1) each; NaN
        where there is no bound.
        """
        value, around = self._value(x, self._errors(np.abs(x)))
        return value - around - self._aliases(x), value + around

    def upper(self, x: Reals) -> Reals:
        """Return the upper one of `ends` alone."""
        return np.add(*self._value(x, self._errors(np.abs(x))))

    def _value(self, x: Reals, errors: Reals) -> tuple[Reals, Reals]:
        """Return the sum over the nodes at x and its error, but for aliases, which only add to it.

        Args:
            x: Where, shape (m, 1).
            errors: What `_errors` returned for a reach of at least |x|.
        """
        value, unit = self._sum(self._cosine, self._rotation(x)), self._unit(x)
        return value * unit, self._around(x, value, unit, errors)

    def _around(self, x: Reals, value: Reals, unit: Reals, errors: Reals) -> Reals:
        """Return the error of the value by rounding and truncation."""
        shift = U * (4 * np.abs(self._scale) + (6 * self.order + 4) * (np.abs(x) + 1.0) + 24)
        tail = self.tail * np.exp(np.minimum(self.error[:, :1], 1.0))
        found = (errors + shift * (np.abs(value) + errors) + tail) * unit
        return np.where(np.isfinite(found), found, np.nan) * (1 + 1e-12)

    def _root(self, mass: Reals, x: Reals) -> tuple[Reals, Reals]:
        """Return an approximate x with hockey-stick divergence g(x) = mass, and -g' / g at it, by
        Halley's method for log g. A row is left one step after the point that is close enough.

        Args:
            mass: The values of g, in (0, 1), shape (m, 1).
            x: The starting points.
        """
        (found, slopes), left = np.full((2, *x.shape), np.nan), np.arange(len(x))
        low, high, rows = np.full_like(x, -np.inf), np.full_like(x, np.inf), self
        for _ in range(_MOST_STEPS):
            rotation, exponent = rows._rotation(x), rows._scale - rows.order * x
            sums = rows._sum(rows._cosine, rotation)
            slope, bent = (rows._sum(each, rotation) / sums for each in rows._derivatives)
            known, reach = (sums > 0) & (slope > 0), 4.0 / rows.order
            away = np.log(sums * rows.step / (2 * math.pi * mass)) + exponent
            bend = np.maximum(1 + 0.5 * away * (1 - bent / (slope * slope)), 0.5)
            moved = np.where(known, between(away / slope / bend, -reach, reach), -reach)
            arrived, target = known & (np.abs(away) < _CLOSE), x + moved
            found[left], slopes[left] = target, np.where(known, slope, np.nan)
            if arrived.all():
                break
            low, high = np.where(moved > 0, x, low), np.where(moved > 0, high, x)
            inside = (target > low) & (target < high)
            x = np.where(arrived, x, np.where(inside, target, (low + high) / 2))
            if 2 * np.count_nonzero(arrived) >= len(arrived):
                kept = np.flatnonzero(~arrived[:, 0])
                left, rows, mass = left[kept], rows[kept], mass[kept]
                x, low, high = x[kept], low[kept], high[kept]
        return found, slopes

    def solved(self, mass: Reals, x: Reals) -> tuple[Reals, Reals]:
        """Return certified lower and upper bounds on the x with hockey-stick divergence g(x) =
        mass, shape (m, 1) each; NaN where no proof succeeds.

        Args:
            mass: The values of g, in (0, 1), shape (m, 1).
            x: The starting points.
        """
        x, slope = self._root(mass, x)
        unit, spare = self._unit(x), 2**-10 * np.abs(x) + 2**-20
        errors = self._errors(np.abs(x) + spare)
        aliases = self._aliases(x)
        width = (
            self._around(x, mass / unit, unit, errors) + aliases
        ) / mass / slope + 4 * U * np.abs(x)
        width = np.where(_OFFSETS[-1] * width <= spare, width, np.nan)
        lower, upper = np.full_like(x, np.nan), np.full_like(x, np.nan)
        left, rows = np.arange(len(x)), self
        for offset in _OFFSETS:
            away, some = offset * width[left], mass[left]
            ends = x[left] + away * _SIDES
            value, around = rows._value(ends, errors[left])
            # Chernoff's bound on the aliases at the lower end is at most so much larger than at x.
            more = aliases[left] * np.exp(rows.outer * away)
            above, below = value[1] + around[1], value[0] - around[0] - more
            lower[left] = np.where(below >= some, ends[0], lower[left])
            upper[left] = np.where(above <= some, ends[1], upper[left])
            left = left[np.isnan(upper[left] + lower[left])[:, 0]]
            if not len(left):
                break
            rows = self[left]
        return lower, upper


def _nodes_of(
    order: Reals | float, step: Reals | float, count: int
) -> tuple[Reals, Complexes, Reals]:
    frequency = step * np.arange(count, dtype=float).reshape(1, -1)
    kernel = simple_kernel(order, frequency)
    return frequency, kernel, np.abs(kernel)


_nodes_of_one = lru_cache(maxsize=16)(_nodes_of)
"""A growing history asks for both directions of the same line again and again."""


def _geometric(log_first: Reals | float, log_ratio: Reals) -> Reals:
    """Return the sum over n >= 1 of e^(log_first + n log_ratio); infinite if it diverges."""
    exponent = log_first + log_ratio
    return np.where(
        log_ratio < 0, np.exp(np.minimum(exponent, 700.0)) / -np.expm1(log_ratio), np.inf
    )
