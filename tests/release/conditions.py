"""Random row conditions with their values computed in Python, to compare with the values on each
engine.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from dpcompose.release import Table, col
from dpcompose.release.expression import call
from dpcompose.release.query import run

Truth = bool | None
Row = tuple[Any, ...]
Condition = tuple[str, Any, Callable[[Row], Truth]]
FLAG, CITY, POINTS = 5, 2, 8
ROWS: list[Row] = [
    (f"p{at}", at, city, None, None, flag, None, None, points, None, None)
    for at, (flag, city, points) in enumerate(
        product((True, False, None), ("x", "y", None), (1, 0, None))
    )
]
"""By the schema of campaigns.release.tables."""


def _not(one: Truth) -> Truth:
    return None if one is None else not one


def _equal(one: Any, other: Any) -> Truth:
    return None if one is None or other is None else one == other


def _and(one: Truth, other: Truth) -> Truth:
    return (
        False if one is False or other is False else None if one is None or other is None else True
    )


ATOMS: list[Condition] = [
    ("flag", col("flag"), lambda row: row[FLAG]),
    ("points == 1", col("points") == 1, lambda row: _equal(row[POINTS], 1)),
    (
        "city in (x, z)",
        col("city").is_in(["x", "z"]),
        lambda row: None if row[CITY] is None else row[CITY] in "xz",
    ),
    ("city is null", col("city").is_null(), lambda row: row[CITY] is None),
    ("city starts with x", col("city").starts_with("x"), lambda row: _equal(row[CITY], "x")),
]
ONE: list[tuple[str, Callable[[Any], Any], Callable[[Truth], Truth]]] = [
    ("not", lambda of: ~of, _not),
    ("is null", lambda of: of.is_null(), lambda one: one is None),
    ("is in (true)", lambda of: of.is_in([True]), lambda one: _equal(one, True)),
]
TWO: list[tuple[str, Callable[[Any, Any], Any], Callable[[Truth, Truth], Truth]]] = [
    ("==", lambda of, to: of == to, _equal),
    ("!=", lambda of, to: of != to, lambda one, other: _not(_equal(one, other))),
    ("and", lambda of, to: of & to, _and),
    ("or", lambda of, to: of | to, lambda one, other: _not(_and(_not(one), _not(other)))),
    ("else", lambda of, to: of.fill_null(to), lambda one, other: other if one is None else one),
]


def _of_one(given: list[Condition]) -> list[Condition]:
    return [
        (f"({name}) {word}", made(said), lambda row, means=means, known=known: known(means(row)))
        for word, made, known in ONE
        for name, said, means in given
    ]


def _of_two(given: list[Condition]) -> list[Condition]:
    return [
        (
            f"({name}) {word} ({to})",
            made(said, it),
            lambda row, k=known, m=means, n=it_means: k(m(row), n(row)),
        )
        for word, made, known in TWO
        for (name, said, means), (to, it, it_means) in product(given, repeat=2)
    ]


def conditions() -> list[Condition]:
    """All of one function of another or of two, and all of two of those."""
    first = [*ATOMS, *_of_one(ATOMS)]
    return [*first, *_of_one(_of_one(ATOMS)), *_of_two(first), *_of_one(_of_two(ATOMS))]


def misread(table: Table, asked: list[Condition], *, together: int = 100) -> list[str]:
    """The conditions that an engine takes for something else, on a table with `ROWS`."""
    found: list[str] = []
    for start in range(0, len(asked), together):
        some = asked[start : start + together]
        made = table.mutate(
            **{f"made{at}": call("as_integer", said) for at, (_, said, _) in enumerate(some)}
        )
        asked_of = made.data.select("number", *(f"made{at}" for at in range(len(some))))
        found_rows = run(asked_of)
        rows = {int(number): cells for number, *cells in found_rows}
        assert len(rows) == len(ROWS)
        for at, (name, _, means) in enumerate(some):
            if [rows[place][at] for place in range(len(ROWS))] != [means(row) for row in ROWS]:
                found.append(name)
    return found
