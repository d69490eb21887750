"""Scopes that renew: each period has the same caps and a balance of its own, by recorded time alone."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from datetime import datetime, timedelta
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from campaigns.ledger.history import HistoryError
from campaigns.ledger.periods import campaign, span
from dpcompose import Gaussian, Laplace
from dpcompose.account import Account, exposure, open_partition, open_scope, open_slots
from dpcompose.adaptive import BasicFilter, ConcentratedFilter, Filter, GaussianFilter, PureFilter
from dpcompose.errors import (
    DomainError,
    OverdrawnError,
    ScopeExistsError,
    TamperedError,
    UnsupportedError,
)
from dpcompose.ledger import Ledger
from dpcompose.ledger.scope import AccountNode, Renewal

ADA: dict[str, Any] = {"actor": "Ada"}
Clock = Callable[[str], None]


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """Set the clock to a day."""
    found = [0]
    monkeypatch.setattr("time.time_ns", lambda: found[0])

    def at(day: str) -> None:
        found[0] = int(datetime.fromisoformat(f"{day}T12:00:00+00:00").timestamp()) * 10**9

    at("2030-03-01")
    return at


def _charge(ledger: Ledger, path: str, cost: float, key: str) -> None:
    ledger.charge(path, cost={"epsilon": cost}, key=key, **ADA)


def test_ledgers_of_periods_agree_with_the_model(tmp_path: Path) -> None:
    assert sum(campaign("memory:", seed=seed, requests=40) for seed in range(12)) > 100
    assert campaign(str(tmp_path / "ledger.db"), seed=5, requests=25)


@pytest.mark.server
def test_ledgers_of_periods_agree_with_the_model_on_postgres(postgres: Any) -> None:
    assert campaign(postgres.create("periods"), seed=5, requests=40)


@pytest.mark.parametrize("weakness", ["never", "late"])
def test_periods_that_do_not_begin_or_begin_late_are_caught(weakness: str) -> None:
    with pytest.raises(HistoryError):
        for seed in range(12):
            campaign("memory:", seed=seed, requests=40, weakness=weakness)


def test_a_period_ends_by_recorded_time_and_no_clock_brings_it_back(clock: Clock) -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"epsilon": 1}, renew="year", **ADA)
    _charge(ledger, "city", 1, "a")
    with pytest.raises(OverdrawnError):
        _charge(ledger, "city", 0.1, "b")
    clock("2031-01-01")
    assert (
        str(ledger.balance("city").left["epsilon"]) == "0"
    )  # nothing was recorded in the new year
    assert str(ledger.available("city")["epsilon"]) == "1"
    _charge(ledger, "city", 0.5, "c")
    assert ledger.balance("city").period == ("2031-01-01", "2032-01-01")
    clock("2030-12-31")
    with pytest.raises(OverdrawnError, match=r"0\.6 of epsilon asked, 0\.5 left"):
        _charge(ledger, "city", 0.6, "d")
    assert ledger.verify().entries == 5


def test_a_budget_that_was_begun_anew_too_early_is_found(
    clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    ledger = Ledger.open("memory:")
    ledger.scope("city", caps={"epsilon": 1}, renew="year", **ADA)
    _charge(ledger, "city", 1, "a")
    with monkeypatch.context() as weak:
        renewed = AccountNode.at
        weak.setattr(AccountNode, "at", lambda node, time: renewed(node, "2031" + time[4:]))
        _charge(ledger, "city", 1, "b")
    with pytest.raises(TamperedError, match="entry 3"):
        ledger.verify()


def test_lengths_are_read_and_written_one_way() -> None:
    same = {
        "year": "P1Y",
        "quarter": "P3M",
        "month": "P1M",
        "week": "P7D",
        "day": "PT24H",
        "P30D": "PT720H",
    }
    same["P2Y"] = "P24M"
    for text, other in same.items():
        assert Renewal.read(text) == Renewal.read(other)
        assert Renewal.read(other).text == text
    assert Renewal.read(timedelta(days=7)).text == "week"
    strange: list[Any] = [
        "",
        "P",
        "PT",
        "P0D",
        "P1Y1D",
        "P101Y",
        "P1.5D",
        "Year",
        "-P1D",
        1,
        True,
        None,
        timedelta(0),
    ]
    for bad in [*strange, timedelta(microseconds=1), "P1Y\n", "P٣D", ["year"], float("nan")]:
        with pytest.raises(DomainError, match="renew"):
            Renewal.read(bad)


@pytest.mark.parametrize(
    "renew", ["year", "quarter", "month", "week", "day", "PT7H", "P5M", "P40D"]
)
def test_no_window_touches_more_periods_than_are_counted(renew: str) -> None:
    """Windows that begin on every fifth day of nine years; periods counted on the calendar, boundary by boundary."""
    renewal, begin = Renewal.read(renew), datetime(2023, 12, 27)

    def number(at: datetime) -> int:
        return renewal.index(f"{at.isoformat(timespec='microseconds')}Z")

    for days in range(0, 3300, 37):
        at = begin + timedelta(days=days, hours=days % 24)
        first, last = (datetime.fromisoformat(each) for each in renewal.bounds(number(at)))
        assert first <= at < last
        assert number(last) == number(last - timedelta(microseconds=1)) + 1
        if renew not in ("P5M", "P40D"):
            assert (first, last) == span(renew, at)
    for window in (
        "day",
        "P10D",
        "P30D",
        "P31D",
        "month",
        "P11M",
        "year",
        "P365D",
        "P366D",
        "P18M",
    ):
        length, most = Renewal.read(window), 0
        for days in range(0, 3300, 5):
            at = begin + timedelta(days=days)
            stop = (
                _later(at, length.months)
                if length.months
                else at + timedelta(seconds=length.seconds)
            )
            most = max(most, number(stop - timedelta(microseconds=1)) - number(at) + 1)
        assert most <= renewal.touched(length) <= 1.02 * most + 2
    assert [renewal.touched(Fraction(each)) for each in (0.5, 1, 1.5, 3)] == [2, 2, 3, 4]


def _later(at: datetime, months: int) -> datetime:
    """The same day of a later month, or its last."""
    year, month = divmod(at.year * 12 + at.month - 1 + months, 12)
    for day in (at.day, 30, 29, 28):
        try:
            return at.replace(year=year, month=month + 1, day=day)
        except ValueError:
            continue
    raise AssertionError("every month has a day 28")


FILTERS: list[Filter] = [
    PureFilter(0.1), BasicFilter(0.1, delta=1e-9), ConcentratedFilter(0.001, delta=1e-9), GaussianFilter(0.1)
]  # fmt: skip


@pytest.mark.parametrize("filter", FILTERS, ids=lambda each: each.kind)
def test_a_window_is_promised_as_so_many_budgets_side_by_side(filter: Filter) -> None:
    ledger = Ledger.open("memory:")
    open_scope(ledger, "yearly", filter=filter, renew="year", **ADA)
    assert "name a window" in exposure(ledger, paths=["yearly"], delta=1e-5).promised.holds
    for window, times in [(1, 2), ("P4Y", 5), (timedelta(days=400), 3), ("2.5", 4)]:
        found = exposure(ledger, paths=["yearly"], delta=1e-5, window=window)
        assert found.periods == {"yearly": times}
        ledger.scope(f"beside{times}", **ADA)
        paths = [f"beside{times}/{number}" for number in range(times)]
        for path in paths:
            open_scope(ledger, path, filter=filter, **ADA)
        assert found.promised.epsilon == exposure(ledger, paths=paths, delta=1e-5).promised.epsilon
    assert "each year" in Account(ledger, scope="yearly").chain[-1].in_words


def test_what_a_fixed_budget_above_promises_needs_no_window() -> None:
    ledger = Ledger.open("memory:")
    open_scope(ledger, "decade", filter=PureFilter(2.0), **ADA)
    open_scope(ledger, "decade/daily", filter=PureFilter(0.5), renew="day", **ADA)
    assert exposure(ledger, paths=["decade/daily"], delta=0.0).promised.epsilon == 2.0
    open_scope(ledger, "open", filter=None, **ADA)
    for name, renew in (("monthly", "month"), ("weekly", "week"), ("once", None)):
        open_scope(ledger, f"open/{name}", filter=PureFilter(0.5), renew=renew, **ADA)
    paths = [f"open/{name}" for name in ("monthly", "weekly", "once")]
    found = exposure(ledger, paths=paths, delta=0.0, window="month")
    assert (found.promised.epsilon, found.periods) == (4.5, {"open/monthly": 2, "open/weekly": 6})
    assert (
        "name the window as a duration"
        in exposure(ledger, paths=paths, delta=0.0, window=2).promised.holds
    )
    for bad in (0, -1, float("nan"), float("inf"), True, "many", 10**7, "P101Y", [1], "1e5"):
        with pytest.raises(DomainError):
            exposure(ledger, paths=paths, delta=0.0, window=bad)  # pyright: ignore[reportArgumentType]


def test_what_is_spent_adds_up_over_all_periods(clock: Clock) -> None:
    ledger = Ledger.open("memory:")
    account = open_scope(ledger, "city", filter=PureFilter(1.0), renew="month", **ADA)
    for month, number in itertools.product(range(3, 7), range(2)):
        clock(f"2030-{month:02}-15")
        account.charge(Laplace(2.0), key=f"{month}.{number}", **ADA)
        with pytest.raises(OverdrawnError):
            account.charge(Laplace(1.0), key=f"{month}.{number}, too much", **ADA)
    assert exposure(ledger, paths=["city"], delta=0.0, window="month").spent.epsilon == 4.0
    ledger.verify()


def test_what_would_hide_a_charge_cannot_renew(clock: Clock) -> None:
    ledger = Ledger.open("memory:")
    open_scope(ledger, "city", filter=ConcentratedFilter(1.0, delta=1e-6), renew="year", **ADA)
    open_scope(ledger, "fixed", filter=ConcentratedFilter(1.0, delta=1e-6), **ADA)
    open_slots(ledger, "fixed/slots", slots=2, filter=ConcentratedFilter(0.1, delta=0), **ADA)
    open_partition(ledger, "fixed/wards", renew="month", **ADA)
    refused: list[tuple[str, Callable[[], object]]] = [
        ("slots are charged once", lambda: open_slots(ledger, "city/s", slots=2, filter=PureFilter(0.1), **ADA)),
        ("a schedule is committed once",
         lambda: open_scope(ledger, "fixed/a", filter=PureFilter(1), schedule=[Laplace(9.0)], renew="day", **ADA)),
        ("a slot was charged above once", lambda: ledger.scope("fixed/slots/one", renew="day", **ADA)),
        ("it passes on only a rise", lambda: open_partition(ledger, "city/p", renew="month", **ADA)),
        ("it passes on only a rise", lambda: open_partition(ledger, "city/q", **ADA)),
        ("all its children do as it does", lambda: open_scope(ledger, "fixed/wards/north", filter=None, **ADA)),
    ]  # fmt: skip
    entries = ledger.verify().entries
    for reason, attempt in refused:
        with pytest.raises(UnsupportedError, match=reason):
            attempt()
    with pytest.raises(ScopeExistsError):
        open_scope(ledger, "city", filter=ConcentratedFilter(1.0, delta=1e-6), renew="month", **ADA)
    with pytest.raises(DomainError, match="renew"):
        ledger.scope("other", description={"budget": {"renew": "P12M"}}, **ADA)
    assert ledger.verify().entries == entries
    ward = open_scope(ledger, "fixed/wards/north", filter=None, renew="month", **ADA)
    for month in ("04", "05"):
        clock(f"2030-{month}-01")
        ward.charge(Gaussian(10.0), key=month, **ADA)
    assert (
        str(ledger.balance("fixed").spent["rho"]) == "0.21"
    )  # 0.2 for the slots, 0.005 for each month
    ledger.verify()
