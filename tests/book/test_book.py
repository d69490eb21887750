"""The book's statements: golden values, rounding up against ball arithmetic, and the cases where
the printed ones are wrong.
"""

from __future__ import annotations

import json
import math
import random
from fractions import Fraction
from itertools import accumulate, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import book
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.gaussian import GaussianTradeoff
from dpcompose.guarantee.optimal import homogeneous_delta
from oracles.ball import ball

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]


def rows(name: str) -> list[Any]:
    found = [row for row in GOLDEN if row["name"] == name]
    assert found, name
    return [
        pytest.param(row["params"], row["expected"], id=f"{name}-{index}")
        for index, row in enumerate(found)
    ]


@pytest.mark.parametrize(("data", "expected"), rows("thm320_eps"))
def test_theorem_3_20(data: dict[str, Any], expected: str) -> None:
    result = book.advanced(
        float(data["eps"]), times=int(data["k"]), slack=float(data["delta_prime"])
    )
    assert result.epsilon == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("data", "expected"), rows("adv_tightKL_eps"))
def test_theorem_3_20_with_the_tight_mean(data: dict[str, Any], expected: str) -> None:
    result = book.advanced_tight(
        float(data["eps"]), times=int(data["k"]), slack=float(data["delta_prime"])
    )
    assert result.epsilon == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("data", "expected"), rows("whitehouse_filter_eps"))
def test_theorem_3_20_for_different_mechanisms(data: dict[str, Any], expected: str) -> None:
    each = [0.1] * 10 if data["eps"] == "0.1 x 10" else [float(value) for value in data["eps"]]
    result = book.advanced_heterogeneous(
        [(value, 0.0) for value in each], slack=float(data["delta_prime"])
    )
    assert result.epsilon == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("seed", range(150))
def test_advanced_composition_is_rounded_up_by_one_float_at_most(seed: int) -> None:
    rng = random.Random(seed)
    epsilon, times = math.exp(rng.uniform(-30, 4)), int(math.exp(rng.uniform(0, 30)))
    slack, delta = 10 ** rng.uniform(-200, -1e-3), rng.choice([0.0, 10 ** rng.uniform(-30, -15)])
    with ctx.workprec(400):
        e, k = arb(epsilon), arb(times)
        deviation = (-2 * k * arb(slack).log()).sqrt() * e
        for function, mean in (
            (book.advanced, k * e * e.expm1()),
            (book.advanced_tight, k * e * (e / 2).tanh()),
        ):
            result = function(epsilon, delta=delta, times=times, slack=slack)
            true = deviation + mean
            assert arb(math.nextafter(result.epsilon, 0)) <= true <= arb(result.epsilon)
            assert Fraction(result.delta) >= min(1, Fraction(delta) * times + Fraction(slack))
        pairs = [(epsilon, delta)] * 3
        half = book.advanced_heterogeneous(pairs, slack=slack).epsilon
        assert arb(half) >= 3 * e * e / 2 + (-6 * arb(slack).log()).sqrt() * e


@pytest.mark.parametrize("seed", range(60))
def test_the_theorems_are_ordered(seed: int) -> None:
    rng = random.Random(seed)
    times, slack = rng.randint(1, 300), 10 ** rng.uniform(-12, -1)
    epsilon, delta = 10 ** rng.uniform(-3, 0.3), rng.choice([0.0, 1e-15])
    printed = book.advanced(epsilon, delta=delta, times=times, slack=slack)
    tight = book.advanced_tight(epsilon, delta=delta, times=times, slack=slack)
    half = book.advanced_heterogeneous([(epsilon, delta)] * times, slack=slack)
    best = book.optimal(epsilon, delta=delta, times=times, total_delta=printed.delta)
    basic = book.basic([(epsilon, delta)] * times)
    assert best.epsilon <= min(tight.epsilon, basic.epsilon)
    assert tight.epsilon <= half.epsilon <= printed.epsilon


