"""E[(1 - e^(x - L))_+] between two floats, from the moment generating function of L on one vertical line.

With t = order + iu the expectation g(x) is (1/2 pi) times the integral of M(t) e^(-t x) / (t (t + 1)) du. The trapezoid
rule of step h, period W = 2 pi / h, is by Poisson summation exactly the sum over integers n of e^(order n W)
g(x + n W): terms that are all nonnegative. So the sum is an upper bound, and the sum minus a bound on the terms n != 0
(the aliases) is a lower bound. What is left out of the sum beyond its last node, and every rounding, widens both ends.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from dpcompose.contour.transform import Lattice
from dpcompose.numerics import Complexes, Reals, U
from dpcompose.values import up


class Bracket(NamedTuple):
    """lower <= g(x) <= upper, and the part of the width that each source of error adds, absolute."""

    lower: float
    upper: float
    aliasing: float
    truncation: float
    smoothing: float
    rounding: float


# Beyond this standard deviation the bump does not usefully bound the smoothing gap.
WIDE = 8.0
# The probability that a Gaussian exceeds nine standard deviations is 1.13e-19.
_BEYOND_NINE = 1.2e-19

_NOTHING = Bracket(-math.inf, math.inf, math.inf, math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class Margin:
    """A bound on the error of each term of a sum, in its units, at every |x| up to `reach`; None if it is too large."""

    reach: float
    errors: Reals | None


@dataclass(frozen=True, kw_only=True)
class Contour:
    """The nodes of one vertical line, ready to be summed at any x.

    Args:
        order: The real part of the line.
        step: The distance of the nodes.
        frequency: Imaginary parts of the nodes, shape (n,).
        log: log M at the nodes minus `scale`, shape (n,).
        error: Bounds on the error of `log`, shape (n,).
        scale: A real number near log M(order).
        kernel: The factor of M(t) e^(-t x) at each node, node weights included, shape (n,).
        tail: A bound on the nodes left out, as a multiple of M(order) e^(-order x) step / (2 pi).
        outer: Orders beyond `order`, and upper bounds on log M (smoothed) there, for the aliases above x.
        maximum: No alias above this value; inf if there may be.
        name: The quadrature rule.
        lattice: The lattice, or None.
        smoothing: Standard deviation of the smoothing Gaussian, or 0.
        bump: The smoothing gap as a kernel, or None: without smoothing, and where it is wider than `WIDE`.
    """

    order: float
    step: float
    frequency: Reals
    log: Complexes
    error: Reals
    scale: float
    kernel: Complexes
    tail: float
    outer: tuple[tuple[float, float], ...]
    maximum: float
    name: str
    lattice: Lattice | None = None
    smoothing: float = 0.0
    bump: Complexes | None = None

    @property
    def nodes(self) -> int:
        """The number of values of M that this line costs."""
        return len(self.frequency)

    def bracket(self, x: float, margin: Margin | None = None) -> Bracket:
        """The two-sided value of g(x)."""
        return self.brackets([x], margin)[0]

    def brackets(self, xs: Sequence[float], margin: Margin | None = None) -> list[Bracket]:
        """The two-sided values of g at several points, best near each other: they share the larger margin.

        Args:
            xs: The points.
            margin: One that was found for a point nearby, to save time.
        """
        found = self._brackets(xs, margin)
        if not self.smoothing > WIDE:
            return found
        # f(y + Z - c) <= f(y) + [Z > c]: a move by c bounds what a wide Z adds.
        shift = (self.smoothing * self.smoothing / 2 + 9 * self.smoothing) * (1 + 8 * U)
        others = self._brackets([up(x + shift) for x in xs], margin)
        lows = [
            min(other.lower - _BEYOND_NINE, one.upper)
            for one, other in zip(found, others, strict=True)
        ]
        return [
            one._replace(
                lower=low, smoothing=one.lower - low if low < one.lower < math.inf else 0.0
            )
            for one, low in zip(found, lows, strict=True)
        ]

    def _brackets(self, xs: Sequence[float], margin: Margin | None) -> list[Bracket]:
        """The same; of L + Z if there is no bump."""
        anchor, factor, magnitude = np.array(xs)[:, None], self.kernel, self._magnitude
        reach = float(np.abs(anchor).max())
        if self.lattice is not None:
            anchor, factor, kernel_error = self._on_lattice(anchor)
            magnitude = np.abs(factor)
            errors = self._errors(float(np.abs(anchor).max()), magnitude, kernel_error)
        elif margin is not None and 0.99 * margin.reach <= reach <= margin.reach:
            errors = margin.errors
        else:
            errors = self.margin(reach).errors
        size, frequency = self._size, self.frequency
        phase = self.log.imag - frequency * anchor
        cosine, sine = size * np.cos(phase), size * np.sin(phase)
        value = (cosine * factor.real - sine * factor.imag).sum(axis=1)
        if errors is None:
            return [_NOTHING for _ in xs]
        rounding, bump = errors.sum(axis=-1) * (1 + 1e-9), 0.0
        if self.bump is not None:
            bump = (cosine * self.bump.real - sine * self.bump.imag).sum(axis=1)
            bump = bump + (errors / magnitude * np.abs(self.bump)).sum(axis=-1)
        sums = (_listed(each, len(xs)) for each in (value, rounding, bump))
        return [self._bracket(*row) for row in zip(xs, anchor[:, 0].tolist(), *sums, strict=True)]

    def margin(self, reach: float) -> Margin:
        """The margin of a sum without a lattice, for |x| up to a little more than `reach`."""
        reach *= 1 + 2**-10
        return Margin(reach, self._errors(reach, self._magnitude, 0.0))

    def _errors(self, reach: float, magnitude: Reals, kernel_error: Reals | float) -> Reals | None:
        """A bound on the error of each term for |x| up to `reach`, in the units of the sum; None if it is too large.

        Args:
            reach: The largest |x|.
            magnitude: The absolute value of the kernel.
            kernel_error: A bound on the error of the kernel.
        """
        error, size = self._relative_error + 3 * U * reach * self.frequency, self._size
        worst = float(error.max())
        if not worst + self._highest < 300:
            return None
        if worst < 1:
            absolute = size * np.expm1(error)
        else:
            # Of such an M only the modulus may be known: the term is off by its own size and that of the true one.
            unknown = size + np.exp(self.log.real + error)
            absolute = np.where(error < 1, size * np.expm1(np.minimum(error, 1.0)), unknown)
        rounded = absolute + size * U * (24 + math.log2(self.nodes + 1))
        return magnitude * rounded + kernel_error * (size + absolute)

    def width(self, x: float, value: float, margin: Margin) -> float:
        """About how wide the bracket at x is, which holds `value`; inf if nothing is known."""
        exponent = self.scale - self.order * x
        if margin.errors is None or not abs(exponent) < 690:
            return math.inf
        unit = math.exp(exponent) * self.step / (2 * math.pi)
        shift = U * (4 * abs(self.scale) + (6 * self.order + 4) * (abs(x) + 1.0) + 16)
        return (
            2 * (float(margin.errors.sum()) + self._tail) * unit
            + 2 * shift * value
            + self._aliases(x)
        )

    @cached_property
    def _size(self) -> Reals:
        return np.exp(self.log.real)

    @cached_property
    def _highest(self) -> float:
        return max(float(self.log.real.max()), 0.0)

    @cached_property
    def _tail(self) -> float:
        """The tail in the units of the sum, with the error of M(order) there."""
        return self.tail * math.exp(min(float(self.error[0]), 700.0))

    @cached_property
    def _magnitude(self) -> Reals:
        return np.abs(self.kernel)

    @cached_property
    def _relative_error(self) -> Reals:
        """A bound on the relative error of M and of the exponential of its logarithm, apart from the factor of x."""
        return self.error + U * (4 * np.abs(self.log.imag) + 2 * np.abs(self.log.real) + 24)

    def _bracket(
        self, x: float, anchor: float, value: float, rounding: float, bump: float
    ) -> Bracket:
        """The ends from sums over the nodes: of the kernel, of the errors of its terms, of the smoothing gap."""
        exponent = self.scale - self.order * anchor
        if not exponent < 690:
            return _NOTHING
        unit = math.exp(max(exponent, -710.0)) * self.step / (2 * math.pi)
        shift = U * (4 * abs(self.scale) + (6 * self.order + 4) * (abs(anchor) + 1.0) + 16)
        aliasing = self._aliases(x)
        truncation = self._tail * unit
        gap = max(bump, 0.0) * unit * (1 + shift)
        rounding = (rounding + shift * (abs(value) + rounding)) * unit
        if exponent < -600:  # what is below the normal floats is rounded absolutely
            rounding += 2e-323 * (1 + self.step) * (1 + abs(value) + self._tail + abs(bump))
        upper = value * unit + rounding + truncation
        lower = value * unit - rounding - truncation - aliasing - gap
        if not lower <= upper:
            return _NOTHING
        if exponent < -710:
            return Bracket(0.0, upper, 0.0, 0.0, 0.0, upper)
        return Bracket(min(lower, upper), upper, aliasing, 2 * truncation, gap, 2 * rounding)

    def slope(self, x: float) -> tuple[float, float]:
        """g(x) and -g'(x) / g(x), uncertified: for Newton steps only."""
        if self.lattice is None:
            anchor = x
            terms = np.exp(self.log - 1j * self.frequency * x) * self.kernel
            value, falling = (
                float(terms.real.sum()),
                float(((self.order + 1j * self.frequency) * terms).real.sum()),
            )
        else:
            points, factor, _ = self._on_lattice(np.array([[x]]))
            anchor = float(points[0, 0])
            waves = np.exp(self.log - 1j * self.frequency * anchor)
            value = float((waves * factor[0]).real.sum())
            falling = float((waves * self._falling(x, anchor)).real.sum())
        unit = (
            self.step
            / (2 * math.pi)
            * math.exp(min(max(self.scale - self.order * anchor, -745.0), 700.0))
        )
        return value * unit, falling / value if value > 0 else math.nan

    def _aliases(self, x: float) -> float:
        """A bound on the aliases n != 0: below x each is at most e^(-order W |n|); above, Chernoff's."""
        period = 2 * math.pi / self.step * (1 - 4 * U)
        below = _geometric(-self.order * period)
        if x + period * (1 - 1e-12) >= self.maximum:
            return below
        above = math.inf
        for order, log_m in self.outer:
            above = min(
                above,
                _geometric(
                    -(order - self.order) * period, log_first=chernoff_bound(order, log_m, x)
                ),
            )
        return (below + above) * (1 + 1e-12)

    def _on_lattice(self, x: Reals) -> tuple[Reals, Complexes, Reals]:
        """The first lattice point at or above x, the kernel summed over the lattice from there, and its error.

        The two geometric sums cancel when x is close to that point. The error by the roundings of either sum, of the
        point and of the lattice (a few units of its own size) is of the size of one sum, not of their difference.

        Args:
            x: Shape (m, 1), as are the points returned; the kernel and its error have shape (m, n).
        """
        assert self.lattice is not None
        spacing, offset = self.lattice.spacing, self.lattice.offset
        steps = np.ceil((x - offset) / spacing)
        anchor = np.maximum(offset + spacing * steps, x)
        line = self.order + 1j * self.frequency
        first = self.kernel / -_expm1(-spacing * line)
        second = self.kernel / -_expm1(-spacing * (line + 1)) * np.exp(x - anchor)
        error = U * (16 + 8 * (abs(offset) + spacing * np.abs(steps) + np.abs(x)))
        return anchor, first - second, error * np.abs(second) + 16 * U * np.abs(first)

    def _falling(self, x: float, anchor: float) -> Complexes:
        """-d/dx of the lattice kernel."""
        assert self.lattice is not None
        line = self.order + 1 + 1j * self.frequency
        return self.kernel * math.exp(x - anchor) / -_expm1(-self.lattice.spacing * line)


