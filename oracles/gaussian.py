"""Compositions of Gaussian mechanisms: one Gaussian with mu = sqrt(sum times mu_i^2)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from flint import arb

from oracles.ball import Number, ball, hockey, inverse, refined

Parts = Sequence[tuple[Number, int]]


def delta(epsilon: Number, parts: Parts) -> arb:
    """Phi(mu/2 - epsilon/mu) - e^epsilon Phi(-mu/2 - epsilon/mu), `parts` being pairs (mu, times)."""
    return refined(partial(_delta, epsilon, parts))


def epsilon(target: Number, parts: Parts) -> arb:
    """The smallest epsilon >= 0 whose delta is at most `target`."""
    return inverse(lambda point: delta(point, parts), target)


def total(parts: Parts) -> arb:
    """mu of the composition."""
    return sum((times * ball(mu) ** 2 for mu, times in parts), arb(0)).sqrt()


def upper_tail(point: arb) -> arb:
    """P[N(0, 1) > point]."""
    return (point / arb(2).sqrt()).erfc() / 2


def profile(level: arb, square: arb) -> arb:
    """delta at epsilon = `level` of a Gaussian with mu^2 = `square`, at the working precision."""
    mu = square.sqrt()
    if mu.is_zero():
        return hockey(-level)
    return upper_tail(level / mu - mu / 2) - level.exp() * upper_tail(level / mu + mu / 2)


def _delta(epsilon: Number, parts: Parts) -> arb:
    return profile(ball(epsilon), sum((times * ball(mu) ** 2 for mu, times in parts), arb(0)))
