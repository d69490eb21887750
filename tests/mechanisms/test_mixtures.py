"""Mixtures of Gaussians and capped batches: golden values, laws, published values of others,
refusals.
"""

from __future__ import annotations

import json
import math
from fractions import Fraction
from itertools import product
from pathlib import Path
from random import Random
from typing import Any

import pytest
from flint import ctx
from scipy.optimize import minimize_scalar

from dpcompose import Adjacency, BlackBox, Composition, Gaussian
from dpcompose.composition.losses import Pairs, Part
from dpcompose.errors import UnsupportedError
from dpcompose.loss.gaussian_mixture import GaussianMixture, OpposedMixtures, binomial_mixture
from dpcompose.loss.mixture_loss import MixtureLoss
from dpcompose.loss.product import Product
from dpcompose.mechanisms import MixtureOfGaussians, TruncatedPoisson
from dpcompose.mechanisms.text import parse, serialize
from oracles import contour, mixtures

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "mechanisms_golden.json").read_text())[
    "golden"
]
NONE: Pairs = ()
ADD_REMOVE, REPLACE, ZERO_OUT = Adjacency.ADD_REMOVE, Adjacency.REPLACE, Adjacency.ZERO_OUT


def directed(part: Part, side: str, times: int = 1) -> Product:
    ((pair, count),) = part.pairs(ADD_REMOVE) or NONE
    return Product(((pair.remove if side == "remove" else pair.add, times * count),))


def built(call: dict[str, Any]) -> tuple[Part, int]:
    if "compose" in call:
        return built(call["compose"][0])[0], call["times"]
    if call["mechanism"] == "TruncatedPoisson":
        rate, records, batch = float(call["rate"]), call["records"], call["batch"]
        return TruncatedPoisson(float(call["sigma"]), rate=rate, records=records, batch=batch), 1
    shifts, weights = ([float(each) for each in call[name]] for name in ("shifts", "weights"))
    return MixtureOfGaussians(float(call["sigma"]), shifts=tuple(shifts), weights=tuple(weights)), 1


@pytest.mark.parametrize(
    "row",
    [row for row in GOLDEN if row["name"].startswith(("mixture_", "truncated_poisson_"))],
    ids=lambda row: row["name"],
)
def test_check_values(row: dict[str, Any]) -> None:
    part, times = built(row["call"])
    if row["name"] == "truncated_poisson_rate":
        ((pair, _),) = part.pairs(ADD_REMOVE) or NONE
        rate, probability = map(float, row["value"].split())
        share, inner = pair.remove.parts[1]  # pyright: ignore[reportAttributeAccessIssue, reportUnknownVariableType]
        assert share == pytest.approx(probability, rel=1e-12) and inner.first.weights[
            1
        ] == pytest.approx(rate, rel=1e-12)
        return
    epsilon = float(row["question"].split("epsilon=")[1].split(")")[0])
    found = directed(part, "remove" if "remove" in row["question"] else "add", times).delta(
        epsilon, tolerance=1e-9
    )
    value = float(row["value"])
    assert found.lower <= value * (1 + 1e-14) and value * (1 - 1e-14) <= found.upper
    assert found.upper - found.lower <= 1e-9 * value
    if isinstance(part, MixtureOfGaussians) and value > 0 and "remove" in row["question"]:
        answer = (Composition(((part, times),))).delta(epsilon=epsilon)
        assert answer.contains(value) and answer.width < 1e-9


def test_simpler_families() -> None:
    """Two shifts, one of them 0, are a sample; one is Gaussian; none is nothing."""
    pair = MixtureOfGaussians(3.0, shifts=(2, 0, 1), weights=(0.25, 0.75, 0.0)) * 7
    assert pair.epsilon(delta=1e-6) == (Gaussian(1.5).sampled(0.25) * 7).epsilon(delta=1e-6)
    one = MixtureOfGaussians(3.0, shifts=(2, 2), weights=(0.25, 0.75)) * 7
    assert one.epsilon(delta=1e-6) == (Gaussian(1.5) * 7).epsilon(delta=1e-6)
    nothing = MixtureOfGaussians(3.0, shifts=(0, 1), weights=(1.0, 0.0))
    assert nothing.epsilon(delta=0.0).upper == 0 and nothing.delta(epsilon=0.0).upper == 0
    plain = TruncatedPoisson(2.0, rate=0.1, records=50, batch=50) * 9
    assert plain.epsilon(delta=1e-6) == (Gaussian(2.0).sampled(0.1) * 9).epsilon(delta=1e-6)


