"""Random allocations compared with independent methods.

    python -m campaigns.allocation [--cases N] [--seed N]

One epoch of 2 to 40 steps is compared with the expectation E (a - t S)_+ by inversion of a Laplace
transform, and up to 30 epochs of two steps with one integral for each value of the characteristic
function; noise, epsilon and order of the pair are random. The truth must be in the interval, to the
accuracy of the other method. Control: the same question with 0.1 percent more noise must be
detected.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from dpcompose.loss.allocation import AllocationLoss
from dpcompose.loss.product import Product
from dpcompose.values.bound import Bound
from oracles.allocation import epochs_of_two, one_epoch

DIGITS = 24
SLIP = 1e-11


class Case(NamedTuple):
    """A question about delta."""

    sigma: float
    steps: int
    epochs: int
    epsilon: float
    remove: bool

    def answer(self, noise: float = 1.0) -> Bound:
        loss = AllocationLoss(self.sigma * noise, self.steps, self.remove)
        return Product(((loss, self.epochs),)).delta(self.epsilon, tolerance=1e-9)

    def truth(self) -> float:
        if self.steps == 2:
            return float(
                epochs_of_two(
                    self.sigma, self.epochs, self.epsilon, remove=self.remove, digits=DIGITS
                )
            )
        return float(
            one_epoch(self.sigma, self.steps, self.epsilon, remove=self.remove, digits=DIGITS)
        )


def drawn(rng: Random) -> Case:
    """A random case."""
    remove, few = rng.random() < 0.5, rng.random() < 0.5
    sigma, steps, epochs = (
        round(rng.uniform(0.7, 3), 3),
        2 if few else rng.randint(3, 40),
        rng.randint(1, 30),
    )
    spread = (epochs if few else 1) ** 0.5 / (sigma * steps**0.5)
    return Case(
        sigma, steps, epochs if few else 1, round(spread * rng.uniform(0.1, 2.5), 3), remove
    )


def outside(found: Bound, truth: float) -> bool:
    """Whether the truth is outside, beyond the digits that it is known to."""
    slip = SLIP + 1e-12 * truth
    return not found.lower - slip <= truth <= found.upper + slip


def run(cases: int, seed: int) -> int:
    """How many cases fail; the widest and a control are printed."""
    rng, failures, widest, caught = Random(seed), 0, 0.0, 0
    for number in range(cases):
        case = drawn(rng)
        found, truth = case.answer(), case.truth()
        widest = max(widest, found.width / found.upper)
        caught += outside(case.answer(1.001), truth)
        if outside(found, truth):
            failures += 1
            print(f"{number}: {case} is {truth!r}, not in {found!r}")
    print(
        f"{cases} cases, {failures} outside; the widest is {widest:.1e} of delta; the control was caught {caught} times"
    )
    return failures if caught > cases // 2 else failures + 1


def main(arguments: Sequence[str] | None = None) -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cases", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args(arguments)
    return 1 if run(given.cases, given.seed) else 0


if __name__ == "__main__":
    sys.exit(main())
