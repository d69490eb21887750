"""Transformations of tables: those that would break stability are refused, and no unit changes an
aggregate more than is charged.
"""
# ruff: noqa: PLW0108, RUF001

from __future__ import annotations

import copy
import pickle
import random
import sys
from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from pathlib import Path
from time import process_time
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import dpcompose.release as release
from campaigns.release import transformations
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.release import truncation
from dpcompose.release.aggregate import Scan, exact
from tests.release import world

col, lit = release.col, release.lit
TABLE = world.table()
OF_IBIS: Any = type("Expr", (), {"__module__": "ibis.expr.types"})()
SPEND = {"epsilon": 1}
FAR = TABLE.mutate(far=col("age")).select("city", "far")
KEYED = TABLE.join(FAR, on="city", at_most=(3, 2))
COUNTRIES = release.public(
    pa.table({"city": ["rome", "oslo", "rome", None], "country": ["it", "no", "va", "?"]})
)


def _elsewhere() -> release.Table:
    """A table over a connection of somebody else's."""
    connection = duckdb.connect()
    connection.execute("CREATE TABLE people (person TEXT, city TEXT, amount DOUBLE, age BIGINT)")
    return release.table(connection, unit="person", max_rows_per_unit=2, name="people")


REFUSED: dict[str, Callable[[], Any]] = {
    "order_by | order_by": lambda: TABLE.order_by("age"),
    "limit | limit": lambda: TABLE.limit(1),
    "distinct | distinct": lambda: TABLE.distinct(),
    "aggregate | aggregate": lambda: TABLE.aggregate(n=1),
    "group_by | group_by": lambda: TABLE.group_by("city"),
    "window | window": lambda: TABLE.window(),
    "cross_join | cross_join": lambda: TABLE.cross_join(TABLE),
    "semi_join | semi_join": lambda: TABLE.semi_join(TABLE, "person"),
    "anti_join | anti_join": lambda: TABLE.anti_join(TABLE, "person"),
    "asof_join | asof_join": lambda: TABLE.asof_join(TABLE, "age"),
    "intersect | intersect": lambda: TABLE.intersect(TABLE),
    "difference | difference": lambda: TABLE.difference(TABLE),
    "sample | sample": lambda: TABLE.sample(0.5),
    "sql | sql": lambda: TABLE.sql("SELECT 1"),
    "map | map": lambda: TABLE.map(str),
    "unnest | unnest": lambda: TABLE.unnest("city"),
    "pivot | pivot_wider": lambda: TABLE.pivot_wider(),
    "fill from other rows | fill_forward": lambda: TABLE.fill_forward(),
    "where by ibis | where: an expression of ibis": lambda: TABLE.where(OF_IBIS),  # pyright: ignore[reportArgumentType]
    "where by text | where: a text": lambda: TABLE.where("age > 3"),  # pyright: ignore[reportArgumentType]
    "where by a function | where: a function": lambda: TABLE.where(lambda row: row.age > 3),  # pyright: ignore[reportArgumentType]
    "where by a number | where = 'integer'": lambda: TABLE.where(col("age")),
    "mutate by ibis | mutate x: an expression of ibis": lambda: TABLE.mutate(x=OF_IBIS),  # pyright: ignore[reportArgumentType]
    "mutate the unit | mutate person": lambda: TABLE.mutate(person=lit("nobody")),
    "mutate the unit in capitals | mutate PERSON": lambda: TABLE.mutate(PERSON=lit("nobody")),
    "mutate another column in capitals | mutate Age": lambda: TABLE.mutate(Age=lit(1)),
    "mutate to two names alike | mutate X": lambda: TABLE.mutate(x=lit(1), X=lit(2)),
    "mutate to a name that is cut off | mutate xxx": lambda: TABLE.mutate(**{"x" * 64: lit(1)}),
    "mutate to a name with a quote | mutate x": lambda: TABLE.mutate(**{'x", 1 --': lit(1)}),
    "mutate to a name of another script | mutate ſ": lambda: TABLE.mutate(**{"ſ": lit(1)}),
    "mutate nothing | mutate = 0": lambda: TABLE.mutate(),
    "head | head of a table (a part of the rows)": lambda: TABLE.head(5),
    "filter | filter of a table": lambda: TABLE.filter(col("age") > 3),
    "count | count of a table (an aggregate": lambda: TABLE.count(),
    "rows | execute of a table (the rows themselves)": lambda: TABLE.execute(),
    "an index | [...] of a table": lambda: TABLE["age"],
    "a column | the column 'age'": lambda: TABLE.age,
    "a method that nobody has | frobnicate of a table": lambda: TABLE.frobnicate(),
    "a method of columns that nobody has | frobnicate of an expression": lambda: col(
        "age"
    ).frobnicate(),
    "where by SQL in a text | where: a text": lambda: TABLE.where("1=1; DROP TABLE people"),  # pyright: ignore[reportArgumentType]
    "an index of a column | [...] of an expression": lambda: col("city")[0],
    "power | ** of an expression": lambda: col("age") ** 1000,
    "division of integers | // of an expression": lambda: col("age") // col("age"),
    "membership in Python | [...] of an expression": lambda: "rome" in col("city"),  # pyright: ignore[reportOperatorIssue]
    "an exploding replacement | re_replace": lambda: col("city").re_replace("(a|a)*b", ""),
    "an exploding split | re_split": lambda: col("city").re_split("(x+x+)+y"),
    "inner join by name | inner_join": lambda: TABLE.inner_join(TABLE, "city"),
    "sum | sum of an expression": lambda: col("age").sum(),
    "max over | max of an expression": lambda: col("age").max(),
    "over | over": lambda: col("age").over(None),
    "any | any": lambda: (col("person") == "ann").any(),
    "rank | rank": lambda: col("age").rank(),
    "lag | lag": lambda: col("age").lag(),
    "count distinct | nunique": lambda: col("age").nunique(),
    "regular expression | re_search": lambda: col("city").re_search("(a+)+$"),
    "like | like": lambda: col("city").like("%a%"),
    "random | random": lambda: col("age").random(),
    "row number | row_number": lambda: col("age").row_number(),
    "hash | hash": lambda: col("age").hash(),
    "apply | apply": lambda: col("age").apply(str),
    "float to text | as_text": lambda: TABLE.mutate(x=col("amount").cast("text")),
    "text to integer | as_integer": lambda: TABLE.mutate(x=col("city").cast("integer")),
    "cast to a date | cast to 'date'": lambda: col("city").cast("date"),
    "and of Python | and, or, not": lambda: (col("age") > 1) and (col("age") < 5),
    "chained comparison | a < b < c": lambda: 1 < col("age") < 5,
    "another kind | less": lambda: TABLE.where(col("city") > 3),
    "a column that is not there | col = 'AGE'": lambda: TABLE.where(col("AGE") > 3),
    "modulo a column | modulo": lambda: TABLE.mutate(x=col("age") % col("age")),
    "a NULL constant | value = 'NoneType'": lambda: lit(None),
    "an infinite constant | value = inf": lambda: lit(float("inf")),
    "a NaN | value = nan": lambda: lit(float("nan")),
    "an integer too large | value = 9223372036854775808": lambda: lit(2**63),
    "text with a zero | value = 'a text": lambda: lit("a\0b"),
    "half a surrogate pair | value = 'a text": lambda: lit("\ud800"),
    "a very long text | value = 'a text of 10,001": lambda: lit("a" * 10_001),
    "many deep expressions | so many expressions": lambda: TABLE.mutate(
        **{f"x{at}": _deep(4) for at in range(5)}
    ),
    "deep expression | so many parts (multiply)": lambda: TABLE.mutate(x=_deep(12)),
    "join on another key | a join on ['city']": lambda: TABLE.join(TABLE, on="city"),
    "join on another key with a bound | a join on ['city']": lambda: TABLE.join(
        TABLE, on="city", at_most=2
    ),
    "join on another key, left | how='left'": lambda: TABLE.join(
        FAR, on="city", at_most=(1, 1), how="left"
    ),
    "join on another key that has the unit | a join on ['person']": lambda: TABLE.join(
        FAR, on="person", at_most=(1, 1)
    ),
    "join on another key of floats | join on = 'amount'": lambda: TABLE.join(
        TABLE, on="amount", at_most=(1, 1)
    ),
    "join on another key with names alike | join = 'amount'": lambda: TABLE.join(
        TABLE, on="city", at_most=(1, 1)
    ),
    "join on another key without a bound | at_most = 0": lambda: TABLE.join(
        FAR, on="city", at_most=(0, 1)
    ),
    "join on another key with huge bounds | join = ": lambda: TABLE.join(
        FAR, on="city", at_most=(2**31, 2**31)
    ),
    "join with one bound of units | rows_per_unit": lambda: TABLE.join(
        FAR,
        on="city",
        at_most=(1, 1),
        rows_per_unit=3,  # pyright: ignore[reportArgumentType]
    ),
    "public join with a pair | at_most": lambda: TABLE.join(COUNTRIES, on="city", at_most=(1, 1)),
    "union after a join on another key | union of a table joined on another key": lambda: (
        KEYED.union(KEYED)
    ),
    "join after a join on another key | join of a table joined on another key": lambda: KEYED.join(
        TABLE, on="city"
    ),
    "join with a join on another key | join of a table joined on another key": lambda: TABLE.join(
        KEYED, on="city"
    ),
    "select of nothing where no unit is left | select": lambda: KEYED.select(),
    "public rows beyond what one unit may move | join": lambda: _many().join(
        COUNTRIES, on="city", at_most=4
    ),
    "join with names alike | join = 'city'": lambda: TABLE.join(TABLE, on="person"),
    "right join | how='right'": lambda: TABLE.join(TABLE.select(), on="person", how="right"),
    "full join | how='outer'": lambda: TABLE.join(COUNTRIES, on="city", how="outer", at_most=2),
    "join with ibis | join with an expression of ibis": lambda: TABLE.join(OF_IBIS, on="person"),
    "join of two connections | join of tables on two connections": lambda: TABLE.join(
        _elsewhere().select(), on="person"
    ),
    "join of a connection with a frame | join of tables on two connections": lambda: (
        _elsewhere().join(TABLE.select(), on="person")
    ),
    "public key that is not unique | on = ['city']": lambda: TABLE.join(COUNTRIES, on="city"),
    "public key of another kind | join on = 'age'": lambda: TABLE.join(
        release.public(pa.table({"age": ["1"]})), on="age"
    ),
    "public key that is a float | join on = 'amount'": lambda: TABLE.join(
        release.public(pa.table({"amount": [1.0]})), on="amount"
    ),
    "public column of the unit | join = 'Person'": lambda: TABLE.join(
        release.public(pa.table({"city": ["rome"], "Person": ["ann"]})), on="city"
    ),
    "union of two connections | union of tables on two connections": lambda: TABLE.union(
        _elsewhere()
    ),
    "union of other columns | union = [": lambda: TABLE.union(TABLE.select("city")),
    "union of another unit | union = (": lambda: TABLE.union(world.table(unit="city")),
    "union of other bounds | union = 'Bounds": lambda: TABLE.union(
        world.table(max_rows_per_unit=9)
    ),
}


