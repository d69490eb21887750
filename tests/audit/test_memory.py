"""Answers that come again: a generator of few states is found, and what is remembered is fixed before a batch."""

from __future__ import annotations

import os

import numpy as np

from dpcompose import BlackBox
from dpcompose.audit import Pair, Subject, Verdict, audit
from dpcompose.audit.claim import Point
from dpcompose.audit.feature import Memory
from dpcompose.audit.stakes import UNIT, twin_stakes

LATTICE = 2.0**20


def noisy(rows: tuple[float, ...], seed: int | None) -> float:
    noise = np.random.default_rng(seed).laplace()
    return round((len(rows) + noise) * LATTICE) / LATTICE


def test_a_generator_of_few_states_is_found() -> None:
    """By 12-bit seeds; 16-bit ones fall in about 4,000 samples, and no other feature sees them."""
    subject = Subject(lambda rows: noisy(rows, int.from_bytes(os.urandom(2), "little") >> 4))
    found = audit(subject, [Pair((), (1.0,))], claim=BlackBox(1.0), samples=6000, ladder=False)
    assert found.verdict is Verdict.REFUTED and "met before, in world" in found.event
    assert found.repeated
    alone = Subject(lambda rows: noisy(rows, None))
    fair = audit(alone, [Pair((), (1.0,))], claim=BlackBox(1.0), samples=1500, ladder=False)
    assert fair.verdict is Verdict.NOT_REFUTED


def test_what_is_remembered_is_fixed_before_a_batch() -> None:
    memory = Memory()
    rows, coins = np.array([1.0, 1.0, 2.0]), np.array([0, 1, 1], dtype=np.uint8)
    assert memory.feature.score(rows).tolist() == [0, 0, 0]
    memory.learn(rows, coins)
    assert memory.feature.score(rows).tolist() == [3, 3, 2]


def test_no_claim_lets_its_bets_win_on_average() -> None:
    """At the laws that lose least: each cell's probabilities as far apart as (epsilon, delta) allows, plus all of delta."""
    rng = np.random.default_rng(3)
    for delta in (0.0, 0.05):
        point = Point(0.7, delta)
        seen = rng.integers(0, 40, (2, 5)).astype(float)
        _, bets = twin_stakes(seen[0], seen[1], (point,), one=2, zero=1)
        f, g = bets.f / UNIT, bets.g / UNIT
        for _ in range(300):
            zero = rng.dirichlet(np.full(5, 0.3)) * (1 - delta)
            one = rng.dirichlet(np.full(5, 0.3)) * (1 - delta)
            over = max(1.0, (one / zero).max() / point.growth, (zero / one).max() / point.growth)
            mixed = (zero + one) / 2
            zero, one = (mixed + (each - mixed) / over for each in (zero, one))
            over = max(1.0, (one / zero).max() / point.growth, (zero / one).max() / point.growth)
            zero, one = (mixed + (each - mixed) / over**3 for each in (zero, one))
            if max((one / zero).max(), (zero / one).max()) > point.growth:
                continue
            zero[1] += delta
            one[2] += delta
            factors = np.exp(bets.log_factors((point,)))
            assert factors.min() > 0 and (factors[0] @ zero + factors[1] @ one) / 2 <= 1 + 1e-12
        assert f[0, 2] > 0 and g[0, 1] == f[0, 2] and f.sum() + g.sum() == 2 * f[0, 2]