def test_laws_of_mixtures() -> None:
    shifts, weights = (0.0, 1.0, 2.0), (0.5, 0.25, 0.25)
    known = [
        (MixtureOfGaussians(1.5, shifts=shifts, weights=weights) * 20).epsilon(delta=10.0**-at)
        for at in (4, 12)
    ]
    same = MixtureOfGaussians(3.0, shifts=(0, 2, 4, 4), weights=(0.5, 0.25, 0.125, 0.125)) * 20
    costlier = MixtureOfGaussians(1.5, shifts=(0, 1, 2.001), weights=weights) * 20
    heavier = MixtureOfGaussians(1.5, shifts=shifts, weights=(0.5, 0.249, 0.251)) * 20
    for answer, delta in zip(known, (1e-4, 1e-12), strict=True):
        again = same.epsilon(delta=delta)
        assert (
            again.lower <= answer.upper
            and answer.lower <= again.upper
            and answer.width < 1e-8 * answer.upper
        )
        assert (
            costlier.epsilon(delta=delta).lower > answer.upper
            and heavier.epsilon(delta=delta).lower > answer.upper
        )
    sampled, written = (
        (MixtureOfGaussians(1.5, shifts=shifts, weights=weights).sampled(0.5) * 5).epsilon(
            delta=1e-6
        ),
        (MixtureOfGaussians(1.5, shifts=shifts, weights=(0.75, 0.125, 0.125)) * 5).epsilon(
            delta=1e-6
        ),
    )
    assert sampled.upper == pytest.approx(written.upper, rel=1e-9)
    assert same.epsilon(delta=1e-6, adjacency=ZERO_OUT) == same.epsilon(delta=1e-6)


def test_a_user_is_a_group() -> None:
    """All removed, or all added; for per-user clipping less, and more for more examples."""
    rate, size, steps = 0.01, 5, 1000
    weights = tuple(
        math.comb(size, j) * rate**j * (1 - rate) ** (size - j) for j in range(size + 1)
    )
    user = (
        MixtureOfGaussians(1.0, shifts=tuple(range(size + 1)), weights=weights) * steps
    ).epsilon(delta=1e-6)
    group = (Gaussian(1.0).sampled(rate) * steps).group(size).epsilon(delta=1e-6)
    assert user.upper == pytest.approx(group.upper, rel=1e-8) and group.width < 1e-8 * group.upper
    clipped = (
        MixtureOfGaussians(1.0, shifts=tuple(min(j, 2) for j in range(size + 1)), weights=weights)
        * steps
    )
    assert clipped.epsilon(delta=1e-6).upper < user.lower


def test_groups_are_within_what_iterated_power_functions_say() -> None:
    """Four digits by another route: the ends that were known before the loss of a group was."""
    ends = {2: (4.06058028965077, 4.061032581767579), 3: (6.380171894258303, 6.380939858013379)}
    ends |= {10: (26.54926648027748, 26.552531926020933)}
    for size, (low, high) in ends.items():
        found = (Gaussian(1.0).sampled(0.01) * 782).group(size).epsilon(delta=1e-6)
        assert low <= found.lower <= found.upper <= high and found.width < 1e-8 * found.upper


def test_weights_below_floats_count_as_infinite_losses() -> None:
    lost = MixtureOfGaussians(2.0, shifts=(0, 1, 50), weights=(0.5, 0.5, 1e-300))
    plain = MixtureOfGaussians(2.0, shifts=(0, 1), weights=(0.5, 0.5))
    one, other = (lost * 3).epsilon(delta=1e-6), (plain * 3).epsilon(delta=1e-6)
    assert (
        one.lower <= other.upper * (1 + 1e-12)
        and other.lower <= one.upper
        and (lost * 3).epsilon(delta=0.0).upper == math.inf
    )


