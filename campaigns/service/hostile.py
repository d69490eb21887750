"""A hostile analyst of the counter: odd people are in a table or not, and nothing but the numbers tells.

    python -m campaigns.service.hostile --trees 50 [--postgres] [--defect | --unguarded | --slow]

Statements are random trees of what SQL offers, many of them about one person. Each is asked of a table without odd
people, of one with all of them, and of one with one of them: what comes back is compared but for the numbers, and that
the tables stay open. Groups that are private are numbers too. How long an answer takes is not compared. With
`--unguarded` integers are compared by a difference, which overflows for odd people alone: that must be found. With
`--postgres` the tables are in PostgreSQL, whose work is not measured.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import Any

from campaigns.ledger.server import server
from dpcompose.adaptive import PureFilter
from dpcompose.errors import DPComposeError
from dpcompose.ledger import Ledger
from dpcompose.release import Catalog, function
from dpcompose.serve import Identities, Identity, Role, Service
from dpcompose.serve.counter import Counter as Desks, Desk
from dpcompose.serve.request import ROUTES

NAMES = ["person", "note", "ward", "minutes", "amount", "day", "flag"]
PLAIN = ("quiet", "east", 5, 1.5, date(2024, 5, 17), True)
LEAST, MOST = -(2**63), 2**63 - 1
_ODD: dict[str, Any] = {
    "note": ["x" * 100_000, "", "\0", "𝄞" * 300, "'; DROP TABLE visits", "1e400", "%_\\"],
    "ward": [None, "nowhere", "x" * 256],
    "minutes": [LEAST, MOST, None, -1],
    "amount": [float("nan"), float("inf"), -float("inf"), -0.0, 5e-324],
}
BOUND = 0.1
"""Seconds of processor that odd people may cost in one question."""
WHO = Identity("Eve", Role.ANALYST, "clinic")


def people() -> list[list[tuple[Any, ...]]]:
    """Twenty odd people: one odd value each, everything odd at once, many rows."""
    found: list[list[tuple[Any, ...]]] = []
    for name, values in _ODD.items():
        for value in values:
            row = dict(zip(NAMES[1:], PLAIN, strict=True)) | {name: value}
            found.append([(f"odd{len(found)}", *row.values())])
    everything = ("𝄞" * 1000, None, LEAST, float("nan"), date(1, 1, 1), None)
    return [*found[:19], [("odd19", *everything)] * 3000]


def _rows(odd: Sequence[list[tuple[Any, ...]]]) -> list[tuple[Any, ...]]:
    rows = [(f"p{each}", "quiet", ("east", "west")[each % 2], each, each / 3, PLAIN[4], each % 3 == 0)
            for each in range(60)]  # fmt: skip
    return rows + [row for own in odd for row in own]


def _table(file: Path, rows: list[tuple[Any, ...]]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    kinds = [pa.string()] * 3 + [pa.int64(), pa.float64(), pa.date32(), pa.bool_()]
    columns = [
        pa.array(column, kind) for column, kind in zip(zip(*rows, strict=True), kinds, strict=True)
    ]
    pq.write_table(pa.table(columns, names=NAMES), file)


def _in_postgres(url: str, name: str, rows: list[tuple[Any, ...]]) -> None:
    """The same rows, but for the one letter that its texts cannot hold."""
    import psycopg

    kinds = ["TEXT"] * 3 + ["BIGINT", "DOUBLE PRECISION", "DATE", "BOOLEAN"]
    columns = ", ".join(map(" ".join, zip(NAMES, kinds, strict=True)))
    with psycopg.connect(url) as connection, connection.cursor() as cursor:
        execute: Any = cursor.execute
        execute(f"CREATE TABLE {name} ({columns})")
        with cursor.copy(f"COPY {name} FROM STDIN") as copy:  # type: ignore[call-overload]
            for person, note, *others in rows:
                copy.write_row((person, note.replace("\0", ""), *others))


def expression(draw: random.Random, kind: str, depth: int) -> str:
    """A random expression of a kind in SQL."""

    def of(*kinds: str) -> str:
        return expression(draw, draw.choice(kinds), depth - 1)

    leaves = {"int": ["minutes", "0", "7", str(MOST), "-1"], "float": ["amount", "0.5", "1e300"]}
    leaves |= {
        "text": ["note", "ward", "person", "''", "'a'"],
        "date": ["day", "DATE '2024-02-29'"],
    }
    leaves |= {"bool": ["flag", f"person = 'odd{draw.randrange(20)}'", "note IS NULL"]}
    if depth <= 0 or draw.random() < 0.1:
        return draw.choice(leaves[kind])
    forms = {
        "int": ["({int} + {int})", "({int} * {int})", "({int} - {int})", "({int} % 5)", "ABS({int})",
                "LENGTH({text})", "EXTRACT(YEAR FROM {date})", "CAST({text} AS BIGINT)", "({int} % 0)",
                "CASE WHEN {bool} THEN {int} ELSE {int} END", "COALESCE({int}, {int})", "FLOOR({float})"],
        "float": ["({float} + {float})", "({float} / {float})", "({float} * {int})", "SQRT({float})",
                  "LN({float})", "ROUND({float}, 2)", "CAST({int} AS DOUBLE)", "CAST({text} AS DOUBLE)",
                  "CASE WHEN {bool} THEN {float} ELSE {float} END"],
        "text": ["UPPER({text})", "LOWER({text})", "SUBSTRING({text}, 1, 3)", "LEFT({text}, 2)",
                 "RIGHT({text}, 1000)", "REPLACE({text}, 'a', {text})", "({text} || {text})",
                 "REPEAT({text}, 1000)", "CAST({int} AS VARCHAR)", "TRIM({text})"],
        "date": ["DATE_TRUNC('month', {date})", "CASE WHEN {bool} THEN {date} ELSE {date} END",
                 "CAST({text} AS DATE)", "({date} + INTERVAL 1 DAY)"],
        "bool": ["({int} < {int})", "({float} > {float})", "({text} = {text})", "({text} LIKE '%a_')",
                 "({date} >= {date})", "({bool} AND {bool})", "({bool} OR {bool})", "(NOT {bool})",
                 "({text} IN ('a', 'quiet'))", "({int} BETWEEN 0 AND 50)", "({float} IS NULL)",
                 "REGEXP_MATCHES({text}, '(a*)*b')"],
    }  # fmt: skip
    return re.sub(r"\{(\w+)\}", lambda match: of(match[1]), draw.choice(forms[kind]))


def statement(draw: random.Random) -> str:
    """A random SELECT of a table that is called {table}."""
    depth = draw.choice([1, 1, 2, 3])
    what = draw.choice(
        ["COUNT(*)", "SUM(minutes)", "AVG(minutes)", "COUNT(DISTINCT person)", "SUM({int})", "MAX(minutes)",
         "SUM(CASE WHEN {bool} THEN 1 ELSE 0 END)", "MEDIAN(minutes)"]
    )  # fmt: skip
    if draw.random() < 0.1:  # as much text as there is, again and again
        nested = "note"
        for _ in range(20):
            nested = f"{draw.choice(['UPPER', 'LOWER'])}({nested})"
        what = f"SUM(CASE WHEN LENGTH({nested}) > 3 THEN 1 ELSE 0 END)"
    what = re.sub(r"\{(\w+)\}", lambda match: expression(draw, match[1], depth), what)
    where = f" WHERE {expression(draw, 'bool', depth)}" if draw.random() < 0.9 else ""
    if draw.random() < 0.3:
        return f"SELECT ward, {what} AS n FROM {{table}}{where} GROUP BY ward"
    return f"SELECT {what} AS n FROM {{table}}{where}"


@dataclass
class Report:
    """What was compared: statements by their outcome without odd people, the work that odd people cost, and differences."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    work: list[float] = field(default_factory=list[float])
    problems: list[str] = field(default_factory=list[str])


