"""Partitions of a table: every unit is in one part, and the budget is charged the largest part's
spending.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import dpcompose.release as release
from campaigns.release import partition
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, DPComposeError, OverdrawnError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.values.adjacency import Adjacency
from tests.release import world

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
ROWS = [
    (f"p{unit}", "rome" if (unit + at) % 3 else "oslo", 1.0, at)
    for unit in range(20)
    for at in range(3)
]
KEYS = ["rome", "oslo"]
SPEND = {"epsilon": 1}


def _left(session: release.Session) -> float:
    return float(session.account.left()["epsilon"].fraction)


def test_the_largest_part_counts_and_nothing_is_refunded() -> None:
    session = world.session(rows=ROWS)
    parts = session.partition("city", keys=KEYS)
    for city, times, left in (
        ("rome", 1, 99),
        ("oslo", 1, 99),
        ("oslo", 2, 97),
        ("rome", 1, 97),
        ("rome", 2, 96),
    ):
        for _ in range(times):
            parts[city].count(spend=SPEND)
        assert _left(session) == pytest.approx(left)
    session.count(spend=SPEND)
    assert _left(session) == _left(parts["rome"]) == pytest.approx(95)
    again = session.partition("city", keys=KEYS)
    assert [each.scope for each in again.values()] == [each.scope for each in parts.values()]
    session.partition("city", keys=[*KEYS, "bergen"])["rome"].count(spend=SPEND)
    assert _left(session) == pytest.approx(94)  # another partition: its charges add up
    with pytest.raises(OverdrawnError):
        parts["rome"].count(spend={"epsilon": 95})
    (said,) = next(
        each.description["note"]["release"]
        for each in _ledger(session).entries("world")
        if each.kind == "granted" and each.scope == parts["rome"].scope
    )
    assert said["part"] == parts["rome"].scope


def test_every_unit_is_in_one_part_with_rows_of_its_key() -> None:
    parts = world.session(rows=ROWS).partition("city", keys=KEYS)
    rows = {city: world.rows_of(each.table.data) for city, each in parts.items()}
    units = [set(each.person) for each in rows.values()]
    assert not units[0] & units[1] and len(units[0] | units[1]) == 20 and min(map(len, units)) > 2
    assert all(set(each.city) == {city} for city, each in rows.items())


def test_a_part_answers_for_its_people_alone() -> None:
    session = world.session(rows=ROWS)
    parts = session.partition("city", keys=KEYS)
    rome, oslo = parts["rome"], parts["oslo"]
    nested = rome.partition("age", keys=[0, 1])[1]
    foreign: list[tuple[release.Session, release.Table]] = [
        (rome, session.table),
        (rome, oslo.table),
        (rome, session.table.where(release.col("city") == "rome")),
        (rome, rome.table.union(oslo.table)),
        (
            rome,
            rome.table.join(session.table.mutate(far=release.lit(1)).select("far"), on="person"),
        ),
        (rome, nested.table),
        (nested, rome.table),
        (
            release.Session(session.table, ledger=session.ledger, scope=rome.scope, actor="ana"),
            session.table,
        ),
    ]
    left = _left(session)
    for asked, table in foreign:
        for ask in (asked.ask, asked.quote):
            with pytest.raises(DomainError, match="a table made of the part"):
                ask(release.Count(table=table, spend=SPEND))
    assert _left(session) == left
    assert nested.count(spend=SPEND).value is not None and _left(session) == pytest.approx(left - 1)
    changed = rome.table.where(release.col("age") > 0).mutate(x=release.lit(1))
    assert rome.count(table=changed, spend=SPEND).value is not None
    assert session.count(table=changed, spend=SPEND).value is not None


def test_a_partition_is_of_the_unit_that_its_scope_holds_for() -> None:
    ledger = world.ledger()
    world.session(ledger, rows=ROWS).partition("city", keys=KEYS)
    with pytest.raises(DomainError, match="unit"):
        world.session(ledger, rows=ROWS, unit="age").partition("city", keys=KEYS)


def test_parts_of_a_catalogued_table_are_trusted(tmp_path: Any) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("patient,clinic\nann,north\nbob,south\n")
    with Ledger.open("memory:") as ledger:
        definition = {"source": str(path), "unit": "patient", "max_rows_per_unit": 2}
        release.Catalog.define(
            ledger, "world", {"visits": definition}, filter=BasicFilter(9, delta=0), actor="keeper"
        )
        visits = release.Catalog(ledger, "world").table("visits")
        session = release.Session(visits, ledger=ledger, scope="world", actor="ana")
        part = session.partition("clinic", keys=["north", "south"])["north"]
        assert isinstance(part.count(spend=SPEND).value, int)
        typed = release.table(path, unit="patient", max_rows_per_unit=2, name="visits")
        with pytest.raises(DomainError, match="scope's catalog"):
            part.count(table=typed, spend=SPEND)


BAD: dict[str, Callable[[release.Session], Any]] = {
    "one key": lambda session: session.partition("city", keys=["rome"]),
    "a text": lambda session: session.partition("city", keys="rome"),
    "many keys": lambda session: session.partition("age", keys=list(range(300))),
    "NULL": lambda session: session.partition("city", keys=["rome", None]),
    "the same twice": lambda session: session.partition("city", keys=["rome", "rome"]),
    "another kind": lambda session: session.partition("city", keys=[1, 2]),
    "floats": lambda session: session.partition("amount", keys=[1.0, 2.0]),
    "no column": lambda session: session.partition("town", keys=KEYS),
    "a changed table": lambda session: world.session_of(
        session.table.where(release.col("age") > 1), session.ledger
    ).partition("city", keys=KEYS),
}


def _ledger(session: release.Session) -> Ledger:
    assert session.ledger is not None
    return session.ledger


@pytest.mark.parametrize("name", BAD)
def test_bad_partitions_are_refused_and_open_nothing(name: str) -> None:
    session = world.session(rows=ROWS)
    before = len(list(_ledger(session).entries("world")))
    with pytest.raises(DPComposeError):
        BAD[name](session)
    assert len(list(_ledger(session).entries("world"))) == before


def test_replacing_a_unit_moves_two_parts() -> None:
    ledger = Ledger.open("memory:")
    open_scope(
        ledger, "world", filter=BasicFilter(9, delta=0), adjacency=Adjacency.REPLACE, actor="keeper"
    )
    with pytest.raises(UnsupportedError):
        world.session(ledger, rows=ROWS).partition("city", keys=KEYS)


def test_no_unit_moves_two_parts() -> None:
    assert partition.run("duckdb", 4, seed=1) == []
    assert partition.run("duckdb", 3, seed=1, defect=True)
