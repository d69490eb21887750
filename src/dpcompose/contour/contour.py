"""Bounds on g(x) = E[(1 - e^(x - L))_+] from the moment generating function M of L on one vertical
line.

With t = order + iu, g(x) is (1/2 pi) times the integral of M(t) e^(-t x) / (t (t + 1)) du. By
Poisson summation the trapezoid sum with step h and period W = 2 pi / h equals the sum over integers
n of e^(order n W) g(x + n W), whose terms are all nonnegative. So the trapezoid sum is an upper
bound on g(x), and subtracting a bound on the terms n != 0 (the aliases) gives a lower bound. The
nodes omitted at the end of the line, and every rounding error, widen both ends.
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
    """Lower and upper bound on the hockey-stick divergence g(x), and the absolute width that each
    source of error adds.
    """

    lower: float
    upper: float
    aliasing: float
    truncation: float
    smoothing: float
    rounding: float


# If the smoothing has a larger standard deviation, the bump kernel no longer gives a useful bound
# on the smoothing gap.
WIDE = 8.0
# The probability that a Gaussian exceeds nine standard deviations is 1.13e-19.
_BEYOND_NINE = 1.2e-19

_NOTHING = Bracket(-math.inf, math.inf, math.inf, math.inf, math.inf, math.inf)


@dataclass(frozen=True)
class Margin:
    """A bound on the error of each term of a sum, in units of the sum, for every |x| up to `reach`;
    None if it is too large.
    """

    reach: float
    errors: Reals | None


@dataclass(frozen=True, kw_only=True)
class Contour:
    """The nodes of one vertical line, from which the hockey-stick divergence g can be bounded at
    any x.

    Args:
        order: The real part of the line.
        step: The distance of the nodes.
        frequency: The imaginary parts of the nodes, shape (n,).
        log: log M at the nodes minus `scale`, shape (n,).
        error: Bounds on the error of `log`, shape (n,).
        scale: A real number close to log M(order).
        kernel: The factor of M(t) e^(-t x) at each node, including node weights, shape (n,).
        tail: A bound on the sum over omitted nodes, as a multiple of M(order) e^(-order x) step /
            (2 pi).
        outer: Pairs of an order larger than `order` and an upper bound on log M (smoothed) at it,
            for the aliases above x.
        maximum: Aliases above this value are 0; inf if there is no such value.
        name: The name of the quadrature rule.
        lattice: The lattice of L; None if there is none.
        smoothing: The standard deviation of the smoothing Gaussian; 0 without smoothing.
        bump: The kernel of the smoothing gap; None without smoothing, and if the smoothing is wider
            than `WIDE`.
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
        """The number of nodes, at each of which the moment generating function M was evaluated."""
        return len(self.frequency)

    def bracket(self, x: float, margin: Margin | None = None) -> Bracket:
        """Return lower and upper bounds on the hockey-stick divergence g(x)."""
        return self.brackets([x], margin)[0]

    def brackets(self, xs: Sequence[float], margin: Margin | None = None) -> list[Bracket]:
        """Return bounds on the hockey-stick divergence g at several points, preferably close to
        each other, since they share the largest margin.

        Args:
            xs: The points.
            margin: The margin computed for a point close by, if available; saves time.
        """
        found = self._brackets(xs, margin)
        if not self.smoothing > WIDE:
            return found
        # f(y + Z - c) <= f(y) + [Z > c], so a shift by c bounds the effect of a Gaussian Z of large
        # variance.
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
        """Return the bounds of `brackets` on the hockey-stick divergence g for L; without a bump
        kernel, on g for the smoothed variable L + Z.
        """
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
        """Return the margin of a sum without a lattice, for |x| slightly larger than `reach`."""
        reach *= 1 + 2**-10
        return Margin(reach, self._errors(reach, self._magnitude, 0.0))

    def _errors(self, reach: float, magnitude: Reals, kernel_error: Reals | float) -> Reals | None:
        """Return a bound on the error of each term for |x| up to `reach`, in units of the sum; None
        if it is too large.

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
            # At such a node only a bound on |M| is known, so the error of the term is at most its
            # own size plus that of the true term.
            unknown = size + np.exp(self.log.real + error)
            absolute = np.where(error < 1, size * np.expm1(np.minimum(error, 1.0)), unknown)
        rounded = absolute + size * U * (24 + math.log2(self.nodes + 1))
        return magnitude * rounded + kernel_error * (size + absolute)

    def width(self, x: float, value: float, margin: Margin) -> float:
        """Return an estimate of the width of the bounds at x, where the hockey-stick divergence g
        is about `value`; inf if there are none.
        """
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
        """The tail in units of the sum, including the error of the moment generating function
        M(order).
        """
        return self.tail * math.exp(min(float(self.error[0]), 700.0))

    @cached_property
    def _magnitude(self) -> Reals:
        return np.abs(self.kernel)

    @cached_property
    def _relative_error(self) -> Reals:
        """A bound on the relative error of the moment generating function M = exp(log) at each
        node, without the factor that depends on x.
        """
        return self.error + U * (4 * np.abs(self.log.imag) + 2 * np.abs(self.log.real) + 24)

    def _bracket(
        self, x: float, anchor: float, value: float, rounding: float, bump: float
    ) -> Bracket:
        """Return the bounds from three sums over the nodes: of the kernel, of the errors of its
        terms, of the smoothing gap.
        """
        exponent = self.scale - self.order * anchor
        if not exponent < 690:
            return _NOTHING
        unit = math.exp(max(exponent, -710.0)) * self.step / (2 * math.pi)
        shift = U * (4 * abs(self.scale) + (6 * self.order + 4) * (abs(anchor) + 1.0) + 16)
        aliasing = self._aliases(x)
        truncation = self._tail * unit
        gap = max(bump, 0.0) * unit * (1 + shift)
        rounding = (rounding + shift * (abs(value) + rounding)) * unit
        if exponent < -600:  # numbers below the normal floats have an absolute rounding error
            rounding += 2e-323 * (1 + self.step) * (1 + abs(value) + self._tail + abs(bump))
        upper = value * unit + rounding + truncation
        lower = value * unit - rounding - truncation - aliasing - gap
        if not lower <= upper:
            return _NOTHING
        if exponent < -710:
            return Bracket(0.0, upper, 0.0, 0.0, 0.0, upper)
        return Bracket(min(lower, upper), upper, aliasing, 2 * truncation, gap, 2 * rounding)

    def slope(self, x: float) -> tuple[float, float]:
        """Return the hockey-stick divergence g(x) and -g'(x) / g(x) without certification, for
        Newton steps.
        """
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
        """Return a bound on the aliases n != 0: those below x are at most e^(-order W |n|), those
        above x by Chernoff's bound.
        """
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
        """Return the first lattice point at or above x, the kernel summed over the lattice from
        that point on, and its error.

        The two geometric sums cancel when x is close to that point. The rounding errors of the two
        sums, of the point and of the lattice (a few units of its own size) are relative to one sum,
        not to their difference.

        Args:
            x: Shape (m, 1), as are the returned points; the kernel and its error have shape (m, n).
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
        """Return -d/dx of the lattice kernel."""
        assert self.lattice is not None
        line = self.order + 1 + 1j * self.frequency
        return self.kernel * math.exp(x - anchor) / -_expm1(-self.lattice.spacing * line)