def _many() -> release.Table:
    """Joined rows of which one unit moves 2^30."""
    opened = world.table(max_rows_per_unit=2**14)
    return opened.join(
        opened.mutate(far=col("age")).select("city", "far"), on="city", at_most=(2**14, 2**14)
    )


def _deep(levels: int) -> Any:
    found = col("age")
    for _ in range(levels):
        found = found * found
    return found


def test_divisions_in_divisions_are_read_in_time() -> None:
    found = col("amount")
    for _ in range(5):
        found = col("amount") / found
    made, began = TABLE.mutate(x=found), process_time()
    question = release.Sum("x", lower=0, upper=1, granularity="0.1", spend={"epsilon": 1})
    assert exact(made, question.design(made).aggregation)
    assert process_time() - began < 5  # ten times as long where the divisor is written twice


def _refusal(name: str) -> str:
    with pytest.raises((DomainError, UnsupportedError)) as error:
        REFUSED[name]()
    assert getattr(error.value, "domain", "") or error.value.remedy
    return str(error.value)


@pytest.mark.parametrize("name", REFUSED, ids=lambda name: name.partition(" | ")[0])
def test_an_expression_that_would_break_stability_is_refused_by_name(name: str) -> None:
    said = _refusal(name)
    assert name.partition(" | ")[2] in said and "Traceback" not in said


