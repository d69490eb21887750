"""Few steps of DP-SGD: the contour sum over a million nodes, in complex floats whose errors are bounded.

With u = 2^-53: an exponential is a product of two that come from balls and are rounded once, good to 6 u, and so is its
multiple by a weight, to 10 u. A matrix product of inner length n errs by at most 2 (n + 20) u times the product of the
absolute values, in whatever order it is summed; no term of M's exponential sum grows with the frequency, so that is at
most 2 (n + 20) u S for all of them, S the sum of the absolute weights. A k-th power turns an error e into
k (|z| + e)^{k-1} e and adds 8 k u |z|^k; the other factors of a term err by 60 u of it. The terms are added without
error but the last rounding (fsum). The bounds are added up in floats and enlarged by a percent.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from flint import acb, arb, ctx

from oracles import contour
from oracles.ball import Number, ball, span, widen
from oracles.contour import Parts, Plan
from oracles.normal import SampledGaussian

UNIT = 2.0**-53
ROWS = 64
Summed = tuple[float, float]
Sums = Callable[[Plan, float, float, int], tuple[Summed, Summed]]


def delta(epsilon: Number, law: SampledGaussian, *, times: int, nodes: int = 1 << 20) -> arb:
    """A ball around delta(epsilon) of `times` steps."""
    plan = contour.planned(epsilon, [(law, times)], bits=48, nodes=nodes)
    return summed(epsilon, [(law, times)], plan, partial(_sums, law, times))


def summed(epsilon: Number, parts: Parts, plan: Plan, sums: Sums) -> arb:
    """A ball around delta(epsilon), from the sums along a line.

    Args:
        epsilon: Where.
        parts: The losses, none of them infinite.
        plan: The line.
        sums: From the plan, epsilon, the step and the number of nodes: the sums over the nodes, the first of them
            halved, of M(t) e^{-iu epsilon} times the smoothing over its own value at `order`, with the kernel
            1/(t(t+1)) and without, each with a bound on its error, M(order) being 1.
    """
    with ctx.workprec(128):
        level, order, smooth = ball(epsilon), ball(plan.order), ball(plan.smoothing)
        step = float((2 * arb.pi() / ball(plan.period)).mid())
        count = max(2, math.ceil(plan.last / step) + 1)
        value, bump = (
            widen(ball(near), ball(by)) for near, by in sums(plan, float(level), step, count)
        )
        scale = (smooth**2 * order * (order + 1) / 2 - order * level).exp() * ball(step) / arb.pi()
        last, decay = ball(step) * (count - 1), arb(0)
        for law, times in parts:
            scale *= law.moments(plan.order, 0.0, 1)[0].real ** times
            decay += contour.log_decay(law, plan.order, float(last), times)
        decay = decay.exp() * (-((smooth * last) ** 2) / 2).exp()
        tail = decay / last / ball(step)
        gap = arb(0)
        if plan.smoothing:
            size = smooth**2 * (smooth**2 / 8).exp()
            rest = decay / (smooth**2 * last) / ball(step)
            gap = (size * (bump + rest)).nonnegative_part()
            tail += size * rest
        largest = sum((times * law.largest for law, times in parts), arb(0))
        alias = contour.alias(level, parts, plan, 2 * arb.pi() / ball(step), largest)
        high, low = scale * (value + tail), scale * (value - tail - gap) - alias
        return span(low, high).intersection(arb(0.5, 0.5))


def _sums(
    law: SampledGaussian, times: int, plan: Plan, level: float, step: float, count: int
) -> tuple[Summed, Summed]:
    """As `summed` asks for."""
    columns = math.isqrt(count - 1) + 1
    rows = (count + columns - 1) // columns
    with ctx.workprec(128):
        whole = law.moments(plan.order, 0.0, 1)[0].real
    with ctx.workprec(100):
        logs, values, missed, cut = law.rule(plan.order, tallest=2.0)
        turns = [acb(0, ball(step)) * value for value in values]
        logs = [log - whole.log() for log in logs]
        weights = np.array([complex(log.exp()) for log in logs])
        right = np.array([waves(turn, columns) for turn in turns])
        left = (weights[:, None] * np.array([waves(columns * turn, rows) for turn in turns])).T
        sway = acb(0, -ball(step) * ball(level))
        swing, phases = waves(sway, columns), waves(columns * sway, rows)
        absolute = float(sum((abs(log.exp()).upper() for log in logs), arb(0)))
        each = float((missed + cut / whole).upper()) + 2 * (len(logs) + 20) * UNIT * absolute
        value = bump = error = doubt = 0.0
        for first in range(0, rows, ROWS):
            block = range(first, min(first + ROWS, rows))
            index = np.arange(block.start * columns, block.stop * columns)
            frequency = index * step
            weight = np.where(index == 0, 0.5, np.where(index < count, 1.0, 0.0))
            weight = weight * np.exp(-((plan.smoothing * frequency) ** 2) / 2)
            turned = (phases[block.start : block.stop, None] * swing[None, :]).ravel()
            turned = turned * np.exp(0.5j * plan.smoothing**2 * (2 * plan.order + 1) * frequency)
            moment = (left[block.start : block.stop] @ right).ravel()
            size = np.abs(moment)
            t = plan.order + 1j * frequency
            power = moment**times * turned * weight
            kernel = 1 / (t * (t + 1))
            value += math.fsum(np.real(power * kernel))
            bump += math.fsum(np.real(power))
            spread = (
                times * (size + each) ** (times - 1) * each + (8 * times + 300) * UNIT * size**times
            )
            error += float(np.dot(spread * weight, np.abs(kernel))) + 4 * UNIT * abs(value)
            doubt += float(np.dot(spread, weight)) + 4 * UNIT * abs(bump)
    return (value, 1.01 * error), (bump, 1.01 * doubt)


def waves(turn: acb, count: int) -> np.ndarray:
    """e^{j turn} for j < count, Re turn <= 0, each the product of two that were rounded once."""
    columns = math.isqrt(count - 1) + 1
    right = np.array([complex((column * turn).exp()) for column in range(columns)])
    left = np.array([complex((row * columns * turn).exp()) for row in range(columns)])
    return (left[:, None] * right[None, :]).ravel()[:count]
