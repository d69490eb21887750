"""A release on 10^7 rows, 10^6 units and 5,000 groups beside the same bounded aggregation written by hand in SQL.

python -m benchmarks.release [--question count|sum|batch] [--rows N] [--rounds N]

By hand it is written in several ways, and the fastest is what counts: at most five rows of each unit, the first by
city, by a hash, by the number of the city, or whichever the engine finds first (which ones that are may differ from run
to run). Each round runs all in fresh processes, in turn. The time is from the call to the numbers, ledger and noise
included, imports not; "work" is the processor time of it, which other programs on the machine disturb less; the memory
is the peak of the whole process, imports included. For "batch" the count, sum and mean of every city are asked at once,
beside each of them alone.
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
from pathlib import Path
from typing import Any

GROUPS, MOST, LOWER, UPPER = 5000, 5, 0, 50
_BY_HAND = """
SELECT city, {what} FROM (
    SELECT city, amount, row_number() OVER (PARTITION BY person {order}){shift} AS place
    FROM read_parquet('{path}') WHERE person IS NOT NULL AND city IN (SELECT city FROM cities)
) WHERE place <= {most}{shift} GROUP BY city
"""
# What a release does too: small integers in place of text, in the window and in the groups.
_NUMBERED = """
SELECT city, found FROM (
    SELECT number, {what} AS found FROM (
        SELECT number, amount, row_number() OVER (PARTITION BY person {order}){shift} AS place
        FROM read_parquet('{path}') JOIN cities USING (city) WHERE person IS NOT NULL
    ) WHERE place <= {most}{shift} GROUP BY number
) JOIN cities USING (number)
"""
WHAT = {"count": "count(*)", "sum": f"sum(greatest(least(amount, {UPPER}), {LOWER}))"}
# DuckDB turns a bare "row_number() <= k" into a different plan, slower here: the other one is written down too.
FORMS = {
    "by city": ("ORDER BY city, amount", ""),
    "by city, shifted": ("ORDER BY city, amount", " - 1"),
    "by hash, shifted": ("ORDER BY hash(city, amount)", " - 1"),
    "any, shifted": ("", " - 1"),
    "by number, shifted": ("ORDER BY number, amount", " - 1"),
}


def cities() -> list[str]:
    return [f"city {number:04d}" for number in range(GROUPS)]


def made(path: Path, rows: int) -> None:
    import duckdb

    duckdb.sql(
        f"""COPY (SELECT (hash(i) % {rows // 10})::BIGINT AS person,
        'city ' || lpad((hash(i + 7) % {GROUPS})::VARCHAR, 4, '0') AS city,
        (hash(i + 13) % 1000)::DOUBLE / 10 AS amount
        FROM range({rows}) rows(i)) TO '{path}' (FORMAT parquet)"""
    )


def by_hand(form: str, question: str, path: Path) -> tuple[float, float]:
    import duckdb
    import pyarrow as pa

    connection = duckdb.connect()
    listed = pa.table({"city": cities(), "number": pa.array(range(GROUPS), pa.int32())})
    connection.register("cities", listed)
    order, shift = FORMS[form]
    order = order if question == "sum" else order.replace(", amount", "")
    written = _NUMBERED if "number" in form else _BY_HAND
    words = written.format(what=WHAT[question], order=order, shift=shift, path=path, most=MOST)
    began, worked = time.perf_counter(), time.process_time()
    found = connection.execute(words).fetchall()
    took = time.perf_counter() - began, time.process_time() - worked
    assert len(found) == GROUPS
    return took


def released(question: str, path: Path) -> tuple[float, float]:
    import dpcompose.release as release
    from dpcompose.account import open_scope
    from dpcompose.adaptive import PureFilter
    from dpcompose.ledger import Ledger

    with tempfile.TemporaryDirectory() as home:
        ledger = Ledger.open(Path(home) / "ledger.db")
        open_scope(ledger, "world", filter=PureFilter(1.0), actor="keeper")
        table = release.table(path, unit="person", max_rows_per_unit=MOST)
        session = release.Session(
            table, ledger=ledger, scope="world", actor="ana", answers=Path(home) / "answers"
        )
        grouped: Any = {"by": "city", "keys": cities(), "spend": {"epsilon": "0.1"}}
        ends: Any = {"lower": LOWER, "upper": UPPER}
        asked: dict[str, Any] = {
            "count": release.Count(**grouped),
            "sum": release.Sum("amount", **ends, **grouped),
            "mean": release.Mean("amount", **ends, **grouped),
        }
        began, worked = time.perf_counter(), time.process_time()
        answers = session.batch([*asked.values()] if question == "batch" else [asked[question]])
        rows = [answer.table.num_rows for answer in answers]
        took = time.perf_counter() - began, time.process_time() - worked
        assert set(rows) == {GROUPS}
        ledger.close()
    return took


def one(which: str, question: str, path: Path) -> None:
    took, worked = by_hand(which, question, path) if which in FORMS else released(question, path)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": took, "work": worked, "peak": peak}))


def measured(which: str, question: str, path: Path) -> dict[str, float]:
    command = [
        sys.executable,
        "-m",
        "benchmarks.release",
        "--one",
        which,
        "--question",
        question,
        "--path",
        str(path),
    ]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--question", choices=["count", "sum", "mean", "batch"], default="count")
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", choices=[*FORMS, "release"])
    parser.add_argument("--path", type=Path)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.question, given.path)
        return
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "people.parquet"
        made(path, given.rows)
        asked: dict[str, str] = dict.fromkeys((*FORMS, "release"), str(given.question))
        if given.question == "batch":
            asked = {"count": "count", "sum": "sum", "mean": "mean", "release": "batch"}
        runs = [
            {
                which: measured(which if which in FORMS else "release", asked[which], path)
                for which in asked
            }
            for _ in range(given.rounds)
        ]
    everyone = [*asked]
    # Beside the fastest form by hand; a batch beside the slowest of its questions.
    choose = max if given.question == "batch" else min
    best = choose(
        everyone[:-1], key=lambda which: statistics.median(run[which]["seconds"] for run in runs)
    )
    for name, unit in (("seconds", "s"), ("work", "s"), ("peak", "MB")):
        for which in everyone:
            middle = statistics.median(run[which][name] for run in runs)
            ratio = statistics.median(run[which][name] / run[best][name] for run in runs)
            print(f"{name:8} {which:18} {middle:9.3f} {unit:2}   {ratio:.3f} of {best!r}")


if __name__ == "__main__":
    main()
