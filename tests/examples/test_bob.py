"""Bob's table against the registry, and what his plan certifies."""

from __future__ import annotations

import json
import math
import tomllib
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpcompose import Adjacency
from dpcompose.plan import Plan, account
from dpcompose.report import html
from examples.bob import make_plan as bob
from examples.bob.page import bob_page, subtotals
from examples.census.make_plans import DATA as CENSUS

REGISTRY: dict[str, Any] = json.loads(
    (bob.HERE.parent / "data" / "deployments.json").read_text(encoding="utf-8")
)
ENTRIES: dict[str, dict[str, Any]] = {
    **{row["file"]: row["parameters"] for row in REGISTRY["deployments"]},
    **{row["name"]: row for row in REGISTRY["other_deployments"]},
}
EXACT: dict[str, Any] = json.loads(CENSUS.read_text(encoding="utf-8"), parse_float=Decimal)
TABLE = bob.load()
ROWS = {row.entry: row for row in TABLE.deployments}
TWICE = {"telemetry_collection_windows.yaml", "sas_data_maker_vulnerable_persons.yaml"}
"""Deployments of which a part states a number and a part does not."""


def certified(text: str) -> Any:
    plan = Plan.parse(text)
    return plan.composition().epsilon(delta=bob.DELTA, adjacency=plan.adjacency)


def test_every_entry_is_counted_or_overlaps_or_is_unknown() -> None:
    named = [row.entry for row in TABLE.deployments]
    named += [row["entry"] for row in (*TABLE.unknown, *TABLE.overlaps)]
    assert set(named) == set(ENTRIES)
    assert {entry for entry, count in Counter(named).items() if count > 1} == TWICE
    assert {row["with"] for row in TABLE.overlaps} <= set(ROWS)


def test_unknown_are_exactly_the_entries_without_a_usable_number() -> None:
    without = {row["file"] for row in REGISTRY["deployments"] if not row["parameters"]}
    assert without == set(REGISTRY["summary"]["no_numeric_budget"])
    unknown = {row["entry"] for row in TABLE.unknown}
    assert without <= unknown
    # FLEX has an epsilon that is not its budget; the rest are ranges, formulas and parts of what is counted.
    assert {each for each in unknown - without if each in ENTRIES and each.endswith(".yaml")} == {
        "uber.yaml",
        *TWICE,
    }


@pytest.mark.parametrize("row", TABLE.deployments, ids=lambda row: row.name)
def test_what_is_published_is_what_the_registry_says(row: bob.Deployment) -> None:
    stated = ENTRIES[row.entry]
    assert {key: float(value) for key, value in row.published.items()} == {
        key: float(stated[key]) for key in ("epsilon", "delta", "rho") if key in stated
    }


@pytest.mark.parametrize("row", TABLE.deployments, ids=lambda row: row.name)
def test_a_reading_is_never_smaller_than_what_is_published(row: bob.Deployment) -> None:
    """The parts add up to at least the statement; a donation is one of those whose sum a day's statement is."""
    if "rho" in row.published:
        before = ROWS["census_redistricting_data.yaml"].added("rho") if "(DHC)" in row.name else 0
        assert row.added("rho") + before >= Fraction(row.published["rho"])
    else:
        assert row.added("epsilon") >= Fraction(row.published["epsilon"])
        assert row.added("delta") >= Fraction(row.published.get("delta", 0))


def test_the_census_rows_hold_the_exact_sums_and_count_nothing_twice() -> None:
    persons, units = (
        Fraction(EXACT[table]["US"]["rho_total"])
        for table in ("pl94_persons", "pl94_housing_units")
    )
    dhc = [Fraction(EXACT[table]["US"]["rho_total"]) for table in ("dhc_persons", "dhc_housing")]
    assert (
        0
        <= ROWS["census_redistricting_data.yaml"].added("rho") - (persons + units)
        < Fraction(1, 10**15)
    )
    assert ROWS["census_demographic_and_housing.yaml"].added("rho") == sum(dhc)
    assert persons + units + sum(dhc) == pytest.approx(15.29, abs=0.005)
    config = Fraction(EXACT["ddhcb_households"]["sum_us_side"])
    file_b = ROWS["census_detailed_demographic_and_housing_b.yaml"].added("rho")
    assert file_b == 2 * round(config, 6) > Fraction("17.79")


def test_a_row_under_replacement_is_a_census_row() -> None:
    """Only the bounded-neighbors statements of the Census, and local reports, hold under replacement as they stand."""
    replaced = {row.entry for row in TABLE.deployments if row.adjacency == "replace"}
    assert replaced == {entry for entry in ROWS if entry.startswith("census_")} - {
        "census_supplemental_demographic_and_housing.yaml"
    }
    model = {row["file"]: row["model"] for row in REGISTRY["deployments"]}
    local = {row.entry for row in TABLE.deployments if row.adjacency == "local"}
    assert {entry for entry in local if model.get(entry) != "Local"} == {
        "Apple QuickType suggestions"
    }
    assert not any("delta" in ROWS[entry].published for entry in local)


