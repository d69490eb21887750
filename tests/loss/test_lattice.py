"""Compositions of noises on a lattice: both ends against lines, closed forms and brute force over few outcomes."""

from __future__ import annotations

import math
from random import Random

import numpy as np
import pytest

from campaigns.lattice import contradictions, run
from dpcompose import Bound, Composition, Gaussian, Laplace, compose
from dpcompose.guarantee import gaussian_epsilon, gaussian_profile
from dpcompose.loss import GaussianLoss, LaplaceLoss, Loss, SampledGaussianLoss, lattice
from dpcompose.loss.lattice_below import Groups
from dpcompose.loss.lattice_plan import fits

POINTS = 1 << 12


def _sampled(noise: float, rate: float, *, remove: bool = True) -> Loss:
    return SampledGaussianLoss(noise, rate, remove)


@pytest.mark.parametrize(
    ("mu", "times", "delta"), [(1.0, 100, 1e-6), (0.01, 10**6, 1e-3), (3.0, 7, 1e-200)]
)
def test_gaussian_noise_has_a_closed_form(mu: float, times: int, delta: float) -> None:
    found = lattice.epsilon([(GaussianLoss(mu), times)], delta, delta, points=POINTS)
    exact = gaussian_epsilon(delta, mu=mu * math.sqrt(times))
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert found.upper < 1.001 * found.lower


@pytest.mark.parametrize("epsilon", [0.5, 3.0, 9.0])
def test_a_delta_has_a_closed_form(epsilon: float) -> None:
    found = lattice.delta([(GaussianLoss(0.2), 50)], epsilon, points=POINTS)
    exact = gaussian_profile(epsilon, mu=0.2 * math.sqrt(50))
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert found.upper < 1.01 * found.lower


@pytest.mark.parametrize(
    ("group", "whole", "delta"),
    [
        ([(_sampled(4.0, 0.1), 10_000)], Gaussian(4.0).sampled(0.1) * 10_000, 1e-8),
        ([(_sampled(2.0, 0.3), 50)], Gaussian(2.0).sampled(0.3) * 50, 1e-30),
        (
            [(_sampled(10.0, 0.5), 164), (_sampled(1e6, 0.3), 3000)],
            Gaussian(10.0).sampled(0.5) * 164 + Gaussian(1e6).sampled(0.3) * 3000,
            3e-7,
        ),
        (
            [(LaplaceLoss(1 / 30), 2000), (GaussianLoss(0.01), 5000)],
            Laplace(30.0) * 2000 + Gaussian(100.0) * 5000,
            1e-5,
        ),
    ],
)
def test_a_lattice_agrees_with_a_line(
    group: list[tuple[Loss, int]], whole: Composition, delta: float
) -> None:
    exact = whole.epsilon(delta=delta)
    found = lattice.epsilon(group, delta, delta, points=POINTS)
    assert exact.upper < (1 + 1e-8) * exact.lower, "the line is no measure"
    # The remove order has the larger answer in each of these.
    assert found.lower <= exact.upper
    assert exact.lower <= found.upper < 1.02 * found.lower


def test_drawn_compositions_agree_with_lines() -> None:
    rng, narrow = Random(5), 0
    for _ in range(25):
        noise, rate = 10 ** rng.uniform(-0.3, 4), 10 ** -rng.uniform(0.1, 4)
        times, delta = int(10 ** rng.uniform(0, 5)), 10 ** -rng.uniform(2, 30)
        whole = (Gaussian(noise).sampled(rate) * times).epsilon(delta=delta)
        ends = [
            lattice.epsilon(
                [(_sampled(noise, rate, remove=side), times)], delta, delta, points=POINTS
            )
            for side in (True, False)
        ]
        assert max(end.lower for end in ends) <= whole.upper, (noise, rate, times, delta)
        assert whole.lower <= max(end.upper for end in ends), (noise, rate, times, delta)
        narrow += max(end.upper for end in ends) < 1.01 * max(end.lower for end in ends)
    assert narrow >= 10


def test_the_library_agrees_with_the_lattice_on_drawn_cases() -> None:
    counts, problems = run(8, first=5, points=POINTS)
    assert not problems
    assert counts["both ends"] >= 2 and counts["control"]


def test_what_has_no_lower_end_on_a_contour_has_one_on_a_lattice() -> None:
    found = lattice.epsilon([(_sampled(22.0, 1e-9), 3441)], 1e-229, 1e-229)
    assert found.lower == pytest.approx(8.53818e-8, rel=1e-4)
    assert found.upper < (1 + 1e-4) * found.lower


@pytest.mark.parametrize(
    ("noise", "rate", "times", "delta"),
    [
        (0.7, 1e-6, 100, 1e-10),
        (1.0, 1e-4, 100, 1e-15),
        (1.5, 1e-5, 1000, 1e-15),
        (0.5, 1e-6, 10_000, 1e-15),
        (1.0, 1e-3, 10, 1e-15),
    ],
)
def test_rare_large_losses_are_added_one_at_a_time(
    noise: float, rate: float, times: int, delta: float
) -> None:
    exact = (Gaussian(noise).sampled(rate) * times).epsilon(delta=delta)
    assert exact.upper < (1 + 1e-7) * exact.lower, "the split lines are no measure"
    found = lattice.epsilon([(_sampled(noise, rate), times)], delta, delta)
    assert found.lower <= exact.lower <= exact.upper <= found.upper
    assert found.upper < 1.002 * found.lower
    there = lattice.delta([(_sampled(noise, rate), times)], exact.upper)
    assert there.lower <= delta * (1 + 1e-6) and delta * (1 - 1e-6) <= there.upper
    assert there.upper < 1.1 * there.lower


