"""The experiment played: confidence limits that hold jointly, for any adversary, and the same numbers from one seed."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from scipy import stats

from campaigns import bands
from dpcompose import (
    DiscreteGaussian,
    DiscreteLaplace,
    Gaussian,
    Laplace,
    Orientation,
    RandomizedResponse,
)
from dpcompose.composition import Composable, Curve
from dpcompose.experiment import Experiment, Holds, Query, Repeater, Tally, Wanderer, World
from dpcompose.experiment.measured import BINS, EDGES, bins_of, ranks_of, shares_of, survival

EPSILONS = np.array([-1.0, -0.2, 0.0, 0.05, 0.2, 0.5, 1.0, 2.0, 3.0])
ADVERSARIES, FAILURE = 120, 1e-6


def asked(mechanism: Composable) -> Query:
    return Query(mechanism, ("Bob",), ())


FAMILIES: list[list[Composable]] = [
    [Laplace(2.0)],
    [Gaussian(2.0)],
    [Laplace(2.0), Gaussian(3.0)],
    [Laplace(3.0), RandomizedResponse(0.5), DiscreteLaplace(2.0)],
    [Gaussian(1.0).sampled(0.1)],
    [Laplace(1.0).sampled(0.2), RandomizedResponse(1.0).sampled(0.1)],
    [Gaussian(2.0).sampled(0.5), Laplace(4.0), DiscreteGaussian(3.0)],
]
ROUNDS, SYMMETRIC = (1, 3), {0, 1, 2, 3}


@pytest.fixture(scope="module")
def certified() -> dict[tuple[int, int, bool], np.ndarray]:
    """The upper ends of what the theorems certify, computed once for each family, number of rounds and orientation."""
    return {}


def bound_of(
    game: Experiment, key: tuple[int, int, bool], known: dict[tuple[int, int, bool], np.ndarray]
) -> np.ndarray:
    if key[0] in SYMMETRIC:
        key = (key[0], key[1], False)
    if key not in known:
        known[key] = game.composition.profile(tolerance=1e-6)(EPSILONS).upper
    return known[key]


def wandering(seed: int, family: int, rounds: int, free: bool) -> Experiment:
    queries = [asked(mechanism) for mechanism in FAMILIES[family]]
    # Other databases: Alice's with Bob in it, and one in which nothing changes.
    queries.append(Query(FAMILIES[family][0], ("Alice", "Bob"), ("Alice",), Holds("Bob")))
    queries.append(Query(FAMILIES[family][-1], ("Alice",), ("Alice",), Holds("Bob")))
    queries += [query.exchanged for query in queries if free]
    wanderer = Wanderer(queries, seed=seed, quits=0.05, coins=seed % 2 == 1)
    orientation = Orientation.FREE if free else Orientation.SAME
    return Experiment(wanderer, family=FAMILIES[family], rounds=rounds, orientation=orientation)


@pytest.mark.statistical
@settings(max_examples=ADVERSARIES)
@given(
    seed=st.integers(0, 2**32),
    family=st.sampled_from(range(len(FAMILIES))),
    rounds=st.sampled_from(ROUNDS),
    free=st.booleans(),
)
def test_no_random_adversary_is_measured_above_the_bound(
    certified: dict[tuple[int, int, bool], np.ndarray],
    seed: int,
    family: int,
    rounds: int,
    free: bool,
) -> None:
    """8192 transcripts in each world; all limits of all adversaries hold together with probability 1 - 1e-6."""
    game = wandering(seed, family, rounds, free)
    found = game.measure(
        transcripts=8192, rng=np.random.default_rng(seed), failure=FAILURE, shares=ADVERSARIES
    )
    assert np.all(found.delta(EPSILONS).lower <= bound_of(game, (family, rounds, free), certified))


@pytest.mark.statistical
def test_a_bound_that_is_too_small_is_caught() -> None:
    """Positive control: what the theorems say of one round less, and of a little more noise, is exceeded."""
    mechanism = Gaussian(2.0)
    game = Experiment(Repeater(asked(mechanism)), family=[mechanism], rounds=4)
    found = game.measure(transcripts=1 << 18, rng=np.random.default_rng(7), failure=FAILURE).delta(
        EPSILONS
    )
    for planted in (mechanism * 3, Gaussian(2.1) * 4):
        assert np.any(found.lower > planted.profile()(EPSILONS).upper)
    truth = (mechanism * 4).profile()(EPSILONS)
    assert np.all(found.lower <= truth.upper)
    assert np.all(found.upper >= truth.lower)


@cache
def _truth(mechanism: Composable) -> Curve:
    """The profile of three of them, once for both directions."""
    return (mechanism * 3).profile()(EPSILONS)


@pytest.mark.statistical
@pytest.mark.parametrize(
    "turned",
    [False, True],
)
@pytest.mark.parametrize(
    "mechanism",
    [
        Laplace(1.5),
        Gaussian(1.5),
        RandomizedResponse(0.7),
        RandomizedResponse(0.7, categories=5),
        DiscreteLaplace(1.5),
        DiscreteGaussian(1.5),
        Gaussian(1.0).sampled(0.3),
        Laplace(0.7).sampled(0.3),
    ],
    ids=repr,
)
def test_the_repeater_is_between_its_limits(mechanism: Composable, turned: bool) -> None:
    """Every limit, of both kinds, at once: false alarm 1e-6 for each mechanism. The width is below one in a hundred."""
    query = Query(mechanism, ("Bob",), (), Holds("Bob"))
    # Bob in world 1 alone: the two directions are exchanged, and the larger is the same.
    game = Experiment(Repeater(query.exchanged if turned else query), family=[mechanism], rounds=3)
    found = game.measure(transcripts=1 << 17, rng=np.random.default_rng(11)).delta(EPSILONS)
    truth = _truth(mechanism)
    assert np.all(found.lower <= truth.upper)
    assert np.all(found.upper >= truth.lower)
    assert np.all((found.lower <= found.estimate + 1e-9) & (found.estimate <= found.upper + 1e-9))
    assert np.all(found.upper - found.lower < 0.03)
    assert np.allclose(found.estimate, (truth.lower + truth.upper) / 2, atol=8e-3)


@pytest.mark.statistical
def test_the_limits_cover_as_often_as_they_say() -> None:
    """Binomial: 400 tallies at failure 0.1 may miss in at most 40 + 5 standard deviations; the exact law is uniform."""
    rng, missed = np.random.default_rng(3), 0
    grid = np.linspace(-2.0, 4.0, 61)
    truth = np.array(
        [stats.norm.sf(point - 1) - math.exp(point - 0.5) * stats.norm.sf(point) for point in grid]
    )
    for _ in range(400):
        # L = X, X normal with mean 1: E (1 - e^(epsilon - X))_+ in closed form, for a density that is no ratio.
        losses = rng.normal(1.0, 1.0, 2000)
        limits = survival(Tally.of(losses), failure=0.1, margin=0.0)
        missed += bool(np.any(limits.lower(grid) > truth) or np.any(limits.upper(grid) < truth))
    assert np.all(truth >= 0)
    assert missed <= 40 + 5 * 6


def test_limits_are_the_quantiles_of_order_statistics() -> None:
    """Of three losses 3, 2, 1: ranks 1 to 3, both sides at a share of the failure, below and above the bins."""
    limits = survival(Tally.of(np.array([2.0, 3.0, 1.0])), failure=0.06, margin=0.0)
    tail = 2 + math.sqrt(0.5)
    shares = {1: 1 / 6 + 0.5 / tail, 2: 1 / 6 + 0.5 * math.sqrt(0.5) / tail, 3: 1 / 6 + 0.5 / tail}
    assert sum(shares.values()) == pytest.approx(1)
    low = np.array([stats.beta.ppf(0.03 * share, rank, 4 - rank) for rank, share in shares.items()])
    high = np.array(
        [stats.beta.ppf(1 - 0.03 * share, rank, 4 - rank) for rank, share in shares.items()]
    )
    assert np.allclose(np.cumsum(limits.low), low, rtol=1e-6)
    assert np.allclose(np.cumsum(limits.high), [*high, 1.0], rtol=1e-6)
    assert np.all(np.cumsum(limits.low) <= low)
    assert np.all(np.cumsum(limits.high)[:3] >= high)
    assert np.allclose(limits.low_at, [3.0, 2.0, 1.0], rtol=2e-3)
    assert np.allclose(limits.high_at[1:], [3.0, 2.0, 1.0], rtol=2e-3)
    assert limits.high_at[0] == math.inf
    assert np.all(limits.low_at <= [3.0, 2.0, 1.0])
    assert np.all(limits.high_at[1:] >= [3.0, 2.0, 1.0])


def test_limits_are_narrow_in_the_tail() -> None:
    losses = np.random.default_rng(4).exponential(1.0, 1 << 20)
    limits = survival(Tally.of(losses), failure=1e-6, margin=0.0)
    # delta(epsilon) = e^-epsilon / 2 at rate 1.
    for point in (0.0, 3.0, 8.0):
        exact = math.exp(-point) / 2
        low, high = limits.lower(np.array([point]))[0], limits.upper(np.array([point]))[0]
        assert low <= exact <= high
        assert high - low < 14 * math.sqrt(exact / len(losses))


def test_answers_far_from_zero_are_rounded_and_the_limits_know() -> None:
    """A count of 10^13 people and noise of scale 2: answers are multiples of 2^-9, and losses as coarse."""
    crowd = 1e13
    query = Query(Laplace(2.0), ("Bob",), (), lambda database: crowd + len(database))
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=3)
    found = game.measure(transcripts=50_000, rng=np.random.default_rng(2))
    assert found.error > 1e-3
    truth = (query.mechanism * 3).profile()(EPSILONS)
    assert np.all(found.delta(EPSILONS).lower <= truth.upper)
    assert np.all(found.delta(EPSILONS).upper >= truth.lower)


@pytest.mark.parametrize("failure", [0.2, 0.02])
def test_bands_hold_everywhere_as_often_as_they_say(failure: float) -> None:
    """The same as a campaign of 10,000 runs; a band of losses that are counted four times is caught."""
    assert bands.holds(
        bands.misses(runs=300, transcripts=500, failure=failure, seed=5), 300, failure
    )
    assert not bands.holds(
        bands.misses(runs=300, transcripts=500, failure=failure, seed=5, copies=4), 300, failure
    )


@pytest.mark.parametrize("number", [1, 2, 1001, 10**6])
def test_shares_of_the_failure_sum_to_at_most_one(number: int) -> None:
    total = sum(map(Fraction, shares_of(ranks_of(number), number).tolist()))
    assert 1 - Fraction(1, 10**9) < total <= 1


def test_bands_are_as_narrow_as_the_page_says() -> None:
    """Against the limits of one single place at the same failure, which no limits for all places can beat."""
    for ratio in bands.ratios(1 << 20, failure=1e-6):
        assert 1 < ratio < 1.42


def test_ranks_depend_on_the_number_alone() -> None:
    for number in (1, 2, 3, 10, 1001):
        ranks = ranks_of(number)
        assert ranks[0] == 1
        assert ranks[-1] == number
        assert np.all(np.diff(ranks) > 0)


def test_every_loss_has_its_bin() -> None:
    values = np.array(
        [
            -math.inf,
            -3000.0,
            -1.0,
            -1e-3,
            -1e-9,
            0.0,
            1e-9,
            1e-3,
            0.5,
            1.0,
            2047.0,
            5000.0,
            math.inf,
        ]
    )
    values = np.concatenate([values, np.random.default_rng(1).normal(0, 3, 2000)])
    bins = bins_of(values)
    assert np.all((bins >= 0) & (bins < BINS))
    assert np.all((EDGES[bins] <= values) & (values <= EDGES[bins + 1]))
    assert Tally.of(values).infinite == 1
    assert (Tally.of(values) + Tally.of(values)).transcripts == 2 * len(values)


def test_one_seed_gives_the_same_views_whatever_is_played_with_them() -> None:
    game = wandering(12, 6, 4, True)
    long, short = (
        game.play(World.ONE, transcripts=n, rng=np.random.default_rng(2)) for n in (20_000, 20_000)
    )
    assert np.array_equal(long.answers, short.answers, equal_nan=True)
    assert np.array_equal(long.loss, short.loss)
    # Whole blocks do not depend on how many follow.
    more = game.play(World.ONE, transcripts=40_000, rng=np.random.default_rng(2))
    assert np.array_equal(more.loss[:16384], long.loss[:16384])
    other = game.play(World.ONE, transcripts=20_000, rng=np.random.default_rng(3))
    assert not np.array_equal(other.loss, long.loss)
    # Counting is playing without keeping.
    rng = np.random.default_rng(2)
    counted = game.measure(transcripts=20_000, rng=rng)
    rng = np.random.default_rng(2)
    assert np.array_equal(
        counted.zero.counts, game.play(World.ZERO, transcripts=20_000, rng=rng).tally.counts
    )


def test_progress_is_told() -> None:
    told: list[tuple[str, int, int]] = []
    game = wandering(3, 0, 2, False)
    game.measure(
        transcripts=20_000, rng=np.random.default_rng(1), progress=lambda *what: told.append(what)
    )
    assert told[0] == ("world 0", 0, 20_000)
    assert {what for what, _, _ in told} == {"world 0", "world 1"}
    assert all(done < total == 20_000 for _, done, total in told)


def test_the_mean_of_the_repeater_converges_to_the_truth() -> None:
    """Section 3.5: no fixed noise hides a value that is asked for again and again. Five standard deviations."""
    query = Query(Laplace(5.0), ("Alice", "Bob"), ("Alice",))
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=400)
    views = game.play(World.ZERO, transcripts=500, rng=np.random.default_rng(9))
    assert views.answers.shape == (400, 500)
    spread = 5.0 * math.sqrt(2.0)
    assert abs(float(np.mean(views.answers[0])) - 2.0) < 5 * spread / math.sqrt(500)
    means = np.mean(views.answers, axis=0)
    assert float(np.std(means)) < 1.2 * spread / 20
    assert abs(float(np.mean(means)) - 2.0) < 5 * spread / math.sqrt(400 * 500)


def test_histograms_of_both_worlds() -> None:
    query = asked(RandomizedResponse(1.0))
    game = Experiment(
        Repeater(Query(query.mechanism, ("Bob",), (), Holds("Bob"))),
        family=[query.mechanism],
        rounds=1,
    )
    edges, zero, one = game.measure(transcripts=40_000, rng=np.random.default_rng(1)).histogram(10)
    assert len(edges) == 11
    assert zero.sum() == pytest.approx(1)
    assert one.sum() == pytest.approx(1)
    likely = math.e / (1 + math.e)
    assert zero[-1] == pytest.approx(likely, abs=0.02)
    assert one[-1] == pytest.approx(1 - likely, abs=0.02)
