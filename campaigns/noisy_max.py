"""The theorem on noisy maxima in random cases.

    python -m campaigns.noisy_max [--cases N] [--seed N]

Two to seven candidates have random scores, each with noise of a random kind and scale, of hazard
rate at most 1. The scores change by random amounts, and a random set of candidates is the test. Its
two probabilities, by quadrature, must differ no more than those of Laplace noise whose value
changes by the width of the changes. Controls: geometric noise on the integers, and a width that is
a tenth too small, must both violate the theorem.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from oracles.noisy_max import Noise, winning

TOLERANCE = 1e-10
KINDS = ("exponential", "laplace", "gumbel")


class Case(NamedTuple):
    """Scores before and after, the noises, and the candidates that are the test."""

    before: list[float]
    after: list[float]
    noises: list[Noise]
    test: list[int]

    @property
    def width(self) -> float:
        moves = [b - a for a, b in zip(self.before, self.after, strict=True)]
        return max(moves) - min(moves)


def drawn(rng: Random) -> Case:
    """A random case; some are next to the worst: two candidates, one up and one down, exponential noise."""
    number = rng.choice([2, 2, 2, 3, 4, 5, 7])
    alike = rng.choice([None, *KINDS])
    noises = [
        Noise(alike or rng.choice(KINDS), 1.0 if rng.random() < 0.7 else rng.uniform(1, 3))
        for _ in range(number)
    ]
    before = [rng.gauss(0, rng.choice([0.3, 1.0, 3.0])) for _ in range(number)]
    reach = 10 ** rng.uniform(-2, 0.5)
    moves = [
        reach * (rng.choice([-1, 1]) if rng.random() < 0.7 else rng.uniform(-1, 1))
        for _ in range(number)
    ]
    after = [score + move for score, move in zip(before, moves, strict=True)]
    test = [i for i in range(number) if rng.random() < 0.5] or [0]
    return Case(before, after, noises, test)


def laplace(probability: float, width: float) -> float:
    """The largest probability after a move by `width`, under Laplace noise of scale 1."""
    if probability <= 0.5:
        place = math.log(2 * probability) + width if probability > 0 else -math.inf
    else:
        place = -math.log(2 * (1 - probability)) + width if probability < 1 else math.inf
    return math.exp(place) / 2 if place <= 0 else 1 - math.exp(-place) / 2


def excess(case: Case, *, narrower: float = 1.0) -> float:
    """By how much the probability after the move is above what the theorem allows, in either direction."""
    before, after = (
        float(winning(scores, case.noises)[case.test].sum()) for scores in (case.before, case.after)
    )
    width = narrower * case.width
    return max(after - laplace(before, width), before - laplace(after, width))


def geometric() -> float:
    """The excess of two candidates with geometric noise of ratio 1/2, ties to the first: 1/3 becomes 2/3."""
    return 2 / 3 - laplace(1 / 3, math.log(2))


def run(cases: int, *, seed: int) -> tuple[float, int, int]:
    """The largest excess, how many cases are near equality, and how many break a width a tenth too small."""
    rng, largest, near, broken = Random(seed), -math.inf, 0, 0
    for _ in range(cases):
        case = drawn(rng)
        found = excess(case)
        largest = max(largest, found)
        near += found > -1e-6
        broken += found > -0.02 and excess(case, narrower=0.9) > TOLERANCE
    return largest, near, broken


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m campaigns.noisy_max", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    largest, near, broken = run(options.cases, seed=options.seed)
    print(
        f"{options.cases} cases: largest excess {largest:.2g}; {near} within a millionth of equality"
    )
    print(
        f"controls: integer noise is above by {geometric():.3g}; {broken} cases break a width a tenth too small"
    )
    return 0 if largest <= TOLERANCE and geometric() > 0 and broken else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
