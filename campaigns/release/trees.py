"""Random trees of functions of one row have the values of exact Python on every engine.

python -m campaigns.release.trees [--engine duckdb|postgres|spark] [--trees N] [--pipelines N] [--seed N]
    [--record FILE | --against FILE]

A tree is built by the methods of expressions, from columns with unusual values and unusual
constants. Forty trees are evaluated in one statement, and every row's value is compared with
Python's, floats to the last bit. A pipeline is a case of `campaigns.release.transformations`
(tables that differ in one unit, random transformations, one question), whose integers are compared.
`--record` writes values and integers to a file, and `--against` compares with a file written by
another version of the project.
"""

from __future__ import annotations

import argparse
import json
import math
import random
import string
import struct
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import dpcompose.release as release
from campaigns.release import places, tables, transformations
from campaigns.release.places import Place
from campaigns.release.transformations import CONSTANTS
from dpcompose.release.columns import Bounds
from dpcompose.release.expression import UNITS
from dpcompose.release.query import run

Tree = tuple[Any, ...]
"""A function and its arguments; ("col", name) and ("lit", value) are leaves."""
TOGETHER = 40
"""Trees of one statement."""
COLUMNS = {
    "number": "integer", "city": "text", "code": "integer", "day": "date", "flag": "boolean", "amount": "float",
    "single": "float", "points": "integer", "small": "integer", "price": "float",
}  # fmt: skip
DIVISORS = [1, 2, 7, 1000, 2**31]
PLACES = [1, 2, 5, 10**9]
PARTS = ["A", "%", "_", "\\", "'", "", "z", "東", "𝄞", "ä"]
LARGEST = 1e150


def tree(rng: random.Random, kind: str, depth: int) -> Tree:
    """A random tree of a kind."""
    if depth <= 0 or rng.random() < 0.15:
        names = [name for name, has in COLUMNS.items() if has == kind]
        return (
            ("col", rng.choice(names))
            if rng.random() < 0.8
            else ("lit", rng.choice(CONSTANTS[kind]))
        )

    def of(*kinds: str) -> Tree:
        return tree(rng, rng.choice(kinds), depth - 1)

    number = rng.choice(["integer", "float"])
    common: list[Callable[[], Tree]] = [
        lambda: ("case", of("boolean"), of(kind), of("boolean"), of(kind), of(kind)),
        lambda: ("fill_null", of(kind), of(kind)),
    ]
    made: dict[str, list[Callable[[], Tree]]] = {
        "integer": [
            lambda: ("add", of("integer"), of("integer")),
            lambda: ("subtract", of("integer"), of("integer")),
            lambda: ("multiply", of("integer"), of("integer")),
            lambda: ("modulo", of("integer"), rng.choice(DIVISORS)),
            lambda: ("remainder", of("integer"), rng.choice([1, -1]) * rng.choice(DIVISORS)),
            lambda: ("floor", of(number)),
            lambda: ("abs", of("integer")),
            lambda: ("length", of("text")),
            lambda: (rng.choice(["year", "quarter", "month", "week", "day"]), of("date")),
            lambda: (rng.choice(["day_of_week", "day_of_year"]), of("date")),
            lambda: ("as_integer", of("boolean")),
        ],
        "float": [
            lambda: ("add", of("float"), of(number)),
            lambda: ("subtract", of(number), of("float")),
            lambda: ("multiply", of("float"), of(number)),
            lambda: ("divide", of("integer", "float"), of("integer", "float")),
            lambda: ("as_float", of("integer", "float")),
            lambda: ("abs", of("float")),
        ],
        "text": [
            lambda: (rng.choice(["lower", "upper"]), of("text")),
            lambda: ("as_text", of("integer")),
            lambda: ("substring", of("text"), rng.choice(PLACES), rng.choice([0, *PLACES])),
            lambda: ("right", of("text"), rng.choice([0, *PLACES])),
        ],
        "date": [lambda: ("truncate", of("date"), rng.choice(UNITS))],
        "boolean": [
            lambda: (rng.choice(["<", "<=", "==", "!="]), of(number), of("integer", "float")),
            lambda: (rng.choice(["<", "<=", "==", "!="]), of("text"), of("text")),
            lambda: (rng.choice(["<", "<=", "==", "!="]), of("date"), of("date")),
            lambda: (rng.choice(["==", "!="]), of("boolean"), of("boolean")),
            lambda: (rng.choice(["and", "or"]), of("boolean"), of("boolean"), of("boolean")),
            lambda: ("not", of("boolean")),
            lambda: ("is_null", of(*CONSTANTS)),
            lambda: ("is_in", of("text"), *rng.sample(tables.CITIES, 3)),
            lambda: ("is_in", of("integer"), *rng.sample(CONSTANTS["integer"], 2)),
            lambda: ("is_in", of("boolean"), rng.random() < 0.5),
            lambda: ("between", of("integer"), of("integer"), of("integer")),
            lambda: (rng.choice(["contains", "starts_with", "ends_with"]), of("text"), rng.choice(PARTS)),
        ],
    }  # fmt: skip
    return rng.choice(made[kind] + common)()


