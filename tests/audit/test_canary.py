"""Audits of one training run: the probability of right guesses against brute force, and both
verdicts.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.optimize import linprog

from dpcompose import BlackBox, GaussianDP
from dpcompose.audit import Verdict
from dpcompose.audit.canary import canaries, chance
from dpcompose.errors import DomainError


@pytest.mark.parametrize(("guesses", "right"), [(1, 1), (12, 7), (24, 20), (16, 16)])
@pytest.mark.parametrize("delta", [0.0, 1e-3])
def test_the_chance_is_the_largest_that_the_inequalities_allow(
    guesses: int, right: int, delta: float
) -> None:
    """The largest tail by linear programming over the law of the number of right guesses."""
    epsilon, canaries_ = 0.7, 30
    count, growth = np.arange(guesses + 1), math.exp(0.7)
    above = [np.where(count >= t, count, 0.0) for t in range(1, guesses + 1)]
    below = [np.where(count >= t - 1, guesses - count, 0.0) for t in range(1, guesses + 1)]
    found = linprog(
        -(count >= right).astype(float),
        A_ub=np.array(above) - growth * np.array(below),
        b_ub=np.full(guesses, canaries_ * delta),
        A_eq=np.ones((1, guesses + 1)),
        b_eq=[1.0],
    )
    q = growth / (1 + growth)
    mass = [math.comb(guesses, k) * q**k * (1 - q) ** (guesses - k) for k in range(guesses + 1)]
    most = max(sum(mass[right - i : right]) / i for i in range(1, right + 1))
    binomial = sum(mass[right:]) + 2 * canaries_ * delta * most
    expected = min(1.0, -float(found.fun or 0.0), binomial)
    got = chance(guesses, right, canaries_, epsilon, delta)
    assert expected * (1 - 1e-9) <= got <= expected * (1 + 1e-4)


def test_the_bounds_reach_what_the_guesses_show() -> None:
    rng = np.random.default_rng(5)
    for mu, least, line in ((1.0, 1.55, 1.9), (4.0, 5.1, 7.3)):
        epsilon = GaussianDP(mu).epsilon(delta=1e-5).upper
        bounds, lines = [], []
        for _ in range(3):
            bits = rng.random(1000) < 0.5
            scores = rng.normal(size=1000) + mu * bits
            bounds.append(canaries(scores, bits, claim=BlackBox(epsilon, delta=1e-5)).epsilon.lower)
            found = canaries(scores, bits, claim=GaussianDP(mu), delta=1e-5)
            assert found.mu is not None and found.gaussian is not None and found.mu < mu
            lines.append(found.gaussian)
        # Means over 400 runs are 1.65 and 5.33: `python -m campaigns.audit --canaries`.
        assert least < np.mean(bounds) < epsilon and line < np.mean(lines) < epsilon


def test_randomized_response_is_not_reported_above_its_epsilon() -> None:
    above = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        bits = rng.integers(0, 2, 200)
        told = np.where(rng.random(200) < 1 / (1 + math.exp(-0.5)), bits, 1 - bits)
        scores = told + rng.random(200) / 2
        found = canaries(scores, bits, claim=BlackBox(0.5, delta=1e-5))
        assert found.mu is None and found.gaussian is None
        above += found.epsilon.lower > 0.5
    assert above <= 4  # Bin(20, 0.05) is larger with probability 0.003, and the seeds are fixed


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
