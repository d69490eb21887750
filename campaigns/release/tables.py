"""Small tables with unusual values, created in the same way on every engine."""

from __future__ import annotations

import random
from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from dpcompose.release.query import Query, run

SCHEMA = pa.schema(
    [
        ("person", pa.string()),
        ("number", pa.int64()),
        ("city", pa.string()),
        ("code", pa.int64()),
        ("day", pa.date32()),
        ("flag", pa.bool_()),
        ("amount", pa.float64()),
        ("single", pa.float32()),
        ("points", pa.int64()),
        ("small", pa.int16()),
        ("price", pa.decimal128(12, 2)),
    ]
)
TYPES = "text, bigint, text, bigint, date, boolean, double precision, real, bigint, smallint, numeric(12,2)"
CITIES = [
    "Ans",
    "ans",
    "Ärzen",
    "ärzen",
    "Zug",
    "z\\u",
    "o'k",
    'q"q',
    "",
    " ",
    "東京",
    "𝄞",
    "\uff21",
    "a b\t\n",
    "%_",
    "NULL",
]
AMOUNTS = [
    0.0,
    -0.0,
    1.5,
    -2.25,
    1e-320,
    -1e-300,
    5e-324,
    1e300,
    -1e300,
    1.7976931348623157e308,
    0.1,
    0.005,
    2.675,
]
AMOUNTS += [float("inf"), float("-inf"), float("nan"), 9007199254740993.0, 99.995, 0.125, 1e-9]
FAR = 3_000_000
"""A date as days since 1970, in a year that Python's dates do not reach."""
DAYS = [*(date(1969, 12, 30) + timedelta(days=day) for day in range(6)), FAR]
POINTS = [0, 1, -1, 7, 2**53 + 1, -(2**53) - 1, 2**63 - 1, -(2**63), 1000, 12]


def rows(
    rng: random.Random, *, units: int, most: int, nothing: float = 0.1
) -> list[tuple[Any, ...]]:
    """The rows of so many units, up to `most` each; every value may be missing."""
    return [
        row for unit in range(units) for row in of_unit(rng, f"p{unit}", most=most, nothing=nothing)
    ]


def of_unit(
    rng: random.Random, person: str | None, *, most: int, nothing: float = 0.1
) -> list[tuple[Any, ...]]:
    """The rows of one unit; sometimes the same one several times."""
    found = [_row(rng, person, nothing) for _ in range(rng.randint(0, most))]
    return found + [found[0]] * rng.randint(0, 2) if found else found


def _row(rng: random.Random, person: str | None, nothing: float) -> tuple[Any, ...]:
    amount = rng.choice([*AMOUNTS, rng.gauss(0, 10), rng.uniform(-1e3, 1e3)])
    values = [
        person,
        None if person is None else int(person[1:]) if person[1:].isdigit() else 77,
        rng.choice(CITIES),
        rng.choice([0, 1, 2, 3, -5, 2**40, 2**63 - 1]),
        rng.choice(DAYS),
        rng.random() < 0.5,
        amount,
        rng.choice([0.1, -3.25, float("nan"), float("inf"), 3e38, 1e-45]),
        rng.choice([*POINTS, rng.randrange(-50, 50)]),
        rng.choice([-32768, 32767, 0, 3]),
        Decimal(rng.randrange(-(10**12) + 1, 10**12)).scaleb(-2)
        if rng.random() < 0.5
        else Decimal("0.05"),
    ]
    return tuple(
        value if at < 2 or rng.random() > nothing else None for at, value in enumerate(values)
    )


def arrow(found: Sequence[tuple[Any, ...]]) -> pa.Table:
    """The rows as an Arrow table, of one schema whatever they are."""
    columns = list(zip(*found, strict=True)) if found else [()] * len(SCHEMA)
    return pa.table(
        [pa.array(cells, type=each.type) for cells, each in zip(columns, SCHEMA, strict=True)],
        schema=SCHEMA,
    )


def on_postgres(url: str, found: Sequence[tuple[Any, ...]], name: str = "people") -> Any:
    """A connection to a PostgreSQL database with the rows as a table."""
    import psycopg

    columns = ", ".join(
        f"{each} {kind.strip()}" for each, kind in zip(SCHEMA.names, split(TYPES), strict=True)
    )
    with psycopg.connect(url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute(_sql(f"DROP TABLE IF EXISTS {name}"))
        cursor.execute(_sql(f"CREATE TABLE {name} ({columns})"))
        marks = ", ".join(["%s"] * len(SCHEMA))
        if found:
            cursor.executemany(_sql(f"INSERT INTO {name} VALUES ({marks})"), for_postgres(found))
    return psycopg.connect(url, autocommit=True)


def for_postgres(found: Sequence[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """The rows as PostgreSQL takes them: a date beyond Python's is one beyond all."""
    day = SCHEMA.get_field_index("day")
    return [
        (*row[:day], "infinity" if row[day] == FAR else row[day], *row[day + 1 :]) for row in found
    ]


def _sql(statement: str) -> Any:
    """A statement of our own making; psycopg wants literals."""
    return statement


def on_spark(
    session: Any, found: Sequence[tuple[Any, ...]], path: Path, name: str = "people"
) -> Any:
    """The Spark session, with the rows as a view."""
    pq.write_table(arrow(found), path)
    session.read.parquet(str(path)).createOrReplaceTempView(name)
    return session


def split(types: str) -> list[str]:
    """Column types one by one; a comma without a blank stays."""
    return types.split(", ")


def rows_of(query: Query) -> list[dict[str, Any]]:
    """The rows of a query, by the names of its columns."""
    found = run(query)
    return [dict(zip(query.columns, row, strict=True)) for row in found]