def test_tiny_weights_of_far_shifts() -> None:
    """Where far shifts alone decide: between the samples with the smaller shift and the larger."""
    for weight, shift in ((1e-14, 9.0), (1e-40, 20.0), (1e-250, 40.0)):
        between = MixtureOfGaussians(
            1.0, shifts=(0, shift, shift + 1 / 64), weights=(1 - weight, weight / 2, weight / 2)
        )
        ends = [Gaussian(1 / far).sampled(weight) for far in (shift, shift + 1 / 64)]
        for epsilon in (1.0, -0.3):
            low, found, high = (part.delta(epsilon=epsilon) for part in (ends[0], between, ends[1]))
            assert found.upper >= low.lower * (1 - 1e-12) and found.lower <= high.upper * (
                1 + 1e-12
            )
        low, found, high = (part.epsilon(delta=weight / 10) for part in (ends[0], between, ends[1]))
        assert found.upper >= low.lower and found.lower <= high.upper
    terms: Any = (
        (0, 1 - Fraction(1e-14)),
        (9, Fraction(5e-15)),
        (9 + Fraction(1, 64), Fraction(5e-15)),
    )
    with ctx.workprec(200):
        truth = float(mixtures.profile(1.0, mixtures.Mixture(terms)).mid())
    found = MixtureOfGaussians(
        1.0, shifts=(0, 9, 9 + 1 / 64), weights=(1 - 1e-14, 5e-15, 5e-15)
    ).delta(epsilon=1.0)
    assert found.contains(truth) and found.width < 1e-12 * truth


def test_large_groups_at_large_losses() -> None:
    """Where the ratio of removed to added is beyond the floats, against balls."""
    for epsilon in (800.0, 900.0):
        found = Gaussian(1.0).sampled(0.9).group(41).delta(epsilon=epsilon)
        with ctx.workprec(200):
            laws = [
                mixtures.Mixture(terms(n, 0.9, 1.0), terms(41 - n, 0.9, 1.0))
                for n in (0, 1, 20, 40, 41)
            ]
            truths = [float(mixtures.profile(epsilon, law).mid()) for law in laws]
        assert found.contains(max(truths)) and found.width < 1e-11 * found.upper


def test_means_far_below_the_noise() -> None:
    """The loss reaches epsilon where nobody looks: 72 million standard deviations out, or nowhere."""
    shifts, weights = (4.1e-8, 4.6e-8, 5.3e-8), (0.9972, 0.0028 - 1e-15, 1e-15)
    tiny = MixtureOfGaussians(1.0, shifts=shifts, weights=weights)
    assert tiny.delta(epsilon=3.0).upper < 1e-300 and tiny.delta(epsilon=-0.1).width < 1e-12
    assert 0 < tiny.epsilon(delta=1e-9).lower <= tiny.epsilon(delta=1e-9).upper < 1e-6
    beyond = MixtureOfGaussians(34.0, shifts=(6e-9, 0.004, 0.0041), weights=(1.0, 1e-84, 1e-107))
    assert beyond.epsilon(delta=7e-217).upper < 1e-5
    rare = MixtureOfGaussians(0.16, shifts=(0.0, 0.02), weights=(1.0, 1e-139)) * 7096
    assert rare.delta(epsilon=1e-135).upper < 1e-9


def test_what_is_left_out_is_never_nothing() -> None:
    """A mass below the least float is an infinite loss too, and a lower end is claimed where it cannot matter."""
    _, lost = binomial_mixture(2, 1e-165, mean=100.0, ulps=1)
    assert lost > 0
    mixed, lost = GaussianMixture((0.0, 1.0), (1.0, 1e-200)).sampled(1e-200)
    assert mixed.nothing and lost > 0
    unseen = MixtureOfGaussians(1.0, shifts=(0, 1, 50), weights=(1e-300, 0.5, 0.5))
    assert unseen.delta(epsilon=700.0).lower == 0