def test_refusals_say_nothing_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    said = {name: _refusal(name) for name in REFUSED}
    monkeypatch.setattr(
        sys.modules[__name__], "TABLE", world.table([("zoe", "quito", -7.0, 12345)] * 9)
    )
    assert {name: _refusal(name) for name in REFUSED} == said


def test_what_is_refused_is_not_there_for_python() -> None:
    assert not hasattr(TABLE, "order_by") and not hasattr(col("age"), "__array__")
    assert (
        copy.copy(TABLE) == TABLE
        and pickle.loads(pickle.dumps(col("age") > 1)).text == (col("age") > 1).text
    )


@pytest.mark.parametrize("connect", [or_, and_])
def test_a_long_chain_of_conditions_is_one(connect: Any) -> None:
    found = reduce(connect, (col("age") == number for number in range(900)))
    assert len(world.rows_of(TABLE.where(found).data)) == (6 if connect is or_ else 0) + (
        connect is or_
    )
    with pytest.raises(UnsupportedError, match="1,000 conditions connected by"):
        reduce(connect, (col("age") == number for number in range(20_000)))


@pytest.mark.parametrize("terms", [400, 20_000])
def test_an_expression_of_many_levels_is_refused_where_it_is_made(terms: int) -> None:
    with pytest.raises(UnsupportedError, match="inside each other"):
        reduce(lambda found, number: found + number, range(terms), col("age"))


