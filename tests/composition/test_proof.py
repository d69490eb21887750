"""proof=True: float and ball-arithmetic intervals meet, the latter contains the truth, and
unsupported cases are refused.
"""

from __future__ import annotations

import math
import sys
from collections import defaultdict
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from itertools import product
from random import Random
from typing import Any

import mpmath
import pytest
from flint import arb

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
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
from dpcompose.errors import DomainError, MissingExtraError, UnsupportedError
from dpcompose.loss.atomic import AtomicLoss
from dpcompose.loss.atoms import Atoms
from dpcompose.loss.product import Product
from dpcompose.loss.proved_product import ProvedProduct
from dpcompose.mechanisms import DominatingPair
from oracles import gaussian, lattices, optimal, residues, sampled
from oracles.ball import ratio

ADD_REMOVE, REPLACE = Adjacency.ADD_REMOVE, Adjacency.REPLACE


def _times(rng: Random, decades: float) -> int:
    return max(1, int(10 ** rng.uniform(0, decades)))


def _step(rng: Random) -> Composable:
    sigma, times = rng.uniform(0.6, 4.0), _times(rng, 6)
    return Gaussian(sigma).sampled(min(rng.uniform(0.2, 2.0) / math.sqrt(times), 0.5)) * times


def _atoms(rng: Random) -> Composable:
    weights = [[rng.randint(1, 64) for _ in range(3)] for _ in range(2)]
    upper, lower = ([weight / 256 for weight in row] for row in weights)
    full = [[*row[:2], 1 - row[0] - row[1]] for row in (upper, lower)]
    return DominatingPair.atoms(upper=full[0], lower=full[1], adjacency=ADD_REMOVE) * _times(
        rng, 1.5
    )


FAMILIES: dict[str, Callable[[Random], Composable]] = {
    "gaussian": lambda rng: compose(*(Gaussian(rng.uniform(1, 30)) * _times(rng, 4) for _ in range(3))),
    "gaussian_dp": lambda rng: GaussianDP(rng.uniform(0.01, 1.0)) * _times(rng, 2),
    "laplace once": lambda rng: Laplace(rng.uniform(0.5, 20)),
    "few laplace": lambda rng: Laplace(rng.uniform(2, 20)) * rng.randint(2, 12) + Laplace(rng.uniform(2, 20)),
    "many laplace": lambda rng: Laplace(rng.uniform(20, 40)) * rng.randint(10_000, 10**7),
    "promises": lambda rng: BlackBox(rng.uniform(0.001, 0.5), delta=rng.choice([0.0, 1e-12])) * _times(rng, 5),
    "two promises": lambda rng: BlackBox(rng.uniform(0.05, 0.5)) * 20 + BlackBox(rng.uniform(0.05, 0.5)) * 9,
    "exponential": lambda rng: Exponential(rng.uniform(0.05, 1.0)) * rng.randint(1, 8),
    "response": lambda rng: RandomizedResponse(rng.uniform(0.01, 2), categories=rng.randint(3, 9)) * _times(rng, 5),
    "discrete laplace": lambda rng: DiscreteLaplace(rng.uniform(2, 50), shift=rng.randint(1, 5)) * _times(rng, 5),
    "discrete gaussian": lambda rng: DiscreteGaussian(rng.uniform(0.4, 30), shift=rng.randint(1, 3)) * _times(rng, 4),
    "sampled gaussian once": lambda rng: Gaussian(rng.uniform(0.5, 4)).sampled(rng.uniform(0.01, 0.5)),
    "sampled gaussian": _step,
    "sampled promise": lambda rng: BlackBox(rng.uniform(0.1, 1), delta=1e-7).sampled(0.1) * rng.randint(1, 30),
    "atoms": _atoms,
    "mixture": lambda rng: compose(_step(rng), Laplace(rng.uniform(5, 20)) * 7, BlackBox(0.1) * 5, Gaussian(3.0)),
}  # fmt: skip


