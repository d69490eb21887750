"""Writes the plans of this folder: every query at every geographic level of the 2020 Census redistricting data.

    python -m examples.census.make_plans

The allocation is read from ../data/census_2020_pl94.json as exact fractions, so every sigma**2 is an exact fraction
too: sigma**2 = 1 / rho = global_scale**2 / (level's share x query's share). A plan needs a double. `sigma_below` takes
the largest one that is not above the true sigma: never more noise than was added. README.md bounds what that moves.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
DATA = HERE.parent / "data" / "census_2020_pl94.json"


@dataclass(frozen=True)
class Release:
    """One file of the redistricting data: where its allocation is, and what is said about it at the top of its plan."""

    plan: str
    table: str
    place: str
    title: str


RELEASES = (
    Release("us_persons.toml", "pl94_persons", "US", "persons, United States"),
    Release("pr_persons.toml", "pl94_persons", "PR", "persons, Puerto Rico"),
    Release("us_housing_units.toml", "pl94_housing_units", "US", "housing units, United States"),
    Release("pr_housing_units.toml", "pl94_housing_units", "PR", "housing units, Puerto Rico"),
)


def allocation(release: Release, data: dict[str, Any]) -> Iterator[tuple[str, Fraction]]:
    """The name and the exact rho of every query at every level, under replacement of one record."""
    schedule = data[release.table][release.place]
    scale = Fraction(schedule["global_scale"])
    for level, share in schedule["levels"].items():
        for query, part in share["queries"].items():
            rho = Fraction(share["geolevel_fraction"]) * Fraction(part) / scale**2
            yield f"{level.replace('_', ' ')} {query}", rho


def sigma_below(variance: Fraction) -> float:
    """The largest double whose square is at most `variance`."""
    sigma = math.sqrt(variance)
    while Fraction(sigma) ** 2 > variance:
        sigma = math.nextafter(sigma, 0.0)
    while Fraction(following := math.nextafter(sigma, math.inf)) ** 2 <= variance:
        sigma = following
    return sigma


def plan(release: Release, data: dict[str, Any]) -> str:
    """The plan file of one release."""
    published = data[release.table]["published"]
    queries = list(allocation(release, data))
    total = sum(rho for _, rho in queries)
    lines = [
        f"# 2020 Census redistricting data (P.L. 94-171), {release.title}: {len(queries)} discrete Gaussians, one for",
        "# every query at every geographic level. Written by make_plans.py from ../data/census_2020_pl94.json.",
        f"# Published: epsilon {published['epsilon']} at delta {published['delta']} (rho {published['rho']}).",
        f"# The configuration's exact rho is {total} = {float(total):.6f}.",
        "# Replacing one record takes 1 from one cell of each query and adds 1 to another: replace = [1, 1].",
        "# sigma is the largest double that is not above the true value; README.md says what that moves.",
        f"delta = {published['delta']!r}",
        'adjacency = "replace"',
    ]
    for name, rho in queries:
        noise = f"sigma = {sigma_below(1 / rho)!r}"
        lines += ["", "[[mechanism]]", f'name = "{name}"', 'kind = "discrete-gaussian"', noise]
        lines += ["shift = 1", "replace = [1, 1]"]
    return "\n".join(lines) + "\n"


def plans() -> dict[Path, str]:
    """Every plan of this folder and its text."""
    data = json.loads(DATA.read_text(encoding="utf-8"))
    return {HERE / release.plan: plan(release, data) for release in RELEASES}


if __name__ == "__main__":
    for path, text in plans().items():
        path.write_text(text, encoding="utf-8")
        print(f"wrote {path.name}")
