"""One odd person in a table of PostgreSQL: the same refusals, no failure, and no more moved than is charged.

python -m campaigns.release.odd_columns [STATEMENTS] [SEED] [--control]      (1,000 statements)

Statements are those of `campaigns.service.hostile`, about columns of the types that PostgreSQL has for numbers, texts,
dates and times. Each is asked of a table without an odd person and of the same table with one, whose rows hold values at
the ends of these types or beyond those of other engines. The exact integers may differ by no more than is charged. In the
control decimals are converted as they are, which fails for odd people alone: this must be found.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import psycopg

import dpcompose.release as release
from campaigns.ledger.server import Server, server
from campaigns.release.truncation import excess, integers
from campaigns.service.hostile import statement
from dpcompose.errors import DPComposeError, EngineError
from dpcompose.release.engines import OnPostgreSQL
from dpcompose.release.table import Table

COLUMNS = {
    "person": "text",
    "note": "text",
    "ward": "text",
    "minutes": "bigint",
    "amount": "double precision",
    "day": "date",
    "flag": "boolean",
    "small": "smallint",
    "number": "oid",
    "exact": "numeric(30,6)",
    "wide": "numeric(1000,500)",
    "free": "numeric",
    "single": "real",
    "code": "char(5)",
    "name": "varchar(40)",
    "moment": "timestamp",
    "hour": "timestamptz",
}
ALIKE = {
    "minutes": ["minutes", "small", "number"],
    "amount": ["amount", "exact", "wide", "free", "single"],
    "note": ["note", "code", "name"],
    "day": ["day", "day", "moment"],
}
"""The columns that take the place of those of `campaigns.service.hostile`."""
ODD: dict[str, list[str]] = {
    "note": ["''", "'%_'", "repeat('x', 100000)", "E'\\U0010ffff'", "'0x10'", "'1e400'", "'NaN'", "'infinity'", "'9'"],
    "ward": ["NULL", "'EAST'", "'east '", "E'east\\u200b'"],
    "minutes": ["9223372036854775807", "-9223372036854775808", "NULL", "4611686018427387905"],
    "amount": ["'NaN'", "'Infinity'", "'-Infinity'", "'-0'", "5e-324", "1.7e308"],
    "day": ["'infinity'", "'-infinity'", "'5874897-12-31'", "'4713-11-24 BC'", "NULL"],
    "flag": ["NULL"],
    "small": ["-32768", "32767"],
    "number": ["4294967295", "0"],
    "exact": ["'NaN'", "999999999999999999999999.999999", "-999999999999999999999999.999999"],
    "wide": ["'NaN'", "1e499", "-1e499", "1e-500", "1e309", "NULL"],
    "free": ["'NaN'", "'Infinity'", "'-Infinity'", "1e10000", "-1e10000", "1e-10000"],
    "single": ["'NaN'", "3.4e38", "1e-45", "'-Infinity'"],
    "code": ["''", "'%'", "'a    '", "NULL"],
    "moment": ["'infinity'", "'-infinity'", "'294276-12-31 23:59:59.999999'", "'4713-11-24 BC'"],
    "hour": ["'infinity'", "'294276-12-31 23:59:59+00'"],
}  # fmt: skip
SPEND = {"epsilon": 1, "delta": 1e-3}
RANGES = {"minutes": (0, 50), "small": (0, 50), "number": (0, 50), "ward": ("east", "west")}


NUMBERS = ["minutes", "small", "number", "amount", "exact", "wide", "free", "single"]
FORMS = [
    "SELECT SUM(CLAMP({one}, 0, 10)) AS n FROM visits WHERE {other} > 1",
    "SELECT AVG(CLAMP({one} {sign} {other}, -5, 5)) AS n FROM visits",
    "SELECT ward, COUNT(*) AS n FROM visits WHERE {one} {sign} {other} < 3 GROUP BY ward",
    "SELECT MEDIAN(CLAMP({one}, 0, 10, 1)) AS n FROM visits WHERE {other} IS NOT NULL",
    "SELECT COUNT(DISTINCT {text}) AS n FROM visits WHERE NOT {one} = {other}",
    "SELECT {part}({day}) AS d, COUNT(*) AS n FROM visits GROUP BY {part}({day})",
    "SELECT VARIANCE(CLAMP({one}, -5, 5)) AS n FROM visits WHERE LENGTH({text}) > 1 OR {day} > DATE '2020-01-01'",
    "SELECT BIN({one}, 0, 1, 10) AS b, COUNT(*) AS n FROM visits GROUP BY BIN({one}, 0, 1, 10)",
    "SELECT {text}, SUM(CLAMP({one}, 0, 10)) AS n FROM visits GROUP BY {text}",
]
"""Statements that are answered, about all columns."""


def asked(draw: random.Random) -> str:
    """A random statement about the columns."""
    if draw.random() < 0.6:
        return draw.choice(FORMS).format(
            one=draw.choice(NUMBERS),
            other=draw.choice(NUMBERS),
            sign=draw.choice("+-*/"),
            text=draw.choice(["note", "ward", "code", "name"]),
            day=draw.choice(["day", "day", "moment"]),
            part=draw.choice(["YEAR", "QUARTER", "MONTH", "DAY"]),
        )
    text = statement(draw).format(table="visits")
    for name, several in ALIKE.items():
        text = re.sub(rf"\b{name}\b", lambda _, several=several: draw.choice(several), text)
    return text


def odd_rows(draw: random.Random) -> list[str]:
    """The rows of one odd person, as PostgreSQL reads them."""
    plain = dict.fromkeys(COLUMNS, "NULL") | {"ward": "'east'", "minutes": "5", "wide": "1"}
    rows = list[str]()
    for _ in range(draw.choice([1, 1, 2, 40])):
        several = draw.sample([*ODD], draw.choice([1, 3, len(ODD)]))
        row = plain | {name: draw.choice(ODD[name]) for name in several}
        rows.append(", ".join((row | {"person": "'odd1'"}).values()))
    return rows


def outcome(table: Table, text: str, key: bytes) -> list[Any]:
    """What is told of a statement, and for each of its questions the design and the exact integers."""
    try:
        questions = release.questions_of_sql(text, table)
        designs = [each.design(table, SPEND) for each in questions]
        tables = [each.table or table for each in questions]
        return [(each, integers(of, each, key)) for of, each in zip(tables, designs, strict=True)]
    except EngineError:
        return ["failed"]
    except DPComposeError as error:
        return [f"{type(error).__name__}: {error}"]


def compare(one: list[Any], other: list[Any]) -> list[str]:
    """What one odd person made other than numbers, or more than is charged."""
    if "failed" in (*one, *other):
        return ["failed"]
    if len(one) != len(other) or isinstance(one[0], str) or isinstance(other[0], str):
        return [] if one == other else [f"{one} {other}"]
    found = list[str]()
    for (design, before), (_, after) in zip(one, other, strict=True):
        found += excess(before, after, design)
    return found


def run(
    running: Server, statements: int, seed: int, *, control: bool = False
) -> tuple[list[str], Counter[str]]:
    """Problems, and statements by whether they were answered, on a server of PostgreSQL."""
    draw, problems, kinds = random.Random(seed), list[str](), Counter[str]()
    as_double = OnPostgreSQL.as_double
    if control:
        OnPostgreSQL.as_double = lambda self, column: self.cast(column, "float64")
    try:
        urls = [running.create(f"{name}_{control:d}") for name in ("without", "with_one")]
        columns = ", ".join(f"{name} {type}" for name, type in COLUMNS.items())
        for url in urls:
            with psycopg.connect(url, autocommit=True) as connection:
                execute: Any = connection.execute
                execute(f"CREATE TABLE visits ({columns})")
                execute(
                    "INSERT INTO visits SELECT 'p' || n / 2, 'quiet', (ARRAY['east', 'west'])[1 + n % 2], n % 60, n / 3.0,"
                    " DATE '2024-05-17' + n, n % 3 = 0, n % 9, n, n / 7.0, n / 9.0, n / 11.0, n / 13.0, 'c' || n % 4,"
                    " 'n' || n, TIMESTAMP '2024-05-17' + n * INTERVAL '1 hour', TIMESTAMPTZ '2024-05-17 00:00+00'"
                    " FROM generate_series(1, 80) AS n"
                )
        two = [
            replace(
                release.table(url, name="visits", unit="person", max_rows_per_unit=2),
                ranges=RANGES,
            )
            for url in urls
        ]
        with psycopg.connect(urls[1], autocommit=True) as connection:
            execute = connection.execute
            for number in range(statements):
                execute("DELETE FROM visits WHERE person = 'odd1'")
                for row in odd_rows(draw):
                    execute(f"INSERT INTO visits VALUES ({row})")
                text, key = asked(draw), draw.randbytes(8)
                one, other = (outcome(table, text, key) for table in two)
                kinds["refused" if isinstance(one[0], str) else "answered"] += 1
                problems += [f"{number} {text}: {each}" for each in compare(one, other)]
        for table in two:
            table.close()
    finally:
        OnPostgreSQL.as_double = as_double
    return problems, kinds


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("statements", type=int, nargs="?", default=1000)
    parser.add_argument("seed", type=int, nargs="?", default=1)
    parser.add_argument("--control", action="store_true", help="a defect that must be found")
    given = parser.parse_args()
    began = time.perf_counter()
    with server() as running:
        problems, kinds = run(running, given.statements, given.seed, control=given.control)
    print(*problems[:20], sep="\n")
    print(f"{dict(kinds)}, {len(problems)} problems, in {time.perf_counter() - began:.0f} s")
    sys.exit(bool(problems))


if __name__ == "__main__":
    main()