def _meet(one: Bound, other: Bound) -> bool:
    return max(one.lower, other.lower) <= min(one.upper, other.upper)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("family", FAMILIES)
def test_fast_and_proved_intervals_meet(family: str, seed: int) -> None:
    rng = Random(f"{family} {seed}")
    composition, delta = FAMILIES[family](rng), 10 ** -rng.uniform(0.3, 14)
    fast, proved = composition.epsilon(delta=delta), composition.epsilon(delta=delta, proof=True)
    pairs = [(fast, proved)]
    if proved.upper < math.inf:
        epsilon = rng.choice(
            [proved.upper, proved.upper * rng.random(), -proved.upper * rng.random() / 4]
        )
        pairs.append(
            (composition.delta(epsilon=epsilon), composition.delta(epsilon=epsilon, proof=True))
        )
    for quick, sure in pairs:
        assert _meet(quick, sure), (composition, quick, sure)
        if 1000 * sure.width < quick.width:
            assert quick.lower <= sure.lower and sure.upper <= quick.upper, (
                composition,
                quick,
                sure,
            )
        assert sure.certificate.method


def test_a_sampled_gaussian_under_replacement() -> None:
    steps = Gaussian(1.3).sampled(0.02) * 400
    fast, proved = (
        steps.epsilon(delta=1e-6, adjacency=REPLACE, proof=proof) for proof in (False, True)
    )
    assert fast.lower <= proved.lower and proved.upper <= fast.upper
    assert proved.width <= 1e-14 * proved.upper