_METHODS: Mapping[str, Callable[..., Any]] = {
    "col": release.col,
    "lit": release.lit,
    "case": lambda *parts: release.case(
        *zip(parts[:-1:2], parts[1:-1:2], strict=True), else_=parts[-1]
    ),
    "add": lambda one, two: one + two,
    "subtract": lambda one, two: one - two,
    "multiply": lambda one, two: one * two,
    "divide": lambda one, two: one / two,
    "modulo": lambda one, by: one % by,
    "and": lambda one, two, three: one & two & three,
    "or": lambda one, two, three: one | two | three,
    "not": lambda one: ~one,
    "<": lambda one, two: one < two,
    "<=": lambda one, two: one <= two,
    "==": lambda one, two: one == two,
    "!=": lambda one, two: one != two,
    "as_integer": lambda one: one.cast("integer"),
    "as_float": lambda one: one.cast("float"),
    "as_text": lambda one: one.cast("text"),
    "is_in": lambda one, *values: one.is_in(values),
}


def expression(of: Any) -> Any:
    """A tree as the expression that the methods of Python make of it; a constant stays one."""
    if not isinstance(of, tuple):
        return of
    name, *parts = of
    made = [expression(each) for each in parts]
    return _METHODS[name](*made) if name in _METHODS else getattr(made[0], name)(*made[1:])


def _finite(number: float | None) -> float | None:
    if number is None or not -LARGEST <= number <= LARGEST:
        return None
    return 0.0 if -1 / LARGEST <= number <= 1 / LARGEST else number


def _loaded(name: str, cell: Any) -> Any:
    kind = COLUMNS[name]
    if kind == "date":
        return None if cell == tables.FAR else cell
    if name == "single" and cell is not None:
        (cell,) = struct.unpack("f", struct.pack("f", cell))
    return None if cell is None else _finite(float(cell)) if kind == "float" else cell


def _arithmetic(of: Callable[[Any, Any], Any], one: Any, two: Any) -> Any:
    if float in (type(one), type(two)):
        return _finite(of(float(one), float(two)))
    return of(one, two) if -(2.0**62) <= of(float(one), float(two)) <= 2.0**62 else None


def _divided(one: Any, two: Any) -> Any:
    return None if two == 0 else _finite(float(one) / float(two))


def _floored(number: Any) -> Any:
    if isinstance(number, int):
        return number
    return math.floor(number) if -(2.0**53) <= number <= 2.0**53 else None


def _remainder(one: int, by: int) -> int:
    return int(math.copysign(1, one)) * (abs(one) % abs(by))


