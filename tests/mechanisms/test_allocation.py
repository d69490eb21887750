"""Random allocation: golden values, an independent method, laws of the family, refusals."""

from __future__ import annotations

import json
import math
from itertools import permutations
from pathlib import Path
from random import Random
from typing import Any

import pytest
from flint import arb

from dpcompose import Adjacency, Bound, Gaussian
from dpcompose.composition.directions import epsilon_by_the_other_order
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.loss.allocation import AllocationLoss
from dpcompose.loss.product import Product
from dpcompose.mechanisms import RandomAllocation
from oracles.allocation import epoch_of_two, one_epoch

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "mechanisms_golden.json").read_text())[
    "golden"
]
VALUES = [
    each for each in GOLDEN if each["name"].startswith("allocation") and "delta" in each["question"]
]
CURVES = [each for each in GOLDEN if each["name"] == "allocation_renyi"]


@pytest.mark.parametrize("entry", VALUES, ids=str)
def test_check_values(entry: dict[str, Any]) -> None:
    """One epoch or several, in either order."""
    call = entry["call"]
    one = call["compose"][0] if "compose" in call else call
    epsilon = float(entry["question"].split("epsilon=")[1].split(")")[0])
    loss = AllocationLoss(float(one["sigma"]), one["steps"], "remove" in entry["name"])
    found = Product(((loss, call.get("times", 1)),)).delta(epsilon, tolerance=1e-9)
    assert found.contains(float(entry["value"])) and found.width < 1e-5 * found.upper


@pytest.mark.parametrize("entry", CURVES, ids=str)
def test_renyi_values(entry: dict[str, Any]) -> None:
    call, order = entry["call"], int(entry["question"].split("order=")[1].split(")")[0])
    found = RandomAllocation(float(call["sigma"]), steps=call["steps"]).renyi(order=order)
    assert found.contains(float(entry["value"])) and found.width < 1e-9


def test_one_epoch_by_prices() -> None:
    """Both orders against a put by Laplace's transform, in balls."""
    rng = Random(5)
    for _ in range(4):
        sigma, steps, epsilon = (
            round(rng.uniform(0.8, 2), 2),
            rng.randint(2, 30),
            round(rng.uniform(0.1, 1.0), 2),
        )
        for remove in (True, False):
            truth = float(one_epoch(sigma, steps, epsilon, remove=remove, digits=24))
            found = Product(((AllocationLoss(sigma, steps, remove), 1),)).delta(
                epsilon, tolerance=1e-9
            )
            slip = 1e-11 + 1e-9 * truth
            assert found.lower - slip <= truth <= found.upper + slip
            assert found.width < 1e-6 * found.upper


def test_one_step_is_gaussian_and_all_steps_are_many() -> None:
    one, all_of_them = RandomAllocation(1.3, steps=1), RandomAllocation(1.3, steps=4, selected=4)
    assert one.epsilon(delta=1e-6) == Gaussian(1.3).epsilon(delta=1e-6)
    assert all_of_them.epsilon(delta=1e-6) == (Gaussian(1.3) * 4).epsilon(delta=1e-6)


def test_never_above_poisson_and_less_with_more_steps() -> None:
    before = math.inf
    for steps in (2, 10, 100, 1000):
        allocated = (RandomAllocation(1.0, steps=steps) * 10).epsilon(delta=1e-6)
        poisson = (Gaussian(1.0).sampled(1 / steps) * (10 * steps)).epsilon(delta=1e-6)
        assert allocated.lower < poisson.upper and allocated.upper < before
        before = allocated.lower


def test_several_of_the_steps_have_two_ends() -> None:
    several = RandomAllocation(1.0, steps=100, selected=3)
    found = several.epsilon(delta=1e-6)
    assert RandomAllocation(1.0, steps=34).epsilon(delta=1e-6).lower < found.upper
    assert found.lower >= Gaussian(10.0 / 3).epsilon(delta=1e-6).lower * (1 - 1e-9)
    assert found.upper < (Gaussian(1.0) * 3).epsilon(delta=1e-6).upper
    assert float(found) == found.upper


def test_refusals() -> None:
    epoch = RandomAllocation(1.0, steps=10)
    assert epoch.delta(epsilon=1.0, adjacency=Adjacency.ZERO_OUT) == epoch.delta(epsilon=1.0)
    with pytest.raises(UnsupportedError, match="add-remove and zero-out"):
        epoch.epsilon(delta=1e-6, adjacency=Adjacency.REPLACE)
    with pytest.raises(UnsupportedError, match="draws each record"):
        epoch.sampled(0.1).epsilon(delta=1e-6)
    with pytest.raises(UnsupportedError, match="upper bound"):
        epoch.group(2).epsilon(delta=1e-6)
    with pytest.raises(DomainError, match="at most the 10 steps"):
        RandomAllocation(1.0, steps=10, selected=11)


