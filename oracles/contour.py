"""delta(epsilon) of any composition by the contour integral, every error enclosed.

For t = l + iu, l > 0, and M the product of the parts' moment generating functions,
    delta(epsilon) = P[L infinite] + g(epsilon),   g(epsilon) = (1 / 2 pi) int M(t) e^{-t epsilon} / (t (t+1)) du.
Poisson summation: the trapezoid of step h, W = 2 pi / h, is sum over n of e^{l n W} g(epsilon + n W), all terms >= 0.
So g = trapezoid - alias, 0 <= alias <= M(0) q / (1-q) for n < 0, q = e^{-l W}, g <= M(0) <= 1; and for n > 0, from 1
- e^{-x} <= m^m (1+m)^{-1-m} e^{m x} at any m > l:  M(m) e^{-m epsilon} m^m (1+m)^{-1-m} p / (1-p), p = e^{-(m-l) W}.
The nodes beyond U: |M(l + iu)| <= M(l) times the envelopes, 1/|t(t+1)| <= 1/u^2.

Where the envelopes never get small, a Gaussian mechanism of mu = s is composed in as well, which can only raise
delta. With f(x) = (1 - e^{-x})_+ and Z ~ N(v/2, v), d/dv E f(x+Z) = E[(f' + f'')(x+Z)] / 2 is half the density of x+Z
at 0, hence E f(x+Z) - f(x) <= s e^{-x/2 - x^2/(2 s^2)} / sqrt(2 pi) at v = s^2, whose transform is s^2 e^{s^2/8}
e^{s^2 t (t+1) / 2}: the same sum with that in the place of 1/(t (t+1)) bounds what was added.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache

from flint import acb, arb, ctx

from oracles.ball import Number, ball, inverse, span
from oracles.law import Law

Parts = Sequence[tuple[Law, int]]

NODES = 20_000
ROUGH = 24  # bits, where a number decides the cost alone
FLOOR = arb(2) ** -1200


@dataclass(frozen=True)
class Plan:
    """The line Re t = order, the period W, last frequency U, smoothing s, m of the alias, bits lost off the saddle."""

    order: float
    period: float
    last: float
    smoothing: float
    above: float
    lost: int = 0


def delta(
    epsilon: Number,
    parts: Parts,
    *,
    bits: int = 60,
    nodes: int = NODES,
    plan: Plan | None = None,
    floor: arb = FLOOR,
) -> arb:
    """A ball around delta(epsilon) of the composition of `parts`, pairs (law, times); wide where `nodes` are too few.

    Where Chernoff's bound on what is not at infinity is under `floor`, the ball reaches from 0 to that bound. Where
    the ball has less than 45 bits, or 3/4 of the wanted ones, it is looked for again with twice the bits.
    """
    times = sum(count for _, count in parts)
    with ctx.workprec(64):
        outside = 1 - _product([1 - law.outside for law, _ in parts], parts)
        largest = sum((count * law.largest for law, count in parts), arb(0))
        chernoff = arb(0) if ball(epsilon) >= largest else chernoff_bound(epsilon, parts)
    if chernoff < floor:
        return span(outside, (outside + chernoff))
    while True:
        chosen = plan or planned_near(epsilon, parts, bits=bits, nodes=nodes)
        with ctx.workprec(
            bits + 30 + chosen.lost + times.bit_length() + 2 * max(math.frexp(chosen.order)[1], 0)
        ):
            outside = 1 - _product([1 - law.outside for law, _ in parts], parts)
            largest = sum((count * law.largest for law, count in parts), arb(0))
            value = (outside + _integral(ball(epsilon), parts, chosen, largest)).intersection(
                arb(0.5, 0.5)
            )
        if (
            value.rel_accuracy_bits() >= min(45, 0.75 * bits)
            or plan
            or chosen.smoothing
            or bits > 1000
        ):
            return value
        bits *= 2  # Chernoff's bound is far from the truth where the loss has two modes


def planned_near(epsilon: Number, parts: Parts, *, bits: int = 60, nodes: int = NODES) -> Plan:
    """The plan for an epsilon close by, the same for neighbors, so that they share its nodes."""
    with ctx.workprec(64):
        largest = sum((count * law.largest for law, count in parts), arb(0))
        mantissa, exponent = math.frexp(float(epsilon))
        near = math.ldexp(math.floor(mantissa * 4096) / 4096, exponent)
        far = largest - ball(epsilon) > abs(ball(epsilon)) / 100
    return _planned(near if far else epsilon, tuple(parts), bits, nodes)


@lru_cache(maxsize=8)
def _planned(epsilon: Number, parts: Parts, bits: int, nodes: int) -> Plan:
    return planned(epsilon, parts, bits=bits, nodes=nodes)


def epsilon(target: Number, parts: Parts) -> arb:
    """The smallest epsilon >= 0 whose delta is at most `target`, to about 40 bits."""
    return inverse(lambda point: delta(point, parts), target, bits=40)


def chernoff_bound(epsilon: Number, parts: Parts) -> arb:
    """The least of M(m) e^{-m epsilon} m^m (1+m)^{-1-m} over m = 1, 4, 16, ..., as long as it falls."""
    best, level = arb(0), ball(epsilon)
    for exponent in range(10):
        m = ball(4**exponent)
        if m > min(law.steepest for law, _ in parts):
            break
        log = (
            sum((count * _log_moment(law, float(4**exponent)) for law, count in parts), arb(0))
            - m * level
        )
        log += m * m.log() - (1 + m) * (1 + m).log()
        if not log < best:
            break
        best = log
    return best.exp().upper()


def planned(epsilon: Number, parts: Parts, *, bits: int = 60, nodes: int = NODES) -> Plan:
    """The line, period and frequency of least cost whose errors are under 2^-bits of the answer's Chernoff bound.

    The saddle point is the best line unless M explodes just above it; then a lower one needs a far shorter period.
    """
    with ctx.workprec(64):
        level = ball(epsilon)

        @cache
        def chernoff(order: float) -> float:
            with ctx.workprec(ROUGH + sum(count for _, count in parts).bit_length()):
                power = sum(
                    (count * _log_moment(law, order) for law, count in parts), arb(0)
                ) - level * ball(order)
            return (
                (float(power.mid()) if power.is_finite() else math.inf)
                - math.log(order)
                - math.log1p(order)
            )

        steepest = min(law.steepest for law, _ in parts)
        saddle = _minimum(chernoff, steepest)
        saddle = min((saddle * factor for factor in (0.98, 0.99, 1.0)), key=chernoff)
        scale, need = chernoff(saddle), (bits + 8) * math.log(2)
        beyond = [
            saddle * factor for factor in (0.97, 1.0, 1.02, 1.05, 1.1, 1.2, 1.5, 2.0, 3.0, 5.0)
        ]
        room = float(sum((count * law.largest for law, count in parts), arb(0)).mid()) - float(
            level.mid()
        )

        def period(order: float) -> tuple[float, float]:
            """The shortest one that keeps the aliases small, and the order at which those of n > 0 are bounded."""
            orders = [above for above in beyond if above > order]
            costs = [
                (chernoff(above) + math.log(above) - scale + need) / (above - order)
                for above in orders
            ]
            right, above = min(zip(costs, orders, strict=True))
            return max((need - scale) / order, 1e-3 / order, min(right, room)), above

        def cost(order: float) -> float:
            return period(order)[0] * math.sqrt(need + chernoff(order) - scale)

        order = min(
            (saddle * factor for factor in (1.0, 0.97, 0.93, 0.88, 0.8, 0.7, 0.6, 0.45)), key=cost
        )
        length, above = period(order)
        limit = nodes * 2 * math.pi / length
        excess = chernoff(order) + math.log(order) + math.log1p(order) - scale
        last = _frequency(
            lambda u: _log_envelope(parts, order, u) - math.log(math.pi * u), -need - excess, limit
        )
        smoothing = 0.0 if last < limit else math.sqrt(2 * need) / last
    return Plan(order, length, last, smoothing, above, max(0, math.ceil(excess * 1.5)))


def _minimum(function: Callable[[float], float], limit: float) -> float:
    """Near the minimum over (0, limit) of a convex function that grows at 0."""
    left, middle = 0.5, 1.0
    if function(left) < function(middle):
        while middle > 1e-8 and function(left) < function(middle):
            left, middle = left / 4, left
        right = middle * 4
    else:
        right = 4.0
        while right < limit and function(right) < function(middle):
            left, middle, right = middle, right, min(right * 4, limit)
    low, high, golden = math.log(left), math.log(right), (math.sqrt(5) - 1) / 2
    while high - low > 0.02:
        first, second = high - golden * (high - low), low + golden * (high - low)
        if function(math.exp(first)) < function(math.exp(second)):
            high = second
        else:
            low = first
    return math.exp((low + high) / 2)


def _frequency(log_bound: Callable[[float], float], enough: float, limit: float) -> float:
    """The least frequency found with log_bound(frequency) <= enough, or `limit`."""
    high = 1.0
    while log_bound(high) <= enough and high > 1e-9:
        high /= 2
    while high < limit and not log_bound(high) <= enough:
        high *= 2
    low = high / 2
    for _ in range(2):  # few bits, so that the doublings of `log_decay` meet again
        middle = (low + high) / 2
        low, high = (low, middle) if log_bound(middle) <= enough else (middle, high)
    return min(high, limit)


def _log_envelope(parts: Parts, order: float, frequency: float) -> float:
    with ctx.workprec(53):
        return sum(float(log_decay(law, order, frequency, count).upper()) for law, count in parts)


def log_decay(law: Law, order: float, frequency: float, count: int) -> arb:
    """At least the logarithm of (|M(order + iu)| / M(order))^count for every u >= frequency.

    |M(order + iu) / M(order)|^2 = 1 - D(u), D(u) = E[1 - cos(u (L - L'))] under the tilted law. From 1 - cos 2x <= 4
    (1 - cos x) D(u) >= D(2u) / 4: what the envelope says at 2^m frequency, divided by 4^m, holds from frequency on.
    """
    best = arb(0)
    for doubling in range(24 if count > 20 else 1):
        envelope = _envelope(law, order, math.ldexp(frequency, doubling)).min(arb(1))
        if envelope.is_zero():
            return arb.neg_inf() if doubling == 0 else best
        if envelope <= 1:
            shrunk = (1 - envelope.upper() ** 2) / 4**doubling
            log = (
                count * envelope.upper().log()
                if doubling == 0
                else ball(count) / 2 * (-shrunk).log1p()
            )
            best = best.min(log.upper())
        if envelope < 0.2:
            break
    return best


@lru_cache(maxsize=4096)
def _envelope(law: Law, order: float, frequency: float) -> arb:
    return law.envelope(order, frequency)


@lru_cache(maxsize=4096)
def _log_moment(law: Law, order: float) -> arb:
    return law.moments(order, 0.0, 1)[0].real.log()


@lru_cache(maxsize=32)
def _moments(law: Law, order: float, step: float, count: int, precision: int) -> list[acb]:
    return law.moments(order, step, count)


def _product(values: list[arb], parts: Parts) -> arb:
    product = arb(1)
    for value, (_, count) in zip(values, parts, strict=True):
        product *= value**count
    return product


def _integral(level: arb, parts: Parts, plan: Plan, largest: arb) -> arb:
    order, period, smooth = ball(plan.order), ball(plan.period), ball(plan.smoothing)
    step = float((2 * arb.pi() / period).mid())
    period = 2 * arb.pi() / ball(step)
    count = max(2, math.ceil(plan.last / step) + 1)
    points = [acb(order, ball(step) * j) for j in range(count)]
    powers = [(-t * level + smooth * smooth * t * (t + 1) / 2).exp() for t in points]
    for law, times in parts:
        moments = _moments(law, plan.order, step, count, ctx.prec)
        powers = [power * moment**times for power, moment in zip(powers, moments, strict=True)]
    first = powers[0].real.abs_upper()
    frequency = step * (count - 1)
    decay = sum(
        (log_decay(law, plan.order, frequency, times) for law, times in parts), arb(0)
    ).exp()
    scale = ball(step) / (2 * arb.pi())
    terms = [(power / (t * (t + 1))).real for power, t in zip(powers, points, strict=True)]
    value = scale * (terms[0] + 2 * sum(terms[1:], arb(0)))
    u = ball(frequency)
    tail = first * decay / arb.pi() / u
    gap = arb(0)
    if plan.smoothing:
        decay *= (-((smooth * u) ** 2) / 2).exp()
        bump = smooth**2 * (smooth**2 / 8).exp()
        total = powers[0].real + 2 * sum((power.real for power in powers[1:]), arb(0))
        tail = first * decay / arb.pi() * (1 / u + bump / (smooth**2 * u))
        gap = (
            bump * (scale * total + first * decay / arb.pi() / (smooth**2 * u))
        ).nonnegative_part()
    excess = alias(level, parts, plan, period, largest)
    return span(value - tail - gap - excess, value + tail)


def alias(level: arb, parts: Parts, plan: Plan, period: arb, largest: arb) -> arb:
    """At least what the trapezoid exceeds the integral by."""
    order, above, smooth = ball(plan.order), ball(plan.above), ball(plan.smoothing)
    q = (-order * period).exp()
    total = q / (1 - q)
    if plan.smoothing or not level + period >= largest:
        moments = _product([law.moments(plan.above, 0.0, 1)[0].real for law, _ in parts], parts)
        power = (
            (-above * level + smooth**2 * above * (above + 1) / 2).exp()
            * above**above
            * (1 + above) ** (-1 - above)
        )
        p = (-(above - order) * period).exp()
        total += moments * power * p / (1 - p)
    return total