def test_at_least_sixty_are_refused() -> None:
    assert len(REFUSED) >= 60


def test_rows_are_joined_with_public_ones_up_to_the_bound() -> None:
    joined = TABLE.join(COUNTRIES, on="city", at_most=2)
    assert (joined.bounds.rows, joined.steps) != (TABLE.bounds.rows, TABLE.steps)
    rows = world.rows_of(joined.data)
    assert sorted(rows[rows.person == "ann"].country) == ["it", "it", "no", "va", "va"]


def test_a_table_joins_what_is_made_of_it_on_the_unit_alone() -> None:
    other = TABLE.where(col("age") > 1).mutate(twice=col("age") * 2).select("twice")
    rows = world.rows_of(TABLE.join(other, on="person").data)
    assert set(zip(rows.person, rows.twice, strict=True)) == {
        ("ann", 4),
        ("ann", 6),
        ("bob", 8),
        ("bob", 10),
        ("cyd", 12),
    }


def test_files_and_frames_are_asked_over_one_connection(tmp_path: Path) -> None:
    parquet.write_table(world.frame(), tmp_path / "visits.parquet")
    (tmp_path / "people.csv").write_text("person,born\nann,1970\nbob,1980\n")
    visits, people = (
        release.table(tmp_path / each, unit="person", max_rows_per_unit=3)
        for each in ("visits.parquet", "people.csv")
    )
    joined = visits.join(people, on="person")
    other_way = people.join(visits, on="person").select("city", "amount", "age", "born")
    assert {(row.person, row.born) for row in world.rows_of(joined.data).itertuples()} == {
        ("ann", "1970"),
        ("bob", "1980"),
    }
    both = joined.union(other_way)
    assert len(world.rows_of(both.data)) == 2 * len(world.rows_of(joined.data))
    counted = world.session_of(both.union(joined.where(col("age") > 2))).count(
        spend={"epsilon": 50}
    )
    assert counted.value == pytest.approx(13, abs=2)
    frames = world.table().union(world.table([("dan", "rome", 1.0, 9)]))
    assert len(world.rows_of(frames.data)) == len(world.ROWS) + 1


def test_frames_that_look_alike_stay_themselves_over_one_connection() -> None:
    one, other = (world.table([("ann", "rome", 1.0, age)]) for age in (1, 2))
    both, turned = one.union(other), other.union(one)
    assert sorted(world.rows_of(both.union(turned.union(other)).data).age) == [1, 1, 2, 2, 2]


def _joined(rows: list[Any]) -> list[Any]:
    """The rows of one unit with forty rows, after a join with themselves."""
    opened = world.table(rows, max_rows_per_unit=3)
    joined = opened.join(opened.mutate(other=col("age")).select("other"), on="person")
    found = world.rows_of(joined.data)
    return sorted(
        zip(found[found.person == "ann"].age, found[found.person == "ann"].other, strict=True)
    )


