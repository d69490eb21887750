"""No unit changes an exact aggregate of a transformed table by more than is charged, and no row
makes an engine fail.

python -m campaigns.release.transformations [--engine duckdb|postgres|spark] [--cases N] [--first N] [--seed N]

A case is a random tree of transformations of a table with unusual values, and of the same table,
shuffled, without one unit. On PostgreSQL and Spark the integers must equal DuckDB's. The controls
have a wrong stability planted in each transformation, and each must be detected. A case does not
depend on the first one, so parts of the cases may run in separate processes.
"""

from __future__ import annotations

import argparse
import gc
import random
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any
from unittest import mock

import dpcompose.release as release
from campaigns.release import places, tables
from campaigns.release.places import Place
from campaigns.release.truncation import excess
from dpcompose.errors import DomainError, EngineError, UnsupportedError
from dpcompose.release.aggregate import Scan
from dpcompose.release.columns import Bounds
from dpcompose.release.expression import RowExpression
from dpcompose.release.query import over
from dpcompose.release.table import Table
from dpcompose.release.truncation import KeptRows, Sampling, few_of_each_key

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
KEYED, CROWDED = "join on another key", "rows of a key that follow from how many there are"
DEFECTS = (
    "where",
    "mutate",
    "union",
    "join on the unit",
    "join with a public table",
    KEYED,
    CROWDED,
)


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
            lambda: of("integer").remainder(rng.choice([1, -2, 7, -(2**31)])),
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
        "text": [
            lambda: of("text").lower(),
            lambda: of("text").upper(),
            lambda: of("integer").cast("text"),
        ],
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


def step(
    rng: random.Random, table: Table, others: list[Table], number: int, defect: str
) -> tuple[str, Step]:
    """A transformation of this table that can be asked of the other one too, and its name."""
    kinds = {each.name: "float" if each.kind == "decimal" else each.kind for each in table.columns}
    columns = {name: kind for name, kind in kinds.items() if kind in CONSTANTS}
    choice = rng.choice(
        [
            "where",
            "where",
            "mutate",
            "mutate",
            "mutate",
            "select",
            "union",
            "join",
            "public",
            "keyed",
        ]
    )
    planted = {"join on the unit": "join", "join with a public table": "public"}
    choice = planted.get(defect, defect) or choice
    kind = rng.choice([*CONSTANTS])
    found = expression(rng, columns, kind, rng.randint(1, 3))
    predicate = expression(rng, columns, "boolean", rng.randint(1, 3))
    at, how, most = rng.randrange(len(others)), rng.choice(["inner", "left"]), rng.choice([2, 3])
    key = rng.choice(
        [name for name, kind in columns.items() if kind != "float" and name not in table.unit]
        or ["city"]
    )
    few = rng.choice([1, 2, 5]), rng.choice([1, 2, 5])
    of_unit = rng.choice([None, (1, 1), (rng.randint(1, 4), rng.randint(1, 4))])
    del others, kind
    made: dict[str, Step] = {
        "where": lambda each: each.where(predicate),
        "mutate": lambda each: each.mutate(**{f"made{number}": found}),
        "select": lambda each: each.select(*[name for name in kinds if name != "small"]),
        "union": lambda each: each.union(each.where(predicate)),
        # The other side has a bound of its own, as the tables of a catalog do.
        "join": lambda each: each.join(
            replace(
                each.select().mutate(**{f"other{number}": release.lit(at)}),
                bounds=Bounds.stated(few[1]),
            ),
            on=each.unit,
            how=how,
        ),
        "keyed": lambda each: each.join(
            each.where(predicate).mutate(**{f"far{number}": found}).select(key, f"far{number}"),
            on=key,
            at_most=few,
            rows_per_unit=of_unit,
        ),
        KEYED: _one_key,
        CROWDED: _crowded,
        "public": lambda each: each.join(_public(number), on="city", at_most=most, how=how),
    }
    return choice, made[choice]


def _public(number: int) -> release.PublicTable:
    import pyarrow as pa

    return release.public(pa.table({"city": PUBLIC["city"], f"area{number}": PUBLIC["area"]}))


def _broken(table: Table, defect: str) -> Table:
    """The transformation as it must not be: one unit's rows decide there about the rows of all."""
    whole = over("COUNT(*)")
    if defect == "where":
        return table.changed(table.data.filter(f"{whole} > 20"), "where")
    return table.changed(table.data.mutate(points=whole), "mutate")


def _one_key(table: Table, rows_per_unit: Any = None) -> Table:
    """A join on one key for all rows."""
    rows = table.mutate(all_of_them=release.lit(1))
    return rows.join(
        rows.select("all_of_them"), on="all_of_them", at_most=(9, 9), rows_per_unit=rows_per_unit
    )


def _crowded(table: Table) -> Table:
    """The same, but a key with too many rows keeps none: one row more, and all are gone."""

    def few(of: Table, data: Any, keys: Any, most: KeptRows, *, stage: str) -> Any:
        rows = few_of_each_key(of, data, keys, replace(most, of_key=2**31), stage=stage)
        rows = rows.mutate(many=over("COUNT(*)", by=[rows["key0"]]))
        return rows.filter(f"{rows['many']} <= {most.of_key}")

    with mock.patch.object(sys.modules["dpcompose.release.table"], "few_of_each_key", few):
        return _one_key(table, (1, 1))


