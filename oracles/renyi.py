"""Renyi divergences, D_a = log M(a - 1) / (a - 1), and what they convert to."""

from __future__ import annotations

import math

from flint import arb, ctx

from oracles.atoms import Pair, Points
from oracles.ball import Number, ball, refined
from oracles.law import Law


def divergence(order: float, law: Law) -> arb:
    """D_order(P || Q) of a loss without mass at infinity, order > 1; `order` - 1 is taken exactly."""
    precision = 128
    tilt = order - 1
    if tilt + 1 != order:
        raise ValueError(f"{order!r} - 1 is not a float")
    while True:
        with ctx.workprec(precision):
            value = law.moments(tilt, 0.0, 1)[0].real.log() / ball(tilt)
        if value.rel_accuracy_bits() >= 80 or precision >= 4096:
            return value
        precision *= 2


def conversion_delta(order: Number, divergence: Number, epsilon: Number) -> arb:
    """e^{(a-1)(D - epsilon)} (1 - 1/a)^a / (a - 1), from 1 - e^{-x} <= m^m (1+m)^{-1-m} e^{m x} at m = a - 1."""

    def value() -> arb:
        a = ball(order)
        return ((a - 1) * (ball(divergence) - ball(epsilon))).exp() * (1 - 1 / a) ** a / (a - 1)

    return refined(value)


def conversion_epsilon(order: Number, divergence: Number, delta: Number) -> arb:
    """The epsilon at which `conversion_delta` equals delta."""

    def value() -> arb:
        a = ball(order)
        return ball(divergence) + (1 - 1 / a).log() - (ball(delta) * a).log() / (a - 1)

    return refined(value)


def exact_epsilon(order: Number, divergence: Number, delta: Number) -> arb:
    """The smallest epsilon that D_order <= divergence implies at `delta`, alone.

    Data processing to one event: P(E) = p, Q(E) = q = (p - delta) e^-epsilon. epsilon suffices once the divergence of
    those two points exceeds `divergence` for every p in (delta, 1). The least p is searched, not proved: its error is
    of second order.
    """
    with ctx.workprec(300):
        a, tail, goal = ball(order), ball(delta), ball(divergence)
        low, high = arb(0), arb(1)
        while not _least(a, tail, high) > goal:
            high *= 2
        for _ in range(90):
            middle = (low + high) / 2
            low, high = (low, middle) if _least(a, tail, middle) > goal else (middle, high)
        return low.union(high)


def _least(order: arb, delta: arb, epsilon: arb) -> arb:
    """The least divergence over p in (delta, 1), by golden section in log((p - delta) / (1 - p))."""
    golden = (arb(5).sqrt() - 1) / 2
    low, high = -arb(60), arb(60)

    def at(x: arb) -> arb:
        odds = x.exp()
        p, left = (delta + odds) / (1 + odds), (1 - delta) / (1 + odds)
        q = (p - delta) * (-epsilon).exp()
        return (p**order * q ** (1 - order) + left**order * (1 - q) ** (1 - order)).log() / (
            order - 1
        )

    for _ in range(75):
        first, second = (high - golden * (high - low)).mid(), (low + golden * (high - low)).mid()
        low, high = (low, second) if at(first) < at(second) else (first, high)
    return at(((low + high) / 2).mid())


def two_point(upper: Number, lower: Number, order: float) -> float:
    """The larger of both divergences of (upper, 1 - upper) and (lower, 1 - lower), as a float that is not below it."""

    def value() -> arb:
        a, p, q = ball(order), ball(upper), ball(lower)
        sides = (p, q), (q, p)
        return max(
            ((x**a * y ** (1 - a) + (1 - x) ** a * (1 - y) ** (1 - a)).log() for x, y in sides),
            key=float,
        ) / (a - 1)

    found = refined(value)
    return math.nextafter(float(found.upper()), math.inf)


def quotient(points: Points, tilt: float) -> arb:
    """D_a / a of a pair of points with the same support, a = 1 + `tilt`; in the limit of order 1 for `tilt` 0."""
    if tilt == 0:
        return sum((p * (p / q).log() for p, q in points), arb(0))
    t = ball(tilt)
    return sum((p * (t * (p / q).log()).exp() for p, q in points), arb(0)).log() / (t * (1 + t))


def largest_quotient(pair: Pair) -> arb:
    """D_a / a at the best order that a search finds: the supremum over all orders, or less."""
    with ctx.workprec(256):
        points = [(p, q) for p, q in pair() if p > 0]
        exponents = [-30.0 + 0.25 * step for step in range(180)]
        values = [float(quotient(points, math.exp(each))) for each in exponents]
        at = max(range(len(values)), key=values.__getitem__)
        left, right = exponents[max(at - 1, 0)], exponents[min(at + 1, len(values) - 1)]
        for _ in range(48):
            first, second = left + (right - left) * 0.381966, left + (right - left) * 0.618034
            if quotient(points, math.exp(first)) > quotient(points, math.exp(second)):
                right = second
            else:
                left = first
        return max(quotient(points, 0.0), quotient(points, math.exp((left + right) / 2)), key=float)