def test_capped_batches() -> None:
    """Between a sample of which nobody is displaced and one that always displaces; rarer caps cost less."""
    sample = (Gaussian(1.0).sampled(0.05) * 100).epsilon(delta=1e-6)
    always = (Gaussian(0.5).sampled(0.05) * 100).epsilon(delta=1e-6)
    costs = [
        (TruncatedPoisson(1.0, rate=0.05, records=100, batch=batch) * 100).epsilon(delta=1e-6)
        for batch in (6, 9, 15, 40)
    ]
    uppers = [cost.upper for cost in costs]
    assert uppers == sorted(uppers, reverse=True) and always.upper > uppers[0] > uppers[
        -1
    ] >= sample.upper * (1 - 1e-9)
    assert all(cost.lower <= cost.upper and float(cost) == cost.upper for cost in costs)
    assert costs[-1].lower <= sample.upper and costs[-1].upper == pytest.approx(
        sample.upper, rel=1e-3
    )


def test_the_looser_pair_reproduces_the_peer() -> None:
    """Displacing as a replacement, which others charge, costs 8 percent more epsilon on this example."""
    ours = TruncatedPoisson(1.2, rate=0.3, records=20, batch=6).delta(epsilon=0.8).upper
    assert ours == pytest.approx(0.028585423568325233, rel=1e-10)


def test_refusals() -> None:
    mixture = MixtureOfGaussians(2.0, shifts=(0, 1), weights=(0.5, 0.5))
    capped = TruncatedPoisson(2.0, rate=0.1, records=100, batch=10)
    for question, adjacency in (
        (mixture, REPLACE),
        (capped, REPLACE),
        (capped, ZERO_OUT),
        (capped * 3, ZERO_OUT),
    ):
        with pytest.raises(UnsupportedError, match="add-remove"):
            question.epsilon(delta=1e-6, adjacency=adjacency)
        with pytest.raises(UnsupportedError, match="add-remove"):
            question.typed(adjacency=adjacency)
    with pytest.raises(UnsupportedError, match="product of the rates"):
        capped.sampled(0.5).epsilon(delta=1e-6)
    for part in (mixture * 2, capped * 2):
        text = serialize(part)
        assert text is not None and parse(text) == part


# Values of the tests of Google's dp-accounting 0.6, privacy_loss_mechanism_test.py: one answer at epsilon 1, noise 1,
# shifts, weights, delta if the record is removed, delta if it is added.
PUBLISHED = [
    ((1.0,), (1.0,), 0.12693674, 0.12693674),
    ((3.0,), (1.0,), 0.78760074, 0.78760074),
    ((0.0, 1.0), (0.2, 0.8), 0.0816951786585355, 0.0231362104090899),
    ((0.0, 3.0), (0.3, 0.7), 0.5356298793262404, 0.1195051215523554),
    ((0.0, 1.0, 2.0), (0.2, 0.6, 0.2), 0.15768284088654105, 0.036691263832032806),
    ((1.0, 2.0), (0.2, 0.8), 0.433276675545065, 0.3894964356580768),
]
# Both worlds are mixtures: shifts and weights of the removed, of the added, delta.
OPPOSED = [
    ((1.0, 2.0), (0.25, 0.75), (0.5, 1.2), (0.5, 0.5), 0.6491678248306),
    ((0.4, 0.8), (0.7, 0.3), (2.0, 3.0), (0.4, 0.6), 0.76374029027522),
    ((0.4, 0.8, 2.0), (0.4, 0.3, 0.3), (2.0, 3.0, 4.0), (0.5, 0.25, 0.25), 0.80098696349024),
    (
        (0.4, 0.8, 2.0, 3.0),
        (0.4, 0.3, 0.2, 0.1),
        (2.0, 3.0, 4.0),
        (0.4, 0.1, 0.5),
        0.8216940535995645,
    ),
    (
        (0.4, 0.8, 2.0),
        (0.2, 0.6, 0.2),
        (2.0, 3.0, 4.0, 5.0),
        (0.8, 0.1, 0.05, 0.05),
        0.77025888470173,
    ),
]


