"""Writes plan.toml: what deployments.toml says about Bob, as one plan for a horizon in years.

    python -m examples.bob.make_plan [--years 1] [--replace] [--unknown] [--output FILE]

Which change of the data is the total about? In every database, from Bob's data to that database's own way of not
having them: taken out where the guarantee is stated under add-remove, someone else's in their place where it is stated
under replacement. That is the book's section 3.5.2, a world with Bob's data and a world without them, and composition
asks no more than that each mechanism be given its own pair of neighbors. The plan calls it "zero-out", Bob's data
replaced by a placeholder, and every statement holds under it as it stands.

`--replace` asks for more: everywhere someone else's data in the place of Bob's. A statement of a local report or one
under replacement holds as it stands; any other must be taken twice (the library's group of two), and no finite total
is left: of (34.9, 7e-9), taken twice, nothing remains.
"""

from __future__ import annotations

import argparse
import json
import math
import tomllib
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TABLE = HERE / "deployments.toml"
PLAN = HERE / "plan.toml"
DELTA = 0.01
"""Bob's deltas add up to 0.0041 in a year: below that no epsilon is finite, whatever the theorem."""


@dataclass(frozen=True)
class Part:
    """One building block of a reading, run `times` times for each unit."""

    kind: str
    numbers: tuple[tuple[str, Decimal], ...]
    times: int
    what: str


@dataclass(frozen=True)
class Deployment:
    """A deployment that states a number, and how it is read for Bob."""

    organization: str
    name: str
    entry: str
    published: dict[str, Any]
    unit: str
    adjacency: str
    reading: tuple[Part, ...]
    assumed: str
    note: str
    per_year: int
    once: int

    def units(self, years: int) -> int:
        """How many units Bob has within the horizon."""
        return self.per_year * years + self.once

    def added(self, key: str) -> Fraction:
        """The sum of epsilon, delta or rho over the parts of one unit's reading, exactly."""
        stated = (
            (Fraction(value), part.times)
            for part in self.reading
            for name, value in part.numbers
            if name == key
        )
        return sum((value * times for value, times in stated), Fraction(0))


@dataclass(frozen=True)
class Table:
    """The table of deployments: those with a number, those without, and the entries counted elsewhere."""

    deployments: tuple[Deployment, ...]
    unknown: tuple[dict[str, str], ...]
    overlaps: tuple[dict[str, str], ...]

    @property
    def organizations(self) -> tuple[str, ...]:
        """Who deploys, in the order of the table."""
        return tuple(dict.fromkeys(row.organization for row in self.deployments))


def load(path: Path = TABLE) -> Table:
    """The table; decimals stay exact until the plan rounds them up."""
    with path.open("rb") as stream:
        content = tomllib.load(stream, parse_float=Decimal)
    rows = tuple(_deployment(row) for row in content["deployment"])
    return Table(rows, tuple(content["unknown"]), tuple(content["overlap"]))


def _deployment(row: dict[str, Any]) -> Deployment:
    reading = tuple(_part(dict(part)) for part in row.pop("reading"))
    if ("per_year" in row) == ("once" in row):
        raise ValueError(f"{row['name']}: either per_year or once")
    return Deployment(**{"note": "", "per_year": 0, "once": 0, **row, "reading": reading})


def _part(part: dict[str, Any]) -> Part:
    kind, times, what = part.pop("kind"), part.pop("times", 1), part.pop("what", "")
    return Part(kind, tuple((key, Decimal(value)) for key, value in part.items()), times, what)


def double_above(value: Decimal) -> float:
    """The smallest double that is at least `value`: never more private than published."""
    nearest = float(value)
    return nearest if Fraction(nearest) >= Fraction(value) else math.nextafter(nearest, math.inf)


def plan(
    table: Table,
    *,
    years: int = 1,
    organization: str | None = None,
    replace: bool = False,
    unknown: bool = False,
) -> str:
    """The plan of every deployment of one organization, or of all, for a horizon of so many years.

    Args:
        table: The table.
        years: The horizon, at least 1.
        organization: Only this one's deployments.
        replace: Whether to ask for replacement everywhere.
        unknown: Whether to add the deployments without a number, as mechanisms that promise nothing.
    """
    adjacency = "replace" if replace else "zero-out"
    lines = [
        f"# Bob in {organization or 'the published deployments that state a number for one person'}.",
        f"# Horizon: {years} year{'s' * (years > 1)}. deployments.toml says what is assumed; make_plan.py, which wrote",
        f"# this, says what the adjacency means. {len(table.unknown)} deployments state no number: "
        + (
            "they are the last ones here."
            if unknown
            else "they are left out; with any of them no total is finite."
        ),
        f"delta = {DELTA!r}",
        f'adjacency = "{adjacency}"',
    ]
    for row in table.deployments:
        if organization in (None, row.organization):
            lines += _mechanisms(row, years, _holds_under(row) if replace else adjacency)
    if unknown:
        for nothing in table.unknown:
            name = json.dumps(f"{nothing['organization']}: {nothing['name']}", ensure_ascii=False)
            lines += [
                "",
                f"# Unknown: {nothing['reason']}.",
                "[[mechanism]]",
                f"name = {name}",
                'kind = "black-box"',
            ]
            lines += ["epsilon = 0.0", "delta = 1.0", f'holds_under = "{adjacency}"']
    return "\n".join(lines) + "\n"


def _holds_under(row: Deployment) -> str:
    """Replacement where that is stated or follows from a local report; taken twice is sound for every other."""
    return "replace" if row.adjacency in ("replace", "local") else "add-remove"


def _mechanisms(row: Deployment, years: int, holds_under: str) -> list[str]:
    lines = [
        "",
        f"# {row.unit}: {row.units(years)} of them. Stated under: {row.adjacency}. {row.assumed}",
    ]
    for position, part in enumerate(row.reading, start=1):
        suffix = f", {part.what or f'part {position}'}" if len(row.reading) > 1 else ""
        name = json.dumps(f"{row.organization}: {row.name}{suffix}", ensure_ascii=False)
        lines += ["[[mechanism]]", f"name = {name}", f'kind = "{part.kind}"']
        lines += [f"{key} = {double_above(value)!r}" for key, value in part.numbers]
        lines += [f'holds_under = "{holds_under}"', f"times = {part.times * row.units(years)}"]
    return lines


def main() -> None:
    """Writes the plan for the horizon asked for; plan.toml itself is the plan for one year."""
    parser = argparse.ArgumentParser(description="Write Bob's plan.")
    parser.add_argument("--years", type=int, default=1, help="horizon, default 1")
    parser.add_argument(
        "--replace", action="store_true", help="ask for replacement in every database"
    )
    parser.add_argument(
        "--unknown", action="store_true", help="add the deployments that state no number"
    )
    parser.add_argument("--output", type=Path, default=PLAN, help="where to write it")
    given = parser.parse_args()
    if not given.years >= 1:
        parser.error("--years must be at least 1")
    text = plan(load(), years=given.years, replace=given.replace, unknown=given.unknown)
    given.output.write_text(text, encoding="utf-8")
    print(f"wrote {given.output.name}")


if __name__ == "__main__":
    main()
