"""Random SELECTs have the rows that DuckDB returns for the same SQL: joins, remainders, keys of
both sides, aliases.

python -m campaigns.release.statements [--engine duckdb|postgres|spark] [--cases N] [--seed N]

Exact numbers before noise are compared, under bounds that leave out no row, and the names of the
columns. A statement may be refused, but not answered differently. The controls have planted
misreadings of SQL, each of which must be detected. A case is the same on every engine.
"""

from __future__ import annotations

import argparse
import operator
import random
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any
from unittest import mock

import duckdb
import pyarrow as pa

import dpcompose.release as release
from campaigns.release import places, tables
from campaigns.release.places import Place
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.release import sql_aggregate, sql_rows, sql_scalar
from dpcompose.release.aggregate import exact
from dpcompose.release.columns import Bounds
from dpcompose.release.table import Table

EPSILON = {"epsilon": 1.0}
AREAS = pa.table({"city": tables.CITIES[:6], "area": ["a", None, "b", "a", "b", "a"]})
JOINS = (
    "",
    "",
    "{} JOIN areas o USING (city)",
    "{} JOIN areas o ON people.city = o.city",
    "{} JOIN active o USING (person)",
    "{} JOIN active o ON o.person = people.person",
)
OTHERS = "SELECT person, points AS score FROM people WHERE small > 0"
DEFECTS: dict[str, Any] = {
    "remainders from 0": lambda: mock.patch.dict(
        sql_scalar.__dict__["_CALLS"], {"Mod": operator.mod}
    ),
    "the left side's key for the right side's": lambda: mock.patch.object(
        sql_rows, "left_joined", lambda root, join, alias, keys, other, marker: other
    ),
    "no aliases": lambda: mock.patch.object(
        sql_aggregate.Aggregates, "labels", lambda reader, question: {}
    ),
}


def remainder(rng: random.Random) -> str:
    """A random condition on a remainder, whose sign is that of the dividend."""
    number, by = (
        rng.choice(["points", "points", "code", "people.small"]),
        rng.choice([1, 2, 3, 3, -3, 7, 2**31]),
    )
    made = [f"{number} % {by} {{}}", f"MOD({number}, {by}) {{}}", f"-people.small % {by} {{}}"]
    return rng.choice(made).format(f"{rng.choice(['=', '<', '>='])} {rng.choice([0, 1, -1, 2])}")


def condition(rng: random.Random, join: str, depth: int) -> str:
    """A random condition over the columns of both sides."""
    if depth > 0 and rng.random() < 0.6:
        one, other = (condition(rng, join, depth - 1) for _ in range(2))
        return rng.choice([f"({one} AND {other})", f"({one} OR {other})", f"NOT ({one})"])
    made = [
        remainder(rng),
        f"FLOOR(small / {rng.choice([2, 3, 7])}) = {rng.choice([0, 1, -1])}",
        "people.city IN ('Ans', 'Zug')",
        "points IS NOT NULL",
    ]
    if join:
        key, more = ("city", "area") if "areas" in join else ("person", "score")
        right = [f"o.{key} IS NULL", f"o.{key} IS NOT NULL", f"o.{more} IS NULL"]
        made += [
            *right,
            *right,
            *right,
            f"people.{key} IS NULL",
            f"o.{key} > 'b'",
            f"people.{key} > 'b'",
        ]
        made += [f"{key} IS NULL"] if "USING" in join else []
    return rng.choice(made)


def statement(rng: random.Random) -> tuple[str, bool]:
    """A random SELECT, and whether it has groups."""
    join = rng.choice(JOINS).format(rng.choice(["", "LEFT", "LEFT OUTER"]))
    grouped, alias = rng.random() < 0.3, rng.choice(["", " AS n", " AS visits_total"])
    what = rng.choice(["COUNT(*)", "COUNT(*)", "COUNT(DISTINCT people.person)"])
    text = f"{what}{alias} FROM people {join} WHERE {condition(rng, join, 2) if join else remainder(rng)}"
    if not grouped:
        return f"SELECT {text}", False
    town = rng.choice(["people.flag", "people.flag AS yes"])
    return f"SELECT {town}, {text} GROUP BY people.flag", True