def _listed(each: Reals | float, count: int) -> list[float]:
    """Return one entry for each x; a number is repeated."""
    return each.tolist() if isinstance(each, np.ndarray) else [float(each)] * count


def simple_kernel(order: Reals | float, frequency: Reals) -> Complexes:
    """Return the kernel 2 / (t (t + 1)), halved at frequency 0."""
    line = order + 1j * frequency
    weight = np.where(frequency == 0, 1.0, 2.0)
    # `np.multiply` instead of `*`, since numpy may swap the factors of `*` for large arrays, which
    # changes the rounding.
    product: Complexes = np.multiply(line, line + 1)
    return weight / product


def centered(log: Complexes) -> tuple[Complexes, float]:
    """Return log minus its real part at the first node, and that real part."""
    scale = float(log[0].real)
    return log - scale, scale


def kernel_peak(order: Reals) -> Reals:
    """Return the logarithm of the maximum of (1 - e^-y) e^(-order y) over y >= 0."""
    return order * np.log(order) - (order + 1) * np.log1p(order)


def chernoff_bound(order: float, log_m: float, x: float) -> float:
    """Return an upper bound on log g(x) from an upper bound on the logarithm of the moment
    generating function M(order). g is the hockey-stick divergence.
    """
    peak = order * math.log(order) - (order + 1) * math.log1p(order)
    return log_m - order * x + peak + U * (8 * abs(log_m) + 8 * abs(order * x) + 64) + 1e-12


def relative_value(variance: float, order: float) -> float:
    """Return the saddle-point approximation of the hockey-stick divergence g(x) e^(order x) /
    M(order); it is used for widths, never as a bound. M is the moment generating function.
    """
    curvature = variance + 1 / order**2 + 1 / (order + 1) ** 2
    return 1 / (order * (order + 1) * math.sqrt(2 * math.pi * curvature))


def _geometric(exponent: float, *, log_first: float = 0.0) -> float:
    """Return e^log_first (q + q^2 + ...) for q = e^exponent; infinite if it diverges or overflows."""
    if not (exponent < 0 and exponent + log_first < 700):
        return math.inf
    return math.exp(exponent + log_first) / -math.expm1(exponent) * (1 + 1e-12)


def _expm1(z: Complexes) -> Complexes:
    """e^z - 1 for complex z, without cancellation near 0."""
    real = np.expm1(z.real)
    half = np.sin(z.imag / 2)
    return (real - 2 * (real + 1) * half * half) + 1j * (real + 1) * np.sin(z.imag)
