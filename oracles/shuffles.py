"""Shuffled reports on few outcomes: the clones' pair in balls, and any randomizer by all histograms, in floats."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import pairwise
from math import comb

from flint import arb, fmpz

from oracles.atoms import Pair, Points
from oracles.ball import Number, ball


def clones(epsilon: Number, reports: int) -> Pair:
    """All (a, b) with their masses: of every number of clones, and of these that stand for the first value."""

    def points() -> Points:
        odds = ball(epsilon).exp()
        share, truth = 2 / (odds + 1), odds / (odds + 1)
        found: Points = []
        for count in range(reports):
            mass = (
                arb(fmpz(comb(reports - 1, count)))
                * share**count
                * (1 - share) ** (reports - 1 - count)
            )
            mass /= arb(2) ** count
            for a in range(count + 2):
                with_one = arb(fmpz(comb(count, a - 1))) if a >= 1 else arb(0)
                without = arb(fmpz(comb(count, a)))
                first = mass * (truth * with_one + (1 - truth) * without)
                found.append((first, mass * ((1 - truth) * with_one + truth * without)))
        return found

    return points


def encoding(keep: Number, flip: Number) -> Pair:
    """The two bits that change, all four outcomes."""

    def points() -> Points:
        k, f = ball(keep), ball(flip)
        return [
            (k * (1 - f), f * (1 - k)),
            (f * (1 - k), k * (1 - f)),
            (k * f, k * f),
            ((1 - k) * (1 - f), (1 - k) * (1 - f)),
        ]

    return points


def staircase(epsilon: Number, gamma: Number | None, *, shift: Number = 1) -> Pair:
    """Areas of the steps of the density and of the density moved by `shift` <= 1, up to e^-80, in units of D."""

    def points() -> Points:
        fall, moved = (-ball(epsilon)).exp(), ball(shift)
        step = 1 / (1 + (ball(epsilon) / 2).exp()) if gamma is None else ball(gamma)
        height = (1 - fall) / (2 * (step + fall * (1 - step)))
        reach = math.ceil(80 / float(epsilon)) + 2
        edges = [
            sign * (place + more)
            for place in range(reach)
            for more in (arb(0), step)
            for sign in (1, -1)
        ]
        cuts = sorted([*edges, *(edge + moved for edge in edges)], key=lambda cut: float(cut.mid()))

        def density(x: arb) -> arb:
            size = abs(x)
            whole = int(float(size.mid()))
            return height * fall ** (whole + (1 if size - whole > step else 0))

        rows = []
        for left, right in pairwise(cuts):
            if right > left:
                middle = (left + right) / 2
                rows.append(
                    (density(middle - moved) * (right - left), density(middle) * (right - left))
                )
        return rows

    return points


Law = Sequence[float]


def shuffled_delta(epsilon: float, first: Law, second: Law, others: Sequence[Law]) -> float:
    """delta(epsilon) of the histogram of all reports, one of which is of the first or of the second law."""
    one, other = _histograms([first, *others]), _histograms([second, *others])
    return sum(
        max(mass - math.exp(epsilon) * other.get(key, 0.0), 0.0) for key, mass in one.items()
    )


def _histograms(laws: Sequence[Law]) -> dict[tuple[int, ...], float]:
    found: dict[tuple[int, ...], float] = {(0,) * len(laws[0]): 1.0}
    for law in laws:
        grown: dict[tuple[int, ...], float] = defaultdict(float)
        for key, mass in found.items():
            for at, probability in enumerate(law):
                if probability > 0:
                    grown[(*key[:at], key[at] + 1, *key[at + 1 :])] += mass * probability
        found = grown
    return found
