"""Argument checks accept exactly their domain."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from dpcompose import check
from dpcompose.errors import DomainError
from dpcompose.values.adjacency import Adjacency, Orientation

INF, LEAST, BELOW_ONE, ABOVE_ONE = math.inf, 5e-324, math.nextafter(1, 0), math.nextafter(1, 2)
REALS = [-INF, -1e308, -1.0, -LEAST, 0.0, LEAST, 0.5, BELOW_ONE, 1.0, ABOVE_ONE, 1e308, INF]
DOMAINS: list[tuple[Callable[[str, Any], float], list[float]]] = [
    (check.real, REALS),
    (check.finite, REALS[1:-1]),
    (check.positive, REALS[5:-1]),
    (check.nonnegative, REALS[4:-1]),
    (check.probability, REALS[4:9]),
    (check.open_probability, REALS[5:8]),
]
NUMBERS = [
    True,
    False,
    None,
    "1",
    b"1",
    1j,
    [1.0],
    math.nan,
    np.nan,
    np.bool_(True),
    np.array(1.0),
    10**400,
]


@pytest.mark.parametrize(
    ("guard", "domain"), [pytest.param(*row, id=row[0].__name__) for row in DOMAINS]
)
def test_a_guard_lets_its_domain_pass_and_nothing_else(
    guard: Callable[[str, Any], float], domain: list[float]
) -> None:
    for value in REALS:
        for given in (value, np.float64(value), Fraction(value) if math.isfinite(value) else value):
            if value in domain:
                assert guard("x", given) == value and type(guard("x", given)) is float
            else:
                with pytest.raises(DomainError, match=r"x( = | is missing).*expected"):
                    guard("x", given)
    for given in NUMBERS:
        with pytest.raises(DomainError, match=r"x( = | is missing)"):
            guard("x", given)


@pytest.mark.parametrize(
    "given", [Fraction(1, 10**400), Fraction(-1, 10**400), np.longdouble("1e-4000")]
)
def test_what_is_below_the_least_double_is_not_zero(given: Any) -> None:
    for guard, _ in DOMAINS:
        with pytest.raises(DomainError, match="5e-324 in size, the least positive double"):
            guard("x", given)
    assert check.positive("x", Fraction(5e-324)) == 5e-324 and check.real("x", Fraction(0)) == 0


def test_no_negative_zero_comes_through() -> None:
    for guard in (check.nonnegative, check.probability):
        assert math.copysign(1.0, guard("x", -0.0)) == 1


@pytest.mark.parametrize(
    "given",
    [True, 1.0, "1", None, math.nan, math.inf, 1j, np.float64(1), Fraction(1), np.bool_(True)],
)
def test_only_integers_are_integers(given: Any) -> None:
    for guard in (check.count, check.integer):
        with pytest.raises(DomainError, match="times"):
            guard("times", given)


def test_integers() -> None:
    for given in (3, np.int64(3), np.uint8(3)):
        assert check.count("n", given) == 3 and type(check.count("n", given)) is int
        assert check.integer("n", given) == 3 and type(check.integer("n", given)) is int
    assert check.integer("n", -(10**400)) == -(10**400)
    assert check.count("n", 2, least=2) == 2
    for given, least in ((-1, 0), (1, 2)):
        with pytest.raises(DomainError, match=f"integer >= {least}"):
            check.count("n", given, least=least)


def test_an_error_carries_its_data() -> None:
    with pytest.raises(DomainError) as caught:
        check.positive("sigma", -1, "Try a larger one")
    error = caught.value
    assert (error.name, error.value, error.remedy) == ("sigma", -1, "Try a larger one")
    assert (
        isinstance(error, ValueError)
        and str(error) == "sigma = -1: expected a finite number > 0. Try a larger one"
    )
    with pytest.raises(DomainError) as caught:
        check.positive("sigma", "x" * 10_000)
    assert len(str(caught.value)) < 200


def test_a_member_is_one_of_its_own_enumeration() -> None:
    assert check.member("adjacency", Adjacency.REPLACE, Adjacency) is Adjacency.REPLACE
    for given in (*NUMBERS, "replace", [], Orientation.FREE):
        with pytest.raises(
            DomainError,
            match=r"adjacency( = .*| is missing): expected Adjacency\.ADD_REMOVE, or another",
        ):
            check.member("adjacency", given, Adjacency)