def _shuffled() -> tuple[list[Any], list[Any]]:
    """Rows, and the same in another order with those of one more unit."""
    rows = [("ann", "rome", 1.0, at) for at in range(40)] + [
        ("bob", "oslo", 1.0, at) for at in range(9)
    ]
    more = [("cyd", "rome", 2.0, at) for at in range(30)]
    return rows, random.Random(1).sample([*more, *rows], len(rows) + len(more))


def test_each_side_of_a_join_keeps_the_same_few_rows_of_a_unit_whatever_others_have() -> None:
    alone, among = (_joined(rows) for rows in _shuffled())
    assert alone == among and len(alone) == 9 and len({age for age, _ in alone}) == 3


def test_a_join_of_unbounded_sides_and_an_order_that_is_not_total_are_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = truncation.sampled_rows
    monkeypatch.setattr(
        truncation,
        "sampled_rows",
        lambda table, rows, of, names, **how: whole(table, rows, of, [], **how),
    )
    alone, among = (_joined(rows) for rows in _shuffled())
    assert alone != among
    monkeypatch.setattr(
        sys.modules["dpcompose.release.table"], "whole_rows", lambda table, data, stage: data
    )
    assert len(_joined(_shuffled()[0])) == 1600


def _met(rows: list[Any]) -> Counter[Any]:
    opened = world.table(rows, max_rows_per_unit=2)
    joined = opened.join(
        opened.mutate(far=col("age")).select("city", "far"), on="city", at_most=(3, 2)
    )
    return Counter(
        world.rows_of(joined.data.select("city", "age", "far")).itertuples(index=False, name=None)
    )


def test_rows_of_a_join_on_another_key_move_as_little_as_is_charged() -> None:
    rows = [(f"p{at}", "rome" if at % 3 else "oslo", 1.0, at) for at in range(12)]
    moved: list[int] = []
    for at in range(20):
        more = [*rows, (f"q{at}", "rome", 2.0, 100), (f"q{at}", "oslo", 2.0, 101)]
        before, after = _met(rows), _met(more)
        moved.append(sum((before - after).values()) + sum((after - before).values()))
        assert len(before) == sum(before.values()) == 12
    assert KEYED.bounds.rows == 2 * (2 * 2 + 2 * 3) and max(moved) == 16 <= KEYED.bounds.rows


def test_a_table_joined_on_another_key_answers_what_adds_up_rows() -> None:
    session, rows = world.session_of(KEYED), world.rows_of(KEYED.data)
    cities: dict[str, Any] = {"by": "city", "keys": ["rome", "oslo"], "spend": SPEND}
    asked = (
        release.Count(spend=SPEND),
        release.Count(**cities),
        release.Sum("far", lower=0, upper=9, **cities),
    )
    whole, counts, sums = Scan.of(KEYED, [each.design(KEYED).aggregation for each in asked]).exact()
    assert whole == {(): {0: (len(rows),)}}
    of_city = rows.groupby("city").far
    assert {city: (counts[city,][0][0], *sums[city,][0]) for city in ("rome", "oslo")} == {
        city: (number, number, total)
        for (city, number), total in zip(of_city.count().items(), of_city.sum(), strict=True)
    }
    assert len(session.batch(asked)) == 3
    told = session.explain(release.Count(spend=SPEND)).rows[0]
    assert "one unit moves at most 20 of them" in told["stability"] and told["unit"].startswith(
        "person"
    )
    ends: dict[str, Any] = {"lower": 0, "upper": 9, "granularity": 1, "spend": SPEND}
    private: dict[str, Any] = {"by": "city", "spend": {"epsilon": 1, "delta": 1e-3}}
    left = session.account.left()
    for question in (
        release.Units(spend=SPEND),
        release.Count(**private),
        release.Count(**private, threshold="units"),
        release.Top(1, **private),
        release.Top(1, by="city", keys=["rome", "oslo"], method="peeling", spend=SPEND),
        release.Quantile("far", 0.5, **ends),
        release.Maximum("far", **ends),
        release.Distinct("far", spend=SPEND),
        release.RowsPerUnit(most=3, spend=SPEND),
        release.LeftOut(release.Count(), spend=SPEND),
    ):
        for ask in (session.ask, session.quote):
            with pytest.raises(
                UnsupportedError,
                match="of a table joined on another key: its rows belong to no unit",
            ):
                ask(question)
    assert session.account.left() == left


