"""One sampled mechanism, in closed form: its profile is a transformation of the profile without sampling.

H_a((1-q) Q + q P || Q) = int [q P - (a - 1 + q) Q]_+       = q H_{(a-1+q)/q}(P || Q)
H_a(P || (1-q) P + q Q) = int [(1 - a (1-q)) P - a q Q]_+   = c H_{aq/c}(P || Q),  c = 1 - a (1-q)
"""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

from oracles.ball import Number, ball, hockey, refined, span
from oracles.gaussian import upper_tail

Profile = Callable[[arb], arb]


def gaussian(mu: Number) -> Profile:
    """delta at epsilon for one Gaussian mechanism, at the working precision."""

    def profile(level: arb) -> arb:
        size = ball(mu)
        return upper_tail(level / size - size / 2) - level.exp() * upper_tail(
            level / size + size / 2
        )

    return profile


def laplace(bound: Number) -> Profile:
    """delta at epsilon for one Laplace mechanism of loss at most `bound`: 1 - e^{(epsilon - bound)/2} up to -bound."""

    def profile(level: arb) -> arb:
        largest = ball(bound)
        inner = hockey((largest - level) / 2)
        if level >= -largest:
            return inner
        return hockey(-level) if level <= -largest else span(inner, hockey(-level))

    return profile


def bounded_range(bound: Number) -> Profile:
    """delta at epsilon for one mechanism of bounded range: (1 - e^{-(bound - epsilon)/2})^2 / (1 - e^-bound)."""

    def profile(level: arb) -> arb:
        largest = ball(bound)
        inner = hockey((largest - level) / 2) ** 2 / hockey(largest)
        if level >= -largest:
            return inner
        return hockey(-level) if level <= -largest else span(inner, hockey(-level))

    return profile


def remove(epsilon: Number, rate: Number, profile: Profile) -> arb:
    """delta(epsilon) with the record first, `profile` being that of the mechanism without sampling."""

    def value() -> arb:
        level, q = ball(epsilon), ball(rate)
        odds = 1 + level.expm1() / q
        if odds <= 0:
            return hockey(-level)
        return (
            q * profile(odds.log())
            if odds > 0
            else span(hockey(-level), q * profile((odds.upper()).log()))
        )

    return refined(value)


def add(epsilon: Number, rate: Number, profile: Profile) -> arb:
    """delta(epsilon) with the record second; 0 from epsilon = -log(1 - rate) on."""

    def value() -> arb:
        level, q = ball(epsilon), ball(rate)
        rest = 1 - level.exp() * (1 - q)
        if rest <= 0:
            return arb(0)
        return rest * profile(level + (q / rest).log()) if rest > 0 else span(arb(0), rest.upper())

    return refined(value)


def replace_gaussian(epsilon: Number, rate: Number, mu: Number) -> arb:
    """delta(epsilon) of (1-q) N(0) + q N(-mu) against (1-q) N(0) + q N(mu), whose ratio decreases."""

    def value() -> arb:
        level, q, size = ball(epsilon), ball(rate), ball(mu)
        level_half, odds = level / 2, (1 - q) / q * (size**2 / 2).exp()
        point = ((-odds * level_half.sinh()).asinh() - level_half) / size
        above = (1 - q) * upper_tail(-point) + q * upper_tail(-point - size)
        below = (1 - q) * upper_tail(-point) + q * upper_tail(size - point)
        return above - level.exp() * below

    return refined(value)
