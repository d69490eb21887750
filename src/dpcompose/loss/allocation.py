"""The loss of one random allocation, a record in one of t Gaussian steps at random, and its moments.

E S^(c - iu), the moments of one random allocation's likelihood ratio at complex orders, by Mellin's transform.

For a whole m > c and q = m - c + iu, with D_m(x) = E S^m e^(-xS) analytic for |arg x| < pi / 2,
  Gamma(q) E S^(m - q) = the integral of e^(q (y + i angle)) D_m(e^(y + i angle)) over all real y.
The trapezoidal rule of step h is by Poisson's formula the sum over whole n of the same with q + i w_n in place of q,
times e^(w_n angle), w_n = 2 pi n / h. Since log S is a normal variable of variance v = 1 / (t s^2) plus an independent
rest, |E S^(c - iu)| <= E S^c e^(-v u^2 / 2): every alias is bounded by a value of Gamma. The ray is turned by
about arg q, since Gamma falls like e^(-pi u / 2) there and so does the integral.

Ends: below, E S^m e^(-xS) <= E S^n sup_S S^(m - n) e^(-xS) for whole n; above, |D_m(x)| <= (4 m / (e X))^m Psi(3 X / 4)
with X = Re x and Psi(X) = E e^(-XS), and e^(ay) Psi(e^y) is log-concave in y, a convolution of log-concave functions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple, Self

import numpy as np
from scipy.special import loggamma, polygamma

from dpcompose.contour import Line, Transform, shortened
from dpcompose.loss.allocation_table import Allocation
from dpcompose.loss.base import Loss, merged
from dpcompose.numerics import Complexes, Reals, U

_SHARE = 10.0
"""Re q, where the degree allows it: a larger one makes the integrand narrower in y, and a smaller one costs less."""
_LOST = 3.0
"""A ray serves the frequencies at which it loses at most a factor e^3 to cancellation."""
_DEPTH = 40.0
_KEPT = 0.75
_MOST_NODES = 40_000
_BLOCK = 64
_MOST_SHARE = 65536.0


class Window(NamedTuple):
    """Where the integrand on the real axis matters, and its logarithm at the nodes of a coarse grid.

    Args:
        degree: m.
        share: Re q.
        low: Below it the integrand is negligible.
        high: Above it likewise.
        center: Near its largest value.
        log_size: The logarithm of the whole integral, roughly.
        mean: The mean of y under the integrand, roughly.
        variance: Its variance.
    """

    degree: int
    real_part: float
    low: float
    high: float
    center: float
    log_size: float
    mean: float
    variance: float


def degree_for(law: Allocation, order: float) -> int | None:
    """m for E S^order: at least 1.5 above it; None if the moments that are known do not reach so far."""
    least, wanted = max(math.ceil(order + 1.5), 0), max(math.ceil(order + _SHARE), 0)
    return None if least > law.most else min(wanted, law.most)


@lru_cache(maxsize=64)
def _plan(law: Allocation, degree: int, least: int) -> tuple[Reals, Reals]:
    """Nodes y, and log D_k(e^y) for k = 0..degree in rows, close enough for exponents q with Re q up to 16; up to four
    times the real part `least` if the degree is 0."""
    spread = 1 / (law.steps * law.sigma**2)
    far, wide = (4 * least if not degree else 16) * spread, math.sqrt(200 * spread)
    if degree:
        step, high = 0.2, 9 + far + wide
        low = -10 - max(degree / law.sigma**2 - math.log(law.steps), 0.0) - 12 / law.sigma
    else:
        step = 0.4 / math.sqrt(least)
        low = math.log(least) - 3 - 60 / least
        high = math.log(4 * least) + 3 + far + wide
    count = min(math.ceil((high - low) / step) + 1, _MOST_NODES)
    table = law.tables(degree, low, step, count, 0.0)
    return low + step * np.arange(count), np.where(table.error < 1, table.log.real, -np.inf)


@lru_cache(maxsize=1 << 12)
def window(law: Allocation, order: float) -> Window | None:
    """Between which y the integrand at a real exponent matters; None if that exponent is above the moments that are
    known."""
    degree = degree_for(law, order)
    if degree is None or degree - order > _MOST_SHARE:
        return None
    real_part = degree - order
    bucket = min(2 ** math.ceil(math.log2(degree)), law.most) if degree else 0
    places, logs = _plan(law, bucket, 1 if bucket else 4 ** math.floor(math.log(real_part, 4)))
    log = logs[degree] + real_part * places
    top = int(log.argmax())
    inside = np.flatnonzero(log > log[top] - _DEPTH - np.where(np.arange(len(log)) < top, 10, 35))
    if not (log[top] > -np.inf and inside[0] > 0 and inside[-1] < len(log) - 1):
        return None
    mass = np.exp(log - log[top])
    mean = float((mass * places).sum() / mass.sum())
    size = float(log[top] + math.log(mass.sum() * (places[1] - places[0])))
    low, high, center = (float(places[at]) for at in (inside[0], inside[-1], top))
    if degree:
        low = min(
            low,
            max(
                (size - _DEPTH - 5 - height) / rate
                for rate, height in _powers_below(law, order, degree)
            ),
        )
    spread = float((mass * (places - mean) ** 2).sum() / mass.sum())
    return Window(
        degree,
        real_part,
        low=low,
        high=high,
        center=center,
        log_size=size,
        mean=mean,
        variance=spread,
    )


def moments(law: Allocation, order: float, frequencies: Reals) -> tuple[Complexes, Reals]:
    """log E S^(order - i u) at frequencies u >= 0, any branch, and bounds on the errors, as in a `Line`."""
    seen = window(law, order)
    log: Complexes = np.full(len(frequencies), 700.0 + 0j)
    error: Reals = np.full(len(frequencies), np.inf)
    if seen is None:
        return log, error
    height, height_error = _on_ray(law, order, seen, np.zeros(1), 0.0, None)
    top = float(height[0].real + height_error[0])
    if not height_error[0] < 1:
        return log, error
    done = 0
    while done < len(frequencies):
        angle = _angle(seen.real_part, float(frequencies[done]))
        most = _most_lost(seen.real_part, float(frequencies[done]))
        fit = _lost(seen.real_part, frequencies[done:], angle) <= most * (1 + 1e-9)
        count = len(fit) if fit.all() else max(int(fit.argmin()), 1)
        part = slice(done, done + count)
        log[part], error[part] = _on_ray(law, order, seen, frequencies[part], angle, top)
        done += count
        if (
            not error[done - 1] < 1
        ):  # rounding hides what is farther out still more, at a higher cost
            break
    # What is not known better is below the Gaussian bound, and below what rounding may hide.
    bound = np.minimum(
        top - frequencies**2 / (2 * law.steps * law.sigma**2) * (1 - 1e-12), log.real + error
    )
    far = error >= 1
    return np.where(far, bound, log), np.where(far, 1.0, error)


def _lost(real_part: float, frequencies: Reals, angle: float) -> Reals:
    """How much cancels in the integral along a ray, as a logarithm: the integral of the moduli over the modulus of the
    integral."""
    gamma = loggamma(real_part + 1j * frequencies).real
    return (
        -real_part * math.log(math.cos(angle))
        - frequencies * angle
        + math.lgamma(real_part)
        - gamma
    )


def _most_lost(real_part: float, frequency: float) -> float:
    """The most cancellation that a ray is allowed at a frequency: the best ray loses half of log(frequency / real_part)
    anyway."""
    best = _lost(real_part, np.array([frequency]), math.atan2(frequency, real_part))[0]
    return max(_LOST, float(best) + 1)


def _angle(real_part: float, frequency: float) -> float:
    """The largest angle of a ray that is accurate enough at a frequency."""
    low, high, most = (
        math.atan2(frequency, real_part),
        math.pi / 2,
        _most_lost(real_part, frequency),
    )
    for _ in range(30):
        middle = (low + high) / 2
        fits = _lost(real_part, np.array([frequency]), middle)[0] <= most
        low, high = (middle, high) if fits else (low, middle)
    return low


def _on_ray(
    law: Allocation, order: float, seen: Window, frequencies: Reals, angle: float, top: float | None
) -> tuple[Complexes, Reals]:
    """`moments` along one ray from 0; `top` is an upper bound on log E S^order, None if that bound itself is asked for,
    at angle 0."""
    degree, real_part, cosine = seen.degree, seen.real_part, math.cos(angle)
    gamma = loggamma(real_part + 1j * frequencies)
    variance = 1 / (law.steps * law.sigma**2)
    step = _step(real_part, frequencies, angle, variance, gamma.real)
    moved = -math.log(cosine)
    start = shortened(seen.low + moved, bits=20)
    count = math.ceil((seen.high + moved - start) / step) + 1
    if count > _MOST_NODES:
        return np.full(len(frequencies), 700.0 + 0j), np.full(len(frequencies), np.inf)
    table = law.table(degree, start, step, count, angle)
    unknown = np.flatnonzero(~(table.error < 1e300))
    count = int(unknown[0]) if len(unknown) else count
    if count < 2:
        return np.full(len(frequencies), 700.0 + 0j), np.full(len(frequencies), np.inf)
    log_d, log_error = table.log[:count], table.error[:count]
    places = start + step * np.arange(count)
    middle = shortened(seen.center + moved, bits=20)
    exponent = log_d + real_part * places + 1j * real_part * angle
    scale = float(exponent.real.max())
    weights = np.exp(exponent - scale)
    sums = _waves(weights, frequencies, start - middle, step)
    sizes = np.abs(weights)
    relative = log_error + U * (count + 24 + 6 * np.abs(exponent) + 4 * np.abs(real_part * places))
    relative = np.expm1(np.minimum(relative, 600.0))
    reach = abs(start - middle) + step * (count + _BLOCK)
    rounding = float((sizes * relative).sum()) + frequencies * 8 * U * reach * float(sizes.sum())
    tails = (
        _left(law, order, degree, start, step, cosine),
        _right(law, order, degree, places, cosine),
    )
    ends = sum(math.exp(min(tail - scale, 700.0)) for tail in tails)
    absolute = (rounding + ends) * step
    out = scale - frequencies * angle - gamma.real  # log of the factor that makes a sum a moment
    log = (
        np.log(np.abs(sums) * step)
        + out
        + 1j * (np.angle(sums) + frequencies * middle - gamma.imag)
    )
    gamma_error = (
        64
        * U
        * (4 + np.abs(gamma) + frequencies * (1 + abs(middle)) + np.abs(out) / 8 + abs(scale))
    )
    aliases = _aliases(real_part, frequencies, angle, variance, step, gamma.real)
    if top is None:
        error = absolute / (np.abs(sums) * step) + aliases * 1.1
    else:
        error = absolute / (np.abs(sums) * step) + np.exp(
            np.minimum(np.log(aliases + 1e-300) + top - log.real, 700.0)
        )
    return _settled(log, error, gamma_error)


def _waves(weights: Complexes, frequencies: Reals, start: float, step: float) -> Complexes:
    """The sums of w_k e^(iu (start + k step)), by blocks: their phases are good to 4 U u times the farthest place."""
    blocks = -(-len(weights) // _BLOCK)
    padded = np.zeros(blocks * _BLOCK, dtype=complex)
    padded[: len(weights)] = weights
    inside = np.exp(1j * np.multiply.outer(frequencies, step * np.arange(_BLOCK)))
    across = np.exp(1j * np.multiply.outer(frequencies, start + step * _BLOCK * np.arange(blocks)))
    return ((inside @ padded.reshape(blocks, _BLOCK).T) * across).sum(axis=1)


def _settled(log: Complexes, error: Reals, more: Reals) -> tuple[Complexes, Reals]:
    """Bounds on the errors of the logarithms of moments, from relative errors of the moments; where these are 1 or
    more, an upper bound on the logarithm's size."""
    sure = error < 0.4
    settled = np.where(sure, -np.log1p(-np.minimum(error, 0.4)), 1.0) + more
    raised = log + np.where(sure, 0.0, np.log1p(np.minimum(error, 1e300)))
    return np.where(np.isfinite(log) & np.isfinite(error), raised, 700.0), np.where(
        np.isfinite(error), settled, np.inf
    )