@pytest.mark.parametrize(("shifts", "weights", "removed", "added"), PUBLISHED)
def test_published_values(
    shifts: tuple[float, ...], weights: tuple[float, ...], removed: float, added: float
) -> None:
    """Printed to 8 digits or more."""
    one = MixtureOfGaussians(1.0, shifts=shifts, weights=weights)
    for side, value in (("remove", removed), ("add", added)):
        found = directed(one, side).delta(1.0, tolerance=1e-9)
        assert (
            found.upper - found.lower < 1e-12 and found.lower - 6e-9 <= value <= found.upper + 6e-9
        )
    padded = MixtureOfGaussians(1.0, shifts=(*shifts, 100.0, 200.0), weights=(*weights, 0.0, 0.0))
    assert padded.delta(epsilon=1.0) == one.delta(epsilon=1.0)


@pytest.mark.parametrize(("means", "weights", "others", "other_weights", "value"), OPPOSED)
def test_published_values_of_opposed_mixtures(
    means: tuple[float, ...],
    weights: tuple[float, ...],
    others: tuple[float, ...],
    other_weights: tuple[float, ...],
    value: float,
) -> None:
    pair = OpposedMixtures(
        GaussianMixture(means, weights, 0, 1e-15), GaussianMixture(others, other_weights, 0, 1e-15)
    )
    found = MixtureLoss(((1.0, pair),)).profile(1.0)
    assert found.upper - found.lower < 1e-12 and found.lower - 1e-12 <= value <= found.upper + 1e-12


def test_against_balls() -> None:
    """Compositions of mixtures, of opposed mixtures and of capped batches, at random, never outside."""
    rng = Random(7)
    for times in (1, 2, 20):
        sigma, rate, size = 10 ** rng.uniform(-0.2, 0.8), rng.randint(1, 40) / 64, rng.randint(1, 4)
        removed = rng.randint(0, size)
        first, second = (
            binomial_mixture(each, rate, mean=1 / sigma, ulps=1)[0]
            for each in (removed, size - removed)
        )
        with ctx.workprec(100):
            law: Any = mixtures.Mixture(
                terms(removed, rate, sigma), terms(size - removed, rate, sigma)
            )
            loss = MixtureLoss(((1.0, OpposedMixtures(first, second)),))
            _check(Product(((loss, times),)), law, times, rng.uniform(0.2, 2) / sigma)
            records = rng.randint(5, 30)
            batch = rng.randint(1, records - 1)
            ((pair, _),) = (
                TruncatedPoisson(sigma, rate=rate, records=records, batch=batch).pairs(ADD_REMOVE)
                or NONE
            )
            laws = mixtures.capped(sigma, rate, records, batch)
            _check(Product(((pair.remove, 20),)), laws[0], 20, 1 / sigma)


def terms(size: int, rate: float, sigma: float) -> Any:
    """The binomial mixture, exactly."""
    q = Fraction(rate)
    masses = [math.comb(size, j) * q**j * (1 - q) ** (size - j) for j in range(size + 1)]
    return tuple((j / Fraction(sigma), mass) for j, mass in enumerate(masses))


def _check(product: Product, law: Any, times: int, epsilon: float) -> None:
    found = product.delta(epsilon, tolerance=1e-9)
    truth = (
        mixtures.profile(epsilon, law)
        if times == 1
        else contour.delta(epsilon, [(law, times)], bits=45, nodes=1000)
    )
    assert found.lower <= float(truth.upper()) * (1 + 1e-15)
    assert found.upper >= float(truth.lower()) * (1 - 1e-15)
    assert found.upper - found.lower <= 1e-6 * found.upper or truth < 1e-6


def test_answers_below_all_floats() -> None:
    """The search for epsilon asks the profile at infinity."""
    faint = MixtureOfGaussians(
        17.271186996868735, shifts=(0.0, 1.0, 2.0), weights=(0.5, 0.25, 0.25)
    )
    assert (faint + BlackBox(1.0)).delta(epsilon=6.0).upper < 1e-300
    weights = (1.0, 8.436344290656883e-122, 1.383775972620538e-267)
    rare = MixtureOfGaussians(
        0.2004232766867109, shifts=(0.0, 0.0595966118091, 0.0636856384110), weights=weights
    )
    assert (rare * 132).epsilon(delta=1e-6).upper < 1e-3