def case(
    rng: random.Random, here: list[Place], *, defect: str = "", seen: list[Any] | None = None
) -> list[str]:
    """What is wrong with one pair of tables; its integers are added to `seen`."""
    most = rng.choice([1, 2, 3, 7])
    groups = rng.randint(1, most) if rng.random() < 0.4 else None
    unit = rng.choice([("person",), ("person", "number")])
    without = tables.rows(rng, units=rng.choice([1, 3, 9]), most=8, nothing=rng.choice([0.0, 0.2]))
    if defect == CROWDED:
        without = tables.rows(rng, units=9, most=8, nothing=0.0)
    one = tables.of_unit(rng, "p99", most=rng.choice([5, 30]))
    key, number = rng.randbytes(8), 1 if defect in (KEYED, CROWDED) else rng.randint(1, 4)
    asked = _question(rng, defect)
    pair = [rng.sample(rows, len(rows)) for rows in (without, [*without, *one])]
    bounds = Bounds.stated(most, groups=groups, rows_per_group=None)
    table = here[0].table(unit, bounds)
    steps: list[Step] = []
    for at in range(number):
        planted = defect if at == number - 1 else ""
        for _ in range(20):
            _, made = step(
                rng, table, [table], at, "" if planted in ("where", "mutate") else planted
            )
            try:
                table = made(table)
            except (DomainError, UnsupportedError):
                continue
            steps.append(made)
            break
    if not table.unit and isinstance(asked, release.Units):
        # Its rows belong to nobody.
        asked = release.Count(by=asked.by, keys=asked.keys, spend=EPSILON)
    found: list[list[Any]] = []
    wrong: list[str] = []
    for place in here:
        there = table if place is here[0] else _built(place.table(unit, bounds), steps)
        if defect in ("where", "mutate"):
            there = _broken(there, defect)
        design = asked.design(there)
        # The statement is made once and asked of both tables: no word of it follows from the rows.
        scan = Scan.of(there, [design.aggregation], Sampling(key))
        results: list[Any] = []
        for rows in pair:
            place.fill(rows)
            try:
                results += scan.exact()
            except EngineError:
                wrong.append(f"{there.engine.name} failed at {there.steps}")
        if len(results) < len(pair):
            return wrong
        found.append(results)
        if seen is not None:
            seen += results
    if defect in DEFECTS[2:-1]:
        design = asked.design(replace(table, bounds=bounds))
    else:
        design = asked.design(table)
    wrong += [
        f"integers differ between engines: {table.steps}" for each in found[1:] if each != found[0]
    ]
    return wrong + [
        f"{asked}, {unit}, {bounds}, {table.steps}: {each}"
        for each in excess(found[0][0], found[0][1], design)
    ]


def _question(rng: random.Random, defect: str) -> release.Question:
    spread = rng.choice(["points", "amount", "small", "price"])
    groups: dict[str, Any] = rng.choice([{}, {"by": "city", "keys": tables.CITIES}])
    number = release.Sum(spread, lower=-5, upper=50, granularity=1, spend=EPSILON, **groups)
    asked = rng.choice(
        [release.Count(spend=EPSILON, **groups), release.Units(spend=EPSILON, **groups), number]
    )
    if defect == "mutate":
        return release.Sum("points", lower=-5, upper=50, spend=EPSILON)
    return release.Count(spend=EPSILON) if spread == "small" or defect else asked


def _built(table: Table, steps: Sequence[Step]) -> Table:
    for made in steps:
        table = made(table)
    return table


def run(
    engine: str, cases: int, seed: int, *, first: int = 0, defect: str = "", told: bool = False
) -> list[str]:
    """The cases in which a unit moved more than is charged, an engine failed, or two engines disagree.

    Args:
        engine: "duckdb", "postgresql" or "spark"; the last two beside DuckDB.
        cases: How many.
        seed: Of the cases, which are the same on every engine.
        first: The first case.
        defect: What is planted in them.
        told: Whether to print how far it is, every ten seconds.
    """
    wrong: list[str] = []
    began = last = time.monotonic()
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        kinds = [places.frame(), places.collated()]
        others = [] if engine == "duckdb" else [stack.enter_context(places.PLACES[engine](home))]
        for number in range(first, first + cases):
            here = [kinds[number % 2], *others]
            found = case(random.Random(f"{seed} {number}"), here, defect=defect)
            wrong += [f"case {number} of seed {seed}: {each}" for each in found]
            if told and (number == first or time.monotonic() - last > 10):
                last, done = time.monotonic(), number + 1 - first
                print(
                    f"{done:,} cases, {len(wrong)} wrong, {last - began:.0f} s",
                    file=sys.stderr,
                    flush=True,
                )
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", "postgres", "spark"], default="duckdb")
    parser.add_argument("--cases", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    # Very many small objects live for one case only.
    gc.freeze()
    gc.set_threshold(200_000)
    began = time.perf_counter()
    engine = "postgresql" if given.engine == "postgres" else given.engine
    wrong = run(engine, given.cases, given.seed, first=given.first, told=True)
    controls = {defect: len(run("duckdb", 30, given.seed, defect=defect)) for defect in DEFECTS}
    print(*wrong, sep="\n")
    took = time.perf_counter() - began
    print(
        f"{given.engine}, {given.cases:,} cases, seed {given.seed}: {len(wrong)} wrong, in {took:.0f} s"
    )
    print("planted:", ", ".join(f"{name}: {number} found" for name, number in controls.items()))
    sys.exit(bool(wrong) or not all(controls.values()))


if __name__ == "__main__":
    main()