def _listed(each: Reals | float, count: int) -> list[float]:
    """One for each x; a number stands for all."""
    return each.tolist() if isinstance(each, np.ndarray) else [float(each)] * count


def simple_kernel(order: Reals | float, frequency: Reals) -> Complexes:
    """2 / (t (t + 1)), halved at frequency 0."""
    line = order + 1j * frequency
    weight = np.where(frequency == 0, 1.0, 2.0)
    # Not an operator: numpy may swap the factors of one where arrays are large, and a product then rounds otherwise.
    product: Complexes = np.multiply(line, line + 1)
    return weight / product


def centered(log: Complexes) -> tuple[Complexes, float]:
    """log M less its real part at the first node, and that."""
    scale = float(log[0].real)
    return log - scale, scale


def kernel_peak(order: Reals) -> Reals:
    """log of the largest (1 - e^-y) e^(-order y), y >= 0."""
    return order * np.log(order) - (order + 1) * np.log1p(order)


def chernoff_bound(order: float, log_m: float, x: float) -> float:
    """An upper bound on log g(x) from one on log M(order)."""
    peak = order * math.log(order) - (order + 1) * math.log1p(order)
    return log_m - order * x + peak + U * (8 * abs(log_m) + 8 * abs(order * x) + 64) + 1e-12


def relative_value(variance: float, order: float) -> float:
    """g(x) e^(order x) / M(order) by the saddle-point approximation: decides widths, bounds nothing."""
    curvature = variance + 1 / order**2 + 1 / (order + 1) ** 2
    return 1 / (order * (order + 1) * math.sqrt(2 * math.pi * curvature))


def _geometric(exponent: float, *, log_first: float = 0.0) -> float:
    """e^log_first (q + q^2 + ...) for q = e^exponent; infinite where that is no float."""
    if not (exponent < 0 and exponent + log_first < 700):
        return math.inf
    return math.exp(exponent + log_first) / -math.expm1(exponent) * (1 + 1e-12)


def _expm1(z: Complexes) -> Complexes:
    """e^z - 1 for complex z, without cancellation near 0."""
    real = np.expm1(z.real)
    half = np.sin(z.imag / 2)
    return (real - 2 * (real + 1) * half * half) + 1j * (real + 1) * np.sin(z.imag)