def test_basic_composition_adds_exactly_and_rounds_once() -> None:
    assert book.basic([(0.1, 0.0)] * 3) == ApproximateDP(0.30000000000000004)
    assert book.basic([(0.5, 1e-6), (0.25, 2.0**-30)]).delta >= Fraction(1e-6) + Fraction(1, 2**30)
    assert book.basic([]) == ApproximateDP(0.0)
    assert book.basic([(math.inf, 0.0), (1.0, 0.5)]) == ApproximateDP(math.inf, delta=0.5)
    assert book.basic([(1.0, 0.7), (1.0, 0.7)]).delta == 1.0
    assert book.basic(iter([(1.0, 0.0)])).epsilon == 1.0


@pytest.mark.parametrize(("data", "expected"), rows("cor321_eps0"))
def test_corollary_3_21(data: dict[str, Any], expected: str) -> None:
    each = book.advanced_per_mechanism(
        float(data["eps_prime"]), slack=float(data["delta_prime"]), times=int(data["k"])
    )
    assert each == pytest.approx(float(expected), rel=1e-12) and each <= float(expected)


@pytest.mark.parametrize(("data", "expected"), rows("cor321_cert_boundary_delta"))
def test_corollary_3_21_ends_where_theorem_3_20_does(data: dict[str, Any], expected: str) -> None:
    epsilon, times, edge = float(data["eps_prime"]), int(data["k"]), float(expected)
    each = book.advanced_per_mechanism(epsilon, slack=edge * (1 - 1e-9), times=times)
    assert book.advanced(each, times=times, slack=edge * (1 - 1e-9)).epsilon <= epsilon
    with pytest.raises(UnsupportedError, match="not proved"):
        book.advanced_per_mechanism(epsilon, slack=edge * (1 + 1e-9), times=times)


@pytest.mark.parametrize(("data", "expected"), rows("cor321_false_boundary_delta"))
def test_corollary_3_21_is_false_near_slack_one(data: dict[str, Any], expected: str) -> None:
    epsilon, times, edge = float(data["eps_prime"]), int(data["k"]), float(expected)
    for slack, word in (
        (edge * (1 + 1e-7), "it is false there"),
        (edge * (1 - 1e-7), "not proved"),
    ):
        with pytest.raises(UnsupportedError, match=word):
            book.advanced_per_mechanism(epsilon, slack=slack, times=times)


def test_the_counter_example_to_corollary_3_21() -> None:
    (row,) = [row for row in GOLDEN if row["name"] == "cor321_counterexample_eps0"]
    each = 0.99 / (2 * math.sqrt(2 * 100 * math.log(1 / 0.998)))
    assert each == pytest.approx(float(row["expected"]), rel=1e-12)
    bound = homogeneous_delta(0.99, epsilon=each, times=100)
    assert bound.lower > 0.998 and bound.contains(0.999823864615169952)
    with pytest.raises(UnsupportedError, match=r"false there.*0\.999823864615"):
        book.advanced_per_mechanism(0.99, slack=0.998, times=100)
    assert book.advanced_per_mechanism(5e-324, slack=1e-6, times=1) == 0.0


@pytest.mark.parametrize("seed", range(100))
def test_what_corollary_3_21_allows_theorem_3_20_certifies(seed: int) -> None:
    rng = random.Random(seed)
    epsilon, slack, times = (
        math.exp(rng.uniform(-6, 3)),
        10 ** rng.uniform(-20, -0.02),
        int(math.exp(rng.uniform(0, 12))),
    )
    try:
        each = book.advanced_per_mechanism(epsilon, slack=slack, times=times)
    except UnsupportedError:
        worst = epsilon / (2 * math.sqrt(-2 * times * math.log(slack))) * (1 + 1e-12)
        assert book.advanced(worst, times=times, slack=slack).epsilon > epsilon * (1 - 1e-9)
    else:
        assert book.advanced(each, times=times, slack=slack).epsilon <= epsilon


def test_more_than_one_is_allowed_where_the_theorem_allows_it() -> None:
    each = book.advanced_per_mechanism(19.0, slack=1e-6, times=1)
    assert book.advanced(each, times=1, slack=1e-6).epsilon <= 19.0
    with pytest.raises(UnsupportedError):
        book.advanced_per_mechanism(19.4, slack=1e-6, times=1)


