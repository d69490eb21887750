"""Pairs of distributions on a few points: their sampled versions, and compositions by enumeration of counts.

A pair is a function without arguments that returns its points as [(P mass, Q mass), ...] at the working precision.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import comb

from flint import arb, fmpz

from oracles.ball import Number, ball, hockey, inverse, refined

Points = list[tuple[arb, arb]]
Pair = Callable[[], Points]
Parts = Sequence[tuple[Pair, int]]


def promise(epsilon: Number, delta: Number = 0) -> Pair:
    """The four points that dominate every (epsilon, delta)-private mechanism, three of them in each support."""

    def points() -> Points:
        outside, up = ball(delta), 1 / (1 + (-ball(epsilon)).exp())
        high, low = (1 - outside) * up, (1 - outside) * (1 - up)
        return [(outside, arb(0)), (high, low), (low, high), (arb(0), outside)]

    return points


def response(epsilon: Number, categories: int) -> Pair:
    """Randomized response among `categories` answers, two true answers against each other."""

    def points() -> Points:
        up = ball(epsilon).exp()
        total = up + (categories - 1)
        rest = (categories - 2) / total
        return [(up / total, 1 / total), (1 / total, up / total), (rest, rest)]

    return points


def remove(pair: Pair, rate: Number) -> Pair:
    """(1 - rate) Q + rate P against Q: the sampled pair, with the record first."""

    def points() -> Points:
        q = ball(rate)
        return [((1 - q) * below + q * above, below) for above, below in pair()]

    return points


def add(pair: Pair, rate: Number) -> Pair:
    """P against (1 - rate) P + rate Q, `pair` being the pair of adding a record: without it first."""

    def points() -> Points:
        q = ball(rate)
        return [(above, (1 - q) * above + q * below) for above, below in pair()]

    return points


def swapped(pair: Pair) -> Pair:
    """(Q, P)."""
    return lambda: [(below, above) for above, below in pair()]


def joined(parts: Parts) -> Pair:
    """All outcomes of a composition, as one pair."""

    def points() -> Points:
        total: Points = [(arb(1), arb(1))]
        for pair, times in parts:
            for _ in range(times):
                total = [(p * above, q * below) for p, q in total for above, below in pair()]
        return [(p, q) for p, q in total if not (p.is_zero() and q.is_zero())]

    return points


def delta(epsilon: Number, parts: Parts) -> arb:
    """delta(epsilon) of the composition of `parts`, pairs (pair, times)."""
    return refined(partial(_delta, epsilon, parts))


def epsilon(target: Number, parts: Parts) -> arb:
    """The smallest epsilon >= 0 whose delta is at most `target`; infinite where there is none."""
    if refined(lambda: 1 - _finite(parts)) > ball(target):
        return arb.pos_inf()
    return inverse(partial(delta, parts=parts), target)


def states(parts: Parts) -> int:
    """How many vectors of counts the enumeration visits."""
    count = 1
    for pair, times in parts:
        points = sum(1 for above, below in pair() if above > 0 and below > 0)
        count *= comb(times + points - 1, points - 1) if points else 1
    return count


def losses(pair: Pair) -> list[tuple[arb, arb]]:
    """The finite losses log(P/Q) with their P masses; equal masses have loss exactly 0."""
    points = [
        (above, below) for above, below in pair() if not above.is_zero() and not below.is_zero()
    ]
    return [(arb(0) if above is below else (above / below).log(), above) for above, below in points]


def _finite(parts: Parts) -> arb:
    total = arb(1)
    for pair, times in parts:
        outside = sum((above for above, below in pair() if below.is_zero()), arb(0))
        total *= (1 - outside) ** times
    return total


def _delta(epsilon: Number, parts: Parts) -> arb:
    level = ball(epsilon)
    groups = [list(_counted(losses(pair), times)) for pair, times in parts]
    total = 1 - _finite(parts)
    for combination in product(*groups):
        loss, mass = arb(0), arb(1)
        for value, weight in combination:
            loss, mass = loss + value, mass * weight
        total += mass * hockey(loss - level)
    return total


def _counted(atoms: list[tuple[arb, arb]], times: int) -> Iterator[tuple[arb, arb]]:
    """The losses and masses of `times` draws, by how often each atom occurs."""
    if not atoms:
        if times == 0:
            yield arb(0), arb(1)
        return
    (loss, mass), rest = atoms[0], atoms[1:]
    for drawn in range(times + 1) if rest else [times]:
        weight = mass**drawn * arb(fmpz(comb(times, drawn)))
        for value, other in _counted(rest, times - drawn):
            yield loss * drawn + value, weight * other