def test_every_double_of_the_plan_is_at_least_the_decimal_of_the_table() -> None:
    written = iter(tomllib.loads(bob.PLAN.read_text(encoding="utf-8"))["mechanism"])
    for row in TABLE.deployments:
        for part in row.reading:
            mechanism = next(written)
            assert mechanism["times"] == part.times * row.units(1)
            for key, value in part.numbers:
                assert (
                    Fraction(value)
                    <= Fraction(mechanism[key])
                    <= Fraction(value) * (1 + Fraction(2, 2**52))
                )
    assert next(written, None) is None


def test_the_plan_is_what_the_table_gives() -> None:
    assert bob.PLAN.read_text(encoding="utf-8") == bob.plan(TABLE)


def test_the_total_is_certified_and_dominates_every_part_of_it() -> None:
    total = certified(bob.plan(TABLE))
    assert 0 < total.lower <= total.upper < math.inf
    pure = float(sum(row.added("epsilon") * row.units(1) for row in TABLE.deployments))
    assert total.lower < pure
    for organization, bound in subtotals(TABLE, years=1, delta=bob.DELTA).items():
        assert bound.lower <= total.upper, organization
        assert bound.upper < math.inf, organization


def test_the_total_of_one_organization_against_a_convolution() -> None:
    """Apple's losses are sums of +-1, +-2, +-4 and +-8: one binomial number of flips each, convolved exactly enough."""
    boxes: Counter[int] = Counter()
    kept = 0.0
    for row in (row for row in TABLE.deployments if row.organization == "Apple"):
        for part in row.reading:
            stated = dict(part.numbers)
            boxes[int(stated["epsilon"])] += part.times * row.units(1)
            kept += part.times * row.units(1) * math.log1p(-float(stated.get("delta", 0)))
    flips = np.ones(1)
    for epsilon, times in boxes.items():
        spread = np.zeros(times * epsilon + 1)
        spread[::epsilon] = stats.binom.pmf(
            np.arange(times + 1), times, 1 / (1 + math.exp(epsilon))
        )
        flips = np.convolve(flips, spread)
    loss = sum(epsilon * times for epsilon, times in boxes.items()) - 2.0 * np.arange(len(flips))
    bound = subtotals(TABLE, years=1, delta=bob.DELTA)["Apple"]
    for epsilon, sign in ((bound.lower * (1 - 1e-12), 1), (bound.upper * (1 + 1e-12), -1)):
        excess = np.where(loss > epsilon, -np.expm1(np.minimum(epsilon - loss, 0)), 0)
        delta = -math.expm1(kept) + math.exp(kept) * float(np.sum(flips * excess))
        assert sign * (delta - bob.DELTA) >= -1e-12


def test_below_the_sum_of_the_stated_deltas_the_total_is_infinite() -> None:
    plan = Plan.parse(bob.plan(TABLE))
    stated = float(sum(row.added("delta") * row.units(1) for row in TABLE.deployments))
    assert 0.004 < stated < bob.DELTA / 2
    bound = plan.composition().epsilon(delta=0.004, adjacency=plan.adjacency)
    assert bound.lower == bound.upper == math.inf


def test_a_longer_horizon_costs_more_until_no_epsilon_is_finite() -> None:
    one, two, three = (certified(bob.plan(TABLE, years=years)) for years in (1, 2, 3))
    assert one.upper < two.lower <= two.upper < three.lower == math.inf


def test_with_the_unknown_the_total_is_infinite_and_the_account_says_which() -> None:
    plan = Plan.parse(bob.plan(TABLE, unknown=True))
    assert plan.question is not None
    few = replace(plan, entries=plan.entries[:2] + plan.entries[-2:])
    done = account(few, plan.question)
    assert done.total.lower == math.inf
    assert done.unbounded == tuple(entry.name for entry in plan.entries[-2:])
    assert done.finite is not None
    assert done.finite.upper < math.inf
    assert certified(bob.plan(TABLE, unknown=True)).lower == math.inf


def test_replaced_everywhere_no_finite_total_is_left() -> None:
    plan = Plan.parse(bob.plan(TABLE, replace=True))
    assert plan.adjacency is Adjacency.REPLACE
    assert certified(bob.plan(TABLE, replace=True)).upper == math.inf
    linkedin = certified(bob.plan(TABLE, replace=True, organization="LinkedIn"))
    assert linkedin.lower == math.inf


def test_the_page_says_what_is_assumed_and_what_is_unknown() -> None:
    plan = Plan.parse(bob.plan(TABLE), source="plan.toml")
    assert plan.question is not None
    text = html(bob_page(TABLE, account(plan, plan.question), years=1))
    assert "With any of these the total is infinite" in text
    for row in TABLE.unknown:
        assert row["name"].replace("&", "&amp;") in text
    for row in TABLE.deployments:
        assert row.name in text