@pytest.mark.parametrize(
    ("sigma", "shifts", "weights", "times", "delta"),
    [
        (
            174146.26700542393,
            (0.0, 0.0014090129344733816),
            (1.0, 6.95090475245719e-187),
            1,
            9.92628067830656e-245,
        ),
        (
            1.0,
            (0.0, 0.6992335378, 0.1490350712),
            (5.39e-26, 5.83e-67, 1.0),
            1_783_683,
            2.099502631518037e-194,
        ),
    ],
)
def test_far_searches_end(
    sigma: float, shifts: Any, weights: Any, times: int, delta: float
) -> None:
    found = (MixtureOfGaussians(sigma, shifts=shifts, weights=weights) * times).epsilon(delta=delta)
    assert 0 <= found.lower <= found.upper


def _of_half_lines(
    moves: list[tuple[float, float]], removed: int, added: int, sigma: float, epsilon: float
) -> float:
    """Delta of members who move the sum independently, some removed and some added: the best half-line, by search."""

    def law(size: int) -> list[tuple[float, float]]:
        drawn = [math.prod(weight for _, weight in each) for each in product(moves, repeat=size)]
        reached = [sum(mean for mean, _ in each) for each in product(moves, repeat=size)]
        return list(zip(reached, drawn, strict=True))

    def mass(terms: list[tuple[float, float]], side: int, x: float) -> float:
        return sum(w * math.erfc((x - side * m) / sigma / math.sqrt(2)) / 2 for m, w in terms)

    first, second = law(removed), law(added)
    reach = 9 * sigma + (removed + added) * max(moves)[0]
    gains = minimize_scalar(
        lambda x: math.exp(epsilon) * mass(second, -1, x) - mass(first, 1, x),
        bounds=(-reach, reach), method="bounded", options={"xatol": 1e-9},
    )  # fmt: skip
    return max(0.0, -float(gains.fun))


@pytest.mark.parametrize("seed", range(6))
def test_the_moves_of_a_group_are_independent(seed: int) -> None:
    """Neither end is off the best test, also on a sample; a path of neighbors would cost more."""
    rng = Random(seed)
    sigma, size, rate = rng.uniform(0.7, 3), rng.randint(2, 3), rng.choice((1.0, 0.3))
    shifts = tuple(rng.sample((0.0, 0.5, 1.0, 1.37, 2.0), 2 + seed % 2))
    weights = [rng.uniform(0.2, 1) for _ in shifts]
    weights = tuple(each / sum(weights) for each in weights)
    moves = [(0.0, 1 - rate), *((c, rate * w) for c, w in zip(shifts, weights, strict=True))]
    group = MixtureOfGaussians(sigma, shifts=shifts, weights=weights).sampled(rate).group(size)
    for epsilon in (0.0, 0.4, 1.1):
        truth = max(
            _of_half_lines(moves, removed, size - removed, sigma, epsilon)
            for removed in range(size + 1)
        )
        found = group.delta(epsilon=epsilon)
        assert found.lower - 1e-13 <= truth <= found.upper + 1e-13
        assert found.upper - found.lower < 1e-10


def test_equal_laws_have_equal_groups() -> None:
    """A sample is a mixture, and a batch without a cap is a sample."""
    sample = Gaussian(1.0).sampled(0.1).group(2).delta(epsilon=0.5)
    for same in (
        MixtureOfGaussians(1.0, shifts=(0, 1), weights=(0.9, 0.1)),
        MixtureOfGaussians(1.0, shifts=(0, 1), weights=(0.5, 0.5)).sampled(0.2),
        TruncatedPoisson(1.0, rate=0.1, records=20, batch=20),
    ):
        found = same.group(2).delta(epsilon=0.5)
        assert found.lower <= sample.upper and sample.lower <= found.upper
        assert found.contains(0.0145289077041179)


def test_groups_that_are_too_large_are_refused() -> None:
    with pytest.raises(UnsupportedError, match="up to 512"):
        MixtureOfGaussians(1.0, shifts=(0, 1), weights=(0.9, 0.1)).group(513).delta(epsilon=1.0)
    shifts, weights = (0, 1, 1.37, 1.913, 3.1), (0.6, 0.1, 0.1, 0.1, 0.1)
    many = MixtureOfGaussians(1.0, shifts=shifts, weights=weights).group(40)
    with pytest.raises(UnsupportedError, match="more than 8192 values"):
        many.delta(epsilon=1.0)
