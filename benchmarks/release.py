"""A release on 10^7 rows, 10^6 units and 5,000 groups beside the same bounded aggregation written by hand in SQL.

python -m benchmarks.release [--rows N] [--rounds N]

Each round runs both in fresh processes, in turn. The time is from the call to the numbers, ledger and noise included,
imports not; the memory is the peak of the whole process, imports included.
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

GROUPS, MOST = 5000, 5
_BY_HAND = """
SELECT city, count(*) FROM (
    SELECT city, row_number() OVER (PARTITION BY person ORDER BY city){shift} AS place
    FROM read_parquet('{path}') WHERE person IS NOT NULL AND city IN ({cities})
) WHERE place <= {most}{shift} GROUP BY city
"""
# DuckDB turns a bare "row_number() <= k" into a different plan, slower here: the other one is written down too, and the
# faster of both is what counts.
BY_HAND = {"hand": _BY_HAND.replace("{shift}", ""), "hand, shifted": _BY_HAND.replace("{shift}", " - 1")}


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


def by_hand(which: str, path: Path) -> float:
    import duckdb

    connection = duckdb.connect()
    listed = ", ".join(f"'{city}'" for city in cities())
    began = time.perf_counter()
    found = connection.execute(BY_HAND[which].format(path=path, cities=listed, most=MOST)).fetchall()
    took = time.perf_counter() - began
    assert len(found) == GROUPS
    return took


def released(path: Path) -> float:
    import dpcompose.release as release
    from dpcompose.account import open_scope
    from dpcompose.adaptive import PureFilter
    from dpcompose.ledger import Ledger

    with tempfile.TemporaryDirectory() as home:
        ledger = Ledger.open(Path(home) / "ledger.db")
        open_scope(ledger, "world", filter=PureFilter(1.0), actor="keeper")
        table = release.table(path, unit="person", max_rows_per_unit=MOST)
        session = release.Session(table, ledger=ledger, scope="world", actor="ana", answers=Path(home) / "answers")
        began = time.perf_counter()
        answer = session.count(by="city", keys=cities(), spend={"epsilon": "0.1"})
        rows = answer.table.num_rows
        took = time.perf_counter() - began
        assert rows == GROUPS
        ledger.close()
    return took


def one(which: str, path: Path) -> None:
    took = by_hand(which, path) if which in BY_HAND else released(path)
    print(json.dumps({"seconds": took, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))


def measured(which: str, path: Path) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.release", "--one", which, "--path", str(path)]
    return json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**7)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--one", choices=[*BY_HAND, "release"])
    parser.add_argument("--path", type=Path)
    given = parser.parse_args()
    if given.one:
        one(given.one, given.path)
        return
    with tempfile.TemporaryDirectory() as home:
        path = Path(home) / "people.parquet"
        made(path, given.rows)
        runs = [{which: measured(which, path) for which in (*BY_HAND, "release")} for _ in range(given.rounds)]
    best = min(BY_HAND, key=lambda which: statistics.median(run[which]["seconds"] for run in runs))
    for name, unit in (("seconds", "s"), ("peak", "MB")):
        for which in (*BY_HAND, "release"):
            middle = statistics.median(run[which][name] for run in runs)
            ratio = statistics.median(run[which][name] / run[best][name] for run in runs)
            print(f"{name:8} {which:14} {middle:9.3f} {unit:2}   {ratio:.3f} of {best!r}")



if __name__ == "__main__":
    main()
