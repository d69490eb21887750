"""The same questions have the same exact aggregates on DuckDB, PostgreSQL and Spark, integer for
integer.

python -m campaigns.release.engines [UNITS] [SEED]      (2,000 units with up to 8 odd rows each: some minutes)

PostgreSQL and Spark are started on this machine. Every question is asked under every bound.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import dpcompose.release as release
from campaigns.ledger.server import server
from campaigns.release import tables
from dpcompose.release.aggregate import exact
from dpcompose.release.table import Table

ENDS: dict[str, Any] = {"lower": -100, "upper": 1000}
EPSILON = {"epsilon": 1}
PRIVATE = {"epsilon": 1, "delta": 1e-6}
CITIES = [*tables.CITIES, None]
DAYS = [date(1969, 12, 30), date(1970, 1, 1), date(1999, 9, 9), None]
QUESTIONS: dict[str, release.Question] = {
    "count": release.Count(spend=EPSILON),
    "count by text": release.Count(by="city", keys=CITIES, spend=EPSILON),
    "count by private text": release.Count(by="city", spend=PRIVATE),
    "count by integer": release.Count(
        by="code", keys=[0, 2**40, 2**63 - 1, 9, None], spend=EPSILON
    ),
    "count by date": release.Count(by="day", keys=DAYS, spend=EPSILON),
    "count by truth": release.Count(by="flag", keys=[True, False, None], spend=EPSILON),
    "count by two": release.Count(
        by=["city", "flag"], keys=[("Zug", True), ("東京", None), ("", False)], spend=EPSILON
    ),
    "units": release.Units(spend=EPSILON),
    "units by text": release.Units(by="city", keys=CITIES, spend=EPSILON),
    "units by private pair": release.Units(by=["city", "code"], spend=PRIVATE),
    "sum of doubles": release.Sum("amount", **ENDS, granularity="0.01", spend=EPSILON),
    "sum of doubles by text": release.Sum("amount", **ENDS, by="city", keys=CITIES, spend=EPSILON),
    "sum of doubles by private text": release.Sum("amount", **ENDS, by="city", spend=PRIVATE),
    "sum in thirds": release.Sum("amount", lower=-5, upper="5.5", granularity="0.3", spend=EPSILON),
    "sum of integers": release.Sum("points", **ENDS, by="flag", keys=[True, False], spend=EPSILON),
    "sum of integers in steps": release.Sum("points", **ENDS, granularity=7, spend=EPSILON),
    "sum of huge integers": release.Sum("points", lower=-(10**12), upper=10**12, spend=EPSILON),
    "sum of floats": release.Sum("single", **ENDS, spend=EPSILON),
    "sum of small integers": release.Sum("small", lower=-40000, upper=40000, spend=EPSILON),
    "sum of decimals": release.Sum(
        "price", lower="-1e9", upper="1e9", granularity="0.01", spend=EPSILON
    ),
    "sum of truths": release.Sum("flag", lower=0, upper=1, spend=EPSILON),
    "mean": release.Mean("amount", **ENDS, by="city", keys=CITIES, spend=EPSILON),
    "mean by private date": release.Mean("points", **ENDS, by="day", spend=PRIVATE),
    "histogram": release.Histogram("amount", edges=[-1e3, -1, 0, "0.1", 5, 1e3], spend=EPSILON),
    "histogram of integers by private text": release.Histogram(
        "points", edges=[-9, 0, 1, 50], by="city", spend=PRIVATE
    ),
    "median": release.Quantile(
        "amount", 0.5, lower=-10, upper=10, granularity="0.25", spend=EPSILON
    ),
    "variance": release.Variance("amount", **ENDS, granularity=1, spend=EPSILON),
    "deviation by private text": release.StandardDeviation(
        "points", **ENDS, by="city", spend=PRIVATE
    ),
    "ratio": release.Ratio(
        "amount", per="points", **ENDS, per_lower=0, per_upper=20, spend=EPSILON
    ),
    "ratio by private truth": release.Ratio(
        "single", per="price", **ENDS, per_lower=0, per_upper=20, by="flag", spend=PRIVATE
    ),
    "distinct texts": release.Distinct("city", spend=EPSILON),
    "distinct integers by text": release.Distinct("code", by="city", keys=CITIES, spend=EPSILON),
    "distinct dates by truth": release.Distinct(
        "day", by="flag", keys=[True, False], spend=EPSILON
    ),
    "contingency table": release.Contingency(
        by=["city", "flag", "code"],
        keys=[["Zug", "東京", None], [True, None], [0, 2**40]],
        spend=EPSILON,
    ),
    "top by text": release.Top(3, by="city", keys=CITIES, spend=EPSILON),
    "top by text, peeled": release.Top(2, by="city", keys=CITIES, method="peeling", spend=EPSILON),
    "top by private integer": release.Top(2, by="code", spend=PRIVATE),
    "rows per unit": release.RowsPerUnit(spend=EPSILON),
    "rows per unit by text": release.RowsPerUnit(by="city", keys=CITIES, most=3, spend=EPSILON),
    "left out": release.LeftOut(release.Count(by="city", keys=CITIES), spend=EPSILON),
    "left out of private sums": release.LeftOut(
        release.Sum("points", **ENDS, by="day"), spend=EPSILON
    ),
    "quartiles": release.Quantiles(
        "amount", [0.25, 0.5, 0.75], lower=-10, upper=10, granularity="0.25", spend=EPSILON
    ),
    "minimum by text": release.Minimum(
        "points", lower=-9, upper=9, granularity=1, by="city", keys=CITIES, spend=EPSILON
    ),
    "maximum": release.Maximum("amount", lower=-10, upper=10, granularity="0.25", spend=EPSILON),
    "quantile by text": release.Quantile(
        "points", 0.9, lower=-9, upper=9, granularity=1, by="city", keys=CITIES, spend=EPSILON
    ),
}
BOUNDS: dict[str, dict[str, Any]] = {
    "3 rows": {"unit": "person", "max_rows_per_unit": 3},
    "many rows": {"unit": "person", "max_rows_per_unit": 10**3},
    "2 groups": {"unit": "number", "max_rows_per_unit": 5, "max_groups_per_unit": 2},
    "2 groups of 2": {
        "unit": ["person", "number"],
        "max_rows_per_unit": 3,
        "max_groups_per_unit": 2,
        "max_rows_per_group": 2,
    },
    "1 a group": {"unit": "person", "max_rows_per_unit": 4, "max_rows_per_group": 1},
}


def odd(units: int, seed: int) -> list[tuple[Any, ...]]:
    """Rows of so many units and of nobody, with everything odd in them, in any order."""
    rng = random.Random(seed)
    made = tables.rows(rng, units=units, most=8)
    made += tables.of_unit(rng, None, most=8)
    rng.shuffle(made)
    return made


def integers(table: Table, question: release.Question) -> Any:
    """The exact aggregates of a question."""
    return exact(table, question.design(table).aggregation)


def differing(here: Table, there: Table, asked: slice = slice(None)) -> list[str]:
    """The questions whose integers differ, of those that are asked."""
    questions = list(QUESTIONS.items())[asked]
    return [
        name
        for name, question in questions
        if integers(here, question) != integers(there, question)
    ]


def run(sources: dict[str, Any], frame: Any) -> Sequence[str]:
    """Return the questions whose integers differ from DuckDB's, under any bound."""
    wrong: list[str] = []
    for label, bounds in BOUNDS.items():
        here = release.table(frame, **bounds)
        for engine, source in sources.items():
            there = release.table(source, name="people", **bounds)
            found = differing(here, there)
            wrong += [f"{name} differs on {engine}, {label}" for name in found]
            print(
                f"{label:12} {engine:11} {len(QUESTIONS)} questions, {len(found)} differ",
                flush=True,
            )
    return wrong


def main() -> None:
    from campaigns.release.spark import session

    units = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    seed = int(sys.argv[2]) if len(sys.argv) > 2 else 1
    began = time.perf_counter()
    made = odd(units, seed)
    with tempfile.TemporaryDirectory() as place, server() as running, session(Path(place)) as spark:
        sources = {
            "PostgreSQL": tables.on_postgres(running.create("engines"), made),
            "Spark": tables.on_spark(spark, made, Path(place) / "people.parquet"),
        }
        wrong = run(sources, tables.arrow(made))
        sources["PostgreSQL"].close()
    print(*wrong, sep="\n")
    took = time.perf_counter() - began
    print(
        f"{units:,} units, {len(made):,} rows, seed {seed}: {len(wrong)} questions differ, {took:.0f} s"
    )
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