def _truncated(day: date, unit: str) -> date:
    month = {"year": 1, "quarter": (day.month - 1) // 3 * 3 + 1}.get(unit, day.month)
    return day - timedelta(day.weekday()) if unit == "week" else date(day.year, month, 1)


_UPPER, _LOWER = string.ascii_uppercase, string.ascii_lowercase
_STRICT: Mapping[str, Callable[..., Any]] = {
    "add": lambda one, two: _arithmetic(lambda a, b: a + b, one, two),
    "subtract": lambda one, two: _arithmetic(lambda a, b: a - b, one, two),
    "multiply": lambda one, two: _arithmetic(lambda a, b: a * b, one, two),
    "divide": _divided,
    "modulo": lambda one, by: one % by,
    "remainder": _remainder,
    "floor": _floored,
    "abs": lambda one: None if one == -(2**63) and isinstance(one, int) else abs(one),
    "length": len,
    "year": lambda one: one.year,
    "month": lambda one: one.month,
    "day": lambda one: one.day,
    "quarter": lambda one: (one.month + 2) // 3,
    "week": lambda one: one.isocalendar().week,
    "day_of_week": lambda one: one.isoweekday() % 7,
    "day_of_year": lambda one: one.timetuple().tm_yday,
    "truncate": _truncated,
    "substring": lambda one, start, length: one[start - 1 :][:length],
    "right": lambda one, length: one[max(len(one) - length, 0) :],
    "as_integer": int,
    "as_float": float,
    "as_text": str,
    "lower": lambda one: one.translate(str.maketrans(_UPPER, _LOWER)),
    "upper": lambda one: one.translate(str.maketrans(_LOWER, _UPPER)),
    "not": lambda one: not one,
    "is_in": lambda one, *values: one in values,
    "contains": lambda one, part: part in one,
    "starts_with": lambda one, part: one.startswith(part),
    "ends_with": lambda one, part: one.endswith(part),
}
"""Functions that are NULL where an argument is."""
_COMPARED: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": lambda one, two: one < two,
    "<=": lambda one, two: one <= two,
    "==": lambda one, two: one == two,
    "!=": lambda one, two: one != two,
}


def value(of: Any, row: Mapping[str, Any]) -> Any:
    """The value of a tree in a row, by exact Python; None is NULL."""
    if not isinstance(of, tuple):
        return of
    name, *parts = of
    if name == "col":
        return _loaded(parts[0], row[parts[0]])
    if name == "lit":
        return parts[0]
    if name == "case":
        found = next((at for at in range(0, len(parts) - 1, 2) if value(parts[at], row)), None)
        branches = [*parts[1:-1:2], parts[-1]]
        chosen = value(parts[-1] if found is None else parts[found + 1], row)
        return _common(chosen, branches)
    if name == "fill_null":
        one = value(parts[0], row)
        return _common(value(parts[1], row) if one is None else one, parts)
    if name == "is_null":
        return value(parts[0], row) is None
    cells = [value(each, row) for each in parts]
    if name in ("and", "or"):
        least = name == "or"
        return least if least in cells else None if None in cells else not least
    if name == "between":
        one, low, high = cells
        above, below = (
            None if None in pair else pair[0] <= pair[1] for pair in ((low, one), (one, high))
        )
        return False if False in (above, below) else None if None in (above, below) else True
    if None in cells:
        return None
    if name in _COMPARED:
        if float in map(type, cells) and not isinstance(cells[0], str):
            cells = [float(each) for each in cells]
        return _COMPARED[name](*cells)
    return _STRICT[name](*cells)


def _kind(of: Any) -> str:
    """The kind of a tree that may be a float or an integer; anything else is no float."""
    if of[0] in ("col", "lit"):
        return COLUMNS[of[1]] if of[0] == "col" else type(of[1]).__name__.replace("int", "integer")
    if of[0] in ("divide", "as_float"):
        return "float"
    if of[0] in ("add", "subtract", "multiply", "abs", "fill_null"):
        return "float" if "float" in map(_kind, of[1:]) else "other"
    if of[0] == "case":
        return "float" if "float" in map(_kind, [*of[2:-1:2], of[-1]]) else "other"
    return "other"


def _common(chosen: Any, branches: Sequence[Tree]) -> Any:
    return float(chosen) if isinstance(chosen, int) and "float" in map(_kind, branches) else chosen


def _shown(cell: Any) -> Any:
    """A value as text: a float with all its bits, 0 without its sign, since no comparison sees it."""
    if isinstance(cell, bool) or cell is None:
        return cell
    if isinstance(cell, float | Decimal):
        return (float(cell) + 0.0).hex()
    return str(cell)


