"""Sessions charge, then read data, then draw noise, never twice, and errors and output reveal
nothing else.
"""

from __future__ import annotations

import inspect
import io
import logging
import sys
import time
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import dpcompose.release as release
from dpcompose.account import Account
from dpcompose.errors import (
    DomainError,
    EngineError,
    KeyReusedError,
    OverdrawnError,
    SpentError,
    UnknownScopeError,
    UnsupportedError,
)
from dpcompose.ledger import Ledger
from dpcompose.release import LeftOut, sampler, session as sessions
from dpcompose.release.engines import OnDuckDB
from dpcompose.release.question import Question
from dpcompose.release.session import progress_message
from tests.release import world
from tests.release.world import session

SPEND = {"epsilon": 10}
TENTH = {"epsilon": "0.1"}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> list[list[int]]:
    """No noise; what noise was asked for."""
    asked: list[list[int]] = []

    def unchanged(values: Any, **_: Any) -> list[int]:
        asked.append(list(values))
        return list(values)

    monkeypatch.setattr(sampler, "discrete_laplace", unchanged)
    monkeypatch.setattr(sampler, "discrete_gaussian", unchanged)
    monkeypatch.setattr(sampler, "least_with_noise", lambda scores, **_: scores.index(min(scores)))
    return asked


def test_exact_answers_without_noise(quiet: list[list[int]]) -> None:
    # The rows whose keys or amounts are told apart here are all kept.
    asked = session(max_rows_per_unit=3)
    assert asked.count(spend=SPEND).value == 6
    assert asked.units(spend=SPEND).value == 3
    by_city = asked.count(by="city", keys=["zug", "rome", "oslo", None], spend=SPEND)
    assert by_city.table.to_pylist() == [
        {"city": "zug", "count": 0},
        {"city": "rome", "count": 3},
        {"city": "oslo", "count": 2},
        {"city": None, "count": 1},
    ]
    assert asked.sum("age", lower=0, upper=4, spend=SPEND).value == 1 + 2 + 3 + 4 + 4 + 4
    assert (
        asked.sum("amount", lower=0, upper=4, granularity="0.5", spend=SPEND).value
        == 3 + 4 + 1 + 4 + 2
    )
    mean = asked.mean("age", lower=0, upper=10, spend=SPEND)
    assert mean.rows == [{"mean": (1 + 2 + 3 + 4 + 5 + 6) / 6, "count": 6}]
    histogram = asked.histogram("amount", edges=[0, 2, 4], spend=SPEND)
    assert [row["count"] for row in histogram.rows] == [1, 2]
    assert asked.quantile("age", 0.5, lower=0, upper=10, granularity=1, spend=SPEND).value == 3


def test_private_keys_come_out_sorted_and_only_with_enough_units(quiet: list[list[int]]) -> None:
    rows = [(f"p{n}", city, 1.0, n) for n in range(60) for city in ("zug", "bern")] + [
        ("alone", "aarau", 1.0, 1)
    ]
    answer = session(rows=rows).units(by="city", spend={"epsilon": 5, "delta": 1e-3})
    assert answer.table.to_pylist() == [{"city": "bern", "units": 60}, {"city": "zug", "units": 60}]
    counted = session(rows=rows).count(by="city", spend={"epsilon": 5, "delta": 1e-3})
    assert [row["city"] for row in counted.rows] == ["bern", "zug"]
    assert (
        session(rows=[]).count(by="city", spend={"epsilon": 5, "delta": 1e-3}).table.num_rows == 0
    )


