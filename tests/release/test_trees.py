"""Every allowed function has the value of exact Python on every row, and public tables of any size
can be joined.
"""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest

import dpcompose.release as release
from campaigns.release import places, tables, trees
from dpcompose.errors import UnsupportedError
from dpcompose.release import engines
from dpcompose.release.function import FUNCTIONS
from tests.release import world


def test_trees_have_the_values_of_exact_python() -> None:
    assert [bad for _, _, wrong in trees.of_trees(places.frame(), 80, 5) for bad in wrong] == []


def test_every_function_of_the_table_is_in_the_trees() -> None:
    rng = random.Random(1)
    texts = "".join(
        trees.expression(trees.tree(rng, kind, 4)).text
        for kind in trees.CONSTANTS
        for _ in range(200)
    )
    # The date of a timestamp: these tables have none.
    assert {name for name in FUNCTIONS if f"{name}(" not in texts and name != "date"} == set()


@pytest.mark.parametrize("constants", [10**4, 1])
def test_a_public_table_is_joined_as_constants_or_as_a_copy(
    postgres_url: str, constants: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "_IN_COPIES", constants)
    rows: list[Any] = [(f"p{at}", at, city, *[None] * 8) for at, city in enumerate(tables.CITIES)]
    source = tables.on_postgres(postgres_url, rows, "joined")
    opened = release.table(source, name="joined", unit="person", max_rows_per_unit=1)
    areas = {"city": [*tables.CITIES, None], "area": [*range(len(tables.CITIES)), 99]}
    both = opened.join(release.public(pa.table(areas)), on="city")
    found = world.rows_of(both.data.select("number", "area"))
    assert list(found.number) == list(found.area) and len(found) == len(tables.CITIES)
    source.execute("BEGIN READ ONLY")
    if constants == 1:
        more = release.public(pa.table({"city": ["Ans", "Zug", "b"], "other": [1, 2, 3]}))
        with pytest.raises(UnsupportedError, match="GRANT TEMPORARY"):
            source.execute("SET ROLE pg_monitor")
            opened.join(more, on="city")
    source.close()
