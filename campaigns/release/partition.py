"""No unit changes two parts of a partition, whatever its rows contain.

python -m campaigns.release.partition [--engine duckdb|postgresql|spark] [--cases N] [--seed N]

A case is a table with unusual values, and the same table, shuffled, without one unit. In the
control a unit is in every part of which it has a key; this must be detected.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.truncation import ENGINES, Source
from dpcompose.release.bounding import rows_of_parts
from dpcompose.release.truncation import Sampling


def case(rng: random.Random, source: Source, *, defect: bool = False) -> list[str]:
    """What is wrong with one pair of tables."""
    unit = rng.choice([["person"], ["person", "number"], ["number"]])
    without = tables.rows(rng, units=rng.choice([1, 3, 9]), most=8, nothing=rng.choice([0.0, 0.2]))
    more = tables.of_unit(rng, "p99", most=rng.choice([5, 30]))
    keys = rng.sample(list(dict.fromkeys(tables.CITIES)), rng.choice([2, 3, 5]))
    sampling, found = Sampling(rng.randbytes(8)), list[list[Any]]()
    for rows in (without, [*without, *more]):
        table = release.table(
            source(rng.sample(rows, len(rows))), unit=unit, max_rows_per_unit=3, name="people"
        )
        parts = rows_of_parts(table, "city", keys, sampling)
        if defect:
            city, constant = table.data["city"], table.engine.constant
            parts = [table.data.filter(f"{city} = {constant(key)}") for key in keys]
        counts = [part.group(unit, rows="COUNT(*)") for part in parts]
        found.append([sorted(map(repr, tables.rows_of(each))) for each in counts])
        if table.engine.name != "Spark":
            table.close()
    moved = [key for key, before, after in zip(keys, *found, strict=True) if before != after]
    return [f"{unit}: one unit moves the parts {moved}"] if len(moved) > 1 else []


def run(engine: str, cases: int, seed: int, *, defect: bool = False) -> list[str]:
    """The cases in which one unit moved more than one part."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as home, ENGINES[engine](Path(home)) as source:
        for number in range(cases):
            found = case(random.Random(f"{seed} {number}"), source, defect=defect)
            wrong += [f"case {number} of seed {seed}: {each}" for each in found]
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=[*ENGINES], default="duckdb")
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    wrong = run(given.engine, given.cases, given.seed)
    control = run("duckdb", 20, given.seed, defect=True)
    print(*wrong, sep="\n")
    print(
        f"{given.engine}, {given.cases:,} cases, seed {given.seed}: {len(wrong)} wrong; control: {len(control)} found"
    )
    sys.exit(bool(wrong) or not control)


if __name__ == "__main__":
    main()
