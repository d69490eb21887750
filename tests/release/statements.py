"""The tables that the statements of `tests/data/statements` query, and the comparison of their
answers.

    python -m tests.release.statements [WORD]

counts how many statements are answered as DuckDB answers the plain query, and how many others are
refused before a charge.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import date, timedelta
from decimal import Decimal
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa

import dpcompose.release as release
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Ledger

FOLDER = Path(__file__).parents[1] / "data" / "statements"
SPEND = {"epsilon": 100, "delta": 1e-4}
CONFIDENCE = 1 - 1e-9
RANGES: dict[str, dict[str, tuple[float, float]]] = {
    "visits": {"minutes": (0, 120), "cost": (0, 200)},
    "people": {"age": (18, 95), "school": (1, 16), "income": (0, 100_000)},
    "readings": {"low": (-20, 60), "high": (-10, 80), "rain": (0, 5)},
}


@cache
def frames() -> dict[str, pa.Table]:
    """The tables: 600 people, each with one row of `people` and three or fewer of the others."""
    draw = Random(38)
    people, visits, readings = [], [], []
    first = date(2025, 1, 1)
    for person in range(600):
        town = draw.choice(["ash", "birch", "cedar", "dale", "elm", "fern"])
        joined = first - timedelta(days=draw.randrange(1200))
        age, school = draw.randrange(18, 96), draw.randrange(1, 9)
        people.append((person, age, draw.choice("fm"), school, draw.uniform(0, 1e5), town, joined))
        for _ in range(draw.randrange(4)):
            clinic = draw.choice(["north", "south", "west", "east"])
            kind = draw.choice(["walk-in", "booked", "school", None])
            cost = None if draw.random() < 0.1 else draw.randrange(201)
            day = first + timedelta(days=draw.randrange(700))
            minutes = draw.uniform(0, 120)
            visits.append((person, clinic, kind, minutes, cost, draw.random() < 0.4, day))
        for _ in range(draw.randrange(1, 4)):
            low, device = draw.randrange(-20, 50), draw.choice(["sun", "sea", "hill", "rock"])
            readings.append((person, device, low, low + draw.randrange(30), draw.uniform(0, 5)))

    def table(rows: list[Any], names: str) -> pa.Table:
        return pa.table(
            dict(zip(names.split(), (list(each) for each in zip(*rows, strict=True)), strict=True))
        )

    counties = {"ash": ("kent", 51.0), "birch": ("kent", 51.2), "cedar": ("york", 54.0)}
    counties |= {"dale": ("york", 54.1), "elm": ("york", 53.9), "fern": ("bath", 51.4)}
    towns = [(name, *place) for name, place in counties.items()]
    return {
        "visits": table(visits, "person clinic kind minutes cost booked day"),
        "people": table(people, "person age sex school income town joined"),
        "readings": table(readings, "person device low high rain"),
        "towns": table(towns, "town county latitude"),
    }


@dataclass(frozen=True)
class Statement:
    """A statement with its place, and the query whose numbers it should have."""

    place: str
    text: str
    plain: str


def statements() -> Iterator[Statement]:
    """Those that must be answered."""
    for file in sorted(FOLDER.glob("*.sql")):
        for block in file.read_text(encoding="utf-8").split("\n\n")[1:]:
            lines = block.strip().splitlines()
            comments = [line.removeprefix("-- ") for line in lines if line.startswith("-- ")]
            text = "\n".join(line for line in lines if not line.startswith("-- "))
            plain = next((each[7:] for each in comments if each.startswith("plain: ")), text)
            yield Statement(f"{file.stem}: {comments[0]}", text, plain)


def refused() -> list[str]:
    """Those that must be refused."""
    lines = (FOLDER / "refused.txt").read_text(encoding="utf-8").splitlines()
    return [line.partition("|")[2].strip() for line in lines]


class World:
    """The tables of `frames` with a ledger whose budget is never used up."""

    def __init__(self) -> None:
        self.ledger = Ledger.open("memory:")
        open_scope(self.ledger, "world", filter=BasicFilter(10**6, delta=0.9), actor="keeper")
        self.tables: dict[str, Any] = {"towns": release.public(frames()["towns"])}
        for name, ranges in RANGES.items():
            made = release.table(frames()[name], unit="person", max_rows_per_unit=3, name=name)
            self.tables[name] = replace(made, ranges=ranges)
        self.plain = duckdb.connect()
        for name, frame in frames().items():
            self.plain.register(name, frame)

    def session(self, text: str) -> release.Session:
        """A session on the table that FROM names first; any where it names none of them."""
        words = text.lower().replace("(", " ").replace(";", " ").replace(",", " ").split()
        names = [b for a, b in pairwise(words) if a == "from" and b in RANGES]
        own = self.tables[names[0] if names else "visits"]
        return release.Session(own, ledger=self.ledger, scope="world", actor="ana")

    def ask(self, text: str, **options: Any) -> Any:
        """The answer to a statement."""
        return self.session(text).sql(text, **({"spend": SPEND, "tables": self.tables} | options))

    def judged(self, statement: Statement) -> str:
        """Why an answer is not as asked; empty where it is."""
        try:
            answer = self.ask(statement.text)
        except (DomainError, UnsupportedError) as error:
            return f"refused: {error}"
        if isinstance(answer, tuple):
            return f"{len(answer)} tables instead of one"
        wanted = self.plain.sql(statement.plain.rstrip("; \n"))
        ordered = "order by" in statement.plain.lower()
        return compared(answer, wanted.columns, wanted.fetchall(), ordered=ordered)

    def close(self) -> None:
        self.ledger.close()
        self.plain.close()


def compared(answer: Any, names: list[str], rows: list[tuple[Any, ...]], *, ordered: bool) -> str:
    """Where an answer differs from the plain rows by more than its error; empty where it does not."""
    table = answer.table
    found = [tuple(row.values()) for row in table.to_pylist()]
    if table.num_columns != len(names):
        return f"columns {table.column_names} for {names}"
    for own, theirs in zip(table.column_names, names, strict=True):
        if theirs.isidentifier() and own != theirs:
            return f"column {own!r} for {theirs!r}"
    if len(found) != len(rows):
        return f"{len(found)} rows for {len(rows)}"
    reach = [_reach(answer, name) for name in table.column_names]
    order = range(len(rows))
    if ordered and not any(
        all(
            _agrees(a[at], b[at], reach[at], row)
            for row, (a, b) in enumerate(zip(found, rows, strict=True))
        )
        for at in range(len(names))
    ):
        return f"the order of {found[:3]} for {rows[:3]}"
    # Rows that are equal where they are ordered may come in any order.
    rows, pairs = sorted(rows, key=_key), sorted(zip(found, order, strict=True), key=_first)
    found, order = [each for each, _ in pairs], [each for _, each in pairs]
    for row, wanted, at in zip(found, rows, order, strict=True):
        for cell, true, ends in zip(row, wanted, reach, strict=True):
            if not _agrees(cell, true, ends, at):
                return f"{row} for {wanted}"
    return ""


def _key(row: tuple[Any, ...]) -> list[Any]:
    """Texts before numbers, which have noise: NULL last."""
    texts = [(cell is None, str(cell)) for cell in row if not _is_number(cell)]
    return [len(texts), texts, [float(cell) for cell in row if _is_number(cell)]]


def _first(pair: tuple[Any, int]) -> list[Any]:
    return _key(pair[0])


def _is_number(cell: Any) -> bool:
    return isinstance(cell, int | float | Decimal) and not isinstance(cell, bool)


def _reach(answer: Any, name: str) -> Any:
    """Both ends of a column, where the answer states them."""
    interval = getattr(answer, "interval_of", None)
    if interval is not None:
        return interval(name, CONFIDENCE)
    return answer.interval(CONFIDENCE) if answer.main.name == name else None


def _agrees(cell: Any, true: Any, ends: Any, at: int) -> bool:
    if not _is_number(true) or not _is_number(cell):
        return cell == true
    cell, true = float(cell), float(true)
    if ends is not None and ends[0][at] == ends[0][at]:
        return ends[0][at] - 1e-9 * abs(true) <= true <= ends[1][at] + 1e-9 * abs(true)
    return abs(cell - true) <= 0.02 * abs(true) + 3


def main(words: list[str]) -> int:
    """Print what is not as it must be, and the counts."""
    world, wrong, total = World(), 0, 0
    for each in statements():
        if words and words[0] not in each.place:
            continue
        total += 1
        try:
            said = world.judged(each)
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
        if said:
            wrong += 1
            print(f"{each.place}\n    {each.text}\n    {said[:300]}")
    print(f"{total - wrong} of {total} answered as asked")
    if not words:
        count, left = 0, world.ledger.balance("world").spent
        for text in refused():
            try:
                world.ask(text)
                print("answered:", text)
            except (DomainError, UnsupportedError):
                count += 1
        free = world.ledger.balance("world").spent == left
        print(f"{count} of {len(refused())} refused{'' if free else ', with a charge'}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
