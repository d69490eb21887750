"""Trade-off functions of compositions: golden values, closed forms in ball arithmetic, exact finite
pairs, laws.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Sequence
from fractions import Fraction
from pathlib import Path

import mpmath
import numpy as np
import pytest
from flint import arb, ctx
from scipy.special import ndtri

from dpcompose import (
    Adjacency,
    BlackBox,
    Concentrated,
    DiscreteGaussian,
    Gaussian,
    GaussianDP,
    Laplace,
    compose,
)
from dpcompose.book import promise
from dpcompose.composition.composition import Composable
from dpcompose.composition.question import PrivacyQuestion
from dpcompose.errors import DomainError
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.mechanisms import DominatingPair
from dpcompose.values.bound import Bound
from oracles import chains
from oracles.gaussian import upper_tail

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]
SMALL = [
    Gaussian(1.0),
    Gaussian(20.0) * 30,
    BlackBox(1.0, delta=1e-5),
    BlackBox(0.1) * 20,
    Laplace(2.0) + Gaussian(3.0),
    Gaussian(1.0).sampled(0.1),
    DiscreteGaussian(2.0) * 3,
]


def golden(name: str) -> dict[str, float]:
    (found,) = [row for row in GOLDEN if row["name"] == name]
    return {key: float(value) for key, value in found["params"].items()} | {
        "expected": float(found["expected"])
    }


def ends(composition: Composable, alpha: float, *, tolerance: float = 1e-12) -> tuple[float, float]:
    curve = composition.profile(tolerance=tolerance).tradeoff(alpha)
    return float(curve.lower), float(curve.upper)


def test_golden() -> None:
    data = golden("tradeoff_eps_delta")
    lower, upper = ends(BlackBox(data["eps"], delta=data["delta"]), data["alpha"])
    assert lower <= data["expected"] <= upper <= lower * (1 + 1e-12)
    data = golden("tradeoff_gaussian")
    lower, upper = ends(GaussianDP(data["mu"]), data["alpha"])
    assert lower <= data["expected"] <= upper
    assert lower == pytest.approx(data["expected"], rel=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_gaussian_noise_encloses_the_normal_quantiles(seed: int) -> None:
    rng = random.Random(seed)
    mu = math.exp(rng.uniform(-4, 2))
    alpha = rng.choice([rng.random(), 10 ** rng.uniform(-300, 0), 1 - 10 ** rng.uniform(-12, 0)])
    curve = GaussianDP(mu).profile().tradeoff(alpha)
    power = GaussianDP(mu).profile().power(alpha)
    with ctx.workprec(1400):
        quantile = _quantile(alpha)
        error, detected = 1 - upper_tail(quantile - arb(mu)), upper_tail(quantile - arb(mu))
        assert arb(float(curve.lower)) <= error <= arb(float(curve.upper))
        assert arb(float(power.lower)) <= detected <= arb(float(power.upper))
    # Relative to whichever is small; next to the point where both are, only as good as delta near 1 can be.
    narrow = min(
        (curve.upper - curve.lower) / curve.upper, (power.upper - power.lower) / power.upper
    )
    assert narrow <= 2e-9 or mu > 3


def _quantile(alpha: float) -> arb:
    """The point with that upper tail, by Newton's method, proved by the tails on either side."""
    point = arb(-float(ndtri(alpha)))
    for _ in range(12):
        density = (-point * point / 2).exp() / (2 * arb.pi()).sqrt()
        point = (point + (upper_tail(point) - arb(alpha)) / density).mid()
    reach = arb(2) ** -200 * (1 + abs(point))
    assert upper_tail(point - reach) > arb(alpha) > upper_tail(point + reach)
    return (point - reach).union(point + reach)


@pytest.mark.parametrize("seed", range(30))
def test_finite_pairs_enclose_the_exact_function(seed: int) -> None:
    rng = random.Random(100 + seed)
    points = [(Fraction(p), Fraction(q)) for p, q in zip(_masses(rng), _masses(rng), strict=True)]
    pair = DominatingPair.atoms(
        upper=[float(p) for p, _ in points],
        lower=[float(q) for _, q in points],
        adjacency=Adjacency.ADD_REMOVE,
    )
    times = rng.choice([1, 1, 2, 3])
    whole = chains.joined(*[points] * times)
    levels = np.array(
        [rng.random(), 10 ** rng.uniform(-8, 0), 0.0, 1.0, float(chains.corners(whole)[1][0])]
    )
    curve = (pair * times).profile().tradeoff(levels)
    for level, lower, upper in zip(levels, curve.lower, curve.upper, strict=True):
        truth = chains.tradeoff(Fraction(float(level)), whole)
        assert Fraction(float(lower)) <= truth <= Fraction(float(upper))
        assert upper - lower <= 1e-9


def _masses(rng: random.Random) -> list[float]:
    """Four dyadic masses of sum 1; the last may be 0."""
    cuts = sorted(rng.choice([8, 16, 32, 64]) for _ in range(1)) + sorted(
        rng.sample(range(65, 255), 2)
    )
    first, second, third = cuts
    parts = [first, second - first, third - second, 256 - third]
    rng.shuffle(parts)
    return [part / 256 for part in parts]


@pytest.mark.parametrize("composition", SMALL, ids=repr)
def test_it_is_a_trade_off_function(composition: Composable) -> None:
    alpha = np.linspace(0.0, 1.0, 41)
    curve = composition.profile().tradeoff(alpha)
    assert np.all(curve.lower <= curve.upper)
    assert np.all(curve.lower[1:] <= curve.upper[:-1])
    assert np.all(curve.lower <= 1 - alpha)
    middle = (curve.upper[2:] + curve.upper[:-2]) / 2
    assert np.all(curve.lower[1:-1] <= middle)
    power = composition.profile().power(alpha)
    assert np.all(power.lower + curve.lower <= 1) and np.all(power.upper + curve.upper >= 1)