def test_the_charge_comes_before_the_look_and_the_look_before_the_draw(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    order: list[str] = []
    ledger = world.ledger()

    def noted(name: str, what: Any) -> Any:
        def run(*given: Any, **named: Any) -> Any:
            order.append(name)
            return what(*given, **named)

        return run

    monkeypatch.setattr(Account, "charge", noted("charge", Account.charge))
    monkeypatch.setattr(Ledger, "redeem", noted("redeem", Ledger.redeem))
    monkeypatch.setattr(OnDuckDB, "rows", noted("look", OnDuckDB.rows))
    monkeypatch.setattr(sampler, "discrete_laplace", noted("draw", sampler.discrete_laplace))
    session(ledger).count(spend=SPEND)
    assert order == ["charge", "redeem", "look", "draw"]


def test_a_refusal_neither_looks_nor_draws(
    monkeypatch: pytest.MonkeyPatch, quiet: list[list[int]]
) -> None:
    asked = session(world.ledger(epsilon=0.15))
    asked.count(spend=TENTH)
    quiet.clear()
    monkeypatch.setattr(OnDuckDB, "rows", lambda *_: pytest.fail("it looked"))
    with pytest.raises(OverdrawnError) as refusal:
        asked.count(spend=TENTH)
    assert Fraction(5, 100) <= refusal.value.left.fraction < Fraction(51, 1000)
    assert quiet == []


def test_the_same_key_gives_the_same_answer_and_draws_once(
    quiet: list[list[int]], tmp_path: Path
) -> None:
    ledger = world.ledger()
    asked = session(ledger, answers=tmp_path)
    first = asked.count(by="city", keys=["rome", None], spend=TENTH, key="q")
    left = ledger.available("world")
    again = asked.count(by="city", keys=["rome", None], spend=TENTH, key="q")
    assert len(quiet) == 1
    assert (again.columns, again.receipt, again.replayed) == (first.columns, first.receipt, True)
    assert again.expected_error(0.9) == first.expected_error(0.9)
    assert ledger.available("world") == left
    elsewhere = session(ledger, answers=tmp_path)
    assert (
        elsewhere.count(by="city", keys=["rome", None], spend=TENTH, key="q").columns
        == first.columns
    )


def test_without_a_stored_answer_the_charge_is_spent(quiet: list[list[int]]) -> None:
    ledger = world.ledger()
    session(ledger).count(spend=TENTH, key="q")
    left = ledger.available("world")
    with pytest.raises(SpentError, match="second draw"):
        session(ledger).count(spend=TENTH, key="q")
    assert len(quiet) == 1
    assert ledger.available("world") == left


def test_a_receipt_that_was_never_redeemed_is_used(
    quiet: list[list[int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = world.ledger()
    redeem = Ledger.redeem
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "redeem", lambda *_, **__: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            session(ledger).count(spend=TENTH, key="q")
    assert Ledger.redeem is redeem
    left = ledger.available("world")
    assert session(ledger).count(spend=TENTH, key="q").value == 5
    assert ledger.available("world") == left


def test_a_key_is_not_reused_for_another_question() -> None:
    asked = session()
    asked.count(by="city", keys=["rome"], spend=TENTH, key="q")
    for question in (
        release.Count(spend=TENTH),
        release.Count(by="city", keys=["oslo"], spend=TENTH),
        release.Count(by="city", keys=["rome"], spend={"epsilon": "0.2"}),
        release.Units(by="city", keys=["rome"], spend=TENTH),
    ):
        with pytest.raises(KeyReusedError):
            asked.ask(question, key="q")


def test_a_failing_engine_keeps_the_charge_and_says_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ledger = world.ledger()

    def failing(*_: object) -> None:
        raise RuntimeError("could not read the row of ann")

    monkeypatch.setattr(OnDuckDB, "rows", failing)
    with pytest.raises(EngineError) as raised:
        session(ledger).count(spend={"epsilon": 1})
    assert "ann" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None
    assert ledger.available("world")["epsilon"].fraction < Fraction(100) - Fraction(99, 100)


def test_an_engine_that_went_away(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    path = tmp_path / "gone.parquet"
    pq.write_table(world.frame(), path)
    ledger = world.ledger()
    table = release.table(path, unit="person", max_rows_per_unit=2)
    asked = release.Session(table, ledger=ledger, scope="world", actor="ana")
    path.unlink()
    with pytest.raises(EngineError, match="the charge stands"):
        asked.count(spend=TENTH)


def test_a_batch_is_one_charge_all_or_nothing(quiet: list[list[int]]) -> None:
    ledger = world.ledger(epsilon=1.0)
    asked = session(ledger)
    batch = [release.Count(), release.Units(spend=TENTH), release.Sum("age", lower=0, upper=9)]
    answers = asked.batch(batch, spend={"epsilon": "0.4"}, key="b")
    assert len({answer.receipt for answer in answers}) == 1
    assert float(ledger.available("world")["epsilon"].fraction) == pytest.approx(0.5)
    assert [each.columns for each in asked.batch(batch, spend={"epsilon": "0.4"}, key="b")] == [
        each.columns for each in answers
    ]
    with pytest.raises(DomainError):
        asked.batch([release.Count(spend=TENTH), release.Count(by="nothing", spend=TENTH)])
    with pytest.raises(OverdrawnError):
        asked.batch([release.Count(spend=TENTH), release.Count(spend={"epsilon": 1})])
    assert float(ledger.available("world")["epsilon"].fraction) == pytest.approx(0.5)


def test_a_quote_touches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger = world.ledger(epsilon=1.0)
    asked = session(ledger)
    monkeypatch.setattr(OnDuckDB, "rows", lambda *_: pytest.fail("it looked"))
    before = len(list(ledger.entries("world")))
    quote = asked.quote(release.Count(by="city", keys=["rome"], spend=TENTH))
    assert quote.fits
    assert float(quote.price["epsilon"].fraction) == pytest.approx(0.1)
    assert quote.expected_error(0.95) == 60
    assert not asked.quote(release.Count(spend={"epsilon": 2})).fits
    mean = asked.quote(release.Mean("age", lower=0, upper=9, spend=TENTH))
    assert mean.expected_error(0.9, count=10**6) < mean.expected_error(0.9, count=10**3) < 9
    with pytest.raises(DomainError, match="count"):
        mean.expected_error(0.9)
    assert len(list(ledger.entries("world"))) == before


@pytest.mark.parametrize("confidence", [0, 1, -1, 2, float("nan"), "0.9"])
def test_confidence_is_a_probability(confidence: Any) -> None:
    with pytest.raises(DomainError):
        session().count(spend=SPEND).expected_error(confidence)


def test_the_ledger_holds_the_question_and_the_mechanism() -> None:
    ledger = world.ledger()
    session(ledger).count(by="city", keys=["rome", "oslo"], spend=TENTH, key="q")
    (entry,) = [each for each in ledger.entries("world") if each.kind == "granted"]
    (said,) = entry.description["note"]["release"]
    assert (said["question"], said["by"], said["unit"], said["spend"]) == (
        "count",
        ["city"],
        ["person"],
        {"epsilon": "1/10"},
    )
    assert said["steps"][0]["noise"] == "discrete laplace"
    assert "rome" not in str(entry.description)


def test_nothing_is_logged_or_printed(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG):
        session().count(by="city", keys=["rome"], spend=SPEND)
    assert [each for each in caplog.records if each.name.startswith("dpcompose")] == []
    assert tuple(capfd.readouterr()) == ("", "")


def test_a_table_does_not_show_its_rows() -> None:
    made = world.table()
    assert "rome" not in repr(made)
    assert "rome" not in repr(session())


def test_a_pure_budget_has_no_price_for_private_keys() -> None:
    from dpcompose.account import open_scope
    from dpcompose.adaptive import PureFilter

    ledger = Ledger.open("memory:")
    open_scope(ledger, "world", filter=PureFilter(1.0), actor="keeper")
    with pytest.raises(UnsupportedError):
        session(ledger).count(by="city", spend={"epsilon": 0.1, "delta": 1e-6})
    with pytest.raises(UnknownScopeError):
        release.Session(world.table(), ledger=ledger, scope="elsewhere", actor="ana")


def test_an_answer_is_written_whole(tmp_path: Path) -> None:
    answer = session().count(by="city", keys=["rome", "oslo"], spend=SPEND)
    answer.write(tmp_path / "a.csv")
    answer.write(tmp_path / "a.parquet")
    import pyarrow.parquet as pq

    assert pq.read_table(tmp_path / "a.parquet") == answer.table
    assert (tmp_path / "a.csv").read_text().startswith('"city","count"')
    with pytest.raises(DomainError):
        answer.write(tmp_path / "a.xls")
    with pytest.raises(DomainError):
        answer.write(tmp_path / "nowhere" / "a.csv")
    assert answer.table.schema == pa.schema([("city", pa.string()), ("count", pa.int64())])


def test_a_key_may_be_called_like_a_number(quiet: list[list[int]]) -> None:
    frame = pa.table({"p": [1, 2, 3], "count": ["a", "a", "b"], "from": [1, 2, 3]})
    made = release.table(frame, unit="p", max_rows_per_unit=1)
    asked = release.Session(made, ledger=world.ledger(), scope="world", actor="ana")
    counts = asked.count(by="count", keys=["a", "b"], spend=SPEND)
    assert counts.table.to_pylist() == [{"count": "a", "count_": 2}, {"count": "b", "count_": 1}]
    mean = asked.mean("from", lower=0, upper=4, by="count", keys=["a", "b"], spend=SPEND)
    assert mean.table.column_names == ["count", "mean", "count_"]
    assert len(mean.expected_error(0.9)) == 2  # type: ignore[arg-type]
    histogram = asked.histogram("from", edges=[0, 2, 4], by="from", keys=[1, 9], spend=SPEND)
    assert histogram.table.column_names == ["from", "from_", "to", "count"]


@pytest.mark.parametrize(
    "ask",
    [
        lambda: release.Sum(3, lower=0, upper=1),  # type: ignore[arg-type]
        lambda: release.Mean(None, lower=0, upper=1),  # type: ignore[arg-type]
        lambda: release.Histogram([], edges=[0, 1]),  # type: ignore[arg-type]
        lambda: release.Quantile(0.5, 0.5, lower=0, upper=1, granularity=1),  # type: ignore[arg-type]
        lambda: release.Session(world.table(), ledger=world.ledger(), scope="world", actor=3),  # type: ignore[arg-type]
        lambda: session(answers=3),
        lambda: session(answers="a\0b"),
        lambda: session().batch(3),  # type: ignore[arg-type]
        lambda: session().batch([3], spend={"epsilon": 0.1}),  # type: ignore[list-item]
        lambda: session().part(None, {"epsilon": 0.1}),  # type: ignore[arg-type]
        lambda: world.table(unit=None),
        lambda: world.table(unit=[["person"]]),
        lambda: world.table(schema=3),
        lambda: world.table(line_breaks=1),
        lambda: release.plan(1000, accuracy=0.1, epsilon=1.0, delta=1e-6, domain=64).curves(
            points=1
        ),
    ],
)
def test_what_is_no_argument_is_refused_by_name(ask: Callable[[], object]) -> None:
    with pytest.raises(DomainError, match=r"^\w+( = | is missing).*expected"):
        ask()


def test_a_question_may_name_a_table_of_the_same_unit(quiet: list[list[int]]) -> None:
    asked, other = (
        session(max_rows_per_unit=3),
        world.table(world.ROWS[:2], name="others", max_rows_per_unit=3),
    )
    here, there = asked.batch([release.Count(spend=SPEND), release.Count(spend=SPEND, table=other)])
    assert (here.value, there.value) == (6, 2)
    assert asked.count(spend=SPEND, table=other).value == 2
    left = asked.account.left()
    for wrong in (
        world.table(max_rows_per_unit=2),
        world.table(unit="age", max_rows_per_unit=3),
        "people",
        1.5,
    ):
        with pytest.raises(DomainError):
            asked.count(spend=SPEND, table=wrong)  # pyright: ignore[reportArgumentType]
    assert asked.account.left() == left


def test_a_long_question_says_on_a_terminal_what_is_computed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    said: dict[bool, str] = {}
    for terminal in (True, False):
        stream = io.StringIO()
        monkeypatch.setattr(stream, "isatty", lambda terminal=terminal: terminal)
        monkeypatch.setattr(sys, "stderr", stream)
        with monkeypatch.context() as patched:
            patched.setattr(sessions, "SECONDS", 0.0)
            asked = world.session()
            with progress_message(asked.table.engine.name, ["count", "sum", "count"]):
                time.sleep(0.05)
        said[terminal] = stream.getvalue()
        assert asked.count(spend=TENTH).value is not None
    assert said == {True: "DuckDB is computing count, sum ...\n", False: ""}


def test_a_method_has_the_arguments_and_the_help_of_its_question() -> None:
    for kind in (*Question.kinds.values(), LeftOut):
        method = getattr(release.Session, kind.kind.replace(" ", "_"), None) or {
            "contingency table": release.Session.contingency,
            "synthetic data": release.Session.synthetic,
        }.get(kind.kind)
        assert method is not None and method.__doc__ == kind.__doc__, kind
        own = list(inspect.signature(method).parameters.values())
        assert own[1:] == list(inspect.signature(kind).parameters.values())


def test_a_key_belongs_to_a_question_that_is_asked_alone() -> None:
    asked = session()
    first = asked.ask(release.Count(spend=TENTH, key="q"))
    left = asked.account.left()
    assert asked.count(spend=TENTH, key="q").value == first.value
    for questions, key in (
        ([release.Count(key="q"), release.Units()], None),
        ([release.Count(key="q")], "r"),
    ):
        with pytest.raises(DomainError, match="left out of the questions"):
            asked.batch(questions, spend=TENTH, key=key)
    assert asked.account.left() == left
