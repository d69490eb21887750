"""Optimal composition of equal guarantees is compared with ball arithmetic at the exact doubles."""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from pathlib import Path

import pytest
from flint import arb, ctx

from dpcompose.errors import UnsupportedError
from dpcompose.guarantee import binomial
from dpcompose.guarantee.optimal import homogeneous_delta, homogeneous_epsilon
from dpcompose.values.bound import Bound
from oracles import optimal as truth

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def rows(name: str) -> list[dict[str, str]]:
    found = [
        {**row["params"], "expected": row["expected"]} for row in GOLDEN if row["name"] == name
    ]
    assert found, name
    return found


def draw(seed: int) -> tuple[float, float, float, int]:
    """target, epsilon, delta, times: lattice points, the surroundings of the largest loss, negative targets."""
    rng = random.Random(seed)
    times = int(math.exp(rng.uniform(0, math.log(20_000 if seed % 10 == 0 else 2000))))
    epsilon = math.exp(rng.uniform(math.log(0.01), math.log(3))) / math.sqrt(times)
    if rng.random() < 0.3:
        epsilon = math.exp(rng.uniform(math.log(1e-6), math.log(30)))
    delta = rng.choice([0.0, 0.0, 10 ** rng.uniform(-20, -3), 10 ** rng.uniform(-300, -20)])
    most = times * epsilon
    sd = math.sqrt(times) * epsilon
    target = rng.choice(
        [
            rng.uniform(0, most),
            float((2 * rng.randint(times // 2, times) - times) * Fraction(epsilon)),
            most * (1 - 10 ** rng.uniform(-16, -1)),
            -rng.uniform(0, most),
            min(most * 0.999, most * math.tanh(epsilon / 2) + rng.uniform(-2, 38) * sd),
        ]
    )
    return target, epsilon, delta, times


@pytest.mark.parametrize("block", range(10))
def test_delta_contains_the_truth_and_is_narrow(block: int) -> None:
    for seed in range(20 * block, 20 * block + 20):
        target, epsilon, delta, times = draw(seed)
        bound = homogeneous_delta(target, epsilon=epsilon, delta=delta, times=times)
        true = truth.homogeneous(target, epsilon=epsilon, delta=delta, times=times)
        assert not (true < arb(bound.lower) or true > arb(bound.upper)), seed
        if bound.lower > 1e-300:
            assert bound.width <= 2e-12 * bound.lower, seed


@pytest.mark.parametrize("block", range(10))
def test_epsilon_is_the_inverse_on_both_sides(block: int) -> None:
    for seed in range(1000 + 12 * block, 1012 + 12 * block):
        _, epsilon, delta, times = draw(seed)
        target = 10 ** random.Random(seed).uniform(-300 if seed % 2 else -10, -0.3)
        bound = homogeneous_epsilon(target, epsilon=epsilon, delta=delta, times=times)
        if bound.upper < math.inf:
            true = truth.homogeneous(bound.upper, epsilon=epsilon, delta=delta, times=times)
            assert not true > arb(target), seed
        if 0 < bound.lower < math.inf:
            true = truth.homogeneous(bound.lower, epsilon=epsilon, delta=delta, times=times)
            assert not true < arb(target), seed
        if bound.lower == math.inf:
            assert truth.infinity([(epsilon, delta, times)]) > arb(target), seed
        elif bound.lower > 0.1 * math.sqrt(times) * epsilon:
            assert bound.width <= 1e-12 * bound.upper, seed


@pytest.mark.parametrize(
    ("delta", "value"),
    [(math.exp(-32), 0.890468147886613), (1e-30, 1.387939164322170)],
    ids=["e^-32", "1e-30"],
)
def test_example_3_7_at_the_doubles(delta: float, value: float) -> None:
    bound = homogeneous_epsilon(delta, epsilon=1 / 801, times=10_000)
    assert abs(bound.lower - value) < 1e-12 and abs(bound.upper - value) < 1e-12
    assert truth.homogeneous(bound.upper, epsilon=1 / 801, delta=0, times=10_000) <= arb(delta)
    assert truth.homogeneous(bound.lower, epsilon=1 / 801, delta=0, times=10_000) >= arb(delta)


@pytest.mark.parametrize("row", rows("kov_delta"))
def test_golden_delta(row: dict[str, str]) -> None:
    epsilon, delta = float(row["eps"]), float(row["delta"])
    bound = homogeneous_delta(
        float(row["eps_g"]), epsilon=epsilon, delta=delta, times=int(row["k"])
    )
    assert bound.upper == pytest.approx(float(row["expected"]), rel=1e-12)


@pytest.mark.parametrize("row", rows("kov_eps"))
def test_golden_epsilon(row: dict[str, str]) -> None:
    epsilon, delta = float(row["eps"]), float(row["delta"])
    bound = homogeneous_epsilon(
        float(row["delta_g"]), epsilon=epsilon, delta=delta, times=int(row["k"])
    )
    assert bound.upper == pytest.approx(float(row["expected"]), rel=1e-12)


@pytest.mark.parametrize("row", rows("br_kfold_vs_kov"))
def test_golden_delta_beside_bounded_range(row: dict[str, str]) -> None:
    bound = homogeneous_delta(float(row["eps_g"]), epsilon=float(row["eps"]), times=int(row["k"]))
    assert bound.upper == pytest.approx(float(row["expected"]), rel=1e-12)


def test_the_largest_epsilon_of_example_3_7() -> None:
    (row,) = rows("ex37_eps0_optimal")
    each = float(row["expected"])
    assert homogeneous_delta(1.0, epsilon=each * (1 - 1e-12), times=10_000).upper < math.exp(-32)
    assert homogeneous_delta(1.0, epsilon=each * (1 + 1e-12), times=10_000).lower > math.exp(-32)


@pytest.mark.parametrize(
    ("times", "epsilon"), [(10**6, 0.001), (10**6, 0.1), (10**9, 3e-5), (10**9, 5.0)]
)
@pytest.mark.parametrize("delta", [0.01, 1e-6, 1e-100, 1e-300])
def test_a_thousand_million_stay_narrow(times: int, epsilon: float, delta: float) -> None:
    bound = homogeneous_epsilon(delta, epsilon=epsilon, times=times)
    assert 0 < bound.width <= 1e-12 * bound.upper
    assert homogeneous_delta(bound.upper, epsilon=epsilon, times=times).upper <= delta
    assert homogeneous_delta(bound.lower, epsilon=epsilon, times=times).lower >= delta


@pytest.mark.parametrize("seed", range(60))
def test_every_mass_of_a_window_keeps_its_error(seed: int) -> None:
    rng = random.Random(seed)
    times, epsilon = (
        int(math.exp(rng.uniform(0, 18))),
        math.exp(rng.uniform(math.log(1e-6), math.log(20))),
    )
    mode = binomial.mode(times, epsilon=epsilon)
    sd = math.sqrt(times * math.exp(-epsilon)) / (1 + math.exp(-epsilon))
    anchor = mode if seed % 2 else min(times, mode + int(rng.uniform(0, 38) * sd))
    window = binomial.window(
        times, epsilon=epsilon, anchor=anchor, least=anchor if seed % 2 == 0 else max(0, mode - 900)
    )

    def logarithm(successes: int) -> arb:
        def factorial(n: int) -> arb:
            return arb(n + 1).lgamma()

        odds = arb(epsilon)
        choose = factorial(times) - factorial(successes) - factorial(times - successes)
        return choose - times * (1 + (-odds).exp()).log() - (times - successes) * odds

    with ctx.workprec(300):
        scale = logarithm(anchor)
        assert abs(scale - arb(window.scale) - arb(window.fine)) < arb("1e-27")
        size = len(window.masses)
        for index in {0, size - 1, *(rng.randrange(size) for _ in range(12))}:
            true = (logarithm(window.first + index) - scale).exp()
            assert (
                not abs(arb(float(window.masses[index])) - true)
                > arb(float(window.errors[index])) * true
            )


def test_infeasible_targets_are_infinite_and_exact_ties_are_not() -> None:
    assert homogeneous_epsilon(0.0, epsilon=1.0, delta=1e-9, times=5) == Bound(math.inf, math.inf)
    assert homogeneous_epsilon(1e-9, epsilon=1.0, delta=1e-9, times=1) == Bound(1.0, 1.0)
    # 10 delta exceeds 1 - (1 - delta)^10 by 4.5e-31: feasible, though no difference of floats shows it.
    assert homogeneous_epsilon(1e-15, epsilon=1.0, delta=1e-16, times=10).upper <= 10.0
    assert homogeneous_epsilon(0.0, epsilon=1.0, times=5) == Bound(5.0, 5.0)


@pytest.mark.parametrize(
    ("target", "arguments", "bound"),
    [
        (0.0, {"epsilon": 0.0, "times": 5}, Bound(0.0, 0.0)),
        (1.0, {"epsilon": math.inf, "times": 3}, Bound(1.0, 1.0)),
        (1.0, {"epsilon": 1.0, "delta": 1.0, "times": 3}, Bound(1.0, 1.0)),
        (3.0, {"epsilon": 1.0, "times": 0}, Bound(0.0, 0.0)),
        (1e308, {"epsilon": 1e-308, "times": 10**9}, Bound(0.0, 0.0)),
    ],
)
def test_degenerate_promises(target: float, arguments: dict[str, float], bound: Bound) -> None:
    assert homogeneous_delta(target, **arguments) == bound  # type: ignore[arg-type]


def test_huge_losses_do_not_overflow() -> None:
    assert homogeneous_delta(1e308, epsilon=1e308, times=10**5).lower > 1 - 1e-13
    assert homogeneous_delta(1.0, epsilon=800.0, times=50).lower > 1 - 1e-13
    assert homogeneous_epsilon(0.5, epsilon=1e308, times=10).upper == math.inf


def test_too_many_terms_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="relevant terms"):
        homogeneous_epsilon(1e-5, epsilon=1.0, times=10**13)


def test_a_lattice_finer_than_the_masses_has_a_root() -> None:
    """Masses that underflow together leave the cell without a weight, and the search goes on."""
    epsilon, times, delta = 9.829571059569762, 4677793, 0.6737714977310781
    found = homogeneous_epsilon(delta, epsilon=epsilon, times=times)
    assert homogeneous_delta(found.upper, epsilon=epsilon, times=times).upper <= delta
    assert homogeneous_delta(found.lower, epsilon=epsilon, times=times).lower >= delta
    assert found.width <= 1e-12 * found.upper
