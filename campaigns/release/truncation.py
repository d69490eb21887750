"""No unit's rows change an exact aggregate by more than is charged, whichever rows are left out, on
all three engines.

python -m campaigns.release.truncation [ENGINE] [CASES] [SEED]      (duckdb, postgresql or spark; 10,000 cases)

A case is a table and the same table, shuffled, without one unit, under random bounds and a random
key. The unit has up to 200 unusual rows, or 50 in each of 12 groups; every fifth question is asked
together with two others. On DuckDB every other table has columns with a declared collation. In the
control the key depends on the rows; this must be detected.
"""

from __future__ import annotations

import itertools
import random
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb

import dpcompose.release as release
from campaigns.release import tables
from campaigns.release.engines import EPSILON, PRIVATE, QUESTIONS
from dpcompose.release.aggregate import Scan, exact
from dpcompose.release.columns import Change
from dpcompose.release.design import Design, NoiseStep, PeelingStep, RankStep, SelectionStep
from dpcompose.release.table import Table
from dpcompose.release.truncation import Sampling

Rows = Sequence[tuple[Any, ...]]
Source = Callable[[Rows], Any]
MONTHS = list(range(12))
ASKED: dict[str, release.Question] = QUESTIONS | {
    "count by month": release.Count(by="code", keys=MONTHS, spend=EPSILON),
    "units by month": release.Units(by="code", keys=MONTHS, spend=EPSILON),
    "sum by private month": release.Sum("points", lower=-5, upper=50, by="code", spend=PRIVATE),
}


def changes(design: Design) -> list[Change]:
    """How far one unit may move the vector of each step, and of the threshold."""
    found: list[Change] = []
    for step in design.steps:
        if isinstance(step, NoiseStep):
            found.append(step.noise.change)
        elif isinstance(step, (SelectionStep, RankStep, PeelingStep)):
            found.append(Change(step.selection.change, 10**9, 10**9, 10**18, box=False))
    return [*found, *([] if design.threshold is None else [design.threshold.noise.change])]


def excess(one: Any, other: Any, design: Design) -> list[str]:
    """In which norm two tables' integers differ by more than is charged."""
    keys = design.aggregation.public or tuple(one.keys() | other.keys())
    vectors = zip(
        _vectors(one, design, keys), _vectors(other, design, keys), changes(design), strict=True
    )
    found: list[str] = []
    for before, after, change in vectors:
        steps = [abs(x - y) for x, y in zip(before, after, strict=True)]
        sizes = {
            "largest": (max(steps, default=0), change.largest),
            "coordinates": (sum(step > 0 for step in steps), change.coordinates),
            "L1": (sum(steps), change.l1),
            "squared L2": (sum(step * step for step in steps), change.l2_squared),
        }
        found += [f"{name} {size} > {most}" for name, (size, most) in sizes.items() if size > most]
    return found


def _vectors(found: Any, design: Design, keys: Sequence[Any]) -> list[list[int]]:
    """For each step, and for the threshold, the vector it acts on, over all groups and bins."""
    bins = 1 if design.aggregation.bins is None else design.aggregation.bins[1].count
    nothing = (0,) * design.aggregation.width
    vectors: list[list[int]] = []
    for step, measure in zip(design.steps, design.measures, strict=True):
        cells = [
            [found.get(key, {}).get(bin, nothing)[measure] for bin in range(bins)] for key in keys
        ]
        each = (
            step.scores(cell) if isinstance(step, (SelectionStep, RankStep)) else cell
            for cell in cells
        )
        vectors.append([number for cell in each for number in cell])
    if design.threshold is not None:
        measure = design.threshold.measure
        vectors.append([sum(bin[measure] for bin in found.get(key, {}).values()) for key in keys])
    return vectors


def integers(
    table: Table, design: Design, key: bytes, beside: Sequence[release.Question] = ()
) -> Any:
    """The exact aggregates of a design, asked alone, or in one statement with other questions."""
    if not beside:
        return exact(table, design.aggregation, Sampling(key))
    whole = [design.aggregation, *(question.design(table).aggregation for question in beside)]
    return Scan.of(table, whole, Sampling(key)).exact()[0]