def test_a_join_on_another_key_is_bound_to_the_unit_of_its_tables() -> None:
    ledger = world.ledger()
    world.session_of(KEYED.where(col("far") > 1), ledger).count(spend=SPEND)
    with pytest.raises(DomainError, match="unit"):
        world.session(ledger, unit="age").count(spend=SPEND)
    (granted,) = [each for each in ledger.entries("world") if each.kind == "granted"]
    (said,) = granted.description["note"]["release"]
    assert said["unit"] == ["person"] and said["bounds"] == {"rows that one unit moves": 20}


def test_columns_that_no_question_takes_are_left_out_of_a_join() -> None:
    frame = pa.table(
        {"person": ["ann"], "blob": [b"x"], "list": [[1]], "at": pa.array([0], pa.timestamp("us"))}
    )
    odd = release.table(frame, unit="person", max_rows_per_unit=2, name="odd")
    assert [each.name for each in odd.join(TABLE.select("age"), on="person").columns] == [
        "person",
        "at",
        "age",
    ]


def test_a_file_that_has_other_columns_by_now_is_not_joined(tmp_path: Path) -> None:
    parquet.write_table(world.frame(), tmp_path / "visits.parquet")
    visits = release.table(tmp_path / "visits.parquet", unit="person", max_rows_per_unit=2)
    parquet.write_table(world.frame().drop_columns(["age"]), tmp_path / "visits.parquet")
    with pytest.raises(DomainError, match="had when it was opened"):
        TABLE.select().join(visits.select("city"), on="person")


def test_functions_are_total() -> None:
    made = TABLE.mutate(
        a=col("age") / 0,
        b=col("age") * 2**62,
        c=(col("amount") / 1e-150 * 1e150),
        d=col("city").upper(),
        e=-col("age"),
    )
    rows = world.rows_of(made.data)
    assert rows.a.isna().all() and rows.c.isna().all()
    assert [each for each in rows.b if each == each and each is not None] == [2**62]
    assert set(rows.d.dropna()) == {"ROME", "OSLO"} and list(rows.e) == [-age for age in rows.age]


def test_trees_are_equal_where_they_are_written_alike() -> None:
    one, other = (TABLE.where(col("age") >= 18).select("city") for _ in range(2))
    assert one == other and one.identity == other.identity
    assert one != TABLE.where(col("age") >= 19).select("city")
    assert one.identity != TABLE.identity


def test_no_unit_moves_more_than_is_charged() -> None:
    assert transformations.run("duckdb", 12, seed=3) == []


@pytest.mark.parametrize("defect", transformations.DEFECTS)
def test_a_wrong_stability_is_found(defect: str) -> None:
    assert transformations.run("duckdb", 4, seed=2 if defect == "mutate" else 1, defect=defect)


def test_a_scope_with_a_catalog_answers_for_its_tables_alone(tmp_path: Path) -> None:
    path = tmp_path / "visits.csv"
    path.write_text("patient,minutes\nann,3\nbob,5\n")
    with Ledger.open("memory:") as ledger:
        definition = {"source": str(path), "unit": "patient", "max_rows_per_unit": 2}
        release.Catalog.define(
            ledger, "world", {"visits": definition}, filter=BasicFilter(9, delta=0), actor="keeper"
        )
        catalog = release.Catalog(ledger, "world")
        visits = catalog.table("visits")
        session = release.Session(
            visits.where(col("patient") != "x"), ledger=ledger, scope="world", actor="ana"
        )
        assert session.count(spend={"epsilon": 1}).table.num_rows == 1
        typed = release.table(path, unit="patient", max_rows_per_unit=2, name="visits")
        with pytest.raises(DomainError, match="scope's catalog"):
            release.Session(typed, ledger=ledger, scope="world", actor="ana").count(
                spend={"epsilon": 1}
            )
        for foreign in (typed, typed.where(col("patient") != "x")):
            with pytest.raises(DomainError, match="scope's catalog"):
                session.quote(release.Count(table=foreign, spend={"epsilon": 1}))
        assert catalog.version not in str(visits)
        with pytest.raises(DomainError, match="one of visits"):
            catalog.table("other")
