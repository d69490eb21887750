"""delta(epsilon) of `times` copies of one loss on a lattice start + spacing n: the contour sum over one period of M.

With W = N spacing and t_j = l + 2 pi i j / W, the mean over j < N of M(t_j)^k times the sum over the lattice points x
> epsilon of e^{-t_j x} (1 - e^{epsilon - x}) is sum over n of e^{l n W} g(epsilon + n W), all terms >= 0: the aliases
of `contour`. Nodes are left out only where M is bounded on the whole period.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from flint import acb, arb, ctx

from oracles import contour
from oracles.ball import Number, ball, floor, span
from oracles.lattices import Builder
from oracles.law import DiscreteGaussian, Lattice, Law


def delta(epsilon: Number, builder: Builder, *, times: int, bits: int = 60) -> arb:
    """For a lattice of finitely many losses, as `lattices` builds them."""

    def lattice() -> tuple[arb, arb]:
        built = builder()
        return built.start, built.spacing

    return _delta(epsilon, Lattice(builder), lattice, times, bits)


def gaussian(epsilon: Number, *, sigma: Number, shift: int, times: int, bits: int = 60) -> arb:
    """For discrete Gaussian noise: losses (shift^2 - 2 x shift) / (2 sigma^2)."""

    def lattice() -> tuple[arb, arb]:
        spacing = shift / ball(sigma) ** 2
        return spacing * shift / 2, spacing

    law = DiscreteGaussian(sigma, shift)
    return _delta(epsilon, law, lattice, times, bits, law.inner_envelope)


def _delta(
    epsilon: Number,
    law: Law,
    lattice: Callable[[], tuple[arb, arb]],
    times: int,
    bits: int,
    envelope: Callable[[float, float], arb] | None = None,
) -> arb:
    plan = replace(contour.planned(epsilon, [(law, times)], bits=bits, nodes=64), smoothing=0.0)
    with ctx.workprec(bits + 60 + plan.lost + 2 * times.bit_length()):
        start, spacing = lattice()
        level, order, origin = ball(epsilon), ball(plan.order), times * start
        largest = times * law.largest
        if level >= largest:
            return arb(0)
        count = math.ceil(plan.period / float(spacing.mid()))
        first = floor((level - origin) / spacing)
        while not origin + spacing * first > level:
            first += 1
        while origin + spacing * (first - 1) > level:
            first -= 1
        nearest = origin + spacing * first
        total, nodes = arb(0), count // 2 + 1
        step = 2 * arb.pi() / (spacing * count)
        tail = arb(0)
        if envelope is not None:
            last = float(step.mid()) * nodes
            while envelope(plan.order, last / 1.1) ** times < arb(2) ** -(bits + 30):
                last /= 1.1
            nodes = min(nodes, math.ceil(last / float(step.mid())) + 1)
            kernel = 1 / -(-order * spacing).expm1() + 1 / -(-(order + 1) * spacing).expm1()
            mass = law.moments(plan.order, 0.0, 1)[0].real ** times * (-order * nearest).exp()
            if nodes < count // 2 + 1:
                tail = (
                    kernel * mass * envelope(plan.order, float(step.mid()) * (nodes - 1)) ** times
                )
        moments = law.moments(plan.order, step, nodes)
        for j, moment in enumerate(moments):
            t = acb(order, step * j)
            value = (-t * nearest).exp() / -(-t * spacing).expm1()
            value -= (level - (t + 1) * nearest).exp() / -(-(t + 1) * spacing).expm1()
            weight = 1 if j == 0 or 2 * j == count else 2
            total += weight * (moment**times * value).real
        value = total / count
        return span(
            value - tail - contour.alias(level, [(law, times)], plan, spacing * count, largest),
            value + tail,
        )