@pytest.mark.parametrize(
    ("sigma", "steps", "epochs"), [(0.05, 2, 1), (0.12, 1000, 1), (0.25, 2, 1)]
)
def test_no_more_than_without_the_draw(sigma: float, steps: int, epochs: int) -> None:
    """Hockey-stick divergences are jointly convex: whoever does not know the step knows no more than who does."""
    allocated, known = RandomAllocation(sigma, steps=steps) * epochs, Gaussian(sigma) * epochs
    assert allocated.epsilon(delta=1e-6).upper <= known.epsilon(delta=1e-6).upper * (1 + 1e-12)
    assert allocated.delta(epsilon=1 / sigma**2).upper <= known.delta(
        epsilon=1 / sigma**2
    ).upper * (1 + 1e-9)


def test_orders_beyond_all_nodes_are_answered() -> None:
    bound = RandomAllocation(1.0, steps=5).renyi(10_000.0)
    assert 0 < bound.lower <= 5000 <= bound.upper * (1 + 1e-12)
    assert bound.upper <= 5000 * (1 + 1e-9)


def test_one_order_is_read_from_the_other_where_its_own_line_is_wide() -> None:
    """Of few steps both are narrow: they agree. Of many the first moments say too little, and the complement serves."""
    for sigma, steps in ((1.0, 5), (2.0, 40)):
        question = RandomAllocation(sigma, steps=steps).profile().question
        for one, other in permutations(question.dominating):
            truth = one.epsilon(1e-5, tolerance=1e-9)
            found = epsilon_by_the_other_order(other, 1e-5, Bound(0.0, 9.0))
            assert found.lower <= truth.upper and truth.lower <= found.upper and found.width < 1e-3
            assert epsilon_by_the_other_order(other, 2e-5, Bound(0.0, 9.0)).upper < truth.lower
    wide = RandomAllocation(5.0, steps=1000).epsilon(delta=1e-6)
    assert 0.0207514 < wide.lower < wide.upper < 0.0207521


def test_much_noise_costs_no_more_memory() -> None:
    """The step of the rule for the noise is a share of 1 / s, and where it is short its nodes lie on no common grid."""
    for sigma in (30.0, 1e5):
        epsilon = 0.8 / sigma
        found = RandomAllocation(sigma, steps=2).delta(epsilon=epsilon)
        truth = max(epoch_of_two(sigma, epsilon, remove=remove) for remove in (True, False))
        assert found.lower <= float(truth.upper()) and float(truth.lower()) <= found.upper
    many = (RandomAllocation(100.0, steps=10) * 50).epsilon(delta=1e-6)
    assert 0 < many.width < 2e-4 * many.upper


@pytest.mark.parametrize(("sigma", "steps"), [(0.3, 10**6), (1.0, 10**4), (1.0, 10**6)])
def test_whole_orders_are_short_sums(sigma: float, steps: int) -> None:
    """E S^8 = 8! [z^8] (sum of z^n / n! e^((n^2 - n) / (2 s^2)))^t / t^8 in balls; 7.5 lies between two whole orders."""
    proved = {order: _divergence(sigma, steps, order) * 50 for order in (7, 8)}
    whole = RandomAllocation(sigma, steps=steps) * 50
    found, between = whole.renyi(8.0), whole.renyi(7.5)
    assert found.lower <= float(proved[8].upper()) and float(proved[8].lower()) <= found.upper
    assert found.upper <= found.lower * (1 + 1e-6)
    assert float(proved[7].lower()) * (1 - 1e-9) <= between.upper
    assert 0.99 * float(proved[7].lower()) <= between.lower <= float(proved[8].upper())


def _divergence(sigma: float, steps: int, order: int) -> arb:
    """The Renyi divergence of a whole order of one allocation, the record removed."""
    square = 2 * arb(sigma) ** 2
    base = [(arb(n * n - n) / square).exp() / arb(math.factorial(n)) for n in range(order + 1)]

    def times(one: list[arb], two: list[arb]) -> list[arb]:
        return [sum((one[j] * two[k - j] for j in range(k + 1)), arb(0)) for k in range(order + 1)]

    power = [arb(1)] + [arb(0)] * order
    for digit in bin(steps)[2:]:
        power = times(power, power)
        power = times(power, base) if digit == "1" else power
    moment = power[order] * arb(math.factorial(order)) / arb(steps) ** order
    return moment.log() / (order - 1)
