"""Optimal composition of (epsilon, delta) promises: the pairs of B.2 of the theory, summed atom by atom."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from itertools import product

from flint import arb, ctx

from oracles.ball import Number, ball, floor, hockey, inverse, refined

Promises = Sequence[tuple[Number, Number, int]]


def homogeneous(target_epsilon: Number, *, epsilon: Number, delta: Number, times: int) -> arb:
    """delta(target_epsilon) of `times` mechanisms that promise (epsilon, delta)."""
    return refined(
        lambda: _with_infinity(pure(target_epsilon, epsilon, times), [(epsilon, delta, times)])
    )


def heterogeneous(target_epsilon: Number, promises: Promises) -> arb:
    """delta(target_epsilon) of promises (epsilon, delta, times), by enumeration of the counts of +epsilon."""
    return refined(lambda: _with_infinity(_enumerated(target_epsilon, promises), promises))


def homogeneous_epsilon(target_delta: Number, *, epsilon: Number, delta: Number, times: int) -> arb:
    """The smallest epsilon >= 0 of the composition; infinite where the infinity atoms alone exceed `target_delta`."""
    return heterogeneous_epsilon(target_delta, [(epsilon, delta, times)])


def heterogeneous_epsilon(target_delta: Number, promises: Promises) -> arb:
    """As `homogeneous_epsilon`, for promises (epsilon, delta, times)."""
    if refined(lambda: infinity(promises)) > ball(target_delta):
        return arb.pos_inf()
    if len(promises) == 1:
        ((epsilon, delta, times),) = promises
        curve = partial(homogeneous, epsilon=epsilon, delta=delta, times=times)
    else:
        curve = partial(heterogeneous, promises=promises)
    return inverse(curve, target_delta)


def infinity(promises: Promises) -> arb:
    """1 - prod (1 - delta_i)^times_i."""
    finite = sum((times * (-ball(delta)).log1p() for _, delta, times in promises), arb(0))
    return -finite.expm1()


def _with_infinity(pure: arb, promises: Promises) -> arb:
    outside = infinity(promises)
    return outside + (1 - outside) * pure


def pure(target: Number, epsilon: Number, times: int) -> arb:
    """Sum over j of C(k, j) p^j q^(k-j) (1 - e^(target - (2j-k) epsilon))_+, outward from its largest binomial."""
    step, level = ball(epsilon), ball(target)
    if step.is_zero() or times == 0:
        return hockey(-level)
    if level >= times * step:
        return arb(0)
    first = max(0, floor((level / step + times) / 2) - 1) if level > -times * step else 0
    mode = min(times, floor(times / (1 + (-step).exp())))
    start = max(first, mode)
    peak = (
        arb(times + 1).lgamma() - arb(start + 1).lgamma() - arb(times - start + 1).lgamma()
    ).exp()
    peak *= (-(times - start) * step - times * (-step).exp().log1p()).exp()
    total, mass, grow, rest = arb(0), peak, step.exp(), arb(2) ** -ctx.prec
    for j in range(start, times + 1):
        total += mass * hockey((2 * j - times) * step - level)
        ratio = grow * (times - j) / (j + 1)
        mass = mass * ratio
        if ratio < 1 and mass < (1 - ratio) * rest * total:
            total += (mass / (1 - ratio)) * arb(0.5, 0.5)
            break
    mass = peak
    for j in range(start, first, -1):
        ratio = j / (grow * (times - j + 1))
        mass = mass * ratio
        term = mass * hockey((2 * j - 2 - times) * step - level)
        total += term
        if ratio < 1 and term < (1 - ratio) * rest * total:
            total += (term / (1 - ratio)) * arb(0.5, 0.5)
            break
    return total


def _enumerated(target: Number, promises: Promises) -> arb:
    level = ball(target)
    groups = [list(_atoms(ball(epsilon), times)) for epsilon, _, times in promises]
    total = arb(0)
    for combination in product(*groups):
        loss, mass = arb(0), arb(1)
        for value, weight in combination:
            loss, mass = loss + value, mass * weight
        total += mass * hockey(loss - level)
    return total


def _atoms(epsilon: arb, times: int) -> Iterator[tuple[arb, arb]]:
    up = 1 / (1 + (-epsilon).exp())
    for j in range(times + 1):
        yield (
            (2 * j - times) * epsilon,
            arb.bin_uiui(times, j) * up**times * (-(times - j) * epsilon).exp(),
        )
