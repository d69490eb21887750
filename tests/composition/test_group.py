"""Group privacy of compositions: golden values, closed forms, exact chains of finite pairs, and
laws of groups.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import pytest
from flint import arb, ctx

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    compose,
)
from dpcompose.composition.composition import Composable
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.mechanisms import DominatingPair
from oracles import atoms, chains, gaussian as gaussian_truth
from oracles.gaussian import upper_tail

ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE
GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def golden(name: str) -> dict[str, float]:
    (found,) = [row for row in GOLDEN if row["name"] == name]
    return {key: float(value) for key, value in found["params"].items()} | {
        "expected": float(found["expected"])
    }


# --- closed forms


@pytest.mark.parametrize("name", ["group_tight_delta_pure", "group_tight_delta"])
def test_golden(name: str) -> None:
    data = golden(name)
    bound = (
        BlackBox(data["eps"], delta=data["delta"])
        .group(int(data["k"]))
        .delta(epsilon=data["eps_target"])
    )
    assert bound.lower <= data["expected"] * (1 + 1e-15)
    assert bound.upper >= data["expected"] * (1 - 1e-15)
    assert bound.width <= 1e-12 * bound.upper


def test_golden_group_on_a_sample() -> None:
    data = golden("group_poisson_gauss_delta")
    mechanism = Gaussian(1 / data["mu"]).sampled(data["q"])
    bound = mechanism.group(int(data["g"])).delta(epsilon=data["eps"])
    assert bound.lower <= data["expected"] <= bound.upper
    assert bound.width <= 1e-3 * bound.upper


@pytest.mark.parametrize("seed", range(12))
def test_gaussian_noise_is_k_mu(seed: int) -> None:
    rng = random.Random(seed)
    sigma, times, size = (
        math.exp(rng.uniform(-1, 4)),
        rng.choice([1, 1, 7]),
        rng.choice([1, 2, 3, 10, 1000]),
    )
    group = (Gaussian(sigma) * times).group(size)
    mu = Fraction(size) / Fraction(sigma)
    with ctx.workprec(300):
        total = gaussian_truth.total([(mu, times)])
        epsilon = float((total * total / 2 + total * rng.uniform(-1, 3)).mid())
    bound = group.delta(epsilon=epsilon)
    assert arb(bound.lower) <= gaussian_truth.delta(epsilon, [(mu, times)]) <= arb(bound.upper)
    delta = 10 ** rng.uniform(-30, -1)
    inverse = group.epsilon(delta=delta)
    assert arb(inverse.lower) <= gaussian_truth.epsilon(delta, [(mu, times)]) <= arb(inverse.upper)
    assert inverse.width <= 1e-12 * inverse.upper or inverse.upper < 1e-3


@pytest.mark.parametrize(
    ("one", "many"),
    [
        (Laplace(3.0), Laplace(3.0, sensitivity=4.0)),
        (Laplace(3.0) * 5, Laplace(3.0, sensitivity=4.0) * 5),
        (DiscreteGaussian(3.0) * 2, DiscreteGaussian(3.0, shift=4) * 2),
        (DiscreteGaussian(3.0, shift=(1, 2)), DiscreteGaussian(3.0, shift=(4, 8))),
        (DiscreteLaplace(5.0), DiscreteLaplace(5.0, shift=4)),
        (DiscreteLaplace(5.0, shift=3) * 3, DiscreteLaplace(5.0, shift=12) * 3),
        (GaussianDP(0.25) + Laplace(2.0), GaussianDP(1.0) + Laplace(0.5)),
        (Exponential(0.1), Exponential(0.4)),
        (Exponential(0.1) * 3, Exponential(0.4) * 3),
    ],
    ids=repr,
)
def test_noise_on_a_value_is_noise_at_a_larger_shift(one: Composable, many: Composable) -> None:
    for epsilon in (-0.5, 0.0, 0.3, 1.0):
        found, known = one.group(4).delta(epsilon=epsilon), many.delta(epsilon=epsilon)
        assert max(found.lower, known.lower) <= min(found.upper, known.upper)
        assert found.upper - known.upper <= 1e-8 and known.lower - found.lower <= 1e-8


@pytest.mark.parametrize(
    "mechanism",
    [
        BlackBox(0.4),
        BlackBox(0.4, delta=1e-3) * 3,
        RandomizedResponse(0.7, categories=4),
        Exponential(0.3) * 2,
    ],
    ids=repr,
)
def test_a_replacement_is_a_group_of_two(mechanism: Composable) -> None:
    for epsilon in (0.0, 0.4, 1.1):
        found, known = (
            mechanism.group(2).delta(epsilon=epsilon),
            mechanism.delta(epsilon=epsilon, adjacency=REPLACE),
        )
        assert found.lower == pytest.approx(known.lower, rel=1e-9)
        assert found.upper == pytest.approx(known.upper, rel=1e-9)
    three, six = (
        mechanism.group(3).delta(epsilon=0.5, adjacency=REPLACE),
        mechanism.group(6).delta(epsilon=0.5),
    )
    assert max(three.lower, six.lower) <= min(three.upper, six.upper)


def test_concentrated_privacy_grows_with_the_square() -> None:
    found = Concentrated(0.1).group(3).epsilon(delta=1e-6)
    assert found.upper == pytest.approx(Concentrated(0.9).epsilon(delta=1e-6).upper, rel=1e-12)
    with pytest.raises(UnsupportedError, match="delta > 0"):
        Concentrated(0.1, delta=1e-9).group(2).epsilon(delta=1e-6)


# --- exact chains


def dyadic(rng: random.Random, size: int) -> list[Fraction]:
    cuts = sorted(rng.sample(range(1, 64), size - 1))
    return [Fraction(b - a, 64) for a, b in pairwise([0, *cuts, 64])]


def mechanism_of(points: chains.Points) -> DominatingPair:
    upper, lower = [float(p) for p, _ in points], [float(q) for _, q in points]
    return DominatingPair.atoms(upper=upper, lower=lower, adjacency=ADD_REMOVE)


def middle(value: arb) -> arb:
    return value.mid()


def largest(epsilon: float, pairs: list[chains.Points]) -> arb:
    return max((chains.delta(epsilon, points) for points in pairs), key=middle)


@pytest.mark.parametrize("seed", range(25))
def test_one_asymmetric_pair_in_a_row(seed: int) -> None:
    """The truth is at least that of all removed or all added, and at most the better order of every mixture."""
    rng = random.Random(seed)
    remove = list(zip(dyadic(rng, 3), dyadic(rng, 3), strict=True))
    add, size, epsilon = chains.swapped(remove), rng.choice([2, 2, 3]), rng.uniform(-0.5, 2.0)
    bound = mechanism_of(remove).group(size).delta(epsilon=epsilon)
    pure = largest(epsilon, [chains.pair_of([remove] * size), chains.pair_of([add] * size)])
    slack = 1e-12
    assert arb(bound.lower) <= pure + slack and arb(bound.lower) >= pure - slack
    assert arb(bound.upper) >= pure - slack
    mixtures: list[arb] = []
    for removed in range(1, size):
        first, last = [remove] * removed, [add] * (size - removed)
        orders = [chains.pair_of(first + last), chains.pair_of(last + first)]
        mixtures.append(min((chains.delta(epsilon, points) for points in orders), key=middle))
    assert arb(bound.upper) <= max([pure, *mixtures], key=middle) + slack


@pytest.mark.parametrize("seed", range(10))
def test_a_composition_of_groups(seed: int) -> None:
    """Both parts at their worst for three people in a row: attained, so both ends are known."""
    rng = random.Random(100 + seed)
    half = dyadic(rng, 3)
    points = list(zip(half, reversed(half), strict=True))
    chain = chains.pair_of([points] * 3)
    times, epsilon = rng.choice([1, 2]), rng.uniform(0.0, 2.0)
    bound = (mechanism_of(points) * times).group(3).delta(epsilon=epsilon)
    truth = chains.delta(epsilon, chains.joined(*[chain] * times))
    assert arb(bound.lower) <= truth + 1e-14 and truth - 1e-14 <= arb(bound.upper)
    assert bound.width <= 1e-11


@pytest.mark.parametrize("seed", range(14))
def test_a_group_on_a_sample(seed: int) -> None:
    """How many of two are in the sample is binomial: the mixture is attained with both removed, and with both added."""
    rng = random.Random(200 + seed)
    rate, size = Fraction(rng.randrange(1, 8), 8), 2
    half = dyadic(rng, 2)
    points = list(zip(half, reversed(half) if seed % 2 else dyadic(rng, 2), strict=True))
    stay = [(Fraction(1), Fraction(1))]
    weights = [(1 - rate) ** 2, 2 * rate * (1 - rate), rate**2]
    both = chains.mixed(weights, [[stay], [points], [points] * 2])
    times, epsilon = rng.choice([1, 3]), rng.uniform(0.0, 1.0)
    bound = (mechanism_of(points).sampled(float(rate)) * times).group(size).delta(epsilon=epsilon)
    remove, add = chains.joined(*[both] * times), chains.joined(*[chains.swapped(both)] * times)
    pure = largest(epsilon, [remove, add])
    assert arb(bound.lower) <= pure + 1e-11 and arb(bound.lower) >= pure - 1e-9
    assert arb(bound.upper) >= pure - 1e-11
    one = chains.mixed([1 - rate, rate], [[stay], [points]])
    chain = chains.pair_of([one, chains.swapped(one)])
    assert (
        arb(bound.upper) <= largest(epsilon, [remove, add, chains.joined(*[chain] * times)]) + 1e-9
    )


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.slow
def test_gaussian_noise_on_a_sample(seed: int) -> None:
    """All removed: a binomial mixture of normals against one, whose best tests are half-lines."""
    rng = random.Random(300 + seed)
    sigma, rate, size = 2.0 ** rng.randrange(-1, 3), 10 ** rng.uniform(-3, -0.3), rng.choice([2, 3])
    group = Gaussian(sigma).sampled(rate).group(size)
    for epsilon in (0.01 / sigma, 0.5 / sigma, 2 / sigma):
        found, truth = (
            group.delta(epsilon=epsilon),
            mixture_delta(epsilon, mu=1 / sigma, rate=rate, size=size),
        )
        assert arb(found.lower) <= truth <= arb(found.upper)
        assert found.width <= 0.02 * found.upper


def mixture_delta(epsilon: float, *, mu: float, rate: float, size: int) -> arb:
    with ctx.workprec(300):
        q, m = arb(rate), arb(mu)
        weights = [math.comb(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]
        low, high = arb(-200) / m, arb(200) / m
        for _ in range(400):
            x = ((low + high) / 2).mid()
            ratio = sum(
                (w * (j * m * x - j * j * m * m / 2).exp() for j, w in enumerate(weights)), arb(0)
            )
            low, high = (x, high) if ratio < arb(epsilon).exp() else (low, x)
        point = low.union(high)
        above = sum((w * upper_tail(point - j * m) for j, w in enumerate(weights)), arb(0))
        return above - arb(epsilon).exp() * upper_tail(point)


def test_both_ends_on_a_sample_hold_for_many_rounds() -> None:
    steps = Gaussian(1.0).sampled(0.01) * 1000
    found = steps.group(2).epsilon(delta=1e-5)
    assert found.width <= 1e-3 * found.upper
    # One sub-case: the answers depend on no more than whether any of the two is in the sample.
    together = (Gaussian(1.0).sampled(1 - 0.99**2 - 1e-12) * 1000).epsilon(delta=1e-5)
    assert together.lower <= found.lower <= found.upper
    # Another: a replaced record is one removed and one added.
    assert steps.epsilon(delta=1e-5, adjacency=REPLACE).lower <= found.upper


# --- laws

MEMBERS = [
    Gaussian(3.0),
    Laplace(4.0) + Gaussian(5.0),
    BlackBox(0.2, delta=1e-6) * 3,
    DiscreteLaplace(4.0, shift=2),
    RandomizedResponse(0.3, categories=3) * 2,
    Exponential(0.2),
    DominatingPair.atoms(upper=[0.5, 0.25, 0.25], lower=[0.25, 0.25, 0.5], adjacency=ADD_REMOVE),
    DominatingPair.atoms(upper=[0.5, 0.5, 0.0], lower=[0.25, 0.5, 0.25], adjacency=ADD_REMOVE),
    BlackBox(0.5).sampled(0.25) * 2,
]


@pytest.mark.parametrize(
    "composition", [*MEMBERS, Gaussian(1.0).sampled(0.1), Concentrated(0.1), compose()], ids=repr
)
def test_a_group_of_one_is_the_composition_itself(composition: Composable) -> None:
    assert composition.group(1).delta(epsilon=0.4) == composition.delta(epsilon=0.4)
    assert composition.group(1).epsilon(delta=1e-4) == composition.epsilon(delta=1e-4)


@pytest.mark.parametrize("composition", MEMBERS, ids=repr)
def test_more_people_lose_more(composition: Composable) -> None:
    for epsilon in (0.0, 0.3, 1.2):
        bounds = [composition.group(size).delta(epsilon=epsilon) for size in (1, 2, 3)]
        assert all(fewer.lower <= more.upper for fewer, more in pairwise(bounds))
        assert all(fewer.upper <= more.upper + 1e-12 for fewer, more in pairwise(bounds))


@pytest.mark.parametrize("composition", MEMBERS, ids=repr)
def test_the_order_of_parts_does_not_matter(composition: Composable) -> None:
    one, other = compose(composition, Laplace(9.0)), compose(Laplace(9.0), composition)
    first, second = one.group(2).delta(epsilon=0.5), other.group(2).delta(epsilon=0.5)
    assert first.upper == pytest.approx(second.upper, rel=1e-6)
    assert max(first.lower, second.lower) <= min(first.upper, second.upper)


@pytest.mark.parametrize(
    "composition", [Gaussian(3.0) * 4, BlackBox(0.2, delta=1e-7) * 3, Laplace(4.0)], ids=repr
)
def test_the_theorems_stand_in_their_order(composition: Composable) -> None:
    rows = composition.group(3).compare(delta=1e-5)
    assert [row.name for row in rows] == ["certified group", "geometric sum", "the book's bound"]
    assert rows[0].epsilon <= rows[1].epsilon <= rows[2].epsilon
    tight = composition.group(3).epsilon(delta=1e-5)
    assert (rows[0].lower, rows[0].epsilon) == (tight.lower, tight.upper)


def test_at_most_the_iterate_of_the_whole() -> None:
    """Iterating the trade-off function of the whole is sound too, and not tight: 0.309 where the truth is 0.255."""
    composition, epsilon = BlackBox(0.5) * 3, 1.5
    profile = composition.profile().question.delta
    splits = [0.05 * step for step in range(-40, 80)]
    whole = min(profile(e).upper + math.exp(e) * profile(epsilon - e).upper for e in splits)
    found = composition.group(2).delta(epsilon=epsilon)
    assert found.upper < 0.827 * whole
    truth = atoms.delta(epsilon, [(_twice, 3)])
    assert arb(found.lower) <= truth <= arb(found.upper)


def _twice() -> atoms.Points:
    """Two randomized responses of epsilon 1/2 in a row: +1, 0 and -1, where the iterate turns."""
    growth = arb(0.5).exp()
    high, low = growth / (1 + growth), 1 / (1 + growth)
    return [
        (high, low / growth),
        ((high - low) / growth, (high - low) / growth),
        (low / growth, high),
    ]


def test_the_profile_and_the_risk_of_a_group() -> None:
    group = Gaussian(6.0).group(3)
    assert group.profile()(1.0).upper == pytest.approx(
        Gaussian(2.0).delta(epsilon=1.0).upper, rel=1e-12
    )
    assert group.risk(prior=0.2).advantage.upper == pytest.approx(
        Gaussian(2.0).risk().advantage.upper, rel=1e-12
    )


# --- bad input


@pytest.mark.parametrize("size", [0, -1, 2.0, True, "two", None, 10**6, math.nan])
def test_sizes_are_counts(size: object) -> None:
    with pytest.raises(DomainError, match="size"):
        Gaussian(1.0).group(size)  # pyright: ignore[reportArgumentType]


def test_questions_are_checked() -> None:
    group = Gaussian(1.0).group(2)
    with pytest.raises(DomainError, match="delta"):
        group.epsilon(delta=1.5)
    with pytest.raises(DomainError, match="epsilon"):
        group.delta(epsilon=math.nan)
    with pytest.raises(DomainError, match="tolerance"):
        group.delta(epsilon=1.0, tolerance=0.0)


def test_what_is_not_known_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="beyond 690"):
        BlackBox(1.0).group(1000).delta(epsilon=1.0)
    with pytest.raises(UnsupportedError, match="up to 64"):
        Laplace(1.0).sampled(0.1).group(65).delta(epsilon=1.0)
    with pytest.raises(UnsupportedError, match="zero-out"):
        BlackBox(1.0).group(2).delta(epsilon=1.0, adjacency=Adjacency.ZERO_OUT)


def test_proofs_where_the_group_is_exact() -> None:
    asymmetric = MEMBERS[7]
    for composition in (Gaussian(2.0), BlackBox(0.5, delta=1e-6) * 3, asymmetric):
        proved = composition.group(2).delta(epsilon=0.3, proof=True)
        found = composition.group(2).delta(epsilon=0.3)
        assert max(found.lower, proved.lower) <= min(found.upper, proved.upper)
        assert proved.width <= 1e-12
    with pytest.raises(UnsupportedError, match="proof"):
        Gaussian(1.0).sampled(0.1).group(2).delta(epsilon=0.5, proof=True)
