"""Group privacy: the three bounds, and the tight one against every kink of the iterated trade-off
function.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from flint import arb, ctx

from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.group import LARGEST, group_chained, group_delta, group_printed

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def every_kink(target: float, epsilon: float, delta: float, size: int) -> arb:
    """The largest phi^k(a) - e^target a over 0 and all preimages of the two kinks of phi."""
    e, d = arb(epsilon), arb(delta)
    growth = e.exp()
    middle, end = (1 - d) / (1 + growth), 1 - d

    def phi(a: arb) -> arb:
        if a >= end:
            return arb(1)
        steep, shallow = d + growth * a, 1 - (end - a) / growth
        return steep if steep <= shallow else shallow

    def back(b: arb) -> arb:
        a = (b - d) / growth
        return a if a <= middle else end - growth * (1 - b)

    candidates = [arb(0)]
    for kink in (middle, end):
        point = kink
        for _ in range(size):
            if point < 0:
                break
            candidates.append(point)
            point = back(point)
    best = arb(0)
    for candidate in candidates:
        value = candidate
        for _ in range(size):
            value = phi(value)
        value -= arb(target).exp() * candidate
        best = value if value > best else best
    return best


@pytest.mark.parametrize("block", range(8))
def test_tight_contains_the_truth(block: int) -> None:
    with ctx.workprec(300):
        for seed in range(50 * block, 50 * block + 50):
            rng = random.Random(seed)
            epsilon, size = math.exp(rng.uniform(-8, 2)), rng.randint(1, 25)
            delta = rng.choice([0.0, 10 ** rng.uniform(-12, -0.3)])
            target = rng.choice(
                [rng.uniform(0, 1.2) * size * epsilon, rng.uniform(0, epsilon), 0.0]
            )
            bound = group_delta(target, promise=ApproximateDP(epsilon, delta=delta), size=size)
            true = every_kink(target, epsilon, delta, size)
            tiny = arb(10) ** -60
            assert arb(bound.lower) <= true + tiny and arb(bound.upper) >= true - tiny, seed
            if bound.upper > 1e-3:
                assert bound.width < 1e-10 * bound.upper, seed


def rows(name: str) -> list[dict[str, float]]:
    found = [
        {k: float(v) for k, v in row["params"].items()} | {"expected": float(row["expected"])}
        for row in GOLDEN
        if row["name"] == name
    ]
    assert found, name
    return found


@pytest.mark.parametrize("row", rows("group_tight_delta_pure") + rows("group_tight_delta"))
def test_golden(row: dict[str, float]) -> None:
    promise = ApproximateDP(row["eps"], delta=row["delta"])
    bound = group_delta(row["eps_target"], promise=promise, size=int(row["k"]))
    assert bound.upper == pytest.approx(row["expected"], rel=1e-12)
    assert bound.lower == pytest.approx(row["expected"], rel=1e-12)


def test_the_bounds_of_the_theory() -> None:
    promise = ApproximateDP(0.5, delta=1e-6)
    assert group_chained(promise, size=3).delta == pytest.approx(5.36700309915917e-6, rel=1e-13)
    assert group_printed(promise, size=3).delta == pytest.approx(8.15484548537714e-6, rel=1e-13)
    assert group_chained(promise, size=3).epsilon == group_printed(promise, size=3).epsilon == 1.5


@pytest.mark.parametrize("seed", range(60))
def test_the_chain_is_rounded_up_and_tight_at_its_epsilon(seed: int) -> None:
    rng = random.Random(seed)
    epsilon, delta, size = (
        math.exp(rng.uniform(-12, 1)),
        10 ** rng.uniform(-30, -6),
        rng.randint(1, 12),
    )
    promise = ApproximateDP(epsilon, delta=delta)
    chain = group_chained(promise, size=size)
    with ctx.workprec(300):
        true = sum((arb(epsilon) * i).exp() for i in range(size)) * arb(delta)
        assert arb(chain.delta) >= true and arb(chain.delta) <= true * arb("1.0000000000001")
        assert arb(group_printed(promise, size=size).delta) >= arb(size) * (
            arb(epsilon) * (size - 1)
        ).exp() * arb(delta)
    assert group_delta(chain.epsilon, promise=promise, size=size).upper == pytest.approx(
        chain.delta, rel=1e-11
    )


def test_one_person_is_the_promise_itself() -> None:
    promise = ApproximateDP(0.7, delta=1e-5)
    assert group_printed(promise, size=1) == group_chained(promise, size=1) == promise
    assert group_delta(0.7, promise=promise, size=1).upper == pytest.approx(1e-5, rel=1e-12)


def test_extremes() -> None:
    assert group_delta(1.0, promise=ApproximateDP(math.inf), size=2).lower == 1.0
    assert group_delta(0.0, promise=ApproximateDP(0.0, delta=1e-3), size=4).contains(4e-3)
    assert group_chained(ApproximateDP(math.inf, delta=0.5), size=3).epsilon == math.inf
    assert group_chained(ApproximateDP(300.0, delta=1e-5), size=50).delta == 1.0
    assert group_delta(3.0, promise=ApproximateDP(0.001, delta=1e-9), size=LARGEST).upper <= 1.0


@pytest.mark.parametrize("epsilon", [300.0, 699.0, 701.0, 740.0, 2000.0, 1e5])
@pytest.mark.parametrize("delta", [0.0, 1e-320, 1e-3])
def test_very_steep_promises(epsilon: float, delta: float) -> None:
    with ctx.workprec(6000):
        for target in (0.0, 1.0, 0.9 * epsilon, 1.5 * epsilon, 2.5 * epsilon, 3.1 * epsilon):
            bound = group_delta(target, promise=ApproximateDP(epsilon, delta=delta), size=3)
            true = every_kink(target, epsilon, delta, 3)
            assert (
                arb(bound.lower) <= true + arb(10) ** -1000
                and arb(bound.upper) >= true - arb(10) ** -1000
            )