NOISE = lattices.discrete_laplace(ratio(1, 9.0), 4)
TRUTHS: list[tuple[Composable, float, Callable[[float], arb]]] = [
    (Gaussian(3.0) * 7, 1.1, lambda e: gaussian.delta(e, [(ratio(1, 3.0), 7)])),
    (Gaussian(0.3), -0.7, lambda e: gaussian.delta(e, [(ratio(1, 0.3), 1)])),
    (Laplace(3.0), 0.21, lambda e: residues.delta(e, [(residues.Laplace(ratio(1, 3.0)), 1)])),
    (Laplace(7.0) * 30, 2.5, lambda e: residues.delta(e, [(residues.Laplace(ratio(1, 7.0)), 30)])),
    (Laplace(7.0) * 30, -0.4, lambda e: residues.delta(e, [(residues.Laplace(ratio(1, 7.0)), 30)])),
    (Exponential(0.7), 0.3, lambda e: residues.delta(e, [(residues.Range(0.7), 1)])),
    (BlackBox(0.1) * 100, 4.5, lambda e: optimal.homogeneous(e, epsilon=0.1, delta=0, times=100)),
    (BlackBox(0.1, delta=1e-9) * 9_999, 65.0, lambda e: optimal.homogeneous(e, epsilon=0.1, delta=1e-9, times=9_999)),
    (DiscreteLaplace(9.0, shift=4) * 11, 1.7, lambda e: lattices.delta(e, NOISE, times=11)),
    (DiscreteGaussian(2.5, shift=2), 1.2, lambda e: lattices.delta(e, lattices.discrete_gaussian(2.5, 2))),
    (RandomizedResponse(0.4, categories=6) * 50, 3.3, lambda e: lattices.delta(e, lattices.response(0.4, 6), times=50)),
    (Gaussian(1.5).sampled(0.2), 0.3, lambda e: sampled.remove(e, 0.2, sampled.gaussian(ratio(1, 1.5)))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("composition", "epsilon", "truth"), TRUTHS, ids=[repr(row[0]) for row in TRUTHS]
)
def test_the_proved_interval_holds_the_truth_and_little_else(
    composition: Composable, epsilon: float, truth: Callable[[float], arb]
) -> None:
    proved, exact = composition.delta(epsilon=epsilon, proof=True), truth(epsilon)
    assert proved.lower <= exact <= proved.upper
    assert proved.width <= 1e-13 * proved.upper
    back = composition.epsilon(delta=proved.upper, proof=True)
    assert back.lower <= max(epsilon, 0.0) * (1 + 1e-15) and back.width <= 1e-12 * max(
        back.upper, 1e-3
    )


def test_golden_closed_forms() -> None:
    assert (Gaussian(10.0) * 100).epsilon(delta=1e-5, proof=True).contains(4.377178095681225)
    assert (BlackBox(0.1) * 100).epsilon(delta=1e-6, proof=True).contains(4.774567588107986)
    assert Exponential(1.0).delta(epsilon=0.5, proof=True).contains(0.07740468631569081)
    assert (
        RandomizedResponse(1.0, categories=10)
        .delta(epsilon=0.5, proof=True)
        .contains(0.09127281400259379)
    )
    assert DiscreteLaplace(4.0, shift=4).delta(epsilon=0.3, proof=True).contains(0.3005631528977894)


def test_masses_at_infinity_and_the_largest_loss() -> None:
    exact = BlackBox(0.25, delta=1e-6)
    assert exact.epsilon(delta=1e-6, proof=True) == Bound(0.25, 0.25)
    assert exact.epsilon(delta=9.9e-7, proof=True) == Bound(math.inf, math.inf)
    lost, three = 1 - (1 - Fraction(1e-6)) ** 3, (exact * 3).delta(epsilon=math.inf, proof=True)
    assert three.lower <= lost <= three.upper and three.width < 1e-21
    assert (BlackBox(0.25) * 4).epsilon(delta=0.0, proof=True) == Bound(1.0, 1.0)
    assert Gaussian(1.0).epsilon(delta=0.0, proof=True).upper == math.inf
    assert Laplace(2.0).delta(epsilon=0.6, proof=True) == Bound(0.0, 0.0)
    assert compose().epsilon(delta=0.1, proof=True) == Bound(0.0, 0.0)
    assert compose().delta(epsilon=-1.0, proof=True).contains(-math.expm1(-1.0))


def test_no_steps_cost_more_than_a_billion() -> None:
    bound = (Gaussian(1.0).sampled(1e-5) * 10**9).epsilon(delta=1e-9, proof=True)
    assert bound.width <= 1e-13 * bound.upper and "contour" in bound.certificate.method


def test_where_rounding_is_what_is_wide_the_answer_says_so_and_proof_narrows_it() -> None:
    """Rarely sampled, far out: the moments explode before the line can be tilted to where the loss is."""
    training = Gaussian(1.0).sampled(1e-4) * 10**5 + RandomizedResponse(0.01)
    rough, sure = training.epsilon(delta=1e-15), training.epsilon(delta=1e-15, proof=True)
    assert rough.width > 0.01 * rough.upper and rough.certificate.widest == "rounding"
    assert "proof=True" in rough.certificate.notes[0]
    assert (
        rough.lower <= sure.lower and sure.upper <= rough.upper and sure.width < 1e-9 * sure.upper
    )


def test_the_certificate_says_how() -> None:
    certificate = (Laplace(30.0) * 20_000).epsilon(delta=1e-9, proof=True).certificate
    assert certificate.method.startswith(
        "ball arithmetic, contour, "
    ) and certificate.method.endswith(" bits")
    assert [name for name, _ in certificate.budget] == [
        "aliasing",
        "truncation",
        "smoothing",
        "rounding",
    ]
    assert max(share for _, share in certificate.budget) < 1e-14
    assert certificate.notes == ()
    stated = Laplace(3.0).sampled(0.1).delta(epsilon=0.01, proof=True).certificate
    assert any("stated error" in note for note in stated.notes)


@pytest.mark.slow
def test_many_outcomes_do_not_overflow_a_count() -> None:
    loss = Laplace(3.0).sampled(0.1)
    assert _meet((loss * 300).delta(epsilon=2.0, proof=True), (loss * 300).delta(epsilon=2.0))


def test_floats_that_fail_leave_the_proof_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(self: Product, delta: float, *, tolerance: float) -> Bound:
        raise OverflowError("math range error")

    whole = (Gaussian(1.0).sampled(0.1) * 50).epsilon(delta=1e-6, proof=True)
    monkeypatch.setattr(Product, "epsilon", fail)
    again = (Gaussian(1.0).sampled(0.1) * 50).epsilon(delta=1e-6, proof=True)
    assert _meet(whole, again) and again.width <= 1e-12 * again.upper


def test_a_profile_in_proof_mode() -> None:
    curve = (BlackBox(0.5) * 3).profile(proof=True)([0.0, 0.7])
    assert all(curve.lower <= curve.upper) and all(curve.upper - curve.lower < 1e-15)


def test_python_flint_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "flint", None)
    with pytest.raises(MissingExtraError, match=r"proof=True .*pip install 'dpcompose\[proof\]'"):
        Laplace(1.0).epsilon(delta=1e-6, proof=True)