def run(
    trees: int,
    *,
    seed: int = 0,
    defect: bool = False,
    unguarded: bool = False,
    slow: bool = False,
    postgres: bool = False,
) -> Report:
    """Random statements to the tables; with a defect reading an odd person fails, or is slow, or comparing its integers."""
    draw, report, odd = random.Random(seed), Report(), people()
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        if unguarded:
            stack.enter_context(_unguarded())
        url = stack.enter_context(server()).create("hostile") if postgres else ""
        tables: dict[str, Any] = {}
        owners: dict[str, list[list[tuple[Any, ...]]]] = {"none": [], "all": odd}
        owners |= {f"one{at}": [each] for at, each in enumerate(odd)}
        for name, own in owners.items():
            file = Path(home) / f"{name}.parquet"
            if postgres:
                _in_postgres(url, f"t_{name}", _rows(own))
                tables[name] = {"source": url, "name": f"t_{name}"}
            else:
                _table(file, _rows(own))
                tables[name] = {"source": str(file)}
            tables[name] |= {
                "unit": "person",
                "max_rows_per_unit": 2,
                "ranges": {"minutes": [0, 60], "amount": [0, 20], "ward": ["east", "west"]},
            }
        ledger = Ledger.open("memory:")
        Catalog.define(ledger, "clinic", tables, filter=PureFilter(1e6), actor="keeper")
        desks = Desks.open(
            ledger, Path(home), {"clinic": {"after": 100, "limit": 120, "tables": tables}}
        )
        desk = desks.desks["clinic"]
        desk.leave = lambda *_, **__: None  # answers leave at once
        service = Service(ledger, Identities(Ledger.open("memory:")), None, desks)
        if defect or slow:
            _break(desk, slow=slow)
        asked = set[str]()
        try:
            while report.outcomes.total() < trees:
                text = statement(draw)
                if text in asked:  # it would be answered from the store
                    continue
                asked.add(text)
                start = _processor(desk)
                without, least = _outcome(service, "none", text), _processor(desk) - start
                kind = without[0]
                if (
                    kind not in ("answer", "EngineError")
                    and report.outcomes["refused"] >= trees // 2
                ):
                    continue
                report.outcomes["answer" if kind == "answer" else "refused"] += 1
                for name in ("all", f"one{draw.randrange(20)}"):
                    start = _processor(desk)
                    found, work = _outcome(service, name, text), _processor(desk) - start - least
                    report.work.append(work)
                    if work > BOUND:
                        report.problems.append(f"{text}: {work:.3f} s more with {name}")
                    if found != without:
                        report.problems.append(f"{text}: {without} without, {found} with {name}")
                if desk.reason():
                    report.problems.append(f"{text}: closed")
                    desk.worker.close()
                    desk.start()
                    desk.record("", "keeper")
        finally:
            desk.worker.close()
    return report


