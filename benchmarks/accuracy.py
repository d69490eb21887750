"""Mean absolute errors at equal epsilon beside OpenDP, SmartNoise and Tumult, in one run.

python -m benchmarks.accuracy [--draws N] [--epsilon E] [--opendp PYTHON] [--smartnoise PYTHON]

Each peer runs in an environment of its own, named by its Python; what is not named is left out. Tumult Analytics has no
package for this Python on the index ("No matching distribution found for tumult-analytics"), so it is not compared.
2,000 people with a row each; amounts are integers from 0 to 100.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import subprocess
import sys
import tempfile
from bisect import bisect_left, bisect_right
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa

import dpcompose.release as release
from dpcompose.release.aggregate import exact

ENDS: dict[str, Any] = {"lower": 0, "upper": 100}
CITIES = tuple("abcdefgh")
QUESTIONS: dict[str, release.Question] = {
    "count": release.Count(),
    "counts by city": release.Count(by="city", keys=CITIES),
    "contingency table": release.Contingency(
        by=["city", "sex", "old"], keys=[CITIES, ("f", "m"), (0, 1)]
    ),
    "histogram": release.Histogram("amount", edges=list(range(0, 101, 10))),
    "sum": release.Sum("amount", **ENDS),
    "mean": release.Mean("amount", **ENDS),
    "variance": release.Variance("amount", **ENDS),
    "standard deviation": release.StandardDeviation("amount", **ENDS),
    "ratio": release.Ratio("amount", per="hours", per_lower=0, per_upper=10, **ENDS),
    "median, in rows": release.Quantile("amount", 0.5, **ENDS, granularity=1),
    "quartiles, in rows": release.Quantiles("amount", qs=[0.25, 0.5, 0.75], **ENDS, granularity=1),
    "top 3 cities, rows lost": release.Top(3, by="city", keys=CITIES),
}
"""Errors are means over the cells of an answer."""


def made(people: int = 2000) -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [
        {
            "person": who,
            "city": rng.choices(CITIES, range(20, 28))[0],
            "sex": rng.choice("fm"),
            "old": rng.randrange(2),
            "hours": rng.randrange(11),
            "amount": min(int(rng.lognormvariate(3, 0.7)), 100),
        }
        for who in range(people)
    ]


def truths_of(rows: list[dict[str, Any]]) -> dict[str, list[float]]:
    """The cells without noise, of the questions whose error is a distance."""
    amounts = [row["amount"] for row in rows]
    cells = Counter((row["city"], row["sex"], row["old"]) for row in rows)
    cities = Counter(row["city"] for row in rows)
    bins = Counter(min(amount // 10, 9) for amount in amounts)
    return {
        "count": [len(rows)],
        "counts by city": [cities[city] for city in CITIES],
        "contingency table": [
            cells[city, sex, old] for city in CITIES for sex in "fm" for old in (0, 1)
        ],
        "histogram": [bins[place] for place in range(10)],
        "sum": [sum(amounts)],
        "mean": [statistics.fmean(amounts)],
        "variance": [statistics.pvariance(amounts)],
        "standard deviation": [statistics.pstdev(amounts)],
        "ratio": [sum(amounts) / sum(row["hours"] for row in rows)],
    }


def own(rows: list[dict[str, Any]], epsilon: float, draws: int) -> dict[str, float]:
    """What dpcompose's answers are off by."""
    table = release.table(pa.Table.from_pylist(rows), unit="person", max_rows_per_unit=1)
    amounts, truths = sorted(row["amount"] for row in rows), truths_of(rows)
    cities = Counter(row["city"] for row in rows)
    best = sum(count for _, count in cities.most_common(3))
    found: dict[str, float] = {}
    for name, question in QUESTIONS.items():
        design = question.design(table, {"epsilon": epsilon})
        integers = exact(table, design.aggregation)
        errors: list[float] = []
        for _ in range(draws):
            noisy = question.ordered(design.draw(integers))
            drawn = question.columns(design, noisy)
            if name in truths:
                cells = next(
                    each.cells
                    for each in drawn
                    if each.name in (name.replace(" ", "_"), "count", name)
                )
                errors.append(statistics.fmean(map(_distance, cells, truths[name])))
            elif name.startswith("top"):
                errors.append(best - sum(cities[city] for (city,) in noisy.keys))
            else:
                shares = [0.25, 0.5, 0.75] if name.startswith("quartiles") else [0.5]
                errors.append(statistics.fmean(map(_rank, drawn[-1].cells, shares, [amounts] * 3)))
        found[name] = statistics.fmean(errors)
    return found


def _distance(cell: float, truth: float) -> float:
    return abs(cell - truth)


def _rank(value: float, q: float, ordered: list[int]) -> float:
    below, above = bisect_left(ordered, value), len(ordered) - bisect_right(ordered, value)
    return max(below - q * len(ordered), above - (1 - q) * len(ordered), 0)


def peer(name: str, python: str, path: Path, epsilon: float, draws: int) -> dict[str, float]:
    script = Path(__file__).with_name("accuracy_peers.py")
    done = subprocess.run(
        [python, str(script), name, str(path), str(epsilon), str(draws)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        print(f"{name} failed: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return {}
    return json.loads(done.stdout.strip().splitlines()[-1])


def main() -> None:
    parser = argparse.ArgumentParser(description="Errors at equal epsilon.")
    parser.add_argument("--draws", type=int, default=2000)
    parser.add_argument("--epsilon", type=float, default=1.0)
    parser.add_argument("--opendp")
    parser.add_argument("--smartnoise")
    given = parser.parse_args()
    rows = made()
    columns = {"dpcompose": own(rows, given.epsilon, given.draws)}
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "rows.json"
        path.write_text(json.dumps(rows))
        for name, python in (("opendp", given.opendp), ("smartnoise", given.smartnoise)):
            if python:
                columns[name] = peer(name, python, path, given.epsilon, given.draws)
    print(f"epsilon {given.epsilon:g}, {given.draws:,} draws, mean absolute error")
    print("question".ljust(26) + "".join(name.rjust(14) for name in columns))
    for question in QUESTIONS:
        cells = (errors.get(question, math.nan) for errors in columns.values())
        print(
            question.ljust(26)
            + "".join(("-" if math.isnan(cell) else f"{cell:.4g}").rjust(14) for cell in cells)
        )


if __name__ == "__main__":
    main()
