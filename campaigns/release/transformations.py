"""No unit moves an exact aggregate of a transformed table further than is charged, and no row makes an engine fail.

python -m campaigns.release.transformations [--engine duckdb|postgres|spark] [--cases N] [--seed N]

A case is a random tree of transformations of a table with everything odd in it, and of the same table, shuffled,
without one unit. On PostgreSQL and Spark the integers are DuckDB's too. The controls have a wrong stability planted in
each transformation, and each has to be found.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import ibis

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.truncation import ENGINES, Source, excess, integers
from dpcompose.errors import DomainError, EngineError, UnsupportedError
from dpcompose.release.expression import RowExpression
from dpcompose.release.table import Table

EPSILON = {"epsilon": 1.0}
PUBLIC = {
    "city": [*tables.CITIES, *tables.CITIES[:5], None],
    "area": [f"area {at % 3}" for at in range(len(tables.CITIES) + 6)],
}
CONSTANTS: dict[str, list[Any]] = {
    "integer": [0, 1, -1, 7, 2**53 + 1, 2**62, 2**63 - 1, -(2**63) + 1],
    "float": [0.0, -0.0, 0.5, -3.25, 1e150, -1e150, 1e-150, 0.1],
    "text": tables.CITIES,
    "date": [date.min, date.max, date(1970, 1, 1)],
    "boolean": [True, False],
}
Step = Callable[[Table], Table]
DEFECTS = ("where", "mutate", "union", "join on the unit", "join with a public table")


def expression(rng: random.Random, columns: dict[str, str], kind: str, depth: int) -> RowExpression:
    """A random expression of a kind over these columns."""
    names = [name for name, has in columns.items() if has == kind]
    if depth <= 0 or rng.random() < 0.2:
        return release.col(rng.choice(names)) if names and rng.random() < 0.8 else release.lit(
            rng.choice(CONSTANTS[kind])
        )  # fmt: skip

    def of(other: str) -> RowExpression:
        return expression(rng, columns, other, depth - 1)

    number = rng.choice(["integer", "float"])
    common = [
        lambda: release.case((of("boolean"), of(kind)), else_=of(kind)),
        lambda: of(kind).fill_null(of(kind)),
    ]
    made: dict[str, list[Callable[[], RowExpression]]] = {
        "integer": [
            lambda: of("integer") + of("integer"),
            lambda: of("integer") - of("integer"),
            lambda: of("integer") * of("integer"),
            lambda: of("integer") % rng.choice([1, 2, 7, 2**31]),
            lambda: of(number).floor(),
            lambda: -of("integer"),
            lambda: of("integer").abs(),
            lambda: of("text").length(),
            lambda: of("date").year(),
            lambda: of("date").month(),
            lambda: of("date").day(),
            lambda: of("boolean").cast("integer"),
        ],
        "float": [
            lambda: of("float") + of(number),
            lambda: of("float") - of(number),
            lambda: of("float") * of(number),
            lambda: of("float") / of(number),
            lambda: of("integer") / of("integer"),
            lambda: of("integer").cast("float"),
            lambda: of("float").abs(),
        ],
        "text": [lambda: of("text").lower(), lambda: of("text").upper(), lambda: of("integer").cast("text")],
        "date": common,
        "boolean": [
            lambda: of(number) < of("integer"),
            lambda: of("text") <= of("text"),
            lambda: of("date") > of("date"),
            lambda: of(number) == of("float"),
            lambda: of("text") == of("text"),
            lambda: of("boolean") & of("boolean"),
            lambda: of("boolean") | of("boolean"),
            lambda: ~of("boolean"),
            lambda: of(rng.choice([*CONSTANTS])).is_null(),
            lambda: of("text").is_in(rng.sample(tables.CITIES, 3)),
            lambda: of("integer").between(of("integer"), of("integer")),
            lambda: of("text").contains(rng.choice(tables.CITIES)),
            lambda: of("text").starts_with(rng.choice(["A", "%", "\\", "'", ""])),
            lambda: of("text").ends_with(rng.choice(["z", "_", "", "𝄞"])),
        ],
    }
    return rng.choice(made[kind] + common)()


def step(rng: random.Random, table: Table, others: list[Table], number: int, defect: str) -> tuple[str, Step]:
    """A transformation of this table that can be asked of the other one too, and its name."""
    kinds = {each.name: "float" if each.kind == "decimal" else each.kind for each in table.columns}
    columns = {name: kind for name, kind in kinds.items() if kind in CONSTANTS}
    choice = rng.choice(["where", "where", "mutate", "mutate", "mutate", "select", "union", "join", "public"])
    choice = {"join on the unit": "join", "join with a public table": "public"}.get(defect, defect) or choice
    kind = rng.choice([*CONSTANTS])
    found = expression(rng, columns, kind, rng.randint(1, 3))
    predicate = expression(rng, columns, "boolean", rng.randint(1, 3))
    at, how, most = rng.randrange(len(others)), rng.choice(["inner", "left"]), rng.choice([2, 3])
    del others, kind
    made: dict[str, Step] = {
        "where": lambda each: each.where(predicate),
        "mutate": lambda each: each.mutate(**{f"made{number}": found}),
        "select": lambda each: each.select(*[name for name in kinds if name != "small"]),
        "union": lambda each: each.union(each.where(predicate)),
        "join": lambda each: each.join(
            each.select().mutate(**{f"other{number}": release.lit(at)}), on=each.unit, how=how
        ),
        "public": lambda each: each.join(_public(number), on="city", at_most=most, how=how),
    }
    return choice, made[choice]


def _public(number: int) -> release.PublicTable:
    import pyarrow as pa

    return release.public(pa.table({"city": PUBLIC["city"], f"area{number}": PUBLIC["area"]}))


def _broken(table: Table, defect: str) -> Table:
    """The transformation as it must not be: one unit's rows decide there about the rows of all."""
    whole: Any = table.data.count().over(ibis.window())
    if defect == "where":
        return table.changed(table.data.filter(whole > 20), "where")
    return table.changed(table.data.mutate(points=whole), "mutate")


