"""Rounds granted beside what OpenDP's and diffprivlib's filters grant for the same target, where theirs are sound.

Their published formulas, in Fractions or in floats rounded in their favor:

OpenDP 0.16, `make_fully_adaptive_composition` and `make_privacy_filter` (combinators/sequential_composition): sums of
epsilon, of (epsilon, delta), of rho and of (rho, delta), refused beyond d_out. Gaussian noise is (sensitivity /
scale)^2 / 2, `make_pureDP_to_zCDP` epsilon^2 / 2, and `make_zCDP_to_approxDP` the conversion of
[CanonneKamathSteinke2020, Corollary 13]; the largest rho for a target is a search.

diffprivlib, `BudgetAccountant` (accountant.py), slack 0: the sum of the epsilons, and 1 - prod (1 - delta_i). With
slack it takes the least of three totals for parameters fixed in advance [KairouzOhViswanath2015] and stops by it: a
natural filter, which is not sound for parameters chosen along the way, and not compared.

Their sums are taken exactly: a limit of 1 holds 100 doubles 0.01 only if their sum is rounded down.
"""

from __future__ import annotations

import math
from fractions import Fraction

import pytest

from dpcompose import BlackBox, DiscreteLaplace, Gaussian, Laplace
from dpcompose.adaptive import (
    BasicFilter,
    Budget,
    Filter,
    GaussianFilter,
    PureFilter,
)
from dpcompose.adaptive.theorems import best_order
from dpcompose.composition import Composable

TARGETS = [(0.5, 1e-9), (1.0, 1e-6), (3.0, 1e-5), (8.0, 1e-8)]
EPSILONS = [0.003, 0.0107, 0.043, 0.125, 0.31]
SIGMAS = [1.3, 7.0, 23.0, 111.0]


def rounds(filter: Filter, mechanism: Composable, *, delta: float | None = None) -> int:
    """How many of one mechanism: what `step` would grant, its exact sums divided."""
    state = filter.start()
    asked = filter.step(state, mechanism, delta=delta)[1].price
    most = min(
        limit // asked[currency] for currency, limit in filter.limits.items() if asked[currency]
    )
    for _ in range(min(int(most), 3)):
        state, decision = filter.step(state, mechanism, delta=delta)
        assert decision.granted
    return int(most)


def opendp_delta(rho: float, epsilon: float) -> float:
    """Their cdp_delta: the least over orders of e^((a - 1)(a rho - epsilon)) / (a - 1) (1 - 1 / a)^a."""
    low, high = 1.01, (epsilon + 1) / (2 * rho) + 2
    for _ in range(200):
        order = (low + high) / 2
        slope = (2 * order - 1) * rho - epsilon + math.log1p(-1.0 / order)
        low, high = (order, high) if slope < 0 else (low, order)
    order = (low + high) / 2
    return math.exp((order - 1) * (order * rho - epsilon) + order * math.log1p(-1 / order)) / (
        order - 1
    )


def opendp_rho(epsilon: float, delta: float) -> float:
    """The largest rho they turn into the target, with a hair in their favor."""
    low, high = 0.0, epsilon
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if opendp_delta(middle, epsilon) <= delta else (low, middle)
    return high * (1 + 1e-12)