def _processor(desk: Desk) -> float:
    """The seconds of processor that the process with the rows has used, all its threads together."""
    tasks = Path(f"/proc/{desk.worker.process.pid}/task").glob("*/schedstat")
    return sum(int(each.read_text().split()[0]) for each in tasks) / 1e9


def _break(desk: Desk, *, slow: bool) -> None:
    """A function that is not total: it fails where it reads an odd person, or takes long."""
    real = desk.worker.execute

    def execute(words: str, values: Sequence[Any] = ()) -> Any:
        if "counter_none" not in words and "COUNT" in words:
            if not slow:
                raise RuntimeError("out of range")
            real("SELECT SUM(i % 7) FROM RANGE(100000000) AS own(i)")
        return real(words, values)

    desk.worker.execute = execute


@contextmanager
def _unguarded() -> Iterator[None]:
    """Integers are compared by the sign of their difference, which overflows for the least of them."""
    real = function.FUNCTIONS

    def says(engine: Any, values: Sequence[Any]) -> str:
        if any(each.type != "int64" for each in values):
            return real["less"].says(engine, values)
        one, two = values
        return f"(({one} - {two}) < 0)"

    function.FUNCTIONS = {**real, "less": replace(real["less"], says=says)}
    try:
        yield
    finally:
        function.FUNCTIONS = real


def _outcome(service: Service, table: str, text: str) -> tuple[str, ...]:
    """All of an outcome but its numbers."""
    fields = {"table": table, "sql": text.format(table=table), "spend": {"epsilon": "0.1"}}
    try:
        found = ROUTES["ask"].answer(service, WHO, "clinic", fields)
    except DPComposeError as error:
        return type(error).__name__, str(error).replace(table, "TABLE")
    except Exception as error:
        return "defect", repr(error)
    shape = [
        [(each["name"], each["type"], "low" in each) for each in one] for one in found["tables"]
    ]
    private = "GROUP BY" in text
    sizes = [] if private else [[len(each["cells"]) for each in one] for one in found["tables"]]
    return "answer", json.dumps([shape, sizes, found["spends"], found["replayed"]])


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--trees", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--defect", action="store_true", help="a control that must be caught")
    parser.add_argument("--unguarded", action="store_true", help="another one")
    parser.add_argument("--slow", action="store_true", help="and one of work")
    asked = vars(parser.parse_args())
    report = run(asked.pop("trees"), **asked)
    print(f"{dict(report.outcomes)} statements, {len(report.problems)} differences")
    work = sorted(report.work)
    print(
        f"odd people cost {work[len(work) // 2] * 1e3:.1f} ms of processor, {work[-1] * 1e3:.1f} at most"
    )
    for each in report.problems[:5]:
        print(each)
    return bool(report.problems)


if __name__ == "__main__":
    sys.exit(main())
