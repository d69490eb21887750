"""The redistricting plans against the data they come from, and what they certify against what is published."""

from __future__ import annotations

import json
import math
import tomllib
from fractions import Fraction
from typing import Any

import pytest

from dpcompose.plan import Plan
from examples.census import make_plans as census
from examples.census.make_plans import RELEASES, Release

DATA: dict[str, Any] = json.loads(census.DATA.read_text(encoding="utf-8"))
BY_PLAN = pytest.mark.parametrize("release", RELEASES, ids=lambda release: release.plan)


def schedule(release: Release) -> dict[str, Any]:
    return DATA[release.table][release.place]


def sigmas(release: Release) -> list[tuple[float, Fraction]]:
    """The plan's sigma and the exact variance of each mechanism."""
    written = tomllib.loads((census.HERE / release.plan).read_text())["mechanism"]
    exact = [1 / rho for _, rho in census.allocation(release, DATA)]
    return list(zip([each["sigma"] for each in written], exact, strict=True))


@pytest.mark.parametrize("path", census.plans(), ids=lambda path: path.name)
def test_the_plan_is_what_the_data_give(path: Any) -> None:
    assert path.read_text(encoding="utf-8") == census.plans()[path]


@BY_PLAN
def test_the_fractions_of_the_levels_and_of_the_queries_add_up_to_one(release: Release) -> None:
    levels = schedule(release)["levels"]
    assert sum(Fraction(level["geolevel_fraction"]) for level in levels.values()) == 1
    for level in levels.values():
        assert sum(Fraction(part) for part in level["queries"].values()) == 1


@BY_PLAN
def test_the_list_of_mechanisms_says_the_same_as_the_fractions(release: Release) -> None:
    listed, total = schedule(release)["mechanisms"], Fraction(schedule(release)["rho_total"])
    allocated = list(census.allocation(release, DATA))
    assert len(listed) == len(allocated) == schedule(release)["n_mechanisms"]
    assert sum(rho for _, rho in allocated) == total
    for mechanism, (name, rho) in zip(listed, allocated, strict=True):
        assert name == f"{mechanism['level'].replace('_', ' ')} {mechanism['query']}"
        assert rho == Fraction(mechanism["rho"]) == Fraction(mechanism["share_of_rho"]) * total
        assert 1 / rho == Fraction(mechanism["sigma_sq"])


@pytest.mark.parametrize(
    ("table", "place", "count"), [("pl94_persons", "US", 65), ("pl94_persons", "PR", 54)]
)
def test_the_number_of_person_queries_is_the_published_one(
    table: str, place: str, count: int
) -> None:
    assert len(DATA[table][place]["mechanisms"]) == count


@BY_PLAN
def test_sigma_is_the_largest_double_below_the_exact_one(release: Release) -> None:
    for sigma, variance in sigmas(release):
        assert Fraction(sigma) ** 2 <= variance < Fraction(math.nextafter(sigma, math.inf)) ** 2


@BY_PLAN
def test_rounding_sigma_moves_epsilon_by_less_than_1e_10(release: Release) -> None:
    """The bound of examples/README.md: with d = 1/sigma**2 - 1/exact, summed over two coordinates and two worlds.

    Within 20 sigma of its center a coordinate's log-probability moves by at most d x**2 / 2 in the exponent and by
    d exact / 2 in the normalization (the variance of a discrete Gaussian is at most sigma**2); beyond lie 2 exp(-200).
    """
    moved = Fraction(0)
    for sigma, variance in sigmas(release):
        difference = 1 / Fraction(sigma) ** 2 - 1 / variance
        window = (20 * Fraction(sigma) + 1) ** 2
        moved += 2 * 2 * difference * (window + variance) / 2
    assert moved < Fraction(1, 10**10)


@BY_PLAN
def test_certified_below_published_and_within_what_others_computed(release: Release) -> None:
    plan = Plan.read(census.HERE / release.plan)
    bound = plan.composition().epsilon(delta=1e-10, adjacency=plan.adjacency)
    computed = schedule(release)["computed"]
    assert bound.upper < DATA[release.table]["published"]["epsilon"]
    # The discretized accountant rounds losses up; its figures fall towards the truth with the interval.
    for figure in computed.get("exact_discrete_pld", {}).values():
        assert isinstance(figure, str) or bound.upper < figure
    # With sigmas this large the continuous Gaussian is the same to the six decimals that are given.
    assert bound.lower - 1e-6 <= computed["gaussian_proxy_tight_epsilon"] <= bound.upper + 1e-6
    assert bound.width <= 1e-6 * bound.upper


@BY_PLAN
def test_a_sigma_rounded_up_certifies_the_same(release: Release) -> None:
    text = (census.HERE / release.plan).read_text(encoding="utf-8")
    for sigma in {sigma for sigma, _ in sigmas(release)}:
        text = text.replace(
            f"sigma = {sigma!r}\n", f"sigma = {math.nextafter(sigma, math.inf)!r}\n"
        )
    below, above = Plan.read(census.HERE / release.plan), Plan.parse(text)
    assert below != above
    ends = [
        plan.composition().epsilon(delta=1e-10, adjacency=plan.adjacency) for plan in (below, above)
    ]
    assert ends[0].lower <= ends[1].upper + 1e-10
    assert ends[1].lower <= ends[0].upper + 1e-10


def test_the_published_figures_follow_from_the_exact_rho_by_the_zcdp_conversion() -> None:
    for release in RELEASES:
        computed = schedule(release)["computed"]
        assert (
            round(computed["zcdp_canonne_kamath_steinke"], 2)
            == DATA[release.table]["published"]["epsilon"]
        )
