"""A growing history has the same bound, to the last bit, as a computation from scratch, and the
bound contains the truth.
"""

from __future__ import annotations

import itertools
import random

import pytest

from campaigns import growing as attack
from dpcompose import Bound, Gaussian, Laplace, compose
from dpcompose.composition import GrowingEpsilon
from dpcompose.errors import DomainError

DELTA = 1e-5
SMALL, LARGE = Gaussian(1.0).sampled(0.02), Gaussian(1.5).sampled(0.02)


def of(history: list) -> Bound:
    return compose(*(mechanism * times for mechanism, times in history)).epsilon(delta=DELTA)


def test_each_answer_is_that_of_a_fresh_question() -> None:
    draw, kinds = random.Random(1), [Gaussian(1 + at / 20).sampled(0.02) for at in range(8)]
    growing, history = GrowingEpsilon(DELTA), [(SMALL, 30)]
    for _ in range(60):
        if draw.random() < 0.5:
            history[-1] = (history[-1][0], history[-1][1] + draw.randrange(1, 9))
        else:
            history.append((draw.choice(kinds), draw.randrange(1, 4)))
        if draw.random() < 0.7:
            answer = growing.bound(history)
            assert answer == GrowingEpsilon(DELTA).bound(history)
    whole = of(history)
    assert max(answer.lower, whole.lower) <= min(answer.upper, whole.upper)
    assert answer.width <= 1e-8


@pytest.mark.parametrize("steps", [1, 2, 3, 40, 60, 61, 1000, 10**6])
def test_one_phase_agrees_with_the_composition(steps: int) -> None:
    answer, whole = GrowingEpsilon(DELTA).bound([(LARGE, steps)]), of([(LARGE, steps)])
    assert max(answer.lower, whole.lower) <= min(answer.upper, whole.upper)


def test_a_phase_that_ends_where_a_line_was_drawn_goes_on() -> None:
    for steps in range(20, 80):
        growing = GrowingEpsilon(DELTA)
        growing.bound([(SMALL, steps)])
        longer = [(SMALL, steps + 1), (LARGE, 5)]
        assert growing.bound(longer) == GrowingEpsilon(DELTA).bound(longer)


@pytest.mark.parametrize(("steps", "rate", "delta"), [(10_000, 0.01, 1e-5), (300, 0.2, 1e-9)])
def test_noises_that_share_an_anchor_are_each_proved(steps: int, rate: float, delta: float) -> None:
    answers = []
    for exponent in range(25):  # ten anchors, and noises between
        mechanism = Gaussian(2 ** (exponent / 20)).sampled(rate)
        answers.append(GrowingEpsilon(delta).bound([(mechanism, steps)]))
        whole = (mechanism * steps).epsilon(delta=delta)
        assert max(answers[-1].lower, whole.lower) <= min(answers[-1].upper, whole.upper)
        assert answers[-1].width <= 1e-9 * answers[-1].upper
        assert "kept" in str(answers[-1].certificate)
    assert all(one.lower > other.upper for one, other in itertools.pairwise(answers))


def test_steps_asked_ahead_are_those_of_fresh_questions() -> None:
    growing = GrowingEpsilon(DELTA)
    for steps in range(400, 520):
        answer = growing.bound([(SMALL, 60), (LARGE, steps)])
        if steps % 13 == 0:
            assert answer == GrowingEpsilon(DELTA).bound([(SMALL, 60), (LARGE, steps)])


def test_another_history_is_read_anew() -> None:
    growing = GrowingEpsilon(DELTA)
    first = growing.bound([(SMALL, 100), (LARGE, 50)])
    assert growing.bound([(SMALL, 90)]).upper < first.lower
    assert growing.bound([(LARGE, 100), (LARGE, 60)]) == GrowingEpsilon(DELTA).bound(
        [(LARGE, 100), (LARGE, 60)]
    )
    assert growing.bound([(SMALL, 100), (LARGE, 50)]) == first
    assert growing.bound([]).upper == 0


def test_steps_of_other_kinds_are_asked_as_a_composition() -> None:
    history = [(SMALL, 50), (Laplace(20.0), 2)]
    assert GrowingEpsilon(DELTA).bound(history) == of(history)


def test_after_an_error_nothing_is_kept() -> None:
    growing = GrowingEpsilon(DELTA)
    growing.bound([(SMALL, 50)])
    for _ in range(2):
        with pytest.raises(DomainError):
            growing.bound([(SMALL, 50), (LARGE, 0)])
    assert growing.bound([(SMALL, 51)]) == GrowingEpsilon(DELTA).bound([(SMALL, 51)])


@pytest.mark.parametrize("delta", [float("nan"), -1e-9, 2.0, "1e-5", True])
def test_delta_is_a_probability(delta: float) -> None:
    with pytest.raises(DomainError):
        GrowingEpsilon(delta)


def test_random_histories_are_those_of_fresh_questions_and_contain_the_truth() -> None:
    assert "answers of lines" in attack.campaign(histories=4, seed=2)


def test_an_integral_knows_the_epsilon_of_two_steps() -> None:
    step = (1.2, 0.2)
    answer = GrowingEpsilon(1e-9).bound([(Gaussian(1.2).sampled(0.2), 2)])
    assert "kept" in str(answer.certificate)
    attack.require_two_steps([step, step], 1e-9, answer)
    moved = Bound(answer.upper, answer.upper + answer.width)
    with pytest.raises(attack.GrowingError):
        attack.require_two_steps([step, step], 1e-9, moved)


def test_noise_that_falls_from_step_to_step_stays_on_lines() -> None:
    history = [(Gaussian(4 * 0.99**step).sampled(0.01), 1) for step in range(150)]
    growing = GrowingEpsilon(1e-6)
    for steps in range(20, 150, 10):
        answer = growing.bound(history[:steps])
        assert "kept" in str(answer.certificate)
        assert answer.width <= 1e-8 * answer.upper
