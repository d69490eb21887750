"""Optimal composition between neighboring losses: every float bound against ball arithmetic, and
the fixed-point numbers used.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction

import pytest
from flint import arb, ctx

from dpcompose.guarantee import ApproximateDP, optimal
from dpcompose.guarantee.heterogeneous import heterogeneous_delta
from dpcompose.guarantee.optimal import homogeneous_delta, homogeneous_epsilon
from dpcompose.values.exact import FIXED_BITS, FIXED_ONE, fixed_exponential, fixed_logarithm
from oracles import optimal as truth


def losses(rng: random.Random, most: float) -> tuple[float, int]:
    """An epsilon and a number of losses."""
    times = int(math.exp(rng.uniform(0, math.log(most))))
    if rng.random() < 0.6:
        return math.exp(rng.uniform(math.log(0.005), math.log(5))) / math.sqrt(times), times
    return math.exp(rng.uniform(math.log(1e-6), math.log(100))), times


def target(rng: random.Random, epsilon: float, times: int) -> float:
    """Anywhere: lattice points and their neighbors, next to the largest loss, tiny, zero."""
    most, deviation = times * epsilon, math.sqrt(times) * epsilon
    lattice = float((2 * rng.randint((times + 1) // 2, times) - times) * Fraction(epsilon))
    chosen = rng.choice(
        [
            0.0,
            rng.uniform(0, most),
            most * (1 - 10 ** rng.uniform(-16, -1)),
            min(most * 0.999, most * math.tanh(epsilon / 2) + rng.uniform(-2, 38) * deviation),
            lattice,
            math.nextafter(lattice, rng.choice([0.0, math.inf])),
            10 ** rng.uniform(-300, 0) * most,
        ]
    )
    return max(chosen, 0.0)


def mass(rng: random.Random, epsilon: float, times: int) -> float:
    """A delta from 1e-300 to nearly 1, or about that of the largest loss."""
    top = -min(times * math.log1p(math.exp(-epsilon)), 600.0)
    exponent = rng.choice([rng.uniform(-690, 0), rng.uniform(-28, -0.01), top + rng.uniform(-7, 7)])
    return min(math.exp(max(exponent, -690.0)), 1 - 10 ** rng.uniform(-10, -0.3))


@pytest.mark.parametrize("careful", [False, True], ids=["quick", "careful"])
@pytest.mark.parametrize("block", range(8))
def test_values_and_roots_enclose_the_truth(block: int, careful: bool) -> None:
    rng = random.Random(block)
    for _ in range(150):
        epsilon, times = losses(rng, 20_000 if block == 0 else 800)
        at = target(rng, epsilon, times)
        found = optimal.piecewise_value(at, epsilon=epsilon, times=times, careful=careful)
        if found is not None:
            true = truth.homogeneous(at, epsilon=epsilon, delta=0, times=times)
            assert not (true < arb(found[0]) or true > arb(found[1])), (epsilon, times, at)
            assert found[1] - found[0] <= 1.2e-12 * found[0] + 1e-300, (epsilon, times, at)
        wanted = mass(rng, epsilon, times)
        root = optimal.piecewise_root(wanted, wanted, epsilon=epsilon, times=times, careful=careful)
        if root is None:
            continue
        above = truth.homogeneous(root[1], epsilon=epsilon, delta=0, times=times)
        below = truth.homogeneous(root[0], epsilon=epsilon, delta=0, times=times)
        assert not above > arb(wanted), (epsilon, times, wanted)
        assert root[0] == 0 or not below < arb(wanted), (epsilon, times, wanted)


@pytest.mark.parametrize("block", range(4))
def test_failures_leave_a_target_that_is_enclosed(block: int) -> None:
    rng = random.Random(100 + block)
    for _ in range(60):
        epsilon, times = losses(rng, 500)
        wanted = min(10 ** rng.uniform(-30, -0.5), 0.9)
        delta = wanted / times * rng.choice([rng.random(), 10 ** rng.uniform(-12, 0)])
        bound = homogeneous_epsilon(wanted, epsilon=epsilon, delta=delta, times=times)
        if bound.upper < math.inf:
            assert not truth.homogeneous(
                bound.upper, epsilon=epsilon, delta=delta, times=times
            ) > arb(wanted)
        if 0 < bound.lower < math.inf:
            assert not truth.homogeneous(
                bound.lower, epsilon=epsilon, delta=delta, times=times
            ) < arb(wanted)
        found = homogeneous_delta(bound.lower * 0.9, epsilon=epsilon, delta=delta, times=times)
        true = truth.homogeneous(bound.lower * 0.9, epsilon=epsilon, delta=delta, times=times)
        assert not (true < arb(found.lower) or true > arb(found.upper))


@pytest.mark.parametrize(
    ("times", "epsilon"), [(10, 0.1), (100, 0.1), (1000, 0.03), (10**4, 0.01), (10**6, 0.001)]
)
@pytest.mark.parametrize("wanted", [1e-3, 1e-6, 1e-30, 1e-300])
def test_usual_questions_are_answered_in_floats_alone(
    times: int, epsilon: float, wanted: float
) -> None:
    root = optimal.piecewise_root(wanted, wanted, epsilon=epsilon, times=times)
    assert root is not None and root[1] - root[0] <= 1e-12 * root[1]
    found = optimal.piecewise_value(0.9 * root[0], epsilon=epsilon, times=times)
    assert found is not None and found[1] - found[0] <= 1e-12 * found[0]


@pytest.mark.parametrize(
    ("times", "epsilon", "share"), [(400, 0.1, 0.99875), (400, 0.1, 0.975), (800, 0.3, 0.9996)]
)
def test_the_largest_losses_of_a_long_window(times: int, epsilon: float, share: float) -> None:
    at = share * times * epsilon
    bound = heterogeneous_delta(at, promises=[(ApproximateDP(epsilon), times)])
    true = truth.homogeneous(at, epsilon=epsilon, delta=0, times=times)
    assert arb(bound.lower) <= true <= arb(bound.upper)
    assert bound.width <= 1e-10 * bound.upper


def worst(function: Callable[[int], arb], true: Callable[[arb], arb], numbers: list[int]) -> float:
    with ctx.workprec(400):
        return max(
            abs(float(function(number) - true(arb(number) / FIXED_ONE))) for number in numbers
        )


def test_fixed_point_keeps_its_errors() -> None:
    rng = random.Random(3)
    exponents = [rng.randint(-1000 << FIXED_BITS, 1000 << FIXED_BITS) for _ in range(300)]
    exponents += [rng.randint(-(1 << n), 1 << n) for n in range(0, 136, 3)]

    def scaled(exponent: int) -> arb:
        mantissa, power = fixed_exponential(exponent)
        assert 0.999 < mantissa / FIXED_ONE < 2.001
        return arb(mantissa) / FIXED_ONE / (arb(exponent) / FIXED_ONE - power * arb(2).log()).exp()

    assert worst(scaled, lambda _: arb(1), exponents) <= 2.0**-112
    numbers = [rng.randint(FIXED_ONE, FIXED_ONE << 37) for _ in range(200)] + [
        n << FIXED_BITS for n in range(1, 200)
    ]
    numbers += [FIXED_ONE + (1 << n) for n in range(FIXED_BITS + 1)]
    assert (
        worst(lambda n: arb(fixed_logarithm(n)) / FIXED_ONE, lambda x: x.log(), numbers)
        <= 2.0**-110
    )
