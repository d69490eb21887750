"""Storage for the rows of a campaign: a table that is opened once on each engine, and gets new rows
for each case.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import duckdb
import pyarrow.parquet as pq

import dpcompose.release as release
from campaigns.release import tables
from dpcompose.release.columns import Bounds
from dpcompose.release.table import Table

Rows = Sequence[tuple[Any, ...]]


@dataclass(frozen=True)
class Place:
    """A table of an engine.

    Args:
        opened: As it was opened, without rows.
        fill: Puts these rows in place of those that it has.
    """

    opened: Table
    fill: Callable[[Rows], None]

    def table(self, unit: tuple[str, ...], bounds: Bounds) -> Table:
        """The table with this unit and these bounds."""
        return replace(self.opened, unit=unit, bounds=bounds)


def _opened(source: Any) -> Table:
    return release.table(source, unit="person", max_rows_per_unit=1, name="people")


def frame() -> Place:
    """A frame, as DuckDB is handed it."""
    opened = _opened(tables.arrow([]))
    name, connection = opened.data.name.strip('"'), opened.engine.raw
    return Place(opened, lambda rows: connection.register(name, tables.arrow(rows)))


def collated() -> Place:
    """A table of DuckDB whose texts are declared with a collation."""
    types = tables.TYPES.replace("text", "VARCHAR COLLATE nocase.noaccent")
    columns = ", ".join(
        f"{name} {kind.strip()}"
        for name, kind in zip(tables.SCHEMA.names, tables.split(types), strict=True)
    )
    connection = duckdb.connect()

    def fill(rows: Rows) -> None:
        connection.execute(f"CREATE OR REPLACE TABLE people ({columns})")
        connection.register("odd", tables.arrow(rows))
        connection.execute("INSERT INTO people SELECT * FROM odd")

    fill([])
    return Place(_opened(connection), fill)


@contextmanager
def _postgresql(home: Path) -> Iterator[Place]:
    from campaigns.ledger.server import server

    with server() as running:
        opened = _opened(tables.on_postgres(running.create("campaign"), []))
        connection = opened.engine.raw
        # To compile a statement about twenty rows takes a thousand times as long as to run it.
        connection.execute("SET jit = off")

        def fill(rows: Rows) -> None:
            with connection.cursor() as cursor:
                cursor.execute("DELETE FROM people")
                with cursor.copy("COPY people FROM STDIN") as copy:
                    for row in tables.for_postgres(rows):
                        copy.write_row(row)

        yield Place(opened, fill)
        opened.close()


@contextmanager
def _spark(home: Path) -> Iterator[Place]:
    from campaigns.release.spark import session

    # Small queries take a third of the time where none is compiled; campaigns.release.engines asks compiled ones.
    interpreted = {
        "spark_sql_codegen_wholeStage": "false",
        "spark_sql_codegen_factoryMode": "NO_CODEGEN",
    }
    with session(
        home, **interpreted, spark_sql_adaptive_enabled="false", spark_sql_shuffle_partitions="1"
    ) as spark:
        calls = itertools.count()

        def fill(rows: Rows) -> None:
            # Spark remembers the files of a path: each pair of tables has paths of its own.
            path = home / f"people{next(calls)}.parquet"
            pq.write_table(tables.arrow(rows), path)
            spark.read.parquet(str(path)).createOrReplaceTempView("people")

        fill([])
        yield Place(_opened(spark), fill)


PLACES = {"postgresql": _postgresql, "spark": _spark}
