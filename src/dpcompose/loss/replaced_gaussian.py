"""The loss of Gaussian noise on a Poisson sample when a record is replaced.

The pair is (1 - q) N(0, s^2) + q N(-1, s^2) against the same with +1. With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and
x ~ N(0, s^2), the densities are n(x) r(-x) and n(x) r(x): the loss is ln r(-x) - ln r(x), and its transform
E r(-x)^(t + 1) r(x)^-t. The bounds are those of `sampled_gaussian`, once for each of the two factors.

Reference: [Lebeda2024, Proposition 13]
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr, ndtr

from dpcompose.contour.exponential_sums import WeightedPoints, careful_nodes, joined, logarithm_of_excess
from dpcompose.contour.saddle import short
from dpcompose.contour.transform import Line, Transform, blockwise
from dpcompose.loss.base import Loss
from dpcompose.loss.sampled_gaussian_decay import strip_growth
from dpcompose.loss.sampled_gaussian_grid import argument, log_ratio, on_shifted, positions, share
from dpcompose.loss.sampled_gaussian_moments import ReplacedMoments
from dpcompose.numerics.bound import Bound, up
from dpcompose.numerics.elementary import ULPS, Reals, U, exp_or_inf, exponential_sums, log_sum_exp, minus_log1p
from dpcompose.proof.ball import Field
from dpcompose.proof.moments import Ends, ends

_ANGLES = (0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5)
_REAL_LINE_POINTS = 800
_MOST_POINTS = 60_000
_SHIFTS = (0.12, 0.25, 0.5, 0.9, 1.5, 2.2, 2.8)


@dataclass(frozen=True)
class ReplacedGaussianLoss(Loss):
    """The same in both orders, by the symmetry x -> -x.

    Args:
        noise: sigma / sensitivity, > 0, good to one unit of roundoff.
        rate: The sampling rate, in (0, 1).
    """

    noise: float
    rate: float

    @property
    def maximum(self) -> float:
        return math.inf

    @property
    def minimum(self) -> float:
        return -math.inf

    def transform(self, times: int) -> Transform:
        return ReplacedGaussianSum(self.noise, self.rate, float(times))

    @property
    def has_profile(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        """P(x < c) - e^epsilon Q(x < c) at the point c where the loss is epsilon.

        c = s^2 (asinh(-A sinh(epsilon / 2)) - epsilon / 2), A = (1 - q) / q e^(1 / (2 s^2)). A test at another c would
        be worse only to second order in its distance, so that the rounding of c does not matter next to that of the
        four terms.
        """
        s, q = self.noise, self.rate
        half = epsilon / 2
        steep = math.log1p(-q) - math.log(q) + 1 / (2 * s * s)
        c = s * s * (_asinh_scaled(steep, half) - half)
        plus = ((1 - q, c / s), (q, (c + 1) / s))
        minus = ((math.log1p(-q), c / s), (math.log(q), (c - 1) / s))
        # Where the loss is above epsilon, e^epsilon Q is below P: no exponent is positive.
        values = [weight * _below(z) for weight, z in plus]
        values += [-math.exp(min(epsilon + log_weight + float(log_ndtr(z)), 0.0)) for log_weight, z in minus]
        places = [z for _, z in plus + minus]
        error = math.fsum(
            abs(value) * U * (64 + 16 * z * z + 8 * abs(epsilon)) for value, z in zip(values, places, strict=True)
        )
        floor = -math.expm1(epsilon) * (1 - 8 * U) if epsilon < 0 else 0.0
        value = math.fsum(values)
        return Bound(max(value - error, floor, 0.0), min(up(max(value + error, floor * (1 + 32 * U), 1e-320)), 1.0))

    def ball(self, field: Field) -> Ends:
        return ends(
            self.noise,
            lambda noise: ReplacedMoments(field, noise, field.exact(self.rate)),
            field=field,
            ulps=1,
            rising=False,
        )


def _below(z: float) -> float:
    """P(N <= z); far out through its logarithm, because ndtr loses digits before it underflows."""
    return float(ndtr(z)) if z > -30 else math.exp(float(log_ndtr(z)))


def _asinh_scaled(log_scale: float, half: float) -> float:
    """asinh(-e^log_scale sinh(half)), without overflow."""
    if half == 0:
        return 0.0
    log_size = log_scale + abs(half) + math.log(-math.expm1(-2 * abs(half)) / 2)
    size = log_size + math.log(2) if log_size > 300 else math.asinh(math.exp(log_size))
    return -math.copysign(size, half)


@dataclass(frozen=True)
class ReplacedGaussianSum(Transform):
    """The transform of `times` copies."""

    noise: float
    rate: float
    times: float

    def cumulants(self, order: float) -> tuple[float, float, float]:
        low, high = self._range(order)
        if not (high - low) / self._coarse <= _MOST_POINTS:
            return math.inf, math.inf, math.inf
        log_m, first, second = self._grid(low, high, self._coarse).moments(order + 1)
        return self.times * log_m, self.times * first, self.times * second

    def line(self, order: float, frequencies: Reals) -> Line:
        low, high = self._range(order)
        reach = float(frequencies[-1])
        step, step_error = self._step(order, reach, low, high)
        if (high - low) / step > _REAL_LINE_POINTS and reach > 0:
            cut = int(
                np.searchsorted(frequencies, 0.05 * self.noise**2 * _REAL_LINE_POINTS / (high - low), side="right")
            )
            if cut < len(frequencies):
                far = self._shifted_line(order, frequencies[cut:])
                far = Line(self.times * far.log, self.times * far.error + 4 * U * self.times * np.abs(far.log))
                return joined(self.line(order, frequencies[:cut]), far) if cut else far
        if (high - low) / step > _MOST_POINTS:
            return Line(np.zeros(len(frequencies), dtype=np.complex128), np.full(len(frequencies), np.inf))
        points = self._grid(low, high, step)
        outside = step_error + self._outside(points, order, step, low, high) * (1 + frequencies)
        one = points.line(order + 1, frequencies, sign=1.0, omitted=outside, careful=careful_nodes(self.times))
        return Line(self.times * one.log, self.times * one.error + 4 * U * self.times * np.abs(one.log))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        line = self.line(order, np.concatenate([[0.0], edges]))
        floor = float(line.floor[0])
        if not floor > -math.inf:
            return np.zeros(len(edges))
        log = (line.log.real + line.error)[1:] - floor
        blocks = blockwise(np.exp(np.minimum(log, 0.0) / self.times), self._most_variance(order), edges)
        return self.times * np.minimum(blocks, self._shifted_envelope(order, edges, floor / self.times))

    def _most_variance(self, order: float) -> float:
        """An upper bound on the tilted variance of one copy.

        With X = ln r - ln(1 - q) >= 0 the loss is X(-x) - X(x). In the strip that chose the step X is at most twice
        what it is on the real line, so that the variance errs by less than 40 e^-35 E (X(-x) + X(x))^2.
        """
        low, high = self._range(order)
        step, _ = self._step(order, 0.0, low, high)
        if not (high - low) / step <= _MOST_POINTS:
            return math.inf
        points = self._grid(low, high, step)
        exponent = points.log_weight + (order + 1) * points.ratio
        tilted = np.exp(exponent - log_sum_exp(exponent))
        x = positions(low, high, step)
        plus, minus = (log_ratio(side, self.noise, self.rate) for side in (x, -x))
        away = points.ratio - float(tilted @ points.ratio)
        return float(tilted @ np.square(away)) * 1.01 + 1e-12 * float(
            tilted @ np.square(plus + minus - 2 * math.log1p(-self.rate))
        )

    @property
    def _coarse(self) -> float:
        return short(min(0.4, 2.0 * self.noise) * self.noise, bits=20)

    def _range(self, order: float) -> tuple[float, float]:
        """Left of -(order + 1) - order w(0) the integrand falls like a Gaussian, and right of 0; 1 more a density."""
        side = math.sqrt(2 * (39 + math.log(self.times))) * self.noise
        return -(order + 1) - order * float(share(np.zeros(1), self.noise, self.rate)[0]) - 1 - side, 1 + side

    def _grid(self, low: float, high: float, step: float) -> WeightedPoints:
        s, q = self.noise, self.rate
        x = positions(low, high, step)
        norm = math.log(step) - math.log(s) - 0.5 * math.log(2 * math.pi)
        plus, minus = log_ratio(x, s, q), log_ratio(-x, s, q)
        log_weight = norm - np.square(x) / (2 * s * s) + plus
        # r(-x) / r(x) - 1 through sinh, relative to itself.
        y = -2 * q * np.sinh(np.clip(x / (s * s), -300.0, 300.0)) * np.exp(-1 / (2 * s * s) - np.minimum(plus, 600.0))
        near = np.abs(y) < 0.5
        bounded = np.where(near, y, 0.0)
        ratio = np.where(near, np.log1p(bounded), minus - plus)
        weight = np.exp(log_weight)
        other = np.exp(norm - np.square(x) / (2 * s * s) + minus)
        deficit = np.where(near, weight * minus_log1p(bounded), other - weight - weight * ratio)
        relative_error = U * (
            64 + 12 * np.square(x) / (s * s) + 24 * (np.abs(x) + 1) / (s * s) + 8 * (np.abs(plus) + np.abs(minus))
        )
        return WeightedPoints(log_weight, ratio, np.maximum(deficit, 0.0), relative_error, relative_error)

    def _step(self, order: float, reach: float, low: float, high: float) -> tuple[float, float]:
        """The largest step whose strip bound is below e^-35 / times, and that error; as in `sampled_gaussian`."""
        s, spacing = self.noise, self._coarse
        if not (high - low) / spacing <= _MOST_POINTS:
            return 1e-300, math.inf
        coarse = self._grid(low, high, spacing)
        x = positions(low, high, spacing)
        theta = np.array(_ANGLES)[:, None]
        exponent = coarse.log_weight + (order + 1) * coarse.ratio
        rising = np.append(argument(x[1:], theta, s, self.rate), np.array(_ANGLES)[:, None], axis=1)
        lifted = (
            exponent
            + spacing * (np.abs(x) + 2 * order + 1 + spacing) / (s * s)
            + reach * (rising + argument(-x, theta, s, self.rate))
        )
        peak = np.max(lifted, axis=1)
        log_sum = peak + np.log(np.sum(np.exp(lifted - peak[:, None]), axis=1))
        width = np.array(_ANGLES) * s * s
        growth = -order * np.log(np.cos(np.array(_ANGLES) / 2))
        norm = width * width / (2 * s * s) + np.logaddexp(log_sum + growth, math.log(3 + 2 * (order + reach)))
        steps = 2 * math.pi * width / (35 + math.log(self.times) + norm)
        best = int(np.argmax(steps))
        step = short(float(steps[best]), bits=20)
        return step, 2.8 * exp_or_inf(float(norm[best]) - 2 * math.pi * float(width[best]) / step)

    def _outside(self, points: WeightedPoints, order: float, step: float, low: float, high: float) -> float:
        """A bound on what lies beyond the grid of the integrand and, per unit of |p|, of the two densities."""
        s, s2 = self.noise, self.noise**2
        exponent = points.log_weight + (order + 1) * points.ratio
        exponent = exponent - max(float(np.max(exponent)), 0.0)
        right = math.exp(exponent[-1]) / math.expm1(step * high / s2)
        slope = -low - (order + 1) - order * float(share(np.array([low]), s, self.rate)[0])
        left = math.exp(exponent[0]) / math.expm1(step * slope / s2)
        # Each density is below n(x) + n(x - 1) or n(x) + n(x + 1), centered at least `side` away from either end.
        side = min(high - 1, -low - 1)
        tail = step / (s * math.sqrt(2 * math.pi)) * math.exp(-side * side / (2 * s2)) / math.expm1(step * side / s2)
        return right + left + 8 * (2 + order) * tail

    def _shifted_envelope(self, order: float, edges: Reals, log_moment: float) -> Reals:
        """As in `sampled_gaussian`, on Im x = -theta s^2, where the arguments of the two factors add up."""
        s, best = self.noise, np.zeros(len(edges))
        low, high = self._range(order)
        for theta in _SHIFTS:
            inner = 0.9 * min(theta, math.pi - theta)
            growth = float(strip_growth(s, -order, theta, inner))
            step = 2 * math.pi * inner * s * s / (16 + growth)
            if (high - low) / step > 1500:
                continue
            x = positions(low, high, step)
            (plus, turn_plus), (minus, turn_minus) = (on_shifted(s, self.rate, side, theta) for side in (x, -x))
            log_term = (
                math.log(step / s)
                - 0.5 * math.log(2 * math.pi)
                - x * x / (2 * s * s)
                + (order + 1) * minus
                - order * plus
                - log_moment
            )
            turned = (turn_plus + turn_minus) * (1 - 8 * U)
            decayed = np.exp(-np.multiply.outer(edges, turned)) @ np.exp(log_term)
            slope = -float(x[0]) - (order + 1) - order * float(share(x[:1], s, self.rate)[0])
            ends = math.exp(log_term[-1]) / math.expm1(step * float(x[-1]) / s**2) + math.exp(log_term[0]) / math.expm1(
                step * slope / s**2
            )
            best = np.minimum(best, theta * theta * s * s / 2 + np.log(decayed + 2.1 * math.exp(-16.0) + ends) + 1e-9)
        return best

    def _shifted_line(self, order: float, frequencies: Reals) -> Line:
        """M(order + iu) as an integral over Im x = -theta s^2; as in `sampled_gaussian`."""
        s, q = self.noise, self.rate
        theta = min(1.2, 1.5 / s)
        while order * -math.log(math.cos(theta)) > 6 and theta > 0.05:
            theta *= 0.7
        upper = 2 * theta * theta * s * s - order * math.log(math.cos(theta))
        step = short(2 * math.pi * theta * s * s / (38.001 + upper), bits=20)
        low, high = self._range(order)
        if not (high - low) / step <= _MOST_POINTS:
            return Line(np.zeros(len(frequencies), dtype=np.complex128), np.full(len(frequencies), np.inf))
        x = positions(low, high, step)
        (plus, turn_plus), (minus, turn_minus) = (on_shifted(s, q, side, theta) for side in (x, -x))
        log_weight = math.log(step / s) - 0.5 * math.log(2 * math.pi) + theta * theta * s * s / 2 - x * x / (2 * s * s)
        exponent = log_weight + (order + 1) * minus - order * plus
        top = float(np.max(exponent))
        size = np.exp(exponent - top)
        phase = (order + 1) * turn_minus + order * turn_plus + x * theta
        large = (
            np.abs(log_weight)
            + (order + 1) * (np.abs(minus) + np.abs(plus) + turn_minus + turn_plus)
            + np.abs(x) * theta
        )
        term_error = U * (4 * len(x) + 96 + 4 * ULPS * (2 + large))
        value = exponential_sums(
            frequencies, size * (np.cos(phase) + 1j * np.sin(phase)), 1j * (minus - plus) - (turn_minus + turn_plus)
        )
        faded = size * np.exp(-frequencies[0] * (turn_minus + turn_plus))
        sum_error = float(faded @ term_error) + 16 * ULPS * U * frequencies * float(
            faded @ (np.abs(minus) + np.abs(plus) + turn_minus + turn_plus)
        )
        slope = -float(x[0]) - (order + 1) - order * float(share(x[:1], s, q)[0])
        tails = float(size[-1]) / math.expm1(step * float(x[-1]) / s**2) + float(size[0]) / math.expm1(
            step * slope / s**2
        )
        # On the real line this step misses e^-38 of M.
        real = log_weight - theta * theta * s * s / 2
        log_m = log_sum_exp(real + (order + 1) * log_ratio(-x, s, q) - order * log_ratio(x, s, q)) + 1e-9
        strip = 1.05 * (math.exp(-38 - upper) + math.exp(-38.0)) * 2 * math.exp(max(log_m - top, -700.0))
        line = logarithm_of_excess(value.real - 1, value.imag, sum_error + tails + strip)
        return Line(line.log + top, line.error + 8 * U * (abs(top) + 1))
