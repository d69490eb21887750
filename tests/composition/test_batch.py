"""Many questions in one call have the same answers as one by one, in any order; and bad input."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpcompose
from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    calibrate,
    compose,
)
from dpcompose.composition import Composable, running_epsilon
from dpcompose.errors import DomainError, UnreachableError, UnsupportedError
from dpcompose.values import Bounds
from oracles import contour
from oracles.normal import Direction, SampledGaussian

MIXED: list[Composable] = [
    Gaussian(2.0) * 3,
    Gaussian(1.0).sampled(0.01) * 1000,
    Laplace(10.0) + BlackBox(0.1) * 4,
    Gaussian(2.0).sampled(0.02) * 500 + Gaussian(1.5).sampled(0.01) * 300,
    Concentrated(0.01) * 3,
    Gaussian(1.0) * 0,
]


def test_each_answer_overlaps_the_single_one() -> None:
    given = [1e-5, 1e-6, 0.0, 1e-9, 1e-3, 0.5]
    found = dpcompose.epsilon(MIXED, delta=given)
    back = dpcompose.delta(MIXED, epsilon=[0.0, 2.0, -1.0, 1.0, math.inf, -math.inf])
    for index, (composition, delta, epsilon) in enumerate(
        zip(MIXED, given, [0.0, 2.0, -1.0, 1.0, math.inf, -math.inf], strict=True)
    ):
        one = composition.epsilon(delta=delta)
        assert max(one.lower, found[index].lower) <= min(one.upper, found[index].upper)
        other = composition.delta(epsilon=epsilon)
        assert max(other.lower, back[index].lower) <= min(other.upper, back[index].upper)


APART = Gaussian(8.0).sampled(0.01) * 2000 + Gaussian(27.0).sampled(1e-9) * 8000
FAINT = Gaussian(72360.95091710017).sampled(2.704179281739353e-07) * 7429


def test_a_question_that_is_not_planned_takes_no_other_with_it() -> None:
    asked: list[Composable] = [MIXED[1], APART, MIXED[3]]
    found = dpcompose.epsilon(asked, delta=1e-5, masked=True)
    assert not found.refusals
    assert [found[at].upper for at in (0, 2)] == [
        dpcompose.epsilon([asked[at]], delta=1e-5)[0].upper for at in (0, 2)
    ]
    one = APART.epsilon(delta=1e-5)
    assert found[1].contains(0.18240757) or abs(found[1].upper - 0.18240757) < 1e-8
    assert max(one.lower, found[1].lower) <= min(one.upper, found[1].upper)
    one, other = APART.delta(epsilon=0.15), dpcompose.delta(asked, epsilon=0.15)[1]
    assert (
        max(one.lower, other.lower) <= min(one.upper, other.upper)
        and other.width < 1e-6 * other.upper
    )


def test_noises_that_are_far_apart_are_calibrated_as_one_by_one() -> None:
    def family(sigma: float) -> Composable:
        return Gaussian(sigma).sampled(0.01) * 2000 + Gaussian(27.0).sampled(1e-9) * 8000

    found = calibrate(
        [family, lambda sigma: Gaussian(sigma) * 10], epsilon=0.2, delta=1e-5, bracket=(4.0, 400.0)
    )
    one = calibrate(family, epsilon=0.2, delta=1e-5, bracket=(4.0, 400.0))
    assert (
        found[0].value == pytest.approx(one.value, rel=1e-6)
        and family(found[0].value).epsilon(delta=1e-5).upper <= 0.2
    )


def test_sums_beyond_floats_certify_nothing() -> None:
    """The cut part of a partner whose moments overflow, alone and beside a free phase."""
    partner = Gaussian(5.224903487400665).sampled(0.3597358203883911) * 1525
    found = (partner + Gaussian(89077.3388144667).sampled(0.0028250238851409127) * 58).epsilon(
        delta=1.22318130005745e-172
    )
    assert 82.5 < found.lower <= found.upper < 82.6


def test_losses_that_are_never_far_from_zero_have_an_answer() -> None:
    delta = 1.8401046415232317e-15
    one, other = FAINT.epsilon(delta=delta), dpcompose.epsilon([FAINT], delta=delta)[0]
    assert 0 <= one.lower <= one.upper < 1e-6 and max(one.lower, other.lower) <= min(
        one.upper, other.upper
    )


def test_an_answer_depends_on_its_question_alone() -> None:
    together, order = dpcompose.epsilon(MIXED, delta=1e-6), [3, 1, 5, 0, 4, 2]
    shuffled = dpcompose.epsilon([MIXED[at] for at in order], delta=1e-6)
    assert shuffled.lower.tolist() == together.lower[order].tolist()
    assert shuffled.upper.tolist() == together.upper[order].tolist()


@pytest.mark.parametrize(
    ("sigma", "rate", "most"), [(1.0, 0.01, 34), (1.3, 0.004, 34), (1.0, 0.02, 3000)]
)
def test_an_answer_does_not_depend_on_how_many_are_asked(
    sigma: float, rate: float, most: int
) -> None:
    """Long lines fill arrays beyond sizes at which numpy computes otherwise."""
    asked = [
        Gaussian(sigma).sampled(rate) * int(times)
        for times in np.geomspace(20, most, 14).astype(int)
    ]
    together = dpcompose.epsilon(asked, delta=1e-5)
    for some in ([3, 1, 7], [0], [13, 2]):
        found = dpcompose.epsilon([asked[at] for at in some], delta=1e-5)
        assert found.lower.tolist() == together.lower[some].tolist()
        assert found.upper.tolist() == together.upper[some].tolist()


def test_nothing_asked_is_nothing_answered() -> None:
    for found in (dpcompose.epsilon([], delta=1e-5), dpcompose.delta([], epsilon=[])):
        assert len(found) == 0 and list(found) == [] and found.refused.tolist() == []


@pytest.mark.parametrize("given", [[1e-5], [1e-5] * 3, [[1e-5, 1e-5]], np.zeros((2, 1)), []])
def test_arrays_of_other_lengths_are_refused(given: Any) -> None:
    with pytest.raises(DomainError, match="shape of delta"):
        dpcompose.epsilon([Gaussian(1.0)] * 2, delta=given)


@pytest.mark.parametrize("bad", [math.nan, -0.1, 1.5, "1", None, True])
def test_a_bad_number_is_named_by_its_index(bad: Any) -> None:
    asked: list[Any] = [1e-5, 1e-6, bad, 1e-5]
    with pytest.raises(DomainError, match=r"delta\[2\]"):
        dpcompose.epsilon([Gaussian(1.0)] * 4, delta=asked)
    found = dpcompose.epsilon([Gaussian(1.0)] * 4, delta=asked, masked=True)
    assert found.refused.tolist() == [False, False, True, False]
    assert np.isnan(found.upper[2]) and found[1] == Gaussian(1.0).epsilon(delta=1e-6)
    with pytest.raises(DomainError, match=r"delta\[2\]"):
        _ = found[2]


def test_a_refused_composition_is_named_by_its_index() -> None:
    asked: list[Any] = [Gaussian(1.0), DiscreteGaussian(1.0).sampled(0.1), "no mechanism"]
    under = Adjacency.REPLACE
    with pytest.raises(DomainError, match=r"compositions\[2\]"):
        dpcompose.epsilon(asked, delta=1e-5)
    with pytest.raises(UnsupportedError, match=r"compositions\[1\]"):
        dpcompose.epsilon(asked[:2], delta=1e-5, adjacency=under)
    found = dpcompose.epsilon(asked, delta=1e-5, adjacency=under, masked=True)
    assert found.refused.tolist() == [False, True, True] and sorted(found.refusals) == [1, 2]
    assert found[:1].refused.tolist() == [False] and found[1:].refused.tolist() == [True, True]


@pytest.mark.parametrize(
    "given", [np.ma.array([1e-5, 1e-6], mask=[False, True]), np.ma.array(0.1), np.ma.masked]
)
def test_no_mask_is_dropped(given: Any) -> None:
    asked = [Gaussian(1.0)] * 2
    for masked in (False, True):
        with pytest.raises(DomainError, match=r"expected no masked array"):
            dpcompose.epsilon(asked, delta=given, masked=masked)
        with pytest.raises(DomainError, match=r"expected no masked array"):
            dpcompose.delta(asked, epsilon=given, masked=masked)
        with pytest.raises(DomainError, match=r"expected no masked array"):
            calibrate([Gaussian] * 2, epsilon=1.0, delta=given, masked=masked)
    for ask in (asked[0].profile(), asked[0].profile().tradeoff, asked[0].profile().power):
        with pytest.raises(DomainError, match=r"expected no masked array"):
            ask(given)


@pytest.mark.parametrize("bad", [3, True, "done"])
def test_progress_is_told_to_a_function(bad: Any) -> None:
    asked = [Gaussian(1.0)] * 2
    with pytest.raises(DomainError, match="progress = "):
        dpcompose.epsilon(asked, delta=1e-5, progress=bad)
    with pytest.raises(DomainError, match="progress = "):
        dpcompose.delta(asked, epsilon=1.0, progress=bad)
    with pytest.raises(DomainError, match="progress = "):
        running_epsilon(asked, delta=1e-5, progress=bad)
    with pytest.raises(DomainError, match="progress = "):
        calibrate([Gaussian] * 2, epsilon=1.0, delta=1e-5, progress=bad)


def test_the_ends_cannot_be_written_to() -> None:
    found = dpcompose.epsilon([Gaussian(1.0)], delta=1e-5)
    assert isinstance(found, Bounds)
    with pytest.raises(ValueError, match="read-only"):
        found.lower[0] = 0.0


def test_progress_counts_every_question() -> None:
    seen: list[tuple[int, int]] = []
    dpcompose.epsilon(MIXED, delta=1e-5, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (len(MIXED), len(MIXED)) and seen == sorted(seen)


Phase = tuple[float, float, int]


def _drawn(seed: int, count: int) -> tuple[list[list[Phase]], list[float]]:
    """Schedules of one or two phases (sigma, rate, steps), and a delta for each."""
    rng = np.random.default_rng(seed)

    def phase() -> Phase:
        sigma, rate = np.exp(rng.uniform(np.log([0.7, 2e-3]), np.log([5.0, 0.4]))).round(5).tolist()
        return sigma, rate, int(np.exp(rng.uniform(4.0, 10.0)))

    phases = [[phase(), phase()] if index % 4 == 3 else [phase()] for index in range(count)]
    return phases, (10.0 ** -rng.uniform(3.0, 11.0, count)).tolist()


def _composed(phases: list[Phase]) -> Composable:
    return compose(*(Gaussian(sigma).sampled(rate) * steps for sigma, rate, steps in phases))


def test_schedules_are_answered_together_within_the_tolerance() -> None:
    drawn, given = _drawn(1, 48)
    schedules = [_composed(phases) for phases in drawn]
    found = dpcompose.epsilon(schedules, delta=given)
    together = [
        certificate.method.startswith("contour, many") for certificate in found.certificates
    ]
    assert sum(together) >= 40
    assert np.all(found.width[together] <= 1e-9 * np.maximum(found.upper[together], 1e-3))
    for schedule, delta, bound in zip(schedules[:16], given, found, strict=False):
        one = schedule.epsilon(delta=delta)
        assert max(one.lower, bound.lower) <= min(one.upper, bound.upper)
    back = dpcompose.delta(schedules, epsilon=found.upper)
    assert np.all(back.lower <= given) and np.all(
        back.upper[together] >= np.array(given)[together] * (1 - 1e-5)
    )


def test_shuffled_and_split_batches_agree_to_the_last_bit() -> None:
    drawn, given = _drawn(2, 60)
    schedules = [_composed(phases) for phases in drawn]
    whole = dpcompose.epsilon(schedules, delta=given)
    order = np.random.default_rng(3).permutation(len(schedules))
    parts = [order[:1], order[1:8], order[8:]]
    split = [
        dpcompose.epsilon([schedules[at] for at in part], delta=np.array(given)[part])
        for part in parts
    ]
    assert np.concatenate([part.lower for part in split]).tolist() == whole.lower[order].tolist()
    assert np.concatenate([part.upper for part in split]).tolist() == whole.upper[order].tolist()


def test_answers_hold_the_truth_by_ball_arithmetic() -> None:
    drawn, given = _drawn(5, 12)
    found = dpcompose.epsilon([_composed(phases) for phases in drawn], delta=given)
    for phases, delta, bound in zip(drawn, given, found, strict=True):
        directions = [
            [
                (SampledGaussian(rate, 1 / Fraction(sigma), direction), steps)
                for sigma, rate, steps in phases
            ]
            for direction in (Direction.REMOVE, Direction.ADD)
        ]
        assert any(contour.delta(bound.lower, laws) > delta for laws in directions)
        assert all(contour.delta(bound.upper, laws) < delta for laws in directions)


def test_epsilon_after_every_step_is_that_of_the_prefix() -> None:
    phases = [
        Gaussian(1.5).sampled(0.01) * 400,
        Gaussian(1.0).sampled(0.02) * 300,
        Gaussian(2.0).sampled(0.01) * 100,
    ]
    found = running_epsilon(phases, delta=1e-6)
    assert (
        len(found) == 800
        and np.all(np.diff(found.lower) >= 0)
        and np.all(np.diff(found.upper) >= 0)
    )
    for steps in (1, 2, 7, 90, 400, 401, 433, 700, 701, 800):
        first, second = min(steps, 400), min(max(steps - 400, 0), 300)
        third = max(steps - 700, 0)
        prefix = compose(
            *(
                phase.parts[0][0] * n
                for phase, n in zip(phases, (first, second, third), strict=True)
            )
        )
        one, bound = prefix.epsilon(delta=1e-6), found[steps - 1]
        assert max(one.lower, bound.lower) <= min(one.upper, bound.upper)
        assert bound.width <= max(1.01e-8 * bound.upper, one.width)


def test_a_schedule_of_any_mechanisms_runs() -> None:
    found = running_epsilon(Laplace(10.0) * 3 + BlackBox(0.1) * 2, delta=1e-6)
    assert len(found) == 5 and found[4] == (Laplace(10.0) * 3 + BlackBox(0.1) * 2).epsilon(
        delta=1e-6
    )
    assert len(running_epsilon([], delta=1e-6)) == 0
    with pytest.raises(DomainError, match=r"schedule\[1\]"):
        running_epsilon([Laplace(1.0), 3], delta=1e-6)  # type: ignore[list-item]


def test_a_batch_of_calibrations_meets_its_targets() -> None:
    families = [
        lambda sigma, rate=rate: Gaussian(sigma).sampled(rate) * 1000 for rate in (0.01, 0.02)
    ]
    found = calibrate([*families, Gaussian], epsilon=[1.0, 2.0, 1.0], delta=1e-5)
    for index, (family, target) in enumerate(
        zip([*families, Gaussian], (1.0, 2.0, 1.0), strict=True)
    ):
        one = calibrate(family, epsilon=target, delta=1e-5)
        assert abs(found.value[index] / one.value - 1) < 1e-8
        assert family(float(found.value[index])).epsilon(delta=1e-5).lower <= target


def test_a_calibration_without_an_answer_is_named_by_its_index() -> None:
    families = [Gaussian, lambda scale: Laplace(scale) * 0 + BlackBox(2.0), Laplace]
    with pytest.raises(UnreachableError, match=r"families\[1\]"):
        calibrate(families, epsilon=1.0, delta=0.0001)
    found = calibrate(families, epsilon=[1.0, 1.0, -1.0], delta=0.0001, masked=True)
    assert sorted(found.refusals) == [1, 2] and np.isnan(found.value).tolist() == [
        False,
        True,
        True,
    ]
    with pytest.raises(DomainError, match=r"epsilon\[2\]"):
        _ = found[2]


def test_one_composition_is_asked_by_the_same_name() -> None:
    one = Gaussian(2.0) * 3
    assert dpcompose.epsilon(one, delta=1e-5) == one.epsilon(delta=1e-5)
    assert dpcompose.delta(one, epsilon=1.0, adjacency="replace") == one.delta(
        epsilon=1.0, adjacency="replace"
    )
    assert dpcompose.epsilon(one.group(2), delta=1e-5) == one.group(2).epsilon(delta=1e-5)
    assert not {"epsilons", "deltas", "calibrations"} & {*dir(dpcompose)}
    for ask in (dpcompose.epsilon, dpcompose.delta, calibrate):
        with pytest.raises((DomainError, TypeError)):
            ask(3, delta=1e-5)  # type: ignore[call-overload]


@pytest.mark.parametrize("more", [{"masked": True}, {"progress": print}])
def test_what_belongs_to_many_is_refused_beside_one(more: dict[str, Any]) -> None:
    with pytest.raises(DomainError, match="single composition"):
        dpcompose.epsilon(Gaussian(1.0), delta=1e-5, **more)
    with pytest.raises(DomainError, match="single composition"):
        dpcompose.delta(Gaussian(1.0), epsilon=1.0, **more)
    with pytest.raises(DomainError, match="single composition"):
        calibrate(Gaussian, epsilon=1.0, delta=1e-5, **more)
    with pytest.raises(DomainError, match="epsilon and delta for several families"):
        calibrate([Gaussian], epsilon=1.0, delta=1e-5, advantage=0.1)  # type: ignore[call-overload]


@pytest.mark.parametrize("bad", ["Laplace", b"x", 3, None, ["Laplace"], [Gaussian, 3]])
def test_what_is_no_family_is_refused(bad: Any) -> None:
    with pytest.raises(DomainError, match="family"):
        calibrate(bad, epsilon=1.0, delta=1e-5)


def test_many_answers_have_no_proof() -> None:
    for ask in (
        lambda: dpcompose.epsilon([Gaussian(1.0)], delta=1e-5, proof=True),
        lambda: dpcompose.delta([Gaussian(1.0)], epsilon=1.0, proof=True),
        lambda: running_epsilon(Gaussian(1.0), delta=1e-5, proof=True),
        lambda: calibrate([Gaussian], epsilon=1.0, delta=1e-5, proof=True),
    ):
        with pytest.raises(UnsupportedError, match="ball arithmetic"):
            ask()
