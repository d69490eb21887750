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
from pathlib import Path
from typing import Any

import pyarrow as pa

import dpcompose.release as release
from dpcompose.release.aggregate import exact

ENDS: dict[str, Any] = {"lower": 0, "upper": 100}
QUESTIONS: dict[str, release.Question] = {
    "count": release.Count(),
    "sum": release.Sum("amount", **ENDS),
    "mean": release.Mean("amount", **ENDS),
    "variance": release.Variance("amount", **ENDS),
    "median, in rows": release.Quantile("amount", 0.5, **ENDS, granularity=1),
}


def made(people: int = 2000) -> list[dict[str, Any]]:
    rng = random.Random(5)
    return [
        {"person": who, "city": rng.choice("abc"), "amount": min(int(rng.lognormvariate(3, 0.7)), 100)}
        for who in range(people)
    ]


def own(rows: list[dict[str, Any]], epsilon: float, draws: int) -> dict[str, float]:
    """What dpcompose's answers are off by."""
    table = release.table(pa.Table.from_pylist(rows), unit="person", max_rows_per_unit=1)
    amounts = [row["amount"] for row in rows]
    truths = {
        "count": len(rows),
        "sum": sum(amounts),
        "mean": statistics.fmean(amounts),
        "variance": statistics.pvariance(amounts),
    }
    found: dict[str, float] = {}
    for name, question in QUESTIONS.items():
        design = question.design(table, {"epsilon": epsilon})
        integers = exact(table, design.aggregation)
        seen = [question.columns(design, design.draw(integers))[0].cells[0] for _ in range(draws)]
        found[name] = statistics.fmean(
            _rank(amounts, value) if name == "median, in rows" else abs(value - truths[name]) for value in seen
        )
    return found


def _rank(amounts: list[int], value: int) -> float:
    below, above = (sum(each < value for each in amounts), sum(each > value for each in amounts))
    return max(below - len(amounts) / 2, above - len(amounts) / 2, 0)


def peer(name: str, python: str, path: Path, epsilon: float, draws: int) -> dict[str, float]:
    script = Path(__file__).with_name("accuracy_peers.py")
    done = subprocess.run(
        [python, str(script), name, str(path), str(epsilon), str(draws)], capture_output=True, text=True, check=False
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
    print("question".ljust(18) + "".join(name.rjust(14) for name in columns))
    for question in QUESTIONS:
        cells = (errors.get(question, math.nan) for errors in columns.values())
        print(question.ljust(18) + "".join(("-" if math.isnan(cell) else f"{cell:.4g}").rjust(14) for cell in cells))


if __name__ == "__main__":
    main()
