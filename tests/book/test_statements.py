"""Statements by number: everything that command line and pages need, and every bad value."""

from __future__ import annotations

import math
from typing import Any

import pytest

from dpcompose import book
from dpcompose.errors import DomainError

GOOD: dict[str, dict[str, Any]] = {
    "definition 2.4": {"first": [0.75, 0.25], "second": [0.25, 0.75], "epsilon": 0.5},
    "2.2": {"epsilon": 0.5, "delta": 1e-6, "size": 3},
    "2.3.1": {"epsilon": 0.5, "delta": 1e-3, "without": 0.3, "utility_range": 1.0},
    "3.14": {"epsilon": [0.1, 0.2]},
    "3.15": {"epsilon": [0.1, 0.2, 0.3]},
    "3.16": {"epsilon": [0.1, 0.2], "delta": [0.0, 1e-6]},
    "definition 3.5": {"first": [0.75, 0.25], "second": [0.25, 0.75]},
    "definition 3.6": {"first": [0.75, 0.25], "second": [0.25, 0.75], "delta": 0.25},
    "remark 3.1": {"first": [0.75, 0.25], "second": [0.5, 0.5], "delta": 0.25},
    "3.17": {"first": [0.75, 0.25], "second": [0.25, 0.75], "epsilon": 0.5},
    "3.18": {"epsilon": 1.0},
    "3.19": {"deviations": 3.0, "times": 10, "size": 0.1, "drift": 0.005},
    "3.20": {
        "epsilon": 0.0012484394506866417,
        "delta": 0.0,
        "times": 10_000,
        "slack": 1.2664165549094176e-14,
    },
    "3.20 tight": {"epsilon": 0.1, "delta": 0.0, "times": 100, "slack": 1e-6},
    "3.20 heterogeneous": {"epsilon": [0.1, 0.2], "delta": [0.0, 1e-9], "slack": 1e-6},
    "3.21": {"epsilon": 0.9, "slack": 1e-6, "times": 100},
    "example 3.7": {"epsilon": 1 / 801},
    "3.22": {"epsilon": 0.5, "delta": 1e-5},
    "optimal": {"epsilon": 0.1, "delta": 0.0, "times": 100, "total_delta": 1e-6},
}
ALWAYS_BAD: list[Any] = [math.nan, -1.0, -math.inf, True, None, "1", 1j]
BAD = {
    "first": ALWAYS_BAD,
    "second": ALWAYS_BAD,
    "epsilon": [*ALWAYS_BAD, 10**400],
    "delta": [*ALWAYS_BAD, 1.5, math.inf],
    "slack": [*ALWAYS_BAD, 0.0, 1.0, 1.5, math.inf],
    "total_delta": [*ALWAYS_BAD, 1.5, math.inf],
    "times": [*ALWAYS_BAD, 0.5, -1, 10**400, math.inf],
    "size": [*ALWAYS_BAD, math.inf],
    "deviations": [*ALWAYS_BAD, 0.0, math.inf],
    "drift": [math.nan, math.inf, True, None, "1"],
    "without": [*ALWAYS_BAD, math.inf, 1.5],
    "utility_range": [*ALWAYS_BAD, 0.0],
}
FINITE_EPSILON = ["3.17", "3.20", "3.20 tight", "3.21", "3.22", "example 3.7"]
CASES = [
    pytest.param(
        number,
        {**good, name: [value] if isinstance(good[name], list) else value},
        id=f"{number}:{name}={value!r:.9}",
    )
    for number, good in GOOD.items()
    for name in good
    for value in BAD[name]
]


def test_every_statement_is_tried() -> None:
    assert GOOD.keys() == book.STATEMENTS.keys()


@pytest.mark.parametrize("number", GOOD)
def test_a_statement_says_what_it_is(number: str) -> None:
    statement = book.STATEMENTS[number]
    assert statement.number == number and statement.title and statement.says and statement.caveats
    assert statement.reference.startswith("[") and statement.reference.endswith("]")
    values = statement.evaluate(**GOOD[number])
    assert values and all(isinstance(name, str) and not math.isnan(value) for name, value in values)
    required = {parameter.name for parameter in statement.parameters if parameter.required}
    assert required <= GOOD[number].keys() == {parameter.name for parameter in statement.parameters}


