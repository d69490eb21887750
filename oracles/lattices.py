"""Losses on a lattice start + spacing n: discrete Laplace and Gaussian, k-ary answers; k-fold by polynomial powers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from flint import arb, arb_poly, ctx

from oracles.ball import Number, ball, hockey, inverse, refined, span


@dataclass(frozen=True)
class Lattice:
    """P[loss = start + spacing n] = masses[n]; `missing` bounds the mass of the losses that were left out."""

    start: arb
    spacing: arb
    masses: list[arb]
    missing: arb


Builder = Callable[[], Lattice]


def discrete_laplace(decay: Number, shift: int) -> Builder:
    """Noise of mass proportional to e^{-decay |x|} on the integers, against itself moved by `shift` >= 1.

    The loss of x is decay (|x - shift| - |x|): constant outside [0, shift], decay (shift - 2x) inside.
    """

    def build() -> Lattice:
        rate = ball(decay)
        end = 1 / (1 + (-rate).exp())
        inside = [(rate / 2).tanh() * (-rate * x).exp() for x in range(shift - 1, 0, -1)]
        return Lattice(-rate * shift, 2 * rate, [end * (-rate * shift).exp(), *inside, end], arb(0))

    return build


def discrete_gaussian(sigma: Number, shift: int) -> Builder:
    """Noise of mass proportional to e^{-x^2 / (2 sigma^2)} on the integers, against itself moved by `shift` >= 1.

    The loss of x is (shift^2 - 2 x shift) / (2 sigma^2).
    """

    def build() -> Lattice:
        variance = ball(sigma) ** 2
        weights, outside = theta(variance)
        reach, total = len(weights) - 1, weights[0] + 2 * sum(weights[1:], arb(0))
        spacing = shift / variance
        masses = [
            weights[abs(x)] / span(total, total + outside) for x in range(reach, -reach - 1, -1)
        ]
        return Lattice(spacing * shift / 2 - spacing * reach, spacing, masses, outside / total)

    return build


def skellam(variance: Number, shift: int) -> Callable[[], list[tuple[arb, arb]]]:
    """Noise of mass e^-v I_x(v) on the integers moved by `shift`, against the noise, to masses below 2^-200."""

    def build() -> list[tuple[arb, arb]]:
        v = ball(variance)
        mass: dict[int, arb] = {}
        place = 0
        while place < 2 + shift or mass[place - 1 - shift] > arb(2) ** -200:
            mass[place] = v.bessel_i(arb(place)) * (-v).exp()
            place += 1
        return [(mass[abs(x - shift)], mass[abs(x)]) for x in range(shift + 1 - place, place)]

    return build


def theta(variance: arb) -> tuple[list[arb], arb]:
    """e^{-x^2 / (2 variance)} for x = 0, 1, ..., reach, and a geometric bound on the sum of the rest, both signs."""
    weights, x = [arb(1)], 0
    while True:
        ratio = (-(2 * x + 1) / (2 * variance)).exp()
        if weights[-1] * ratio < (1 - ratio) * arb(2) ** -ctx.prec:
            return weights, 2 * weights[-1] * ratio / (1 - ratio)
        x += 1
        weights.append((-(x * x) / (2 * variance)).exp())


def response(epsilon: Number, categories: int) -> Builder:
    """Randomized response among `categories` answers."""

    def build() -> Lattice:
        step = ball(epsilon)
        total = step.exp() + (categories - 1)
        return Lattice(
            -step, step, [1 / total, (categories - 2) / total, step.exp() / total], arb(0)
        )

    return build


def delta(epsilon: Number, builder: Builder, *, times: int = 1) -> arb:
    """delta(epsilon) of `times` copies."""
    return refined(partial(_delta, epsilon, builder, times))


def epsilon(target: Number, builder: Builder, *, times: int = 1) -> arb:
    """The smallest epsilon >= 0 whose delta is at most `target`."""
    return inverse(partial(delta, builder=builder, times=times), target)


def _delta(epsilon: Number, builder: Builder, times: int) -> arb:
    lattice, level = builder(), ball(epsilon)
    power = arb_poly(lattice.masses) ** times
    start, total = lattice.start * times, arb(0)
    for n in range(power.length() - 1, -1, -1):
        loss = start + lattice.spacing * n
        if loss < level:
            break
        total += power[n] * hockey(loss - level)
    return span(total, total + times * lattice.missing)
