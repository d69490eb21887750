"""Optimal composition of different guarantees is compared with an enumeration of all signs in ball
arithmetic.
"""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest
from flint import arb

from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.heterogeneous import heterogeneous_delta, heterogeneous_epsilon
from dpcompose.guarantee.optimal import homogeneous_epsilon
from oracles import optimal as truth

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def draw(seed: int) -> tuple[list[tuple[ApproximateDP, int]], float]:
    rng = random.Random(seed)
    scale, distinct = math.exp(rng.uniform(-5, 1.5)), rng.randint(1, 4)
    each = [
        scale * rng.random() if seed % 3 else float(2 ** rng.randint(-6, 1))
        for _ in range(distinct)
    ]
    deltas = [rng.choice([0.0, 10 ** rng.uniform(-15, -3)]) for _ in range(distinct)]
    promises = [
        (ApproximateDP(e, delta=d), rng.randint(1, 4)) for e, d in zip(each, deltas, strict=True)
    ]
    most = sum(promise.epsilon * times for promise, times in promises)
    lattice = abs(
        sum(p.epsilon * rng.choice([1, -1]) for p, times in promises for _ in range(times))
    )
    return promises, rng.choice(
        [rng.uniform(-most, most), most * (1 - 10 ** rng.uniform(-15, -1)), lattice]
    )


def oracle(target: float, promises: list[tuple[ApproximateDP, int]]) -> arb:
    return truth.heterogeneous(target, [(p.epsilon, p.delta, times) for p, times in promises])


@pytest.mark.parametrize("block", range(8))
def test_delta_contains_the_truth(block: int) -> None:
    for seed in range(25 * block, 25 * block + 25):
        promises, target = draw(seed)
        bound, true = heterogeneous_delta(target, promises=promises), oracle(target, promises)
        assert not (true < arb(bound.lower) or true > arb(bound.upper)), seed
        if bound.lower > 1e-25:
            assert bound.width <= 2e-12 * bound.upper, seed


@pytest.mark.parametrize("block", range(8))
def test_epsilon_is_the_inverse_on_both_sides(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        promises, _ = draw(seed)
        target = 10 ** random.Random(seed).uniform(-20, -0.3)
        bound = heterogeneous_epsilon(target, promises=promises)
        assert bound.upper == math.inf or not oracle(bound.upper, promises) > arb(target), seed
        assert bound.lower in (0.0, math.inf) or not oracle(bound.lower, promises) < arb(target), (
            seed
        )
        if bound.lower == math.inf:
            assert truth.infinity([(p.epsilon, p.delta, times) for p, times in promises]) > arb(
                target
            ), seed


@pytest.mark.parametrize(
    "row", [row for row in GOLDEN if row["name"] in ("mv_delta_pure", "mv_delta")]
)
def test_golden_delta(row: dict[str, dict[str, list[str]]]) -> None:
    epsilons = [float(value) for value in row["params"]["eps"]]
    deltas = [float(value) for value in row["params"].get("delta", ["0"] * len(epsilons))]
    promises = [ApproximateDP(e, delta=d) for e, d in zip(epsilons, deltas, strict=True)]
    bound = heterogeneous_delta(float(row["params"]["eps_g"]), promises=promises)  # type: ignore[arg-type]
    assert bound.upper == pytest.approx(float(row["expected"]), rel=1e-12)  # type: ignore[arg-type]


def test_a_million_equal_promises_among_few() -> None:
    alone = heterogeneous_epsilon(1e-6, promises=[(ApproximateDP(0.001), 10**6)])
    closed = homogeneous_epsilon(1e-6, epsilon=0.001, times=10**6)
    assert alone.lower <= closed.upper and closed.lower <= alone.upper
    more = heterogeneous_epsilon(
        1e-6, promises=[(ApproximateDP(0.001), 10**6), ApproximateDP(0.5), ApproximateDP(0.3)]
    )
    assert alone.upper < more.lower and more.width < 1e-12 * more.upper


def test_order_and_grouping_do_not_matter() -> None:
    one, two = ApproximateDP(0.3), ApproximateDP(0.2, delta=1e-7)
    assert heterogeneous_delta(0.4, promises=[one, two, one]) == heterogeneous_delta(
        0.4, promises=[(two, 1), (one, 2)]
    )


def test_nothing_and_everything() -> None:
    assert heterogeneous_epsilon(0.1, promises=[]).upper == 0.0
    assert heterogeneous_delta(1.0, promises=[]).upper == 0.0
    assert heterogeneous_delta(1.0, promises=[ApproximateDP(math.inf)]).lower == 1.0
    assert heterogeneous_epsilon(0.1, promises=[ApproximateDP(math.inf)]).lower == math.inf
    assert heterogeneous_epsilon(0.0, promises=[ApproximateDP(0.25), ApproximateDP(0.5)]).contains(
        0.75
    )


def test_what_is_out_of_reach_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="combinations"):
        heterogeneous_delta(0.5, promises=[ApproximateDP(0.1 + 0.001 * i) for i in range(21)])
    with pytest.raises(UnsupportedError, match="1e290"):
        heterogeneous_delta(0.5, promises=[ApproximateDP(1e300)])


@pytest.mark.parametrize(
    "promises",
    [3, None, [3], ["ab"], [(ApproximateDP(1.0), -1)], [(ApproximateDP(1.0), True)], [(1.0, 2)]],
)
def test_bad_promises(promises: object) -> None:
    with pytest.raises(DomainError):
        heterogeneous_delta(0.5, promises=promises)  # type: ignore[arg-type]
    with pytest.raises(DomainError):
        heterogeneous_epsilon(0.5, promises=promises)  # type: ignore[arg-type]
