"""Certified intervals contain the golden values of compositions and are as narrow as promised.

The table's parameters are exact decimals and the library's are doubles, which changes a value by
less than 1e-12 of itself; the truth at the doubles is tested by the oracles.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from dpcompose import (
    Adjacency,
    BlackBox,
    Bound,
    DiscreteGaussian,
    DiscreteLaplace,
    Exponential,
    Gaussian,
    GaussianDP,
    Laplace,
    RandomizedResponse,
    calibrate,
    compose,
)
from dpcompose.composition import Composable
from dpcompose.loss.product import Product
from dpcompose.mechanisms import DominatingPair

GOLDEN = json.loads((Path(__file__).parents[1] / "data" / "golden.json").read_text())["golden"]
ROUNDING = 1e-12
# Groups without a closed form are known by piecewise linear power functions: "about four digits".
CLOSED, NUMERICAL, PIECEWISE = 1e-12, 1e-6, 1e-3


class Row:
    """The parameters of a row, decimals rounded to floats; `level` is the epsilon at which delta is asked."""

    def __init__(self, params: dict[str, Any]) -> None:
        numbers = {name: self._number(value) for name, value in params.items()}
        self.__dict__ |= {"k": 1, "delta": 0.0} | numbers
        self.level: Any = numbers.get("eps_g", numbers.get("eps_target", numbers.get("eps")))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(name)  # a parameter that this row does not have

    def _number(self, value: Any) -> Any:
        return (
            [self._number(each) for each in value]
            if isinstance(value, list)
            else value
            if isinstance(value, int)
            else float(value)
        )


def blackbox(row: Row) -> Composable:
    return BlackBox(row.eps, delta=row.delta) * row.k


def different(row: Row) -> Composable:
    deltas = row.delta or [0.0] * len(row.eps)
    return compose(
        *(BlackBox(epsilon, delta=delta) for epsilon, delta in zip(row.eps, deltas, strict=True))
    )


def sampled(row: Row) -> Composable:
    return Gaussian(row.sigma).sampled(row.q)


def discrete_gaussian(row: Row) -> Composable:
    return DiscreteGaussian(row.sigma, shift=row.sens)


def removed(row: Row) -> Product:
    asked: Any = Gaussian(1 / row.mu).sampled(row.q)
    ((pair, times),) = asked.pairs(Adjacency.ADD_REMOVE)
    return Product(((pair.remove, times),))


def added(row: Row) -> Product:
    asked: Any = Gaussian(1 / row.mu).sampled(row.q)
    ((pair, times),) = asked.pairs(Adjacency.ADD_REMOVE)
    return Product(((pair.add, times),))


def crowd(row: Row) -> Any:
    return Gaussian(1 / row.mu).sampled(row.q).group(row.g)


def replaced(row: Row) -> Composable:
    assert row.k == 2  # a record replaced is a group of two
    return BlackBox(row.eps)


def power(composed: Composable, false_positive_rate: float) -> Bound:
    return composed.risk(false_positive_rate=false_positive_rate).true_positive_rate


def exactly(value: float | None) -> Bound:
    assert value is not None
    return Bound(value, value)


def rho(promise: Any) -> Bound:
    return exactly(promise.rho)


def point(curve: Any) -> Bound:
    return Bound(float(curve.lower), float(curve.upper))


def atoms_of_randomized_response(row: Row) -> Composable:
    odds, others = math.exp(row.eps), row.k - 1
    masses = [odds / (odds + others), *[1 / (odds + others)] * others]
    return DominatingPair.atoms(upper=masses, lower=masses[::-1], adjacency=Adjacency.ADD_REMOVE)


# A row's name, how the library is asked for it, and the relative width that is promised.
Asked = Callable[[Row], Bound]
TABLE: list[tuple[str, Asked, float]] = [
    ("kov_delta", lambda row: blackbox(row).delta(epsilon=row.level), CLOSED),
    ("kov_eps", lambda row: blackbox(row).epsilon(delta=row.delta_g), CLOSED),
    ("br_kfold_vs_kov", lambda row: blackbox(row).delta(epsilon=row.level), CLOSED),
    ("mv_delta_pure", lambda row: different(row).delta(epsilon=row.level), CLOSED),
    ("mv_delta", lambda row: different(row).delta(epsilon=row.level), CLOSED),
    ("group_tight_delta_pure", lambda row: replaced(row).delta(epsilon=row.level, adjacency=Adjacency.REPLACE), CLOSED),
    ("group_tight_delta_pure", lambda row: BlackBox(row.eps).group(row.k).delta(epsilon=row.level), CLOSED),
    ("group_tight_delta", lambda row: BlackBox(row.eps, delta=row.delta).group(row.k).delta(epsilon=row.level), CLOSED),
    ("group_poisson_gauss_delta", lambda row: crowd(row).delta(epsilon=row.level), PIECEWISE),
    ("laplace_kfold_delta", lambda row: (Laplace(1 / row.eps0) * row.k).delta(epsilon=row.level), NUMERICAL),
    ("gaussian_delta", lambda row: Gaussian(1 / row.mu).delta(epsilon=row.level), CLOSED),
    ("gaussian_delta", lambda row: Gaussian(1.0, sensitivity=row.mu).delta(epsilon=row.level), CLOSED),
    ("gaussian_delta", lambda row: GaussianDP(row.mu).delta(epsilon=row.level), CLOSED),
    ("gaussian_delta", lambda row: (GaussianDP(row.mu / 2) * 4).delta(epsilon=row.level), CLOSED),
    ("saddlepoint_exact", lambda row: Gaussian(1 / row.mu).delta(epsilon=row.level), CLOSED),
    ("discrete_laplace_delta", lambda row: DiscreteLaplace(1 / row.a, shift=row.sens).delta(epsilon=row.level), CLOSED),
    ("discrete_gaussian_delta", lambda row: discrete_gaussian(row).delta(epsilon=row.level), CLOSED),
    ("krr_delta", lambda row: RandomizedResponse(row.eps, categories=row.k).delta(epsilon=row.level), CLOSED),
    ("krr_delta", lambda row: atoms_of_randomized_response(row).delta(epsilon=row.level), CLOSED),
    ("em_br_delta", lambda row: Exponential(row.eps).delta(epsilon=row.level), CLOSED),
    ("br_kfold_delta", lambda row: (Exponential(row.eps) * row.k).delta(epsilon=row.level), CLOSED),
    ("poisson_gauss_remove", lambda row: Gaussian(1 / row.mu).sampled(row.q).delta(epsilon=row.level), CLOSED),
    ("poisson_gauss_remove", lambda row: removed(row).delta(row.level, tolerance=1e-9), CLOSED),
    ("poisson_gauss_add", lambda row: added(row).delta(row.level, tolerance=1e-9), CLOSED),
    ("subsample_eps_amplified", lambda row: exactly(BlackBox(row.eps).sampled(row.q).pure()), CLOSED),
    ("subsample_eps_amplified", lambda row: BlackBox(row.eps).sampled(row.q).epsilon(delta=0.0), CLOSED),
    ("subsample_eps_amplified", lambda row: Laplace(1 / row.eps).sampled(row.q).epsilon(delta=0.0), CLOSED),
    ("rdp_laplace", lambda row: Laplace(1 / row.eps).renyi(row.alpha), CLOSED),
    ("rdp_rr", lambda row: RandomizedResponse(row.eps).renyi(row.alpha), CLOSED),
    ("pure_to_rdp_stable", lambda row: BlackBox(row.eps).renyi(row.alpha), CLOSED),
    ("rdp_sgm_integer", lambda row: sampled(row).renyi(row.alpha), NUMERICAL),
    ("rdp_sgm_fractional", lambda row: sampled(row).renyi(row.alpha), NUMERICAL),
    ("poisson_rdp_t_steps", lambda row: (sampled(row) * row.t).renyi(row.alpha), NUMERICAL),
    ("em_zcdp_rho", lambda row: rho(Exponential(row.eps).zcdp()), CLOSED),
    ("tradeoff_gaussian", lambda row: point(GaussianDP(row.mu).profile().tradeoff(row.alpha)), NUMERICAL),
    ("tradeoff_eps_delta", lambda row: point(blackbox(row).profile().tradeoff(row.alpha)), NUMERICAL),
    ("tpr_at_fpr_gaussian", lambda row: power(GaussianDP(row.mu), row.fpr), NUMERICAL),
    ("rero_gaussian", lambda row: GaussianDP(row.mu).risk(prior=row.kappa).reconstruction, NUMERICAL),
    ("rero_pure", lambda row: BlackBox(row.eps).risk(prior=row.kappa).reconstruction, NUMERICAL),
]  # fmt: skip


def rows(name: str) -> list[dict[str, Any]]:
    found = [row for row in GOLDEN if row["name"] == name]
    assert found, name
    return found


@pytest.mark.parametrize(
    ("row", "asked", "width"),
    [
        pytest.param(row, asked, width, id=name)
        for name, asked, width in TABLE
        for row in rows(name)
    ],
)
def test_the_interval_contains_the_value_and_is_narrow(
    row: dict[str, Any], asked: Asked, width: float
) -> None:
    bound, truth = asked(Row(row["params"])), float(Fraction(row["expected"]))
    assert bound.lower * (1 - ROUNDING) <= truth <= bound.upper * (1 + ROUNDING)
    assert bound.width <= width * abs(truth)


def test_the_largest_epsilon_of_example_3_7() -> None:
    (row,) = rows("ex37_eps0_optimal")
    delta = math.exp(-float(row["params"]["log_inv_delta"]))
    found = calibrate(
        lambda epsilon: BlackBox(epsilon) * row["params"]["k"], epsilon=float(row["params"]["eps_prime"]), delta=delta,
        parameter="increasing", bracket=(1e-6, 1.0),
    )  # fmt: skip
    assert found.value == pytest.approx(float(row["expected"]), rel=1e-9)
    assert found.value <= float(row["expected"]) * (1 + ROUNDING)


def test_the_noise_of_the_analytic_gaussian_mechanism() -> None:
    (row,) = rows("gaussian_mu_for")
    found = calibrate(
        Gaussian, epsilon=float(row["params"]["eps"]), delta=float(row["params"]["delta"])
    )
    assert 1 / found.value == pytest.approx(float(row["expected"]), rel=1e-9)
    assert 1 / found.value <= float(row["expected"]) * (1 + ROUNDING)


def test_the_examples_of_the_issue() -> None:
    many = compose(BlackBox(1 / 801) * 10_000)
    for delta, epsilon in ((math.exp(-32), 0.890468147886613), (1e-30, 1.387939164322170)):
        bound = many.epsilon(delta=delta)
        assert abs(bound.lower - epsilon) <= 1e-12 and abs(bound.upper - epsilon) <= 1e-12
