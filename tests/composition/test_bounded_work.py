"""Hard questions end after a bounded amount of work, with a bound that is narrow or as wide as
documented.
"""

from __future__ import annotations

import math
import os
import random
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from flint import arb, ctx

from dpcompose import (
    Adjacency,
    DiscreteGaussian,
    Gaussian,
    Laplace,
    RandomizedResponse,
    calibrate,
    compose,
)
from dpcompose.composition.composition import Composable
from dpcompose.composition.elementary import _chi_squared  # pyright: ignore[reportPrivateUsage]
from dpcompose.composition.profile import Profile
from dpcompose.errors import UnsupportedError
from dpcompose.loss.atomic import AtomicSum
from dpcompose.mechanisms import Skellam, Staircase
from dpcompose.numerics import elementary
from dpcompose.values.bound import Bound


class Work:
    """How many terms of transforms were summed: nodes times atoms."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.done = 0
        known = AtomicSum.line

        def counted(transform: AtomicSum, order: float, frequencies: Any) -> Any:
            self.done += len(frequencies) * sum(len(table.upper) for table in transform.tables)
            return known(transform, order, frequencies)

        monkeypatch.setattr(AtomicSum, "line", counted)


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Work:
    return Work(monkeypatch)


def relative(bound: Bound) -> float:
    return bound.width / bound.upper


@pytest.mark.parametrize(
    "one, two, rounds", [(0.1, 0.2, 10**9), (1.0, 0.5, 10**9), (5.0, 3.0, 10**8)]
)
def test_many_copies_of_two_responses_have_their_mean_loss_at_an_even_chance(
    one: float, two: float, rounds: int
) -> None:
    found = ((RandomizedResponse(one) + RandomizedResponse(two)) * rounds).epsilon(delta=0.5)
    # The median of the sum is its mean but for less than a nat per unit of the largest loss; delta is a nat off that.
    mean = rounds * (one * math.tanh(one / 2) + two * math.tanh(two / 2))
    assert found.lower <= mean + 10 and mean - 10 <= found.upper
    assert relative(found) < 1e-3


def test_many_copies_of_one_response_under_replacement_take_few_nodes(work: Work) -> None:
    found = (RandomizedResponse(1.0) * 10**9).epsilon(delta=0.5, adjacency=Adjacency.REPLACE)
    assert work.done < 10_000
    assert relative(found) < 1e-6


def test_a_sum_on_a_lattice_is_inverted_between_its_points(work: Work) -> None:
    """delta(epsilon) = sum of (p - e^epsilon q)_+ over the triples of outcomes, in balls."""
    ctx.prec = 200
    weights = [(-arb(n * n) / 2).exp() for n in range(-25, 26)]
    whole = sum(weights, arb(0))
    sums = [arb(1)]
    for _ in range(3):
        wider = [arb(0)] * (len(sums) + 50)
        for at, mass in enumerate(sums):
            for step, weight in enumerate(weights):
                wider[at + step] += mass * weight / whole
        sums = wider

    def delta(epsilon: float) -> arb:
        total = arb(0)
        for at, mass in enumerate(sums):
            loss = arb(27) / 2 + 3 * (at - 75)
            if loss > epsilon:
                total += mass * (1 - (arb(epsilon) - loss).exp())
        return total

    for asked in np.linspace(6.2e-7, 7.4e-7, 13).tolist():
        found = (DiscreteGaussian(1.0, shift=3) * 3).epsilon(delta=asked)
        assert delta(found.upper) < asked < delta(found.lower)
        assert relative(found) < 1e-9


@pytest.mark.parametrize(
    "composition, delta, top",
    [
        (compose(*[RandomizedResponse(30 + i / 10, categories=3) for i in range(25)]), 1e-6, 780.0),
        (compose(*[RandomizedResponse(30 + i / 10) for i in range(25)]), 1e-6, 780.0),
        (
            Laplace(1.2964).sampled(0.12175) * 10,
            1.28e-12,
            10 * math.log1p(0.12175 * math.expm1(1 / 1.2964)),
        ),
    ],
)
def test_next_to_the_largest_loss_the_lower_end_is_next_to_it(
    composition: Composable, delta: float, top: float, work: Work
) -> None:
    found = composition.epsilon(delta=delta)
    assert found.lower > top * (1 - 1e-5)
    assert found.upper <= top * (1 + 1e-12)
    assert work.done < 3e8


def test_a_sample_by_itself_is_exact_whatever_its_largest_loss() -> None:
    """Of a removal: ln(1 + q (e^y - 1)) at the y where delta(y) = delta / q; Laplace: 1 - e^((y - 1000) / 2)."""
    ctx.prec = 200
    found = Laplace(0.001).sampled(0.5).epsilon(delta=1e-6)
    truth = (1 + ((1000 + 2 * (1 - arb(2e-6)).log()).exp() - 1) / 2).log()
    assert found.lower <= truth <= found.upper
    assert relative(found) < 1e-9


def test_a_sample_of_a_long_composition_ends_where_the_unsampled_one_is_moved_to() -> None:
    for base in (Laplace(0.01) * 8, RandomizedResponse(10.0, categories=4) * 80):
        inner, found = base.epsilon(delta=2e-6), base.sampled(0.5).epsilon(delta=1e-6)
        assert inner.lower + math.log(0.5) <= found.upper and found.lower <= inner.upper + math.log(
            0.5
        )
        assert relative(found) < 1e-6


def test_a_sampled_gaussian_of_little_noise_is_finite() -> None:
    inner, found = (
        Gaussian(0.01).epsilon(delta=1e-8),
        Gaussian(0.01).sampled(0.01).epsilon(delta=1e-10),
    )
    assert inner.lower + math.log(0.01) <= found.upper and found.lower <= inner.upper + math.log(
        0.01
    )
    assert relative(found) < 1e-12


@pytest.mark.parametrize("rate", [0.1, 1e-6, 0.999])
def test_a_sample_has_the_profile_of_its_definition(rate: float) -> None:
    """One Laplace: the masses below and above the point where the ratio is e^x, in balls."""
    ctx.prec = 200
    epsilon, q = arb(1), arb(rate)
    for x in (-2.0, -0.05, 0.0, 1e-3, 0.2, 0.9):
        grown = arb(x).exp()

        def base(a: arb) -> arb:
            """E[(p - a q)_+] without sampling, from e^-epsilon to e^epsilon; linear outside."""
            if a <= (-epsilon).exp():
                return 1 - a
            return 1 - ((a.log() - epsilon) / 2).exp() if a < epsilon.exp() else arb(0)

        removed = q * base((grown - 1 + q) / q) if grown - 1 + q > 0 else 1 - grown
        rest = 1 - (1 - q) * grown
        added = rest * base(q * grown / rest) if rest > 0 else arb(0)
        found = Laplace(1.0).sampled(rate).delta(epsilon=x)
        truth = removed.max(added)
        assert found.lower <= truth.upper() and truth.lower() <= found.upper
        assert found.width <= 1e-9 * float(truth.mid()) + 1e-15


def test_screened_nodes_of_a_line_are_summed_by_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some of the multiples of a step, as many as matter: about the root of their number of exponentials."""
    kept = np.array([j for j in range(20_000) if (j // 700) % 3 != 1]) * 0.375
    amplitude, rate = np.linspace(0.1, 1.0, 50), 1j * np.linspace(-1.0, 1.0, 50)
    taken: list[int] = []
    known = np.exp

    def counted(values: Any) -> Any:
        taken.append(np.size(values))
        return known(values)

    with monkeypatch.context() as patched:
        patched.setattr(elementary.np, "exp", counted)
        found = elementary.exponential_sums(kept, amplitude, rate)
    assert sum(taken) < 50 * 2000
    truth = np.exp(kept[:, None] * rate) @ amplitude
    assert (
        np.max(np.abs(found - truth))
        < (4 * 50 + 64 + 16 * kept[-1]) * 2.0**-53 * amplitude.sum() * 2
    )


def test_an_answer_depends_on_the_question_alone() -> None:
    epsilons = [0.01, 0.3, 1.0, 2.0, -0.1, 5.0]
    for composition in (
        Gaussian(1.0).sampled(0.01) * 100 + Gaussian(2.0).sampled(0.02) * 50,
        Laplace(1.0).sampled(0.1) * 2,
        (Laplace(1.0) * 3).sampled(0.1),
    ):
        alone = {at: ends(composition.profile(), at) for at in epsilons}
        kept = composition.profile()
        for at in [*epsilons, *reversed(epsilons), *epsilons[::2]]:
            assert ends(kept, at) == alone[at]


def ends(profile: Profile, epsilon: float) -> tuple[float, float]:
    found = profile(epsilon)
    return float(found.lower), float(found.upper)


@pytest.mark.slow
def test_an_answer_is_the_same_in_every_process() -> None:
    script = (
        "from dpcompose import *\n"
        "print(repr((Laplace(1.2964).sampled(0.12175) * 10).epsilon(delta=1.28e-12)))\n"
        "print(repr(((Laplace(1.0) * 3).sampled(0.1) + Gaussian(2.0).sampled(0.1)).epsilon(delta=1e-6)))\n"
    )
    answers = {
        subprocess.run(
            [sys.executable, "-c", script],
            env={**os.environ, "OPENBLAS_NUM_THREADS": str(seed), "PYTHONHASHSEED": str(seed)},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in (1, 2, 3)
    }
    assert len(answers) == 1


@pytest.mark.parametrize("times", [1000, 10**6])
def test_a_delta_above_the_total_variation_costs_nothing(times: int) -> None:
    """A thousand staircases at 1e-8 took minutes: one period of their lattice had 10^8 nodes."""
    found = (Staircase(1e-8, gamma=0.3) * times).epsilon(delta=0.01)
    assert (found.lower, found.upper) == (0.0, 0.0)


def test_total_variation_is_asked_of_what_is_above_it_only() -> None:
    """At delta(0) itself epsilon is 0, and just below it is not."""
    whole = Laplace(1e4) * 2
    variation = whole.delta(epsilon=0.0)
    assert whole.epsilon(delta=variation.upper).upper == 0.0
    assert whole.epsilon(delta=0.999 * variation.lower).lower > 0.0


def test_a_cheap_part_beside_rare_large_losses() -> None:
    """Together they were between 8.3e-5 and 3.9e-4; by basic composition they cost hardly more than one."""
    rare, cheap = (
        Gaussian(0.2188530057229826).sampled(2.988950893014193e-09) * 151,
        Gaussian(4054.0711538211813).sampled(1.0449033986626719e-10) * 1560,
    )
    found, alone = (each.epsilon(delta=1.96e-7) for each in (compose(rare, cheap), rare))
    assert alone.lower <= found.lower
    assert found.upper < 1.02 * alone.upper


@pytest.mark.parametrize(("variance", "times", "delta"), [(0.08, 3, 5.5e-233), (0.58, 2, 3.6e-242)])
def test_losses_that_were_cut_still_have_moments(variance: float, times: int, delta: float) -> None:
    """What a table of an enumerated sum leaves out at infinity exceeded delta, and one part's moments were asked alone."""
    whole = Skellam(variance) * times
    orders = (8.0, 32.0, 128.0)
    by_moments = min(
        whole.renyi(order).upper
        - (math.log(delta) + math.log(order)) / (order - 1)
        + math.log1p(-1 / order)
        for order in orders
    )
    assert whole.epsilon(delta=delta).upper <= by_moments


@pytest.mark.parametrize(
    ("whole", "delta"),
    [
        (Gaussian(0.05).sampled(1e-170) * 2, 1e-250),
        (Laplace(1.6).sampled(4.4e-195) * 3, 1e-195),
    ],
)
def test_a_rate_whose_square_is_below_floats_is_not_free(whole: Composable, delta: float) -> None:
    """The total variation from the divergence of order 2 was 5e-324 there, and epsilon 0."""
    assert whole.epsilon(delta=delta).upper > 0
    assert whole.delta(epsilon=0.0).upper >= delta


@pytest.mark.parametrize(("epsilon", "edge"), [(0.5 + 1e-9, 1.0), (1 / 3 + 1e-12, 2.0)])
def test_the_edge_of_a_step_is_found(epsilon: float, edge: float) -> None:
    """Secant steps hardly moved either end where the target is just above a constant: 2e-5 beside the edge after 400."""
    calls: list[float] = []

    def stepped(scale: float) -> Laplace:
        calls.append(scale)
        return Laplace(float(max(math.ceil(scale), 1)))

    found = calibrate(stepped, epsilon=epsilon, delta=0.0)
    assert edge <= found.value <= edge * (1 + 3e-10)
    assert len(calls) < 200


def test_a_family_without_an_answer_leaves_the_others_theirs() -> None:
    def without(scale: float) -> Composable:
        raise UnsupportedError("this family", "nothing is known of it", "take another one")

    found = calibrate([without, Gaussian], epsilon=1.0, delta=1e-5, masked=True)
    assert list(found.refusals) == [0]
    assert found.calibrations[1].value == pytest.approx(3.7306316)


def test_chi_squared_on_a_sample_is_rounded_up_at_every_rate() -> None:
    """Held against balls of 2,000 bits; the product of the two rates was 0 below 1e-162."""
    rng, before = random.Random(3), ctx.prec
    ctx.prec, low = 2000, 0
    try:
        for _ in range(500):
            rate, divergence = 10 ** -rng.uniform(0.01, 307), 10 ** rng.uniform(-300, 2.8)
            chi = arb(rate) ** 2 / (1 - arb(rate)) * (arb(divergence).exp() - 1)
            assert arb(_chi_squared(divergence, rate)) >= (1 + chi).log()
            low += not arb(math.log1p(rate * rate / (1 - rate) * math.expm1(divergence))) >= chi / 2
    finally:
        ctx.prec = before
    assert low > 50, "a control that cannot fail"