@pytest.mark.parametrize(
    ("noise", "rate", "delta"),
    [
        (0.03339722702120874, 2.373284945709161e-09, 3.661969996506412e-26),
        (0.03685905313552788, 1e-08, 2.823590701558072e-38),
        (0.043185562910797025, 1.0207353814082728e-05, 1.1584068699999876e-69),
    ],
)
def test_losses_at_which_the_other_mass_is_below_floats(
    noise: float, rate: float, delta: float
) -> None:
    """P's mass there is far above delta, Q's is no float: the upper ends were below the profile in closed form."""
    exact = Gaussian(noise).sampled(rate).epsilon(delta=delta)
    loss = _sampled(noise, rate)
    found = lattice.epsilon([(loss, 1)], delta, delta, points=POINTS)
    assert found.lower <= exact.upper and exact.lower <= found.upper
    assert lattice.delta([(loss, 1)], exact.lower).upper >= delta * (1 - 1e-9)
    beside = compose(Gaussian(noise).sampled(rate), Gaussian(0.82) * 6).epsilon(delta=delta)
    assert exact.lower * (1 - 1e-9) <= beside.upper


def test_rare_large_losses_beside_other_noise() -> None:
    """Neither lines nor a plain lattice say anything; the parts alone are below, the unsampled whole is above."""
    rare, other = Gaussian(1.9).sampled(5e-6) * 3600, Laplace(17_400.0).sampled(0.004) * 72
    found = compose(rare, other).epsilon(delta=1e-107)
    assert rare.epsilon(delta=1e-107).lower * (1 - 1e-6) <= found.lower
    assert found.upper <= compose(rare, Laplace(17_400.0) * 72).epsilon(delta=1e-107).upper * 1.01
    assert found.upper < 1.1 * found.lower


def test_a_free_phase_does_not_spoil_an_answer() -> None:
    part, free = Gaussian(3.57).sampled(3e-10) * 600_000, Gaussian(951_000.0) * 20_000
    found = (part + Laplace(9000.0).sampled(4e-10) * 2000 + free).epsilon(delta=1e-193)
    assert free.epsilon(delta=1e-193).lower <= found.lower
    assert found.upper < 1.001 * found.lower


def _profile(p: np.ndarray, q: np.ndarray, factors: np.ndarray) -> np.ndarray:
    return np.maximum(p - factors[:, None] * q, 0.0).sum(axis=1)


@pytest.mark.parametrize("kinds", [1, 4])
@pytest.mark.parametrize("seed", range(12))
def test_groups_are_below_what_they_are_made_of(kinds: int, seed: int) -> None:
    """Random outcomes between random points, smooth ones and rough ones: no profile is above."""
    rng = np.random.default_rng(seed)
    n, step, order = (
        int(rng.integers(3, 40)),
        10 ** rng.uniform(-3, -0.5),
        10 ** rng.uniform(-1, 1.3),
    )
    points = np.arange(n) * step
    places = points[:-1, None] + step * np.sort(rng.uniform(0.01, 0.99, (n - 1, kinds)), axis=1)
    rough = rng.random() < 0.5
    weight = np.exp(-0.5 * ((places / step - n / 2) / (n / 6)) ** 2)
    weight = weight * rng.exponential(size=weight.shape) ** 3 if rough else weight
    own = np.where(rng.random(n) < 0.3, rng.exponential(size=n), 0.0) * rough
    # Q's masses; in tilted units of the point to the left they are times a_j e^(order a_j).
    tilt = np.exp((order + 1) * points)
    groups = Groups(own, weight, weight * np.expm1(places - points[:-1, None]))
    masses = groups.below(step, order)
    q = np.concatenate([own / tilt, (weight / tilt[:-1, None]).ravel()])
    p = np.concatenate(
        [own / tilt * np.exp(points), (weight / tilt[:-1, None] * np.exp(places)).ravel()]
    )
    below_q, below_p = masses / tilt, masses / tilt * np.exp(points)
    factors = np.exp(np.linspace(-2 * step, (n + 1) * step, 400))
    truth, found = _profile(p, q, factors), _profile(below_p, below_q, factors)
    assert (masses >= 0).all()
    assert (found <= truth * (1 + 1e-9) + 1e-13 * truth.max()).all()
    raised = _profile(np.append(below_p[1:], 0.0) + below_p, below_q, factors)
    assert (raised > truth).any(), "a control that cannot fail"


def test_sides_that_contradict_each_other_are_seen_and_say_nothing() -> None:
    with contradictions() as apart:
        found = Bound(*lattice.met(Bound(2.0, math.inf), Bound(0.0, 1.0)))
    assert apart == [(Bound(2.0, math.inf), Bound(0.0, 1.0))]
    assert (found.lower, found.upper) == (0.0, math.inf)


def test_what_a_lattice_does_not_hold() -> None:
    assert fits([(GaussianLoss(1.0), 5)])
    assert not fits([(GaussianLoss(1e3), 5)])
    assert not fits([])
    assert not fits([(_sampled(noise, 0.1), 1) for noise in np.linspace(1, 2, 40)])


@pytest.mark.parametrize(
    ("noise", "rate", "times", "delta"),
    [(3.9, 5.2e-10, 4073, 1e-30), (9.1, 4.2e-5, 155, 1e-100), (9.0, 1e-3, 500, 1e-40)],
)
@pytest.mark.parametrize("remove", [True, False])
def test_one_side_proves_no_less_than_both(
    noise: float, rate: float, times: int, delta: float, remove: bool
) -> None:
    group = [(SampledGaussianLoss(noise, rate, remove), times)]
    found = lattice.epsilon(group, delta, delta)
    assert 0 < found.lower < found.upper < math.inf
    assert lattice.at_most(group, 1.01 * found.upper, delta)
    assert not lattice.at_most(group, 0.999 * found.lower, delta)
