"""delta(epsilon) of any composition on the line Re t = -1/2, which no moment above 0 is asked for.

With nu = sqrt(P Q) and t = -1/2 + iu, M(t) = E_P[e^{tL}] = int e^{iuL} dnu is the transform of a measure of mass at
most 1, and M is 1 at 0 and at -1. Between the poles of 1 / (t (t + 1)), -min(1, e^{-y}) takes the place of (1 -
e^{-y})_+, so that delta(epsilon) = 1 - g(epsilon) with g(x) = E min(1, e^{x - L}) and
    g(epsilon) = (e^{epsilon / 2} / 2 pi) int M(t) e^{-iu epsilon} / (u^2 + 1/4) du.
Poisson summation: the trapezoid of step h, W = 2 pi / h, is sum over n of e^{-nW/2} g(epsilon + nW). Of those,
    n > 0:  e^{-nW/2} (1 - delta(epsilon + nW)),      n < 0:  e^epsilon e^{-|n|W/2} (1 - delta'(|n|W - epsilon)),
delta' being that of the other order (Q, P). With c = 1 / (e^{W/2} - 1) the trapezoid is therefore
    g(epsilon) + (1 + e^epsilon) c - R,   0 <= R <= c (delta(epsilon + W) + e^epsilon delta'(W - epsilon)),
where delta(epsilon + W) <= delta(epsilon), and Chernoff's bounds often say far less: a short period is enough.
The other order has the conjugate transform: the same nodes are its own.

Beyond U: |M| <= M(-1/2) times the envelopes. For a sampled Gaussian, on Im x = y the modulus of the integrand falls
with u at every x. Its integral is a trapezoid again: log |r(x + iy)| and arg r(x + iy) are analytic in x, and on the
line Im x = s the modulus is at most e^{(s^2 + y^2) / 2} times that at y = s = 0 as long as mu (|s| + y) <= pi / 2,
where arg r(x + iy) rises with y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
from flint import acb, arb, ctx

from oracles.ball import Number, ball, span
from oracles.contour import Parts
from oracles.law import Law, Terms
from oracles.normal import Direction, SampledGaussian
from oracles.residues import Laplace

ORDER = -0.5
NODES = 40_000
DOUBLINGS = 30
HEIGHTS = (1e-5, 1e-4, 5e-4, 0.002, 0.005, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.65, 0.8)
"""Of the shifted line, in units of pi / 2 mu."""


@dataclass(frozen=True)
class Line:
    """The nodes of a composition, for both orders.

    Args:
        parts: The losses of (P, Q), pairs (law, times), none of them ever infinite.
        other: Those of (Q, P).
        step: The distance of the nodes.
        count: How many there are at u >= 0.
        bits: The working precision.
    """

    parts: Parts
    other: Parts
    step: float
    count: int
    bits: int

    def delta(self, epsilon: Number) -> arb:
        """A ball around delta(epsilon) of (P, Q)."""
        with ctx.workprec(self.bits):
            return self._value(ball(epsilon), 1)

    def reverse(self, epsilon: Number) -> arb:
        """A ball around delta(epsilon) of (Q, P)."""
        with ctx.workprec(self.bits):
            return self._value(ball(epsilon), -1)

    def _value(self, level: arb, side: int) -> arb:
        rate = acb(0, -side * ball(self.step) * level)
        blocks = math.isqrt(self.count) + 1
        turns, leaps = (
            [(rate * j).exp() for j in range(blocks)],
            [(rate * j * blocks).exp() for j in range(blocks)],
        )
        total = -self._weights[0].real / 2
        for row, leap in enumerate(leaps):
            some = self._weights[row * blocks : (row + 1) * blocks]
            total += (
                leap
                * sum((turn * weight for turn, weight in zip(turns, some, strict=False)), acb(0))
            ).real
        scale = ball(self.step) / arb.pi() * (level / 2).exp()
        raw = scale * total
        tail = (level / 2).exp() * self._tail
        period = 2 * arb.pi() / ball(self.step)
        share = 1 / (period / 2).expm1()
        above = (1 - raw + (1 + level.exp()) * share + tail).min(arb(1))
        ours, theirs = (self.parts, self.other)[::side]
        aliases = share * (
            above.upper().min(bound(level + period, ours))
            + level.exp() * bound(period - level, theirs)
        )
        return span(above - 2 * tail - aliases, above).nonnegative_part()

    @cached_property
    def _weights(self) -> list[acb]:
        """M / (u^2 + 1/4) at the nodes."""
        powers = [acb(1)] * self.count
        for law, times in self.parts:
            moments = _line(law, self.step, self.count, self.bits)
            powers = [power * moment**times for power, moment in zip(powers, moments, strict=True)]
        step, quarter = ball(self.step), arb(1) / 4
        return [power / ((step * j) ** 2 + quarter) for j, power in enumerate(powers)]

    @cached_property
    def _tail(self) -> arb:
        """At least what the nodes from `count` on add to e^{-epsilon/2} g."""
        last = ball(self.step) * (self.count - 1)
        log = sum((log_decay(law, float(last.lower()), times) for law, times in self.parts), arb(0))
        return self._weights[0].real.abs_upper() / 4 * log.exp() / arb.pi() / last


def delta(
    epsilon: Number,
    parts: Parts,
    other: Parts,
    *,
    bits: int = 40,
    nodes: int = NODES,
    goal: float = 0.0,
) -> arb:
    """A ball around delta(epsilon), good to about `bits` where `nodes` allow; `goal` is roughly what it is."""
    goal = goal or float(bound(ball(epsilon), parts).upper()) or 1e-300
    while True:
        value = around(epsilon, parts, other, bits=bits, nodes=nodes, goal=goal).delta(epsilon)
        if not 1e-300 < value.upper() < goal / 100:
            return value
        goal = float(value.upper())


def around(
    epsilon: Number,
    parts: Parts,
    other: Parts,
    *,
    bits: int = 40,
    nodes: int = NODES,
    goal: float = 0.0,
) -> Line:
    """The line for delta at and near an epsilon, the same for neighbors, so that they share its nodes."""
    goal = goal or float(bound(ball(epsilon), parts).upper()) or 1e-300
    need = bits * math.log(2) - math.log(goal)
    level, copies = float(epsilon), sum(times for _, times in parts)
    period = _period(round(level, 4), tuple(parts), tuple(other), bits, goal)
    limit = 2 * math.pi * nodes / period
    last = _last(parts, need + max(level, 0.0) / 2, limit)
    step = math.ldexp(round(math.ldexp(2 * math.pi / period, 12)), -12) or 2 * math.pi / period
    # c is about 2 / W where W is short; k-th powers lose log k digits.
    working = (
        math.ceil(need / math.log(2))
        + 2 * copies.bit_length()
        + 40
        + max(0, math.ceil(-math.log2(period)))
    )
    return Line(tuple(parts), tuple(other), step, min(math.ceil(last / step) + 2, nodes), working)


def bound(level: arb, parts: Parts) -> arb:
    """Chernoff's bound on delta at `level`, or 1: over orders four to an octave."""
    if level <= 0:
        return arb(1)
    largest = sum((times * law.largest for law, times in parts), arb(0))
    if level >= largest:
        return arb(0)
    best, steepest = arb(0), min(law.steepest for law, _ in parts)
    worse = 0
    for exponent in range(-8, 56):
        order = 2.0 ** (exponent / 4)
        if order > steepest or worse > 12:
            break
        log = (
            sum((times * _log_moment(law, order) for law, times in parts), arb(0))
            - ball(order) * level
        )
        log += ball(order) * ball(order).log() - (1 + ball(order)) * (1 + ball(order)).log()
        worse = 0 if log < best else worse + 1
        best = best.min(log.upper())
    return best.exp().upper()


