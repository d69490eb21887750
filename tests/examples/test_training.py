"""The published training runs: their plans against the data, and what they certify against what is published."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import pytest

from dpcompose.plan import Plan
from examples.training import make_plans as training

RUNS = training.runs()
BY_RUN = pytest.mark.parametrize("run", RUNS, ids=lambda run: run["id"])
CLAIMED_BUT_NOT_CERTIFIED = {"gboard_es_ES": 8.92, "vaultgemma_1b_b": 2.07}
"""rho 0.81 gives 8.9222, published as 8.9; and under this hypothesis on the unpublished size, VaultGemma exceeds 2."""


def test_all_published_schedules_are_here() -> None:
    assert sum(run["kind"] == "dp_sgd_poisson" for run in RUNS) == 23
    assert len(list(training.HERE.glob("*.toml"))) == len(RUNS)


@BY_RUN
def test_the_plan_is_what_the_data_give(run: dict[str, Any]) -> None:
    path = training.HERE / f"{run['id']}.toml"
    assert path.read_text(encoding="utf-8") == training.plans()[path]


@BY_RUN
def test_the_rate_is_not_below_the_exact_one(run: dict[str, Any]) -> None:
    if run.get("batch_size") is not None:
        exact = Fraction(run["batch_size"]) / Fraction(run["dataset_size"])
        assert exact <= Fraction(training.rate(run)) <= exact * (1 + Fraction(1, 2**52))


@BY_RUN
def test_certified_against_published_and_computed(run: dict[str, Any]) -> None:
    plan = Plan.read(training.HERE / f"{run['id']}.toml")
    bound = plan.composition().epsilon(delta=float(run["delta"]), adjacency=plan.adjacency)
    published = float(run["published"]["epsilon"])
    if run["id"] in CLAIMED_BUT_NOT_CERTIFIED:
        assert published < bound.upper
        assert bound.upper == pytest.approx(CLAIMED_BUT_NOT_CERTIFIED[run["id"]], abs=0.01)
    else:
        assert bound.upper <= published
    if "pld_connect_dots_upper" in run["computed"]:
        # An upper bound with interval 1e-4 or 1e-5, rounded to five decimals: above the truth, and not by much.
        other = float(run["computed"]["pld_connect_dots_upper"])
        assert bound.upper <= other + 5e-6
        assert bound.lower == pytest.approx(other, rel=1e-2)
        assert bound.width <= 1e-6 * bound.upper
    else:
        assert bound.upper <= float(run["computed"]["zcdp_ckks"]) + 5e-5