def test_theorem_3_20_prints_what_the_example_gives() -> None:
    statement = book.STATEMENTS["3.20"]
    arguments = {"epsilon": 0.0012484394506866417, "times": 10_000, "slack": 1.2664165549094176e-14}
    values = dict(statement.evaluate(**arguments))
    assert f"{values['epsilon']:.15g}" == "1.01434730431488"
    assert any("1/801 exceeds 1" in caveat and "optimum" in caveat for caveat in statement.caveats)


@pytest.mark.parametrize(("number", "arguments"), CASES)
def test_bad_values_raise(number: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        book.STATEMENTS[number].evaluate(**arguments)


@pytest.mark.parametrize("number", FINITE_EPSILON)
def test_an_infinite_epsilon_is_refused_where_the_formula_has_none(number: str) -> None:
    with pytest.raises(DomainError):
        book.STATEMENTS[number].evaluate(**{**GOOD[number], "epsilon": math.inf})


@pytest.mark.parametrize("number", GOOD)
def test_missing_and_unknown_parameters_are_named(number: str) -> None:
    statement = book.STATEMENTS[number]
    with pytest.raises(DomainError, match="rho"):
        statement.evaluate(**GOOD[number], rho=1.0)
    for parameter in statement.parameters:
        if parameter.required:
            rest = {name: value for name, value in GOOD[number].items() if name != parameter.name}
            with pytest.raises(DomainError, match=parameter.name):
                statement.evaluate(**rest)


@pytest.mark.parametrize(
    "promises", [3, None, [1.0], [(1.0,)], [(1.0, 0.0, 0.0)], [(math.nan, 0.0)], [(1.0, 2.0)], "ab"]
)
def test_bad_pairs(promises: Any) -> None:
    with pytest.raises(DomainError):
        book.basic(promises)
    with pytest.raises(DomainError):
        book.advanced_heterogeneous(promises, slack=0.1)


@pytest.mark.parametrize(
    ("number", "expected"),
    [
        (
            "definition 2.4",
            {"lower": 0.75 - 0.25 * math.exp(0.5), "upper": 0.75 - 0.25 * math.exp(0.5)},
        ),
        ("definition 3.5", {"lower": math.log(3) / 2, "upper": math.log(3) / 2}),
        ("definition 3.6", {"lower": math.log(2), "upper": math.log(2)}),
        ("remark 3.1", {"lower": 0.0, "upper": 0.0}),
        (
            "3.17",
            {
                "part_1": 0.75 - 0.25 * math.exp(0.5),
                "part_2": (0.75 - 0.25 * math.exp(0.5)) / (1 + math.exp(0.5)),
            },
        ),
        ("3.22", {"value": math.sqrt(2 * math.log(1.25e5)) / 0.5}),
    ],
)
def test_the_statements_about_two_distributions(number: str, expected: dict[str, float]) -> None:
    statement = book.STATEMENTS[number]
    values = dict(statement.evaluate(**GOOD[number]))
    assert values == pytest.approx(expected, rel=1e-12)
    assert ("lower" in values) == ("lower" in statement.down)


def test_both_orders_count_where_the_statement_says_so() -> None:
    skewed = {"first": [0.5, 0.5], "second": [0.5 + 2**-10, 0.5 - 2**-10]}
    for number, others in (("definition 2.4", {"epsilon": 0.0}), ("remark 3.1", {"delta": 2**-12})):
        turned = {"first": skewed["second"], "second": skewed["first"]}
        one, other = (
            book.STATEMENTS[number].evaluate(**pair, **others) for pair in (skewed, turned)
        )
        assert one == other and dict(one)["upper"] > 0
    one, other = (
        dict(book.STATEMENTS["definition 3.5"].evaluate(**pair))["upper"]
        for pair in (skewed, turned)
    )
    assert one != other


@pytest.mark.parametrize("epsilon", [[], [0.1], [0.1, 0.2, 0.3]])
def test_theorem_3_14_is_about_two(epsilon: list[float]) -> None:
    with pytest.raises(DomainError, match=r"two values.*3\.15"):
        book.STATEMENTS["3.14"].evaluate(epsilon=epsilon)


def test_as_many_deltas_as_epsilons() -> None:
    with pytest.raises(DomainError, match="as many"):
        book.STATEMENTS["3.16"].evaluate(epsilon=[0.1, 0.2], delta=[0.1])


@pytest.mark.parametrize("profile", [3, None, abs])
def test_a_promise_needs_a_guarantee(profile: Any) -> None:
    with pytest.raises(DomainError, match="profile"):
        book.promise(profile, utility_range=1.0)