@lru_cache(maxsize=1 << 16)
def _log_moment(law: Law, order: float) -> arb:
    with ctx.workprec(96):
        return law.moments(order, 0.0, 1)[0].real.log()


@lru_cache(maxsize=4)
def _line(law: Law, step: float, count: int, bits: int) -> list[acb]:
    with ctx.workprec(bits):
        if isinstance(law, Terms) and isinstance(law.loss, Laplace):
            return _laplace(ball(law.loss.epsilon), ball(step), count)
        return law.moments(ORDER, step, count)


def _laplace(largest: arb, step: arb, count: int) -> list[acb]:
    """e^{-b/2} (cos(ub) + sin(ub) / (2u)), the quotient b / 2 at 0."""
    points = [step * j for j in range(1, count)]
    values = [(u * largest).cos() + (u * largest).sin() / (2 * u) for u in points]
    return [acb((-largest / 2).exp() * value) for value in (1 + largest / 2, *values)]


@lru_cache(maxsize=64)
def _period(level: float, parts: Parts, other: Parts, bits: int, goal: float) -> float:
    """The shortest period whose aliases are small enough."""
    with ctx.workprec(64):
        small = 2.0**-bits * goal
        period = 2 * (bits * math.log(2) - math.log(goal) + max(level, 0.0) + 2)
        while True:
            shorter = 0.8 * period
            if shorter < 1.1 * level:
                return period
            share = 1 / math.expm1(min(shorter / 2, 700.0))
            aliases = min(goal, float(bound(ball(level + shorter), parts).upper()))
            aliases += math.exp(level) * float(bound(ball(shorter - level), other).upper())
            if not share * aliases < small:
                return period
            period = shorter


def _last(parts: Parts, need: float, limit: float) -> float:
    """The frequency at which the line may end, as far as floats can tell; at most `limit`."""

    def enough(u: float) -> bool:
        return sum(_rough_decay(law, u, times)[0] for law, times in parts) - math.log(u) < -need

    u = min(1.0, limit)
    while u < limit and not enough(u):
        u = min(2 * u, limit)
    low = u / 2
    while u / low > 1.05 and u < limit:
        middle = math.sqrt(low * u)
        low, u = (low, middle) if enough(middle) else (middle, u)
    return u