@pytest.mark.parametrize("composition", SMALL, ids=repr)
def test_it_is_its_own_inverse(composition: Composable) -> None:
    profile = composition.profile()
    for alpha in (1e-6, 0.01, 0.2, 0.6):
        first = profile.tradeoff(alpha)
        back = profile.tradeoff(np.array([float(first.upper), float(first.lower)]))
        assert back.lower[0] <= alpha <= back.upper[1]


@pytest.mark.parametrize("composition", SMALL, ids=repr)
def test_every_epsilon_bounds_it_from_below(composition: Composable) -> None:
    profile = composition.profile()
    for alpha in (1e-4, 0.05, 0.5):
        curve = profile.tradeoff(alpha)
        for epsilon in (-1.0, 0.0, 0.3, 2.0, 7.0):
            delta = composition.delta(epsilon=epsilon)
            assert curve.upper >= 1 - delta.upper - math.exp(epsilon) * alpha - 1e-15


def test_it_is_the_best_line_under_the_profile() -> None:
    """One epsilon is nearly the best at each level: it comes within 1e-3 of the curve, and never above."""
    profile = (Gaussian(2.0) * 3 + BlackBox(0.2)).profile()
    epsilons = np.linspace(-6.0, 12.0, 300)
    lines = [(epsilon, profile.question.delta(epsilon)) for epsilon in epsilons.tolist()]
    for alpha in (1e-3, 0.1, 0.7):
        found = profile.tradeoff(alpha)
        best = max(1 - delta.upper - math.exp(epsilon) * alpha for epsilon, delta in lines)
        assert found.upper - 1e-3 <= best <= found.upper
        assert found.upper - found.lower <= 2e-9


def test_a_part_without_losses_leaves_a_lower_end() -> None:
    """Gaussian noise keeps the zero-concentrated promise, so its trade-off lies between the ends."""
    curve = (Concentrated(0.1) + Gaussian(2.0)).profile().tradeoff([0.001, 0.05, 0.5])
    inside = GaussianDP(math.sqrt(0.2 + 0.25)).profile().tradeoff([0.001, 0.05, 0.5])
    assert np.all(curve.lower <= inside.lower) and np.all(inside.upper <= curve.upper)
    assert np.all(curve.lower > 0)


def test_nothing_and_everything() -> None:
    levels = np.array([0.0, 0.25, 1.0])
    for free in (compose(), BlackBox(0.0)):
        curve = free.profile().tradeoff(levels)
        assert np.all(curve.lower <= 1 - levels) and np.all(1 - levels <= curve.upper)
        assert np.all(curve.upper - curve.lower <= 1e-14)
    revealed = BlackBox(0.0, delta=1.0).profile().tradeoff(levels)
    assert np.all(revealed.lower == 0.0) and np.all(revealed.upper <= 1e-14)


def test_shapes() -> None:
    profile = Gaussian(1.0).profile()
    assert profile.tradeoff(0.05).lower.shape == ()
    assert profile.tradeoff(np.full((2, 3), 0.05)).upper.shape == (2, 3)
    assert profile.power([]).lower.shape == (0,)
    assert len(set(profile.tradeoff([0.3, 0.3, 0.3]).lower.tolist())) == 1


@pytest.mark.parametrize("alpha", [-0.1, 1.5, math.nan, [0.5, 2.0], "half", [True], None])
def test_levels_are_probabilities(alpha: object) -> None:
    with pytest.raises(DomainError, match="alpha"):
        Gaussian(1.0).profile().tradeoff(alpha)  # pyright: ignore[reportArgumentType]


def test_the_promise_of_a_composition() -> None:
    exact = promise(ApproximateDP(0.5, delta=1e-3), utility_range=1.0).expected(0.3)
    found = promise(BlackBox(0.5, delta=1e-3).profile(), utility_range=1.0).expected(0.3)
    assert found.lower == pytest.approx(exact.lower, rel=1e-12)
    assert found.upper == pytest.approx(exact.upper, rel=1e-12)
    looser = promise((BlackBox(0.5, delta=1e-3) * 2).profile(), utility_range=1.0).expected(0.3)
    assert looser.lower < found.lower < found.upper < looser.upper


@pytest.mark.parametrize("level", [1e-20, 1e-40, 1e-100])
def test_the_power_at_a_tiny_level_is_narrow_after_few_looks(
    level: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    known = PrivacyQuestion.deltas

    def counted(self: PrivacyQuestion, epsilons: Sequence[float]) -> list[Bound]:
        asked.append(len(epsilons))
        return known(self, epsilons)

    monkeypatch.setattr(PrivacyQuestion, "deltas", counted)
    with mpmath.workdps(60):
        tail = mpmath.log(mpmath.mpf(level))
        point = mpmath.findroot(
            lambda x: mpmath.log(mpmath.erfc(x / mpmath.sqrt(2)) / 2) - tail, mpmath.sqrt(-2 * tail)
        )
        truth = mpmath.erfc((point - 1) / mpmath.sqrt(2)) / 2
        found = Gaussian(1.0).profile().power(level)
        assert mpmath.mpf(float(found.lower)) <= truth <= mpmath.mpf(float(found.upper))
    assert float(found.upper) <= float(found.lower) * (1 + 1e-6)
    assert sum(asked) <= 300