def answer(table: Table, text: str, *, grouped: bool) -> tuple[dict[Any, int], list[str]] | None:
    """The exact numbers by key and the names of the columns; None where the statement is refused."""
    active = (
        table.where(release.col("small") > 0).mutate(score=release.col("points")).select("score")
    )
    keys = [True, False, None] if grouped else None
    others = {"areas": release.public(AREAS), "active": active}
    try:
        (question,) = release.questions_of_sql(text, table, tables=others, keys=keys)
        design = question.design(table if question.table is None else question.table, EPSILON)
    except (DomainError, UnsupportedError):
        return None
    numbers = {key: bins[0][0] for key, bins in exact(design.table, design.aggregation).items()}
    own = [*design.aggregation.by, question.kind]
    return {k: n for k, n in numbers.items() if n}, [
        question.labels.get(name, name) for name in own
    ]


def case(rng: random.Random, here: list[Place]) -> tuple[list[str], int]:
    """What is wrong with the answers to one statement, and how many there were."""
    rows = tables.rows(rng, units=8, most=6)
    text, grouped = statement(rng)
    plain = duckdb.connect()
    plain.register("people", tables.arrow(rows))
    plain.register("areas", AREAS)
    plain.execute(f"CREATE VIEW active AS {OTHERS}")
    try:
        asked = plain.execute(text)
        heads, wanted = [each[0] for each in asked.description or ()], asked.fetchall()
    except duckdb.OutOfRangeException:
        # Where an integer overflows, DuckDB fails, and an answer takes NULL.
        return [], 0
    bounds, wrong, answers = Bounds.stated(1000), list[str](), 0
    for place in here:
        place.fill(rows)
        found = answer(place.table(("person",), bounds), text, grouped=grouped)
        if found is None:
            continue
        numbers = {tuple(row[:-1]): row[-1] for row in wanted if row[-1]}
        named = [
            (head, name) for head, name in zip(heads, found[1], strict=True) if "(" not in head
        ]
        answers += 1
        if found[0] != numbers or any(head != name for head, name in named):
            wrong.append(f"{place.opened.engine.name}: {text}: {found}, not {numbers}, {heads}")
    return wrong, answers


def run(engine: str, cases: int, seed: int, *, defect: str = "") -> tuple[list[str], int]:
    """The wrong answers to so many statements, and the number of answers.

    Args:
        engine: "duckdb", "postgresql" or "spark"; the last two beside DuckDB.
        cases: How many.
        seed: Of the cases.
        defect: What is planted in them.
    """
    wrong, answers = list[str](), 0
    with ExitStack() as stack:
        if defect:
            stack.enter_context(DEFECTS[defect]())
        here = [places.frame()]
        if engine != "duckdb":
            here.append(
                stack.enter_context(
                    places.PLACES[engine](Path(stack.enter_context(tempfile.TemporaryDirectory())))
                )
            )
        for number in range(cases):
            found, answered = case(random.Random(f"{seed} {number}"), here)
            wrong += [f"case {number} of seed {seed}: {each}" for each in found]
            answers += answered
    return wrong, answers


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", "postgres", "spark"], default="duckdb")
    parser.add_argument("--cases", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    engine = "postgresql" if given.engine == "postgres" else given.engine
    wrong, answers = run(engine, given.cases, given.seed)
    controls = {defect: len(run("duckdb", 40, given.seed, defect=defect)[0]) for defect in DEFECTS}
    print(*wrong, sep="\n")
    print(
        f"{given.engine}, {given.cases:,} statements, seed {given.seed}: {answers:,} answers, {len(wrong)} wrong"
    )
    print("planted:", ", ".join(f"{name}: {number} found" for name, number in controls.items()))
    sys.exit(bool(wrong) or not all(controls.values()))


if __name__ == "__main__":
    main()