def test_example_3_7() -> None:
    example = book.example_3_7()
    expected = {
        row["name"]: float(row["expected"]) for row in GOLDEN if row["name"].startswith("ex37_")
    }
    assert example.theorem_3_20 == pytest.approx(expected["ex37_thm320_at_1_801"], rel=1e-13)
    assert example.theorem_3_20_tight == pytest.approx(expected["ex37_tightKL_at_1_801"], rel=1e-13)
    assert example.corollary_3_21 == pytest.approx(expected["ex37_eps0_cor321"], rel=1e-12)
    assert example.theorem_3_20 > example.theorem_3_20_tight > 1 > example.optimum
    assert example.optimum == pytest.approx(0.890468147886613, rel=1e-12)
    assert example.optimum_delta == pytest.approx(1.38027252127023204360e-17, rel=1e-12)
    edge = expected["ex37_eps0_thm320"]
    assert (
        book.example_3_7(edge * (1 - 1e-12)).theorem_3_20
        <= 1
        < book.example_3_7(edge * (1 + 1e-12)).theorem_3_20
    )


def _losses(epsilon: float) -> list[tuple[Fraction, arb]]:
    """The losses above 0.8 of 10,000 randomized responses, with their probabilities in ball arithmetic."""
    odds = (-arb(epsilon)).exp()
    mass, found = 1 / (1 + odds) ** 10_000, []
    for successes in range(10_000, 5_000, -1):
        loss = (2 * successes - 10_000) * Fraction(epsilon)
        if loss > Fraction(4, 5):
            found.append((loss, mass))
        mass = mass * odds * successes / (10_001 - successes)
    return found


def _beyond(losses: list[tuple[Fraction, arb]], point: Fraction) -> arb:
    """The smallest delta at epsilon = `point`."""
    return sum(
        (mass * (1 - ball(point - loss).exp()) for loss, mass in losses if loss > point), arb(0)
    )


@pytest.mark.parametrize(
    ("odds", "response", "everyone"),
    [(801, 0.0726, 0.195), (785, 0.264, 0.708), (715.511, 55.7, 143.3)],
)
def test_both_readings_of_example_3_7_in_ball_arithmetic(
    odds: float, response: float, everyone: float
) -> None:
    with ctx.workprec(256):
        example, share, losses = book.example_3_7(1 / odds), arb(-32).exp(), _losses(1 / odds)
        truth = sum((mass for loss, mass in losses if loss > 1), arb(0))
        assert (
            arb(example.loss_above_1_response)
            <= truth
            < arb(example.loss_above_1_response) * (1 + arb(1e-15))
        )
        assert truth < arb(response) * share
        bounds = [
            _beyond(losses, point) / (1 - ball(point - 1).exp())
            for point in map(Fraction, (0.96, 0.984375, 0.99))
        ]
        assert all(truth < bound for bound in bounds)
        assert arb(example.loss_above_1) < arb(everyone) * share
        assert min(float(bound) for bound in bounds) * 0.9 < example.loss_above_1


def test_randomized_response_rules_out_what_is_above_1_in_768() -> None:
    at, above = 1 / 768, math.nextafter(1 / 768, 1.0)
    assert Fraction(at) <= Fraction(1, 768) < Fraction(above)
    with ctx.workprec(256):
        share = arb(-32).exp()
        exceeded = [
            sum((mass for loss, mass in _losses(each) if loss > 1), arb(0)) for each in (at, above)
        ]
        assert exceeded[0] < share < exceeded[1]
        assert arb(book.example_3_7(at).loss_above_1_response) < share
        assert arb(book.example_3_7(above).loss_above_1_response) > share


def _stopper(epsilon: float, times: int) -> float:
    """P[loss > 1] of the adversary who stops above 1, by following every loss round after round, in doubles."""
    first = math.floor(1 / Fraction(epsilon)) + 1
    up, above = 1 / (1 + math.exp(-epsilon)), 0.0
    mass = np.zeros(times + first)  # mass[times + loss], in steps of epsilon
    mass[times] = 1.0
    for _ in range(times):
        above += up * mass[-1]
        mass = np.append(0.0, up * mass[:-1]) + np.append((1 - up) * mass[1:], 0.0)
    return above