def values(place: Place, some: Sequence[Tree], rows: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The value of each tree in each row, by the engine."""
    place.fill([tuple(row) for row in rows])
    table = place.table(("number",), Bounds.stated(1))
    names = [f"made{at}" for at in range(len(some))]
    made = table.mutate(**{name: expression(each) for name, each in zip(names, some, strict=True)})
    found = run(made.data.select("number", *names))
    cells = {int(number): each for number, *each in found}
    return [[_shown(cells[at][of]) for at in range(len(rows))] for of in range(len(some))]


def _rows(rng: random.Random) -> list[list[Any]]:
    made = [list(row) for row in tables.rows(rng, units=8, most=8, nothing=0.15)][:24]
    for at, row in enumerate(made):
        row[1] = at
    return made


def of_trees(place: Place, number: int, seed: int) -> Iterator[tuple[str, Any, list[str]]]:
    """The values of so many trees, by statements, and which of them are not those of Python."""
    for first in range(0, number, TOGETHER):
        rng = random.Random(f"{seed} trees {first}")
        rows, some = _rows(rng), list[Tree]()
        while len(some) < TOGETHER:
            some.append(tree(rng, rng.choice([*CONSTANTS]), rng.randint(1, 4)))
        named = [dict(zip(tables.SCHEMA.names, row, strict=True)) for row in rows]
        found = values(place, some, rows)
        wrong: list[str] = []
        for each, cells in zip(some, found, strict=True):
            truth = [_shown(value(each, row)) for row in named]
            if cells != truth:
                at = next(
                    n for n, pair in enumerate(zip(cells, truth, strict=True)) if pair[0] != pair[1]
                )
                wrong.append(f"{each}: {cells[at]} in place of {truth[at]} for {named[at]}")  # fmt: skip
        yield f"trees {first}", found, wrong


def of_pipelines(place: Place, number: int, seed: int) -> Iterator[tuple[str, Any, list[str]]]:
    """The integers of so many pipelines, and in which of them a unit moved more than is charged."""
    for at in range(number):
        seen: list[Any] = []
        wrong = transformations.case(random.Random(f"{seed} {at}"), [place], seen=seen)
        found = [sorted(repr(item) for item in each.items()) for each in seen]
        yield f"pipeline {at}", found, wrong


def compare(
    engine: str, trees: int, pipelines: int, seed: int, *, record: str = "", against: str = ""
) -> list[str]:
    """What is wrong: by Python, by the prices, and by what another version wrote."""
    wrong: list[str] = []
    with ExitStack() as stack:
        home = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        opened = places.PLACES.get(engine)
        place = places.frame() if opened is None else stack.enter_context(opened(home))
        out = stack.enter_context(open(record, "w")) if record else None
        before: dict[str, Any] = {}
        for line in stack.enter_context(open(against)) if against else ():
            before.update(json.loads(line))
        began, differ, asked = time.monotonic(), 0, 0
        for name, found, bad in (
            *of_trees(place, trees, seed),
            *of_pipelines(place, pipelines, seed),
        ):
            wrong += [f"{name} of seed {seed}: {each}" for each in bad]
            asked += 1
            if out is not None:
                out.write(json.dumps({name: found}) + "\n")
            if against and before.get(name) != found:
                differ += 1
                wrong.append(f"{name} of seed {seed}: not what the other version wrote")
        told = f", {differ} of {asked} statements differ from {against}" if against else ""
        took = time.monotonic() - began
        counted = f"{engine}: {trees:,} trees, {pipelines:,} pipelines, seed {seed}"
        print(f"{counted}: {len(wrong)} wrong{told}, {took:.0f} s")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engine", choices=["duckdb", "postgres", "spark"], default="duckdb")
    parser.add_argument("--trees", type=int, default=10_000)
    parser.add_argument("--pipelines", type=int, default=1_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", default="")
    parser.add_argument("--against", default="")
    given = parser.parse_args()
    engine = "postgresql" if given.engine == "postgres" else given.engine
    wrong = compare(
        engine, given.trees, given.pipelines, given.seed, record=given.record, against=given.against
    )
    print(*wrong[:20], sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