# ------------------------------------------------------------------------------------------------------- how M falls


def log_decay(law: Law, frequency: float, times: int) -> arb:
    """At least the logarithm of |M(-1/2 + iu) / M(-1/2)|^times for every u >= frequency.

    |M / M(-1/2)|^2 = 1 - D(u), and D(u) >= D(2u) / 4: see `contour.log_decay`.
    """
    _, doubling, height = _rough_decay(law, frequency, times)
    envelope = _envelope(law, math.ldexp(frequency, doubling), height)
    if not envelope < 1:
        return arb(0)
    if doubling == 0:
        return times * envelope.upper().log()
    return ball(times) / 2 * (-(1 - envelope.upper() ** 2) / 4**doubling).log1p()


def _rough_decay(law: Law, frequency: float, times: int) -> tuple[float, int, float]:
    """About `log_decay`, and by which doubling and height it is reached."""
    if not isinstance(law, SampledGaussian):
        return times * math.log(float(_envelope(law, frequency, 0.0))), 0, 0.0
    weights, angles, lifts = _rough(law)
    heights = np.array(HEIGHTS) * math.pi / 2 / float(law.mu)
    best = 0.0, 0, 0.0
    for doubling in range(DOUBLINGS if times > 5 else 1):
        shrunk = lifts * (np.expm1(-math.ldexp(frequency, doubling) * angles) @ weights) + (
            lifts - 1
        )
        with np.errstate(divide="ignore"):
            if doubling:
                logs = times / 2 * np.log1p(shrunk * (2 + shrunk) / 4.0**doubling)
            else:
                logs = times * np.log1p(np.maximum(shrunk, -1.0))
        at = int(np.argmin(logs))
        if logs[at] < best[0]:
            best = float(logs[at]), doubling, float(heights[at])
    return best


@lru_cache(maxsize=64)
def _rough(law: SampledGaussian) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """In floats: the weights of points x that add up to 1, arg at each height (rows), e^{y^2/2}."""
    mu, q = float(law.mu), float(law.rate)
    x = np.arange(-12.0, 12.0 + mu, min(0.1, 0.1 / mu))
    ratios = [1 - q + q * np.exp(side * mu * x - mu * mu / 2) for side in _sides(law)]
    weights = np.exp(-x * x / 2) * np.sqrt(np.prod(ratios, axis=0))
    heights = np.array(HEIGHTS) * math.pi / 2 / mu
    angles = np.zeros((len(heights), len(x)))
    for side in _sides(law):
        grown = q * np.exp(side * mu * x - mu * mu / 2)
        turn = mu * heights[:, None]
        angles += np.arctan2(grown * np.sin(turn), 1 - q + grown * np.cos(turn))
    return weights / weights.sum(), angles, np.exp(heights**2 / 2)


def _sides(law: SampledGaussian) -> Sequence[int]:
    """r for one sampled distribution, r and its mirror image for two."""
    return (1, -1) if law.direction is Direction.REPLACE else (1,)


def _envelope(law: Law, frequency: float, height: float) -> arb:
    """At least |M(-1/2 + iu)| / M(-1/2) for every u >= frequency."""
    if isinstance(law, Terms) and isinstance(law.loss, Laplace):
        far = (1 + 1 / (4 * ball(frequency) ** 2)).sqrt() / (1 + ball(law.loss.epsilon) / 2)
        return far.min(arb(1))
    if not isinstance(law, SampledGaussian):
        return law.envelope(ORDER, frequency)
    if not height:
        return arb(1)
    return _shifted(law, frequency, height, ctx.prec)


@lru_cache(maxsize=256)
def _shifted(law: SampledGaussian, frequency: float, height: float, bits: int) -> arb:
    """The integral of the modulus on Im x = height, at `frequency`, over M(-1/2)."""
    with ctx.workprec(bits):
        whole = law.moments(ORDER, 0.0, 1)[0].real
        mu, q, y, u = ball(law.mu), ball(law.rate), ball(height), ball(frequency)
        room = math.pi / 2 / float(law.mu) - height
        strip = min(room * 0.999, 4.0)
        spacing = 2 * math.pi * strip / (90 * math.log(2) + strip**2)
        h, s = ball(spacing), ball(strip)
        assert mu * (y + s) < arb.pi() / 2  # the angles rise
        reach = math.ceil((13.0 + float(law.mu)) / spacing)
        total = arb(0)
        for j in range(-reach, reach + 1):
            x = acb(h * j, y)
            logs = [
                ((1 - q) + q * (side * mu * acb(h * j, side * y) - mu * mu / 2).exp()).log()
                for side in _sides(law)
            ]
            log = sum(logs, acb(0))
            total += ((-x * x / 2).real + log.real / 2 - u * log.imag).exp()
        lift = (y * y / 2).exp()
        missed = 2 * lift * (s * s / 2).exp() * whole / (2 * arb.pi() * s / h).expm1()
        outside = lift * law.outside_of(h * reach)
        return ((total * h / (2 * arb.pi()).sqrt() + missed + outside) / whole).upper()
