"""What a page shows is never more favorable than what was proved: both numbers of a claim are rounded the safe way."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

from dpcompose import Gaussian, Laplace, RandomizedResponse, calibrate
from dpcompose.account import exposure, open_scope
from dpcompose.adaptive import ConcentratedFilter, Odometer
from dpcompose.book import STATEMENTS
from dpcompose.errors import DomainError
from dpcompose.experiment import Experiment, Repeater, about_bob, summarize
from dpcompose.ledger import Amount, Ledger
from dpcompose.plan import Plan, PlanQuestion, account
from dpcompose.report import document, page
from dpcompose.report.account import account_page, comparison_page
from dpcompose.report.book import evaluation_page, experiment_page
from dpcompose.report.ledger import at_least, at_most, exposure_page, listed

PAIR: dict[str, Any] = {"first": [0.75, 0.25], "second": [0.25, 0.75]}
GIVEN: dict[str, dict[str, Any]] = {
    "2.2": {"epsilon": 0.1, "delta": 1e-7, "size": 3},
    "2.3.1": {"epsilon": 0.1, "delta": 1e-7, "without": 0.3, "utility_range": 1.0},
    "3.14": {"epsilon": [0.1, 0.7]},
    "3.15": {"epsilon": [0.1, 0.2, 0.3]},
    "3.16": {"epsilon": [0.1, 0.2], "delta": [1e-7, 1e-8]},
    "3.18": {"epsilon": 0.1},
    "3.19": {"deviations": 3.0, "times": 7, "size": 0.1, "drift": 0.005},
    "3.20": {"epsilon": 0.1, "times": 7, "slack": 1e-6},
    "3.20 tight": {"epsilon": 0.1, "times": 7, "slack": 1e-6},
    "3.20 heterogeneous": {"epsilon": [0.1, 0.2], "slack": 1e-6},
    "3.21": {"epsilon": 0.9, "slack": 1e-6, "times": 7},
    "3.17": {**PAIR, "epsilon": 0.1},
    "3.22": {"epsilon": 0.5, "delta": 1e-5},
    "definition 2.4": {**PAIR, "epsilon": 0.1},
    "definition 3.5": PAIR,
    "definition 3.6": {**PAIR, "delta": 1e-3},
    "remark 3.1": {**PAIR, "delta": 1e-3},
    "example 3.7": {},
    "optimal": {"epsilon": 0.1, "times": 7, "total_delta": 1e-6},
}


@pytest.mark.parametrize("number", STATEMENTS)
def test_a_statement_is_shown_rounded_away_from_what_is_too_favorable(number: str) -> None:
    statement = STATEMENTS[number]
    rows = statement.evaluate(**GIVEN[number])
    shown = dict(
        re.findall(r"(\w+) = ([^;]+)", evaluation_page(statement, GIVEN[number], rows).headline)
    )
    for name, value in rows:
        if name in statement.down:
            assert Fraction(shown[name]) <= Fraction(value)
        else:
            assert Fraction(shown[name]) >= Fraction(value)
    assert set(statement.down) <= set(shown)


def test_a_statement_that_rounds_to_nearest_would_be_too_favorable() -> None:
    """0.1 three times: the double is 0.30000000000000004, of which fifteen digits to nearest are 0.3."""
    rows = STATEMENTS["3.15"].evaluate(epsilon=[0.1, 0.1, 0.1])
    assert "epsilon = 0.300000000000001" in evaluation_page(STATEMENTS["3.15"], {}, rows).headline


def test_an_experiment_shows_the_very_epsilons_of_its_deltas() -> None:
    query = about_bob(RandomizedResponse(0.7))
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=3)
    found = summarize(game, epsilon=1.0, transcripts=1000, seed=1)
    page = experiment_page(found, adversary="repeater")
    curve = page.tables[0]
    known = {float(each): place for place, each in enumerate(found.epsilons)}
    certified, exact = (
        [column.title for column in curve.columns].index(name) for name in ("certified", "exact")
    )
    assert found.exact is not None and found.walked is not None
    for row in curve.rows:
        place = known[float(row[0])]
        assert len(row[0]) <= 8 and Fraction(row[certified]) >= Fraction(
            float(found.ceiling[place])
        )
        assert Fraction(row[exact]) >= Fraction(float(found.walked[place]))
    said = dict(page.facts)["exact"]
    low, high = said.split(" for ")[0].split(" <= delta <= ")
    assert (
        Fraction(low)
        <= Fraction(found.exact.lower)
        <= Fraction(found.exact.upper)
        <= Fraction(high)
    )
    deltas = {delta for theorem in found.theorems for _, delta in theorem.points}
    assert float(page.tables[1].title.rsplit(" ", 1)[1]) in deltas


@pytest.mark.parametrize(("times", "epsilon"), [(10, 0.5), (3, 0.7), (1, 0.1)])
def test_no_exact_delta_is_above_the_one_that_is_certified_of_every_adversary(
    times: int, epsilon: float
) -> None:
    query = about_bob(RandomizedResponse(epsilon))
    game = Experiment(Repeater(query), family=[query.mechanism], rounds=times)
    found = summarize(game, epsilon=times * epsilon + 0.2, transcripts=1000, seed=1)
    assert found.walked is not None and found.exact is not None and found.sound
    assert found.exact.upper <= found.certified.upper == 0.0
    assert (found.walked <= found.ceiling).all() and found.walked[-1] == 0.0
    curve = experiment_page(found, adversary="repeater").tables[0]
    certified, exact = (
        [column.title for column in curve.columns].index(name) for name in ("certified", "exact")
    )
    assert all(Fraction(row[exact]) <= Fraction(row[certified]) for row in curve.rows)
    assert curve.rows[-1][exact] == "0"
    assert not replace(
        found, walked=found.ceiling + 1e-3
    ).sound  # the control: nothing above is hidden


def test_an_exposure_shows_with_which_probability_its_odometer_fails() -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(
        ledger,
        "world",
        filter=ConcentratedFilter(1.0, delta=0.0),
        odometer=Odometer(1e-7),
        actor="Ada",
    )
    account.charge(Gaussian(9.0), actor="Ada", key="0")
    (table,) = exposure_page(exposure(ledger, paths=["world"], delta=1e-6)).tables
    promised, spent = table.rows
    assert promised[2] == "" and Fraction(spent[2]) >= Fraction(1e-7)
    account = open_scope(ledger, "pure", filter=ConcentratedFilter(1.0, delta=0.0), actor="Ada")
    account.charge(Laplace(9.0), actor="Ada", key="0")
    (table,) = exposure_page(exposure(ledger, paths=["pure"], delta=1e-6)).tables
    assert [row[2] for row in table.rows] == ["", ""]


def test_amounts_are_listed_exactly_rounded() -> None:
    amount = Amount.of("0.50000000000000000000000000000001")
    assert (
        listed({"rho": amount}, at_least) == "rho 0.500001"
        and listed({"rho": amount}, at_most) == "rho 0.5"
    )


def test_a_result_is_shown_by_its_class_and_what_is_none_is_named() -> None:
    plan = Plan.parse('[[mechanism]]\nkind = "laplace"\nscale = 9.0\n')
    done = account(plan, PlanQuestion("delta", 1e-6))
    assert page(done) == account_page(done) and document(done)["asked"] == "epsilon"
    assert page([done, done]) == comparison_page([done, done])
    assert document(done.total)["upper"] == done.total.upper
    for wrong in (1, [], [1], None, "text"):
        with pytest.raises(DomainError, match="expected a result that has a page"):
            page(wrong)
    with pytest.raises(DomainError, match="a result that has a document"):
        document([Ledger.open("memory:").verify()])


def test_an_estimate_is_told_from_bounds_beside_them() -> None:
    plan = Plan.parse('[[mechanism]]\nkind = "laplace"\nscale = 9.0\ntimes = 5\n')
    done = account(plan, PlanQuestion("delta", 1e-6))
    cells = {name: epsilon for name, epsilon, _ in comparison_page([done]).tables[1].rows}
    for row in done.comparisons:
        assert cells[row.name].startswith("about ") == (row.kind == "estimate")
    assert sum(each.startswith("about ") for each in cells.values()) == 1


def test_a_calibration_names_what_it_bounds() -> None:
    targets: dict[str, dict[str, Any]] = {
        "advantage": {"advantage": 0.1},
        "chance of a right guess": {"bayes_error": 0.4},
        "true positive rate": {"true_positive_rate": 0.2, "false_positive_rate": 0.1},
        "epsilon": {"epsilon": 1.0, "delta": 1e-6},
    }
    for name, target in targets.items():
        facts = dict(page(calibrate(Gaussian, **target)).facts)
        assert f"<= {name} <=" in facts["certified"]
        assert facts["just beyond"].startswith(f"{name} is only")
