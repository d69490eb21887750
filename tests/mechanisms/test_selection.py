"""Private selection: the theorem on noisy maxima evaluated on examples, golden values, refusals and
charges.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from random import Random

import pytest

from campaigns.noisy_max import TOLERANCE, drawn, geometric, run
from dpcompose import Adjacency, Bound, Exponential, GaussianDP, Laplace, RandomizedResponse
from dpcompose.adaptive import ConcentratedFilter, GaussianFilter, PureFilter
from dpcompose.composition import Composable
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import AboveThreshold, NoisyArgmax, NoisyMax, PermuteAndFlip
from oracles.noisy_max import Noise, permute_and_flip, winning

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "mechanisms_golden.json").read_text())[
    "golden"
]


def golden(name: str) -> list[str]:
    return [row["value"] for row in GOLDEN if row["name"] == name]


def test_the_theorem_on_noisy_maxima() -> None:
    largest, near, broken = run(600, seed=7)
    assert largest <= TOLERANCE
    assert near >= 50 and broken >= 10 and geometric() > 0.04


def test_the_oracle_finds_the_probabilities_of_permute_and_flip() -> None:
    known = [float(each) for each in golden("permute_and_flip")[0].split()]
    scores = [2, 1, Fraction(1, 2), -1]
    assert [float(each) for each in permute_and_flip(scores, Fraction(1, 2))] == pytest.approx(
        known, abs=1e-15
    )
    noises = [Noise("exponential", 2.0)] * 4  # the noisy maximum is the same mechanism
    assert list(winning([float(score) for score in scores], noises)) == pytest.approx(
        known, abs=1e-13
    )


def test_the_profile_of_permute_and_flip() -> None:
    value = float(golden("permute_and_flip_profile")[0])
    for one in (
        PermuteAndFlip(1.0),
        PermuteAndFlip(1.0, monotone=True),
        NoisyMax(2.0, noise="exponential"),
    ):
        found = one.delta(epsilon=0.3)
        assert found.contains(value) and found.width < 1e-12 * value


def test_random_selections_are_inside_their_answers() -> None:
    """The hockey-stick divergence of what is selected, by quadrature, is never above the upper end."""
    rng, closest = Random(11), 0.0
    for _ in range(100):
        case = drawn(rng)
        if case.width < 1e-3 or len({noise.kind for noise in case.noises}) > 1:
            continue
        scale = min(noise.scale for noise in case.noises)
        one = NoisyMax(scale, noise=case.noises[0].kind, sensitivity=case.width, monotone=True)
        before, after = winning(case.before, case.noises), winning(case.after, case.noises)
        for epsilon in (0.0, 0.4 * one.epsilon(delta=0.0).upper):
            truth = sum(
                max(p - math.exp(epsilon) * q, 0.0) for p, q in zip(after, before, strict=True)
            )
            upper = one.delta(epsilon=epsilon).upper
            assert truth <= upper + 1e-12
            closest = max(closest, truth / upper)
    assert closest > 0.98


LOSSES: list[tuple[Composable, Composable]] = [
    (PermuteAndFlip(0.5) * 7, Laplace(2.0) * 7),
    (NoisyMax(4.0, noise="laplace") * 7, Laplace(2.0) * 7),
    (NoisyMax(4.0, noise="gumbel") * 7, Exponential(0.5) * 7),
    (AboveThreshold(0.5, positives=3) * 7, RandomizedResponse(0.5) * 7),
    (NoisyArgmax(3.0) * 7, GaussianDP(math.sqrt(2) / 3) * 7),
]


@pytest.mark.parametrize(("one", "other"), LOSSES, ids=[repr(one) for one, _ in LOSSES])
@pytest.mark.parametrize("adjacency", [Adjacency.ADD_REMOVE, Adjacency.REPLACE])
def test_the_upper_end_is_that_of_the_named_loss(
    one: Composable, other: Composable, adjacency: Adjacency
) -> None:
    found, known = (each.epsilon(delta=1e-6, adjacency=adjacency) for each in (one, other))
    assert found.upper == pytest.approx(known.upper, rel=1e-9)
    assert 0 < found.lower < found.upper and float(found) == found.upper


@pytest.mark.parametrize(
    ("one", "lower"), [(NoisyMax(4.0, noise="laplace"), 0.3), (AboveThreshold(0.5), 0.05)]
)
def test_a_group_of_what_is_only_dominated_has_two_ends(one: Composable, lower: float) -> None:
    found: Bound = one.group(3).epsilon(delta=1e-4)
    assert lower < found.lower < 1.4 < found.upper <= 1.5


def test_replacing_moves_monotone_scores_both_ways() -> None:
    one = NoisyMax(2.0, noise="laplace", monotone=True)
    assert one.pure() == 0.5 and one.pure(adjacency=Adjacency.REPLACE) == 1.0
    better = NoisyMax(2.0, noise="laplace", replace_sensitivity=1.0)
    assert better.pure() == 1.0 and better.pure(adjacency=Adjacency.REPLACE) == 1.0


def test_what_is_not_stated_is_refused_with_a_remedy() -> None:
    with pytest.raises(DomainError, match="both ways"):
        PermuteAndFlip(1.0, monotone=True, holds_under=Adjacency.REPLACE)
    with pytest.raises(DomainError, match="both ways"):
        AboveThreshold(1.0, monotone=True, holds_under=Adjacency.REPLACE)
    with pytest.raises(DomainError, match="GaussianDP"):
        NoisyMax(1.0, noise="gaussian")
    with pytest.raises(UnsupportedError, match="holds_under"):
        PermuteAndFlip(1.0).epsilon(delta=1e-6, adjacency=Adjacency.ZERO_OUT)


def test_a_sparse_vector_is_charged_in_full_when_it_is_opened() -> None:
    budget = PureFilter(1.0)
    opened = AboveThreshold(0.7, positives=100)
    assert budget.price(opened) == {"epsilon": Fraction(7, 10)}
    state, decision = budget.step(budget.start(), opened)
    assert decision.granted
    _, second = budget.step(state, AboveThreshold(0.4))
    assert not second.granted  # a resumed one is a new charge


def test_prices() -> None:
    assert GaussianFilter(1.0).price(NoisyArgmax(2.0)) == {"mu squared": Fraction(1, 2)}
    assert PureFilter(1.0).price(NoisyMax(0.4, noise="laplace")) == {"epsilon": 5}
    rho = ConcentratedFilter(1.0, delta=0.0)
    assert rho.price(NoisyMax(2.0, noise="gumbel"))["rho"] <= Fraction(1, 8) * (
        1 + Fraction(1, 10**12)
    )


def test_a_divergence_of_the_exponential_mechanism_has_two_ends() -> None:
    """At order 2 the sup over the pairs t of range 1 is 0.240229013916555049264."""
    found = Exponential(1.0).renyi(2.0)
    assert 0.2398 < found.lower <= 0.240229013916556 and found.upper >= 0.240229013916554
    assert Exponential(0.1).renyi(8.0).lower > 0.0098
