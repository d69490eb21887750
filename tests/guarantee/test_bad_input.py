"""Every public function of `dpcompose.guarantee` with every bad value raises the documented error."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from dpcompose.errors import DomainError
from dpcompose.guarantee import (
    advanced,
    approximate,
    gaussian,
    group,
    heterogeneous,
    optimal,
    renyi,
)
from dpcompose.guarantee.approximate import ApproximateDP
from dpcompose.guarantee.gaussian import GaussianTradeoff
from dpcompose.guarantee.renyi import ConcentratedDP, RenyiDP

WRONG_TYPE: list[Any] = [True, None, "1", 1j, [1.0], math.nan]
NEGATIVE: list[Any] = [*WRONG_TYPE, -1.0, -math.inf]
PROBABILITY: list[Any] = [*NEGATIVE, 1.5, math.inf, 10**400]
OPEN: list[Any] = [*PROBABILITY, 0.0, 1.0]
FINITE: list[Any] = [*NEGATIVE, math.inf, 10**400]
POSITIVE: list[Any] = [*FINITE, 0.0]
COUNT: list[Any] = [*NEGATIVE, -1, 2.0, math.inf]
TIMES: list[Any] = [*COUNT, 10**16]
SIZE: list[Any] = [*COUNT, 0, 10**6]
ORDER: list[Any] = [*FINITE, 1.0, 0.5, 0]

PROMISE = ApproximateDP(0.5, delta=1e-6)
RHO = ConcentratedDP(0.5)
CALLS: list[tuple[str, Callable[..., Any], dict[str, Any], dict[str, list[Any]]]] = [
    (
        "ApproximateDP",
        ApproximateDP,
        {"epsilon": 1.0, "delta": 0.0},
        {"epsilon": NEGATIVE, "delta": PROBABILITY},
    ),
    (
        "ConcentratedDP",
        ConcentratedDP,
        {"rho": 1.0, "delta": 0.0},
        {"rho": FINITE, "delta": PROBABILITY},
    ),
    ("ConcentratedDP.epsilon", RHO.epsilon, {"delta": 0.1}, {"delta": PROBABILITY}),
    ("GaussianTradeoff", GaussianTradeoff, {"mu": 1.0}, {"mu": FINITE}),
    ("RenyiDP", RenyiDP, {"curve": abs}, {"curve": [1.0, None, "x"]}),
    ("RenyiDP()", RenyiDP(lambda a: a).__call__, {"order": 2.0}, {"order": ORDER}),
    ("RenyiDP().epsilon", RenyiDP(lambda a: a).epsilon, {"delta": 0.1}, {"delta": PROBABILITY}),
    (
        "gaussian.profile",
        gaussian.gaussian_profile,
        {"epsilon": 1.0, "mu": 1.0},
        {"epsilon": WRONG_TYPE, "mu": FINITE},
    ),
    (
        "gaussian.epsilon",
        gaussian.gaussian_epsilon,
        {"delta": 0.1, "mu": 1.0},
        {"delta": PROBABILITY, "mu": FINITE},
    ),
    (
        "gaussian.mu_for",
        gaussian.gaussian_mu,
        {"epsilon": 1.0, "delta": 0.1},
        {"epsilon": NEGATIVE, "delta": PROBABILITY},
    ),
    (
        "optimal.homogeneous_delta",
        optimal.homogeneous_delta,
        {"target_epsilon": 1.0, "epsilon": 0.1, "delta": 0.0, "times": 5},
        {"target_epsilon": WRONG_TYPE, "epsilon": NEGATIVE, "delta": PROBABILITY, "times": TIMES},
    ),
    (
        "optimal.homogeneous_epsilon",
        optimal.homogeneous_epsilon,
        {"target_delta": 0.1, "epsilon": 0.1, "delta": 0.0, "times": 5},
        {"target_delta": PROBABILITY, "epsilon": NEGATIVE, "delta": PROBABILITY, "times": TIMES},
    ),
    (
        "heterogeneous_delta",
        heterogeneous.heterogeneous_delta,
        {"target_epsilon": 1.0, "promises": [PROMISE]},
        {
            "target_epsilon": WRONG_TYPE,
            "promises": [1.0, None, [0.1], [(PROMISE, -1)], [(0.1, 0.0)]],
        },
    ),
    (
        "heterogeneous_epsilon",
        heterogeneous.heterogeneous_epsilon,
        {"target_delta": 0.1, "promises": [PROMISE]},
        {
            "target_delta": PROBABILITY,
            "promises": [1.0, None, [0.1], [(PROMISE, -1)], [(0.1, 0.0)]],
        },
    ),
    *(
        (
            function.__name__,
            function,
            {"rho": 1.0, "order": 2.0, "delta": 0.1},
            {"rho": NEGATIVE, "order": ORDER, "delta": PROBABILITY},
        )
        for function in (
            renyi.mironov_epsilon,
            renyi.optimal_moment_epsilon,
            renyi.lossless_epsilon,
        )
    ),
    (
        "renyi.optimal_moment_delta",
        renyi.optimal_moment_delta,
        {"rho": 1.0, "order": 2.0, "epsilon": 1.0},
        {"rho": NEGATIVE, "order": ORDER, "epsilon": NEGATIVE},
    ),
    (
        "renyi.best_epsilon",
        renyi.renyi_epsilon,
        {"curve": lambda a: a, "delta": 0.1},
        {"delta": PROBABILITY, "curve": [1.0, None]},
    ),
    *(
        (
            f"renyi.{function.__name__}",
            function,
            {"promise": RHO, "delta": 0.1},
            {"delta": PROBABILITY, "promise": [0.5, None, PROMISE]},
        )
        for function in (renyi.bun_steinke_epsilon, renyi.concentrated_epsilon)
    ),
    (
        "renyi.concentrated_delta",
        renyi.concentrated_delta,
        {"promise": RHO, "epsilon": 1.0},
        {"epsilon": NEGATIVE},
    ),
    (
        "pure.renyi",
        renyi.pure_renyi,
        {"epsilon": 1.0, "order": 2.0},
        {"epsilon": NEGATIVE, "order": ORDER},
    ),
    ("pure.concentrated", renyi.pure_concentrated, {"epsilon": 1.0}, {"epsilon": FINITE}),
    (
        "group.book",
        group.group_printed,
        {"promise": PROMISE, "size": 2},
        {"size": SIZE, "promise": [0.5, None, RHO]},
    ),
    (
        "group.chained",
        group.group_chained,
        {"promise": PROMISE, "size": 2},
        {"size": SIZE, "promise": [0.5, None, RHO]},
    ),
    (
        "group.group_delta",
        group.group_delta,
        {"target_epsilon": 1.0, "promise": PROMISE, "size": 2},
        {"target_epsilon": FINITE, "size": SIZE},
    ),
    (
        "approximate.blowup",
        approximate.blowup,
        {"alpha": 0.1, "promise": PROMISE},
        {"alpha": PROBABILITY, "promise": [0.5, None, RHO]},
    ),
    (
        "approximate.tradeoff",
        approximate.tradeoff,
        {"alpha": 0.1, "promise": PROMISE},
        {"alpha": PROBABILITY, "promise": [0.5, None, RHO]},
    ),
    (
        "gaussian.tradeoff",
        gaussian.gaussian_tradeoff,
        {"alpha": 0.1, "mu": 1.0},
        {"alpha": PROBABILITY, "mu": FINITE},
    ),
    *(
        (
            f"advanced.{function.__name__}",
            function,
            {"promises": [(PROMISE, 3)], "slack": 0.1},
            {"slack": OPEN},
        )
        for function in (
            advanced.printed_advanced,
            advanced.tight_advanced,
            advanced.advanced_half_squares,
        )
    ),
]
CASES = [
    pytest.param(call, {**good, name: value}, id=f"{label}({name}={value!r:.12})")
    for label, call, good, bad in CALLS
    for name, values in bad.items()
    for value in values
]


@pytest.mark.parametrize(("call", "arguments"), CASES)
def test_bad_values_raise(call: Callable[..., Any], arguments: dict[str, Any]) -> None:
    with pytest.raises(DomainError) as caught:
        call(**arguments)
    assert caught.value.name and caught.value.domain


@pytest.mark.parametrize(("call", "good"), [(call, good) for _, call, good, _ in CALLS])
def test_the_good_values_are_good(call: Callable[..., Any], good: dict[str, Any]) -> None:
    assert call(**good) is not None


@pytest.mark.parametrize("value", [math.nan, -1.0, "x", None])
def test_a_curve_that_returns_nonsense_is_refused(value: Any) -> None:
    with pytest.raises(DomainError):
        renyi.renyi_epsilon(lambda order: value, delta=0.1)