@pytest.mark.parametrize(
    ("epsilon", "expected"),
    [
        (1 / 785, 0.4853),
        (1 / 781, 0.6677),
        (1 / 776, 0.9898),
        (math.nextafter(1 / 776, 1.0), 1.0738),
        (1 / 775, 1.0745),
    ],
)
def test_who_stops_once_the_loss_is_above_1(epsilon: float, expected: float) -> None:
    example, share = book.example_3_7(epsilon), math.exp(-32)
    assert example.loss_above_1_stopping == pytest.approx(_stopper(epsilon, 10_000), rel=1e-9)
    assert example.loss_above_1_stopping / share == pytest.approx(expected, abs=5e-5)
    assert example.loss_above_1_response < example.loss_above_1_stopping < example.loss_above_1


def test_who_stops_in_twelve_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpcompose.book.theorems.TIMES", 12)
    example = book.example_3_7(0.25)
    with ctx.workprec(256):
        up = 1 / (1 + arb(-0.25).exp())
        going_on, stopping = arb(0), arb(0)
        for answers in product((1, -1), repeat=12):
            mass = up ** answers.count(1) * (1 - up) ** answers.count(-1)
            going_on += mass if sum(answers) > 4 else 0
            stopping += mass if max(accumulate(answers)) > 4 else 0
        for value, truth in (
            (example.loss_above_1_response, going_on),
            (example.loss_above_1_stopping, stopping),
        ):
            assert arb(value) <= truth < arb(math.nextafter(value, 1.0))
    assert (round(example.loss_above_1_response, 4), round(example.loss_above_1_stopping, 4)) == (
        0.1538,
        0.2561,
    )


def test_a_loss_above_1_is_as_rare_as_the_example_says_to_1_in_781_and_not_above_1_in_776() -> None:
    share = math.exp(-32)
    assert book.example_3_7(1 / 781).loss_above_1 < share
    assert book.example_3_7(math.nextafter(1 / 776, 1.0)).loss_above_1_stopping > share
    assert book.example_3_7(math.nextafter(1 / 776, 1.0)).loss_above_1_response < share


@pytest.mark.parametrize(
    ("epsilon", "delta", "factor"),
    [(0.5, 1e-5, 1.38), (0.1, 0.01, 3.26), (0.99, 1e-12, 1.14), (0.999, 0.5, None)],
)
def test_theorem_3_22(epsilon: float, delta: float, factor: float | None) -> None:
    sigma = book.gaussian_noise(epsilon, delta=delta)
    with ctx.workprec(200):
        printed = (2 * (arb("1.25") / arb(delta)).log()).sqrt() / arb(epsilon)
        assert printed <= arb(sigma) < printed * (1 + arb(1e-14))

        def excess(sigma: arb) -> arb:
            a, b = (
                (-1 / (2 * sigma) + arb(epsilon) * sigma),
                (1 / (2 * sigma) + arb(epsilon) * sigma),
            )
            return (a / arb(2).sqrt()).erfc() / 2 - arb(epsilon).exp() * (
                b / arb(2).sqrt()
            ).erfc() / 2

        low, high = arb("0.01"), printed
        assert excess(high) < arb(delta) < excess(low)
        for _ in range(60):
            middle = arb(((low + high) / 2).mid())
            low, high = (low, middle) if excess(middle) < arb(delta) else (middle, high)
        assert factor is None or round(float(printed / high), 2) == factor


@pytest.mark.parametrize(
    "epsilon", [0.0, 5e-324, 1e-9, 1e-4, math.nextafter(1e-4, 1.0), 0.5, 1e308]
)
def test_the_loss_of_example_3_7_at_the_ends(epsilon: float) -> None:
    example = book.example_3_7(epsilon)
    assert (
        0.0
        <= example.loss_above_1_response
        <= example.loss_above_1_stopping
        <= example.loss_above_1
        <= 1.0
    )
    assert (example.loss_above_1 == 0.0) == (10_000 * Fraction(epsilon) <= 1)