@pytest.mark.parametrize("ask", ["epsilon", "delta"])
def test_what_is_not_proved_is_refused(ask: str) -> None:
    composition: Any = Concentrated(0.1) + Laplace(3.0)
    with pytest.raises(UnsupportedError, match=r"proof=True: Concentrated"):
        getattr(composition, ask)(**{"delta" if ask == "epsilon" else "epsilon": 0.1}, proof=True)


def test_quantities_without_a_proof_are_refused() -> None:
    for ask in (
        lambda: Gaussian(1.0).renyi(2.0, proof=True),
        lambda: Gaussian(1.0).zcdp(proof=True),
    ):
        with pytest.raises(UnsupportedError, match="proof=True"):
            ask()
    with pytest.raises(UnsupportedError, match="proof=True"):
        Gaussian(1.0).gdp(proof=True)
    with pytest.raises(DomainError, match="proof"):
        Gaussian(1.0).epsilon(delta=0.1, proof="yes")  # type: ignore[arg-type]


@pytest.mark.parametrize("epsilon", [0.1, 0.3, 0.7])
@pytest.mark.parametrize("times", [5, 20])
def test_a_proof_holds_for_responses_of_two_replaced_records(epsilon: float, times: int) -> None:
    """A pair that is known by its masses alone: its proof counts what these are stated to be off."""
    with mpmath.workdps(50):
        step = mpmath.mpf(epsilon)
        other = 1 / (1 + mpmath.exp(step))
        one = {2: mpmath.exp(step) * other, -2: mpmath.exp(-step) * other}
        one[0] = 1 - one[2] - one[-2]
        sums = {0: mpmath.mpf(1)}
        for _ in range(times):
            following: dict[int, mpmath.mpf] = defaultdict(mpmath.mpf)
            for (place, mass), (move, share) in product(sums.items(), one.items()):
                following[place + move] += mass * share
            sums = following
        for at in (0.25, 1.0):
            truth = sum(
                -mass * mpmath.expm1(at - place * step)
                for place, mass in sums.items()
                if place * step > at
            )
            composed = RandomizedResponse(epsilon) * times
            found = composed.delta(epsilon=at, adjacency=Adjacency.REPLACE, proof=True)
            assert found.lower <= truth <= found.upper


def test_a_proof_is_as_wide_as_the_masses_are_uncertain() -> None:
    masses = Atoms(
        (0.5, 0.25, 0.25), (0.25, 0.25, 0.5), (math.log(2), 0.0, -math.log(2)), relative_error=1e-6
    )
    found = ProvedProduct(((AtomicLoss(masses), 3),)).delta(0.5, tolerance=1e-9)
    exact = ProvedProduct(((AtomicLoss(replace(masses, relative_error=0.0)), 3),)).delta(
        0.5, tolerance=1e-9
    )
    assert found.lower < (1 - 1e-6) * exact.lower and found.upper > (1 + 1e-6) * exact.upper