def test_their_conversion_is_the_published_one() -> None:
    """theory.md, D.6: rho 0.5 at epsilon 5."""
    assert opendp_delta(0.5, 5.0) == pytest.approx(2.89612280938479501493e-6, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("each", EPSILONS)
def test_pure_mechanisms_under_opendp_zcdp(epsilon: float, delta: float, each: float) -> None:
    theirs = int(opendp_rho(epsilon, delta) / (each**2 / 2))
    ours = Budget(epsilon, delta, only="zcdp")
    assert rounds(ours, BlackBox(each)) >= theirs
    assert rounds(ours, Laplace(1 / each)) >= theirs


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_mechanisms_under_opendp_zcdp(epsilon: float, delta: float, sigma: float) -> None:
    theirs = int(opendp_rho(epsilon, delta) / (1 / (2 * sigma**2)))
    assert rounds(Budget(epsilon, delta, only="zcdp"), Gaussian(sigma)) >= theirs
    renyi = Budget(epsilon, delta, only="renyi", orders=(best_order(epsilon, delta),))
    assert rounds(renyi, Gaussian(sigma)) >= theirs
    assert rounds(Budget(epsilon, delta, only="gaussian"), Gaussian(sigma)) >= theirs


@pytest.mark.parametrize("count", [3, 7, 8, 10, 100, 125])
def test_exact_ties_are_granted_where_the_target_has_a_delta(count: int) -> None:
    """A pure budget that implies (1, 1e-6) is a little above 1: roundings cost no round."""
    filter = Budget(1.0, 1e-6, only="pure")
    assert rounds(filter, BlackBox(1 / count)) == rounds(filter, Laplace(float(count))) == count


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("each", EPSILONS)
def test_pure_sums(epsilon: float, delta: float, each: float) -> None:
    """OpenDP's sum of epsilons and diffprivlib's, slack 0."""
    theirs = int(Fraction(epsilon) / Fraction(each))
    assert rounds(Budget(epsilon, delta, only="pure"), BlackBox(each)) >= theirs
    assert rounds(Budget(epsilon, delta, only="pure"), Laplace(1 / each)) >= theirs
    assert rounds(Budget(epsilon, only="pure"), BlackBox(each)) >= theirs
    assert rounds(Budget(epsilon, delta, only="basic"), BlackBox(each)) >= theirs


def test_dyadic_ties_of_promises_are_granted() -> None:
    """Eight promises of 1/8 fill a limit of 1 exactly."""
    assert rounds(PureFilter(1.0), BlackBox(0.125)) == 8
    assert rounds(BasicFilter(1.0, delta=0.0), BlackBox(0.0625)) == 16


def test_dyadic_ties_of_noise_are_granted() -> None:
    """A quotient by a power of two is exact, and so is its price."""
    assert rounds(PureFilter(1.0), Laplace(8.0)) == 8
    assert rounds(GaussianFilter(1.0), Gaussian(4.0)) == 16


def test_other_noise_pays_a_rounding_more_than_its_promise() -> None:
    """What is left to wish: a largest loss that is known to a rounding costs the last round of an exact tie."""
    for noise, count in ((DiscreteLaplace(8.0), 8), (Laplace(10.0), 10)):
        assert (
            rounds(PureFilter(1.0), noise) in (count - 1, count)
            and rounds(PureFilter(1.0 + 1e-14), noise) == count
        )


@pytest.mark.parametrize(("epsilon", "delta"), TARGETS)
@pytest.mark.parametrize("charge", [(0.0107, 1e-11), (0.043, 3e-10)])
def test_approximate_sums(epsilon: float, delta: float, charge: tuple[float, float]) -> None:
    """OpenDP's sums, and diffprivlib's product of deltas, slack 0."""
    mechanism = BlackBox(charge[0], delta=charge[1])
    opendp = min(
        int(Fraction(epsilon) / Fraction(charge[0])), int(Fraction(delta) / Fraction(charge[1]))
    )
    product = int(math.log1p(-delta) / math.log1p(-charge[1]) * (1 + 1e-12))
    diffprivlib = min(int(Fraction(epsilon) / Fraction(charge[0])), product)
    assert rounds(Budget(epsilon, delta, only="basic"), mechanism) >= max(opendp, diffprivlib)


def test_the_product_of_deltas_grants_more_only_where_delta_is_large() -> None:
    """1 - prod (1 - delta_i), which is sound too, is below the sum by at most delta^2 / 2: a round at delta 1/2."""
    assert rounds(BasicFilter(9.0, delta=0.5), BlackBox(0.1, delta=0.125)) == 4
    assert int(math.log1p(-0.5) / math.log1p(-0.125)) == 5
    for count in (10, 1000, 100_000):
        each = 1e-6 / count * (1 - 1e-9)
        assert (
            int(math.log1p(-1e-6) / math.log1p(-each))
            == int(Fraction(1e-6) / Fraction(each))
            == count
        )