def case(rng: random.Random, source: Source, *, key_of_rows: bool = False) -> list[str]:
    """What is wrong with one pair of tables."""
    most = rng.choice([1, 2, 3, 7, 60])
    bounds: dict[str, Any] = {"max_rows_per_unit": most}
    if rng.random() < 0.5:
        bounds |= {
            "max_groups_per_unit": rng.randint(1, most),
            "max_rows_per_group": rng.randint(1, most),
        }
    bounds["unit"] = rng.choice(["person", "number", ["person", "number"]])
    without = tables.rows(rng, units=rng.choice([1, 3, 9]), most=12, nothing=rng.choice([0.0, 0.3]))
    unit = tables.of_unit(
        rng, f"p{rng.choice([99, 2**31 - 1, 2**31, 2**63 - 1])}", most=rng.choice([9, 200])
    )
    if unit and rng.random() < 0.3:
        at = tables.SCHEMA.get_field_index("code")
        unit = [(*unit[0][:at], month, *unit[0][at + 1 :]) for month in MONTHS for _ in range(50)]
    name = rng.choice([*ASKED])
    key = rng.randbytes(8)
    beside = [ASKED[each] for each in rng.sample([*ASKED], 2)] if rng.random() < 0.2 else []
    found: list[Any] = []
    for rows in (without, [*without, *unit]):
        shuffled = rng.sample(rows, len(rows))
        table = release.table(source(shuffled), name="people", **bounds)
        design = ASKED[name].design(table)
        found.append(
            integers(table, design, key + bytes(len(rows)) if key_of_rows else key, beside)
        )
        if table.engine.name != "Spark":
            # To close a table of Spark's would stop its session.
            table.close()
    return [f"{name}, {bounds}: {each}" for each in excess(found[0], found[1], design)]


@contextmanager
def _duckdb(home: Path) -> Iterator[Source]:
    types = tables.TYPES.replace("text", "VARCHAR COLLATE nocase.noaccent")
    columns = ", ".join(
        f"{name} {kind.strip()}"
        for name, kind in zip(tables.SCHEMA.names, tables.split(types), strict=True)
    )
    calls = itertools.count()

    def source(rows: Rows) -> Any:
        # Both tables of a case are of the same kind.
        if next(calls) // 2 % 2:
            return tables.arrow(rows)
        connection = duckdb.connect()
        connection.execute(f"CREATE TABLE people ({columns})")
        connection.register("odd", tables.arrow(rows))
        connection.execute("INSERT INTO people SELECT * FROM odd")
        return connection

    yield source


@contextmanager
def _postgresql(home: Path) -> Iterator[Source]:
    from campaigns.ledger.server import server

    with server() as running:
        url = running.create("truncation")
        yield lambda rows: tables.on_postgres(url, rows)


@contextmanager
def _spark(home: Path) -> Iterator[Source]:
    from campaigns.release.spark import session

    with session(home) as spark:
        yield lambda rows: tables.on_spark(spark, rows, home / "people.parquet")


ENGINES = {"duckdb": _duckdb, "postgresql": _postgresql, "spark": _spark}


def run(engine: str, cases: int, seed: int, *, key_of_rows: bool = False) -> list[str]:
    """The cases in which a unit moved more than is charged."""
    wrong: list[str] = []
    with tempfile.TemporaryDirectory() as home, ENGINES[engine](Path(home)) as source:
        for number in range(cases):
            found = case(random.Random(f"{seed} {number}"), source, key_of_rows=key_of_rows)
            wrong += [f"case {number} of seed {seed}: {each}" for each in found]
            if (number + 1) % 100 == 0:
                print(f"{number + 1:,} cases, {len(wrong)} wrong", file=sys.stderr, flush=True)
    return wrong


def main() -> None:
    engine = sys.argv[1] if len(sys.argv) > 1 else "duckdb"
    cases = int(sys.argv[2]) if len(sys.argv) > 2 else 10_000
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    began = time.perf_counter()
    wrong = run(engine, cases, seed)
    control = run("duckdb", 40, seed, key_of_rows=True)
    print(*wrong, sep="\n")
    took = time.perf_counter() - began
    print(
        f"{engine}, {cases:,} cases, seed {seed}: {len(wrong)} wrong, in {took:.0f} s; control: {len(control)} found"
    )
    sys.exit(bool(wrong) or not control)


if __name__ == "__main__":
    main()
