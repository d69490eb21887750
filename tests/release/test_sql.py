"""SQL is read into the same questions as Python makes; everything else is refused before the charge
by an error that names it.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest
from sqlglot import exp

import dpcompose.release as release
from dpcompose.account import open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import DomainError, DPComposeError, UnsupportedError
from dpcompose.ledger import Ledger
from dpcompose.release import case, col, lit
from dpcompose.release.planner import SelectedAnswer
from dpcompose.release.sql_syntax import ALLOWED, parsed, require_allowed
from tests.release import world

CLASSES = [
    each for _, each in inspect.getmembers(exp, inspect.isclass) if issubclass(each, exp.Expr)
]
ENDS = "CLAMP(age, 0, 10)"
SPEND = {"epsilon": 1}


OR_NULL = world.table().mutate(city_or_null=release.col("city").fill_null("\x1a no value"))


def read(text: str, **given: Any) -> tuple[release.Question, ...]:
    return release.questions_of_sql(text, world.table(), **given)


# The table of nodes


def test_every_class_of_the_parser_is_allowed_by_name_or_refused() -> None:
    assert len(CLASSES) > 1000
    assert set(ALLOWED) <= {each.__name__ for each in CLASSES}
    root = parsed("SELECT COUNT(*) FROM people WHERE age > 1")
    for each in CLASSES:
        if each.__name__ in ALLOWED and each is not exp.Anonymous:
            continue
        root.args["where"].set("this", each())
        with pytest.raises(UnsupportedError, match=r"^sql: "):
            require_allowed(root)
    root.args["where"].set("this", exp.column("age"))
    require_allowed(root)


def test_an_allowed_node_has_no_other_parts_and_no_subclasses() -> None:
    class Sum(exp.Sum):
        """A function that a later version may bring."""

    class Later(exp.Sum):
        """Another one."""

    for node in (Later(this=exp.column("age")), exp.Func()):
        with pytest.raises(UnsupportedError):
            require_allowed(exp.select(node).from_("people"))
    for each in CLASSES:
        if each.__name__ in ALLOWED and each not in (exp.Select, exp.Anonymous):
            with pytest.raises(UnsupportedError, match="not supported"):
                require_allowed(each(surprise="x"))
            with pytest.raises(UnsupportedError, match="OVER"):
                require_allowed(each(surprise=exp.Window(this=exp.column("age"))))


# Questions


@pytest.mark.parametrize(
    ("text", "question"),
    [
        ("SELECT COUNT(*) FROM people", release.Count()),
        ("select count(*) as n from people as p;", release.Count()),
        ('SELECT COUNT(DISTINCT person) FROM "people"', release.Units()),
        ("SELECT city, COUNT(*) FROM people GROUP BY city", release.Count(by="city_or_null", table=OR_NULL)),
        ("SELECT p.city, COUNT(*) FROM people p GROUP BY 1", release.Count(by="city_or_null", table=OR_NULL)),
        ("SELECT city AS c, COUNT(*) FROM people GROUP BY c", release.Count(by="city_or_null", table=OR_NULL)),
        (
            "SELECT city, COUNT(*) FROM people WHERE city IN ('rome', NULL) GROUP BY city",
            release.Count(by="city", keys=["rome", None]),
        ),
        (
            "SELECT city, age, COUNT(*) FROM people WHERE (age IN (-1, 2) AND city IN ('rome')) GROUP BY city, age",
            release.Count(by=("city", "age"), keys=[("rome", -1), ("rome", 2)]),
        ),
        (f"SELECT SUM({ENDS}) FROM people", release.Sum("age", lower=0, upper=10)),
        ("SELECT SUM(CLAMP(amount, -1.5, 1e1, 0.25)) FROM people",
         release.Sum("amount", lower=-1.5, upper=10.0, granularity=0.25)),
        (f"SELECT AVG({ENDS}) FROM people", release.Mean("age", lower=0, upper=10)),
        ("SELECT MEDIAN(CLAMP(age, 0, 10, 1)) FROM people",
         release.Quantile("age", 0.5, lower=0, upper=10, granularity=1)),
        ("SELECT PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY CLAMP(age, 0, 10, 1)) FROM people",
         release.Quantile("age", 0.9, lower=0, upper=10, granularity=1)),
        ("SELECT QUANTILE(CLAMP(age, 0, 10, 1), 0.25) FROM people",
         release.Quantile("age", 0.25, lower=0, upper=10, granularity=1)),
        ("SELECT QUANTILE(CLAMP(age, 0, 10, 1), [0.25, 0.5]) FROM people",
         release.Quantiles("age", qs=[0.25, 0.5], lower=0, upper=10, granularity=1)),
        ("SELECT PERCENTILE(CLAMP(age, 0, 10, 1), 0.25, 0.5) FROM people",
         release.Quantiles("age", qs=[0.25, 0.5], lower=0, upper=10, granularity=1)),
        ("SELECT MIN(CLAMP(age, 0, 10, 1)) FROM people", release.Minimum("age", lower=0, upper=10, granularity=1)),
        ("SELECT MAX(CLAMP(age, 0, 10, 1)) FROM people", release.Maximum("age", lower=0, upper=10, granularity=1)),
        (f"SELECT VAR_POP({ENDS}) FROM people", release.Variance("age", lower=0, upper=10)),
        (f"SELECT STDDEV({ENDS}) FROM people", release.StandardDeviation("age", lower=0, upper=10)),
        (f"SELECT SUM(CLAMP(amount, 0, 9)) / SUM({ENDS}) FROM people",
         release.Ratio("amount", per="age", lower=0, upper=9, per_lower=0, per_upper=10)),
        (
            "SELECT city, BIN(age, 0, 2, 4) AS bin, COUNT(*) FROM people WHERE city IN ('rome') GROUP BY city, bin",
            release.Histogram("age", edges=[0, 2, 4], by="city", keys=["rome"]),
        ),
        ("SELECT COUNT(DISTINCT city) FROM people", release.Distinct("city")),
        ("SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC LIMIT 2",
         release.Top(2, by="city")),
        ("SELECT city, COUNT(*) FROM people WHERE city IN ('a', 'b') GROUP BY 1 ORDER BY COUNT(*) DESC LIMIT 1",
         release.Top(1, by="city", keys=["a", "b"])),
        ("SELECT BIN(age, 0, 2, 4), COUNT(*) FROM people GROUP BY BIN(age, 0, 2, 4)",
         release.Histogram("age", edges=[0, 2, 4])),
        ("SELECT city, BIN(age, 0, 2, 4) AS bin, COUNT(*) FROM people GROUP BY city, bin",
         release.Histogram("age", edges=[0, 2, 4], by="city")),
    ],
)  # fmt: skip
def test_sql_asks_the_same_question_as_python(text: str, question: release.Question) -> None:
    assert read(text) == (question,)


SCALARS = [
    ("age >= 18 AND NOT city = 'x'", (col("age") >= 18, ~(col("city") == "x"))),
    ("age < -1.5 OR (city <> 'x')", ((col("age") < -1.5) | (col("city") != "x"),)),
    ("age BETWEEN 1 AND 5", (col("age").between(1, 5),)),
    ("age NOT IN (1, 2)", (~col("age").is_in([1, 2]),)),
    ("city IS NULL", (col("city").is_null(),)),
    ("city IS NOT NULL", (~col("city").is_null(),)),
    ("(age > 1) IS TRUE", ((col("age") > 1).fill_null(False),)),
    ("(age > 1) IS NOT FALSE", (~~(col("age") > 1).fill_null(True),)),
    ("age + 2 * age - age / 3 > 0", (col("age") + lit(2) * col("age") - col("age") / 3 > 0,)),
    ("age % 2 = 1 AND MOD(age, -3) = -1", (col("age").remainder(2) == 1, col("age").remainder(-3) == -1)),
    ("-amount > 1e3", (-col("amount") > 1000.0,)),
    ("LOWER(city) = UPPER('x')", (col("city").lower() == lit("x").upper(),)),
    ("LENGTH(city) > 3 AND STARTS_WITH(city, 'r')", (col("city").length() > 3, col("city").starts_with("r"))),
    ("city LIKE '%m%'", (col("city").contains("m"),)),
    ("city LIKE 'r%' AND city NOT LIKE '%o'", (col("city").starts_with("r"), ~col("city").ends_with("o"))),
    ("CASE WHEN age > 2 THEN 1 ELSE 0 END = 1", (case((col("age") > 2, 1), else_=0) == 1,)),
    ("IF(age > 2, 'a', 'b') = 'a'", (case((col("age") > 2, "a"), else_="b") == "a",)),
    ("COALESCE(age, 0, 1) = 0", (col("age").fill_null(0).fill_null(1) == 0,)),
    ("CAST(age AS DOUBLE) > 1 AND ABS(age) = FLOOR(amount)",
     (col("age").cast("float") > 1, col("age").abs() == col("amount").floor())),
    ("SUBSTRING(city, 2, 3) = LEFT(city, 3) AND SUBSTR(city, 2) <> RIGHT(city, 1)",
     (col("city").substring(2, 3) == col("city").substring(1, 3), col("city").substring(2) != col("city").right(1))),
    ("\"age\" > 1 AND people.\"age\" > 2", (col("age") > 1, col("age") > 2)),
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "wanted"), SCALARS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_conditions_are_the_same_as_in_python(text: str, wanted: tuple[Any, ...]) -> None:
    table = expected = world.table()
    for each in wanted:
        expected = expected.where(each)
    found = release.questions_of_sql(f"SELECT COUNT(*) FROM people WHERE {text}", table)
    assert found == (release.Count(table=expected),)
    assert found != (release.Count(table=table.where(col("age") > 99)),)


def test_expressions_are_columns_and_dates_have_parts() -> None:
    table = world.table()
    (found,) = release.questions_of_sql(
        "SELECT SUM(CLAMP(age * 2, 0, 9)) AS twice FROM people WHERE age > 1", table
    )
    changed = table.where(col("age") > 1).mutate(twice=col("age") * 2)
    assert found == release.Sum("twice", lower=0, upper=9, table=changed)
    (found,) = release.questions_of_sql(
        "SELECT UPPER(city), COUNT(*) FROM people GROUP BY 1", table
    )
    assert found == release.Count(
        by="_upper_city", table=table.mutate(_upper_city=col("city").upper())
    )
    days = pa.table({"person": ["a"], "day": [date(2026, 1, 31)]})
    visits = release.table(days, unit="person", max_rows_per_unit=1, name="visits")
    text = "SELECT MONTH(day) AS month, COUNT(*) FROM visits WHERE day >= DATE '2026-01-01' {} GROUP BY month"
    first = visits.where(col("day") >= date(2026, 1, 1)).where(col("day").year() == 2026)
    wanted = release.Count(by="month", keys=[1, 2], table=first.mutate(month=col("day").month()))
    read = text.format("AND EXTRACT(YEAR FROM day) = 2026 AND MONTH(day) IN (1, 2)")
    assert release.questions_of_sql(read, visits) == (wanted,)
    made = visits.mutate(start=col("day").truncate("month"))
    text = "SELECT DATE_TRUNC('month', day) AS start, COUNT(*) FROM visits GROUP BY start"
    assert release.questions_of_sql(text, visits)[0].table == made
    for word, part in (("DOW", "day_of_week"), ("QUARTER", "quarter"), ("DOY", "day_of_year")):
        text = f"SELECT COUNT(*) FROM visits WHERE DATE_PART('{word}', day) = 1 AND DATE_TRUNC('day', day) = day"
        expected = visits.where(getattr(col("day"), part)() == 1).where(col("day") == col("day"))
        assert release.questions_of_sql(text, visits)[0].table == expected


@pytest.mark.parametrize(
    "text",
    ["SUBSTRING(city, 0, 2) = 'x'", "SUBSTRING(city, -2) = 'x'", "LEFT(city, age) = 'x'",
     "RIGHT(city, -1) = 'x'", "SUBSTRING(city, 1, 1.5) = 'x'", "SUBSTRING(city, 3000000000) = 'x'",
     "LEFT(age, 2) = 'x'", "DATE_TRUNC('hour', city) = city", "EXTRACT(DAYOFWEEK FROM city) = 1"],
)  # fmt: skip
def test_places_and_parts_that_engines_read_in_different_ways_are_refused(text: str) -> None:
    with pytest.raises((DomainError, UnsupportedError)):
        release.questions_of_sql(f"SELECT COUNT(*) FROM people WHERE {text}", world.table())


def test_public_tables_are_joined() -> None:
    table = world.table()
    cities = release.public(pa.table({"city": ["rome", "oslo"], "country": ["it", "no"]}))
    wanted = release.Count(by="country", keys=["it"], table=table.join(cities, on="city"))
    for join in ("JOIN cities USING (city)", "INNER JOIN cities ON cities.city = people.city"):
        text = (
            f"SELECT country, COUNT(*) FROM people {join} WHERE country IN ('it') GROUP BY country"
        )
        assert release.questions_of_sql(text, table, tables={"cities": cities}) == (wanted,)
    text = "SELECT COUNT(*) FROM people AS p LEFT JOIN cities AS c ON p.city = c.city WHERE c.country IS NULL"
    joined = table.join(cities, on="city", how="left").where(col("country").is_null())
    assert release.questions_of_sql(text, table, tables={"cities": cities}) == (
        release.Count(table=joined),
    )
    for wrong in (
        "ON p.age = c.city",
        "ON p.city > c.city",
        "ON p.city = c.city OR TRUE",
        "ON TRUE",
        "USING (nothing)",
    ):
        with pytest.raises((UnsupportedError, DomainError)):
            text = f"SELECT COUNT(*) FROM people AS p JOIN cities AS c {wrong}"
            release.questions_of_sql(text, table, tables={"cities": cities})


PEOPLE = pa.table({"person": [f"p{at}" for at in range(60)], "age": [at % 9 for at in range(60)]})
VISITS = pa.table(
    {
        "person": [f"p{at % 20}" for at in range(60)],
        "clinic": [("north", "far", "south", None)[at % 4] for at in range(60)],
        "k": [at - 30 for at in range(60)],
    }
)
CLINICS = pa.table({"clinic": ["north", "south", "empty"], "city": ["oslo", None, "rome"]})


def _answered(text: str, **given: Any) -> tuple[Any, list[Any], bool]:
    """The answer at a huge budget, what DuckDB says of the same text, and whether anything was charged."""
    frames = {"people": (PEOPLE, 1), "visits": (VISITS, 3)}
    known: dict[str, Any] = {
        name: release.table(frame, unit="person", max_rows_per_unit=most, name=name)
        for name, (frame, most) in frames.items()
    }
    plain = duckdb.connect()
    for name, frame in (("people", PEOPLE), ("visits", VISITS), ("clinics", CLINICS)):
        plain.register(name, frame)
    session = world.session_of(
        known[text.split(" FROM ")[1].split(maxsplit=1)[0]], world.ledger(epsilon=200.0)
    )
    left = session.account.left()
    known["clinics"] = release.public(CLINICS)
    try:
        answer: Any = session.sql(text, spend={"epsilon": 100}, tables=known, **given)
    except (UnsupportedError, DomainError) as refused:
        answer = str(refused)
    return answer, plain.execute(text).fetchall(), session.account.left() != left


@pytest.mark.parametrize("on", ["USING (clinic)", "ON visits.clinic = c.clinic"])
@pytest.mark.parametrize(
    "where",
    [
        "c.clinic IS NULL",
        "c.clinic IS NOT NULL AND k > 0",
        "NOT (c.clinic IS NULL OR c.city = 'oslo')",
        "CASE WHEN c.clinic IS NULL THEN TRUE ELSE k > 9 END",
        "visits.clinic IS NULL",
        "c.city IS NULL",
    ],
)
def test_a_left_join_reads_the_key_of_the_side_that_is_named(on: str, where: str) -> None:
    answer, truth, _ = _answered(
        f"SELECT COUNT(*) FROM visits LEFT JOIN clinics c {on} WHERE {where}"
    )
    # One row moves a count by 1 at epsilon 33: another number has a probability of e^-33.
    assert [(answer.value,)] == truth


@pytest.mark.parametrize(
    "text",
    [
        "SELECT COUNT(*) FROM visits LEFT JOIN clinics c USING (clinic) WHERE c.clinic = 'north'",
        "SELECT COUNT(*) FROM visits LEFT JOIN clinics c USING (clinic) WHERE COALESCE(c.clinic, 'x') = 'x'",
        "SELECT c.clinic, COUNT(*) FROM visits LEFT JOIN clinics c USING (clinic) GROUP BY c.clinic",
        "SELECT COUNT(DISTINCT v.person) FROM people LEFT JOIN visits v USING (person)",
        "SELECT COUNT(*) FROM visits LEFT JOIN clinics c ON visits.clinic = c.clinic "
        "JOIN clinics d ON c.clinic = d.clinic",
    ],
)
def test_the_right_key_of_a_left_join_is_refused_where_it_is_not_answered(text: str) -> None:
    answer, _, charged = _answered(text)
    assert isinstance(answer, str) and "after LEFT JOIN" in answer and "IS NULL, or " in answer
    assert not charged


def test_a_key_of_no_side_is_refused_after_a_left_join() -> None:
    clinics = release.public(CLINICS)
    visits = release.table(VISITS, unit="person", max_rows_per_unit=3, name="visits")
    text = "SELECT COUNT(*) FROM visits LEFT JOIN clinics c ON visits.clinic = c.clinic WHERE clinic IS NULL"
    with pytest.raises(UnsupportedError, match="clinic after LEFT JOIN c"):
        release.questions_of_sql(text, visits, tables={"clinics": clinics})


def test_a_column_of_the_marker_s_name_is_read_as_it_is() -> None:
    people, visits = (
        release.table(frame, unit="person", max_rows_per_unit=3, name=name)
        for name, frame in (("people", PEOPLE), ("visits", VISITS))
    )
    marked = visits.mutate(_joined_1=col("k")).select("_joined_1")
    text = "SELECT COUNT(*) FROM people LEFT JOIN v USING (person) WHERE v.person IS NULL OR v._joined_1 > 0"
    (question,) = release.questions_of_sql(text, people, tables={"v": marked})
    assert question.table is not None
    # 40 people without a visit, and 29 visits with k > 0.
    assert len(world.rows_of(question.table.data)) == 69


@pytest.mark.parametrize("side", ["RIGHT", "FULL", "LEFT ANTI", "LEFT SEMI", "CROSS", "NATURAL"])
def test_other_joins_are_refused(side: str) -> None:
    with pytest.raises(UnsupportedError, match=side):
        read(
            f"SELECT COUNT(*) FROM people {side} JOIN p USING (city)",
            tables={"p": release.public(CLINICS)},
        )


def test_who_never_came_is_counted_by_a_left_join_of_two_private_tables(tmp_path: Path) -> None:
    for name, frame in (("people", PEOPLE), ("visits", VISITS)):
        parquet.write_table(frame, tmp_path / f"{name}.parquet")
    with Ledger.open("memory:") as ledger:
        most = {"people": 1, "visits": 6}
        tables = {
            name: {
                "source": tmp_path / f"{name}.parquet",
                "unit": "person",
                "max_rows_per_unit": rows,
            }
            for name, rows in most.items()
        }
        catalog = release.Catalog.define(
            ledger, "world", tables, filter=BasicFilter(999, delta=0), actor="keeper"
        )
        people, visits = catalog.table("people"), catalog.table("visits")
        text = (
            "SELECT COUNT(*) FROM people LEFT JOIN visits v USING (person) WHERE v.person IS NULL"
        )
        session = release.Session(people, ledger=ledger, scope="world", actor="ana")
        found: Any = session.sql(text, spend={"epsilon": 100}, tables={"visits": visits})
    # Scale 6 / 100: another number has a probability of 1e-7.
    assert (
        found.value == 40 == len({*PEOPLE["person"].to_pylist()} - {*VISITS["person"].to_pylist()})
    )


@pytest.mark.parametrize(
    "where",
    [
        "k % 3 = 1",
        "k % 3 = -1",
        "k % -3 = -2",
        "MOD(k, 7) < -3",
        "-k % 3 = 1",
        "(k + 1) % 7 = -6",
        "k / 4 < -6.5",
    ],
)
def test_a_remainder_has_the_sign_of_the_dividend(where: str) -> None:
    answer, truth, _ = _answered(f"SELECT COUNT(*) FROM visits WHERE {where}")
    assert [(answer.value,)] == truth


def test_what_engines_divide_in_different_ways_is_refused() -> None:
    for where, named in (
        ("k % 0 = 0", "not 0"),
        ("k // 3 = 1", "FLOOR"),
        ("k DIV 3 = 1", "FLOOR"),
        ("k % k = 0", "k"),
    ):
        visits = release.table(VISITS, unit="person", max_rows_per_unit=3, name="visits")
        with pytest.raises((UnsupportedError, DomainError), match=named):
            release.questions_of_sql(f"SELECT COUNT(*) FROM visits WHERE {where}", visits)


NORTH = "FROM visits WHERE clinic IN ('north') GROUP BY"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("SELECT COUNT(*) AS visits_total FROM visits", ["visits_total"]),
        (f"SELECT clinic AS c, COUNT(*) AS n {NORTH} clinic", ["c", "n"]),
        (f"SELECT clinic AS c, COUNT(*) AS n {NORTH} c", ["c", "n"]),
        (f"SELECT clinic AS count, COUNT(*) {NORTH} 1", ["count", "count_"]),
        (f"SELECT clinic, AVG(CLAMP(k, -9, 9)) AS count {NORTH} 1", ["clinic", "count"]),
        (
            f"SELECT UPPER(clinic) AS clinic, COUNT(DISTINCT person) AS who {NORTH} 1",
            ["clinic", "who"],
        ),
        (f"SELECT clinic, COUNT(*) AS n {NORTH} clinic ORDER BY n DESC LIMIT 1", ["clinic", "n"]),
        ("SELECT BIN(k, -30, 0, 30), COUNT(*) AS n FROM visits GROUP BY 1", ["from", "to", "n"]),
        ("SELECT QUANTILE(CLAMP(k, 0, 9, 1), [0.2, 0.5]) AS q FROM visits", ["q_", "q"]),
        ("SELECT STDDEV(CLAMP(k, 0, 9)) AS spread FROM visits", ["spread"]),
        ("SELECT MIN(CLAMP(k, 0, 9, 1)) AS lowest FROM visits", ["lowest"]),
    ],
)
def test_columns_are_called_as_select_says(text: str, names: list[str], tmp_path: Path) -> None:
    visits = release.table(VISITS, unit="person", max_rows_per_unit=3, name="visits")
    keys = ["NORTH"] if "UPPER" in text else None
    session = world.session_of(visits, answers=tmp_path)
    for _ in range(2):
        answer: Any = session.sql(text, spend={"epsilon": 1}, keys=keys, key="q")
        assert answer.table.column_names == names == list(answer.rows[0])
    assert answer.replayed and answer.with_ends().column_names == [*names, "low", "high"]


def test_two_columns_of_one_name_are_refused() -> None:
    for text in (
        "SELECT city, COUNT(*) AS city FROM people GROUP BY 1",
        "SELECT age AS n, COUNT(*) n FROM people GROUP BY 1",
    ):
        with pytest.raises(DomainError, match="no other column"):
            read(text)
    with pytest.raises(DomainError, match="ORDER BY"):
        read(
            "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY people.age DESC LIMIT 1"
        )


@pytest.mark.parametrize(
    "by",
    ["person", "city, person", "1", "UPPER(person)", "COALESCE(LOWER(person), 'x')", "p.person"],
)
def test_private_groups_of_one_unit_are_refused_before_the_charge(by: str) -> None:
    asked = world.session()
    left = asked.account.left()
    for what in (
        "COUNT(*)",
        "COUNT(DISTINCT person)",
        f"SUM({ENDS})",
        "MEDIAN(CLAMP(age, 0, 10, 1))",
    ):
        select = "p.person" if by == "1" else by
        with pytest.raises(DomainError, match="GROUP BY another column"):
            asked.sql(
                f"SELECT {select}, {what} FROM people p GROUP BY {by}",
                spend={"epsilon": 1, "delta": 1e-3},
            )
    assert asked.account.left() == left


def test_groups_that_several_units_can_share_are_answered() -> None:
    table = world.table()
    spend = {"epsilon": 1, "delta": 1e-3}
    for by in ("LENGTH(person)", "age", "person = 'ann'"):
        (question,) = release.questions_of_sql(
            f"SELECT {by} AS g, COUNT(*) FROM people GROUP BY 1", table
        )
        assert question.designed(table, spend).threshold is not None
    pairs = world.table(unit=["person", "age"])
    assert release.Count(by="person").design(pairs, spend).threshold is not None
    assert release.Count(by="person", keys=["ann"]).design(table, {"epsilon": 1}).threshold is None
    copied = table.mutate(who=col("person").upper(), born=lit(2026) - col("age"))
    for by, of in (
        ("who", copied),
        (("who", "born"), pairs.mutate(who=col("person"), born=lit(1) + col("age"))),
    ):
        with pytest.raises(DomainError, match="by"):
            release.Count(by=by).design(of, spend)
    again = copied.select("city").mutate(who=col("city"))
    assert release.Count(by="who").design(again, spend).threshold is not None


def test_private_tables_are_joined_on_another_key() -> None:
    table = world.table()
    far = table.mutate(far=col("age")).select("city", "far")
    asked = "SELECT COUNT(*), SUM(CLAMP(f.far, 0, 9)) FROM people AS p"
    text = f"{asked} JOIN far AS f ON p.city = f.city AND {{}} WHERE p.age > 3"
    for said, rows_per_unit in (
        ("AT_MOST(3, 2)", None),
        ("rows_per_unit(2, 1) AND at_most(3, 2)", (2, 1)),
    ):
        joined = table.join(far, on="city", at_most=(3, 2), rows_per_unit=rows_per_unit).where(
            col("age") > 3
        )
        wanted = (release.Count(table=joined), release.Sum("far", lower=0, upper=9, table=joined))
        assert release.questions_of_sql(text.format(said), table, tables={"far": far}) == wanted
        assert joined.bounds.rows == (20 if rows_per_unit is None else 14)
    assert wanted[0].table != table.join(far, on="city", at_most=(3, 2)).where(col("age") > 3)


def test_rows_of_a_public_key_are_bounded() -> None:
    table = world.table()
    cities = release.public(
        pa.table({"city": ["rome", "oslo", "rome"], "country": ["it", "no", "va"]})
    )
    text = (
        "SELECT COUNT(*) FROM people LEFT JOIN cities ON people.city = cities.city AND AT_MOST(2)"
    )
    wanted = release.Count(table=table.join(cities, on="city", how="left", at_most=2))
    assert release.questions_of_sql(text, table, tables={"cities": cities}) == (wanted,)


@pytest.mark.parametrize(
    "wrong",
    [
        "ON p.city = f.city",
        "ON AT_MOST(3, 2)",
        "ON p.city = f.city AND AT_MOST(3)",
        "ON p.city = f.city AND AT_MOST()",
        "ON p.city = f.city AND AT_MOST(3, 2, 1)",
        "ON p.city = f.city AND AT_MOST(3, 0)",
        "ON p.city = f.city AND AT_MOST(3, -2)",
        "ON p.city = f.city AND AT_MOST(3, 2.5)",
        "ON p.city = f.city AND AT_MOST(3, '2')",
        "ON p.city = f.city AND AT_MOST(3, f.far)",
        "ON p.city = f.city AND AT_MOST(3, 2) AND AT_MOST(3, 2)",
        "ON p.city = f.city AND (AT_MOST(3, 2) OR AT_MOST(9, 9))",
        "ON p.city = f.city AND NOT AT_MOST(3, 2)",
        "ON p.city = f.city AND ROWS_PER_UNIT(1, 1)",
        "ON p.city = f.city AND AT_MOST(3, 2) AND ROWS_PER_UNIT(1)",
        "ON p.person = f.person AND AT_MOST(3, 2)",
        "ON p.city = f.city WHERE AT_MOST(3, 2)",
        "ON p.city = f.city AND AT_MOST(3, 2) WHERE AT_MOST(3, 2)",
        "ON p.city = f.city AND AT_MOST(99999999999999999999, 2)",
    ],
)
def test_bounds_of_a_join_that_are_none_are_refused(wrong: str) -> None:
    table = world.table()
    tables = {"f": table.mutate(far=col("age")).select("city", "far")}
    with pytest.raises((UnsupportedError, DomainError)):
        release.questions_of_sql(
            f"SELECT COUNT(*) FROM people AS p JOIN f {wrong}", table, tables=tables
        )


def test_keys_may_be_given_and_several_aggregates_are_several_questions() -> None:
    found = read(
        "SELECT city, COUNT(*), COUNT(DISTINCT person) FROM people GROUP BY city", keys=["rome"]
    )
    assert found == (
        release.Count(by="city", keys=["rome"]),
        release.Units(by="city", keys=["rome"]),
    )


def test_a_session_answers_and_explains() -> None:
    asked = world.session()
    left = asked.account.left()
    text = "SELECT city, COUNT(*) FROM people WHERE city IN ('rome', 'oslo') GROUP BY city"
    explained = asked.sql(f"explain {text}", spend=SPEND)
    assert isinstance(explained, release.Explanation)
    assert explained == asked.explain(text, spend=SPEND)
    (row,) = explained.rows
    assert row["question"] == "count by city, 2 public keys" and row["unit"].startswith("person")
    assert row["stability"] == "of one unit at most 2 rows are kept, in at most 2 groups, 2 in each"
    assert row["noise"] == "discrete laplace, scale 2.00001; one unit moves L1 2"
    assert row["price"] == "epsilon 1 to world" and row["price"] in str(explained)
    assert asked.account.left() == left
    answer = asked.sql(text, spend=SPEND)
    assert isinstance(answer, release.Answer) and [row["city"] for row in answer.rows] == [
        "rome",
        "oslo",
    ]
    several = asked.sql("SELECT COUNT(*), COUNT(DISTINCT person) FROM people", spend=SPEND, key="k")
    assert isinstance(several, SelectedAnswer)
    assert several.table.column_names == ["count", "units"] and several.table.num_rows == 1
    assert len(several.answers) == 2 and several.spent["epsilon"].fraction <= 1
    private = asked.explain("SELECT city, MEDIAN(CLAMP(age, 0, 9, 1)) FROM people GROUP BY city",
                            spend={"epsilon": 1, "delta": 1e-3})  # fmt: skip
    assert "keys out" in str(private) and "permute-and-flip" in str(private)
    changed = asked.explain(
        "SELECT STDDEV(CLAMP(age * 2, 0, 9)) AS x FROM people WHERE age > 1", spend=SPEND
    )
    table = "people; where less(1, col('age')); mutate x=multiply(col('age'), 2)"
    assert changed.rows[0]["table"] == table and changed.rows[0]["noise"].count("laplace") == 3


# Refusals

REFUSED = """
a comment         | SELECT COUNT(*) FROM people -- WHERE age > 1
a comment         | SELECT COUNT(*) /* all */ FROM people
a comment         | SELECT /*! COUNT(*), */ COUNT(*) FROM people
a comment         | /* first */ SELECT COUNT(*) FROM people
a hint            | SELECT /*+ BROADCAST(people) */ COUNT(*) FROM people
several statements| SELECT COUNT(*) FROM people; DELETE FROM people
several statements| SELECT COUNT(*) FROM people; SELECT COUNT(*) FROM people
several statements| ;
DELETE            | DELETE FROM people
DROP              | DROP TABLE people
INSERT            | INSERT INTO people SELECT COUNT(*) FROM people
PRAGMA            | PRAGMA memory_limit
COPY              | COPY people TO 'people.csv'
ATTACH            | ATTACH 'other.db'
SET               | SET x = 1
FROM              | FROM people SELECT COUNT(*)
VALUES            | VALUES (1)
ANALYZE           | EXPLAIN ANALYZE SELECT COUNT(*) FROM people
EXPLAIN           | EXPLAIN EXPLAIN SELECT COUNT(*) FROM people
WITH              | WITH p AS (SELECT *, COUNT(*) OVER () AS n FROM people) SELECT SUM(CLAMP(n, 0, 9)) FROM p
WITH              | WITH RECURSIVE p AS (SELECT 1) SELECT COUNT(*) FROM p
OVER              | SELECT COUNT(*) OVER () FROM people
OVER              | SELECT SUM(CLAMP(MAX(age) OVER (PARTITION BY city), 0, 9)) FROM people
OVER              | SELECT COUNT(*) FROM people WHERE ROW_NUMBER() OVER (ORDER BY age) < 5
OVER              | SELECT COUNT(*) FROM people WINDOW w AS (PARTITION BY city)
QUALIFY           | SELECT COUNT(*) FROM people QUALIFY age > 1
a subquery        | SELECT COUNT(*) FROM people WHERE age > (SELECT AVG(age) FROM people)
a subquery        | SELECT COUNT(*) FROM people WHERE age IN (SELECT age FROM people)
a subquery        | SELECT COUNT(*) FROM (SELECT * FROM people)
no aggregate      | SELECT (SELECT COUNT(*) FROM people) FROM people
EXISTS            | SELECT COUNT(*) FROM people WHERE EXISTS (SELECT 1 FROM people)
a set operation   | SELECT COUNT(*) FROM people INTERSECT SELECT COUNT(*) FROM people
a set operation   | SELECT COUNT(*) FROM people EXCEPT SELECT COUNT(*) FROM people
ORDER BY          | SELECT COUNT(*) FROM people ORDER BY age
TABLESAMPLE       | SELECT COUNT(*) FROM people TABLESAMPLE (10 PERCENT)
LATERAL           | SELECT COUNT(*) FROM people LATERAL VIEW EXPLODE(ages) t
Unnest            | SELECT COUNT(*) FROM people, UNNEST([1, 2])
ReadCSV           | SELECT COUNT(*) FROM READ_CSV('people.csv')
PIVOT             | SELECT COUNT(*) FROM people PIVOT (COUNT(*) FOR age IN (1))
CUBE              | SELECT city, COUNT(*) FROM people GROUP BY CUBE (city)
GROUPING SETS     | SELECT city, COUNT(*) FROM people GROUP BY GROUPING SETS ((city), ())
FOR UPDATE        | SELECT COUNT(*) FROM people FOR UPDATE
INTO              | SELECT COUNT(*) INTO other FROM people
Connect           | SELECT COUNT(*) FROM people CONNECT BY age = 1
CROSS JOIN        | SELECT COUNT(*) FROM people CROSS JOIN people AS other
JOIN              | SELECT COUNT(*) FROM people, people AS other
JOIN              | SELECT COUNT(*) FROM people JOIN people AS o ON people.age < o.age
NATURAL           | SELECT COUNT(*) FROM people NATURAL JOIN people AS o
RIGHT             | SELECT COUNT(*) FROM people RIGHT JOIN people AS o USING (city)
FULL              | SELECT COUNT(*) FROM people FULL JOIN people AS o USING (city)
SEMI              | SELECT COUNT(*) FROM people SEMI JOIN people AS o USING (city)
ASOF              | SELECT COUNT(*) FROM people ASOF JOIN people AS o USING (city)
a random function | SELECT COUNT(*) FROM people WHERE RANDOM() < 0.5
a random function | SELECT COUNT(*) FROM people WHERE UUID() = 'x'
CurrentTimestamp  | SELECT COUNT(*) FROM people WHERE age > CURRENT_TIMESTAMP
CurrentUser       | SELECT COUNT(*) FROM people WHERE person = CURRENT_USER
NOW()             | SELECT COUNT(*) FROM people WHERE age > NOW()
udf()             | SELECT SUM(CLAMP(udf(age), 0, 9)) FROM people
pg_sleep()        | SELECT COUNT(*) FROM people WHERE pg_sleep(9) IS NULL
a placeholder     | SELECT COUNT(*) FROM people WHERE age > ?
a placeholder     | SELECT COUNT(*) FROM people WHERE age > :most
a parameter       | SELECT COUNT(*) FROM people WHERE age > @most
COLLATE           | SELECT COUNT(*) FROM people WHERE city = 'x' COLLATE nocase
RegexpLike        | SELECT COUNT(*) FROM people WHERE REGEXP_LIKE(city, '(a+)+')
a lambda          | SELECT COUNT(*) FROM people WHERE BIN(x -> x, 1)
ArrayAgg          | SELECT ARRAY_AGG(age) FROM people
ArgMax            | SELECT ARG_MAX(person, age) FROM people
no aggregate      | SELECT * FROM people
no FROM           | SELECT COUNT(*)
FROM              | SELECT COUNT(*) FROM elsewhere
FROM              | SELECT COUNT(*) FROM 'people.csv'
DB                | SELECT COUNT(*) FROM information_schema.people
SELECT            | SELECT age, COUNT(*) FROM people GROUP BY city
GROUP BY          | SELECT COUNT(*) FROM people GROUP BY 9
CLAMP             | SELECT SUM(age) FROM people
CLAMP             | SELECT SUM(CLAMP(age, 0, 1e999)) FROM people
CLAMP             | SELECT SUM(CLAMP(age, 0, 99999999999999999999)) FROM people
CLAMP             | SELECT SUM(CLAMP(age, 0, age)) FROM people
DISTINCT          | SELECT SUM(DISTINCT CLAMP(age, 0, 9)) FROM people
CLAMP             | SELECT MEDIAN(CLAMP(age, 0, 9)) FROM people
BIN               | SELECT BIN(age, 0, 1, 2), BIN(amount, 0, 1, 2), COUNT(*) FROM people GROUP BY 1, 2
BIN               | SELECT BIN(age, 0, 1, 2), AVG(CLAMP(age, 0, 9)) FROM people GROUP BY 1
SELECT            | SELECT COUNT(*) FROM people WHERE
LIKE              | SELECT COUNT(*) FROM people WHERE city LIKE 'a%b'
LIKE              | SELECT COUNT(*) FROM people WHERE city LIKE '%'
CASE              | SELECT COUNT(*) FROM people WHERE CASE WHEN age > 1 THEN 1 END = 1
NULL              | SELECT COUNT(*) FROM people WHERE age = NULL
NULL              | SELECT COUNT(*) FROM people WHERE age NOT IN (1, NULL)
Cast              | SELECT COUNT(*) FROM people WHERE CAST(age AS DECIMAL) = 1
a value           | SELECT COUNT(*) FROM people WHERE age > 99999999999999999999
a value           | SELECT COUNT(*) FROM people WHERE age > 1e999
Sum               | SELECT COUNT(*) FROM people WHERE SUM(age) > 1
Count             | SELECT SUM(CLAMP(COUNT(*), 0, 9)) FROM people
Star              | SELECT COUNT(*) FROM people WHERE * = 1
table             | SELECT COUNT(*) FROM people WHERE other.age = 1
CLAMP             | SELECT COUNT(*) FROM people WHERE CLAMP(age, 0, 1) = 1
SELECT            | SELECT COUNT(*) FROM people WHERE city = 'rome
""".strip().splitlines()


@pytest.fixture(scope="module")
def asked() -> Iterator[release.Session]:
    """One session for all refusals; `world.session` would be closed after the first."""
    ledger = Ledger.open("memory:")
    open_scope(ledger, "world", filter=BasicFilter(2, delta=0.1), actor="keeper")
    yield world.session(ledger)
    ledger.close()


@pytest.mark.parametrize("line", REFUSED, ids=lambda line: line.partition("|")[2].strip()[:60])
def test_everything_else_is_refused_before_the_charge_by_name(
    asked: release.Session, line: str
) -> None:
    clause, _, text = (part.strip() for part in line.partition("|"))
    left = asked.account.left()
    with pytest.raises((UnsupportedError, DomainError)) as refusal:
        asked.sql(text, spend={"epsilon": 1, "delta": 1e-3})
    assert clause.upper() in str(refusal.value).upper() and str(refusal.value).startswith("sql")
    assert asked.account.left() == left


HUGE = {
    "long": "SELECT COUNT(*) FROM people WHERE city = '" + "x" * 30_000 + "'",
    "wide": "SELECT "
    + ", ".join(f"COUNT(*) FILTER (WHERE age > {n})" for n in range(200))
    + " FROM people",
    "many words": "SELECT COUNT(*) FROM people WHERE age IN (" + ",".join("1" * 4000) + ")",
    "a long sum": "SELECT COUNT(*) FROM people WHERE 1 < " + " + ".join(["age"] * 300),
    "a chain of 1,001": "SELECT COUNT(*) FROM people WHERE " + " OR ".join(["b"] * 1001),
    "brackets": "SELECT COUNT(*) FROM people WHERE " + "(" * 2000 + "1" + ")" * 2000,
    "signs": "SELECT COUNT(*) FROM people WHERE " + "NOT " * 1000 + "age",
    "cases": "SELECT COUNT(*) FROM people WHERE "
    + "CASE WHEN " * 100
    + "age"
    + " THEN 1 END" * 100,
    "digits": "SELECT SUM(CLAMP(age, 0, " + "9" * 5000 + ")) FROM people",
    "NUL": "SELECT COUNT(*) FROM people WHERE city = '\0'",
    "empty": "",
    "bytes": b"SELECT COUNT(*) FROM people",
    "none": None,
}


@pytest.mark.parametrize("text", HUGE.values(), ids=HUGE)
def test_huge_statements_are_refused(asked: release.Session, text: Any) -> None:
    left = asked.account.left()
    with pytest.raises(DPComposeError) as refusal:
        asked.sql(text, spend=SPEND)
    assert len(str(refusal.value)) < 400
    assert asked.account.left() == left


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(("word", "left"), [("OR", 2), ("AND", 0)])
def test_a_long_flat_chain_is_read(word: str, left: int) -> None:
    terms = [f"age = {number}" for number in range(5, 5 + (900 if word == "OR" else 400))]
    (question,) = read(f"SELECT COUNT(*) FROM people WHERE {f' {word} '.join(terms)}")
    assert question.table is not None and len(question.table.steps) == 1
    assert int(world.rows_of(question.table.data).person.count()) == left
    with pytest.raises(UnsupportedError, match="1,000 conditions connected by"):
        read("SELECT COUNT(*) FROM people WHERE " + f" {word} ".join(["b"] * 1001))


def test_a_name_of_a_column_in_group_by_is_the_column() -> None:
    assert read("SELECT city AS city, COUNT(*) FROM people GROUP BY city") == (
        release.Count(by="city_or_null", table=OR_NULL),
    )
    for made in ("LOWER(city)", "person"):
        with pytest.raises(DomainError, match=r"GROUP BY = 'city'.*GROUP BY takes the column"):
            read(f"SELECT {made} AS city, COUNT(*) FROM people GROUP BY city")
    (question,) = read("SELECT LOWER(city) AS city, COUNT(*) FROM people GROUP BY 1")
    assert question.by == "_lower_city"
