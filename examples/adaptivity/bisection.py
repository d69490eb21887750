"""A median by noisy bisection: ten rounds, each of whose questions depends on the answers before.

    dpcompose audit examples/adaptivity/bisection.py:one_round --mu 0.3163
    dpcompose audit examples/adaptivity/bisection.py:ten_rounds --mu 1.0001
    dpcompose audit examples/adaptivity/bisection.py:ten_rounds --mu 0.7

Each round asks how many more records are above a threshold than below, with Gaussian noise for a mu of sqrt(1/10):
ten of them, however they depend on each other, are 1-Gaussian differentially private, and no less. A budget of 0.7 is
refuted though every round keeps its own claim.
"""

from __future__ import annotations

import math
import random
from collections.abc import Sequence

ROUNDS = 10
SIGMA = math.sqrt(10)


def interaction(records: Sequence[float], rounds: int) -> list[float]:
    """The answers of so many rounds, each to three decimals."""
    low, high, answers = 0.0, 1.0, list[float]()
    for _ in range(rounds):
        threshold = (low + high) / 2
        above = sum(1 if record >= threshold else -1 for record in records)
        answers.append(round(random.gauss(above, SIGMA), 3))
        if answers[-1] > 0:
            low = threshold
        else:
            high = threshold
    return answers


def one_round(records: Sequence[float]) -> list[float]:
    """The first round alone."""
    return interaction(records, 1)


def ten_rounds(records: Sequence[float]) -> list[float]:
    """The whole interaction."""
    return interaction(records, ROUNDS)