@pytest.mark.parametrize(("data", "expected"), rows("kl_tight_pure"))
def test_lemma_3_18_tight(data: dict[str, Any], expected: str) -> None:
    assert book.kl_bound(float(data["eps"])).tight == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize(("data", "expected"), rows("kl_book_pure"))
def test_lemma_3_18_book(data: dict[str, Any], expected: str) -> None:
    assert book.kl_bound(float(data["eps"])).book == pytest.approx(float(expected), rel=1e-12)


@pytest.mark.parametrize("epsilon", [0.0, 5e-324, 1e-200, 1e-15, 1e-5, 0.3, 5.0, 200.0, 699.0])
def test_lemma_3_18_is_rounded_up(epsilon: float) -> None:
    bound = book.kl_bound(epsilon)
    with ctx.workprec(3000):
        e = arb(epsilon)
        assert arb(bound.book) >= e * e.expm1() and arb(bound.tight) >= e * (e / 2).tanh()
    assert bound.tight <= bound.book and bound.tight <= epsilon


def test_lemma_3_19() -> None:
    tail = book.azuma(3.0, times=100, size=0.1, drift=0.005)
    assert tail.probability == pytest.approx(0.0111089965382423, rel=1e-12)
    assert tail.threshold == pytest.approx(0.5 + 3.0, rel=1e-12)
    assert book.azuma(1e200, times=1, size=1.0, drift=0.0).probability == 5e-324
    assert book.azuma(1.0, times=4, size=0.0, drift=-0.0).threshold == 0.0
    for drift in (0.2, -0.2, math.nan, math.inf):
        with pytest.raises(DomainError, match="drift"):
            book.azuma(3.0, times=100, size=0.1, drift=drift)


def test_theorem_2_2() -> None:
    assert book.group(0.5, size=3) == ApproximateDP(1.5)
    assert book.group(0.5, delta=1e-6, size=3).delta == pytest.approx(
        5.36700309915917e-6, rel=1e-13
    )


def test_the_promise() -> None:
    expected = {
        row["name"]: float(row["expected"]) for row in GOLDEN if row["name"].startswith("utility_")
    }
    interval = book.promise(ApproximateDP(0.5, delta=1e-3), utility_range=1.0).expected(0.3)
    assert interval.lower == pytest.approx(expected["utility_eps_delta_lower"], rel=1e-12)
    assert interval.upper == pytest.approx(expected["utility_eps_delta_upper"], rel=1e-12)
    scaled = book.promise(ApproximateDP(0.5, delta=1e-3), utility_range=40.0).expected(12.0)
    assert scaled.upper == pytest.approx(40 * expected["utility_eps_delta_upper"], rel=1e-12)
    unbounded = book.promise(ApproximateDP(0.5), utility_range=math.inf).expected(2.0)
    assert unbounded.contains(2 * math.exp(0.5)) and unbounded.contains(2 * math.exp(-0.5))
    gaussian = book.promise(GaussianTradeoff(1.0), utility_range=1.0).expected(0.1)
    assert gaussian.upper == pytest.approx(0.389143691645360969, rel=1e-11)


@pytest.mark.parametrize(
    "guarantee", [ApproximateDP(0.5, delta=1e-9), GaussianTradeoff(1.0), ApproximateDP(math.inf)]
)
def test_no_promise_about_an_unbounded_utility_unless_pure(guarantee: Any) -> None:
    with pytest.raises(UnsupportedError, match="worth anything"):
        book.promise(guarantee, utility_range=math.inf)


def test_the_ends_of_the_promise() -> None:
    promise = book.promise(ApproximateDP(0.5, delta=0.01), utility_range=1.0)
    assert promise.expected(0.0).lower == 0.0 and promise.expected(0.0).contains(0.01)
    assert promise.expected(1.0).upper == 1.0 and promise.expected(1.0).contains(0.99)
    for bad in (-0.1, 1.1, math.nan, math.inf, True, "x"):
        with pytest.raises(DomainError):
            promise.expected(bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [Fraction(1, 801), np.float32(0.001), np.int64(1), np.uint8(1)])
def test_example_3_7_takes_every_real_number(epsilon: Any) -> None:
    assert book.example_3_7(epsilon) == book.example_3_7(float(epsilon))
