"""Laplace noise of several scales: the contour sum over a million nodes, in complex floats whose errors are bounded.

No factor decays along the line, but each comes near its largest size only now and then, and their product hardly ever:
of most nodes one factor already says that they do not count.

With r = 1/2 / (t + 1/2) and b the bound of a loss, M(t) = (1 + r) e^{bt} / 2 + (1 - r) e^{-b - bt} / 2. Over M(order):
    z = p (1 + r) w + q (1 - r) / w,   w = e^{ibu},   p (1 + r) <= 1 and q <= p at u = 0, where |r| is largest.
With u = 2^-53: w is the product of two of `waves`, good to 16 u; r and t are good to 8 u, p and q to 2 u; z to 80 u in
all, its two terms being at most 1 and 1. If each z_i errs by e_i, their product of powers errs by at most the product
of (|z_i| + e_i)^{k_i} minus that of |z_i|^{k_i}. The former comes from logarithms whose sum is above -60: k_i times
each is good to k_i 4 u and 2 u of itself, the sum of n to n u of itself more. The latter is the product as computed,
good to 3 u (n + sum of k_i). The other factors of a term err by 200 u and 8 u times their exponents, the sum of the
terms by 60 u of their sizes. The bounds are added up in floats and enlarged by a percent.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache, partial

import numpy as np
from flint import acb, arb, ctx

from oracles import contour
from oracles.ball import Number, ball
from oracles.contour import Plan
from oracles.law import Terms
from oracles.residues import Laplace
from oracles.short import UNIT, Summed, summed, waves

ROWS = 64
QUIET = 60.0  # what is e^-60 times smaller than at frequency 0 is left out
FACTOR = 80 * UNIT
Parts = tuple[tuple[Laplace, int], ...]


def delta(epsilon: Number, parts: Sequence[tuple[Laplace, int]], *, nodes: int = 1 << 20) -> arb:
    """A ball around delta(epsilon)."""
    laws = [(Terms(loss), times) for loss, times in parts]
    plan = contour.planned_near(epsilon, laws, bits=48, nodes=nodes)
    return summed(epsilon, laws, plan, partial(_sums, tuple(parts)))


@dataclass(frozen=True)
class _Nodes:
    """The nodes of a line that count, and at each of them the product of all factors, M(order) being 1.

    Args:
        index: Which.
        power: The product.
        error: Bounds on its error.
        left_out: A bound on each of those that do not count.
    """

    index: np.ndarray
    power: np.ndarray
    error: np.ndarray
    left_out: float


def _sums(parts: Parts, plan: Plan, level: float, step: float, count: int) -> tuple[Summed, Summed]:
    """As `summed` asks for."""
    nodes = _nodes(parts, plan.order, step, count)
    columns = math.isqrt(count - 1) + 1
    row, column = np.divmod(nodes.index, columns)
    with ctx.workprec(128):
        sway = acb(0, -ball(step) * ball(level))
        turned = waves(columns * sway, columns)[row] * waves(sway, columns)[column]
    frequency = nodes.index * step
    weight = np.where(nodes.index == 0, 0.5, 1.0) * np.exp(-((plan.smoothing * frequency) ** 2) / 2)
    lean = 0.5 * plan.smoothing**2 * (2 * plan.order + 1) * frequency
    turned = turned * np.exp(1j * lean)
    t = plan.order + 1j * frequency
    power = nodes.power * turned * weight
    kernel = 1 / (t * (t + 1))
    value, bump = float(np.real(power * kernel).sum()), float(np.real(power).sum())
    each = (nodes.error + UNIT * (300 + 8 * lean) * np.abs(nodes.power)) * weight
    lost = count * nodes.left_out
    error = float(np.dot(each, np.abs(kernel))) + lost / (plan.order * (plan.order + 1))
    doubt = float(each.sum()) + lost
    return (value, 1.01 * error), (bump, 1.01 * doubt)


@lru_cache(maxsize=2)
def _nodes(parts: Parts, order: float, step: float, count: int) -> _Nodes:
    columns = math.isqrt(count - 1) + 1
    with ctx.workprec(128):
        factors = [_Factor.of(loss, times, order, step, columns) for loss, times in parts]
    factors.sort(key=lambda factor: -factor.times * float(factor.bound) ** 2)
    doubt = UNIT * (4 * sum(times for _, times in parts) + (2 + len(parts)) * (QUIET + 10))
    found = []
    for first in range(0, count, ROWS * columns):
        index = np.arange(first, min(first + ROWS * columns, count))
        power, most = np.ones(len(index), complex), np.zeros(len(index))
        for factor in factors:
            value = factor.values(index, order, step, columns)
            most = most + factor.times * np.log(np.abs(value) + FACTOR)
            kept = most > -QUIET
            index, most, power = (
                index[kept],
                most[kept],
                power[kept] * _power(value[kept], factor.times),
            )
        high, low = np.exp(most) * (1 + 4 * doubt), np.abs(power) * (1 - 2 * doubt)
        found.append((index, power, high - np.minimum(low, high)))
    index, power, error = (np.concatenate(each) for each in zip(*found, strict=True))
    return _Nodes(index, power, error, math.exp(1 - QUIET))


def _power(values: np.ndarray, times: int) -> np.ndarray:
    """By squaring: each product errs by 3 u, and less than `times` of them count."""
    result = np.ones_like(values)
    while times:
        result = result * values if times & 1 else result
        times >>= 1
        values = values * values if times else values
    return result


@dataclass(frozen=True)
class _Factor:
    """z^times: its weights p and q, and the tables of w."""

    bound: arb
    times: int
    up: float
    down: float
    left: np.ndarray
    right: np.ndarray

    @classmethod
    def of(cls, loss: Laplace, times: int, order: float, step: float, columns: int) -> _Factor:
        bound, whole = ball(loss.epsilon), Terms(loss).moments(order, 0.0, 1)[0].real
        up, down = (order * bound).exp() / 2 / whole, (-(order + 1) * bound).exp() / 2 / whole
        turn = acb(0, ball(step)) * bound
        return cls(
            bound,
            times,
            float(up),
            float(down),
            waves(columns * turn, columns),
            waves(turn, columns),
        )

    def values(self, index: np.ndarray, order: float, step: float, columns: int) -> np.ndarray:
        """z at the nodes."""
        row, column = np.divmod(index, columns)
        ratio = 0.5 / ((order + 0.5) + 1j * (index * step))
        wave = self.left[row] * self.right[column]
        return self.up * (1 + ratio) * wave + self.down * (1 - ratio) * wave.conj()
