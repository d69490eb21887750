"""One-run audits: the probability of right guesses against brute force, and both verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dpcompose import BlackBox, GaussianDP
from dpcompose.audit import Verdict
from dpcompose.audit.canary import canaries, chance
from dpcompose.errors import DomainError


@pytest.mark.parametrize(("guesses", "right"), [(1, 1), (12, 7), (40, 33), (40, 40)])
@pytest.mark.parametrize("delta", [0.0, 1e-4])
def test_the_chance_is_the_theorems(guesses: int, right: int, delta: float) -> None:
    q = 1 / (1 + math.exp(-0.7))
    mass = [math.comb(guesses, k) * q**k * (1 - q) ** (guesses - k) for k in range(guesses + 1)]
    most = max(sum(mass[right - i : right]) / i for i in range(1, right + 1))
    expected = min(1.0, sum(mass[right:]) + 2 * 50 * delta * most)
    assert expected <= chance(guesses, right, 50, 0.7, delta) <= expected * (1 + 1e-5)


def _run(epsilon: float, number: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 2, number)
    told = np.where(rng.random(number) < 1 / (1 + math.exp(-epsilon)), bits, 1 - bits)
    return told + rng.random(number) / 2, bits


def test_a_claim_that_is_too_small_is_refuted() -> None:
    scores, bits = _run(2.0, 1000)
    found = canaries(scores, bits, claim=BlackBox(1.0, delta=1e-6), alpha=0.001)
    assert found.verdict is Verdict.REFUTED and 1.0 < found.epsilon.lower < 2.0
    assert (
        canaries(scores, bits, claim=BlackBox(2.0, delta=1e-6), alpha=0.001).verdict
        is Verdict.NOT_REFUTED
    )
    assert canaries(scores, bits, claim=GaussianDP(0.1), alpha=0.001).verdict is Verdict.REFUTED
    assert (
        canaries(scores, 1 - bits, claim=BlackBox(0.1), alpha=0.001).verdict is Verdict.NOT_REFUTED
    )


@pytest.mark.parametrize(
    ("scores", "bits"),
    [
        ([], []),
        ([1], [1]),
        ([1, 2], [1]),
        ([1, math.nan], [0, 1]),
        ([1, 2], [0, 2]),
        (["a", "b"], [0, 1]),
        (3, 1),
    ],
)
def test_bad_input_is_refused(scores: object, bits: object) -> None:
    with pytest.raises(DomainError):
        canaries(scores, bits, claim=BlackBox(1.0))