def _aliases(
    real_part: float,
    frequencies: Reals,
    angle: float,
    variance: float,
    step: float,
    log_gamma: Reals,
) -> Reals:
    """The sum of all aliases, relative to E S^order: four terms, and as much again for all others."""
    total = np.zeros(len(frequencies))
    for n in (-2, -1, 1, 2):
        wave = 2 * math.pi * n / step
        size = loggamma(real_part + 1j * (frequencies + wave)).real - log_gamma + wave * angle
        total = total + np.exp(np.minimum(size - variance * (frequencies + wave) ** 2 / 2, 700.0))
    return 2 * total


def _step(
    real_part: float, frequencies: Reals, angle: float, variance: float, log_gamma: Reals
) -> float:
    """The longest step between nodes whose aliases are negligible at the first and at the last frequency."""
    ends = np.array([0, len(frequencies) // 2, len(frequencies) - 1])
    step = min(0.5, math.pi / (2 * float(frequencies[-1]) + 1))
    while step > 1e-5:
        aliases = _aliases(real_part, frequencies[ends], angle, variance, step, log_gamma[ends])
        if float(aliases.max()) < math.exp(-_DEPTH):
            break
        step *= 0.85
    return shortened(step, bits=20)


def _left(
    law: Allocation, order: float, degree: int, start: float, step: float, cosine: float
) -> float:
    """log of a bound on the sum of the sizes of all nodes below the first."""
    turned = math.log(cosine)
    if not degree:
        return _beyond(law, -order, start + turned, start + step + turned) + order * turned
    bounds = _powers_below(law, order, degree)
    logs = (
        height + rate * (start + turned - step) - math.log(-math.expm1(-rate * step))
        for rate, height in bounds
    )
    return min(logs) - (degree - order) * turned + 1e-9


def _powers_below(law: Allocation, order: float, degree: int) -> list[tuple[float, float]]:
    """Pairs (rate, height): the real integrand is at most e^(height + rate y), by each whole order above this one."""
    found: list[tuple[float, float]] = []
    for whole in range(max(math.ceil(order + 0.5), 0), degree + 1):
        rest = degree - whole
        peak = rest * (math.log(rest) - 1) if rest else 0.0
        found.append((whole - order, float(law.whole[whole]) + law.whole_error(whole) + peak))
    return found


def _right(law: Allocation, order: float, degree: int, places: Reals, cosine: float) -> float:
    """log of a bound on the sum of the sizes of all nodes above the last."""
    kept = _KEPT if degree else 1.0
    turned = math.log(cosine * kept)
    before, last = float(places[-2]) + turned, float(places[-1]) + turned
    peak = degree * (math.log(degree * kept / (1 - kept)) - 1) if degree else 0.0
    return _beyond(law, -order, last, before) - (degree - order) * turned + peak


def _beyond(law: Allocation, rate: float, last: float, before: float) -> float:
    """log of a bound on the sum of e^(rate y) Psi(e^y), log-concave, over equidistant y beyond these two."""
    low, step = min(last, before), abs(last - before)
    table = law.table(0, low, step, 2, 0.0)
    log = table.log.real + rate * np.array([low, low + step])
    fall = (
        -abs(float(log[1] - log[0]))
        + 2 * float(table.error.sum())
        + 1e-12 * float(np.abs(log).max())
    )
    outward = bool(log[1] < log[0]) if last > before else bool(log[0] < log[1])
    if not (outward and fall < 0):
        return math.inf
    size = float(log[1] if last > before else log[0])
    return size + float(table.error.max()) + fall - math.log(-math.expm1(fall)) + 1e-9


_WITHIN, _STEEP = 0.95, 1e4


@dataclass(frozen=True)
class AllocationLoss(Loss):
    """log S where the record is there if `remove`, and -log S where it is not.

    Reference: [FeldmanShenfeld2025], [Chua2025]
    """

    sigma: float
    steps: int
    remove: bool

    def transform(self, times: int) -> Transform:
        return AllocationSum(Allocation(self.sigma, self.steps), self.remove, times)

    @property
    def zcdp(self) -> float:
        """The zCDP parameter of a record whose step is known, which is an upper bound: Renyi divergence is
        quasi-convex."""
        return 0.5 / self.sigma**2 * (1 + 8 * U)

    @classmethod
    def combine(cls, group: Sequence[tuple[Self, int]]) -> Sequence[tuple[Loss, int]]:
        return merged(group)


@dataclass(frozen=True)
class AllocationSum(Transform):
    """The sum of so many independent losses."""

    law: Allocation
    remove: bool
    times: int

    @property
    def copies(self) -> float:
        return self.times

    @property
    def scale(self) -> float:
        return (
            self.times * float(self.law.whole[2])
            if self.law.most >= 2
            else self.times / self.law.sigma**2
        )

    def _moment(self, order: float) -> float:
        """The exponent of S that belongs to an order: M(order) is a moment of S."""
        return order + 1 if self.remove else -order

    @property
    def _farthest(self) -> float:
        """The largest order at which a line may stand: moments of higher orders are not known."""
        return _WITHIN * (self.law.most - 2.5) if self.remove else math.inf

    def cumulants(self, order: float) -> tuple[float, float, float]:
        """K and its derivatives at orders; above the largest order with a known moment K is stated to rise steeply, so
        that no line is planned there."""
        if order > self._farthest:
            log, first, second = self._cumulants(self._farthest)
            beyond, steep = order - self._farthest, _STEEP * second
            return log + first * beyond + steep * beyond**2 / 2, first + steep * beyond, steep
        return self._cumulants(order)

    def _cumulants(self, order: float) -> tuple[float, float, float]:
        power = self._moment(order)
        seen = window(self.law, power)
        if seen is None:
            return math.inf, math.inf, math.inf
        real_part = seen.real_part
        log = seen.log_size - math.lgamma(real_part)
        first = float(polygamma(0, real_part)) - seen.mean
        second = seen.variance - float(polygamma(1, real_part))
        if not second > 0:
            return math.inf, math.inf, math.inf
        return (
            self.times * log,
            self.times * (first if self.remove else -first),
            self.times * second,
        )

    def moment_bound(self, order: float) -> float:
        power = self._moment(order)
        if self.remove and power == math.floor(power) and power <= self.law.most:
            return self.times * self.law.above(power)
        bound = super().moment_bound(order)
        return min(bound, self.times * self.law.above(power)) if self.remove else bound

    def line(self, order: float, frequencies: Reals) -> Line:
        power = self._moment(order)
        if self.remove and power.is_integer() and power <= self.law.most and not frequencies.any():
            whole = int(power)
            log = np.full(len(frequencies), self.times * self.law.whole[whole] + 0j)
            error = self.times * self.law.whole_error(whole) + 4 * U * np.abs(log)
            return Line(log, error)
        log, error = moments(self.law, power, frequencies)
        log = self.times * (log.conj() if self.remove else log)
        return Line(
            log,
            np.where(
                error < 1,
                self.times * (error + 4 * U * np.abs(log) / self.times),
                np.maximum(error, 1.0),
            ),
        )

    def log_envelope(self, order: float, edges: Reals) -> Reals:
        """Bounds on |phi|: those of the factor of S that is Gaussian, with variance 1 / (t s^2)."""
        return -np.square(edges) * (
            self.times / (2 * self.law.steps * self.law.sigma**2) * (1 - 64 * U)
        )
