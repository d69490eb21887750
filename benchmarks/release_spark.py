"""A batch of three questions to 10^8 rows, 10^7 units, 5,000 groups on Spark, 1 GB for driver and executor together.

python -m benchmarks.release_spark [--rows N] [--home DIRECTORY]

Spark makes a folder of Parquet files and is asked for it: counts for public groups, a sum for private ones, units. In
local mode one JVM is driver and executor; its heap is 1 GB. Printed are the seconds from the call to the numbers, and
the largest memory of the JVM and of this process. The folder is kept in --home, and taken from there the next time.
"""

from __future__ import annotations

import argparse
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import dpcompose.release as release
from campaigns.release.spark import session
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.ledger import Ledger

GROUPS, MOST = 5000, 5


def made(spark: Any, folder: Path, rows: int) -> Any:
    """The folder as a frame of Spark's."""
    if not (folder / "_SUCCESS").exists():
        columns = [
            f"pmod(xxhash64(id), {max(rows // 10, 1)}) AS person",
            f"concat('city ', lpad(cast(pmod(xxhash64(id + 7), {GROUPS}) AS string), 4, '0')) AS city",
            "cast(pmod(xxhash64(id + 13), 1000) AS double) / 10 AS amount",
        ]
        spark.range(0, rows, 1, 16).selectExpr(*columns).write.mode("overwrite").parquet(
            str(folder)
        )
    return spark.read.parquet(str(folder))


def batch(spark: Any, frame: Any, home: Path) -> tuple[float, list[int]]:
    """The seconds that three questions take, and how many rows each answer has."""
    ledger = Ledger.open(home / "ledger.db")
    open_scope(ledger, "world", filter=BasicFilter(10, delta=1e-5), actor="keeper")
    table = release.table(frame, unit="person", max_rows_per_unit=MOST, name="people")
    asked = release.Session(table, ledger=ledger, scope="world", actor="ana")
    cities = [f"city {number:04d}" for number in range(GROUPS)]
    private = {"epsilon": 1, "delta": 1e-6}
    questions = [
        release.Count(by="city", keys=cities, spend={"epsilon": 1}),
        release.Sum("amount", lower=0, upper=50, by="city", spend=private),
        release.Units(spend={"epsilon": 1}),
    ]
    began = time.perf_counter()
    answers = asked.batch(questions)
    took = time.perf_counter() - began
    ledger.close()
    return took, [answer.table.num_rows for answer in answers]


def peak() -> int:
    """The largest memory of a process below this one, in MB: Spark's."""
    return max(
        int(line.split()[1]) // 1024
        for status in Path("/proc").glob("[0-9]*/status")
        if "Name:\tjava" in (words := status.read_text())
        for line in words.splitlines()
        if line.startswith("VmHWM")
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=10**8)
    parser.add_argument("--home", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        home = given.home or Path(scratch)
        # Parts as small as they are made: put together, they would not fit the memory, and be written to disk.
        apart = {
            "spark_sql_shuffle_partitions": "128",
            "spark_sql_adaptive_coalescePartitions_enabled": "false",
        }
        # Both compilers, as in a session of one's own.
        apart["spark_driver_extraJavaOptions"] = f"-Dderby.system.home={scratch}"
        with session(Path(scratch), **apart) as spark:
            began = time.perf_counter()
            frame = made(spark, home / f"people-{given.rows}", given.rows)
            print(f"{given.rows:,} rows: folder in {time.perf_counter() - began:.0f} s", flush=True)
            took, rows = batch(spark, frame, Path(scratch))
            own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
            print(
                f"{given.rows:,} rows: {took:.0f} s, answers of {rows} rows, JVM {peak()} MB, Python {own} MB"
            )


if __name__ == "__main__":
    main()