def case(rng: random.Random, sources: list[Source], *, defect: str = "") -> list[str]:
    """What is wrong with one pair of tables."""
    bounds: dict[str, Any] = {"max_rows_per_unit": rng.choice([1, 2, 3, 7])}
    if rng.random() < 0.4:
        bounds["max_groups_per_unit"] = rng.randint(1, bounds["max_rows_per_unit"])
    bounds["unit"] = rng.choice(["person", ["person", "number"]])
    without = tables.rows(rng, units=rng.choice([1, 3, 9]), most=8, nothing=rng.choice([0.0, 0.2]))
    unit = tables.of_unit(rng, "p99", most=rng.choice([5, 30]))
    key, number = rng.randbytes(8), rng.randint(1, 4)
    spread = rng.choice(["points", "amount", "small", "price"])
    groups: dict[str, Any] = rng.choice([{}, {"by": "city", "keys": tables.CITIES}])
    asked = rng.choice(
        [
            release.Count(spend=EPSILON, **groups),
            release.Units(spend=EPSILON, **groups),
            release.Sum(spread, lower=-5, upper=50, granularity=1, spend=EPSILON, **groups),
        ]
    )
    if spread == "small" or defect:
        asked = release.Sum("points", lower=-5, upper=50, spend=EPSILON) if defect == "mutate" else release.Count(
            spend=EPSILON
        )  # fmt: skip
    pairs = [rng.sample(rows, len(rows)) for rows in (without, [*without, *unit])]
    opened = [release.table(sources[0](rows), name="people", **bounds) for rows in pairs]
    steps: list[Step] = []
    table = opened[0]
    for at in range(number):
        planted = defect if at == number - 1 else ""
        for _ in range(20):
            name, made = step(rng, table, [table], at, "" if planted in ("where", "mutate") else planted)
            try:
                table = made(table)
            except (DomainError, UnsupportedError):
                continue
            steps.append(made)
            break
        del name
    wrong: list[str] = []
    found: list[Any] = []
    for each, rows in zip(opened, pairs, strict=True):
        results: list[Any] = []
        for source in sources:
            there = each if source is sources[0] else release.table(source(rows), name="people", **bounds)
            root = there.bounds
            for made in steps:
                there = made(there)
            if defect in ("where", "mutate"):
                there = _broken(there, defect)
            design = asked.design(there)
            try:
                results.append(integers(there, design, key))
            except EngineError:
                wrong.append(f"{there.engine.name} failed at {there.steps}")
            if defect in DEFECTS[2:]:
                design = asked.design(replace(there, bounds=root))
            if there.engine.name != "Spark":
                there.close()
        if len(results) < len(sources):
            return wrong
        wrong += [f"integers differ between engines: {there.steps}" for one in results[1:] if one != results[0]]
        found.append((results[0], design))
    return wrong + [
        f"{asked}, {bounds}, {table.steps}: {each}" for each in excess(found[0][0], found[1][0], found[1][1])
    ]


def run(engine: str, cases: int, seed: int, *, defect: str = "") -> list[str]:
    """The cases in which a unit moved more than is charged, an engine failed, or two engines disagree."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as home, ENGINES[engine](Path(home)) as source:
        sources: list[Source] = [source] if engine == "duckdb" else [tables.arrow, source]
        for number in range(cases):
            found = case(random.Random(f"{seed} {number}"), sources, defect=defect)
            wrong += [f"case {number} of seed {seed}: {each}" for each in found]
            if (number + 1) % 100 == 0:
                print(f"{number + 1:,} cases, {len(wrong)} wrong", file=sys.stderr, flush=True)
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", "postgres", "spark"], default="duckdb")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    began = time.perf_counter()
    wrong = run("postgresql" if given.engine == "postgres" else given.engine, given.cases, given.seed)
    controls = {defect: len(run("duckdb", 30, given.seed, defect=defect)) for defect in DEFECTS}
    print(*wrong, sep="\n")
    took = time.perf_counter() - began
    print(f"{given.engine}, {given.cases:,} cases, seed {given.seed}: {len(wrong)} wrong, in {took:.0f} s")
    print("planted:", ", ".join(f"{name}: {number} found" for name, number in controls.items()))
    sys.exit(bool(wrong) or not all(controls.values()))


if __name__ == "__main__":
    main()
