"""Private selection against the exact law of the best run, for every order of a few outcomes."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from random import Random

import pytest

from dpcompose import Adjacency, BlackBox, Gaussian, GaussianDP, Laplace
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import DominatingPair, PrivateSelection
from dpcompose.mechanisms.text import parse, serialize


def generating(x: float, tries: float, shape: float) -> float:
    """E x^K, gamma found from the mean by bisection."""
    if shape == math.inf:
        return math.exp(tries * (x - 1))
    low, high = 1e-12, 1.0 - 1e-12
    for _ in range(200):
        gamma = (low + high) / 2
        mean = (1 / gamma - 1) * (shape / (1 - gamma**shape) if shape else 1 / -math.log(gamma))
        low, high = (gamma, high) if mean > tries else (low, gamma)
    left = 1 - (1 - gamma) * x
    return (
        math.log(left) / math.log(gamma) if shape == 0 else (left**-shape - 1) / (gamma**-shape - 1)
    )


def best(law: Sequence[float], tries: float, shape: float) -> list[float]:
    """The law of the best of K outcomes, the last one being the best of all."""
    total, found, before = 0.0, list[float](), generating(0.0, tries, shape)
    for mass in law:
        total = min(total + mass, 1.0)
        after = generating(total, tries, shape)
        found.append(after - before)
        before = after
    return found


@pytest.mark.parametrize("shape", [math.inf, 0.0, 0.5, 1.0, 3.0])
def test_no_order_of_the_scores_is_above_the_upper_end(shape: float) -> None:
    rng, closest = Random(int(min(shape, 9) * 10)), 0.0
    for _ in range(3):
        rows = [[rng.randint(1, 15) for _ in range(3)] for _ in range(2)]
        upper, lower = ([(n + 0.0) / 64 for n in [*row, 64 - sum(row)]] for row in rows)
        tries = rng.choice([1.5, 4.0, 20.0])
        base = DominatingPair.atoms(upper=upper, lower=lower, adjacency=Adjacency.ADD_REMOVE)
        one = PrivateSelection(base, tries=tries, shape=shape)
        for level in (0.05, 0.5, 1.5):
            bound = one.delta(epsilon=level).upper
            for order in itertools.permutations(range(4)):
                first, second = (
                    best([law[i] for i in order], tries, shape) for law in (upper, lower)
                )
                for p, q in ((first, second), (second, first)):
                    truth = sum(
                        max(a - math.exp(level) * b, 0.0) for a, b in zip(p, q, strict=True)
                    )
                    assert truth <= bound + 1e-12
                    closest = max(closest, truth / bound if bound > 0 else 0.0)
    assert closest > 0.1


def test_one_try_is_the_base() -> None:
    one, base = PrivateSelection(Gaussian(2.0) * 3, tries=1.0, shape=1.0), Gaussian(2.0) * 3
    assert one.epsilon(delta=1e-6) == base.epsilon(delta=1e-6)


def test_pure_privacy_is_that_of_the_paper() -> None:
    for shape in (0.0, 1.0, 2.5):
        assert (
            PrivateSelection(BlackBox(0.1), tries=1e5, shape=shape).epsilon(delta=0.0).upper
            <= 0.1 * (2 + shape) + 1e-9
        )


def test_ends_and_adjacencies() -> None:
    one = PrivateSelection(Gaussian(5.0), tries=10.0, shape=1.0)
    found = one.epsilon(delta=1e-6)
    base = Gaussian(5.0).epsilon(delta=1e-6)
    assert base.lower <= found.lower < found.upper < 1.3 and float(found) == found.upper
    assert one.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE).upper > found.upper
    with pytest.raises(UnsupportedError, match="Sample the base"):
        one.sampled(0.1).epsilon(delta=1e-6)
    with pytest.raises(UnsupportedError, match="more private"):
        PrivateSelection(BlackBox(100.0), tries=500.0).epsilon(delta=1e-6)
    with pytest.raises(DomainError, match="tries"):
        PrivateSelection(Gaussian(1.0), tries=0.0)
    with pytest.raises(DomainError, match="from 1 on"):
        PrivateSelection(Gaussian(1.0), tries=0.5, shape=1.0)


def test_a_ledger_reads_what_it_wrote() -> None:
    for one in (
        PrivateSelection(Gaussian(5.0), tries=10.0),
        PrivateSelection(Gaussian(5.0).sampled(0.1) * 10 + Laplace(3.0), tries=10.0, shape=0.5) * 2,
    ):
        text = serialize(one)
        assert text is not None and parse(text) * 1 == one * 1
    assert PrivateSelection(GaussianDP(0.1), tries=2.0).epsilon(delta=1e-6).upper < 1


def test_a_run_of_several_mechanisms_bounds_the_truth_from_below() -> None:
    base = Gaussian(4.0).sampled(0.1) * 10
    found = PrivateSelection(base, tries=20.0, shape=1.0).epsilon(delta=1e-6)
    alone = base.epsilon(delta=1e-6)
    assert 0.98 * alone.lower <= found.lower <= alone.upper
    assert found.lower < found.upper < 0.63
