"""The losses of Gaussian noise on a Poisson sample: (1 - q) N(0, s^2) + q N(1, s^2) against N(0, s^2), in both orders.

With r(x) = 1 - q + q e^((2 x - 1) / (2 s^2)) and x ~ N(0, s^2) the transform is E r^(t + 1) (remove) or E r^(-t) (add):
a trapezoid sum over x whose error decays like e^(-2 pi d / step) in the half-width d of a strip where |r^p| is bounded.
With theta = d / s^2 < pi and w = q e^z / r,
  r(x + i d) = r(x) (1 - w + w e^(i theta)),   r cos(theta / 2) <= |r(x + i d)| <= r,   0 <= arg r(x + i d) <= theta.

Reference: [ZhuDongWang2022, Theorem 11], [TrefethenWeideman2014, Theorem 5.1]
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpcompose.guarantee import gaussian
from dpcompose.loss.base import Loss
from dpcompose.loss.mixture import AddedMoments, RemovedMoments
from dpcompose.numerics.ball import Field
from dpcompose.numerics.bound import Bound, around, up
from dpcompose.numerics.elementary import ULPS, Complexes, Reals, U, log_sum_exp, minus_log1p
from dpcompose.numerics.moments import Ends, ends
from dpcompose.numerics.saddle import short
from dpcompose.numerics.tilted import Points, careful_nodes, exponential_sums, logarithm_of_excess
from dpcompose.numerics.transform import Lattice, Line, Transform, blockwise

_ANGLES = np.array([0.05, 0.12, 0.3, 0.6, 1.0, 1.5, 2.0, 2.5])
_LOG_COSINES = np.log(np.cos(_ANGLES / 2))
_SHIFTS = (0.15, 0.4, 1.0, 2.2)
_REAL_LINE_POINTS, _MOST_POINTS = 600, 60_000


@dataclass(frozen=True)
class SampledGaussianLoss(Loss):
    """Gaussian noise of standard deviation `noise` (in units of sensitivity) on a Poisson sample of rate `rate` < 1.

    Args:
        noise: sigma / sensitivity, > 0.
        rate: The sampling rate, in (0, 1).
        remove: Whether the loss is that of (with the record, without it).
        ulps: How many units of roundoff `noise` may be off.
    """

    noise: float
    rate: float
    remove: bool
    ulps: int = 0

    @property
    def maximum(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate) * (1 + 8 * U)

    @property
    def minimum(self) -> float:
        return math.log1p(-self.rate) * (1 + 8 * U) if self.remove else -math.inf

    def transform(self, times: int) -> Transform:
        return SampledGaussianSum(self.noise, self.rate, self.remove, float(times), self.ulps)

    @property
    def closed(self) -> bool:
        return True

    def profile(self, epsilon: float) -> Bound:
        """delta(epsilon) from the Gaussian profile at the epsilon before sampling."""
        if epsilon > 700:
            return Bound(0.0, self.profile(700.0).upper)
        q, mu = self.rate, 1 / self.noise
        spread = 2 * U * (self.ulps + 2)
        if self.remove:
            inner = math.expm1(epsilon) / q
            if not inner > -1 + 1e-9:
                return self._past_the_minimum(epsilon)
            base = math.log1p(inner)
            return _scaled(_gaussian(base, 16 * U * (1 + abs(inner) / (1 + inner) + abs(base)), mu, spread), q)
        rest = q - math.expm1(epsilon) * (1 - q)
        if rest < 64 * U:
            # Within rounding of the largest loss: at most what the profile is a little before it.
            return Bound(
                0.0,
                128 * U * _gaussian(epsilon + math.log(q / (128 * U)) - 1e-6, 0.0, mu, spread).upper
                if rest > -64 * U
                else 0.0,
            )
        base = epsilon + math.log(q) - math.log(rest)
        doubt = 16 * U / rest
        value = _gaussian(base, 16 * U * (abs(epsilon) + 2 + abs(math.log(q))) + doubt, mu, spread)
        return Bound(value.lower * max(rest * (1 - doubt), 0.0), value.upper * rest * (1 + 2 * doubt))

    def _past_the_minimum(self, epsilon: float) -> Bound:
        """1 - e^epsilon below the smallest loss; a hair above it the profile is that much plus at most q delta."""
        base = around(-math.expm1(epsilon), relative=8 * U)
        if math.expm1(epsilon) / self.rate < -1 - 1e-9:
            return base
        return Bound(base.lower, base.upper + 2e-9 * self.rate)

    def ball(self, field: Field) -> Ends:
        make = RemovedMoments if self.remove else AddedMoments
        return ends(
            self.noise,
            lambda noise: make(field, noise, field.exact(self.rate)),
            field=field,
            ulps=self.ulps,
            rising=False,
        )


def _gaussian(epsilon: float, slack: float, mu: float, spread: float) -> Bound:
    low = gaussian.profile(epsilon + slack, mu=mu * (1 - spread))
    high = gaussian.profile(epsilon - slack, mu=mu * (1 + spread))
    return Bound(low.lower, high.upper)


def _scaled(bound: Bound, factor: float) -> Bound:
    return Bound(bound.lower * factor * (1 - 8 * U), up(bound.upper * factor * (1 + 8 * U)) if bound.upper > 0 else 0.0)


@dataclass(frozen=True)
class SampledGaussianSum:
    """The transform of `times` copies."""

    noise: float
    rate: float
    remove: bool
    times: float
    ulps: int = 0
    lattice: Lattice | None = None

    @property
    def maximum(self) -> float:
        return math.inf if self.remove else -math.log1p(-self.rate) * self.times * (1 + 8 * U)

    @property
    def minimum(self) -> float:
        return math.log1p(-self.rate) * self.times * (1 + 8 * U) if self.remove else -math.inf

    @property
    def _sign(self) -> float:
        return 1.0 if self.remove else -1.0

    def _power(self, order: float) -> float:
        return order + 1 if self.remove else -order

    def cumulants(self, order: float) -> tuple[float, float, float]:
        if order not in self._known:
            power = self._power(order)
            low, high = self._range(power, bucket=2.0)
            log_m, first, second = self._grid(low, high, self._coarse).moments(power, sign=self._sign)
            self._known[order] = self.times * log_m, self.times * first, self.times * second
        return self._known[order]

    def log_moments(self, orders: Reals) -> Reals:
        """K at many orders, over one grid."""
        low, high = self._range(self._power(float(np.max(orders))), bucket=2.0)
        powers = orders + 1 if self.remove else -orders
        return self.times * self._grid(low, high, self._coarse).log_moments(powers)

    @cached_property
    def _known(self) -> dict[float, tuple[float, float, float]]:
        return {}

    def line(self, order: float, frequencies: Reals) -> Line:
        power = self._power(order)
        low, high = self._range(power)
        reach = float(frequencies[-1]) if len(frequencies) else 0.0
        step, doubt = self._step(power, reach, low, high)
        cut = len(frequencies)
        most = _REAL_LINE_POINTS if self.times <= 1000 else 10 * _REAL_LINE_POINTS
        if (high - low) / step > most and reach > 0:
            nearby = 0.1 * self.noise**2 * most / (high - low)
            cut = int(np.searchsorted(frequencies, nearby, side="right"))
            step, doubt = self._step(power, nearby, low, high)
        if (high - low) / step > _MOST_POINTS:
            return Line(np.zeros(len(frequencies), dtype=np.complex128), np.full(len(frequencies), np.inf))
        points = self._grid(low, high, step)
        outside = doubt + self._outside(points, power, step, low, high) * (1 + frequencies[:cut])
        one = points.line(power, frequencies[:cut], sign=self._sign, outside=outside, careful=careful_nodes(self.times))
        if cut < len(frequencies):
            far = self._shifted_line(power, frequencies[cut:], low, high)
            one = Line(np.concatenate([one.log, far.log]), np.concatenate([one.error, far.error]))
        return Line(self.times * one.log, self.times * one.error + 4 * U * self.times * np.abs(one.log))

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        return self.survey(order, np.zeros(1), edges)[1]

    def survey(self, order: float, nodes: Reals, edges: Reals) -> tuple[Line, Reals]:
        """The line at `nodes`, and the envelope at `edges` from the shifted line, whose cost does not grow with u."""
        power = self._power(order)
        line = self.line(order, nodes)
        floor = float((line.log.real - line.error)[0]) / self.times
        far = self._shifted_line(power, edges, *self._range(power))
        magnitude = np.exp(np.minimum(far.log.real + far.error - floor, 0.0))
        _, _, variance = self.cumulants(order)
        bound = blockwise(magnitude, variance / self.times * 1.01, edges)
        # The blocks decide nothing where they leave e^-60 or less; the shifted envelope is for where they end.
        first = int(np.flatnonzero(self.times * bound > -60.0)[0])
        bound[first:] = np.minimum(bound[first:], self._shifted_envelope(power, edges[first:], floor))
        return line, self.times * bound

    # ------------------------------------------------------------------------------------------------------- the grid

    @cached_property
    def _grids(self) -> dict[tuple[float, float, float], Points]:
        return {}

    def _range(self, power: float, *, bucket: float = 1.25) -> tuple[float, float]:
        """Where n r^p lives: around 0, around 1 (because E y = 0 is used) and around the mode."""
        side = math.sqrt(2 * (39 + math.log(self.times))) * self.noise
        # The next power of `bucket`, so that neighboring orders share a grid.
        least = 16.0 if bucket == 2.0 else 1.0
        power = math.copysign(bucket ** math.ceil(math.log(max(abs(power), least)) / math.log(bucket)), power)
        if power > 0:
            return -side, power + side
        left, right = power, 0.0
        while right - left > 0.1 * self.noise and right - left > 1e-6 * -left:
            middle = (left + right) / 2
            left, right = (left, middle) if middle > power * self._share(middle) else (middle, right)
        return left - side, 1 + side

    def _share(self, x: float) -> float:
        """w(x) = q e^z / r, the weight of the sampled part."""
        z = (2 * x - 1) / (2 * self.noise**2) + math.log(self.rate) - math.log1p(-self.rate)
        return 1 / (1 + math.exp(-z)) if z > -700 else 0.0

    def _grid(self, low: float, high: float, step: float) -> Points:
        key = (low, high, step)
        if key not in self._grids:
            self._grids[key] = self._build(low, high, step)
        return self._grids[key]

    def _build(self, low: float, high: float, step: float) -> Points:
        s, q = self.noise, self.rate
        x = positions(low, high, step)
        norm = math.log(step) - math.log(s) - 0.5 * math.log(2 * math.pi)
        log_weight = norm - np.square(x) / (2 * s * s)
        z = (2 * x - 1) / (2 * s * s)
        y = q * np.expm1(np.minimum(z, 30.0))
        steep = z + math.log(q) + np.log1p((1 - q) / q * np.exp(-np.maximum(z, 30.0)))
        ratio = np.where(z <= 30, np.log1p(y), steep)
        weight = np.exp(log_weight)
        sampled = np.exp(norm - np.square(x - 1) / (2 * s * s))
        deficit = np.where(z <= 30, weight * minus_log1p(y), q * (sampled - weight) - weight * ratio)
        # x is exact (a short step), so z and the exponent of the weight carry relative errors of `off` U, and y one of
        # that times 1 + |z|, plus 12 U; log1p may amplify that of a negative y.
        amplified = np.where(y == 0, 1.0, np.abs(y) / ((1 + y) * np.maximum(np.abs(np.log1p(y)), 1e-300)))
        off = 4 + 2 * self.ulps
        fuzz = U * (
            2 * np.maximum(amplified, 1.0) * (12 + off * (1 + np.maximum(z, 0.0))) + 16 + off * np.square(x) / (s * s)
        )
        return Points(log_weight, ratio, np.maximum(deficit, 0.0), fuzz)

    def _step(self, power: float, reach: float, low: float, high: float) -> tuple[float, float]:
        """The largest step whose strip bound is below e^-35 / times relative to M, and that absolute error."""
        s = self.noise
        coarse = self._grid(low, high, self._coarse)
        exponent = coarse.log_weight + power * coarse.ratio
        log_m = log_sum_exp(exponent)
        growth = 0.0 if power > 0 else power * _LOG_COSINES
        width = _ANGLES * s * s
        plain = math.log1p(2 * self.rate * (abs(power) + reach))
        wanted = 35 + math.log(self.times) - max(min(log_m, 0.0), -600.0)
        norm = width * width / (2 * s * s) + np.logaddexp(log_m + 0.01 + growth + reach * _ANGLES, plain)
        steps = 2 * math.pi * width / (wanted + norm)
        if reach > 0 and float(np.max(steps)) < 0.12 * s:
            norm = width * width / (2 * s * s) + np.logaddexp(
                self._strip(coarse, exponent, power, reach, low, high) + growth, plain
            )
            steps = 2 * math.pi * width / (wanted + norm)
        best = int(np.argmax(steps))
        # The next power of 2^(1/4) below, so that neighboring orders share a grid.
        step = short(2.0 ** (math.floor(4 * math.log2(float(steps[best]))) / 4), bits=20)
        return step, 2.8 * math.exp(float(norm[best]) - 2 * math.pi * float(width[best]) / step)

    def _strip(self, coarse: Points, exponent: Reals, power: float, reach: float, low: float, high: float) -> Reals:
        """log of a bound on the integral of n |r^p| on each strip's edge, without the growth of a negative power."""
        s, spacing, x = self.noise, self._coarse, positions(low, high, self._coarse)
        theta = _ANGLES[:, None]
        share = -np.expm1(-np.maximum(coarse.ratio - math.log1p(-self.rate), 0.0))
        share = np.append(share[1:], 1.0)
        angle = np.arctan2(share * np.sin(theta), 1 - share * (1 - np.cos(theta)))
        # A cell's mass is at most its left value times e^(spacing |d log / dx|): that factor costs a few more nodes.
        # The last cell stands for all that is to its right; what is left of the first is below a third of it.
        steep = spacing * (np.abs(x) + abs(power) + spacing) / (s * s)
        lifted = exponent + steep + reach * angle
        peak = np.max(lifted, axis=1)
        return peak + np.log(np.sum(np.exp(lifted - peak[:, None]), axis=1))

    @property
    def _coarse(self) -> float:
        return short(min(0.4, 2.0 * self.noise) * self.noise, bits=20)

    def _outside(self, points: Points, power: float, step: float, low: float, high: float) -> float:
        """A bound on n r^p, n and |p| n y beyond the grid, per |p|, in units of the largest term if that is above 1."""
        s2, exponent = self.noise**2, points.log_weight + power * points.ratio
        exponent = exponent - max(float(np.max(exponent)), 0.0)
        right = math.exp(exponent[-1]) / math.expm1(step * (high - max(power, 0.0)) / s2)
        slope = -low + min(power, 0.0) * self._share(low)
        left = math.exp(exponent[0]) / math.expm1(step * slope / s2) if slope > 0 else math.inf
        plain = math.exp(points.log_weight[-1]) / math.expm1(step * high / s2) + math.exp(
            points.log_weight[0]
        ) / math.expm1(-step * low / s2)
        # n e^z is a Gaussian centered at 1: its right edge is `_SIDE` s away, its left edge farther.
        moved = step / (self.noise * math.sqrt(2 * math.pi)) * math.exp(-((high - 1) ** 2) / (2 * s2))
        sampled = 2 * moved / math.expm1(step * (high - 1) / s2)
        return right + left + (1 + abs(power)) * (plain + self.rate * (sampled + plain))

    # --------------------------------------------------------------------------------------------- the shifted line

    def _on_shifted(self, x: Reals, theta: float) -> tuple[Reals, Reals]:
        """log |r| and arg r on Im x = theta s^2."""
        z = (2 * x - 1) / (2 * self.noise**2) + math.log(self.rate) - math.log1p(-self.rate)
        share = 1 / (1 + np.exp(-np.clip(z, -700.0, 700.0)))
        log_r = math.log1p(-self.rate) + np.logaddexp(0.0, z)
        shrink = 0.5 * np.log1p(-2 * share * (1 - share) * (1 - math.cos(theta)))
        return log_r + shrink, np.arctan2(share * math.sin(theta), 1 - share * (1 - math.cos(theta)))

    def _shifted_envelope(self, power: float, edges: Reals, log_moment: float) -> Reals:
        """log of a bound on |M(order + iu)| / M(order), nonincreasing in u: the modulus over Im x = theta s^2.

        The modulus is analytic in x and bounded in a strip of half-width min(theta, pi - theta) s^2 by the same
        integral without its decay in u, so the trapezoid rule evaluates it with an error that does not grow with u.
        """
        s, best = self.noise, np.zeros(len(edges))
        low, high = self._range(power)
        for theta in _SHIFTS:
            inner = 0.9 * min(theta, math.pi - theta)
            width, negative = inner * s * s, max(-power, 0.0)
            growth = (inner * s) ** 2 / 2 - negative / 2 * (
                math.log(math.cos((theta + inner) / 2)) + math.log(math.cos((theta - inner) / 2))
            )
            step = 2 * math.pi * width / (16 + growth)
            if (high - low) / step > 1500:
                continue
            x = positions(low, high, step)
            modulus, argument = self._on_shifted(x, theta)
            log_term = (
                math.log(step / s) - 0.5 * math.log(2 * math.pi) - x * x / (2 * s * s) + power * modulus - log_moment
            )
            decayed = np.exp(-np.multiply.outer(edges, argument * (1 - 8 * U))) @ np.exp(log_term)
            raised = theta * theta * s * s / 2
            # e^-16 from the strip, and the two ends of the range, where the integrand is a Gaussian tail beyond 9 s.
            error = 2.1 * math.exp(-16.0) + self._ends(x, log_term, power, negative, step)
            best = np.minimum(best, raised + np.log(decayed + error) + 1e-9)
        return best

    def _ends(self, x: Reals, log_term: Reals, power: float, negative: float, step: float) -> float:
        s2 = self.noise**2
        right = math.exp(log_term[-1]) / math.expm1(step * (float(x[-1]) - max(power, 0.0)) / s2)
        slope = -float(x[0]) - negative * self._share(float(x[0]))
        return right + (math.exp(log_term[0]) / math.expm1(step * slope / s2) if slope > 0 else math.inf)

    def _shifted_line(self, power: float, frequencies: Reals, low: float, high: float) -> Line:
        """M(order + iu) as an integral over Im x = theta s^2: as many points for every u, at an error absolute in M."""
        s, negative = self.noise, max(-power, 0.0)
        theta = min(1.2, 1.5 / s)
        while negative * -math.log(math.cos(theta)) > 6 and theta > 0.05:
            theta *= 0.7
        width = theta * s * s
        upper = 2 * theta * theta * s * s - negative * math.log(math.cos(theta))
        step = short(2 * math.pi * width / (38.001 + upper), bits=20)
        if (high - low) / step > _MOST_POINTS:
            return Line(np.zeros(len(frequencies), dtype=np.complex128), np.full(len(frequencies), np.inf))
        x = positions(low, high, step)
        modulus, argument = self._on_shifted(x, theta)
        base = math.log(step / s) - 0.5 * math.log(2 * math.pi) + theta * theta * s * s / 2
        log_weight = base - x * x / (2 * s * s)
        exponent = log_weight + power * modulus
        top = float(np.max(exponent))
        doubt = U * (
            4 * len(x)
            + 96
            + 4 * ULPS * (2 + np.abs(log_weight) + np.abs(power * modulus) + abs(power) * argument + np.abs(x) * theta)
        )
        size = np.exp(exponent - top)
        phase = power * argument - x * theta
        value = exponential_sums(frequencies, size * (np.cos(phase) + 1j * np.sin(phase)), 1j * modulus - argument)
        # The moduli fall with u; their sum at the first frequency bounds the later ones.
        faded = size * np.exp(-frequencies[0] * argument)
        lost = float(faded @ doubt) + 16 * ULPS * U * frequencies * float(faded @ (np.abs(modulus) + argument))
        tails = self._ends(x, exponent - top, power, negative, step)
        strip = 1.05 * (math.exp(-38 - upper) + math.exp(-38.0)) * 2 * math.exp(max(self._log_m(power) - top, -700.0))
        signed: Complexes = value if self.remove else np.conj(value)
        line = logarithm_of_excess(signed.real - 1, signed.imag, lost + tails + strip)
        return Line(line.log + top, line.error + 8 * U * (abs(top) + 1))

    def _log_m(self, power: float) -> float:
        """log M at the real order, enlarged: scales error terms only."""
        low, high = self._range(power)
        coarse = self._grid(low, high, self._coarse)
        return log_sum_exp(coarse.log_weight + power * coarse.ratio) + 0.01


def positions(low: float, high: float, step: float) -> Reals:
    """The multiples of `step` that a grid over [low, high] uses."""
    return step * np.arange(math.floor(low / step), math.ceil(high / step) + 1)
