"""A scope has one unit and one bound, and each request is answered once, also under concurrency."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpcompose.release as release
from dpcompose.account import Account, open_scope
from dpcompose.adaptive import BasicFilter
from dpcompose.errors import (
    AlreadyRedeemedError,
    DomainError,
    KeyReusedError,
    ReleaseError,
    SpentError,
    StoreError,
)
from dpcompose.ledger import Ledger
from dpcompose.ledger.requests import Redemption
from dpcompose.mechanisms import Laplace
from dpcompose.release.aggregate import exact
from dpcompose.release.answer import failure_of
from dpcompose.release.answers import redeemed
from dpcompose.release.bounding import Binding
from dpcompose.release.engines import OnDuckDB
from dpcompose.release.truncation import Sampling
from dpcompose.values.adjacency import Adjacency
from tests.cli.runner import invoke
from tests.release import world

SPEND = {"epsilon": 0.1}


@pytest.mark.parametrize("url", ["memory:", "ledger.db"])
def test_the_first_question_binds_a_scope_to_its_unit_and_bounds(url: str, tmp_path: Path) -> None:
    ledger = world.ledger(url if url == "memory:" else tmp_path / url)
    other = world.session(ledger, unit="age")
    other.quote(release.Count(spend=SPEND))
    with pytest.raises(DomainError):
        other.count(by="nothing", spend=SPEND)
    world.session(ledger).count(spend=SPEND)
    charged = len(list(ledger.entries("world")))
    for changed in (
        {"unit": "age"},
        {"unit": ["person", "age"]},
        {"max_rows_per_unit": 3},
        {"max_rows_per_group": 1},
    ):
        with pytest.raises(DomainError, match="the first question charged to 'world'"):
            world.session(ledger, **changed).count(spend=SPEND)
        with pytest.raises(DomainError, match="the first question charged to 'world'"):
            world.session(ledger, **changed).quote(release.Count(spend=SPEND))
    foreign = release.Count(table=world.table(unit="age"), spend=SPEND)
    for refuse in (world.session(ledger).quote, world.session(ledger).explain, world.session().ask):
        with pytest.raises(DomainError, match="as in the session's table"):
            refuse(foreign)
    with pytest.raises(DomainError, match="unit"):
        other.count(spend=SPEND)
    assert len(list(ledger.entries("world"))) == charged
    # Another table with the same unit and bounds is charged to the same people.
    world.session(ledger, rows=world.ROWS[:2], name="others").count(spend=SPEND)
    if url != "memory:":
        ledger.close()
        with Ledger.open(tmp_path / url) as again, pytest.raises(DomainError, match="unit"):
            world.session(again, unit="age").count(spend=SPEND)


def test_who_writes_the_binding_first_decides() -> None:
    account = Account(world.ledger(), scope="world")
    one, other = Binding.of(world.table()), Binding.of(world.table())
    assert one.key != other.key
    kept = one.write(account, actor="ana")
    assert kept == one == other.write(account, actor="ben")
    assert kept.sampling.key != kept.seal


@pytest.mark.statistical
def test_what_of_a_unit_is_kept_is_flat_over_the_months() -> None:
    units, months, most = 400, 12, 50
    rows = [(who, month) for who in range(units) for month in range(months) for _ in range(50)]
    frame = pa.table({"n": [who for who, _ in rows], "month": [month for _, month in rows]})
    frame = frame.append_column("name", pa.array([f"aircraft {who}" for who, _ in rows]))
    by_month = release.Count(by="month", keys=list(range(months)), spend=SPEND)
    units_by_month = release.Units(by="month", keys=list(range(months)), spend=SPEND)
    for unit in ("n", "name"):
        table = release.table(frame, unit=unit, max_rows_per_unit=most)
        for key in (b"", b"another"):
            kept = _kept(table, by_month, Sampling(key))
            assert sum(kept) == units * most
            # Each unit keeps 4 or 5 of a month: 0.37 / 4.2 / sqrt(400) = 0.45 percent is a standard deviation.
            assert all(abs(number / (units * most / months) - 1) < 0.02 for number in kept)
        table = release.table(frame, unit=unit, max_rows_per_unit=600, max_groups_per_unit=6)
        found = _kept(table, units_by_month, Sampling())
        assert sum(found) == units * 6
        assert all(abs(number / (units / 2) - 1) < 0.25 for number in found)


def _kept(table: release.Table, question: release.Question, sampling: Sampling) -> list[int]:
    what = question.design(table).aggregation
    found = exact(table, what, sampling)
    assert what.public is not None
    return [found.get(key, {0: (0,)})[0][0] for key in what.public]


@pytest.mark.statistical
def test_every_row_of_a_unit_is_as_likely_to_be_kept_as_every_other() -> None:
    # 7 rows, 3 kept, 2,000 units: a share is 3 / 7 to within 0.06 but for a probability of 4e-7 (Hoeffding).
    frame = pa.table({"p": [n // 7 for n in range(14_000)], "k": [n % 7 for n in range(14_000)]})
    table = release.table(frame, unit="p", max_rows_per_unit=3)
    kept = _kept(table, release.Count(by="k", keys=list(range(7)), spend=SPEND), Sampling(b"k"))
    assert sum(kept) == 6000
    assert all(abs(number / 2000 - 3 / 7) < 0.06 for number in kept)


@pytest.mark.parametrize("most", [1, 2, 3, 50, 2**20, 2**20 + 1, 2**31])
def test_as_many_rows_are_kept_as_the_bound_says(most: int) -> None:
    # Unit n has n rows, of 3 groups; negative numbers and the largest ones name units too.
    numbers = [*range(1, 61), -7, 2**63 - 1, -(2**63)]
    rows = [(who, at % 3) for who in numbers for at in range(who if 0 < who < 99 else 7)]
    frame = pa.table(
        {"p": pa.array([who for who, _ in rows], pa.int64()), "k": [key for _, key in rows]}
    )
    table = release.table(frame, unit="p", max_rows_per_unit=most)
    kept = sum(_kept(table, release.Count(by="k", keys=[0, 1, 2], spend=SPEND), Sampling()))
    assert kept == sum(min(who if 0 < who < 99 else 7, most) for who in numbers)


def test_what_is_kept_of_a_unit_does_not_follow_from_others() -> None:
    rows = [(f"p{n % 9}", "rome" if n % 2 else "oslo", float(n % 13), n) for n in range(200)]
    ages = release.Count(by="age", keys=list(range(200)), spend=SPEND)
    whole = _kept(world.table(rows), ages, Sampling(b"x"))
    without = _kept(world.table([row for row in rows if row[0] != "p4"]), ages, Sampling(b"x"))
    changed = [at for at in range(200) if whole[at] != without[at]]
    assert len(changed) == 2
    assert all(rows[at][0] == "p4" for at in changed)


@pytest.mark.slow
def test_a_hundred_threads_lose_no_charge(tmp_path: Path) -> None:
    ledger = world.ledger(tmp_path / "ledger.db")
    one, other = world.session(ledger), world.session(ledger, rows=world.ROWS[:4], name="others")
    spend = {"epsilon": "0.01"}

    def ask(number: int) -> Any:
        asked = (one, other)[number % 2]
        if number % 3:
            return asked.count(by="city", keys=["rome", "oslo"], spend=spend).rows
        return asked.sum("age", lower=0, upper=9, spend=spend).value

    with ThreadPoolExecutor(100) as pool:
        answers = list(pool.map(ask, range(100)))
    assert len(answers) == 100
    kinds = [each.kind for each in ledger.entries("world")]
    assert kinds.count("granted") == kinds.count("redeemed") == 100


@pytest.mark.parametrize("kept", [True, False])
def test_the_same_key_at_the_same_time_waits_for_the_first(
    kept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger, entered, go = world.ledger(), threading.Event(), threading.Event()
    asked = world.session(ledger, answers=tmp_path if kept else None)
    rows = OnDuckDB.rows

    def slowly(self: OnDuckDB, statement: Any) -> Any:
        entered.set()
        assert go.wait(60)
        return rows(self, statement)

    monkeypatch.setattr(OnDuckDB, "rows", slowly)
    with ThreadPoolExecutor(8) as pool:
        first = pool.submit(asked.count, spend=SPEND, key="q")
        assert entered.wait(60)
        others = [pool.submit(asked.count, spend=SPEND, key="q") for _ in range(7)]
        while sum(each.kind == "granted" for each in ledger.entries("world")) < 1:
            pass
        go.set()
        values = {each.result(60).value for each in (first, *others)}
    assert len(values) == 1
    assert sum(each.result().replayed for each in others) == 7
    assert [each.name for each in tmp_path.iterdir() if each.suffix != ".json"] == []


def test_a_failed_first_leaves_the_others_of_its_key_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = world.session(world.ledger(), answers=tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(OnDuckDB, "rows", lambda *_: 1 / 0)
        with pytest.raises(ReleaseError):
            asked.count(spend=SPEND, key="q")
    with pytest.raises(SpentError):
        asked.count(spend=SPEND, key="q")


def test_a_replay_is_of_the_same_table_only(tmp_path: Path) -> None:
    ledger = world.ledger()
    places = [tmp_path / name / "visits.parquet" for name in ("one", "other")]
    for place in places:
        place.parent.mkdir()
        pq.write_table(world.frame(), place)
    frames: list[Any] = [world.frame(), world.frame()]
    same = {"unit": "person", "max_rows_per_unit": 2}
    for at, pair in enumerate((places, frames)):
        one, other = (release.table(source, **same) for source in pair)
        sessions = [
            release.Session(each, ledger=ledger, scope="world", actor="ana")
            for each in (one, other)
        ]
        value = sessions[0].count(spend=SPEND, key=f"q{at}").value
        assert sessions[0].count(spend=SPEND, key=f"q{at}").value == value
        with pytest.raises(KeyReusedError):
            sessions[1].count(spend=SPEND, key=f"q{at}")
    assert str(tmp_path) not in str([each.description for each in ledger.entries("world")])
    named = [
        release.table(world.frame(rows), name="visits", **same)
        for rows in (world.ROWS, world.ROWS[:1])
    ]
    assert named[0].identity == named[1].identity
    typed = release.table(places[0], schema={"age": "string"}, **same)
    assert typed.identity != release.table(places[0], **same).identity


def test_a_changed_answer_is_not_served(tmp_path: Path) -> None:
    ledger = world.ledger()
    asked = world.session(ledger, answers=tmp_path)
    value = asked.count(spend=SPEND, key="q").value
    asked.count(spend=SPEND, key="r")
    files = sorted(tmp_path.iterdir())
    whole = {file: file.read_text() for file in files}
    document = json.loads(whole[files[0]])
    document["answers"] = "00" + document["answers"][2:]
    odd = ("[" * 10**5, '{"seal": 3, "answers": 1}', '{"seal": "é"}', "")
    for damaged in (json.dumps(document), whole[files[1]], *odd):
        for file in files:
            file.write_text(damaged)
        refused = 0
        for key in ("q", "r"):
            try:
                asked.count(spend=SPEND, key=key)
            except ReleaseError as error:
                refused += "Nothing was charged now" in str(error)
        assert refused == 2 - (damaged in whole.values())
    for file in files:
        file.write_text(whole[file])
    assert asked.count(spend=SPEND, key="q").value == value


def test_under_replacement_the_quote_says_that_the_price_is_not_the_spend() -> None:
    ledger = Ledger.open("memory:")
    open_scope(
        ledger, "world", filter=BasicFilter(9, delta=0), adjacency=Adjacency.REPLACE, actor="keeper"
    )
    quote = world.session(ledger).quote(release.Count(spend=SPEND))
    assert float(quote.price["epsilon"].fraction) == pytest.approx(0.2)
    assert "replacing" in quote.bias
    assert "replacing" not in world.session().quote(release.Count(spend=SPEND)).bias


@pytest.mark.statistical
@pytest.mark.parametrize(
    ("middle", "spend", "confidence"),
    [
        (60.0, {"epsilon": 0.5}, 0.95),
        (110.0, {"epsilon": 0.5}, 0.5),
        (60.0, {"rho": 0.02}, 0.5),
        (110.0, {"rho": 0.02}, 0.95),
    ],
)
def test_the_error_of_a_mean_is_the_measured_one(
    middle: float, spend: Any, confidence: float
) -> None:
    rows = [(f"p{n}", "rome", middle + n % 9 - 4, 1) for n in range(500)]
    question = release.Mean("amount", lower=0, upper=120, granularity=1, spend=spend)
    design = question.design(world.table(rows))
    found = exact(design.table, design.aggregation)
    number, total = found[()][0]
    truth = 60 + total / number
    inside, turns = 0, 400
    for _ in range(turns):
        columns = question.columns(design, design.draw(found))
        (error,) = question.errors(design, 1 - confidence, columns)
        inside += abs(columns[0].cells[0] - truth) <= error
    # 400 draws: a share is within 0.165 of its expectation but for a probability of 7e-10 (Hoeffding). With 10,000:
    # campaigns.release.coverage.
    assert confidence - 0.165 <= inside / turns <= confidence + 0.14 * (1 - confidence) + 0.165


@pytest.mark.parametrize("confidence", [1 - 2.0**-53, 1 - 1e-12, 1e-300, 5e-324, np.float64(0.5)])
@pytest.mark.parametrize("spend", [{"epsilon": 1}, {"rho": 1}, {"rho": 1e-4}], ids=str)
def test_errors_next_to_certain_are_numbers(confidence: float, spend: Any) -> None:
    for question in (
        release.Count(spend=spend),
        release.Mean("amount", lower=0, upper=9, spend=spend),
        release.Quantile("amount", 0.5, lower=0, upper=9, granularity=1, spend=spend),
    ):
        design = question.design(world.table())
        columns = question.columns(design, design.draw(exact(design.table, design.aggregation)))
        error = question.errors(design, failure_of(confidence), columns)
        assert all(0 <= each < 1e9 for each in (error if isinstance(error, tuple) else (error,)))


def test_the_quantile_next_to_certain_is_that_of_the_noise() -> None:
    from dpcompose.release.columns import Bounds
    from dpcompose.release.noise import DiscreteGaussianNoise, DiscreteLaplaceNoise

    change = Bounds.stated(1).change(1)
    # P(|x| > t) = 2 q^(t + 1) / (1 + q) <= 2^-53, q = e^(-1/10): t + 1 >= 10 (54 ln 2 - ln(1 + q)) = 367.9.
    assert DiscreteLaplaceNoise(10.0, change).error(2.0**-53) == 367
    # Sums of e^(-x^2 / 2) beyond 8 and 9, over the whole: 1.0e-14 and 2.1e-18.
    assert DiscreteGaussianNoise(1.0, change).error(2.0**-53) == 8


@pytest.mark.parametrize("number", [np.float64(0.1), np.int64(1), np.float64(1.0)], ids=repr)
def test_numbers_of_numpy_are_numbers(number: Any) -> None:
    asked = world.session()
    asked.count(spend={"epsilon": number})
    asked.sum(
        "amount", lower=np.int64(-1), upper=np.float64(9), granularity=np.float64(0.1), spend=SPEND
    )
    asked.histogram("amount", edges=[np.float64(0.1), np.int64(2), 3], spend=SPEND)
    asked.quantile("amount", np.float64(0.5), lower=0, upper=1, granularity=number, spend=SPEND)


@pytest.mark.parametrize("width", [8, 16, 32, 64])
def test_unsigned_integers_and_negative_ends(width: int) -> None:
    numbers = pa.array([0, 3, 200, None], getattr(pa, f"uint{width}")())
    made = release.table(pa.table({"p": [1, 2, 3, 4], "x": numbers}), unit="p", max_rows_per_unit=1)
    for question, found in (
        (release.Sum("x", lower=-7, upper=100, spend=SPEND), {(): {0: (3, 103)}}),
        (release.Histogram("x", edges=[-5, 1, 300], spend=SPEND), {(): {0: (1,), 1: (2,)}}),
        (release.Count(by="x", keys=[-1, 3, 10**6], spend=SPEND), {(3,): {0: (1,)}}),
    ):
        assert exact(made, question.design(made).aggregation) == found


def test_names_that_a_terminal_would_run_are_refused() -> None:
    frame = pa.table({"per\x1b[31mson": ["a"], "x": [1]})
    with pytest.raises(DomainError, match="visible"):
        release.table(frame, unit="per\x1b[31mson", max_rows_per_unit=1)
    with pytest.raises(DomainError, match="visible"):
        release.table(frame, unit="x", max_rows_per_unit=1, name="a\nb")
    made = release.table(frame, unit="x", max_rows_per_unit=1)
    with pytest.raises(DomainError, match="visible"):
        release.Count(by="per\x1b[31mson", keys=["a"], spend=SPEND).design(made)


def test_the_confidence_of_a_plan() -> None:
    for confidence in (1e-300, 1e-7, 0.0, 1.0):
        with pytest.raises(DomainError, match="confidence"):
            release.plan(10**6, accuracy=0.001, confidence=confidence, epsilon=1.0, delta=1e-6)
    found = release.plan(10**6, accuracy=0.001, confidence=1 - 2.0**-53, epsilon=1.0, delta=1e-6)
    assert all(row.queries >= 0 for row in found.rows)


def test_what_takes_no_charges_keeps_no_key() -> None:
    """A question to slots or to a partition is refused before anything is written: no slot is lost by it."""
    from dpcompose.account import exposure, open_partition, open_slots
    from dpcompose.errors import ScopeKindError

    ledger = world.ledger()
    open_slots(ledger, "world/slots", slots=2, filter=BasicFilter(1, delta=0.01), actor="keeper")
    open_partition(ledger, "world/wards", actor="keeper")
    for scope in ("world/slots", "world/wards"):
        asked = release.Session(world.table(), ledger=ledger, scope=scope, actor="ana")
        with pytest.raises(ScopeKindError):
            asked.count(spend=SPEND)
        assert [each.path for each in ledger.scopes(scope)] == [scope]
        assert exposure(ledger, paths=[scope], delta=0.1).promised.available
    assert ledger.balance("world/slots").taken == 0


def test_the_key_of_a_scope_stays_in_the_ledger(tmp_path: Path) -> None:
    file = tmp_path / "city.db"
    with world.ledger(file) as ledger:
        world.session(ledger).count(spend=SPEND)
        key = ledger.balance("world/release:table").scope.description["release"]["key"]
    for command in (
        ["show"],
        ["show", "--json"],
        ["log", "world"],
        ["log", "world", "--json"],
    ):
        asked = ["ledger", command[0], "--ledger", str(file), *command[1:]]
        said = invoke(asked, env={"COLUMNS": "200"})
        assert said.exit_code == 0
        assert "release:table" in said.output
        assert key not in said.output


@pytest.mark.parametrize("lost", [1, 3])
def test_an_uncertain_redemption_is_no_lost_charge_and_one_draw(
    lost: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was committed, and nobody heard: one question asks again, and so does the next one in this process."""
    ledger, drawn = world.ledger(tmp_path / "ledger.db"), list[int]()
    rows, transact, left = OnDuckDB.rows, ledger.store.transact, [lost]

    def unheard(requests: Any) -> Any:
        decided = transact(requests)
        if isinstance(requests[0], Redemption) and left[0]:
            left[0] -= 1
            raise StoreError("ledger.db", "the connection ended", uncertain=True)
        return decided

    monkeypatch.setattr(ledger.store, "transact", unheard)
    monkeypatch.setattr(OnDuckDB, "rows", lambda *given: drawn.append(1) or rows(*given))
    asked = world.session(ledger, answers=tmp_path / "answers")
    if lost == 3:
        with pytest.raises(StoreError):
            asked.count(spend=SPEND, key="q")
        with monkeypatch.context() as elsewhere:
            elsewhere.setattr("dpcompose.release.answers._UNTOLD", {})
            with pytest.raises(SpentError):
                asked.count(spend=SPEND, key="q")
        assert drawn == []
    value = asked.count(spend=SPEND, key="q").value
    assert asked.count(spend=SPEND, key="q").value == value
    assert drawn == [1]
    with pytest.raises(SpentError):
        world.session(ledger).count(spend=SPEND, key="q")
    assert [each.kind for each in ledger.entries("world")] == [
        "opened",
        "opened",
        "granted",
        "redeemed",
    ]


def test_the_name_of_an_attempt_is_given_to_one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    ledger, names = world.ledger(), list[str]()

    def uncertain(*_: Any, nonce: str, **__: Any) -> None:
        names.append(nonce)
        if len(names) == 1:
            # Somebody else asks amid the first attempt.
            with pytest.raises(StoreError):
                redeemed(ledger, receipt, actor="ana")
        raise StoreError("ledger", "nobody knows", uncertain=True)

    receipt = Account(ledger, scope="world").charge(Laplace(1.0), actor="ana", key="q")
    with monkeypatch.context() as patch:
        patch.setattr(Ledger, "redeem", uncertain)
        with pytest.raises(StoreError):
            redeemed(ledger, receipt, actor="ana")
        assert len(names) == 6 and len(set(names)) == 2
        # A forked process has the memory of the first, and makes an attempt of its own.
        patch.setattr("os.getpid", lambda: -1)
        with pytest.raises(StoreError):
            redeemed(ledger, receipt, actor="ana")
    assert len(set(names)) == 3
    redeemed(ledger, receipt, actor="ana")
    with pytest.raises(AlreadyRedeemedError):
        redeemed(ledger, receipt, actor="ana")
