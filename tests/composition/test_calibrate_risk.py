"""Calibration to an attacker's success: the result certainly meets the target, and parameters
slightly beyond it do not.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import mpmath
import pytest

from dpcompose import Gaussian, Laplace, calibrate
from dpcompose.composition.composition import Composable
from dpcompose.errors import DomainError, UnreachableError
from dpcompose.plan import Plan, calibrate as calibrate_plan
from tests.cli.runner import invoke


def gaussian_gains(sigma: float, *, rate: float = 0.0, prior: float = 0.5) -> dict[str, Any]:
    """Advantage, power at a rate and Bayes error of a Gaussian of sensitivity 1, in 40 digits."""
    with mpmath.workdps(40):
        mu = 1 / mpmath.mpf(sigma)
        power = mpmath.mpf(0)
        if rate:
            quantile = mpmath.sqrt(2) * mpmath.erfinv(2 * mpmath.mpf(rate) - 1)
            power = mpmath.ncdf(mu + quantile)
        odds = mpmath.log((1 - mpmath.mpf(prior)) / prior)
        error = prior * mpmath.ncdf(odds / mu - mu / 2) + (1 - prior) * mpmath.ncdf(
            -odds / mu - mu / 2
        )
        return {"advantage": 2 * mpmath.ncdf(mu / 2) - 1, "power": power, "error": error}


@pytest.mark.parametrize("advantage", [1e-6, 0.01, 0.1, 0.9, 0.999])
def test_an_advantage_is_met_and_hardly_more(advantage: float) -> None:
    found = calibrate(Gaussian, advantage=advantage)
    assert gaussian_gains(found.value)["advantage"] <= advantage and found.bound.upper <= advantage
    assert gaussian_gains(found.value * (1 - 1e-8))["advantage"] > advantage


@pytest.mark.parametrize(
    ("power", "rate"), [(0.05, 0.001), (0.002, 0.001), (0.9, 0.1), (1e-4, 1e-6)]
)
def test_a_true_positive_rate_is_met_and_hardly_more(power: float, rate: float) -> None:
    found = calibrate(Gaussian, true_positive_rate=power, false_positive_rate=rate)
    assert gaussian_gains(found.value, rate=rate)["power"] <= power and found.bound.upper <= power
    assert gaussian_gains(found.value * (1 - 1e-6), rate=rate)["power"] > power


@pytest.mark.parametrize(
    ("error", "prior"), [(0.4, 0.5), (0.2, 0.3), (0.09, 0.9), (0.4999, 0.5), (1e-3, 0.5)]
)
def test_a_bayes_error_is_met_and_hardly_more(error: float, prior: float) -> None:
    found = calibrate(Gaussian, bayes_error=error, prior=prior)
    assert (
        gaussian_gains(found.value, prior=prior)["error"] >= error
        and found.bound.upper <= 1 - error
    )
    assert gaussian_gains(found.value * (1 - 1e-6), prior=prior)["error"] < error


def test_counts_and_whole_trainings_are_calibrated_too() -> None:
    def questions(number: float) -> Composable:
        return Laplace(10.0) * int(number)

    def training(sigma: float) -> Composable:
        return Gaussian(sigma).sampled(0.01) * 1000

    found = calibrate(questions, advantage=0.3, integer=True, parameter="increasing")
    assert (
        questions(found.value).delta(epsilon=0).upper
        <= 0.3
        < questions(found.value + 1).delta(epsilon=0).lower
    )
    sigma = calibrate(training, advantage=0.2).value
    assert (
        training(sigma).delta(epsilon=0).upper
        <= 0.2
        < training(sigma * 0.999).delta(epsilon=0).lower
    )


@pytest.mark.parametrize(
    "target",
    [
        {},
        {"epsilon": 1.0},
        {"delta": 1e-5},
        {"advantage": 0.1, "epsilon": 1.0, "delta": 1e-5},
        {"advantage": 0.1, "bayes_error": 0.1},
        {"advantage": 0.1, "prior": 0.5},
        {"false_positive_rate": 0.1},
        {"true_positive_rate": 0.1},
        {"true_positive_rate": 0.1, "false_positive_rate": 0.1},
        {"true_positive_rate": 0.1, "false_positive_rate": 0.2},
        {"true_positive_rate": 1.0, "false_positive_rate": 0.2},
        {"true_positive_rate": 0.5, "false_positive_rate": -0.1},
        {"bayes_error": 0.5},
        {"bayes_error": 0.0},
        {"bayes_error": 0.4, "prior": 0.3},
        {"bayes_error": 0.1, "prior": 0.0},
        {"bayes_error": 0.1, "prior": math.nan},
        {"prior": 0.5},
        *(
            {"advantage": wrong}
            for wrong in (0.0, 1.0, -0.1, 1.5, math.nan, math.inf, True, "0.1", [0.1], 10**400)
        ),
    ],
)
def test_what_is_no_target_is_refused(target: dict[str, Any]) -> None:
    with pytest.raises(DomainError):
        calibrate(Gaussian, **target)


def test_a_target_out_of_reach_says_what_to_ask_for() -> None:
    with pytest.raises(UnreachableError, match="larger advantage"):
        calibrate(Gaussian, advantage=1e-15)
    with pytest.raises(UnreachableError, match="smaller Bayes error"):
        calibrate(Gaussian, bayes_error=0.4999, bracket=(0.1, 2.0))


def test_a_plan_is_calibrated_by_the_command(tmp_path: Path) -> None:
    plan = tmp_path / "plan.toml"
    plan.write_text('[[mechanism]]\nkind = "gaussian"\nsigma = 1.0\n')
    words = ["calibrate", str(plan), "--vary", "mechanism.gaussian.sigma"]
    found = json.loads(invoke([*words, "--advantage", "0.1", "--json"]).stdout)
    assert found["value"] == calibrate(Gaussian, advantage=0.1).value and found["target"] == {
        "advantage": 0.1
    }
    assert found["gain"]["upper"] <= 0.1
    page = invoke([*words, "--bayes-error", "0.4"])
    assert page.exit_code == 0 and "right guess" in page.stdout
    rates = ["--true-positive-rate", "0.05", "--false-positive-rate", "0.001"]
    assert "true positive rate <=" in invoke([*words, *rates]).stdout
    with pytest.raises(DomainError, match="orientation"):
        calibrate_plan(Plan.read(plan), words[-1], advantage=0.1, orientation=1)
    for wrong in (
        [],
        ["--epsilon", "1"],
        ["--advantage", "2"],
        rates[:2],
        ["--advantage", "0.1", "--prior", "0.5"],
    ):
        assert invoke([*words, *wrong]).exit_code == 2


def test_targets_near_their_ends_are_reached() -> None:
    """The search extrapolates in logarithms, far beyond floats where the curve is flat."""
    assert calibrate(Gaussian, advantage=0.999999).value < 0.2
    rare = Gaussian(1.0).sampled(1e-310).risk()
    assert 0 <= rare.advantage.lower <= rare.advantage.upper < 1e-309
