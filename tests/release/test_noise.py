"""The noise of releases: its price is within the typed spend, the charged mechanism is the one that
runs, and its error is as stated.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

import dpcompose.release as release
from dpcompose import (
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    compose,
)
from dpcompose.errors import DomainError
from dpcompose.mechanisms import PermuteAndFlip
from dpcompose.release import sampler
from dpcompose.release.columns import Bounds, Change
from dpcompose.release.design import KeyThreshold
from dpcompose.release.noise import (
    DiscreteGaussianNoise,
    DiscreteLaplaceNoise,
    Selection,
    Spend,
    noise_for,
)
from tests.release import world

ONE = Bounds(1, 1, 1).presence
CHANGES = [
    ONE,
    Bounds(50, 1, 50).change(1),
    Bounds(50, 50, 50).change(1),
    Bounds(9, 3, 3).change(1000),
]
TYPED = st.fractions(min_value=Fraction(1, 1000), max_value=20, max_denominator=1000)


@settings(max_examples=40)
@given(epsilon=TYPED, change=st.sampled_from(CHANGES))
def test_laplace_noise_costs_at_most_what_was_typed(epsilon: Fraction, change: Change) -> None:
    noise = DiscreteLaplaceNoise.costing(change, Spend(epsilon, "epsilon"))
    price = compose(noise.mechanism).pure()
    assert price is not None
    assert Fraction(price) <= epsilon
    assert Fraction(change.l1) / Fraction(noise.spread) <= epsilon
    assert price > float(epsilon) * (1 - 1e-11)


@settings(max_examples=40)
@given(rho=TYPED, change=st.sampled_from(CHANGES))
def test_gaussian_noise_costs_at_most_what_was_typed(rho: Fraction, change: Change) -> None:
    noise = DiscreteGaussianNoise.costing(change, Spend(rho, "rho"))
    price = compose(noise.mechanism).zcdp()
    assert price is not None
    assert Fraction(price.rho) <= rho
    assert Fraction(change.l2_squared) / (2 * Fraction(noise.spread) ** 2) <= rho


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize(("epsilon", "delta"), [(0.1, 1e-6), (1, 1e-9), (5, 1e-3)])
def test_gaussian_noise_is_within_an_epsilon_at_a_delta(
    change: Change, epsilon: float, delta: float
) -> None:
    spend = Spend.stated({"epsilon": epsilon, "delta": delta})
    noise = noise_for(change, spend)
    assert isinstance(noise, DiscreteGaussianNoise)
    assert compose(noise.mechanism).epsilon(delta=delta).upper <= epsilon


def test_ten_tenths_are_within_one() -> None:
    tenth = DiscreteLaplaceNoise.costing(ONE, Spend.stated({"epsilon": 0.1})).mechanism
    whole = (tenth * 10).pure()
    assert whole is not None
    assert Fraction(whole) <= 1


def test_what_is_charged_is_what_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[tuple[str, float]] = []
    monkeypatch.setattr(
        sampler,
        "discrete_laplace",
        lambda values, *, scale: ran.append(("laplace", scale)) or list(values),
    )
    monkeypatch.setattr(
        sampler,
        "discrete_gaussian",
        lambda values, *, sigma: ran.append(("gauss", sigma)) or list(values),
    )
    monkeypatch.setattr(
        sampler,
        "least_with_noise",
        lambda scores, *, scale, flips: ran.append((f"flips {flips}", scale)) or 0,
    )
    for change in CHANGES:
        for spend in ({"epsilon": 0.1}, {"rho": 0.1}):
            noise = noise_for(change, Spend.stated(spend))
            noise.draw([1, 2])
            name, size = ran.pop()
            worst: Any = (
                (change.largest,) * change.coordinates if change.coordinates > 1 else change.largest
            )
            expected = {
                ("laplace", True): DiscreteLaplace(size, shift=worst) if change.box else None,
                ("gauss", True): DiscreteGaussian(size, shift=worst) if change.box else None,
            }.get((name, change.box))
            if expected is not None:
                assert noise.mechanism == expected
            elif name == "laplace":
                assert isinstance(noise.mechanism, BlackBox)
                assert Fraction(noise.mechanism.stated.epsilon) >= Fraction(change.l1) / Fraction(
                    size
                )
            else:
                assert isinstance(noise.mechanism, Concentrated)
                assert Fraction(noise.mechanism.stated.rho) >= Fraction(change.l2_squared) / (
                    2 * Fraction(size) ** 2
                )
    for spend, kind in (({"epsilon": 0.1}, PermuteAndFlip), ({"rho": 0.1}, Exponential)):
        selection = Selection.costing(7, Spend.stated(spend))
        selection.draw([1, 2])
        name, scale = ran.pop()
        assert isinstance(selection.mechanism, kind) and name == f"flips {kind is PermuteAndFlip}"
        assert Fraction(selection.mechanism.stated) >= 2 * Fraction(7) / Fraction(scale)


NOISES = [
    DiscreteLaplaceNoise(10.0, ONE),
    DiscreteLaplaceNoise(0.7, ONE),
    DiscreteLaplaceNoise(1234.5, ONE),
    DiscreteGaussianNoise(0.6, ONE),
    DiscreteGaussianNoise(7.3, ONE),
    DiscreteGaussianNoise(123.0, ONE),
]


def _mean_size(noise: DiscreteLaplaceNoise | DiscreteGaussianNoise) -> float:
    """E|x|, summed over as many x as matter."""
    spread, power = noise.spread, 1 if isinstance(noise, DiscreteLaplaceNoise) else 2
    masses = [math.exp(-((x / spread) ** power) / power) for x in range(math.ceil(60 * spread) + 2)]
    return 2 * math.fsum(x * mass for x, mass in enumerate(masses)) / (2 * math.fsum(masses) - 1)


@pytest.mark.statistical
@pytest.mark.parametrize("noise", NOISES, ids=repr)
def test_the_stated_error_is_the_measured_one(
    noise: DiscreteLaplaceNoise | DiscreteGaussianNoise,
) -> None:
    # 40,000 draws of |x|, standard deviation at most 1.3 times its mean unless that is tiny: the mean of the sample is
    # within 5% but for a probability below 1e-11 (7.7 standard errors); small scales are given twice that.
    drawn = [abs(x) for x in noise.draw([0] * 40_000)]
    measured = sum(drawn) / len(drawn)
    assert measured == pytest.approx(_mean_size(noise), rel=0.05 if measured > 1 else 0.1)
    reach = noise.error(1 - 0.95)
    # P(|x| <= reach) >= 0.95 and P(|x| <= reach - 1) < 0.95: each share is within 0.01 but for 2e-7 (Hoeffding, 4e-4).
    assert sum(x <= reach for x in drawn) / len(drawn) >= 0.95 - 0.01
    assert sum(x <= reach - 1 for x in drawn) / len(drawn) < 0.95 + 0.01


@pytest.mark.parametrize(
    "noise", [*NOISES, DiscreteGaussianNoise(59.9, ONE), DiscreteGaussianNoise(60.1, ONE)], ids=repr
)
@pytest.mark.parametrize("confidence", [0.5, 0.9, 0.99, 0.999999])
def test_quantiles_agree_with_sums(
    noise: DiscreteLaplaceNoise | DiscreteGaussianNoise, confidence: float
) -> None:
    mass, whole = _masses(noise)
    covered, reach = mass[0], 0
    while covered < confidence * whole:
        reach += 1
        covered += 2 * mass[reach]
    stated = noise.error(1 - confidence)
    assert abs(stated - reach) <= (
        1 if isinstance(noise, DiscreteGaussianNoise) and noise.spread > 60 else 0
    )


@pytest.mark.parametrize("noise", NOISES, ids=repr)
@pytest.mark.parametrize("probability", [0.4, 1e-2, 1e-6, 1e-12])
def test_the_chance_to_pass_is_bounded(
    noise: DiscreteLaplaceNoise | DiscreteGaussianNoise, probability: float
) -> None:
    mass, whole = _masses(noise)
    reach = noise.passing(probability)
    assert math.fsum(mass[reach:]) / whole <= probability * (1 + 1e-9)
    if isinstance(noise, DiscreteLaplaceNoise) and reach > 0:
        assert math.fsum(mass[reach - 1 :]) / whole > probability


def _masses(noise: DiscreteLaplaceNoise | DiscreteGaussianNoise) -> tuple[list[float], float]:
    last = 80_000  # far beyond the largest scale times log(1e12)
    if isinstance(noise, DiscreteLaplaceNoise):
        mass = [math.exp(-x / noise.spread) for x in range(last)]
    else:
        mass = [math.exp(-x * x / (2 * noise.spread**2)) for x in range(last)]
    return mass, 2 * math.fsum(mass) - mass[0]


@pytest.mark.statistical
@pytest.mark.parametrize("spend", [{"epsilon": 1, "delta": 1e-3}, {"rho": 0.5, "delta": 1e-3}])
@pytest.mark.parametrize("groups", [1, 5])
def test_a_key_of_one_unit_rarely_comes_out(spend: dict[str, float], groups: int) -> None:
    threshold = KeyThreshold.costing(Bounds(groups, groups, 1).presence, Spend.stated(spend))
    # 20,000 times: P(any of the unit's keys comes out) <= delta = 1e-3; above 3.2e-3 by chance below 1e-13 (Chernoff).
    draws = 20_000
    out = [passes for passes, _ in threshold.draw([1] * (groups * draws))]
    times = sum(any(out[i : i + groups]) for i in range(0, len(out), groups))
    assert times / draws < 3.2e-3
    assert compose(threshold.mechanism).epsilon(delta=1e-3).upper < math.inf


@pytest.mark.statistical
def test_a_choice_is_as_likely_as_the_exponential_mechanism_says() -> None:
    _require_shares(Selection(2.0, 1), [math.exp(-score / 2.0) for score in SCORES])


@pytest.mark.statistical
def test_a_choice_is_as_likely_as_permute_and_flip_says() -> None:
    # The best is surely taken when it is looked at: every subset of the others may come before it.
    coins = {score: math.exp(-score / 2.0) for score in SCORES}
    chances = [0.0] * len(SCORES)
    for order in itertools.permutations(range(len(SCORES))):
        left = 1 / math.factorial(len(SCORES))
        for place in order:
            chances[place] += left * coins[SCORES[place]]
            left *= 1 - coins[SCORES[place]]
    assert math.fsum(chances) == pytest.approx(1)
    _require_shares(Selection(2.0, 1, flips=True), chances)


SCORES = [0, 1, 3, 8]


def _require_shares(selection: Selection, weights: list[float]) -> None:
    draws, whole = 8_000, sum(weights)
    counts = Counter(selection.draw(SCORES) for _ in range(draws))
    for index, weight in enumerate(weights):
        # Each share is within 0.032 but for 1.6e-7 (Hoeffding).
        assert counts[index] / draws == pytest.approx(weight / whole, abs=0.032)


def test_noise_saturates_at_64_bits() -> None:
    assert max(sampler.discrete_laplace([2**63 - 1] * 100, scale=1e6)) == 2**63 - 1
    assert min(sampler.discrete_gaussian([-(2**63)] * 100, sigma=1e6)) == -(2**63)


BAD = [
    {},
    {"epsilon": 0},
    {"epsilon": -1},
    {"epsilon": math.nan},
    {"epsilon": math.inf},
    {"epsilon": "much"},
    {"epsilon": True},
    {"epsilon": 101},
    {"epsilon": 1, "rho": 1},
    {"epsilon": 1, "delta": 0},
    {"epsilon": 1, "delta": 0.6},
    {"epsilon": 1, "sigma": 3},
    {"mu": 1},
    0.1,
    None,
    "epsilon",
]


@pytest.mark.parametrize("spend", BAD, ids=repr)
def test_a_spend_that_is_none_is_refused(spend: Any) -> None:
    with pytest.raises(DomainError, match="spend"):
        Spend.stated(spend)


@pytest.mark.parametrize("typed", [0.1, "0.1", Fraction(1, 10), "1e-1"])
def test_a_tenth_is_a_tenth(typed: Any) -> None:
    assert Spend.stated({"epsilon": typed}).amount == Fraction(1, 10)


@pytest.mark.statistical
@pytest.mark.parametrize("spend", [{"epsilon": "0.05"}, {"rho": "0.001"}], ids=str)
@pytest.mark.parametrize("kind", ["count", "sum", "histogram"])
def test_the_expected_error_of_a_question_is_the_measured_one(
    kind: str, spend: dict[str, str]
) -> None:
    questions: dict[str, release.Question] = {
        "count": release.Count(spend=spend),
        "sum": release.Sum("amount", lower=-3, upper=7, granularity="0.25", spend=spend),
        "histogram": release.Histogram("amount", edges=[0, 3, 9], spend=spend),
    }
    design = questions[kind].design(world.table())
    truth = [[17, -4] if kind == "histogram" else [17]] * 40_000
    drawn = design.steps[0].draw(truth)
    errors = sorted(
        abs(x - y)
        for cell, exact in zip(drawn, truth, strict=True)
        for x, y in zip(cell, exact, strict=True)
    )
    step = 0.25 if kind == "sum" else 1
    for confidence in (0.5, 0.9, 0.95):
        # 40,000 draws or more: an empirical quantile is off by 5% by chance with probability below 1e-8 (6 deviations).
        stated = questions[kind].errors(design, 1 - confidence, ())
        assert stated == pytest.approx(errors[math.ceil(confidence * len(errors))] * step, rel=0.05)
