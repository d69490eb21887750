"""Every question about 10^7 rows of 10^6 units beside its own plain SQL with bounds, and mixes of three in one batch.

python -m benchmarks.release_questions [--rows N] [--rounds N] [--only TEXT] [--mixes]

The SQL by hand keeps at most five rows of each unit, or five of its groups where units are counted, whichever the
engine finds first: no order, no noise, no ledger. It runs as it is written and as DuckDB runs it faster, and the faster
counts. Each runs in a process of its own, in turn. "work" is the processor time from the call to the numbers, which
other programs on the machine disturb less than the seconds; the peak is that of the whole process, imports included.
With --mixes, three questions are asked together, and their work is compared with that of the slowest of them alone.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

MOST, UNIT, GROUPS, MONTHS = 5, "person", 5000, 12
_ROWS = """(SELECT * FROM (
    SELECT {what}, row_number() OVER (PARTITION BY person){shift} AS place FROM {source}
) WHERE place <= {most}{shift})"""
BY_HAND = {
    "count": "SELECT sum(least(n, 5)) FROM (SELECT person, count(*) AS n FROM people GROUP BY person)",
    "count by city": "SELECT city, count(*) FROM {rows:city} GROUP BY city",
    "count by month": "SELECT month, count(*) FROM {rows:month} GROUP BY month",
    "units": "SELECT count(DISTINCT person) FROM people",
    "units by city": "SELECT city, count(*) FROM {pairs:city} GROUP BY city",
    "sum": "SELECT sum(clipped) FROM {rows:clipped}",
    "sum by city": "SELECT city, sum(clipped) FROM {rows:city, clipped} GROUP BY city",
    "sum by private city": "SELECT city, count(DISTINCT person), sum(clipped) FROM {rows:person, city, clipped} "
    "GROUP BY city HAVING count(DISTINCT person) > 20",
    "mean by city": "SELECT city, count(*), sum(clipped) FROM {rows:city, clipped} GROUP BY city",
    "variance": "SELECT count(*), sum(clipped), sum(clipped * clipped) FROM {rows:clipped}",
    "histogram": "SELECT floor(amount / 10), count(*) FROM {rows:amount} GROUP BY 1",
    "median": "SELECT quantile_disc(amount, 0.5) FROM {rows:amount}",
    "median by month": "SELECT month, quantile_disc(amount, 0.5) FROM {rows:month, amount} GROUP BY month",
    "distinct cities": "SELECT count(DISTINCT city) FROM {pairs:city}",
    "contingency": "SELECT month, city, count(*) FROM {rows:month, city} GROUP BY ALL",
    "top": "SELECT city, count(*) AS n FROM {rows:city} GROUP BY city ORDER BY n DESC LIMIT 3",
    "ratio": "SELECT sum(clipped), sum(other) FROM {rows:clipped, other}",
    "rows per unit": "SELECT n, count(*) FROM (SELECT person, count(*) AS n FROM people GROUP BY person) GROUP BY n",
}
MIXES = {
    "counts and a sum": ("count by city", "sum by city", "mean by city"),
    "count, sum, median": ("count", "sum", "median"),
    "units, count, private sum": ("units by city", "count by city", "sum by private city"),
    "totals": ("count", "units", "rows per unit"),
    "other groups": ("count by city", "count by month", "units by city"),
    "other columns": ("variance", "ratio", "histogram"),
}


def made(path: Path, rows: int) -> None:
    import duckdb

    duckdb.sql(
        f"""COPY (SELECT (hash(i) % {rows // 10})::BIGINT AS person,
        'city ' || lpad((hash(i + 7) % {GROUPS})::VARCHAR, 4, '0') AS city,
        'month ' || (hash(i + 17) % {MONTHS})::VARCHAR AS month,
        (hash(i + 13) % 1000)::DOUBLE / 10 AS amount, (hash(i + 19) % 100)::BIGINT AS points
        FROM range({rows}) rows(i)) TO '{path}' (FORMAT parquet)"""
    )


def cities() -> list[str]:
    return [f"city {number:04d}" for number in range(GROUPS)]


def questions() -> dict[str, Any]:
    import dpcompose.release as release

    epsilon: Any = {"spend": {"epsilon": "0.1"}}
    private: Any = {"spend": {"epsilon": "0.1", "delta": "1e-7"}}
    ends: Any = {"lower": 0, "upper": 50}
    median: Any = {"lower": 0, "upper": 100, "granularity": "0.5", **epsilon}
    city: Any = {"by": "city", "keys": cities()}
    months = [f"month {number}" for number in range(MONTHS)]
    month: Any = {"by": "month", "keys": months}
    return {
        "count": release.Count(**epsilon),
        "count by city": release.Count(**city, **epsilon),
        "count by month": release.Count(**month, **epsilon),
        "units": release.Units(**epsilon),
        "units by city": release.Units(**city, **epsilon),
        "sum": release.Sum("amount", **ends, **epsilon),
        "sum by city": release.Sum("amount", **ends, **city, **epsilon),
        "sum by private city": release.Sum("amount", **ends, by="city", **private),
        "mean by city": release.Mean("amount", **ends, **city, **epsilon),
        "variance": release.Variance("amount", **ends, granularity=1, **epsilon),
        "histogram": release.Histogram("amount", edges=[10 * at for at in range(11)], **epsilon),
        "median": release.Quantile("amount", 0.5, **median),
        "median by month": release.Quantile("amount", 0.5, **month, **median),
        "distinct cities": release.Distinct("city", **epsilon),
        "contingency": release.Contingency(
            by=["month", "city"], keys=[months, cities()], **epsilon
        ),
        "top": release.Top(3, **city, **epsilon),
        "ratio": release.Ratio(
            "amount", per="points", **ends, per_lower=0, per_upper=90, **epsilon
        ),
        "rows per unit": release.RowsPerUnit(**epsilon),
    }


def words(question: str, *, shifted: bool) -> str:
    """The SQL by hand; `row_number() <= 5` and `row_number() - 1 <= 4` are run in different ways."""
    found = BY_HAND[question]
    shift = " - 1" if shifted else ""
    start = found.find("{")
    if start < 0:
        return found
    end = found.index("}", start)
    kind, what = found[start + 1 : end].split(":")
    source = "people"
    if kind != "rows":
        source = f"(SELECT DISTINCT person, {what} FROM people)"
    rows = _ROWS.format(what=what, shift=shift, most=MOST, source=source)
    return found[:start] + rows + found[end + 1 :]


def by_hand(question: str, path: Path, *, shifted: bool) -> dict[str, float]:
    import duckdb

    connection = duckdb.connect()
    clipped = (
        "*, greatest(least(amount, 50), 0) AS clipped, greatest(least(points, 90), 0) AS other"
    )
    connection.execute(
        f"CREATE VIEW people AS SELECT {clipped} FROM read_parquet('{path}') WHERE person IS NOT NULL"
    )
    began, worked = time.perf_counter(), time.process_time()
    connection.execute(words(question, shifted=shifted)).fetchall()
    return {"seconds": time.perf_counter() - began, "work": time.process_time() - worked}


def released(asked: Sequence[str], path: Path) -> dict[str, float]:
    import dpcompose.release as release
    from dpcompose.account import open_scope
    from dpcompose.adaptive import BasicFilter
    from dpcompose.ledger import Ledger

    with tempfile.TemporaryDirectory() as home:
        ledger = Ledger.open(Path(home) / "ledger.db")
        open_scope(ledger, "world", filter=BasicFilter(10, delta=1e-5), actor="keeper")
        table = release.table(path, unit=UNIT, max_rows_per_unit=MOST)
        session = release.Session(
            table, ledger=ledger, scope="world", actor="ana", answers=Path(home) / "answers"
        )
        known = questions()
        began, worked = time.perf_counter(), time.process_time()
        session.batch([known[each] for each in asked])
        took = {"seconds": time.perf_counter() - began, "work": time.process_time() - worked}
        ledger.close()
    return took


def one(which: str, asked: Sequence[str], path: Path) -> None:
    if which == "release":
        took = released(asked, path)
    else:
        took = by_hand(asked[0], path, shifted=which == "shifted")
    print(json.dumps({**took, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measured(which: str, asked: Sequence[str], path: Path) -> dict[str, float]:
    """One run in a process of its own."""
    command = [
        sys.executable,
        "-m",
        "benchmarks.release_questions",
        "--one",
        which,
        "--path",
        str(path),
    ]
    for each in asked:
        command += ["--ask", each]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def _middle(runs: Sequence[dict[str, float]], name: str) -> float:
    return statistics.median(run[name] for run in runs)


def _line(label: str, ours: Sequence[dict[str, float]], theirs: Sequence[dict[str, float]]) -> str:
    parts = [label.ljust(28)]
    for name, unit in (("work", "s"), ("seconds", "s"), ("peak", "MB")):
        one, other = _middle(ours, name), _middle(theirs, name)
        parts.append(f"{name} {one:8.2f} {unit} beside {other:8.2f}: {one / other:5.2f}")
    return "   ".join(parts)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", default="")
    parser.add_argument("--mixes", action="store_true")
    parser.add_argument("--one", choices=["release", "plain", "shifted"])
    parser.add_argument("--ask", action="append", default=[])
    parser.add_argument("--path", type=Path)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.ask, given.path)
        return
    with tempfile.TemporaryDirectory() as home:
        path = given.path or Path(home) / "people.parquet"
        if not path.exists():
            made(path, given.rows)
        for name, asked in (MIXES if given.mixes else {name: (name,) for name in BY_HAND}).items():
            if given.only not in name:
                continue
            ours: list[dict[str, float]] = []
            others: dict[str, list[dict[str, float]]] = {}
            for _ in range(given.rounds):
                ours.append(measured("release", asked, path))
                for each in asked if given.mixes else ("plain", "shifted"):
                    which, what = ("release", (each,)) if given.mixes else (each, asked)
                    others.setdefault(each, []).append(measured(which, what, path))
            choose = max if given.mixes else min
            best = choose(others.values(), key=lambda runs: _middle(runs, "work"))
            print(_line(name, ours, best), flush=True)


if __name__ == "__main__":
    main()
